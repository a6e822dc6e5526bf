"""The pass over sorted cases that stands for all pairs of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


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
