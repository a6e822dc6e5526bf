"""Cases from files: the reader of the command line, for Python as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from raterwise.errors import InvalidInputError
from raterwise.evaluate import predictions_of
from raterwise.io.layouts import TableColumns, usual_layouts
from raterwise.io.npz import is_npz
from raterwise.io.ratings import RatingTable, read_ratings
from raterwise.io.sources import as_path
from raterwise.io.tables import Joined, PredictionTable, join, read_predictions
from raterwise.io.unused_columns import unused_notes
from raterwise.labels.duplicates import DUPLICATES, Duplicates
from raterwise.labels.misread import IN_ORDER_OF_CODES, code_notes
from raterwise.predictions import Predictions
from raterwise.rules import choose
from raterwise.types import OnUnrated

PathOrName = str | PathLike[str]


def columns_of_draw(told: TableColumns, file: Path) -> TableColumns:
    """Return the columns of one draw, whose file need not repeat labels, patients, weights."""
    if is_npz(file):
        return told
    known = told.open(file).columns
    names = ("label_column", "group_column", "weight_column")
    absent: dict[str, Any] = {n: None for n in names if getattr(told, n) not in known}
    return replace(told, **absent)


def file_of_ratings(told: TableColumns, predictions: Path, ratings: Path | None) -> Path | None:
    """Return the file to read ratings from: the one given, that of the predictions, or none."""
    said = told.ratings_layout is not None or bool(told.ratings_named)
    if told.label_column is not None and (ratings is not None or said):
        raise InvalidInputError(
            f"label_column: cannot be combined with ratings; {told.label_column!r} would not be "
            "read. Give one of them"
        )
    if ratings is not None:
        _refuse_in_ratings(told, predictions, ratings)
    if ratings is not None or said:
        return predictions if ratings is None else ratings
    if told.label_column is not None or is_npz(predictions):
        return None
    beside = usual_layouts(told.open(predictions))
    return predictions if beside["wide"] or beside["counts"] else None


def _refuse_in_ratings(told: TableColumns, predictions: Path, ratings: Path) -> None:
    """Refuse columns that must stand beside the predictions and stand beside the ratings."""
    names = {key: getattr(told, key) for key in ("group_column", "weight_column")}
    if not any(names.values()) or is_npz(predictions) or is_npz(ratings):
        return
    own, other = (told.open(file).columns for file in (predictions, ratings))
    for key, name in names.items():
        if name is not None and name not in own and name in other:
            raise InvalidInputError(
                f"{key}: must name a column of {predictions.name}; {name!r} is in "
                f"{ratings.name} alone: copy it into {predictions.name}, case by case"
            )


def read_table(
    told: TableColumns, predictions: Path, *, beside: bool = False, used: Collection[str] = ()
) -> PredictionTable:
    """Return the table of predictions; with ratings `beside` them cases need no names.

    `used` is what somebody else reads.
    """
    table = read_predictions(predictions, told, number_rows=beside, used=used)
    notes = (*table.notes, *_code_notes(told, table.class_names, table.codes))
    return replace(table, loose_ids=told.loose_ids, notes=notes)


def ratings_of_table(
    told: TableColumns, source: Path | None, table: PredictionTable, *, beside: bool = False
) -> RatingTable | None:
    """Return the ratings of the cases of a table, where there is a file of them."""
    if source is None:
        return None
    columns = table.columns if beside else ()
    found = read_ratings(
        source, table.class_names, told, beside=columns, number_rows=beside,
        id_argument="id_column" if beside else "ratings_id_column",
    )  # fmt: skip
    coded = _code_notes(told, table.class_names, found.codes)
    return replace(found, notes=(*found.notes, *coded)) if coded else found


def _code_notes(told: TableColumns, class_names: Sequence[str], coded: bool) -> tuple[str, ...]:
    """Return what codes were taken for, where nobody said the order of the classes."""
    named = told.class_names is not None or len(told.prob_columns) > 1
    return code_notes(class_names, IN_ORDER_OF_CODES) if coded and not named else ()


def read_tables(
    predictions: Path, ratings: Path | None, told: TableColumns, used: Collection[str] = ()
) -> tuple[PredictionTable, Joined]:
    """Return a table of predictions, and its cases joined to the ratings that `told` points to.

    `used` are columns that somebody else reads.
    """
    source = file_of_ratings(told, predictions, ratings)
    beside = source is not None and source == predictions
    table = read_table(told, predictions, beside=beside, used=used)
    table = replace(table, columns=(*table.columns, *used))
    table = table if beside else with_unused(told, predictions, table)
    return with_ratings(told, table, source, beside=beside)


def with_unused(told: TableColumns, predictions: Path, table: PredictionTable) -> PredictionTable:
    """Return a table with notes on the columns that look like something and were not read."""
    if is_npz(predictions):
        return table
    unused = unused_notes(told.open(predictions), table.columns)
    return replace(table, notes=(*table.notes, *unused))


def with_ratings(
    told: TableColumns,
    table: PredictionTable,
    source: Path | None,
    *,
    beside: bool,
    some: bool = False,
) -> tuple[PredictionTable, Joined]:
    """Return a table with what there is to know of its ratings, and its cases joined to them.

    With `some`, cases without ratings are no mistake.
    """
    rated = ratings_of_table(told, source, table, beside=beside)
    joined = join(table, rated, allow_unmatched=told.allow_unmatched or some)
    if joined.report.without_predictions and not told.allow_unmatched:
        join(table, rated)  # which explains what does not match
    notes = (*table.notes, *(rated.notes if rated is not None else ()))
    if again := joined.report.loosely:
        of = f"{again} of {joined.report.cases} cases"
        notes += (f"the ids of {of} are written differently in the ratings (loose_ids)",)
    return replace(table, notes=tuple(dict.fromkeys(notes))), joined


def predictions_of_tables(
    table: PredictionTable,
    joined: Joined,
    sources: Sequence[PathOrName | None] = (),
    on_unrated: OnUnrated = "error",
    *,
    probs: Any = None,
    confidence: Any = None,
    outside: Any = None,
) -> Predictions:
    """Return joined tables as predictions, which know what was left out and where they are from.

    `probs` may be a belief about the joined cases, `confidence` what ranks them, `outside` the
    confidences of cases from elsewhere.
    """
    found = predictions_of(
        joined.probs if probs is None else probs,
        joined.labels,
        weights=joined.weights,
        groups=joined.groups,
        class_names=table.class_names,
        on_unrated=on_unrated,
        confidence=confidence,
        outside=outside,
    )
    return replace(
        found,
        left_out={**joined.report.left_out, **found.left_out},
        notes=(*table.notes, *found.notes),
        sources=tuple(str(path) for path in sources if path is not None),
    )


def read_cases(
    predictions: PathOrName,
    ratings: PathOrName | None = None,
    *,
    id_column: str | None = None,
    prob_prefix: str = "prob_",
    prob_columns: Sequence[str] = (),
    class_names: Sequence[str] | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    weight_column: str | None = None,
    ratings_layout: Literal["wide", "long", "counts"] | None = None,
    ratings_id_column: str | None = None,
    rater_columns: Sequence[str] = (),
    rater_prefix: str | None = None,
    rater_column: str | None = None,
    rating_column: str | None = None,
    count_columns: Sequence[str] = (),
    count_prefix: str | None = None,
    missing: Collection[str] = (),
    duplicates: Duplicates = "error",
    normalize: bool = False,
    percent: bool = False,
    ignore_case: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    allow_unmatched: bool = False,
    loose_ids: bool = False,
    on_unrated: OnUnrated = "error",
) -> Predictions:
    """Read a table of predictions and a table of ratings, joined by case id.

    Reads what `raterwise evaluate` reads, by the same rules: CSV as spreadsheets and programs
    export it, Excel, Parquet, Arrow and NPZ.

    Parameters
    ----------
    predictions : str or path
        The file of the probabilities; the first line of a table names its columns.
    ratings : str or path, default None
        The file of the ratings. By default they are expected in the same table as the
        probabilities, in columns called reader_…, rater_… or count_…, or in `label_column`.
    id_column : str, default None
        The column of the case, in both files; by default `case`, or an unnamed first column.
    prob_prefix : str, default "prob_"
        Prefix of the probability columns; the class name follows. A single column prob_malignant
        is the probability of malignant.
    prob_columns : sequence of str, default ()
        The names of the probability columns, instead of a prefix.
    class_names : sequence of str, default None
        Other names for the classes, in the order of the columns.
    label_column, group_column, weight_column : str, default None
        The columns of the label, if each case has one, of the patient, and of the weight.
    ratings_layout : {"wide", "long", "counts"}, default None
        A column per rater, a row per rating, or a count per class; by default deduced from the
        names of the columns.
    ratings_id_column : str, default None
        The column of the case in the file of ratings, if its name differs.
    rater_columns, rater_prefix : sequence of str, str, default (), None
        wide: the raters' columns, or their prefix.
    rater_column, rating_column : str, default None
        long: the columns of the rater (by default reader or rater) and of the rating (by default
        label or rating).
    count_columns, count_prefix : sequence of str, str, default (), None
        counts: one column per class, or their prefix.
    missing : collection of str, default ()
        Values that mean no rating, besides an empty cell, such as "NA".
    duplicates : {"error", "keep", "average", "last"}, default "error"
        Several ratings of a case by one rater: refused, all counted, the most frequent one (the
        later one in a tie), or the last one.
    normalize : bool, default False
        Divide rows that were rounded, to two decimals or more, by their sums.
    percent : bool, default False
        Probabilities are percentages: 75 or 75% is 0.75.
    ignore_case : bool, default False
        Ratings may differ from the class names in upper and lower case.
    delimiter, encoding : str, default None
        For CSV files; by default recognised for each file.
    allow_unmatched : bool, default False
        Leave out and count cases that are in one file only.
    loose_ids : bool, default False
        Ids may differ between the files in capitals, leading zeros, blanks and dashes, the folder
        and the ending of a file: IMG_001.PNG is img-1.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    Predictions
        For `evaluate`, in the order of the predictions. `notes` says what to know about how the
        files were read, such as columns that look like a rater and were not used.

    Raises
    ------
    InvalidInputError
        If something cannot be read; the message names the file, the column, the row and the value.

    See Also
    --------
    evaluate : takes what this returns.
    Labels.from_frame : ratings from a data frame.

    Examples
    --------
    >>> import raterwise as rw
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "p.csv").write_text("case;prob_malignant\\nn1;0,75\\nn2;0,5\\n")
    >>> _ = (folder / "r.csv").write_text("case,reader_1,Reader 2\\nn1,1,1\\nn2,0,1\\n")
    >>> cases = rw.read_cases(folder / "p.csv", ratings=folder / "r.csv")
    >>> cases.class_names, cases.labels.counts.tolist()
    (('not malignant', 'malignant'), [[0, 2], [1, 1]])
    >>> round(rw.evaluate(cases, metrics="brier", resamples=0)["brier"].value, 4)
    0.1562
    """
    told = TableColumns(
        id_column=id_column, prob_prefix=prob_prefix, prob_columns=prob_columns,
        class_names=None if class_names is None else tuple(class_names),
        label_column=label_column, group_column=group_column, weight_column=weight_column,
        delimiter=delimiter, encoding=encoding, normalize=normalize, percent=percent,
        ignore_case=ignore_case, missing=missing,
        ratings_layout=ratings_layout, rater_columns=rater_columns,
        rater_prefix=rater_prefix, rater_column=rater_column, rating_column=rating_column,
        count_columns=count_columns, count_prefix=count_prefix,
        ratings_id_column=ratings_id_column, allow_unmatched=allow_unmatched,
        loose_ids=loose_ids, duplicates=choose("duplicates", duplicates, DUPLICATES),
    )  # fmt: skip
    file = as_path(predictions, "predictions")
    other = None if ratings is None else as_path(ratings, "ratings")
    table, joined = read_tables(file, other, told)
    return predictions_of_tables(table, joined, (file, other), on_unrated)
