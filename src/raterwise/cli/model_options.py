"""The options of a model's outputs: draws of an ensemble, confidences, what calibrates them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from raterwise.cli.options import COLUMNS, MODEL, in_panel

CALIBRATION = "Calibration"


def _unless_draws(context: typer.Context, value: Path | None) -> Path | None:
    """Refuse a command without a file of predictions and without draws of an ensemble."""
    if value is None and not (context.params.get("samples") or context.params.get("member")):
        raise typer.BadParameter("missing; give a file, or draws with --samples or --member")
    return value


OptionalPredictionsFile = Annotated[
    Path | None,
    typer.Argument(
        help="CSV, Excel, Parquet, Arrow (.arrow, .feather) or NPZ file. Not needed with --samples "
        "or --member.",
        callback=_unless_draws,
    ),
]
SamplesFile = Annotated[
    Path | None,
    in_panel(
        MODEL,
        "NPZ file with the draws of an ensemble: samples (S, N, K).",
        is_eager=True,  # PREDICTIONS must know whether there are draws
    ),
]
MemberFiles = Annotated[
    list[Path] | None,
    in_panel(MODEL, "Or one table per draw, joined by id. May be repeated.", is_eager=True),
]
ConfidenceColumn = Annotated[
    str | None,
    in_panel(COLUMNS, "Column to rank the cases by, instead of the largest probability."),
]
OutsideFile = Annotated[
    Path | None,
    typer.Option(help="Out-of-distribution cases: their probabilities, or --confidence-column."),
]
SamplesByModel = Annotated[
    list[str] | None,
    in_panel(MODEL, "NAME=FILE: an NPZ file with the draws of a model. May be repeated."),
]
MembersByModel = Annotated[
    list[str] | None,
    in_panel(
        MODEL, "NAME=FILE: or a table for each draw of a model, joined by id. May be repeated."
    ),
]
OutsideByModel = Annotated[
    list[str] | None,
    typer.Option(
        help="NAME=FILE: what a model says of out-of-distribution cases, as in raterwise evaluate. "
        "One for every model."
    ),
]
FitSamples = Annotated[
    Path | None,
    in_panel(MODEL, "NPZ with the draws to fit on: samples or logits, (S, N, K); features."),
]
ApplySamples = Annotated[Path | None, in_panel(MODEL, "NPZ with the draws to calibrate.")]
FitMembers = Annotated[
    list[Path] | None,
    in_panel(MODEL, "Or one table per draw to fit on. May be repeated."),
]
ApplyMembers = Annotated[
    list[Path] | None,
    in_panel(MODEL, "Or one table per draw to calibrate. May be repeated."),
]

FitFile = Annotated[
    Path | None,
    typer.Option(help="Predictions to fit on: CSV, Parquet, Arrow or NPZ."),
]
ApplyFile = Annotated[Path | None, typer.Option(help="Predictions of other cases, to calibrate.")]
FitRatings = Annotated[Path | None, typer.Option(help="Ratings of the cases in --fit.")]
ApplyRatings = Annotated[
    Path | None,
    typer.Option(help="Ratings of the cases in --apply. Without them there is nothing to compare."),
]
Input = Annotated[
    Literal["probs", "logits"],
    in_panel(MODEL, "What the files hold: probabilities, or logits (see --logit-prefix)."),
]
LogitPrefix = Annotated[
    str, in_panel(MODEL, "Prefix of the logit columns; the class name follows it.")
]
FeaturesPrefix = Annotated[
    str | None,
    in_panel(MODEL, "Prefix of the columns that α0 may depend on, such as feat_."),
]
Method = Annotated[
    Literal[
        "temperature", "vector", "matrix", "dirichlet", "isotonic", "beta", "histogram", "none"
    ],
    in_panel(CALIBRATION, "Which calibrator to fit; none leaves the class probabilities alone."),
]
CrossValidate = Annotated[
    bool,
    in_panel(
        CALIBRATION,
        "vector, matrix: choose the penalties by cross-validation. --alpha always does.",
        "--cross-validate",
    ),
]
Alpha = Annotated[
    bool,
    in_panel(
        CALIBRATION, "Also estimate α0 (how certain each case is) and disagreement.", "--alpha"
    ),
]
AlphaL2 = Annotated[
    float | None,
    in_panel(
        CALIBRATION, "Strength of the paper's penalty on α0 (0.005). Default: chosen from the data."
    ),
]
AllowOverlap = Annotated[
    bool,
    in_panel(
        CALIBRATION, "Continue even if cases or patients are in both files.", "--allow-overlap"
    ),
]
CalibratorFile = Annotated[
    Path | None, in_panel(MODEL, "calibrator.json from raterwise calibrate; it is applied first.")
]
AlphaModel = Annotated[
    Path | None,
    in_panel(MODEL, "alpha.json from raterwise calibrate, which gives α0 of each case."),
]
AlphaColumn = Annotated[
    str | None, in_panel(MODEL, "Or the column with α0. Default: alpha0, if there is one.")
]
