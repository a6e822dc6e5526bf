"""The sections of a report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raterwise.curves import ReliabilityCurve
from raterwise.curves.smooth import CalibrationCurve
from raterwise.report import charts
from raterwise.report.confidence_verdict import Verdict
from raterwise.report.key_figures import answers, figures, in_brackets
from raterwise.report.markup import Html, data_table, el
from raterwise.report.verdicts import verdict
from raterwise.report.words import (
    basis,
    better,
    bracketed,
    number,
    percent,
    span,
    unit_of,
)
from raterwise.results import Estimate, Results

SAY_SO = "Raters who say so"


FEW_FOR_SMOOTHING = 50
"""Below so many cases no smooth curve is drawn: it would follow single ones."""


@dataclass
class Charts:
    """The charts of a page by the id of their place, and the data that its controls need."""

    specs: dict[str, Any] = field(default_factory=dict)
    thresholds: dict[str, Any] | None = None
    operating: dict[str, Any] | None = None

    def place(self, name: str, spec: Any, words: str) -> Html:
        """Keep a chart and return its place in the page, with what it shows in words."""
        self.specs[name] = spec
        return el("div", id=name, class_="chart", role="img", aria_label=words)


def section(name: str, title: str, *content: Any) -> Html:
    """Return a section with a heading that names it to a screen reader."""
    heading = el("h2", title, id=f"{name}-heading")
    return el("section", heading, *content, id=name, aria_labelledby=f"{name}-heading")


def choice(label: str, names: Iterable[str], place: str, drawn: str) -> Html:
    """Return a choice of names for the charts called `drawn`; paper shows the one chosen."""
    options = [el("option", name, value=name) for name in names]
    return el(
        "p",
        el("label", label, for_=place),
        el("select", options, id=place, data_charts=drawn),
        el("strong", next(iter(names)), class_="chosen"),
        class_="control",
    )


def figure(chart: Any, caption: Any, table: Html | None = None) -> Html:
    """Return a chart with its caption, and the numbers behind it for whoever wants them."""
    return el("figure", chart, el("figcaption", caption), None if table is None else behind(table))


def behind(table: Html, charts: str = "this chart") -> Html:
    """Return the numbers behind charts, folded."""
    inside = scrolled(table, f"Numbers behind {charts}")
    summary = el("summary", f"The numbers behind {charts}")
    return el("details", summary, inside, class_="numbers")


def scrolled(table: Html, label: str) -> Html:
    """Return a long table in a window of its own, which the keyboard can scroll."""
    return el("div", table, class_="scroll", tabindex="0", role="group", aria_label=label)


def paired_table(
    head: Iterable[str], rows: Iterable[Html], label: str, kind: str = "metrics paired"
) -> Html:
    """Return a table with a column per model or metric, in a frame that scrolls sideways."""
    columns = [el("th", name, scope="col") for name in head]
    table = el("table", el("thead", el("tr", columns)), el("tbody", list(rows)), class_=kind)
    return wide(table, label)


def wide(table: Html, label: str) -> Html:
    """Return a table in a frame that scrolls sideways, for the keyboard too."""
    return el("div", table, class_="wide", tabindex="0", role="group", aria_label=label)


def summary(results: Results) -> Html:
    """Return the verdict, what it rests on, and what else there is to say."""
    return section("verdict", "Verdict", panel(verdict(results), results), warned(results.warnings))


def panel(found: Verdict, results: Results, more: Any = None) -> Html:
    """Return a verdict in its colour, with what it rests on."""
    return el(
        "div",
        el("p", found.headline, class_="headline"),
        el("p", found.explanation) if found.explanation else None,
        more,
        el("p", f"Based on {basis(results.data)}.", class_="basis"),
        class_=f"panel {found.tone}",
    )


def verdicts(models: Mapping[str, Results]) -> Html:
    """Return the verdict on each of some models."""
    each = [(name, verdict(results)) for name, results in models.items()]
    return el(
        "ul",
        [el("li", el("strong", f"{name}: "), f"{v.headline}. {v.explanation}") for name, v in each],
    )


def warned(notes: Iterable[str], of_each: Mapping[str, Iterable[str]] | None = None) -> Html | None:
    """Return the box of what to know before believing the figures: of all, then of each model."""
    told = [el("li", as_sentence(note)) for note in notes]
    for name, own in (of_each or {}).items():
        told += [el("li", el("strong", f"{name}: "), as_sentence(note)) for note in own]
    if not told:
        return None
    return el("div", el("h3", "Before you rely on this"), el("ul", told), class_="warnings")


def as_sentence(warning: str) -> str:
    """Return a warning with a full stop, and a capital unless it begins with the name of a file.

    >>> as_sentence("only 12 cases"), as_sentence("why?"), as_sentence("r.csv has 2 rows")
    ('Only 12 cases.', 'Why?', 'r.csv has 2 rows.')
    """
    is_file = "." in warning.split(" ")[0].rstrip(".:")
    ended = warning if warning.endswith((".", "?", "!", "…")) else f"{warning}."
    return ended if is_file else ended[:1].upper() + ended[1:]


def metrics(results: Results, single: Results | None) -> Html:
    """Return the key figures, answers to what people ask, and every metric, folded."""
    answered = [
        el("div", el("dt", question), el("dd", answer)) for question, answer in answers(results)
    ]
    title = "Key figures, means over the findings" if results.findings else "Key figures"
    count = len(results)
    more = el("summary", f"All {count:,} metrics" if count > 1 else "The metric in full")
    return section(
        "metrics",
        title,
        figures(results),
        el("dl", answered, class_="answers") if answered and not results.findings else None,
        el("details", more, every_metric(results, single), id="all-metrics"),
    )


def every_metric(results: Results, single: Results | None) -> list[Html]:
    """Return every metric with its interval and one sentence; one rater's beside, if given."""
    headings = list(dict.fromkeys(e.group for e in results.values()))
    columns = ["Metric", *(["Value"] if single is None else ["Every rater", "One rater per case"])]
    bodies = []
    for heading in headings:
        rows = [el("tr", el("th", heading, scope="rowgroup", colspan=len(columns)), class_="group")]
        for e in results.values():
            if e.group == heading:
                other = None if single is None else el("td", value_of(single.get(e.name)))
                rows.append(el("tr", metric_name(e), el("td", value_of(e)), other))
        bodies.append(el("tbody", rows))
    head = [el("th", name, scope="col") for name in columns]
    note = in_brackets(results, results.values())
    table = el(
        "table",
        el("thead", el("tr", head)),
        bodies,
        class_="metrics" if single is None else "metrics paired",
    )
    return [*([el("p", note, class_="note")] if note else []), table]


def metric_name(e: Estimate) -> Html:
    """Return the head of a metric's row: its title and what it means."""
    means = f"{e.meaning} {better(e.direction)}".strip()
    return el("th", el("span", e.title), el("small", means), scope="row")


def value_of(e: Estimate | None) -> list[Any]:
    """Return a value with its interval below or beside it."""
    if e is None:
        return ["–"]
    if e.value is None:
        return ["undefined"]
    parts: list[Any] = [el("strong", number(e.value))]
    if ends := bracketed(e):
        parts.append(el("small", ends.strip()))
    if e.std is not None:
        parts.append(el("small", f"± {number(e.std)} over {e.defined} images"))
    if e.bound is not None:
        parts.append(el("small", f"error at most {number(e.bound)}"))
    if e.debiased not in (None, e.value):
        parts.append(el("small", f"corrected {number(e.debiased)}"))
    return [el("div", parts, class_="value")]


def reliability(results: Results, found: Charts) -> Html | None:
    """Return reliability diagrams: of the predicted class, and of every class to choose from.

    Of findings, one of each to choose from.
    """
    curves = _of_findings(results) if results.findings else reliability_curves(results)
    if not curves:
        return None
    chosen = choice("Probability of ", curves, "what", "reliability-chart counts-chart")
    smooth = {} if results.findings else _smooth_curves(results, curves)
    spec = charts.reliability(
        curves, x="Predicted probability", y=SAY_SO, overlay=False, smooth=smooth
    )
    told = "" if results.findings else f"{verdict(results).explanation} "
    words = f"Reliability diagram. {told}The table below has the numbers."
    unit = f"{unit_of(results.data)}s"
    histogram = f"Number of {unit} in each of {len(next(iter(curves.values())).cases)} bins."
    drawn = [
        found.place("reliability-chart", spec, words),
        found.place("counts-chart", charts.counts(curves, unit), histogram),
    ]
    ends = any(np.isfinite(curve.low).any() for curve in curves.values())
    caption = (
        f"Each dot is a bin of {unit}: what the model predicts on average, and how often raters "
        f"say so{', with an interval' if ends else ''}. On the dashed line the two are equal; "
        "below it the model says too much, above it too little. The bars count the "
        f"{unit} in each bin."
    )
    if smooth:
        banded = any(np.isfinite(curve.low).any() for curve in smooth.values())
        band = "; its band is an interval, too" if banded else ""
        caption += f" The grey curve smooths over the bins (loess){band}."
    table = bins_table(curves, unit)
    return section("reliability", "Does 90% mean 90%?", chosen, figure(drawn, caption, table))


def reliability_curves(results: Results) -> dict[str, ReliabilityCurve]:
    """Return the curves to choose from; of two classes, that of the positive one comes first."""
    top = results.curves.get("top_label")
    curves = {}
    if top is not None:
        curve = ReliabilityCurve.from_dict(top)
        curves["Positive class" if curve.name == "positive" else "Predicted class"] = curve
    by_class = [ReliabilityCurve.from_dict(c) for c in results.curves.get("per_class", [])]
    if results.data.get("classes") == 2 and len(by_class) == 2:
        positive = {f"Class: {by_class[1].name}": by_class[1]}
        return curves if "Positive class" in curves else {**positive, **curves}
    return {**curves, **{f"Class: {curve.name}": curve for curve in by_class}}


def _smooth_curves(
    results: Results, curves: Mapping[str, ReliabilityCurve]
) -> dict[str, CalibrationCurve]:
    """Return the smooth curve of the positive class under the name of its binned one."""
    content = results.curves.get("smooth")
    if content is None:
        return {}
    if results.data.get("cases", 0) < FEW_FOR_SMOOTHING:
        return {}
    curve = CalibrationCurve.from_dict(content)
    names = (f"Class: {curve.name}", "Positive class")
    return {name: curve for name in names if name in curves}


def _of_findings(results: Results) -> dict[str, ReliabilityCurve]:
    """Return the curve of every finding, of its probability where there is one."""
    each = ((title, reliability_curves(found)) for title, found in results.findings.items())
    return {title: next(iter(curves.values())) for title, curves in each if curves}


def bins_table(curves: Mapping[str, ReliabilityCurve], unit: str = "cases") -> Html:
    """Return the numbers of reliability curves."""
    rows = []
    for name, curve in curves.items():
        for b in np.flatnonzero(curve.cases > 0):
            ends = span(curve.low[b], curve.high[b]).strip()
            rows.append(
                (name, f"{curve.edges[b]:.0%}–{curve.edges[b + 1]:.0%}", f"{curve.cases[b]:g}",
                 percent(curve.predicted[b]), f"{percent(curve.observed[b])} {ends}")
            )  # fmt: skip
    header = ("Curve", "Bin", unit.capitalize(), "Predicted", "Observed [interval, %]")
    return data_table(header, rows, "Predicted and observed frequencies by bin")


def disagreement(results: Results, found: Charts) -> Html | None:
    """Return the reliability of the predicted disagreement of two raters (LH Fig 1)."""
    content = results.curves.get("disagreement")
    if content is None:
        return None
    curves = {"Disagreement": ReliabilityCurve.from_dict(content)}
    spec = charts.reliability(
        curves, x="Predicted disagreement", y="Pairs of raters who differ", overlay=False
    )
    words = dict(answers(results)).get("Does it know when raters will differ?", "")
    unit = f"{unit_of(results.data)}s"
    chart = [
        found.place("disagreement-chart", spec, f"Reliability of disagreement. {words}"),
        found.place(
            "disagreement-counts-chart",
            charts.counts(curves, unit),
            f"{unit.capitalize()} in each bin.",
        ),
    ]
    caption = (
        f"The same diagram for another question: will two raters of a {unit_of(results.data)} "
        f"differ? A model that gets this right can say which {unit} need a second opinion."
    )
    return section(
        "disagreement",
        "Does it know when raters will differ?",
        figure(chart, caption, bins_table(curves, unit)),
    )


def dispersion(models: Mapping[str, Results], found: Charts) -> Html | None:
    """Return the calibration-dispersion map (LH Fig 5)."""
    wanted = ("calibration_loss", "dispersion_loss")
    shown = {
        name: results
        for name, results in models.items()
        if all((e := results.get(w)) is not None and e.value is not None for w in wanted)
    }
    if not shown:
        return None
    sums = "; ".join(
        f"{name}: calibration loss {number(r['calibration_loss'].value)}, "
        f"dispersion loss {number(r['dispersion_loss'].value)}"
        for name, r in shown.items()
    )
    rows = [
        (name, *(number(r[w].value, 4) for w in wanted),
         number(sum(r[w].value or 0 for w in wanted), 4))
        for name, r in shown.items()
    ]  # fmt: skip
    table = data_table(("Model", "Calibration", "Dispersion", "Sum"), rows, "Losses")
    chart = found.place("map-chart", charts.calibration_dispersion(shown), f"Map: {sums}.")
    caption = (
        "The vertical axis is what recalibration could repair. The horizontal axis is what it "
        "could not, because different cases get the same probabilities. Along each grey line their "
        "sum, the epistemic loss, is constant."
    )
    several = len(shown) > 1
    told = [
        el(
            "p",
            el("strong", f"{name[:1].upper()}{name[1:]}: ") if several else None,
            _repairable(r),
        )
        for name, r in shown.items()
    ]
    title = "What could recalibration repair?"
    return section("map", title, told, figure(chart, caption, table))


def _repairable(results: Results) -> str:
    calibration = results["calibration_loss"].value or 0.0
    dispersion = results["dispersion_loss"].value or 0.0
    total = calibration + dispersion
    if total < 0:
        own = f" The calibration loss alone is {number(calibration)}." if calibration > 0 else ""
        told = "an estimate below 0 does not say what a better model could remove."
        return f"The epistemic loss is {number(total)}: {told}{own}"
    if calibration <= 0:
        return f"The epistemic loss is {number(total)}. Recalibration would remove none of it."
    if dispersion <= 0:
        return f"The epistemic loss is {number(total)}. Better calibration could remove all of it."
    return (
        f"The epistemic loss is {number(total)}. Of that, {number(calibration)} "
        f"({percent(calibration / total)}) is calibration loss, which better calibration could "
        "remove."
    )
