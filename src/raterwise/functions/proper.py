"""Accuracy, proper scores and their decomposition from label histograms (LH sections 2-3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from raterwise.functions.measure import check_estimator, measure
from raterwise.labels import Labels

__all__ = [
    "accuracy",
    "brier",
    "calibration_error",
    "calibration_loss",
    "dispersion_loss",
    "epistemic_loss",
    "expected_squared_loss",
    "irreducible_loss",
    "nll",
    "ranked_probability_score",
]


def accuracy(
    probs: Any, labels: Any, weights: Any = None, *, per: str = "case", on_unrated: str = "error"
) -> float:
    """Return how often the predicted class is what a rater says.

    With several raters a case counts the fraction of its raters who agree; `per="annotation"`
    weighs a case by its number of raters.

    >>> accuracy([[0.9, 0.1], [0.2, 0.8]], Labels.from_counts([[2, 1], [0, 3]]))
    0.8333333333333333
    """
    return measure("accuracy", probs, labels, weights, on_unrated, per=per)


def brier(
    probs: Any,
    labels: Any,
    weights: Any = None,
    *,
    scale_by_half: bool | str = "auto",
    per: str = "case",
    on_unrated: str = "error",
) -> float:
    """Return the Brier score, the mean squared distance to what a rater says.

    scikit-learn's convention: 0 … 1 for two classes (halved), 0 … 2 for more;
    `scale_by_half=True` or `False` decides.

    >>> brier([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    0.025
    """
    return measure(
        "brier", probs, labels, weights, on_unrated, scale_by_half=scale_by_half, per=per
    )


def nll(
    probs: Any, labels: Any, weights: Any = None, *, per: str = "case", on_unrated: str = "error"
) -> float:
    """Return the mean of -log of the probability given to what a rater says.

    Infinite where a class that a rater chose was given the probability 0. `per="annotation"` is
    the training loss of LH eq 82.

    >>> round(nll([[0.5, 0.5], [0.25, 0.75]], [0, 0]), 4)
    1.0397
    """
    return measure("nll", probs, labels, weights, on_unrated, per=per)


def ranked_probability_score(
    probs: Any, labels: Any, weights: Any = None, *, per: str = "case", on_unrated: str = "error"
) -> float:
    """Return the ranked probability score of ordered classes: Σ_k (F_k - 1[rater <= k])².

    F_k is the predicted probability of class k or lower, so being off by one class costs less than
    being off by three (Epstein 1969; Murphy 1971). With several raters it is the mean over them.

    >>> ranked_probability_score([[0.5, 0.25, 0.25]], [0])
    0.3125
    """
    return measure("ranked_probability_score", probs, labels, weights, on_unrated, per=per)


def expected_squared_loss(
    probs: Any, labels: Any, weights: Any = None, *, on_unrated: str = "error"
) -> float:
    """Return the unbiased expected squared loss against a rater drawn at random.

    L̂_sq = Σ_i w_i/W Σ_k [(μ_ik - z_ik)² + μ_ik (1 - μ_ik)] (LH eq 8), never halved.

    >>> round(expected_squared_loss([[0.5, 0.5]], Labels.from_counts([[1, 1]])), 4)
    0.5
    """
    return measure("expected_squared_loss", probs, labels, weights, on_unrated)


def epistemic_loss(
    probs: Any,
    labels: Any,
    estimator: str = "unbiased",
    weights: Any = None,
    *,
    on_unrated: str = "error",
    on_single: str = "error",
) -> float:
    """Return how far the probabilities are from the true frequencies of the labels.

    "plugin" is 1/N Σ (μ - z)² (LH eq 9), "unbiased" subtracts 1/N Σ μ(1-μ)/(n-1) (LH eq 10), which
    may make it negative. The unbiased one needs two labels per case; `on_single="drop"` leaves out
    the others, whichever the estimator.

    >>> labels = Labels.from_counts([[1, 1], [2, 0]])
    >>> epistemic_loss([[0.5, 0.5], [0.8, 0.2]], labels)
    -0.21
    """
    check_estimator(estimator, ("unbiased", "plugin"))
    return measure(
        "epistemic_loss", probs, labels, weights, on_unrated, on_single, estimator=estimator
    )


def irreducible_loss(labels: Labels, weights: Any = None, *, on_single: str = "error") -> float:
    """Return the part of the squared loss that is the raters' own disagreement.

    IL = L_sq - EL = mean of Σ_k μ(1-μ) n/(n-1) (LH eq 6): no model can do better.

    >>> irreducible_loss(Labels.from_counts([[1, 1], [2, 0]]))
    0.5
    """
    uniform = np.full((len(labels), labels.num_classes), 1 / labels.num_classes)
    return measure("irreducible_loss", uniform, labels, weights, on_single=on_single)


def calibration_loss(
    probs: Any,
    labels: Any,
    bins: int = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the squared gap between predicted and observed frequencies, summed over classes.

    "plugin" is Σ_k Σ_b |I_kb|/N (c̄ - z̄)² (LH eq 13), "debiased" subtracts |I|/N σ̄²/(|I|-1) in each
    bin (LH eq 14) and may be negative. A bin with one case contributes 0 (LH appendix B.3), or its
    plugin value with `singletons="plugin"`. The debiased form needs equal case weights.

    >>> round(calibration_loss([[0.9, 0.1], [0.9, 0.1]], [0, 1], estimator="plugin"), 4)
    0.32
    """
    check_estimator(estimator, ("debiased", "plugin"), singletons)
    return measure(
        "calibration_loss", probs, labels, weights, on_unrated,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip


def calibration_error(
    probs: Any,
    labels: Any,
    bins: int = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the root of `calibration_loss`, floored at 0 (LH eqs 1, 11-14).

    >>> round(calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1], estimator="plugin"), 4)
    0.5657
    """
    check_estimator(estimator, ("debiased", "plugin"), singletons)
    return measure(
        "calibration_error", probs, labels, weights, on_unrated,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip


def dispersion_loss(
    probs: Any,
    labels: Any,
    bins: int = 15,
    estimator: str = "debiased",
    weights: Any = None,
    *,
    singletons: str = "zero",
    on_unrated: str = "error",
    on_single: str = "error",
) -> float:
    """Return EL - CL: how much the truth varies among cases of one bin (LH eqs 33-36).

    >>> labels = Labels.from_counts([[2, 0], [1, 1]])
    >>> dispersion_loss([[0.9, 0.1], [0.9, 0.1]], labels, estimator="plugin")
    0.125
    """
    check_estimator(estimator, ("debiased", "plugin"), singletons)
    return measure(
        "dispersion_loss", probs, labels, weights, on_unrated, on_single,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip
