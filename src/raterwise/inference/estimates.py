"""From the resampled tables of a pass to estimates with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import Metric
from raterwise.errors import RaterwiseError
from raterwise.inference import intervals
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.recipes import Options
from raterwise.results import Estimate

__all__ = ["blank", "estimate", "mean_estimate", "mean_over_units"]

FloatArray = NDArray[np.float64]


def blank(row: Metric) -> Estimate:
    """Return the estimate of a metric before it has a value."""
    return Estimate(
        row.name,
        None,
        title=row.title,
        group=row.group,
        meaning=row.meaning,
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
    return _with_interval(
        row, [own], replace(blank, value=value, bound=bound or None), [(pass_, value)]
    )


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
    settings = parts[0][0].settings
    assert point.value is not None
    if not parts[0][0].resampled:
        return point
    if row.error and settings.interval == "auto":
        found = _invert(row, own, point.value, [pass_ for pass_, _ in parts])
        return replace(point, low=found.low, high=found.high, debiased=found.debiased)
    each = [p.replicates(row, o, value) for (p, value), o in zip(parts, own, strict=True)]
    return _bootstrapped(point, np.mean(each, axis=0), settings, parts[0][0].units)


def mean_over_units(
    point: Estimate,
    values: FloatArray,
    units: NDArray[np.int64],
    times: FloatArray,
    settings: Settings,
) -> tuple[Estimate, FloatArray]:
    """Return the mean of values that each case has by itself, and the mean of every resample.

    `units` (n,) is the unit of each value, `times` (resamples, units) how often each is drawn.
    """
    number = times.shape[1]
    sums, counts = np.bincount(units, values, number), np.bincount(units, minlength=number)
    drawn = times @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        replicates = np.where(drawn > 0, times @ sums / drawn, np.nan)
    return _bootstrapped(point, replicates, settings, number), replicates


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


def _invert(
    row: Metric, own: Sequence[Options], value: float, passes: Sequence[Pass]
) -> intervals.CalibrationInterval:
    """Return the test-inverting interval of a non-negative error, or of a mean of such errors.

    The debiased and the plugin calibration loss estimate the same quantity; the test is that of
    the plugin, which is a norm of the deviations.
    """
    parts = [
        _Deviations.of(row, {**o, "estimator": "plugin"} if "estimator" in o else o, pass_)
        for o, pass_ in zip(own, passes, strict=True)
    ]
    bins = max(part.observed.shape[-1] for part in parts)
    observed = np.concatenate([part.padded(part.observed, bins) for part in parts], axis=-2)
    noise = np.concatenate([part.padded(part.noise, bins) for part in parts], axis=-2)
    starts = np.cumsum([0, *(len(part.observed) for part in parts)])

    def norm(deviation: FloatArray) -> FloatArray:
        errors = [
            part.norm(deviation[..., a:b, : part.observed.shape[-1]])
            for part, a, b in zip(parts, starts, starts[1:], strict=False)
        ]
        return np.asarray(np.mean(errors, axis=0))

    floors = [part.least_noise for part in parts]
    least = None
    if all(floor is not None for floor in floors):
        padded = [p.padded(p.least_noise, bins) for p in parts if p.least_noise is not None]
        least = np.concatenate(padded, axis=-2)
    settings, units = passes[0].settings, passes[0].units
    return intervals.calibration_interval(
        norm, observed, noise, settings.level, value=value, least_noise=least, units=units
    )


@dataclass(frozen=True, eq=False)
class _Deviations:
    """Observed minus predicted per channel and bin, its resampled noise, and the error's norm."""

    observed: FloatArray
    noise: FloatArray
    least_noise: FloatArray | None
    """What noise a calibrated model would have, where a cell resamples to next to none."""
    norm: Callable[[FloatArray], FloatArray]

    @staticmethod
    def of(row: Metric, own: Options, pass_: Pass) -> _Deviations:
        table, stack = pass_.table(row, own), pass_.stack(row, own)
        total, totals = table.weight.sum(), stack.weight.sum(axis=(-2, -1), keepdims=True)
        observed = table.deviation / total
        noise = stack.deviation / totals - observed
        if pass_.by_rater:  # labels that are drawn twice agree with each other
            noise = pass_.rater_spread * (noise - noise.mean(axis=0))
        return _Deviations(
            observed,
            noise,
            pass_.least_noise(row, own),
            lambda deviation: row.over(table.with_deviation(deviation * total), own),
        )

    @staticmethod
    def padded(deviation: FloatArray, bins: int) -> FloatArray:
        """Return the table with empty bins at the end."""
        missing = [(0, 0)] * (deviation.ndim - 1) + [(0, bins - deviation.shape[-1])]
        return np.pad(deviation, missing)
