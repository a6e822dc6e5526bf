"""A report on several models that were judged on the same cases."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from quorate.curves import ReliabilityCurve, ThresholdCurve
from quorate.io.files import write_text_atomically
from quorate.report import charts, sections
from quorate.report.extras import method
from quorate.report.markup import Html, data_table, el
from quorate.report.page import page
from quorate.report.sections import Charts, figure, section
from quorate.report.words import basis, classes_in_words, number, percent, verdict
from quorate.results import Results

__all__ = ["comparison_html", "write_comparison"]

TITLE = "Which model's probabilities can be trusted?"
TELLING = ("nll", "brier", "epistemic_loss", "calibration_error", "ece", "auccc", "accuracy")
"""The metrics whose ranking the summary tells, where they are there."""
LEVEL = 0.05
"""An adjusted p-value up to this is shown in bold."""


def write_comparison(comparison: Any, path: str | PathLike[str], title: str = TITLE) -> None:
    """Write a report of a `Comparison` to one self-contained HTML file."""
    write_text_atomically(path, comparison_html(comparison, title))


def comparison_html(comparison: Any, title: str = TITLE) -> str:
    """Return a report of a `Comparison` as HTML."""
    found = Charts()
    models: Mapping[str, Results] = comparison.models
    first = next(iter(models.values()))
    content = [
        _summary(comparison, first),
        _metrics(models),
        _differences(comparison, first),
        _reliability(models, found),
        _thresholds(models, found),
        sections.dispersion(models, found),
        method(first, first.to_dict()["versions"]),
    ]
    return page(title, classes_in_words(first.data), content, found)


def _summary(comparison: Any, first: Results) -> Html:
    lines = []
    for metric in TELLING:
        shares = comparison.ranking.get(metric)
        if shares:
            best = max(shares, key=shares.get)
            lines.append(
                el("li", el("strong", f"{first[metric].title}: "),
                   f"{best} is the best in {percent(shares[best])} of the resamples.")
            )  # fmt: skip
    told = [
        el("li", el("strong", f"{name}: "), f"{v.headline}. {v.explanation}")
        for name, v in ((name, verdict(results)) for name, results in comparison.models.items())
    ]
    return section(
        "verdict",
        "Verdict",
        el("div", el("ul", told), el("p", f"Rests on {basis(first.data)}.", class_="basis"),
           class_="panel"),
        [el("h3", "How steady is the ranking?"), el("ul", lines)] if lines else None,
        sections.warnings(first),
    )  # fmt: skip


def _metrics(models: Mapping[str, Results]) -> Html:
    first = next(iter(models.values()))
    rows = []
    for e in first.values():
        cells = [el("td", sections.value_of(results.get(e.name))) for results in models.values()]
        rows.append(el("tr", sections.metric_name(e), cells))
    head = [el("th", name, scope="col") for name in ("Metric", *models)]
    table = el("table", el("thead", el("tr", head)), el("tbody", rows), class_="metrics paired")
    wide = el("div", table, class_="wide", tabindex="0", role="group", aria_label="All metrics")
    return section("metrics", "All metrics", wide)


def _differences(comparison: Any, first: Results) -> Html | None:
    if not comparison.differences:
        return None
    rows = []
    for d in comparison.differences:
        clear = d.adjusted_p_value <= LEVEL
        rows.append(
            el("tr",
               el("th", first[d.metric].title, scope="row"),
               el("td", f"{d.first} − {d.second}"),
               el("td", number(d.difference, 4), el("small", f"[{number(d.low, 4)}, "
                                                             f"{number(d.high, 4)}]")),
               el("td", number(d.adjusted_p_value, 3)),
               class_="clear" if clear else None)
        )  # fmt: skip
    head = [el("th", text, scope="col") for text in ("Metric", "Models", "Difference", "p")]
    note = (
        "The same cases are resampled for both models. p is two-sided, adjusted for the number of "
        f"pairs by Holm's method; bold where it is at most {LEVEL:g}."
    )
    table = el("table", el("thead", el("tr", head)), el("tbody", rows),
               class_="metrics paired differences")  # fmt: skip
    wide = el("div", table, class_="wide", tabindex="0", role="group", aria_label="Differences")
    return section("differences", "Do they differ?", el("p", note, class_="note"), wide)


def _reliability(models: Mapping[str, Results], found: Charts) -> Html | None:
    curves = {
        name: ReliabilityCurve.from_dict(results.curves["top_label"])
        for name, results in models.items()
        if "top_label" in results.curves
    }
    if not curves:
        return None
    spec = charts.reliability(curves, x="Confidence", y="Raters who agree", overlay=True)
    words = "; ".join(
        f"{name}: confidence minus agreement {number(curve.gap)}" for name, curve in curves.items()
    )
    caption = (
        "How sure each model is, and how often the raters agree. Below the dashed line: too sure."
    )
    chart = found.place("reliability-chart", spec, f"Reliability diagrams. {words}.")
    table = sections.bins_table(curves)
    title = "Does 90\u00a0% mean 90\u00a0%?"
    return section("reliability", title, figure(chart, caption, table))


def _thresholds(models: Mapping[str, Results], found: Charts) -> Html | None:
    curves = {
        name: curve
        for name, results in models.items()
        if "thresholds" in results.curves
        and sections.has_both(curve := ThresholdCurve.from_dict(results.curves["thresholds"]))
    }
    if not curves:
        return None
    areas = [(name, number(curve.area)) for name, curve in curves.items()]
    words = "; ".join(f"{name}: {area}" for name, area in areas)
    ccc = found.place("ccc-chart", charts.ccc(curves), f"CCC curves; area under each: {words}.")
    final = "; ".join(f"{name}: {percent(curve.risk[-1])}" for name, curve in curves.items())
    risk = found.place(
        "risk-chart",
        charts.risk_coverage(curves),
        f"Risk-coverage curves; wrong when all are accepted: {final}.",
    )
    pair = el(
        "div",
        figure(ccc, "CCC: right predictions accepted against wrong ones that slip through.",
               data_table(("Model", "AUCCC"), areas, "Areas")),
        figure(risk, "The more predictions are accepted, the more of them are wrong.", None),
        class_="pair",
    )  # fmt: skip
    return section("thresholds", "Do they know when they are wrong?", pair)
