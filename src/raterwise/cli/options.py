"""The options of the commands, each with its help, in the panels that --help shows."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from raterwise.cli.kinds import (
    Duplicates,
    Input,
    Layout,
    Method,
    OnProblem,
    Order,
    Per,
    Question,
    Unit,
)
from raterwise.errors import InvalidInputError

__all__ = [
    "Duplicates",
    "Input",
    "Layout",
    "Method",
    "OnProblem",
    "Order",
    "Per",
    "Question",
    "Unit",
    "asked_of",
    "comma_list",
    "integers",
    "metric_options",
    "own_options",
    "prevalences",
]


def comma_list(text: str | None) -> Sequence[str]:
    """Return the parts of a,b,c; a part that has a comma itself stands in double quotes.

    >>> comma_list('benign,"other, rare"')
    ['benign', 'other, rare']
    """
    return next(csv.reader([text]), []) if text else []


def prevalences(name: str, text: str | None) -> list[float] | None:
    """Return the prevalence of the second class, or of every class: 0.03, or 0.9,0.07,0.03.

    >>> prevalences("--target-prevalence", "0.03")
    [0.03]
    """
    if text is None:
        return None
    try:
        return [float(part) for part in comma_list(text)]
    except ValueError:
        raise InvalidInputError(
            f"{name}: must be numbers with commas between them, such as 0.03; got {text!r}"
        ) from None


def integers(name: str, text: str) -> list[int]:
    """Return the whole numbers of 100,200,500; `name` is the option that they are of.

    >>> integers("--cases", "100,200")
    [100, 200]
    """
    try:
        return [int(part) for part in comma_list(text)]
    except ValueError:
        raise InvalidInputError(
            f"{name}: must be whole numbers with commas between them, such as 100,200; got {text!r}"
        ) from None


def asked_of(
    bins: int, question: Question | None, per: Per | None, told: Sequence[str] | None
) -> dict[str, Any]:
    """Return what the options say of the metrics, as `evaluate` takes it.

    >>> asked_of(10, None, Per.case, ["robust_ece.sigma=0.05"])["options"]
    {'robust_ece': {'sigma': 0.05}}
    """
    return {
        "bins": bins,
        "question": None if question is None else question.value,
        "per": None if per is None else per.value,
        "options": metric_options(told or ()) or None,
    }


def own_options(metric: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `asked_of` says of one metric, as functions of one metric take it.

    A question or a way to count that this metric has not is for the others that were named.
    """
    from raterwise.catalog import find

    row = find(metric)
    shared = {name: value for name, value in asked.items() if name in ("question", "per")}
    fit = {name: value for name, value in shared.items() if row.can_take(name, value)}
    options = (asked.get("options") or {}).get(metric)
    return {"bins": asked.get("bins", 15), **fit, "options": options}


def metric_options(told: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return METRIC.NAME=VALUE by metric and name."""
    found: dict[str, dict[str, Any]] = {}
    for text in told:
        left, equals, value = text.partition("=")
        metric, dot, name = left.strip().partition(".")
        if not (equals and dot and metric and name):
            raise InvalidInputError(
                f"--option: must be METRIC.NAME=VALUE, such as robust_ece.sigma=0.05; got {text!r}"
            )
        found.setdefault(metric, {})[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    """Return a number, true, false or none for what reads like one; otherwise the text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _option(panel: str, help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel)


COLUMNS = "Predictions: which columns are what"
RATINGS = "Ratings: which columns are what"
MODEL = "The model's outputs"
CALIBRATION = "Calibration"
EVALUATION = "Evaluation"
DESIGNS = "Designs"
OUTPUT = "Output"

PredictionsFile = Annotated[
    Path, typer.Argument(help="CSV, Excel, Parquet, Arrow (.arrow, .feather) or NPZ file.")
]
RatingsFile = Annotated[
    Path | None, typer.Option(help="File of the ratings, joined to the predictions by id.")
]

Multilabel = Annotated[
    bool,
    typer.Option(
        "--multilabel",
        help="Each probability is of a finding of its own; several may occur together.",
    ),
]
IdColumn = Annotated[str | None, _option(COLUMNS, "The case, in both files. Default: case.")]
ProbPrefix = Annotated[
    str, _option(COLUMNS, "How the names of the probability columns begin; the class follows.")
]
ProbColumns = Annotated[
    str | None, _option(COLUMNS, "Or their names: a,b,c. One alone is the second of two classes.")
]
ClassNames = Annotated[
    str | None,
    _option(COLUMNS, "Other names for the classes, in the order of the columns: a,b,c."),
]
LabelColumn = Annotated[str | None, _option(COLUMNS, "The label, where a case has just one.")]
GroupColumn = Annotated[str | None, _option(COLUMNS, "The patient: patients are resampled whole.")]
WeightColumn = Annotated[str | None, _option(COLUMNS, "The weight of each case.")]
Delimiter = Annotated[
    str | None, _option(COLUMNS, "Between the values of a CSV file. Default: recognised.")
]
Encoding = Annotated[
    str | None, _option(COLUMNS, "Of a CSV file, such as cp1252. Default: UTF-8 or UTF-16.")
]
Normalize = Annotated[
    bool,
    _option(COLUMNS, "Probabilities are rounded: divide each row by its sum.", "--normalize"),
]
Percent = Annotated[
    bool, _option(COLUMNS, "Probabilities are percentages: 75 or 75% is 0.75.", "--percent")
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
FindingColumn = Annotated[
    str | None, _option(RATINGS, "long, --multilabel: of which finding. Default: finding.")
]
Finding = Annotated[
    str | None, typer.Option(help="Of results of several findings: compare this one.")
]
CountColumns = Annotated[
    str | None, _option(RATINGS, "counts: one column per class, in their order.")
]
CountPrefix = Annotated[
    str | None, _option(RATINGS, "counts: how their names begin. Default: count_.")
]
Missing = Annotated[
    str | None, _option(RATINGS, "What, besides an empty cell, is no rating: NA,-1.")
]
IgnoreCase = Annotated[
    bool, _option(RATINGS, "Benign and BENIGN are the class benign.", "--ignore-case")
]
RepeatedRatings = Annotated[
    Duplicates,
    _option(
        RATINGS,
        "long: a rater rated a case more than once: refuse, count all, take the most frequent or "
        "the last.",
        "--duplicates",
    ),
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
UnitDrawn = Annotated[
    Unit, _option(EVALUATION, "Resample cases (patients, with --group-column), raters, or both.")
]
QuestionAsked = Annotated[
    Question | None,
    _option(
        EVALUATION,
        "What is asked of a case: is the predicted class right, is it the second of two classes, "
        "is it class k? Default: what each metric asks.",
    ),
]
Counted = Annotated[
    Per | None, _option(EVALUATION, "Whether a case counts once per rater, or once.")
]
MetricOptions = Annotated[
    list[str] | None,
    _option(
        EVALUATION,
        "METRIC.NAME=VALUE, such as robust_ece.sigma=0.05. May be repeated.",
        "--option",
    ),
]
SubgroupColumn = Annotated[
    list[str] | None,
    _option(
        EVALUATION,
        "What tells cases apart, such as the scanner: metrics by its levels. May be repeated.",
    ),
]
SubgroupMetrics = Annotated[
    str | None, _option(EVALUATION, "Of these levels: ece,brier. Default: a short list.")
]
TargetPrevalence = Annotated[
    str | None,
    _option(
        EVALUATION,
        "How frequent the second class is in use (or every class: a,b,c), where disease is "
        "enriched in the file: labels are weighted and probabilities shifted to it.",
    ),
]
AppliedPrevalence = Annotated[
    str | None,
    _option(
        EVALUATION,
        "How frequent the second class is in use (or every class: a,b,c): the probabilities "
        "written are shifted to it from that of the labels they were fitted to.",
        "--target-prevalence",
    ),
]
SourcePrevalence = Annotated[
    str | None,
    _option(
        EVALUATION,
        "With --target-prevalence, where the probabilities are right. Default: as frequent as in "
        "the file; the target again leaves them as they are.",
    ),
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
HtmlOut = Annotated[
    Path | None, _option(OUTPUT, "Write a report for people to this HTML file.", "--html")
]
CsvOut = Annotated[Path | None, _option(OUTPUT, "Write the metrics to this CSV file.", "--csv")]
Quiet = Annotated[bool, _option(OUTPUT, "Print no table.", "--quiet", "-q")]

FitFile = Annotated[
    Path | None,
    typer.Option("--fit", help="Predictions to fit on: CSV, Parquet, Arrow or NPZ."),
]
ApplyFile = Annotated[
    Path | None, typer.Option("--apply", help="Predictions to calibrate, of other cases.")
]
FitRatings = Annotated[Path | None, typer.Option(help="File of the ratings of --fit.")]
ApplyRatings = Annotated[
    Path | None,
    typer.Option(help="File of the ratings of --apply; without ratings nothing is compared."),
]
InputKind = Annotated[
    Input,
    _option(MODEL, "What the files hold. logits: the columns of --logit-prefix.", "--input"),
]
LogitPrefix = Annotated[
    str, _option(MODEL, "How the names of the logit columns begin; the class follows.")
]
FeaturesPrefix = Annotated[
    str | None,
    _option(MODEL, "How the names of the columns that α0 may depend on begin, such as feat_."),
]
MethodName = Annotated[
    Method, _option(CALIBRATION, "none leaves the class probabilities as they are.", "--method")
]
CrossValidate = Annotated[
    bool,
    _option(
        CALIBRATION,
        "vector, matrix: choose the penalties; --alpha always does.",
        "--cross-validate",
    ),
]
Alpha = Annotated[
    bool,
    _option(CALIBRATION, "Also find how sure of them to be: α0, disagreement.", "--alpha"),
]
AlphaL2 = Annotated[
    float | None,
    _option(CALIBRATION, "The paper's penalty, which draws α0 towards 1 (0.005). Default: chosen."),
]
AllowOverlap = Annotated[
    bool,
    _option(CALIBRATION, "Go on though cases or patients are in both files.", "--allow-overlap"),
]
ComparedMetrics = Annotated[
    str | None, _option(EVALUATION, "all, or names: ece,brier. Default: about a dozen.")
]
OutFolder = Annotated[
    Path, _option(OUTPUT, "Folder to write into; it is made if need be.", "--out")
]

CalibratorFile = Annotated[
    Path | None, _option(MODEL, "calibrator.json of raterwise calibrate, applied first.")
]
AlphaModel = Annotated[
    Path | None, _option(MODEL, "alpha.json of raterwise calibrate: how sure to be of each case.")
]
AlphaColumn = Annotated[
    str | None, _option(MODEL, "Or the column that says it. Default: alpha0, if there is one.")
]
WorklistBy = Annotated[
    Order, typer.Option("--by", help="Rank by what a label is worth, or by disagreement.")
]
Top = Annotated[int | None, typer.Option(help="How many cases to list. Default: all.")]
WorklistRatings = Annotated[
    Path | None, typer.Option(help="Ratings that are there already; the belief takes them in.")
]
WorklistOut = Annotated[Path | None, _option(OUTPUT, "Write the list to this CSV file.", "--out")]

MetricName = Annotated[str, typer.Argument(help="The metric to plan for, such as brier or ece.")]
PilotFile = Annotated[Path, typer.Argument(help="Predictions of the pilot study.")]
DesignCases = Annotated[str, _option(DESIGNS, "How many cases, say 100,200,500.", "--cases")]
DesignRaters = Annotated[str, _option(DESIGNS, "How many raters a case, say 1,2,3.", "--raters")]
Budget = Annotated[
    float | None, _option(DESIGNS, "What may be spent; by default in readings.", "--budget")
]
CaseCost = Annotated[
    float, typer.Option(min=0, help="What a new case costs besides its readings.",
                        rich_help_panel=DESIGNS)
]  # fmt: skip
ReadingCost = Annotated[
    float, typer.Option(min=0, help="What one reading costs.", rich_help_panel=DESIGNS)
]
Repeats = Annotated[int, _option(DESIGNS, "Simulated studies per design.")]
