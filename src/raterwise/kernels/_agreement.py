"""CPU loops of rater agreement: sums over label histograms, and blocks that trade places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any

# SplitMix64 (Steele, Lea & Flood 2014): a seed per permutation, so that neither the order in which
# permutations are drawn nor the number of threads changes a digit.
STEP = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(nogil=True, cache=True)
def add_coincidences(counts: Array, weights: Array, unit: Array, table: Array) -> None:
    """Add label histograms (n, K) to the coincidences `table` (units, K, K).

    Case i adds w n_c (n_k - [c = k]) / (n - 1): its ordered pairs of labels by different raters.
    `unit` may be empty: all cases are one unit.
    """
    rows, classes = counts.shape
    for i in range(rows):
        total = 0.0
        for c in range(classes):
            total += counts[i, c]
        if total < 2.0:
            continue
        scale = weights[i] / (total - 1.0)
        u = unit[i] if unit.size > 0 else 0
        for c in range(classes):
            first = float(counts[i, c])
            if first == 0.0:
                continue
            for k in range(classes):
                second = float(counts[i, k]) - (1.0 if k == c else 0.0)
                table[u, c, k] += scale * first * second


@njit(nogil=True, cache=True)
def add_fleiss_sums(counts: Array, weights: Array, unit: Array, table: Array) -> None:
    """Add label histograms (n, K) to `table` (units, 2 + K): w (n-1), w (n - Σ_k n_k²/n), w n_k.

    `unit` may be empty: all cases are one unit.
    """
    rows, classes = counts.shape
    for i in range(rows):
        total = 0.0
        squares = 0.0
        for k in range(classes):
            count = float(counts[i, k])
            total += count
            squares += count * count
        if total < 2.0:
            continue
        row = table[unit[i] if unit.size > 0 else 0]
        w = weights[i]
        row[0] += w * (total - 1.0)
        row[1] += w * (total - squares / total)
        for k in range(classes):
            row[2 + k] += w * counts[i, k]


@njit(nogil=True, cache=True)
def _random_bits(state: Any) -> Any:
    bits = (state ^ (state >> np.uint64(30))) * MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * MIX_2
    return bits ^ (bits >> np.uint64(31))


@njit(nogil=True, cache=True)
def sum_traded_blocks(
    first: Array,
    flip: Array,
    rater: Array,
    values: Array,
    seeds: Array,
    scratch: Array,
    table: Array,
) -> None:
    """Add up each rater's blocks, `table` (seeds, raters, D), with blocks traded within pools.

    The blocks of pool c are first[c] … first[c+1] - 1, their values (blocks, D). Pools with the
    same `flip` above 0 stand side by side and share a random sign; `scratch` has room for the
    largest pool.
    """
    columns = values.shape[1]
    for b in range(len(seeds)):
        state = seeds[b]
        out = table[b]
        current = np.int64(0)
        drawn = 1.0
        for c in range(len(first) - 1):
            if flip[c] > 0 and flip[c] != current:
                current = flip[c]
                state += STEP
                drawn = 1.0 if _random_bits(state) >> np.uint64(63) else -1.0
            sign = drawn if flip[c] > 0 else 1.0
            start = first[c]
            size = first[c + 1] - start
            for j in range(size):
                scratch[j] = start + j
            for j in range(size - 1, 0, -1):  # Fisher-Yates: place j takes one of those left
                state += STEP
                # The high half times the range, shifted back: uniform on 0 … j to 1 in 2³².
                high = _random_bits(state) >> np.uint64(32)
                pick = np.int64((high * np.uint64(j + 1)) >> np.uint64(32))
                taken, row = scratch[pick], rater[start + j]
                scratch[pick] = scratch[j]
                for k in range(columns):
                    out[row, k] += sign * values[taken, k]
            taken, row = scratch[0], rater[start]
            for k in range(columns):
                out[row, k] += sign * values[taken, k]
