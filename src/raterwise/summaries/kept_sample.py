"""A kept sample of whole rows, for estimators that truly need pairs of cases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import MergeError
from raterwise.predictions import Rows

__all__ = ["KeptSample", "SamplePlan"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class SamplePlan:
    """How many rows to keep (None: all), and the seed that chooses them.

    Every row has a pseudo-random priority made of the seed and its position; the rows of lowest
    priority are kept. So the sample is the same however the data were split and merged.
    """

    capacity: int | None = None
    seed: int = 0

    def empty(self, num_classes: int, units: int = 1) -> KeptSample:
        """Return the sample of no cases."""
        nothing = np.empty(0, np.int64)
        rows = np.empty((0, num_classes))
        return KeptSample(self, rows, rows, nothing.astype(np.uint64), nothing, nothing)


@dataclass(frozen=True, eq=False)
class KeptSample:
    """Rows of predictions with their label masses."""

    plan: SamplePlan
    probs: FloatArray
    """(n, K)."""
    masses: FloatArray
    """(n, K): weight × number of raters who chose each class."""
    priority: NDArray[np.uint64]
    position: IntArray
    unit: IntArray

    @staticmethod
    def of(plan: SamplePlan, rows: Rows, units: int = 1) -> KeptSample:
        """Return the sample of one chunk."""
        position = rows.start + np.arange(len(rows.probs))
        sample = KeptSample(
            plan,
            np.array(rows.probs, np.float64),
            _masses(rows),
            _priority(position, plan.seed),
            position,
            np.zeros(len(position), np.int64) if rows.units is None else rows.units,
        )
        return sample._trimmed()

    def __add__(self, other: KeptSample) -> KeptSample:
        if not isinstance(other, KeptSample):
            return NotImplemented
        if self.plan != other.plan or self.probs.shape[1] != other.probs.shape[1]:
            raise MergeError(
                f"cannot add {other.plan} with {other.probs.shape[1]} classes to {self.plan} with "
                f"{self.probs.shape[1]}"
            )
        names = ("probs", "masses", "priority", "position", "unit")
        joined = [np.concatenate((getattr(self, n), getattr(other, n))) for n in names]
        return KeptSample(self.plan, *joined)._trimmed()

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made this sample and has not shown it yet."""
        merged = self + KeptSample.of(self.plan, rows)
        for name in ("probs", "masses", "priority", "position", "unit"):
            object.__setattr__(self, name, getattr(merged, name))

    @cached_property
    def in_order(self) -> KeptSample:
        """The rows in the order of the data, so that sums do not depend on how they were merged."""
        order = np.argsort(self.position, kind="stable")
        return self._rows(order)

    def _trimmed(self) -> KeptSample:
        capacity = self.plan.capacity
        if capacity is None or len(self.priority) <= capacity:
            return self
        return self._rows(np.argsort(self.priority, kind="stable")[:capacity])

    def _rows(self, index: NDArray[Any]) -> KeptSample:
        return KeptSample(
            self.plan,
            self.probs[index],
            self.masses[index],
            self.priority[index],
            self.position[index],
            self.unit[index],
        )


def _masses(rows: Rows) -> FloatArray:
    if rows.classes is not None:
        masses = np.zeros(rows.probs.shape)
        masses[np.arange(len(masses)), rows.classes] = 1
    else:
        assert rows.counts is not None
        masses = rows.counts.astype(np.float64)
    return masses if rows.weights is None else masses * rows.weights[:, None]


def _priority(position: IntArray, seed: int) -> NDArray[np.uint64]:
    """Mix position and seed into 64 pseudo-random bits (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = position.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
