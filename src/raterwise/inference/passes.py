"""One pass over the cases: its summaries, and the resampled tables that metrics share.

Each metric is a formula over a table, and its interval the same formula over the stack of
resampled ones. A pass is made of a digest, wherever that came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError
from raterwise.inference import intervals
from raterwise.inference.draws import multiplicities
from raterwise.inference.raters import RaterDraws
from raterwise.inference.settings import Settings
from raterwise.questions import Question
from raterwise.recipes import Options
from raterwise.summaries import BinPlan
from raterwise.summaries.digest import Digest

__all__ = ["PAIRS", "Asked", "Pass"]

FloatArray = NDArray[Any]
Asked = Mapping[str, tuple[Metric, Options]]
"""Metrics by their names, each with its options."""

PAIRS = BinPlan(Question("disagreement", "case"), 1, least_raters=2)
"""The plan of how often two raters differ, and how often the probabilities say so."""
LEFT_OUT_TOGETHER = 256
"""How many units are left out one by one in the memory of one step."""


class Pass:
    """The summaries of one pass, and the stacks of resampled tables that metrics share."""

    def __init__(
        self,
        digest: Digest,
        asked: Asked,
        settings: Settings,
        *,
        rater_draws: RaterDraws | None = None,
    ) -> None:
        """Take the digest of a pass that is over.

        Parameters
        ----------
        digest
            With the summaries that the metrics asked for need: of their plans, or of cells that
            stand for the scores.
        rater_draws
            The summaries of every resample, where raters are resampled.
        """
        self.settings = settings
        self.facts = digest.facts
        self.digest = digest
        self._plans = {
            name: _plan_in(digest, row, row.plan_of(own, settings.on_single))
            for name, (row, own) in asked.items()
        }
        if missing := [name for name, plan in self._plans.items() if plan is None]:
            raise InvalidInputError(
                f"metrics: these were not summarised, or with other options: {', '.join(missing)}"
            )
        self._rater_draws = rater_draws
        self._tables: dict[Any, Any] = {}
        self._stacks: dict[Any, Any] = {}

    @property
    def by_rater(self) -> bool:
        """Whether raters are resampled, not cases."""
        return self.settings.unit == "raters"

    @property
    def units(self) -> int | None:
        """How many units are resampled; None where raters are, or nothing is."""
        if not self.settings.resamples or self.by_rater:
            return None
        return len(self.digest.unit_cases)

    @property
    def resampled(self) -> bool:
        """Whether there are resamples to make intervals of."""
        return self.settings.resamples > 0 and self.units != 1

    @cached_property
    def times(self) -> FloatArray:
        """(resamples, units): how often each resample draws each unit."""
        assert self.units is not None
        return multiplicities(self.units, self.settings.resamples, self.settings.seed)

    @property
    def raters(self) -> float:
        """Labels per case, on average."""
        return self.facts.raters

    @property
    def cases(self) -> float:
        """How many independent cases of equal weight would carry as much."""
        return self.facts.worth

    @cached_property
    def agreement(self) -> float:
        """How far two raters of a case agree beyond what its probabilities say: 0 … 1.

        1 - observed / predicted disagreement; 1 where no case has two labels, so that nothing is
        taken for granted.
        """
        if self.facts.most < 2 or PAIRS not in self.digest.summaries:
            return 1.0
        table = self.digest.summaries[PAIRS].table
        predicted, observed = float(table.score.sum()), float(table.positive.sum())
        return float(np.clip(1 - observed / predicted, 0, 1)) if predicted > 0 else 1.0

    def value(self, row: Metric, own: Options) -> tuple[float, float | None]:
        """Return the metric on all cases, and a bound on its error where it is approximate."""
        value, bound = self._kept(row).value(row, own)
        return float(value), bound

    def summary(self, row: Metric) -> Any:
        """Return the scores that `row` is computed from, also where cells stand for them."""
        return self._kept(row).scores()

    def case_counts(self, row: Metric) -> FloatArray | None:
        """Return how many cases each score of `summary` stands for; None where each is one."""
        counts: FloatArray | None = self._kept(row).case_counts
        return counts

    def notices(self, asked: Asked) -> Iterator[str]:
        """Yield what is to say of options that were chosen from the data."""
        for row, own in asked.values():
            said = None if row.notice is None else row.notice(self._kept(row), own)
            if said:
                yield f"{row.title}: {said}"

    def _kept(self, row: Metric) -> Any:
        return self.digest.summaries[self._plans[row.name]]

    def table(self, row: Metric, own: Options) -> Any:
        """Return the table that `row` is a formula over."""
        return self._per_unit(row, own).table

    def stack(self, row: Metric, own: Options) -> Any:
        """Return the tables of the resamples, stacked."""
        key = self._key(row, own)
        if key not in self._stacks:
            if self.by_rater:
                assert self._rater_draws is not None
                self._stacks[key] = self._tabled(self._rater_draws.drawn, row, own)
            else:
                self._stacks[key] = self._per_unit(row, own).resampled(self.times)
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
        if per_unit.overlapping:
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
        if self.by_rater or (own.get("estimator") == "debiased" and not row.error):
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
        if self.by_rater:
            return None
        without = self.without_each(row, own)
        units = len(without)
        squares = np.nansum((without - np.nanmean(without)) ** 2)
        return float((units - 1) / units * np.sqrt(squares))

    def without_each(self, row: Metric, own: Options) -> FloatArray:
        """Return the metric without each of the units, one at a time."""
        per_unit, units = self._per_unit(row, own), len(self.digest.unit_cases)
        parts = range(0, units, LEFT_OUT_TOGETHER)
        tables = (per_unit.without_each(i, min(i + LEFT_OUT_TOGETHER, units)) for i in parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.concatenate([row.over(table, own) for table in tables])

    def _per_unit(self, row: Metric, own: Options) -> Any:
        key = self._key(row, own)
        if key not in self._tables:
            self._tables[key] = row.prepare(self._kept(row).by_unit(), own)
        return self._tables[key]

    def _key(self, row: Metric, own: Options) -> Any:
        return self._plans[row.name], row.prepare, repr(own.get("bins"))


def _plan_in(digest: Digest, row: Metric, plan: Any) -> Any:
    """Return the plan of a metric whose summary the digest has: its own, or one of cells.

    A kernel compares every score with every other: where there are cells, it takes those.
    """
    either = (plan.bounded(), plan) if "kernel" in row.tags else (plan, plan.bounded())
    return next((p for p in either if p in digest.summaries), None)
