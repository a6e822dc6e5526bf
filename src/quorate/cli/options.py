"""The options of `quorate evaluate`, each with its help, in the panels that --help shows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["Layout", "OnProblem", "Resample", "comma_list"]


class Layout(StrEnum):
    """How a file holds the ratings."""

    wide = "wide"
    long = "long"
    counts = "counts"


class Resample(StrEnum):
    """What the bootstrap draws."""

    cases = "cases"
    raters = "raters"


class OnProblem(StrEnum):
    """What to do with a case that cannot be used."""

    error = "error"
    drop = "drop"


def comma_list(text: str | None) -> Sequence[str]:
    """Return the parts of a,b,c; a part that has a comma itself stands in double quotes.

    >>> comma_list('benign,"other, rare"')
    ['benign', 'other, rare']
    """
    return next(csv.reader([text]), []) if text else []


def _option(panel: str, help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel)


COLUMNS = "Predictions: which columns are what"
RATINGS = "Ratings: which columns are what"
EVALUATION = "Evaluation"
OUTPUT = "Output"

PredictionsFile = Annotated[
    Path, typer.Argument(help="CSV, Parquet, Arrow (.arrow, .feather) or NPZ file.")
]
RatingsFile = Annotated[
    Path | None, typer.Option(help="File of the ratings, joined to the predictions by id.")
]

IdColumn = Annotated[str | None, _option(COLUMNS, "The case, in both files. Default: case.")]
ProbPrefix = Annotated[
    str, _option(COLUMNS, "How the names of the probability columns begin; the class follows.")
]
ProbColumns = Annotated[
    str | None, _option(COLUMNS, "Or their names: a,b,c. One alone is the second of two classes.")
]
ClassNames = Annotated[
    str | None, _option(COLUMNS, "Other names for the classes, in the order of the columns: a,b,c.")
]
LabelColumn = Annotated[str | None, _option(COLUMNS, "The label, where a case has just one.")]
GroupColumn = Annotated[str | None, _option(COLUMNS, "The patient: patients are resampled whole.")]
WeightColumn = Annotated[str | None, _option(COLUMNS, "The weight of each case.")]
Delimiter = Annotated[
    str | None, _option(COLUMNS, "Between the values of a CSV file. Default: a comma.")
]

RatingsLayout = Annotated[
    Layout | None,
    _option(
        RATINGS,
        "A column per rater, a row per rating, or a count per class. Deduced only where the names "
        "of the columns leave no doubt.",
    ),
]
RatingsIdColumn = Annotated[
    str | None, _option(RATINGS, "The case, where this file calls it otherwise.")
]
RaterColumns = Annotated[str | None, _option(RATINGS, "wide: the raters' columns, a,b,c.")]
RaterPrefix = Annotated[
    str | None, _option(RATINGS, "wide: how their names begin. Default: reader_ or rater_.")
]
RaterColumn = Annotated[str | None, _option(RATINGS, "long: who. Default: reader or rater.")]
RatingColumn = Annotated[str | None, _option(RATINGS, "long: said what. Default: label or rating.")]
CountColumns = Annotated[
    str | None, _option(RATINGS, "counts: one column per class, in their order.")
]
CountPrefix = Annotated[
    str | None, _option(RATINGS, "counts: how their names begin. Default: count_.")
]
Missing = Annotated[
    str | None, _option(RATINGS, "What, besides an empty cell, is no rating: NA,-1.")
]
AllowUnmatched = Annotated[
    bool,
    _option(RATINGS, "Leave out, and count, cases that only one file has.", "--allow-unmatched"),
]

Metrics = Annotated[str, _option(EVALUATION, "all, or names: ece,brier,auccc.")]
Bins = Annotated[int, _option(EVALUATION, "How many bins the binned metrics have.")]
Resamples = Annotated[int, _option(EVALUATION, "Of the bootstrap; 0 for no intervals.")]
Level = Annotated[float, _option(EVALUATION, "Of the intervals.")]
Seed = Annotated[int, _option(EVALUATION, "The same seed gives the same digits.")]
ResampleWhat = Annotated[
    Resample, _option(EVALUATION, "Draw cases (patients, with --group-column) or raters.")
]
OnUnrated = Annotated[OnProblem, _option(EVALUATION, "A case that nobody rated.")]
OnSingle = Annotated[
    OnProblem,
    _option(
        EVALUATION,
        "A case with too few ratings for a metric: the metric is undefined, or goes without it.",
    ),
]

Out = Annotated[Path | None, _option(OUTPUT, "Write everything to this JSON file.")]
CsvOut = Annotated[Path | None, _option(OUTPUT, "Write the metrics to this CSV file.", "--csv")]
Quiet = Annotated[bool, _option(OUTPUT, "Print no table.", "--quiet", "-q")]
