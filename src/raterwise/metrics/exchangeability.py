"""Are the raters interchangeable? Deviations of each rater from the others on the same cases.

Within a case the labels are dealt to the raters at random under the null hypothesis, so the
moments of what a rater is dealt are those of sampling without replacement, in closed form.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Comparison", "StepDown", "at_least_as_large", "compare_raters", "name_deviants"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]

BATCH_VALUES = 1 << 20
"""How many counts a thread holds at a time while labels are shuffled: 8 MB."""
BATCH_SHUFFLES = 32
"""And how many shuffles at most, so that there is work for every thread."""
TIE = 1e-7
"""Statistics this close, relatively, are the same: shuffles that only rounding sets apart."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Who was dealt which labels on the cases whose labels differ, with the moments of chance."""

    first: IntArray
    """(C + 1,): the ratings of compared case i are first[i] … first[i+1] - 1."""
    rater: IntArray
    label: IntArray
    expected: FloatArray
    """(R, K): the mean number of labels of each class that chance deals to each rater."""
    whitening: FloatArray
    """(R, K, K): maps a rater's deviations to uncorrelated ones of variance 1 (or 0)."""
    rank: IntArray
    """(R,): how many of them have variance 1: at most K - 1; 0 where nothing can be said."""

    @property
    def informative(self) -> NDArray[np.bool_]:
        """(R,): which raters the data say anything about."""
        return self.rank > 0

    def statistics(self, counts: NDArray[Any]) -> FloatArray:
        """T_r = d_rᵀ V_r⁺ d_r for label counts (..., R, K): χ² with rank degrees, roughly."""
        deviations = np.moveaxis(counts - self.expected, -2, 0)
        lead = deviations.shape[1:-1]
        white = deviations.reshape(len(self.rank), -1, counts.shape[-1]) @ self.whitening
        squares: FloatArray = (white**2).sum(axis=-1)
        return np.moveaxis(squares.reshape(-1, *lead), 0, -1)

    def observed(self) -> FloatArray:
        """(R,): the statistic of each rater."""
        raters, classes = self.expected.shape
        flat = self.rater.astype(np.int64) * classes + self.label
        return self.statistics(np.bincount(flat, minlength=raters * classes).reshape(-1, classes))

    def shuffled(self, seeds: NDArray[np.uint64]) -> FloatArray:
        """(B, R): the statistics with the labels shuffled within cases, one shuffle per seed."""
        from raterwise.kernels import _agreement as kernels

        raters, classes = self.expected.shape
        largest = int(np.diff(self.first).max(initial=1))
        step = min(BATCH_SHUFFLES, max(1, BATCH_VALUES // (raters * classes)))

        def batch(start: int) -> FloatArray:
            some = seeds[start : start + step]
            scratch, table = np.empty(largest, np.int64), np.zeros((len(some), raters, classes))
            kernels.count_shuffled_labels(self.first, self.rater, self.label, some, scratch, table)
            return self.statistics(table)

        with ThreadPoolExecutor() as pool:
            return np.concatenate(list(pool.map(batch, range(0, len(seeds), step))))

    def overall(self, statistics: FloatArray) -> FloatArray:
        """(R-1)/R Σ_r T_r over the R raters that can be judged.

        Where all raters label all cases this is the generalised Cochran-Mantel-Haenszel statistic
        with cases as strata (Landis, Heyman & Koch 1978): Cochran's Q for two classes, the
        Stuart-Maxwell statistic for two raters.
        """
        judged = int(self.informative.sum())
        return np.asarray(statistics.sum(axis=-1) * (judged - 1) / max(judged, 1))

    def common_scale(self, statistics: FloatArray) -> FloatArray:
        """Bring statistics with different degrees of freedom to one scale (Wilson & Hilferty 1931).

        Roughly standard normal, so that a largest one over raters means something; raters that
        cannot be judged are never the largest.
        """
        degrees = np.maximum(self.rank, 1)
        spread = 2 / (9 * degrees)
        scaled = (np.cbrt(statistics / degrees) - (1 - spread)) / np.sqrt(spread)
        return np.where(self.informative, scaled, -np.inf)


def compare_raters(
    case: IntArray, rater: IntArray, label: IntArray, raters: int, classes: int
) -> Comparison:
    """Return the comparison of raters 0 … R-1 on cases whose labels differ.

    A rater with m of the n labels of a case, whose class frequencies are f, is dealt m f on
    average, with covariance m (n-m)/(n-1) (diag f - f fᵀ): sampling without replacement. Cases
    whose labels are all alike stay alike under every shuffle and are left out. A rater with a
    single label to compare cannot be judged.
    """
    _, case = np.unique(case, return_inverse=True)
    cases = int(case.max(initial=-1)) + 1
    frequency = np.zeros((cases, classes))
    np.add.at(frequency, (case, label), 1.0)
    size = frequency.sum(axis=1)
    frequency /= size[:, None]
    differs = (frequency.max(axis=1, initial=0.0) < 1)[case]
    order = np.flatnonzero(differs)[np.argsort(case[differs], kind="stable")]
    case, rater, label = (a[order].astype(np.int64) for a in (case, rater, label))

    pairs, m = np.unique(rater * cases + case, return_counts=True)
    who, where = np.divmod(pairs, max(cases, 1))
    f, n = frequency[where], size[where]
    expected = np.zeros((raters, classes))
    np.add.at(expected, who, m[:, None] * f)
    scale = m * (n - m) / np.maximum(n - 1, 1)
    covariance = np.zeros((raters, classes, classes))
    for k in range(classes):  # one row at a time: (pairs, K) fits where (pairs, K, K) may not
        row = -f * f[:, k : k + 1]
        row[:, k] += f[:, k]
        np.add.at(covariance[:, k], who, scale[:, None] * row)
    compared = np.bincount(rater, minlength=raters)
    covariance[compared < 2] = 0
    whitening, rank = _whiten(covariance)
    first = np.concatenate(([0], np.cumsum(np.unique(case, return_counts=True)[1])))
    return Comparison(first, rater, label, expected, whitening, rank)


def _whiten(covariance: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return W with W Wᵀ = V⁺ for each V of (R, K, K), and the rank of each V."""
    values, vectors = np.linalg.eigh(covariance)
    # Each V has the null vector 1 (the labels of a rater sum to a constant); rounding leaves about
    # 1e-15 of the largest eigenvalue there, while rare classes stay far above 1e-10.
    real = values > 1e-10 * values[:, -1:]
    roots = np.where(real, 1 / np.sqrt(np.where(real, values, 1)), 0)
    return vectors * roots[:, None, :], real.sum(axis=-1)


def at_least_as_large(shuffled: FloatArray, observed: FloatArray) -> FloatArray:
    """p = (1 + #{shuffled >= observed}) / (1 + B), over the first axis."""
    margin = TIE * (1 + np.abs(np.where(np.isfinite(observed), observed, 0)))
    reached = (shuffled >= observed - margin).sum(axis=0)
    return np.asarray((1 + reached) / (1 + len(shuffled)))


@dataclass(frozen=True, eq=False)
class StepDown:
    """The p-values of a step-down search, and how each rater compares with all others."""

    statistic: float
    p_value: float
    """Of all raters together."""
    rater_statistics: FloatArray
    rater_p_values: FloatArray
    """(R,): each rater against all others, unadjusted."""
    adjusted_p_values: FloatArray
    """(R,): adjusted for the number of raters, by the step-down search."""


def name_deviants(
    case: IntArray,
    rater: IntArray,
    label: IntArray,
    raters: int,
    classes: int,
    *,
    seeds: NDArray[np.uint64],
    level: float,
) -> StepDown:
    """Name the rater that deviates most, set its labels aside, and go on among the rest.

    Each step is a max-T test (Westfall & Young 1993) of the raters that remain. An outlier makes
    those it is compared with look deviant in the other direction; setting it aside before the rest
    are judged does away with that. Raters that tie, as the last two always do, are named together.
    """
    adjusted = np.ones(raters)
    comparison = compare_raters(case, rater, label, raters, classes)
    observed, shuffled = comparison.observed(), comparison.shuffled(seeds)
    overall = comparison.overall(observed)
    p_overall = at_least_as_large(comparison.overall(shuffled), overall)
    p_values = np.where(comparison.informative, at_least_as_large(shuffled, observed), 1.0)
    floor, remaining, statistics = 0.0, np.ones(len(case), bool), observed
    while comparison.informative.any():
        scaled = comparison.common_scale(statistics)
        largest = comparison.common_scale(shuffled).max(axis=1, keepdims=True)
        # Adjusted p-values never fall from one step to the next.
        step = np.maximum(floor, at_least_as_large(largest, scaled))
        adjusted[comparison.informative] = step[comparison.informative]
        floor = float(step.min())
        if floor > level:
            break
        named = scaled >= scaled.max() - TIE * (1 + abs(scaled.max()))
        remaining &= ~named[rater]
        kept = np.isin(np.arange(raters), rater[remaining])
        adjusted[kept] = 1.0  # what they showed was beside those now set aside
        comparison = compare_raters(
            case[remaining], rater[remaining], label[remaining], raters, classes
        )
        statistics, shuffled = comparison.observed(), comparison.shuffled(seeds)
    return StepDown(float(overall), float(p_overall), observed, p_values, adjusted)
