"""What is left of the squared loss when every bin is calibrated (LH eqs 5-6, appendix B.4)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import Debiasing, OnSingle, OnUnrated, Singletons


def refinement_loss(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the squared loss that would remain if every bin were calibrated.

    RL = L_sq - CL (LH eq 5). It cannot tell whether the model or the raters are to blame: it is
    dispersion loss plus irreducible loss.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" does not count what chance adds to a bin as a gap; it needs equal case
        weights.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case adds to the calibration loss.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Lower is better.

    See Also
    --------
    expected_squared_loss, calibration_loss : it is their difference.
    dispersion_loss, irreducible_loss : its parts.

    References
    ----------
    DeGroot & Fienberg, The comparison and evaluation of forecasters, The Statistician 1983.

    Examples
    --------
    >>> probs, labels = [[0.8, 0.2], [0.8, 0.2]], Labels.from_counts([[2, 0], [1, 1]])
    >>> round(refinement_loss(probs, labels, estimator="plugin"), 4)  # 2 · 0.75 · 0.25
    0.375
    """
    return measure(
        "refinement_loss", probs, labels, weights, on_unrated,
        bins=bins, estimator=estimator, singletons=singletons,
    )  # fmt: skip


def grouping_loss(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
) -> float:
    """Return how much the raters' true frequencies vary among the cases of a bin.

    GL = Σ_k E[Var(Q_k | bin)], the grouping loss of predictions that are binned (LH eq 6 and
    appendix B.4). It also counts what the model does distinguish within a bin, so wide bins make
    it large; the dispersion loss, which LH uses instead, does not.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, with at least two per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts what is within cases, and may be negative; it needs equal case
        weights.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.

    Returns
    -------
    float
        Lower is better. A bin with one case adds 0.

    See Also
    --------
    dispersion_loss : does not count what the probabilities distinguish within a bin.

    References
    ----------
    Kull & Flach, Novel decompositions of proper scoring rules for classification, ECML 2015.

    Examples
    --------
    >>> probs, labels = [[0.8, 0.2], [0.8, 0.2]], Labels.from_counts([[4, 0], [1, 3]])
    >>> round(grouping_loss(probs, labels), 4)  # 2 (0.28125 - 0.0625 / 2)
    0.5
    """
    return measure(
        "grouping_loss", probs, labels, weights, on_unrated, on_single,
        bins=bins, estimator=estimator,
    )  # fmt: skip
