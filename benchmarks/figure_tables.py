"""The tables of docs/coverage.md and docs/verdict.md from the rows that `every_figure.py` drew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import headlines
import interval_coverage
import null_rates
import real_subsamples
import small_sample_coverage
import verdict_errors

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of each design."""
LOW = 92.0
"""A coverage below this, the contract's, is bold."""
SCORES = small_sample_coverage.METRICS
OVER_CASES = small_sample_coverage.ERRORS
OVER_RATERS = small_sample_coverage.OF_RATERS


def tables(drawn: Mapping[str, Rows]) -> Iterator[str]:
    """Yield the lines of every table for which test sets were drawn."""
    makers = {
        "small": small, "real": real, "ordinary": ordinary, "nulls": nulls,
        "verdict": verdicts, "headlines": colours,
    }  # fmt: skip
    for part, make in makers.items():
        if part in drawn:
            yield from (f"## {part}", "", *make(drawn[part]), "")


def ends_of(rows: Sequence[Mapping[str, Any]], metric: str) -> Any:
    """Return (test sets, 3): low, value and high minus the truth, where the metric has a value."""
    return np.array([row[metric] for row in rows if metric in row])


def entry(ends: Any) -> str:
    """Return coverage (truth below / above) and median width over that of an oracle."""
    if not len(ends):
        return "–"
    slack = small_sample_coverage.SLACK
    below, above = (100 * float(np.mean(m)) for m in (ends[:, 0] > slack, ends[:, 2] < -slack))
    hit, oracle = 100 - below - above, 3.92 * float(np.std(ends[:, 1]))
    width = f" {np.median(ends[:, 2] - ends[:, 0]) / oracle:.2f}" if oracle > 0 else ""
    shown = f"**{hit:.0f}**" if round(hit) < LOW else f"{hit:.0f}"
    return f"{shown} ({below:.0f}/{above:.0f}){width}"


def by_design(drawn: Rows, names: Sequence[str], metrics: Sequence[str]) -> Iterator[str]:
    """Yield a table: designs down, metrics across."""
    yield f"| design | sets | {' | '.join(metrics)} |"
    yield "| --- | ---: |" + " --- |" * len(metrics)
    for name in names:
        rows = drawn.get(name, ())
        if not any(metric in row for row in rows for metric in metrics):
            continue
        cells = [entry(ends_of(rows, metric)) for metric in metrics]
        yield f"| {name} | {len(rows)} | {' | '.join(cells)} |"


def small(drawn: Rows) -> Iterator[str]:
    """Yield the tables of small, saturated, unequal and few."""
    designs = small_sample_coverage.DESIGNS
    yield from by_design(drawn, [d.name for d in designs], SCORES)
    yield ""
    yield from by_design(drawn, [d.name for d in designs if d.unit == "cases"], OVER_CASES)
    yield ""
    yield from by_design(drawn, [d.name for d in designs if d.unit != "cases"], OVER_RATERS)


def real(drawn: Rows) -> Iterator[str]:
    """Yield the tables of samples of real test sets."""
    names = [design.name for design in real_subsamples.DESIGNS]
    yield from by_design(drawn, names, SCORES + real_subsamples.OF_SEVERAL)
    yield ""
    yield from by_design(drawn, names, OVER_CASES)


def ordinary(drawn: Rows) -> Iterator[str]:
    """Yield the summary by metric, and every design."""
    metrics = interval_coverage.METRICS + interval_coverage.OF_SEVERAL_RATERS
    records = {
        name: {
            "metrics": {
                metric: interval_coverage.counted(ends)
                for metric in metrics
                if len(ends := ends_of(rows, metric))
            }
        }
        for name, rows in drawn.items()
    }
    sets = sorted(len(rows) for rows in drawn.values())
    yield f"{len(sets)} designs, {sets[0]} to {sets[-1]} test sets each"
    yield ""
    yield from interval_coverage.summary(metrics, records)
    yield ""
    yield from interval_coverage.full(metrics, records)


def nulls(drawn: Rows) -> Iterator[str]:
    """Yield how often nothing is called something, in %."""
    yield "| design | sets | what | times | of | % |\n| --- | ---: | --- | ---: | ---: | ---: |"
    for name in null_rates.DESIGNS:
        rows = drawn.get(name, ())
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(row)
        for what, count in counts.items():
            if what.endswith(": of"):
                continue
            of = counts.get(f"{what}: of") or counts.get(f"{what.split(':')[0]}: of") or len(rows)
            part = f"{100 * count / of:.1f}"
            yield f"| {name} | {len(rows)} | {what} | {count} | {of} | {part} |"


def verdicts(drawn: Rows) -> Iterator[str]:
    """Yield how often the verdict is "miscalibrated", and the mean over calibrated designs."""
    asked = list(dict.fromkeys(verdict_errors.designs()))  # some stand in two lists
    records = {
        name: {
            "settings": {"replications": len(rows)},
            "called": sum(row["called"] for row in rows),
            "counts_matter": sum(row["counting"] for row in rows),
        }
        for name, rows in drawn.items()
    }
    yield from verdict_errors.table(asked, records)
    yield ""
    yield "| calibrated, world | designs | sets | red | p up to 0.1 |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    worlds: dict[str, list[tuple[int, int, int]]] = {}
    for design in asked:
        off = design.model != "calibrated" or (design.world, design.per) == (
            "hard-first",
            "annotation",
        )
        if design.name in drawn and not off:
            rows = drawn[design.name]
            told = tuple(sum(row[what] for row in rows) for what in ("called", "possibly"))
            for name in (design.world, f"{design.cases} cases", "all"):
                worlds.setdefault(name, []).append((len(rows), *told))
    for name, counts in worlds.items():
        sets, red, more = np.sum(counts, axis=0)
        rates = f"{100 * red / sets:.1f} | {100 * more / sets:.1f}"
        yield f"| {name} | {len(counts)} | {sets} | {rates} |"


def colours(drawn: Rows) -> Iterator[str]:
    """Yield the headlines of reports, in %."""
    what = (*headlines.TELLING, "any interval above 0")
    yield f"| design | sets | {' | '.join(what)} |"
    yield "| --- | ---: |" + " ---: |" * len(what)
    for design in headlines.DESIGNS:
        rows = drawn.get(design.name, ())
        if rows:
            parts = [100 * sum(row.get(name, 0) for row in rows) / len(rows) for name in what]
            cells = " | ".join(f"{part:.1f}" for part in parts)
            yield f"| {design.name} | {len(rows)} | {cells} |"
