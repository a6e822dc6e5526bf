"""What a positive or a negative test is worth: predictive values, F1 and net benefit."""

from __future__ import annotations

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import OnUnrated, Per


def ppv(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    threshold: float = 0.5,
    *,
    positive: int | None = None,
    ordered: bool = False,
    prevalence: float | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the positive predictive value, or precision: TP / (TP + FP).

    Of the labels of cases that test positive, those of the positive class.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    threshold : float, default 0.5
        A probability of at least this counts as a positive test.
    positive : int, default None
        The positive class. By default class 1 of two; with more classes, each class against the
        rest, averaged over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered. A positive is then class k or higher, where k is the class
        given or each class but the lowest in turn.
    prevalence : float, default None
        Prevalence of the positive class where the model will be used, if it differs from these
        data. Sensitivity and specificity are taken from these data.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Between 0 and 1; higher is better.

    Raises
    ------
    UndefinedMetricError
        If no case tests positive.

    See Also
    --------
    npv : the same for negative tests.

    References
    ----------
    Vecchio, Predictive value of a single diagnostic test in unselected populations, New England
    Journal of Medicine 274 (1966), 1171-1173.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> ppv(probs, labels)  # 3 of 4
    0.75
    """
    return measure(
        "ppv", probs, labels, weights, on_unrated,
        threshold=threshold, prevalence=prevalence, positive=positive, ordered=ordered, per=per,
    )  # fmt: skip


def npv(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    threshold: float = 0.5,
    *,
    positive: int | None = None,
    ordered: bool = False,
    prevalence: float | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the negative predictive value: TN / (TN + FN).

    Of the labels of cases that test negative, those of other classes.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    threshold : float, default 0.5
        A probability of at least this counts as a positive test.
    positive : int, default None
        The positive class. By default class 1 of two; with more classes, each class against the
        rest, averaged over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered. A positive is then class k or higher, where k is the class
        given or each class but the lowest in turn.
    prevalence : float, default None
        Prevalence of the positive class where the model will be used, if it differs from these
        data. Sensitivity and specificity are taken from these data.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Between 0 and 1; higher is better.

    Raises
    ------
    UndefinedMetricError
        If no case tests negative.

    See Also
    --------
    ppv : the same for positive tests.

    References
    ----------
    Vecchio, Predictive value of a single diagnostic test in unselected populations, New England
    Journal of Medicine 274 (1966), 1171-1173.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> npv(probs, labels)  # 2 of 4
    0.5
    """
    return measure(
        "npv", probs, labels, weights, on_unrated,
        threshold=threshold, prevalence=prevalence, positive=positive, ordered=ordered, per=per,
    )  # fmt: skip


def f1(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    threshold: float = 0.5,
    *,
    positive: int | None = None,
    ordered: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the F1 score: 2 TP / (2 TP + FP + FN).

    The harmonic mean of sensitivity and positive predictive value. It ignores true negatives, and
    changes with the prevalence.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    threshold : float, default 0.5
        A probability of at least this counts as a positive test.
    positive : int, default None
        The positive class. By default class 1 of two; with more classes, each class against the
        rest, averaged over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered. A positive is then class k or higher, where k is the class
        given or each class but the lowest in turn.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Between 0 and 1; higher is better.

    Raises
    ------
    UndefinedMetricError
        If no case tests positive and no rater chose the positive class.

    See Also
    --------
    sensitivity, ppv : it is their harmonic mean.

    References
    ----------
    van Rijsbergen, Information Retrieval, Butterworths 1979.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> round(f1(probs, labels), 4)  # 6 / (6 + 1 + 2)
    0.6667
    """
    return measure(
        "f1", probs, labels, weights, on_unrated,
        threshold=threshold, positive=positive, ordered=ordered, per=per,
    )  # fmt: skip


def net_benefit(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    threshold: float = 0.5,
    *,
    positive: int | None = None,
    ordered: bool = False,
    prevalence: float | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the net benefit of acting where p >= threshold: TP / n - FP / n · t / (1 - t).

    Acting from a probability of t means that a false alarm costs t / (1 - t) of a true positive.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    threshold : float, default 0.5
        A probability of at least this counts as a positive test.
    positive : int, default None
        The positive class. By default class 1 of two; with more classes, each class against the
        rest, averaged over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered. A positive is then class k or higher, where k is the class
        given or each class but the lowest in turn.
    prevalence : float, default None
        Prevalence of the positive class where the model will be used, if it differs from these
        data. Sensitivity and specificity are taken from these data.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        At most the prevalence; acting on no case gives 0.

    Raises
    ------
    UndefinedMetricError
        If no case counts.

    See Also
    --------
    decision_curve : at every threshold, with treating all, treating none, and the raters.

    References
    ----------
    Vickers & Elkin, Decision curve analysis, Medical Decision Making 26 (2006), 565-574.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> net_benefit(probs, labels)  # (3 - 1) / 8
    0.25
    >>> round(net_benefit(probs, labels, threshold=0.2), 4)  # (5 - 3 / 4) / 8
    0.5312
    """
    return measure(
        "net_benefit", probs, labels, weights, on_unrated,
        threshold=threshold, prevalence=prevalence, positive=positive, ordered=ordered, per=per,
    )  # fmt: skip
