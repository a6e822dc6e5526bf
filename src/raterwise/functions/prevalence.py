"""Probabilities at another prevalence than that of the cases a model was made or tested with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.predictions import Predictions

__all__ = ["shift_prevalence"]

FloatArray = NDArray[np.float64]


def shift_prevalence(
    probs: ArrayLike, from_: float | ArrayLike, to: float | ArrayLike
) -> FloatArray:
    """Return probabilities as they would be where classes are as frequent as `to` says.

    By Bayes' rule, with images of a class looking the same everywhere: p_k is multiplied by
    to_k / from_k, and rows are brought to sum 1 again. For two classes that multiplies the odds.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    from_ : float or array-like of shape (K,)
        How frequent the classes are where the probabilities are right; of two classes the
        prevalence of class 1 suffices.
    to : float or array-like of shape (K,)
        How frequent they are where the probabilities are to be used.

    Returns
    -------
    array of the shape of `probs`
        Probabilities of 0 and 1 stay as they are.

    Raises
    ------
    InvalidInputError
        If a prevalence does not lie between 0 and 1, both excluded, or those of all classes do not
        sum to 1.

    See Also
    --------
    evaluate : its weights carry results over to another prevalence.

    References
    ----------
    Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14 (2002) 21-41.

    Examples
    --------
    >>> shift_prevalence([0.5, 0.9], from_=0.5, to=0.1).round(4)  # odds 1 and 9, times 1/9
    array([0.1, 0.5])
    """
    given = as_float_array(probs, "probs", ndim=(1, 2))
    classes = 2 if given.ndim == 1 else given.shape[1]
    _check(given, classes)
    given = given.astype(np.float64)
    both = np.stack((1 - given, given), axis=1) if given.ndim == 1 else given
    before, after = _prior("from_", from_, classes), _prior("to", to, classes)
    moved = both * (after / before)
    total = moved.sum(axis=1, keepdims=True)
    shifted = moved / np.where(total > 0, total, 1)
    return np.asarray(shifted[:, 1] if given.ndim == 1 else shifted)


def _check(probs: NDArray[Any], classes: int) -> None:
    """Raise what `evaluate` would raise about these probabilities."""
    nobody = Labels.from_classes(np.zeros(len(probs), np.int64), num_classes=classes)
    cases = Predictions.of(probs, nobody)
    for start in range(0, len(cases), cases.chunk_rows):
        cases.read(start, min(start + cases.chunk_rows, len(cases)))


def _prior(name: str, value: Any, classes: int) -> FloatArray:
    prior = np.atleast_1d(as_float_array(value, name, ndim=(0, 1)).astype(np.float64))
    if len(prior) == 1 and classes == 2:
        prior = np.array([1 - prior[0], prior[0]])
    if len(prior) != classes:
        raise InvalidInputError(
            f"{name}: must give the prevalence of each of the {classes} classes; got {len(prior)}"
        )
    if not ((prior > 0) & (prior < 1)).all():
        raise InvalidInputError(
            f"{name}: a prevalence must lie between 0 and 1, both excluded; got {prior.tolist()}"
        )
    if abs(prior.sum() - 1) > 1e-6:
        raise InvalidInputError(
            f"{name}: the prevalences of all classes must sum to 1; they sum to {prior.sum():g}"
        )
    return prior / prior.sum()
