"""Calibration errors that do not hang on the edges of bins: RECE-G and RECE-M (RECE)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise.arrays import as_float_array, positive, positive_integer
from raterwise.binning import bin_edges, edges_for
from raterwise.choices import OnUnrated, Per, Questions
from raterwise.densities.mixtures import fit_mixtures
from raterwise.errors import InvalidInputError
from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.metrics.calibration import mixture_responsibilities
from raterwise.metrics.calibration import robust_ece as robust_ece_formula
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.summaries import BinTable

__all__ = ["robust_ece", "robust_ece_mixture"]


def robust_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int = 15,
    sigma: float = 0.1,
    observed_bins_only: bool = False,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return RECE-G: ECE with each confidence spread over the bins by a Gaussian (RECE eq 6).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    bins : int, default 15
        How many bins of equal width.
    sigma : float, default 0.1
        The standard deviation of the Gaussian.
    observed_bins_only : bool, default False
        Leave out the bins that hold no observed confidence, as the released code does.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default "top_label"
        What is asked of a case: is the predicted class right; of two classes, is it class 1; is it
        class k, the mean over all classes; is the predicted class right, the cases predicted as
        each class apart.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    See Also
    --------
    robust_ece_mixture : spreads each case by what test-time augmentation says of it.
    ece : what it tends to as sigma tends to 0.

    References
    ----------
    Gupta, Basu, Arora, How reliable are the metrics used for assessing reliability in medical
    imaging?, MICCAI 2023, eq 6.

    Examples
    --------
    >>> round(robust_ece([[0.9, 0.1], [0.9, 0.1]], [0, 1], sigma=1e-6), 4)
    0.4
    """
    positive_integer("bins", bins)
    positive("sigma", sigma)
    return measure(
        "robust_ece", probs, labels, weights, on_unrated, bins=bins, sigma=sigma,
        observed_bins_only=observed_bins_only, question=question, per=per,
    )  # fmt: skip


def robust_ece_mixture(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    samples: ArrayLike | None,
    bins: int = 15,
    components: int = 3,
    seed: int = 0,
    *,
    mixtures: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    observed_bins_only: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
) -> float:
    """Return RECE-M: like RECE-G, each case spread by its own Gaussian mixture (RECE eq 7).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    samples : array-like of shape (S, N, K) or (S, N), or None
        Class probabilities under test-time augmentation; the mixture of a case is fitted to the S
        probabilities of its predicted class. None where `mixtures` is given.
    bins : int, default 15
        How many bins of equal width.
    components : int, default 3
        How many Gaussians a mixture has.
    seed : int, default 0
        Of the fit of the mixtures.
    mixtures : tuple of three array-like of shape (N, components), default None
        Instead of samples, fitted mixtures: weights, means, standard deviations.
    observed_bins_only : bool, default False
        Leave out the bins that hold no observed confidence, as the released code does.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    See Also
    --------
    robust_ece : one standard deviation for all cases.

    References
    ----------
    Gupta, Basu, Arora, How reliable are the metrics used for assessing reliability in medical
    imaging?, MICCAI 2023, eq 7.

    Examples
    --------
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
