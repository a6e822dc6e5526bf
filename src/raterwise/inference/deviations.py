"""The deviations that a verdict looks at: which cases, which channel, which coefficients.

A deviation is a sum over cases, S_j = Σ_i a_i Σ_k f_ijk (μ_ik - p_ik), of what the raters said
minus what the model predicts, with coefficients f that depend on the predictions alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALL", "TOP", "Cases", "Features", "Statistic", "mean_over_classes"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TOP, ALL = -1, -2
"""Channels beside the classes: the predicted class, and all classes at once."""
BINS = 5
MOST_BINNED = 10
"""With more classes than this, classes have a mean and a slope each but no bins."""
MOST_NAMED = 20
"""Of more classes than this, those are looked at by themselves in which most can be seen."""
STEEPEST = 8.0
"""Logits are cut here (p = 0.0003): beyond it a slope would hang on a single case."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Predictions and what the raters said, checked; patients as codes or None."""

    probs: FloatArray
    """(N, K), rows adding to 1."""
    observed: FloatArray
    """(N, K): the raters' frequencies."""
    raters: FloatArray
    """(N,)."""
    weights: FloatArray
    """(N,): of the cases."""
    patients: IntArray | None = None

    def take(self, rows: Any) -> Cases:
        """Return some of the cases."""
        return Cases(
            self.probs[rows],
            self.observed[rows],
            self.raters[rows],
            self.weights[rows],
            None if self.patients is None else self.patients[rows],
        )

    def of_channel(self, channel: int) -> tuple[FloatArray, FloatArray]:
        """Return the predicted probability and the observed frequency of a channel's event."""
        if channel == ALL:
            return (self.probs**2).sum(axis=1), (self.probs * self.observed).sum(axis=1)
        if channel != TOP:
            return self.probs[:, channel], self.observed[:, channel]
        rows, top = np.arange(len(self.probs)), self.probs.argmax(axis=1)
        return self.probs[rows, top], self.observed[rows, top]


@dataclass(frozen=True)
class Statistic:
    """One deviation: of which channel, of what kind, over which probabilities."""

    kind: str
    """mean, slope, bin, or sharpness (the probability given to what the raters said)."""
    channel: int
    low: float = 0.0
    high: float = 1.0
    number: int = 0
    """Which of the bins, from 1."""
    bins: int = 0
    centre: float = 0.0
    """Of a slope: the logit around which it turns."""

    def coefficient(self, z: FloatArray) -> FloatArray:
        """Return by what the deviation of a case counts, given the probability of its event."""
        if self.kind == "slope":
            return _logit(z) - self.centre
        return self.members(z).astype(np.float64)

    def members(self, z: FloatArray) -> NDArray[np.bool_]:
        """Return which cases the statistic speaks of: for a slope, those above its centre."""
        if self.kind == "slope":
            return np.asarray(_logit(z) > self.centre)
        if self.kind == "bin":
            return (z >= self.low) & ((z < self.high) | (self.high >= 1))
        return np.ones(len(z), bool)


@dataclass(frozen=True, eq=False)
class Features:
    """The statistics of a report, made from the predictions alone."""

    statistics: tuple[Statistic, ...]

    @staticmethod
    def of(cases: Cases, weights: FloatArray) -> Features:
        """Return what is looked at: with two classes the positive class, then the top label."""
        classes = cases.probs.shape[1]
        if classes == 2:
            return Features((*_of_channel(cases, 1, weights, BINS), Statistic("mean", TOP)))
        bins = BINS if classes <= MOST_BINNED else 0
        each = [_of_channel(cases, k, weights, bins) for k in _named(cases)]
        top = _of_channel(cases, TOP, weights, BINS)
        by_class = (statistic for statistics in each for statistic in statistics)
        return Features((*top, Statistic("sharpness", ALL), *by_class))

    @staticmethod
    def means(cases: Cases) -> Features:
        """Return the mean of each class (with two, of the positive one) and of the top label."""
        named = (Statistic("mean", k) for k in _named(cases))
        return Features((*named, Statistic("mean", TOP)))

    def coefficients(self, probs: FloatArray) -> FloatArray:
        """Return f, (n, K, statistics)."""
        rows, top = np.arange(len(probs)), probs.argmax(axis=1)
        f = np.zeros((*probs.shape, len(self.statistics)))
        for j, statistic in enumerate(self.statistics):
            if statistic.channel == ALL:
                f[:, :, j] = probs
            elif statistic.channel == TOP:
                f[rows, top, j] = statistic.coefficient(probs[rows, top])
            else:
                k = statistic.channel
                f[:, k, j] = statistic.coefficient(probs[:, k])
        return f

    def centred(self, probs: FloatArray) -> FloatArray:
        """Return f less its expectation under the probabilities."""
        f = self.coefficients(probs)
        f -= mean_over_classes(probs, f)[:, None, :]
        return f


def _named(cases: Cases) -> list[int]:
    """Return the classes that are looked at: the positive one of two, else those that vary most."""
    if cases.probs.shape[1] == 2:
        return [1]
    varies = (cases.probs * (1 - cases.probs)).sum(axis=0)
    return sorted(np.argsort(-varies, kind="stable")[:MOST_NAMED].tolist())


def _logit(z: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(z) - np.log1p(-z), -STEEPEST, STEEPEST))


def _of_channel(
    cases: Cases, channel: int, weights: FloatArray, bins: int
) -> tuple[Statistic, ...]:
    """Return mean, slope and bins of a channel; a bin holds a like share of the information."""
    z, _ = cases.of_channel(channel)
    information = weights**2 / cases.raters * z * (1 - z)
    total = information.sum()
    centre = float((information * _logit(z)).sum() / total) if total > 0 else 0.0
    statistics = [Statistic("mean", channel), Statistic("slope", channel, centre=centre)]
    if bins:
        edges = _edges(z, information + 1e-12 * weights, bins)
        ends = np.unique([0.0, *edges, 1.0])
        if len(ends) > 2:
            statistics += [
                Statistic("bin", channel, float(low), float(high), number + 1, len(ends) - 1)
                for number, (low, high) in enumerate(itertools.pairwise(ends))
            ]
    return tuple(statistics)


def _edges(z: FloatArray, share: FloatArray, bins: int) -> FloatArray:
    order = np.argsort(z, kind="stable")
    reached = np.cumsum(share[order])
    at = np.searchsorted(reached, reached[-1] * np.arange(1, bins) / bins)
    return np.asarray(z[order][np.minimum(at, len(z) - 1)])


def mean_over_classes(share: FloatArray, values: FloatArray) -> FloatArray:
    """Return Σ_k share_k values_k of each case and statistic."""
    return np.asarray((share[:, None, :] @ values)[:, 0])
