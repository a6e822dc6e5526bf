"""Put a report together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.io.files import write_text_atomically
from raterwise.report import extras, sections
from raterwise.report.findings import by_finding, summary_of_findings
from raterwise.report.page import page
from raterwise.report.recalibration import recalibration
from raterwise.report.sections import Charts
from raterwise.report.subgroups import subgroups
from raterwise.report.words import classes_in_words
from raterwise.results import Results

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
    after: Results | None = None,
    differences: Iterable[Any] = (),
    stability: Mapping[str, Any] | None = None,
    variation: Mapping[str, Any] | None = None,
    raters: Any = None,
    worklist: Any = None,
    notes: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> str:
    """Return a report of `results` as HTML.

    Parameters
    ----------
    title
        The heading: the name of the model, for example.
    single
        The same with one rater per case, to show beside.
    before, after
        Results before a recalibration that `results` are after, or the other way round.
    differences
        Of the two, after minus before, as `compare` makes them.
    stability, variation
        What `stability.subsample_curve` and `stability.total_variation` returned, by the name to
        show.
    raters
        What `exchangeability_test` returned; by default what the results hold.
    worklist
        What `worklist.worklist` returned.
    notes
        What to know about a part, by its name: {"raters": "…"}.
    versions
        Of what computed the results; by default, of what is installed now.
    """
    if before is not None and after is not None:
        raise InvalidInputError("before, after: must be one of them; got both")
    found = Charts()
    models = {"model": results}
    if before is not None:
        models = {"before": before, "after": results}
    elif after is not None:
        models = {"before": results, "after": after}
    content = [
        summary_of_findings(results) if results.findings else sections.summary(results),
        by_finding(results),
        sections.metrics(results, single),
        sections.reliability(results, found),
        sections.disagreement(results, found),
        sections.thresholds(results, found),
        subgroups(results, found),
        recalibration(models, differences, found),
        sections.dispersion(models, found),
        extras.stability(stability, variation, found, findings=bool(results.findings)),
        extras.raters(results, raters, (notes or {}).get("raters")),
        extras.worklist(worklist),
        extras.method(results, versions or results.to_dict()["versions"]),
    ]
    return page(title, classes_in_words(results.data), content, found)
