"""The charts of the section on a threshold: decision curve, ROC, probabilities per outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from raterwise.curves.clinical_tables import Band, DecisionCurve
from raterwise.report.charts import (
    FAINT,
    INK,
    LONG,
    MOST_BANDS,
    SERIES,
    Rows,
    Spec,
    altair,
    compiled,
    diagonal,
    percent_axis,
    shortened,
)

MODEL, RATER, ALL = "The model", "One more rater", "Everybody"
BARS = 20
"""How many bars show the distribution of probabilities."""


def decision(curves: Mapping[str, DecisionCurve], start: float) -> Spec:
    """Return the net benefit against the threshold, with the threshold `at` marked."""
    alt = altair()
    rows: Rows = []
    for name, curve in curves.items():
        lines = {MODEL: curve.model.net_benefit, ALL: _plain(curve.treat_all)}
        if curve.raters is not None:
            lines[RATER] = curve.raters.net_benefit
        for who, band in lines.items():
            rows.append(_columns(curve.thresholds, band, name=name, who=who))
    base, colour, params = _base(alt, rows, curves)
    mark = (
        alt.Chart(alt.Data(values=[{"one": 1}]))
        .transform_calculate(x="at")
        .mark_rule(color=SERIES[1], strokeWidth=1.5)
        .encode(x=alt.X("x:Q", scale=_unit(alt), title="Threshold: act from this probability"))
    )
    at = alt.param(name="at", value=start)
    chart = alt.layer(*_net_benefit(alt, base, rows, colour), mark)
    return compiled(chart.add_params(at, *params).properties(width="container", height=280))


def decisions(models: Mapping[str, DecisionCurve]) -> Spec:
    """Return the net benefit of several models against the threshold, beside a rater's."""
    alt = altair()
    rows: Rows = []
    for name, curve in models.items():
        rows.append(_columns(curve.thresholds, curve.model.net_benefit, name=name, who=name))
    first = next(iter(models.values()))
    others = {ALL: _plain(first.treat_all)}
    if first.raters is not None:
        others = {RATER: first.raters.net_benefit, **others}
    for who, band in others.items():
        rows.append(_columns(first.thresholds, band, name=who, who=who))
    if len(models) > MOST_BANDS:  # they could not be told apart
        rows = [{**row, "low": [], "high": []} for row in rows]
    colours = [SERIES[i % len(SERIES)] for i in range(len(models))]
    colours += [INK if who == RATER else FAINT for who in others]
    names = [*models, *others]
    columns = 1 if any(len(name) > LONG for name in names) else 4
    colour = alt.Color(
        "who:N", sort=None, scale=alt.Scale(domain=names, range=colours),
        legend=alt.Legend(title=None, symbolType="circle", columns=columns),
    )  # fmt: skip
    base = _flat(alt.Chart(alt.Data(values=rows)), rows)
    chart = alt.layer(*_net_benefit(alt, base, rows, colour))
    return compiled(chart.properties(width="container", height=300))


def _net_benefit(alt: Any, base: Any, rows: Rows, colour: Any) -> list[Any]:
    """Return the layers of net benefits: acting on nobody, bands, lines, and what is pointed at."""
    ends = (end for row in rows for column in ("y", "high") for end in row[column])
    highest = max((end for end in ends if end is not None), default=0.0)
    top = max(1.05 * highest, 0.01)
    x = alt.X("x:Q", title="Threshold: act from this probability", scale=_unit(alt),
              axis=percent_axis(alt))  # fmt: skip
    # Below the frame acting harms more than it helps, however much.
    scale = alt.Scale(domain=[-top / 4, top])
    title = "Net benefit"
    y = alt.Y("y:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))
    tips = [
        alt.Tooltip("who:N", title="acting on"),
        alt.Tooltip("x:Q", title="from", format=".0%"),
        alt.Tooltip("y:Q", title="net benefit", format=".3f"),
        alt.Tooltip("interval:N"),
    ]
    band = base.transform_filter("isValid(datum.low)").mark_area(fillOpacity=0.18, clip=True)
    line = base.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=colour)
    touch = base.mark_circle(size=90, opacity=0, clip=True).encode(x=x, y=y, tooltip=tips)
    none = alt.Chart(alt.Data(values=[{"y": 0}])).mark_rule(color=FAINT, strokeDash=[5, 4])
    edges = band.encode(x=x, y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q", color=colour)
    return [none.encode(y=alt.Y("y:Q", title=title)), edges, line, touch]


def roc(curves: Mapping[str, DecisionCurve]) -> Spec:
    """Return sensitivity against 1 - specificity, with the threshold `point` and the raters."""
    alt = altair()
    rows: Rows = []
    for name, curve in curves.items():
        # From threshold 0, where every case tests positive, to 1, where next to none does.
        x = np.r_[1, 1 - curve.model.specificity.value, 0]
        found = curve.model.sensitivity
        whole = Band(*(np.r_[1, column, 0] for column in vars(found).values()))
        rows.append(_columns(x, whole, name=name, who=MODEL, t=np.r_[0, curve.thresholds, 1]))
        if curve.raters is not None:
            first = Band(*(v[:1] for v in vars(curve.raters.sensitivity).values()))
            beside = 1 - curve.raters.specificity.value[:1]
            rows.append(_columns(beside, first, name=name, who=RATER, t=[math.nan]))
    base, colour, params = _base(alt, rows, curves)
    titles = "Negatives that test positive", "Positives that test positive"
    axis = percent_axis(alt)
    x = alt.X("x:Q", title=titles[0], scale=_unit(alt), axis=axis)
    y = alt.Y("y:Q", title=titles[1], scale=_unit(alt), axis=axis)
    tips = [
        alt.Tooltip("who:N", title="acting on"),
        alt.Tooltip("from:N"),
        alt.Tooltip("x:Q", title=titles[0], format=".1%"),
        alt.Tooltip("y:Q", title=titles[1], format=".1%"),
        alt.Tooltip("interval:N"),
    ]
    model = base.transform_filter(f"datum.who == '{MODEL}'")
    rater = base.transform_filter(f"datum.who == '{RATER}'")
    line = model.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, order="i:Q")
    touch = model.mark_circle(size=90, opacity=0).encode(x=x, y=y, tooltip=tips)
    whiskers = rater.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5)
    known = whiskers.encode(x=x, y=alt.Y("low:Q", title=titles[1]), y2="high:Q", color=colour)
    dot = rater.mark_point(filled=True, size=110, shape="diamond", opacity=1)
    mark = model.transform_filter("datum.i == point").mark_circle(
        size=140, opacity=1, color=SERIES[1]
    )
    point = alt.param(name="point", value=-1)
    chart = alt.layer(
        diagonal(alt).encode(x=x, y=y), line, touch, known, dot.encode(x=x, y=y, color=colour,
        tooltip=tips), mark.encode(x=x, y=y, tooltip=tips),
    )  # fmt: skip
    return compiled(chart.add_params(point, *params).properties(width="container", height=280))


def outcomes(curves: Mapping[str, DecisionCurve]) -> Spec:
    """Return how the probabilities are distributed over yes and over no."""
    alt = altair()
    rows: Rows = []
    for name, curve in curves.items():
        cut = np.linspace(0, len(curve.positives), BARS + 1).round().astype(int)[:-1]
        for outcome, parts in (("Raters say yes", curve.positives), ("no", curve.negatives)):
            share = np.add.reduceat(parts, cut) / max(float(parts.sum()), 1e-300)
            rows += [
                {"name": name, "outcome": outcome, "from": i / BARS, "to": (i + 1) / BARS,
                 "share": round(float(s), 5)}
                for i, s in enumerate(share)
            ]  # fmt: skip
    params = [alt.param(name="what", value=next(iter(curves)))]
    colour = alt.Color(
        "outcome:N", sort=None, legend=alt.Legend(title=None, symbolType="square"),
        scale=alt.Scale(domain=["Raters say yes", "no"], range=[SERIES[1], SERIES[0]]),
    )  # fmt: skip
    bars = alt.Chart(alt.Data(values=rows)).transform_filter("datum.name == what").mark_rect()
    chart = bars.mark_rect(opacity=0.45).encode(
        x=alt.X("from:Q", title="Probability", scale=_unit(alt),
                axis=percent_axis(alt)),
        x2="to:Q",
        y=alt.Y("share:Q", title="Of these labels", axis=alt.Axis(format=".0%", tickCount=4)),
        y2=alt.datum(0),
        color=colour,
        tooltip=["outcome:N", alt.Tooltip("from:Q", format=".0%"),
                 alt.Tooltip("share:Q", title="of these labels", format=".1%")],
    )  # fmt: skip
    return compiled(chart.add_params(*params).properties(width="container", height=180))


def _base(alt: Any, rows: Rows, curves: Mapping[str, DecisionCurve]) -> tuple[Any, Any, list[Any]]:
    """Return the chart of the curve called `what`, a colour for each `who`, and its parameter."""
    what = alt.param(name="what", value=next(iter(curves)))
    names = [MODEL, RATER, ALL]
    there = [name for name in names if any(row.get("who") == name for row in rows)]
    colours = {MODEL: SERIES[0], RATER: SERIES[2], ALL: FAINT}
    scale = alt.Scale(domain=there, range=[colours[name] for name in there])
    legend = alt.Legend(title=None, symbolType="circle", columns=3)
    colour = alt.Color("who:N", scale=scale, legend=legend, sort=None)
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.name == what")
    return _flat(base, rows), colour, [what]


def _flat(chart: Any, rows: Rows) -> Any:
    """Return a chart of columns, of which all curves have the same, with a row for each point."""
    known = "format(datum.low, '.3f') + ' – ' + format(datum.high, '.3f')"
    made = {"interval": f"isValid(datum.low) ? {known} : 'none'"}
    if "t" in rows[0]:
        made["from"] = "isValid(datum.t) ? format(datum.t, '.0%') : '–'"
    columns = [key for key, column in rows[0].items() if isinstance(column, list)]
    return (
        chart.transform_flatten(columns)
        .transform_filter("isValid(datum.x) && isValid(datum.y)")
        .transform_calculate(**made)
    )


def _unit(alt: Any) -> Any:
    return alt.Scale(domain=[0, 1])


def _plain(values: Any) -> Band:
    nothing = np.full(len(values), np.nan)
    return Band(values, nothing, nothing)


def _columns(x: Any, band: Band, *, name: str, who: str, t: Any = None) -> dict[str, Any]:
    """Return a curve as columns, which are half as long as rows; the chart makes rows of them.

    Thresholds `t`, and the number `i` of each point, are of a curve whose x is something else. A
    column that ends early is filled with nulls there, so that of no interval nothing is written.
    """
    columns = {"x": x, "y": band.value, "low": band.low, "high": band.high}
    shown: dict[str, Any] = {
        "name": name,
        "who": who,
        **{key: [shortened(v, 4) for v in values] for key, values in columns.items()},
    }
    for key in ("low", "high"):
        if all(v is None for v in shown[key]):
            shown[key] = []
    if t is not None:
        shown |= {"i": list(range(len(band.value))), "t": [shortened(v, 4) for v in t]}
    return shown
