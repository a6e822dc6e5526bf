"""What `metric.plot()` draws from tables of sums: reliability diagrams, CCC and ROC curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from raterwise.curves import ReliabilityCurve, ThresholdCurve
from raterwise.errors import UndefinedMetricError
from raterwise.metrics.ranking import CCCCurve, ccc_curve
from raterwise.summaries import BinPlan, BinTable
from raterwise.types import FloatArray


def reliability_diagram(table: BinTable, plan: BinPlan, metric: str, ax: Any) -> Any:
    """Draw what was predicted against what the raters said, a line for each channel; the axes."""
    from raterwise.plots import DisagreementReliabilityDisplay, ReliabilityDisplay

    edges, question = plan.edges, plan.question.name
    names = [question.replace("_", " ")]
    if question in ("per_class", "predicted_class"):
        names = [f"class {k}" for k in range(len(table.weight))]
    kind = DisagreementReliabilityDisplay if question == "disagreement" else ReliabilityDisplay
    seen = [c for c in range(len(names)) if table.weight[c].any()]
    if not seen:
        raise UndefinedMetricError(f"{metric}: undefined, no case was given yet")
    for c in seen:
        display = kind(_curve(table, c, names[c], edges))
        several = len(seen) > 1
        ax = display.plot(ax, name=names[c] if several else None, histogram=not several).ax_
    return ax


def _curve(table: BinTable, c: int, name: str, edges: FloatArray) -> ReliabilityCurve:
    weight = table.weight[c]
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted, observed = table.score[c] / weight, table.positive[c] / weight
    nothing = np.full_like(weight, np.nan)
    gap = float(-table.deviation[c].sum() / weight.sum())
    return ReliabilityCurve(
        name, edges, table.cases[c], weight / weight.sum(), predicted, observed, nothing, nothing,
        0.95, gap, np.nan, np.nan,
    )  # fmt: skip


def ccc_diagram(score: FloatArray, mass: FloatArray, hits: FloatArray, ax: Any) -> Any:
    """Draw the confidence-classification characteristic of cells; the axes."""
    from raterwise.plots import CCCDisplay

    seen = mass > 0
    curve = ccc_curve(score[seen], mass[seen], hits[seen])
    columns = {f.name: getattr(curve, f.name) for f in fields(CCCCurve)}
    whole = ThresholdCurve(**columns, accepted_cases=curve.correct_accepts)
    return CCCDisplay(whole.thinned(), curve.area).plot(ax).ax_


def roc_diagram(mass: FloatArray, hits: FloatArray, names: Sequence[str], ax: Any) -> Any:
    """Draw a ROC curve for each row of masses in rising order of the score; the axes."""
    from raterwise.plots import style

    with style.journal_style():
        ax = style.axes(ax)
        style.identity(ax)
        for name, m, h in zip(names, mass, hits, strict=True):
            right, wrong = np.cumsum(h[::-1]), np.cumsum((m - h)[::-1])
            if right[-1] > 0 and wrong[-1] > 0:
                x, y = (np.concatenate(([0.0], r / r[-1])) for r in (wrong, right))
                line = ax.plot(x, y, color=style.colour_of(ax, None), label=name)[0]
                line.set_gid("series")
        style.tidy(ax, x="False positive rate", y="True positive rate", unit_square=True)
        ax.legend(loc="lower right", frameon=False)
    return ax
