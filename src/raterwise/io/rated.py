"""A table of ratings alone, without a model: the classes and the patients are found in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.io.layouts import RatingColumns, find_id_column
from raterwise.io.layouts import rating_columns as columns_of
from raterwise.io.npz import is_npz
from raterwise.io.ratings import RatingTable, read_ratings
from raterwise.io.sources import open_table
from raterwise.io.values import as_ids, different_texts
from raterwise.labels.classes import MEANS_NONE, missing_codes
from raterwise.rules import listed

MOST_STEPS = 100
"""Up to how many steps a scale of whole numbers has, those that nobody used among them."""


@dataclass(frozen=True, eq=False)
class RatedTable:
    """The ratings of a file, with what can be told of their classes."""

    ratings: RatingTable
    class_names: tuple[str, ...]
    scale: str
    """"interval" for whole numbers, "ordinal" where the order was given, otherwise "nominal"."""
    groups: list[Any] | None
    """The patient of each case."""


def read_rated(
    path: str | PathLike[str],
    columns: RatingColumns,
    *,
    class_names: Sequence[str] = (),
    id_column: str | None = None,
    group_column: str | None = None,
    missing: Collection[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    ignore_case: bool = False,
    duplicates: str = "error",
) -> RatedTable:
    """Return the ratings of a CSV, Excel, Parquet or Arrow file whose classes nobody has listed.

    Whole numbers are steps of a scale, those between the smallest and the largest that nobody used
    among them; other values are names without an order, unless `class_names` gives one. The other
    options are those of `read_ratings`.

    >>> path = getfixture("tmp_path") / "ratings.csv"
    >>> _ = path.write_text("case,reader_1,reader_2\\na,1,2\\nb,4,4\\n")
    >>> table = read_rated(path, RatingColumns())
    >>> table.class_names, table.scale, table.ratings.labels.counts.tolist()
    (('1', '2', '3', '4'), 'interval', [[1, 1, 0, 0], [0, 0, 0, 2]])
    """
    if is_npz(path):
        raise InvalidInputError(
            "ratings: must be a table with columns (CSV, Excel, Parquet or Arrow); an NPZ file "
            "has none"
        )
    file = open_table(path, delimiter=delimiter, encoding=encoding)
    names, scale = tuple(class_names), "ordinal"
    if not names:
        layout, found = columns_of(file, columns)
        if layout == "counts":
            names, scale = tuple(found), "nominal"
        else:
            held = [file.read([c]).column(c) for c in found.values()]
            texts = different_texts(held, f"{file.name}: ratings", missing)
            if ignore_case:  # the first spelling is the name
                texts = list({text.casefold(): text for text in reversed(texts)}.values())
            _refuse_doubtful(texts, file.name)
            names, scale = _classes(texts)
    if len(names) < 2:
        raise InvalidInputError(
            f"ratings: agreement needs two classes; {file.name} names {', '.join(names) or 'none'}."
            " List all that could have been said with class_names"
        )
    ratings = read_ratings(
        path, names, columns, id_column=id_column, missing=missing, delimiter=delimiter,
        encoding=encoding, ignore_case=ignore_case, duplicates=duplicates,
        beside=() if group_column is None else (group_column,),
    )  # fmt: skip
    groups = None
    if group_column is not None:
        groups = _patients(file, find_id_column(file, id_column), group_column, ratings)
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


def _patients(file: Any, case: str, group_column: str, ratings: RatingTable) -> list[Any]:
    """Return the patient of each case; a case of two patients is a mistake."""
    table = file.read([case, file.require(group_column, "group_column")])
    cases = as_ids(table.column(case), f"{file.name}: column {case!r}").tolist()
    found: dict[Any, Any] = {}
    for name, patient in zip(cases, table.column(group_column).to_pylist(), strict=True):
        if patient is None or found.setdefault(name, patient) != patient:
            raise InvalidInputError(
                f"group_column: case {name!r} must be of one patient; got {found.get(name)!r} and "
                f"{patient!r}"
            )
    return [found[name] for name in ratings.ids.tolist()]
