"""What is permuted when raters are compared: whole blocks of labels, one per patient and rater.

All that a rater says about one patient is a block and moves as one, so that the labels of a block
may depend on each other in any way. Without patients every case is a patient of its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterwise.kernels._threads import in_threads
from raterwise.types import FloatArray, Integers

BATCH_VALUES = 1 << 20
"""How many sums a thread holds at a time while blocks change hands: 8 MB."""
BATCH_PERMUTATIONS = 32
"""And how many permutations at most, so that there is work for every thread."""
MOST_TRADING = 6
"""Blocks of a pool whose arrangements are listed: there are 720."""
MANY_ALIKE = 32
"""From how many equal pools on the arrangements are counted, not the pools."""
TIE = 1e-7
"""Statistics this close, relatively, are the same: permutations that only rounding sets apart."""
ROUNDING = 1e-9
"""Deviations below this are 0: labels come in whole numbers."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The deviation of each block from the other raters' labels of the same cases, and its trades.

    The blocks of a pool trade places. A pool that shares cases with raters outside of it has in
    addition a random sign, one for the whole patient.
    """

    first: Integers
    """(C + 1,): the blocks of pool c are first[c] … first[c+1] - 1."""
    flip: Integers
    """(C,): 0 for a pool without a sign; pools with the same number share theirs."""
    rater: Integers
    """(B,): whose block it is."""
    deviation: FloatArray
    """(B, K): own labels minus the others' share, summed over the cases of the block."""
    whitening: FloatArray
    """(R, K-1, K-1): maps a rater's deviations to uncorrelated ones of variance 1 (or 0)."""
    rank: Integers
    """(R,): how many of them have variance 1: at most K - 1; 0 where nothing can be said."""
    ratings: Integers
    """(R,): how many of each rater's labels are compared."""

    @property
    def informative(self) -> NDArray[np.bool_]:
        """(R,): which raters the data say anything about."""
        return self.rank > 0

    @property
    def totals(self) -> FloatArray:
        """(R, K): the deviation d_r of each rater over all its blocks."""
        columns = [np.bincount(self.rater, d, len(self.rank)) for d in self.deviation.T]
        return np.stack(columns, axis=1)

    def statistics(self, totals: FloatArray) -> FloatArray:
        """T_r = d_rᵀ V_r⁺ d_r for deviations (..., R, K-1): χ² with rank degrees, roughly."""
        lead = totals.shape[:-2]
        by_rater = np.moveaxis(totals, -2, 0).reshape(len(self.rank), -1, totals.shape[-1])
        squares: FloatArray = ((by_rater @ self.whitening) ** 2).sum(axis=-1)
        return np.moveaxis(squares.reshape(-1, *lead), 0, -1)

    def observed(self) -> FloatArray:
        """(R,): the statistic of each rater."""
        return self.statistics(self.totals[:, :-1])  # the classes sum to 0: one follows

    def permuted(self, seeds: NDArray[np.uint64]) -> FloatArray:
        """(P, R): the statistics after random trades, one permutation per seed."""
        from raterwise.kernels import _agreement as kernels

        raters, columns = len(self.rank), self.deviation.shape[1] - 1
        like, many = alike_pools(self.first, self.flip, self.rater, self.deviation[:, :-1])
        sizes = np.diff(self.first)
        often = [(pool, number) for pool, number in many if sizes[pool] <= MOST_TRADING]
        known = np.isin(like, [pool for pool, _ in often])
        first, blocks = _chosen(self.first, ~known)
        flip, rater = self.flip[~known], self.rater[blocks]
        values = np.ascontiguousarray(self.deviation[blocks, :-1])
        largest = int(np.diff(first).max(initial=1))
        step = min(BATCH_PERMUTATIONS, max(1, BATCH_VALUES // (raters * columns)))

        def batch(start: int) -> FloatArray:
            some = seeds[start : start + step]
            scratch, table = np.empty(largest, np.int64), np.zeros((len(some), raters, columns))
            kernels.sum_traded_blocks(first, flip, rater, values, some, scratch, table)
            return table

        tables = np.concatenate(in_threads(batch, range(0, len(seeds), step)))
        random = np.random.default_rng(seeds[:1])
        for pool, number in often:
            tables += self._traded_often(pool, number, len(seeds), random)
        return self.statistics(tables)

    def _traded_often(
        self, pool: int, number: int, permutations: int, random: np.random.Generator
    ) -> FloatArray:
        """Return (P, R, D): the sums of so many equal pools after random trades in each of them.

        How often each arrangement of the blocks comes up among them is multinomial: there are far
        fewer arrangements than pools.
        """
        blocks = slice(self.first[pool], self.first[pool + 1])
        who, values = self.rater[blocks], self.deviation[blocks, :-1]
        kinds, kind = np.unique(values, axis=0, return_inverse=True)
        orders = np.array(list(itertools.permutations(kind.ravel().tolist())))
        orders, copies = np.unique(orders, axis=0, return_counts=True)
        sums = np.zeros((len(orders), len(self.rank), values.shape[1]))
        for place, rater in enumerate(who):
            sums[:, rater] += kinds[orders[:, place]]
        drawn = random.multinomial(number, copies / copies.sum(), permutations)
        total = drawn.astype(np.float64) @ sums.reshape(len(orders), -1)
        return np.asarray(total.reshape(permutations, *sums.shape[1:]))

    def overall(self, statistics: FloatArray) -> FloatArray:
        """(R-1)/R Σ_r T_r over the R raters that can be judged.

        Where all raters label all cases and no patients are given this is the generalised
        Cochran-Mantel-Haenszel statistic with cases as strata (Landis, Heyman & Koch 1978):
        Cochran's Q for two classes, the Stuart-Maxwell statistic for two raters.
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


def alike_pools(
    first: Integers, flip: Integers, rater: Integers, values: FloatArray
) -> tuple[Integers, tuple[tuple[int, int], ...]]:
    """Find pools of the same raters and deviations, which trade alike.

    Return (C,) the first pool like each one, and of many alike the first and how many these are;
    those with a sign of their own are not.
    """
    random = np.random.default_rng(1)
    odd = random.integers(2**63, size=values.shape[1] + 1, dtype=np.uint64) * 2 + 1
    bits = (np.round(values, 9) + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(29))) * odd[:-1]
        said, who = mixed.sum(axis=1, dtype=np.uint64), (rater.astype(np.uint64) + 1) * odd[-1]
        # Sums, so that it makes no difference who in the pool has which of the values.
        code = [(one ^ (one >> np.uint64(31))) * odd[i] for i, one in enumerate((said, who), -2)]
        if not len(rater):
            return np.empty(0, np.int64), ()
        sums = [np.add.reduceat(one ^ (one >> np.uint64(33)), first[:-1]) for one in code]
        pools = sums[0] + (sums[1] ^ (sums[1] >> np.uint64(30))) * odd[0]
    _, begin, kind, number = np.unique(
        pools, return_index=True, return_inverse=True, return_counts=True
    )
    many = (number >= MANY_ALIKE) & (flip[begin] == 0)
    often = zip(begin[many].tolist(), number[many].tolist(), strict=True)
    return begin[kind], tuple(often)


def _chosen(first: Integers, pools: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return where the chosen pools begin among their own blocks, and these blocks."""
    sizes = np.diff(first)
    blocks = np.flatnonzero(np.repeat(pools, sizes))
    return np.concatenate(([0], np.cumsum(sizes[pools]))), blocks


def compare_raters(
    case: Integers, rater: Integers, label: Integers, patient: Integers, raters: int, classes: int
) -> Comparison:
    """Return the comparison of raters 0 … R-1, from one entry of each array per rating.

    Only cases that at least two raters labelled may come here. A rater with m of the n labels of a
    case, whose class frequencies are f, deviates there from the others by
    own - m (n f - own) / (n - m) = n / (n - m) (own - m f). Blocks of patients on whom all raters
    agree are left out; a rater with fewer than two blocks cannot be judged.
    """
    _, case = np.unique(case, return_inverse=True)
    size = np.bincount(case)
    _, pair, m = np.unique(
        rater.astype(np.int64) * len(size) + case, return_inverse=True, return_counts=True
    )
    weight = size[case] / (size[case] - m[pair])
    known, block = np.unique(patient.astype(np.int64) * raters + rater, return_inverse=True)
    deviation = np.empty((len(known), classes))
    for k in range(classes):  # one class at a time: (ratings, K) need not fit
        hit = label == k
        share = np.bincount(case, hit, len(size)) / size
        deviation[:, k] = np.bincount(block, weight * (hit - share[case]), len(known))
    deviation[np.abs(deviation) < ROUNDING] = 0
    pool, flip = _pools(known // raters, block, case, size)
    speaks = np.bincount(pool, deviation.any(axis=1))[pool] > 0
    order = np.flatnonzero(speaks)[np.argsort(pool[speaks], kind="stable")]
    pools, begin = np.unique(pool[order], return_index=True)
    first, who, deviation = np.append(begin, len(order)), (known % raters)[order], deviation[order]
    covariance = _covariance(first, who, deviation[:, :-1], raters)
    covariance[np.bincount(who, minlength=raters) < 2] = 0
    whitening, rank = _whiten(covariance)
    number = np.bincount(rater, minlength=raters)
    return Comparison(first, flip[pools], who, deviation, whitening, rank, number)


def _pools(
    patient: Integers, block: Integers, case: Integers, size: Integers
) -> tuple[Integers, Integers]:
    """Return the pool of each block, pools in the order of patients, and the sign of each pool.

    A pool are the raters who labelled the same cases of a patient. It needs no sign where nobody
    outside of it labelled any of these cases; then the deviations of the pool sum to 0.
    """
    # The sum of random numbers of its cases tells a set of cases from any other, but for a chance
    # of 2⁻⁶⁴; it adds up without listing anybody's cases. Twice the same case is another set.
    code = np.random.default_rng(0).integers(2**64, size=len(size), dtype=np.uint64)
    pattern = np.zeros(len(patient), np.uint64)
    np.add.at(pattern, block, code[case])
    _, pattern_number = np.unique(pattern, return_inverse=True)
    keys, pool = np.unique(
        patient.astype(np.int64) * len(patient) + pattern_number, return_inverse=True
    )
    labelled, inside = np.unique(pool[block] * len(size) + case, return_counts=True)
    outsiders = size[labelled % len(size)] > inside
    shares = np.bincount(labelled // len(size), outsiders, len(keys)) > 0
    return pool, np.where(shares, keys // len(patient) + 1, 0)


def _covariance(first: Integers, who: Integers, value: FloatArray, raters: int) -> FloatArray:
    """Return (R, D, D): the covariance of each rater's sum of blocks over all trades and signs.

    Each of a rater's blocks may come to be any of its pool, and its mean is 0: by the sign, or
    because the blocks of the pool sum to 0.
    """
    blocks = np.diff(first)
    columns = value.shape[1]
    covariance = np.zeros((raters, columns, columns))
    if len(value) == 0:
        return covariance
    for k in range(columns):
        mean = np.add.reduceat(value * value[:, k : k + 1], first[:-1], axis=0) / blocks[:, None]
        np.add.at(covariance[:, k], who, np.repeat(mean, blocks, axis=0))
    return covariance


def _whiten(covariance: FloatArray) -> tuple[FloatArray, Integers]:
    """Return W with W Wᵀ = V⁺ for each V of (R, D, D), and the rank of each V."""
    values, vectors = np.linalg.eigh(covariance)
    # Rounding leaves about 1e-15 of the largest eigenvalue where a class never deviates, while
    # rare classes stay far above 1e-10.
    real = values > 1e-10 * values[:, -1:]
    roots = np.where(real, 1 / np.sqrt(np.where(real, values, 1)), 0)
    return vectors * roots[:, None, :], real.sum(axis=-1)


def at_least_as_large(
    permuted: FloatArray, observed: FloatArray, margin: float | FloatArray | None = None
) -> FloatArray:
    """p = (1 + #{permuted >= observed}) / (1 + P), over the first axis.

    What is no more than `margin` below is as large; by default what rounding could set apart.
    """
    if margin is None:
        margin = TIE * (1 + np.abs(np.where(np.isfinite(observed), observed, 0)))
    reached = (permuted >= observed - margin).sum(axis=0)
    return np.asarray((1 + reached) / (1 + len(permuted)))


def step_down(
    permuted: FloatArray, observed: FloatArray, margin: float | FloatArray | None = None
) -> FloatArray:
    """Return (R,): p-values of statistics adjusted for their number by step-down max-T.

    The largest statistic is compared with the largest of all permuted ones, the next with the
    largest of those that remain, and so on; an adjusted p-value is never below that of a statistic
    before it (Westfall & Young 1993, algorithm 4.1), nor below the unadjusted one.

    >>> step_down(np.array([[1.0, 2.0], [0.0, 0.5], [2.0, 0.0]]), np.array([3.0, 1.0]))
    array([0.25, 0.5 ])
    """
    order = np.argsort(-observed, kind="stable")
    near = None if margin is None else np.broadcast_to(margin, observed.shape)[order]
    largest = np.maximum.accumulate(permuted[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.empty(len(observed))
    adjusted[order] = np.maximum.accumulate(at_least_as_large(largest, observed[order], near))
    return adjusted
