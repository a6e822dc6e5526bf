"""Findings that may occur together, from files: a probability and raters' answers for each.

Answers come as counts (positives_FINDING, raters_FINDING), as a column per rater and finding
(reader_1_FINDING), as one label (label_FINDING), or with rows of raters (`finding_rows`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.io.finding_rows import (
    LABEL,
    POSITIVES,
    RATERS,
    Answers,
    Counts,
    FindingRatings,
    is_long,
    read_long,
    require_every,
)
from raterwise.io.layouts import (
    AS_USUAL,
    CASE_COLUMNS,
    LAYOUT_ARGUMENTS,
    RATER_PREFIXES,
    TableColumns,
    find_id_column,
    usual_names,
)
from raterwise.io.matching import JoinReport
from raterwise.io.npz import is_npz, read_npz
from raterwise.io.numbers import as_whole_numbers
from raterwise.io.ratings import unique_ids
from raterwise.io.sources import TableFile
from raterwise.io.tables import PredictionTable, matched
from raterwise.io.unused_columns import unused_columns
from raterwise.io.values import as_yes_or_no, id_at
from raterwise.labels import Labels
from raterwise.labels.duplicates import DUPLICATES
from raterwise.predictions import Predictions
from raterwise.rules import choose, have, listed
from raterwise.types import Array


class Findings(NamedTuple):
    """What `raterwise.evaluate_multilabel` needs, case by case in the order of the predictions."""

    probs: Array
    positives: Counts
    raters: Counts
    names: tuple[str, ...]
    ids: Array | None
    groups: Array | None
    weights: Array | None
    report: JoinReport
    unread: tuple[str, ...]
    answers: Answers | None = None
    rater_ids: tuple[Hashable, ...] = ()

    def finding(self, i: int) -> Predictions:
        """Return the cases of which somebody rated the i-th finding, with what was said of it."""
        counts = np.stack((self.raters - self.positives, self.positives), axis=2)[:, i]
        found = Predictions.of(
            self.probs[:, i], Labels.from_counts(counts), groups=self.groups,
            weights=self.weights, on_unrated="drop",
        )  # fmt: skip
        return found.without_absent_patients()

    def take(self, rows: Array) -> Findings:
        """Return the findings of the chosen cases, in the order chosen."""
        case_by_case = ("probs", "positives", "raters", "ids", "groups", "weights", "answers")
        held = {name: getattr(self, name) for name in case_by_case}
        return self._replace(**{n: v[rows] for n, v in held.items() if v is not None})

    def require_ratings(self, source: str, on_unrated: str) -> None:
        """Refuse findings that nobody rated: in any case, or, unless these are dropped, in one."""
        missing = self.raters == 0
        for name, none in zip(self.names, missing.T, strict=True):
            if none.all():
                raise InvalidInputError(f"{source}: nobody rated {name!r} in any case")
            if none.any() and on_unrated == "error":
                row = int(np.flatnonzero(none)[0])
                ids = self.ids
                first = f"data row {row + 1}" if ids is None else f"case {id_at(ids, row)!r}"
                some = f"{none.sum()} of {len(none)} {have(int(none.sum()))} none"
                raise InvalidInputError(
                    f"{source}: every case needs a rating of {name!r}; {some} (first: {first}); "
                    'on_unrated="drop" leaves them out'
                )


def read_finding_ratings(
    path: str | PathLike[str],
    names: Sequence[str],
    told: TableColumns = AS_USUAL,
    *,
    finding_column: str | None = None,
) -> FindingRatings:
    """Return the raters' answers on the findings `names` of a CSV, Parquet, Arrow or NPZ file.

    Each finding has either counts or answers of raters. Answers are 1 or 0, yes or no, true or
    false; empty cells, and whatever `missing` lists, are no rating. `duplicates` says what becomes
    of several answers of a rater, as in `read_ratings`. What is rated and not among `names` is an
    error, unless `allow_unmatched`.

    >>> path = getfixture("tmp_path") / "ratings.csv"
    >>> _ = path.write_text("case,reader_1_mass,reader_2_mass\\nn1,yes,no\\nn2,no,\\n")
    >>> table = read_finding_ratings(path, ["mass"])
    >>> table.ids.tolist(), table.positives.tolist(), table.raters.tolist()
    (['n1', 'n2'], [[1], [0]], [[2], [1]])
    """
    if told.ratings_layout is not None:
        choose("ratings_layout", told.ratings_layout, tuple(LAYOUT_ARGUMENTS))
    for argument in ("rater_columns", "count_columns", "count_prefix"):
        if getattr(told, argument):
            raise InvalidInputError(
                f"{argument}: findings have columns named after them, {POSITIVES}FINDING and "
                f"{RATERS}FINDING, or READER_FINDING with a rater_prefix; got "
                f"{listed(list(getattr(told, argument)))}"
            )
    if is_npz(path):
        if told.ratings_layout or told.ratings_named or told.id_of_ratings or finding_column:
            raise InvalidInputError(
                "an NPZ file has no columns: its ratings are the arrays positives and raters, and "
                "its ids the array ids"
            )
        return _of_npz(path, tuple(names))
    choose("duplicates", told.duplicates, DUPLICATES)
    file = told.open(path)
    if is_long(file, names, told, finding_column):
        found = read_long(file, tuple(names), told, finding_column)
    else:
        found = _read_wide(file, tuple(names), told)
    if found.unread and not told.allow_unmatched:
        raise InvalidInputError(
            f"{file.name}: what is rated must have a probability; {listed(found.unread)} "
            f"{'has' if len(found.unread) == 1 else 'have'} none (findings: {listed(names)}); "
            "allow_unmatched leaves it out"
        )
    return found


def join_findings(
    predictions: PredictionTable,
    ratings: FindingRatings,
    *,
    same_file: bool = False,
    allow_unmatched: bool = False,
) -> Findings:
    """Return predictions with the ratings of the same cases, in the order of the predictions.

    Ratings of the `same_file` are in that order already; others are joined by id.
    """
    cases = len(predictions.probs)
    if same_file and len(ratings.raters) == cases:
        index, report = np.arange(cases), JoinReport(np.arange(cases))
    else:
        if ratings.ids is None:
            raise InvalidInputError(
                f"{ratings.source}: must hold ids, by which it is joined to {predictions.source}"
            )
        index, report = matched(
            predictions, ratings.ids, ratings.source, allow_unmatched=allow_unmatched
        )

    def of_known(values: Array | None) -> Array | None:
        return None if values is None else values[report.rows]

    return Findings(
        predictions.probs[report.rows],
        ratings.positives[index],
        ratings.raters[index],
        predictions.class_names,
        of_known(predictions.ids),
        of_known(predictions.groups),
        of_known(predictions.weights),
        report,
        ratings.unread,
        None if ratings.answers is None else ratings.answers[index],
        ratings.rater_ids,
    )


def _read_wide(file: TableFile, names: tuple[str, ...], told: TableColumns) -> FindingRatings:
    counts, answers, unread = _columns_of(file, names, told)
    has_id = told.id_of_ratings is not None or bool(usual_names(file, CASE_COLUMNS))
    case = find_id_column(file, told.id_of_ratings) if has_id else None
    used = [c for each in (*counts.values(), *answers.values()) for c in each]
    table = file.read([*([case] if case else []), *used])
    ids = unique_ids(table.column(case), file, case) if case else None
    positives = np.zeros((table.num_rows, len(names)), np.int64)
    raters = np.zeros_like(positives)
    who = {c: _reader_of(c, name) for name, each in answers.items() for c in each}
    readers = list(dict.fromkeys(who.values()))
    by_reader = np.full((table.num_rows, len(names), len(readers)), -1, np.int8)
    for i, name in enumerate(names):
        if name in counts:
            seen, looked = (as_whole_numbers(table.column(c), file.where(c)) for c in counts[name])
            positives[:, i], raters[:, i] = seen, looked
            _refuse_too_many(seen, looked, counts[name], file, ids)
            continue
        for column in answers[name]:
            said = as_yes_or_no(table.column(column), file.where(column), told.missing)
            positives[:, i] += said == 1
            raters[:, i] += said >= 0
            by_reader[:, i, readers.index(who[column])] = said
    if counts:
        return FindingRatings(ids, positives, raters, file.name, unread)
    named = () if readers == [LABEL.rstrip("_")] else tuple(readers)
    return FindingRatings(ids, positives, raters, file.name, unread, by_reader, rater_ids=named)


def _reader_of(column: str, finding: str) -> str:
    """Return whose answers a column holds: what its name says before the finding.

    >>> _reader_of("reader_1_mass", "mass"), _reader_of("label_mass", "mass")
    ('reader_1', 'label')
    """
    return column.removesuffix(finding).rstrip("_")


def _columns_of(
    file: TableFile, names: tuple[str, ...], told: TableColumns
) -> tuple[dict[str, list[str]], dict[str, list[str]], tuple[str, ...]]:
    """Return each finding's columns of counts, or of answers; and the columns of no finding."""
    counts: dict[str, list[str]] = {}
    answers: dict[str, list[str]] = {}
    unread: list[str] = []
    if told.ratings_layout != "wide" and not told.rater_prefix:
        for column in file.columns:
            prefix = next((p for p in (POSITIVES, RATERS) if column.startswith(p)), None)
            if prefix is None:
                continue
            if (name := column.removeprefix(prefix)) in names:
                counts.setdefault(name, []).append(column)
            else:
                unread.append(column)
    if told.ratings_layout != "counts":
        for prefix in (told.rater_prefix,) if told.rater_prefix else (*RATER_PREFIXES, LABEL):
            for column in (c for c in file.columns if c.startswith(prefix)):
                of = _finding_of(column.removeprefix(prefix), names, alone=prefix == LABEL)
                if of is None:
                    unread.append(column)
                else:
                    answers.setdefault(of, []).append(column)
    for name in names:
        _check_counts(name, counts, answers, file)
    words = f"{POSITIVES}FINDING and {RATERS}FINDING" if told.ratings_layout != "wide" else ""
    if told.ratings_layout != "counts":
        usual = f"{RATER_PREFIXES[0]}…_FINDING or {LABEL}FINDING"
        own = told.rater_prefix and f"{told.rater_prefix}…_FINDING"
        words = own or f"{words}, {usual}".removeprefix(", ")
    if any(name in file.columns for name in names):  # what a reader says of a case, in a row
        readers = unused_columns(file, ()).get("a rater", [])
        such = f', such as rater_column="{readers[0]}"' if len(readers) == 1 else ""
        words += f", or a column per finding beside a rater_column{such}"
    require_every(file, names, {*counts, *answers}, words)
    counts = {name: [POSITIVES + name, RATERS + name] for name in counts}
    return counts, answers, tuple(unread)


def _check_counts(
    name: str, counts: dict[str, list[str]], answers: dict[str, list[str]], file: TableFile
) -> None:
    """Refuse half of a pair of counts, and both counts and answers."""
    given = counts.get(name, [])
    if len(given) == 1:
        other = {POSITIVES + name, RATERS + name} - set(given)
        raise InvalidInputError(
            f"{file.name}: must hold both {POSITIVES + name!r} and {RATERS + name!r}; there is no "
            f"{next(iter(other))!r}"
        )
    if given and name in answers:
        raise InvalidInputError(
            f"{file.name}: {name!r} must have counts or answers of raters; it has both "
            f"({listed([*given, *answers[name]])}); ratings_layout says which to take"
        )


def _finding_of(rest: str, names: Sequence[str], *, alone: bool) -> str | None:
    """Return the finding that a column is of: READER_FINDING, or FINDING `alone`, longest first.

    >>> _finding_of("1_nodule_mass", ["mass", "nodule_mass"], alone=False)
    'nodule_mass'
    """
    fits = [n for n in names if rest == n or (not alone and rest.endswith(f"_{n}"))]
    return max(fits, key=len) if fits else None


def _refuse_too_many(
    positives: Counts, raters: Counts, pair: Sequence[str], file: TableFile, ids: Array | None
) -> None:
    """Raise an error if more raters saw a finding than looked for it."""
    wrong = np.flatnonzero(positives > raters)
    if wrong.size:
        row = int(wrong[0])
        case = "" if ids is None else f" (case {id_at(ids, row)!r})"
        raise InvalidInputError(
            f"{file.name}: {pair[0]!r} must be at most {pair[1]!r}; data row {row + 1}{case} has "
            f"{positives[row]} of {raters[row]}"
        )


def _of_npz(path: str | PathLike[str], names: tuple[str, ...]) -> FindingRatings:
    file = read_npz(path)
    own = file.class_names("names")
    rows = len(file.get("raters", ndim=(2,)))
    shape = (rows, len(own or names))
    positives, raters = (file.whole_numbers(key, shape) for key in ("positives", "raters"))
    ids = file.ids_of(rows) if "ids" in file.arrays else None
    if own is not None and own != names:
        if absent := [name for name in names if name not in own]:
            raise InvalidInputError(
                f"{file.where('names')}: every finding needs labels; there is no {listed(absent)} "
                f"(it holds {listed(own)})"
            )
        order = [own.index(name) for name in names]
        positives, raters = positives[:, order], raters[:, order]
    for i, name in enumerate(names):
        wrong = np.flatnonzero(positives[:, i] > raters[:, i])
        if wrong.size:
            row = int(wrong[0])
            raise InvalidInputError(
                f"{file.where('positives')}: must be at most 'raters'; row {row + 1}, {name!r} "
                f"has {positives[row, i]} of {raters[row, i]}"
            )
    return FindingRatings(ids, positives, raters, file.name, notes=file.notes())
