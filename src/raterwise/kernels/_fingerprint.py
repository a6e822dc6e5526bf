"""Sums of pseudo-random numbers that tell whether two tables hold the same, in the same places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _mixed(x: Any) -> Any:
    """Return the finaliser of SplitMix64: 64 bits that look random."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True)
def of_classes(classes: Any, num_classes: Any, first: Any) -> Any:
    """Return Σ_i mix(i K + y_i), i counted from `first`."""
    total = np.uint64(0)
    for i in range(len(classes)):
        total += _mixed(np.uint64((first + i) * num_classes + classes[i]))
    return total


@njit(nogil=True, cache=True)
def of_counts(counts: Any, first: Any) -> Any:
    """Return Σ_ik n_ik mix(i K + k): of single labels the same as `of_classes`."""
    total = np.uint64(0)
    rows, num_classes = counts.shape
    for i in range(rows):
        for k in range(num_classes):
            if counts[i, k]:
                place = np.uint64((first + i) * num_classes + k)
                total += np.uint64(counts[i, k]) * _mixed(place)
    return total


@njit(nogil=True, cache=True)
def add_up(values: Any, first: Any) -> Any:
    """Return Σ_i mix(x_i ⊕ mix(i)) of 64-bit numbers."""
    total = np.uint64(0)
    for i in range(len(values)):
        total += _mixed(values[i] ^ _mixed(np.uint64(first + i)))
    return total


@njit(nogil=True, cache=True)
def of_ratings(case: Any, rater: Any, label: Any, raters: Any, first: Any) -> Any:
    """Return Σ mix((label R + rater) ⊕ mix(case)) over the ratings, cases counted from `first`."""
    total = np.uint64(0)
    for i in range(len(case)):
        said = np.uint64(label[i] * raters + rater[i])
        total += _mixed(said ^ _mixed(np.uint64(first + case[i])))
    return total
