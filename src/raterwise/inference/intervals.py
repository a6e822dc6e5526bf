"""Confidence intervals: one for calibration errors, which cannot be negative, one for the rest.

A calibration error is a norm of a table of deviations, and noise alone makes every norm positive.
The bootstrap adds its own noise to the noise that is already there, so the percentile interval of
a perfectly calibrated model never contains its true error, 0. `calibration_interval` asks instead
which true errors could have produced the observed one: it inverts a test.

Everything here takes numbers that were resampled elsewhere and returns numbers; nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.inference.jackknife import Ends, checked_level
from raterwise.inference.noise import Norm, share_as_large
from raterwise.types import FloatArray

# The ends solve an equation to this part of the metric, far below the error of 1000 draws.
_PRECISION = 1e-5
_MOST_STEPS = 50

# In standard errors. Of a hundred cells that are right, one passes; with 2, five would, enough for
# their noise to push `low` above the truth in one data set of fifteen.
_CLEARLY_OFF = 2.5

# A cell with so small a part of the noise that is believed has only rounding errors.
_SILENT = 1e-6


@dataclass(frozen=True, slots=True)
class CalibrationInterval:
    """The interval of a calibration error, and the error without the part that noise explains."""

    low: float
    high: float
    debiased: float
    p_value: float = 1.0
    """Of perfect calibration: at most 1 − level exactly where low is above 0."""


def calibration_interval(
    norm: Norm,
    deviation: ArrayLike,
    noise: ArrayLike,
    level: float = 0.95,
    *,
    value: float | None = None,
    least_noise: ArrayLike | None = None,
    units: int | None = None,
) -> CalibrationInterval:
    """Return the true calibration errors that the observed one does not contradict.

    The observed table is d = δ + ε, the metric ‖d‖, the truth ‖δ‖; resampled noise ε_b stands for
    ε. For a truth δ = s·u the metric is distributed as ‖s·u + ε_b‖, and with T = ‖d‖

        low  = ‖s·u‖ at the s where T is the upper (1+level)/2 quantile,
        high = ‖s·u‖ at the s where T is the lower (1−level)/2 quantile,

    both 0 where T is below that quantile already at s = 0: `low` is 0 exactly if perfect
    calibration is not rejected. `debiased` is the same at the median. The shape u of the truth is
    unknown, and it matters: noise adds much to cells that are right and little to cells that are
    far off. The interval is the hull over the three shapes of `_shapes`.

    Two conventions keep it readable. A model that looks better than the median perfectly
    calibrated one is given that median's `high`: luck is no evidence (Cowan et al. 2011). And the
    interval always contains the reported value.

    Parameters
    ----------
    norm: maps tables (..., channels, bins) to metrics (...); 0 at 0, convex, even.
    deviation: d, shape (channels, bins) or (bins,).
    noise: resampled table minus d, shape (resamples, *deviation.shape).
    value: what is reported, where it is not ‖d‖ (a debiased estimate, which may be negative).
    least_noise: standard errors below which a cell's noise is not believed (`calibrated_noise`).
    units: number of patients or cases that were resampled; few of them understate the noise, which
        is therefore expanded as in Student's interval of a mean (Hesterberg 2015).

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, chapters 4 and 5.
    Cowan, Cranmer, Gross and Vitells (2011), Power-constrained limits, arXiv:1105.3166.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(0, 0.01, (1000, 1, 15))
    >>> ece = lambda table: np.abs(table).sum(axis=(-2, -1))
    >>> interval = calibration_interval(ece, noise[0], noise[1:])  # perfect but for the noise
    >>> float(ece(noise[0])), interval.low, interval.high
    (0.11, 0.0, 0.16)
    """
    tail = (1 - checked_level(level)) / 2
    table, resampled = _checked_tables(deviation, noise)
    resampled = resampled * _expansion(units, tail)
    test = _Inversion(norm, table, _believable(resampled, least_noise))
    low, high = test.low(tail), test.high(tail)
    if least_noise is not None:
        # More noise makes the interval wider, but also explains more of the value: where it is
        # supposed rather than seen, it may not lower the upper end.
        high = max(high, _Inversion(norm, table, resampled).high(tail))
    reported = test.observed if value is None else float(value)
    return CalibrationInterval(
        low=min(low, reported),
        high=max(high, reported),
        debiased=float(np.clip(test.debiased(), low, max(high, test.observed))),
        p_value=test.p_value(),
    )


def calibrated_noise(
    score: ArrayLike, share: ArrayLike, cases: float, raters: float = 1, agreement: float = 1
) -> FloatArray:
    """Return the standard error of each cell's deviation for a perfectly calibrated model.

        sqrt( z̄ (1 − z̄) · share / cases · (a + (1 − a) / raters) )

    with z̄ the mean score of the cell's cases. A cell of rare positives in which none was seen, or
    a cell of one case, resamples to next to no noise; this is the noise it has. `cases` counts
    independent cases, (Σw)² / Σw² where weights differ, and `agreement` a is the correlation of
    two raters of a case given its score: 1 if they always agree, 0 if they are independent.

    Examples
    --------
    >>> calibrated_noise(score=[0.5], share=[1.0], cases=100)
    array([0.05])
    """
    mean = np.asarray(score, dtype=np.float64)
    part = np.asarray(share, dtype=np.float64)
    per_case = agreement + (1 - agreement) / raters
    error: FloatArray = np.sqrt(np.clip(mean * (1 - mean), 0, None) * part / cases * per_case)
    return error


def percentile_interval(
    replicates: ArrayLike, level: float = 0.95, *, units: int | None = None
) -> Ends:
    """Return the central `level` of the resampled metrics (Efron 1979).

    Resamples in which the metric was undefined (NaN) are left out. With `units`, the number of
    patients or cases resampled, the tails are those of Student's interval, since a bootstrap of few
    units is too narrow.

    References
    ----------
    Hesterberg (2015), What teachers should know about the bootstrap, Am. Stat. 69, 371-386.

    Examples
    --------
    >>> percentile_interval(range(101), level=0.9)
    (5.0, 95.0)
    """
    from scipy.special import ndtr

    tail = (1 - checked_level(level)) / 2
    low, high = np.quantile(_defined(replicates), ndtr(_normal_ends(tail, units)))
    return float(low), float(high)


def bias_corrected_interval(
    value: float, replicates: ArrayLike, level: float = 0.95, *, units: int | None = None
) -> Ends:
    """Return Efron's bias-corrected interval.

        z₀ = Φ⁻¹(share of replicates below the value),   z = Φ⁻¹((1 ± level) / 2)
        ends = quantiles of the replicates at Φ(2 z₀ + z)

    Replicates equal to the value count half; with all on one side z₀ is that of half a replicate
    on the other. The interval is extended to contain `value`; NaN replicates are left out; `units`
    expands z as in `percentile_interval`.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, JASA 82, 171-185.

    Examples
    --------
    >>> bias_corrected_interval(50, range(101), level=0.9)
    (5.0, 95.0)
    """
    from scipy.special import ndtr, ndtri

    tail = (1 - checked_level(level)) / 2
    if not np.isfinite(value):
        raise InvalidInputError(f"value: must be finite; got {value}")
    defined = _defined(replicates)
    below = float(np.mean(defined < value) + np.mean(defined == value) / 2)
    half = 0.5 / defined.size
    shift = ndtri(min(max(below, half), 1 - half))
    low, high = np.quantile(defined, ndtr(2 * shift + _normal_ends(tail, units)))
    return min(float(low), value), max(float(high), value)


class _Inversion:
    """The test of candidate truths, for one table and one set of noise draws."""

    def __init__(self, norm: Norm, table: FloatArray, noise: FloatArray) -> None:
        self.norm, self.table, self.noise = norm, table, noise
        self.observed = float(norm(table))
        self.calibrated = norm(noise)  # what a perfectly calibrated model would show
        wrong = [m for m in (self.observed, *self.calibrated) if not 0 <= m < np.inf]
        if wrong:
            raise InvalidInputError(f"norm: must be finite and not negative; got {float(wrong[0])}")
        shapes = _shapes(table, noise)
        self.shapes = [shape for shape in shapes if norm(shape) > 0]
        # A quantile of errors is 0 where most cells are right, however far off the others are.
        self.unseen = [shape for shape in shapes if shape.any() and not norm(shape) > 0]

    def low(self, tail: float) -> float:
        """Return the smallest truth under which the observed metric is not too large."""
        drawn = (self.norm(shape + self.noise) for shape in self.unseen)
        if any(_quantile(metrics, 1 - tail) >= self.observed for metrics in drawn):
            return 0.0
        return min((self._truth(u, 1 - tail, self.observed) for u in self.shapes), default=0.0)

    def high(self, tail: float) -> float:
        """Return the largest truth under which the observed metric is not too small."""
        metric = max(self.observed, _quantile(self.calibrated, 0.5))
        if _quantile(self.calibrated, tail) >= metric:
            return metric  # of two raters half of all panels are alike: no draw is below the median
        return max((self._truth(u, tail, metric) for u in self.shapes), default=0.0)

    def p_value(self) -> float:
        """Return twice how often a calibrated model shows so large an error, as `low` has it."""
        return min(share_as_large(self.calibrated, self.observed, 2), 1.0)

    def debiased(self) -> float:
        """Return the truth under which the observed metric is the median."""
        return self._truth(self.table, 0.5, self.observed) if self.observed > 0 else 0.0

    def _truth(self, shape: FloatArray, quantile: float, metric: float) -> float:
        if _quantile(self.calibrated, quantile) >= metric:
            return 0.0
        return _matching_truth(self.norm, shape, self.noise, quantile, metric)


def _shapes(table: FloatArray, noise: FloatArray) -> list[FloatArray]:
    """Return candidate shapes of the true deviations: sparse, diffuse, and drifting.

    With σ the noise of a cell: *sparse* keeps the cells that are clearly off and leaves all others
    right, where noise inflates the norm most: without it, the noise of many right cells would pass
    for error. *Diffuse* puts every cell off by at least σ, where noise inflates the norm least (by
    Jensen's inequality, for a sum of absolute values). *Drift* moves all cells of a channel one
    way, as noise in the channel's total does: overconfidence, and of all shapes the one that noise
    hides best where cells overlap or are cumulated.
    """
    error = noise.std(axis=0)
    sparse = np.where(np.abs(table) > _CLEARLY_OFF * error, table, 0)
    sign = np.where(table < 0, -1.0, 1.0)
    diffuse = sign * np.sqrt(np.maximum(table**2 - error**2, error**2))

    total = noise.sum(axis=-1, keepdims=True)
    total -= total.mean(axis=0)
    spread = total.std(axis=0)
    along = np.mean(noise * total, axis=0)
    moves = spread > 1e-9 * error.sum(axis=-1, keepdims=True)  # a constant total only by rounding
    drift = np.divide(along, spread, out=np.zeros_like(along), where=moves)
    drift *= np.where(table.sum(axis=-1, keepdims=True) < 0, -1, 1)
    return [sparse if sparse.any() else table, diffuse, drift]


def _matching_truth(
    norm: Norm, shape: FloatArray, noise: FloatArray, quantile: float, metric: float
) -> float:
    """Return ‖s·shape‖ for the s at which `metric` is that quantile of ‖s·shape + noise‖."""

    def gap(scale: float) -> float:
        return _quantile(norm(scale * shape + noise), quantile) - metric

    below, gap_below = 0.0, gap(0.0)
    above = metric / float(norm(shape))
    gap_above = gap(above)
    for _ in range(_MOST_STEPS):
        if gap_above >= 0:
            break
        below, gap_below, above = above, gap_above, 2 * above
        gap_above = gap(above)
    else:
        raise InvalidInputError(f"norm: must grow with the deviations; {metric} is never reached")
    # False position with Illinois' halving: the quantile is nearly linear in s, so a handful of
    # evaluations replaces twenty bisections.
    scale, side = above, 0
    for _ in range(_MOST_STEPS):
        scale = (below * gap_above - above * gap_below) / (gap_above - gap_below)
        here = gap(scale)
        if abs(here) <= _PRECISION * metric:
            break
        if here < 0:
            below, gap_below = scale, here
            gap_above = gap_above / 2 if side < 0 else gap_above
            side = -1
        else:
            above, gap_above = scale, here
            gap_below = gap_below / 2 if side > 0 else gap_below
            side = 1
    return float(norm(scale * shape))


def _quantile(values: FloatArray, quantile: float) -> float:
    """Return what `np.quantile` does, ten times faster for a thousand values."""
    place = quantile * (len(values) - 1)
    first = min(int(place), len(values) - 2)
    two = np.partition(values, (first, first + 1))[first : first + 2]
    return float(two[0] + (place - first) * (two[1] - two[0]))


def _believable(noise: FloatArray, least_noise: ArrayLike | None) -> FloatArray:
    """Scale the noise of each cell up to the least that is believed.

    Cells whose cases are all alike resample to no noise at all, or to rounding, and nothing can
    scale that: they get normal scores times what is believed.
    """
    if least_noise is None:
        return noise
    least = np.asarray(least_noise, dtype=np.float64)
    shape = noise.shape[1:]
    if least.shape != shape or not (np.isfinite(least) & (least >= 0)).all():
        raise InvalidInputError(
            f"least_noise: must be {shape} finite numbers, not negative; "
            f"got shape {least.shape}, smallest {least.min(initial=np.inf)}"
        )
    error = noise.std(axis=0)
    silent = (error <= _SILENT * least) & (least > 0)
    scale = np.divide(least, error, out=np.ones(shape), where=~silent & (error > 0))
    scaled: FloatArray = noise * np.maximum(scale, 1)
    if silent.any():
        scaled[:, silent] = least[silent] * _normal_scores(len(noise), int(silent.sum()))
    return scaled


def _normal_scores(draws: int, cells: int) -> FloatArray:
    """Return (draws, cells) of Φ⁻¹((i + ½) / draws), i = 0, 1 …, each cell in an order of its own.

    The orders are those of the mixed bits of the running number (splitmix64), which no two cells
    share: always the same, and as good as uncorrelated. Each column has the standard deviation 1.
    """
    from scipy.special import ndtri

    bits = np.arange(1, draws * cells + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    rank = bits.reshape(draws, cells).argsort(axis=0)
    scores = ndtri((rank + 0.5) / draws)
    return np.asarray(scores / scores.std(axis=0))


def _expansion(units: int | None, tail: float) -> float:
    """Return √(G/(G−1)) t/z, by which the bootstrap of G units understates a half-width."""
    from scipy.special import ndtri, stdtrit

    if units is None:
        return 1.0
    if units < 2:
        raise InvalidInputError(f"units: at least 2 are needed for an interval; got {units}")
    return float(np.sqrt(units / (units - 1)) * stdtrit(units - 1, tail) / ndtri(tail))


def _normal_ends(tail: float, units: int | None) -> FloatArray:
    from scipy.special import ndtri

    ends: FloatArray = ndtri(np.array([tail, 1 - tail])) * _expansion(units, tail)
    return ends


def _defined(replicates: ArrayLike) -> FloatArray:
    values = np.asarray(replicates, dtype=np.float64)
    if values.ndim != 1 or values.size < 2:
        raise InvalidInputError(
            f"replicates: must be one-dimensional, at least 2 of them; got shape {values.shape}"
        )
    defined = values[~np.isnan(values)]
    if defined.size == 0:
        raise UndefinedMetricError(
            f"replicates: the metric is undefined in all {values.size} of them"
        )
    return defined


def _checked_tables(deviation: ArrayLike, noise: ArrayLike) -> tuple[FloatArray, FloatArray]:
    table = np.asarray(deviation, dtype=np.float64)
    draws = np.asarray(noise, dtype=np.float64)
    if table.ndim == 0 or draws.shape[1:] != table.shape or len(draws) < 2:
        raise InvalidInputError(
            "noise: must have shape (resamples, *deviation.shape), at least 2 resamples; "
            f"got {draws.shape} for deviation {table.shape}"
        )
    for name, values in (("deviation", table), ("noise", draws)):
        wrong = int(np.count_nonzero(~np.isfinite(values)))
        if wrong:
            raise InvalidInputError(f"{name}: must be finite; {wrong} of {values.size} are not")
    return table, draws
