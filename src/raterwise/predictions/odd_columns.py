"""Columns that came along with the probabilities and are none, such as numbers of patients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from raterwise import rules
from raterwise.errors import InvalidInputError
from raterwise.rules import OVERSHOOT, listed
from raterwise.types import Array

CHUNK_VALUES = 1 << 17
"""How many probabilities are looked at in one go."""


def odd_columns(probs: Array, tolerance: float) -> list[int]:
    """Return the columns that are no probabilities, where the others show it; else none.

    That is sure of those beyond [0, 1] where they hold nothing but whole numbers, or the rows of
    all others sum to 1; and of one within [0, 1] without which all rows sum to 1.

    >>> odd_columns(np.array([[11, 0.1, 0.9], [12, 0.4, 0.6]]), 1e-4)
    [0]
    >>> odd_columns(np.array([[0, 60, 40], [1, 59, 40]]), 1e-4)  # percentages
    []
    >>> odd_columns(np.array([[2.5, -0.1, 0.9], [0.3, 0.4, 0.6]]), 1e-4)  # logits
    []
    """
    if probs.ndim != 2 or probs.shape[1] < 2 or not np.isfinite(probs).all():
        return []
    values = probs.astype(np.float64)

    totals = values.sum(axis=1)
    # Percentages, rounded to whole ones at worst, some columns of which may be small.
    if (np.abs(totals - 100) <= probs.shape[1] / 2).all():
        return []

    def others_sum_to_one(columns: Array) -> bool:
        rest = totals - values[:, columns].sum(axis=1)
        several = values.shape[1] - len(columns) > 1
        return several and bool((np.abs(rest - 1) <= tolerance).all())

    inside = ((values >= -OVERSHOOT) & (values <= 1 + OVERSHOOT)).all(axis=0)
    beyond = np.flatnonzero(~inside)
    if not inside.any():
        return []
    if len(beyond):
        whole = bool((values[:, beyond] == np.round(values[:, beyond])).all())
        return beyond.tolist() if whole or others_sum_to_one(beyond) else []
    alone = (column for column in range(values.shape[1]) if others_sum_to_one(np.array([column])))
    return list(islice(alone, 1))


def named_as_odd(names: Sequence[str]) -> str:
    """Return the sentence that columns of these names are no probabilities.

    >>> named_as_odd(["id"]), named_as_odd(["id", "age"])
    ("column 'id' is no probability", "columns 'id', 'age' are no probabilities")
    """
    if len(names) == 1:
        return f"column {listed(names)} is no probability"
    return f"columns {listed(names)} are no probabilities"


def explain_bad_row(
    probs: Array, row: int, tolerance: float, given: int, columns: Sequence[str] = ()
) -> InvalidInputError:
    """Say what is wrong with `row`, the first bad one of `probs`.

    `given` is its number outside, `columns` what a data frame calls the columns.
    """
    if columns and (odd := odd_columns(probs, tolerance)):
        named = named_as_odd([columns[k] for k in odd])
        them = "it" if len(odd) == 1 else "them"
        return InvalidInputError(
            f"probs: must be the probabilities alone; {named}: leave {them} out"
        )

    def count_nan() -> int:
        parts = range(0, len(probs), CHUNK_VALUES)
        return sum(int(np.isnan(probs[i : i + CHUNK_VALUES]).sum()) for i in parts)

    values = np.atleast_1d(probs[row]).astype(np.float64).tolist()
    return rules.bad_row("probs", given, values, tolerance, count_nan)
