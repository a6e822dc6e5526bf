"""Results as tables: data frames, CSV, Markdown, LaTeX, a notebook's HTML, words for a paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.rules import choose

Part = Literal["metrics", "subgroups"]
"""Which table: the metrics (of each finding too), or the levels of every sub-group."""
Backend = Literal["pandas", "polars", "pyarrow"]

METRIC_COLUMNS = (
    *("name", "title", "group", "value", "low", "high", "debiased"),
    *("direction", "dropped", "undefined"),
)
OPTIONAL_COLUMNS = ("std", "defined", "bound")
"""Columns of metrics of images, and of approximations."""
LEVEL_COLUMNS = ("variable", "level", "cases", "patients", "name", "title", "value", "low", "high")
DIFFERENCE_COLUMNS = ("difference", "low", "high", "p_value", "adjusted_p_value")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With which a spreadsheet takes a cell for a formula."""

Columns = Mapping[str, Sequence[Any]]


class Exports:
    """The ways out of results: whatever has `estimates`, `subgroups` and `findings`."""

    def to_frame(self, part: Part = "metrics", *, backend: Backend | None = None) -> Any:
        """Return the results as a data frame, one row per metric.

        Parameters
        ----------
        part : {"metrics", "subgroups"}, default "metrics"
            The metrics, or a row for each level of each sub-group and metric.
        backend : {"pandas", "polars", "pyarrow"}, default None
            The data frame library; by default the first of these that is installed.

        Returns
        -------
        data frame
            With every digit; what a metric does not have is missing.

        Raises
        ------
        InvalidInputError
            If there are no sub-groups to show.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> results.to_frame(backend="pyarrow").column("value").to_pylist()
        [0.75]
        """
        return as_frame(self._columns(part), backend)

    def to_csv(self, path: str | Path | None = None, part: Part = "metrics") -> str:
        """Return the results as CSV with every digit, and write them where a path is given.

        Text that a spreadsheet would take for a formula gets an apostrophe in front.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.
        part : {"metrics", "subgroups"}, default "metrics"
            The metrics, or a row for each level of each sub-group and metric.

        Returns
        -------
        str
            CSV with a header.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> results.to_csv().splitlines()[1]
        'accuracy,Accuracy,Proper scores,0.75,,,,higher,0,'
        """
        return write_text(path, csv_text(self._columns(part)))

    def to_markdown(self, path: str | Path | None = None, part: Part = "metrics") -> str:
        """Return the results as a Markdown table, and write it where a path is given.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.
        part : {"metrics", "subgroups"}, default "metrics"
            The metrics, or a row for each level of each sub-group and metric.

        Returns
        -------
        str
            A row for each metric: its name, its value, its interval.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> print(results.to_markdown())
        | Metric | Value | Interval |
        | --- | --- | --- |
        | Accuracy | 0.750 |  |
        """
        from raterwise.report.tables import markdown_of

        return write_text(path, markdown_of(self, part))

    def to_latex(self, path: str | Path | None = None, part: Part = "metrics") -> str:
        r"""Return the results as a LaTeX table for booktabs, and write it where a path is given.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.
        part : {"metrics", "subgroups"}, default "metrics"
            The metrics, or a row for each level of each sub-group and metric.

        Returns
        -------
        str
            A tabular with a row for each metric.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> results.to_latex().splitlines()[0]
        '\\begin{tabular}{lrr}'
        """
        from raterwise.report.tables import latex_of

        return write_text(path, latex_of(self, part))

    def to_text(
        self, path: str | Path | None = None, *, style: Literal["tripod"] = "tripod"
    ) -> str:
        """Return words for a paper: methods, results, and a checklist of what they report.

        Every sentence follows from what was computed. What the data cannot answer is listed as
        such, for the authors to add.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.
        style : {"tripod"}, default "tripod"
            The guidance that it follows: TRIPOD+AI, and CLAIM for imaging.

        Returns
        -------
        str
            Markdown.

        References
        ----------
        Collins et al. (2024), TRIPOD+AI statement, BMJ 385, e078378.

        Mongan, Moy, Kahn (2020), Checklist for Artificial Intelligence in Medical Imaging (CLAIM),
        Radiology: Artificial Intelligence 2(2), e200029.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> print(results.to_text().splitlines()[0])
        ## Methods
        """
        from raterwise.report.paper import text_of

        choose("style", style, ("tripod",))
        return write_text(path, text_of(self))

    def _repr_html_(self) -> str:
        """Return a table with a picture of each interval, as notebooks show it."""
        from raterwise.report.tables import html_of

        return str(html_of(self))

    def _columns(self, part: str) -> dict[str, list[Any]]:
        choose("part", part, ("metrics", "subgroups"))
        return _columns_of_metrics(self) if part == "metrics" else _columns_of_levels(self)


def _columns_of_metrics(results: Any) -> dict[str, list[Any]]:
    """Return one entry per metric; findings follow the means, which have no finding."""
    parts = {"": results, **results.findings}
    rows = [(title, e) for title, part in parts.items() for e in part.estimates.values()]
    extra = [n for n in OPTIONAL_COLUMNS if any(getattr(e, n) is not None for _, e in rows)]
    columns = {name: [getattr(e, name) for _, e in rows] for name in (*METRIC_COLUMNS, *extra)}
    if results.findings:
        columns = {"finding": [title for title, _ in rows], **columns}
    return columns


def _columns_of_levels(results: Any) -> dict[str, list[Any]]:
    """Return one entry per level and metric, with its difference from all other cases."""
    if not results.subgroups:
        raise InvalidInputError(
            'part: "subgroups" needs results with sub-groups; got none (use evaluate with '
            "subgroups=)"
        )
    rows = [(found, e) for found in results.subgroups for e in found.estimates.values()]
    columns: dict[str, list[Any]] = {
        name: [getattr(found if name in LEVEL_COLUMNS[:4] else e, name) for found, e in rows]
        for name in LEVEL_COLUMNS
    }
    differences = [found.differences.get(e.name) for found, e in rows]
    for name in DIFFERENCE_COLUMNS:
        title = name if name not in ("low", "high") else f"difference_{name}"
        columns[title] = [None if d is None else getattr(d, name) for d in differences]
    return columns


def as_frame(columns: Columns, backend: str | None = None) -> Any:
    """Return columns as a data frame of the library asked for, or of the first that is there.

    >>> as_frame({"a": [1, None]}, "pyarrow").column("a").to_pylist()
    [1, None]
    """
    from importlib.util import find_spec

    known = ("pandas", "polars", "pyarrow")
    chosen = backend or next(name for name in known if find_spec(name) is not None)
    choose("backend", chosen, known)
    if find_spec(chosen) is None:
        raise InvalidTypeError(f"backend: must be installed; {chosen} is not")
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    table = nw.from_native(pa.table({name: list(values) for name, values in columns.items()}))
    if chosen == "pandas":
        return table.to_pandas()
    return table.to_polars() if chosen == "polars" else table.to_native()


def safe_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; numbers stay as they are.

    >>> safe_cell("=cmd()"), safe_cell("- mild"), safe_cell(-0.5), safe_cell("A")
    ("'=cmd()", "'- mild", -0.5, 'A')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def unquoted_cell(text: str) -> str:
    """Return what `safe_cell` made safe as it was.

    >>> unquoted_cell("'=cmd()"), unquoted_cell("'tis")
    ('=cmd()', "'tis")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text


def csv_text(columns: Columns, delimiter: str = ",") -> str:
    """Return columns as CSV whose cells are safe to open in a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([safe_cell(name) for name in columns])
    for row in zip(*columns.values(), strict=True):
        writer.writerow([safe_cell(value) for value in row])
    return text.getvalue()


def write_text(path: str | Path | None, text: str) -> str:
    """Return text, written to a file where one is named, whole or not at all."""
    if path is not None:
        from raterwise.io.files import write_text_atomically

        write_text_atomically(path, text)
    return text
