"""Data frames and series of any library, through narwhals: as arrays, lists and classes.

pandas, polars, pyarrow and modin look alike from here on. Nothing of them is imported until
somebody hands over one of their objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raterwise import rules
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.types import Array

PLAIN = frozenset(("builtins", "numpy", "raterwise", "torch"))
"""Packages whose objects are no data frames: for them narwhals is not even imported."""
NUMBERS = (bool, int, float, np.number, np.bool_)
PREFIX = "prob_"
"""With which columns of probabilities may begin; the name of the class follows."""


@dataclass(frozen=True)
class Values:
    """A column of classes: numbers, or anything else as Python objects with None for missing."""

    numbers: Array | None
    """Integers, truth values, or floats with NaN where there is none."""
    objects: Sequence[Any] = ()
    categories: tuple[str, ...] | None = None
    """In their order, where the column states one."""
    kind: str = ""
    """What the column calls its type."""


def _native(values: Any, name: str) -> Any:
    """Return what is a data frame or a series in narwhals' clothes; None for anything else."""
    root = type(values).__module__.partition(".")[0]
    if root in PLAIN:
        return None
    import narwhals.stable.v2 as nw

    if root == "pyarrow" and hasattr(values, "dictionary_encode") and hasattr(values, "buffers"):
        import pyarrow as pa

        values = pa.chunked_array([values])
    try:
        found = nw.from_native(values, pass_through=True, allow_series=True)
        if isinstance(found, nw.LazyFrame):  # whose columns may be dear to find
            raise InvalidTypeError(f"{name}: must be in memory; got a lazy frame: collect it first")
        list(getattr(found, "columns", ()))
    except nw.exceptions.DuplicateError as error:
        message = f"{name}: must have columns of different names; got {list(values.columns)}"
        raise InvalidInputError(message) from error
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def is_frame(values: Any) -> bool:
    """Tell whether `values` is a data frame: columns with names."""
    found = _native(values, "frame")
    return found is not None and hasattr(found, "columns")


def columns_of(values: Any, name: str) -> dict[str, Any] | None:
    """Return the columns of a data frame by name, of a series the one it has; None otherwise."""
    found = _native(values, name)
    if found is None:
        return None
    if not hasattr(found, "columns"):
        return {str(found.name or ""): found}
    # By place: pandas takes numbers and tuples for names, narwhals takes them for rows.
    return {str(column): found[:, place] for place, column in enumerate(found.columns)}


def require_columns(frame: Any, names: Sequence[str], argument: str) -> list[Any]:
    """Return columns of a data frame by their names, as its own series.

    >>> import pyarrow as pa
    >>> require_columns(pa.table({"ann": [0, 1]}), ["anne"], "raters")
    Traceback (most recent call last):
    ...
    raterwise.errors.InvalidInputError: raters: must name columns of the frame; there is no 'anne'
    (did you mean 'ann'?) (columns: 'ann')
    """
    found = _native(frame, "df")
    if found is None or not hasattr(found, "columns"):
        raise InvalidTypeError(
            f"df: must be a data frame (pandas, polars, pyarrow, modin); got {type(frame).__name__}"
        )
    for name in names:
        if name not in found.columns:
            known = ", ".join(repr(column) for column in found.columns)
            raise InvalidInputError(
                f"{argument}: must name columns of the frame; there is no {name!r}"
                f"{rules.did_you_mean(name, found.columns)} (columns: {known})"
            )
    return [found[:, found.columns.index(name)].to_native() for name in names]


def class_names_of(values: Any) -> tuple[str, ...] | None:
    """Return what the columns of a frame of probabilities call the classes, if it is one.

    >>> import pyarrow as pa
    >>> class_names_of(pa.table({"prob_benign": [0.5], "prob_malignant": [0.5]}))
    ('benign', 'malignant')
    """
    found = _native(values, "probs")
    names = list(getattr(found, "columns", ()))
    if len(names) < 2 or not all(isinstance(name, str) for name in names):
        return None
    if all(name.startswith(PREFIX) and name != PREFIX for name in names):
        return tuple(name.removeprefix(PREFIX) for name in names)
    return tuple(names)


def numbers_of(values: Any, name: str) -> Array | None:
    """Return a frame (N, K) or a series (N,) of numbers, NaN where one is missing; None otherwise.

    A frame of one column is taken as that column; a series of lists (N,) as its rows (N, K).
    """
    columns = columns_of(values, name)
    if columns is None:
        return None
    arrays = {title: _numbers(column, name, title) for title, column in columns.items()}
    if not arrays:
        raise InvalidInputError(f"{name}: must have columns; the frame has none")
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    for title, array in arrays.items():
        if array.ndim > 1:
            raise InvalidTypeError(
                f"{name}: must have one number per column and row, or be one column of lists; "
                f"column {title!r} holds lists of {array.shape[1]} beside {len(arrays) - 1} other "
                "columns"
            )
    return np.stack(list(arrays.values()), axis=1)


def _numbers(column: Any, name: str, title: str) -> Array:
    import narwhals.stable.v2 as nw

    kind = column.dtype
    if kind in (nw.Object, nw.Unknown, nw.List, nw.Array):
        rows = [np.nan if rules.is_missing(value) else value for value in column.to_list()]
        refuse_ragged(rows, name)
        array = np.array(rows)
        if array.dtype.kind in "biuf":
            return array
    if kind.is_decimal():
        column, kind = column.cast(nw.Float64), nw.Float64()
    if not (kind.is_numeric() or kind == nw.Boolean):
        first = next((value for value in column.to_list() if value is not None), None)
        raise InvalidTypeError(
            f"{name}: must be an array of numbers; column {title!r} holds {kind} "
            f"(first value {first!r}): leave it out"
        )
    if column.null_count() and not kind.is_float():
        column = column.cast(nw.Float64)
    array = np.asarray(column.to_numpy())
    if array.dtype == object:  # pandas' own nullable types
        array = np.array([np.nan if v is None else v for v in column.to_list()], np.float64)
    return array


def refuse_ragged(rows: Any, name: str) -> None:
    """Raise where lists of numbers are not equally long: NumPy's own words name no row."""
    lengths = [len(row) if isinstance(row, list | tuple | np.ndarray) else 0 for row in rows]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise InvalidTypeError(
                f"{name}: must be an array of numbers with rows of one length; row 0 has "
                f"{lengths[0]} values, row {row} has {length}"
            )


def as_list(values: Any, name: str = "ids") -> list[Any]:
    """Return a column as Python objects: a series of any library, a tensor, an array, a list."""
    columns = columns_of(values, name)
    if columns is not None:
        if len(columns) != 1:
            raise InvalidInputError(f"{name}: must be one column; got {len(columns)}")
        return list(next(iter(columns.values())).to_list())
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, Iterable):
        raise InvalidTypeError(f"{name}: must be one column of values; got {values!r}")
    return list(values)


def values_of(column: Any) -> Values:
    """Return a column of classes: a narwhals series, or a one-dimensional array."""
    if isinstance(column, np.ndarray):
        dtype = str(column.dtype)
        numeric = column.dtype.kind in "biuf"
        return Values(column, kind=dtype) if numeric else _of_objects(column.tolist(), dtype)
    import narwhals.stable.v2 as nw

    kind = column.dtype
    if kind == nw.Categorical or kind == nw.Enum:
        listed = [None if rules.is_missing(v) else v for v in column.to_list()]
        return Values(None, listed, _categories(column), str(kind))
    if kind.is_numeric() or kind == nw.Boolean:
        return Values(_numbers(column, "labels", str(column.name)), kind=str(kind))
    return _of_objects(column.to_list(), str(kind))


def _categories(column: Any) -> tuple[str, ...] | None:
    """Return the categories in their order; None where that is only the order of appearance."""
    import narwhals.stable.v2 as nw

    if column.dtype == nw.Enum:
        return tuple(map(str, column.dtype.categories))
    native = column.to_native()
    told = getattr(getattr(native, "dtype", None), "categories", None)
    if type(native).__module__.partition(".")[0] == "polars" or told is None:
        return None
    return tuple(map(str, told))


def _of_objects(objects: Sequence[Any], kind: str) -> Values:
    """Return objects as numbers where they are nothing else, with NaN for those missing."""
    listed = [None if rules.is_missing(value) else value for value in objects]
    if any(value is not None for value in listed):
        if all(value is None or isinstance(value, NUMBERS) for value in listed):
            numbers = [np.nan if value is None else float(value) for value in listed]
            return Values(np.array(numbers, np.float64), kind=kind)
    elif not listed or kind != "str":
        return Values(np.full(len(listed), np.nan), kind=kind)
    return Values(None, listed, None, kind)


def refuse_other_order(probs: Any, **others: Any) -> None:
    """Raise where the rows of pandas objects are the same ones in another order, or partly others.

    Rows are matched by their place. An index that says otherwise is a mistake waiting to be made.
    """
    index = getattr(probs, "index", None)
    if index is None or not hasattr(index, "equals"):
        return
    for name, other in others.items():
        theirs = getattr(other, "index", None)
        ids = getattr(other, "case_ids", None)  # of Labels that know their cases
        if ids is None and (not hasattr(theirs, "equals") or index.equals(theirs)):
            continue
        given: Any = theirs if ids is None else ids
        rows, same = list(index), list(given)
        if len(rows) != len(same) or rows == same:
            continue
        if set(rows) == set(same):
            way = "order=probs.index" if ids is not None else f"{name}.loc[probs.index]"
            raise InvalidInputError(
                f"{name}: must have its rows in the order of probs; the index has the same rows in "
                f"another order: {way} puts them in place"
            )
        counted = list(range(len(rows)))  # an index that is no more than the number of the row
        if set(rows) & set(same) and counted not in (rows, same):
            odd = next(row for row in same if row not in set(rows))
            raise InvalidInputError(
                f"{name}: must have the rows of probs; the index has others, such as {odd!r}"
            )
