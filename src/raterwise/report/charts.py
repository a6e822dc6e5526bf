"""The charts of a report, as Vega specifications written with Altair.

Colours are the page's CSS variables: a chart turns dark with the page, and light when printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from raterwise.curves import ReliabilityCurve, ThresholdCurve
from raterwise.curves.smooth import CalibrationCurve
from raterwise.errors import missing_extra
from raterwise.results import Results

Spec = dict[str, Any]
Rows = list[dict[str, Any]]

INK, FAINT, GRID = "var(--ink)", "var(--faint)", "var(--line)"
SERIES = tuple(f"var(--series-{i + 1})" for i in range(6))
LONG = 20
"""Letters of a name from which on each has a line of the legend to itself."""
MOST_BANDS = 3
"""Of how many curves in one chart the bands can be told apart."""
GUTTER = 46
"""Pixels left of every plot, so that charts above one another line up."""

CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "tickColor": FAINT,
        "domainColor": FAINT,
        "gridColor": GRID,
        "gridOpacity": 1,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "axisY": {"minExtent": GUTTER, "maxExtent": GUTTER, "domain": False, "ticks": False},
    "axisX": {"grid": False},
    "legend": {"labelColor": INK, "titleColor": INK, "orient": "top", "title": None,
               "labelFontSize": 12, "labelLimit": 260, "columns": 2},
}  # fmt: skip


def altair() -> Any:
    """Return altair, or say how to install it."""
    try:
        import altair as alt
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise missing_extra("a report needs altair and vl-convert-python", "report") from error
    return alt


def compiled(chart: Any) -> Spec:
    """Return the chart as a Vega specification: what the browser needs no compiler for."""
    import vl_convert

    spec = chart.properties(autosize={"type": "fit-x", "contains": "padding"}).to_dict()
    spec["config"] = CONFIG
    vega: Spec = vl_convert.vegalite_to_vega(spec)
    return vega


def reliability(
    curves: Mapping[str, ReliabilityCurve],
    *,
    x: str,
    y: str,
    overlay: bool,
    smooth: Mapping[str, CalibrationCurve] | None = None,
) -> Spec:
    """Return a reliability diagram of the curve called by the parameter `what`, or of all.

    A smooth curve with its band lies under the bins of the same name.
    """
    alt = altair()
    rows = [row for name, curve in curves.items() for row in _bins(name, curve)]
    names = list(curves)
    colour = colour_of(alt, names) if overlay else alt.value(SERIES[0])
    ideal = diagonal(alt).encode(x="x:Q", y="y:Q")
    base = alt.Chart(alt.Data(values=rows))
    what = alt.param(name="what", value=names[0])
    if not overlay:
        base = base.transform_filter("datum.name == what")
    percents = alt.Scale(domain=[0, 1])
    across = alt.X("predicted:Q", title=x, scale=percents, axis=percent_axis(alt))
    tips = [
        alt.Tooltip("name:N", title="curve"),
        alt.Tooltip("predicted:Q", format=".1%"),
        alt.Tooltip("observed:Q", format=".1%"),
        alt.Tooltip("interval:N"),
        alt.Tooltip("cases:Q"),
    ]
    up = alt.Y("observed:Q", title=y, scale=percents, axis=percent_axis(alt))
    line = base.mark_line(strokeWidth=1.5, opacity=0.55).encode(x=across, y=up, color=colour)
    whiskers = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5)
        .encode(x=across, y=alt.Y("low:Q", title=y), y2="high:Q", color=colour)
    )
    dots = base.mark_circle(size=70, opacity=1).encode(x=across, y=up, color=colour, tooltip=tips)
    return compiled(
        alt.layer(ideal, *_smoothed(alt, smooth or {}, across, y), line, whiskers, dots)
        .add_params(what)
        .properties(width="container", height=360)
    )


def _smoothed(alt: Any, smooth: Mapping[str, CalibrationCurve], across: Any, y: str) -> list[Any]:
    """Return the layers of smooth curves: the band, and the curve."""
    rows = [
        {"name": name, "predicted": float(p), "observed": float(o),
         "low": float(low) if np.isfinite(low) else None,
         "high": float(high) if np.isfinite(high) else None}
        for name, curve in smooth.items()
        for p, o, low, high in zip(
            curve.predicted, curve.observed, curve.low, curve.high, strict=True
        )
        if np.isfinite(o)
    ]  # fmt: skip
    if not rows:
        return []
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.name == what")
    band = base.transform_filter("isValid(datum.low)").mark_area(
        color=FAINT, opacity=0.18, clip=True
    )
    curve = base.mark_line(color=INK, opacity=0.55, strokeWidth=1.5, clip=True)
    return [
        band.encode(x=across, y=alt.Y("low:Q", title=y), y2="high:Q"),
        curve.encode(x=across, y=alt.Y("observed:Q", title=y)),
    ]


def counts(curves: Mapping[str, ReliabilityCurve], unit: str = "cases") -> Spec:
    """Return a histogram of the cases of the curve called by the parameter `what`."""
    alt = altair()
    shown = ("name", "from", "to", "range", "cases")
    rows = [
        {key: row[key] for key in shown}
        for name, curve in curves.items()
        for row in _bins(name, curve)
    ]
    # 0, not 0k, below 200k.
    plain = "datum.value == 0 ? '0' : datum.label"
    axis = alt.Axis(tickCount=2, format="~s", labelExpr=plain)
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.name == what")
    bars = base.mark_rect(opacity=0.45, color=SERIES[0], stroke="var(--page)").encode(
        x=alt.X("from:Q", scale=alt.Scale(domain=[0, 1]), axis=None),
        x2="to:Q",
        y=alt.Y("cases:Q", title=unit.capitalize(), axis=axis),
        y2=alt.value(64),
        tooltip=[alt.Tooltip("range:N", title="predicted"), alt.Tooltip("cases:Q", title=unit)],
    )
    what = alt.param(name="what", value=next(iter(curves)))
    return compiled(bars.add_params(what).properties(width="container", height=64))


def ccc(curves: Mapping[str, ThresholdCurve], *, marked: bool = False) -> Spec:
    """Return the CCC of one model, or of several, with an operating point on the first.

    Of several the point is there only if that is `marked`.
    """
    rows: Rows = []
    for name, c in curves.items():
        accepted = 1 - c.correct_reject_rate, c.correct_accept_rate
        rows += _steps(name, c, *accepted, c.rate_low, c.rate_high)
    titles = "Wrong predictions accepted", "Right predictions accepted"
    return _with_operating_point(rows, list(curves), titles, marked, guessing=True)


def risk_coverage(curves: Mapping[str, ThresholdCurve], *, marked: bool = False) -> Spec:
    """Return risk against coverage, with an operating point as in `ccc`."""
    rows: Rows = []
    for name, c in curves.items():
        rows += _steps(name, c, c.coverage, c.risk, c.risk_low, c.risk_high)
    titles = "Predictions accepted", "Of these, wrong"
    return _with_operating_point(rows, list(curves), titles, marked)


def _with_operating_point(
    rows: Rows,
    names: Sequence[str],
    titles: tuple[str, str],
    marked: bool,
    guessing: bool = False,
) -> Spec:
    alt = altair()
    several = len(names) > 1
    colour = colour_of(alt, names) if several else alt.value(SERIES[0])
    domain = alt.Scale(domain=[0, 1])
    x = alt.X("x:Q", title=titles[0], scale=domain, axis=percent_axis(alt))
    # A fixed domain: a layer that is empty for a moment has no extent of its own.
    highest = max(*(row["y"] for row in rows), *(row["high"] or 0 for row in _settled(rows)), 0)
    top = 1.0 if guessing else min(1.0, 1.05 * highest) or 1.0
    y = alt.Y("y:Q", title=titles[1], scale=alt.Scale(domain=[0, top]), axis=percent_axis(alt))
    tips = [alt.Tooltip("name:N", title="model")] if several else []
    tips += [
        alt.Tooltip("from:N", title="accept from"),
        alt.Tooltip("x:Q", title=titles[0], format=".1%"),
        alt.Tooltip("y:Q", title=titles[1], format=".1%"),
        alt.Tooltip("interval:N"),
    ]
    base = alt.Chart(alt.Data(values=rows))
    line = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, order="i:Q")
    touch = base.mark_circle(size=120, opacity=0).encode(x=x, y=y, tooltip=tips)
    layers = [line, touch]
    if len(names) <= MOST_BANDS and any(row["low"] is not None for row in rows):
        # Clipped: a few cases alone have an interval that would dwarf the rest of the curve.
        band = base.transform_filter("isValid(datum.low)").mark_area(fillOpacity=0.18, clip=True)
        edges = {"y": alt.Y("low:Q", title=titles[1]), "y2": "high:Q"}
        layers = [band.encode(x=x, color=colour, **edges), *layers]
    if guessing:
        layers = [diagonal(alt).encode(x=x, y=y), *layers]
    point = alt.param(name="point", value=-1)
    if marked or not several:
        first = alt.Chart(alt.Data(values=[row for row in rows if row["name"] == names[0]]))
        mark = first.transform_filter("datum.i == point").mark_circle(
            size=140, opacity=1, color=SERIES[2 if several else 1]
        )
        layers.append(mark.encode(x=x, y=y, tooltip=tips))
    chart = alt.layer(*layers).add_params(point)
    return compiled(chart.properties(width="container", height=280))


def calibration_dispersion(models: Mapping[str, Results]) -> Spec:
    """Return the calibration-dispersion map of several models (LH Fig 5)."""
    alt = altair()
    rows = [_losses(name, results) for name, results in models.items()]
    base = alt.Chart(alt.Data(values=rows))
    colour = colour_of(alt, list(models))
    few, free = alt.Axis(tickCount=5), alt.Scale(zero=False, nice=True)
    wide = alt.Axis(tickCount=5, maxExtent=80)  # small losses have long labels
    x = alt.X("dispersion:Q", title="Dispersion loss", scale=free, axis=few)
    y = alt.Y("calibration:Q", title="Calibration loss", scale=free, axis=wide)
    tips = [
        alt.Tooltip("name:N", title="model"),
        alt.Tooltip("calibration:Q", format=".4f"),
        alt.Tooltip("dispersion:Q", format=".4f"),
        alt.Tooltip("epistemic:Q", format=".4f"),
    ]
    across = base.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("dispersion_low:Q", title="Dispersion loss"), x2="dispersion_high:Q", y=y,
        color=colour,
    )  # fmt: skip
    upwards = base.mark_rule(strokeWidth=1.5).encode(
        x=x, y=alt.Y("calibration_low:Q", title="Calibration loss"), y2="calibration_high:Q",
        color=colour,
    )  # fmt: skip
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=x, y=y, color=colour, shape=alt.Shape("name:N", sort=None, legend=None), tooltip=tips
    )
    known = all(end is not None for row in rows for end in row.values())
    layers = [across, upwards, dots] if known else [dots]
    lines = alt.Chart(alt.Data(values=_equal_sums(rows))).mark_line(
        color=FAINT, strokeWidth=1, opacity=0.6, clip=True
    )
    contours = lines.encode(x="x:Q", y="y:Q", detail="total:N")
    return compiled(alt.layer(contours, *layers).properties(width="container", height=280))


def diagonal(alt: Any) -> Any:
    """Return the dashed line from corner to corner, to be given its axes."""
    ends = alt.Data(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])
    return alt.Chart(ends).mark_line(color=FAINT, strokeDash=[5, 4], strokeWidth=1)


def percent_axis(alt: Any) -> Any:
    """Return an axis of percentages."""
    return alt.Axis(format=".0%", tickCount=5)


def log_axis(alt: Any, title: str, sizes: Iterable[int]) -> Any:
    """Return the axis of the column `cases`, with a mark at each size."""
    marks = alt.Axis(values=sorted(set(sizes)), format="d", labelOverlap="greedy")
    return alt.X("cases:Q", title=title, scale=alt.Scale(type="log", nice=False), axis=marks)


def colour_of(alt: Any, names: Sequence[str]) -> Any:
    """Return the colour of each name, with a legend where there are several."""
    columns = 1 if max(map(len, names), default=0) > LONG else 2  # a phone is narrow
    legend = None
    if len(names) > 1:
        legend = alt.Legend(title=None, symbolType="circle", columns=columns)
    colours = [SERIES[i % len(SERIES)] for i in range(len(names))]
    return alt.Color(
        "name:N", scale=alt.Scale(domain=list(names), range=colours), legend=legend, sort=None
    )


def _bins(name: str, curve: ReliabilityCurve) -> Rows:
    rows = []
    for b in np.flatnonzero(curve.cases > 0):
        low, high = float(curve.low[b]), float(curve.high[b])
        known = not math.isnan(low)
        rows.append(
            {
                "name": name,
                "from": shortened(curve.edges[b]),
                "to": shortened(curve.edges[b + 1]),
                "range": f"{curve.edges[b]:.0%} – {curve.edges[b + 1]:.0%}",
                "predicted": shortened(curve.predicted[b]),
                "observed": shortened(curve.observed[b]),
                "low": shortened(low),
                "high": shortened(high),
                "interval": f"{low:.1%} – {high:.1%}" if known else "none",
                "cases": float(curve.cases[b]),
            }
        )
    return rows


def shortened(value: float, digits: int = 5) -> float | None:
    """Return as many digits as a drawing can show: fourteen findings have many bins."""
    return None if math.isnan(value) else round(float(value), digits)


def _steps(name: str, curve: ThresholdCurve, x: Any, y: Any, low: Any, high: Any) -> Rows:
    """Return a row for each threshold at which there is a y."""
    rows: Rows = []
    for i, t in enumerate(curve.thresholds):
        if math.isnan(y[i]):
            continue
        known = low is not None and np.isfinite(low[i])
        rows.append(
            {
                "x": float(x[i]),
                "y": float(y[i]),
                "name": name,
                "i": i,
                "from": "nothing" if math.isinf(t) else accept_from(curve, float(t)),
                "low": float(low[i]) if known else None,
                "high": float(high[i]) if known else None,
                "interval": f"{low[i]:.1%} – {high[i]:.1%}" if known else "none",
            }
        )
    return rows


def accept_from(curve: ThresholdCurve, threshold: float) -> str:
    """Return a threshold in words: a percentage where confidences are probabilities."""
    return f"{threshold:.1%}" if curve.of_shares else f"{threshold:.3g}"


def _settled(rows: Rows) -> Rows:
    """Return the points at which at least a tenth is accepted, or all if there are none."""
    return [row for row in rows if row["x"] >= 0.1] or rows


def _losses(name: str, results: Results) -> dict[str, Any]:
    calibration, dispersion = results["calibration_loss"], results["dispersion_loss"]
    assert calibration.value is not None and dispersion.value is not None
    return {
        "name": name,
        "calibration": calibration.value,
        "calibration_low": calibration.low,
        "calibration_high": calibration.high,
        "dispersion": dispersion.value,
        "dispersion_low": dispersion.low,
        "dispersion_high": dispersion.high,
        "epistemic": calibration.value + dispersion.value,
    }


def _equal_sums(rows: Rows) -> Rows:
    """Return the ends of lines of equal epistemic loss that cross the models' part of the map."""
    x = [row[k] for row in rows for k in row if k.startswith("dispersion") and row[k] is not None]
    y = [row[k] for row in rows for k in row if k.startswith("calibration") and row[k] is not None]
    left, right, bottom, top = min(x), max(x), min(y), max(y)
    found: Rows = []
    for total in np.linspace(left + bottom, right + top, 6)[1:-1]:
        # Each line ends at the frame of the models, so that it never widens the axes.
        for at in (max(left, total - top), min(right, total - bottom)):
            found.append({"x": float(at), "y": float(total - at), "total": f"{total:.4f}"})
    return found
