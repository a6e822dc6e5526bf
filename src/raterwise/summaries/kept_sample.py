"""Whole rows that are kept, for estimators that truly need pairs of cases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raterwise.errors import InvalidInputError, MergeError
from raterwise.predictions import Rows
from raterwise.summaries.bin_sums import BinSums
from raterwise.summaries.contract import Metric, Options, UsualPlan, UsualSummary
from raterwise.summaries.vector_cells import table_of_rows
from raterwise.types import FloatArray, IntArray

KEPT = ("probs", "masses", "position", "unit")


@dataclass(frozen=True)
class SamplePlan(UsualPlan):
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
class KeptSample(UsualSummary):
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
