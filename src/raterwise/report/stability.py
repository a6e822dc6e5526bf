"""The section on stability: the metrics on parts of the test set, and how far they move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raterwise.report.charts import Spec, altair, colour_of, compiled, log_axis
from raterwise.report.markup import Html, data_table, el
from raterwise.report.references import PAPERS
from raterwise.report.sections import Charts, behind, section
from raterwise.report.words import number


def stability(
    curves: Mapping[str, Any] | None,
    variation: Mapping[str, Any] | None,
    found: Charts,
    *,
    findings: bool = False,
) -> Html | None:
    """Return the metrics against the size of the test set, and their total variation.

    RECE Fig 2; MR Fig 3 and Table 1. Of `findings`, the means over them.
    """
    if not curves:
        return None
    unit = next(iter(curves.values())).unit
    rows = [
        # What all cases differ by, in another order, is the last digit of their sums.
        (name, f"{size:,}", number(float(mean), 4), number(round(float(std), 12), 4))
        for name, curve in curves.items()
        for size, mean, std in zip(curve.sizes, curve.mean, curve.std, strict=True)
    ]
    header = ("Metric", unit.capitalize(), "Mean", "Standard deviation")
    table = data_table(header, rows, f"Subsets of the {unit}")
    caption = (
        f"Each metric on random subsets of the {unit}, as mean ± standard deviation. A curve that "
        f"still falls at its right end says that the figure would be smaller with more {unit}."
    )
    caption += " Values are means over the findings." if findings else ""
    panels = panels_of(curves)
    drawn = []
    for i, (title, part) in enumerate(panels.items()):
        words = "Metrics on random subsets of growing size: " + "; ".join(
            f"{name} {number(curve.full)} on all {unit}" for name, curve in part.items()
        )
        place = "stability-chart" if i == 0 else f"stability-chart-{i + 1}"
        chart = found.place(place, drawn_curves(part, _highest(curves)), f"{title}{words}.")
        drawn.append(el("figure", el("h3", title) if title else None, chart))
    shown = el("div", drawn, class_="pair") if len(drawn) > 1 else drawn[0]
    these = "these charts" if len(drawn) > 1 else "this chart"
    return section(
        "stability", f"Would fewer {unit} give the same figures?", shown,
        el("p", caption, class_="note"), behind(table, these), _total_variation(curves, variation),
    )  # fmt: skip


def _highest(curves: Mapping[str, Any]) -> float:
    """Return the top of the axis that all panels share."""
    ends = [np.nanmax(curve.mean + np.nan_to_num(curve.std)) for curve in curves.values()]
    return float(np.nanmax(ends))


def _total_variation(
    curves: Mapping[str, Any], variation: Mapping[str, Any] | None
) -> list[Html] | None:
    if not variation:
        return None
    rows = [
        (name, number(curves[name].full), f"{number(v.mean, 4)} ± {number(v.std, 4)}")
        for name, v in variation.items()
    ]
    text = (
        "Total variation: how far a metric moves, on average, when a twentieth of the test set is "
        "taken away. A small value means that the figure depends little on which cases were "
        f"collected. After {PAPERS['MR']}"
    )
    header = ("Metric", "All cases", "Total variation")
    return [data_table(header, rows, "Total variation"), el("p", text, class_="note small")]


def panels_of(curves: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return curves in a panel for every rater and one for a single rater, where both are there.

    Their names end in what the panels are called; otherwise one panel without a name has all.

    >>> list(panels_of({"ECE, every rater": 0, "ECE, one rater": 1})["One rater per case"])
    ['ECE']
    """
    ends = {", every rater": "Every rater", ", one rater": "One rater per case"}
    found: dict[str, dict[str, Any]] = {title: {} for title in ends.values()}
    for name, curve in curves.items():
        for end, title in ends.items():
            if name.endswith(end):
                found[title][name.removesuffix(end)] = curve
    whole = sum(map(len, found.values())) == len(curves) and all(found.values())
    return found if whole else {"": dict(curves)}


def drawn_curves(curves: Mapping[str, Any], highest: float) -> Spec:
    """Return metrics against the size of the test set (RECE Fig 2, MR Fig 3).

    `highest` is the top of the axis, which panels share.
    """
    alt = altair()
    rows = [
        {"name": name, "cases": int(n), "mean": float(m), "low": float(m - s), "high": float(m + s)}
        for name, curve in curves.items()
        for n, m, s in zip(curve.sizes, curve.mean, curve.std, strict=True)
        if np.isfinite(m)
    ]
    base = alt.Chart(alt.Data(values=rows))
    colour = colour_of(alt, list(curves))
    unit = next(iter(curves.values())).unit.capitalize()
    sizes = (int(size) for curve in curves.values() for size in curve.sizes)
    x = log_axis(alt, f"{unit} in the subset", sizes)
    lowest = min(float(np.nanmin(curve.mean - curve.std)) for curve in curves.values())
    scale = alt.Scale(domain=[min(lowest, 0.0), 1.05 * highest or 1.0])
    title = "Mean ± standard deviation"
    band = base.mark_area(fillOpacity=0.2).encode(
        x=x, y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q", color=colour
    )
    tips = ["name:N", "cases:Q", alt.Tooltip("mean:Q", format=".3f")]
    line = base.mark_line(point=True, strokeWidth=2).encode(
        x=x, y=alt.Y("mean:Q", title=title, scale=scale), color=colour, tooltip=tips
    )
    return compiled(alt.layer(band, line).properties(width="container", height=280))
