"""Whole rows that are kept, for estimators that truly need pairs of cases.

In the resamples of an interval, cells of like rows stand for them. A grid over K classes has
bins^K cells. These follow the cases instead: the cell whose vectors are furthest apart is cut in
two until there are enough.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raterwise.errors import InvalidInputError, MergeError
from raterwise.predictions import Rows
from raterwise.questions import Question
from raterwise.summaries.bin_sums import BinPlan, BinSums
from raterwise.summaries.contract import Metric, Plan, Summary
from raterwise.summaries.entries import Entries
from raterwise.types import FloatArray, IntArray, Options

ALIKE = 1e-24
"""Up to which squared distance, of all cases of a cell together and per unit of mass, it is one
vector: what is left are rounding errors."""


def cells_of_vectors(probs: FloatArray, mass: FloatArray, most: int) -> IntArray:
    """Return the cell of each vector, at most so many: those of up to so many vectors are theirs.

    The cell with the largest Σ w |p - p̄|² is cut at the mean of the class that varies most. Which
    cells there are depends on neither the order of the cases nor on whether a case of weight 2 is
    written twice.

    >>> probs = np.array([[0.9, 0.1], [0.1, 0.9], [0.8, 0.2], [0.1, 0.9]])
    >>> cells_of_vectors(probs, np.ones(4), 2), int(cells_of_vectors(probs, np.ones(4), 9).max())
    (array([0, 1, 0, 1]), 2)
    """
    cell, number = np.zeros(len(probs), np.int64), 1
    waiting: list[tuple[float, int]] = []

    def wait(one: int) -> None:
        mine = cell == one
        spread = _squares(probs[mine], mass[mine]).sum()
        if spread > ALIKE * mass[mine].sum():
            heapq.heappush(waiting, (-float(spread), one))

    wait(0)
    while waiting and number < most:
        _, one = heapq.heappop(waiting)
        mine = np.flatnonzero(cell == one)
        some, heavy = probs[mine], mass[mine]
        widest = int(_squares(some, heavy).argmax())
        upper = some[:, widest] < np.average(some[:, widest], weights=heavy)
        cell[mine[upper]] = number
        wait(one)
        wait(number)
        number += 1
    return cell


def _squares(probs: FloatArray, mass: FloatArray) -> FloatArray:
    """Return Σ w (p - p̄)² of each class."""
    total = float(mass.sum())
    if total == 0:
        return np.zeros(probs.shape[1])
    return np.asarray(mass @ (probs - mass @ probs / total) ** 2)


def table_of_rows(
    probs: FloatArray, masses: FloatArray, unit: IntArray, per: str, most: int
) -> BinSums:
    """Return the sums per unit, class and cell of like vectors; `masses` (n, K) as in a sample."""
    mass = masses.sum(axis=1)
    cell = cells_of_vectors(probs, mass, most)
    number, classes = int(cell.max(initial=0)) + 1, probs.shape[1]
    order = np.lexsort((unit, cell))  # resampling goes cell by cell
    columns, counts = [], (mass > 0).astype(np.float64)
    for k in range(classes):
        fields = (counts, mass, mass**2, mass * probs[:, k], masses[:, k])
        columns.append(np.stack(fields, axis=-1)[order])
    entries = Entries(
        np.tile(unit[order], classes),
        np.concatenate([k * number + cell[order] for k in range(classes)]),
        np.concatenate(columns),
    )
    sums = entries.total(classes * number).reshape(1, classes, number, -1)
    return BinSums(BinPlan(Question("per_class", per), number), sums, entries=entries)


KEPT = ("probs", "masses", "position", "unit")


@dataclass(frozen=True)
class SamplePlan(Plan):
    """Keep every row."""

    kind: ClassVar[str] = "rows"

    grows: ClassVar[bool] = True
    """Whether its summary grows with the cases."""

    per: str = "annotation"
    """Whether every label counts once, or every case."""
    in_cells: bool = False
    """Whether cells of like rows make tables to resample."""

    @property
    def tabled(self) -> bool:
        """Whether there are tables to resample."""
        return self.in_cells

    def prepared(self, rows: Rows) -> Any:
        """Refuse: growing parts of the cases are not compared pair by pair."""
        raise InvalidInputError(
            'question: "canonical" is of all cases, not of parts of them; ask "per_class"'
        )

    def room(self, num_classes: int, units: int, cases: int) -> int:
        """Return how many bytes the rows take."""
        return 16 * cases * num_classes

    def empty(self, num_classes: int, units: int = 1) -> KeptSample:
        """Return the sample of no cases."""
        rows = np.empty((0, num_classes))
        return KeptSample(self, rows, rows, *(np.empty(0, np.int64) for _ in range(2)))


@dataclass(frozen=True, eq=False)
class KeptSample(Summary):
    """Rows of predictions with their label masses."""

    plan: SamplePlan
    probs: FloatArray
    """(n, K)."""
    masses: FloatArray
    """(n, K): weight × number, or share, of the raters who chose each class."""
    position: IntArray
    unit: IntArray
    """(n,): the resampling unit of each row; 0 where there are none."""

    @staticmethod
    def of(plan: SamplePlan, rows: Rows) -> KeptSample:
        """Return the sample of one chunk."""
        number = len(rows.probs)
        position = rows.start + np.arange(number)
        unit = np.zeros(number, np.int64) if rows.units is None else np.array(rows.units, np.int64)
        probs = np.array(rows.probs, np.float64)
        return KeptSample(plan, probs, _masses(rows, plan.per), position, unit)

    def __add__(self, other: KeptSample) -> KeptSample:
        if not isinstance(other, KeptSample):
            return NotImplemented
        if self.probs.shape[1] != other.probs.shape[1]:
            raise MergeError(
                f"cannot add rows of {other.probs.shape[1]} classes to rows of "
                f"{self.probs.shape[1]}"
            )
        joined = [np.concatenate((getattr(self, n), getattr(other, n))) for n in KEPT]
        return KeptSample(self.plan, *joined)

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made this sample and has not shown it yet."""
        merged = self + KeptSample.of(self.plan, rows)
        for name in KEPT:
            object.__setattr__(self, name, getattr(merged, name))

    def value(self, row: Metric, options: Options) -> tuple[float, float | None]:
        """Return a metric of the rows."""
        assert row.exact is not None
        return row.exact(self.in_order, options)

    def forget(self) -> None:
        """Let go of what was made of the rows, which can be made again."""
        for name in ("tables", "counting", "in_order"):
            self.__dict__.pop(name, None)

    def scores(self) -> KeptSample:
        """Return itself."""
        return self.in_order

    @cached_property
    def tables(self) -> dict[Any, Any]:
        """What was chosen by these rows already, such as a bandwidth."""
        return {}

    @cached_property
    def counting(self) -> tuple[FloatArray, FloatArray]:
        """The probabilities and masses of the rows that count."""
        counts = self.masses.sum(axis=1) > 0
        return self.probs[counts], self.masses[counts]

    def gathered(self, most: int) -> BinSums:
        """Return the table, for every resampling unit, of at most so many cells of like rows."""
        rows = self.in_order
        return table_of_rows(rows.probs, rows.masses, rows.unit, self.plan.per, most)

    @cached_property
    def in_order(self) -> KeptSample:
        """The rows in the order of the data, so that sums do not depend on how they were merged."""
        order = np.argsort(self.position, kind="stable")
        return KeptSample(self.plan, *(getattr(self, name)[order] for name in KEPT))


def _masses(rows: Rows, per: str) -> FloatArray:
    if rows.classes is not None:
        masses = np.zeros(rows.probs.shape)
        masses[np.arange(len(masses)), rows.classes] = 1
    else:
        assert rows.counts is not None
        masses = rows.counts.astype(np.float64)
        if per == "case":
            masses /= np.maximum(masses.sum(axis=1, keepdims=True), 1)
    return masses if rows.weights is None else masses * rows.weights[:, None]
