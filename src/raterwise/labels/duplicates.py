"""Several ratings of a case by one rater: refused, or one of them chosen."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

Duplicates = Literal["error", "keep", "average", "last"]

DUPLICATES = ("error", "keep", "average", "last")
"""What may become of them."""
WAYS_OUT = '(duplicates="last" takes the last one, "average" the one most often given, "keep" all)'


def chosen_of_each(
    pairs: NDArray[np.int64], codes: NDArray[np.int64], duplicates: str | None, source: str
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return which ratings count, and a note of those that are repeats unless "keep" was asked for.

    Codes below 0 are no ratings; `pairs` tells which ones are of the same rater and case, and
    `source` is where they are from, for the note. With None each counts.
    """
    rated = codes >= 0
    if duplicates in ("keep", "error"):
        return rated, ()
    kept = one_of_each(pairs, codes, duplicates or "last")
    again = int(rated.sum() - kept.sum())
    if not again:
        return kept, ()
    counting = {
        "last": "the last one counts",
        "average": "the most frequent one counts",
        None: f"each counts {WAYS_OUT}",
    }
    repeats = "rating is a repeat" if again == 1 else "ratings are repeats"
    told = f"{again} {repeats} by the same rater of the same case; {counting[duplicates]}"
    kept = rated if duplicates is None else kept
    return kept, (f"{source}: {told}",)


def one_of_each(
    pairs: NDArray[np.int64], codes: NDArray[np.int64], duplicates: str
) -> NDArray[np.bool_]:
    """Say which ratings to keep so that each pair (case, rater) has one; codes below 0 never.

    "last" keeps the last of a pair, "average" the last of the class that it has most often; of
    classes that are as frequent, the one given last.

    >>> codes = np.array([0, 1, 1, 0, 2])
    >>> one_of_each(np.array([7, 7, 7, 7, 8]), codes, "last").tolist()
    [False, False, False, True, True]
    >>> one_of_each(np.array([7, 7, 7, 8, 8]), codes, "average").tolist()
    [False, False, True, False, True]
    """
    rows = np.flatnonzero(codes >= 0)
    often = np.zeros(len(rows), np.int64)
    if duplicates == "average":
        both = pairs[rows] * (codes.max(initial=0) + 1) + codes[rows]
        _, place, times = np.unique(both, return_inverse=True, return_counts=True)
        often = times[place]
    order = rows[np.lexsort((rows, often, pairs[rows]))]
    last = np.ones(len(order), bool)
    last[:-1] = pairs[order][1:] != pairs[order][:-1]
    kept = np.zeros(len(codes), bool)
    kept[order[last]] = True
    return kept


def refuse_repeated(
    pairs: NDArray[np.int64], ids: Sequence[Hashable], rater_ids: Sequence[Hashable], source: str
) -> None:
    """Raise an error if a pair (case * raters + rater) occurs more than once."""
    ordered = np.sort(pairs)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if again.size:
        item, who = divmod(int(again[0]), len(rater_ids))
        raise InvalidInputError(
            f"{source}: a rater must rate a case once; {rater_ids[who]!r} has more than one row "
            f"for case {ids[item]!r} {WAYS_OUT}"
        )
