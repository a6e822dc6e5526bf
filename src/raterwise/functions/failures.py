"""How well confidence finds the wrong predictions: what papers on failure detection report."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from raterwise.functions.ranking import measure_ranks
from raterwise.labels import Labels
from raterwise.types import OneScore, OnUnrated, Per


def excess_aurc(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    question: OneScore = "top_label",
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the AURC minus that of a confidence that ranks every right case first.

    It takes the accuracy for granted, so it cannot tell which model has fewer errors.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases, instead of the largest probability.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, of which the largest
        is used. Every prediction for them counts as wrong, with weight 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    question : {"top_label", "positive"}, default "top_label"
        Whether the predicted class is right, or whether it is class 1 of two.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 if no wrong prediction is more confident than a right one; lower is better.

    See Also
    --------
    aurc, augrc : they also count how many errors there are.

    References
    ----------
    Geifman, Uziel & El-Yaniv, Bias-reduced uncertainty estimation for deep neural classifiers,
    ICLR 2019.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> round(excess_aurc(probs, [0, 1, 1, 0]), 4)  # (1/3 + 1/4 - 1/4) / 4
    0.0833
    """
    return measure_ranks(
        "excess_aurc", probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per,
    )  # fmt: skip


def failure_average_precision(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    of: Literal["errors", "successes"] = "errors",
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    question: OneScore = "top_label",
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the average precision of finding wrong predictions by low confidence.

    scikit-learn's average precision. Chance alone gives the error rate, so it cannot tell which of
    two models to prefer if their accuracies differ.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    of : {"errors", "successes"}, default "errors"
        Wrong predictions among the least confident, or right ones among the most confident.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases, instead of the largest probability.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, of which the largest
        is used. Every prediction for them counts as wrong, with weight 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    question : {"top_label", "positive"}, default "top_label"
        Whether the predicted class is right, or whether it is class 1 of two.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 … 1; higher is better.

    Raises
    ------
    UndefinedMetricError
        If no prediction is wrong (of successes: right).

    See Also
    --------
    auccc : does not depend on the error rate.

    References
    ----------
    Hendrycks & Gimpel, A baseline for detecting misclassified and out-of-distribution examples,
    ICLR 2017.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> failure_average_precision(probs, [0, 1, 1, 0])  # the third of four is found second
    0.5
    """
    return measure_ranks(
        "failure_average_precision", probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per, of=of,
    )  # fmt: skip


def fpr_at_95_tpr(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    question: OneScore = "top_label",
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the share of wrong predictions accepted when 95% of the right ones are.

    Of scikit-learn's `roc_curve`, the first false positive rate whose true positive rate is 0.95 or
    more. It says nothing about other thresholds, and depends on few cases.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases, instead of the largest probability.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, of which the largest
        is used. Every prediction for them counts as wrong, with weight 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    question : {"top_label", "positive"}, default "top_label"
        Whether the predicted class is right, or whether it is class 1 of two.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 … 1; lower is better.

    Raises
    ------
    UndefinedMetricError
        If every prediction is right, or every one is wrong.

    See Also
    --------
    auccc : over all thresholds.
    ccc_curve : the rates at each threshold.

    References
    ----------
    Liang, Li & Srikant, Enhancing the reliability of out-of-distribution image detection in neural
    networks, ICLR 2018.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> fpr_at_95_tpr(probs, [0, 1, 1, 0])  # the last right case is less sure than the wrong one
    1.0
    """
    return measure_ranks(
        "fpr_at_95_tpr", probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per,
    )  # fmt: skip
