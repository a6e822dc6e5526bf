"""The hot loops of the kernel-density calibration errors (Beta and Dirichlet kernels).

Every function works on a block of evaluation points and is called from several threads, one
block at a time. Inside, evaluation points are taken `LANES` at a time and the *innermost* loop
runs over these lanes: each lane has its own sum over the centres, in the order of the centres,
so the compiler can use vector instructions without reordering any sum, and the digits do not
depend on the number of threads.

Kernel values are kept relative to the largest one of their evaluation point (`shift`, a
logarithm), so that a lonely case neither underflows nor divides zero by zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = Any

NOTHING = -1e300
"""Stands for the logarithm of zero: it stays a number when subtracted from itself."""
LANES = 64
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
_LOWEST = -700.0


@njit(inline="always")
def _exp(x: float) -> float:
    """Exponential of x <= 709 to one unit in the last place, at least exp(-700).

    libm's exp is an opaque call, one element at a time; this one is inlined and vectorised by the
    compiler, which makes the loops below about five times faster.
    """
    x = max(x, _LOWEST)
    n = math.floor(x * _LOG2_E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)


@njit(nogil=True, cache=True)
def _first_above(
    c: Array, g: Array, s: float, level: float, low: int, high: int,
) -> int:  # fmt: skip
    """First i in [low, high) with c_i s + g_i >= level, for values that rise there."""
    while low < high:
        middle = (low + high) // 2
        if c[middle] * s + g[middle] >= level:
            high = middle
        else:
            low = middle + 1
    return low


@njit(nogil=True, cache=True)
def _first_below(
    c: Array, g: Array, s: float, level: float, low: int, high: int,
) -> int:  # fmt: skip
    """First i in [low, high) with c_i s + g_i < level, for values that fall there."""
    while low < high:
        middle = (low + high) // 2
        if c[middle] * s + g[middle] < level:
            high = middle
        else:
            low = middle + 1
    return low


@njit(nogil=True, cache=True)
def _peak_and_band(
    c: Array, g: Array, peak: int, j: int, s: float, alone: bool, cut: float,
) -> tuple[float, int, int]:  # fmt: skip
    """Largest log-kernel of point j over the centres, and the band of centres within `cut` of it.

    The log-kernel c s + g(c) is concave in the centre c, so its values over the sorted centres
    rise up to `peak` and fall after it: two bisections bound the centres that matter.
    """
    n = c.size
    largest = -np.inf
    for i in range(max(0, peak - 2), min(n, peak + 3)):
        if not (alone and i == j):
            largest = max(largest, c[i] * s + g[i])
    low = _first_above(c, g, s, largest - cut, 0, peak)
    high = _first_below(c, g, s, largest - cut, min(peak + 1, n), n)
    return largest, low, high


@njit(nogil=True, cache=True)
def _open_lanes(
    c: Array, g: Array, peaks: Array, s: Array, alone: Array, cut: float,
    first: int, last: int, shift: Array,
) -> tuple[int, int]:  # fmt: skip
    """Fill the shifts of the points first..last and return the union of their bands."""
    low, high = c.size, 0
    for j in range(first, last):
        shift[j], a, b = _peak_and_band(c, g, peaks[j], j, s[j], alone[j], cut)
        low, high = min(low, a), max(high, b)
    return low, high


@njit(nogil=True, cache=True, fastmath={"contract"})
def beta_sums(
    c: Array, g: Array, s: Array, peaks: Array, mass: Array, hits: Array, alone: Array,
    cut: float, start: int, stop: int, shift: Array, own: Array, out: Array,
) -> None:  # fmt: skip
    """Beta-kernel sums over all *other* centres, for the evaluation points start..stop.

    The log-kernel of point j at centre i, up to a term of j alone, is c_i s_j + g_i with
    c = z / h, g = -log B(z/h + 1, (1-z)/h + 1) and s the log-odds of the point.

    Args:
        c, g, s: as above, for the sorted distinct scores.
        peaks: for each point, the index of the centre with the largest kernel.
        mass, hits: total and correct annotations at each distinct score.
        alone: the point's own centre takes no part (its score belongs to one case alone).
        cut: centres whose log-kernel is lower than the largest by more than this are skipped.
        shift, own: out; largest log-kernel, and the own kernel relative to it (0 where alone).
        out: out, (2, n); sums of kernel x mass and of kernel x hits, own centre left out.
    """
    lane_s = np.empty(LANES)
    lane_shift = np.empty(LANES)
    den = np.empty(LANES)
    num = np.empty(LANES)
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        low, high = _open_lanes(c, g, peaks, s, alone, cut, first, last, shift)
        for lane in range(LANES):
            j = min(first + lane, last - 1)
            lane_s[lane] = s[j]
            lane_shift[lane] = shift[j]
            den[lane] = 0.0
            num[lane] = 0.0
        for i in range(low, high):
            if first <= i < last:
                continue
            ci, gi, mi, hi = c[i], g[i], mass[i], hits[i]
            for lane in range(LANES):
                e = _exp(ci * lane_s[lane] + (gi - lane_shift[lane]))
                den[lane] += e * mi
                num[lane] += e * hi
        for j in range(first, last):
            lane = j - first
            own[j] = 0.0 if alone[j] else math.exp(c[j] * s[j] + g[j] - shift[j])
            for i in range(first, last):
                if i != j:
                    e = math.exp(c[i] * s[j] + g[i] - shift[j])
                    den[lane] += e * mass[i]
                    num[lane] += e * hits[i]
            out[0, j] = den[lane]
            out[1, j] = num[lane]


@njit(nogil=True, cache=True, fastmath={"contract"})
def beta_cell_sums(
    c: Array, g: Array, dg: Array, s: Array, peaks: Array, moments: Array, alone: Array,
    cut: float, start: int, stop: int, shift: Array, own: Array, out: Array,
) -> None:  # fmt: skip
    """Beta-kernel sums over the cells, to second order within a cell, for the points start..stop.

    A centre cell stands for sum_i a_i k(c_i) ~ k [A + A1 l + A2 (l^2 + g'') / 2], with
    l = s + g' the slope of the log-kernel in the centre and A, A1, A2 the moments of its masses.

    Args:
        dg: (n, 3) first, second and third derivative of g in c.
        moments: (6, n): mass, second moment of mass (the first is zero), hits, first and second
            moment of hits, and half-width x second moment / 6, the scale of the third-order rest.
        out: out, (8, n), own cell left out: mass, hits; mass x q, hits x q; mass x q^2,
            hits x q^2, where q = c_i - c_j is the slope of the log-kernel in the point's log-odds;
            bounds on the third-order rest of the misses and of the hits.
    """
    lane_s = np.empty(LANES)
    lane_c = np.empty(LANES)
    lane_shift = np.empty(LANES)
    sums = np.empty((8, LANES))
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        low, high = _open_lanes(c, g, peaks, s, alone, cut, first, last, shift)
        for lane in range(LANES):
            j = min(first + lane, last - 1)
            lane_s[lane] = s[j]
            lane_c[lane] = c[j]
            lane_shift[lane] = shift[j]
        sums[:] = 0.0
        for i in range(low, high):
            ci, gi, dgi, ddgi, dddgi = c[i], g[i], dg[i, 0], dg[i, 1], dg[i, 2]
            m0, m2, h0, h1 = moments[0, i], moments[1, i], moments[2, i], moments[3, i]
            h2, rest, share = moments[4, i], moments[5, i], h0 / m0
            for lane in range(LANES):
                x = ci * lane_s[lane] + (gi - lane_shift[lane])
                # The own cell is left out of the sums; its exponent may be positive.
                e = _exp(min(x, 0.0)) * (0.0 if i == first + lane else 1.0)
                slope = lane_s[lane] + dgi
                square = slope * slope
                curve = 0.5 * (square + ddgi)
                q = ci - lane_c[lane]
                eq = e * q
                eqq = eq * q
                third = e * rest * abs(slope * (square + 3.0 * ddgi) + dddgi)
                sums[0, lane] += e * (m0 + m2 * curve)
                sums[1, lane] += e * (h0 + h1 * slope + h2 * curve)
                sums[2, lane] += eq * m0
                sums[3, lane] += eq * h0
                sums[4, lane] += eqq * m0
                sums[5, lane] += eqq * h0
                sums[6, lane] += third * (1.0 - share)
                sums[7, lane] += third * share
        for j in range(first, last):
            own[j] = 0.0 if alone[j] else math.exp(c[j] * s[j] + g[j] - shift[j])
            out[:, j] = sums[:, j - first]


@njit(nogil=True, cache=True, fastmath={"contract"})
def dirichlet_sums(
    a: Array, g: Array, group: Array, hits: Array, log_f: Array, point_group: Array,
    cut: float, start: int, stop: int, shift: Array, out: Array,
) -> None:  # fmt: skip
    """Dirichlet-kernel sums over the centres of other groups, for the points start..stop.

    The log-kernel of point j at centre i is sum_k a_ik log f_jk + g_i, with a = f / h and
    g = -log B(f / h + 1). Centres go by in chunks; when a chunk raises the largest log-kernel of
    a point, the sums so far are scaled down, so nothing larger than a chunk is ever held.

    Args:
        a, g: centres, (N, K) and (N,).
        group, point_group: a centre is left out where its group equals the point's.
        hits: (N, C) masses to be summed; the first column is the total mass.
        log_f: (K, P) logarithms of the points; neighbours should be alike, so that centres
            negligible for all lanes are common.
        cut: centres whose log-kernel is lower than the largest by more than this are skipped.
        shift: out, (P,); largest log-kernel.
        out: out, (C, P); kernel sums relative to exp(shift).
    """
    chunk = 128
    n, k = a.shape
    columns = hits.shape[1]
    lane_f = np.empty((k, LANES))
    lane_group = np.empty(LANES, np.int64)
    lane_shift = np.empty(LANES)
    lane_scale = np.empty(LANES)
    exponents = np.empty((chunk, LANES))
    sums = np.empty((columns, LANES))
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        for lane in range(LANES):
            j = min(first + lane, last - 1)
            lane_f[:, lane] = log_f[:, j]
            lane_group[lane] = point_group[j]
            lane_shift[lane] = NOTHING
        sums[:] = 0.0
        for low in range(0, n, chunk):
            high = min(low + chunk, n)
            _dirichlet_exponents(a, g, group, low, high, lane_f, lane_group, exponents)
            _raise_shift(exponents, high - low, lane_shift, lane_scale, sums)
            _add_chunk(exponents, hits, low, high, lane_shift, cut, sums)
        for j in range(first, last):
            shift[j] = lane_shift[j - first]
            out[:, j] = sums[:, j - first]


@njit(nogil=True, cache=True, fastmath={"contract"})
def _dirichlet_exponents(
    a: Array, g: Array, group: Array, low: int, high: int, lane_f: Array,
    lane_group: Array, exponents: Array,
) -> None:  # fmt: skip
    """Log-kernels of a chunk of centres, NOTHING where centre and point are of one group."""
    np.dot(a[low:high], lane_f, exponents[: high - low])
    for i in range(low, high):
        for lane in range(LANES):
            x = exponents[i - low, lane] + g[i]
            exponents[i - low, lane] = x if group[i] != lane_group[lane] else NOTHING


@njit(nogil=True, cache=True)
def _raise_shift(
    exponents: Array, size: int, lane_shift: Array, lane_scale: Array, sums: Array,
) -> None:  # fmt: skip
    """Lift each lane's shift to the largest exponent of the chunk and rescale its sums."""
    for lane in range(LANES):
        lane_scale[lane] = lane_shift[lane]
    for i in range(size):
        for lane in range(LANES):
            x = exponents[i, lane]
            lane_shift[lane] = x if x > lane_shift[lane] else lane_shift[lane]
    for lane in range(LANES):
        if lane_shift[lane] > lane_scale[lane]:
            scale = math.exp(lane_scale[lane] - lane_shift[lane])
            for row in range(sums.shape[0]):
                sums[row, lane] *= scale


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_chunk(
    exponents: Array, hits: Array, low: int, high: int, lane_shift: Array, cut: float,
    sums: Array,
) -> None:  # fmt: skip
    """Add a chunk's kernels, times their masses, to the sums of each lane."""
    for i in range(high - low):
        row = exponents[i]
        matters = False
        for lane in range(LANES):
            matters |= row[lane] - lane_shift[lane] > -cut
        if not matters:
            continue
        for lane in range(LANES):
            row[lane] = _exp(row[lane] - lane_shift[lane])
        for k in range(hits.shape[1]):
            mass = hits[low + i, k]
            if mass != 0.0:
                for lane in range(LANES):
                    sums[k, lane] += row[lane] * mass


@njit(nogil=True, cache=True)
def decayed_pairs(values: NDArray[Any], decay: NDArray[Any]) -> NDArray[Any]:
    """Return Σ_{i<j} a_i a_j Π_{i<=l<j} decay_l of each row of `values` (rows, N).

    >>> decayed_pairs(np.array([[1.0, 2.0, 4.0]]), np.array([0.5, 0.25]))  # 1 + 2 + 0.5
    array([3.5])
    """
    rows, cases = values.shape
    out = np.zeros(rows)
    for r in range(rows):
        before = 0.0
        total = 0.0
        for i in range(1, cases):
            before = (before + values[r, i - 1]) * decay[i - 1]
            total += values[r, i] * before
        out[r] = total
    return out
