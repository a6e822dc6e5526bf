"""`--multilabel`: findings that may occur together, read and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from raterwise.cli.reading import read_subgroups
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import with_notes
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluation.request import Request
from raterwise.inference.settings import Progress, within
from raterwise.io.findings import Findings, join_findings, read_finding_ratings
from raterwise.io.npz import is_npz
from raterwise.io.tables import PredictionTable, read_predictions
from raterwise.io.unused_columns import unused_columns, unused_notes
from raterwise.multilabel.evaluation import evaluate_multilabel
from raterwise.provenance import left_out_record, raters_record
from raterwise.results import Results

Made = TypeVar("Made")


def refuse_finding_column(finding_column: str | None) -> None:
    """Refuse the column of findings where it would be left unread."""
    if finding_column is not None:
        raise InvalidInputError(f"--finding-column: needs --multilabel; got {finding_column!r}")


def refuse_unread(unread: Mapping[str, Any], what: str) -> None:
    """Refuse options that findings, or streams, would leave unread."""
    for name, given in unread.items():
        if given:
            raise InvalidInputError(f"{name}: cannot be used with {what}; leave it out")


def read_findings(
    predictions: Path,
    ratings: Path | None,
    tables: TableOptions,
    finding_column: str | None,
    unit: str = "cases",
) -> tuple[PredictionTable, Findings]:
    """Return a table of findings' probabilities, and its cases joined to the raters' answers."""
    if tables.label_column is not None:
        raise InvalidInputError(
            "label_column: each finding needs its own column, label_FINDING (rater_prefix sets "
            f"another prefix); got {tables.label_column!r}"
        )
    if tables.normalize:
        raise InvalidInputError(
            "normalize: findings may occur together, so their probabilities need not sum to 1"
        )
    told = tables.told if ratings else replace(tables.told, ratings_id_column=None)
    table = read_predictions(predictions, told, exclusive=False)
    table = replace(table, loose_ids=told.loose_ids)
    answers = read_finding_ratings(
        ratings or predictions, table.class_names, told, finding_column=finding_column
    )
    if unit != "cases" and answers.answers is None:
        raise InvalidInputError(
            f"unit: {unit!r} needs to know who said what, and {answers.source} has counts alone; "
            'give a column per rater and finding, a row per rating, or resample "cases"'
        )
    joined = join_findings(
        table, answers, same_file=ratings is None, allow_unmatched=tables.allow_unmatched
    )
    joined.require_ratings(answers.source, tables.on_unrated)
    notes = (*table.notes, *_unused(predictions, tables, table), *answers.notes)
    return replace(table, notes=tuple(dict.fromkeys(notes))), joined


def _unused(predictions: Path, tables: TableOptions, table: PredictionTable) -> tuple[str, ...]:
    """Return which columns look like something and were not read; answers were accounted for."""
    if is_npz(predictions):
        return ()
    file = tables.told.open(predictions)
    looks = unused_columns(file, table.columns)
    answers = (*looks.get("a rater", ()), *looks.get("labels", ()))
    return unused_notes(file, (*table.columns, *answers))


def evaluate_findings(
    predictions: Path,
    ratings: Path | None,
    tables: TableOptions,
    finding_column: str | None,
    subgroup_column: Sequence[str] | None,
    report: Progress,
    **asked: Any,
) -> Results:
    """Return the results of findings; `asked` is what `evaluate_multilabel` takes."""
    table, found = read_findings(predictions, ratings, tables, finding_column, asked["unit"])
    results = evaluate_multilabel(
        **arrays_of_findings(found),
        **asked,
        subgroups=read_subgroups(predictions, subgroup_column, tables, found.report),
        progress=report,
    )
    return with_notes(with_what_was_read(results, found), table.notes)


def arrays_of_findings(found: Findings) -> dict[str, Any]:
    """Return what `evaluate_multilabel` takes: who said what, where that is known."""
    said = {"positives": found.positives, "raters": found.raters}
    return {
        "probs": found.probs,
        "names": found.names,
        "groups": found.groups,
        "weights": found.weights,
        **(said if found.answers is None else {"ratings": found.answers}),
    }


def with_what_was_read(results: Results, found: Findings) -> Results:
    """Return the results with what of the files was left out, and left unread."""
    dropped = {**found.report.dropped, **results.data.get("dropped", {})}
    notes = results.warnings
    if found.unread:
        notes = (*notes, f"not read, for lack of a probability: {', '.join(found.unread)}")
    return replace(
        results,
        data={**results.data, "dropped": dropped},
        warnings=notes,
        provenance={
            **results.provenance, "left_out": left_out_record(found.report.left_out, dropped),
            "raters": raters_record(found.rater_ids),
        },
    )  # fmt: skip


def asked_of_findings(metrics: Sequence[str], asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what to ask of every finding: about the positive class, unless a question is told.

    So does `evaluate_multilabel`.
    """
    if asked.get("question") is not None:
        return asked
    positive = Request.of(list(metrics), **asked).about_the_positive_class()
    return {**asked, "options": positive.own}


def of_each_finding(
    found: Findings, progress: Progress, make: Callable[..., Made]
) -> dict[str, Made]:
    """Return what `make` says of the cases of each finding."""
    each: dict[str, Made] = {}
    for i, title in enumerate(found.names):
        part = within(progress, i / len(found.names), (i + 1) / len(found.names), title)
        try:
            each[title] = make(found.finding(i), progress=part)
        except RaterwiseError as error:
            raise InvalidInputError(f"{title}: {error}") from error
    return each


def facts_of_findings(found: Findings) -> dict[str, Any]:
    """Return what figures about the findings rest on, as `evaluate_multilabel` writes it down."""
    rated = found.raters[found.raters > 0]
    return {
        "cases": len(found.probs),
        "patients": None if found.groups is None else len(set(found.groups.tolist())),
        "classes": 2,
        "findings": list(found.names),
        "ratings": int(rated.sum()),
        "raters": {"mean": float(rated.mean()), "min": int(rated.min()), "max": int(rated.max())},
        "dropped": found.report.dropped,
    }
