"""The columns of a table as numbers, ids and classes; an error names the column, row and value.

Rows are counted as people count them: the first row below the column names is row 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.sources import listed
from raterwise.labels import Labels

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "as_class_codes",
    "as_ids",
    "as_numbers",
    "as_whole_numbers",
    "as_yes_or_no",
    "different_texts",
    "id_at",
    "labels_of_codes",
    "refuse_repeats",
]

Array = NDArray[Any]

NO_RATING, UNKNOWN = -1, -2
MEANS_NONE = re.compile(r"n/?an?|null|none|missing|unknown|[.?-]+|-[0-9]+", re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")
ANSWERS = {"0": 0, "no": 0, "false": 0, "1": 1, "yes": 1, "true": 1}
"""What a rater may answer to the question whether something is there."""


def as_numbers(column: pa.ChunkedArray, where: str) -> Array:
    """Return a column of finite numbers: floats as they are, anything else as float64."""
    import pyarrow as pa

    column = _plain(column)
    if column.null_count:
        raise InvalidInputError(f"{where}: must not be empty; row {_first_null(column)} is")
    kind = column.type
    if _is_text(kind):
        numbers = _parsed(column, where)
    elif pa.types.is_floating(kind):
        numbers = column.to_numpy()
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False).to_numpy()
    else:
        raise InvalidInputError(f"{where}: must hold numbers; it holds {kind}")
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(
            f"{where}: must hold finite numbers; row {row + 1} is {numbers[row]}"
        )
    return numbers


def as_whole_numbers(column: pa.ChunkedArray, where: str) -> NDArray[np.int64]:
    """Return a column of whole numbers, none of them negative."""
    numbers = as_numbers(column, where)
    bad = (numbers < 0) | (numbers != np.floor(numbers))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(
            f"{where}: must hold whole numbers from 0; row {row + 1} is {numbers[row]:g}"
        )
    return numbers.astype(np.int64)


def as_ids(column: pa.ChunkedArray, where: str) -> Array:
    """Return a column of ids: whole numbers as integers, text as Python strings."""
    import pyarrow as pa

    column = _plain(column)
    if column.null_count:
        raise InvalidInputError(f"{where}: must not be empty; row {_first_null(column)} is")
    if not (pa.types.is_integer(column.type) or _is_text(column.type)):
        raise InvalidInputError(f"{where}: must hold text or whole numbers; it holds {column.type}")
    return np.asarray(column.to_numpy())


def id_at(ids: Array, row: int) -> Any:
    """Return one id as Python writes it: 7, not np.int64(7)."""
    return ids[row : row + 1].tolist()[0]


def refuse_repeats(ids: Array, where: str) -> None:
    """Raise an error that names the ids that occur more than once, if there are any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = pc.value_counts(pa.array(ids))
    often = counted.filter(pc.greater(counted.field("counts"), 1))
    if len(often):
        names = often.field("values").to_pylist()
        raise InvalidInputError(
            f"{where}: every case must have one row; these have more: {listed(names, most=5)}"
        )


def as_class_codes(
    column: pa.ChunkedArray,
    class_names: Sequence[str],
    where: str,
    missing: Collection[str] = (),
) -> NDArray[np.int64]:
    """Return the class 0 … K-1 of each row, and -1 where there is no rating.

    Values are class names. Where no class has a whole number for a name, a column that holds
    nothing but whole numbers holds codes: 0 is the first class. Empty cells, NaN and whatever
    `missing` lists are no rating.
    """
    texts, rows = _texts_by_row(column)
    absent = {"", *map(_same, missing)}
    rated = [text for text in texts if _same(text) not in absent]
    code = dict.fromkeys(rated, UNKNOWN) | _codes_by_text(rated, class_names)
    found = np.array([code.get(text, NO_RATING) for text in texts], np.int64)[rows]
    if (found == UNKNOWN).any():
        # One word among the codes makes names of all of them: that word is the mistake.
        odd = np.array([not _is_whole(text) for text in texts])[rows]
        unknown = found == UNKNOWN
        row = int(np.flatnonzero(unknown & odd if (unknown & odd).any() else unknown)[0])
        text = texts[rows[row]]
        raise InvalidInputError(
            f"{where}: must hold classes; row {row + 1} is {text!r}, and the classes are "
            f"{_classes_in_words(class_names, rated)}{_if_no_rating(text)}"
        )
    return found


def different_texts(columns: Sequence[pa.ChunkedArray], missing: Collection[str] = ()) -> list[str]:
    """Return the different values of some columns as text, without what is no rating."""
    absent = {"", *map(_same, missing)}
    texts = [text for column in columns for text in _texts_by_row(column)[0]]
    return list(dict.fromkeys(text.strip() for text in texts if _same(text) not in absent))


def as_yes_or_no(
    column: pa.ChunkedArray, where: str, missing: Collection[str] = ()
) -> NDArray[np.int64]:
    """Return 1 for yes, 0 for no and -1 where there is no rating, row by row.

    Yes is 1, yes or true and no is 0, no or false, in letters of any case. Empty cells, NaN and
    whatever `missing` lists are no rating.
    """
    texts, rows = _texts_by_row(column)
    absent = {"", *map(_same, missing)}
    codes = [
        NO_RATING if _same(text) in absent else ANSWERS.get(_same(text).lower(), UNKNOWN)
        for text in texts
    ]
    found = np.array(codes, np.int64)[rows]
    if (found == UNKNOWN).any():
        row = int(np.flatnonzero(found == UNKNOWN)[0])
        text = texts[rows[row]]
        raise InvalidInputError(
            f"{where}: must hold 1 or 0, yes or no, true or false; row {row + 1} is {text!r}"
            f"{_if_no_rating(text)}"
        )
    return found


def _texts_by_row(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different values of a column as text, and which of them each row has.

    The last one is "", for empty cells.
    """
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(_plain(column).combine_chunks())
    texts = [*(_as_text(value) for value in encoded.dictionary.to_pylist()), ""]
    rows = encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return texts, np.asarray(rows, np.int64)


def _if_no_rating(text: str) -> str:
    """Return how to say that a text is no rating, where it looks like none."""
    return f' (if that is no rating: missing="{text}")' if MEANS_NONE.fullmatch(text) else ""


def labels_of_codes(codes: NDArray[np.int64], class_names: Sequence[str]) -> Labels:
    """Return the labels of (N, R) class codes, -1 for none; one full column is single labels."""
    num_classes = len(class_names)
    if codes.shape[1] == 1 and (codes >= 0).all():
        return Labels.from_classes(codes[:, 0], num_classes=num_classes, class_names=class_names)
    return Labels.from_ratings(codes, num_classes=num_classes, class_names=class_names)


def _codes_by_text(values: list[str], class_names: Sequence[str]) -> dict[str, int]:
    """Return what each value means: names where they are names, codes where they can only be."""
    names = {name: k for k, name in enumerate(class_names)}
    numbers = {_number(name): k for name, k in names.items()}
    if not any(map(_is_whole, class_names)) and all(map(_is_whole, values)):
        numbers = {k: k for k in range(len(class_names))}
    elif None in numbers or len(numbers) < len(names):  # "1" and "01" are different names
        numbers = {}
    found = {value: names.get(value, numbers.get(_number(value))) for value in values}
    return {value: code for value, code in found.items() if code is not None}


def _classes_in_words(class_names: Sequence[str], values: list[str]) -> str:
    words = listed(class_names)
    if all(map(_is_whole, values)) and not any(map(_is_whole, class_names)):
        words += f", or the codes 0 … {len(class_names) - 1}"
    return words


def _as_text(value: object) -> str:
    """Return a rating as text, "" where there is none; true is "1" and 1.0 is a number like 1."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value).strip()


def _same(text: str) -> str:
    """Return the text that all writings of one value share: "1" for "1.0"."""
    number = _number(text)
    return text if number is None else str(number)


def _is_whole(text: str) -> bool:
    return _number(text) is not None


def _number(text: str) -> int | None:
    """Return the whole number that `text` is; columns with gaps are often written 1.0 for 1."""
    match = WHOLE_NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without its dictionary, as pandas' categories come."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _first_null(column: pa.ChunkedArray) -> int:
    import pyarrow.compute as pc

    return int(pc.index(column.is_null(), True).as_py()) + 1


def _parsed(column: pa.ChunkedArray, where: str) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    try:
        return np.asarray(trimmed.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        row, text = _first_not_a_number(trimmed)
    hint = ""
    if text.count(",") == 1 and _is_number(text.replace(",", ".")):
        hint = " (a decimal comma; write a decimal point)"
    raise InvalidInputError(f"{where}: must hold numbers; row {row} is {text!r}{hint}")


def _first_not_a_number(column: pa.ChunkedArray) -> tuple[int, str]:
    import pyarrow as pa

    for row, value in enumerate(column, start=1):
        try:
            value.cast(pa.float64())
        except pa.ArrowInvalid:
            return row, str(value.as_py())
    raise AssertionError("a column that cannot be cast has a value that cannot")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
