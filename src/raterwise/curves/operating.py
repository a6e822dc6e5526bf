"""What acting on a model, or on one more rater, does at every threshold: with intervals by patient.

From tables of sums per resampling unit, so that memory, streams and findings share it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterwise.curves.clinical_tables import Band, DecisionCurve, OperatingPoints
from raterwise.inference.differences import Ends, cautious_correlation, difference_interval
from raterwise.inference.jackknife import Linearised, linearise
from raterwise.inference.measures import Measure
from raterwise.inference.small_samples import proportion_interval
from raterwise.metrics import operating
from raterwise.metrics.operating import Confusion
from raterwise.summaries import BinTable
from raterwise.types import FloatArray

Interval = tuple[float, float]

NONE: Interval = (float("nan"), float("nan"))


def decision_of(measure: Measure, class_names: Sequence[str] | None) -> DecisionCurve | None:
    """Return the curve from the tables of a pass; None where it has none, as of three classes."""
    row, own, pass_ = measure.row, measure.own, measure.pass_
    assert row.curve_plans is not None
    model_plan, rater_plan = row.curve_plans(own)
    kept = pass_.digest.summaries.get(model_plan)
    if kept is None or kept.sums.shape[1] == 0 or not kept.table.weight.sum() > 0:
        return None
    level = pass_.settings.level if pass_.resampled and pass_.units is not None else None
    edges = model_plan.edges
    thresholds = edges[1:-1]
    table = BinTable(kept.sums[:, 0])
    hits, misses = table.positive, table.weight - table.positive
    found, alarms = (np.cumsum(x[:, ::-1], axis=1)[:, ::-1] for x in (hits, misses))
    acted = Confusion(
        found[:, 1:], alarms[:, 1:], found[:, :1] - found[:, 1:], alarms[:, :1] - alarms[:, 1:]
    )
    raters = None
    others = pass_.digest.summaries.get(rater_plan)
    if others is not None and others.table.weight.sum() > 0:
        one = operating.of_raters(BinTable(others.sums[:, 0]))
        raters = Confusion(*(np.broadcast_to(x[:, None], acted[0].shape) for x in one))
    total = table.weight.sum()
    k = 1 if own["positive"] is None else own["positive"]
    name = class_names[k] if class_names else f"class {k}"
    return DecisionCurve(
        name=f"{name} or higher" if own["ordered"] and (own["positive"] or 0) > 0 else name,
        thresholds=thresholds,
        model=_points(acted, thresholds, level),
        raters=None if raters is None else _points(raters, thresholds, level),
        prevalence=float(hits.sum() / total),
        edges=edges,
        positives=hits.sum(axis=0) / total,
        negatives=misses.sum(axis=0) / total,
        level=pass_.settings.level,
    )


def _points(acted: Confusion, thresholds: FloatArray, level: float | None) -> OperatingPoints:
    """Return every measure with its interval; `acted` has a row per unit."""
    tp, fp, fn, tn = acted
    return OperatingPoints(
        sensitivity=_ratio(tp, tp + fn, level),
        specificity=_ratio(tn, tn + fp, level),
        ppv=_ratio(tp, tp + fp, level),
        npv=_ratio(tn, tn + fn, level),
        net_benefit=_net(acted, thresholds, level),
    )


def _ratio(part: FloatArray, whole: FloatArray, level: float | None) -> Band:
    """Return Σ part / Σ whole over the units with the interval of a proportion."""
    above, below = part.sum(axis=0), whole.sum(axis=0)
    there = below > operating.NOTHING * max(below.max(), 1e-300)
    value = np.where(there, above / np.where(there, below, 1), np.nan)
    ends: list[Interval] = []
    for t in range(len(value)):
        if t and above[t] == above[t - 1] and below[t] == below[t - 1]:
            ends.append(ends[-1])  # the same cases: thresholds between two probabilities
            continue
        error = _linearised(part[:, t], whole[:, t]) if level is not None and there[t] else None
        ends.append(NONE if error is None else proportion_interval(error, level or 0.95))
    return _band(value, ends)


def _net(acted: Confusion, thresholds: FloatArray, level: float | None) -> Band:
    """Return the net benefit with its interval, as `net_benefit` has it."""
    total = Confusion(*(x.sum(axis=0) for x in acted))
    value = total.net_benefit(thresholds)
    ends: list[Interval] = []
    shares = None
    for t, odds in enumerate(thresholds / (1 - thresholds)):
        found, wrong = total.true_positive, total.false_positive
        if not t or (found[t], wrong[t]) != (found[t - 1], wrong[t - 1]):
            one = Confusion(*(x[:, t] for x in acted))
            shares = None if level is None else _shares(one, level)
        if shares is None:
            ends.append(NONE)
            continue
        first, (wrong_value, low, high), correlation = shares
        second = odds * wrong_value, odds * low, odds * high
        ends.append(difference_interval(first, second, correlation))
    return _band(value, ends)


def _shares(acted: Confusion, level: float) -> tuple[Ends, Ends, float] | None:
    """Return the parts rightly and wrongly acted on with their intervals, and their correlation.

    That follows from the error of their difference.
    """
    tp, fp, weight = acted.true_positive, acted.false_positive, acted.total
    found, wrong, both = (_linearised(x, weight) for x in (tp, fp, tp - fp))
    if found is None or wrong is None or both is None:
        return None
    shared = cautious_correlation((found.error, wrong.error, both.error), both.worth)
    first, second = ((x.value, *proportion_interval(x, level)) for x in (found, wrong))
    return first, second, shared


def _linearised(part: FloatArray, whole: FloatArray) -> Linearised | None:
    """Return the error of Σ part / Σ whole; None where fewer than two units have a say."""
    if np.count_nonzero(whole > 0) < 2:
        return None
    rest = whole.sum() - whole
    if not (rest[whole > 0] > operating.NOTHING * whole.sum()).all():
        return None
    without = (part.sum() - part) / np.where(rest > 0, rest, 1)
    return linearise(float(part.sum() / whole.sum()), without, whole)


def _band(value: FloatArray, ends: Sequence[Interval]) -> Band:
    low, high = np.array(ends, np.float64).T
    return Band(value, np.minimum(low, value), np.maximum(high, value))
