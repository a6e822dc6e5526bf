"""What tells cases apart, such as the scanner: the levels of a variable, and who has which."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.frames import as_list, columns_of, is_frame
from raterwise.rules import is_missing
from raterwise.types import IntArray

MISSING = "(missing)"
"""The level of the cases of which the variable is not known."""
MOST_LEVELS = 20


@dataclass(frozen=True, eq=False)
class Variable:
    """What the cases are told apart by, such as the scanner: the level of each."""

    name: str
    levels: tuple[str, ...]
    codes: IntArray
    """(N,): which of the levels."""

    def take(self, rows: IntArray | None) -> Variable:
        """Return the variable of the chosen cases, without levels that none of them has."""
        if rows is None:
            return self
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        return Variable(self.name, tuple(self.levels[i] for i in kept), codes)


def variables_of(subgroups: Any, cases: int) -> tuple[Variable, ...]:
    """Return the variables of a mapping of columns, a data frame, a structured array or a column.

    >>> (scanner,) = variables_of({"scanner": ["B", "A", None, "B"]}, cases=4)
    >>> scanner.levels, scanner.codes
    (('A', 'B', '(missing)'), array([1, 0, 2, 1]))
    """
    if isinstance(subgroups, Mapping):
        columns = dict(subgroups)
    elif (names := getattr(getattr(subgroups, "dtype", None), "names", None)) is not None:
        columns = {name: subgroups[name] for name in names}
    elif is_frame(subgroups):
        columns = columns_of(subgroups, "subgroups") or {}
    elif hasattr(subgroups, "columns"):
        columns = {name: subgroups[name] for name in subgroups.columns}
    else:
        columns = {getattr(subgroups, "name", None) or "subgroup": subgroups}
    if not columns:
        raise InvalidInputError("subgroups: must name at least one variable; got none")
    return tuple(_variable(str(name), column, cases) for name, column in columns.items())


def _variable(name: str, column: Any, cases: int) -> Variable:
    listed = as_list(column, "subgroups")
    if len(listed) != cases or (listed and isinstance(listed[0], list)):
        raise InvalidInputError(
            f"subgroups: {name!r} must have one value for each of {cases} cases; "
            f"got shape {getattr(column, 'shape', np.shape(listed))}"
        )
    texts = [_text(value) for value in listed]
    found = dict.fromkeys(texts)
    # A categorical column says in which order its levels come; numbers and words have their own.
    native = column.to_native() if hasattr(column, "to_native") else column
    told = getattr(getattr(native, "dtype", None), "categories", None)
    if told is not None:
        levels = [level for value in told if (level := _text(value)) in found]
        levels += [MISSING] if MISSING in found else []
        check_levels(name, levels)
    else:
        levels = in_order(name, found)
    code = {level: i for i, level in enumerate(levels)}
    return Variable(name, tuple(levels), np.array([code[text] for text in texts], np.int64))


def in_order(name: str, found: Iterable[str]) -> list[str]:
    """Return the levels of a variable in the order of their numbers or words, missing ones last.

    >>> in_order("size", ["> 20 mm", "(missing)", "< 6 mm"])
    ['< 6 mm', '> 20 mm', '(missing)']
    """
    known = set(found)
    levels = sorted(known - {MISSING}, key=_place) + [MISSING] * (MISSING in known)
    check_levels(name, levels)
    return levels


def check_levels(name: str, levels: Sequence[str]) -> None:
    """Refuse a variable with too many levels to compare."""
    if len(levels) > MOST_LEVELS:
        numbers = all(_number(level) is not None for level in levels if level != MISSING)
        way_out = "put the numbers into bins first" if numbers else "merge the rare ones first"
        raise InvalidInputError(
            f"subgroups: {name!r} has {len(levels)} levels, more than {MOST_LEVELS}; {way_out}"
        )


def _text(value: Hashable) -> str:
    """Return a level's name: 2.0 is 2, and None, NaN, NA and empty text are missing."""
    if is_missing(value):
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or MISSING


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _place(level: str) -> tuple[float, int, str]:
    """Return what to sort a level by: its first number, if it has one, with < 6 before 6-10.

    >>> sorted(["> 20 mm", "10-20 mm", "6-10 mm", "< 6 mm"], key=_place)
    ['< 6 mm', '6-10 mm', '10-20 mm', '> 20 mm']
    """
    whole = _number(level)
    found = re.search(r"\d+(\.\d+)?", level)
    first = whole if whole is not None else float(found[0]) if found else -math.inf
    return first, (level[:1] in ">≥") - (level[:1] in "<≤"), level
