"""From one pass over the cases to estimates with intervals.

`Pass` holds the summaries that the metrics share and the tables of the resamples; each metric is
then a formula over a table, and its interval the same formula over the stack of resampled ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import intervals
from raterwise.arrays import choose, positive_integer
from raterwise.catalog import Metric
from raterwise.engines.local import summarise
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.metrics.cell_bounds import BOUNDS, kde_of_cells
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.resample import RaterDraws, multiplicities, resampling_units
from raterwise.results import Estimate
from raterwise.summaries import BinPlan, BinTable, SoftBinPlan
from raterwise.summaries.cells import CellSums

__all__ = [
    "Draws",
    "Pass",
    "Progress",
    "Settings",
    "estimate",
    "mean_estimate",
    "value_of",
]

Progress = Callable[[str, float], None]
Options = Mapping[str, Any]
FloatArray = NDArray[Any]

PAIRS = BinPlan(Question("disagreement", "case"), 1, least_raters=2)
"""The plan of how often two raters differ, and how often the probabilities say so."""
LEFT_OUT_TOGETHER = 256
"""How many units are left out one by one in the memory of one step."""


@dataclass(frozen=True)
class Settings:
    """How intervals are made."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0
    resample: str = "cases"
    interval: str = "auto"
    on_single: str = "error"
    threads: int | None = None

    def __post_init__(self) -> None:
        positive_integer("resamples", self.resamples, least=0)
        positive_integer("seed", self.seed, least=0)
        choose("resample", self.resample, ("cases", "raters"))
        choose("interval", self.interval, ("auto", "percentile", "bias_corrected"))
        choose("on_single", self.on_single, ("error", "drop"))
        if not 0 < self.level < 1:
            raise InvalidInputError(f"level: must be between 0 and 1; got {self.level}")
        if self.threads is not None:
            positive_integer("threads", self.threads)
        if self.resamples == 1:
            raise InvalidInputError("resamples: must be 0 (no intervals) or at least 2; got 1")


@dataclass(frozen=True, eq=False)
class Draws:
    """Which unit each case belongs to, and how often each resample draws each unit."""

    units: NDArray[np.int64]
    number: int
    times: FloatArray
    """(resamples, units)."""

    @staticmethod
    def of(predictions: Predictions, settings: Settings) -> Draws | None:
        """Return the draws of a bootstrap by patient or case; None where none is asked for."""
        if settings.resamples == 0 or settings.resample == "raters":
            return None
        units, number = resampling_units(predictions, settings.seed)
        return Draws(units, number, multiplicities(number, settings.resamples, settings.seed))

    def take(self, rows: Any) -> Draws:
        """Return the draws for some of the cases."""
        return replace(self, units=self.units[rows])


class Pass:
    """The summaries of one pass, and the stacks of resampled tables that metrics share."""

    def __init__(
        self,
        summaries: Mapping[Any, Any],
        plans: Mapping[str, Any],
        settings: Settings,
        draws: Draws | None,
        *,
        raters: float,
        cases: float,
        rater_draws: RaterDraws | None = None,
    ) -> None:
        """Take the summaries of a pass that is over, wherever they were made.

        Parameters
        ----------
        summaries
            By their plans; where cells stand for scores, sums over cells.
        plans
            By the name of the metric: which summary is its own.
        raters
            Labels per case, on average.
        cases
            How many independent cases of equal weight would carry as much.
        rater_draws
            The summaries of every resample, where raters are resampled.
        """
        self.settings = settings
        self.draws = draws
        self.raters = raters
        self.cases = cases
        self._summaries = summaries
        self._plans = plans
        self._rater_draws = rater_draws
        self._tables: dict[Any, Any] = {}
        self._stacks: dict[Any, Any] = {}

    @staticmethod
    def of(
        predictions: Predictions,
        asked: Sequence[tuple[Metric, Options]],
        settings: Settings,
        draws: Draws | None,
        progress: Progress | None = None,
    ) -> Pass:
        """Summarise predictions for the metrics that are asked for."""
        plans = {row.name: row.plan(own) for row, own in asked}
        wanted = list(plans.values())
        raters = float(predictions.labels.num_raters.mean())
        several = predictions.labels.classes is None and raters > 1
        summaries = summarise(
            predictions,
            [*wanted, PAIRS] if several else wanted,
            units=None if draws is None else draws.units,
            num_units=1 if draws is None else draws.number,
            threads=settings.threads,
        )
        drawn = None
        if settings.resamples and settings.resample == "raters":
            drawn = RaterDraws.of(predictions, wanted, settings.resamples, settings.seed, progress)
        cases = _independent_cases(predictions)
        return Pass(
            summaries, plans, settings, draws, raters=raters, cases=cases, rater_draws=drawn
        )

    @property
    def units(self) -> int | None:
        """How many units were resampled."""
        return None if self.draws is None else self.draws.number

    @cached_property
    def agreement(self) -> float:
        """How far two raters of a case agree beyond what its probabilities say: 0 … 1.

        1 - observed / predicted disagreement; 1 where no case has two labels, so that nothing is
        taken for granted.
        """
        if PAIRS not in self._summaries:
            return 1.0
        table = self._summaries[PAIRS].table
        predicted, observed = float(table.score.sum()), float(table.positive.sum())
        return float(np.clip(1 - observed / predicted, 0, 1)) if predicted > 0 else 1.0

    def value(self, row: Metric, own: Options) -> tuple[float, float | None]:
        """Return the metric on all cases, and a bound on its error where it is approximate."""
        return value_of(row, own, self._kept(row))

    def summary(self, row: Metric) -> Any:
        """Return the summary that `row` is computed from: scores, where cells stand for them."""
        kept = self._kept(row)
        return kept.scores() if isinstance(kept, CellSums) else kept

    def case_counts(self, row: Metric) -> FloatArray | None:
        """Return how many cases each score of `summary` stands for; None where each is one."""
        kept = self._kept(row)
        return kept.case_counts if isinstance(kept, CellSums) else None

    def _kept(self, row: Metric) -> Any:
        return self._summaries[self._plans[row.name]]

    def table(self, row: Metric, own: Options) -> Any:
        """Return the table that `row` is a formula over."""
        return self._per_unit(row, own).table

    def stack(self, row: Metric, own: Options) -> Any:
        """Return the tables of the resamples, stacked."""
        key = self._key(row, own)
        if key not in self._stacks:
            per_unit = self._per_unit(row, own)
            if self.draws is not None:
                self._stacks[key] = per_unit.resampled(self.draws.times)
            else:
                assert self._rater_draws is not None
                self._stacks[key] = self._tabled(self._rater_draws.drawn, row, own)
        return self._stacks[key]

    def _tabled(self, summaries: Sequence[Mapping[Any, Any]], row: Metric, own: Options) -> Any:
        like, plan = self._per_unit(row, own), self._plans[row.name]
        tables = [row.prepare(summary[plan], own, like=like).table for summary in summaries]
        return type(tables[0])(np.stack([table.sums for table in tables]))

    @property
    def rater_spread(self) -> float:
        """By how much resamples of raters are too close together."""
        return 1.0 if self._rater_draws is None else self._rater_draws.spread

    def least_noise(self, row: Metric, own: Options) -> FloatArray | None:
        """Return the noise of a calibrated model per cell; None where cells share cases."""
        per_unit = self._per_unit(row, own)
        if isinstance(per_unit.plan, SoftBinPlan) or per_unit.smoother is not None:
            return None
        table = per_unit.table
        # Where every case is in every channel, the weight of all counts it as often.
        often = len(table.weight) if per_unit.plan.question.name == "per_class" else 1
        share = table.weight / (table.weight.sum() / often)
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        noise = intervals.calibrated_noise(score, share, self.cases, self.raters, self.agreement)
        return np.asarray(noise / often)

    def replicates(self, row: Metric, own: Options, value: float) -> FloatArray:
        """Return the metric on every resample (NaN where it is undefined)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if self._rater_draws is not None and self._rater_draws.left_out and row.of_pairs:
                tables = self._tabled(self._rater_draws.left_out, row, own)
                return self._rater_draws.of_pairs(value, row.over(tables, own))
            replicates = row.over(self.stack(row, own), own)
        if self.draws is None or (own.get("estimator") == "debiased" and not row.error):
            return self._around(value, replicates, row, own)
        # Cells stand in for scores in the resamples; what they shift, they shift alike.
        return np.asarray(replicates + (value - float(row.over(self.table(row, own), own))))

    def _around(
        self, value: float, replicates: FloatArray, row: Metric, own: Options
    ) -> FloatArray:
        """Return resampled values moved and spread as they should be.

        A resample holds cases twice, and a correction for chance takes copies for independent
        cases. In bins of few cases the resampled values of a debiased estimator therefore gather
        around the plugin, and too closely. The estimator is right on average, so they belong
        around its value; its standard error is that of leaving out one unit at a time, which makes
        no copies. Likewise labels that are drawn twice agree with each other.
        """
        spread = np.nanstd(replicates)
        error = self._jackknife_error(row, own)
        scale = error / spread if error is not None and spread > 0 else self.rater_spread
        return np.asarray(value + scale * (replicates - np.nanmean(replicates)))

    def _jackknife_error(self, row: Metric, own: Options) -> float | None:
        """Return (G-1)/G sqrt(Σ (θᵢ - θ̄)²), θᵢ the metric without unit i of G.

        That is the jackknife's error times sqrt((G-1)/G): of a mean it is what the bootstrap has,
        and what every interval expands. None where raters are resampled.
        """
        if self.draws is None:
            return None
        per_unit = self._per_unit(row, own)
        total, units = per_unit.sums.sum(axis=0), len(per_unit.sums)
        without = np.concatenate(
            [
                row.over(BinTable(total - per_unit.sums[first : first + LEFT_OUT_TOGETHER]), own)
                for first in range(0, units, LEFT_OUT_TOGETHER)
            ]
        )
        squares = np.nansum((without - np.nanmean(without)) ** 2)
        return float((units - 1) / units * np.sqrt(squares))

    def _per_unit(self, row: Metric, own: Options) -> Any:
        key = self._key(row, own)
        if key not in self._tables:
            kept = self._kept(row)
            kept = kept.scores_by_unit() if isinstance(kept, CellSums) else kept
            self._tables[key] = row.prepare(kept, own)
        return self._tables[key]

    def _key(self, row: Metric, own: Options) -> Any:
        return self._plans[row.name], row.prepare, repr(own.get("bins"))


def value_of(row: Metric, own: Options, summary: Any) -> tuple[float, float | None]:
    """Return a metric of a summary, and a bound on its error where cells stand for scores."""
    if not isinstance(summary, CellSums):
        return row.estimate_with_bound(summary, own)
    if row.name == "kde_ece":
        return kde_of_cells(summary, own)
    value = row.estimate(summary.scores(), own)
    return value, BOUNDS[row.name](summary, value, own)


def _independent_cases(predictions: Predictions) -> float:
    """Return (Σ w)² / Σ w²: how many cases of equal weight would carry as much."""
    weights = predictions.labels.num_raters.astype(np.float64)
    if predictions.weights is not None:
        weights = weights * predictions.weights
    return float(weights.sum() ** 2 / (weights**2).sum())


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
    if settings.resamples == 0 or parts[0][0].units == 1:
        return point
    if row.error and settings.interval == "auto":
        found = _invert(row, own, point.value, [pass_ for pass_, _ in parts])
        return replace(point, low=found.low, high=found.high, debiased=found.debiased)
    each = [p.replicates(row, o, value) for (p, value), o in zip(parts, own, strict=True)]
    replicates, units = np.mean(each, axis=0), parts[0][0].units
    if np.isnan(replicates).all():
        return point
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
        if pass_.draws is None:  # labels that are drawn twice agree with each other
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
