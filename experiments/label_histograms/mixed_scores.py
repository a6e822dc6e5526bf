"""How one belief about the test cases of Mix-MNIST or Mix-CIFAR-10 is judged.

By the raters' labels, as LH does, and by the class probabilities that the labels were drawn from,
which nobody knows outside such data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.label_histograms.mixed_data import TestLabels
from raterwise.beliefs import Belief, EnsembleBelief
from raterwise.functions.disagreement import disagreement_calibration_error
from raterwise.functions.histograms import (
    calibration_error,
    calibration_loss,
    expected_squared_loss,
)
from raterwise.labels import Labels

__all__ = [
    "case_losses",
    "redrawn",
    "scored",
    "true_calibration_error",
    "true_calibration_loss",
    "unbiased",
]

FloatArray = NDArray[np.float64]

BINS = 15


def scored(
    belief: Belief, labels: TestLabels, losses: dict[str, FloatArray] | None = None
) -> dict[str, float]:
    """Return the metrics of LH Tables 1, 2, 4 and 5, and the true ones beside them.

    `losses` are those of `case_losses`, where they are there already.
    """
    mean, counts = belief.mean, Labels.from_counts(labels.counts)
    predicted = belief.disagreement()
    true_disagreement = 1 - (labels.truth**2).sum(axis=1)
    values = {
        # The predicted class is the one that most of the ten labels name, or the most probable one.
        "accuracy": float((mean.argmax(axis=1) == labels.counts.argmax(axis=1)).mean()),
        "true_accuracy": float((mean.argmax(axis=1) == labels.truth.argmax(axis=1)).mean()),
        "squared_loss": expected_squared_loss(mean, counts),
        "calibration_error": calibration_error(mean, counts, bins=BINS),
        "true_calibration_error": true_calibration_error(mean, labels.truth, BINS),
        "disagreement": float(predicted.mean()),
        "disagreement_calibration_error": disagreement_calibration_error(
            predicted, counts, bins=BINS
        ),
        "true_disagreement_calibration_error": true_calibration_error(
            predicted[:, None], true_disagreement[:, None], BINS
        ),
    }
    by_case = case_losses(belief, labels) if losses is None else losses
    return values | {name: float(loss.mean()) for name, loss in by_case.items()}


def case_losses(belief: Belief, labels: TestLabels) -> dict[str, FloatArray]:
    """Return what is a mean over the cases, case by case.

    `epistemic_loss` is judged by all ten labels; `prior` and `posterior` by the nine that the
    expert did not give; `..._true` by the true probabilities. `posterior_sum` is that of an
    ensemble with the released weights.
    """
    mean = belief.mean
    expert = Labels.from_classes(labels.expert, num_classes=labels.counts.shape[1])
    nine = labels.counts - expert.counts
    after = belief.posterior(expert).mean
    losses = {
        "epistemic_loss": unbiased(mean, labels.counts),
        "epistemic_loss_true": _squared(mean, labels.truth),
        "prior": unbiased(mean, nine),
        "posterior": unbiased(after, nine),
        "posterior_true": _squared(after, labels.truth),
        "disagreement_loss": _disagreement_loss(belief.disagreement(), labels.counts),
    }
    if isinstance(belief, EnsembleBelief):
        after = belief.posterior(expert, weights="sum").mean
        losses["posterior_sum"] = unbiased(after, nine)
        losses["posterior_sum_true"] = _squared(after, labels.truth)
    return losses


def redrawn(
    belief: Belief, labels: TestLabels, draws: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Return how far estimates are from the truth on average, and the standard error of that.

    Every case gets ten new labels from its true probabilities, `draws` times. One set of labels
    errs in the same way for every network; many sets show whether an estimator does.
    """
    random = np.random.default_rng([seed, 3])
    mean = belief.mean
    true_epistemic = float(_squared(mean, labels.truth).mean())
    true_calibration = true_calibration_loss(mean, labels.truth, BINS)
    found = []
    for _ in range(draws):
        counts = random.multinomial(labels.counts.sum(axis=1), labels.truth)
        calibration = calibration_loss(mean, Labels.from_counts(counts), bins=BINS)
        epistemic = float(unbiased(mean, counts).mean())
        found.append((epistemic - true_epistemic, calibration - true_calibration))
    means, errors = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(draws)
    names = ("epistemic_loss", "calibration_loss")
    return {name: (float(m), float(e)) for name, m, e in zip(names, means, errors, strict=True)}


def true_calibration_error(scores: FloatArray, truth: FloatArray, bins: int) -> float:
    """Return the root of `true_calibration_loss`, floored at 0.

    >>> true_calibration_error(np.array([[0.5], [0.5]]), np.array([[0.75], [0.75]]), bins=15)
    0.25
    """
    return float(np.sqrt(max(true_calibration_loss(scores, truth, bins), 0.0)))


def true_calibration_loss(scores: FloatArray, truth: FloatArray, bins: int) -> float:
    """Return the calibration loss with the probabilities ζ in the place of labels.

    Σ_k Σ_b |I|/N [(ζ̄ - z̄)² - s²/|I|] over classes k and bins b of equal width, with
    the variance s² of ζ in the bin over |I| - 1: LH eq 14 with infinitely many raters. What is
    subtracted is what the chance of which cases are in the bin adds. A bin of one case counts 0.
    """
    total = 0.0
    for z, zeta in zip(scores.T, truth.T, strict=True):
        place = np.minimum((z * bins).astype(np.int64), bins - 1)
        sizes = np.bincount(place, minlength=bins)
        gaps, sums, squares = (
            np.bincount(place, values, minlength=bins) for values in (zeta - z, zeta, zeta**2)
        )
        several = sizes > 1
        n, gap, s, q = sizes[several], gaps[several], sums[several], squares[several]
        total += float((gap**2 / n - (q - s**2 / n) / (n - 1)).sum())
    return total / len(scores)


def _squared(z: FloatArray, truth: FloatArray) -> FloatArray:
    return np.asarray(((z - truth) ** 2).sum(axis=1))


def unbiased(z: FloatArray, counts: NDArray[np.int64]) -> FloatArray:
    """Return Σ_k (μ_k - z_k)² - μ_k (1 - μ_k)/(n - 1) of each case (LH eq 10)."""
    n = counts.sum(axis=1, keepdims=True)
    mu = counts / n
    return np.asarray(((mu - z) ** 2 - mu * (1 - mu) / (n - 1)).sum(axis=1))


def _disagreement_loss(predicted: FloatArray, counts: NDArray[np.int64]) -> FloatArray:
    """Return (d - φ)² + d (1 - d) of each case, d the share of pairs that differ (LH eq 40)."""
    n = counts.sum(axis=1)
    differ = 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    return np.asarray((differ - predicted) ** 2 + differ * (1 - differ))
