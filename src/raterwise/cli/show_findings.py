"""What the terminal shows of each finding, beside the means over all of them."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from raterwise.cli.show import (
    ROOM_FOR_MEANINGS,
    interval,
    number,
    plain_table,
    print_table,
    print_warnings,
)
from raterwise.cli.spelling import as_options
from raterwise.compare import Comparison, Difference
from raterwise.inference.differences import holm, resamples_needed
from raterwise.report.findings import (
    JUDGED_ALONE,
    in_a_list,
    verdict_on_findings,
    verdicts_by_finding,
)
from raterwise.report.key_figures import names_of_differences, names_of_figures
from raterwise.report.words import counted_in_words, titles_by
from raterwise.results import Results, left_out


def print_verdicts(results: Results, console: Console) -> None:
    """Say of how many findings the report says what, and of which ones that is not good."""
    found = verdict_on_findings(results)
    console.print(Text.assemble((f"{found.headline}.", "bold"), f" {found.explanation}".rstrip()))
    if len(results.findings) == 1:
        return
    for title, each in in_a_list(verdicts_by_finding(results)).items():
        if each.tone != "good":
            told = Text.assemble((f"  {title}: {each.headline}. ", "bold"), each.explanation)
            console.print(told)
    console.print(JUDGED_ALONE)


def print_findings(results: Results, console: Console) -> None:
    """Print the key figures of every finding, a line each; without intervals if narrow."""
    wide, chosen = console.width >= ROOM_FOR_MEANINGS, names_of_figures(results)
    console.print()
    console.print("By finding", style="bold")
    table = plain_table("finding", "cases")
    for metric in chosen:
        table.add_column(metric, no_wrap=True)
    for title, found in results.findings.items():
        cells = [title, str(found.data["cases"])]
        for e in (found[metric] for metric in chosen):
            value = "undefined" if e.value is None else number(e.value, 3)
            cells.append(f"{value} {interval(e, 3)}".strip() if wide else value)
        table.add_row(*cells)
    print_table(table, console)


def note_findings(results: Results, console: Console) -> None:
    """Print which cases each finding goes without, and which metrics are undefined in which."""
    each = results.findings.items()
    unrated = [(c, title) for title, r in each for c in r.data.get("dropped", {}).items()]
    for (reason, count), titles in titles_by(unrated):
        console.print(f"left out: {left_out(reason, count)} of {titles}")
    few = {(e.dropped, title): None for title, r in each for e in r.values() if e.dropped}
    for dropped, titles in titles_by(few):
        counted = counted_in_words(dropped, "case")
        console.print(f"left out: {counted} with too few raters for some metrics of {titles}")
    for name, e in results.items():
        absent = {title: r[name].undefined for title, r in each if r[name].value is None}
        if absent:
            where = "every finding" if len(absent) == len(results.findings) else ", ".join(absent)
            rest = "" if e.value is None else " (left out of the mean)"
            reason = as_options(str(next(iter(absent.values()))))
            console.print(f"undefined: {e.title} in {where}{rest}: {reason}", style="yellow")


def print_differences(found: Mapping[str, Comparison], means: Comparison, console: Console) -> None:
    """Print the differences of every finding in the key figures, a line for each pair."""
    first, chosen = next(iter(means.models.values())), names_of_differences(means)
    chance, resamples = 1 - float(first.options["level"]), int(first.options["resamples"])
    marked = _clear(found, chance)
    pairs = dict.fromkeys((d.first, d.second) for d in means.differences)
    console.print()
    console.print("Differences by finding", style="bold")
    table = plain_table("finding")
    for heading in (["models"] if len(pairs) > 1 else []) + chosen:
        table.add_column(heading, no_wrap=True)
    for title, comparison in found.items():
        made = {(d.first, d.second, d.metric): d for d in comparison.differences}
        for pair in pairs:
            cells = [title, *([" - ".join(pair)] if len(pairs) > 1 else [])]
            for metric in chosen:
                d = made.get((*pair, metric))
                mark = "*" if (title, *pair, metric) in marked else ""
                cells.append("undefined" if d is None else f"{_shown(d)}{mark}")
            table.add_row(*cells)
    print_table(table, console)
    models = " minus ".join(next(iter(pairs))) if len(pairs) == 1 else "first minus second model"
    console.print(
        f"{models}, errors corrected. *: more than chance explains, adjusted for the number of "
        "findings and pairs of models (Holm)."
    )
    tests, errors = len(found) * len(pairs), any(d.debiased is not None for d in means.differences)
    enough = resamples_needed(tests, float(first.options["level"]))
    if errors and resamples < enough:
        told = f"{resamples:,} resamples are too few for a * at an error; {enough:,} are enough"
        print_warnings([told], console)


def _shown(d: Difference) -> str:
    gap = d.difference if d.debiased is None else d.debiased
    gap, low, high = (round(value, 3) + 0.0 for value in (gap, d.low, d.high))
    return f"{gap:.3f} [{low:.3f}, {high:.3f}]"


def _clear(found: Mapping[str, Comparison], most: float) -> set[tuple[str, str, str, str]]:
    """Return the finding, models and metric of differences that are more than chance explains."""
    by_metric: dict[str, dict[tuple[str, str, str, str], float]] = {}
    for title, comparison in found.items():
        for d in comparison.differences:
            place = (title, d.first, d.second, d.metric)
            by_metric.setdefault(d.metric, {})[place] = d.p_value
    return {
        place
        for p_values in by_metric.values()
        for place, p in zip(p_values, holm(list(p_values.values())), strict=True)
        if p <= round(most, 10)
    }
