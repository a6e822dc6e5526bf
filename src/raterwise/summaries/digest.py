"""A digest: what a part of the cases comes down to, every summary and the facts about them.

Digests add up, in memory, on a cluster or from files (`raterwise.summaries.saved`), and results are
made of the sum (`raterwise.merged`). Cases are counted and forgotten, so the size of a digest does
not depend on how many there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, MergeError
from raterwise.predictions import Predictions
from raterwise.summaries.cells import CellPlan, CellSums
from raterwise.summaries.sorted_scores import SortedPlan

__all__ = ["Digest", "Facts", "UnitStack", "additions", "bounded", "merged_in_order"]

IntArray = NDArray[np.int64]

TOGETHER = 32
"""How many neighbours are added up before they are added to the rest."""


@dataclass(frozen=True)
class Facts:
    """What numbers rest on: counts that add up."""

    classes: int
    cases: int = 0
    ratings: int = 0
    fewest: int = 0
    """Raters of the case that has the fewest; 0 where there are no cases."""
    most: int = 0
    under_two: int = 0
    """Cases with fewer than two labels."""
    under_three: int = 0
    weight: float = 0.0
    """Σ w n over the cases, with n labels each."""
    squared_weight: float = 0.0
    class_names: tuple[str, ...] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(predictions: Predictions) -> Facts:
        """Return the facts about some predictions."""
        raters = predictions.labels.num_raters
        weights = raters.astype(np.float64)
        if predictions.weights is not None:
            weights = weights * predictions.weights
        return Facts(
            predictions.num_classes,
            len(predictions),
            int(raters.sum()),
            int(raters.min(initial=np.iinfo(np.int64).max)) if len(raters) else 0,
            int(raters.max(initial=0)),
            int((raters < 2).sum()),
            int((raters < 3).sum()),
            float(weights.sum()),
            float((weights**2).sum()),
            predictions.class_names,
            dict(predictions.dropped),
        )

    def __add__(self, other: Facts) -> Facts:
        if (self.classes, self.class_names) != (other.classes, other.class_names):
            raise MergeError(
                f"cannot add cases of {other._classes()} to cases of {self._classes()}"
            )
        held = [facts for facts in (self, other) if facts.cases]
        dropped = {
            reason: self.dropped.get(reason, 0) + other.dropped.get(reason, 0)
            for reason in {**self.dropped, **other.dropped}
        }
        return Facts(
            self.classes,
            self.cases + other.cases,
            self.ratings + other.ratings,
            min((facts.fewest for facts in held), default=0),
            max(self.most, other.most),
            self.under_two + other.under_two,
            self.under_three + other.under_three,
            self.weight + other.weight,
            self.squared_weight + other.squared_weight,
            self.class_names,
            dropped,
        )

    def _classes(self) -> str:
        names = "" if self.class_names is None else f" ({', '.join(self.class_names)})"
        return f"{self.classes} classes{names}"

    def too_few(self, least: int) -> int:
        """Return how many cases have fewer than `least` labels, 1 to 3."""
        return (0, 0, self.under_two, self.under_three)[least]

    def require_raters(self, least: int, on_single: str) -> int:
        """Return how many cases have too few labels; with "error" there may be none."""
        few = self.too_few(least)
        if few and on_single == "error":
            raise InvalidInputError(
                f"labels: needs at least {least} labels per case; {few} of {self.cases} cases "
                'have fewer; on_single="drop" leaves them out'
            )
        if few == self.cases:
            raise InvalidInputError(
                f"labels: needs at least {least} labels per case; no case has that many"
            )
        return few


@dataclass(frozen=True, eq=False)
class Digest:
    """The summaries of some cases by their plans; `a + b` is the digest of all their cases."""

    summaries: Mapping[Any, Any]
    facts: Facts
    unit_cases: IntArray
    """(units,): how many cases each resampling unit has."""
    unit: str = "cases"
    """What the resampling units are blocks of: "cases" or "patients"."""

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
        return Digest(
            {plan: summary + other.summaries[plan] for plan, summary in self.summaries.items()},
            self.facts + other.facts,
            self.unit_cases + other.unit_cases,
            self.unit,
        )

    def occupied(self) -> Digest:
        """Return the digest without the units that have no cases."""
        kept = np.flatnonzero(self.unit_cases)
        if len(kept) == len(self.unit_cases):
            return self
        units = {plan: _units(summary, kept) for plan, summary in self.summaries.items()}
        return replace(self, summaries=units, unit_cases=self.unit_cases[kept])


def bounded(plan: Any) -> Any:
    """Return the plan of the same metric in memory that does not grow with the cases."""
    return CellPlan(plan.question) if isinstance(plan, SortedPlan) else plan


class UnitStack:
    """Digests of one unit each, such as an image, gathered into one with a unit per patient."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._facts: Facts | None = None
        self._cases: list[int] = []
        self._tables: dict[Any, list[NDArray[Any]]] = {}
        self._cells: dict[Any, CellSums] = {}
        self._kinds: dict[Any, Any] = {}

    def add(self, digest: Digest, unit: int) -> None:
        """Add a digest to a unit that is there, or to the next new one."""
        self._facts = digest.facts if self._facts is None else self._facts + digest.facts
        for plan, summary in digest.summaries.items():
            tables = self._tables.setdefault(plan, [])
            if isinstance(summary, CellSums):
                table = summary.per_unit[0]
                self._cells[plan] = self._cells[plan] + summary if plan in self._cells else summary
            else:
                table = summary.sums[0]
                self._kinds[plan] = summary
            if unit < len(tables):
                tables[unit] = tables[unit] + table
            else:
                tables.append(table)
        if unit < len(self._cases):
            self._cases[unit] += digest.facts.cases
        else:
            self._cases.append(digest.facts.cases)

    def digest(self) -> Digest:
        """Return the digest of all that was added."""
        if self._facts is None:
            raise InvalidInputError("cases: must be at least one; got none")
        summaries = {}
        for plan, tables in self._tables.items():
            stack = np.stack(tables)
            if plan in self._cells:
                summaries[plan] = replace(self._cells[plan], per_unit=stack)
            else:
                summaries[plan] = replace(self._kinds[plan], sums=stack)
        return Digest(summaries, self._facts, np.array(self._cases), self._unit)


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


def _units(summary: Any, kept: NDArray[Any]) -> Any:
    if isinstance(summary, CellSums):
        return replace(summary, per_unit=summary.per_unit[kept])
    return replace(summary, sums=summary.sums[kept])
