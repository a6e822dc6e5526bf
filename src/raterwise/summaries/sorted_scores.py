"""Sorted scores with their masses: exact ranks, quantile bins and cumulative sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import MergeError, UndefinedMetricError
from raterwise.predictions import Rows
from raterwise.questions import Event, Question, ScoredCases
from raterwise.summaries.contract import Metric, ScorePlan, Summary
from raterwise.types import FloatArray, IntArray, Options

if TYPE_CHECKING:
    from raterwise.summaries.cells import CellPlan


@dataclass(frozen=True)
class ScoreMasses:
    """Distinct scores in increasing order, with the mass and the hits at each.

    With resampling units, a score appears once per unit that has it.
    """

    score: FloatArray
    mass: FloatArray
    """Σ w."""
    hits: FloatArray
    """Σ w μ."""
    unit: IntArray | None = None

    @staticmethod
    def of(
        score: FloatArray, mass: FloatArray, hits: FloatArray, unit: IntArray | None = None
    ) -> ScoreMasses:
        """Return the masses of unsorted scores, ties added up."""
        return ScoreMasses.in_order(_order(score, unit), score, mass, hits, unit)

    @staticmethod
    def in_order(
        order: NDArray[Any],
        score: NDArray[Any],
        mass: FloatArray,
        hits: FloatArray,
        unit: IntArray | None = None,
    ) -> ScoreMasses:
        """Return the same where it is known which score comes where, by unit within a score."""
        score, mass, hits = score[order].astype(np.float64), mass[order], hits[order]
        new = np.empty(len(score), bool)
        new[:1] = True
        new[1:] = score[1:] != score[:-1]
        if unit is not None:
            unit = unit[order]
            new[1:] |= unit[1:] != unit[:-1]
        first = np.flatnonzero(new)
        return ScoreMasses(
            score[first],
            np.add.reduceat(mass, first),
            np.add.reduceat(hits, first),
            None if unit is None else unit[first],
        )


@dataclass(frozen=True)
class SortedPlan(ScorePlan):
    """Which question's scores to sort."""

    kind: ClassVar[str] = "scores"

    question: Question | Event

    def empty(self, num_classes: int, units: int = 1) -> SortedScores:
        """Return the scores of no cases."""
        return SortedScores(self, self.question.channels(num_classes), units)

    def room(self, num_classes: int, units: int, cases: int) -> int:
        """Return how many bytes the scores take."""
        return 12 * cases * self.question.channels(num_classes)

    def bounded(self) -> CellPlan:
        """Return the plan of fine cells, which stand for the scores."""
        from raterwise.summaries.cells import CellPlan

        return CellPlan(self.question)


@dataclass(frozen=True, eq=False)
class SortedScores(Summary):
    """The scores of all cases so far; sorted when somebody asks."""

    plan: SortedPlan
    channels: int
    units: int = 1
    pieces: tuple[ScoredCases, ...] = ()

    def __add__(self, other: SortedScores) -> SortedScores:
        if not isinstance(other, SortedScores):
            return NotImplemented
        if (self.plan, self.channels) != (other.plan, other.channels):
            raise MergeError(
                f"cannot add {other.plan} with {other.channels} channels to {self.plan} with "
                f"{self.channels}"
            )
        units = max(self.units, other.units)
        return SortedScores(self.plan, self.channels, units, self.pieces + other.pieces)

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made this summary and has not shown it yet."""
        self.take_in(_own(self.plan.question.score(rows)))

    def take_in(self, scored: ScoredCases) -> None:
        """Add scored cases in place."""
        object.__setattr__(self, "pieces", (*self.pieces, scored))

    def value(self, row: Metric, options: Options) -> tuple[float, float | None]:
        """Return a metric of the scores: of each of them, or of the bins that they make."""
        if row.exact is not None:
            return row.exact(self, options)
        return float(row.over(row.prepare(self, options).table, options)), None

    def nested(self, row: Metric, options: Options) -> FloatArray:
        """Return a metric of the first unit, of the first two, and so on."""
        if row.growing is not None and self.units > 1:
            together = row.growing(self, options)
            if together is not None:
                return together
        z, mu, weights, channel, unit = (
            _join(self.pieces, name) for name in ("z", "mu", "weights", "channel", "units")
        )
        whole = ScoredCases(z, mu, weights, channel=channel)

        def on(last: int) -> float:
            part = replace(self, units=1, pieces=(whole.take(unit <= last),))
            try:
                return part.value(row, options)[0]
            except UndefinedMetricError:
                return float("nan")

        return np.array([on(last) for last in range(self.units)])

    def widened(self, more: int) -> SortedScores:
        """Return a copy that more resampling units can be added to."""
        return SortedScores(self.plan, self.channels, self.units + more, self.pieces)

    def scores(self) -> SortedScores:
        """Return itself."""
        return self

    @property
    def case_counts(self) -> None:
        """Return None: each score is one case."""
        return None

    @cached_property
    def tables(self) -> dict[Any, Any]:
        """What was made of these scores already, by the edges of its bins: metrics share it."""
        return {}

    def pooled(self, c: int = 0) -> ScoreMasses:
        """Return the sorted scores of one channel without the units, which many metrics share."""
        if c not in self._pooled:
            order, score, mass, hits, _ = self.sorted_columns(c)
            self._pooled[c] = ScoreMasses.in_order(order, score, mass, hits)
        return self._pooled[c]

    def cases(self, c: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return score, mass and hits of every case that counts, one channel, ties apart."""
        score, mass, hits, rows = self._columns(c)
        score = score.astype(np.float64, copy=False)
        counts = mass > 0 if rows is None else (mass > 0) & rows
        if counts.all():
            return score, mass, hits
        return score[counts], mass[counts], hits[counts]

    def tidy(self) -> None:
        """Let go of all tables but the last that was made."""
        by_edges = [key for key in self.tables if isinstance(key, tuple) and key[0] != "loess"]
        for key in by_edges[:-1]:
            del self.tables[key]

    def forget(self) -> None:
        """Let go of what was made of these scores, which can be made again."""
        for name in ("tables", "_pooled", "_orders"):
            self.__dict__.pop(name, None)

    @cached_property
    def _pooled(self) -> dict[int, ScoreMasses]:
        return {}

    @cached_property
    def _orders(self) -> dict[int, NDArray[Any]]:
        return {}

    def sorted_columns(self, c: int = 0) -> tuple[Any, ...]:
        """Return the order of one channel's cases, and their scores, masses, hits and units.

        The order is kept, since sorting is most of the work.
        """
        score, mass, hits, rows = self._columns(c)
        apart = self.units > 1 and any(len(piece.units) for piece in self.pieces)
        unit = _join(self.pieces, "units") if apart else None
        if rows is not None:
            score, mass, hits = score[rows], mass[rows], hits[rows]
            unit = None if unit is None else unit[rows]
        if c not in self._orders:
            order = _order(score, unit)
            self._orders[c] = order.astype(np.uint32) if len(order) < 1 << 32 else order
        return self._orders[c], score, mass, hits, unit

    def _columns(self, c: int) -> tuple[Any, ...]:
        """Return scores, masses and hits, and which are of the channel where each case has one."""
        own = _join(self.pieces, "channel")
        column = 0 if len(own) else c
        score = np.concatenate([piece.z[:, column] for piece in self.pieces])
        mass = _weights(self.pieces)
        hits = np.concatenate([piece.mu[:, column] for piece in self.pieces])
        hits *= mass
        return score, mass, hits, own == c if len(own) else None


def _weights(pieces: tuple[ScoredCases, ...]) -> FloatArray:
    """Return the weights of all pieces; where all cases have one, it is kept once."""
    each = [piece.weights for piece in pieces]
    first = each[0][:1]
    if all(len(w) and w.strides == (0,) and w[0] == first[0] for w in each):
        return np.broadcast_to(first, (sum(map(len, each)),))
    return np.concatenate(each)


def _order(score: NDArray[Any], unit: IntArray | None) -> NDArray[Any]:
    """Return where each score is, in increasing order; equal ones by their unit."""
    if unit is None:
        return np.argsort(score, kind="stable")
    small = unit.astype(np.uint16) if unit.max(initial=0) < 1 << 16 else unit  # sorted by digits
    by_unit = np.argsort(small, kind="stable")
    return by_unit[np.argsort(score[by_unit], kind="stable")]


def _join(pieces: tuple[ScoredCases, ...], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(piece, name) for piece in pieces])


def _own(scored: ScoredCases) -> ScoredCases:
    """Keep scores, not a view into the caller's predictions that would pin them in memory.

    They are as many as the cases: a score that has no more digits is kept in single precision, and
    a weight that all cases have is kept once.
    """
    weights = scored.weights
    if len(weights) and (weights == weights[0]).all():
        weights = np.broadcast_to(weights[:1].copy(), weights.shape)
    return ScoredCases(
        _narrow(scored.z), scored.mu, weights, channel=scored.channel, units=scored.units
    )


def _narrow(score: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    return single if (single == score).all() else np.array(score, np.float64)
