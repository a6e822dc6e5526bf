"""Sums over cases from which a temperature is found: one pass gives slope, curvature and loss."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

Array = Any


@njit(nogil=True, cache=True)
def add_observed_gaps(
    logits: Array, classes: Array, counts: Array, weights: Array, sums: Array
) -> None:
    """Add Σ w n, Σ w n mean_k(d) and Σ w Σ_k y_k d_k to `sums`; d_k = u_k - max u, never positive.

    `classes` are single labels; where they are empty, `counts` are label histograms. `weights` may
    be empty: all 1.
    """
    rows, columns = logits.shape
    single, has_weights = classes.size > 0, weights.size > 0
    for i in range(rows):
        top = logits[i, 0]
        for k in range(1, columns):
            top = max(top, logits[i, k])
        mean, observed, raters = 0.0, 0.0, 0.0
        for k in range(columns):
            gap = float(logits[i, k]) - top
            mean += gap
            if not single:
                observed += counts[i, k] * gap
                raters += counts[i, k]
        if single:
            observed, raters = float(logits[i, classes[i]]) - top, 1.0
        w = weights[i] if has_weights else 1.0
        sums[0] += w * raters
        sums[1] += w * raters * mean / columns
        sums[2] += w * observed


@njit(nogil=True, cache=True)
def add_tempered_sums(logits: Array, weights: Array, beta: float, sums: Array) -> None:
    """Add the cumulants of d = u - max u under softmax(βu): Σ w log Σ_k exp(β d_k), then moments.

    The derivatives of the first with respect to β are the mean, the variance and the third
    central moment of d. `weights` (rows,) may be empty: all 1.
    """
    rows, columns = logits.shape
    has_weights = weights.size > 0
    for i in range(rows):
        top = logits[i, 0]
        for k in range(1, columns):
            top = max(top, logits[i, k])
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for k in range(columns):
            gap = float(logits[i, k]) - top
            term = math.exp(beta * gap)
            s0 += term
            term *= gap
            s1 += term
            term *= gap
            s2 += term
            s3 += term * gap
        w = weights[i] if has_weights else 1.0
        mean, square = s1 / s0, s2 / s0
        sums[0] += w * math.log(s0)
        sums[1] += w * mean
        sums[2] += w * (square - mean * mean)
        sums[3] += w * (s3 / s0 - 3.0 * mean * square + 2.0 * mean * mean * mean)
