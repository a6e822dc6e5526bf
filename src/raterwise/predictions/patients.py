"""Whose case it is: patients, by whatever names, as codes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.arrays import refuse_masked
from raterwise.errors import InvalidInputError
from raterwise.frames import as_list, columns_of


def patient_codes(groups: Any, cases: int) -> tuple[NDArray[np.int64] | None, tuple[Hashable, ...]]:
    """Return the patient of each case as 0 … G-1, in the order they appear, and their names.

    >>> codes, names = patient_codes(["ann", "bob", "ann"], 3)
    >>> codes.tolist(), names
    ([0, 1, 0], ('ann', 'bob'))
    """
    if groups is None:
        return None, ()
    if hasattr(groups, "detach"):
        groups = groups.detach().cpu().numpy()
    elif columns_of(groups, "groups") is not None:
        groups = as_list(groups, "groups")
    refuse_masked(groups, "groups")
    # Of a list, NumPy would make text of everything as soon as one of its names is text: "nan".
    values = groups if isinstance(groups, np.ndarray) else np.asarray(groups, dtype=object)
    if values.shape != (cases,):
        raise InvalidInputError(
            f"groups: must name the patient of each case; got shape {values.shape} "
            f"for {cases} cases"
        )
    unknown = _missing(values)
    if unknown.any():
        first = rules.first_cases(np.flatnonzero(unknown))
        raise rules.missing_patients("groups", int(unknown.sum()), cases, first)
    known = dict.fromkeys(values.tolist())
    code = {value: i for i, value in enumerate(known)}
    codes = np.fromiter((code[value] for value in values.tolist()), np.int64, cases)
    return codes, tuple(known)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which names are None, NaN, NaT or NA."""
    if values.dtype.kind == "O":
        return np.fromiter((rules.is_missing(value) for value in values), bool, len(values))
    if values.dtype.kind in "fcmM":
        return np.asarray(values != values)
    return np.zeros(len(values), bool)
