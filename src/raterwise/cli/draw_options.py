"""The options of draws of an ensemble, of confidences and of cases from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raterwise.cli.options import COLUMNS, MODEL, _option


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
    typer.Option(
        "--samples",
        help="NPZ file with the draws of an ensemble: samples (S, N, K).",
        is_eager=True,  # PREDICTIONS must know whether there are draws
        rich_help_panel=MODEL,
    ),
]
MemberFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--member",
        help="Or one table per draw, joined by id. May be repeated.",
        is_eager=True,
        rich_help_panel=MODEL,
    ),
]
ConfidenceColumn = Annotated[
    str | None,
    _option(COLUMNS, "Column to rank the cases by, instead of the largest probability."),
]
OutsideFile = Annotated[
    Path | None,
    typer.Option(
        "--outside",
        help="Out-of-distribution cases: their probabilities, or --confidence-column.",
    ),
]
SamplesByModel = Annotated[
    list[str] | None,
    typer.Option(
        "--samples",
        help="NAME=FILE: an NPZ file with the draws of a model. Repeated.",
        rich_help_panel=MODEL,
    ),
]
MembersByModel = Annotated[
    list[str] | None,
    typer.Option(
        "--member",
        help="NAME=FILE: or a table for each draw of a model, joined by id. Repeated.",
        rich_help_panel=MODEL,
    ),
]
OutsideByModel = Annotated[
    list[str] | None,
    typer.Option(
        "--outside",
        help="NAME=FILE: what a model says of out-of-distribution cases, as in raterwise evaluate. "
        "Of every model.",
    ),
]
FitSamples = Annotated[
    Path | None,
    _option(MODEL, "NPZ with the draws to fit on: samples or logits, (S, N, K); features."),
]
ApplySamples = Annotated[Path | None, _option(MODEL, "NPZ with the draws to calibrate.")]
FitMembers = Annotated[
    list[Path] | None,
    _option(MODEL, "Or one table per draw to fit on. May be repeated.", "--fit-member"),
]
ApplyMembers = Annotated[
    list[Path] | None,
    _option(MODEL, "Or one table per draw to calibrate. May be repeated.", "--apply-member"),
]
