"""Evidence against calibration: standardised deviations, and how far they go by chance.

If the model is calibrated the expectation of a deviation is 0, and its variance, its third moment
and its correlation with the others follow from the model's own probabilities. With one rater per
case and independent cases that is all there is to know, and the test is exact but for the number
of simulations. Otherwise the raters of a case agree more than its probabilities say (an agreement ρ
from 0 to 1, estimated from how often they differ), and cases of a patient go together (a design
effect, estimated from the products of their deviations): both widen the null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, ndtr

from raterwise.inference.deviations import TOP, Cases, Features, mean_over_classes

__all__ = ["Evidence", "Moments", "simulated_p_values", "step_down", "two_sided"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAN = 25
"""How many cases with several raters the agreement over all counts for."""
CAREFUL = 5
"""How many further cases count as if all their raters had agreed: the safe side."""
SIMULATED = 5_000_000
"""Up to how many labels, over all simulations, the null is drawn label by label."""
VALUES = 1 << 21
"""How many coefficients are held at a time."""


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
        second = weights[:, None] ** 2 * mean_over_classes(p, square)
        third = weights[:, None] ** 3 * mean_over_classes(p, square * f)
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
            each = own[:, None] * mean_over_classes(part.observed, f)
            sums += each.sum(axis=0)
            square = f * f
            moments = moments + Moments.of(part, f, square, own)
            if several:
                apart += _apart(part, f, square, own)
            if cases.patients is not None:
                squares += (np.add.reduceat(each, starts, axis=0) ** 2).sum(axis=0)
                squares -= (each**2).sum(axis=0)
                spread = np.abs(own[:, None]) * np.sqrt(mean_over_classes(part.probs, square))
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


def _apart(part: Cases, f: FloatArray, square: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how much less the cases vary because their raters differ: Σ a² (1 - 1/n) w.

    w is the variance of a label within the case, estimated without bias by n/(n-1) of that among
    its raters; the case's mean then varies by v - (1 - 1/n) w, with v as the model says. No squared
    deviation from the prediction is in this, so a model that is off does not excuse itself.
    """
    within = mean_over_classes(part.observed, square) - mean_over_classes(part.observed, f) ** 2
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
