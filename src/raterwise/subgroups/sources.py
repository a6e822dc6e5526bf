"""Cases told apart by a variable: in memory, or as digests of each level made elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from raterwise.evaluation.judged import Judged
from raterwise.evaluation.judged import judge as judge_digest
from raterwise.evaluation.request import Request
from raterwise.inference.draws import MAX_UNITS, Units, resampling_units
from raterwise.inference.settings import Progress, Settings, within
from raterwise.predictions import Predictions
from raterwise.results import Subgroup
from raterwise.subgroups.levels import LEVELS, Part, Trade, correlations_of, subgroups_between
from raterwise.subgroups.variables import Variable
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import AsGiven

Judge = Callable[[Predictions, Request, Units | None], Judged]
"""judge(cases, request, their resampling units): how cases are judged."""


def subgroups_of(
    predictions: Predictions,
    variables: Sequence[Variable],
    judge: Judge,
    request: Request,
    progress: Progress | None = None,
) -> tuple[Subgroup, ...]:
    """Return every level of every variable, judged by itself and against the other cases."""
    found: list[Subgroup] = []
    for i, variable in enumerate(variables):
        chosen = [variable.codes == level for level in range(len(variable.levels))]
        sides = [_InMemory(predictions, inside, judge, request) for inside in chosen]

        def trade(variable: Variable = variable) -> Trade:
            units, levels, strata = _units_of_levels(predictions, variable)
            quick = request.with_settings(unit="cases", interval="percentile")
            return Trade(judge(predictions, quick, units), levels, strata)

        part = within(progress, i / len(variables), (i + 1) / len(variables))
        found += subgroups_between(variable, sides, trade, request, part)
    return tuple(found)


def subgroups_of_digests(
    levels: Mapping[str, Mapping[str, Digest]], request: Request, progress: Progress | None = None
) -> tuple[Subgroup, ...]:
    """Return the same of digests by variable and level, all with the same resampling units."""
    found: list[Subgroup] = []
    for i, (name, digests) in enumerate(levels.items()):
        each = tuple(digests.values())
        variable = Variable(name, tuple(digests), np.empty(0, np.int64))
        sides = [_Digests(each, place, request) for place in range(len(each))]

        def trade(each: tuple[Digest, ...] = each) -> Trade | None:
            return _trade_of_digests(each, request)

        part = within(progress, i / len(levels), (i + 1) / len(levels))
        found += subgroups_between(variable, sides, trade, request, part)
    return tuple(found)


# In memory ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _InMemory:
    """The cases of a level and all others."""

    whole: Predictions
    inside: NDArray[np.bool_]
    judge: Judge
    request: Request

    @property
    def settings(self) -> Settings:
        return self.request.settings

    def part(self, *, inside: bool) -> Part:
        """Return one side, judged, with no patient that has no case there."""
        cases = self.whole.take(self.inside if inside else ~self.inside).without_absent_patients()
        given = AsGiven.of(cases)
        named = cases.groups is not None and (given is None or given.patients)
        number = len(cases) if given is None else given.cases
        judged = self.judge(cases, self.request, None)
        return Part(judged, number, len(cases.group_ids) if named else None)

    @cached_property
    def share_units(self) -> bool:
        """Whether what is resampled, patients or raters, is on both sides."""
        if self.settings.unit == "raters":
            return self.whole.labels.ratings is not None
        groups = self.whole.groups
        if groups is None:
            return False
        return bool(np.intersect1d(groups[self.inside], groups[~self.inside]).size)

    def correlations(self, here: Judged, there: Judged) -> dict[str, float]:
        """Return how far the noise of each metric is common to both sides: 0 where none is shared.

        Patients with cases on both sides are resampled together; raters who are known are anyway,
        since a resample draws the same persons on both sides.
        """
        if not (self.share_units and self.settings.resamples):
            return {}
        if self.settings.unit != "raters":
            units, number = resampling_units(self.whole, self.settings.seed)
            # Only the resampled values are wanted: the quickest interval will do.
            quick = self.request.with_settings(interval="percentile")
            here, there = (
                self.judge(self.whole.take(rows), quick, (units[rows], number))
                for rows in (self.inside, ~self.inside)
            )
        return correlations_of(here, there)


def _units_of_levels(
    predictions: Predictions, variable: Variable
) -> tuple[Units, NDArray[np.int64], NDArray[np.int64] | None]:
    """Return what trades levels, with the level and the stratum of each, as in `Trade`.

    That is patients, or cases, or blocks of many of these within a level.
    """
    codes, groups = variable.codes, predictions.groups
    units, strata = np.arange(len(codes)), None
    if groups is not None:
        pairs = np.unique(np.stack((groups, codes), axis=1), axis=0)
        if len(pairs) == len(np.unique(groups)):  # every patient has one level
            _, units = np.unique(groups, return_inverse=True)
        else:
            strata = groups
    number = int(units.max()) + 1
    _, first = np.unique(units, return_index=True)
    levels = codes[first]
    if number > MAX_UNITS:
        # Pooled at random within a level, and within a patient where that is what trades levels.
        keys = levels if strata is None else levels + len(variable.levels) * strata[first]
        order = np.random.default_rng([0, LEVELS]).permutation(number)
        _, key = np.unique(keys, return_inverse=True)
        place = np.empty(number, np.int64)
        place[order] = np.arange(number)
        each = place % max(MAX_UNITS // (int(key.max()) + 1), 1) if strata is None else 0 * key
        _, block = np.unique(np.stack((key, each), axis=1), axis=0, return_inverse=True)
        units, number = block[units], int(block.max()) + 1
        _, first = np.unique(units, return_index=True)
        levels = codes[first]
    return (units, number), levels, None if strata is None else strata[first]


# Digests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Digests:
    """One of the levels, whose cases were forgotten, and all others."""

    levels: tuple[Digest, ...]
    place: int
    request: Request

    def side(self, *, inside: bool) -> Digest:
        """Return the digest of a side: that of a level, or the sum of all others."""
        if inside:
            return self.levels[self.place]
        return reduce(add, (d for i, d in enumerate(self.levels) if i != self.place))

    def part(self, *, inside: bool) -> Part:
        """Return one side, judged."""
        digest = self.side(inside=inside)
        named = digest.facts.named_patients
        patients = None if named is None else named.number
        cases = digest.facts.images or digest.facts.told.cases
        return Part(judge_digest(digest.occupied(), self.request), cases, patients)

    def correlations(self, here: Judged, there: Judged) -> dict[str, float]:
        """Return how far the noise of each metric is common to both sides: 0 where none is shared.

        Patients with cases on both sides are in the same block, which both sides draw together.
        """
        sides = [self.side(inside=inside) for inside in (True, False)]
        if not self.request.settings.resamples or not self._share(sides):
            return {}
        if self.request.settings.unit != "raters":  # there, both have the same persons already
            quick = self.request.with_settings(interval="percentile")
            here, there = (judge_digest(side, quick) for side in sides)
        return correlations_of(here, there)

    def _share(self, sides: Sequence[Digest]) -> bool:
        """Tell whether what is resampled, patients or raters, is on both sides."""
        if self.request.settings.unit == "raters":
            return True
        first, second = (side.facts.patients for side in sides)
        if first is None or second is None:
            return False
        return bool(np.intersect1d(first.hashes, second.hashes).size)


def _trade_of_digests(levels: tuple[Digest, ...], request: Request) -> Trade | None:
    """Return the blocks of every level, side by side, as what trades levels.

    Patients who have cases of several levels are in the same block of each: these trade.
    """
    units = len(levels[0].unit_cases)
    if units < 2:  # raters are resampled, and cases were not kept apart
        return None
    whole = reduce(add, levels)
    stacked = {
        plan: summary.with_units(np.concatenate([d.summaries[plan].units for d in levels]))
        for plan, summary in whole.summaries.items()
    }
    cases = np.concatenate([digest.unit_cases for digest in levels])
    level, block = np.divmod(np.arange(len(cases)), units)
    held = cases > 0
    known = [digest.facts.patients for digest in levels]
    apart = whole.facts.patients is None or (
        not whole.facts.patients.more  # of patients who are only counted nobody knows
        and whole.facts.patients.number == sum(p.number for p in known if p is not None)
    )
    quick = request.with_settings(unit="cases", interval="percentile")
    together = replace(
        whole, summaries=stacked, unit_cases=cases, weights=None, panels={}, levels={}
    ).occupied()
    judged = judge_digest(together, quick)
    return Trade(judged, level[held], None if apart else block[held])
