"""The columns of a table as numbers, ids and classes; an error names the column, row and value.

Rows are counted as people count them: the first row below the column names is row 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.numbers import all_match, plain_column, refuse_empty
from raterwise.io.texts import is_text
from raterwise.labels import Labels
from raterwise.labels.classes import (
    ANSWERS,
    MEANS_NONE,
    MISSING_CODES,
    NO_RATING,
    as_text,
    codes_of_texts,
    is_whole,
    same_text,
)
from raterwise.rules import did_you_mean, listed
from raterwise.types import Array

if TYPE_CHECKING:
    import pyarrow as pa


UNKNOWN = -2
SHORTENED = re.compile(r"\d([.,]\d+)?E\+\d+")
"""How spreadsheets show long numbers: their last digits are lost."""


def as_ids(column: pa.ChunkedArray, where: str) -> Array:
    """Return a column of ids: whole numbers as integers, text as Python strings.

    Where all are 1.0, 2.0, 3.0, as pandas writes whole numbers in a column that had gaps, they are
    1, 2, 3. Days become text, 2024-12-31.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_column(column)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    refuse_empty(column, where)
    if pa.types.is_date(column.type):
        column = column.cast(pa.string())
    if is_text(column.type) and all_match(column, r"^-?[0-9]+\.0+$"):
        column = pc.replace_substring_regex(column, r"\.0+$", "")
    elif pa.types.is_floating(column.type):
        numbers = column.cast(pa.float64())
        if pc.all(pc.equal(numbers, pc.floor(numbers))).as_py():
            column = numbers.cast(pa.int64(), safe=False)
    if not (pa.types.is_integer(column.type) or is_text(column.type)):
        raise InvalidInputError(f"{where}: must hold text or whole numbers; it holds {column.type}")
    return np.asarray(column.to_numpy())


def id_at(ids: Array, row: int) -> Any:
    """Return one id as Python writes it: 7, not np.int64(7)."""
    return ids[row : row + 1].tolist()[0]


def refuse_repeats(ids: Array, where: str, else_: str = "") -> None:
    """Raise an error that names the ids that occur more than once, if there are any.

    `else_` is what else they may be.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = pc.value_counts(pa.array(ids))
    often = counted.filter(pc.greater(counted.field("counts"), 1))
    if len(often):
        names = often.field("values").to_pylist()
        way = f"keep one row of each, or give every row an id of its own{else_}"
        if any(SHORTENED.fullmatch(str(name)) for name in names):
            way = (
                "a spreadsheet shortened the numbers: format the ids as text and export them again"
            )
        raise InvalidInputError(
            f"{where}: every case must have one row; these have more: {listed(names, most=5)} "
            f"({way})"
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
        if not way and row == len(found) - 1 > 0:
            way = " (if the last row is no case but a total, delete it)"
        raise InvalidInputError(
            f"{where}: must hold classes; data row {row + 1} is {text!r}, and the classes are "
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
    text: str, rated: Sequence[str], class_names: Sequence[str], known: Mapping[str, int]
) -> str:
    """Return which option takes a text that is no class, where one does; others are `known`."""
    if MEANS_NONE.fullmatch(text):
        return _if_no_rating(*dict.fromkeys((text, *filter(MEANS_NONE.fullmatch, rated))))
    if same_text(text) in map(str, MISSING_CODES):
        return _if_no_rating(text)
    if text.casefold() in {name.casefold() for name in class_names}:
        return " (ignore_case=True takes upper and lower case for the same)"
    words = [word for word in rated if not MEANS_NONE.fullmatch(word)]
    others = [word for word in words if word not in known]
    if class_names[0] == f"not {class_names[-1]}" and len(others) == 1 and 0 not in known.values():
        return f' (class_names="{text},{class_names[1]}" names the classes as the ratings do)'
    if len(class_names) == 2 and (way := _answers_named(words, class_names, known)):
        return way
    whole = all(map(is_whole, (*words, *class_names)))
    if whole and (way := _other_numbers(words, class_names)):
        return way
    if len(words) == len(class_names) and not set(words) & set(class_names):
        return (
            f' (class_names="{",".join(sorted(words))}" names the classes as the ratings do, in '
            "the order of the probabilities: check their order)"
        )
    if whole:
        return ""
    if all(map(is_whole, class_names)) and not any(map(is_whole, words)):
        return (
            " (class_names gives the classes the names that the ratings have, in the order of the "
            "probabilities)"
        )
    meant = did_you_mean(text, class_names)
    code = is_whole(text) and 0 <= float(text) < len(class_names)
    if not meant and code and any(word in class_names for word in words):
        return " (names and codes are mixed: write names)"
    if not meant and others == [text] and not is_whole(text):
        return _if_no_rating(text)
    return meant


def _other_numbers(words: Sequence[str], class_names: Sequence[str]) -> str:
    """Return how to name the classes where ratings count as many steps from another number."""
    steps = sorted({int(float(word)) for word in words})
    first, last, names = steps[0], steps[-1], sorted(int(float(name)) for name in class_names)
    if last - first != len(names) - 1 or names != [*range(names[0], names[-1] + 1)]:
        return ""
    shift = first - names[0]
    said = ",".join(str(int(float(name)) + shift) for name in class_names)
    return f' (if the ratings count from {first}: class_names="{said}" names the classes so)'


def _answers_named(words: Sequence[str], class_names: Sequence[str], known: Collection[str]) -> str:
    """Return how to name two classes as raters answer, where they answer yes and no."""
    answers = sorted(
        (word for word in words if word.lower() in ANSWERS), key=lambda w: ANSWERS[w.lower()]
    )
    meanings = {ANSWERS[word.lower()] for word in answers}
    if meanings != {0, 1} or {*answers} & {*class_names, *known}:
        return ""
    others = ",".join(word for word in words if word not in answers)
    neither = f', missing="{others}" leaves out the others' if others else ""
    if len(answers) > 2:  # in several spellings
        return f' (class_names="no,yes" takes {", ".join(answers)} for no and yes{neither})'
    return f' (class_names="{",".join(answers)}" names the classes as the ratings do{neither})'


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
            f"{where}: must hold 1 or 0, yes or no, true or false; data row {row + 1} is {text!r}"
            f"{_if_no_rating(text) if MEANS_NONE.fullmatch(text) else ''}"
        )
    return found


def _texts_by_row(column: pa.ChunkedArray, where: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different values of a column as text, and which of them each row has.

    The last one is "", for empty cells.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_column(column)
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


def _classes_in_words(class_names: Sequence[str], values: list[str]) -> str:
    words = listed(class_names)
    if all(map(is_whole, values)) and not any(map(is_whole, class_names)):
        words += f", or the codes 0 … {len(class_names) - 1}"
    return words
