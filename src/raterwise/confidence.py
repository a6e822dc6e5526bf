"""Metrics of confidence, for users who have confidences but no probabilities.

Confidence may be any number: only its order counts. With class probabilities use the functions of
the same name in `raterwise` itself, which find out what is right from the labels.

>>> import raterwise as rw
>>> rw.confidence.auccc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
0.6666666666666666
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_array, as_float_array, on_gpu
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.kernels._threads import in_threads
from raterwise.metrics import ranking
from raterwise.metrics.ranking import CCCCurve
from raterwise.predictions.checks import check_weights
from raterwise.predictions.rows import confidences
from raterwise.summaries import ScoreMasses

__all__ = ["CCCCurve", "auccc", "augrc", "aurc", "ccc_curve", "io_auroc"]


def ccc_curve(
    confidence: ArrayLike,
    correct: ArrayLike,
    outside: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
) -> CCCCurve:
    """Return the confidence-classification characteristic curve (CCC section 2.2).

    Parameters
    ----------
    confidence : array-like of shape (N,)
        Any number that is higher for more certain predictions.
    correct : array-like of shape (N,)
        Whether each prediction is right, or the fraction of raters who say so; a case then counts
        partly as right and partly as wrong.
    outside : array-like of shape (M,), default None
        Confidences of out-of-distribution cases, which count as wrong with weight 1.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.

    Returns
    -------
    CCCCurve
        Counts and rates at every threshold, from the highest confidence down.

    Raises
    ------
    UndefinedMetricError
        If every case is right, or every case is wrong.

    See Also
    --------
    raterwise.ccc_curve : the same from class probabilities and labels.

    References
    ----------
    Huang, Yang, Li, Deng, Ni, Xu, Evaluating and boosting uncertainty quantification in
    classification, arXiv:1909.06030, section 2.2.

    Examples
    --------
    >>> curve = ccc_curve([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
    >>> curve.at(0.7)["correct_accept_rate"], curve.at(0.7)["correct_reject_rate"]
    (0.6666666666666666, 1.0)
    >>> round(curve.area, 4)
    0.6667
    """
    return curve_of("ccc_curve", _masses(confidence, correct, outside, weights))


def auccc(
    confidence: ArrayLike,
    correct: ArrayLike,
    outside: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
) -> float:
    """Return the area under the CCC curve: P(right is more confident than wrong), ties half.

    Parameters
    ----------
    confidence : array-like of shape (N,)
        Any number that is higher for more certain predictions.
    correct : array-like of shape (N,)
        Whether each prediction is right, or the fraction of raters who say so.
    outside : array-like of shape (M,), default None
        Confidences of out-of-distribution cases, which count as wrong with weight 1.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.

    Returns
    -------
    float
        0.5 for an uninformative confidence, 1 if every right case ranks above every wrong one
        (CCC section 2.2).

    Raises
    ------
    UndefinedMetricError
        If every case is right, or every case is wrong.

    See Also
    --------
    raterwise.auccc : the same from class probabilities and labels.

    References
    ----------
    Huang, Yang, Li, Deng, Ni, Xu, Evaluating and boosting uncertainty quantification in
    classification, arXiv:1909.06030, section 2.2.

    Examples
    --------
    >>> auccc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
    0.6666666666666666
    >>> auccc([0.9, 0.8], [1, 1], outside=[0.8, 0.1])
    0.875
    """
    if weights is None and outside is None:
        fast = _auccc_of_hits(confidence, correct)
        if fast is not None:
            return fast
    scores = _masses(confidence, correct, outside, weights)
    _require_both("auccc", scores)
    return float(ranking.auccc(scores.mass, scores.hits))


def aurc(
    confidence: ArrayLike,
    correct: ArrayLike,
    outside: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
) -> float:
    """Return the area under the risk-coverage curve: the error rate among the most confident.

    The mean over i of the error rate among the i most confident cases. Tied cases are taken in
    random order, in expectation.

    Parameters
    ----------
    confidence : array-like of shape (N,)
        Any number that is higher for more certain predictions.
    correct : array-like of shape (N,)
        Whether each prediction is right, or the fraction of raters who say so.
    outside : array-like of shape (M,), default None
        Confidences of out-of-distribution cases, which count as wrong with weight 1.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.

    Returns
    -------
    float
        0 if every case is right; lower is better.

    See Also
    --------
    raterwise.aurc : the same from class probabilities and labels.

    References
    ----------
    Geifman & El-Yaniv, Selective classification for deep neural networks, NeurIPS 2017.

    Examples
    --------
    >>> round(aurc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1]), 4)
    0.1458
    """
    scores = _masses(confidence, correct, outside, weights)
    return float(ranking.aurc(scores.mass, scores.hits))


def augrc(
    confidence: ArrayLike,
    correct: ArrayLike,
    outside: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
) -> float:
    """Return the area under the generalised risk-coverage curve.

    The mean, over coverages, of the probability that a case is accepted and wrong.

    Parameters
    ----------
    confidence : array-like of shape (N,)
        Any number that is higher for more certain predictions.
    correct : array-like of shape (N,)
        Whether each prediction is right, or the fraction of raters who say so.
    outside : array-like of shape (M,), default None
        Confidences of out-of-distribution cases, which count as wrong with weight 1.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.

    Returns
    -------
    float
        0 if every case is right, 0.5 if every case is wrong; lower is better.

    See Also
    --------
    raterwise.augrc : the same from class probabilities and labels.

    References
    ----------
    Traub et al., Overcoming common flaws in the evaluation of selective classification systems,
    NeurIPS 2024.

    Examples
    --------
    >>> augrc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
    0.09375
    """
    scores = _masses(confidence, correct, outside, weights)
    return float(ranking.augrc(scores.mass, scores.hits))


def io_auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    """Return how well confidence separates in- and out-of-distribution cases (CCC section 4.3).

    Parameters
    ----------
    inside : array-like of shape (N,)
        Confidences of in-distribution cases, right or wrong.
    outside : array-like of shape (M,)
        Confidences of out-of-distribution cases.

    Returns
    -------
    float
        P(an in-distribution case is more confident than an out-of-distribution one), ties half.

    See Also
    --------
    auccc : takes the wrong in-distribution cases into account as well.

    References
    ----------
    Hendrycks, Gimpel, A baseline for detecting misclassified and out-of-distribution examples in
    neural networks, ICLR 2017.

    Examples
    --------
    >>> io_auroc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    if on_gpu(inside):
        from raterwise.tensors.cases import numbers

        known = numbers(inside, "inside")
        return _area_on_gpu(known, numbers(outside, "outside", known))
    return _area(np.sort(confidences(inside, "inside")), np.sort(confidences(outside, "outside")))


def curve_of(name: str, scores: ScoreMasses) -> CCCCurve:
    """Return the curve of sorted scores; `name` is who asks, for the error."""
    _require_both(name, scores)
    return ranking.ccc_curve(scores.score, scores.mass, scores.hits)


def with_outside(
    score: NDArray[np.float64],
    mass: NDArray[np.float64],
    hits: NDArray[np.float64],
    outside: NDArray[np.float64] | None,
) -> ScoreMasses:
    """Return the sorted masses of cases and of outside ones, of which none is right."""
    if outside is not None:
        score = np.concatenate((score, outside))
        hits = np.concatenate((hits, np.zeros(len(outside))))
        mass = np.concatenate((mass, np.ones(len(outside))))
    return ScoreMasses.of(score, mass, hits)


def _masses(confidence: Any, correct: Any, outside: Any, weights: Any) -> ScoreMasses:
    if on_gpu(confidence):
        from raterwise.tensors.device import masses_of_scores

        return masses_of_scores(confidence, correct, weights, outside)
    score = confidences(confidence, "confidence").astype(np.float64)
    hits = _correct(correct, len(score))
    given = check_weights(weights, len(score))
    mass = np.ones(len(score)) if given is None else given
    others = None if outside is None else confidences(outside, "outside").astype(np.float64)
    return with_outside(score, mass, hits * mass, others)


def _auccc_of_hits(confidence: Any, correct: Any) -> float | None:
    """Return AUCCC where every case is simply right or wrong: two plain sorts, no arg-sort."""
    if on_gpu(confidence):
        from raterwise.tensors.device import right_and_wrong

        both = right_and_wrong(confidence, correct)
        if both is None:
            return None
        _require_some("auccc", float(len(both[0])), float(len(both[1])))
        return _area_on_gpu(*both)
    score = confidences(confidence, "confidence")
    given = as_array(correct, "correct")
    if given.dtype == bool and given.shape == score.shape:
        right = given
    else:
        hits = _correct(correct, len(score))
        right = hits == 1
        if not (right | (hits == 0)).all():
            return None
    number = int(right.sum())
    _require_some("auccc", float(number), float(len(right) - number))
    chosen = (right, ~right)
    upper, lower = in_threads(lambda i: np.sort(score[chosen[i]]), range(2))
    return _area(upper, lower)


def _area(upper: NDArray[Any], lower: NDArray[Any]) -> float:
    """Return P(upper > lower) + half of the ties, of two sorted samples."""
    from raterwise.kernels import _numba as kernels

    return float(kernels.concordance(upper, lower) / (len(upper) * len(lower)))


def _area_on_gpu(upper: Any, lower: Any) -> float:
    from raterwise.kernels._torch import concordance

    return concordance(upper, lower) / (len(upper) * len(lower))


def _correct(correct: Any, cases: int) -> NDArray[np.float64]:
    hits = as_float_array(correct, "correct", ndim=1).astype(np.float64)
    if len(hits) != cases:
        raise InvalidInputError(f"correct: must match confidence; got {len(hits)} for {cases}")
    outside = ~((hits >= 0) & (hits <= 1))
    if outside.any():
        case = int(np.flatnonzero(outside)[0])
        raise InvalidInputError(f"correct: must lie in [0, 1]; case {case} has {hits[case]}")
    return hits


def _require_both(name: str, scores: ScoreMasses) -> None:
    right = float(scores.hits.sum())
    _require_some(name, right, float((scores.mass - scores.hits).sum()))


def _require_some(name: str, right: float, wrong: float) -> None:
    if right <= 0:
        raise UndefinedMetricError(f"{name}: undefined, every case is wrong")
    if wrong <= ranking.NOTHING * right:
        raise UndefinedMetricError(f"{name}: undefined, every case is right")
