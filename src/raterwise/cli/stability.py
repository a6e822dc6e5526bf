"""`raterwise stability`: would fewer cases say the same, and do more raters help?"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from raterwise.catalog import find
from raterwise.cli import options
from raterwise.cli.options import OUTPUT, OnProblem, asked_of, comma_list, own_options
from raterwise.cli.reading import Cases, TableOptions, read_cases, with_table_options
from raterwise.cli.show import (
    ProgressBar,
    facts_in_words,
    new_console,
    number,
    plain_table,
    print_table,
)
from raterwise.cli.writing import announce, check_json, check_outputs, write_json
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.io.files import write_bytes_atomically
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.request import Request
from raterwise.results import Results
from raterwise.stability import SubsampleCurve, TotalVariation, subsample_curve, total_variation
from raterwise.summaries.facts import Facts

if TYPE_CHECKING:
    from raterwise.inference.settings import Progress

__all__ = ["EXAMPLES", "Steadiness", "measure", "one_rater_each", "read_stability", "stability"]

EXAMPLES = """[bold]Examples[/bold]

[dim]# how does the ECE depend on the number of cases, with every rater and with one?[/dim]
raterwise stability predictions.csv --ratings ratings.csv --group-column patient

[dim]# three metrics; a file for raterwise report --stability, and a figure for a paper[/dim]
raterwise stability predictions.csv --ratings ratings.csv --metrics ece,robust_ece,brier \\
    --out stability.json --figure stability.pdf"""

SCHEMA_VERSION = 1
EVERY, ONE = "every rater", "one rater"
FIGURES = (".pdf", ".png", ".svg")
CURVES_SHARE = 0.3
"""How much of the work on a metric is its curve; the rest is its total variation."""

STUDY = "Study"
Metrics = Annotated[str, typer.Option(help="Names: ece,robust_ece.", rich_help_panel=STUDY)]
Fractions = Annotated[
    str, typer.Option(help="Which parts of the cases to draw.", rich_help_panel=STUDY)
]
Repeats = Annotated[int, typer.Option(help="Subsets of each size.", rich_help_panel=STUDY)]
Figure = Annotated[
    Path | None,
    typer.Option(help="Draw it into this file: .svg, .pdf or .png.", rich_help_panel=OUTPUT),
]


@dataclass(frozen=True, eq=False)
class Steadiness:
    """One metric on parts of the cases, with the labels of every rater or of one."""

    metric: str
    raters: str
    curve: SubsampleCurve
    variation: TotalVariation

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, None for NaN."""
        curve = self.curve
        return {
            "raters": self.raters,
            "unit": curve.unit,
            "fractions": list(curve.fractions),
            "sizes": list(curve.sizes),
            "values": [[_finite(v) for v in row] for row in curve.values],
            "mean": [_finite(v) for v in curve.mean],
            "std": [_finite(v) for v in curve.std],
            "full": _finite(curve.full),
            "total_variation": {key: _finite(v) for key, v in self.variation._asdict().items()},
        }

    @staticmethod
    def from_dict(metric: str, content: Mapping[str, Any]) -> Steadiness:
        """Return what `to_dict` wrote down."""
        values = np.array(content["values"], np.float64)
        fractions, sizes = tuple(content["fractions"]), tuple(content["sizes"])
        full = np.nan if content["full"] is None else float(content["full"])
        curve = SubsampleCurve(fractions, sizes, values, full, content["unit"])
        ends = content["total_variation"]
        mean, std = (np.nan if ends[key] is None else ends[key] for key in ("mean", "std"))
        return Steadiness(metric, content["raters"], curve, TotalVariation(mean, std))


@with_table_options
def stability(
    tables: TableOptions,
    predictions: options.PredictionsFile,
    ratings: options.RatingsFile = None,
    metrics: Metrics = "ece,robust_ece",
    fractions: Fractions = "0.01,0.05,0.1,0.25,0.5,1",
    repeats: Repeats = 100,
    seed: options.Seed = 0,
    on_single: options.OnSingle = OnProblem.error,
    bins: options.Bins = 15,
    question: options.QuestionAsked = None,
    per: options.Counted = None,
    option: options.MetricOptions = None,
    out: options.Out = None,
    figure: Figure = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how steady metrics are when the test set shrinks.

    Each metric is computed on random parts of the cases (of the patients, with
    --group-column). Where cases have several raters it is also computed with
    one label per case, drawn at random, which is what most test sets have.
    """
    tables.refuse_weights("stability")
    check_json(out)
    check_outputs((out, figure), (predictions, ratings))
    if figure is not None and figure.suffix.lower() not in FIGURES:
        raise InvalidInputError(f"--figure: must end in {', '.join(FIGURES)}; got {figure.name}")
    with ProgressBar(shown=not quiet) as report:
        report("reading", 0.0)
        cases = read_cases(predictions, ratings, tables)
        found, notes = measure(
            cases.of_rated(cases.table.probs),
            cases.require_labels(),
            [name.strip() for name in comma_list(metrics)],
            groups=cases.of_rated(cases.table.groups),
            fractions=numbers("--fractions", fractions),
            repeats=repeats,
            seed=seed,
            on_single=on_single.value,
            asked=asked_of(bins, question, per, option),
            progress=report,
        )
    data = _facts(cases)
    if out is not None:
        asked = {"metrics": metrics, "fractions": fractions, "repeats": repeats, "seed": seed}
        write_json(out, _content(found, data, asked, notes))
    if figure is not None:
        draw(found, figure)
    if not quiet:
        console = new_console()
        _show(console, found, data, notes)
        announce(console, (out, figure))


def measure(
    probs: Any,
    labels: Labels,
    metrics: Sequence[str],
    *,
    groups: Any = None,
    fractions: Sequence[float] = (0.01, 0.05, 0.1, 0.25, 0.5, 1),
    repeats: int = 100,
    seed: int = 0,
    on_single: str = "error",
    asked: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> tuple[list[Steadiness], list[str]]:
    """Return every metric with all labels and with one per case; and what could not be had.

    `asked` are `bins`, `question`, `per` and `options`, as in `evaluate`.
    """
    request = Request.of(list(metrics), **(asked or {}))
    if missing := [name for name in metrics if name not in request.asked]:
        raise InvalidInputError(f"--metrics: {', '.join(missing)} need a belief, not probabilities")
    report = progress or (lambda what, done: None)
    if not metrics:
        raise InvalidInputError("--metrics: must name at least one metric; got none")
    needed = {name: row.raters_needed(own) for name, (row, own) in request.asked.items()}
    left_out = {name: labels.require_raters(n, on_single) for name, n in needed.items()}
    notes = [
        f"{count} cases with too few raters for {find(name).title}"
        for name, count in left_out.items()
        if count
    ]
    tasks = [(metric, EVERY) for metric in metrics]
    if labels.num_raters.max() > 1:
        tasks = [(metric, raters) for metric in metrics for raters in (EVERY, ONE)]
        notes += [
            f"{find(m).title} with one rater: it needs {n}" for m, n in needed.items() if n > 1
        ]
        tasks = [task for task in tasks if task[1] == EVERY or needed[task[0]] == 1]
    single = one_rater_each(labels, seed)
    found = []
    for i, (metric, raters) in enumerate(tasks):
        rows = np.flatnonzero(labels.num_raters >= needed[metric])
        chosen = (labels if raters == EVERY else single).take(rows)
        patients = None if groups is None else np.asarray(groups)[rows]
        draws: dict[str, Any] = {"repeats": repeats, "seed": seed, "groups": patients}
        draws |= own_options(metric, asked or {})
        what = f"{find(metric).title}, {raters}"

        def curves(_: str, done: float, what: str = what, i: int = i) -> None:
            report(what, (i + CURVES_SHARE * done) / len(tasks))

        def variations(_: str, done: float, what: str = what, i: int = i) -> None:
            report(what, (i + CURVES_SHARE + (1 - CURVES_SHARE) * done) / len(tasks))

        given = metric, np.asarray(probs)[rows], chosen
        curve = subsample_curve(*given, fractions, progress=curves, **draws)
        variation = total_variation(*given, progress=variations, **draws)
        found.append(Steadiness(metric, raters, curve, variation))
    return found, notes


def one_rater_each(labels: Labels, seed: int) -> Labels:
    """Return one label per case, drawn at random from its raters: what most test sets have."""
    if labels.ratings is not None:
        case, label = labels.ratings.case, labels.ratings.label
    else:
        row, klass = np.nonzero(labels.counts)
        times = labels.counts[row, klass]
        case, label = np.repeat(row, times), np.repeat(klass, times)
    order = np.random.default_rng(seed).permutation(len(case))
    cases, first = np.unique(case[order], return_index=True)
    if len(cases) != len(labels):
        raise InvalidInputError(
            f"labels: every case needs a rating; {len(labels) - len(cases)} have none"
        )
    return Labels.from_classes(
        label[order][first], num_classes=labels.num_classes, class_names=labels.class_names
    )


def read_stability(path: Path) -> list[Steadiness]:
    """Read what `raterwise stability --out` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["schema_version"]
        if version != SCHEMA_VERSION:
            raise InvalidInputError(
                f"{path}: schema_version must be {SCHEMA_VERSION}; got {version!r}"
            )
        return [
            Steadiness.from_dict(metric, one)
            for metric, each in content["metrics"].items()
            for one in each
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, RaterwiseError):
            raise
        raise InvalidInputError(
            f"{path}: is not what raterwise stability --out writes ({error})"
        ) from error


def named(found: Sequence[Steadiness]) -> dict[str, Steadiness]:
    """Return each by the name to show: its raters, too, where the same metric comes twice."""
    several = len({one.raters for one in found}) > 1
    titles = [find(one.metric).title for one in found]
    names = [
        f"{title}, {one.raters}" if several else title
        for title, one in zip(titles, found, strict=True)
    ]
    return dict(zip(names, found, strict=True))


def draw(found: Sequence[Steadiness], path: Path) -> None:
    """Draw the curves into a file, in the format that its name ends in."""
    from raterwise.plots import StabilityDisplay, journal_style

    with journal_style():
        display = StabilityDisplay({name: one.curve for name, one in named(found).items()}).plot()
        drawing = io.BytesIO()
        display.figure_.savefig(drawing, format=path.suffix.lower().removeprefix("."))
    write_bytes_atomically(path, drawing.getvalue())


def numbers(name: str, text: str) -> list[float]:
    """Return the numbers of 0.1,0.5,1; `name` is the option that they are of."""
    try:
        return [float(part) for part in comma_list(text)]
    except ValueError:
        raise InvalidInputError(
            f"{name}: must be numbers with commas between them, such as 0.1,0.5,1; got {text!r}"
        ) from None


def _facts(cases: Cases) -> dict[str, Any]:
    table = cases.table
    known = Predictions.of(
        cases.of_rated(table.probs),
        cases.require_labels(),
        groups=cases.of_rated(table.groups),
        class_names=table.class_names,
    )
    return {**Facts.of(known).as_data(), "dropped": cases.dropped}


def _content(
    found: Sequence[Steadiness],
    data: dict[str, Any],
    asked: dict[str, Any],
    notes: Sequence[str],
) -> dict[str, Any]:
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        by_metric.setdefault(one.metric, []).append(one.to_dict())
    return {
        "schema_version": SCHEMA_VERSION,
        "metrics": by_metric,
        "data": data,
        "options": asked,
        "warnings": list(notes),
        "versions": Results({}).to_dict()["versions"],
    }


def _show(
    console: Console, found: Sequence[Steadiness], data: dict[str, Any], notes: Sequence[str]
) -> None:
    console.print(Text(facts_in_words(data), style="bold"))
    table = plain_table("metric")
    for heading in ("all cases", "total variation", "±"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, one in named(found).items():
        cells = (one.curve.full, one.variation.mean, one.variation.std)
        table.add_row(Text(name), *(Text(number(value)) for value in cells))
    print_table(table, console)
    console.print(Text("total variation: how much a metric moves as the cases get fewer (MR eq 6)"))
    console.print()
    first = found[0].curve
    table = plain_table(first.unit)
    for one in found:
        table.add_column(f"{one.metric}, {one.raters}", justify="right")
    for i, size in enumerate(first.sizes):
        # What all cases differ by, in another order, is the last digit of their sums.
        values = [(one.curve.mean[i], round(float(one.curve.std[i]), 12)) for one in found]
        row = [str(size), *(f"{number(mean)} ± {number(std)}" for mean, std in values)]
        table.add_row(*map(Text, row))
    print_table(table, console)
    for note in notes:
        console.print(Text(f"left out: {note}", style="yellow"))
    for metric in dict.fromkeys(one.metric for one in found):
        told = _compared([one for one in found if one.metric == metric])
        if told:
            console.print(Text(told))


def _compared(found: Sequence[Steadiness]) -> str:
    """Say how much steadier a metric is with every rater's labels than with one's."""
    by_raters = {one.raters: one for one in found}
    if set(by_raters) != {EVERY, ONE} or not by_raters[ONE].variation.mean > 0:
        return ""
    change = by_raters[EVERY].variation.mean / by_raters[ONE].variation.mean - 1
    word = "steadier" if change < 0 else "less steady"
    title = find(found[0].metric).title
    return f"{title}: with every rater's labels {abs(change):.0%} {word} than with one rater's."


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
