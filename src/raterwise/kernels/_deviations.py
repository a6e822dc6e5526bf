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

from raterwise.kernels._four import add_four

Array = Any

FIELDS = 24
"""Σ of w n^m (m = 0, 1), the same times z, the same times μ; w² n^m v (m = -1 … 2);
w³ n^m t (m = -2 … 3); w² n^m (μ-z)² (m = 0 … 2); w² n^m μ(1-μ) (m = 0 … 2);
w⁴ n^m (1-1/n)² v² (m = 0, 4)."""
UNIT_FIELDS = 4
"""Of each resampling unit, Σ of w n^m (μ-z) and of w n^m √v (m = 0, 1)."""
PLACES = 16384
"""Into how many parts of equal length the probabilities are cut to find the cell quickly."""
SUMS = 8
"""1, z, μ, v, t, (μ-z)², μ(1-μ), v²: what is added up of cases of weight 1 with equal raters."""


@njit(inline="always")
def _cell(z: float, edges: Array, places: Array) -> Any:
    """Return the cell of a probability: the first is exactly 0, the last exactly 1.

    No place has two edges inside, so that there is nothing to search and to guess.
    """
    at = np.uint64(places[np.uint64(int(z * PLACES))])
    return at + np.uint64(z >= edges[at]) + np.uint64(z > 0.0)


@njit(inline="always")
def _variance(z: float, cell: int, last: int) -> tuple[float, float]:
    """Return variance and third moment of an event, 1 where its probability is exactly 0 or 1."""
    if cell == 0 or cell == last:
        return 1.0, 1.0
    v = z * (1.0 - z)
    return v, v * (1.0 - 2.0 * z)


@njit(inline="always")
def _sums_of_classes(probs: Array, weights: Array) -> tuple[float, float, float, float]:
    """Return Σ p / ω, Σ p ω, Σ p ω² and Σ ω of a case, with the weights ω of the classes."""
    inverse = heavy = squares = total = 0.0
    for k in range(len(weights)):
        p, weight = float(probs[k]), weights[k]
        inverse += p / weight
        heavy += p * weight
        squares += p * weight * weight
        total += weight
    return inverse, heavy, squares, total


@njit(inline="always")
def _sampled(
    z: float, own: float, sums: tuple[float, float, float, float], classes: int, cell: int,
    last: int,
) -> tuple[float, float]:  # fmt: skip
    """Return variance and third moment of a label that weighs what its class does.

    Cases of class y were kept with a probability of 1 / ω_y. Of one that was kept the label is y
    with probability (p_y / ω_y) / Σ p / ω, and its deviation counts ω_y. `own` is ω of the event.
    """
    inverse, heavy, squares, total = sums
    if cell == 0:
        return own / inverse, own * own / inverse
    if cell == last:  # the others are as likely as one another, for all that is known
        other = (total - own) / (classes - 1)
        return own * other, own * other * other
    others, cubes = max(heavy - z * own, 0.0), max(squares - z * own * own, 0.0)
    v = z * (1.0 - z) ** 2 * own + z * z * others
    return v / inverse, (z * (1.0 - z) ** 3 * own * own - z * z * z * cubes) / inverse


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
    probs: Array, predicted: Array, counts: Array, weights: Array, of_classes: Array, unit: Array,
    named: int, edges: Array, places: Array, table: Array, units: Array,
) -> None:  # fmt: skip
    """Add cases with label histograms (n, K) to `table` (channels, cells, FIELDS).

    The channels are class 1 of two, or the first `named` classes, the predicted one, and all at
    once. `weights` may be empty: all are 1. `of_classes` (K,) may be empty; otherwise every case
    has one label, and the weight of its class is a factor of its own. `unit` (n,) may be empty:
    then `units` is not touched.
    """
    rows, classes = probs.shape
    last = len(edges) + 1
    weighted, by_unit, sampled = weights.size > 0, unit.size > 0, of_classes.size > 0
    kept = (1.0, 1.0, 1.0, 1.0)
    for i in range(rows):
        w, own = weights[i] if weighted else 1.0, 1.0
        n = 0.0
        for k in range(classes):
            n += counts[i, k]
            if sampled and counts[i, k] > 0:
                own = of_classes[k]
        if sampled:
            kept = _sums_of_classes(probs[i], of_classes)
        u = unit[i] % len(units) if by_unit else 0
        events = 1 if classes == 2 else named + 1
        for c in range(events):
            k = 1 if classes == 2 else c if c < named else predicted[i]
            z, mu = float(probs[i, k]), counts[i, k] / n
            cell = _cell(z, edges, places)
            v, t = _variance(z, cell, last)
            if sampled:
                v, t = _sampled(z, of_classes[k], kept, classes, cell, last)
                v, t = v / own**2, t / own**3
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
        v = max(cube - z * z, 0.0)
        if sampled:
            v = 0.0
        for k in range(classes):
            p, times = float(probs[i, k]), 1.0
            if sampled:
                times = of_classes[k] / own / own / kept[0]
                v += times * p * (p - z) ** 2
                times *= of_classes[k] / own
            square += times * p * (p - z) ** 3
        _add(z, mu, mu - z, within - mu * mu, v, square, w, n, table[events, 1])
        if by_unit:
            _add_to_unit(mu - z, v, w, n, units[u, events, 1])


@njit(nogil=True, cache=True)
def add_single_labels(
    probs: Array, predicted: Array, labels: Array, unit: Array, named: int,
    edges: Array, places: Array, table: Array, units: Array,
) -> None:  # fmt: skip
    """Add cases of weight 1 with one label each (n,): the same in a fraction of the time."""
    rows, classes = probs.shape
    channels, cells, _ = table.shape
    by_unit, several = unit.size > 0, classes > 2
    sums, cell_of = np.zeros(channels * cells * SUMS), np.zeros(classes, np.uint64)
    first, named = (0, named) if several else (1, 1)
    for i in range(rows):
        u = unit[i] % len(units) if by_unit else 0
        z2 = z3 = z4 = 0.0
        for c in range(classes - first):
            z, mu = float(probs[i, first + c]), 1.0 if labels[i] == first + c else 0.0
            z2 += z * z
            z3 += z * z * z
            z4 += z * z * z * z
            if c < named:
                cell_of[c] = _cell(z, edges, places)
                v = _sum(z, mu, sums, np.uint64(c * cells) + cell_of[c])
                if by_unit:
                    _add_to_unit(mu - z, v or 1.0, 1.0, 1.0, units[u, c, cell_of[c]])
        if several:
            top, said = predicted[i], labels[i]
            z, mu = float(probs[i, top]), 1.0 if said == top else 0.0
            cell = cell_of[top] if named else _cell(z, edges, places)
            v = _sum(z, mu, sums, np.uint64(named * cells) + cell)
            if by_unit:
                _add_to_unit(mu - z, v or 1.0, 1.0, 1.0, units[u, named, cell])
            if z < 1.0:
                mu, v = float(probs[i, said]), max(z3 - z2 * z2, 0.0)
                t = z4 - 3.0 * z2 * z3 + 2.0 * z2 * z2 * z2
                _sum_of(z2, mu, v, t, sums, np.uint64((named + 1) * cells + 1))
                if by_unit:
                    _add_to_unit(mu - z2, v, 1.0, 1.0, units[u, named + 1, 1])
    _add_sums(sums, 1.0, table)


@njit(nogil=True, cache=True)
def add_votes(
    positive: Array, votes: Array, raters: int, edges: Array, places: Array, table: Array,
    unit: Array,
) -> None:  # fmt: skip
    """Add voxels of two classes: the probability of class 1, and how many of the raters chose it.

    `unit` (cells, UNIT_FIELDS) is that of the image.
    """
    cells = table.shape[1]
    sums, spread = np.zeros(cells * SUMS), np.zeros(cells)
    for i in range(len(positive)):
        z, mu = float(positive[i]), votes[i] / raters
        cell = _cell(z, edges, places)
        v = _sum(z, mu, sums, cell)
        at = cell * np.uint64(SUMS)
        sums[at + np.uint64(6)] += mu * (1.0 - mu)
        sums[at + np.uint64(7)] += v * v
        spread[cell] += math.sqrt(v or 1.0)
    _add_sums(sums, float(raters), table)
    if unit.size > 0:
        for c in range(cells):
            gap = sums[c * SUMS + 2] - sums[c * SUMS + 1]
            unit[c, 0] += gap
            unit[c, 1] += raters * gap
            unit[c, 2] += spread[c]
            unit[c, 3] += raters * spread[c]


@njit(inline="always")
def _sum(z: float, mu: float, sums: Array, cell: Any) -> float:
    """Add one event to flat sums; return its variance."""
    v = z * (1.0 - z)
    _sum_of(z, mu, v, v * (1.0 - 2.0 * z), sums, cell)
    return v


@njit(inline="always")
def _sum_of(z: float, mu: float, v: float, t: float, sums: Array, cell: Any) -> None:
    at, gap = cell * np.uint64(SUMS), mu - z
    add_four(sums, at, 1.0, z, mu, v)
    add_four(sums, at + np.uint64(4), t, gap * gap, 0.0, 0.0)  # the others: see `add_votes`


@njit(nogil=True, cache=True)
def _add_sums(sums: Array, n: float, table: Array) -> None:
    """Add the sums of cases of weight 1 that have n labels each."""
    cells = table.shape[1]
    for j in range(len(sums) // SUMS):
        at, one = table[j // cells, j % cells], sums[j * SUMS : (j + 1) * SUMS]
        if j % cells in (0, cells - 1):  # exactly 0 or 1, whose variance is left open: see above
            one[3] = one[4] = one[7] = one[0]
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
