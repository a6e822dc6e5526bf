"""Before and after a recalibration: what it changed, and whether chance would explain it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raterwise.report import charts
from raterwise.report.markup import Html, el
from raterwise.report.sections import (
    SAY_SO,
    Charts,
    bins_table,
    figure,
    paired_table,
    reliability_curves,
    section,
    value_of,
    verdicts,
)
from raterwise.report.words import bracketed, number, signed
from raterwise.results import Estimate, Results

ROUNDING = 1e-9
"""A change below this is the last digit of a sum."""
TITLE = "What did recalibration change?"
LOOSE = (
    "The two may not be of the same cases in the same resamples, so their differences have no "
    "intervals."
)
PAIRED = (
    "The change is after minus before, on the same cases in the same resamples. Where its interval "
    "includes 0, it may be chance. Changes of calibration errors are also given corrected for "
    "chance, and the interval is for the corrected change."
)


def recalibration(
    models: Mapping[str, Results], differences: Iterable[Any], found: Charts
) -> Html | None:
    """Return the metrics before and after, their paired differences, and both curves.

    `differences` are those of a `compare` of after with before, in that order; or none.
    """
    if set(models) != {"before", "after"}:
        return None
    before, after = models["before"], models["after"]
    pairs = {d.metric: d for d in differences}
    told = el("p", "Means over the findings.", class_="note")
    if not before.findings:
        told = verdicts({"Before": before, "After": after})
    note = el("p", PAIRED if pairs else LOOSE, class_="note")
    rows = [
        _row(e, after[name], pairs.get(name))
        for name, e in before.items()
        if name in after and e.direction != "none"  # else it is of the raters alone
    ]
    head = ("Metric", "Before", "After", "Change")
    wide = paired_table(head, rows, "Metrics before and after", "metrics paired changes")
    return section("recalibration", TITLE, told, _diagram(before, after, found), note, wide)


def _row(before: Estimate, after: Estimate, pair: Any) -> Html:
    """Return one metric: before, after, and the change with its interval where it is paired."""
    change: list[Any] = ["–"]
    if before.value is not None and after.value is not None:
        gap = after.value - before.value if pair is None else pair.difference
        change = [el("strong", signed(gap))]
        if pair is not None:
            change.append(el("small", bracketed(pair).strip()))
            if pair.debiased is not None:
                change.append(el("small", f"corrected {signed(pair.debiased)}"))
            change.append(el("small", _in_words(before.direction, pair)))
    cells = [el("td", value_of(e)) for e in (before, after)]
    better = el("small", f"{before.direction} is better")
    name = el("th", el("span", before.title), better, scope="row")
    return el("tr", name, cells, el("td", change))


def _in_words(direction: str, pair: Any) -> str:
    if abs(pair.difference) < ROUNDING and pair.low <= 0 <= pair.high:
        return "unchanged"
    if pair.low <= 0 <= pair.high:
        return "may be chance"
    return "better" if (pair.high < 0) == (direction == "lower") else "worse"


def _event(name: str) -> str:
    """Return what a curve is of.

    >>> _event("Class: edema"), _event("Positive class")
    ('edema', 'positive class')
    """
    return name.removeprefix("Class: ") if name.startswith("Class: ") else name.lower()


def _diagram(before: Results, after: Results, found: Charts) -> Html | None:
    """Return the curve that the report draws first, before and after, in one diagram."""
    was, now = reliability_curves(before), reliability_curves(after)
    which = next((name for name in was if name in now), None)
    if which is None:
        return None
    curves = {"before": was[which], "after": now[which]}
    top = which == "Predicted class"
    x, y = ("Confidence", "Raters who agree") if top else ("Predicted probability", SAY_SO)
    spec = charts.reliability(curves, x=x, y=y, overlay=True)
    gaps = ", ".join(f"{number(curve.gap)} {name}" for name, curve in curves.items())
    words = f"Reliability diagrams before and after: predicted minus observed is {gaps}."
    chart = found.place("recalibration-chart", spec, words)
    asked = (
        "How sure the model is of its predicted class, and how often the raters agree"
        if top
        else f"Predicted probability of “{_event(which)}”, and how often raters say so"
    )
    caption = f"{asked}, before and after. On the dashed line the two are equal."
    return figure(chart, caption, bins_table(curves))
