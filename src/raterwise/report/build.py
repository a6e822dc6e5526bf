"""Put a report together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.io.files import write_text_atomically
from raterwise.report import sections
from raterwise.report.acceptance import acceptance
from raterwise.report.findings import by_finding, summary_of_findings
from raterwise.report.method import method, provenance
from raterwise.report.operating import at_a_threshold
from raterwise.report.page import page
from raterwise.report.pages import worklist as list_of_cases
from raterwise.report.raters import agreement, readers
from raterwise.report.recalibration import recalibration
from raterwise.report.sections import Charts
from raterwise.report.stability import stability as steady
from raterwise.report.subgroups import subgroups
from raterwise.report.words import classes_in_words
from raterwise.results import Results

TITLE = "How far can these probabilities be trusted?"


def write_report(results: Results, path: str | PathLike[str], **parts: Any) -> None:
    """Write a report of results to one self-contained HTML file.

    Parameters
    ----------
    results : Results
        Results of `evaluate` or a related function.
    path : str or path
        The file to write. It is written completely or not at all.
    **parts : Any
        Further parts to show, as in `report_html`.

    See Also
    --------
    report.report_html : the page as text.
    evaluate : makes the results.

    Examples
    --------
    >>> import raterwise as rw
    >>> path = getfixture("tmp_path") / "report.html"
    >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "brier", resamples=20)
    >>> write_report(results, path, title="Nodule model 3")
    >>> "Nodule model 3" in path.read_text(encoding="utf-8")
    True
    """
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
    """Return a report of results as HTML.

    Parameters
    ----------
    results : Results
        Results of `evaluate` or a related function.
    title : str, default "How far can these probabilities be trusted?"
        The heading: the name of the model, for example.
    single : Results, default None
        The same with one rater per case, for comparison.
    before, after : Results, default None
        Those before a recalibration that `results` are after, or the other way round.
    differences : iterable of Difference, default ()
        The differences, after minus before, as returned by `compare`.
    stability : mapping of str to SubsampleCurve, default None
        What `stability.subsample_curve` returned, by the name to show.
    variation : mapping of str to TotalVariation, default None
        What `stability.total_variation` returned, by the name to show.
    raters : ExchangeabilityTest, default None
        What `exchangeability_test` returned; by default what the results hold.
    worklist : Worklist, default None
        What `worklist.worklist` returned.
    notes : mapping of str to str, default None
        What to know about a part, by its name: {"raters": "…"}.
    versions : mapping of str to str, default None
        The versions of the software that computed the results; by default those installed now.

    Returns
    -------
    str
        A page that opens without a network.

    Raises
    ------
    InvalidInputError
        If both `before` and `after` are given.

    See Also
    --------
    write_report : the same into a file.

    Examples
    --------
    >>> import raterwise as rw
    >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "brier", resamples=20)
    >>> "Nodule model 3" in report_html(results, title="Nodule model 3")
    True
    """
    if before is not None and after is not None:
        raise InvalidInputError("before, after: must be one of them; got both")
    made_with = versions or results.to_dict()["versions"]
    found = Charts()
    models, stage = {"model": results}, ""
    if before is not None:
        models, stage = {"before": before, "after": results}, "Figures after recalibration. "
    elif after is not None:
        models, stage = {"before": results, "after": after}, "Figures before recalibration. "
    content = [
        summary_of_findings(results) if results.findings else sections.summary(results),
        sections.reliability(results, found),
        sections.metrics(results, single),
        by_finding(results),
        sections.disagreement(results, found),
        at_a_threshold(results, found),
        acceptance(results, found),
        subgroups(results, found),
        agreement(results, raters, (notes or {}).get("raters")),
        readers(results),
        recalibration(models, differences, found),
        sections.dispersion(models, found),
        steady(stability, variation, found, findings=bool(results.findings)),
        list_of_cases(worklist),
        method(results, made_with),
        provenance(results.provenance, made_with, results.data),
    ]
    return page(title, [stage, *classes_in_words(results.data)], content, found)
