"""What the demonstration's report has besides the metrics: every further part there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raterwise.cli.report import paired
from raterwise.cli.stability import named
from raterwise.cli.steadiness import measure
from raterwise.evaluate import evaluate
from raterwise.inference.settings import Progress, within

if TYPE_CHECKING:
    from raterwise.beliefs import DirichletBelief
    from raterwise.datasets import LidcDemo
    from raterwise.results import Results, Subgroup

CHANGED = (
    *("accuracy", "brier", "nll", "ece", "classwise_ece", "robust_ece", "calibration_error"),
    *("calibration_loss", "dispersion_loss", "disagreement_calibration_error", "auccc"),
)
"""What is shown before and after recalibration."""
STEADY = ("ece", "robust_ece")
REPEATS = 10
"""Subsets of each size: few, since somebody waits."""
LISTED = 25
READERS = (
    "In LIDC-IDRI a rater is a slot of the reading, not a person: slot 2 of one scan and of the "
    "next may be two radiologists. What is tested here is whether the slots are interchangeable."
)


def further_parts(
    data: LidcDemo, results: Results, progress: Progress, begin: float
) -> dict[str, Any]:
    """Return the recalibrated model, the stability and the worklist, as a report takes them.

    `results` are those of the model as it is. `begin` is the part of the progress done before.
    """
    from raterwise.worklist import worklist

    rest = within(progress, begin, 1)
    rest("recalibration", 0.0)
    probs, belief = recalibrated(data)
    after = evaluate(
        probs,
        data.labels,
        CHANGED,
        groups=data.patients,
        class_names=data.class_names,
        resamples=results.options["resamples"],
        seed=results.options["seed"],
        on_single="drop",
        progress=within(rest, 0.15, 0.4),
    )
    differences, _ = paired(after, results)
    found, _ = measure(
        data.probs,
        data.labels,
        STEADY,
        groups=data.patients,
        repeats=REPEATS,
        seed=results.options["seed"],
        progress=within(rest, 0.7, 1),
    )
    now = belief.posterior(data.labels)
    ids = data.case_ids.tolist()
    return {
        "after": after,
        "differences": differences,
        "stability": {name: one.curve for name, one in named(found).items()},
        "variation": {name: one.variation for name, one in named(found).items()},
        "worklist": worklist(now, ids, top=LISTED, class_names=data.class_names),
        "notes": {"raters": READERS},
    }


def by_diameter(
    data: LidcDemo, results: Results, progress: Progress | None = None
) -> tuple[Subgroup, ...]:
    """Return a few metrics by the size of the nodule, the smallest first.

    The limits are those of the Fleischner Society's guidelines of 2017.
    """
    diameter = data.features[:, data.feature_names.index("diameter_mm")]
    small, middle, large = "below 6 mm", "6 to 8 mm", "above 8 mm"
    level = np.select([diameter < 6, diameter <= 8], [small, middle], large)
    found = evaluate(
        data.probs,
        data.labels,
        ("accuracy", "brier", "ece"),
        groups=data.patients,
        class_names=data.class_names,
        resamples=results.options["resamples"],
        seed=results.options["seed"],
        subgroups={"diameter": level},
        progress=progress,
    )
    return tuple(found.subgroup("diameter", name) for name in (small, middle, large))


def recalibrated(data: LidcDemo) -> tuple[NDArray[np.float64], DirichletBelief]:
    """Return temperature-scaled probabilities, and how sure of them to be, of every case.

    Each case is calibrated by what was fitted to other patients: those outside of its fold.
    """
    from raterwise.beliefs import DirichletBelief
    from raterwise.calibrators.alpha import AlphaCalibration
    from raterwise.calibrators.scaling import TemperatureScaling

    probs, concentration = np.empty_like(data.probs), np.empty(len(data))
    for fold in np.unique(data.folds):
        fit, apply = data.folds != fold, data.folds == fold
        labels = data.labels.take(fit)
        scaling = TemperatureScaling(input="probs").fit(data.probs[fit], labels)
        probs[apply] = scaling.predict_proba(data.probs[apply])
        known = scaling.predict_proba(data.probs[fit])
        alpha = AlphaCalibration().fit(None, labels, probs=known, groups=data.patients[fit])
        concentration[apply] = alpha.predict(None, probs=probs[apply]).concentration
    return probs, DirichletBelief(probs, concentration)
