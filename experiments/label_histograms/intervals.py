"""Means over networks, with what both the networks and the cases add to their error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["change", "mean_and_half"]

NORMAL = 1.959964


def mean_and_half(pairs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the mean and half of its 95 % interval, from each network's value and error.

    The networks are judged on the same cases, so what these add to the error does not shrink with
    the number of networks: the variance is the mean of theirs plus that between networks over
    their number.

    >>> mean_and_half([(1.0, 0.5), (1.0, 0.5)])
    (1.0, 0.979982)
    """
    means, errors = np.array(pairs, float).T
    between = float(np.var(means, ddof=1)) / len(means) if len(means) > 1 else 0.0
    return float(means.mean()), NORMAL * math.sqrt(float((errors**2).mean()) + between)


def change(pairs: Sequence[Sequence[float]]) -> str:
    """Return a difference with its interval as text, or nothing where there is none.

    >>> change([(1.0, 0.5), (1.0, 0.5)])
    '+1.0000 [+0.0200, +1.9800]'
    """
    if not pairs:
        return ""
    mean, half = mean_and_half(pairs)
    if mean == half == 0:
        return "0"
    return f"{mean:+.4f} [{mean - half:+.4f}, {mean + half:+.4f}]"
