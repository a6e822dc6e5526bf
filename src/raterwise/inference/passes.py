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
from raterwise.inference import intervals, noise
from raterwise.inference.draws import multiplicities
from raterwise.inference.raters import RaterDraws
from raterwise.inference.settings import Settings
from raterwise.questions import Question
from raterwise.summaries import BinPlan, BinTable
from raterwise.summaries.digest import Digest
from raterwise.summaries.outside import takes_outside
from raterwise.types import Options

FloatArray = NDArray[Any]
Asked = Mapping[str, tuple[Metric, Options]]
"""Metrics by their names, each with its options."""

PAIRS = BinPlan(Question("disagreement", "case"), 1, least_raters=2)
"""The plan of how often two raters differ, and how often the probabilities say so."""
OUTSIDE_STREAM = 7
"""The stream of random numbers that draws cases from elsewhere."""
NO_INTERVAL = "it has no interval, for which all pairs of cases would be compared again"
"""What to say of whole vectors that have no tables to resample."""
NO_RATERS = (
    "it has no interval where raters are resampled, since the rows would be kept for every draw of "
    'raters; unit="cases" has one'
)
"""What to say of whole vectors where raters are a sample too."""
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
        self.rater_draws = rater_draws
        self._tables: dict[Any, Any] = {}
        self._stacks: dict[Any, Any] = {}

    @property
    def units(self) -> int | None:
        """How many units are resampled; None where only raters are, or nothing is."""
        if not self.settings.resamples or self.settings.unit == "raters":
            return None
        return len(self.digest.unit_cases)

    @property
    def resampled(self) -> bool:
        """Whether there are resamples to make intervals of."""
        drawn = self.units is not None or self.rater_draws is not None
        return self.settings.resamples > 0 and self.units != 1 and drawn

    @cached_property
    def times(self) -> FloatArray:
        """(resamples, units): how often each resample draws each unit."""
        assert self.units is not None
        return multiplicities(self.units, self.settings.resamples, self.settings.seed)

    @cached_property
    def _times_with_outside(self) -> FloatArray:
        """The same beside how often it draws each unit of cases from elsewhere, by itself."""
        number, settings = len(self.digest.outside_cases), self.settings
        outside = multiplicities(number, settings.resamples, settings.seed, OUTSIDE_STREAM)
        return np.hstack((self.times, outside))

    def with_outside(self, row: Metric) -> bool:
        """Tell whether a metric is of cases from elsewhere as well."""
        return self.facts.outside > 0 and takes_outside(self._plans[row.name])

    def units_of(self, row: Metric) -> tuple[int, int]:
        """Return how many units of cases a metric has, and how many of cases from elsewhere."""
        outside = len(self.digest.outside_cases) if self.with_outside(row) else 0
        return len(self.digest.unit_cases), outside

    def worth(self, row: Metric) -> float:
        """Return how many independent cases of equal weight, outside ones too, tell as much."""
        return self.cases + (self.facts.outside if self.with_outside(row) else 0)

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
            said = [row.notice(self._kept(row), own)] if row.notice is not None else []
            if not self.tabled(row):
                said.append(NO_RATERS if self._plans[row.name].tabled else NO_INTERVAL)
            for one in filter(None, said):
                yield f"{row.title}: {one}"

    def in_turns(self) -> list[list[str]]:
        """Return the metrics in the order in which their tables take the least memory."""
        return self.digest.in_turns(self._plans)

    def let_go(self, metrics: Sequence[str], *, part: bool = False) -> None:
        """Free the tables of metrics that have been judged; with `part`, the least useful."""
        gone = {self._plans[name] for name in metrics}
        for known in (self._tables, self._stacks):
            for key in list(known):
                if (key[1][0] if key[0] == "raters" else key[0]) in gone:
                    del known[key]
        self.digest.let_go(gone, part=part)

    def _kept(self, row: Metric) -> Any:
        return self.digest.summaries[self._plans[row.name]]

    def of_rows(self, row: Metric) -> bool:
        """Tell whether whole rows are kept."""
        grows: bool = self._plans[row.name].grows
        return grows

    def tabled(self, row: Metric) -> bool:
        """Tell whether there are tables to resample; rows are not kept for every draw of raters."""
        tabled: bool = self._plans[row.name].tabled
        return tabled and not (self.of_rows(row) and self.rater_draws is not None)

    def table(self, row: Metric, own: Options) -> Any:
        """Return the table that `row` is a formula over."""
        return self._per_unit(row, own).table

    def stack(self, row: Metric, own: Options) -> Any:
        """Return the tables of the resamples of cases, stacked; of raters where only they are."""
        if self.units is None:
            return self.rater_stack(row, own)
        key = self._key(row, own)
        if key not in self._stacks:
            times = self._times_with_outside if self.units_of(row)[1] else self.times
            self._stacks[key] = self._per_unit(row, own).resampled(times)
        return self._stacks[key]

    def rater_stack(self, row: Metric, own: Options) -> Any:
        """Return the tables of the resamples of raters, stacked."""
        assert self.rater_draws is not None
        key = "raters", self._key(row, own)
        if key not in self._stacks:
            self._stacks[key] = self._tabled(self.rater_draws.drawn, row, own)
        return self._stacks[key]

    def unsmoothed_rater_stack(self, row: Metric, own: Options) -> Any:
        """Return the tables of the resamples of raters before they are smoothed."""
        assert self.rater_draws is not None
        like, plan = self._per_unit(row, own), self._plans[row.name]
        drawn = self.rater_draws.drawn
        tables = [row.prepare(s[plan].by_unit(), own, like=like).unsmoothed.table for s in drawn]
        return BinTable(np.stack([table.sums for table in tables]))

    def without_raters(self, row: Metric, own: Options) -> FloatArray | None:
        """Return the metric without each of the raters; None where nobody knows who said what."""
        if self.rater_draws is None or not self.rater_draws.left_out:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            return row.over(self._tabled(self.rater_draws.left_out, row, own), own)

    def cells(self, row: Metric, own: Options) -> Any:
        """Return the table per unit that `row` is a formula over, before it is smoothed."""
        return self._per_unit(row, own).unsmoothed

    def channels(self, row: Metric, own: Options) -> int:
        """Return how many classes the table of `row` has."""
        return int(self.table(row, own).sums.shape[-3])

    def smoother(self, row: Metric, own: Options) -> FloatArray | None:
        """Return what smooths the cells of a kernel error."""
        smoother: FloatArray | None = self._per_unit(row, own).smoother
        return smoother

    def _tabled(self, summaries: Sequence[Mapping[Any, Any]], row: Metric, own: Options) -> Any:
        like, plan = self._per_unit(row, own), self._plans[row.name]
        known: dict[int, Any] = {}  # of few persons there are few panels, each drawn many times
        for summary in summaries:
            if id(summary) not in known:
                table = row.prepare(summary[plan].by_unit(), own, like=like).table
                known[id(summary)] = table.sums
        return type(like.table)(np.stack([known[id(summary)] for summary in summaries]))

    def least_noise(self, row: Metric, own: Options) -> FloatArray:
        """Return the noise of a calibrated model per cell, through the smoother where there is one.

        Where every case is in every channel, the weight of all counts it as often.
        """
        cells = self.cells(row, own)
        every = cells.plan.question.name in ("per_class", "event")
        often = len(cells.table.weight) if every else 1
        if cells.plan.mixture is not None:
            return self._noise_of_mixtures(cells.table)
        if cells.plan.spread is not None:
            return self._noise_of_soft_bins(cells) / often
        found = self.noise_of_cells(cells.table, often)
        smoother = self.smoother(row, own)
        return found if smoother is None else noise.propagated_noise(smoother, found)

    def noise_of_cells(self, table: Any, often: int = 1) -> FloatArray:
        """Return the noise of a calibrated model in cells that hold different cases."""
        share = table.weight / (table.weight.sum() / often)
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        found = intervals.calibrated_noise(score, share, self.cases, self.raters, self.agreement)
        return np.asarray(found / often)

    def _noise_of_soft_bins(self, cells: Any) -> FloatArray:
        """Return the same of bins that a Gaussian spreads each score over."""
        from scipy.special import ndtr

        table, edges = cells.table, cells.plan.edges
        centres = (edges[1:] + edges[:-1]) / 2
        shares = np.diff(ndtr((edges - centres[:, None]) / cells.plan.spread), axis=1)
        shares /= shares.sum(axis=1, keepdims=True)
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        about = self.cases, self.raters, self.agreement
        each = [
            noise.soft_noise(z, n, shares, *about) if n.sum() else np.zeros(len(z))
            for z, n in zip(score, table.cases, strict=True)
        ]
        return np.stack(each)

    def _noise_of_mixtures(self, table: Any) -> FloatArray:
        """Return the same of bins over which each case is spread in its own way: Σ (w s)² is kept.

        sqrt( z̄_b (1 - z̄_b) Σ_i (w_i s_ib)² / (Σ w)² · (a + (1 - a) / raters) )
        """
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        per_case = self.agreement + (1 - self.agreement) / self.raters
        part = table.squared_weight / table.weight.sum() ** 2
        return np.asarray(np.sqrt(np.clip(score * (1 - score), 0, None) * part * per_case))

    def step(self, row: Metric, own: Options) -> dict[str, float]:
        """Return what one more error would add to a loss; nothing where nobody can say.

        Of a loss without a limit one case is supposed to be wrong: that all cases of a patient
        could be as wrong as can be would say nothing any more.
        """
        if row.step is None:
            return {}
        part = len(self.digest.unit_cases) / max(float(self.digest.unit_cases.sum()), 1.0)
        powers = {"dear": 1, "squared_dear": 2}
        told = {name: own[name] for name in row.formula_options}
        if row.step_plan is None:
            found = row.step(self.table(row, own), **told)
        else:
            kept = self.digest.summaries.get(row.step_plan)
            if kept is None:
                return {}
            found = row.step(kept.table, **told)
            powers |= {"step": 1, "squared_step": 2}
        return {name: value * part ** powers.get(name, 0) for name, value in found.items()}

    def replicates(
        self, row: Metric, own: Options, value: float, *, paired: bool = False
    ) -> FloatArray:
        """Return the metric on every resample (NaN where it is undefined).

        Where they are `paired` with those of another model, raters move both as they do.
        """
        found = np.full(self.settings.resamples, value)
        if self.units is not None:
            found = found + (self._by_cases(row, own, value) - value)
        if self.rater_draws is not None:
            found = found + (self._by_raters(row, own, value, paired) - value)
        return np.asarray(found)

    def _by_cases(self, row: Metric, own: Options, value: float) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = row.over(self.stack(row, own), own)
        if own.get("estimator") == "debiased" and not row.error:
            spread = np.nanstd(replicates)
            scale = self._jackknife_error(row, own) / spread if spread > 0 else 1.0
            return _around(value, replicates, scale)
        # Cells stand in for scores in the resamples; what they shift, they shift alike.
        return np.asarray(replicates + (value - float(row.over(self.table(row, own), own))))

    def _by_raters(self, row: Metric, own: Options, value: float, paired: bool) -> FloatArray:
        assert self.rater_draws is not None
        without = self.without_raters(row, own)
        if without is not None and row.of_pairs and not paired:
            return self.rater_draws.around(value, without)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = row.over(self.rater_stack(row, own), own)
        return self.rater_draws.replicates(value, drawn, without, of_pairs=row.of_pairs)

    def _jackknife_error(self, row: Metric, own: Options) -> float:
        """Return (G-1)/G sqrt(Σ (θᵢ - θ̄)²), θᵢ the metric without unit i of G.

        That is the jackknife's error times sqrt((G-1)/G): of a mean it is what the bootstrap has,
        and what every interval expands.
        """
        without = self.without_each(row, own)
        units = len(without)
        squares = np.nansum((without - np.nanmean(without)) ** 2)
        return float((units - 1) / units * np.sqrt(squares))

    def without_each(self, row: Metric, own: Options) -> FloatArray:
        """Return the metric without each of the units, one at a time."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.concatenate([row.over(table, own) for table in self.rests(row, own)])

    def rests(self, row: Metric, own: Options, *, smoothed: bool = True) -> Iterator[Any]:
        """Yield stacks of tables without one unit each, some units at a time."""
        per_unit = self._per_unit(row, own) if smoothed else self.cells(row, own)
        units = sum(self.units_of(row))
        for i in range(0, units, LEFT_OUT_TOGETHER):
            yield per_unit.without_each(i, min(i + LEFT_OUT_TOGETHER, units))

    def unit_sizes(self, row: Metric, own: Options) -> FloatArray:
        """Return how much each unit weighs in a metric: sums of weights, not numbers of cases.

        A unit none of whose cases counts (too few raters) has 0; of a ratio it is what the unit
        has of the denominator. Sums over pairs of raters keep no weights; of them it is the cases.
        """
        if row.denominator is not None:
            return np.asarray(row.denominator(BinTable(self._per_unit(row, own).sums), own))
        sums = getattr(self._per_unit(row, own), "sums_by_unit", None)
        return np.asarray(self.digest.unit_cases if sums is None else sums(1), dtype=np.float64)

    def unit_positives(self, row: Metric, own: Options) -> FloatArray:
        """Return how much each unit has of the positive class."""
        return np.asarray(self.cells(row, own).sums_by_unit(4))

    def parts_without_each(self, row: Metric, own: Options) -> list[tuple[FloatArray, float]]:
        """Return the shares that a difference is made of without each unit, with their factors."""
        assert row.parts is not None
        told = {name: own[name] for name in row.formula_options}
        each = [row.parts(table, **told) for table in self.rests(row, own)]
        return [(np.concatenate([parts[i][0] for parts in each]), each[0][i][1]) for i in range(2)]

    def by_group(self, row: Metric, own: Options, groups: FloatArray, number: int) -> Any:
        """Return the tables of groups of units: `groups` (units,) is the group of each.

        Cases from elsewhere are in no group; they are the last of the tables.
        """
        outside = np.full(self.units_of(row)[1], number)
        member = np.concatenate((groups, outside)).astype(np.int64)
        return self._per_unit(row, own).grouped(member, number + 1)

    def _per_unit(self, row: Metric, own: Options) -> Any:
        key = self._key(row, own)
        if key not in self._tables:
            self._tables[key] = row.prepare(self._kept(row).by_unit(), own)
        return self._tables[key]

    def _key(self, row: Metric, own: Options) -> Any:
        made_with = [own.get(name) for name in ("bins", *row.table_options)]
        return self._plans[row.name], row.prepare, repr(made_with)


def _around(value: float, replicates: FloatArray, scale: float) -> FloatArray:
    """Return resampled values moved and spread as they should be.

    A resample holds cases twice, and a correction for chance takes copies for independent cases.
    In bins of few cases the resampled values of a debiased estimator therefore gather around the
    plugin, and too closely. The estimator is right on average, so they belong around its value;
    its standard error is that of leaving out one unit at a time, which makes no copies. Likewise
    labels that are drawn twice agree with each other.
    """
    return np.asarray(value + scale * (replicates - np.nanmean(replicates)))


def _plan_in(digest: Digest, row: Metric, plan: Any) -> Any:
    """Return the plan of a metric whose summary the digest has: its own, or one of cells.

    A kernel compares every score with every other: where there are cells, it takes those.
    """
    either = (plan.bounded(), plan) if "kernel" in row.tags else (plan, plan.bounded())
    return next((p for p in either if p in digest.summaries), None)
