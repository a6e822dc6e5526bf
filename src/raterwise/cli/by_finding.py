"""What the terminal shows of each finding, beside the means over all of them."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from raterwise.cli.show import (
    ROOM_FOR_MEANINGS,
    as_options,
    cases,
    interval,
    number,
    plain_table,
    print_table,
    titles_by,
)
from raterwise.report.words import headline
from raterwise.results import Results, left_out

__all__ = ["note_findings", "print_findings"]


def print_findings(results: Results, console: Console) -> None:
    """Print the headline metrics of every finding, a line each; without intervals if narrow."""
    wide, chosen = console.width >= ROOM_FOR_MEANINGS, headline(results)
    console.print()
    console.print(Text("By finding", style="bold"))
    table = plain_table("finding")
    table.add_column("cases", justify="right", no_wrap=True)
    for metric in chosen:
        table.add_column(metric, no_wrap=True)
    for title, found in results.findings.items():
        cells = [title, str(found.data["cases"])]
        for e in (found[metric] for metric in chosen):
            value = "undefined" if e.value is None else number(e.value, 3)
            cells.append(f"{value} {interval(e, 3)}".strip() if wide else value)
        table.add_row(*map(Text, cells))
    print_table(table, console)
    console.print()


def note_findings(results: Results, console: Console) -> None:
    """Print which cases each finding goes without, and which metrics are undefined in which."""
    each = results.findings.items()
    unrated = [(c, title) for title, r in each for c in r.data.get("dropped", {}).items()]
    for (reason, count), titles in titles_by(unrated):
        console.print(Text(f"left out: {left_out(reason, count)} of {titles}"))
    few = {(e.dropped, title): None for title, r in each for e in r.values() if e.dropped}
    for dropped, titles in titles_by(few):
        told = f"left out: {cases(dropped)} with too few raters for some metrics of {titles}"
        console.print(Text(told))
    for name, e in results.items():
        absent = {title: r[name].undefined for title, r in each if r[name].value is None}
        if absent:
            where = "every finding" if e.value is None else ", ".join(absent)
            reason = as_options(str(next(iter(absent.values()))))
            console.print(Text(f"undefined: {e.title} in {where}: {reason}", style="yellow"))
