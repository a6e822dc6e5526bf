"""`raterwise demo`: real radiologists' ratings, and all that raterwise can say about them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from raterwise.cli.demo_parts import by_diameter, further_parts
from raterwise.cli.report import open_in_browser
from raterwise.cli.show import comparison_table, new_console, print_notes, print_table
from raterwise.cli.steadiness import one_rater_each
from raterwise.cli.writing import announce, check_folder, check_html, check_outputs
from raterwise.errors import InvalidInputError, MissingExtraError
from raterwise.inference.settings import within
from raterwise.progress_bar import ProgressBar
from raterwise.report.words import facts_in_words
from raterwise.results import Estimate, Results

if TYPE_CHECKING:
    from raterwise.datasets import LidcDemo
    from raterwise.labels import Labels

EXAMPLES = """[bold]Examples[/bold]

[dim]# shown here, with a report beside it[/dim]
raterwise demo

[dim]# the tables, the results and the report in a folder, to try commands on[/dim]
raterwise demo --out demo --open"""

SHOWN = (
    *("accuracy", "brier", "nll", "ece", "classwise_ece", "adaptive_ece", "robust_ece"),
    *("calibration_error", "epistemic_loss", "irreducible_loss"),
    *("disagreement_calibration_error", "auccc"),
)
"""Enough to see the point; the results file has every metric."""


WRITTEN = ("predictions.csv", "ratings.csv", "results.json", "report.html")
"""What goes into a folder."""
REPORT = Path("raterwise-demo.html")
"""Where the report goes if no folder is named."""


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the report, the tables and results.json into this folder.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Number of bootstrap resamples.")] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed, also of the one rater per case.")] = 0,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help=f"Write the report to this file. Default: {REPORT}, or report.html in --out.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing files in --out without asking.")
    ] = False,
) -> None:
    """Evaluate a small model on lung nodules that several radiologists rated (LIDC-IDRI).

    Once with every radiologist's label, and once with one random label per case, which is what
    most test sets have. Needs no files and no network.
    """
    from raterwise.datasets import load_lidc_malignancy
    from raterwise.evaluate import evaluate

    check_html(html)
    page = html or (REPORT if out is None else out / "report.html")
    if out is None or html is not None:
        check_outputs((page,))
    if out is not None:
        _ask_to_replace(check_folder(out), force=force)
    data = load_lidc_malignancy()
    with ProgressBar() as report:

        def results_of(
            labels: Labels, metrics: str | Sequence[str], begin: float, end: float
        ) -> Results:
            return evaluate(
                data.probs,
                labels,
                metrics=metrics,
                groups=data.patients,
                class_names=data.class_names,
                resamples=resamples,
                seed=seed,
                on_single="drop",
                progress=within(report, begin, end),
            )

        everybody = results_of(data.labels, "all", 0.0, 0.5)
        single = results_of(one_rater_each(data.labels, seed), SHOWN, 0.5, 0.6)
        levels = by_diameter(data, everybody, within(report, 0.6, 0.7))
        parts = further_parts(data, everybody, report, 0.7)
    # The files first: whoever reads what is printed may stop at any line.
    tables = () if out is None else _write_files(out, everybody)
    shown = replace(everybody, subgroups=levels)
    failed = _write_report(page, shown, {"single": single, **parts})
    console = new_console()
    _print_story(console, data, everybody, single)
    if tables:
        _print_command(console, tables, data.class_names, resamples, seed)
    console.print()
    if failed:
        console.print(Text(f"No report was written: {failed}", style="yellow"))
        return
    console.print(Text(f"Report: {page.resolve()}"), soft_wrap=True)
    if show:
        open_in_browser(page)


def _ask_to_replace(folder: Path, *, force: bool) -> None:
    """Ask before files are replaced; where nobody can answer, they stay."""
    there = [name for name in WRITTEN if (folder / name).exists()]
    if force or not there:
        return
    if sys.stdin.isatty() and typer.confirm(f"{folder} has {', '.join(there)}: replace?"):
        return
    raise InvalidInputError(
        f"{folder}: has {', '.join(there)} already; give another folder, or --force to replace"
    )


def _print_story(console: Console, data: LidcDemo, everybody: Results, single: Results) -> None:
    console.print(Text("How likely is this lung nodule malignant? LIDC-IDRI", style="bold"))
    console.print(Text(facts_in_words(everybody.data)))
    console.print()
    print_table(
        comparison_table({"every rater": everybody, "one rater, at random": single}, SHOWN), console
    )
    console.print()
    narrower = [
        width(everybody[name]) / width(single[name]) for name in SHOWN if width(single[name])
    ]
    if narrower:
        console.print(
            Text(
                f"On the same cases, every rater's labels make the intervals "
                f"{1 - float(np.median(narrower)):.0%} shorter (median of {len(narrower)} metrics)."
            )
        )
    only = [e.title for e in single.values() if e.value is None]
    console.print(Text(f"One rater per case cannot tell us: {', '.join(only)}."))
    print_notes(everybody, console)
    console.print()
    console.print(Text(f"Data: {data.citation}\nLicence: {data.licence}", style="dim"))


def width(estimate: Estimate) -> float:
    """Return how long the interval is, 0 where there is none."""
    if estimate.low is None or estimate.high is None:
        return 0.0
    return estimate.high - estimate.low


def _write_report(path: Path, results: Results, parts: dict[str, Any]) -> str:
    """Write the report; return why not, where it needs an extra that is not there."""
    try:
        results.to_html(path, title="Lung nodules: how likely malignant?", **parts)
    except MissingExtraError as error:
        return str(error)
    return ""


def _write_files(folder: Path, results: Results) -> tuple[Path, Path, Path]:
    """Write the tables and the results."""
    from raterwise.datasets import write_demo_tables

    predictions, ratings = write_demo_tables(folder)
    results.to_json(folder / "results.json")
    return predictions, ratings, folder / "results.json"


def _print_command(
    console: Console,
    files: tuple[Path, ...],
    class_names: tuple[str, ...],
    resamples: int,
    seed: int,
) -> None:
    """Say which files were written, and which command makes the same results of the tables."""
    predictions, ratings, results = files
    command = ["raterwise", "evaluate", str(predictions), "--ratings", str(ratings)]
    command += ["--class-names", ",".join(class_names)]
    command += ["--group-column", "patient", "--on-single", "drop"]
    command += ["--resamples", str(resamples)] if resamples != 1000 else []
    command += ["--seed", str(seed)] if seed else []
    command += ["--out", str(results)]
    console.print()
    announce(console, files)
    console.print(Text("To make the same results from the tables:"))
    console.print(Text(shlex.join(command)), soft_wrap=True)
