"""What a clinical reader expects: areas over ranks, and what a threshold does.

A case of which the fraction μ of the raters say the positive class is a positive of mass μ and a
negative of mass 1 - μ, so with one rater per case these are scikit-learn's numbers. A probability
of at least the threshold is a positive test. Of more than two classes a value is the mean over the
classes, each against the rest, unless `positive` names one.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import OnUnrated, Per


def auroc(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    ordered: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the area under the ROC curve: P(a positive is more probable than a negative).

    Over all pairs of a label of the positive class and another label; ties count half.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
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
        0.5 for uninformative probabilities, 1 if every positive ranks above every negative.

    Raises
    ------
    UndefinedMetricError
        If no rater chose the positive class, or all did.

    See Also
    --------
    roc_curve : the curve.
    auccc : the same for whether the predicted class is right.

    References
    ----------
    Hanley & McNeil, The meaning and use of the area under a receiver operating characteristic
    curve, Radiology 143 (1982), 29-36.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> auroc(probs, labels)  # of 15 pairs 12 in order, and a tie
    0.8333333333333334
    """
    return measure(
        "auroc", probs, labels, weights, on_unrated, positive=positive, ordered=ordered, per=per
    )


def average_precision(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    ordered: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the mean positive predictive value over all sensitivities.

    Σ_i (R_i - R_{i-1}) P_i over falling thresholds, with R the sensitivity and P the predictive
    value: scikit-learn's definition, without interpolation.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
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
        The prevalence for uninformative probabilities, 1 if every positive ranks above.

    Raises
    ------
    UndefinedMetricError
        If no rater chose the positive class.

    See Also
    --------
    precision_recall_curve : the curve.

    References
    ----------
    Davis & Goadrich, The relationship between precision-recall and ROC curves, ICML 2006.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> round(average_precision(probs, labels), 4)  # (2 · 1 + 1 · 3/4 + 2 · 5/6) / 5
    0.8833
    """
    return measure(
        "average_precision", probs, labels, weights, on_unrated,
        positive=positive, ordered=ordered, per=per,
    )  # fmt: skip


def sensitivity(
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
    """Return the share of positives that test positive: TP / (TP + FN), the recall.

    Of the labels of the positive class, those whose case has a probability of at least the
    threshold.

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
        If no rater chose the positive class.

    See Also
    --------
    specificity : the same for negatives.
    decision_curve : at every threshold, with what raters would do.

    References
    ----------
    Yerushalmy, Statistical problems in assessing methods of medical diagnosis, Public Health
    Reports 62 (1947), 1432-1449.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> sensitivity(probs, labels)  # 3 of 5
    0.6
    """
    return measure(
        "sensitivity", probs, labels, weights, on_unrated,
        threshold=threshold, positive=positive, ordered=ordered, per=per,
    )  # fmt: skip


def specificity(
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
    """Return the share of negatives that test negative: TN / (TN + FP).

    Of the labels of other classes, those whose case has a probability below the threshold.

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
        If every rater chose the positive class.

    See Also
    --------
    sensitivity : the same for positives.

    References
    ----------
    Yerushalmy, Statistical problems in assessing methods of medical diagnosis, Public Health
    Reports 62 (1947), 1432-1449.

    Examples
    --------
    >>> from raterwise import Labels
    >>> probs = [0.9, 0.8, 0.3, 0.4]
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> round(specificity(probs, labels), 4)  # 2 of 3
    0.6667
    """
    return measure(
        "specificity", probs, labels, weights, on_unrated,
        threshold=threshold, positive=positive, ordered=ordered, per=per,
    )  # fmt: skip
