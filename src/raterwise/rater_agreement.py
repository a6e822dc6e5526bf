"""How far raters agree with one another, and who says what more often, without a model."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluate import evaluate
from raterwise.evaluation.warnings import about_arbitration
from raterwise.exchangeability import ExchangeabilityTest, exchangeability_test
from raterwise.exchangeability.outcome import largest_of
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.results import Estimate
from raterwise.summaries.facts import Facts
from raterwise.types import Scale


@dataclass(frozen=True)
class RaterTendency:
    """What one rater says, and how often another rater of the same case says it too."""

    rater: Hashable
    ratings: int
    shared: int
    """Of them, on cases that somebody else rated."""
    shares: dict[str, float]
    """How often the rater gave each class."""
    agreement: float | None
    """How often another rater of the same case, drawn at random, says the same."""
    excess: dict[str, float] = field(default_factory=dict)
    """How much more often than the others on the same cases, for each class."""
    adjusted_p_value: float | None = None

    @property
    def largest(self) -> tuple[str, float] | None:
        """The class this rater differs on most, and by how much; of two classes, the second."""
        return largest_of(self.excess) if self.excess else None


@dataclass(frozen=True)
class RaterAgreement:
    """Coefficients of agreement with intervals, and what is known of each rater."""

    cases: int
    patients: int | None
    ratings: int
    single: int
    """Cases with one label or none, which say nothing of agreement."""
    level: float
    estimates: dict[str, Estimate]
    test: ExchangeabilityTest | None
    raters: tuple[RaterTendency, ...]
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        raters = [{**asdict(one), "rater": str(one.rater)} for one in self.raters]
        return {
            "metrics": {name: asdict(found) for name, found in self.estimates.items()},
            "data": {
                "cases": self.cases, "patients": self.patients, "ratings": self.ratings,
                "single": self.single, "raters": len(self.raters) or None,
            },
            "level": self.level,
            "exchangeability": None if self.test is None else self.test.to_dict(),
            "raters": raters,
        }  # fmt: skip


def rater_agreement(
    labels: Labels,
    groups: Sequence[Any] | None = None,
    *,
    scales: Sequence[Scale] = ("nominal",),
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    unit: Literal["cases", "raters", "both"] = "cases",
) -> RaterAgreement:
    """Return how far the raters of a panel agree.

    >>> labels = Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]], num_classes=2)
    >>> found = rater_agreement(labels, resamples=0)
    >>> round(found.estimates["fleiss_kappa"].value, 4), found.raters[0].agreement
    (0.4667, 0.75)
    """
    several = labels.num_raters >= 2
    if not several.any():
        raise InvalidInputError(
            "labels: agreement needs cases with two ratings or more; there are none"
        )
    used = labels.take(several)
    patients = None if groups is None else np.asarray(groups)[several]
    classes = used.counts.shape[1]
    # The coefficients look at the labels alone; some probabilities have to be there.
    nobody = np.full((len(used), classes), 1 / classes)
    estimates: dict[str, Estimate] = {}
    for scale in scales:
        names = ["krippendorff_alpha"] if estimates else ["fleiss_kappa", "krippendorff_alpha"]
        results = evaluate(
            nobody, used, names, patients, resamples=resamples, level=level, seed=seed, unit=unit,
            options={"krippendorff_alpha": {"scale": scale}},
        )  # fmt: skip
        for name in names:
            key = name if name == "fleiss_kappa" else f"{name}_{scale}"
            estimates[key] = results[name]
    test = None
    if used.ratings is not None:
        try:
            test = exchangeability_test(used, patients, seed=seed)
        except RaterwiseError:
            test = None
    return RaterAgreement(
        len(labels),
        None if groups is None else len(set(map(str, groups))),
        int(labels.num_raters.sum()),
        int((~several).sum()),
        level,
        estimates,
        test,
        _tendencies(labels, test),
        tuple(about_arbitration(Facts.counted(Predictions.of(nobody, used)))),
    )


def _tendencies(labels: Labels, test: ExchangeabilityTest | None) -> tuple[RaterTendency, ...]:
    ratings = labels.ratings
    if ratings is None:
        return ()
    names = labels.class_names or tuple(str(k) for k in range(labels.counts.shape[1]))
    others = labels.num_raters[ratings.case] - 1
    alike = labels.counts[ratings.case, ratings.label] - 1
    deviations = {} if test is None else {one.rater_id: one for one in test.raters}
    found = []
    for r, rater in enumerate(ratings.rater_ids):
        mine = ratings.rater == r
        shared = mine & (others > 0)
        said = np.bincount(ratings.label[mine], minlength=len(names))
        one = deviations.get(rater)
        if one is not None and one.ratings == 0:  # who shares no case cannot differ from anybody
            one = None
        found.append(
            RaterTendency(
                rater,
                int(mine.sum()),
                int(shared.sum()),
                dict(zip(names, (said / max(mine.sum(), 1)).tolist(), strict=True)),
                float((alike[shared] / others[shared]).mean()) if shared.any() else None,
                {} if one is None else {str(k): float(v) for k, v in one.excess.items()},
                None if one is None else float(one.adjusted_p_value),
            )
        )
    return tuple(found)
