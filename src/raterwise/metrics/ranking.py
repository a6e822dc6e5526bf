"""Does confidence separate right from wrong? CCC, risk-coverage, in- against out-of-distribution.

Formulas over masses in order of increasing score: `mass` (…, n) is Σ w at each distinct score and
`hits` Σ w μ, where μ is whether (or how often) the prediction is right. Tied scores are one step,
so the order of tied cases never matters. Leading axes are resamples; undefined is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from raterwise.brief import brief
from raterwise.types import Array

TOGETHER = 1 << 17
"""How many scores are looked at together."""
NOTHING = 1e-12
"""A share of wrong cases below this is rounding: no case is wrong."""


@dataclass(frozen=True, eq=False)
class CCCCurve:
    """The confidence-classification characteristic: counts and rates at every threshold.

    Accepting means confidence >= threshold. The first threshold is infinite: nothing is accepted.
    Counts may be fractional, where raters disagree about whether the prediction is right.

    Attributes
    ----------
    thresholds : array of shape (T,)
        Falling.
    correct_accepts : array of shape (T,)
        CAcc: right and accepted.
    incorrect_accepts : array of shape (T,)
        IAcc: wrong and accepted.
    correct_rejects : array of shape (T,)
        CRej: wrong and rejected.
    incorrect_rejects : array of shape (T,)
        IRej: right and rejected.

    See Also
    --------
    ccc_curve, confidence.ccc_curve : return it.
    plots.CCCDisplay : draws it.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.confidence.ccc_curve([0.9, 0.6], [1, 0])
    >>> curve.thresholds.tolist(), curve.correct_accepts.tolist(), curve.area
    ([inf, 0.9, 0.6], [0.0, 1.0, 1.0], 1.0)
    """

    __repr__ = brief

    thresholds: Array
    correct_accepts: Array
    incorrect_accepts: Array
    correct_rejects: Array
    incorrect_rejects: Array

    @property
    def correct_accept_rate(self) -> Array:
        """CAccR = CAcc / (CAcc + IRej), the y-axis (CCC eq 1)."""
        return np.asarray(self.correct_accepts / (self.correct_accepts + self.incorrect_rejects))

    @property
    def correct_reject_rate(self) -> Array:
        """CRejR = CRej / (CRej + IAcc); the x-axis is 1 - CRejR (CCC eq 1)."""
        return np.asarray(self.correct_rejects / (self.correct_rejects + self.incorrect_accepts))

    @property
    def area(self) -> float:
        """AUCCC: the area under the curve."""
        return float(np.trapezoid(self.correct_accept_rate, 1 - self.correct_reject_rate))

    def at(self, threshold: float) -> dict[str, float]:
        """Return the four counts and two rates when confidence >= threshold is accepted.

        Parameters
        ----------
        threshold : float
            Any number; it need not be one of `thresholds`.

        Returns
        -------
        dict of str to float
            By the names of the counts and rates.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.confidence.ccc_curve([0.9, 0.6], [1, 0]).at(0.7)["correct_rejects"]
        1.0
        """
        # Thresholds fall along the curve; the last one that is >= `threshold` accepts the same.
        i = int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1
        counts = ("correct_accepts", "incorrect_accepts", "correct_rejects", "incorrect_rejects")
        rates = ("correct_accept_rate", "correct_reject_rate")
        return {name: float(getattr(self, name)[i]) for name in (*counts, *rates)}


def ccc_curve(
    score: Array,
    mass: Array,
    hits: Array,
    kept: Callable[[Array], Any] | None = None,
) -> CCCCurve:
    """Return the curve with one point per distinct confidence, from the highest down.

    `kept` says which of the points to keep, given the part that is accepted at each.
    """
    right = np.concatenate(([0.0], np.cumsum(hits[::-1])))
    wrong = np.concatenate(([0.0], np.cumsum((mass - hits)[::-1])))
    all_right, all_wrong = right[-1], wrong[-1]
    thresholds = np.concatenate(([np.inf], score[::-1]))
    if kept is not None:
        points = kept((right + wrong) / (all_right + all_wrong))
        right, wrong, thresholds = right[points], wrong[points], thresholds[points]
    return CCCCurve(
        thresholds,
        correct_accepts=right,
        incorrect_accepts=wrong,
        correct_rejects=all_wrong - wrong,
        incorrect_rejects=all_right - right,
    )


def near_one(mass: Array, hits: Array) -> tuple[Array, Array]:
    """Return both in a unit, a power of 2, in which the masses sum to about 1.

    No digit changes, and products of masses of 1e200 or 1e-200 stay within the numbers.

    >>> near_one(np.array([1e-200, 3e-200]), np.array([0.0, 3e-200]))[0].round(2).tolist()
    [0.19, 0.57]
    """
    unit = np.ldexp(1.0, -np.frexp(mass.sum(axis=-1, keepdims=True))[1])
    return mass * unit, hits * unit


def auccc(mass: Array, hits: Array) -> Array:
    """AUCCC = P(conf of a right case > that of a wrong one), ties half (CCC section 2.2)."""
    mass, hits = near_one(mass, hits)
    right = wrong = pairs = np.zeros(mass.shape[:-1])
    for part in _parts_of(mass.shape[-1]):
        hit, missed = hits[..., part], mass[..., part] - hits[..., part]
        below = np.cumsum(missed, axis=-1) - 0.5 * missed + wrong[..., None]
        pairs = pairs + (hit * below).sum(axis=-1)
        right, wrong = right + hit.sum(axis=-1), wrong + missed.sum(axis=-1)
    possible = right * np.where(wrong > NOTHING * (right + wrong), wrong, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(possible > 0, pairs / possible, np.nan))


def aurc(mass: Array, hits: Array) -> Array:
    """AURC = 1/N Σ_i (errors among the i most confident) / i (Geifman & El-Yaniv 2017).

    Tied cases are taken in random order, in expectation: within a tie of mass m and error rate e
    that follows C accepted cases with E errors, Σ_{j=1..m} (E + j e)/(C + j)
    = e m + (E - e C) (ψ(C+m+1) - ψ(C+1)), which also serves masses that are not whole.
    """
    from scipy.special import digamma

    mass, hits = mass[..., ::-1], hits[..., ::-1]
    accepted = errors = area = np.zeros(mass.shape[:-1])
    for part in _parts_of(mass.shape[-1]):
        m, wrong = mass[..., part], mass[..., part] - hits[..., part]
        reached = np.cumsum(m, axis=-1) + accepted[..., None]
        lost = np.cumsum(wrong, axis=-1) + errors[..., None]
        before = reached - m
        rate = wrong / np.where(m > 0, m, 1)
        steps = digamma(reached + 1) - digamma(before + 1)
        area = area + (wrong + (lost - wrong - rate * before) * steps).sum(axis=-1)
        accepted, errors = reached[..., -1], lost[..., -1]
    return np.asarray(np.maximum(area, 0) / accepted)


def _parts_of(scores: int) -> list[slice]:
    """Return the scores some at a time: of a million, each array would take as much as they do."""
    return [slice(i, i + TOGETHER) for i in range(0, scores, TOGETHER)]


def augrc(mass: Array, hits: Array) -> Array:
    """AUGRC: the mean, over coverages, of the risk that an undetected failure is accepted.

    (1 - AUCCC) a (1-a) + (1-a)²/2 with accuracy a (Traub et al. 2024, eq 8).
    """
    accuracy = hits.sum(axis=-1) / mass.sum(axis=-1)
    wrong = np.where(1 - accuracy > NOTHING, 1 - accuracy, 0)
    separation = np.nan_to_num(1 - auccc(mass, hits))
    return np.asarray(separation * accuracy * wrong + 0.5 * wrong**2)


def excess_aurc(mass: Array, hits: Array) -> Array:
    """e-AURC = AURC less that of the best order: every right case before any wrong one.

    Geifman, Uziel & El-Yaniv 2019, who approximate what is subtracted by e + (1 - e) log(1 - e) at
    an error rate e; here it is that of these counts.
    """
    right = hits.sum(axis=-1)
    wrong = np.maximum(mass.sum(axis=-1) - right, 0)
    best = aurc(np.stack((wrong, right), axis=-1), np.stack((np.zeros_like(right), right), axis=-1))
    return np.asarray(np.maximum(aurc(mass, hits) - best, 0))


def fpr_at_tpr(mass: Array, hits: Array, rate: float = 0.95, *, within: bool = False) -> Array:
    """Return the share of wrong cases accepted where `rate` of the right ones are, or just more.

    Accepting goes down from the highest score, a tie at once. Cells that stand for many scores
    are passed `within`: as much of the wrong ones as is needed of the right ones.
    """
    wrong = (mass - hits)[..., ::-1]
    right = np.cumsum(hits[..., ::-1], axis=-1)
    false = np.cumsum(wrong, axis=-1)
    all_right, all_wrong = right[..., -1:], false[..., -1:]
    wanted = rate * all_right
    first = np.argmax(right >= wanted * (1 - 1e-12), axis=-1)[..., None]
    taken = np.take_along_axis(false, first, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        if within:
            there = np.take_along_axis(hits[..., ::-1], first, axis=-1)
            over = np.take_along_axis(right, first, axis=-1) - wanted
            taken = taken - np.take_along_axis(wrong, first, axis=-1) * np.clip(over / there, 0, 1)
        defined = (all_right > 0) & (all_wrong > NOTHING * (all_right + all_wrong))
        return np.asarray(np.where(defined, taken / all_wrong, np.nan)[..., 0])


def failure_average_precision(mass: Array, hits: Array, *, of: str = "errors") -> Array:
    """AP = Σ_t (R_t - R_{t-1}) P_t, scikit-learn's average precision.

    Of errors: how many wrong cases are among the least confident; of successes: how many right
    ones among the most confident.
    """
    if of == "successes":
        mass, found = mass[..., ::-1], hits[..., ::-1]
    else:
        found = mass - hits
    total, all_cases = found.sum(axis=-1), mass.sum(axis=-1)
    reached = np.cumsum(mass, axis=-1)
    precision = np.cumsum(found, axis=-1) / np.where(reached > 0, reached, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        area = (found * precision).sum(axis=-1) / total
        return np.asarray(np.where(total > NOTHING * all_cases, area, np.nan))
