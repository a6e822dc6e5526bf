"""What findings that may occur together are given as, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from raterwise.arrays import as_float_array, as_integer_array
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Settings
from raterwise.types import Array


def answers_of(
    ratings: Any, positives: Any, raters: Any, settings: Settings, shape: tuple[int, ...]
) -> Array | None:
    """Return what each rater said, -1 for no rating; None where only counts are known.

    `shape` is that of the probabilities.
    """
    if ratings is None:
        if positives is None or raters is None:
            alone = {"positives": positives, "raters": raters}
            got = next((f"{name} alone" for name in alone if alone[name] is not None), "neither")
            hint = " (raters=1: one answer of each case)" if raters is None else ""
            raise InvalidInputError(
                f"positives and raters, or ratings: must be given; got {got}{hint}"
            )
        if settings.draws_raters:
            raise InvalidInputError(
                f"unit: {settings.unit!r} needs to know who said what, and counts do not say it; "
                'give ratings, (cases, findings, raters), or resample "cases"'
            )
        return None
    if positives is not None or raters is not None:
        raise InvalidInputError("ratings: take the place of positives and raters; got both")
    given = as_float_array(ratings, "ratings", ndim=3)
    if len(shape) == 2 and given.shape[:2] != shape:
        raise InvalidInputError(
            "ratings: must be (cases, findings, raters), with the cases and findings of probs, "
            f"{shape}; got shape {given.shape}"
        )
    given = np.where(np.isnan(given), -1, given)
    if wrong := [value for value in np.unique(given) if value not in (-1, 0, 1)]:
        raise InvalidInputError(f"ratings: must be 1, 0, or -1 for none; got {wrong[0]:g}")
    return given.astype(np.int64)


def counted(answers: Array | None, positives: Any, raters: Any) -> tuple[Any, Any]:
    """Return how many saw each finding and how many looked, as given or from their answers."""
    if answers is None:
        return positives, raters
    return (answers == 1).sum(axis=2), (answers >= 0).sum(axis=2)


def checked(probs: Any, positives: Any, raters: Any) -> tuple[Array, Array, Array]:
    """Return probabilities and both counts, which must match."""
    array = as_float_array(probs, "probs", ndim=2)
    if 0 in array.shape:
        raise InvalidInputError(f"probs: must hold cases and findings; got shape {array.shape}")
    counts = as_integer_array(positives, "positives", ndim=2)
    labelled = as_integer_array(raters, "raters", ndim=(0, 2))
    if labelled.ndim == 0:
        labelled = np.full(counts.shape, labelled)
    for name, values in (("positives", counts), ("raters", labelled)):
        if values.shape != array.shape:
            raise InvalidInputError(
                f"{name}: must have the shape of probs, {array.shape}; got {values.shape}"
            )
    wrong = (counts < 0) | (counts > labelled)
    if wrong.any():
        case, finding = np.argwhere(wrong)[0]
        raise InvalidInputError(
            "positives: must be between 0 and raters; case "
            f"{case}, finding {finding} has {counts[case, finding]} of {labelled[case, finding]}"
        )
    return array, counts, labelled


def prevalence_of_each(name: str, given: Any, number: int) -> list[float | None]:
    """Return a prevalence of each finding: one for all, or one for each."""
    if given is None:
        return [None] * number
    told = np.atleast_1d(as_float_array(given, name, ndim=(0, 1)))
    if len(told) not in (1, number):
        raise InvalidInputError(
            f"{name}: must be one, or one for each of {number}; got {len(told)}"
        )
    return [float(value) for value in np.broadcast_to(told, number)]


def titles_of(names: Sequence[str] | None, number: int) -> list[str]:
    """Return a name for each finding."""
    if names is None:
        return [f"finding {i}" for i in range(number)]
    alone = isinstance(names, str) or not isinstance(names, Iterable)
    titles = [] if alone else [str(name) for name in names]
    if len(titles) != number or len(set(titles)) != number:
        got = repr(names) if alone else titles
        raise InvalidInputError(
            f"names: must be {number} different names, one per finding; got {got}"
        )
    return titles
