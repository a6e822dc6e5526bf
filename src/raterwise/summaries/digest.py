"""A digest: what a part of the cases comes down to, every summary and the facts about them.

This is what every source of cases yields: tables in memory, streams, clusters, images, findings.
Digests add up, in memory, on a cluster or from files (`raterwise.streaming.saved`), and results are
made of the sum (`raterwise.evaluate`). A digest of bounded plans does not grow with the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, MergeError
from raterwise.predictions import Predictions
from raterwise.summaries.contract import Plan
from raterwise.summaries.facts import Facts
from raterwise.summaries.one_pass import InTurn, summarise
from raterwise.types import IntArray

TOGETHER = 32
"""How many neighbours are added up before they are added to the rest."""


@dataclass(frozen=True, eq=False)
class Digest:
    """The summaries of some cases by their plans; `a + b` is the digest of all their cases."""

    summaries: Mapping[Any, Any]
    facts: Facts
    unit_cases: IntArray
    """(units,): how many cases each resampling unit has."""
    unit: str = "cases"
    """What the resampling units are blocks of: "cases" or "patients"."""
    panels: Mapping[tuple[int, ...], Mapping[Any, Any]] = field(default_factory=dict)
    """By how often each rater counts, the summaries of all cases; where raters are resampled."""
    weights: NDArray[np.float64] | None = None
    """(units,): how much the cases of each unit weigh; None where every case weighs 1."""
    levels: Mapping[str, Mapping[str, Digest]] = field(default_factory=dict)
    """By variable that cases are told apart by, and by its levels: the digests of their cases."""
    readers: Mapping[str, Mapping[Any, Digest]] = field(default_factory=dict)
    """Of the model and of the reader, by rater: the digests of cases that others rated too."""
    outside_cases: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    """(units,): how many cases from elsewhere each unit has that follows those of the cases."""

    @property
    def unit_weights(self) -> NDArray[Any]:
        """(units,): how much the cases of each resampling unit weigh."""
        return self.unit_cases if self.weights is None else self.weights

    def __add__(self, other: Digest) -> Digest:
        if not isinstance(other, Digest):
            return NotImplemented
        if set(self.summaries) != set(other.summaries):
            different = set(self.summaries) ^ set(other.summaries)
            raise MergeError(
                "cannot add digests of different metrics or options; only one of them has "
                + ", ".join(sorted(map(str, different))[:3])
            )
        if (self.unit, len(self.unit_cases)) != (other.unit, len(other.unit_cases)):
            raise MergeError(
                f"cannot add {len(other.unit_cases)} blocks of {other.unit} to "
                f"{len(self.unit_cases)} blocks of {self.unit}"
            )
        if set(self.panels) != set(other.panels):
            raise MergeError("cannot add digests of other panels of raters")
        if set(self.levels) != set(other.levels):
            raise MergeError(
                f"cannot add cases told apart by {', '.join(other.levels) or 'nothing'} to cases "
                f"told apart by {', '.join(self.levels) or 'nothing'}"
            )
        return Digest(
            _added(self.summaries, other.summaries),
            self.facts + other.facts,
            self.unit_cases + other.unit_cases,
            self.unit,
            {panel: _added(mine, other.panels[panel]) for panel, mine in self.panels.items()},
            self._weights_with(other),
            _joined(self.levels, other.levels),
            _joined(self.readers, other.readers),
        )

    def _weights_with(self, other: Digest) -> NDArray[np.float64] | None:
        if self.weights is None and other.weights is None:
            return None
        return np.asarray(self.unit_weights + other.unit_weights, dtype=np.float64)

    def in_turns(self, plans: Mapping[str, Any]) -> list[list[str]]:
        """Return names of plans in the order in which to ask for their summaries."""
        held = self.summaries
        return held.in_turns(plans) if isinstance(held, InTurn) else [list(plans)]

    def let_go(self, plans: Iterable[Any], *, part: bool = False) -> None:
        """Free what these plans take, where it can be made again; with `part`, the least useful."""
        if isinstance(self.summaries, InTurn):
            for plan in plans:
                (self.summaries.tidy if part else self.summaries.let_go)(plan)

    def occupied(self) -> Digest:
        """Return the digest without the units that have no cases."""
        kept = np.flatnonzero(self.unit_cases)
        if len(kept) == len(self.unit_cases):
            return self
        units = _each_once(lambda one: one.with_units(one.units[kept]), self.summaries)
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, summaries=units, unit_cases=self.unit_cases[kept], weights=weights)


def _joined(
    first: Mapping[str, Mapping[Any, Digest]], second: Mapping[str, Mapping[Any, Digest]]
) -> dict[str, dict[Any, Digest]]:
    """Return the digests of some of the cases: those of either, and the sums of those of both."""
    found: dict[str, dict[Any, Digest]] = {}
    for name in {**first, **second}:
        mine, theirs = first.get(name, {}), second.get(name, {})
        both = {key: mine[key] + theirs[key] for key in mine if key in theirs}
        found[name] = {**mine, **theirs, **both}
    return found


def _added(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> dict[Any, Any]:
    return _each_once(lambda mine, theirs: mine + theirs, first, second)


def _each_once(function: Callable[..., Any], *digests: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return function(summary of each digest) by plan, made once for plans that share a table.

    With one label per case it makes no difference whether cases or annotations are counted, so
    plans that differ in that alone have one table (`one_pass.summarise`).
    """
    made: dict[Any, Any] = {}
    found = {}
    for plan in digests[0]:
        summaries = [digest[plan] for digest in digests]
        tables = [getattr(summary, "sums", summary) for summary in summaries]
        key = tuple(id(table) for table in tables)
        if key not in made:
            made[key] = function(*summaries)
        found[plan] = made[key] if made[key].plan == plan else replace(made[key], plan=plan)
    return found


class UnitStack:
    """Digests of one unit each, such as an image, gathered into one with a unit per patient."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._facts: Facts | None = None
        self._cases: dict[int, int] = {}
        self._tables: dict[Any, dict[int, NDArray[Any]]] = {}
        self._totals: dict[Any, Any] = {}
        self._panels: dict[tuple[int, ...], Mapping[Any, Any]] = {}

    def add(self, digest: Digest, unit: int) -> None:
        """Add a digest to a unit."""
        self._facts = digest.facts if self._facts is None else self._facts + digest.facts
        for plan, summary in digest.summaries.items():
            known = self._totals.get(plan)
            self._totals[plan] = summary if known is None else known + summary
            _add_to(self._tables.setdefault(plan, {}), unit, summary.units[0])
        for panel, summaries in digest.panels.items():
            before = self._panels.get(panel)
            self._panels[panel] = summaries if before is None else _added(before, summaries)
        _add_to(self._cases, unit, digest.facts.cases)

    def digest(self, units: int = 0) -> Digest:
        """Return the digest of all that was added, with at least so many units."""
        if self._facts is None:
            raise InvalidInputError("cases: must be at least one; got none")
        every = range(max(units, max(self._cases) + 1))
        summaries = {}
        for plan, tables in self._tables.items():
            nothing = np.zeros_like(next(iter(tables.values())))
            stack = np.stack([tables.get(unit, nothing) for unit in every])
            summaries[plan] = self._totals[plan].with_units(stack)
        cases = np.array([self._cases.get(unit, 0) for unit in every])
        return Digest(summaries, self._facts, cases, self._unit, self._panels)


def _add_to(units: dict[int, Any], unit: int, what: Any) -> None:
    units[unit] = units[unit] + what if unit in units else what


def digest_of(
    predictions: Predictions,
    plans: Sequence[Plan],
    *,
    units: IntArray | None = None,
    number: int = 1,
    unit: str = "cases",
    first: int = 0,
    panel: bool = False,
    in_turn: bool = False,
) -> Digest:
    """Return the digest of predictions, all of them or a part.

    `units` (n,) is the resampling unit of each case, one of `number`; `first` is the place of the
    first case among all; with `panel` the facts have who said what. Summaries that are made
    `in_turn` are made when somebody asks for them, from the predictions, which are kept.
    """
    summaries: Mapping[Any, Any]
    if in_turn:
        summaries = InTurn(predictions, plans, units, number)
    else:
        summaries = summarise(predictions, plans, units=units, num_units=number)
    facts = Facts.of(predictions, first, panel=panel)
    if units is None:
        return Digest(summaries, facts, np.array([len(predictions)]), unit)
    facts = replace(facts, fingerprint=facts.fingerprint.with_units(units, first))
    given, weights = predictions.weights, None
    if given is not None:
        weights = np.bincount(units, given, number).astype(np.float64)
    cases = np.bincount(units, minlength=number)
    return Digest(summaries, facts, cases, unit, weights=weights)


def merged_in_order(digests: Iterable[Digest]) -> Digest:
    """Return the sum of all digests: each run of TOGETHER from left to right, then the runs.

    Which sums are added to which depends on the number of digests alone, so the digits are the
    same here and on a cluster, where the runs are added up side by side. Three digests are held at
    a time, however many there are.
    """
    total: Digest | None = None
    run: Digest | None = None
    for i, digest in enumerate(digests):
        if i % TOGETHER == 0 and run is not None:
            total, run = run if total is None else total + run, None
        run = digest if run is None else run + digest
    if run is None:
        raise InvalidInputError("cases: must be at least one; got none")
    return run if total is None else total + run


def additions(number: int) -> Iterator[tuple[int, int]]:
    """Yield which digest is added to which, in the order of `merged_in_order`.

    >>> len(list(additions(100))), list(additions(3)), list(additions(TOGETHER + 2))[-2:]
    (99, [(0, 1), (0, 2)], [(32, 33), (0, 32)])
    """
    for first in range(0, number, TOGETHER):
        for i in range(first + 1, min(first + TOGETHER, number)):
            yield first, i
        if first:
            yield 0, first
