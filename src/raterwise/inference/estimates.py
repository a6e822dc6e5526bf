"""From the resampled tables of a pass to estimates with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import Metric
from raterwise.errors import RaterwiseError
from raterwise.inference import intervals
from raterwise.inference.classes import (
    SHAPES,
    mean_of_parts,
    positives_interval,
    rests_on_few,
)
from raterwise.inference.differences import cautious_correlation, difference_interval
from raterwise.inference.inversion import invert
from raterwise.inference.jackknife import (
    Linearised,
    crossed,
    linearise,
    several,
    student_interval,
)
from raterwise.inference.measures import Measure
from raterwise.inference.p_values import tested
from raterwise.inference.settings import Settings
from raterwise.inference.small_samples import (
    loss_interval,
    predictive_interval,
    proportion_interval,
    ratio_interval,
    separation_interval,
    signed_loss_interval,
    weighted_share_interval,
)
from raterwise.results import Estimate
from raterwise.types import FloatArray, Options


def blank(row: Metric, own: Options | None = None) -> Estimate:
    """Return the estimate of a metric before it has a value."""
    return Estimate(
        row.name,
        None,
        title=row.title,
        group=row.group,
        meaning=row.meaning_for(own or {}),
        direction=row.direction,
        reference=row.reference,
    )


def estimate(measure: Measure, blank: Estimate) -> Estimate:
    """Return one metric with its interval, or with the reason why it has no value."""
    row = measure.row
    try:
        value, bound = measure.value()
    except RaterwiseError as error:
        if error.where is not None:
            raise  # a bad row, which a table that is added up only now has met: no metric has it
        return replace(blank, undefined=str(error))
    if not math.isfinite(value):
        return replace(blank, undefined=row.undefined)
    point = replace(blank, value=value, bound=bound or None)
    found = _with_interval(point, [measure], [value])
    return tested(measure, found) if row.test else found


def infinite_mean(row: Metric, reasons: Sequence[str | None], parts: str) -> str | None:
    """Return why a mean over parts is infinite, from why each of them has no value, if it is.

    The mean over the others would say most of a model where it says least: it would leave out the
    images or findings in which a model excludes what a rater chose.
    """
    missing = [why for why in reasons if why]
    if "infinite" not in row.tags or not missing:
        return None
    return f"{missing[0]} (in {len(missing)} of {len(reasons)} {parts})"


def mean_estimate(
    blank: Estimate, measures: Sequence[Measure], values: Sequence[float]
) -> Estimate:
    """Return the mean of a metric over several passes, resampled together."""
    return _with_interval(replace(blank, value=float(np.mean(values))), measures, values)


def _with_interval(
    point: Estimate, measures: Sequence[Measure], values: Sequence[float]
) -> Estimate:
    """Return the mean of one metric over passes with its interval, where there can be one."""
    first, row = measures[0], measures[0].row
    settings = first.pass_.settings
    assert point.value is not None
    if not (first.pass_.resampled and first.tabled and _several_units(measures)):
        return point
    if row.error and settings.interval == "auto":
        found = invert(point.value, measures)
        low, high = _within(first, found.low, found.high)
        # A debiased loss may be below 0, where the truth cannot be.
        low, high = min(low, point.value), max(high, point.value)
        return replace(point, low=low, high=high, debiased=found.debiased, p_value=found.p_value)
    if settings.interval == "auto":
        shaped = _shaped(point, measures)
        if shaped is not None:
            return shaped
        if row.shape != "resampled" and not _defined_without_each(measures):
            return point
    each = [m.replicates(value) for m, value in zip(measures, values, strict=True)]
    drawn = _bootstrapped(point, np.mean(each, axis=0), settings, first.pass_.units)
    return _possible(drawn, (row.bounds[0], _within(first)[1]))


def _within(
    measure: Measure, low: float = -math.inf, high: float = math.inf
) -> tuple[float, float]:
    """Return an interval without what cannot be; several passes have the same options."""
    return measure.row.within_bounds(low, high, measure.own, measure.pass_.facts.classes)


def _possible(found: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Return an estimate whose ends can be: resamples of cells are moved to the value of scores."""
    if found.value is None or found.low is None or found.high is None:
        return found
    low, high = max(found.low, bounds[0]), min(found.high, bounds[1])
    return replace(found, low=min(low, found.value), high=max(high, found.value))


def _several_units(measures: Sequence[Measure]) -> bool:
    """Tell whether cases of two units or more count, without which there is no interval.

    Of a calibration error the noise of each pass is drawn, so that each needs two.
    """
    if measures[0].pass_.units is None:
        return True
    if measures[0].row.error:
        return all(several(m.unit_sizes) for m in measures)
    return several(_sizes(measures))


def _sizes(measures: Sequence[Measure]) -> FloatArray:
    return np.asarray(np.sum([m.unit_sizes for m in measures], axis=0))


def _at(measures: Sequence[Measure]) -> float:
    """Return the metric over its tables, in which cells may stand for scores."""
    return float(np.mean([m.over(m.table) for m in measures]))


def _shaped(point: Estimate, measures: Sequence[Measure]) -> Estimate | None:
    """Return the interval of the shape that the metric has; None where only resamples can say.

    The error is that of leaving out one unit at a time: patients or cases, raters, or both, in
    which case the estimate says how much of the variance is between raters.
    """
    row, pass_ = measures[0].row, measures[0].pass_
    if row.shape == "resampled":
        return None
    assert point.value is not None
    level, share = pass_.settings.level, None
    by_cases = _over_cases(point.value, measures)
    if pass_.rater_draws is not None:
        by_raters = _over_raters(point.value, measures)
        if by_raters is None or (by_cases is None and pass_.units is not None):
            return None
        if by_cases is None:
            ends = student_interval(by_raters, level)
        else:
            both, (_, share) = crossed([by_cases, by_raters])
            # Where nothing was seen to go wrong, it is cases that were looked at.
            found = replace(both, worth=by_cases.worth, units=by_cases.units)
            ends = _ends(point.value, found, measures) or student_interval(found, level)
    else:
        shaped = _ends(point.value, by_cases, measures)
        if shaped is None:
            return None
        ends = shaped
    if pass_.units is not None and rests_on_few(measures):
        least, most = mean_of_parts(point.value, measures)
        ends = min(ends[0], least), max(ends[1], most)
    low, high = _within(measures[0], *ends)
    return replace(point, low=min(low, point.value), high=max(high, point.value), rater_share=share)


def shaped_ends(found: Linearised, measure: Measure) -> tuple[float, float]:
    """Return the interval that a metric would have, were its value and error those supposed.

    Its shape, and what one more error would add, are those of the measure.
    """
    ends = _ends(found.value, found, [measure])
    low, high = ends or student_interval(found, measure.pass_.settings.level)
    low, high = _within(measure, low, high)
    return min(low, found.value), max(high, found.value)


def _without_each(measures: Sequence[Measure]) -> FloatArray:
    """Return the metric without each case or patient.

    Of a mean of shares or areas over findings it is that of those which have a value, as the mean
    over classes is.
    """
    each = np.array([m.without_each() for m in measures])
    if measures[0].row.shape not in SHAPES:
        return np.asarray(each.mean(axis=0))
    known = np.isfinite(each)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, each, 0).sum(axis=0) / known.sum(axis=0))


def _defined_without_each(measures: Sequence[Measure]) -> bool:
    """Tell whether the metric has a value without any one of the units.

    Where it has none without one of them, all resamples that have a value hold that one, so that
    they are alike: their interval held the truth in a fifth to a half of test sets.
    """
    if measures[0].pass_.units is None:
        return True
    return bool(np.isfinite(_without_each(measures)[_sizes(measures) > 0]).all())


def _over_cases(value: float, measures: Sequence[Measure]) -> Linearised | None:
    """Return the error over cases or patients; None where the metric is undefined without one."""
    if measures[0].pass_.units is None:
        return None
    without, sizes = _without_each(measures), _sizes(measures)
    if not np.isfinite(without[sizes > 0]).all():
        return None
    at, (inside, outside) = _at(measures), measures[0].units
    found = linearise(at, without[:inside], sizes[:inside])
    if outside > 1:  # a sample of its own; a single case says nothing of its error
        other = linearise(at, without[inside:], sizes[inside:])
        worth, units = found.worth + other.worth, found.units + other.units
        found = replace(crossed([found, other])[0], worth=worth, units=units)
    return replace(found, value=value)


def _over_raters(value: float, measures: Sequence[Measure]) -> Linearised | None:
    """Return the error over raters; None where it is not known who said what."""
    each = [m.without_raters() for m in measures]
    known = [values for values in each if values is not None]
    if len(known) < len(each):
        return None
    without = np.mean(known, axis=0)
    if not np.isfinite(without).all():
        return None
    return replace(linearise(_at(measures), without), value=value)


def _ends(
    value: float, found: Linearised | None, measures: Sequence[Measure]
) -> tuple[float, float] | None:
    """Return the interval of the metric's shape around a value with that error, if any.

    `found` is None where some unit cannot be left out: most shapes have no interval then.
    """
    first, row = measures[0], measures[0].row
    level = first.pass_.settings.level
    if row.shape == "separation" and len(measures) == 1 and first.channels == 1:
        return _of_separation(value, found, first)
    if found is None:
        return None
    if row.counts_positives:
        return _of_positives(found, measures)
    if row.shape == "difference" and first.pass_.rater_draws is None:
        return _of_difference(found, measures)
    if row.shape == "ratio":
        expected = [float(m.table.score.sum() / m.table.weight.sum()) for m in measures]
        return ratio_interval(found, float(np.mean(expected)), level)
    steps = {}
    if row.shape in ("loss", "signed_loss"):
        each = [m.step() for m in measures]
        steps = {k: float(np.mean([step[k] for step in each])) for k in each[0]}
    if row.shape == "proportion" and len(measures) == 1 and first.channels == 1:
        return _of_share(found, first)
    return _ends_of_mean(row.shape, found, level, steps, _within(first)[1])


def _of_share(found: Linearised, measure: Measure) -> tuple[float, float]:
    """Return the interval of a share; what a label weighs may follow from its class."""
    row, own, level = measure.row, measure.own, measure.pass_.settings.level
    facts, given = measure.pass_.facts, measure.pass_.facts.given
    weights = () if given is None else given.class_weights
    if row.hits == "any" and given is not None and weights:
        each = max(weights) * facts.weight / given.cases
        return weighted_share_interval(found, each / float(_sizes([measure]).sum()), level)
    elsewhere = own.get("prevalence")
    if row.hits not in ("positive", "others") or not (weights or elsewhere is not None):
        return proportion_interval(found, level)
    table, positive = measure.table, own.get("positive")
    k = len(weights) - 1 if positive is None else positive
    others = [w for i, w in enumerate(weights) if i != k]
    times = weights[k] / max(others) if weights else 1.0
    if elsewhere is not None:
        positives = float(table.positive.sum())
        negatives = float(table.weight.sum()) - positives
        times *= elsewhere / (1 - elsewhere) * negatives / positives
    tested = measure.tested_sizes()
    found = replace(found, worth=float(tested.sum() ** 2 / (tested**2).sum()))
    return predictive_interval(found, times if row.hits == "positive" else 1 / times, level)


def _of_separation(
    value: float, found: Linearised | None, measure: Measure
) -> tuple[float, float] | None:
    """Return the interval of an area over pairs of a right and a wrong case."""
    inside, outside = measure.units
    raters = np.ones(inside + outside)
    if measure.own.get("per") == "annotation":  # a case from elsewhere has no raters
        raters[:inside] = measure.pass_.raters
    mass, hits = (measure.cells.sums_by_unit(field) / raters for field in (1, 4))
    return separation_interval(found, value, (hits, mass - hits), measure.pass_.settings.level)


def _ends_of_mean(
    shape: str, found: Linearised, level: float, steps: Mapping[str, float], most: float
) -> tuple[float, float]:
    """Return the interval of a mean over units, of which no more is known than its shape.

    An area over pairs is within [0, 1], and so is their mean over several sets of pairs.
    """
    if shape in ("proportion", "separation"):
        return proportion_interval(found, level)
    if shape == "loss" and found.value >= 0:
        return loss_interval(found, level, most=most, **steps)
    if shape == "signed_loss":
        return signed_loss_interval(found, level, **steps)
    return student_interval(found, level)


def _of_positives(found: Linearised, measures: Sequence[Measure]) -> tuple[float, float]:
    """Return the interval of an average precision, or of the mean of several."""
    mass = np.sum([m.unit_positives for m in measures], axis=0)
    common = float(mass.sum() / _sizes(measures).sum())
    pass_ = measures[0].pass_
    cases = float(pass_.digest.unit_cases.sum())
    return positives_interval(found, mass, common, cases, pass_.settings.level)


def _of_difference(found: Linearised, measures: Sequence[Measure]) -> tuple[float, float]:
    """Return the interval of a difference of two shares, each with the interval of a proportion.

    So a share that was never seen has room above 0. The shares are of the same cases; their
    correlation follows from the errors of both and of the difference, as far as units can show it.
    """
    level, sizes = measures[0].pass_.settings.level, _sizes(measures)
    ends, errors = [], []
    whole = [m.parts_of(m.table) for m in measures]
    each = [m.parts_without_each() for m in measures]
    for i in range(2):
        at = float(np.mean([parts[i][0] for parts in whole]))
        without, factor = np.mean([parts[i][0] for parts in each], axis=0), each[0][i][1]
        share = linearise(at, without, sizes)
        low, high = proportion_interval(share, level)
        ends.append((factor * share.value, factor * low, factor * high))
        errors.append(factor * share.error)
    shared = cautious_correlation((errors[0], errors[1], found.error), found.worth)
    return difference_interval(ends[0], ends[1], shared)


def mean_over_units(
    point: Estimate,
    values: FloatArray,
    units: NDArray[np.int64],
    times: FloatArray | None,
    settings: Settings,
    row: Metric,
    steps: Mapping[str, float],
    bounds: tuple[float, float],
    raters: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[Estimate, FloatArray]:
    """Return the mean of values that each image has by itself, and the mean of every resample.

    `units` (n,) is the unit of each value, `times` (resamples, units) how often each is drawn, None
    where only raters are. `steps` are what one more error would add to a loss, `bounds` where its
    values can be; `raters` the mean of every resample of raters, and without each person.
    """
    assert point.value is not None
    found, replicates = [], np.full(settings.resamples, point.value)
    if times is not None:
        by_case, drawn = _by_unit(point.value, values, units, times)
        found.append(by_case)
        replicates = replicates + (drawn - point.value)
    if raters is not None:
        drawn, without = raters
        replicates = replicates + (drawn - point.value)
        if np.isfinite(without).all():
            found.append(linearise(point.value, without))
        elif settings.interval == "auto":  # without one of the raters there is no value
            return point, replicates
    if settings.interval != "auto" or not all(math.isfinite(one.error) for one in found):
        number = None if times is None else times.shape[1]
        return _bootstrapped(point, replicates, settings, number), replicates
    error, share = found[0], None
    if len(found) > 1:
        error, (_, share) = crossed(found)
    if times is None:
        low, high = student_interval(error, settings.level)
    else:  # where nothing was seen to go wrong, it is images that were looked at
        error = replace(error, worth=found[0].worth, units=found[0].units)
        low, high = _ends_of_mean(row.shape, error, settings.level, steps, bounds[1])
    ends = replace(point, low=low, high=high, rater_share=share)
    return _possible(ends, bounds), replicates


def _by_unit(
    value: float, values: FloatArray, units: NDArray[np.int64], times: FloatArray
) -> tuple[Linearised, FloatArray]:
    """Return the error over the units, and the mean of every resample."""
    number = times.shape[1]
    sums, counts = np.bincount(units, values, number), np.bincount(units, minlength=number)
    drawn = times @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        replicates = np.where(drawn > 0, times @ sums / drawn, np.nan)
    rest = np.where(counts < counts.sum(), counts.sum() - counts, 1)
    return linearise(value, (sums.sum() - sums) / rest, counts), replicates


def _bootstrapped(
    point: Estimate, replicates: FloatArray, settings: Settings, units: int | None
) -> Estimate:
    if np.isnan(replicates).all():
        return point
    assert point.value is not None
    if settings.interval == "percentile":
        low, high = intervals.percentile_interval(replicates, settings.level, units=units)
    else:
        low, high = intervals.bias_corrected_interval(
            point.value, replicates, settings.level, units=units
        )
    return replace(point, low=low, high=high)
