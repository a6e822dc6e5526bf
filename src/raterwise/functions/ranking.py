"""Does confidence separate right from wrong? (CCC), and risk against coverage.

Confidence may be any number: only its order counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_array, as_float_array, on_gpu
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.kernels._threads import in_threads
from raterwise.metrics import ranking
from raterwise.predictions import check_weights
from raterwise.summaries import ScoreMasses

__all__ = ["auccc", "augrc", "aurc", "ccc_curve", "io_auroc"]


def ccc_curve(
    confidence: Any, correct: Any, weights: Any = None, *, out_confidence: Any = None
) -> ranking.CCCCurve:
    """Return the confidence-classification characteristic curve (CCC section 2.2).

    `correct` (N,) is whether each prediction is right, or the fraction of raters who say so; a
    case then counts partly as right and partly as wrong. Out-of-distribution cases, if any, count
    as wrong whatever was predicted.

    >>> curve = ccc_curve([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
    >>> curve.at(0.7)["correct_accept_rate"], curve.at(0.7)["correct_reject_rate"]
    (0.6666666666666666, 1.0)
    >>> round(curve.area, 4)
    0.6667
    """
    scores = _scores(confidence, correct, weights, out_confidence)
    right, wrong = scores.hits.sum(), (scores.mass - scores.hits).sum()
    _require_both("ccc_curve", float(right), float(wrong))
    return ranking.ccc_curve(scores.score, scores.mass, scores.hits)


def auccc(confidence: Any, correct: Any, out_confidence: Any = None, weights: Any = None) -> float:
    """Return the area under the CCC curve: P(right is more confident than wrong), ties half.

    >>> auccc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
    0.6666666666666666
    >>> auccc([0.9, 0.8], [1, 1], out_confidence=[0.8, 0.1])
    0.875
    """
    if weights is None and out_confidence is None:
        fast = _auccc_of_hits(confidence, correct)
        if fast is not None:
            return fast
    scores = _scores(confidence, correct, weights, out_confidence)
    right, wrong = scores.hits.sum(), (scores.mass - scores.hits).sum()
    _require_both("auccc", float(right), float(wrong))
    return float(ranking.auccc(scores.mass, scores.hits))


def aurc(confidence: Any, correct: Any, weights: Any = None) -> float:
    """Return the area under the risk-coverage curve (Geifman & El-Yaniv 2017).

    The mean over i of the error rate among the i most confident cases. Tied cases are taken in
    random order, in expectation; weights count how often a case stands.

    >>> round(aurc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1]), 4)
    0.1458
    """
    scores = _scores(confidence, correct, weights, None)
    return float(ranking.aurc(scores.mass, scores.hits))


def augrc(confidence: Any, correct: Any, weights: Any = None) -> float:
    """Return the area under the generalised risk-coverage curve (Traub et al. 2024).

    The mean, over coverages, of the probability that a case is accepted and wrong.

    >>> augrc([0.9, 0.8, 0.6, 0.4], [1, 1, 0, 1])
    0.09375
    """
    scores = _scores(confidence, correct, weights, None)
    return float(ranking.augrc(scores.mass, scores.hits))


def io_auroc(in_confidence: Any, out_confidence: Any) -> float:
    """Return how well confidence tells in- from out-of-distribution cases (CCC section 4.3).

    P(an in-distribution case is more confident than an out-of-distribution one), ties half.

    >>> io_auroc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    if on_gpu(in_confidence):
        from raterwise.tensors.cases import numbers

        known = numbers(in_confidence, "in_confidence")
        return _area_on_gpu(known, numbers(out_confidence, "out_confidence", known))
    inside = _numbers(in_confidence, "in_confidence")
    outside = _numbers(out_confidence, "out_confidence")
    return _area(np.sort(inside), np.sort(outside))


def _scores(confidence: Any, correct: Any, weights: Any, out_confidence: Any) -> ScoreMasses:
    if on_gpu(confidence):
        from raterwise.tensors.device import masses_of_scores

        return masses_of_scores(confidence, correct, weights, out_confidence)
    score = _numbers(confidence, "confidence").astype(np.float64)
    hits = _correct(correct, len(score))
    mass = check_weights(weights, len(score))
    mass = np.ones(len(score)) if mass is None else mass
    if out_confidence is not None:
        outside = _numbers(out_confidence, "out_confidence").astype(np.float64)
        score = np.concatenate((score, outside))
        hits = np.concatenate((hits, np.zeros(len(outside))))
        mass = np.concatenate((mass, np.ones(len(outside))))
    return ScoreMasses.of(score, mass, hits * mass)


def _auccc_of_hits(confidence: Any, correct: Any) -> float | None:
    """Return AUCCC where every case is simply right or wrong: two plain sorts, no arg-sort."""
    if on_gpu(confidence):
        from raterwise.tensors.device import right_and_wrong

        both = right_and_wrong(confidence, correct)
        if both is None:
            return None
        _require_both("auccc", float(len(both[0])), float(len(both[1])))
        return _area_on_gpu(*both)
    score = _numbers(confidence, "confidence")
    given = as_array(correct, "correct")
    if given.dtype == bool and given.shape == score.shape:
        right = given
    else:
        hits = _correct(correct, len(score))
        right = hits == 1
        if not (right | (hits == 0)).all():
            return None
    number = int(right.sum())
    _require_both("auccc", float(number), float(len(right) - number))
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


def _numbers(values: Any, name: str) -> NDArray[Any]:
    array = as_float_array(values, name, ndim=1)
    if len(array) == 0:
        raise InvalidInputError(f"{name}: must hold at least one case; got none")
    if missing := int(np.isnan(array).sum()):
        raise InvalidInputError(f"{name}: must not contain NaN; {missing} values are NaN")
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _correct(correct: Any, cases: int) -> NDArray[np.float64]:
    hits = as_float_array(correct, "correct", ndim=1).astype(np.float64)
    if len(hits) != cases:
        raise InvalidInputError(f"correct: must match confidence; got {len(hits)} for {cases}")
    outside = ~((hits >= 0) & (hits <= 1))
    if outside.any():
        case = int(np.flatnonzero(outside)[0])
        raise InvalidInputError(f"correct: must lie in [0, 1]; case {case} has {hits[case]}")
    return hits


def _require_both(name: str, right: float, wrong: float) -> None:
    if right <= 0:
        raise UndefinedMetricError(f"{name}: undefined, every case is wrong")
    if wrong <= ranking.NOTHING * right:
        raise UndefinedMetricError(f"{name}: undefined, every case is right")
