"""The columns of a table as numbers, ids and classes; an error names the column, row and value.

Rows are counted as people count them: the first row below the column names is row 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raterwise.classes import ANSWERS, NO_RATING, as_text, codes_of_texts, is_whole, same_text
from raterwise.errors import InvalidInputError
from raterwise.io.sources import listed
from raterwise.labels import Labels
from raterwise.rules import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[Any]

UNKNOWN = -2
MEANS_NONE = re.compile(r"n/?an?|null|none|missing|unknown|[.?-]+|-[0-9]+", re.IGNORECASE)
DECIMAL_COMMA = r"^[+-]?([0-9]+|[0-9]*,[0-9]+)([eE][+-]?[0-9]+)?$"
MAYBE_THOUSANDS = r"^[+-]?([0-9]{1,3}|[1-9][0-9]{0,2},[0-9]{3})$"
"""A column of nothing else could hold 1,234 for one thousand and more."""


def as_numbers(column: pa.ChunkedArray, where: str, *, percent: bool = False) -> Array:
    """Return a column of finite numbers: floats as they are, anything else as float64.

    A column of decimal commas is read as such. With `percent` 75 and 75% are 0.75.
    """
    import pyarrow as pa

    column = _plain(column)
    _refuse_empty(column, where)
    kind = column.type
    if _is_text(kind):
        numbers = _parsed(column, where, percent)
    elif pa.types.is_floating(kind):
        numbers = column.to_numpy()
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False).to_numpy()
    else:
        raise InvalidInputError(f"{where}: must hold numbers; it holds {kind}")
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise InvalidInputError(
            f"{where}: must hold finite numbers; row {row + 1} is {numbers[row]}"
        )
    return numbers / 100 if percent else numbers


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
    """Return a column of ids: whole numbers as integers, text as Python strings.

    Where all are 1.0, 2.0, 3.0, as pandas writes whole numbers in a column that had gaps, they are
    1, 2, 3.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    _refuse_empty(column, where)
    if _is_text(column.type) and _all_match(column, r"^-?[0-9]+\.0+$"):
        column = pc.replace_substring_regex(column, r"\.0+$", "")
    elif pa.types.is_floating(column.type):
        numbers = column.cast(pa.float64())
        if pc.all(pc.equal(numbers, pc.floor(numbers))).as_py():
            column = numbers.cast(pa.int64(), safe=False)
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
            f"{where}: every case must have one row; these have more: {listed(names, most=5)} "
            "(keep one row of each, or give every row an id of its own)"
        )


def as_class_codes(
    column: pa.ChunkedArray,
    class_names: Sequence[str],
    where: str,
    missing: Collection[str] = (),
    *,
    ignore_case: bool = False,
    beside: Collection[str] = (),
) -> NDArray[np.int64]:
    """Return the class 0 … K-1 of each row, and -1 where there is no rating.

    Values are class names. Where no class has a whole number for a name, a column that holds
    nothing but whole numbers holds codes: 0 is the first class. Empty cells, NaN and whatever
    `missing` lists are no rating. `beside` is what other columns of ratings hold, for messages.
    """
    texts, rows = _texts_by_row(column, where)
    absent = {"", *map(same_text, missing)}
    rated = [text for text in texts if same_text(text) not in absent]
    known = codes_of_texts(rated, class_names, ignore_case=ignore_case)
    code = dict.fromkeys(rated, UNKNOWN) | known
    found = np.array([code.get(text, NO_RATING) for text in texts], np.int64)[rows]
    if UNKNOWN in code.values():
        # One word among the codes makes names of all of them: that word is the mistake.
        odd = np.array([not is_whole(text) for text in texts])[rows]
        unknown = found == UNKNOWN
        row = int(np.flatnonzero(unknown & odd if (unknown & odd).any() else unknown)[0])
        text = texts[rows[row]]
        way = _way_out(text, list(dict.fromkeys((*rated, *beside))), class_names, known)
        raise InvalidInputError(
            f"{where}: must hold classes; row {row + 1} is {text!r}, and the classes are "
            f"{_classes_in_words(class_names, rated)}{way}"
        )
    return found


def different_texts(
    columns: Sequence[pa.ChunkedArray], where: str, missing: Collection[str] = ()
) -> list[str]:
    """Return the different values of some columns as text, without what is no rating."""
    absent = {"", *map(same_text, missing)}
    texts = [text for column in columns for text in _texts_by_row(column, where)[0]]
    return list(dict.fromkeys(text.strip() for text in texts if same_text(text) not in absent))


def _way_out(
    text: str, rated: Sequence[str], class_names: Sequence[str], known: Collection[str]
) -> str:
    """Return which option takes a text that is no class, where one does; others are `known`."""
    if MEANS_NONE.fullmatch(text):
        return _if_no_rating(*dict.fromkeys((text, *filter(MEANS_NONE.fullmatch, rated))))
    if text.casefold() in {name.casefold() for name in class_names}:
        return " (ignore_case=True takes upper and lower case for the same)"
    words = [word for word in rated if not MEANS_NONE.fullmatch(word)]
    answers = sorted(
        (word for word in words if word.lower() in ANSWERS), key=lambda w: ANSWERS[w.lower()]
    )
    if len(class_names) == len(answers) == 2 and not {*answers} & {*class_names, *known}:
        others = ",".join(word for word in words if word not in answers)
        neither = f', missing="{others}" leaves out the others' if others else ""
        named = f'class_names="{",".join(answers)}" names the classes as the ratings do'
        return f" ({named}{neither})"
    if len(words) == len(class_names) and not set(words) & set(class_names):
        return (
            f' (class_names="{",".join(sorted(words))}" names the classes as the ratings do, in '
            "the order of the probabilities: put them right)"
        )
    meant = did_you_mean(text, class_names)
    alone = all(word == text or word in known for word in rated)
    if not meant and alone and not is_whole(text) and " " not in text:
        return _if_no_rating(text)
    return meant


def as_yes_or_no(
    column: pa.ChunkedArray, where: str, missing: Collection[str] = ()
) -> NDArray[np.int64]:
    """Return 1 for yes, 0 for no and -1 where there is no rating, row by row.

    Yes is 1, yes or true (y, t, positive, present) and no is 0, no or false (n, f, negative,
    absent), in letters of any case. Empty cells, NaN and whatever `missing` lists are no rating.
    """
    texts, rows = _texts_by_row(column, where)
    absent = {"", *map(same_text, missing)}
    codes = [
        NO_RATING if same_text(text) in absent else ANSWERS.get(same_text(text).lower(), UNKNOWN)
        for text in texts
    ]
    found = np.array(codes, np.int64)[rows]
    if (found == UNKNOWN).any():
        row = int(np.flatnonzero(found == UNKNOWN)[0])
        text = texts[rows[row]]
        raise InvalidInputError(
            f"{where}: must hold 1 or 0, yes or no, true or false; row {row + 1} is {text!r}"
            f"{_if_no_rating(text) if MEANS_NONE.fullmatch(text) else ''}"
        )
    return found


def _texts_by_row(column: pa.ChunkedArray, where: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different values of a column as text, and which of them each row has.

    The last one is "", for empty cells.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise InvalidInputError(f"{where}: must hold text or numbers; it holds {column.type}")
    encoded = pc.dictionary_encode(column.combine_chunks())
    texts = [*(as_text(value) for value in encoded.dictionary.to_pylist()), ""]
    rows = encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return texts, np.asarray(rows, np.int64)


def _if_no_rating(*texts: str) -> str:
    """Return how to say that texts are no rating."""
    what = "that is" if len(texts) == 1 else "those are"
    return f' (if {what} no rating: missing="{",".join(texts)}")'


def labels_of_codes(codes: NDArray[np.int64], class_names: Sequence[str]) -> Labels:
    """Return the labels of (N, R) class codes, -1 for none; one full column is single labels."""
    num_classes = len(class_names)
    if codes.shape[1] == 1 and (codes >= 0).all():
        return Labels.from_classes(codes[:, 0], num_classes=num_classes, class_names=class_names)
    return Labels.from_ratings(codes, num_classes=num_classes, class_names=class_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without its dictionary, as pandas' categories come, or other packing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    elif pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks])
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _refuse_empty(column: pa.ChunkedArray, where: str) -> None:
    """Raise an error that names the first row of a column that is empty, if any is."""
    import pyarrow.compute as pc

    if not column.null_count:
        return
    first = int(pc.index(column.is_null(), True).as_py())
    at_end = first == len(column) - column.null_count
    hint = " (if the last rows are no cases, delete them)" if at_end else ""
    raise InvalidInputError(f"{where}: must not be empty; row {first + 1} is{hint}")


def _parsed(column: pa.ChunkedArray, where: str, percent: bool = False) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    if percent:
        trimmed = pc.replace_substring_regex(trimmed, r"\s*%$", "")
    try:
        return np.asarray(trimmed.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        row, text = _first_not_a_number(trimmed)
    if _all_match(trimmed, DECIMAL_COMMA) and not _all_match(trimmed, MAYBE_THOUSANDS):
        with_points = pc.replace_substring(trimmed, ",", ".")
        return np.asarray(with_points.cast(pa.float64()).to_numpy())
    hint = ""
    if text.count(",") == 1 and _is_number(text.replace(",", ".")):
        hint = " (a decimal comma; write a decimal point)"
    elif text.endswith("%") and _is_number(text[:-1].replace(",", ".")):
        hint = " (percent=True takes percentages)"
    elif MEANS_NONE.fullmatch(text):
        hint = " (leave out the cases without a number)"
    raise InvalidInputError(f"{where}: must hold numbers; row {row} is {text!r}{hint}")


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


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


def _classes_in_words(class_names: Sequence[str], values: list[str]) -> str:
    words = listed(class_names)
    if all(map(is_whole, values)) and not any(map(is_whole, class_names)):
        words += f", or the codes 0 … {len(class_names) - 1}"
    return words
