"""Results as tables for papers and notebooks: Markdown, LaTeX, HTML with interval pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.palette import SERIES
from raterwise.report.comparison_tables import (
    latex_table,
    latex_text,
    markdown_table,
    markdown_text,
)
from raterwise.report.markup import Html, el
from raterwise.report.words import basis, number, p_value
from raterwise.results import Estimate

WIDTH, HEIGHT, MARGIN = 140, 14, 5
"""Of the picture of an interval, in pixels."""

Row = tuple[Sequence[str], Estimate]
"""What names a row, and the estimate in it."""


def markdown_of(results: Any, part: str = "metrics") -> str:
    """Return a Markdown table of the metrics, or of the levels of every sub-group."""
    heads, rows = _rows(results, part)
    cells = [[*map(markdown_text, names), *_cells(e)] for names, e in rows]
    return markdown_table([*heads, "Value", "Interval"], cells)


def latex_of(results: Any, part: str = "metrics") -> str:
    """Return a LaTeX table of the metrics, or of the levels of every sub-group."""
    heads, rows = _rows(results, part)
    cells = [[*map(latex_text, names), *map(latex_text, _cells(e))] for names, e in rows]
    return latex_table(f"{'l' * len(heads)}rr", [*heads, "Value", "Interval"], cells)


def _rows(results: Any, part: str) -> tuple[list[str], list[Row]]:
    """Return what the first columns are called, and the rows."""
    if part == "subgroups":
        if not results.subgroups:
            raise InvalidInputError("part: must be one that these results have; no sub-groups do")
        found: list[Row] = [
            ((group.variable, group.level, e.title), e)
            for group in results.subgroups
            for e in group.estimates.values()
        ]
        return ["Variable", "Level", "Metric"], found
    if results.findings:
        parts = {"(mean)": results, **results.findings}
        every: list[Row] = [((title, e.title), e) for title, p in parts.items() for e in p.values()]
        return ["Finding", "Metric"], every
    return ["Metric"], [((e.title,), e) for e in results.values()]


def _cells(e: Estimate) -> list[str]:
    if e.value is None:
        return ["undefined", ""]
    ends = "" if e.low is None or e.high is None else f"{number(e.low)} to {number(e.high)}"
    return [number(e.value), ends]


def html_of(results: Any) -> Html:
    """Return the metrics as a table for a notebook, each with a picture of its interval."""
    heads, rows = _rows(results, "metrics")
    caption = f"{basis(results.data)}" if "cases" in results.data else ""
    notes = [el("li", note) for note in results.warnings]
    return el(
        "div",
        table_html(heads, rows, caption),
        el("details", el("summary", f"{len(notes)} notes"), el("ul", notes)) if notes else None,
    )


def differences_html(comparison: Any) -> Html:
    """Return every difference of a comparison, with a picture of its interval."""
    first = next(iter(comparison.models.values()))
    rows: list[Row] = []
    for d in comparison.differences:
        e = first[d.metric]
        p = "" if d.p_value is None else p_value(d.p_value)
        shown = Estimate(d.metric, d.difference, d.low, d.high, group=d.metric, meaning=e.meaning)
        rows.append(((e.title, f"{d.first} − {d.second}", p), shown))
    return el("div", table_html(("Metric", "Difference of", "p"), rows))


def table_html(heads: Sequence[str], rows: Sequence[Row], caption: str = "") -> Html:
    """Return rows of estimates as an HTML table; the pictures of a group share one scale."""
    scale = _scales([e for _, e in rows])
    body = []
    for names, e in rows:
        value, ends = _cells(e)
        low, high = scale(e)
        picture = interval_picture(e.value, e.low, e.high, low, high)
        cells = [el("td", cell) for cell in (value, ends)]
        body.append(
            el("tr", [el("th", name, scope="row", style="text-align:left") for name in names],
               cells, el("td", picture), title=e.meaning or None)
        )  # fmt: skip
    header = [el("th", name, scope="col") for name in (*heads, "Value", "Interval", "")]
    head = el("thead", el("tr", header))
    return el("table", el("caption", caption) if caption else None, head, el("tbody", body))


def _scales(estimates: Sequence[Estimate]) -> Callable[[Estimate], tuple[float, float]]:
    """Return the ends of the axis of an estimate: 0 … 1 where that holds all of its group."""
    spans: dict[str, tuple[float, float]] = {}
    for e in estimates:
        known = [x for x in (e.value, e.low, e.high) if x is not None]
        if known:
            low, high = spans.get(e.group, (0.0, 0.0))
            spans[e.group] = min(low, *known), max(high, *known)
    return lambda e: spans.get(e.group, (0.0, 1.0))


def interval_picture(
    value: float | None, low: float | None, high: float | None, least: float, most: float
) -> Html:
    """Return a line from `low` to `high` with a dot at `value`, on an axis from `least` to `most`.

    >>> "circle" in interval_picture(0.5, 0.2, 0.8, 0.0, 1.0)
    True
    """
    if value is None:
        return Html("")

    def x(at: float) -> str:
        share = (at - least) / (most - least) if most > least else 0.5
        return f"{MARGIN + share * (WIDTH - 2 * MARGIN):.1f}"

    middle, colour = HEIGHT / 2, SERIES[0]
    drawn = [el("line", x1=x(least), x2=x(most), y1=middle, y2=middle, stroke="#bbb")]
    if least < 0 < most:
        drawn.append(el("line", x1=x(0), x2=x(0), y1=1, y2=HEIGHT - 1, stroke="#888"))
    if low is not None and high is not None:
        drawn.append(
            el("line", x1=x(low), x2=x(high), y1=middle, y2=middle, stroke=colour, stroke_width=4)
        )
    drawn.append(el("circle", cx=x(value), cy=middle, r=3.5, fill=colour, stroke="white"))
    words = f"{number(value)}" + ("" if low is None else f", {number(low)} to {number(high)}")
    picture = el("svg", drawn, width=WIDTH, height=HEIGHT, role="img", aria_label=words)
    return Html(re.sub(r"<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', picture, count=1))
