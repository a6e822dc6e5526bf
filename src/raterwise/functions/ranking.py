"""Does confidence separate right from wrong? (CCC), and risk against coverage.

From class probabilities and labels, as every other metric; `raterwise.confidence` has the same for
those who have confidences and hits.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from raterwise.catalog import find
from raterwise.catalog.metric import Given
from raterwise.confidence import curve_of
from raterwise.errors import InvalidInputError
from raterwise.functions.measure import measure, value_of
from raterwise.labels import Labels
from raterwise.metrics.ranking import CCCCurve
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.rules import choose
from raterwise.summaries import SortedPlan, SortedScores, summarise
from raterwise.summaries.outside import with_outside_cases
from raterwise.types import OneScore, OnUnrated, Per


def ccc_curve(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    question: OneScore = "top_label",
    on_unrated: OnUnrated = "error",
) -> CCCCurve:
    """Return the confidence-classification characteristic curve (CCC section 2.2).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    confidence : array-like of shape (N,), default None
        Ranks the cases instead of the largest probability; any number that is higher where the
        model is surer. What is predicted still follows from `probs`.
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
    CCCCurve
        Counts and rates at every threshold, from the highest confidence down; counts are of
        annotations, or of cases with `per="case"`.

    Raises
    ------
    UndefinedMetricError
        If every prediction is right, or every one is wrong.

    See Also
    --------
    auccc : the area under the curve.
    raterwise.curves.threshold_curve : with intervals.

    References
    ----------
    Huang, Yang, Li, Deng, Ni, Xu, Evaluating and boosting uncertainty quantification in
    classification, arXiv:1909.06030, section 2.2.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]]
    >>> curve = ccc_curve(probs, [0, 1, 1, 1])
    >>> curve.at(0.75)["correct_accepts"], curve.at(0.75)["incorrect_accepts"]
    (2.0, 0.0)
    >>> curve.area
    1.0
    """
    summary = _summary(
        probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per,
    )  # fmt: skip
    return curve_of("ccc_curve", summary.pooled())


def auccc(
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
    """Return the area under the CCC curve: P(right is more confident than wrong), ties half.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case. With several raters a case is partly right
        and partly wrong.
    confidence : array-like of shape (N,), default None
        Ranks the cases instead of the largest probability; any number that is higher where the
        model is surer. What is predicted still follows from `probs`.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, of which the largest
        is used. Every prediction for them counts as wrong, with weight 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    question : {"top_label", "positive"}, default "top_label"
        Is the predicted class right; or, of two classes, is it class 1: the area under the ROC.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0.5 for an uninformative confidence, 1 if every right prediction ranks above every wrong one
        (CCC section 2.2).

    Raises
    ------
    UndefinedMetricError
        If every prediction is right, or every one is wrong.

    See Also
    --------
    raterwise.confidence.auccc : from confidences and hits, without probabilities.

    References
    ----------
    Huang, Yang, Li, Deng, Ni, Xu, Evaluating and boosting uncertainty quantification in
    classification, arXiv:1909.06030, section 2.2.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> auccc(probs, [0, 1, 1, 0])
    0.6666666666666666
    >>> auccc(probs, [0, 1, 1, 0], outside=[0.5, 0.5])  # 5 right pairs and 2 halves of 9
    0.7777777777777778
    """
    return measure_ranks(
        "auccc", probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per,
    )  # fmt: skip


def aurc(
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
    """Return the area under the risk-coverage curve: the error rate among the most confident.

    The mean over i of the error rate among the i most confident predictions. Tied ones are taken
    in random order, in expectation.

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
        0 if every prediction is right; lower is better.

    See Also
    --------
    raterwise.confidence.aurc : from confidences and hits, without probabilities.

    References
    ----------
    Geifman & El-Yaniv, Selective classification for deep neural networks, NeurIPS 2017.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> round(aurc(probs, [0, 1, 1, 0]), 4)  # (0 + 0 + 1/3 + 1/4) / 4
    0.1458
    """
    return measure_ranks(
        "aurc", probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per,
    )  # fmt: skip


def augrc(
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
    """Return the area under the generalised risk-coverage curve.

    The mean, over coverages, of the probability that a prediction is accepted and wrong.

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
        0 if every prediction is right, 0.5 if every one is wrong; lower is better.

    See Also
    --------
    raterwise.confidence.augrc : from confidences and hits, without probabilities.

    References
    ----------
    Traub et al., Overcoming common flaws in the evaluation of selective classification systems,
    NeurIPS 2024.

    Examples
    --------
    >>> augrc([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]], [0, 1, 1, 0])
    0.09375
    """
    return measure_ranks(
        "augrc", probs, labels, weights, on_unrated,
        confidence=confidence, outside=outside, question=question, per=per,
    )  # fmt: skip


def measure_ranks(
    name: str,
    probs: Any,
    labels: Any,
    weights: Any,
    on_unrated: OnUnrated,
    *,
    confidence: Any,
    outside: Any,
    **options: Any,
) -> float:
    """Return a metric of ranks: of the predictions, or of other confidences and outside cases."""
    if confidence is None and outside is None:
        return measure(name, probs, labels, weights, on_unrated, **options)
    ranked = {"confidence": confidence, "outside": outside}
    asked = {key: options.pop(key) for key in ("question", "per")}
    row = find(name)
    summary = _summary(probs, labels, weights, on_unrated, **ranked, **asked)
    return value_of(row, row.checked(options), summary)


def _summary(
    probs: Any, labels: Any, weights: Any, on_unrated: OnUnrated, question: str, per: str,
    **ranked: Any,
) -> SortedScores:  # fmt: skip
    """Return the sorted scores of the cases, in distribution and out of it."""
    choose("question", question, ("top_label", "positive"))
    for name, given in ranked.items():
        if given is not None and question != "top_label":
            raise InvalidInputError(f'{name}: needs question="top_label"; got {question!r}')
    predictions = Predictions.of(probs, labels, weights=weights, on_unrated=on_unrated, **ranked)
    asked = Given.of(predictions).ranking if question == "top_label" else question
    plan = SortedPlan(Question(asked, per))
    found = with_outside_cases(summarise(predictions, [plan]), predictions.outside)
    scores: SortedScores = found[plan]
    return scores
