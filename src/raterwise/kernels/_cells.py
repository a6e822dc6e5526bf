"""CPU loops of the fine cells: sums of scored cases per cell, in memory that does not grow."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["FINE_FIELDS", "UNIT_FIELDS", "add_cell_sums"]

Array = Any

FINE_FIELDS = 10
"""Sums kept per fine cell, with d = z - lower edge:
1, w, w², w μ, w μ², w² μ, w d, w d², w μ d, w μ d²."""
UNIT_FIELDS = 4
"""Sums kept per coarse cell and resampling unit: 1, w, w z, w μ."""


@njit(inline="always")
def _cell_of(score: float, edges: Array, first: Array) -> int:
    """Return the fine cell of a score: its equal cell by a product, then by halving within.

    `edges` are those that scores of its type are compared with.
    """
    last = len(edges) - 2
    if score >= edges[last]:  # where saturated confidences are
        return last
    equal = len(first) - 1
    i = min(max(int(score * equal), 0), equal - 1)
    while i > 0 and score < edges[first[i]]:
        i -= 1
    while i + 1 < equal and score >= edges[first[i + 1]]:
        i += 1
    low, high = int(first[i]), int(first[i + 1])
    while high - low > 1:
        middle = (low + high) // 2
        if score >= edges[middle]:
            low = middle
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def add_cell_sums(
    z: Array, mu: Array, weights: Array, channel: Array, unit: Array, edges: Array,
    compared: Array, first: Array, coarse_of: Array, fine: Array, lowest: Array, highest: Array,
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
        u = unit[i] if has_unit else 0
        for column in range(columns):
            c = channel[i] if has_channel else column
            score, m = float(z[i, column]), mu[i, column]
            at = _cell_of(score, compared, first)
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
