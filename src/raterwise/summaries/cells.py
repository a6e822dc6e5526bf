"""Sums over fine cells of the score: what stands in for sorted scores where they do not fit.

Ranks, quantile bins and kernels need every score, or sums over cells so narrow that what they
hide has a small bound (`raterwise.metrics.cell_bounds`). The memory is that of the cells, however
many the cases. For the intervals each resampling unit has a table of coarser cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import edges_for
from raterwise.errors import MergeError
from raterwise.predictions import Rows
from raterwise.questions import Event, Question, ScoredCases
from raterwise.summaries.contract import Metric, ScorePlan, Summary
from raterwise.summaries.sorted_scores import SortedPlan, SortedScores
from raterwise.types import FloatArray, Options

EQUAL_CELLS = 5040
FINEST = 25  # the tails are fine down to 2^-25, half the gap between 1 and the next float32
TAIL_CELLS = 820  # equal cells at either end that are split, at least in two
ARRAYS = ("fine", "lowest", "highest", "per_unit")
COARSE_CELLS = 210
"""Equal cells of the resampling units; beyond the first and the last there is one per octave."""


@lru_cache(maxsize=1)
def fine_cells() -> FloatArray:
    """Edges of the fine cells: 5040 equal ones, those near 0 and 1 split further.

    Every edge i / 5040 is present. At the distance x from 0 a cell is no wider than x / 32, for
    kernels as wide as x, and no wider than sqrt(x) / 2000, since the standard deviation of a kernel
    is about sqrt(x h); this holds down to 2^-25, and from there to 2^-52 there are four cells an
    octave. The upper end mirrors the lower one. The float32 number 1.0 has the last cell to
    itself.

    >>> edges = fine_cells()
    >>> bool(np.isin(np.arange(5041) / 5040, edges).all())
    True
    """
    tail = [np.exp2(np.arange(-52, -FINEST, 0.25))]
    for i in range(TAIL_CELLS):
        low, high = max(i / EQUAL_CELLS, 2.0**-FINEST), (i + 1) / EQUAL_CELLS
        narrow = np.ceil((high - low) * 2000 / np.sqrt(low if i else high))
        pieces = int(max(narrow, np.ceil(np.log(high / low) * 32)))
        tail.append(low * (high / low) ** (np.arange(1 if i else 0, pieces) / pieces))
    lower = np.concatenate(tail)
    edges = np.concatenate((np.arange(EQUAL_CELLS + 1) / EQUAL_CELLS, lower, 1 - lower))
    edges = np.unique(edges)
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=4)
def fine_cells_for(rounding: float) -> FloatArray:
    """Return the edges that scores rounded by up to `rounding` are compared with.

    As for bins (`raterwise.binning.edges_for`), of which i / 5040 may be an edge; the tail cells
    between are finer than the rounding. So are all cells for a float16, which is taken exactly.

    >>> at, score = cells_of(np.array(0.2)), float(1 - np.float32(0.8))
    >>> bool(fine_cells_for(2.0**-24)[at] <= score < fine_cells()[at])
    True
    """
    fine = fine_cells()
    if rounding > 0.5 / EQUAL_CELLS:
        return fine
    equal = np.searchsorted(fine, np.arange(EQUAL_CELLS + 1) / EQUAL_CELLS)
    edges = fine.copy()
    edges[equal] = edges_for(fine, rounding)[equal]
    edges.setflags(write=False)
    return edges


def cells_of(scores: FloatArray) -> NDArray[np.int64]:
    """Return the fine cell of each score: `[a, b)`, the last cell closed."""
    edges = fine_cells()
    return np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, len(edges) - 2)


@lru_cache(maxsize=1)
def coarse_cells() -> FloatArray:
    """Edges of the coarse cells, each of them an edge of fine cells.

    >>> bool(np.isin(coarse_cells(), fine_cells()).all()), len(coarse_cells()) < 400
    (True, True)
    """
    fine = fine_cells()
    wanted = np.exp2(np.arange(-52.0, np.log2(1 / COARSE_CELLS)))
    wanted = np.concatenate((np.arange(COARSE_CELLS + 1) / COARSE_CELLS, wanted, 1 - wanted))
    at = np.searchsorted(fine, wanted).clip(1, len(fine) - 1)
    nearest = np.where(wanted - fine[at - 1] < fine[at] - wanted, at - 1, at)
    edges: FloatArray = fine[np.unique(nearest)]
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=4)
def _tables(rounding: float) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Return the fine cell at each place for scores rounded so, and the coarse cell of each.

    Beyond the last place there is one more, for a score of exactly 1.
    """
    from raterwise.kernels._cells import PLACES

    fine, coarse, compared = fine_cells(), coarse_cells(), fine_cells_for(rounding)
    places = np.searchsorted(compared, np.arange(PLACES + 2) / PLACES, side="right") - 1
    coarse_of = np.searchsorted(coarse, fine[:-1], side="right") - 1
    return places.clip(0, len(fine) - 2).astype(np.uint16), coarse_of.astype(np.int64)


@dataclass(frozen=True)
class CellPlan(ScorePlan):
    """Which question's scores to sum over fine cells."""

    kind: ClassVar[str] = "cells"

    question: Question | Event

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> CellSums:
        """Return the sums that `arrays()` wrote down."""
        return CellSums(self, *(arrays[name] for name in ARRAYS))

    def empty(self, num_classes: int, units: int = 1) -> CellSums:
        """Return the sums of no cases."""
        from raterwise.kernels._cells import FINE_FIELDS, UNIT_FIELDS

        channels, cells = self.question.channels(num_classes), len(fine_cells()) - 1
        return CellSums(
            self,
            np.zeros((channels, cells, FINE_FIELDS)),
            np.full((channels, cells), np.inf),
            np.full((channels, cells), -np.inf),
            np.zeros((units, channels, len(coarse_cells()) - 1, UNIT_FIELDS)),
        )


@dataclass(frozen=True, eq=False)
class CellSums(Summary):
    """Sums of scored cases per fine cell, and per unit and coarse cell; `a + b` is that of all.

    >>> cases = ScoredCases(np.full((3, 1), 0.5), np.ones((3, 1)), np.ones(3))
    >>> half = CellPlan(Question()).empty(2)
    >>> half.take_in(cases)
    >>> float((half + half).fine[..., 0].sum())
    6.0
    """

    plan: CellPlan
    fine: FloatArray
    """(channels, cells, fields): see `kernels._cells.FINE_FIELDS`."""
    lowest: FloatArray
    """(channels, cells): the least z - lower edge; infinite where the cell is empty.

    Below 0 where a score of few digits counts as on the edge: see `raterwise.binning`."""
    highest: FloatArray
    per_unit: FloatArray
    """(units, channels, coarse cells, fields)."""

    def __add__(self, other: CellSums) -> CellSums:
        if not isinstance(other, CellSums):
            return NotImplemented
        if self.plan != other.plan or self.per_unit.shape != other.per_unit.shape:
            raise MergeError(
                f"cannot add cells of {other.plan}, shape {other.per_unit.shape}, to {self.plan}, "
                f"shape {self.per_unit.shape}: made for different questions, classes or units"
            )
        return CellSums(
            self.plan,
            self.fine + other.fine,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.per_unit + other.per_unit,
        )

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made these sums and has not shown them yet."""
        self.take_in(self.plan.question.score(rows))

    def value(self, row: Metric, options: Options) -> tuple[float, float | None]:
        """Return a metric of the cells, and how far it may be from that of the scores."""
        if row.of_cells is None:
            return self.scores().value(row, options)
        return row.of_cells(self, options)

    def by_unit(self) -> SortedScores:
        """Return one score per unit and coarse cell, for the resamples of an interval.

        A single unit, of which raters are resampled, has the fine cells.
        """
        if len(self.per_unit) == 1:
            return self.scores()
        unit, channel, cell = np.nonzero(self.per_unit[..., 1] > 0)
        mass, score, hits = (self.per_unit[unit, channel, cell, field] for field in (1, 2, 3))
        piece = _scored(score / mass, hits, mass, channel, unit)
        units = len(self.per_unit)
        return SortedScores(SortedPlan(self.plan.question), len(self.fine), units, (piece,))

    @property
    def units(self) -> FloatArray:
        """(units, …): what each resampling unit adds."""
        return self.per_unit

    def with_units(self, units: FloatArray) -> CellSums:
        """Return the sums of these units instead."""
        return replace(self, per_unit=units)

    def widened(self, more: int) -> CellSums:
        """Return a copy that more resampling units can be added to."""
        units = np.pad(self.per_unit, ((0, more), (0, 0), (0, 0), (0, 0)))
        return CellSums(self.plan, self.fine.copy(), self.lowest.copy(), self.highest.copy(), units)

    def arrays(self) -> dict[str, FloatArray]:
        """Return what a file keeps."""
        return {name: getattr(self, name) for name in ARRAYS}

    def take_in(self, scored: ScoredCases) -> None:
        """Add scored cases in place."""
        from raterwise.kernels import _cells as kernels

        rounding = scored.rounding
        where = scored.channel, scored.units, fine_cells(), fine_cells_for(rounding)
        into = *_tables(rounding), self.fine, self.lowest, self.highest, self.per_unit
        if scored.said.size and scored.z.size >= self.lowest.size:
            kernels.add_single_labels(scored.z, scored.said, *where, *into)
            return
        kernels.add_cell_sums(scored.z, scored.mu, scored.weights, *where, *into)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """(channels, cells): whether all scores of the cell are equal, so that it hides nothing."""
        return np.asarray(self.lowest >= self.highest)

    @property
    def case_counts(self) -> FloatArray:
        """How many cases each score of `scores` stands for."""
        return np.asarray(self.fine[..., 0][self.fine[..., 1] > 0])

    def scores(self) -> SortedScores:
        """Return one score per fine cell that is not empty, its mean, with the mass of the cell."""
        channel, cell = np.nonzero(self.fine[..., 1] > 0)
        mass, hits, offset = (self.fine[channel, cell, field] for field in (1, 3, 6))
        lowest, highest = self.lowest[channel, cell], self.highest[channel, cell]
        mean = fine_cells()[cell] + np.clip(offset / mass, lowest, highest)
        piece = _scored(mean, hits, mass, channel, np.empty(0, np.int64))
        return SortedScores(SortedPlan(self.plan.question), len(self.fine), 1, (piece,))


def _scored(
    score: FloatArray,
    hits: FloatArray,
    mass: FloatArray,
    channel: NDArray[np.int64],
    unit: NDArray[np.int64],
) -> ScoredCases:
    return ScoredCases(score[:, None], (hits / mass)[:, None], mass, channel=channel, units=unit)
