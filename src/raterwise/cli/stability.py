"""`raterwise stability`: would fewer cases say the same, and do more raters help?"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

from raterwise.catalog import find
from raterwise.cli import model_options, options
from raterwise.cli.findings import (
    facts_of_findings,
    read_findings,
    refuse_finding_column,
    refuse_unread,
)
from raterwise.cli.members import Members
from raterwise.cli.options import OUTPUT, Asked, in_panel, with_options
from raterwise.cli.parsing import comma_list, numbers
from raterwise.cli.reading import numbers_of, read_cases
from raterwise.cli.show import new_console, number, plain_table, print_table
from raterwise.cli.spelling import as_options
from raterwise.cli.stability_curves import (
    EVERY,
    ONE,
    MetricStability,
    measure,
    measure_findings,
    named,
    parts_of_report,
)
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import Pages, announce, origin_of, write_json
from raterwise.errors import InvalidInputError
from raterwise.io.damaged import reading
from raterwise.io.files import write_bytes_atomically, write_text_atomically
from raterwise.io.scores import read_outside
from raterwise.report.pages import stability_page
from raterwise.report.words import facts_in_words
from raterwise.rules import positive_integer

EXAMPLES = """[bold]Examples[/bold]

[dim]# how does the ECE depend on the number of cases, with every rater and with one?[/dim]
raterwise stability predictions.csv --ratings ratings.csv --group-column patient

[dim]# findings that may occur together: each, and their mean[/dim]
raterwise stability chest.csv --multilabel --group-column patient --metrics ece,brier

[dim]# three metrics; a file for raterwise report --stability, and a figure for a paper[/dim]
raterwise stability predictions.csv --ratings ratings.csv --metrics ece,robust_ece,brier \\
    --out stability.json --figure stability.pdf

[dim]# a page to open in a browser[/dim]
raterwise stability predictions.csv --ratings ratings.csv --html stability.html"""

SCHEMA_VERSION = 1
FIGURES = (".pdf", ".png", ".svg")

STUDY = "Study"
Metrics = Annotated[str, in_panel(STUDY, "A list: ece,robust_ece.")]
Fractions = Annotated[str, in_panel(STUDY, "Sizes of the subsets, as fractions of the cases.")]
Repeats = Annotated[int, in_panel(STUDY, "Number of subsets of each size.")]
Figure = Annotated[
    Path | None, in_panel(OUTPUT, "Draw the curves into this .svg, .pdf or .png file.")
]


@with_options
def stability(
    asked: Asked,
    files: Pages,
    tables: TableOptions,
    predictions: model_options.OptionalPredictionsFile = None,
    ratings: options.RatingsFile = None,
    samples: model_options.SamplesFile = None,
    member: model_options.MemberFiles = None,
    confidence_column: model_options.ConfidenceColumn = None,
    outside: model_options.OutsideFile = None,
    multilabel: options.Multilabel = False,
    finding_column: options.FindingColumn = None,
    metrics: Metrics = "ece,robust_ece",
    fractions: Fractions = "0.01,0.05,0.1,0.25,0.5,1",
    repeats: Repeats = 100,
    seed: options.Seed = 0,
    on_single: options.OnSingle = "error",
    figure: Figure = None,
) -> None:
    """Say how steady metrics are when the test set shrinks.

    Each metric is computed on random subsets of the cases (of the patients,
    with --group-column). If cases have several raters, it is also computed with
    one random label per case, which is what most test sets have.
    """
    members = Members.of(samples, member)
    predictions = members.base(predictions)
    inputs = (predictions, ratings, outside, *members.paths)
    files.check(inputs, figure)
    if figure is not None and figure.suffix.lower() not in FIGURES:
        raise InvalidInputError(f"--figure: must end in {', '.join(FIGURES)}; got {figure.name}")
    names = [name.strip() for name in comma_list(metrics)]
    how: dict[str, Any] = {
        "fractions": numbers("--fractions", fractions, float, "0.1,0.5,1"), "repeats": repeats,
        "seed": seed, "on_single": on_single, "asked": asked.told,
    }  # fmt: skip
    asked.check(names, seed=seed)
    positive_integer("repeats", repeats)
    if not all(0 < part <= 1 for part in how["fractions"]):
        raise InvalidInputError(f"--fractions: must be in (0, 1]; got {fractions}")
    each: dict[str, list[MetricStability]] = {}
    with files.progress() as report:
        report("reading", 0.0)
        if multilabel:
            told = {"member": members.given, "outside": outside, "confidence": confidence_column}
            refuse_unread(told, "findings")
            table, joined = read_findings(predictions, ratings, tables, finding_column)
            found, each, notes = measure_findings(joined, names, progress=report, **how)
            data = facts_of_findings(joined)
        else:
            refuse_finding_column(finding_column)
            cases = read_cases(predictions, ratings, tables, members=members)
            ranked = numbers_of(predictions, confidence_column, tables)
            elsewhere = read_outside(outside, confidence_column, tables.told)
            rated = cases.predictions(ranked, elsewhere)
            found, notes = measure(rated, names, progress=report, **how)
            table, data = cases.table, cases.facts()
    read, left = [*table.notes, *members.notes(predictions)], [f"left out: {n}" for n in notes]
    origin = origin_of(inputs) if files.out or files.html else {}
    if files.out is not None:
        shown = {"metrics": metrics, "fractions": fractions, "repeats": repeats, "seed": seed}
        shown |= {**asked.told, "on_single": on_single}
        write_json(files.out, {**_content(found, each, data, shown, [*notes, *read]), **origin})
    if files.html is not None:
        lines = [*left, *map(as_options, read)]
        _write_page(files.html, found, data, lines, origin, findings=multilabel)
    if figure is not None:
        draw(found, figure)
    if not files.quiet:
        console = new_console()
        _show(console, found, each, data, [*left, *(f"warning: {as_options(n)}" for n in read)])
        announce(console, (files.out, figure, files.html))


def _write_page(
    html: Path,
    found: Sequence[MetricStability],
    data: dict[str, Any],
    notes: Sequence[str],
    origin: dict[str, Any],
    *,
    findings: bool,
) -> None:
    if not found:
        raise InvalidInputError("--html: shows the means over the findings; there are none")
    parts = parts_of_report(found)
    text = stability_page(
        parts["stability"], parts["variation"], _compared(found), basis=facts_in_words(data),
        notes=notes, findings=findings, origin=origin,
    )  # fmt: skip
    write_text_atomically(html, text)


def read_stability(path: Path) -> list[MetricStability]:
    """Read what `raterwise stability --out` wrote."""
    with reading(path, "what raterwise stability --out writes", SCHEMA_VERSION) as content:
        return [
            MetricStability.from_dict(metric, one)
            for metric, each in content["metrics"].items()
            for one in each
        ]


def draw(found: Sequence[MetricStability], path: Path) -> None:
    """Draw the curves into a file, in the format that its name ends in."""
    if not found:
        raise InvalidInputError("--figure: draws the means over the findings; there are none")
    from raterwise.plots import StabilityDisplay, journal_style

    with journal_style():
        display = StabilityDisplay(parts_of_report(found)["stability"]).plot()
        drawing = io.BytesIO()
        display.figure_.savefig(drawing, format=path.suffix.lower().removeprefix("."))
    write_bytes_atomically(path, drawing.getvalue())


def _content(
    found: Sequence[MetricStability],
    each: Mapping[str, Sequence[MetricStability]],
    data: dict[str, Any],
    asked: dict[str, Any],
    notes: Sequence[str],
) -> dict[str, Any]:
    def by_metric(measured: Sequence[MetricStability]) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {}
        for one in measured:
            rows.setdefault(one.metric, []).append(one.to_dict())
        return rows

    findings = {title: by_metric(measured) for title, measured in each.items()}
    return {
        "schema_version": SCHEMA_VERSION,
        "metrics": by_metric(found),
        **({"findings": findings} if findings else {}),
        "data": data,
        "options": asked,
        "warnings": list(notes),
    }


def _show(
    console: Console,
    found: Sequence[MetricStability],
    each: Mapping[str, Sequence[MetricStability]],
    data: dict[str, Any],
    notes: Sequence[str],
) -> None:
    console.print(facts_in_words(data), style="bold")
    table = plain_table("metric", "all cases", "total variation", "±")
    for name, one in named(found).items():
        cells = (one.curve.full, one.variation.mean, one.variation.std)
        table.add_row(name, *map(number, cells))
    if found:
        print_table(table, console)
    console.print("total variation: how far a metric moves as cases are taken away")
    if each:
        if found:
            console.print("These are means over the findings, on the same cases.")
        _show_findings(console, each)
    console.print()
    if found:
        _show_curves(console, found)
    for note in notes:
        console.print(note, style="yellow")
    for told in _compared(found):
        console.print(told)


def _show_findings(console: Console, each: Mapping[str, Sequence[MetricStability]]) -> None:
    """Print the total variation of every metric of each finding, a line each."""
    console.print()
    console.print("Total variation by finding", style="bold")
    names = dict.fromkeys((one.metric, one.raters) for found in each.values() for one in found)
    table = plain_table("finding")
    for metric, raters in names:
        table.add_column(f"{metric}, {raters}", justify="right")
    for title, found in each.items():
        made = {(one.metric, one.raters): one.variation for one in found}
        cells = [
            f"{number(made[name].mean)} ± {number(made[name].std)}" if name in made else ""
            for name in names
        ]
        table.add_row(title, *cells)
    print_table(table, console)


def _show_curves(console: Console, found: Sequence[MetricStability]) -> None:
    first = found[0].curve
    table = plain_table(first.unit)
    for one in found:
        table.add_column(f"{one.metric}, {one.raters}", justify="right")
    for i, size in enumerate(first.sizes):
        # What all cases differ by, in another order, is the last digit of their sums.
        values = [(one.curve.mean[i], round(float(one.curve.std[i]), 12)) for one in found]
        table.add_row(str(size), *(f"{number(mean)} ± {number(std)}" for mean, std in values))
    print_table(table, console)


def _compared(found: Sequence[MetricStability]) -> list[str]:
    """Say of each metric how much steadier it is with every rater's labels than with one's.

    Not where the difference is within two standard errors of the simulation.
    """
    moves = {(one.metric, one.raters): one.variation for one in found}
    repeats = found[0].curve.values.shape[1] if found else 0
    told = []
    for metric in dict.fromkeys(one.metric for one in found):
        every, one = moves.get((metric, EVERY)), moves.get((metric, ONE))
        if every is None or one is None or not one.mean > 0:
            continue
        title, change = find(metric).title, every.mean / one.mean - 1
        if abs(every.mean - one.mean) <= 2 * math.hypot(every.std, one.std) / math.sqrt(repeats):
            told.append(
                f"{title}: {repeats} repeats cannot tell whether it is steadier with every "
                "rater's labels than with one rater's."
            )
            continue
        moved = f"{abs(change):.0%} {'steadier' if change < 0 else 'less steady'}"
        told.append(f"{title}: with every rater's labels {moved} than with one rater's.")
    return told
