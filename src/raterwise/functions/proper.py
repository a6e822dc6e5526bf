"""Accuracy and proper scores, with one rater or several."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.functions.weights import weights_or_optimal
from raterwise.labels import Labels
from raterwise.types import OnUnrated, Per


def accuracy(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    per: Per = "case",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return how often the predicted class agrees with a rater.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        With several raters, a case counts with the fraction of its raters who agree.

    See Also
    --------
    auccc : whether confidence tells right from wrong.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, section 7: the accuracy against a rater drawn at
    random.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.2, 0.8]], Labels.from_counts([[2, 1], [0, 3]]))
    0.8333333333333333
    """
    return measure("accuracy", probs, labels, weights, on_unrated, per=per)


def brier(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    scale_by_half: bool | Literal["auto"] = "auto",
    per: Per = "case",
    *,
    weights: ArrayLike | Literal["optimal"] | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the Brier score, the mean squared distance from a rater's label.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    scale_by_half : bool or "auto", default "auto"
        Whether to halve; "auto" halves for two classes, as scikit-learn does.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,) or "optimal", default None
        Weight of each case; 1 by default. "optimal" takes the weights of `optimal_weights`, for
        unequal numbers of raters.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 … 1 for two classes, 0 … 2 for more; lower is better.

    See Also
    --------
    expected_squared_loss : the same, never halved.
    calibration_loss, dispersion_loss, irreducible_loss : its parts.

    References
    ----------
    Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 1950.

    Examples
    --------
    >>> brier([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    0.025
    """
    weights = weights_or_optimal(weights, probs, labels, on_unrated)
    return measure(
        "brier", probs, labels, weights, on_unrated, scale_by_half=scale_by_half, per=per
    )


def nll(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    per: Per = "case",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the mean of -log of the probability given to a rater's label.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Lower is better. `per="annotation"` is the training loss of LH eq 82.

    Raises
    ------
    UndefinedMetricError
        If a class that a rater chose has probability 0: the loss is infinite.

    See Also
    --------
    brier : does not become infinite.

    References
    ----------
    Good, Rational decisions, Journal of the Royal Statistical Society B 14, 1952, 107-114.

    Examples
    --------
    >>> round(nll([[0.5, 0.5], [0.25, 0.75]], [0, 0]), 4)
    1.0397
    """
    return measure("nll", probs, labels, weights, on_unrated, per=per)


def ranked_probability_score(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    per: Per = "case",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the ranked probability score of ordered classes: Σ_k (F_k - 1[rater <= k])².

    F_k is the predicted probability of class k or lower, so being off by one class costs less than
    being off by three.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        The mean over cases and their raters; lower is better.

    See Also
    --------
    brier : for classes without an order.

    References
    ----------
    Epstein, A scoring system for probability forecasts of ranked categories, Journal of Applied
    Meteorology 1969.

    Examples
    --------
    >>> ranked_probability_score([[0.5, 0.25, 0.25]], [0])
    0.3125
    """
    return measure("ranked_probability_score", probs, labels, weights, on_unrated, per=per)


def majority_accuracy(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return how often the predicted class is the one that most raters chose.

    The "Acc" of the papers. It cannot tell how many raters were against the predicted class.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Ties between classes go to the lowest, as in `Labels.majority`.

    See Also
    --------
    accuracy : how often a rater agrees.

    References
    ----------
    Mimori, Sasada, Matsui & Sato, Diagnostic uncertainty calibration, AISTATS 2021, section 7.

    Examples
    --------
    >>> majority_accuracy([[0.9, 0.1], [0.8, 0.2]], Labels.from_counts([[2, 1], [0, 3]]))
    0.5
    """
    return measure("majority_accuracy", probs, labels, weights, on_unrated)


def ranked_log_score(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    per: Per = "case",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the ranked log score of ordered classes.

    -Σ_k log of the probability given to what is true of "class k or lower", k = 0 … K - 2. Every
    step of the scale counts the same; it does not know how far apart the classes are.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        The mean over cases and their raters, natural logarithms; lower is better.

    Raises
    ------
    UndefinedMetricError
        If the model gives probability 0 to "at most class k", or to its opposite, and a rater's
        label says that it is true.

    See Also
    --------
    ranked_probability_score : does not become infinite.
    nll : for classes without an order.

    References
    ----------
    Tödter & Ahrens, Generalization of the ignorance score, Monthly Weather Review 2012.

    Examples
    --------
    >>> round(ranked_log_score([[0.5, 0.25, 0.25]], [1]), 4)  # -log 0.5 - log 0.75
    0.9808
    """
    return measure("ranked_log_score", probs, labels, weights, on_unrated, per=per)


def top_label_brier(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    per: Per = "case",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the mean squared distance between the confidence and whether a rater agrees.

    It says nothing about the classes that were not predicted.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 … 1; lower is better.

    See Also
    --------
    brier : for all classes.

    References
    ----------
    Gupta & Ramdas, Top-label calibration and multiclass-to-binary reductions, ICLR 2022.

    Examples
    --------
    >>> round(top_label_brier([[0.9, 0.1], [0.3, 0.7]], [0, 0]), 4)  # (0.01 + 0.49) / 2
    0.25
    """
    return measure("top_label_brier", probs, labels, weights, on_unrated, per=per)
