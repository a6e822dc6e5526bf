"""Deviations that a kernel smooths: one matrix for all channels, or one for each."""

from __future__ import annotations

import numpy as np

from raterwise.types import FloatArray


def through(smoother: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return deviations (…, channels, cells) smoothed.

    `smoother` is (cells out, cells in), or (channels, cells out, cells in).

    >>> one = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> through(one, np.array([[2.0, 4.0]]))
    array([[3., 4.]])
    >>> through(np.stack((one, 2 * one)), np.array([[2.0, 4.0], [2.0, 4.0]]))
    array([[3., 4.],
           [6., 8.]])
    """
    if smoother.ndim == 2:
        return deviation @ smoother.T
    each = [deviation[..., c, :] @ one.T for c, one in enumerate(smoother)]
    return np.stack(each, axis=-2)
