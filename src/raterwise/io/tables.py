"""Predictions and ratings from files, joined case by case.

read_predictions ─┐
                  ├─► join ─► probs, Labels, groups, weights, report ─► raterwise.evaluate
read_ratings ─────┘
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.layouts import (
    AS_USUAL,
    CASE_COLUMNS,
    TableColumns,
    find_id_column,
    has_ids,
    usual_names,
)
from raterwise.io.matching import JoinReport, alike_note, explain_unmatched, positions
from raterwise.io.npz import NpzArrays, is_npz, labels_of_npz, read_npz
from raterwise.io.numbers import as_numbers, as_weights, refuse_fractions
from raterwise.io.probabilities import (
    check_names,
    check_probabilities,
    class_names_of,
    normalized,
    notes_on_columns,
    probability_columns,
)
from raterwise.io.ratings import Coding, RatingTable, unique_ids
from raterwise.io.sources import TableFile, existing_file
from raterwise.io.unused_columns import unused_columns, unused_patients
from raterwise.io.values import as_ids, labels_of_codes
from raterwise.labels import Labels
from raterwise.rules import listed
from raterwise.types import Array


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """The probabilities of N cases, and what else their file says about them."""

    probs: Array
    """(N, K), or (N,) for the probability of the second of two classes."""
    class_names: tuple[str, ...]
    source: str
    """The name of the file."""
    ids: Array | None = None
    """(N,): integers, or text as Python strings; None where the file has no ids."""
    groups: Array | None = None
    weights: Array | None = None
    labels: Labels | None = None
    """Where the labels are in the same file."""
    notes: tuple[str, ...] = ()
    """What the reader of any figures should know of the file."""
    columns: tuple[str, ...] = ()
    """Those that were read."""
    codes: bool = False
    """Whether the labels are codes of classes that have names."""
    loose_ids: bool = False
    """Whether another file may write the ids otherwise."""


class Joined(NamedTuple):
    """What `raterwise.evaluate` needs, case by case in the order of the predictions."""

    probs: Array
    labels: Labels
    groups: Array | None
    weights: Array | None
    report: JoinReport


def read_predictions(
    path: str | PathLike[str],
    told: TableColumns = AS_USUAL,
    *,
    exclusive: bool = True,
    number_rows: bool = False,
    used: Collection[str] = (),
) -> PredictionTable:
    """Return the predictions of a CSV, Excel, Parquet, Arrow or NPZ file.

    The probabilities are the columns whose names begin with `prob_prefix`, in the order of the
    file, or `prob_columns`; the rest of each name is the name of its class, unless `class_names`
    gives others. One single column is the probability of the second of two classes. Ids come from
    `id_column`, or `case`; where `label_column` holds the labels, none are needed.

    With `normalize` rows that were rounded, to two decimals or more, are divided by their sums;
    with `percent` 75 and 75% are 0.75; with `ignore_case` labels are classes in letters of any
    case. The delimiter and the encoding of a CSV file are recognised unless they are told. Where
    it has no column of ids, `number_rows` makes 1, 2, 3 … of them. `used` are arrays of an NPZ file
    that somebody else reads.

    Where the classes are not `exclusive`, each is a finding with a probability of its own: rows
    need not sum to 1, one column is one finding, and an NPZ file calls them `names`.

    >>> path = getfixture("tmp_path") / "predictions.csv"
    >>> _ = path.write_text("case,prob_benign,prob_malignant\\nn1,0.75,0.25\\nn2,0.5,0.5\\n")
    >>> table = read_predictions(path)
    >>> table.class_names, table.ids.tolist(), table.probs.tolist()
    (('benign', 'malignant'), ['n1', 'n2'], [[0.75, 0.25], [0.5, 0.5]])
    """
    if is_npz(path):
        columns_told = (told.id_column, told.label_column, told.group_column, told.weight_column)
        if any((told.prob_columns, *columns_told)):
            raise InvalidInputError(
                f"{Path(path).name}: an NPZ file has no columns to name; its arrays are called "
                "'probs', 'labels' (or 'ratings', or 'counts'), 'ids', 'groups', 'weights', "
                "'class_names'"
            )
        return _predictions_of_npz(read_npz(path), told, exclusive, used)
    file = told.open(path)
    columns = probability_columns(file, told.prob_prefix, told.prob_columns)
    names = class_names_of(columns, told.prob_prefix, told.class_names, exclusive)
    by_id = exclusive and told.label_column is None  # ratings are joined, unless they are beside
    by_id = by_id and (not number_rows or has_ids(file, told.id_column))
    chosen = chosen_columns(file, told, by_id=by_id)
    if clash := set(chosen.values()) & set(columns):
        raise InvalidInputError(
            f"prob_columns: must not be used for anything else; {listed(sorted(clash))} would be"
        )
    coding = Coding(names, told.missing, told.ignore_case)
    table = table_of_columns(file, columns, chosen, coding, percent=told.percent)
    probs = table.probs[:, 0] if exclusive and len(columns) == 1 else table.probs
    probs = normalized(probs) if told.normalize and exclusive else probs
    read = (*columns, *chosen.values())
    unused = unused_columns(file, read).get("a class", ())
    check_probabilities(probs, file.name, columns, table.ids, exclusive, unused)
    notes = (file.note,) if file.note else ()
    notes = (*notes, *notes_on_columns(columns, names)) if exclusive else notes
    if told.group_column is None:
        notes = (*notes, *unused_patients(file, read))
    if table.groups is not None:
        notes = (*notes, *alike_note(table.groups.tolist(), "patients", file.name))
    ids = np.arange(1, len(probs) + 1) if table.ids is None and number_rows else table.ids
    return replace(table, probs=probs, ids=ids, notes=notes, columns=read)


def read_levels(
    path: str | PathLike[str], columns: Sequence[str], told: TableColumns = AS_USUAL
) -> dict[str, list[Any]]:
    """Return columns that tell cases apart, by name, in the order of the rows; None if empty."""
    if is_npz(path):
        raise InvalidInputError(
            f"subgroup_column: must name columns of a table; {existing_file(path).name} holds "
            "arrays without columns"
        )
    file = told.open(path)
    wanted = [file.require(name, "subgroup_column") for name in dict.fromkeys(columns)]
    table = file.read(wanted)
    return {name: table.column(name).to_pylist() for name in wanted}


def chosen_columns(file: TableFile, told: TableColumns, *, by_id: bool) -> dict[str, str]:
    """Return the columns of a file by the argument that names them, where it does.

    That of the ids must be there if cases are told apart `by_id`.
    """
    needs_ids = by_id or told.id_column is not None or bool(usual_names(file, CASE_COLUMNS))
    wanted = {
        "id_column": find_id_column(file, told.id_column) if needs_ids else None,
        "label_column": told.label_column,
        "group_column": told.group_column,
        "weight_column": told.weight_column,
    }
    return {key: file.require(name, key) for key, name in wanted.items() if name is not None}


def table_of_columns(
    file: TableFile,
    prob_columns: Sequence[str],
    chosen: Mapping[str, str],
    coding: Coding,
    *,
    percent: bool = False,
) -> PredictionTable:
    """Return what the columns of a file say of its cases; nothing of the scores is checked."""
    table = file.read([*prob_columns, *chosen.values()])
    if table.num_rows == 0:
        raise InvalidInputError(f"{file.name}: must hold at least one case; it has no rows")

    def column(name: str) -> tuple[Any, str]:
        return table.column(name), file.where(name)

    scores = [table.column(name) for name in prob_columns]
    ids = groups = weights = labels = None
    coded = False
    if (name := chosen.get("id_column")) is not None:
        ids = unique_ids(table.column(name), file, name)
    if (name := chosen.get("group_column")) is not None:
        groups = as_ids(*column(name))
    if (name := chosen.get("weight_column")) is not None:
        weights = as_weights(*column(name), scores)
    if (name := chosen.get("label_column")) is not None:
        codes = coding.codes(*column(name))
        coded = coding.takes_codes([table.column(name)])
        labels = labels_of_codes(codes[:, None], coding.class_names)
        labels = replace(labels, case_ids=None if ids is None else tuple(ids.tolist()))
    probs = np.stack([as_numbers(*column(n), percent=percent) for n in prob_columns], axis=1)
    if percent:
        refuse_fractions(scores, probs, file.name)
    told = (ids, groups, weights, labels)
    return PredictionTable(probs, coding.class_names, file.name, *told, codes=coded)


def _predictions_of_npz(
    file: NpzArrays, told: TableColumns, exclusive: bool, used: Collection[str]
) -> PredictionTable:
    if exclusive and "samples" in file.arrays and "probs" not in file.arrays:
        probs = file.get("samples", ndim=(2, 3)).mean(axis=0)
    else:
        probs = file.get("probs", ndim=(1, 2) if exclusive else (2,))
    if probs.dtype.kind not in "fiu" or len(probs) == 0:
        raise InvalidInputError(
            f"{file.where('probs')}: must hold numbers for at least one case; "
            f"got dtype {probs.dtype}, shape {probs.shape}"
        )
    if exclusive and probs.ndim == 2 and probs.shape[1] == 1:
        probs = probs[:, 0]  # as one column of a table: the second of two classes
    num_classes = 2 if probs.ndim == 1 else probs.shape[1]
    own = file.class_names("class_names" if exclusive else "names")
    names = tuple(told.class_names or own or map(str, range(num_classes)))
    check_names(names, num_classes)
    columns = [f"probs[{k}]" for k in range(num_classes)]
    if told.percent:
        probs = probs / 100
        refuse_fractions((), probs, file.name)
    if told.normalize and exclusive and probs.dtype.kind == "f":
        probs = normalized(probs)
    ids = file.ids_of(len(probs)) if "ids" in file.arrays else None
    check_probabilities(probs, file.name, columns, ids, exclusive, chosen=False)
    labels = labels_of_npz(file, names, told.missing) if exclusive else None
    return table_of_arrays(file, probs, names, labels, used)


def table_of_arrays(
    file: NpzArrays,
    probs: Array,
    names: tuple[str, ...],
    labels: Labels | None,
    used: Collection[str] = (),
) -> PredictionTable:
    """Return probabilities with what else an NPZ file holds of the same cases."""
    rows = len(probs)
    if labels is not None and len(labels) != rows:
        raise InvalidInputError(
            f"{file.name}: must have labels for each case; got {len(labels)} for {rows}"
        )
    ids, groups = (
        file.ids_of(rows, key) if key in file.arrays else None for key in ("ids", "groups")
    )
    told = (ids, groups, file.weights(rows), labels, file.notes(used))
    return PredictionTable(probs, names, file.name, *told)


def join(
    predictions: PredictionTable,
    ratings: RatingTable | None = None,
    *,
    allow_unmatched: bool = False,
) -> Joined:
    """Return predictions with the ratings of the same cases, in the order of the predictions.

    Ids are compared as they are; where one file has numbers and the other text, both are compared
    as text (7 is "7", but not "007", unless the predictions have `loose_ids`). An id that only one
    file has is an error, unless `allow_unmatched`; then it is left out and reported.
    """
    if ratings is None:
        if predictions.labels is None:
            raise no_labels(predictions.source, predictions.notes)
        report = JoinReport(np.arange(len(predictions.probs)))
        columns = (predictions.probs, predictions.labels, predictions.groups, predictions.weights)
        return Joined(*columns, report)
    index, report = matched(
        predictions, ratings.ids, ratings.source, allow_unmatched=allow_unmatched
    )
    return Joined(
        predictions.probs[report.rows],
        ratings.labels.take(index),
        None if predictions.groups is None else predictions.groups[report.rows],
        None if predictions.weights is None else predictions.weights[report.rows],
        report,
    )


def no_labels(source: str, notes: Sequence[str] = ()) -> InvalidInputError:
    """Return the error that there are no labels, with how to give them."""
    unread = "".join(f" ({note})" for note in notes if "sheet" in note)
    return InvalidInputError(
        f"ratings: {source} holds no labels; give a file of ratings, or say which column holds "
        f"them with label_column, rater_columns or count_columns{unread}"
    )


def matched(
    predictions: PredictionTable, ids: Array, source: str, *, allow_unmatched: bool = False
) -> tuple[NDArray[np.int64], JoinReport]:
    """Return where the predictions that have ratings are among `ids`, and which these are.

    `source` is the file of the ratings, for messages.
    """
    if predictions.ids is None:
        raise InvalidInputError(
            f"{predictions.source}: must hold ids, by which {source} is joined to it"
        )
    loose = predictions.loose_ids
    index = positions(predictions.ids, ids, loose=loose)
    known = index >= 0
    used = np.zeros(len(ids), bool)
    used[index[known]] = True
    report = JoinReport(
        np.flatnonzero(known),
        without_ratings=tuple(predictions.ids[~known].tolist()),
        without_predictions=tuple(ids[~used].tolist()),
        loosely=int((positions(predictions.ids, ids) != index).sum()) if loose else 0,
    )
    if report.dropped and (not allow_unmatched or report.cases == 0):
        files = predictions.ids, predictions.source, ids, source
        raise explain_unmatched(*files, report, loose=loose)
    return index[known], report
