"""Evidence against calibration: standardised deviations, and how far they go by chance.

A deviation is a sum over cases, S_j = Σ_i a_i Σ_k f_ijk (μ_ik - p_ik), of what the raters said
minus what the model predicts, with coefficients f that depend on the predictions alone. If the
model is calibrated its expectation is 0, and its variance, its third moment and its correlation
with the other sums follow from the model's own probabilities. With one rater per case and
independent cases that is all there is to know, and the test is exact but for the number of
simulations. Otherwise the raters of a case agree more than its probabilities say (an agreement ρ
from 0 to 1, estimated from how often they differ), and cases of a patient go together (a design
effect, estimated from the products of their deviations): both widen the null.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, ndtr

__all__ = [
    "ALL",
    "TOP",
    "Cases",
    "Evidence",
    "Features",
    "Moments",
    "Statistic",
    "simulated_p_values",
    "step_down",
    "two_sided",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TOP, ALL = -1, -2
"""Channels beside the classes: the predicted class, and all classes at once."""
BINS = 5
MOST_BINNED = 10
"""With more classes than this, classes have a mean and a slope each but no bins."""
STEEPEST = 8.0
"""Logits are cut here (p = 0.0003): beyond it a slope would hang on a single case."""
LEAN = 25
"""How many cases with several raters the agreement over all counts for."""
CAREFUL = 5
"""How many further cases count as if all their raters had agreed: the safe side."""
SIMULATED = 5_000_000
"""Up to how many labels, over all simulations, the null is drawn label by label."""
VALUES = 1 << 21
"""How many coefficients are held at a time."""


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
        each = [_of_channel(cases, k, weights, bins) for k in range(classes)]
        top = _of_channel(cases, TOP, weights, BINS)
        by_class = (statistic for statistics in each for statistic in statistics)
        return Features((*top, Statistic("sharpness", ALL), *by_class))

    @staticmethod
    def means(classes: int) -> Features:
        """Return the mean of each class (with two, of the positive one) and of the top label."""
        named = (1,) if classes == 2 else range(classes)
        return Features((*(Statistic("mean", k) for k in named), Statistic("mean", TOP)))

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
        f -= _mean(probs, f)[:, None, :]
        return f


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


@dataclass(frozen=True, eq=False)
class Moments:
    """Covariance and third moments of the deviations of a calibrated model.

    Once for raters that are independent given the probabilities, once for raters of a case who all
    say the same. If they do so in a fraction ρ of the cases, both are interpolated.
    """

    covariance: FloatArray
    third: FloatArray
    variance_together: FloatArray
    third_together: FloatArray
    fourth: FloatArray
    """Σ of squared variances of the cases with several raters: how many of them there are."""

    @staticmethod
    def none(statistics: int) -> Moments:
        """Return those of no cases."""
        zero = np.zeros(statistics)
        return Moments(np.zeros((statistics, statistics)), zero, zero, zero, zero)

    @staticmethod
    def of(part: Cases, f: FloatArray, square: FloatArray, weights: FloatArray) -> Moments:
        """Return those of some cases; `f` are centred coefficients."""
        p, n = part.probs, part.raters
        root = (f * np.sqrt(p * (weights**2 / n)[:, None])[:, :, None]).reshape(-1, f.shape[2])
        second = weights[:, None] ** 2 * _mean(p, square)
        third = weights[:, None] ** 3 * _mean(p, square * f)
        return Moments(
            root.T @ root,
            (third / n[:, None] ** 2).sum(axis=0),
            second.sum(axis=0),
            third.sum(axis=0),
            ((second * (1 - 1 / n)[:, None]) ** 2).sum(axis=0),
        )

    def __add__(self, other: Moments) -> Moments:
        names = self.__dataclass_fields__
        return Moments(*(getattr(self, name) + getattr(other, name) for name in names))

    def at(self, agreement: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return variance (infinite where nothing can deviate) and skewness for an agreement."""
        alone = self.covariance.diagonal()
        variance = alone + agreement * (self.variance_together - alone)
        third = self.third + agreement * (self.third_together - self.third)
        possible = variance > 1e-12 * variance.max(initial=0)
        variance = np.where(possible, variance, np.inf)
        return variance, third / variance**1.5

    def agreement(self, apart: FloatArray, features: Features) -> tuple[float, FloatArray]:
        """Return the agreement of raters over all cases, and of each statistic's cases.

        The latter leans on the former where a statistic has few cases.
        """
        shared = self.variance_together - self.covariance.diagonal()
        several = shared > 1e-12 * self.variance_together
        if not several.any():
            return 0.0, np.zeros(len(apart))
        shared = np.where(several, shared, 1)
        mean = np.array([s.kind == "mean" and s.channel != TOP for s in features.statistics])
        cases = np.where(several, shared**2 / np.where(several, self.fourth, 1), 0)
        seen, most = 1 - apart[mean].sum() / shared[mean].sum(), cases[mean].max()
        overall = float(np.clip((most * seen + CAREFUL) / (most + CAREFUL), 0, 1))
        own = (cases * (1 - apart / shared) + LEAN * overall + CAREFUL) / (cases + LEAN + CAREFUL)
        return overall, np.clip(own, 0, 1)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The deviations, their null, and a p-value each."""

    sums: FloatArray
    moments: Moments
    agreement: float
    """How far the raters of a case go together beyond its probabilities, over all: 0 … 1."""
    own_agreement: FloatArray
    """The same for the cases that a statistic speaks of."""
    design_effect: FloatArray
    """By how much patients widen the null beyond that."""

    @staticmethod
    def of(cases: Cases, features: Features, weights: FloatArray) -> Evidence:
        """Add up the deviations of the cases, each with its weight (raters included)."""
        m = len(features.statistics)
        sums, squares, full, apart = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
        moments = Moments.none(m)
        several = bool((cases.raters > 1).any())
        for part, own, starts in _parts(cases, weights, m):
            f = features.centred(part.probs)
            each = own[:, None] * _mean(part.observed, f)
            sums += each.sum(axis=0)
            square = f * f
            moments = moments + Moments.of(part, f, square, own)
            if several:
                apart += _apart(part, f, square, own)
            if cases.patients is not None:
                squares += (np.add.reduceat(each, starts, axis=0) ** 2).sum(axis=0)
                squares -= (each**2).sum(axis=0)
                spread = np.abs(own[:, None]) * np.sqrt(_mean(part.probs, square))
                full += (np.add.reduceat(spread, starts, axis=0) ** 2).sum(axis=0)
        agreement, own_agreement = moments.agreement(apart, features)
        effect = np.ones(m)
        if cases.patients is not None:
            variance, skewness = moments.at(own_agreement)
            effect = _design_effect(1 + squares / variance, full / variance, skewness)
        return Evidence(sums, moments, agreement, own_agreement, effect)

    @property
    def standardised(self) -> FloatArray:
        """The deviations in standard errors of a calibrated model."""
        variance, _ = self.moments.at(self.own_agreement)
        return np.asarray(self.sums / np.sqrt(variance * self.design_effect))

    @property
    def widened(self) -> FloatArray:
        """By how much raters of a case and cases of a patient widen the null, as variances."""
        alone = self.moments.covariance.diagonal()
        together = self.moments.variance_together
        shared = np.divide(together, alone, out=np.ones_like(alone), where=alone > 0) - 1
        return np.asarray((1 + self.own_agreement * shared) * self.design_effect)

    def p_values(self) -> FloatArray:
        """Return the p-value of each statistic by itself."""
        _, skewness = self.moments.at(self.own_agreement)
        return two_sided(self.standardised, skewness * np.sqrt(self.design_effect))


def _parts(
    cases: Cases, weights: FloatArray, statistics: int
) -> Iterator[tuple[Cases, FloatArray, IntArray]]:
    """Yield cases in parts that hold whole patients, and where each patient starts."""
    size = max(1, VALUES // (cases.probs.shape[1] * statistics))
    if cases.patients is None:
        for first in range(0, len(weights), size):
            part = cases.take(slice(first, first + size))
            yield part, weights[first : first + size], np.arange(len(part.raters))
        return
    order = np.argsort(cases.patients, kind="stable")
    starts = np.flatnonzero(np.diff(cases.patients[order], prepend=-1))
    cuts = starts[np.flatnonzero(np.diff(starts // size, prepend=-1))]
    for first, last in zip(cuts, [*cuts[1:], len(order)], strict=True):
        rows = order[first:last]
        inside = starts[(starts >= first) & (starts < last)] - first
        yield cases.take(rows), weights[rows], inside


def _mean(share: FloatArray, values: FloatArray) -> FloatArray:
    """Return Σ_k share_k values_k of each case and statistic."""
    return np.asarray((share[:, None, :] @ values)[:, 0])


def _apart(part: Cases, f: FloatArray, square: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how much less the cases vary because their raters differ: Σ a² (1 - 1/n) w.

    w is the variance of a label within the case, estimated without bias by n/(n-1) of that among
    its raters; the case's mean then varies by v - (1 - 1/n) w, with v as the model says. No squared
    deviation from the prediction is in this, so a model that is off does not excuse itself.
    """
    within = _mean(part.observed, square) - _mean(part.observed, f) ** 2
    return np.asarray(weights**2 @ np.where(part.raters[:, None] > 1, within, 0))


def _design_effect(seen: FloatArray, full: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return by how much cases of a patient that go together widen the null.

    `seen` is 1 plus the products of deviations of different cases of a patient, over the variance
    of independent cases; `full` what it would be if all labels of a patient went together, which
    is the most there can be (Cauchy-Schwarz). Where a sum hangs on few events (a large skewness)
    little can be seen, and the most is supposed in part.
    """
    unseen = skewness**2 / (1 + skewness**2)
    return np.clip((1 - unseen) * seen + unseen * full, 1, np.maximum(full, 1))


def two_sided(t: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return two-sided p-values of standardised sums with a known skewness (Pearson's type III).

    A gamma variable with shape 4/γ² has skewness γ; γ = 0 is the normal distribution.
    """
    t, skewness = np.broadcast_arrays(t, skewness)
    t, size = np.where(skewness < 0, -t, t), np.maximum(np.abs(skewness), 0.01)
    shape = 4 / size**2
    x = np.maximum(shape + np.sqrt(shape) * t, 0)
    tail = np.minimum(gammainc(shape, x), gammaincc(shape, x))
    tail = np.where(np.abs(skewness) < 0.01, ndtr(-np.abs(t)), tail)
    return np.asarray(np.minimum(1, 2 * tail))


def simulated_p_values(
    cases: Cases,
    features: Features,
    weights: FloatArray,
    evidence: Evidence,
    simulations: int,
    seed: int,
) -> FloatArray:
    """Return (simulations, statistics): the p-values that calibrated models get by chance."""
    random = np.random.default_rng([seed, 7])
    m = len(features.statistics)
    if cases.raters.sum() * simulations > SIMULATED:
        sd = np.sqrt(evidence.moments.at(0.0)[0])
        values, vectors = np.linalg.eigh(evidence.moments.covariance / np.outer(sd, sd))
        root = vectors * np.sqrt(np.maximum(values, 0))
        return two_sided(random.standard_normal((simulations, m)) @ root.T, np.zeros(m))
    drawn = np.zeros((simulations, m))
    raters = cases.raters.astype(np.int64)
    step = max(1, VALUES // (simulations * int(raters.max())))
    for first in range(0, len(raters), step):
        rows = slice(first, first + step)
        probs, several = cases.probs[rows], raters[rows]
        f = features.centred(probs)
        f *= (weights[rows] / several)[:, None, None]
        label = _positions(random, several, simulations, evidence.agreement)
        case = np.repeat(np.arange(len(several)), several)
        drawn += f[case, 0].sum(axis=0)
        reached = np.cumsum(probs, axis=1)[case]
        for k in range(f.shape[1] - 1):
            drawn += (label >= reached[:, k]).astype(np.float64) @ (f[case, k + 1] - f[case, k])
    variance, skewness = evidence.moments.at(evidence.agreement)
    return two_sided(drawn / np.sqrt(variance), skewness)


def _positions(
    random: np.random.Generator, raters: IntArray, simulations: int, agreement: float
) -> FloatArray:
    """Draw a uniform number per label; in a fraction of the cases all raters share the first."""
    drawn = random.random((simulations, raters.sum()))
    if agreement == 0 or raters.max() == 1:
        return drawn
    first = np.repeat(np.cumsum(raters) - raters, raters)
    follow = random.random((simulations, len(raters))) < agreement
    return np.where(np.repeat(follow, raters, axis=1), drawn[:, first], drawn)


def step_down(p: FloatArray, by_chance: FloatArray) -> FloatArray:
    """Return adjusted p-values: Westfall and Young's step-down method over the smallest p."""
    order = np.argsort(p, kind="stable")
    smallest = np.minimum.accumulate(by_chance[:, order][:, ::-1], axis=1)[:, ::-1]
    # A relative hair, so that equal sums that were added up in another order are equal.
    often = (smallest <= p[order] * (1 + 1e-9)).sum(axis=0)
    adjusted = np.maximum.accumulate((1 + often) / (1 + len(by_chance)))
    found = np.empty_like(adjusted)
    found[order] = adjusted
    return np.maximum(found, p)  # a simulation of a few thousand may say less
