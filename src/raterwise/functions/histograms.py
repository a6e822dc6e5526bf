"""The squared loss and its parts from label histograms (LH sections 2-3)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.functions.weights import weights_or_optimal
from raterwise.labels import Labels
from raterwise.predictions.checks import require_several
from raterwise.types import Debiasing, OnSingle, OnUnrated, Singletons, Unbiasing


def expected_squared_loss(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    weights: ArrayLike | Literal["optimal"] | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the unbiased expected squared loss against a randomly drawn rater.

    L̂_sq = Σ_i w_i/W Σ_k [(μ_ik - z_ik)² + μ_ik (1 - μ_ik)] (LH eq 8), never halved.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    weights : array-like of shape (N,) or "optimal", default None
        Weight of each case; 1 by default. "optimal" takes the weights of `optimal_weights`, for
        unequal numbers of raters.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        EL + IL, epistemic and irreducible loss; lower is better.

    See Also
    --------
    epistemic_loss, irreducible_loss : its parts.
    optimal_weights : which weights make it vary least.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eq 8.

    Examples
    --------
    >>> round(expected_squared_loss([[0.5, 0.5]], Labels.from_counts([[1, 1]])), 4)
    0.5
    """
    weights = weights_or_optimal(weights, probs, labels, on_unrated)
    return measure("expected_squared_loss", probs, labels, weights, on_unrated)


def epistemic_loss(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    estimator: Unbiasing = "unbiased",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
) -> float:
    """Return the mean squared distance between the probabilities and the true label frequencies.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, with at least two per case.
    estimator : {"unbiased", "plugin"}, default "unbiased"
        "plugin" is 1/N Σ (μ - z)² (LH eq 9); "unbiased" subtracts 1/N Σ μ(1-μ)/(n-1) (LH eq 10).
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.

    Returns
    -------
    float
        Lower is better; the unbiased estimate may be negative.

    See Also
    --------
    calibration_loss, dispersion_loss : its parts.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 9-10.

    Examples
    --------
    >>> labels = Labels.from_counts([[1, 1], [2, 0]])
    >>> epistemic_loss([[0.5, 0.5], [0.8, 0.2]], labels)
    -0.21
    """
    return measure(
        "epistemic_loss", probs, labels, weights, on_unrated, on_single, estimator=estimator
    )


def irreducible_loss(
    labels: Labels, *, weights: ArrayLike | None = None, on_single: OnSingle = "error"
) -> float:
    """Return the part of the squared loss due to the raters' own disagreement.

    IL = L_sq - EL = mean of Σ_k μ(1-μ) n/(n-1) (LH eq 6).

    Parameters
    ----------
    labels : Labels
        The raters' labels, with at least two per case.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.

    Returns
    -------
    float
        No model can have a lower expected squared loss.

    See Also
    --------
    fleiss_kappa, krippendorff_alpha : agreement beyond chance.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eq 6.

    Examples
    --------
    >>> irreducible_loss(Labels.from_counts([[1, 1], [2, 0]]))
    0.5
    """
    require_several(labels)
    uniform = np.full((len(labels), labels.num_classes), 1 / labels.num_classes)
    return measure("irreducible_loss", uniform, labels, weights, on_single=on_single)


def calibration_loss(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the squared gap between predicted and observed frequencies, summed over classes.

    "plugin" is Σ_k Σ_b |I_kb|/N (c̄ - z̄)² (LH eq 13), "debiased" subtracts |I|/N σ̄²/(|I|-1) in each
    bin (LH eq 14).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts the contribution of chance from each bin and may be negative; it needs
        equal case weights.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to the debiased loss: nothing (LH appendix B.3), or its
        plug-in value.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; the debiased estimate may be negative.

    See Also
    --------
    calibration_error : its root.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 13-14.

    Examples
    --------
    >>> round(calibration_loss([[0.9, 0.1], [0.9, 0.1]], [0, 1], estimator="plugin"), 4)
    0.32
    """
    return measure(
        "calibration_loss", probs, labels, weights, on_unrated,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip


def calibration_error(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the root of `calibration_loss`, or 0 if that is negative (LH eqs 1, 11-14).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts the contribution of chance from each bin and may be negative; it needs
        equal case weights.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to the debiased loss: nothing (LH appendix B.3), or its
        plug-in value.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        In units of probability; 0 is perfect calibration.

    See Also
    --------
    calibration_loss : its square, with its sign.
    ece : the mean of the gaps of the predicted class.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 1, 11-14.

    Examples
    --------
    >>> round(calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1], estimator="plugin"), 4)
    0.5657
    """
    return measure(
        "calibration_error", probs, labels, weights, on_unrated,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip


def dispersion_loss(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
) -> float:
    """Return EL - CL: how much the truth varies among cases in the same bin (LH eqs 33-36).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, with at least two per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts the contribution of chance from each bin and may be negative; it needs
        equal case weights.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to the debiased loss: nothing (LH appendix B.3), or its
        plug-in value.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.

    Returns
    -------
    float
        What a better model could gain, but recalibration cannot.

    See Also
    --------
    epistemic_loss, calibration_loss : it is their difference.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 33-36.

    Examples
    --------
    >>> labels = Labels.from_counts([[2, 0], [1, 1]])
    >>> dispersion_loss([[0.9, 0.1], [0.9, 0.1]], labels, estimator="plugin")
    0.125
    """
    return measure(
        "dispersion_loss", probs, labels, weights, on_unrated, on_single,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip
