"""Sub-groups: the same metrics within each level of a variable, and each level against the rest.

A level's estimates are those of `evaluate` on its cases alone. Its difference from the other cases
joins two intervals, the level's and the others', by the method of variance estimates recovery:
calibration errors then differ by their values less chance, not because fewer cases are noisier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.evaluation.judged import Judged
from raterwise.evaluation.request import Metrics, Request
from raterwise.inference.differences import Ends, difference_interval, drawn_together, holm, p_value
from raterwise.inference.level_permutations import level_test
from raterwise.inference.measures import Measure
from raterwise.inference.settings import Progress, Settings
from raterwise.results import LevelDifference, Results, Subgroup
from raterwise.subgroups.variables import Variable

LEVELS = 7
"""The stream of random numbers of permuted levels."""
PERMUTATIONS = 999
MOST_METRICS = 5
"""How many are made within levels where none of the usual ones was asked for."""
FEW_CASES, FEW_PATIENTS = 20, 10
"""A level with fewer is warned of."""


def refuse_metrics_alone(chosen: Metrics | None) -> None:
    """Refuse metrics of sub-groups where there are none."""
    if chosen is not None:
        raise InvalidInputError(
            f"subgroup_metrics: needs subgroups to apply to; got {chosen!r} alone"
        )


def metrics_by_level(chosen: Metrics | None, request: Request) -> Request:
    """Return the request for each level: of the metrics chosen, or of the usual ones among all."""
    if chosen is None:
        usual = [row.name for row in request.rows if "by_level" in row.tags]
        return request.only(usual or request.metrics[:MOST_METRICS])
    names = [n.strip() for n in (chosen.split(",") if isinstance(chosen, str) else chosen)]
    for name in names:
        if name not in request.metrics:
            raise InvalidInputError(
                f"subgroup_metrics: must be among the metrics evaluated "
                f"({', '.join(request.metrics)}); got {name!r}"
            )
    return request.only(names)


# Levels, and each against the rest ---------------------------------------------------------------


def subgroups_between(
    variable: Variable,
    sides: Sequence[Sides],
    trade: Callable[[], Trade | None],
    request: Request,
    progress: Progress,
) -> list[Subgroup]:
    """Return every level of a variable, judged by itself and against the other cases."""
    parts: list[Part] = []
    for level, side in zip(variable.levels, sides, strict=True):
        progress(f"{variable.name} = {level}", len(parts) / len(sides))
        parts.append(side.part(inside=True))
    made = _against_the_rest(sides, parts, request.settings)
    trading = trade() if len(parts) > 1 and request.settings.resamples else None
    if trading is not None:
        made = _permuted(made, trading, request.settings.seed)
    return [
        Subgroup(
            variable.name,
            level,
            part.cases,
            part.patients,
            dict(part.judged.estimates),
            differences,
        )
        for level, part, differences in zip(variable.levels, parts, made, strict=True)
    ]


def with_subgroups(
    results: Results, variables: Sequence[Variable], found: Sequence[Subgroup], chosen: Request
) -> Results:
    """Return the results with their sub-groups, and what is to say of these."""
    compared = [d.adjusted_p_value is not None for s in found for d in s.differences.values()]
    return replace(
        results,
        data={**results.data, "comparisons": sum(compared)},
        options={**results.options, "subgroup_metrics": list(chosen.metrics)},
        warnings=(
            *results.warnings,
            *warnings_about_levels(
                variables, found, "image" if "voxels" in results.data else "case"
            ),
        ),
        subgroups=tuple(found),
    )


def warnings_about_levels(
    variables: Sequence[Variable], subgroups: Sequence[Subgroup], unit: str
) -> tuple[str, ...]:
    """Return which levels are too small to be believed, and which variables have just one.

    `unit` is what a variable belongs to, a case or an image.
    """
    found = [
        f"{v.name}: every {unit} is {v.levels[0]!r}, so there is nothing to compare"
        for v in variables
        if len(v.levels) == 1
    ]
    resampled = any(e.low is not None for s in subgroups for e in s.estimates.values())
    for s in subgroups:
        few = []
        if s.cases < FEW_CASES:
            few.append(f"{s.cases} {unit}" + "s" * (s.cases != 1))
        if s.patients is not None and s.patients < FEW_PATIENTS:
            few.append(f"{s.patients} patient" + "s" * (s.patients != 1))
        if few:
            alone = resampled and all(e.low is None for e in s.estimates.values())
            said = "; no interval, and no test against the rest" if alone else ""
            found.append(f"{s.variable} = {s.level}: only {' of '.join(few)}{said}")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Part:
    """The cases on one side, judged."""

    judged: Judged
    cases: int
    patients: int | None

    @property
    def units(self) -> int:
        """How many units are resampled: patients, or cases."""
        return self.cases if self.patients is None else self.patients

    def ends(self, metric: str) -> Ends | None:
        """Return the value less chance with its interval; None where there is none."""
        e = self.judged.estimates[metric]
        if e.less_chance is None or e.low is None or e.high is None:
            return None
        return e.less_chance, e.low, e.high


class Sides(Protocol):
    """The cases of a level and all others, wherever they are."""

    def part(self, *, inside: bool) -> Part:
        """Return one side, judged."""

    def correlations(self, here: Judged, there: Judged) -> dict[str, float]:
        """Return how far the noise of each metric is common to both sides: 0 where none is."""


@dataclass(frozen=True, eq=False)
class Trade:
    """What trades levels where they are permuted: patients, or cases, or blocks of many of them."""

    judged: Judged
    """With a table for each of them."""
    levels: NDArray[np.int64]
    """(units,)."""
    strata: NDArray[np.int64] | None
    """(units,): the patient, where only cases of one patient trade levels."""


def correlations_of(here: Judged, there: Judged) -> dict[str, float]:
    """Return how far each metric of two sides goes together on the same resamples."""
    first, second = here.replicates(), there.replicates()
    return {name: drawn_together(first[name], second[name]) for name in first if name in second}


def _against_the_rest(
    sides: Sequence[Sides], parts: Sequence[Part], settings: Settings
) -> list[dict[str, LevelDifference]]:
    """Return level minus rest, by level and metric, with p-values adjusted over the levels."""
    if len(parts) == 1:
        return [{}]
    made: list[dict[str, LevelDifference]] = []
    for i, (side, part) in enumerate(zip(sides, parts, strict=True)):
        # Of two levels, each is the rest of the other.
        two = len(parts) == 2
        rest = parts[1 - i] if two else side.part(inside=False)
        shared = side.correlations(part.judged, rest.judged)
        found = {
            name: _difference(name, part, rest, shared.get(name, 0.0), settings)
            for name in part.judged.estimates
        }
        made.append({name: d for name, d in found.items() if d is not None})
    return _adjusted(made)


def _adjusted(made: Sequence[Mapping[str, LevelDifference]]) -> list[dict[str, LevelDifference]]:
    """Return the differences with Holm's p-values over the levels; two levels are one test."""
    out = [dict(differences) for differences in made]
    for metric in dict.fromkeys(name for differences in made for name in differences):
        told = [
            (i, p)
            for i, differences in enumerate(made)
            if metric in differences and (p := differences[metric].p_value) is not None
        ]
        p_values = [p for _, p in told]
        adjusted = p_values if len(made) == 2 else holm(p_values)
        for (i, _), q in zip(told, adjusted, strict=True):
            out[i][metric] = replace(out[i][metric], adjusted_p_value=q)
    return out


def _permuted(
    made: Sequence[Mapping[str, LevelDifference]], trade: Trade, seed: int
) -> list[dict[str, LevelDifference]]:
    """Return the differences with p-values adjusted over all levels and metrics at once.

    Levels are permuted between patients, or between cases where patients are not known, so that
    the family-wise error is kept (Westfall and Young's max-T). An adjusted p is never below the
    p of the difference by itself. Where patients have cases of several levels, these are permuted
    within each patient. A metric that is undefined in one level, such as the AUROC in one without
    positives, is permuted as well: left out, it would have a family-wise error of its own. Holm's p
    stays where there is no common table, as of means over findings.
    """
    judged = trade.judged
    measures = {
        name: measure
        for name, measure in judged.measures().items()
        if any(name in level for level in made) and measure.tabled
    }
    if not measures:
        return [dict(level) for level in made]

    def sums(measure: Measure) -> Any:
        return lambda codes, levels: measure.by_group(codes, levels).sums[:levels]

    def formula(measure: Measure) -> Any:
        # Cases from elsewhere are set against those of every level.
        outside = measure.by_group(np.zeros_like(trade.levels), 1).sums[1]
        return lambda sums: measure.over(type(measure.table)(sums + outside))

    p_values = level_test(
        [sums(measure) for measure in measures.values()],
        [formula(measure) for measure in measures.values()],
        trade.levels,
        random=np.random.default_rng([seed, LEVELS]),
        permutations=PERMUTATIONS,
        strata=trade.strata,
    )
    out = [dict(level) for level in made]
    for i, level in enumerate(out):
        for m, name in enumerate(measures):
            d, q = level.get(name), float(p_values[i, m])
            if d is not None and d.p_value is not None and np.isfinite(q):
                level[name] = replace(d, adjusted_p_value=max(q, d.p_value))
    return out


def _difference(
    metric: str, part: Part, rest: Part, correlation: float, settings: Settings
) -> LevelDifference | None:
    one, other = (side.judged.estimates[metric] for side in (part, rest))
    a, b = one.less_chance, other.less_chance
    if a is None or b is None:
        return None
    if (one.debiased is None) != (other.debiased is None):
        return None  # with chance on one side only, which blames a level of one patient
    gap = a - b if abs(a - b) > 1e-12 else 0.0  # below is rounding
    ends = _believable(part.ends(metric), rest.ends(metric), part.units, rest.units)
    if ends is None:
        return LevelDifference(metric, gap)
    low, high = difference_interval(*ends, correlation)
    p = p_value(gap, low, high, level=settings.level, resamples=settings.resamples)
    return LevelDifference(metric, gap, low, high, p)


def _believable(
    here: Ends | None, there: Ends | None, units: int, other_units: int
) -> tuple[Ends, Ends] | None:
    """Return both with an interval that has a length; None where neither has one.

    Five cases that are all right resample to nothing but five right ones. Such a side is given the
    noise that so many units of the other side would have.
    """
    if here is None or there is None:
        return None
    here_none, there_none = here[1] == here[2], there[1] == there[2]
    if here_none and there_none:
        return None
    if here_none:
        return _with_length_of(there, here[0], np.sqrt(other_units / units)), there
    if there_none:
        return here, _with_length_of(here, there[0], np.sqrt(units / other_units))
    return here, there


def _with_length_of(other: Ends, value: float, scale: float) -> Ends:
    return value, value - scale * (other[0] - other[1]), value + scale * (other[2] - other[0])
