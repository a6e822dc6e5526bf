"""The columns of a table as numbers; an error names the column, the row and a way out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.texts import is_text
from raterwise.labels.classes import MEANS_NONE
from raterwise.types import Array

if TYPE_CHECKING:
    import pyarrow as pa


DECIMAL_COMMA = r"^[+-]?([0-9]+|[0-9]*,[0-9]+)([eE][+-]?[0-9]+)?$"
MAYBE_THOUSANDS = r"^[+-]?([0-9]{1,3}|[1-9][0-9]{0,2},[0-9]{3})$"
"""A column of nothing else could hold 1,234 for one thousand and more."""
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}([.,'\u2019 ][0-9]{3})+([.,][0-9]+)?")
POINT_OR_THOUSANDS = r"^[+-]?([0-9]{1,3}|[1-9][0-9]{0,2}(\.[0-9]{3})+)$"
"""So a program that writes decimal commas writes thousands, and no other does."""
LEAST_PERCENT = 0.01
"""Below it all percentages would be fractions of one."""
BLANKS = "[\\s\u00a0\u2007\u202f]*"


def as_numbers(
    column: pa.ChunkedArray, where: str, *, percent: bool = False, gaps: bool = False
) -> Array:
    """Return a column of finite numbers: floats as they are, anything else as float64.

    A column of decimal commas is read as such. With `percent` 75 and 75% are 0.75. With `gaps`
    numbers need not be finite and empty cells are NaN, for one who knows which rows count.
    """
    import pyarrow as pa

    column = plain_column(column)
    if not gaps:
        refuse_empty(column, where)
    kind = column.type
    if is_text(kind):
        numbers = _parsed(column, where, percent)
    elif pa.types.is_floating(kind):
        numbers = column.to_numpy()
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False).to_numpy()
    else:
        hint = " (give each class a column of its own)" if pa.types.is_nested(kind) else ""
        raise InvalidInputError(f"{where}: must hold numbers; it holds {kind}{hint}")
    if not gaps and not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InvalidInputError(
            f"{where}: must hold finite numbers; data row {row + 1} is {numbers[row]} (leave "
            "out the cases without a number)"
        )
    return numbers / 100 if percent else numbers


def as_weights(
    column: pa.ChunkedArray, where: str, others: Sequence[pa.ChunkedArray] = ()
) -> Array:
    """Return a column of weights, none of them negative.

    Where `others`, columns of the same file, have decimal commas, 1.234 may be one thousand: it is
    refused.
    """
    column = plain_column(column)
    if is_text(column.type) and all_match(column, POINT_OR_THOUSANDS):
        texts = [each for each in map(plain_column, others) if is_text(each.type)]
        pointed = [text for text in column.to_pylist() if text is not None and "." in text]
        if pointed and any(
            all_match(each, DECIMAL_COMMA) and not all_match(each, "^[0-9]*$") for each in texts
        ):
            raise InvalidInputError(
                f"{where}: {pointed[0]} may be a thousand or a fraction, as other columns have "
                "decimal commas; write thousands without a point, fractions with a comma"
            )
    numbers = as_numbers(column, where)
    if (numbers < 0).any():
        row = int(np.flatnonzero(numbers < 0)[0])
        raise InvalidInputError(
            f"{where}: weights must not be negative; data row {row + 1} is {numbers[row]:g}"
        )
    return numbers


def as_whole_numbers(column: pa.ChunkedArray, where: str) -> NDArray[np.int64]:
    """Return a column of whole numbers, none of them negative."""
    refuse_empty(plain_column(column), where, "write 0 for none")
    numbers = as_numbers(column, where)
    bad = (numbers < 0) | (numbers != np.floor(numbers))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        share = " (how many raters, not which share of them)" if 0 < numbers[row] < 1 else ""
        raise InvalidInputError(
            f"{where}: must hold whole numbers from 0; data row {row + 1} is "
            f"{numbers[row]:g}{share}"
        )
    return numbers.astype(np.int64)


def has_signs(column: pa.ChunkedArray) -> bool:
    """Tell whether a column writes its numbers with a % sign."""
    column = plain_column(column)
    return is_text(column.type) and all_match(column, ".*%$")


def refuse_fractions(columns: Sequence[pa.ChunkedArray], probs: Array, source: str) -> None:
    """Refuse `percent` for probabilities that are none: all from 0 to 1, and no % sign anywhere.

    `probs` are those columns after the division by 100.
    """
    if not len(probs) or probs.max() > LEAST_PERCENT:
        return
    if not any(map(has_signs, columns)):
        raise InvalidInputError(
            f"percent: the largest probability of {source} is {100 * probs.max():.6g}, which is no "
            "percentage; leave out percent (or write the percentages with a % sign)"
        )


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without its dictionary, as pandas' categories come, or other packing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    elif pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks])
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def refuse_empty(column: pa.ChunkedArray, where: str, way: str = "") -> None:
    """Raise an error that names the first row of a column that is empty, if any is."""
    import pyarrow.compute as pc

    if not column.null_count:
        return
    first = int(pc.index(column.is_null(), True).as_py())
    if column.null_count == len(column) > 1:
        raise InvalidInputError(f"{where}: must not be empty; every row is empty")
    if not way and first == len(column) - column.null_count:
        way = "if the last rows are no cases, delete them"
    raise InvalidInputError(
        f"{where}: must not be empty; data row {first + 1} is empty "
        f"({way or 'fill it in, or delete the row'})"
    )


def all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    """Tell whether every text of a column matches."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def _parsed(column: pa.ChunkedArray, where: str, percent: bool = False) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    trimmed = pc.replace_substring(trimmed, "\u2212", "-")  # a minus of typographers
    if percent:
        signs = pc.match_substring_regex(trimmed, "%$")
        trimmed = pc.replace_substring_regex(trimmed, f"{BLANKS}%$", "")
        if pc.any(signs).as_py() and not pc.all(signs).as_py():
            row = pc.index(signs, False).as_py()
            raise InvalidInputError(
                f"{where}: must have a % sign in every row or in none; data row {row + 1}, "
                f"{column[row].as_py()!r}, has none"
            )
    try:
        return np.asarray(trimmed.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        row, text = _first_not_a_number(trimmed)
    if all_match(trimmed, DECIMAL_COMMA) and not all_match(trimmed, MAYBE_THOUSANDS):
        with_points = pc.replace_substring(trimmed, ",", ".")
        return np.asarray(with_points.cast(pa.float64()).to_numpy())
    way = _way_to_a_number(text)
    hint = f" ({way})" if way else ""
    raise InvalidInputError(f"{where}: must hold numbers; data row {row} is {text!r:.60}{hint}")


def _way_to_a_number(text: str) -> str:
    """Return what to do about a text that is no number, where that can be told."""
    if text.count(",") == 1 and _is_number(text.replace(",", ".")):
        return "a decimal comma; write a decimal point"
    if text.endswith("%") and _is_number(text[:-1].replace(",", ".")):
        return "percent=True takes percentages"
    if MEANS_NONE.fullmatch(text):
        return "leave out the cases without a number"
    if THOUSANDS.fullmatch(text):
        return "write it without a sign between the thousands, and with a decimal point"
    if text[:1] in "<>\u2264\u2265~" and _is_number(text[1:].strip("= ")):
        return "a bound; write a number"
    return ""


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
