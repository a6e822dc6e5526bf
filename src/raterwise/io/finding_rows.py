"""Findings, from files with rows of raters: a row per answer, or per reading of a case.

A row per answer has columns for the finding and for what was said of it. A row per reading, such as
a form that a reader filled in, has a column for each finding, which is called as the finding is.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.layouts import (
    RATER_COLUMNS,
    RATING_COLUMNS,
    TableColumns,
    find_id_column,
    usual_column,
    usual_names,
)
from raterwise.io.ratings import encoded
from raterwise.io.sources import TableFile
from raterwise.io.values import as_ids, as_yes_or_no, id_at
from raterwise.labels.duplicates import WAYS_OUT, chosen_of_each
from raterwise.rules import did_you_mean, listed
from raterwise.types import Array

Counts = NDArray[np.int64]
Answers = NDArray[np.int8]

FINDING_COLUMNS = ("finding",)
POSITIVES, RATERS, LABEL = "positives_", "raters_", "label_"


@dataclass(frozen=True, eq=False)
class FindingRatings:
    """How many raters saw each finding in each case of a file, out of how many who looked."""

    ids: Array | None
    """(M,): the cases, each once, in the order of the file; None where it has no ids."""
    positives: Counts
    """(M, L)."""
    raters: Counts
    """(M, L)."""
    source: str
    unread: tuple[str, ...] = ()
    """Findings, or columns, that have ratings and no probability; left out because allowed."""
    answers: Answers | None = None
    """(M, L, R): what each rater said, -1 for nothing, where that is known."""
    notes: tuple[str, ...] = ()
    """What to know about how it was read."""
    rater_ids: tuple[Hashable, ...] = ()
    """(R,): who they are, where `answers` are known."""


class _Rows(NamedTuple):
    """Answers one by one: of which case, by which rater, about which finding, what."""

    items: Counts
    ids: Array
    raters: Counts
    rater_ids: Array
    found: Counts
    titles: Array
    answers: Counts
    notes: tuple[str, ...] = ()


def is_long(
    file: TableFile, names: Sequence[str], told: TableColumns, finding_column: str | None
) -> bool:
    """Tell whether a row is of one rater: as told, or by the names of the columns."""
    layout = told.ratings_layout
    if layout is not None:
        if layout != "long" and finding_column is not None:
            raise InvalidInputError(
                f"finding_column: does not go with the layout {layout!r} of the ratings"
            )
        return layout == "long"
    if finding_column or told.rater_column or told.rating_column:
        return True
    if not usual_names(file, RATER_COLUMNS):
        return False
    if all(usual_names(file, usual) for usual in (FINDING_COLUMNS, RATING_COLUMNS)):
        return True
    of_cases = (prefix + name for name in names for prefix in (POSITIVES, LABEL))
    forms = any(name in file.columns for name in names)
    return forms and not any(column in file.columns for column in of_cases)


def read_long(
    file: TableFile,
    names: tuple[str, ...],
    told: TableColumns,
    finding_column: str | None,
) -> FindingRatings:
    """Return the answers of a file with rows of raters."""
    named = finding_column or told.rating_column or usual_names(file, FINDING_COLUMNS)
    if named or not any(name in file.columns for name in names):
        rows = _of_answers(file, told, finding_column, names)
    else:
        rows = _of_readings(file, told, names)
    items, ids, raters, rater_ids, found, titles, answers, notes = rows
    of_one = (items * len(rater_ids) + raters) * len(titles) + found
    repeated = len(np.unique(of_one)) < len(of_one)
    if repeated and told.duplicates == "error":
        _refuse_second_answers(of_one, ids, rater_ids, titles, file)
    position = {name: i for i, name in enumerate(names)}
    places = np.array([position.get(str(title), -1) for title in titles.tolist()], np.int64)
    unread = tuple(str(t) for t, i in zip(titles.tolist(), places, strict=True) if i < 0)
    chosen, repeats = chosen_of_each(of_one, answers, told.duplicates, file.name)
    use = chosen & (places[found] >= 0)
    cells = items[use] * len(names) + places[found[use]]
    shape = (len(ids), len(names))
    size = shape[0] * shape[1]
    positives = np.bincount(cells[answers[use] == 1], minlength=size).reshape(shape)
    said = None
    if not (repeated and told.duplicates == "keep"):
        said = np.full((*shape, len(rater_ids)), -1, np.int8)
        said[items[use], places[found[use]], raters[use]] = answers[use]
    looked = np.bincount(cells, minlength=size).reshape(shape)
    who = () if said is None else tuple(rater_ids.tolist())
    return FindingRatings(ids, positives, looked, file.name, unread, said, (*notes, *repeats), who)


def _codes_of(table: Any, name: str, file: TableFile) -> tuple[Counts, Array]:
    return encoded(as_ids(table.column(name), file.where(name)))


def _of_answers(
    file: TableFile, told: TableColumns, finding_column: str | None, names: Sequence[str]
) -> _Rows:
    """Return the rows of a file that are an answer each."""
    case = find_id_column(file, told.id_of_ratings)
    finding = usual_column(file, finding_column, FINDING_COLUMNS, "finding_column")
    rater = usual_column(file, told.rater_column, RATER_COLUMNS, "rater_column")
    rating = usual_column(file, told.rating_column, RATING_COLUMNS, "rating_column")
    table = file.read([case, rater, finding, rating])
    of_case, of_rater, of_finding = (_codes_of(table, n, file) for n in (case, rater, finding))
    titles = set(map(str, of_finding[1].tolist()))
    require_every(file, names, titles, f"its name in {finding!r}")
    answers = as_yes_or_no(table.column(rating), file.where(rating), told.missing)
    return _Rows(*of_case, *of_rater, *of_finding, answers)


def _of_readings(file: TableFile, told: TableColumns, names: Sequence[str]) -> _Rows:
    """Return the rows of a file that are what a rater said of a case, finding by finding."""
    case = find_id_column(file, told.id_of_ratings)
    rater = usual_column(file, told.rater_column, RATER_COLUMNS, "rater_column")
    require_every(file, names, file.columns, f"a column of that name beside {rater!r}")
    others = [name for name in file.columns if name not in (case, rater, *names)]
    table = file.read([case, rater, *names, *others])

    def said(name: str) -> Counts:
        return as_yes_or_no(table.column(name), file.where(name), told.missing)

    def is_answer(name: str) -> bool:
        try:
            return bool((said(name) >= 0).any())
        except InvalidInputError:
            return False

    unused = [name for name in others if is_answer(name)]
    note = f"{file.name}: {listed(unused)} could be of a finding that has no probability; not used"
    (items, ids), (raters, rater_ids) = (_codes_of(table, n, file) for n in (case, rater))
    return _Rows(
        np.tile(items, len(names)), ids, np.tile(raters, len(names)), rater_ids,
        np.repeat(np.arange(len(names)), len(items)), np.array(names, object),
        np.concatenate([said(name) for name in names]), (note,) if unused else (),
    )  # fmt: skip


def _refuse_second_answers(
    of_one: Counts, ids: Array, rater_ids: Array, titles: Array, file: TableFile
) -> None:
    """Name the first rater who answers twice for a finding of a case."""
    ordered = np.sort(of_one)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    rest, title = divmod(int(again[0]), len(titles))
    case, rater = divmod(rest, len(rater_ids))
    raise InvalidInputError(
        f"{file.name}: a rater must rate a finding of a case once; {id_at(rater_ids, rater)!r} "
        f"has more than one row for {id_at(titles, title)!r} of case {id_at(ids, case)!r} "
        f"{WAYS_OUT}"
    )


def require_every(
    file: TableFile, names: Sequence[str], having: Collection[str], what: str
) -> None:
    """Refuse findings without labels, by their names."""
    if absent := [name for name in names if name not in having]:
        near = did_you_mean(absent[0], having) if len(absent) < len(names) else ""
        raise InvalidInputError(
            f"{file.name}: every finding needs labels; {listed(absent)} "
            f"{'has' if len(absent) == 1 else 'have'} none{near} (looked for {what}; columns: "
            f"{listed(file.columns)})"
        )
