"""Sums over cells of whole probability vectors: every class has its bin, and together they are one.

The grid has bins^K cells of which few hold a case, so only those are kept, per resampling unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import bin_edges, edges_for, locate
from raterwise.errors import MergeError
from raterwise.predictions import Rows
from raterwise.questions import Question
from raterwise.summaries.bin_sums import BinPlan, BinSums
from raterwise.summaries.contract import Metric, Plan, Summary
from raterwise.summaries.entries import Entries
from raterwise.types import FloatArray, IntArray, Options

MANY = 1 << 16
"""How many entries may wait to be joined."""
FIELDS = 5
"""Sums of a cell and a class: 1, w, w², w z, w μ, the first fields of a `BinTable`."""


@dataclass(frozen=True)
class SimplexPlan(Plan):
    """Over which grid of whole probability vectors to sum: the bins of every class."""

    kind: ClassVar[str] = "simplex"

    question: Question
    """Of every class, counted per annotation or per case."""
    bins: int | tuple[float, ...] = 15

    def room(self, num_classes: int, units: int, cases: int) -> int:
        """Return how many bytes the cells take."""
        return 8 * FIELDS * cases * num_classes

    def empty(self, num_classes: int, units: int = 1) -> SimplexSums:
        """Return the sums of no cases."""
        return SimplexSums(
            self,
            units,
            np.empty(0, np.int64),
            np.empty((0, num_classes), np.int64),
            np.empty((0, num_classes, FIELDS)),
        )

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> SimplexSums:
        """Return the sums that `arrays()` wrote down."""
        number = int(arrays["number"])
        return SimplexSums(self, number, arrays["unit"], arrays["cell"], arrays["values"])


@dataclass(frozen=True, eq=False)
class _UnitCells:
    """The cells of one resampling unit; those of two units add up to those of both."""

    cell: IntArray
    values: FloatArray

    def __add__(self, other: _UnitCells) -> _UnitCells:
        cell = np.concatenate((self.cell, other.cell))
        return _UnitCells(*_joined(cell, np.concatenate((self.values, other.values))))


@dataclass(frozen=True, eq=False)
class SimplexSums(Summary):
    """Sums per unit × cell of the grid × class; `a + b` is that of all their cases.

    >>> from raterwise.predictions import Predictions
    >>> plan = SimplexPlan(Question("per_class", "case"), 2)
    >>> rows = Predictions.of([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1]).read(0, 3)
    >>> sums = plan.empty(2)
    >>> sums.absorb(rows)
    >>> (sums + sums).tabled().table.cases[0]
    array([2., 4.])
    """

    plan: SimplexPlan
    number: int
    """Of resampling units."""
    unit: IntArray
    """(entries,)."""
    cell: IntArray
    """(entries, K): the bin of every class."""
    values: FloatArray
    """(entries, K, FIELDS)."""
    pending: tuple[SimplexSums, ...] = ()
    """Chunks that are yet to be joined: joining each by itself would sort all of them each time."""

    def __add__(self, other: SimplexSums) -> SimplexSums:
        if not isinstance(other, SimplexSums):
            return NotImplemented
        alike = self.cell.shape[1] == other.cell.shape[1] and self.number == other.number
        if self.plan != other.plan or not alike:
            raise MergeError(
                f"cannot add {other.plan} with {other.cell.shape[1]} classes to {self.plan} with "
                f"{self.cell.shape[1]}: made for different questions, classes or units"
            )
        return replace(self, pending=(*self.pending, other)).settled()

    def settled(self) -> SimplexSums:
        """Return the same with every chunk joined, each cell of a unit once."""
        if not self.pending:
            return self
        parts = [replace(self, pending=()), *(part.settled() for part in self.pending)]
        unit, cell, values = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("unit", "cell", "values")
        )
        return self._of(unit, cell, values)

    def _of(self, unit: IntArray, cell: IntArray, values: FloatArray) -> SimplexSums:
        keys, values = _joined(np.column_stack((unit, cell)), values)
        return SimplexSums(self.plan, self.number, keys[:, 0], keys[:, 1:], values)

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made these sums and has not shown them yet."""
        scored = self.plan.question.score(rows)
        edges = edges_for(bin_edges(self.plan.bins), scored.rounding)
        cell = locate(scored.z.astype(np.float64), edges).astype(np.int64)
        w = np.broadcast_to(scored.weights[:, None], scored.z.shape)
        with np.errstate(over="ignore"):  # of squares nobody may need
            squares = w * w
        fields = (np.ones_like(w), w, squares, w * scored.z, w * scored.mu)
        unit = scored.units if len(scored.units) else np.zeros(len(cell), np.int64)
        chunk = self._of(unit, cell, np.stack(fields, axis=-1))
        object.__setattr__(self, "pending", (*self.pending, chunk))
        if sum(len(part.unit) for part in self.pending) > max(len(self.unit), MANY):
            joined = self.settled()
            for name in ("unit", "cell", "values", "pending"):
                object.__setattr__(self, name, getattr(joined, name))

    def tabled(self, like: BinSums | None = None, most: int | None = None) -> BinSums:
        """Return the table of the cells that hold a case, with the sums of every unit.

        The table of a resample has the cells of the sample that it comes from, `like`. With `most`,
        bins are joined two by two until cells times classes are no more.
        """
        if self.pending:
            return self.settled().tabled(like, most)
        classes, joined = self.cell.shape[1], 1 if like is None else int(like.channel_edges[1][0])
        known = np.unique(self.cell // joined, axis=0)
        while most is not None and like is None and len(known) * classes > most and known.any():
            joined *= 2
            known = np.unique(known // 2, axis=0)
        known = known if like is None else like.channel_edges[0].astype(np.int64)
        cells, own = len(known), self.cell // joined
        _, at = np.unique(np.concatenate((known, own)), axis=0, return_inverse=True)
        place = np.zeros(at.max(initial=0) + 1, np.int64)
        place[at.ravel()[:cells]] = np.arange(cells)
        column = place[at.ravel()[cells:]]
        order = np.argsort(column, kind="stable")  # resampling goes cell by cell
        entries = Entries(
            np.tile(self.unit[order], classes),
            np.concatenate([c * cells + column[order] for c in range(classes)]),
            np.concatenate([self.values[order, c] for c in range(classes)]),
        )
        sums = entries.total(classes * cells).reshape(1, classes, cells, FIELDS)
        edges = known.astype(np.float64), np.array([float(joined)])
        return BinSums(BinPlan(self.plan.question, max(cells, 1)), sums, edges, entries=entries)

    def value(self, row: Metric, options: Options) -> tuple[float, float | None]:
        """Return a metric of these sums, which is exact."""
        return float(row.over(self.tabled().table, options)), None

    def nested(self, row: Metric, options: Options) -> FloatArray:
        """Return a metric of the first unit, of the first two, and so on."""
        whole = self.settled()

        def on(last: int) -> float:
            some = whole.unit <= last
            part = replace(whole, unit=whole.unit[some], cell=whole.cell[some])
            return replace(part, values=whole.values[some]).value(row, options)[0]

        with np.errstate(invalid="ignore"):  # of no cases there is no value
            return np.array([on(last) for last in range(self.number)])

    @property
    def units(self) -> NDArray[Any]:
        """(units,): what each resampling unit adds."""
        whole, out = self.settled(), np.empty(self.number, object)
        for i in range(self.number):
            mine = whole.unit == i
            out[i] = _UnitCells(whole.cell[mine], whole.values[mine])
        return out

    def with_units(self, units: NDArray[Any]) -> SimplexSums:
        """Return the sums of these units instead."""
        sizes = [len(one.cell) for one in units]
        return SimplexSums(
            self.plan,
            len(units),
            np.repeat(np.arange(len(units)), sizes),
            np.concatenate([one.cell for one in units]),
            np.concatenate([one.values for one in units]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file keeps."""
        whole = self.settled()
        parts = {"unit": whole.unit, "cell": whole.cell, "values": whole.values}
        return {**parts, "number": np.array(self.number)}


def _joined(keys: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each key once, with the sum of its values."""
    if len(keys) == 0:
        return keys, values
    distinct, at = np.unique(keys, axis=0, return_inverse=True)
    sums = np.zeros((len(distinct), *values.shape[1:]))
    np.add.at(sums, at.ravel(), values)
    return distinct, sums
