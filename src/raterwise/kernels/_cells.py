"""CPU loops of the fine cells: sums of scored cases per cell, in memory that does not grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from raterwise.kernels._four import add_four

Array = Any

FINE_FIELDS = 10
"""Sums kept per fine cell, with d = z - lower edge:
1, w, w², w μ, w μ², w² μ, w d, w d², w μ d, w μ d²."""
UNIT_FIELDS = 4
"""Sums kept per coarse cell and resampling unit: 1, w, w z, w μ."""
PLACES = 1 << 16
"""Into how many parts of equal length the scores are cut to find the cell quickly."""
BLOCK = 64
"""Scores between finding their cells and adding to them, which waits for the memory."""
SUMS = 8
"""Of single labels of weight 1, what differs: 1, μ, d, d², μ d, μ d², least d, largest d."""


@njit(inline="always")
def _cell_of(score: float, edges: Array, places: Array) -> Any:
    """Return the fine cell of a score: `places` has the cell at each of its PLACES.

    Halving finds it among those up to the next place: nearly always there is one more at most, so
    that the first step is the last and the processor guesses right.
    """
    one = np.uint64(1)
    z = min(max(score, 0.0), 1.0)
    place = np.uint64(int(z * PLACES))
    low = np.uint64(places[place])
    size = np.uint64(places[place + one]) - low + one
    while True:
        half = size >> one
        low += half * np.uint64(z >= edges[low + half])
        size -= half
        if size <= one:
            return low


@njit(nogil=True, cache=True)
def add_cell_sums(
    z: Array, mu: Array, weights: Array, channel: Array, unit: Array, edges: Array,
    compared: Array, places: Array, coarse_of: Array, fine: Array, lowest: Array, highest: Array,
    per_unit: Array,
) -> None:  # fmt: skip
    """Add scored cases (n, C) to the fine cells and to the coarse cells of their units.

    Cells are found by the edges that scores are `compared` with; distances are from the true ones.
    `fine` is (channels, cells, FINE_FIELDS), `lowest` and `highest` (channels, cells) are the
    extreme distances from the lower edge, `per_unit` is (units, channels, coarse, UNIT_FIELDS).
    `channel` and `unit` may be empty: channel = column, one unit.
    """
    rows, columns = z.shape
    has_channel, has_unit = channel.size > 0, unit.size > 0
    for i in range(rows):
        w = weights[i]
        if w == 0.0:
            continue
        u, first = unit[i] if has_unit else 0, channel[i] if has_channel else 0
        for column in range(columns):
            c = first + column
            score, m = float(z[i, column]), mu[i, column]
            at = _cell_of(score, compared, places)
            d = score - edges[at]
            wd, wm = w * d, w * m
            fine[c, at, 0] += 1.0
            fine[c, at, 1] += w
            fine[c, at, 2] += w * w
            fine[c, at, 3] += wm
            fine[c, at, 4] += wm * m
            fine[c, at, 5] += w * wm
            fine[c, at, 6] += wd
            fine[c, at, 7] += wd * d
            fine[c, at, 8] += wm * d
            fine[c, at, 9] += wm * d * d
            lowest[c, at] = min(lowest[c, at], d)
            highest[c, at] = max(highest[c, at], d)
            k = coarse_of[at]
            per_unit[u, c, k, 0] += 1.0
            per_unit[u, c, k, 1] += w
            per_unit[u, c, k, 2] += w * score
            per_unit[u, c, k, 3] += wm


@njit(nogil=True, cache=True)
def add_single_labels(
    z: Array, said: Array, channel: Array, unit: Array, edges: Array, compared: Array,
    places: Array, coarse_of: Array, fine: Array, lowest: Array, highest: Array, per_unit: Array,
) -> None:  # fmt: skip
    """Add cases of weight 1 whose event is that of the column `said` (n,), if that is a column.

    The same as `add_cell_sums` with each sum kept once, and all of a cell in one cache line.
    """
    rows, columns = z.shape
    channels, cells, _ = fine.shape
    coarse = per_unit.shape[2]
    has_channel, has_unit = channel.size > 0, unit.size > 0
    by_unit, sums = per_unit.reshape(-1), np.zeros(channels * cells * SUMS)
    for j in range(channels * cells):
        sums[j * SUMS + 6], sums[j * SUMS + 7] = np.inf, -np.inf
    together = max(BLOCK // columns, 1)
    block = np.empty((together * columns, 3))
    into = np.empty((together * columns, 2), np.uint64)
    for start in range(0, rows, together):
        size = 0
        for i in range(start, min(start + together, rows)):
            u, first = unit[i] if has_unit else 0, channel[i] if has_channel else 0
            for column in range(columns):
                c = first + column
                score = float(z[i, column])
                cell = _cell_of(score, compared, places)
                block[size, 0], block[size, 1] = score, 1.0 if said[i] == column else 0.0
                block[size, 2] = score - edges[cell]
                into[size, 0] = (np.uint64(c * cells) + cell) * np.uint64(SUMS)
                to = np.uint64((u * channels + c) * coarse) + np.uint64(coarse_of[cell])
                into[size, 1] = to * np.uint64(UNIT_FIELDS)
                size += 1
        for j in range(size):
            at, hit, d = into[j, 0], block[j, 1], block[j, 2]
            add_four(sums, at, 1.0, hit, d, d * d)
            sums[at + np.uint64(4)] += hit * d
            sums[at + np.uint64(5)] += hit * d * d
            sums[at + np.uint64(6)] = min(sums[at + np.uint64(6)], d)
            sums[at + np.uint64(7)] = max(sums[at + np.uint64(7)], d)
            add_four(by_unit, into[j, 1], 1.0, 1.0, block[j, 0], hit)
    for j in range(channels * cells):
        one, c, cell = sums[j * SUMS : (j + 1) * SUMS], j // cells, j % cells
        for f in range(3):
            fine[c, cell, f] += one[0]
            fine[c, cell, 3 + f] += one[1]
        for f in range(4):
            fine[c, cell, 6 + f] += one[2 + f]
        lowest[c, cell] = min(lowest[c, cell], one[6])
        highest[c, cell] = max(highest[c, cell], one[7])
