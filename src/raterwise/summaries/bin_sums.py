"""Sums per resampling unit × channel × bin: what every binned metric is a formula over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import bin_edges, edges_for, unit_in_last_place
from raterwise.errors import MergeError
from raterwise.predictions import Predictions, Rows
from raterwise.predictions.mixtures import bin_shares
from raterwise.questions import Event, PerCaseScore, Question, ScoredCases
from raterwise.summaries.bin_table import BinTable, SmoothTable, through
from raterwise.summaries.contract import Metric, Plan, TableSummary
from raterwise.summaries.entries import Entries
from raterwise.summaries.sorted_scores import SortedScores
from raterwise.summaries.votes import Votes, asked_of_two
from raterwise.types import FloatArray, Options

DirectLoop = Callable[[int, int, FloatArray], int]
"""loop(start, stop, table) adds cases from `start` on to `table` (channels, bins, fields) and
returns up to where: nearly to `stop`, or `start` where it left them all to others."""

ONE_SCORE = ("top_label", "positive")
"""Questions with one score per case."""
DIRECT_VALUES = 1 << 20
"""From how many probabilities on a loop for their number of classes is worth compiling."""


@dataclass(frozen=True)
class BinPlan(Plan):
    """Which question to sum, over which bins: a number of equal bins or a tuple of edges."""

    kind: ClassVar[str] = "bins"
    by_units: ClassVar[bool] = True

    question: Question | Event | PerCaseScore
    bins: int | tuple[float, ...] = 15
    least_raters: int = 1
    """Cases with fewer labels are left out."""
    spread: float | None = None
    """The standard deviation of the Gaussian that spreads each score over the bins (RECE eq 6)."""
    mixture: tuple[int, int] | None = None
    """Components and seed of the mixtures that spread the cases over the bins (RECE eq 7)."""

    @property
    def soft(self) -> bool:
        """Whether a case is spread over the bins."""
        return self.spread is not None or self.mixture is not None

    @property
    def edges(self) -> FloatArray:
        """The bins' edges."""
        return _edges(self.bins)

    def empty(self, num_classes: int, units: int = 1) -> BinSums:
        """Return the table of no cases."""
        channels = self.question.channels(num_classes)
        from raterwise.kernels._numba import FIELDS

        return BinSums(self, np.zeros((units, channels, len(self.edges) - 1, FIELDS)))

    def prepared(self, rows: Rows) -> ScoredCases:
        """Return the scored cases that have enough raters."""
        rows = rows.with_raters(self.least_raters)
        scored = self.question.score(rows)
        if self.spread is not None and scored.z.shape[1] == 1:  # once, for all who take some of it
            return replace(scored, share=self.shares(scored.z[:, 0]))
        if self.mixture is None:
            return scored
        assert rows.draws is not None, "mixtures need the draws of an ensemble"
        return replace(scored, share=bin_shares(rows.draws.mixtures(*self.mixture), self.edges))

    def shares(self, score: NDArray[Any]) -> FloatArray:
        """Return how much of the Gaussian around each score (n,) is in each bin (n, bins)."""
        from raterwise.kernels._numba import gaussian_shares

        centre = score.astype(np.float64)[:, None]
        share = np.empty((len(centre), len(self.edges) - 1))
        width = np.full_like(centre, self.spread)
        gaussian_shares(centre, width, np.ones_like(centre), self.edges, share)
        return share

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> BinSums:
        """Return the table that `arrays()` wrote down."""
        return BinSums(self, arrays["sums"])

    def takes_votes(self) -> bool:
        """Tell whether `absorb_votes` can answer this question."""
        from raterwise.kernels._voxels import QUESTION_CODES

        if self.mixture is not None:
            return False
        name = asked_of_two(self.question)
        if self.spread is not None or not isinstance(self.bins, int):
            return name in ONE_SCORE
        known = name in QUESTION_CODES
        return known and (name != "disagreement" or self.least_raters >= 2)

    def direct_loop(self, predictions: Predictions) -> DirectLoop | None:
        """Return a loop from these arrays straight to the table, where there is one worth having.

        It is for what is asked most of the largest data: single labels, one unit, equal weights,
        equal bins.
        """
        probs, labels = predictions.probs, predictions.labels.classes
        if not (
            self.question.name in ("top_label", "per_class")
            and not self.soft
            and self.least_raters <= 1
            and predictions.weights is None
            and labels is not None
            and labels.flags.c_contiguous
            and probs.ndim == 2
            and probs.flags.c_contiguous
            and probs.dtype.newbyteorder("=") == probs.dtype
            and probs.size >= DIRECT_VALUES
        ):
            return None
        from raterwise.kernels import _tiles as kernels

        many = probs.shape[1] > kernels.MOST_CLASSES
        compared = edges_for(self.edges, predictions.rounding)
        if many or not kernels.has_usual_edges(probs, compared):
            return None
        loops = {"top_label": kernels.top_label_loop, "per_class": kernels.per_class_loop}
        add = loops[self.question.name](probs.shape[1])
        bins, tolerance = len(self.edges) - 1, predictions.tolerance

        def loop(start: int, stop: int, table: FloatArray) -> int:
            stop -= (stop - start) % kernels.ROWS
            flat, said = probs[start:stop].reshape(-1), labels[start:stop]
            return stop if add(flat, said, bins, tolerance, table) else start

        return loop


@dataclass(frozen=True, eq=False)
class BinSums(TableSummary):
    """Sums of scored cases per unit × channel × bin; `a + b` is the table of all their cases."""

    plan: BinPlan
    sums: FloatArray
    """(units, channels, bins, fields)."""
    channel_edges: tuple[FloatArray, ...] = ()
    """The edges of each channel, where they follow from the scores and so differ."""
    smoother: FloatArray | None = None
    """What the deviations were multiplied by, where they are smoothed; see `through`."""
    made_for: FloatArray | None = None
    """(channels, bins): the weight of each cell that the smoother was made for."""
    centre: FloatArray | None = None
    """(channels, bins): the smoothed gap of the sample, which its resamples are held against."""
    entries: Entries | None = None
    """The sums of each unit, where `sums` has those of all units together."""
    made: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Resampled tables and entries, which tables of other plans and smoothers share."""

    @staticmethod
    def of_scored(plan: BinPlan, scored: ScoredCases, channels: int = 1) -> BinSums:
        """Return the table of cases that are scored already."""
        from raterwise.kernels._numba import FIELDS

        table = BinSums(plan, np.zeros((1, channels, len(plan.edges) - 1, FIELDS)))
        table.take_in(scored)
        return table

    def __add__(self, other: BinSums) -> BinSums:
        if not isinstance(other, BinSums):
            return NotImplemented
        if self.plan != other.plan:
            raise MergeError(
                f"cannot add {other.plan} to {self.plan}: made for different questions"
            )
        if self.sums.shape != other.sums.shape:
            raise MergeError(
                f"cannot add tables of shapes {self.sums.shape} and {other.sums.shape}: "
                "different classes or resampling units"
            )
        return BinSums(self.plan, self.sums + other.sums)

    @cached_property
    def table(self) -> BinTable:
        """The sums over all units."""
        return self._table(self._total)

    def _table(self, sums: FloatArray) -> BinTable:
        if self.centre is None:
            return BinTable(self._smooth(sums))
        return SmoothTable(self._smooth(sums), sums[..., 1])

    @cached_property
    def _total(self) -> FloatArray:
        return np.asarray(self.sums.sum(axis=0))

    @property  # not cached: a table that holds itself would not be freed with the last who use it
    def unsmoothed(self) -> BinSums:
        """The table before it was smoothed."""
        if self.smoother is None:
            return self
        return replace(self, smoother=None, made_for=None, centre=None)

    def sums_by_unit(self, field: int) -> FloatArray:
        """Return one field of every unit, summed over its channels and bins."""
        if self.entries is None:
            return np.asarray(self.sums[..., field].sum(axis=(1, 2)))
        return self.entries.by_unit(field)

    def nested(self, row: Metric, options: Options) -> FloatArray:
        """Return a metric of the first unit, of the first two, and so on."""
        return np.asarray(row.over(BinTable(np.cumsum(self.sums, axis=0)), options))

    @staticmethod
    def of_scores(scores: SortedScores, edges: Sequence[FloatArray]) -> BinSums:
        """Return the table of sorted scores over each channel's own edges.

        It has the sums of weight, score and hits alone; channels with fewer bins end in empty ones.
        """
        known = scores.tables
        key = tuple(e.tobytes() for e in edges)
        if key not in known:
            bins = max(len(e) - 1 for e in edges)
            entries = Entries.of_scores(scores, edges, bins)
            sums = entries.total(scores.channels * bins).reshape(1, scores.channels, bins, -1)
            plan = BinPlan(scores.plan.question, bins)
            known[key] = BinSums(plan, sums, tuple(edges), entries=entries)
        table: BinSums = known[key]
        return table

    def smoothed(self, smoother: FloatArray) -> BinSums:
        """Return a table whose deviations are smoothed: `smoother` (cells out, cells in) × d.

        Of several channels it may be one for each: (channels, cells out, cells in).
        Cells out share the weight as the cells in of this table do where they are as many, and
        alike otherwise: in a resample, too, for the smoother holds this table's weights, and what
        it returns over the weight of a resampled cell is no gap.
        Units are added up first, and their sum is smoothed, which is the same and much less work.
        """
        return replace(self, smoother=smoother, made_for=self._total[..., 1])

    def centred(self) -> BinSums:
        """Return the smoothed table with resamples held against the gap g of the sample.

        S holds the masses m of the sample. A resample with masses m' has S d' - S (m' - m) g: cells
        that are drawn more often than they are in the sample move the curve by what differs from g
        alone, as in a weighted fit, which to first order this is. A gap that is the same everywhere
        stays as it is.
        """
        assert self.smoother is not None and self.made_for is not None
        held = np.where(self.made_for > 0, self.made_for, 1)
        return replace(self, centre=self.table.deviation / held)

    def smoothed_like(self, other: BinSums) -> BinSums:
        """Return a table that is smoothed as another one is, whose cells it has."""
        return replace(self, smoother=other.smoother, made_for=other.made_for, centre=other.centre)

    def _smooth(self, sums: FloatArray) -> FloatArray:
        if self.smoother is None:
            return sums
        deviation = through(self.smoother, sums[..., 4] - sums[..., 3])
        out = np.zeros((*deviation.shape, sums.shape[-1]))
        total = sums[..., 1].sum(axis=-1, keepdims=True)
        if deviation.shape[-1] == sums.shape[-2]:
            assert self.made_for is not None
            known = np.maximum(self.made_for.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
            out[..., 0], out[..., 1] = sums[..., 0], self.made_for * (total / known)
            if self.centre is not None:
                moved = (sums[..., 1] - out[..., 1]) * self.centre
                deviation = deviation - through(self.smoother, moved)
        else:
            out[..., 1] = total / deviation.shape[-1]
        out[..., 4] = deviation
        return out

    def resampled(self, multiplicities: NDArray[Any]) -> BinTable:
        """Return the tables of resamples: `multiplicities` (B, units) says how often each unit."""
        units, *shape, fields = self.sums.shape
        if id(multiplicities) not in self.made:
            cells = self.sums.reshape(units, -1, fields)
            stack = self.by_cell.resampled(multiplicities, cells.shape[1])
            # Holding the multiplicities, too, keeps their identity from passing to others.
            self.made[id(multiplicities)] = multiplicities, stack
        _, stack = self.made[id(multiplicities)]
        return self._table(stack.reshape(len(stack), *shape, fields))

    def without_each(self, first: int, last: int) -> BinTable:
        """Return the tables of all units but one, leaving out the first … last - 1 in turn."""
        total, *shape, fields = self._total[None], *self.sums.shape[1:]
        if self.entries is None:
            left_out = self.sums[first:last]
        else:
            left_out = self.entries.dense(first, last, shape[0] * shape[1])
            left_out = left_out.reshape(last - first, *shape, fields)
        return self._table(total - left_out)

    def grouped(self, groups: NDArray[Any], number: int) -> BinTable:
        """Return the tables of groups of units: `groups` (units,) is the group of each."""
        _, *shape, fields = self.sums.shape
        sums = self.by_cell.grouped(groups, number, shape[0] * shape[1])
        return self._table(sums.reshape(number, *shape, fields))

    @property
    def by_cell(self) -> Entries:
        """The sums per unit and cell that there are."""
        if self.entries is not None:
            return self.entries
        if "entries" not in self.made:
            units, fields = len(self.sums), self.sums.shape[-1]
            self.made["entries"] = Entries.of_table(self.sums.reshape(units, -1, fields))
        entries: Entries = self.made["entries"]
        return entries

    def forget(self) -> None:
        """Let go of what was made of the table, which can be made again."""
        self.made.clear()

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made this table and has not shown it yet."""
        rows = rows.with_raters(self.plan.least_raters)
        if len(rows.probs):
            self.take_in(self.plan.prepared(rows))

    def absorb_votes(self, votes: Votes) -> None:
        """Add voxels of two classes in place."""
        from raterwise.kernels import _voxels as kernels

        if votes.raters < self.plan.least_raters:
            return
        question, rounding = self.plan.question, unit_in_last_place(votes.positive.dtype)
        edges = edges_for(self.plan.edges, rounding)
        if self.plan.spread is not None or not isinstance(self.plan.bins, int):
            scored = votes.scored(question)
            if self.plan.spread is None and question.per == "case" and votes.raters > 1:
                within = scored.mu * (1 - scored.mu) / (votes.raters - 1)
                scored = replace(scored, v=within)
            self.take_in(scored)
            return
        name = asked_of_two(question)
        whole = name != "disagreement" and _whole_bins(votes.positive.dtype, tuple(edges.tolist()))
        kernels.add_binary_voxels(
            votes.positive, votes.chosen, votes.raters, kernels.QUESTION_CODES[name],
            question.per == "annotation", edges, whole, self.sums[0],
        )  # fmt: skip

    def absorb_directly(self, loop: DirectLoop, start: int, stop: int) -> int:
        """Add cases from `start` on by a `direct_loop`, and return where it stopped.

        That is at `start` itself where one of the cases needs a closer look: `Predictions.read`
        then says what is wrong, if anything is.
        """
        return loop(start, stop, self.sums[0])

    def take_in(self, scored: ScoredCases) -> None:
        """Add scored cases in place."""
        from raterwise.kernels import _numba as kernels

        plan, compared = self.plan, edges_for(self.plan.edges, scored.rounding)
        if plan.mixture is not None:
            kernels.add_soft_bin_sums(
                scored.z[:, 0].astype(np.float64), scored.mu[:, 0], scored.weights, scored.share,
                scored.units, compared, self.sums[:, 0],
            )  # fmt: skip
            # What each case adds to the noise of a soft bin, which no common width tells.
            square = (scored.weights[:, None] * scored.share) ** 2
            units = scored.units if scored.units.size else np.zeros(len(square), np.int64)
            np.add.at(self.sums[:, 0, :, 2], units, square)
            return
        if plan.spread is not None:
            z = scored.z.astype(np.float64)
            for c in range(z.shape[1]):
                share = scored.share if scored.share.size else plan.shares(z[:, c])
                kernels.add_soft_bin_sums(
                    z[:, c], scored.mu[:, c], scored.weights, share, scored.units, compared,
                    self.sums[:, c],
                )  # fmt: skip
            return
        cells = self.sums.size // self.sums.shape[-1]
        if scored.said.size and scored.z.size >= cells:
            kernels.add_single_labels(
                scored.z, scored.said, scored.channel, scored.units, compared, self.sums
            )
            return
        kernels.add_bin_sums(
            scored.z, scored.mu, scored.v, scored.weights, scored.channel, scored.units,
            compared, self.sums,
        )  # fmt: skip


@lru_cache(maxsize=256)
def _edges(bins: int | tuple[float, ...]) -> FloatArray:
    """Return edges that every chunk and every plan share."""
    return bin_edges(bins)


def _whole_bins(dtype: Any, edges: tuple[float, ...]) -> bool:
    """Tell whether `add_binary_voxels` finds the bin of every float32 z by a product."""
    from raterwise.kernels import _tiles

    return bool(dtype == np.float32) and _tiles.are_usual(edges, 32)
