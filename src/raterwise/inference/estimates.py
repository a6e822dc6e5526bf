"""From the resampled tables of a pass to estimates with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import Metric
from raterwise.errors import RaterwiseError
from raterwise.inference import intervals
from raterwise.inference.differences import cautious_correlation, difference_interval
from raterwise.inference.inversion import invert
from raterwise.inference.jackknife import (
    Linearised,
    crossed,
    linearise,
    normal_quantile,
    student_interval,
    student_quantile,
)
from raterwise.inference.p_values import tested
from raterwise.inference.passes import Pass
from raterwise.inference.raters import RaterDraws
from raterwise.inference.settings import Settings
from raterwise.inference.small_samples import (
    loss_interval,
    proportion_interval,
    ratio_interval,
    separation_interval,
    signed_loss_interval,
)
from raterwise.results import Estimate
from raterwise.types import FloatArray, Options

MORE_THAN_SEEN = 2.0
"""How many times the positives there are an average precision may be as sure as at most."""


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


def estimate(row: Metric, own: Options, blank: Estimate, pass_: Pass) -> Estimate:
    """Return one metric with its interval, or with the reason why it has no value."""
    try:
        value, bound = pass_.value(row, own)
    except RaterwiseError as error:
        return replace(blank, undefined=str(error))
    if not math.isfinite(value):
        return replace(blank, undefined=row.undefined)
    found = _with_interval(
        row, [own], replace(blank, value=value, bound=bound or None), [(pass_, value)]
    )
    return tested(row, own, found, pass_) if row.test else found


def mean_estimate(
    row: Metric, own: Sequence[Options], blank: Estimate, parts: Sequence[tuple[Pass, float]]
) -> Estimate:
    """Return the mean of a metric over several passes, resampled together."""
    value = float(np.mean([value for _, value in parts]))
    return _with_interval(row, own, replace(blank, value=value), parts)


def _with_interval(
    row: Metric,
    own: Sequence[Options],
    point: Estimate,
    parts: Sequence[tuple[Pass, float]],
) -> Estimate:
    passes = [pass_ for pass_, _ in parts]
    settings = passes[0].settings
    assert point.value is not None
    tabled = passes[0].resampled and passes[0].tabled(row)
    if not tabled or not _several_units(row, own, passes):
        return point
    if row.error and settings.interval == "auto":
        found = invert(row, own, point.value, passes)
        low, high = row.within_bounds(found.low, found.high, own[0])
        # A debiased loss may be below 0, where the truth cannot be.
        low, high = min(low, point.value), max(high, point.value)
        return replace(point, low=low, high=high, debiased=found.debiased, p_value=found.p_value)
    if settings.interval == "auto":
        shaped = _shaped(row, own, point, passes)
        if shaped is not None:
            return shaped
        if row.shape != "resampled" and not _defined_without_each(row, own, passes):
            return point
    each = [p.replicates(row, o, value) for (p, value), o in zip(parts, own, strict=True)]
    drawn = _bootstrapped(point, np.mean(each, axis=0), settings, passes[0].units)
    return _possible(drawn, (row.bounds[0], row.within_bounds(-math.inf, math.inf, own[0])[1]))


def _possible(found: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Return an estimate whose ends can be: resamples of cells are moved to the value of scores."""
    if found.value is None or found.low is None or found.high is None:
        return found
    low, high = max(found.low, bounds[0]), min(found.high, bounds[1])
    return replace(found, low=min(low, found.value), high=max(high, found.value))


def _several_units(row: Metric, own: Sequence[Options], passes: Sequence[Pass]) -> bool:
    """Tell whether cases of two units or more count, without which there is no interval.

    Of a calibration error the noise of each pass is drawn, so that each needs two.
    """
    if passes[0].units is None:
        return True
    if row.error:
        each = [p.unit_sizes(row, o) for p, o in zip(passes, own, strict=True)]
        return all(np.count_nonzero(sizes) > 1 for sizes in each)
    return bool(np.count_nonzero(_sizes(row, own, passes)) > 1)


def _sizes(row: Metric, own: Sequence[Options], passes: Sequence[Pass]) -> FloatArray:
    each = [p.unit_sizes(row, o) for p, o in zip(passes, own, strict=True)]
    return np.asarray(np.sum(each, axis=0))


def _shaped(
    row: Metric, own: Sequence[Options], point: Estimate, passes: Sequence[Pass]
) -> Estimate | None:
    """Return the interval of the shape that the metric has; None where only resamples can say.

    The error is that of leaving out one unit at a time: patients or cases, raters, or both, in
    which case the estimate says how much of the variance is between raters.
    """
    if row.shape == "resampled":
        return None
    assert point.value is not None
    level, share = passes[0].settings.level, None
    by_cases = _over_cases(row, own, point.value, passes)
    if passes[0].rater_draws is not None:
        by_raters = _over_raters(row, own, point.value, passes)
        if by_raters is None or (by_cases is None and passes[0].units is not None):
            return None
        if by_cases is None:
            ends = student_interval(by_raters, level)
        else:
            both = crossed([by_cases, by_raters])
            # Where nothing was seen to go wrong, it is cases that were looked at.
            found = replace(both.total, worth=by_cases.worth, units=by_cases.units)
            share = both.shares[1]
            ends = _ends(row, own, point.value, found, passes) or student_interval(found, level)
    else:
        shaped = _ends(row, own, point.value, by_cases, passes)
        if shaped is None:
            return None
        ends = shaped
    low, high = row.within_bounds(*ends)
    return replace(point, low=min(low, point.value), high=max(high, point.value), rater_share=share)


def _without_each(row: Metric, own: Sequence[Options], passes: Sequence[Pass]) -> FloatArray:
    """Return the metric without each case or patient."""
    pairs = zip(passes, own, strict=True)
    return np.asarray(np.mean([p.without_each(row, o) for p, o in pairs], axis=0))


def _defined_without_each(row: Metric, own: Sequence[Options], passes: Sequence[Pass]) -> bool:
    """Tell whether the metric has a value without any one of the units.

    Where it has none without one of them, all resamples that have a value hold that one, so that
    they are alike: their interval held the truth in a fifth to a half of test sets.
    """
    if passes[0].units is None:
        return True
    counted = _sizes(row, own, passes) > 0
    return bool(np.isfinite(_without_each(row, own, passes)[counted]).all())


def _over_cases(
    row: Metric, own: Sequence[Options], value: float, passes: Sequence[Pass]
) -> Linearised | None:
    """Return the error over cases or patients; None where the metric is undefined without one."""
    if passes[0].units is None:
        return None
    pairs = list(zip(passes, own, strict=True))
    without, sizes = _without_each(row, own, passes), _sizes(row, own, passes)
    if not np.isfinite(without[sizes > 0]).all():
        return None
    at = float(np.mean([row.over(p.table(row, o), o) for p, o in pairs]))
    inside, outside = passes[0].units_of(row)
    found = linearise(at, without[:inside], sizes[:inside])
    if outside > 1:  # a sample of its own; a single case says nothing of its error
        other = linearise(at, without[inside:], sizes[inside:])
        worth, units = found.worth + other.worth, found.units + other.units
        found = replace(crossed([found, other]).total, worth=worth, units=units)
    return replace(found, value=value)


def _over_raters(
    row: Metric, own: Sequence[Options], value: float, passes: Sequence[Pass]
) -> Linearised | None:
    """Return the error over raters; None where it is not known who said what."""
    each = [p.without_raters(row, o) for p, o in zip(passes, own, strict=True)]
    known = [values for values in each if values is not None]
    if len(known) < len(each):
        return None
    without = np.mean(known, axis=0)
    if not np.isfinite(without).all():
        return None
    at = float(np.mean([row.over(p.table(row, o), o) for p, o in zip(passes, own, strict=True)]))
    return replace(linearise(at, without), value=value)


def _ends(
    row: Metric,
    own: Sequence[Options],
    value: float,
    found: Linearised | None,
    passes: Sequence[Pass],
) -> tuple[float, float] | None:
    level = passes[0].settings.level
    if row.shape == "separation" and len(passes) == 1 and passes[0].channels(row, own[0]) == 1:
        cells = passes[0].cells(row, own[0])
        inside, outside = passes[0].units_of(row)
        raters = np.ones(inside + outside)
        if own[0].get("per") == "annotation":  # a case from elsewhere has no raters
            raters[:inside] = passes[0].raters
        mass, hits = (cells.sums_by_unit(field) / raters for field in (1, 4))
        return separation_interval(found, value, (hits, mass - hits), level)
    if found is None:
        return None
    if row.shape in ("proportion", "separation"):
        if row.counts_positives:
            return _of_positives(row, own, found, passes)
        return proportion_interval(found, level)
    if row.shape == "difference" and passes[0].rater_draws is None:
        return _of_difference(row, own, found, passes)
    if row.shape == "ratio":
        tables = [p.table(row, o) for p, o in zip(passes, own, strict=True)]
        expected = [float(table.score.sum() / table.weight.sum()) for table in tables]
        return ratio_interval(found, float(np.mean(expected)), level)
    if row.shape == "loss" and value >= 0:
        each = [p.step(row, o) for p, o in zip(passes, own, strict=True)]
        steps = {k: float(np.mean([step[k] for step in each])) for k in each[0]}
        return loss_interval(found, level, most=row.bounds[1], **steps)
    if row.shape == "signed_loss":
        return signed_loss_interval(found, level)
    return student_interval(found, level)


@dataclass(frozen=True, eq=False)
class RaterMeans:
    """A mean over units with other raters: of every resample, and without each person."""

    draws: RaterDraws
    drawn: FloatArray
    without: FloatArray
    of_pairs: bool
    """Whether the metric compares raters with each other."""


def _of_positives(
    row: Metric, own: Sequence[Options], found: Linearised, passes: Sequence[Pass]
) -> tuple[float, float]:
    """Return the interval of an average precision, which is one over the positives.

    Where few positives rank low, both the value and its error are small by chance: the upper end is
    that of no more than `MORE_THAN_SEEN` times as many as there are. Where negatives are the few,
    what is missing to 1 is a loss that they make up: the lower end allows for one more of them, in
    one case (of patients, too), anywhere. Above the i-th of P positives it costs Σ 1/j / P over
    those that follow, which is 1/P on average and 2/P² as a square.
    """
    level = passes[0].settings.level
    each = [p.unit_positives(row, o) for p, o in zip(passes, own, strict=True)]
    mass = np.sum(each, axis=0)
    seen = replace(found, worth=float(mass.sum() ** 2 / (mass**2).sum()))
    spread = max(found.value * (1 - found.value), 0.0)
    t = student_quantile(found, level) / normal_quantile(level)
    least = math.sqrt(spread / (MORE_THAN_SEEN * seen.worth)) / t
    wide = replace(seen, error=max(found.error, least))
    low, high = proportion_interval(seen, level)[0], proportion_interval(wide, level)[1]
    common = float(mass.sum() / _sizes(row, own, passes).sum())
    if spread > 0 and common > 1 / 2:
        one = 1 / (common * float(passes[0].digest.unit_cases.sum()))
        low = min(low, 1 - _largest_loss(replace(found, value=1 - found.value), one, level))
    return low, high


def _largest_loss(found: Linearised, one: float, level: float) -> float:
    """Return the upper end of a loss to which one more event adds `one`, exponential, on average.

    What `loss_interval` is told is what it adds to one unit.
    """
    step, squared = one * found.units, 2 * one**2 * found.units * found.worth
    return loss_interval(found, level, step=step, squared_step=squared)[1]


def _of_difference(
    row: Metric, own: Sequence[Options], found: Linearised, passes: Sequence[Pass]
) -> tuple[float, float]:
    """Return the interval of a difference of two shares, each with the interval of a proportion.

    So a share that was never seen has room above 0. The shares are of the same cases; their
    correlation follows from the errors of both and of the difference, as far as units can show it.
    """
    level = passes[0].settings.level
    sizes = _sizes(row, own, passes)
    ends, errors = [], []
    each = [p.parts_without_each(row, o) for p, o in zip(passes, own, strict=True)]
    tables = [p.table(row, o) for p, o in zip(passes, own, strict=True)]
    for i in range(2):
        told = [{name: o[name] for name in row.formula_options} for o in own]
        assert row.parts is not None
        at = [row.parts(table, **t)[i][0] for table, t in zip(tables, told, strict=True)]
        factor = each[0][i][1]
        share = linearise(float(np.mean(at)), np.mean([e[i][0] for e in each], axis=0), sizes)
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
    bounds: tuple[float, float] = (-math.inf, math.inf),
    raters: RaterMeans | None = None,
) -> tuple[Estimate, FloatArray]:
    """Return the mean of values that each case has by itself, and the mean of every resample.

    `units` (n,) is the unit of each value, `times` (resamples, units) how often each is drawn, None
    where only raters are.
    """
    assert point.value is not None
    found, replicates = [], np.full(settings.resamples, point.value)
    if times is not None:
        by_case, drawn = _by_unit(point.value, values, units, times)
        found.append(by_case)
        replicates = replicates + (drawn - point.value)
    if raters is not None:
        drawn = raters.draws.replicates(
            point.value, raters.drawn, raters.without, of_pairs=raters.of_pairs
        )
        found.append(linearise(point.value, raters.without))
        replicates = replicates + (drawn - point.value)
    if settings.interval != "auto" or not all(math.isfinite(one.error) for one in found):
        number = None if times is None else times.shape[1]
        return _bootstrapped(point, replicates, settings, number), replicates
    both = crossed(found)
    low, high = student_interval(both.total if len(found) > 1 else found[0], settings.level)
    low, high = max(low, bounds[0]), min(high, bounds[1])
    share = both.shares[1] if len(found) > 1 else None
    low, high = min(low, point.value), max(high, point.value)
    return replace(point, low=low, high=high, rater_share=share), replicates


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
        ends = intervals.percentile_interval(replicates, settings.level, units=units)
    else:
        ends = intervals.bias_corrected_interval(
            point.value, replicates, settings.level, units=units
        )
    return replace(point, low=ends.low, high=ends.high)
