"""What the terminal shows: tables of results and notes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raterwise.catalog import CATALOG
from raterwise.cli.spelling import as_options
from raterwise.compare import Comparison
from raterwise.report.verdicts import verdict
from raterwise.report.words import (
    counted_in_words,
    facts_in_words,
    hidden,
    level_of,
    subject_of,
    titles_by,
)
from raterwise.results import Estimate, Results, left_out

ROOM_FOR_MEANINGS = 120
"""Columns of a terminal from which the meanings fit beside the numbers; else they follow."""
MOST_MEANINGS = 8
"""Of more metrics than this the meanings would push the table out of sight."""
PIPED_WIDTH = 160


def new_console() -> Console:
    """Return a console that prints text as it stands: a name in brackets is no markup.

    What goes to a file or a pipe is not folded, unless COLUMNS says so.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = max(console.width, PIPED_WIDTH)
    return console


def number(value: float | None, digits: int = 4) -> str:
    """Return a value with as many decimals; what would round to 0 is told from 0 itself.

    >>> number(0.12345), number(0.0), number(0.00001), number(-0.00001), number(None)
    ('0.1235', '0.0000', '< 0.0001', '> -0.0001', '-')
    """
    if value is None:
        return "-"
    least = 10.0**-digits
    if value and abs(value) < 0.5 * least:
        return f"< {least:.{digits}f}" if value > 0 else f"> -{least:.{digits}f}"
    return f"{value:.{digits}f}"


def p_value(p: float | None) -> str:
    """Return a p-value with three decimals.

    >>> p_value(0.0213), p_value(0.00001), p_value(None)
    ('0.021', '< 0.001', '-')
    """
    return "< 0.001" if p is not None and p < 0.001 else number(p, 3)


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(0.12345), signed(-0.12345), signed(0.00001), signed(0.0)
    ('+0.1235', '-0.1235', '< +0.0001', '0.0000')
    """
    text = number(value)
    if not value > 0:
        return text
    return f"< +{text[2:]}" if text.startswith("<") else f"+{text}"


def interval(estimate: Estimate, digits: int = 4) -> str:
    """Return the interval in brackets, or nothing where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"[{number(estimate.low, digits)}, {number(estimate.high, digits)}]"


def print_results(results: Results, console: Console | None = None) -> None:
    """Print every metric under its heading, then what they mean, then the notes."""
    console = console or new_console()
    wide = console.width >= ROOM_FOR_MEANINGS
    corrected = any(e.debiased not in (None, e.value) for e in results.values())
    console.print(facts_in_words(results.data), style="bold")
    print_verdict(results, console)
    print_table(_results_table(results, meanings=wide), console)
    if not wide and len(results) <= MOST_MEANINGS:
        for e in results.values():
            console.print(Text.assemble((f"{e.title}: ", "bold"), e.meaning))
        console.print()
    elif not wide:
        console.print(
            "The report (--html) says what each metric means, and so does a terminal of "
            f"{ROOM_FOR_MEANINGS} columns."
        )
    if corrected:
        console.print(
            "corrected: the error without what chance adds to it. Chance pushes a calibration "
            f"error up.{hidden(results.values())}"
        )
    if results.findings:
        from raterwise.cli.show_findings import print_findings

        print_findings(results, console)
    _print_subgroups(results, console)
    print_notes(results, console)


def print_verdict(results: Results, console: Console) -> None:
    """Say whether the model is miscalibrated, or why that cannot be said."""
    judged = results.data.get("verdict")
    if judged is None:
        return None
    if results.findings and "findings" in judged:
        from raterwise.cli.show_findings import print_verdicts

        return print_verdicts(results, console)
    if judged["miscalibrated"] is None:
        if any(CATALOG[name].error for name in results if name in CATALOG):
            text = judged["sentence"]
            console.print(f"{text[:1].upper()}{text[1:]}.", style="bold")
        return
    found = verdict(results)
    console.print(Text.assemble((f"{found.headline}. ", "bold"), found.explanation))


OPTIONAL: Mapping[str, Callable[[Estimate], str]] = {
    "± std": lambda e: "" if e.std is None else number(e.std),
    "images": lambda e: "" if e.defined is None else str(e.defined),
    "corrected": lambda e: "" if e.debiased in (None, e.value) else number(e.debiased),
    "error at most": lambda e: "" if e.bound is None else f"{e.bound:.1e}",
}
"""Columns that are shown where some metric has something to say in them."""


def _results_table(results: Results, *, meanings: bool) -> Table:
    several = results.per_case or results.findings
    table = plain_table("metric", "mean" if several else "value")
    table.add_column(f"{level_of(results)} interval", no_wrap=True)
    extra = {name: cell for name, cell in OPTIONAL.items() if any(map(cell, results.values()))}
    for name in extra:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("better", no_wrap=True)
    if meanings:
        table.add_column("what it means")
    headings = list(dict.fromkeys(e.group for e in results.values()))
    heading = None
    for e in sorted(results.values(), key=lambda e: headings.index(e.group)):
        if e.group != heading:
            heading = e.group
            table.add_row()
            table.add_row(Text(heading, style="bold cyan"))
        row = ["undefined" if e.value is None else number(e.value), interval(e)]
        row += [cell(e) for cell in extra.values()]
        row += [e.direction if e.direction != "none" else ""]
        row += [e.meaning] if meanings else []
        table.add_row(Padding(Text(e.title), (0, 0, 0, 2)), *row)
    table.add_row()
    return table


def _print_subgroups(results: Results, console: Console) -> None:
    """Print, for each variable, every metric by level and what each level differs by."""
    for variable in dict.fromkeys(found.variable for found in results.subgroups):
        console.print()
        console.print(f"By {variable}", style="bold")
        print_table(_subgroup_table(results, variable), console)
    if results.subgroups:
        console.print()
        made = results.data.get("comparisons", 0)
        adjusted = (
            f" p is adjusted for all {made} comparisons of levels and metrics." if made else ""
        )
        console.print(
            f"difference: from the {subject_of(results.data)}s of all other levels.{adjusted} "
            "Calibration errors are corrected."
        )


def _subgroup_table(results: Results, variable: str) -> Table:
    chosen = [found for found in results.subgroups if found.variable == variable]
    level = f"{level_of(results)} interval"
    table = plain_table("level", f"{subject_of(results.data)}s", "value")
    table.add_column(level, no_wrap=True)
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column(level, no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    for metric, first in chosen[0].estimates.items():
        table.add_row(Text(first.title, style="bold cyan"))
        for found in chosen:
            e, d = found.estimates[metric], found.differences.get(metric)
            value = "undefined" if e.value is None else number(e.less_chance)
            row = [f"  {found.level}", str(found.cases), value, interval(e)]
            if d is not None:
                row += [signed(d.difference)]
            if d is not None and d.low is not None and d.high is not None:
                row += [f"[{number(d.low)}, {number(d.high)}]"]
            p = None if d is None else d.adjusted_p_value
            row += [""] * (6 - len(row)) + ["" if p is None else p_value(p)]
            clear = p is not None and p <= 1 - results.options.get("level", 0.95)
            table.add_row(*row, style="bold" if clear else None)
    return table


def print_notes(results: Results, console: Console) -> None:
    """Print what was left out, what is undefined and why, and the warnings."""
    for reason, count in results.data.get("dropped", {}).items():
        console.print(f"left out: {left_out(reason, count)}")
    if results.findings:
        from raterwise.cli.show_findings import note_findings

        note_findings(results, console)
    else:
        for dropped, titles in titles_by((e.dropped, e.title) for e in results.values()):
            counted = counted_in_words(dropped, "case")
            counted = f"{dropped} voxels" if "voxels" in results.data else counted
            console.print(f"left out: {counted} with too few raters for {titles}")
        for reason, titles in titles_by((e.undefined, e.title) for e in results.values()):
            console.print(f"undefined: {titles}: {as_options(reason)}", style="yellow")
    print_warnings(results.warnings, console)


def print_warnings(warnings: Iterable[str], console: Console, of: str = "") -> None:
    """Print warnings, a line each; `of` is what they are about, "model: "."""
    for warning in warnings:
        console.print(f"warning: {of}{as_options(warning)}", style="yellow")


def comparison_table(columns: Mapping[str, Results], metrics: Iterable[str]) -> Table:
    """Return the same metrics of several results side by side."""
    table = plain_table("metric")
    for name in columns:
        table.add_column(name, no_wrap=True)
    table.add_column("better", no_wrap=True)
    for metric in metrics:
        estimates = [results[metric] for results in columns.values()]
        cells = [
            "undefined" if e.value is None else f"{number(e.value, 3)} {interval(e, 3)}"
            for e in estimates
        ]
        direction = estimates[0].direction
        cells = [estimates[0].title, *cells, direction if direction != "none" else ""]
        table.add_row(*cells)
    return table


def difference_table(comparison: Comparison, first: str, second: str) -> Table:
    """Return each metric of two models, and first minus second with the interval of that."""
    table = plain_table("metric", second, first, "difference")
    table.add_column(f"{level_of(comparison.models[first])} interval", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("better", no_wrap=True)
    made = {d.metric: d for d in comparison.differences if (d.first, d.second) == (first, second)}
    for name, estimate in comparison.models[first].items():
        values = [comparison.models[model][name].value for model in (second, first)]
        cells = ["undefined" if value is None else number(value) for value in values]
        if name in made:
            d = made[name]
            # What two equal models differ by is the last digit of their sums, which is nothing.
            gap, low, high = (round(value, 12) + 0.0 for value in (d.difference, d.low, d.high))
            cells += [signed(gap), f"[{number(low)}, {number(high)}]", p_value(d.p_value)]
        else:
            cells += ["", "", ""]
        better = estimate.direction if estimate.direction != "none" else ""
        table.add_row(estimate.title, *cells, better)
    return table


def plain_table(first: str, *numbers: str) -> Table:
    """Return a table without lines: a column of names, which may be broken, and some of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_table(table: Table, console: Console) -> None:
    """Print a table with every digit: names are broken in a narrow terminal, numbers never are."""
    for column in table.columns:
        if column.no_wrap:
            column.min_width = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
    everything = console.options.update(max_width=sys.maxsize)
    needed = Measurement.get(console, everything, table).minimum
    if needed > console.width:
        table.width = needed  # the terminal folds the lines, and nothing is lost
    console.print(table, crop=False)
