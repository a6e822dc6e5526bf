"""Tables of ratings in three layouts: a column per rater, a row per rating, or counts per class.

Of classes that are known (`read_ratings`), or that are found in the table (`read_rated`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.layouts import (
    AS_USUAL,
    LAYOUT_ARGUMENTS,
    RATER_COLUMNS,
    RATING_COLUMNS,
    TableColumns,
    count_columns,
    find_id_column,
    has_ids,
    layout_of,
    rating_columns,
    usual_column,
    wide_columns,
)
from raterwise.io.matching import alike_note
from raterwise.io.npz import is_npz, labels_of_npz, read_npz
from raterwise.io.numbers import as_whole_numbers
from raterwise.io.sources import TableFile
from raterwise.io.unused_columns import unused_notes
from raterwise.io.values import (
    as_class_codes,
    as_ids,
    different_texts,
    refuse_repeats,
)
from raterwise.labels import Labels, Ratings
from raterwise.labels.classes import MEANS_NONE, is_whole, missing_codes
from raterwise.labels.duplicates import DUPLICATES, chosen_of_each, refuse_repeated
from raterwise.rules import choose, listed
from raterwise.types import Array

MOST_STEPS = 100
"""Up to how many steps a scale of whole numbers has, those that nobody used among them."""


@dataclass(frozen=True, eq=False)
class RatingTable:
    """What the raters said about each case of a file."""

    ids: Array
    """(M,): the cases, each once, in the order of the file."""
    labels: Labels
    """In the same order."""
    source: str
    """The name of the file."""
    notes: tuple[str, ...] = ()
    """What to know about how it was read."""
    codes: bool = False
    """Whether the ratings are codes of classes that have names."""


def read_ratings(
    path: str | PathLike[str],
    class_names: Sequence[str],
    told: TableColumns = AS_USUAL,
    *,
    beside: Collection[str] = (),
    number_rows: bool = False,
    id_argument: str = "id_column",
) -> RatingTable:
    """Return the ratings of a CSV, Excel, Parquet, Arrow or NPZ file.

    Ratings are names out of `class_names`, or the codes 0 … K-1; with `ignore_case` in letters of
    any case. Empty cells, and whatever `missing` lists, are no rating; a case may be left with
    none. `duplicates` says what becomes of several ratings of a case by one rater: "error",
    "keep" counts each, "last" takes the last one, "average" the one most often given. `beside`
    are columns of the file that somebody else reads. Where it has no column of ids, `number_rows`
    makes 1, 2, 3 … of them. `id_argument` is what names the column of the cases in this file.

    >>> path = getfixture("tmp_path") / "ratings.csv"
    >>> _ = path.write_text("case,reader,label\\nn1,A,benign\\nn1,B,malignant\\nn2,A,benign\\n")
    >>> table = read_ratings(path, ["benign", "malignant"])
    >>> table.ids.tolist(), table.labels.counts.tolist()
    (['n1', 'n2'], [[1, 1], [1, 0]])
    """
    id_column = told.id_of_ratings
    if told.ratings_layout is not None:
        choose("ratings_layout", told.ratings_layout, tuple(LAYOUT_ARGUMENTS))
    if is_npz(path):
        if told.ratings_layout or told.ratings_named or id_column:
            raise InvalidInputError(
                "an NPZ file has no columns: its ratings are the array labels, ratings or counts, "
                "and its ids the array ids"
            )
        arrays = read_npz(path)
        labels = labels_of_npz(arrays, class_names, told.missing, required=True)
        assert labels is not None
        return RatingTable(arrays.ids_of(len(labels)), labels, arrays.name, arrays.notes())
    choose("duplicates", told.duplicates, DUPLICATES)
    file = told.open(path)
    layout = layout_of(file, told)
    case: str | None = None
    if not number_rows or layout == "long" or has_ids(file, id_column):
        case = find_id_column(file, id_column, id_argument)
    coding = Coding(tuple(class_names), told.missing, told.ignore_case)
    if layout == "wide":
        found, used = _read_wide(file, case, told, coding)
    elif layout == "long":
        assert case is not None  # rows of ratings are no cases to number
        found, used = _read_long(file, case, told, coding)
    else:
        found, used = _read_counts(file, case, told, coding)
    notes = (
        *unused_notes(file, {case or "", *used, *beside}, of_ratings=not number_rows),
        *found.notes,
    )
    return replace(found, notes=(file.note, *notes) if file.note else notes)


@dataclass(frozen=True)
class Coding:
    """How the values of ratings become classes."""

    class_names: tuple[str, ...]
    missing: Collection[str] = ()
    ignore_case: bool = False
    beside: Collection[str] = ()
    """What all columns of the ratings hold, for messages."""

    def codes(self, column: Any, where: str) -> NDArray[np.int64]:
        """Return a column as codes, -1 for no rating."""
        told = (self.class_names, where, self.missing)
        return as_class_codes(column, *told, ignore_case=self.ignore_case, beside=self.beside)

    def takes_codes(self, columns: Sequence[Any]) -> bool:
        """Tell whether columns hold codes, of classes that are not called by numbers."""
        if any(map(is_whole, self.class_names)):
            return False
        texts = different_texts(columns, "ratings", self.missing)
        return bool(texts) and all(map(is_whole, texts))


def _read_wide(
    file: TableFile, case: str | None, told: TableColumns, coding: Coding
) -> tuple[RatingTable, list[str]]:
    """Return the ratings of a column per rater, and which columns were read."""
    names = wide_columns(file, told)
    if case in names:
        raise InvalidInputError(f"rater_columns: must not hold the id column {case!r}")
    ids, table = _ids_and_columns(file, case, names)
    held = [table.column(name) for name in names]
    coding = replace(coding, beside=different_texts(held, f"{file.name}: ratings"))
    codes = [coding.codes(table.column(name), file.where(name)) for name in names]
    class_names = coding.class_names
    labels = Labels.from_ratings(
        np.stack(codes, axis=1), num_classes=len(class_names), class_names=class_names
    )
    assert labels.ratings is not None
    ratings = replace(labels.ratings, rater_ids=tuple(names))
    labels = replace(labels, ratings=ratings, case_ids=tuple(ids.tolist()))
    return RatingTable(ids, labels, file.name, codes=coding.takes_codes(held)), names


def _read_long(
    file: TableFile, case: str, told: TableColumns, coding: Coding
) -> tuple[RatingTable, list[str]]:
    """Return the ratings of a row per rating, and which columns were read."""
    rater = usual_column(file, told.rater_column, RATER_COLUMNS, "rater_column")
    rating = usual_column(file, told.rating_column, RATING_COLUMNS, "rating_column")
    table = file.read([case, rater, rating])
    items, ids = encoded(as_ids(table.column(case), file.where(case)))
    raters, rater_ids = encoded(as_ids(table.column(rater), file.where(rater)))
    codes = coding.codes(table.column(rating), file.where(rating))
    pairs = items * len(rater_ids) + raters
    if told.duplicates == "error":
        refuse_repeated(pairs, ids.tolist(), rater_ids.tolist(), file.name)
    # A case whose only ratings are empty stays, unrated.
    rated, notes = chosen_of_each(pairs, codes, told.duplicates, file.name)
    notes = (*notes, *alike_note(rater_ids.tolist(), "raters", file.name))
    ratings = Ratings(items[rated], raters[rated], codes[rated], tuple(rater_ids.tolist()))
    classes = len(coding.class_names)
    counts = np.bincount(ratings.case * classes + ratings.label, minlength=len(ids) * classes)
    labels = Labels.from_counts(counts.reshape(-1, classes), class_names=coding.class_names)
    labels = replace(labels, ratings=ratings, case_ids=tuple(ids.tolist()))
    coded = coding.takes_codes([table.column(rating)])
    return RatingTable(ids, labels, file.name, notes, coded), [rater, rating]


def encoded(values: Array) -> tuple[NDArray[np.int64], Array]:
    """Return each value as a code, and the values by code in the order of first appearance."""
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    return codes, np.asarray(encoded.dictionary.to_numpy(zero_copy_only=False))


def _read_counts(
    file: TableFile, case: str | None, told: TableColumns, coding: Coding
) -> tuple[RatingTable, list[str]]:
    """Return how many raters chose each class, and which columns were read."""
    names = count_columns(file, told, coding.class_names)
    ids, table = _ids_and_columns(file, case, names)
    counts = [as_whole_numbers(table.column(name), file.where(name)) for name in names]
    labels = Labels.from_counts(np.stack(counts, axis=1), class_names=coding.class_names)
    labels = replace(labels, case_ids=tuple(ids.tolist()))
    return RatingTable(ids, labels, file.name), names


def _ids_and_columns(file: TableFile, case: str | None, names: Sequence[str]) -> tuple[Array, Any]:
    """Return the ids of the cases, or the numbers of the rows, and the columns."""
    if case is None:
        table = file.read(names)
        return np.arange(1, table.num_rows + 1), table
    table = file.read([case, *names])
    long = "; if a row is one rating, name its columns: rater_column and rating_column"
    return unique_ids(table.column(case), file, case, long), table


def unique_ids(column: Any, file: TableFile, name: str, else_: str = "") -> Array:
    """Return the ids of a column that names each case once."""
    ids = as_ids(column, file.where(name))
    refuse_repeats(ids, file.where(name), else_)
    return ids


@dataclass(frozen=True, eq=False)
class RatedTable:
    """The ratings of a file, with what can be told of their classes."""

    ratings: RatingTable
    class_names: tuple[str, ...]
    scale: str
    """"interval" for whole numbers, "ordinal" where the order was given, otherwise "nominal"."""
    groups: list[Any] | None
    """The patient of each case."""


def read_rated(path: str | PathLike[str], told: TableColumns = AS_USUAL) -> RatedTable:
    """Return the ratings of a CSV, Excel, Parquet or Arrow file whose classes nobody has listed.

    Whole numbers are steps of a scale, those between the smallest and the largest that nobody used
    among them; other values are names without an order, unless `class_names` gives one. The other
    options are those of `read_ratings`.

    >>> path = getfixture("tmp_path") / "ratings.csv"
    >>> _ = path.write_text("case,reader_1,reader_2\\na,1,2\\nb,4,4\\n")
    >>> table = read_rated(path)
    >>> table.class_names, table.scale, table.ratings.labels.counts.tolist()
    (('1', '2', '3', '4'), 'interval', [[1, 1, 0, 0], [0, 0, 0, 2]])
    """
    if is_npz(path):
        raise InvalidInputError(
            "ratings: must be a table with columns (CSV, Excel, Parquet or Arrow); an NPZ file "
            "has none"
        )
    file = told.open(path)
    names, scale = tuple(told.class_names or ()), "ordinal"
    if not names:
        layout, found = rating_columns(file, told)
        if layout == "counts":
            names, scale = tuple(found), "nominal"
        else:
            held = [file.read([c]).column(c) for c in found.values()]
            texts = different_texts(held, f"{file.name}: ratings", told.missing)
            if told.ignore_case:  # the first spelling is the name
                texts = list({text.casefold(): text for text in reversed(texts)}.values())
            _refuse_doubtful(texts, file.name)
            names, scale = _classes(texts)
    if len(names) < 2:
        raise InvalidInputError(
            f"ratings: agreement needs two classes; {file.name} names {', '.join(names) or 'none'}."
            " List all that could have been said with class_names"
        )
    beside = () if told.group_column is None else (told.group_column,)
    ratings = read_ratings(path, names, told, beside=beside)
    groups = None
    if told.group_column is not None:
        case = find_id_column(file, told.id_column)
        groups = _patients(file, case, told.group_column, ratings)
    return RatedTable(ratings, names, scale, groups)


def _refuse_doubtful(texts: Collection[str], source: str) -> None:
    """Refuse to take for a class what may be no rating, or another spelling of one."""
    none = [text for text in texts if MEANS_NONE.fullmatch(text)]
    if none := none or missing_codes(texts):
        every = ",".join(text for text in texts if text not in none)
        raise InvalidInputError(
            f"class_names: {source} has {listed(none)}; if that is no rating: "
            f'missing="{",".join(none)}"; if it is a class, class_names lists them all, in order '
            f"(others: {every:.60})"
        )
    folded: dict[str, str] = {}
    for text in texts:
        if (other := folded.setdefault(text.casefold(), text)) != text:
            raise InvalidInputError(
                f"class_names: {source} has {other!r} and {text!r} (ignore_case=True takes upper "
                "and lower case for the same)"
            )


def _classes(texts: Collection[str]) -> tuple[tuple[str, ...], str]:
    """Return the classes in order, and the scale that they can be taken for."""
    try:
        numbers = sorted(int(text) for text in texts)
    except ValueError:
        return tuple(sorted(texts)), "nominal"
    if numbers and numbers[-1] - numbers[0] < MOST_STEPS:
        return tuple(str(n) for n in range(numbers[0], numbers[-1] + 1)), "interval"
    return tuple(map(str, numbers)), "ordinal"


def _patients(file: TableFile, case: str, group_column: str, ratings: RatingTable) -> list[Any]:
    """Return the patient of each case; a case of two patients is a mistake."""
    table = file.read([case, file.require(group_column, "group_column")])
    cases = as_ids(table.column(case), file.where(case)).tolist()
    found: dict[Any, Any] = {}
    for name, patient in zip(cases, table.column(group_column).to_pylist(), strict=True):
        if patient is None or found.setdefault(name, patient) != patient:
            raise InvalidInputError(
                f"group_column: case {name!r} must be of one patient; got {found.get(name)!r} and "
                f"{patient!r}"
            )
    return [found[name] for name in ratings.ids.tolist()]
