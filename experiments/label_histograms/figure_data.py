"""What LH Figs 1, 2 and 4 show, as numbers, from what is kept of the networks.

Fig 3 needs no networks: `raterwise.plots.OptimalConcentrationDisplay` computes what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.kept import read_json
from experiments.label_histograms.calibrators import SCALINGS, calibrated, drawn, restored_pair
from experiments.label_histograms.mixed_judging import Judging, kept_labels
from experiments.label_histograms.mixed_outputs import Outputs, load_outputs
from experiments.label_histograms.several_scores import JudgedCases, disagreement_bins, said_of
from raterwise.beliefs import EnsembleBelief, PointBelief
from raterwise.functions.histograms import calibration_loss, epistemic_loss
from raterwise.labels import Labels

__all__ = [
    "Change",
    "debiasing",
    "mixed_changes",
    "mixed_reliability",
    "pooled_bins",
    "several_changes",
    "several_reliability",
]

FloatArray = NDArray[np.float64]
Bins = Mapping[str, Sequence[float]]
Curves = dict[tuple[str, str, bool], dict[str, FloatArray]]
"""Cases, predicted and observed disagreement by bin, of method, scaling, with α."""

SIZES, RATERS, RUNS = (100, 300, 1000, 3000, 10_000), (2, 5), 10
LABELS = 2
"""Of each validation case, to fit the calibrators of Mix-MNIST and Mix-CIFAR-10."""
SHOWN = ("none", "ts")


class Change(NamedTuple):
    """What temperature scaling does to each case (LH Fig 4)."""

    confidence: tuple[FloatArray, FloatArray]
    """The largest class probability, before and after."""
    disagreement: tuple[FloatArray, FloatArray]
    """How likely two raters differ, before and after."""


def debiasing(seed: int = 0) -> dict[str, dict[int, FloatArray]]:
    """Return plug-in and unbiased or debiased estimates of a perfect predictor (LH Fig 2, B.5).

    Labels of two classes whose probabilities are uniform; each array is (sizes, runs). The truth
    is 0.
    """
    random = np.random.default_rng([seed, 31])
    names = ("EL, plug-in", "EL, unbiased", "CL, plug-in", "CL, debiased")
    found = {name: {n: np.empty((len(SIZES), RUNS)) for n in RATERS} for name in names}
    for raters in RATERS:
        for i, size in enumerate(SIZES):
            for run in range(RUNS):
                probs = random.random(size)
                said = random.binomial(raters, probs)
                labels = Labels.from_counts(np.column_stack((raters - said, said)))
                both = np.column_stack((1 - probs, probs))
                values = (
                    epistemic_loss(both, labels, estimator="plugin"),
                    epistemic_loss(both, labels),
                    calibration_loss(both, labels, estimator="plugin"),
                    calibration_loss(both, labels),
                )
                for name, value in zip(names, values, strict=True):
                    found[name][raters][i, run] = value
    return found


def pooled_bins(parts: Sequence[Bins]) -> dict[str, FloatArray]:
    """Return the reliability diagram of several networks together, from those of each.

    >>> one = {"cases": [1, 0], "predicted": [0.2, 0.0], "observed": [0.0, 0.0]}
    >>> two = {"cases": [3, 0], "predicted": [0.4, 0.0], "observed": [1.0, 0.0]}
    >>> float(pooled_bins([one, two])["observed"][0])
    0.75
    """
    sizes = np.array([part["cases"] for part in parts], float)
    total = sizes.sum(axis=0)
    means = {
        name: (sizes * np.array([part[name] for part in parts])).sum(axis=0) / np.maximum(total, 1)
        for name in ("predicted", "observed")
    }
    return {"cases": total, **means}


def mixed_reliability(folder: Path, name: str = "mixed_mnist") -> Curves:
    """Return predicted and observed disagreement of the kept networks, all together (LH Fig 1).

    α needs the features, which of Mix-CIFAR-10 are too large to keep.
    """
    parts: dict[tuple[str, str, bool], list[Bins]] = {}
    labels = kept_labels(None, folder, name).test
    for outputs in load_outputs(folder, name):
        pairs = _pairs(folder, outputs)
        for method in ("raw", "mcdo"):
            settings = Judging()
            logits, features = drawn(method, outputs, settings.samples, settings.seed)
            cases = JudgedCases.of(labels.first(logits.shape[-2]).counts)
            for scaling in SHOWN:
                scale, alphas = restored_pair(scaling, pairs[scaling])
                probs = calibrated(scale, logits)
                plain = PointBelief(probs) if probs.ndim == 2 else EnsembleBelief(probs)
                after = alphas[method].predict(features, probs=probs)
                for alpha, belief in enumerate((plain, after)):
                    bins = disagreement_bins(said_of(belief, cases), cases)
                    parts.setdefault((method, scaling, bool(alpha)), []).append(bins)
    return {key: pooled_bins(own) for key, own in parts.items()}


def several_reliability(rows: Mapping[Any, Sequence[Mapping[str, Any]]]) -> Curves:
    """Return the same of the rows of `several_judging`, gathered over the networks of a study."""
    return {
        (key.method, key.scaling, key.alpha): pooled_bins([row["bins"] for row in own])
        for key, own in rows.items()
        if key.scaling in SHOWN and all("bins" in row for row in own)
    }


def mixed_changes(folder: Path, name: str) -> list[Change]:
    """Return what ts does to the test cases of each kept network."""
    found = []
    for outputs in load_outputs(folder, name):
        logits = outputs.arrays["logits_test"]
        scaling, _ = restored_pair("ts", _pairs(folder, outputs)["ts"])
        found.append(_change(calibrated(None, logits), calibrated(scaling, logits)))
    return found


def several_changes(folder: Path, network: Mapping[str, Any]) -> Change:
    """Return what ts does to the test cases of a network of `several_judging`."""
    file = folder / f"plain-{network['study']}-{network['seed']}.npz"
    with np.load(file, allow_pickle=False) as stored:
        logits, part = stored["logits"], stored["part"]
    kind, _ = SCALINGS["ts"]
    after = np.empty(logits.shape)
    for i, own in enumerate(network["scalings"]):
        after[part == i] = calibrated(kind.from_dict(own["ts"]), logits[part == i])
    return _change(calibrated(None, logits), after)


def _change(before: FloatArray, after: FloatArray) -> Change:
    pair = (before, after)
    first, second = (np.asarray(probs.max(axis=1)) for probs in pair)
    low, high = (np.asarray(1 - (probs**2).sum(axis=1)) for probs in pair)
    return Change((first, second), (low, high))


def _pairs(folder: Path, outputs: Outputs) -> dict[str, Any]:
    """Return the calibrators of a network as they are kept."""
    file = folder / f"{outputs.data}-{outputs.seed}-calibrators.json"
    fitted: dict[str, Any] = read_json(file)["fitted"][str(LABELS)]
    return fitted
