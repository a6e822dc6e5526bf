"""The section on a threshold: what acting on the model does, and what a rater would have done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from raterwise.curves.clinical_tables import Band, DecisionCurve, OperatingPoints
from raterwise.report import operating_charts as charts
from raterwise.report.charts import shortened
from raterwise.report.key_figures import asked_threshold
from raterwise.report.markup import Html, data_table, el
from raterwise.report.sections import Charts, behind, choice, figure, section
from raterwise.report.words import number, percent, shaded, unit_of
from raterwise.results import Results

MEASURES = {
    "sensitivity": "Sensitivity: positives that test positive",
    "specificity": "Specificity: negatives that test negative",
    "ppv": "Positive predictive value",
    "npv": "Negative predictive value",
    "net_benefit": "Net benefit",
}
TABLE_STEP, MANY, MANY_STEP = 5, 6, 10
"""Of how many thresholds the table behind the charts shows one; of more findings than so many, of
how many."""


def at_a_threshold(results: Results, found: Charts) -> Html | None:
    """Return what a threshold does, with a slider; of findings, of each to choose from."""
    curves = _curves(results)
    if not curves:
        return None
    start = min(max(round(asked_threshold(results), 2), 0.01), 0.99)
    name, curve = next(iter(curves.items()))
    i = round(100 * start) - 1
    raters = any(c.raters is not None for c in curves.values())
    found.operating = {key: _for_page(c) for key, c in curves.items()}
    drawn = "decision-chart roc-chart outcome-chart"
    content = [
        choice("Look for ", curves, "looked-for", drawn) if len(curves) > 1 else None,
        _slider(name if len(curves) == 1 else None, start),
        el("p", _sentence(curve, i), id="decision-point", aria_live="polite"),
        _table(curve, i, raters),
        _drawn(results, curves, start, found),
        _behind(curves, raters),
    ]
    return section("operating", "At a threshold", *content)


def _curves(results: Results) -> dict[str, DecisionCurve]:
    """Return the curves to choose from, by the name of what is looked for."""
    parts: Mapping[str, Results] = results.findings or {"": results}
    curves = {}
    for title, part in parts.items():
        content = part.curves.get("operating")
        if content is not None:
            curve = DecisionCurve.from_dict(content)
            curves[title or curve.name] = curve
    return curves


def _for_page(curve: DecisionCurve) -> dict[str, Any]:
    """Return what the page's script needs, with as many digits as it shows."""

    def short(points: OperatingPoints | None) -> Any:
        if points is None:
            return None
        return {
            name: [_column(column) for column in vars(getattr(points, name)).values()]
            for name in MEASURES
        }

    return {
        "model": short(curve.model),
        "raters": short(curve.raters),
        "all": [shortened(x) for x in curve.treat_all],
        "prevalence": shortened(curve.prevalence),
    }


def _column(values: Any) -> list[float | None]:
    """Return a column, or the one value that it holds throughout, as of raters."""
    column = [shortened(x) for x in values]
    return column[:1] if len(set(column)) == 1 else column


def _slider(name: str | None, start: float) -> Html:
    of = "" if name is None else f" of “{name}”"
    asked = f"Act where the probability{of} is at least "
    return el(
        "p",
        el("label", asked, for_="act-from"),
        el("output", percent(start), id="act-from-value", for_="act-from"),
        el("input", type="range", id="act-from", min=0.01, max=0.99, step=0.01, value=start),
        class_="control",
    )


def _sentence(curve: DecisionCurve, i: int) -> str:
    """Return what happens to 100 labels; the page's script says the same of other thresholds."""
    found = curve.prevalence * np.nan_to_num(curve.model.sensitivity.value[i])
    alarms = (1 - curve.prevalence) * (1 - np.nan_to_num(curve.model.specificity.value[i]))
    return (
        f"In 100 ratings: {100 * found:.1f} positives found, {100 * alarms:.1f} false alarms, "
        f"{100 * (curve.prevalence - found):.1f} positives missed."
    )


def _table(curve: DecisionCurve, i: int, raters: bool) -> Html:
    """Return the measures at the threshold; the page's script keeps them up to date."""
    rows = []
    for name, title in MEASURES.items():
        cells = [el("td", _cell(getattr(curve.model, name), i), id=f"model-{name}")]
        if raters:
            points = curve.raters
            told = "–" if points is None else _cell(getattr(points, name), i)
            cells.append(el("td", told, id=f"raters-{name}"))
        rows.append(el("tr", el("th", title, scope="row"), cells))
    everybody = [el("td", number(float(curve.treat_all[i])), id="all-net_benefit")]
    rows.append(
        el("tr", el("th", "Net benefit of acting on everybody", scope="row"), everybody,
           el("td") if raters else None)
    )  # fmt: skip
    head = [el("td"), el("th", "The model", scope="col")]
    head += [el("th", "One more rater", scope="col")] if raters else []
    return el(
        "table",
        el("caption", "At this threshold [interval]"),
        el("thead", el("tr", head)),
        el("tbody", rows),
        class_="confusion",
        id="operating-table",
    )


def _cell(band: Band, i: int) -> str:
    value, low, high = (float(v[i]) for v in (band.value, band.low, band.high))
    if math.isnan(value):
        return "–"
    if math.isnan(low):  # told where others have one: of a single positive test, for instance
        return f"{number(value)}{' [no interval]' if np.isfinite(band.low).any() else ''}"
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _drawn(
    results: Results, curves: Mapping[str, DecisionCurve], start: float, found: Charts
) -> list[Html]:
    unit = unit_of(results.data)
    raters = any(c.raters is not None for c in curves.values())
    told = "Net benefit: true positives minus false alarms, weighted by the odds of the threshold. "
    told += "The dashed line means acting on nobody."
    if raters:
        told += (
            f" “One more rater” means acting on what another rater of the {unit} says, judged by "
            "the others."
        )
    bands = [c.model.net_benefit.low for c in curves.values()]
    told += shaded(results, drawn=any(np.isfinite(low).any() for low in bands))
    words = "Decision curve: net benefit against the threshold. The table below has the numbers."
    area = results.get("auroc")
    known = area is not None and area.value is not None
    size = f" The area under it is {number(area.value)}." if area and known else ""
    ranked = "ROC: the share of positives found against the share of negatives that raise an alarm."
    ranked += " The diamond is one more rater." if raters else ""
    pair = el(
        "div",
        figure(found.place("decision-chart", charts.decision(curves, start), words), told),
        figure(
            found.place("roc-chart", charts.roc(curves), f"ROC curve.{size}"),
            ranked + ("" if results.findings else size),
        ),
        class_="pair",
    )
    words = "Histogram of the probabilities of positive and of negative ratings."
    bars = figure(
        found.place("outcome-chart", charts.outcomes(curves), words),
        "Predicted probabilities where raters say yes, and where they say no.",
    )
    return [pair, bars]


def _behind(curves: Mapping[str, DecisionCurve], raters: bool) -> Html:
    rows = []
    step = TABLE_STEP if len(curves) <= MANY else MANY_STEP
    for name, curve in curves.items():
        for i in range(step - 1, len(curve.thresholds), step):
            each = [_cell(getattr(curve.model, measure), i) for measure in MEASURES]
            each.append(number(float(curve.treat_all[i])))
            if raters:
                known = curve.raters is not None
                each.append(_cell(curve.raters.net_benefit, i) if known else "–")  # type: ignore[union-attr]
            rows.append((f"{name}, {curve.thresholds[i]:.0%}", *each))
    header = ["Act from", "Sensitivity", "Specificity", "PPV", "NPV", "Net benefit",
              "Of acting on everybody"]  # fmt: skip
    header += ["Of one more rater"] if raters else []
    table = data_table(header, rows, "Measures by threshold [interval]")
    return behind(table, "these charts")
