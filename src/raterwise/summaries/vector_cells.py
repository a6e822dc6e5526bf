"""Cells of like probability vectors, which stand for whole rows in the resamples of an interval.

A grid over K classes has bins^K cells. These follow the cases instead: the cell whose vectors are
furthest apart is cut in two until there are enough.
"""

from __future__ import annotations

import heapq

import numpy as np

from raterwise.questions import Question
from raterwise.summaries.bin_sums import BinPlan, BinSums
from raterwise.summaries.entries import Entries
from raterwise.types import FloatArray, IntArray

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
