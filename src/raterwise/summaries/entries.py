"""The sums per resampling unit × cell that there are: most units are in few of the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import locate
from raterwise.summaries.sorted_scores import ScoreMasses, SortedScores
from raterwise.types import FloatArray

DENSE = 4
"""How many places for sums there may be for each score, to add up without sorting."""
TOGETHER = 1 << 17
"""How many scores are looked at together."""
UNITS_TOGETHER = 512
MOST_UNITS = 4096
"""How many units are looked at for how cells vary together."""
MOST_LABELS = 5
"""How many labels of a case are drawn one by one; more raters move its mean as these would."""


@dataclass(frozen=True, eq=False)
class Entries:
    """The sums per unit × cell that there are, cell by cell: most units are in few of them."""

    unit: NDArray[np.int64]
    cell: NDArray[np.int64]
    values: FloatArray
    """(entries, fields)."""
    units: int = 0
    """How many there are: the last of them may have no entry."""

    @cached_property
    def number(self) -> int:
        """How many units there are, with an entry or without."""
        return max(self.units, int(self.unit.max(initial=-1)) + 1)

    @staticmethod
    def of_table(table: FloatArray) -> Entries:
        """Return the entries of a table (units, cells, fields)."""
        from raterwise.kernels import _resample as kernels

        return Entries(*kernels.occupied_cells(table), len(table))

    @staticmethod
    def of_scores(scores: SortedScores, edges: Sequence[FloatArray], bins: int) -> Entries:
        """Return the entries of every unit in the cells of its channel."""
        parts = [_of_channel(scores, c, own, bins) for c, own in enumerate(edges)]
        if len(parts) == 1:
            return Entries(*parts[0], scores.units)
        unit, cell, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Entries(unit, cell, values, scores.units)

    @cached_property
    def _by_unit(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The entries of each unit, in their order, and where those of a unit begin."""
        number = self.number
        small = self.unit.astype(np.uint16) if number <= 1 << 16 else self.unit
        order = np.argsort(small, kind="stable").astype(np.uint32)
        ends = np.cumsum(np.bincount(self.unit, minlength=number))
        return order, np.concatenate(([0], ends))

    def dense(self, first: int, last: int, cells: int) -> FloatArray:
        """Return the sums of units first … last - 1 (units, cells, fields)."""
        order, begin = self._by_unit
        ends = (begin[min(unit, len(begin) - 1)] for unit in (first, last))
        chosen = order[slice(*ends)]
        at = (self.unit[chosen] - first) * cells + self.cell[chosen]
        size = (last - first) * cells
        each = [np.bincount(at, field, size).astype(np.float64) for field in self.values[chosen].T]
        dense: FloatArray = np.stack(each, axis=-1).reshape(last - first, cells, -1)
        return dense

    def grouped(self, groups: NDArray[Any], number: int, cells: int) -> FloatArray:
        """Return the sums of the units of each group (groups, cells, fields)."""
        at, size = groups[self.unit] * cells + self.cell, number * cells
        each = [np.bincount(at, field, size) for field in self.values.T]
        return np.stack(each, axis=-1).reshape(number, cells, -1).astype(np.float64, copy=False)

    def by_channel(self, field: int, channels: int, bins: int) -> FloatArray:
        """Return one field of every unit and channel, summed over its bins (units, channels)."""
        at = self.unit * channels + self.cell // bins
        sums = np.bincount(at, self.values[:, field], self.number * channels)
        return sums.reshape(self.number, channels).astype(np.float64, copy=False)

    def by_unit(self, field: int) -> FloatArray:
        """Return one field of every unit, summed over its cells (units,)."""
        sums = np.bincount(self.unit, self.values[:, field], self.number)
        return sums.astype(np.float64, copy=False)

    def null_draws(
        self,
        channels: int,
        bins: int,
        raters: float,
        agreement: float,
        draws: int,
        random: np.random.Generator,
    ) -> FloatArray | None:
        """Return deviations of a calibrated model (draws, channels, bins); None of larger units.

        Where each unit is one case its probabilities are known, and labels are drawn from them,
        each of which falls on one channel. As in `inference.noise.calibrated_draws`, all raters of
        a case say the same with the probability `agreement`, otherwise each speaks by himself.
        """
        from raterwise.kernels import _resample as kernels

        order = np.lexsort((self.cell, self.unit))
        if (len(order) % channels) or not (self.values[:, 0] == 1).all():
            return None
        cell = self.cell[order].reshape(-1, channels)
        unit = self.unit[order].reshape(-1, channels)
        if (cell // bins != np.arange(channels)).any() or (unit != unit[:, :1]).any():
            return None
        weight, score = (self.values[order, field].reshape(-1, channels) for field in (1, 3))
        alike = agreement >= 1 or raters <= 1
        labels = 1 if alike else int(np.clip(round(raters), 1, MOST_LABELS))
        size = draws, len(cell)
        place = random.random((labels, *size))
        same = np.ones(size, np.bool_) if alike else random.random(size) < agreement
        reach = float(np.sqrt(labels / raters))  # of more raters than labels, or of a part of one
        out = np.zeros((draws, channels * bins))
        kernels.add_drawn_labels(place, same, reach, score / weight, cell, weight, out)
        return out.reshape(draws, channels, bins)

    def null_covariance(self, channels: int, bins: int) -> FloatArray:
        """Return how cells of channels that hold the same cases vary together (cells, cells).

        The label of a case falls on one of its channels with the probabilities p of a calibrated
        model, so that cells of channels k and j have the covariance -Σ w² p_k p_j. Of a unit with n
        cases only sums are known: as many are taken to be in both cells as if by chance, which is
        exact for units of one case. Of many units some are looked at.
        """
        number, cells = int(self.unit.max(initial=0)) + 1, channels * bins
        step = -(-number // MOST_UNITS)
        covariance, own = np.zeros((cells, cells)), np.zeros(cells)
        for first in range(0, number, UNITS_TOGETHER):
            table = self.dense(first, min(first + UNITS_TOGETHER, number), cells)
            cases, weight, score = (table[-first % step :: step, :, field] for field in (0, 1, 3))
            in_unit = np.maximum(cases.sum(axis=1, keepdims=True) / channels, 1)
            with np.errstate(invalid="ignore", divide="ignore"):
                own += np.where(cases > 0, score * (weight - score) / cases, 0).sum(axis=0)
            covariance -= (score / in_unit).T @ score
        for c in range(channels):
            covariance[c * bins : (c + 1) * bins, c * bins : (c + 1) * bins] = 0
        np.fill_diagonal(covariance, np.maximum(own, 0))
        return np.asarray(covariance)

    def total(self, cells: int) -> FloatArray:
        """Return the sums of all units (cells, fields)."""
        fields = self.values.T
        return np.stack([np.bincount(self.cell, field, cells) for field in fields], axis=-1)

    def resampled(self, multiplicities: NDArray[Any], cells: int) -> FloatArray:
        """Return the sums of each resample (B, cells, fields)."""
        from raterwise.kernels import _resample as kernels
        from raterwise.kernels._threads import in_threads

        fields = self.values.shape[1]
        out = np.empty((len(multiplicities), cells, fields))
        add = kernels.resampling_kernel(fields)

        def some(start: int) -> None:
            stop = start + kernels.TOGETHER
            times = multiplicities[start:stop].astype(np.float64)
            add(times, self.unit, self.cell, self.values, out[start:stop])

        in_threads(some, range(0, len(out), kernels.TOGETHER))
        return out


def _of_channel(
    scores: SortedScores, c: int, edges: FloatArray, bins: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Return unit, cell and sums of the scores of one channel, those of a unit in a cell added up.

    In the order of the cells; within one, in that of the units where some are added up. Scores are
    sorted, so some whole cells are looked at at a time.
    """
    order, score, mass, hits, unit = scores.sorted_columns(c)
    if not len(order):  # a class that is predicted for no case
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 5))
    cells = locate(score[order].astype(np.float64, copy=False), edges).astype(np.int32)
    begin = np.flatnonzero(np.diff(cells, prepend=-1))
    parts, first = [], 0
    for last in (*begin[1:], len(cells)):
        if last - first < TOGETHER and last < len(cells):
            continue
        part = ScoreMasses.in_order(order[first:last], score, mass, hits, unit)
        parts.append(_of_cells(part, edges, int(cells[first])))
        first = last
    del order, score, mass, hits, unit, cells
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    joined = []
    for column in reversed(columns):  # the sums, the largest, while nothing else is there twice
        joined.append(np.concatenate(column))
        column.clear()
    values, cell, units = joined
    cell += c * bins
    return units, cell, values


def _of_cells(
    masses: ScoreMasses, edges: FloatArray, lowest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Return the same for scores of which the lowest is in cell `lowest`."""
    cell = locate(masses.score, edges) - lowest
    unit = np.zeros_like(cell) if masses.unit is None else masses.unit
    fields: dict[int, NDArray[Any]] = {
        0: masses.mass > 0, 1: masses.mass, 3: masses.mass * masses.score, 4: masses.hits
    }  # fmt: skip
    sums: dict[int, NDArray[Any]]
    number = int(unit.max(initial=0)) + 1
    place = cell * number + unit
    size = (int(cell[-1]) + 1) * number
    if size <= DENSE * len(place):
        held = np.flatnonzero(np.bincount(place, minlength=size))
        sums = {field: np.bincount(place, of, size)[held] for field, of in fields.items()}
    else:
        order = np.argsort(place, kind="stable")
        new = np.diff(place[order], prepend=-1) > 0
        if new.all():
            held, sums = place, fields
        else:
            first = np.flatnonzero(new)
            held = place[order[first]]
            sums = {f: np.add.reduceat(of[order].astype(float), first) for f, of in fields.items()}
    values = np.zeros((len(held), 5))
    for field, of in sums.items():
        values[:, field] = of
    return held % number, lowest + held // number, values
