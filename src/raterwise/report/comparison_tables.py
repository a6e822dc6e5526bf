"""A comparison as a table: CSV for programs, LaTeX and Markdown for papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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


def as_csv(comparison: Any, findings: Mapping[str, Any] | None = None) -> str:
    """Return every difference with every digit, one line each.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    findings : mapping of str to Comparison, optional
        Of each finding: they follow the means, which have no finding.

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
        What `compare` returned.

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
        What `compare` returned.

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
