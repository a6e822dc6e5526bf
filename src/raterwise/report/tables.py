"""Results and comparisons as tables: CSV for programs, LaTeX and Markdown for papers, HTML for
notebooks, with pictures of the intervals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.palette import SERIES
from raterwise.report.findings import verdict_on_findings
from raterwise.report.markup import Html, el
from raterwise.report.verdicts import verdict
from raterwise.report.words import basis, counted_in_words, number, p_value
from raterwise.results import Estimate
from raterwise.results.exports import csv_text

DIFFERENCE_COLUMNS = (
    *("metric", "first", "second", "difference", "debiased", "low", "high"),
    *("p_value", "adjusted_p_value"),
)
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{mark: f"\\{mark}" for mark in "&%$#_"},
}
WIDTH, HEIGHT, MARGIN = 140, 14, 5
"""Of the picture of an interval, in pixels."""

Row = tuple[Sequence[str], Estimate]
"""What names a row, and the estimate in it."""


def as_csv(comparison: Any, findings: Mapping[str, Any] | None = None) -> str:
    """Return every difference in full precision, one line each.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    findings : mapping of str to Comparison, optional
        The estimates of each finding; they follow the means, which have no finding.

    Returns
    -------
    str
        CSV with a header.

    See Also
    --------
    report.as_latex, report.as_markdown : tables for people.
    compare : makes the comparison.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> as_csv(rw.compare(models, [1, 0] * 20, "brier", resamples=50)).splitlines()[1]
    'brier,sharp,blunt,-0.135...'
    """
    columns = difference_columns({"": comparison, **(findings or {})})
    if not findings:
        columns.pop("finding")
    return csv_text(columns)


def difference_columns(parts: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the columns of every difference of some comparisons, by finding."""
    rows = [(title, d) for title, part in parts.items() for d in part.differences]
    columns = {name: [getattr(d, name) for _, d in rows] for name in DIFFERENCE_COLUMNS}
    return {"finding": [title for title, _ in rows], **columns}


def as_markdown(comparison: Any) -> str:
    """Return the metrics of every model as a Markdown table, the best of each row in bold.

    Those that are equal to as many digits as are shown are all the best.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.

    Returns
    -------
    str
        A row for each metric, a column for each model.

    See Also
    --------
    report.as_latex, report.as_csv : other formats.
    compare : makes the comparison.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> print(as_markdown(rw.compare(models, [1, 0] * 20, "brier", resamples=50)))
    | Metric | sharp | blunt |
    | --- | --- | --- |
    | Brier score | **0.025** [...] | 0.160 [...] |
    """
    safe = markdown_text
    header, rows = _cells(comparison, safe, lambda text: f"**{text}**", "{value} [{low}, {high}]")
    return markdown_table(header, rows)


def as_latex(comparison: Any) -> str:
    r"""Return the metrics of every model as a LaTeX table for the booktabs package.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.

    Returns
    -------
    str
        A tabular: a row for each metric, a column for each model, the best in bold.

    See Also
    --------
    report.as_markdown, report.as_csv : other formats.
    compare : makes the comparison.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> as_latex(rw.compare(models, [1, 0] * 20, "brier", resamples=50)).splitlines()[0]
    '\\begin{tabular}{lcc}'
    """
    safe = latex_text
    shown = "{value} {{\\small [{low}, {high}]}}"
    header, rows = _cells(comparison, safe, lambda text: f"\\textbf{{{text}}}", shown)
    return latex_table("l" + "c" * len(comparison.models), header, rows)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of cells that are safe already."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex_table(columns: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a LaTeX table of cells that are safe already; `columns` are its alignments."""
    body = "".join(f"{' & '.join(row)} \\\\\n" for row in rows)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{' & '.join(header)} \\\\\n\\midrule\n{body}"
        "\\bottomrule\n\\end{tabular}\n"
    )


def markdown_text(text: str) -> str:
    """Return text in which nothing is taken for Markdown or HTML."""
    text = " ".join(text.split()).replace("<", "&lt;")
    return re.sub(r"([\\|`*_\[\]])", r"\\\1", text)


def latex_text(text: str) -> str:
    """Return text in which nothing is taken for LaTeX; a minus becomes one of mathematics."""
    text = "".join(LATEX.get(mark, mark) for mark in " ".join(text.split()))
    for mark, command in (("\u2212", "$-$"), ("<", "$<$"), (">", "$>$"), ("\u00a0", "~")):
        text = text.replace(mark, command)
    return text


def _cells(
    comparison: Any, safe: Callable[[str], str], bold: Callable[[str], str], shown: str
) -> tuple[list[str], list[list[str]]]:
    """Return the header and a row for every metric; `shown` says how a value is written."""
    names = list(comparison.models)
    first = comparison.models[names[0]]
    header = ["Metric", *(safe(name) for name in names)]
    rows = []
    for metric, e in first.items():
        estimates = [comparison.models[name].get(metric) for name in names]
        best = _best(estimates, e.direction)
        cells = []
        for found in estimates:
            if found is None or found.value is None:
                cells.append("undefined")
                continue
            value = f"{found.value:.3f}"
            value = bold(value) if best is not None and value == f"{best:.3f}" else value
            if found.low is None or found.high is None:
                cells.append(value)
            else:
                ends = {"low": f"{found.low:.3f}", "high": f"{found.high:.3f}"}
                cells.append(shown.format(value=value, **ends))
        rows.append([safe(e.title), *cells])
    return header, rows


def _best(estimates: Sequence[Estimate | None], direction: str) -> float | None:
    values = [e.value for e in estimates if e is not None and e.value is not None]
    if direction == "none" or len(values) < 2:
        return None
    return min(values) if direction == "lower" else max(values)


def markdown_of(results: Any, part: str = "metrics") -> str:
    """Return a Markdown table of the metrics, or of the levels of every sub-group."""
    heads, rows = _rows(results, part)
    cells = [[*map(markdown_text, names), *_value_and_interval(e)] for names, e in rows]
    return markdown_table([*heads, "Value", "Interval"], cells)


def latex_of(results: Any, part: str = "metrics") -> str:
    """Return a LaTeX table of the metrics, or of the levels of every sub-group."""
    heads, rows = _rows(results, part)
    cells = [
        [*map(latex_text, names), *map(latex_text, _value_and_interval(e))] for names, e in rows
    ]
    return latex_table(f"{'l' * len(heads)}rr", [*heads, "Value", "Interval"], cells)


def _rows(results: Any, part: str) -> tuple[list[str], list[Row]]:
    """Return what the first columns are called, and the rows."""
    if part == "subgroups":
        if not results.subgroups:
            raise InvalidInputError('part: "subgroups" needs results with sub-groups; got none')
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


def _value_and_interval(e: Estimate) -> list[str]:
    if e.value is None:
        return ["undefined", ""]
    ends = "" if e.low is None or e.high is None else f"{number(e.low)} to {number(e.high)}"
    return [number(e.value), ends]


def html_of(results: Any) -> Html:
    """Return the metrics as a table for a notebook, each with a picture of its interval."""
    heads, rows = _rows(results, "metrics")
    caption = f"{basis(results.data)}" if "cases" in results.data else ""
    notes = [el("li", note) for note in results.warnings]
    counted = counted_in_words(len(notes), "note")
    return el(
        "div",
        _verdict(results),
        table_html(heads, rows, caption),
        el("details", el("summary", counted), el("ul", notes)) if notes else None,
    )


def _verdict(results: Any) -> Html | None:
    """Return what the report begins with, where that could be said."""
    if (results.data.get("verdict") or {}).get("miscalibrated") is None:
        return None
    found = verdict_on_findings(results) if results.findings else verdict(results)
    return el("p", el("strong", f"{found.headline}."), f" {found.explanation}")


def differences_html(comparison: Any) -> Html:
    """Return every difference of a comparison, with a picture of its interval.

    Those of calibration errors are corrected, as their intervals and p-values are.
    """
    first = next(iter(comparison.models.values()))
    rows: list[Row] = []
    for d in comparison.differences:
        e, gap = first[d.metric], d.difference if d.debiased is None else d.debiased
        p = "" if d.adjusted_p_value is None else p_value(d.adjusted_p_value)
        shown = Estimate(d.metric, gap, d.low, d.high, group=d.metric, meaning=e.meaning)
        rows.append(((e.title, f"{d.first} − {d.second}", p), shown))
    caption = "Calibration errors are corrected for chance, p for the number of pairs of models."
    return el("div", table_html(("Metric", "Difference of", "p"), rows, caption))


def table_html(heads: Sequence[str], rows: Sequence[Row], caption: str = "") -> Html:
    """Return rows of estimates as an HTML table; the pictures of a group share one scale."""
    scale = _scales([e for _, e in rows])
    body = []
    for names, e in rows:
        value, ends = _value_and_interval(e)
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
