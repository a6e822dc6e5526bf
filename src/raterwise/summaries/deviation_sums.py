"""Sums for the verdict: per channel and cell, what raters said minus what was predicted.

The cells lie between fixed logits, so that sums of parts add up; the statistics of a verdict are
combinations of cells that are chosen at the end. Every sum is kept for both ways of counting (per
annotation, per case) and for their difference: a case counts as w (α n + β), and the sums are
those of powers of its number of labels n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import MergeError
from raterwise.predictions import Rows
from raterwise.summaries.contract import Plan, Summary
from raterwise.summaries.votes import Votes
from raterwise.types import FloatArray

BLOCKS = 512
"""Into how many blocks patients are pooled where there are more."""
MOST_NAMED = 200
"""With more classes than this none is looked at by itself."""
FINE = 10
"""With more classes than this the cells are coarser: a mean and a slope is all that is asked."""
STEEPEST, STEP, COARSE_STEP = 8.0, 0.25, 1.0
"""Cells end at these logits; what is beyond the steepest (p = 0.0003) is one cell."""
LEAST = 1e-4
"""A probability of exactly 0 is read as one below this: networks and tables round."""
MOST_DIGITS = 4


@lru_cache(maxsize=2)
def _edges(step: float) -> tuple[FloatArray, NDArray[np.uint8]]:
    """Return the edges of the cells and, last, 1; and how many lie below each place in [0, 1]."""
    from scipy.special import expit

    from raterwise.kernels._deviations import PLACES

    edges = expit(np.arange(-STEEPEST, STEEPEST + step / 2, step))
    edges[len(edges) // 2] = np.nextafter(0.5, 1)  # of two classes, a tie is predicted as the first
    edges = np.append(edges, 1.0)
    below = np.searchsorted(edges[:-1], np.arange(PLACES + 1) / PLACES, side="right")
    return edges, below.astype(np.uint8)  # small, to stay in the cache


@dataclass(frozen=True)
class DeviationPlan(Plan):
    """Sum what the verdict is made of; with `grouped`, also by patient."""

    kind: ClassVar[str] = "deviations"

    grouped: bool = False

    def takes_votes(self) -> bool:
        """Yes."""
        return True

    def room(self, num_classes: int, units: int, cases: int) -> int:
        """Return how many bytes the sums take."""
        return self.empty(num_classes, units).units.nbytes

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> DeviationSums:
        """Return the sums that `arrays()` wrote down."""
        return DeviationSums(self, arrays["sums"], arrays["units"], int(arrays["digits"]))

    def empty(self, num_classes: int, units: int = 1) -> DeviationSums:
        """Return the sums of no cases."""
        from raterwise.kernels._deviations import FIELDS, UNIT_FIELDS

        named = num_classes if num_classes <= MOST_NAMED else 0
        channels = 1 if num_classes == 2 else named + 2
        cells = len(_edges(STEP if num_classes <= FINE else COARSE_STEP)[0]) + 2
        if self.grouped:
            by_unit = np.zeros((min(units, BLOCKS), channels, cells, UNIT_FIELDS))
        else:
            by_unit = np.zeros((units, 0, 0, UNIT_FIELDS))
        return DeviationSums(self, np.zeros((channels, cells, FIELDS)), by_unit)


@dataclass(eq=False)
class DeviationSums(Summary):
    """The sums of some cases; `a + b` is those of all of them.

    No metric is made of them: the verdict is.
    """

    plan: DeviationPlan
    sums: FloatArray
    """(channels, cells, fields)."""
    units: FloatArray
    """(units, channels, cells, fields): of each patient, or block of patients."""
    digits: int = 0
    """How many decimals the probabilities have; MOST_DIGITS + 1 where they are not rounded."""

    def __add__(self, other: DeviationSums) -> DeviationSums:
        if not isinstance(other, DeviationSums):
            return NotImplemented
        shapes = [(s.plan, s.sums.shape, s.units.shape) for s in (self, other)]
        if shapes[0] != shapes[1]:
            raise MergeError("cannot add sums of different classes, patients or resampling units")
        digits = max(self.digits, other.digits)
        return DeviationSums(self.plan, self.sums + other.sums, self.units + other.units, digits)

    def with_units(self, units: FloatArray) -> DeviationSums:
        """Return the same sums with these units instead."""
        return DeviationSums(self.plan, self.sums, units, self.digits)

    def without_units(self) -> DeviationSums:
        """Return the same sums without those by patient, of which a table takes long."""
        return DeviationSums(DeviationPlan(), self.sums, self.units[:1, :0, :0], self.digits)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file keeps."""
        return {"sums": self.sums, "units": self.units, "digits": np.array(self.digits)}

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made these sums and has not shown them yet."""
        from raterwise.kernels import _deviations as kernels

        self._look_at(rows.probs)
        classes = rows.probs.shape[1]
        edges, places = _edges(STEP if classes <= FINE else COARSE_STEP)
        named = classes if classes <= MOST_NAMED else 0
        unit, units = np.empty(0, np.int64), self.units
        if self.plan.grouped:
            unit = np.zeros(len(rows.probs), np.int64) if rows.units is None else rows.units
        where = unit, named, edges, places, self.sums, units
        if rows.counts is None and rows.weights is None:
            assert rows.classes is not None
            kernels.add_single_labels(rows.probs, rows.predicted, rows.classes, *where)
            return
        counts = rows.counts
        if counts is None:
            assert rows.classes is not None
            counts = np.eye(classes, dtype=np.int64)[rows.classes]
        weights = np.empty(0) if rows.weights is None else rows.weights
        of_classes = np.empty(0) if rows.class_weights is None else rows.class_weights
        kernels.add_deviations(rows.probs, rows.predicted, counts, weights, of_classes, *where)

    def absorb_votes(self, votes: Votes) -> None:
        """Add voxels of two classes in place."""
        from raterwise.kernels import _deviations as kernels

        self._look_at(votes.positive)
        unit = self.units[0, 0] if self.plan.grouped else np.empty((0, 0))
        kernels.add_votes(
            votes.positive, votes.chosen, votes.raters, *_edges(STEP), self.sums, unit
        )

    def _look_at(self, probs: NDArray[Any]) -> None:
        """Find out to how many decimals the probabilities are rounded."""
        if self.digits > MOST_DIGITS or not probs.size:
            return
        for looked_at in (probs.ravel()[:100], probs):  # most tables are told by their first rows
            inner = looked_at[(looked_at > 0) & (looked_at < 1)].astype(np.float64)
            if not inner.size:
                continue
            for digits in range(max(self.digits, 1), MOST_DIGITS + 2):
                scaled = inner * 10**digits
                if digits > MOST_DIGITS or (np.abs(scaled - np.rint(scaled)) < 1e-3).all():
                    break
            self.digits = digits
            if digits > MOST_DIGITS:
                return

    def counted(self, by_annotation: float, by_case: float) -> DeviationTable:
        """Return the sums with a case of n labels counted as w (by_annotation n + by_case)."""
        a, b, s = by_annotation, by_case, self.sums
        table = DeviationTable(
            a * s[..., 1] + b * s[..., 0],
            a * s[..., 3] + b * s[..., 2],
            a * s[..., 5] + b * s[..., 4],
            _squared(a, b, s[..., 6:9]),
            _squared(a, b, s[..., 7:10]),
            _cubed(a, b, s[..., 10:14]),
            _cubed(a, b, s[..., 12:16]),
            _squared(a, b, s[..., 16:19]),
            _squared(a, b, s[..., 19:22]),
            a**4 * s[..., 23] + b**4 * s[..., 22],
            a * self.units[..., 1] + b * self.units[..., 0],
            abs(a) * self.units[..., 3] + abs(b) * self.units[..., 2],
        )
        half = 0.5 / 10**self.digits if 0 < self.digits <= MOST_DIGITS else 0.0
        for cell, z in ((0, 0.0), (-1, 1.0)):
            said = np.abs(s[:, cell, 4] - z * s[:, cell, 0])  # Σ w |μ - z|
            off = np.divide(said, s[:, cell, 0], out=np.zeros(len(s)), where=s[:, cell, 0] > 0)
            at = self.units[:, :, cell] if self.plan.grouped else np.zeros((1, 1, 4))
            units = a * at[..., 3] + b * at[..., 2]
            table.settle(cell, z, np.minimum(max(LEAST, half), off), units)
        return table


def _squared(a: float, b: float, powers: FloatArray) -> FloatArray:
    """Return Σ x (a n + b)², from Σ x n^m, m = 0 … 2."""
    return np.asarray(b * b * powers[..., 0] + 2 * a * b * powers[..., 1] + a * a * powers[..., 2])


def _cubed(a: float, b: float, powers: FloatArray) -> FloatArray:
    """Return Σ x (a n + b)³, from Σ x n^m, m = 0 … 3."""
    return np.asarray(powers @ np.array([b**3, 3 * a * b * b, 3 * a * a * b, a**3]))


@dataclass(frozen=True, eq=False)
class DeviationTable:
    """Sums over cases that count a, all (channels, cells) but for those by unit."""

    weight: FloatArray
    """Σ a."""
    predicted: FloatArray
    """Σ a z."""
    observed: FloatArray
    """Σ a μ."""
    alone: FloatArray
    """Σ a² v / n: the variance of Σ a (μ - z) where raters are independent given z."""
    together: FloatArray
    """Σ a² v: where the raters of a case are copies of one."""
    third: FloatArray
    """Σ a³ t / n²."""
    third_together: FloatArray
    """Σ a³ t."""
    squares: FloatArray
    """Σ a² (μ - z)²."""
    apart: FloatArray
    """Σ a² μ (1 - μ): how much less the cases vary because their raters differ."""
    fourth: FloatArray
    """Σ (a² v (1 - 1/n))²."""
    by_unit: FloatArray
    """(units, channels, cells): Σ a (μ - z)."""
    spread: FloatArray
    """(units, channels, cells): Σ |a| √v."""

    def settle(self, cell: int, end: float, moved: FloatArray, units: FloatArray) -> None:
        """Take probabilities of exactly 0 or 1 as `moved` (channels,) away from it, in place.

        A table with two decimals says 0.00 of everything below 0.005; taken literally, a single
        such case that is positive would prove the model wrong. `units` are their Σ a by unit.
        """
        z = np.abs(end - moved)
        v = z * (1 - z)
        square = self.squares[:, cell]
        square += moved**2 * self.together[:, cell] - 2 * moved * (self.apart[:, cell] + square)
        self.predicted[:, cell] = self.weight[:, cell] * z
        for sums in (self.alone, self.together):
            sums[:, cell] *= v
        for sums in (self.third, self.third_together):
            sums[:, cell] *= v * (1 - 2 * z)
        self.fourth[:, cell] *= v**2
        if self.by_unit.size:
            self.by_unit[:, :, cell] += (end - z) * units
            self.spread[:, :, cell] *= np.sqrt(v)

    @property
    def edges(self) -> FloatArray:
        """(cells + 1,): the probabilities between which the cells lie."""
        fine = len(_edges(STEP)[0]) + 2 == self.weight.shape[1]
        return np.concatenate(([0, 0], _edges(STEP if fine else COARSE_STEP)[0], [1]))

    @property
    def deviation(self) -> FloatArray:
        """Σ a (μ - z)."""
        return self.observed - self.predicted
