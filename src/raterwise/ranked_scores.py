"""Scores of ordered classes, for each label that a case may get."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raterwise.types import FloatArray

OfEachLabel = Callable[[FloatArray], FloatArray]
"""A score of probabilities (n, K) for each of the K labels."""


def ranked(probs: FloatArray) -> FloatArray:
    """Return the ranked probability score of each label y: Σ_{k<y} F_k² + Σ_{k>=y} (1 - F_k)².

    >>> ranked(np.array([[0.5, 0.25, 0.25]])).tolist()
    [[0.3125, 0.3125, 0.8125]]
    """
    below = np.minimum(probs.cumsum(axis=1)[:, :-1], 1)
    return _summed(below**2, (1 - below) ** 2)


def ranked_log(probs: FloatArray) -> FloatArray:
    """Return the same of the log score: -Σ_{k<y} log(1 - F_k) - Σ_{k>=y} log F_k.

    It is 0 of labels of probability 0, of which it would be infinite.

    >>> np.exp(-ranked_log(np.array([[0.5, 0.25, 0.25]]))).tolist()
    [[0.375, 0.375, 0.125]]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = probs.cumsum(axis=1)[:, :-1], from_above(probs)
        each = _summed(-np.log(np.minimum(above, 1)), -np.log(np.minimum(below, 1)))
    return np.where(probs > 0, each, 0)


def from_above(values: FloatArray) -> FloatArray:
    """Return Σ_{j > k} of each row, for every k but the last.

    >>> from_above(np.array([[0.5, 0.25, 0.25]])).tolist()
    [[0.5, 0.25]]
    """
    return values[:, :0:-1].cumsum(axis=1)[:, ::-1]


def _summed(missed: FloatArray, reached: FloatArray) -> FloatArray:
    """Return Σ_{k<y} of what cuts cost that were missed and Σ_{k>=y} of those reached."""
    none = np.zeros((len(missed), 1))
    below = np.hstack([none, missed.cumsum(axis=1)])
    return np.asarray(below + np.hstack([none, reached[:, ::-1].cumsum(axis=1)])[:, ::-1])
