"""Tables of ratings in three layouts: a column per rater, a row per rating, or counts per class."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import choose
from raterwise.classes import is_whole
from raterwise.errors import InvalidInputError
from raterwise.io.columns import unused_notes
from raterwise.io.duplicates import DUPLICATES, chosen_of_each, refuse_repeated
from raterwise.io.npz import is_npz, labels_of_npz, read_npz
from raterwise.io.sources import TableFile, listed, open_table
from raterwise.io.values import as_class_codes, as_ids, as_whole_numbers, refuse_repeats
from raterwise.labels import Labels, Ratings
from raterwise.rules import did_you_mean

__all__ = [
    "RatingColumns",
    "RatingTable",
    "columns_beside",
    "encoded",
    "find_id_column",
    "has_ids",
    "rating_columns",
    "read_ratings",
    "unique_ids",
    "usual_layouts",
    "usual_column",
]

LAYOUT_ARGUMENTS = {
    "wide": ("rater_columns", "rater_prefix"),
    "long": ("rater_column", "rating_column"),
    "counts": ("count_columns", "count_prefix"),
}
RATER_COLUMNS = ("reader", "rater")
RATING_COLUMNS = ("label", "rating")
RATER_PREFIXES = ("reader_", "rater_")
RATER_NAME = re.compile(r"(reader|rater)(?:[ _.-]+\S.*|\d+)", re.IGNORECASE)
"""How the columns of raters are usually called: reader_1, Reader 2, reader3, rater_smith."""
LIKE_IDS = re.compile(r"(^|[ _.-])(id|case|image|study|file(name)?)s?$", re.IGNORECASE)
NO_CASE = re.compile(r"patient|subject|reader|rater|annotation", re.IGNORECASE)
UNNAMED = ("", "Unnamed: 0")
"""What pandas and others write over a column that has no name: the first one may be the id."""
COUNT_PREFIX = "count_"

Array = NDArray[Any]


@dataclass(frozen=True)
class RatingColumns:
    """Which columns hold the ratings; what is left out is found by its usual name, or refused.

    wide: `rater_columns` or `rater_prefix` (usually reader_ or rater_), one column per rater;
    long: `rater_column` (usually reader or rater) and `rating_column` (usually label or rating);
    counts: `count_columns` or `count_prefix` (usually count_), one column per class.
    """

    layout: str | None = None
    rater_columns: Sequence[str] = ()
    rater_prefix: str | None = None
    rater_column: str | None = None
    rating_column: str | None = None
    count_columns: Sequence[str] = ()
    count_prefix: str | None = None

    @property
    def named(self) -> dict[str, list[str]]:
        """The arguments that were given, by the layout they speak of."""
        return {
            layout: given
            for layout, names in LAYOUT_ARGUMENTS.items()
            if (given := [name for name in names if getattr(self, name)])
        }


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


def read_ratings(
    path: str | PathLike[str],
    class_names: Sequence[str],
    columns: RatingColumns | None = None,
    *,
    id_column: str | None = None,
    missing: Collection[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    ignore_case: bool = False,
    duplicates: str = "error",
    beside: Collection[str] = (),
    number_rows: bool = False,
) -> RatingTable:
    """Return the ratings of a CSV, Excel, Parquet, Arrow or NPZ file.

    Ratings are names out of `class_names`, or the codes 0 … K-1; with `ignore_case` in letters of
    any case. Empty cells, and whatever `missing` lists, are no rating; a case may be left with
    none. `duplicates` says what becomes of several ratings of a case by one rater: "error",
    "keep" counts each, "last" takes the last one, "average" the one most often given. `beside`
    are columns of the file that somebody else reads. Where it has no column of ids, `number_rows`
    makes 1, 2, 3 … of them.

    >>> path = getfixture("tmp_path") / "ratings.csv"
    >>> _ = path.write_text("case,reader,label\\nn1,A,benign\\nn1,B,malignant\\nn2,A,benign\\n")
    >>> table = read_ratings(path, ["benign", "malignant"])
    >>> table.ids.tolist(), table.labels.counts.tolist()
    (['n1', 'n2'], [[1, 1], [1, 0]])
    """
    columns = columns or RatingColumns()
    if columns.layout is not None:
        choose("ratings_layout", columns.layout, tuple(LAYOUT_ARGUMENTS))
    if is_npz(path):
        if columns.layout or columns.named or id_column:
            raise InvalidInputError(
                "an NPZ file has no columns: its ratings are the array labels, ratings or counts, "
                "and its ids the array ids"
            )
        arrays = read_npz(path)
        labels = labels_of_npz(arrays, class_names, missing, required=True)
        assert labels is not None
        return RatingTable(arrays.ids_of(len(labels)), labels, arrays.name)
    choose("duplicates", duplicates, DUPLICATES)
    file = open_table(path, delimiter=delimiter, encoding=encoding)
    layout = _layout(file, columns)
    case: str | None = None
    if not number_rows or layout == "long" or has_ids(file, id_column):
        case = find_id_column(file, id_column)
    coding = Coding(tuple(class_names), missing, ignore_case)
    if layout == "wide":
        found, used = _read_wide(file, case, columns, coding)
    elif layout == "long":
        assert case is not None  # rows of ratings are no cases to number
        found, used = _read_long(file, case, columns, coding, duplicates)
    else:
        found, used = _read_counts(file, case, columns, coding)
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

    def codes(self, column: Any, where: str) -> NDArray[np.int64]:
        """Return a column as codes, -1 for no rating."""
        told = (self.class_names, where, self.missing)
        return as_class_codes(column, *told, ignore_case=self.ignore_case)


def find_id_column(file: TableFile, id_column: str | None) -> str:
    """Return the column that names the case: the one asked for, `case`, or an unnamed first one."""
    if id_column is not None or "case" in file.columns:
        return file.require("case" if id_column is None else id_column, "id_column")
    if file.columns[0] in UNNAMED:
        return file.columns[0]
    raise InvalidInputError(
        f"id_column: must say which column of {file.name} names the case; there is no 'case' "
        f"(columns: {listed(file.columns)}){_maybe_ids(file)}"
    )


def _maybe_ids(file: TableFile) -> str:
    """Return how to say that a column names the case, where one looks like it."""
    like = [name for name in file.columns if LIKE_IDS.search(name) and not NO_CASE.search(name)]
    return f'; perhaps id_column="{like[0]}"' if like else did_you_mean("case", file.columns)


def has_ids(file: TableFile, id_column: str | None) -> bool:
    """Tell whether a column of ids is named, or found without a name."""
    return id_column is not None or "case" in file.columns or file.columns[0] in UNNAMED


def _layout(file: TableFile, columns: RatingColumns) -> str:
    """Return the layout that was asked for, or the only one that the columns can mean."""
    named = columns.named
    if columns.layout is not None:
        wrong = [name for layout in named if layout != columns.layout for name in named[layout]]
        if wrong:
            raise InvalidInputError(
                f"{wrong[0]}: does not go with the layout {columns.layout!r} of the ratings"
            )
        return columns.layout
    if len(named) > 1:
        raise InvalidInputError(
            f"{' and '.join(names[0] for names in named.values())}: belong to different layouts "
            f"of the ratings ({', '.join(named)}); use one"
        )
    if named:
        return next(iter(named))
    found = [layout for layout, fits in usual_layouts(file).items() if fits]
    if len(found) == 1:
        return found[0]
    problem = f"{' and '.join(found)} fit" if found else "none fits"
    raise InvalidInputError(
        f"ratings_layout: must be told for {file.name}; by the names of its columns {problem} "
        f"({listed(file.columns)}). wide has rater_columns (reader_… or rater_…), long has a "
        "rater_column (reader or rater) and a rating_column (label or rating), counts has "
        "count_columns (count_…)"
    )


def usual_layouts(file: TableFile) -> dict[str, bool]:
    """Return which layouts the columns have the usual names of."""

    def has(names: Collection[str]) -> bool:
        return bool(set(names) & set(file.columns))

    return {
        "wide": any(RATER_NAME.fullmatch(name) for name in file.columns),
        "long": has(RATER_COLUMNS) and has(RATING_COLUMNS),
        "counts": bool(_with_prefix(file, COUNT_PREFIX)),
    }


def _with_prefix(file: TableFile, prefix: str) -> list[str]:
    return [name for name in file.columns if name.startswith(prefix)]


def _by_prefix(file: TableFile, prefixes: Sequence[str], argument: str) -> tuple[str, list[str]]:
    """Return the one prefix of `prefixes` that columns have, and those columns."""
    found = {prefix: names for prefix in prefixes if (names := _with_prefix(file, prefix))}
    if len(found) != 1:
        rule = "name one" if found else "be the beginning of a column's name"
        raise InvalidInputError(
            f"{argument}: must {rule} in {file.name}; tried {listed(prefixes)} "
            f"(columns: {listed(file.columns)})"
        )
    return next(iter(found.items()))


def _wide_columns(file: TableFile, columns: RatingColumns) -> list[str]:
    """Return the raters' columns: as given, by a prefix, or those of one kind: readers, raters."""
    if columns.rater_columns:
        return [file.require(name, "rater_columns") for name in columns.rater_columns]
    if columns.rater_prefix:
        return _by_prefix(file, [columns.rater_prefix], "rater_prefix")[1]
    found: dict[str, list[str]] = {}
    for name in file.columns:
        if match := RATER_NAME.fullmatch(name):
            found.setdefault(match[1].lower(), []).append(name)
    if len(found) != 1:
        return _by_prefix(file, RATER_PREFIXES, "rater_prefix")[1]  # which says what is wrong
    return next(iter(found.values()))


def usual_column(file: TableFile, given: str | None, usual: Sequence[str], argument: str) -> str:
    """Return the column asked for, or the only one that has a usual name."""
    if given is not None:
        return file.require(given, argument)
    found = [name for name in usual if name in file.columns]
    if len(found) != 1:
        problem = f"both {' and '.join(found)} are there" if found else "it has none of the usual"
        raise InvalidInputError(
            f"{argument}: must name a column of {file.name}; {problem} "
            f"({' or '.join(usual)}; columns: {listed(file.columns)})"
        )
    return found[0]


def rating_columns(file: TableFile, columns: RatingColumns) -> tuple[str, dict[str, str]]:
    """Return the layout of ratings, and the columns that hold them: by rater, or by class."""
    layout = _layout(file, columns)
    if layout == "long":
        rating = usual_column(file, columns.rating_column, RATING_COLUMNS, "rating_column")
        return layout, {rating: rating}
    if layout == "wide":
        return layout, {name: name for name in _wide_columns(file, columns)}
    prefix, names = columns.count_prefix or COUNT_PREFIX, list(columns.count_columns)
    names = names or _by_prefix(file, [prefix], "count_prefix")[1]
    return layout, {name.removeprefix(prefix): name for name in names}


def columns_beside(
    file: TableFile, columns: RatingColumns, class_names: tuple[str, ...]
) -> tuple[str | None, list[str]]:
    """Return the layout of ratings beside probabilities, one row a case, and their columns.

    None where neither the options nor the usual names tell it.
    """
    usual = usual_layouts(file)
    if not columns.named and not (usual["wide"] or usual["counts"]):
        return None, []
    layout = _layout(file, columns)
    if layout == "wide":
        return layout, _wide_columns(file, columns)
    return layout, _count_columns(file, columns, class_names)


def _read_wide(
    file: TableFile, case: str | None, columns: RatingColumns, coding: Coding
) -> tuple[RatingTable, list[str]]:
    """Return the ratings of a column per rater, and which columns were read."""
    names = _wide_columns(file, columns)
    if case in names:
        raise InvalidInputError(f"rater_columns: must not hold the id column {case!r}")
    ids, table = _ids_and_columns(file, case, names)
    codes = [coding.codes(table.column(name), f"{file.name}: column {name!r}") for name in names]
    class_names = coding.class_names
    labels = Labels.from_ratings(
        np.stack(codes, axis=1), num_classes=len(class_names), class_names=class_names
    )
    assert labels.ratings is not None
    ratings = replace(labels.ratings, rater_ids=tuple(names))
    labels = replace(labels, ratings=ratings, case_ids=tuple(ids.tolist()))
    return RatingTable(ids, labels, file.name), names


def _read_long(
    file: TableFile, case: str, columns: RatingColumns, coding: Coding, duplicates: str
) -> tuple[RatingTable, list[str]]:
    """Return the ratings of a row per rating, and which columns were read."""
    rater = usual_column(file, columns.rater_column, RATER_COLUMNS, "rater_column")
    rating = usual_column(file, columns.rating_column, RATING_COLUMNS, "rating_column")
    table = file.read([case, rater, rating])
    items, ids = encoded(as_ids(table.column(case), f"{file.name}: column {case!r}"))
    raters, rater_ids = encoded(as_ids(table.column(rater), f"{file.name}: column {rater!r}"))
    codes = coding.codes(table.column(rating), f"{file.name}: column {rating!r}")
    pairs = items * len(rater_ids) + raters
    if duplicates == "error":
        refuse_repeated(pairs, ids, rater_ids, file)
    # A case whose only ratings are empty stays, unrated.
    rated, notes = chosen_of_each(pairs, codes, duplicates, file)
    ratings = Ratings(items[rated], raters[rated], codes[rated], tuple(rater_ids.tolist()))
    classes = len(coding.class_names)
    counts = np.bincount(ratings.case * classes + ratings.label, minlength=len(ids) * classes)
    labels = Labels.from_counts(counts.reshape(-1, classes), class_names=coding.class_names)
    labels = replace(labels, ratings=ratings, case_ids=tuple(ids.tolist()))
    return RatingTable(ids, labels, file.name, notes), [rater, rating]


def encoded(values: Array) -> tuple[NDArray[np.int64], Array]:
    """Return each value as a code, and the values by code in the order of first appearance."""
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    return codes, np.asarray(encoded.dictionary.to_numpy(zero_copy_only=False))


def _read_counts(
    file: TableFile, case: str | None, columns: RatingColumns, coding: Coding
) -> tuple[RatingTable, list[str]]:
    """Return how many raters chose each class, and which columns were read."""
    names = _count_columns(file, columns, coding.class_names)
    ids, table = _ids_and_columns(file, case, names)
    counts = [
        as_whole_numbers(table.column(name), f"{file.name}: column {name!r}") for name in names
    ]
    labels = Labels.from_counts(np.stack(counts, axis=1), class_names=coding.class_names)
    labels = replace(labels, case_ids=tuple(ids.tolist()))
    return RatingTable(ids, labels, file.name), names


def _ids_and_columns(file: TableFile, case: str | None, names: Sequence[str]) -> tuple[Array, Any]:
    """Return the ids of the cases, or the numbers of the rows, and the columns."""
    if case is None:
        table = file.read(names)
        return np.arange(1, table.num_rows + 1), table
    table = file.read([case, *names])
    return unique_ids(table.column(case), file, case), table


def _count_columns(
    file: TableFile, columns: RatingColumns, class_names: tuple[str, ...]
) -> list[str]:
    """Return the count column of each class: by the class in its name, or in the order given."""
    given = [file.require(name, "count_columns") for name in columns.count_columns]
    if given:
        prefix = columns.count_prefix or COUNT_PREFIX
        names = given
    else:
        prefix, names = _by_prefix(file, [columns.count_prefix or COUNT_PREFIX], "count_prefix")
    by_class = {name.removeprefix(prefix): name for name in names}
    if set(by_class) == set(class_names):
        return [by_class[name] for name in class_names]
    codes = {str(k): k for k in range(len(class_names))}
    if set(by_class) == set(codes) and not any(map(is_whole, class_names)):
        return [by_class[code] for code in codes]  # numbers are codes of classes with names
    if given and len(given) == len(class_names):
        return given
    argument = "count_columns" if given else "count_prefix"
    raise InvalidInputError(
        f"{argument}: must give one column of {file.name} for each of the classes "
        f"{listed(class_names)}; got {listed(names)}"
    )


def unique_ids(column: Any, file: TableFile, name: str) -> Array:
    """Return the ids of a column that names each case once."""
    where = f"{file.name}: column {name!r}"
    ids = as_ids(column, where)
    refuse_repeats(ids, where)
    return ids
