"""The sums per resampling unit × cell that there are: most units are in few of the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import locate
from raterwise.summaries.sorted_scores import SortedScores

__all__ = ["Entries"]

FloatArray = NDArray[np.float64]

MOST_UNITS = 4096
"""How many units are looked at for how cells vary together."""


@dataclass(frozen=True, eq=False)
class Entries:
    """The sums per unit × cell that there are, cell by cell: most units are in few of them."""

    unit: NDArray[np.int64]
    cell: NDArray[np.int64]
    values: FloatArray
    """(entries, fields)."""

    @staticmethod
    def of_table(table: FloatArray) -> Entries:
        """Return the entries of a table (units, cells, fields)."""
        from raterwise.kernels import _resample as kernels

        return Entries(*kernels.occupied_cells(table))

    @staticmethod
    def of_scores(scores: SortedScores, edges: Sequence[FloatArray], bins: int) -> Entries:
        """Return an entry for every score of every unit, in the cells of its channel."""
        units, cells, values = [], [], []
        for c, channel_edges in enumerate(edges):
            masses = scores.channel(c)
            cells.append(c * bins + locate(masses.score, channel_edges))
            units.append(np.zeros_like(cells[-1]) if masses.unit is None else masses.unit)
            own = np.zeros((len(masses.mass), 5))
            own[:, 0] = masses.mass > 0
            own[:, 1] = masses.mass
            own[:, 3] = masses.mass * masses.score
            own[:, 4] = masses.hits
            values.append(own)
        return Entries(np.concatenate(units), np.concatenate(cells), np.concatenate(values))

    def dense(self, first: int, last: int, cells: int) -> FloatArray:
        """Return the sums of units first … last - 1 (units, cells, fields)."""
        chosen = (self.unit >= first) & (self.unit < last)
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
        units = int(self.unit.max(initial=-1)) + 1
        at = self.unit * channels + self.cell // bins
        sums = np.bincount(at, self.values[:, field], units * channels)
        return sums.reshape(units, channels).astype(np.float64, copy=False)

    def null_draws(
        self, channels: int, bins: int, labels: int, draws: int, random: np.random.Generator
    ) -> FloatArray | None:
        """Return deviations of a calibrated model (draws, channels, bins); None of larger units.

        Where each unit is one case its probabilities are known, and so many labels are drawn from
        them, each of which falls on one channel.
        """
        order = np.lexsort((self.cell, self.unit))
        if (len(order) % channels) or not (self.values[:, 0] == 1).all():
            return None
        cell = self.cell[order].reshape(-1, channels)
        unit = self.unit[order].reshape(-1, channels)
        if (cell // bins != np.arange(channels)).any() or (unit != unit[:, :1]).any():
            return None
        weight, score = (self.values[order, field].reshape(-1, channels) for field in (1, 3))
        reached = np.cumsum(score / weight, axis=1)
        out = np.zeros((draws, channels, bins))
        place = random.random((labels, draws, len(cell)))
        for k in range(channels):
            hit = place < reached[:, k]
            if k:
                hit &= place >= reached[:, k - 1]
            member = np.eye(bins)[cell[:, k] - k * bins]
            said = hit.mean(axis=0) if labels > 1 else hit[0].astype(np.float64)
            out[:, k] = said @ (weight[:, k, None] * member) - score[:, k] @ member
        return out

    def null_covariance(self, channels: int, bins: int) -> FloatArray:
        """Return how cells of channels that hold the same cases vary together (cells, cells).

        The label of a case falls on one of its channels with the probabilities p of a calibrated
        model, so that cells of channels k and j have the covariance -Σ w² p_k p_j. Of a unit with n
        cases only sums are known: as many are taken to be in both cells as if by chance, which is
        exact for units of one case. Of many units some are looked at.
        """
        number = int(self.unit.max(initial=0)) + 1
        step = -(-number // MOST_UNITS)
        chosen = self.unit % step == 0
        at = self.unit[chosen] // step, self.cell[chosen]
        cases, weight, score = np.zeros((3, -(-number // step), channels * bins))
        for table, field in ((cases, 0), (weight, 1), (score, 3)):
            table[at] = self.values[chosen, field]
        in_unit = np.maximum(cases.sum(axis=1, keepdims=True) / channels, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            own = np.where(cases > 0, score * (weight - score) / cases, 0).sum(axis=0)
        covariance = -(score / in_unit).T @ score
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

        times = multiplicities.astype(np.float64, copy=False)
        fields = self.values.shape[1]
        out = np.empty((len(times), cells, fields))
        add = kernels.resampling_kernel(fields)

        def some(start: int) -> None:
            stop = start + kernels.TOGETHER
            add(times[start:stop], self.unit, self.cell, self.values, out[start:stop])

        in_threads(some, range(0, len(times), kernels.TOGETHER))
        return out
