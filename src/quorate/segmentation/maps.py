"""Maps of the probability that two raters differ about a voxel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import as_float_array
from quorate.errors import InvalidInputError

__all__ = ["disagreement_map"]

FloatArray = NDArray[np.float32]


def disagreement_map(
    probabilities: Any, concentration: Any = None, *, one_channel: bool = False
) -> FloatArray:
    """Return the probability (*spatial) that two raters differ about each voxel.

    1 - Σ_k p_k² (LH eq 17), times α0 / (α0 + 1) for a Dirichlet belief of concentration α0
    (LH eq 19). float32, as an image viewer wants it.

    Parameters
    ----------
    probabilities
        (K, *spatial), or with `one_channel` (*spatial) for class 1 of two; of an ensemble, a
        sequence of such arrays, one per member, whose disagreements are averaged.
    concentration
        α0, one number or (*spatial).

    >>> disagreement_map(np.array([[0.5, 1.0], [0.5, 0.0]]))
    array([0.5, 0. ], dtype=float32)
    >>> disagreement_map(np.array([0.5, 1.0]), concentration=1.0, one_channel=True)
    array([0.25, 0.  ], dtype=float32)
    """
    if isinstance(probabilities, list | tuple):
        if not probabilities:
            raise InvalidInputError("probabilities: must have at least one member; got none")
        total = np.zeros(())
        for member in probabilities:
            total = total + disagreement_map(member, concentration, one_channel=one_channel)
        return np.asarray(total / len(probabilities), np.float32)
    probs = as_float_array(probabilities, "probabilities", ndim=tuple(range(1, 9)))
    if one_channel:
        p = probs.astype(np.float64)
        out = 1 - (p * p + (1 - p) ** 2)
    else:
        if probs.ndim < 2:
            raise InvalidInputError(
                f"probabilities: must be (classes, *spatial); got shape {probs.shape}"
            )
        same = np.zeros(probs.shape[1:])
        for channel in probs:  # one class at a time: a float64 copy of all would be large
            same += channel.astype(np.float64) ** 2
        out = 1 - same
    if np.isnan(out).any() or (out < -1e-6).any():
        raise InvalidInputError(
            "probabilities: must lie in [0, 1], sum to 1 and hold no NaN (logits need a softmax)"
        )
    if concentration is not None:
        alpha = as_float_array(concentration, "concentration", ndim=(0, out.ndim))
        if alpha.ndim and alpha.shape != out.shape:
            raise InvalidInputError(
                f"concentration: must have the shape {out.shape}; got {alpha.shape}"
            )
        if not (alpha > 0).all():
            raise InvalidInputError("concentration: must be positive")
        out = out * (alpha / (alpha + 1))
    return np.clip(out, 0, 1).astype(np.float32)
