"""The tables of a command, and the cases that they hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.beliefs import EnsembleBelief, PointBelief
from raterwise.cli.members import Members
from raterwise.cli.table_options import TableOptions
from raterwise.evaluate import predictions_of
from raterwise.io.cases import (
    columns_of_draw,
    file_of_ratings,
    read_table,
    with_ratings,
    with_unused,
)
from raterwise.io.matching import JoinReport
from raterwise.io.scores import read_features, read_logits, read_numbers
from raterwise.io.tables import Joined, PredictionTable, no_labels, read_levels
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries.facts import Facts
from raterwise.types import Array

NO_MEMBERS = Members()


@dataclass(frozen=True, eq=False)
class Cases:
    """Every case of a table of predictions, and what the raters said of some of them."""

    table: PredictionTable
    scores: Array
    """(N, K) or (N,): what a calibrator is given, probabilities or logits; (S, N, K) of draws."""
    features: Array | None
    """(N, D), or (S, N, D) of every draw of an ensemble."""
    feature_names: tuple[str, ...]
    rated: NDArray[np.int64]
    """(M,): the rows that have labels."""
    labels: Labels | None
    """Of those M cases; None where there are no ratings at all."""
    dropped: dict[str, int]
    """How many cases have no labels, or labels and no prediction, by reason."""
    about_ratings: tuple[str, ...] = ()
    """What to know of the ratings, among the notes of the table."""

    def __len__(self) -> int:
        return len(self.table.probs)

    @overload
    def of_rated(self, values: Array) -> Array: ...
    @overload
    def of_rated(self, values: None) -> None: ...
    def of_rated(self, values: Array | None) -> Array | None:
        """Return the part of (N, …) or (S, N, K) values that belongs to the rated cases."""
        if values is None:
            return None
        return values[:, self.rated] if values.ndim == 3 else values[self.rated]

    @property
    def ensemble(self) -> bool:
        """Whether the scores are those of several draws."""
        return self.scores.ndim == 3

    def belief(self, input: str) -> Any:
        """Return what is believed of every case before anything is calibrated."""
        from scipy.special import softmax

        if not self.ensemble:
            return PointBelief(self.table.probs)
        return EnsembleBelief(softmax(self.scores, axis=2) if input == "logits" else self.scores)

    def probs_or_belief(self) -> Any:
        """Return the probabilities of the rated cases; of draws, the belief that they are."""
        if self.ensemble:
            return EnsembleBelief(self.of_rated(self.scores))
        return self.of_rated(self.table.probs)

    def predictions(self, confidence: Array | None = None, outside: Any = None) -> Predictions:
        """Return the rated cases as the library takes them, with what ranks all of the cases."""
        weights, groups = self.of_rated(self.table.weights), self.of_rated(self.table.groups)
        return predictions_of(
            self.probs_or_belief(), self.require_labels(), weights, groups,
            self.table.class_names, confidence=self.of_rated(confidence), outside=outside,
        )  # fmt: skip

    def require_labels(self) -> Labels:
        """Return the labels where there are any; otherwise say how to give them."""
        if self.labels is None:
            raise no_labels(self.table.source, self.table.notes)
        return self.labels

    def facts(self) -> dict[str, Any]:
        """Return what figures about the rated cases rest on, as results write it down."""
        return {**Facts.of(self.predictions()).as_data(), "dropped": self.dropped}

    def in_words(self) -> str:
        """Return how many cases, classes and ratings there are."""
        words = f"{len(self):,} cases, {len(self.table.class_names):,} classes"
        if self.labels is None:
            return f"{words}, no ratings"
        return f"{words}, {int(self.labels.num_raters.sum()):,} ratings"


def belief_of(
    members: Members, tables: TableOptions, table: PredictionTable, joined: Joined
) -> Any:
    """Return the belief of the draws of the joined cases; None without members."""

    def read(file: Path) -> tuple[PredictionTable, Array]:
        own = read_table(columns_of_draw(tables.told, file), file)
        return own, own.probs

    draws = members.draws(table, "samples", read)
    return None if draws is None else EnsembleBelief(draws[:, joined.report.rows])


def read_confidence(
    predictions: Path, column: str | None, tables: TableOptions, joined: Joined
) -> Array | None:
    """Return what ranks the joined cases in place of the largest probability, if anything."""
    found = numbers_of(predictions, column, tables)
    return None if found is None else found[joined.report.rows]


def numbers_of(predictions: Path, column: str | None, tables: TableOptions) -> Array | None:
    """Return a confidence of every row of a table, where a column has one."""
    if column is None:
        return None
    return read_numbers(predictions, column, "confidence_column", tables.told)


def read_subgroups(
    predictions: Path, columns: Sequence[str] | None, tables: TableOptions, report: JoinReport
) -> dict[str, list[Any]] | None:
    """Return columns that tell the joined cases apart, by name; None where none is asked for."""
    if not columns:
        return None
    found = read_levels(predictions, columns, tables.told)
    rows = report.rows.tolist()
    return {name: [values[i] for i in rows] for name, values in found.items()}


def read_cases(
    predictions: Path,
    ratings: Path | None,
    tables: TableOptions,
    *,
    input: str = "probs",
    logit_prefix: str = "logit_",
    features_prefix: str | None = None,
    rated: str = "all",
    members: Members = NO_MEMBERS,
) -> Cases:
    """Return the cases of a file of predictions with the ratings that the options point to.

    With `rated="some"` a case without ratings is no mistake. With members the scores, and the
    features, are those of every draw.
    """
    source = file_of_ratings(tables.told, predictions, ratings)

    def scored(file: Path) -> tuple[PredictionTable, Array]:
        told = tables.told if file == predictions else columns_of_draw(tables.told, file)
        if input == "logits":
            table, logits = read_logits(file, told, logit_prefix)
            return replace(table, loose_ids=told.loose_ids), logits
        read = read_table(told, file, beside=source == file)
        return read, read.probs

    table, scores = scored(predictions)
    draws = members.draws(table, "samples" if input == "probs" else "logits", scored)
    if draws is not None:
        scores = np.stack((1 - draws, draws), axis=2) if draws.ndim == 2 else draws
    features: Array | None = None
    names: tuple[str, ...] = ()
    if features_prefix is not None:
        features, names = _features(members, table, predictions, scored, features_prefix, tables)
    if source != predictions and input == "probs":  # else whoever reads the ratings tells of them
        described = (f"{features_prefix}{name}" for name in names)
        table = replace(table, columns=(*table.columns, *described))
        table = with_unused(tables.told, predictions, table)
    found = Cases(table, scores, features, names, np.arange(len(table.probs)), None, {})
    if source is not None or table.labels is not None:
        found = _with_labels(found, source, tables, rated, beside=source == predictions)
    return found


def _features(
    members: Members,
    table: PredictionTable,
    predictions: Path,
    scored: Callable[[Path], tuple[PredictionTable, Array]],
    prefix: str,
    tables: TableOptions,
) -> tuple[Array, tuple[str, ...]]:
    """Return the features of the cases, of every draw where there are members, and their names."""

    def described(file: Path) -> tuple[PredictionTable, Array]:
        return scored(file)[0], read_features(file, prefix, tables.told)[0]

    found = members.draws(table, "features", described)
    if found is None:
        return read_features(predictions, prefix, tables.told)
    names = tuple(map(str, range(found.shape[2])))
    if members.files:
        names = read_features(members.files[0], prefix, tables.told)[1]
    return found[0] if len(found) == 1 else found, names


def _with_labels(
    cases: Cases, source: Path | None, tables: TableOptions, rated: str, *, beside: bool
) -> Cases:
    beside = beside and cases.table.ids is not None
    some = rated == "some"
    table, joined = with_ratings(tables.told, cases.table, source, beside=beside, some=some)
    rows, labels, dropped = joined.report.rows, joined.labels, dict(joined.report.dropped)
    unrated = labels.num_raters == 0
    if unrated.any():
        if rated == "all" and tables.on_unrated == "error":
            number, first = int(unrated.sum()), labels.first_named(unrated)
            raise rules.unrated("labels", number, len(labels), first)
        rows, labels = rows[~unrated], labels.take(~unrated)
        dropped["unrated"] = int(unrated.sum())
    about = tuple(note for note in table.notes if note not in cases.table.notes)
    return replace(
        cases, table=table, rated=rows, labels=labels, dropped=dropped, about_ratings=about
    )


@contextmanager
def heard_warnings() -> Iterator[list[str]]:
    """Collect the warnings of what is done within, each once, to be shown as one line each."""
    heard: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield heard
    heard += dict.fromkeys(str(warning.message) for warning in caught)


def shared_names(first: Array | None, second: Array | None) -> Sequence[Any] | None:
    """Return the ids that both have, as text; None where one of them has no ids."""
    if first is None or second is None:
        return None
    known = set(map(str, first.tolist()))
    return [name for name in dict.fromkeys(map(str, second.tolist())) if name in known]
