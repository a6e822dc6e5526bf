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
