"""CPU loops over chunks of cases: float64 sums whatever the input type, the GIL released.

Compiled on first use and cached on disk. Threads run them over chunks (see `summaries.one_pass`);
`parallel=True` would cost seconds of compilation and buy nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from raterwise.kernels._four import add_four

Array = Any

FIELDS = 8
"""Sums kept per bin: cases, w, w², w z, w μ, w (μ-z)², w μ², w v. One cache line."""
SUMS = 4
"""Of single labels of weight 1, what differs: cases, z, (μ-z)², μ."""
COPIES = 4
MOST_COPIED = 8192
"""Sums in a table of which copies still fit the cache."""


@njit(nogil=True, cache=True)
def read_rows(probs: Array, tolerance: float, confidence: Array, predicted: Array) -> int:
    """Fill in the largest probability and its class; return the first bad row, or -1."""
    rows, classes = probs.shape
    for i in range(rows):
        best = probs[i, 0]
        total = float(best)
        least = best
        arg = 0
        for k in range(1, classes):
            p = probs[i, k]
            total += p
            if p > best:
                best = p
                arg = k
            least = min(least, p)
        # Written so that NaN, which compares false with everything, is bad too.
        if not (abs(total - 1.0) <= tolerance and least >= 0.0 and best <= 1.0):
            return i
        confidence[i] = best
        predicted[i] = arg
    return -1


@njit(inline="always")
def _bin_of(score: float, bins: int, edges: Array) -> Any:
    """Return the bin of a score: `[a, b)`, the last one closed."""
    b = np.uint64(min(max(int(score * bins), 0), bins - 1))
    # The product may round across an edge, and edges need not be equal: step to the bin. What is
    # nearly never true is asked first, so that the processor guesses right.
    one = np.uint64(1)
    while score >= edges[b + one] and b + one < np.uint64(bins):
        b += one
    while score < edges[b] and b > np.uint64(0):
        b -= one
    return b


@njit(nogil=True, cache=True)
def add_bin_sums(
    z: Array, mu: Array, v: Array, weights: Array, channel: Array, unit: Array,
    edges: Array, table: Array,
) -> None:  # fmt: skip
    """Add scored cases (n, C) to `table` (units, channels, bins, FIELDS).

    `v`, `channel` and `unit` may be empty: no correction, channel = column, one unit.
    """
    rows, columns = z.shape
    _, channels, bins, _ = table.shape
    has_v, has_channel, has_unit = v.size > 0, channel.size > 0, unit.size > 0
    # Cases with one score each are summed in copies of the table: an addition to a bin need not
    # wait for the one before, which with saturated confidences was to the same bin.
    copied = columns == 1 and not has_unit and table.size <= MOST_COPIED
    sums = np.zeros(COPIES * table.size) if copied else table.reshape(-1)
    for i in range(rows):
        w = weights[i]
        if w == 0.0:  # such a case is none, even where its score is infinite
            continue
        first = (unit[i] if has_unit else i % COPIES if copied else 0) * channels
        if has_channel:
            first += channel[i]
        for c in range(columns):
            score = float(z[i, c])
            m = mu[i, c]
            d = m - score
            b = _bin_of(score, bins, edges)
            # A flat index: a view of the bin's fields would be counted in and out, at ten times
            # the cost of the sums themselves.
            at = (np.uint64((first + c) * bins) + b) * np.uint64(FIELDS)
            sums[at] += 1.0
            sums[at + np.uint64(1)] += w
            sums[at + np.uint64(2)] += w * w
            sums[at + np.uint64(3)] += w * score
            sums[at + np.uint64(4)] += w * m
            sums[at + np.uint64(5)] += w * d * d
            sums[at + np.uint64(6)] += w * m * m
            if has_v:
                sums[at + np.uint64(7)] += w * v[i, c]
    if copied:
        _add_copies(sums, table.reshape(-1))


@njit(nogil=True, cache=True)
def add_single_labels(
    z: Array, said: Array, channel: Array, unit: Array, edges: Array, table: Array
) -> None:
    """Add cases of weight 1 whose event is that of the column `said` (n,), if that is a column.

    The same as `add_bin_sums` in half the time: sums that are equal are kept once, which pays
    where the cases are more than the cells of the table.
    """
    rows, columns = z.shape
    units, channels, bins, _ = table.shape
    has_channel, has_unit = channel.size > 0, unit.size > 0
    cells = units * channels * bins
    copies = COPIES if columns == 1 and not has_unit else 1  # see `add_bin_sums`
    sums = np.zeros(copies * cells * SUMS)
    for i in range(rows):
        first = (unit[i] if has_unit else i % copies) * channels
        if has_channel:
            first += channel[i]
        for c in range(columns):
            score, hit = float(z[i, c]), 1.0 if said[i] == c else 0.0
            gap = hit - score
            at = (np.uint64((first + c) * bins) + _bin_of(score, bins, edges)) * np.uint64(SUMS)
            add_four(sums, at, 1.0, score, gap * gap, hit)
    out = table.reshape(-1)
    for j in range(copies * cells):
        to, at = j % cells * FIELDS, j * SUMS
        if sums[at] == 0.0:  # perhaps of a unit that another thread adds to
            continue
        for f in range(3):
            out[to + f] += sums[at]
        out[to + 3] += sums[at + 1]
        out[to + 4] += sums[at + 3]
        out[to + 5] += sums[at + 2]
        out[to + 6] += sums[at + 3]


@njit(nogil=True, cache=True)
def _add_copies(copies: Array, table: Array) -> None:
    """Add the copies up, in a fixed order."""
    size = len(table)
    for i in range(size):
        for copy in range(COPIES):
            table[i] += copies[copy * size + i]


@njit(nogil=True, cache=True)
def gaussian_shares(means: Array, sds: Array, weights: Array, edges: Array, share: Array) -> None:
    """Fill in how much of each case's Gaussian mixture (n, components) lies in each bin.

    Shares are normalised over the bins (RECE eqs 6-7), so what falls outside [0, 1] is spread in
    proportion.
    """
    rows, components = means.shape
    bins = len(edges) - 1
    for i in range(rows):
        total = 0.0
        for b in range(bins):
            share[i, b] = 0.0
        for c in range(components):
            scale = sds[i, c] * math.sqrt(2.0)
            below = math.erf((edges[0] - means[i, c]) / scale)
            for b in range(bins):
                above = math.erf((edges[b + 1] - means[i, c]) / scale)
                part = 0.5 * weights[i, c] * (above - below)
                share[i, b] += part
                total += part
                below = above
        for b in range(bins):
            share[i, b] /= total


@njit(nogil=True, cache=True)
def add_soft_bin_sums(
    z: Array, mu: Array, weights: Array, share: Array, unit: Array, edges: Array, table: Array
) -> None:
    """Add scored cases (n,) to `table` (units, bins, FIELDS), spread over the bins by `share`.

    The first field counts the cases whose score itself lies in the bin.
    """
    rows, bins = share.shape
    has_unit = unit.size > 0
    for i in range(rows):
        if weights[i] == 0.0:
            continue
        u = unit[i] if has_unit else 0
        score = z[i]
        table[u, _bin_of(score, bins, edges), 0] += 1.0
        for k in range(bins):
            s = weights[i] * share[i, k]
            table[u, k, 1] += s
            table[u, k, 3] += s * score
            table[u, k, 4] += s * mu[i]


@njit(nogil=True, cache=True)
def concordance(upper: Array, lower: Array) -> float:
    """Return how many pairs have upper > lower, ties half, of two sorted samples."""
    total = 0.0
    below, upto = 0, 0
    for i in range(len(upper)):
        value = upper[i]
        while below < len(lower) and lower[below] < value:
            below += 1
        upto = max(upto, below)
        while upto < len(lower) and lower[upto] <= value:
            upto += 1
        total += 0.5 * (below + upto)
    return total
