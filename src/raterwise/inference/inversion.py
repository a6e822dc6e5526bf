"""Intervals of calibration errors: which true errors the observed one does not contradict.

The test of a candidate truth is inverted (`intervals.calibration_interval`) with noise from
resampling. At zero the noise is known better: it is that of the model's own probabilities
(`noise`), so "is it miscalibrated at all?" is asked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raterwise.inference import intervals, noise
from raterwise.inference.jackknife import linearise, noise_expansion
from raterwise.inference.measures import Measure
from raterwise.inference.passes import Pass
from raterwise.inference.small_samples import gap_interval
from raterwise.summaries import through
from raterwise.types import FloatArray, Options

CONSISTENCY = 9
"""The stream of random numbers of labels drawn from the model's own probabilities."""
ONE_SCORE = ("top_label", "positive")
"""Questions of one score per case, whose cells hold different cases."""
SIMULATED = 2_000_000
"""Up to how many labels, over all draws, they are drawn case by case."""
MOST_CELLS = 300
"""Up to how many cells of classes vary together: 20 classes with 15 bins. Of more classes each has
little to do with another."""
OF_CLASSES = ("per_class", "predicted_class")


def invert(value: float, measures: Sequence[Measure]) -> intervals.CalibrationInterval:
    """Return the interval of a non-negative error, or of a mean of such errors over passes.

    The debiased and the plugin calibration loss estimate the same quantity; the test is that of
    the plugin, which is a norm of the deviations. A debiased value is left as it is.
    """
    first, plugin = measures[0].pass_, [_plugin(m) for m in measures]
    found = _inverted(value, plugin)
    if measures[0].row.closer is not None:
        near = _inverted(value, [replace(m, own=less_smooth(m)) for m in plugin])
        found = replace(found, low=min(found.low, near.low), high=max(found.high, near.high))
    if len(measures) == 1 and first.units is not None:
        found = _at_zero(found, value, plugin[0])
    middle = min(max(found.debiased, found.low), found.high)
    p = _as_the_interval_says(found, first.settings.level)
    found = replace(found, debiased=middle, p_value=p)
    already = all(m.own.get("estimator") == "debiased" for m in measures)
    return replace(found, debiased=value) if already else found


def _plugin(measure: Measure) -> Measure:
    own = measure.own
    return replace(measure, own={**own, "estimator": "plugin"}) if "estimator" in own else measure


def less_smooth(measure: Measure) -> Options:
    """Return the options under which so many independent cases are smoothed less, if any are."""
    pass_, closer = measure.pass_, measure.row.closer
    if closer is None:
        return measure.own
    grouped = pass_.facts.grouped and pass_.units is not None
    effect = _design_effect(measure) if grouped else 1.0
    return closer(measure.own, pass_.cases / max(effect, 1.0))


def _design_effect(measure: Measure) -> float:
    """Return by how much larger patients were seen to make the noise than cases would."""
    cells = measure.cells
    table, shape = cells.table, cells.table.weight.shape
    fine = measure.pass_.noise_of_cells(table, measure.often)
    deviation = cells.by_cell.by_channel(4, *shape) - cells.by_cell.by_channel(3, *shape)
    variance = float(table.weight.sum() ** 2 * (fine**2).sum())
    return noise.design_effect(deviation, cells.sums_by_unit(1), variance, least=0.0)


def _inverted(value: float, measures: Sequence[Measure]) -> intervals.CalibrationInterval:
    """Return the true errors under which the observed one is neither too large nor too small."""
    parts = [_Deviations.of(measure) for measure in measures]
    bins = max(part.observed.shape[-1] for part in parts)
    observed = np.concatenate([part.padded(part.observed, bins) for part in parts], axis=-2)
    drawn = np.concatenate([part.padded(part.noise, bins) for part in parts], axis=-2)
    least = np.concatenate([part.padded(part.least_noise, bins) for part in parts], axis=-2)
    drawn = drawn[np.isfinite(drawn).all(axis=(-2, -1))]  # a resample may lack all that counts
    starts = np.cumsum([0, *(len(part.observed) for part in parts)])

    def norm(deviation: FloatArray) -> FloatArray:
        errors = [
            part.norm(deviation[..., a:b, : part.observed.shape[-1]])
            for part, a, b in zip(parts, starts, starts[1:], strict=False)
        ]
        return np.asarray(np.mean(errors, axis=0))

    level = measures[0].pass_.settings.level
    return intervals.calibration_interval(
        norm, observed, drawn, level, value=value, least_noise=least
    )


def _as_the_interval_says(found: intervals.CalibrationInterval, level: float) -> float:
    """Return the p-value of zero, on the side of 1 − level where the interval's end puts it.

    They are one test; what few errors cannot exclude, and a value below 0, move the end alone.
    """
    limit = round(1 - level, 12)  # 0.05 and not 0.05000000000000004
    if found.low > 0:
        return min(found.p_value, limit)
    return found.p_value if found.p_value > limit else min(limit + 1e-9, 1.0)


@dataclass(frozen=True, eq=False)
class _Deviations:
    """Observed minus predicted per channel and bin, its resampled noise, and the error's norm."""

    observed: FloatArray
    noise: FloatArray
    """As wide as Student's interval of so few units wants it."""
    least_noise: FloatArray
    """What noise a calibrated model would have, where a cell resamples to next to none."""
    norm: Callable[[FloatArray], FloatArray]

    @staticmethod
    def of(measure: Measure) -> _Deviations:
        table, pass_ = measure.table, measure.pass_
        total, level = table.weight.sum(), pass_.settings.level
        observed = table.deviation / total
        drawn: Any = 0.0
        if pass_.units is not None:
            expansion = noise_expansion(measure.unit_sizes, level)
            drawn = drawn + expansion * (_relative(measure.stack) - observed)
        if pass_.rater_draws is not None:  # labels that are drawn twice agree with each other
            by_rater = _relative(measure.rater_stack)
            scale = pass_.rater_draws.expansion(level)
            drawn = drawn + scale * (by_rater - by_rater.mean(axis=0))
        return _Deviations(
            observed,
            drawn,
            measure.least_noise(),
            lambda deviation: measure.over(table.with_deviation(deviation * total)),
        )

    @staticmethod
    def padded(deviation: FloatArray, bins: int) -> FloatArray:
        """Return the table with empty bins at the end."""
        missing = [(0, 0)] * (deviation.ndim - 1) + [(0, bins - deviation.shape[-1])]
        return np.pad(deviation, missing)


def _relative(stack: Any) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(stack.deviation / stack.weight.sum(axis=(-2, -1), keepdims=True))


def _at_zero(
    found: intervals.CalibrationInterval, value: float, measure: Measure
) -> intervals.CalibrationInterval:
    """Return the interval with the test at zero, and with what few errors cannot exclude."""
    tags, pass_, cells = measure.row.tags, measure.pass_, measure.cells
    if "other_scale" in tags:  # what few errors allow is a gap
        return found
    level, question = pass_.settings.level, _asked(cells)
    varies = found.high - found.low > 1e-9  # not where all cases are wrong and sure
    gap = None
    if question in OF_CLASSES:
        least, most = _ends_of_classes(measure)
    elif question in ONE_SCORE:
        least, most = _overall_gap(cells, level)
        # Most cases may be nearer than the mean: few errors widen a quantile, and raise no end.
        gap = (0.0 if "quantile" in tags else least), most
    else:
        return found
    ends = found.low if varies else least, max(found.high, most)
    if question in ONE_SCORE and "kernel" in tags:
        ends = ends[0], max(ends[1], _high_of_bins(cells, pass_))
    # A soft table lacks the mean score of hard bins. Where raters are a sample too, the noise at
    # zero is not that of the model's probabilities: another panel would be off in another way.
    if cells.plan.soft or pass_.rater_draws is not None:
        return replace(found, low=min(ends[0], value), high=max(ends[1], value))
    p = _p_of_calibration(measure)
    low, high = noise.zero_tested_ends(ends, value, p, level, gap)
    return replace(found, low=low, high=high, p_value=p)


def _asked(cells: Any) -> str:
    """Return the question; about a class, that of one class or of every class."""
    name: str = cells.plan.question.name
    if name != "event":
        return name
    return "positive" if cells.sums.shape[1] == 1 else "per_class"


def _overall_gap(cells: Any, level: float) -> tuple[float, float]:
    """Return the interval of |mean score - what was observed|, of one score per case."""
    weight, hits = cells.sums_by_unit(1), cells.sums_by_unit(4)
    rate = linearise(hits.sum() / weight.sum(), _without(hits, weight), weight)
    return gap_interval(rate, float(cells.table.score.sum() / cells.table.weight.sum()), level)


def _ends_of_classes(measure: Measure) -> tuple[float, float]:
    """Return the error that the wrong decisions about a class allow, at least and at most.

    Of the class whose decisions (z above 1/2 or not) can be off by most, the gap between how many
    are wrong and how many the model expects to be; another class is off by as much, since what is
    not the one is the other. Errors of each predicted class are those of all together.
    """
    table, sizes = measure.cells.table, measure.unit_sizes
    sure = table.score >= table.weight / 2
    one = measure.cells.plan.question.name == "predicted_class"
    often = 1 if one else len(table.weight)
    total = float(table.weight.sum()) / often

    def wrong(positive: FloatArray, weight: FloatArray) -> FloatArray:
        each = np.where(sure, weight - positive, positive).sum(axis=-1)
        return np.asarray(each.sum(axis=-1, keepdims=True) if one else each)

    seen, expected = wrong(table.positive, table.weight), wrong(table.score, table.weight)
    rest = [wrong(left.positive, left.weight) for left in measure.rests(smoothed=False)]
    by_unit, weight = seen - np.concatenate(rest), sizes / often
    level = measure.pass_.settings.level
    gaps = [
        gap_interval(linearise(s / total, _without(u, weight), weight), e / total, level)
        for s, u, e in zip(seen, by_unit.T, expected, strict=True)
    ]
    worst = np.argsort([high for _, high in gaps])[::-1]
    off = np.zeros_like(table.weight)
    off[slice(None) if one else worst[:2]] = 1
    moved = np.where(sure, -off, off) * table.weight
    smoother, full = measure.smoother, measure.table
    moved = moved if smoother is None else through(smoother, moved)
    least, most = (measure.over(full.with_deviation(g * moved)) for g in gaps[worst[0]])
    return float(least), float(most)


def _without(hits: FloatArray, weight: FloatArray) -> FloatArray:
    rest = weight.sum() - weight
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (hits.sum() - hits) / rest
    return np.asarray(np.where(rest > 0, without, hits.sum() / weight.sum()))


def _p_of_calibration(measure: Measure) -> float:
    """Return how often a calibrated model with these probabilities shows so large an error."""
    cells, full, pass_ = measure.cells, measure.table, measure.pass_
    draws = _calibrated_draws(cells, pass_, measure.often)
    if pass_.facts.grouped:  # of single cases, squared deviations would let a model excuse itself
        effect, sizes = _design_effect(measure), cells.sums_by_unit(1)
        random = np.random.default_rng([pass_.settings.seed, CONSISTENCY, 1])
        apart = max(len(cells.table.weight) - 1, 1)
        draws = noise.of_patients(draws, effect, sizes, apart, random=random)
    smoother = measure.smoother
    draws = draws if smoother is None else through(smoother, draws)
    whole = full.weight.sum()

    def norm(moved: FloatArray) -> FloatArray:
        return measure.over(full.with_deviation(moved * whole))

    return noise.p_of_calibration(norm, float(norm(full.deviation / whole)), draws)


def _calibrated_draws(cells: Any, pass_: Pass, often: int) -> FloatArray:
    """Return deviations as a calibrated model would have them, labels drawn from its probabilities.

    Where every case is in every channel (`often`), its label falls on one of them: what is not one
    of two classes is the other; of few cases labels are drawn case by case; of more, cells are
    drawn and put in an order in which they vary together.
    """
    table, draws = cells.table, pass_.settings.resamples
    random = np.random.default_rng([pass_.settings.seed, CONSISTENCY])
    weight, total = table.weight, table.weight.sum()
    mirrored = often == 2 and np.allclose(weight[0], weight[1, ::-1])
    if often > 1 and not mirrored and pass_.cases * draws <= SIMULATED:
        said = pass_.raters, pass_.agreement_on(often)
        found = cells.by_cell.null_draws(*weight.shape, *said, draws, random)
        if found is not None:
            return np.asarray(found / total)
    found = noise.calibrated_draws(
        table.score / np.where(weight > 0, weight, 1),
        often * weight / total,
        pass_.cases,
        pass_.raters,
        pass_.agreement_on(often),
        draws=draws,
        random=random,
    )
    if mirrored:
        found = np.stack([-found[:, 1, ::-1], found[:, 1]], axis=1)
    elif often > 1 and weight.size <= MOST_CELLS:
        found = noise.in_concert(found, cells.by_cell.null_covariance(*weight.shape))
    return np.asarray(found / often)


def _high_of_bins(cells: Any, pass_: Pass) -> float:
    """Return the upper end of the error over bins, which keeps signs apart that a kernel mixes."""
    table, stack = cells.table, cells.resampled(pass_.times)
    member = noise.coarser_cells(table.weight[0] / pass_.raters)
    total = table.weight.sum()
    observed = table.deviation[0] @ member / total
    totals = stack.weight.sum(axis=(-2, -1))[:, None]
    with np.errstate(invalid="ignore"):
        drawn = stack.deviation[:, 0] @ member / totals - observed
    drawn = drawn[np.isfinite(drawn).all(axis=-1)]
    weight = table.weight[0] @ member
    score = table.score[0] @ member / np.maximum(weight, 1e-300)
    least = intervals.calibrated_noise(
        score, weight / total, pass_.cases, pass_.raters, pass_.agreement_on()
    )
    expansion = noise_expansion(cells.sums_by_unit(1), pass_.settings.level)
    return intervals.calibration_interval(
        lambda moved: np.abs(moved).sum(axis=-1),
        observed,
        expansion * drawn,
        pass_.settings.level,
        least_noise=least,
    ).high
