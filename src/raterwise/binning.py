"""Bins of [0, 1]: `[a, b)`, the last one closed; and the fine cells that stand in for scores.

The edges of M equal bins are `numpy.linspace(0, 1, M + 1)`, the floats that NumPy's own histogram
and most of the field's software use, so that a score exactly on an edge falls where it does there.

A float64 score is taken exactly. A float16 or float32 score within one unit in the last place of
its type of an edge counts as on it: 0.15 as float32, or as 1 - 0.85 in float32, is 0.15 rounded,
and the pixels of 8-bit images, k / 255, lie on edges by the million. The unit is that of the
numbers just below 1, which is what a complement is rounded by, whatever its own size. Scores are
not touched: they are compared with edges that are lower by the unit (`edges_for`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.rules import positive_integer
from raterwise.types import FloatArray

MAX_BINS = 5040


@lru_cache(maxsize=256)  # a quarter of the time of `ece` of few cases
def equal_edges(bins: int) -> FloatArray:
    """Return the bins + 1 edges of equal bins on [0, 1].

    >>> equal_edges(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    edges = np.linspace(0, 1, bins + 1)
    edges.setflags(write=False)
    return edges


def bin_edges(bins: Any) -> FloatArray:
    """Return the edges for `bins`: a number of equal bins, or increasing edges from 0 to 1."""
    if np.ndim(bins) == 0:
        if isinstance(bins, str):
            raise InvalidTypeError(f"bins: must be a whole number or edges; got {bins!r}")
        return equal_edges(number_of_bins(bins))
    edges = as_float_array(bins, "bins", ndim=1).astype(np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InvalidInputError(f"bins: edges must increase; got {bins!r}")
    if edges[0] != 0 or edges[-1] != 1:
        raise InvalidInputError(f"bins: edges must run from 0 to 1; got {edges[0]} … {edges[-1]}")
    return edges


def number_of_bins(bins: Any) -> int:
    """Return a number of bins; more than MAX_BINS would take memory and say nothing."""
    number = positive_integer("bins", bins)
    if number > MAX_BINS:
        raise InvalidInputError(f"bins: must be at most {MAX_BINS}; got {number}")
    return number


def unit_in_last_place(dtype: Any) -> float:
    """Return the distance of numbers of a type just below 1; 0 for float64, which is exact.

    >>> unit_in_last_place(np.float32) == 2.0**-24, unit_in_last_place("float16") == 2.0**-11
    (True, True)
    """
    kind = np.dtype(dtype)
    return float(np.finfo(kind).epsneg) if kind.kind == "f" and kind.itemsize < 8 else 0.0


def edges_for(edges: FloatArray, rounding: float) -> FloatArray:
    """Return the edges that scores rounded by up to `rounding` are compared with.

    Between edges closer than twice that, a score belongs to the nearest one.

    >>> locate(np.float32([0.15]).astype(float), edges_for(equal_edges(20), 2.0**-24))
    array([3])
    """
    if rounding == 0:
        return edges
    lower = edges.copy()
    lower[1:] -= np.minimum(rounding, np.diff(edges) / 2)
    return lower


def locate(scores: FloatArray, edges: FloatArray) -> NDArray[np.intp]:
    """Return the bin of each score: `[a, b)`, the last bin closed.

    >>> locate(np.array([0.0, 0.25, 0.999, 1.0]), equal_edges(4))
    array([0, 1, 3, 3])
    """
    index = np.searchsorted(edges, scores, side="right") - 1
    return np.clip(index, 0, len(edges) - 2)


def equal_mass_edges(scores: FloatArray, masses: FloatArray, bins: int) -> FloatArray:
    """Return edges of at most `bins` bins that hold about the same mass each.

    `scores` are sorted and distinct. Every score is in a bin and equal scores share one; a bin
    closes at the first score at which the mass so far reaches its share, so heavy ties (60%
    zeros) make fewer, heavier bins. Scores that are no probabilities may lie beyond [0, 1].
    """
    inner = scores[equal_mass_cuts(np.cumsum(masses), bins) + 1]
    least = min(0.0, scores[0])
    return np.concatenate(([least], inner[inner > least], [max(1.0, scores[-1])]))


def equal_mass_cuts(cumulative: FloatArray, bins: int) -> NDArray[np.intp]:
    """Return the position of the last score of each bin but the last."""
    targets = cumulative[-1] * np.arange(1, bins) / bins
    # The tolerance keeps 1/3 + 1/3 + 1/3 of the mass from spilling over by a rounding error.
    last = np.searchsorted(cumulative, targets * (1 - 1e-12), side="left")
    return np.unique(last[last < len(cumulative) - 1])
