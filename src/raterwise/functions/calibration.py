"""Binned calibration errors, for one rater or several (RECE, MR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from raterwise.arrays import as_float_array, positive_integer
from raterwise.binning import bin_edges, edges_for
from raterwise.errors import InvalidInputError
from raterwise.functions.measure import measure
from raterwise.metrics.calibration import mixture_responsibilities
from raterwise.metrics.calibration import robust_ece as robust_ece_formula
from raterwise.metrics.mixtures import fit_mixtures
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.summaries import BinTable

__all__ = [
    "adaptive_ece",
    "classwise_ece",
    "ece",
    "ece_sweep",
    "ks_error",
    "mce",
    "multi_rater",
    "rms_ce",
    "robust_ece",
    "robust_ece_mixture",
    "sce",
]


def ece(
    probs: Any,
    labels: Any,
    bins: int = 15,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the expected calibration error: Σ_m b_m/N |A_m - C_m| (RECE eq 2, MR eq 5).

    With several raters every label counts (MR-ECE); `per="case"` lets every case count once.
    `question` is "top_label" for any number of classes; "positive" for the probability of class 1
    of two; "per_class" averages over all classes; "predicted_class" keeps the cases predicted as
    each class apart (K times `sce`).

    >>> round(ece([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]), 4)
    0.3667
    >>> round(ece([0.1, 0.1, 0.7], [0, 1, 1], question="positive"), 4)
    0.3667
    """
    return measure("ece", probs, labels, weights, on_unrated, bins=bins, question=question, per=per)


def mce(
    probs: Any,
    labels: Any,
    bins: int = 15,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the largest gap of any bin: max_m |A_m - C_m| (Naeini et al. 2015).

    >>> round(mce([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]), 4)
    0.4
    """
    return measure("mce", probs, labels, weights, on_unrated, bins=bins, question=question, per=per)


def rms_ce(
    probs: Any,
    labels: Any,
    bins: int = 15,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the root mean squared gap: sqrt(Σ_m b_m/N (A_m - C_m)²) (Kumar et al. 2019).

    >>> round(rms_ce([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]), 4)
    0.3697
    """
    return measure(
        "rms_ce", probs, labels, weights, on_unrated, bins=bins, question=question, per=per
    )


def adaptive_ece(
    probs: Any,
    labels: Any,
    bins: int = 15,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return ECE over bins of equal mass (Nguyen & O'Connor 2015).

    The bins hold every case, equal scores share a bin, and there are never more bins than distinct
    scores.

    >>> round(adaptive_ece([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1], bins=2), 4)
    0.2
    """
    positive_integer("bins", bins)
    return measure(
        "adaptive_ece", probs, labels, weights, on_unrated, bins=bins, question=question, per=per
    )


def ece_sweep(
    probs: Any,
    labels: Any,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return ECE over as many equal-mass bins as keep the observed frequencies increasing.

    Roelofs et al. 2022, Mitigating bias in calibration error estimation.

    >>> round(ece_sweep([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 0, 1]), 4)
    0.2
    """
    return measure("ece_sweep", probs, labels, weights, on_unrated, question=question, per=per)


def classwise_ece(
    probs: Any,
    labels: Any,
    bins: int = 15,
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the mean over classes of the ECE of each class's probability (Kull et al. 2019).

    Every case counts for every class; what RECE's released code calls SCE.

    >>> round(classwise_ece([[0.9, 0.1], [0.2, 0.8]], [0, 1]), 4)
    0.15
    """
    return measure("classwise_ece", probs, labels, weights, on_unrated, bins=bins, per=per)


def sce(
    probs: Any,
    labels: Any,
    bins: int = 15,
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the static calibration error, over the cases predicted as each class.

    SCE = 1/K Σ_m Σ_k B_mk/N |A_mk - C_mk| (RECE eqs 4-5 as printed).

    >>> round(sce([[0.9, 0.1], [0.2, 0.8]], [0, 1]), 4)
    0.075
    """
    return measure("sce", probs, labels, weights, on_unrated, bins=bins, per=per)


def ks_error(
    probs: Any,
    labels: Any,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return the largest cumulative gap, max_t |Σ_{z <= t} w(μ - z)| / W (Gupta et al. 2021).

    >>> round(ks_error([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1]), 4)
    0.1667
    """
    return measure("ks_error", probs, labels, weights, on_unrated, question=question, per=per)


def robust_ece(
    probs: Any,
    labels: Any,
    bins: int = 15,
    sigma: float = 0.1,
    observed_bins_only: bool = False,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return RECE-G: ECE with each confidence spread over the bins by a Gaussian (RECE eq 6).

    `sigma` is the standard deviation. The sum runs over all bins; `observed_bins_only=True` is the
    released code, which leaves out bins that hold no observed confidence.

    >>> round(robust_ece([[0.9, 0.1], [0.9, 0.1]], [0, 1], sigma=1e-6), 4)
    0.4
    """
    positive_integer("bins", bins)
    if not (np.isfinite(sigma) and sigma > 0):
        raise InvalidInputError(f"sigma: must be positive and finite; got {sigma}")
    return measure(
        "robust_ece", probs, labels, weights, on_unrated, bins=bins, sigma=sigma,
        observed_bins_only=observed_bins_only, question=question, per=per,
    )  # fmt: skip


def robust_ece_mixture(
    probs: Any,
    labels: Any,
    samples: Any,
    bins: int = 15,
    components: int = 3,
    seed: int = 0,
    weights: Any = None,
    *,
    mixtures: tuple[Any, Any, Any] | None = None,
    observed_bins_only: bool = False,
    per: str = "annotation",
) -> float:
    """Return RECE-M: like RECE-G, each case spread by its own Gaussian mixture (RECE eq 7).

    Parameters
    ----------
    samples
        (S, N, K): class probabilities under test-time augmentation; the mixture of a case is
        fitted to the S probabilities of its predicted class.
    components, seed
        Of the mixtures.
    mixtures
        Instead of samples, fitted mixtures: (weights, means, standard deviations), each
        (N, components).

    >>> import numpy as np
    >>> samples = np.tile([[[0.9, 0.1], [0.2, 0.8]]], (4, 1, 1))
    >>> value = robust_ece_mixture([[0.9, 0.1], [0.2, 0.8]], [0, 1], samples, components=1)
    >>> round(value, 4)
    0.15
    """
    positive_integer("bins", bins)
    predictions = Predictions.of(probs, labels, weights=weights)
    rows = predictions.read(0, len(predictions))
    scored = Question("top_label", per).score(rows)
    if mixtures is None:
        mixtures = _fit_mixtures(samples, rows.predicted, predictions, components, seed)
    shares, means, sds = (_mixture(values, len(predictions)) for values in mixtures)
    share = mixture_responsibilities(shares, means, sds, bins)
    compared = edges_for(bin_edges(bins), scored.rounding)
    table = _spread(scored.z[:, 0], scored.mu[:, 0], scored.weights, share, compared)
    return float(robust_ece_formula(table, observed_bins_only=observed_bins_only))


def _mixture(values: Any, cases: int) -> Any:
    array = as_float_array(values, "mixtures", ndim=2).astype(np.float64)
    if len(array) != cases:
        raise InvalidInputError(
            f"mixtures: must have a row per case; got {len(array)} for {cases} cases"
        )
    return array


def _spread(z: Any, mu: Any, weights: Any, share: Any, edges: Any) -> BinTable:
    from raterwise.kernels import _numba as kernels

    sums = np.zeros((1, len(edges) - 1, kernels.FIELDS))
    none = np.empty(0, np.int64)
    kernels.add_soft_bin_sums(z, mu, weights, share, none, edges, sums)
    return BinTable(sums)


def _fit_mixtures(
    samples: Any, predicted: Any, predictions: Predictions, components: int, seed: int
) -> tuple[Any, Any, Any]:
    """Fit a Gaussian mixture to each case's sampled probabilities of the predicted class."""
    array = as_float_array(samples, "samples", ndim=(2, 3)).astype(np.float64)
    if array.ndim == 2:
        array = np.stack((1 - array, array), axis=2)
    cases, classes = len(predictions), predictions.num_classes
    if array.shape[1:] != (cases, classes):
        raise InvalidInputError(
            f"samples: must be (S, {cases}, {classes}), as probs; got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InvalidInputError("samples: must be finite; some are NaN or infinite")
    number = positive_integer("components", components)
    confidence = array[:, np.arange(cases), predicted]
    if len(confidence) < max(number, 2):
        raise InvalidInputError(
            f"samples: needs at least {max(number, 2)} samples for {number} components; "
            f"got {len(confidence)}"
        )
    return fit_mixtures(confidence, number, seed)


def multi_rater(calibration_error: Callable[..., float]) -> Callable[..., float]:
    """Return the multi-rater version of anybody's calibration error (MR section 2.2).

    `calibration_error(probs, y)` is given every case once per rater, each time with another
    rater's label: the extended test set of MR eq 4. The functions of raterwise need no wrapper:
    they take several raters by themselves, without repeating rows.

    >>> from raterwise.labels import Labels
    >>> labels = Labels.from_counts([[2, 1], [0, 1]])
    >>> multi_rater(lambda probs, y: float((probs.argmax(1) == y).mean()))(
    ...     [[0.9, 0.1], [0.2, 0.8]], labels
    ... )
    0.75
    """

    def wrapped(probs: Any, labels: Any, *args: Any, **kwargs: Any) -> float:
        predictions = Predictions.of(probs, labels)
        counts = predictions.labels.counts
        rows = np.repeat(np.arange(len(predictions)), predictions.labels.num_raters)
        cases, classes = np.nonzero(counts)
        y: Any = np.repeat(classes, counts[cases, classes])
        repeated: Any = predictions.probs[rows]
        if hasattr(probs, "detach"):
            import torch

            repeated, y = torch.as_tensor(repeated), torch.as_tensor(y)
        return float(calibration_error(repeated, y, *args, **kwargs))

    return wrapped
