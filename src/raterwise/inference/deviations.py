"""The deviations that a verdict looks at: which channel, which cells, which coefficients.

A deviation is a sum over cases, S = Σ_i a_i f(z_i) (μ_i - z_i), of what the raters said minus what
the model predicts, with coefficients f that depend on the predictions alone and are the same
within a cell (`summaries.deviation_sums`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raterwise.summaries import DeviationTable
from raterwise.types import FloatArray

TOP, ALL = -1, -2
"""Channels beside the classes: the predicted class, and all classes at once."""
BINS = 5
MOST_BINNED = 10
"""With more classes than this, classes have a mean and a slope each but no bins."""
MOST_NAMED = 20
"""Of more classes than this, those are looked at by themselves in which most can be seen."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """One deviation: of what kind, over which cells."""

    kind: str
    """mean, slope, bin, or sharpness (the probability given to what the raters said)."""
    channel: int
    coefficients: FloatArray
    """(cells,): by what the deviation of a case counts."""
    members: NDArray[np.bool_]
    """(cells,): which cases it speaks of; for a slope, those above the logit it turns around."""
    number: int = 0
    """Which of the bins, from 1."""
    bins: int = 0


@dataclass(frozen=True, eq=False)
class Channel:
    """A channel's place in the tables, and what is looked at in it.

    The cases of different channels are the same, but their statistics are judged as if they were
    not: of all correlations between channels, none at all makes the largest deviation largest
    (Royen's Gaussian correlation inequality), so that this is the safe side.
    """

    place: int
    statistics: tuple[Statistic, ...]

    @cached_property
    def coefficients(self) -> FloatArray:
        """(statistics, cells)."""
        return np.stack([s.coefficients for s in self.statistics])

    def only(self, kinds: Sequence[str]) -> Channel:
        """Return the channel with statistics of these kinds alone."""
        return Channel(self.place, tuple(s for s in self.statistics if s.kind in kinds))


def channels_of(table: DeviationTable, classes: int) -> tuple[Channel, ...]:
    """Return what is looked at: with two classes the positive class, then the top label."""
    if classes == 2:
        whole = np.ones(table.weight.shape[1])
        sign = np.where(np.arange(len(whole)) < len(whole) // 2, -1.0, 1.0)
        top = Statistic("mean", TOP, sign, whole > 0)
        return (Channel(0, (*_statistics(table, 0, 1, BINS), top)),)
    named, last = _named(table), len(table.weight)
    bins = BINS if classes <= MOST_BINNED else 0
    whole = np.ones(table.weight.shape[1])
    sharpness = Statistic("sharpness", ALL, whole, whole > 0)
    # A model that is certain of every case gives nothing but 0 and 1: there is nothing to expect.
    uncertain = bool(table.weight[last - 1].any())
    return (
        Channel(last - 2, tuple(_statistics(table, last - 2, TOP, BINS))),
        *((Channel(last - 1, (sharpness,)),) if uncertain else ()),
        *(Channel(k, tuple(_statistics(table, k, k, bins))) for k in named),
    )


def _named(table: DeviationTable) -> list[int]:
    """Return the classes that are looked at: those that vary most."""
    varies = table.together[:-2].sum(axis=1)
    return sorted(np.argsort(-varies, kind="stable")[:MOST_NAMED].tolist())


def _statistics(table: DeviationTable, place: int, channel: int, bins: int) -> Iterator[Statistic]:
    """Yield mean, slope and bins of a channel; a bin holds a like share of the information."""
    weight, information = table.weight[place], table.alone[place]
    whole, held = np.ones(len(weight), bool), weight > 0
    yield Statistic("mean", channel, np.ones(len(weight)), whole)
    z = np.divide(table.predicted[place], weight, out=np.full(len(weight), 0.5), where=held)
    with np.errstate(divide="ignore"):
        logit = np.clip(np.log(z) - np.log1p(-z), -8.0, 8.0)
    total = information.sum()
    centre = float((information * logit).sum() / total) if total > 0 else 0.0
    yield Statistic("slope", channel, np.where(held, logit - centre, 0), logit > centre)
    cuts = _cuts(information + 1e-12 * weight, bins)
    if len(cuts) > 2:
        cells = np.arange(len(weight))
        for number, (first, last) in enumerate(itertools.pairwise(cuts)):
            inside = (cells >= first) & (cells < last)
            yield Statistic(
                "bin", channel, inside.astype(np.float64), inside, number + 1, len(cuts) - 1
            )


def _cuts(share: FloatArray, bins: int) -> list[int]:
    """Return the cells at which bins begin, and the end; none of them is empty."""
    held = np.flatnonzero(share > 0)
    if not bins or not len(held):
        return []
    reached = np.cumsum(share[held])
    # The middle of a cell says to which bin it belongs.
    middle = (reached - share[held] / 2) / reached[-1]
    number = np.minimum((middle * bins).astype(int), bins - 1)
    begins = held[np.flatnonzero(np.diff(number, prepend=-1))]
    return [0, *begins[1:].tolist(), len(share)]
