"""CPU loops of the verdict: what raters said minus what was predicted, per channel and cell.

A cell holds the cases whose event has a probability between two fixed logits; the first and the
last cell hold probabilities of exactly 0 and 1, whose variance is left open (see
`summaries.deviation_sums`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

__all__ = ["FIELDS", "PLACES", "UNIT_FIELDS", "add_deviations", "add_single_labels", "add_votes"]

Array = Any

FIELDS = 24
"""Σ of w n^m (m = 0, 1), the same times z, the same times μ; w² n^m v (m = -1 … 2);
w³ n^m t (m = -2 … 3); w² n^m (μ-z)² (m = 0 … 2); w² n^m μ(1-μ) (m = 0 … 2);
w⁴ n^m (1-1/n)² v² (m = 0, 4)."""
UNIT_FIELDS = 4
"""Of each resampling unit, Σ of w n^m (μ-z) and of w n^m √v (m = 0, 1)."""
PLACES = 4096
"""Into how many parts of equal length the probabilities are cut to find the cell quickly."""
SUMS = 8
"""1, z, μ, v, t, (μ-z)², μ(1-μ), v²: what is added up of cases of weight 1 with equal raters."""


@njit(inline="always")
def _cell(z: float, edges: Array, places: Array) -> int:
    """Return the cell of a probability: the first is exactly 0, the last exactly 1."""
    if z <= 0.0:
        return 0
    if z >= 1.0:
        return len(edges) + 2
    at = np.uint64(places[np.uint64(z * PLACES)])
    while at < np.uint64(len(edges)) and z >= edges[at]:
        at += np.uint64(1)
    return int(at) + 1


@njit(inline="always")
def _variance(z: float, cell: int, last: int) -> tuple[float, float]:
    """Return variance and third moment of an event, 1 where its probability is exactly 0 or 1."""
    if cell == 0 or cell == last:
        return 1.0, 1.0
    v = z * (1.0 - z)
    return v, v * (1.0 - 2.0 * z)


@njit(inline="always")
def _add(
    z: float, mu: float, gap: float, within: float, v: float, t: float, w: float, n: float,
    at: Array,
) -> None:  # fmt: skip
    """Add one event of a case to the fields of its cell."""
    at[0] += w
    at[1] += w * n
    at[2] += w * z
    at[3] += w * n * z
    at[4] += w * mu
    at[5] += w * n * mu
    term = w * w * v / n
    for m in range(4):
        at[6 + m] += term
        term *= n
    term = w * w * w * t / (n * n)
    for m in range(6):
        at[10 + m] += term
        term *= n
    square, apart = w * w * gap * gap, w * w * within
    for m in range(3):
        at[16 + m] += square
        at[19 + m] += apart
        square *= n
        apart *= n
    shared = w * w * v * (1.0 - 1.0 / n)
    at[22] += shared * shared
    at[23] += shared * shared * n * n * n * n


@njit(inline="always")
def _add_to_unit(gap: float, v: float, w: float, n: float, at: Array) -> None:
    spread = math.sqrt(v)
    at[0] += w * gap
    at[1] += w * n * gap
    at[2] += w * spread
    at[3] += w * n * spread


@njit(nogil=True, cache=True)
def add_deviations(
    probs: Array, predicted: Array, counts: Array, weights: Array, unit: Array, named: int,
    edges: Array, places: Array, table: Array, units: Array,
) -> None:  # fmt: skip
    """Add cases with label histograms (n, K) to `table` (channels, cells, FIELDS).

    The channels are class 1 of two, or the first `named` classes, the predicted one, and all at
    once. `weights` may be empty: all are 1. `unit` (n,) may be empty: then `units` is not touched.
    """
    rows, classes = probs.shape
    last = len(edges) + 2
    weighted, by_unit = weights.size > 0, unit.size > 0
    for i in range(rows):
        w = weights[i] if weighted else 1.0
        n = 0.0
        for k in range(classes):
            n += counts[i, k]
        u = unit[i] % len(units) if by_unit else 0
        events = 1 if classes == 2 else named + 1
        for c in range(events):
            k = 1 if classes == 2 else c if c < named else predicted[i]
            z, mu = float(probs[i, k]), counts[i, k] / n
            cell = _cell(z, edges, places)
            v, t = _variance(z, cell, last)
            _add(z, mu, mu - z, mu * (1.0 - mu), v, t, w, n, table[c, cell])
            if by_unit:
                _add_to_unit(mu - z, v, w, n, units[u, c, cell])
        if classes == 2 or probs[i, predicted[i]] >= 1.0:
            continue
        z = mu = square = cube = within = 0.0
        for k in range(classes):
            p, share = float(probs[i, k]), counts[i, k] / n
            z += p * p
            mu += p * share
            cube += p * p * p
            within += share * p * p
        for k in range(classes):
            square += float(probs[i, k]) * (float(probs[i, k]) - z) ** 3
        v = max(cube - z * z, 0.0)
        _add(z, mu, mu - z, within - mu * mu, v, square, w, n, table[events, 1])
        if by_unit:
            _add_to_unit(mu - z, v, w, n, units[u, events, 1])


@njit(nogil=True, cache=True)
def add_single_labels(
    probs: Array, predicted: Array, labels: Array, unit: Array, named: int,
    edges: Array, places: Array, table: Array, units: Array,
) -> None:  # fmt: skip
    """Add cases of weight 1 with one label each (n,): the same in a third of the time."""
    rows, classes = probs.shape
    channels, cells, _ = table.shape
    last, by_unit = len(edges) + 2, unit.size > 0
    sums = np.zeros(channels * cells * SUMS)
    for i in range(rows):
        u = unit[i] % len(units) if by_unit else 0
        events = 1 if classes == 2 else named + 1
        for c in range(events):
            k = 1 if classes == 2 else c if c < named else predicted[i]
            z, mu = float(probs[i, k]), 1.0 if labels[i] == k else 0.0
            cell = _cell(z, edges, places)
            v, t = _variance(z, cell, last)
            _sum(z, mu, v, t, sums, c * cells + cell)
            if by_unit:
                _add_to_unit(mu - z, v, 1.0, 1.0, units[u, c, cell])
        if classes == 2 or probs[i, predicted[i]] >= 1.0:
            continue
        z = cube = fourth = 0.0
        for k in range(classes):
            p = float(probs[i, k])
            z += p * p
            cube += p * p * p
            fourth += p * p * p * p
        mu = float(probs[i, labels[i]])
        v = max(cube - z * z, 0.0)
        t = fourth - 3.0 * z * cube + 2.0 * z * z * z
        _sum(z, mu, v, t, sums, events * cells + 1)
        if by_unit:
            _add_to_unit(mu - z, v, 1.0, 1.0, units[u, events, 1])
    _add_sums(sums, 1.0, table)


@njit(nogil=True, cache=True)
def add_votes(
    positive: Array, votes: Array, raters: int, edges: Array, places: Array, table: Array,
    unit: Array,
) -> None:  # fmt: skip
    """Add voxels of two classes: the probability of class 1, and how many of the raters chose it.

    `unit` (cells, UNIT_FIELDS) is that of the image.
    """
    cells, last = table.shape[1], len(edges) + 2
    sums = np.zeros(cells * SUMS)
    spread = np.zeros(cells)
    for i in range(len(positive)):
        z, mu = float(positive[i]), votes[i] / raters
        cell = _cell(z, edges, places)
        v, t = _variance(z, cell, last)
        at = _sum(z, mu, v, t, sums, cell)
        sums[at + np.uint64(6)] += mu * (1.0 - mu)
        sums[at + np.uint64(7)] += v * v
        spread[cell] += math.sqrt(v)
    _add_sums(sums, float(raters), table)
    if unit.size > 0:
        for c in range(cells):
            gap = sums[c * SUMS + 2] - sums[c * SUMS + 1]
            unit[c, 0] += gap
            unit[c, 1] += raters * gap
            unit[c, 2] += spread[c]
            unit[c, 3] += raters * spread[c]


@njit(inline="always")
def _sum(z: float, mu: float, v: float, t: float, sums: Array, cell: int) -> Any:
    """Add one event to flat sums; return where."""
    # An index without a sign needs no look whether it counts from the end.
    at = np.uint64(cell) * np.uint64(SUMS)
    gap = mu - z
    sums[at] += 1.0
    sums[at + np.uint64(1)] += z
    sums[at + np.uint64(2)] += mu
    sums[at + np.uint64(3)] += v
    sums[at + np.uint64(4)] += t
    sums[at + np.uint64(5)] += gap * gap
    return at


@njit(nogil=True, cache=True)
def _add_sums(sums: Array, n: float, table: Array) -> None:
    """Add the sums of cases of weight 1 that have n labels each."""
    cells = table.shape[1]
    for j in range(len(sums) // SUMS):
        at, one = table[j // cells, j % cells], sums[j * SUMS : (j + 1) * SUMS]
        for f in range(3):
            at[2 * f] += one[f]
            at[2 * f + 1] += n * one[f]
        for m in range(4):
            at[6 + m] += one[3] * n ** (m - 1)
        for m in range(6):
            at[10 + m] += one[4] * n ** (m - 2)
        for m in range(3):
            at[16 + m] += one[5] * n**m
            at[19 + m] += one[6] * n**m
        shared = (1.0 - 1.0 / n) ** 2 * one[7]
        at[22] += shared
        at[23] += shared * n**4
