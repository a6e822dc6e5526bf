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
    "ASKED",
    "asked_of",
    "comma_list",
    "integers",
    "metric_options",
    "own_options",
    "prevalences",
]


def comma_list(text: str | None) -> Sequence[str]:
    """Return the parts of a,b,c; a part that has a comma itself stands in double quotes.

    >>> comma_list('benign, "other, rare"')
    ['benign', 'other, rare']
    """
    return next(csv.reader([text], skipinitialspace=True), []) if text else []


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


ASKED = ("bins", "question", "per", "option", "threshold")
"""The options of a command that `asked_of` takes, in its order."""


def asked_of(
    bins: int,
    question: Question | None,
    per: Per | None,
    told: Sequence[str] | None,
    threshold: float | None = None,
) -> dict[str, Any]:
    """Return what the options say of the metrics, as `evaluate` takes it.

    >>> asked_of(10, None, Per.case, ["robust_ece.sigma=0.05"])["options"]
    {'robust_ece': {'sigma': 0.05}}
    """
    return {
        "bins": bins,
        "question": None if question is None else question.value,
        "per": None if per is None else per.value,
        "threshold": threshold,
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
    # A group's options are those of its metrics; what is told of the metric itself comes first.
    wide = [{"threshold": asked.get("threshold")}]
    given = asked.get("options") or {}
    wide += [told for name, told in given.items() if name.lower() == row.group.lower()]
    options = {k: v for told in wide for k, v in told.items() if k in row.options and v is not None}
    options |= given.get(metric) or {}
    return {"bins": asked.get("bins", 15), **fit, "options": options or None}


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

RatingsFile = Annotated[
    Path | None, typer.Option(help="File of the ratings, joined to the predictions by id.")
]

Multilabel = Annotated[
    bool,
    typer.Option(
        "--multilabel",
        help="Each probability column is a separate finding; several may occur together.",
    ),
]
IdColumn = Annotated[
    str | None, _option(COLUMNS, "Column with the case id, in both files. Default: case.")
]
ProbPrefix = Annotated[
    str, _option(COLUMNS, "Prefix of the probability columns; the class name follows it.")
]
ProbColumns = Annotated[
    str | None,
    _option(COLUMNS, "Or the column names: a,b,c. A single one is for the second of two classes."),
]
ClassNames = Annotated[
    str | None,
    _option(COLUMNS, "Names of the classes, in the order of the columns: a,b,c."),
]
LabelColumn = Annotated[
    str | None, _option(COLUMNS, "Column with the label, if each case has one.")
]
GroupColumn = Annotated[
    str | None, _option(COLUMNS, "Column with the patient. Resampling draws whole patients.")
]
WeightColumn = Annotated[str | None, _option(COLUMNS, "Column with the weight of each case.")]
Delimiter = Annotated[str | None, _option(COLUMNS, "Separator of a CSV file. Default: detected.")]
Encoding = Annotated[
    str | None,
    _option(COLUMNS, "Encoding of a CSV file, such as cp1252. Default: UTF-8 or UTF-16."),
]
Normalize = Annotated[
    bool,
    _option(COLUMNS, "The probabilities are rounded: divide each row by its sum.", "--normalize"),
]
Percent = Annotated[
    bool, _option(COLUMNS, "The probabilities are percentages: 75 or 75% means 0.75.", "--percent")
]

RatingsLayout = Annotated[
    Layout | None,
    _option(
        RATINGS,
        "wide: a column per rater. long: a row per rating. counts: a count per class. Default: "
        "detected, if the column names leave no doubt.",
    ),
]
RatingsIdColumn = Annotated[
    str | None, _option(RATINGS, "Column with the case id in this file, if its name differs.")
]
RaterColumns = Annotated[str | None, _option(RATINGS, "wide: columns of the raters, a,b,c.")]
RaterPrefix = Annotated[
    str | None, _option(RATINGS, "wide: prefix of those columns. Default: reader_ or rater_.")
]
RaterColumn = Annotated[
    str | None, _option(RATINGS, "long: column with the rater. Default: reader or rater.")
]
RatingColumn = Annotated[
    str | None, _option(RATINGS, "long: column with the label. Default: label or rating.")
]
FindingColumn = Annotated[
    str | None, _option(RATINGS, "long, --multilabel: column with the finding. Default: finding.")
]
Finding = Annotated[
    str | None, typer.Option(help="Compare this finding only, if the results have several.")
]
CountColumns = Annotated[str | None, _option(RATINGS, "counts: one column per class, in order.")]
CountPrefix = Annotated[
    str | None, _option(RATINGS, "counts: prefix of those columns. Default: count_.")
]
Missing = Annotated[
    str | None,
    _option(RATINGS, "Values that mean no rating, such as NA,-1; an empty cell does."),
]
IgnoreCase = Annotated[
    bool, _option(RATINGS, "Treat Benign and BENIGN as the class benign.", "--ignore-case")
]
RepeatedRatings = Annotated[
    Duplicates,
    _option(
        RATINGS,
        "long: if a rater rated a case more than once: refuse, keep all ratings, take the most "
        "frequent one or the last.",
        "--duplicates",
    ),
]
AllowUnmatched = Annotated[
    bool,
    _option(RATINGS, "Leave out and count cases that are in one file only.", "--allow-unmatched"),
]
LooseIds = Annotated[
    bool,
    _option(RATINGS, "Ids may differ in capitals, zeros, folder, ending: IMG_001.PNG is img-1.",
            "--loose-ids"),
]  # fmt: skip

Metrics = Annotated[str, _option(EVALUATION, "all, or a list: ece,brier,auccc.")]
Bins = Annotated[int, _option(EVALUATION, "Number of bins of the binned metrics.")]
Resamples = Annotated[
    int, _option(EVALUATION, "Number of bootstrap resamples; 0 makes no intervals.")
]
Level = Annotated[float, _option(EVALUATION, "Confidence level of the intervals.")]
Seed = Annotated[int, _option(EVALUATION, "Random seed; the same seed gives the same digits.")]
UnitDrawn = Annotated[
    Unit,
    _option(
        EVALUATION, "What to resample: cases (patients, with --group-column), raters, or both."
    ),
]
QuestionAsked = Annotated[
    Question | None,
    _option(
        EVALUATION,
        "What a metric asks of a case: is the predicted class right, is it the second of two "
        "classes, is it class k? Default: the metric's own question.",
    ),
]
Counted = Annotated[Per | None, _option(EVALUATION, "Count a case once per rating, or once.")]
MetricOptions = Annotated[
    list[str] | None,
    _option(
        EVALUATION,
        "An option of a metric, such as robust_ece.sigma=0.05. May be repeated.",
        "--option",
    ),
]
Threshold = Annotated[
    float | None,
    _option(EVALUATION, "Lowest probability of a positive test: sensitivity, ppv, … Default: 0.5."),
]
SubgroupColumn = Annotated[
    list[str] | None,
    _option(
        EVALUATION,
        "Also report metrics by the levels of this column, such as the scanner. May be repeated.",
    ),
]
SubgroupMetrics = Annotated[
    str | None, _option(EVALUATION, "Metrics to report by level: ece,brier. Default: a short list.")
]
TargetPrevalence = Annotated[
    str | None,
    _option(
        EVALUATION,
        "Prevalence of the second class in use (or of every class: a,b,c), if disease is enriched "
        "in the file. Labels are weighted and probabilities shifted to it.",
    ),
]
AppliedPrevalence = Annotated[
    str | None,
    _option(
        EVALUATION,
        "Prevalence of the second class in use (or of every class: a,b,c). The probabilities "
        "that are written are shifted to it.",
        "--target-prevalence",
    ),
]
SourcePrevalence = Annotated[
    str | None,
    _option(
        EVALUATION,
        "With --target-prevalence: the prevalence at which the probabilities are right. Default: "
        "that of the file. Give the target again to leave them as they are.",
    ),
]
OnUnrated = Annotated[OnProblem, _option(EVALUATION, "What to do with a case that nobody rated.")]
OnSingle = Annotated[
    OnProblem,
    _option(
        EVALUATION,
        "If cases have too few ratings for a metric: leave it undefined, or drop those cases.",
    ),
]

Out = Annotated[Path | None, _option(OUTPUT, "Write everything to this JSON file.")]
HtmlOut = Annotated[Path | None, _option(OUTPUT, "Write a report to this HTML file.", "--html")]
CsvOut = Annotated[Path | None, _option(OUTPUT, "Write the metrics to this CSV file.", "--csv")]
Quiet = Annotated[bool, _option(OUTPUT, "Print no table.", "--quiet", "-q")]

FitFile = Annotated[
    Path | None,
    typer.Option("--fit", help="Predictions to fit on: CSV, Parquet, Arrow or NPZ."),
]
ApplyFile = Annotated[
    Path | None, typer.Option("--apply", help="Predictions of other cases, to calibrate.")
]
FitRatings = Annotated[Path | None, typer.Option(help="Ratings of the cases in --fit.")]
ApplyRatings = Annotated[
    Path | None,
    typer.Option(help="Ratings of the cases in --apply. Without them there is nothing to compare."),
]
InputKind = Annotated[
    Input,
    _option(
        MODEL, "What the files hold: probabilities, or logits (see --logit-prefix).", "--input"
    ),
]
LogitPrefix = Annotated[
    str, _option(MODEL, "Prefix of the logit columns; the class name follows it.")
]
FeaturesPrefix = Annotated[
    str | None,
    _option(MODEL, "Prefix of the columns that α0 may depend on, such as feat_."),
]
MethodName = Annotated[
    Method,
    _option(
        CALIBRATION,
        "Which calibrator to fit; none leaves the class probabilities alone.",
        "--method",
    ),
]
CrossValidate = Annotated[
    bool,
    _option(
        CALIBRATION,
        "vector, matrix: choose the penalties by cross-validation. --alpha always does.",
        "--cross-validate",
    ),
]
Alpha = Annotated[
    bool,
    _option(
        CALIBRATION, "Also estimate α0: how sure to be of each case, and disagreement.", "--alpha"
    ),
]
AlphaL2 = Annotated[
    float | None,
    _option(CALIBRATION, "Strength of the paper's penalty on α0 (0.005). Default: chosen by data."),
]
AllowOverlap = Annotated[
    bool,
    _option(
        CALIBRATION, "Continue even if cases or patients are in both files.", "--allow-overlap"
    ),
]
ComparedMetrics = Annotated[
    str | None, _option(EVALUATION, "all, or a list: ece,brier. Default: about a dozen.")
]
OutFolder = Annotated[Path, _option(OUTPUT, "Folder for the output; made if needed.", "--out")]

CalibratorFile = Annotated[
    Path | None, _option(MODEL, "calibrator.json from raterwise calibrate; it is applied first.")
]
AlphaModel = Annotated[
    Path | None, _option(MODEL, "alpha.json from raterwise calibrate: how sure to be of each case.")
]
AlphaColumn = Annotated[
    str | None, _option(MODEL, "Or the column with α0. Default: alpha0, if there is one.")
]
WorklistBy = Annotated[
    Order,
    typer.Option("--by", help="Rank by the expected gain of one more label, or by disagreement."),
]
Top = Annotated[int | None, typer.Option(help="How many cases to list. Default: all.")]
WorklistRatings = Annotated[
    Path | None, typer.Option(help="Ratings that you already have; they update the probabilities.")
]
WorklistOut = Annotated[Path | None, _option(OUTPUT, "Write the list to this CSV file.", "--out")]

MetricName = Annotated[str, typer.Argument(help="The metric to plan for, such as brier or ece.")]
PilotFile = Annotated[Path, typer.Argument(help="Predictions of the pilot study.")]
DesignCases = Annotated[str, _option(DESIGNS, "Numbers of cases to try: 100,200,500.", "--cases")]
DesignRaters = Annotated[str, _option(DESIGNS, "Raters per case to try: 1,2,3.", "--raters")]
Budget = Annotated[
    float | None,
    _option(DESIGNS, "How much you can spend; in readings, unless costs are given.", "--budget"),
]
CaseCost = Annotated[
    float, typer.Option(min=0, help="Cost of a new case, without its readings.",
                        rich_help_panel=DESIGNS)
]  # fmt: skip
ReadingCost = Annotated[
    float, typer.Option(min=0, help="Cost of one reading.", rich_help_panel=DESIGNS)
]
Repeats = Annotated[int, _option(DESIGNS, "Number of simulated studies per design.")]
