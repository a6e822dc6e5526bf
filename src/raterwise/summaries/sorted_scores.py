"""Sorted scores with their masses: exact ranks, quantile bins and cumulative sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidTypeError, MergeError, UndefinedMetricError
from raterwise.predictions import Predictions, Rows
from raterwise.questions import Event, Question, ScoredCases
from raterwise.summaries.votes import Votes, asked_of_two

if TYPE_CHECKING:
    from raterwise.summaries.cells import CellPlan
    from raterwise.summaries.contract import Metric, Options

__all__ = ["ScoreMasses", "SortedPlan", "SortedScores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        order = np.argsort(score, kind="stable") if unit is None else np.lexsort((unit, score))
        score, mass, hits = score[order], mass[order], hits[order]
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

    def pooled(self) -> ScoreMasses:
        """Return the masses without their units."""
        return self if self.unit is None else ScoreMasses.of(self.score, self.mass, self.hits)


@dataclass(frozen=True)
class SortedPlan:
    """Which question's scores to sort."""

    kind: ClassVar[str] = "scores"

    question: Question | Event

    def empty(self, num_classes: int, units: int = 1) -> SortedScores:
        """Return the scores of no cases."""
        return SortedScores(self, self.question.channels(num_classes), units)

    def prepared(self, rows: Rows) -> ScoredCases:
        """Return the scored cases."""
        return self.question.score(rows)

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> SortedScores:
        """Refuse: files hold no case."""
        raise InvalidTypeError(f"plan: a summary of {self} keeps cases and cannot be saved")

    def direct_loop(self, predictions: Predictions) -> None:
        """Return None: there is none."""

    def bounded(self) -> CellPlan:
        """Return the plan of fine cells, which stand for the scores."""
        from raterwise.summaries.cells import CellPlan

        return CellPlan(self.question)

    def takes_votes(self) -> bool:
        """Tell whether `absorb_votes` can answer this question: where a case has one score."""
        return asked_of_two(self.question) in ("top_label", "positive")


@dataclass(frozen=True, eq=False)
class SortedScores:
    """The scores of all cases so far; sorted when somebody asks."""

    plan: SortedPlan
    channels: int
    units: int = 1
    pieces: tuple[ScoredCases, ...] = ()

    @staticmethod
    def of(plan: SortedPlan, rows: Rows, units: int = 1) -> SortedScores:
        """Return the scores of one chunk."""
        channels = plan.question.channels(rows.probs.shape[1])
        return SortedScores(plan, channels, units, (_own(plan.question.score(rows)),))

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

    def absorb_votes(self, votes: Votes) -> SortedScores:
        """Return the scores with voxels of two classes added."""
        piece = votes.scored(self.plan.question)
        return replace(self, pieces=(*self.pieces, piece))

    def value(self, row: Metric, options: Options) -> tuple[float, float | None]:
        """Return a metric of the scores: of each of them, or of the bins that they make."""
        if row.exact is not None:
            return row.exact(self, options)
        return float(row.over(row.prepare(self, options).table, options)), None

    def nested(self, row: Metric, options: Options) -> FloatArray:
        """Return a metric of the first unit, of the first two, and so on."""
        unit = np.concatenate([piece.units for piece in self.pieces])
        whole = _joined(self.pieces)

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

    def by_unit(self) -> SortedScores:
        """Return itself: every score knows its unit."""
        return self

    def scores(self) -> SortedScores:
        """Return itself."""
        return self

    @property
    def case_counts(self) -> None:
        """Return None: each score is one case."""
        return None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Refuse: files hold no case."""
        raise InvalidTypeError(f"plan: a summary of {self.plan} keeps cases and cannot be saved")

    @cached_property
    def tables(self) -> dict[Any, Any]:
        """What was made of these scores already, by the edges of its bins: metrics share it."""
        return {}

    def channel(self, c: int = 0) -> ScoreMasses:
        """Return the sorted scores of one channel."""
        return self._sorted[c]

    def cases(self, c: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return score, mass and hits of every case that counts, one channel, ties apart."""
        mass = np.concatenate([piece.weights for piece in self.pieces])
        own_channel = np.concatenate([piece.channel for piece in self.pieces])
        column = 0 if len(own_channel) else c
        counts = mass > 0 if not len(own_channel) else (mass > 0) & (own_channel == c)
        score = _join(self.pieces, "z")[:, column].astype(np.float64)
        hits = mass * _join(self.pieces, "mu")[:, column]
        return score[counts], mass[counts], hits[counts]

    @cached_property
    def _sorted(self) -> list[ScoreMasses]:
        score = _join(self.pieces, "z").astype(np.float64)
        hits = _join(self.pieces, "mu")
        mass = np.concatenate([piece.weights for piece in self.pieces])
        unit = np.concatenate([piece.units for piece in self.pieces])
        own_channel = np.concatenate([piece.channel for piece in self.pieces])
        out = []
        for c in range(self.channels):
            column = 0 if len(own_channel) else c
            rows: Any = own_channel == c if len(own_channel) else slice(None)
            w = mass[rows]
            units = unit[rows] if len(unit) and self.units > 1 else None
            out.append(ScoreMasses.of(score[rows, column], w, w * hits[rows, column], units))
        return out


def _join(pieces: tuple[ScoredCases, ...], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(piece, name) for piece in pieces])


def _joined(pieces: tuple[ScoredCases, ...]) -> ScoredCases:
    return ScoredCases(
        _join(pieces, "z"),
        _join(pieces, "mu"),
        np.concatenate([piece.weights for piece in pieces]),
        channel=np.concatenate([piece.channel for piece in pieces]),
    )


def _own(scored: ScoredCases) -> ScoredCases:
    """Keep scores, not a view into the caller's predictions that would pin them in memory."""
    return ScoredCases(
        np.array(scored.z, np.float64),
        scored.mu,
        scored.weights,
        channel=scored.channel,
        units=scored.units,
    )
