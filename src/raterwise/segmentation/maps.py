"""Maps of the probability that two raters differ about a voxel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_array, as_float_array
from raterwise.errors import InvalidInputError
from raterwise.segmentation.cases import row_sums_within

FloatArray = NDArray[np.float32]

ROUNDING = 1e-6
"""How far below 0 the rounding of float32 may put a probability."""


def disagreement_map(
    probabilities: ArrayLike | Sequence[ArrayLike],
    concentration: ArrayLike | None = None,
    *,
    one_channel: bool = False,
    region: ArrayLike | None = None,
    step: float = 0.0,
) -> FloatArray:
    """Return the probability that two raters disagree about each voxel.

    1 - Σ_k p_k² (LH eq 17), times α0 / (α0 + 1) for a Dirichlet belief of concentration α0
    (LH eq 19). float32, as an image viewer wants it.

    Parameters
    ----------
    probabilities : array-like of shape (K, *spatial) or (*spatial), or list of them
        The probability of each class; with `one_channel`, (*spatial) is that of class 1 of two. For
        an ensemble, a list of such arrays, one per member; their disagreements are averaged.
    concentration : float or array-like of shape (*spatial), default None
        α0 of a Dirichlet belief.
    one_channel : bool, default False
        Whether there is no axis of classes.
    region : array-like of shape (*spatial), default None
        The voxels to map, all by default; the map is 0 elsewhere.
    step : float, default 0
        Step between the stored values of the probabilities, such as 1/255 for 8 bits.

    Returns
    -------
    ndarray of float32 of shape (*spatial)
        Between 0 and 1.

    Raises
    ------
    InvalidInputError
        If the probabilities of a voxel do not sum to 1, or shapes do not match.

    See Also
    --------
    segmentation.evaluate : measures how well disagreement is predicted.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS.

    Examples
    --------
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
            own = disagreement_map(
                member, concentration, one_channel=one_channel, region=region, step=step
            )
            total = total + own
        return np.asarray(total / len(probabilities), np.float32)
    probs = as_float_array(probabilities, "probabilities", ndim=tuple(range(1, 9)))
    if not one_channel and probs.ndim < 2:
        raise InvalidInputError(
            f"probabilities: must be (classes, *spatial); got shape {probs.shape}"
        )
    inside = _inside(region, probs.shape if one_channel else probs.shape[1:])
    within = row_sums_within(probabilities, 2 if one_channel else len(probs), step)
    out = _of_probabilities(probs, one_channel, inside, within)
    if concentration is not None:
        alpha = as_float_array(concentration, "concentration", ndim=(0, out.ndim))
        if alpha.ndim and alpha.shape != out.shape:
            raise InvalidInputError(
                f"concentration: must have the shape {out.shape}; got {alpha.shape}"
            )
        if not (alpha > 0).all():
            raise InvalidInputError("concentration: must be positive")
        out = out * (alpha / (alpha + 1))
    return np.where(inside, np.clip(out, 0, 1), 0).astype(np.float32)


def _inside(region: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if region is None:
        return np.ones((), np.bool_)
    inside: NDArray[np.bool_] = as_array(region, "region") != 0
    if inside.shape != shape:
        raise InvalidInputError(f"region: must have the shape {shape}; got {inside.shape}")
    return inside


def _of_probabilities(
    probs: NDArray[Any], one_channel: bool, inside: NDArray[np.bool_], tolerance: float
) -> NDArray[np.float64]:
    shape = probs.shape if one_channel else probs.shape[1:]
    same, total, bad = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
    wide = probs.astype(np.float64) if one_channel else probs
    for channel in (wide, 1 - wide) if one_channel else probs:
        p = channel.astype(np.float64)  # one class at a time: a copy of all would be large
        bad |= ~(p >= -ROUNDING)
        same += p * p
        total += p
    bad |= ~(np.abs(total - 1) <= tolerance)
    if (bad & inside).any():
        raise InvalidInputError(
            "probabilities: must lie in [0, 1], sum to 1 and hold no NaN (logits need a softmax)"
        )
    return 1 - same
