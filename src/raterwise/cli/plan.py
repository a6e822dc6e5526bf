"""`raterwise plan`: how many cases and raters does the next study need?"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from raterwise.cli import options
from raterwise.cli.options import asked_of, integers, own_options
from raterwise.cli.reading import (
    Cases,
    TableOptions,
    heard_warnings,
    read_cases,
    with_table_options,
)
from raterwise.cli.show import ProgressBar, new_console, number, plain_table, print_table
from raterwise.cli.writing import announce, check_json, check_outputs, write_json
from raterwise.io.files import write_text_atomically

if TYPE_CHECKING:
    from raterwise.planning import Design, StudyPlan

__all__ = ["EXAMPLES", "plan"]

EXAMPLES = """[bold]Examples[/bold]

[dim]# how wide will the interval of the ECE be?[/dim]
raterwise plan ece pilot.csv --ratings r.csv --cases 100,200 --raters 1,2,3

[dim]# 600 readings to spend; a new case costs as much as four readings[/dim]
raterwise plan brier pilot.csv --ratings r.csv --cases 50,100,200 \\
    --raters 1,2,4,8 --budget 600 --case-cost 4"""

SCHEMA_VERSION = 1


@with_table_options
def plan(
    tables: TableOptions,
    metric: options.MetricName,
    predictions: options.PilotFile,
    ratings: options.RatingsFile = None,
    cases: options.DesignCases = "100,200,500,1000",
    raters: options.DesignRaters = "1,2,3,5",
    budget: options.Budget = None,
    case_cost: options.CaseCost = 0.0,
    reading_cost: options.ReadingCost = 1.0,
    repeats: options.Repeats = 20,
    bins: options.Bins = 15,
    question: options.QuestionAsked = None,
    per: options.Counted = None,
    option: options.MetricOptions = None,
    resamples: options.Resamples = 200,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    out: options.Out = None,
    csv_out: options.CsvOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how wide an interval each design would give, from a pilot study.

    A design is a number of cases and of raters per case; the pilot needs cases
    with two raters. With --budget the best design that it pays for is named,
    and whether the next reading should go to a new case or to another rater.
    """
    from raterwise.planning import plan as planned

    tables.refuse_weights("plan")
    check_json(out)
    check_outputs((out, csv_out), (predictions, ratings))
    with ProgressBar(shown=not quiet) as report, heard_warnings() as heard:
        report("reading", 0.0)
        pilot = read_cases(predictions, ratings, tables)
        labels = pilot.require_labels()
        found = planned(
            metric,
            pilot.of_rated(pilot.table.probs),
            labels,
            cases=integers("--cases", cases),
            raters=integers("--raters", raters),
            seed=seed,
            groups=pilot.of_rated(pilot.table.groups),
            level=level,
            **own_options(metric, asked_of(bins, question, per, option)),
            repeats=repeats,
            resamples=resamples,
            progress=report,
        )
    costs = {"case_cost": case_cost, "reading_cost": reading_cost}
    advice = None if budget is None else found.advice(budget, **costs)
    best = None if budget is None else found.best(budget, **costs)
    rows = [_row(design, best, costs) for design in found.designs]
    _write(found, rows, advice, heard, out, csv_out)
    if not quiet:
        console = new_console()
        _show(console, found, pilot, rows, advice, heard)
        announce(console, (out, csv_out))


def _row(design: Design, best: Design | None, costs: dict[str, float]) -> dict[str, Any]:
    values = {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(design).items()
    }
    cost = design.cases * costs["case_cost"] + design.readings * costs["reading_cost"]
    return {**values, "readings": design.readings, "cost": cost, "best": design == best}


def _write(
    found: StudyPlan,
    rows: list[dict[str, Any]],
    advice: str | None,
    heard: list[str],
    out: Path | None,
    csv_out: Path | None,
) -> None:
    if out is not None:
        content = {"schema_version": SCHEMA_VERSION, "metric": found.metric, "level": found.level}
        write_json(out, {**content, "designs": rows, "advice": advice, "warnings": heard})
    if csv_out is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text_atomically(csv_out, text.getvalue())


def _show(
    console: Console,
    found: StudyPlan,
    pilot: Cases,
    rows: list[dict[str, Any]],
    advice: str | None,
    heard: list[str],
) -> None:
    title = f"{found.metric}: expected {100 * found.level:g}% interval, from a pilot of "
    console.print(Text(title + pilot.in_words(), style="bold"))
    table = plain_table("cases")
    simulated = any(row["method"] == "simulation" for row in rows)
    shown = ("width", "width_error", "bias", "bias_error") if simulated else ("width", "bias")
    headings = ["±" if key.endswith("error") else key for key in shown]
    for heading in ("raters a case", "readings", "cost", *headings):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("by")
    for row in rows:
        cells = [str(row["cases"]), str(row["raters"]), str(row["readings"]), f"{row['cost']:g}"]
        cells += [number(row[key]) for key in shown]
        cells += [row["method"] + (" ← best within the budget" if row["best"] else "")]
        table.add_row(*map(Text, cells))
    print_table(table, console)
    if simulated:
        console.print(Text("±: standard error of the simulation; --repeats makes it smaller."))
    for warning in heard:
        console.print(Text(f"warning: {warning}", style="yellow"))
    if advice is not None:
        console.print(Text(advice, style="bold"))
