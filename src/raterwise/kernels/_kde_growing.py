"""The Beta-kernel sums of growing parts of the cases: each kernel is computed once for all parts.

As in `_kde`, evaluation points are taken `LANES` at a time. A centre has an *entry* for each part
that brings cases with its score; sums are kept by the part that the entry is new in, and added up
over the parts at the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from raterwise.kernels._kde import LANES, _exp, _open_lanes

Array = Any

LONELY = 25.0
"""A case whose kernels are all below exp(-LONELY) of the largest has far neighbours alone."""


@njit(nogil=True, cache=True, fastmath={"contract"})
def growing_beta_sums(
    c: Array, g: Array, s: Array, peaks: Array, begin: Array, ring: Array, mass: Array,
    hits: Array, alone: Array, cut: float, least: float, start: int, stop: int, own: Array,
    out: Array,
) -> None:  # fmt: skip
    """Beta-kernel sums over all *other* centres of each part, for the points start..stop.

    Args:
        c, g, s, peaks: as in `beta_sums`, for the sorted distinct scores of all parts.
        begin: (n + 1,); where the entries of each centre begin.
        ring, mass, hits: of an entry: the part it is new in, and what it adds; by part.
        alone: (n, parts); whether one case alone has the score in the part.
        cut: centres whose log-kernel is lower than the largest by more than this are skipped.
        least: the smallest mass of an entry.
        own: out, (n,); the own kernel relative to the largest.
        out: out, (2, n, parts); sums of kernel x mass and of kernel x hits, own centre left out.
    """
    parts = out.shape[2]
    none = np.zeros(c.size, np.bool_)
    shift, kernel = np.empty(c.size), np.empty(LANES)
    lane_s, lane_shift = np.empty(LANES), np.empty(LANES)
    sums = np.empty((parts, 2, LANES))
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        low, high = _open_lanes(c, g, peaks, s, none, cut, first, last, shift)
        for lane in range(LANES):
            j = min(first + lane, last - 1)
            lane_s[lane], lane_shift[lane] = s[j], shift[j]
        sums[:] = 0.0
        for i in range(low, high):
            ci, gi = c[i], g[i]
            for lane in range(LANES):
                kernel[lane] = _exp(ci * lane_s[lane] + (gi - lane_shift[lane]))
            if first <= i < last:
                kernel[i - first] = 0.0
            for k in range(begin[i], begin[i + 1]):
                m, h, of_mass, of_hits = mass[k], hits[k], sums[ring[k], 0], sums[ring[k], 1]
                for lane in range(LANES):
                    of_mass[lane] += kernel[lane] * m
                if h != 0.0:
                    for lane in range(LANES):
                        of_hits[lane] += kernel[lane] * h
        for j in range(first, last):
            own[j] = math.exp(c[j] * s[j] + g[j] - shift[j])
            for kind in range(2):
                total = 0.0
                for part in range(parts):
                    total += sums[part, kind, j - first]
                    out[kind, j, part] = total
            for part in range(parts):
                if alone[j, part] and out[0, j, part] < least * math.exp(-LONELY):
                    _far_sums(c, g, s[j], begin, ring, mass, hits, cut, j, part, out)


@njit(nogil=True, cache=True)
def _far_sums(
    c: Array, g: Array, s: float, begin: Array, ring: Array, mass: Array, hits: Array, cut: float,
    j: int, part: int, out: Array,
) -> None:  # fmt: skip
    """Sum the kernels of a part at point j relative to that of its nearest centre.

    The log-kernel falls on either side of the point, so that its largest values are those of the
    first centre of the part on the left and on the right.
    """
    left, right = j - 1, j + 1
    while left >= 0 and ring[begin[left]] > part:
        left -= 1
    while right < c.size and ring[begin[right]] > part:
        right += 1
    largest = -np.inf
    if left >= 0:
        largest = c[left] * s + g[left]
    if right < c.size:
        largest = max(largest, c[right] * s + g[right])
    total, hit = 0.0, 0.0
    for nearest, step in ((left, -1), (right, 1)):
        i = nearest
        while 0 <= i < c.size:
            x = c[i] * s + g[i] - largest
            if x < -cut:
                break
            for k in range(begin[i], begin[i + 1]):
                if ring[k] <= part:
                    total += math.exp(x) * mass[k]
                    hit += math.exp(x) * hits[k]
            i += step
    out[0, j, part], out[1, j, part] = total, hit


@njit(nogil=True, cache=True, error_model="numpy")  # a part of one case: 0 / 0
def add_errors(
    group: Array, ring: Array, mass: Array, hits: Array, score: Array, tied_mass: Array,
    tied_hits: Array, own: Array, sums: Array, p: int, out: Array,
) -> None:  # fmt: skip
    """Add m |ratio - z|^p of each case to `out` (parts,), in every part that has the case.

    `tied_mass` and `tied_hits` (n, parts) are those of all cases with the score, of which the case
    itself is left out.
    """
    for i in range(group.size):
        j, m, h = group[i], mass[i], hits[i]
        for part in range(ring[i], out.size):
            others = max(tied_hits[j, part] - h, 0.0)
            ratio = (sums[1, j, part] + own[j] * others) / (
                sums[0, j, part] + own[j] * (tied_mass[j, part] - m)
            )
            out[part] += m * abs(ratio - score[j]) ** p
