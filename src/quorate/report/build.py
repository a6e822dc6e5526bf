"""Put a report together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from quorate.io.files import write_text_atomically
from quorate.report import extras, sections
from quorate.report.page import page
from quorate.report.sections import Charts
from quorate.report.words import classes_in_words
from quorate.results import Results

__all__ = ["report_html", "write_report"]

TITLE = "How far can these probabilities be trusted?"


def write_report(results: Results, path: str | PathLike[str], **parts: Any) -> None:
    """Write a report of `results` to one self-contained HTML file; `parts` as in `report_html`."""
    write_text_atomically(path, report_html(results, **parts))


def report_html(
    results: Results,
    *,
    title: str = TITLE,
    single: Results | None = None,
    before: Results | None = None,
    stability: Mapping[str, Any] | None = None,
    raters: Any = None,
    worklist: Any = None,
    versions: Mapping[str, str] | None = None,
) -> str:
    """Return a report of `results` as HTML.

    Parameters
    ----------
    title
        The heading: the name of the model, for example.
    single
        The same with one rater per case, to show beside.
    before
        Results before a recalibration, for the calibration-dispersion map.
    stability
        What `stability.subsample_curve` returned, by the name of the metric.
    raters
        What `exchangeability_test` returned.
    worklist
        What `worklist.worklist` returned.
    versions
        Of what computed the results; by default, of what is installed now.
    """
    found = Charts()
    models = {"model": results} if before is None else {"before": before, "after": results}
    content = [
        sections.summary(results),
        sections.metrics(results, single),
        sections.reliability(results, found),
        sections.disagreement(results, found),
        sections.thresholds(results, found),
        sections.dispersion(models, found),
        extras.stability(stability, found),
        extras.raters(results, raters),
        extras.worklist(worklist),
        extras.method(results, versions or results.to_dict()["versions"]),
    ]
    return page(title, classes_in_words(results.data), content, found)
