"""What a clinical reader expects: areas over ranks, and what a threshold does.

A case of which the fraction μ of the raters say the positive class is a positive of mass μ and a
negative of mass 1 - μ, so with one rater per case these are scikit-learn's numbers. A probability
of at least the threshold is a positive test. Of more than two classes a value is the mean over the
classes, each against the rest, unless `positive` names one.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from raterwise.choices import OnUnrated, Per
from raterwise.functions.measure import measure
from raterwise.labels import Labels

__all__ = [
    "auroc",
    "average_precision",
    "f1",
    "net_benefit",
    "npv",
    "ppv",
    "sensitivity",
    "specificity",
]


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
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

    Returns
    -------
    float
        0.5 for probabilities that say nothing, 1 where every positive stands above every negative.

    Raises
    ------
    UndefinedMetricError
        If no rater chose the positive class, or all did.

    See Also
    --------
    roc_curve : the curve.
    auccc : the same of whether the predicted class is right.

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
        "auroc", probs, labels, weights, on_unrated,
        positive=positive, ordered=ordered, per=per,
    )  # fmt: skip


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
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

    Returns
    -------
    float
        The prevalence for probabilities that say nothing, 1 where every positive stands above.

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
    """Return the part of the positives that test positive: TP / (TP + FN), the recall.

    Of the labels of the positive class, those whose case has a probability of at least the
    threshold.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    threshold : float, default 0.5
        A probability of at least this is a positive test.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

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
    specificity : of the negatives.
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
    """Return the part of the negatives that test negative: TN / (TN + FP).

    Of the labels of other classes, those whose case has a probability below the threshold.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    threshold : float, default 0.5
        A probability of at least this is a positive test.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

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
    sensitivity : of the positives.

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
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    threshold : float, default 0.5
        A probability of at least this is a positive test.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    prevalence : float, default None
        Of the positive class where the model will be used, if another than here: sensitivity and
        specificity are taken from these data, and how common the class is from there.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

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
    npv : of those that test negative.

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
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    threshold : float, default 0.5
        A probability of at least this is a positive test.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    prevalence : float, default None
        Of the positive class where the model will be used, if another than here: sensitivity and
        specificity are taken from these data, and how common the class is from there.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

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
    ppv : of those that test positive.

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

    The harmonic mean of sensitivity and positive predictive value. It says nothing of true
    negatives, and the same model has another F1 where the class is more common.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    threshold : float, default 0.5
        A probability of at least this is a positive test.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

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
    sensitivity, ppv : what it is a mean of.

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

    Whoever acts from a probability of t on holds a false alarm for t / (1 - t) of a find.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    threshold : float, default 0.5
        A probability of at least this is a positive test.
    positive : int, default None
        The class to look for. If left out, class 1 of two; of more, each class against the rest,
        and the mean over those that have a value.
    ordered : bool, default False
        Whether the classes are ordered: class k or higher is then looked for, k the class named or
        each but the lowest in turn.
    prevalence : float, default None
        Of the positive class where the model will be used, if another than here: sensitivity and
        specificity are taken from these data, and how common the class is from there.
    per : {"annotation", "case"}, default "annotation"
        Whether every label counts once, or every case.
    weights : array-like of shape (N,), default None
        How often each case counts; 1 if left out.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.

    Returns
    -------
    float
        At most the prevalence; 0 is that of acting on no case.

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
