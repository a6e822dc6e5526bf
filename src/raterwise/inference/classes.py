"""The interval of a mean over classes, or findings, of which some have few cases.

The classes of a test set have very different numbers of cases. One with two positives, both found,
adds nothing to the error of the mean sensitivity, and of one with a single case nothing is known:
leaving it out changes which classes count. So each class has an interval of its own.

Everything takes numbers and returns numbers; nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from raterwise.errors import UndefinedMetricError
from raterwise.inference.jackknife import (
    Ends,
    Linearised,
    linearise,
    normal_quantile,
    student_quantile,
)
from raterwise.inference.measures import Measure
from raterwise.inference.small_samples import (
    loss_interval,
    proportion_interval,
    ratio_interval,
    separation_interval,
)
from raterwise.summaries import BinTable
from raterwise.types import FloatArray

MORE_THAN_SEEN = 2.0
"""How many times the positives there are an average precision may be as sure as at most."""
OF_ONE = 0.5
"""The part of the average precision of a single positive that is taken for this one's own."""
OF_FEW = 1.5
"""By how much leaving out one unit shows too little of that where positives are few."""
SHAPES = ("proportion", "separation", "ratio")
"""Of intervals of metrics of a class, whose mean is that of all classes."""
FEW = 5.0
"""The same of a ratio, whose classes make up for each other: what one has, another lacks."""
MANY = 100.0
"""Where every value of a class is a share of so many labels, the error of the mean is enough."""


def rests_on_few(measures: Sequence[Measure]) -> bool:
    """Tell whether a metric is the mean of shares or areas, one of which rests on few labels.

    The mean over classes of one pass, or over findings of several.
    """
    row, question = measures[0].row, getattr(measures[0].plan, "question", None)
    if row.shape not in SHAPES or getattr(question, "name", "") != "event":
        return False
    parts = [(measure, k) for measure in measures for k in range(measure.channels)]
    if len(parts) == 1:
        return False
    number = np.array([_number(*part) for part in parts])
    if row.shape == "ratio":  # of none of which any was seen it is 0, and counts
        return bool(number.min() < FEW)
    return bool(number[number > 0].min(initial=np.inf) < MANY)


def _number(measure: Measure, k: int) -> float:
    """Return how many labels a class's value rests on."""
    if measure.row.denominator is not None:
        return float(_sizes(measure, k).sum())
    one = BinTable(measure.table.sums[k : k + 1])
    positive, all_ = float(one.positive.sum()), float(one.weight.sum())
    alone = measure.row.counts_positives or measure.row.shape == "ratio"
    return positive if alone else min(positive, all_ - positive)  # a finding may have few negatives


def _sizes(measure: Measure, k: int) -> FloatArray:
    """Return how much each unit has of what a class's value is a share of."""
    assert measure.row.denominator is not None
    one = BinTable(measure.cells.sums[:, k : k + 1])
    return np.asarray(measure.row.denominator(one, measure.own), dtype=np.float64)


def mean_of_parts(value: float, measures: Sequence[Measure]) -> Ends:
    """Return the interval of a mean over m classes or findings from those of each (Zou 2007).

        value - sqrt(Σ (θ_k - l_k)²) / m   to   value + sqrt(Σ (u_k - θ_k)²) / m

    with the interval (l_k, u_k) of class k by itself: all that it can be, 0 to 1, where it is a
    share that rests on a single case or patient. It is about the classes that have a value. What
    goes together in several classes, as it does in patients, is not in it: the error of the mean
    itself is. By how much average precisions are `too_high` adds up; the low end is lower by that.

    References
    ----------
    Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12,
    399-413. Donner and Zou (2002), Interval estimation for a difference between intraclass kappa
    statistics, Biometrics 58, 209-215.
    """
    each = [part for measure in measures for part in _parts(measure)]
    below = math.sqrt(sum((at - low) ** 2 for at, low, _, _ in each))
    above = math.sqrt(sum((high - at) ** 2 for at, _, high, _ in each))
    over = sum(over for *_, over in each)
    return value - (over + below) / len(each), value + above / len(each)


def _parts(measure: Measure) -> Iterator[tuple[float, float, float, float]]:
    """Yield the value of each class that has one, its ends, and by how much it is too high."""
    at = _of_each(measure, measure.table)
    without = np.concatenate([_of_each(measure, table) for table in measure.rests()])
    for k in np.flatnonzero(np.isfinite(at)):
        value = float(at[k])
        found = _without_units(measure, int(k), value, without[:, k])
        over = too_high(value, found) if measure.row.counts_positives else 0.0
        yield value, *_of_class(measure, int(k), value, found), over


def _of_each(measure: Measure, table: BinTable) -> FloatArray:
    """Return the metric of each class by itself, in the last axis."""
    each = [slice(k, k + 1) for k in range(table.sums.shape[-3])]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [measure.over(type(table)(table.sums[..., one, :, :])) for one in each]
    return np.stack(found, axis=-1)


def _masses(measure: Measure, k: int) -> tuple[FloatArray, FloatArray]:
    """Return how much each unit has of a class, and in all."""
    shape, by_cell = measure.table.weight.shape, measure.cells.by_cell
    return by_cell.by_channel(4, *shape)[:, k], by_cell.by_channel(1, *shape)[:, k]


def _without_units(
    measure: Measure, k: int, value: float, without: FloatArray
) -> Linearised | None:
    """Return the error of a class; None where it has no value without one of the units."""
    sizes = _masses(measure, k)[1] if measure.row.denominator is None else _sizes(measure, k)
    try:
        return linearise(value, without, sizes)
    except UndefinedMetricError:
        return None


def _of_class(measure: Measure, k: int, value: float, found: Linearised | None) -> Ends:
    row, level = measure.row, measure.pass_.settings.level
    hits, mass = _masses(measure, k)
    if row.shape == "separation" and not row.counts_positives:
        raters = measure.pass_.raters if measure.own.get("per") == "annotation" else 1.0
        return separation_interval(found, value, (hits / raters, (mass - hits) / raters), level)
    if found is None:
        return row.bounds
    if row.shape == "ratio":
        score = measure.cells.by_cell.by_channel(3, *measure.table.weight.shape)[:, k]
        return ratio_interval(found, float(score.sum() / mass.sum()), level)
    if row.counts_positives:
        cases = float(measure.pass_.digest.unit_cases.sum())
        return positives_interval(found, hits, float(hits.sum() / mass.sum()), cases, level)
    return proportion_interval(found, level)


def too_high(value: float, found: Linearised | None) -> float:
    """Return by how much an average precision of few positives is too high, on average.

    The precision at a positive counts this positive itself. In the mean over classes or findings
    that adds up, whereas their errors cancel. Leaving out one unit at a time (Quenouille) shows a
    half to two thirds of it with two to ten positives: `OF_FEW`. Of a single positive, without
    which there is no value (`found` is None), it is `OF_ONE` of it.
    """
    return OF_ONE * value if found is None else min(max(OF_FEW * found.bias, 0.0), value)


def positives_interval(
    found: Linearised, positives: FloatArray, common: float, cases: float, level: float
) -> Ends:
    """Return the interval of an average precision, which is one over the positives.

    Where few positives rank low, both the value and its error are small by chance: the upper end is
    that of no more than `MORE_THAN_SEEN` times as many as there are. Where negatives are the few,
    what is missing to 1 is a loss that they make up: the lower end allows for one more of them, in
    one case (of patients, too), anywhere. Above the i-th of P positives it costs Σ 1/j / P over
    those that follow, which is 1/P on average and 2/P² as a square.

    Parameters
    ----------
    found: the average precision with its error.
    positives: how much each unit has of the positive class.
    common: the share of positives.
    cases: how many cases there are.
    """
    seen = replace(found, worth=float(positives.sum() ** 2 / (positives**2).sum()))
    spread = max(found.value * (1 - found.value), 0.0)
    t = student_quantile(found, level) / normal_quantile(level)
    least = math.sqrt(spread / (MORE_THAN_SEEN * seen.worth)) / t
    wide = replace(seen, error=max(found.error, least))
    low, high = proportion_interval(seen, level)[0], proportion_interval(wide, level)[1]
    if spread > 0 and common > 1 / 2:
        missing = replace(found, value=1 - found.value)
        one = 1 / (common * cases)  # what one more event adds, exponential, on average
        step, squared = one * found.units, 2 * one**2 * found.units * found.worth
        low = min(low, 1 - loss_interval(missing, level, step=step, squared_step=squared)[1])
    return low, high
