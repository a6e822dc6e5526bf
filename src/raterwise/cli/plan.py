"""`raterwise plan`: how many cases and raters does the next study need?"""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from raterwise.catalog import find
from raterwise.cli import options
from raterwise.cli.findings import (
    asked_of_findings,
    facts_of_findings,
    of_each_finding,
    read_findings,
    refuse_finding_column,
)
from raterwise.cli.options import Asked, in_panel, with_options
from raterwise.cli.parsing import comma_list, numbers
from raterwise.cli.reading import heard_warnings, read_cases
from raterwise.cli.show import new_console, number, plain_table, print_table, print_warnings
from raterwise.cli.spelling import as_options
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import Files, announce, origin_of, write_json
from raterwise.errors import InvalidInputError
from raterwise.evaluation.request import Request
from raterwise.inference.settings import Progress, Settings
from raterwise.io.files import write_text_atomically
from raterwise.io.findings import Findings
from raterwise.planning import Design, StudyPlan
from raterwise.planning.pilot import plan_of
from raterwise.report.headlines import designs_in_words
from raterwise.report.pages import plan_page
from raterwise.report.words import cost, facts_in_words
from raterwise.results.exports import csv_text

EXAMPLES = """[bold]Examples[/bold]

[dim]# how wide will the interval of the ECE be?[/dim]
raterwise plan ece pilot.csv --ratings r.csv --cases 100,200 --raters 1,2,3
raterwise plan pilot.csv --metrics ece --ratings r.csv

[dim]# 600 readings to spend; a new case costs as much as four readings[/dim]
raterwise plan brier pilot.csv --ratings r.csv --cases 50,100,200 \\
    --raters 1,2,4,8 --budget 600 --case-cost 4

[dim]# findings that may occur together; the widest interval decides[/dim]
raterwise plan brier chest.csv --multilabel --cases 100,200 --raters 1,2,3"""

SCHEMA_VERSION = 1
DESIGNS = "Designs"


@with_options
def plan(
    asked: Asked,
    files: Files,
    tables: TableOptions,
    metric: Annotated[str, typer.Argument(help="The metric to plan for, such as brier or ece.")],
    predictions: Annotated[
        Path | None, typer.Argument(help="Predictions of the pilot study.", show_default=False)
    ] = None,
    metrics: Annotated[
        str | None, in_panel(DESIGNS, "The metric, if it is not given before the file: ece.")
    ] = None,
    ratings: options.RatingsFile = None,
    multilabel: options.Multilabel = False,
    finding_column: options.FindingColumn = None,
    cases: Annotated[
        str, in_panel(DESIGNS, "Numbers of cases to try: 100,200,500.")
    ] = "100,200,500,1000",
    raters: Annotated[
        str, in_panel(DESIGNS, "Raters per case to try: 1,2,3.", metavar="N,N,N")
    ] = "1,2,3,5",
    budget: Annotated[
        float | None,
        in_panel(DESIGNS, "How much you can spend; in readings, unless costs are given."),
    ] = None,
    case_cost: Annotated[
        float, in_panel(DESIGNS, "Cost of a new case, without its readings.", min=0)
    ] = 0.0,
    reading_cost: Annotated[float, in_panel(DESIGNS, "Cost of one reading.", min=0)] = 1.0,
    repeats: Annotated[int, in_panel(DESIGNS, "Number of simulated studies per design.")] = 20,
    resamples: options.Resamples = 200,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
) -> None:
    """Say how wide an interval each design would give, from a pilot study.

    A design is a number of cases and of raters per case; the pilot needs cases
    with two raters. --budget names the best affordable design, and says whether
    the next reading should go to a new case or to another rater. With
    --multilabel the finding with the widest interval decides.
    """
    metric, pilot_file = _metric_and_file(metric, predictions, metrics)
    title = find(metric).title
    files.check((pilot_file, ratings))
    drawn: dict[str, Any] = {"resamples": resamples, "level": level, "seed": seed}
    designs: dict[str, Any] = {
        "cases": numbers("--cases", cases, int, "100,200"),
        "raters": numbers("--raters", raters, int, "100,200"), "repeats": repeats,
    }  # fmt: skip
    asked.check([metric], **drawn)
    told = asked_of_findings([metric], asked.told) if multilabel else asked.told
    request = Request.of([metric], **told, settings=Settings(**drawn))
    each: dict[str, StudyPlan] = {}
    with files.progress() as report, heard_warnings() as heard:
        report("reading", 0.0)
        if multilabel:
            table, joined = read_findings(pilot_file, ratings, tables, finding_column)
            found, each = _of_findings(joined, request, report, **designs)
            data = facts_of_findings(joined)
            words = facts_in_words(data)
        else:
            refuse_finding_column(finding_column)
            pilot = read_cases(pilot_file, ratings, tables)
            known = pilot.predictions().without_absent_patients()
            found = plan_of(known, request, progress=report, **designs)
            table, words, data = pilot.table, pilot.in_words(), pilot.facts()
    heard += table.notes
    costs = {"case_cost": case_cost, "reading_cost": reading_cost}
    advice = None if budget is None else found.advice(budget, **costs)
    best = None if budget is None else found.best(budget, **costs)
    rows = [_row(design, best, costs) for design in found.designs]
    about = {"data": data, "options": {**designs, **drawn, **costs, "budget": budget, **asked.told}}
    about |= origin_of((pilot_file, ratings))
    _write(found, rows, advice, heard, each, about, files)
    if files.html is not None:
        text = plan_page(title, rows, level=level, advice=advice, basis=f"a pilot of {words}",
                         notes=map(as_options, heard), origin=about)  # fmt: skip
        write_text_atomically(files.html, text)
    if not files.quiet:
        console = new_console()
        _show(console, found, words, rows, advice, heard)
        if each:
            _show_findings(console, each)
        announce(console, files.paths)


def _metric_and_file(metric: str, file: Path | None, metrics: str | None) -> tuple[str, Path]:
    """Return the metric and the pilot of `plan METRIC FILE` or of `plan FILE --metrics METRIC`."""
    if metrics is None:
        if file is None:
            raise InvalidInputError(
                f"plan: needs a metric and the file of the pilot; got only {metric!r}"
            )
        return metric, file
    if file is not None:
        raise InvalidInputError(
            f"--metrics: must be left out if a metric is given before the file; got {metrics!r} "
            f"and {metric!r}"
        )
    names = comma_list(metrics)
    if len(names) != 1 or names[0] == "all":
        raise InvalidInputError(f"--metrics: a plan is for one metric; got {metrics!r}")
    return names[0], Path(metric)


def _of_findings(
    pilot: Findings, request: Request, report: Progress, **designs: Any
) -> tuple[StudyPlan, dict[str, StudyPlan]]:
    """Return the plan of each finding, and of every design that of the widest interval.

    A study has as many cases as the finding needs that needs the most.
    """
    each = of_each_finding(pilot, report, partial(plan_of, request=request, **designs))
    of_designs = list(zip(*(found.designs for found in each.values()), strict=True))
    which = [int(np.argmax([design.width for design in same])) for same in of_designs]
    widest = tuple(same[k] for same, k in zip(of_designs, which, strict=True))
    plans = list(each.values())
    by_formula = all(found.without for found in plans)
    without = tuple(plans[k].without[i] for i, k in enumerate(which)) if by_formula else ()
    first = plans[0]
    return StudyPlan(first.metric, first.level, widest, len(pilot.probs), without), each


def _row(design: Design, best: Design | None, costs: dict[str, float]) -> dict[str, Any]:
    spent = design.cases * costs["case_cost"] + design.readings * costs["reading_cost"]
    more = {"readings": design.readings, "cost": spent, "best": design == best}
    return {**_values(design), **more}


def _values(design: Design) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(design).items()
    }


def _write(
    found: StudyPlan,
    rows: list[dict[str, Any]],
    advice: str | None,
    heard: list[str],
    each: dict[str, StudyPlan],
    about: dict[str, Any],
    files: Files,
) -> None:
    if files.out is not None:
        content = {"schema_version": SCHEMA_VERSION, "metric": found.metric, "level": found.level}
        content |= {"metrics": {found.metric: rows}, "designs": rows, "advice": advice}
        content["warnings"] = heard
        findings = {title: [_values(d) for d in one.designs] for title, one in each.items()}
        write_json(files.out, {**content, **({"findings": findings} if findings else {}), **about})
    if files.csv_out is not None:
        text = csv_text({key: [row[key] for row in rows] for key in rows[0]})
        write_text_atomically(files.csv_out, text)


def _show(
    console: Console,
    found: StudyPlan,
    pilot: str,
    rows: list[dict[str, Any]],
    advice: str | None,
    heard: list[str],
) -> None:
    title = f"{found.metric}: expected {100 * found.level:g}% interval, from a pilot of "
    console.print(title + pilot, style="bold")
    simulated = any(row["method"] == "simulation" for row in rows)
    shown = ["width", "width_error", "bias", "bias_error"]
    if not simulated:  # a mean over labels has no bias
        shown = ["width", "width_error", "bias"] if any(r["width_error"] for r in rows) else []
        shown = shown or ["width", "bias"]
    headings = ["±" if key.endswith("error") else key for key in shown]
    table = plain_table("cases", "raters per case", "readings", "cost", *headings)
    table.add_column("by")
    for row in rows:
        cells = [f"{row[name]:,}" for name in ("cases", "raters", "readings")] + [cost(row["cost"])]
        cells += [number(row[key]) for key in shown]
        mark = "narrowest" if advice is not None and "cannot tell" in advice else "best"
        cells += [row["method"] + (f" ← {mark} within the budget" if row["best"] else "")]
        table.add_row(*cells)
    print_table(table, console)
    if simulated:
        more = "more --repeats and a larger pilot make it smaller"
        console.print(f"±: standard error of the simulation and of the pilot; {more}.")
    elif "width_error" in shown:
        console.print("±: standard error of the pilot; a larger one makes it smaller.")
    print_warnings(heard, console)
    console.print(designs_in_words(rows) if advice is None else advice, style="bold")


def _show_findings(console: Console, each: dict[str, StudyPlan]) -> None:
    """Print the width of every finding, a column each."""
    console.print("The widths above are those of the finding with the widest interval.")
    console.print()
    console.print("Width by finding", style="bold")
    table = plain_table("cases", "raters per case", *each)
    for same in zip(*(found.designs for found in each.values()), strict=True):
        cells = [str(same[0].cases), str(same[0].raters), *(number(d.width) for d in same)]
        table.add_row(*cells)
    print_table(table, console)
