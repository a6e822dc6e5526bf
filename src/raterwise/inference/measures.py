"""One metric on a pass: a formula over a table, its interval the same over resampled tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import Metric
from raterwise.inference import noise
from raterwise.inference.passes import Pass
from raterwise.inference.raters import RaterDraws
from raterwise.summaries import BinTable
from raterwise.summaries.digest import Digest
from raterwise.summaries.outside import takes_outside
from raterwise.types import Options

FloatArray = NDArray[Any]

NO_INTERVAL = "it has no interval, for which all pairs of cases would be compared again"
"""What to say of whole vectors that have no tables to resample."""
NO_RATERS = (
    "it has no interval where raters are resampled, since the rows would be kept for every draw of "
    'raters; unit="cases" has one'
)
"""What to say of whole vectors where raters are a sample too."""
LEFT_OUT_TOGETHER = 256
"""How many units are left out one by one in the memory of one step."""


@dataclass(frozen=True, eq=False)
class Measure:
    """One metric with its options on a pass: its value, its table and the resampled ones."""

    row: Metric
    own: Options
    pass_: Pass

    def notices(self) -> Iterator[str]:
        """Yield what is to say of options that were chosen from the data."""
        said = [self.row.notice(self.kept, self.own)] if self.row.notice is not None else []
        if not self.tabled:
            said.append(NO_RATERS if self.plan.tabled else NO_INTERVAL)
        for note in filter(None, said):
            yield f"{self.row.title}: {note}"

    @property
    def plan(self) -> Any:
        """What was kept for the metric."""
        return self.pass_.plans[self.row.name]

    @property
    def kept(self) -> Any:
        """The summary that the metric is computed from."""
        return self.pass_.digest.summaries[self.plan]

    @property
    def with_outside(self) -> bool:
        """Whether the metric is of cases from elsewhere as well."""
        return self.pass_.facts.outside > 0 and takes_outside(self.plan)

    @property
    def units(self) -> tuple[int, int]:
        """How many units of cases the metric has, and how many of cases from elsewhere."""
        digest = self.pass_.digest
        return len(digest.unit_cases), len(digest.outside_cases) if self.with_outside else 0

    @property
    def worth(self) -> float:
        """How many independent cases of equal weight, outside ones too, tell as much."""
        return self.pass_.cases + (self.pass_.facts.outside if self.with_outside else 0)

    @property
    def tabled(self) -> bool:
        """Whether there are tables to resample; rows are not kept for every draw of raters."""
        return self.plan.tabled and not (self.plan.grows and self.pass_.rater_draws is not None)

    def value(self) -> tuple[float, float | None]:
        """Return the metric on all cases, and a bound on its error where it is approximate."""
        value, bound = self.kept.value(self.row, self.own)
        return float(value), bound

    def scores(self) -> Any:
        """Return the scores that it is computed from, also where cells stand for them."""
        return self.kept.scores()

    def over(self, table: Any) -> FloatArray:
        """Return the formula over a table or a stack of tables."""
        return self.row.over(table, self.own)

    @property
    def table(self) -> Any:
        """The table that the metric is a formula over."""
        return self._per_unit.table

    @property
    def cells(self) -> Any:
        """The table per unit that it is a formula over, before it is smoothed."""
        return self._per_unit.unsmoothed

    @property
    def smoother(self) -> FloatArray | None:
        """What smooths the cells of a kernel error."""
        smoother: FloatArray | None = self._per_unit.smoother
        return smoother

    @property
    def channels(self) -> int:
        """How many classes its table has."""
        return int(self.table.sums.shape[-3])

    @property
    def stack(self) -> Any:
        """The tables of the resamples of cases, stacked; of raters where only they are."""
        if self.pass_.units is None:
            return self.rater_stack
        stacks, key = self.pass_.stacks, self._key
        if key not in stacks:
            times = self.pass_.times_with_outside if self.units[1] else self.pass_.times
            stacks[key] = self._per_unit.resampled(times)
        return stacks[key]

    @property
    def rater_stack(self) -> Any:
        """The tables of the resamples of raters, stacked."""
        assert self.pass_.rater_draws is not None
        stacks, key = self.pass_.stacks, ("raters", self._key)
        if key not in stacks:
            stacks[key] = self._tabled(self.pass_.rater_draws.drawn)
        return stacks[key]

    def unsmoothed_stack(self) -> Any:
        """Return the resampled cells: of cases, or of raters where only they are resampled."""
        if self.pass_.units is not None:
            return self.cells.resampled(self.pass_.times)
        assert self.pass_.rater_draws is not None
        like, drawn = self._per_unit, self.pass_.rater_draws.drawn
        made = [self.row.prepare(s[self.plan].by_unit(), self.own, like=like) for s in drawn]
        return BinTable(np.stack([one.unsmoothed.table.sums for one in made]))

    def without_raters(self) -> FloatArray | None:
        """Return the metric without each of the raters; None where nobody knows who said what."""
        draws = self.pass_.rater_draws
        if draws is None or not draws.left_out:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.over(self._tabled(draws.left_out))

    def _tabled(self, summaries: Sequence[Mapping[Any, Any]]) -> Any:
        like = self._per_unit
        known: dict[int, Any] = {}  # of few persons there are few panels, each drawn many times
        for summary in summaries:
            if id(summary) not in known:
                by_unit = summary[self.plan].by_unit()
                known[id(summary)] = self.row.prepare(by_unit, self.own, like=like).table.sums
        return type(like.table)(np.stack([known[id(summary)] for summary in summaries]))

    @property
    def often(self) -> int:
        """How often the weight of all counts a case: where every case is in every channel."""
        every = self.cells.plan.question.name in ("per_class", "event")
        return len(self.cells.table.weight) if every else 1

    def least_noise(self) -> FloatArray:
        """Return the noise of a calibrated model per cell, smoothed where the metric is."""
        cells = self.cells
        if cells.plan.mixture is not None:
            return self.pass_.noise_of_mixtures(cells.table)
        if cells.plan.spread is not None:
            return self.pass_.noise_of_soft_bins(cells) / self.often
        found, smoother = self.pass_.noise_of_cells(cells.table, self.often), self.smoother
        return found if smoother is None else noise.propagated_noise(smoother, found)

    def step(self) -> dict[str, float]:
        """Return what one more error would add to a loss; nothing where nobody can say."""
        units = len(self.pass_.digest.unit_cases)
        return step_of(self.row, self.own, self.pass_.digest, self.plan, units)

    def replicates(self, value: float, *, paired: bool = False) -> FloatArray:
        """Return the metric on every resample (NaN where it is undefined).

        Where they are `paired` with those of another model, raters move both as they do.
        """
        found = np.full(self.pass_.settings.resamples, value)
        if self.pass_.units is not None:
            found = found + (self._by_cases(value) - value)
        if self.pass_.rater_draws is not None:
            found = found + (self._by_raters(self.pass_.rater_draws, value, paired) - value)
        return np.asarray(found)

    def _by_cases(self, value: float) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = self.over(self.stack)
        if self.own.get("estimator") == "debiased" and not self.row.error:
            spread = float(np.nanstd(replicates))
            scale = self._jackknife_error() / spread if spread > 0 else 1.0
            return _around(value, replicates, scale)
        # Cells stand in for scores in the resamples; what they shift, they shift alike.
        return np.asarray(replicates + (value - float(self.over(self.table))))

    def _by_raters(self, draws: RaterDraws, value: float, paired: bool) -> FloatArray:
        without = self.without_raters()
        if without is not None and self.row.of_pairs and not paired:
            return draws.around(value, without)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = self.over(self.rater_stack)
        return draws.replicates(value, drawn, without, of_pairs=self.row.of_pairs)

    def _jackknife_error(self) -> float:
        """Return (G-1)/G sqrt(Σ (θᵢ - θ̄)²), θᵢ the metric without unit i of G.

        That is the jackknife's error times sqrt((G-1)/G): of a mean it is what the bootstrap has,
        and what every interval expands.
        """
        without = self.without_each()
        units = len(without)
        squares = np.nansum((without - np.nanmean(without)) ** 2)
        return float((units - 1) / units * np.sqrt(squares))

    def without_each(self) -> FloatArray:
        """Return the metric without each of the units, one at a time."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.concatenate([self.over(table) for table in self.rests()])

    def rests(self, *, smoothed: bool = True) -> Iterator[Any]:
        """Yield stacks of tables without one unit each, some units at a time."""
        per_unit = self._per_unit if smoothed else self.cells
        units = sum(self.units)
        for i in range(0, units, LEFT_OUT_TOGETHER):
            yield per_unit.without_each(i, min(i + LEFT_OUT_TOGETHER, units))

    @property
    def unit_sizes(self) -> FloatArray:
        """How much each unit weighs in the metric: sums of weights, not numbers of cases.

        A unit none of whose cases counts (too few raters) has 0; of a ratio it is what the unit
        has of the denominator. Sums over pairs of raters keep no weights; of them it is the cases.
        """
        if self.row.denominator is not None:
            return np.asarray(self.row.denominator(BinTable(self._per_unit.sums), self.own))
        sums = getattr(self._per_unit, "sums_by_unit", None)
        sizes = self.pass_.digest.unit_cases if sums is None else sums(1)
        return np.asarray(sizes, dtype=np.float64)

    def tested_sizes(self) -> FloatArray:
        """How much each unit weighs among those a predictive value is of, at their prevalence."""
        assert self.row.denominator is not None
        here = {**self.own, "prevalence": None}
        return np.asarray(self.row.denominator(BinTable(self._per_unit.sums), here), np.float64)

    @property
    def unit_positives(self) -> FloatArray:
        """How much each unit has of the positive class."""
        return np.asarray(self.cells.sums_by_unit(4))

    def parts_of(self, table: Any) -> Any:
        """Return the two shares that a difference is made of, each with its factor."""
        assert self.row.parts is not None
        return self.row.parts(table, **{name: self.own[name] for name in self.row.formula_options})

    def parts_without_each(self) -> list[tuple[FloatArray, float]]:
        """Return the same without each unit."""
        each = [self.parts_of(table) for table in self.rests()]
        return [(np.concatenate([parts[i][0] for parts in each]), each[0][i][1]) for i in range(2)]

    def by_group(self, groups: FloatArray, number: int) -> Any:
        """Return the tables of groups of units: `groups` (units,) is the group of each.

        Cases from elsewhere are in no group; they are the last of the tables.
        """
        member = np.concatenate((groups, np.full(self.units[1], number))).astype(np.int64)
        return self._per_unit.grouped(member, number + 1)

    @property
    def _per_unit(self) -> Any:
        tables, key = self.pass_.tables, self._key
        if key not in tables:
            tables[key] = self.row.prepare(self.kept.by_unit(), self.own)
        return tables[key]

    @property
    def _key(self) -> Any:
        made_with = [self.own.get(name) for name in ("bins", *self.row.table_options)]
        return self.plan, self.row.prepare, repr(made_with)


def step_of(row: Metric, own: Options, digest: Digest, plan: Any, units: int) -> dict[str, float]:
    """Return what one more error would add to a loss of one of so many units, if that is known.

    Of a loss without a limit one case is supposed to be wrong: that all cases of a patient could be
    as wrong as can be would say nothing any more. The spread of an image is that of
    so many voxels: that of a single one would take all its errors for one. `plan` is the metric's.
    """
    if row.step is None:
        return {}
    powers = {"dear": 1, "squared_dear": 2}
    if callable(row.step):
        kept = digest.summaries.get(row.step_plan or plan)
        if kept is None:
            return {}
        found = row.step(kept.table, **{name: own[name] for name in row.formula_options})
        powers |= {"step": 1, "squared_step": 2} if "infinite" in row.tags else {}
    else:
        found = dict(row.step)
    facts, part = digest.facts, units / max(float(digest.unit_cases.sum()), 1.0)
    if "spread" in found and facts.of_voxels:
        found["spread"] *= facts.images / facts.cases
    return {name: value * part ** powers.get(name, 0) for name, value in found.items()}


def _around(value: float, replicates: FloatArray, scale: float) -> FloatArray:
    """Return resampled values moved and spread as they should be.

    A resample holds cases twice, and a correction for chance takes copies for independent cases.
    In bins of few cases the resampled values of a debiased estimator therefore gather around the
    plugin, and too closely. The estimator is right on average, so they belong around its value;
    its standard error is that of leaving out one unit at a time, which makes no copies. Likewise
    labels that are drawn twice agree with each other.
    """
    return np.asarray(value + scale * (replicates - np.nanmean(replicates)))
