"""The section on confidence: what accepting the confident predictions would cost."""

from __future__ import annotations

import math

import numpy as np

from raterwise.curves import ThresholdCurve
from raterwise.report import charts
from raterwise.report.markup import Html, data_table, el
from raterwise.report.sections import Charts, behind, figure, section
from raterwise.report.words import number, percent, shaded, span, unit_of
from raterwise.results import Results

TABLE_ROWS = 20
"""How many points of a threshold curve the table behind the chart shows."""
START = 0.5
"""Where the slider of the threshold stands at first, if some case has that confidence."""


def acceptance(results: Results, found: Charts) -> Html | None:
    """Return the CCC and the risk-coverage curve with a threshold to move."""
    content = results.curves.get("thresholds")
    if content is None:
        return None
    curve = ThresholdCurve.from_dict(content)
    if not has_both(curve):
        return None
    low, high, step, start = _scale(curve)
    counted, unit = float(curve.accepted_cases[-1]), f"{unit_of(results.data)}s"
    found.thresholds = {
        **curve.to_dict(), "cases": counted, "unit": unit, "of_shares": curve.of_shares
    }  # fmt: skip
    shown = percent(start) if curve.of_shares else charts.accept_from(curve, start)
    rows = "ratings" if results.data["raters"]["max"] > 1 else unit
    slider = el(
        "p",
        el("label", "Accept predictions with a confidence of at least ", for_="threshold"),
        el("output", shown, id="threshold-value", for_="threshold"),
        el("input", type="range", id="threshold", min=low, max=high, step=step, value=start),
        class_="control",
    )
    sentence = el("p", id="operating-point", aria_live="polite")
    title = "Does it know when it is wrong?"
    drawn = _threshold_charts(results, curve, found)
    told, table = _elsewhere(results), behind(_threshold_table(curve), "these charts")
    return section("thresholds", title, told, slider, sentence, _confusion(rows), drawn, table)


def _scale(curve: ThresholdCurve) -> tuple[float, float, float, float]:
    """Return from where to where the slider goes, its step, and where it stands at first."""
    finite = curve.thresholds[np.isfinite(curve.thresholds)]
    low, high = float(finite.min()), float(finite.max())
    if curve.of_shares:
        low, high = math.floor(low * 100) / 100, math.floor(high * 100) / 100
        return low, high, 0.01, START if low <= START <= high else low
    return low, high, (high - low) / 200 or 1.0, float(finite[len(finite) // 2])


def _elsewhere(results: Results) -> Html | None:
    """Return what is to say of cases from elsewhere, where there are some."""
    number_of = results.data.get("outside")
    if not number_of:
        return None
    inside, e = _inside_curve(results), results.get("io_auroc")
    words = (
        f"The {unit_of(results.data)}s below include {number_of:,} from elsewhere. Whatever was "
        "predicted for these is wrong, and counts once."
    )
    whole = results.get("auccc")
    if inside is not None and whole is not None:
        words += f" The AUCCC is {number(whole.value)} with them and {number(inside.area)} without."
    if e is not None and e.value is not None:
        words += (
            f" Confidence tells them from the others in {percent(e.value)}"
            f"{span(e.low, e.high)} of pairs (in/out AUROC)."
        )
    return el("p", words)


def _inside_curve(results: Results) -> ThresholdCurve | None:
    """Return the curve of the test set alone, where there are cases from elsewhere."""
    content = results.curves.get("thresholds_inside")
    curve = None if content is None else ThresholdCurve.from_dict(content)
    return curve if curve is not None and has_both(curve) else None


def _confusion(unit: str) -> Html:
    """Return the table of what is accepted and right; the page's script fills it in."""
    return el(
        "table",
        el("caption", f"At this threshold, in {unit}"),
        el("thead", el("tr", el("td"), el("th", "Prediction right", scope="col"),
                       el("th", "Prediction wrong", scope="col"))),
        el("tbody",
           el("tr", el("th", "Accepted", scope="row"), el("td", id="correct_accepts"),
              el("td", id="incorrect_accepts")),
           el("tr", el("th", "Rejected", scope="row"), el("td", id="incorrect_rejects"),
              el("td", id="correct_rejects"))),
        class_="confusion", id="confusion",
    )  # fmt: skip


def _threshold_charts(results: Results, curve: ThresholdCurve, found: Charts) -> Html:
    band = shaded(results, drawn=curve.risk_low is not None)
    inside = _inside_curve(results)
    curves = {"": curve}
    if inside is not None:
        curves = {"with cases from elsewhere": curve, "without": inside}
    return el(
        "div",
        figure(
            found.place(
                "ccc-chart", charts.ccc(curves, marked=True), f"CCC curve: {_area(results)}"
            ),
            "Confidence-classification characteristic (CCC): the share of right predictions "
            "accepted, against the share of wrong ones that slip through. The dashed line is "
            f"guessing.{band}",
        ),
        figure(
            found.place(
                "risk-chart",
                charts.risk_coverage(curves, marked=True),
                f"Risk-coverage curve: accepting everything, {percent(curve.risk[-1])} is wrong.",
            ),
            f"Risk and coverage: how many of the accepted predictions are wrong.{band}",
        ),
        class_="pair",
    )


def has_both(curve: ThresholdCurve) -> bool:
    """Tell whether some predictions are right and some wrong: otherwise there is no CCC."""
    return bool(curve.incorrect_accepts[-1] > 0 and curve.correct_accepts[-1] > 0)


def _area(results: Results) -> str:
    e = results.get("auccc")
    return "" if e is None or e.value is None else f"the area under it is {number(e.value)}."


def _risk_span(curve: ThresholdCurve, i: int) -> str:
    if curve.risk_low is None or curve.risk_high is None:
        return ""
    return span(float(curve.risk_low[i]), float(curve.risk_high[i]))


def _threshold_table(curve: ThresholdCurve) -> Html:
    chosen = np.unique(np.linspace(1, len(curve.thresholds) - 1, TABLE_ROWS).astype(int))
    rows = [
        (charts.accept_from(curve, curve.thresholds[i]), f"{curve.accepted_cases[i]:g}",
         f"{curve.correct_accepts[i]:g}", f"{curve.incorrect_accepts[i]:g}",
         f"{curve.incorrect_rejects[i]:g}", f"{curve.correct_rejects[i]:g}",
         f"{percent(curve.risk[i])}{_risk_span(curve, int(i))}")
        for i in chosen
    ]  # fmt: skip
    header = ("Accept from", "Cases accepted", "Accepted, right", "Accepted, wrong",
              "Rejected, right", "Rejected, wrong", "Accepted ones wrong")  # fmt: skip
    return data_table(header, rows, "Counts at some of the thresholds")
