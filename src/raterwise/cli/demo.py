"""`raterwise demo`: real radiologists' ratings, and all that raterwise can say about them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from raterwise.beliefs import DirichletBelief
from raterwise.cli.report import open_in_browser, paired
from raterwise.cli.show import (
    comparison_table,
    new_console,
    print_notes,
    print_table,
    print_verdict,
)
from raterwise.cli.spelling import quoted
from raterwise.cli.stability_curves import measure, one_rater_each, parts_of_report
from raterwise.cli.writing import announce, check_folder, check_html, check_outputs
from raterwise.errors import InvalidInputError, MissingExtraError
from raterwise.evaluate import evaluate, predictions_of
from raterwise.inference.settings import Progress, within
from raterwise.labels import Labels
from raterwise.progress_bar import ProgressBar
from raterwise.report.words import facts_in_words
from raterwise.results import Estimate, Results, Subgroup
from raterwise.worklist import worklist

if TYPE_CHECKING:
    from raterwise.datasets import LidcDemo

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
CHANGED = (
    *("accuracy", "brier", "nll", "ece", "classwise_ece", "robust_ece", "calibration_error"),
    *("calibration_loss", "dispersion_loss", "disagreement_calibration_error", "auccc"),
)
"""What is shown before and after recalibration."""
STEADY = ("ece", "robust_ece")
REPEATS = 10
"""Subsets of each size: few, since somebody waits."""
LISTED = 25
READERS = (
    "In LIDC-IDRI a rater is a slot of the reading, not a person: slot 2 of one scan and of the "
    "next may be two radiologists. What is tested here is whether the slots are interchangeable."
)


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the report, the tables and results.json into this folder; to a name that "
            "ends in .json the results alone.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Number of bootstrap resamples.")] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed, also of the one rater per case.")] = 0,
    html: Annotated[
        Path | None,
        typer.Option(
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

    Once with every radiologist's label, and once with one random label per
    case, which is what most test sets have. Needs no files and no network.
    """
    from raterwise.datasets import load_lidc_malignancy

    check_html(html)
    alone = out if out is not None and out.suffix.lower() == ".json" and not out.is_dir() else None
    folder = out if alone is None else None
    page = html or (REPORT if folder is None else folder / "report.html")
    check_outputs((alone, page if folder is None or html is not None else None))
    if folder is not None:
        _ask_to_replace(check_folder(folder), force=force)
    data = load_lidc_malignancy()
    drawn = {"resamples": resamples, "seed": seed}
    with ProgressBar() as report:
        everybody = _evaluated(data, data.probs, data.labels, "all", within(report, 0, 0.5), drawn)
        one = one_rater_each(data.labels, seed)
        single = _evaluated(data, data.probs, one, SHOWN, within(report, 0.5, 0.6), drawn)
        levels = by_diameter(data, everybody, within(report, 0.6, 0.7))
        parts = further_parts(data, everybody, report, 0.7)
    # The files first: whoever reads what is printed may stop at any line.
    tables = () if folder is None else _write_files(folder, everybody)
    if alone is not None:
        everybody.to_json(alone)
    shown = replace(everybody, subgroups=levels)
    failed = _write_report(page, shown, {"single": single, **parts})
    console = new_console()
    _print_story(console, data, everybody, single)
    if tables:
        _print_command(console, tables, data.class_names, resamples, seed)
    announce(console, (alone,))
    console.print()
    if failed:
        console.print(f"No report was written: {failed}", style="yellow")
        return
    console.print(f"Report: {page.resolve()}", soft_wrap=True)
    if show:
        open_in_browser(page)


def _evaluated(
    data: LidcDemo,
    probs: Any,
    labels: Labels,
    metrics: str | Sequence[str],
    progress: Progress | None,
    drawn: Mapping[str, Any],
    **more: Any,
) -> Results:
    """Return results of the nodules; `drawn` has the resamples and the seed."""
    return evaluate(
        probs, labels, metrics, groups=data.patients, class_names=data.class_names,
        resamples=drawn["resamples"], seed=drawn["seed"], on_single="drop", progress=progress,
        **more,
    )  # fmt: skip


def further_parts(
    data: LidcDemo, results: Results, progress: Progress, begin: float
) -> dict[str, Any]:
    """Return the recalibrated model, the stability and the worklist, as a report takes them.

    `results` are those of the model as it is. `begin` is the part of the progress done before.
    """
    rest = within(progress, begin, 1)
    rest("recalibration", 0.0)
    probs, belief = recalibrated(data)
    part = within(rest, 0.15, 0.4)
    after = _evaluated(data, probs, data.labels, CHANGED, part, results.options)
    differences, _ = paired(after, results)
    cases = predictions_of(data.probs, data.labels, groups=data.patients)
    steady, seed = within(rest, 0.7, 1), results.options["seed"]
    found, _ = measure(cases, STEADY, repeats=REPEATS, seed=seed, progress=steady)
    now = belief.posterior(data.labels)
    ids = data.case_ids.tolist()
    return {
        "after": after,
        "differences": differences,
        **parts_of_report(found),
        "worklist": worklist(now, ids, top=LISTED, class_names=data.class_names),
        "notes": {"raters": READERS},
    }


def by_diameter(
    data: LidcDemo, results: Results, progress: Progress | None = None
) -> tuple[Subgroup, ...]:
    """Return a few metrics by the size of the nodule, the smallest first.

    The limits are those of the Fleischner Society's guidelines of 2017.
    """
    diameter = data.features[:, data.feature_names.index("diameter_mm")]
    small, middle, large = "below 6 mm", "6 to 8 mm", "above 8 mm"
    level = np.select([diameter < 6, diameter <= 8], [small, middle], large)
    metrics, by_level = ("accuracy", "brier", "ece"), {"diameter": level}
    found = _evaluated(
        data, data.probs, data.labels, metrics, progress, results.options, subgroups=by_level
    )
    return tuple(found.subgroup("diameter", name) for name in (small, middle, large))


def recalibrated(data: LidcDemo) -> tuple[NDArray[np.float64], DirichletBelief]:
    """Return temperature-scaled probabilities, and how sure of them to be, of every case.

    Each case is calibrated by what was fitted to other patients: those outside of its fold.
    """
    from raterwise.calibrators.alpha import AlphaCalibration
    from raterwise.calibrators.scaling import TemperatureScaling

    probs, concentration = np.empty_like(data.probs), np.empty(len(data))
    for fold in np.unique(data.folds):
        fit, apply = data.folds != fold, data.folds == fold
        labels = data.labels.take(fit)
        scaling = TemperatureScaling(input="probs").fit(data.probs[fit], labels)
        probs[apply] = scaling.predict_proba(data.probs[apply])
        known = scaling.predict_proba(data.probs[fit])
        alpha = AlphaCalibration().fit(None, labels, probs=known, groups=data.patients[fit])
        concentration[apply] = alpha.predict(None, probs=probs[apply]).concentration
    return probs, DirichletBelief(probs, concentration)


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
    console.print("How likely is this lung nodule malignant? LIDC-IDRI", style="bold")
    console.print(facts_in_words(everybody.data))
    print_verdict(everybody, console)
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
            f"On the same cases, every rater's labels make the intervals "
            f"{1 - float(np.median(narrower)):.0%} shorter (median of {len(narrower)} metrics)."
        )
    only = [e.title for e in single.values() if e.value is None]
    console.print(f"One rater per case cannot tell us: {', '.join(only)}.")
    print_notes(everybody, console)
    console.print()
    console.print(f"Data: {data.citation}\nLicence: {data.licence}", style="dim")


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
    console.print("To make the same results from the tables:")
    console.print(" ".join(map(quoted, command)), soft_wrap=True)
