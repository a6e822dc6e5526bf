"""What a recalibration does to the predicted disagreement (LH appendix F.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.errors import InvalidInputError
from raterwise.predictions.predictions import rows_of


def disagreement_change(probs: ArrayLike, recalibrated: ArrayLike) -> NDArray[np.float64]:
    """Return how much a recalibration raises the predicted disagreement of each case (LH eq 83).

    Δ = Σ_k (f_k + f'_k)(f_k - f'_k). A temperature that makes a model less sure raises it. If
    predicted disagreement was too high before, this makes it worse; α-calibration corrects it.

    Parameters
    ----------
    probs, recalibrated : array-like of shape (N, K) or (N,)
        Class probabilities before and after, for example by `TemperatureScaling`.

    Returns
    -------
    array of shape (N,)
        Predicted disagreement 1 - Σ_k p_k² after minus before.

    See Also
    --------
    disagreement_loss : whether it is better.

    References
    ----------
    Mimori, Sasada, Matsui & Sato, Diagnostic uncertainty calibration, AISTATS 2021, appendix F.2.

    Examples
    --------
    >>> disagreement_change([[0.9, 0.1]], [[0.5, 0.5]]).round(2)  # 0.5 - 0.18
    array([0.32])
    """
    before, after = (
        rows_of(given, name).probs.astype(np.float64)
        for given, name in ((probs, "probs"), (recalibrated, "recalibrated"))
    )
    if before.shape != after.shape:
        raise InvalidInputError(
            f"recalibrated: must have the shape of probs, {before.shape}; got {after.shape}"
        )
    return np.asarray(((before + after) * (before - after)).sum(axis=1))
