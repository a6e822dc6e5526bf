"""Evidence against calibration: standardised deviations, and how far they go by chance.

If the model is calibrated the expectation of a deviation is 0, and its variance and its third
moment follow from the model's own probabilities. With one rater per case and independent cases
that is all there is to know. Otherwise the raters of a case agree more than its probabilities say
(an agreement ρ from 0 to 1, estimated from how often they differ), and cases of a patient go
together (a design effect, estimated from the products of their deviations): both widen the null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterwise.exchangeability.permutations import step_down
from raterwise.inference.deviations import TOP, Channel
from raterwise.summaries import DeviationTable
from raterwise.types import FloatArray

LEAN = 25
"""How many cases with several raters the agreement over all counts for."""
CAREFUL = 5
"""How many further cases count as if all their raters had agreed: the safe side."""
MANY = 40.0
"""From how much information on, in labels of variance 1, sums of labels are drawn as normal."""

TIES = 0.97
"""Sums of labels that are drawn for a cell are nearly, not exactly, those that there may be: what
is so close counts as equal, and so against the model that is judged."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Second and third moments of the deviations of a calibrated model, one of each statistic.

    Once for raters that are independent given the probabilities, once for raters of a case who all
    say the same. If they do so in a fraction ρ of the cases, both are interpolated.
    """

    variance: FloatArray
    third: FloatArray
    variance_together: FloatArray
    third_together: FloatArray
    fourth: FloatArray
    """Σ of squared variances of the cases with several raters: how many of them there are."""
    apart: FloatArray
    """How much less the cases vary because their raters differ.

    The variance of a label within a case is estimated without bias by n/(n-1) of that among its
    raters; no squared deviation from the prediction is in this, so a model that is off does not
    excuse itself.
    """

    @staticmethod
    def of(table: DeviationTable, channels: Sequence[Channel]) -> Moments:
        """Return those of all statistics of the channels."""
        return Moments(
            _sums(table.alone, channels, 2),
            _sums(table.third, channels, 3),
            _sums(table.together, channels, 2),
            _sums(table.third_together, channels, 3),
            _sums(table.fourth, channels, 4),
            _sums(table.apart, channels, 2),
        )

    def at_least(self, variance: FloatArray) -> Moments:
        """Return the moments of deviations that vary at least so much, whoever the raters are."""
        return replace(
            self,
            variance=np.maximum(self.variance, variance),
            variance_together=np.maximum(self.variance_together, variance),
        )

    def at(self, agreement: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return variance (infinite where nothing can deviate) and skewness for an agreement."""
        variance = self.variance + agreement * (self.variance_together - self.variance)
        third = self.third + agreement * (self.third_together - self.third)
        possible = variance > 1e-12 * variance.max(initial=0)
        variance = np.where(possible, variance, np.inf)
        return variance, third / variance**1.5

    def agreement(self, means: NDArray[np.bool_]) -> tuple[float, FloatArray]:
        """Return the agreement of raters over all cases, and of each statistic's cases.

        The latter leans on the former where a statistic has few cases. `means` are the statistics
        that tell it of all cases.
        """
        shared = self.variance_together - self.variance
        several = shared > 1e-12 * self.variance_together
        if not several.any():
            return 0.0, np.zeros(len(shared))
        shared = np.where(several, shared, 1)
        cases = np.where(several, shared**2 / np.where(several, self.fourth, 1), 0)
        seen, most = 1 - self.apart[means].sum() / shared[means].sum(), cases[means].max()
        overall = float(np.clip((most * seen + CAREFUL) / (most + CAREFUL), 0, 1))
        own = cases * (1 - self.apart / shared) + LEAN * overall + CAREFUL
        return overall, np.clip(own / (cases + LEAN + CAREFUL), 0, 1)


def _sums(cells: FloatArray, channels: Sequence[Channel], power: int = 1) -> FloatArray:
    """Return Σ f^power x over the cells of each statistic."""
    return np.concatenate([c.coefficients**power @ cells[c.place] for c in channels])


@dataclass(frozen=True, eq=False)
class Evidence:
    """The deviations, their null, and a p-value each."""

    sums: FloatArray
    moments: Moments
    agreement: float
    """Of the raters of a case, over all cases."""
    own_agreement: FloatArray
    """Of the raters of a statistic's cases."""
    patients: Patients

    @staticmethod
    def of(
        table: DeviationTable,
        channels: Sequence[Channel],
        *,
        patients: int | None = None,
        agreement: float | None = None,
        scattered: bool = False,
    ) -> Evidence:
        """Return the evidence of a table.

        `patients` is their number, where cases of one go together; an `agreement` that is known
        already is taken for that of every statistic. What is `scattered` varies as much as the
        deviations of the cases do: of a model that need not be calibrated.
        """
        moments = Moments.of(table, channels)
        if scattered:
            moments = moments.at_least(_sums(table.squares, channels, 2))
        listed = [s for c in channels for s in c.statistics]
        if agreement is None:
            means = np.array([s.kind == "mean" and s.channel != TOP for s in listed])
            if not means.any():  # too many classes to look at them one by one
                means = np.array([s.kind == "mean" for s in listed])
            agreement, own = moments.agreement(means)
        else:
            own = np.full(len(listed), agreement)
        together = Patients.none(len(listed))
        if patients is not None and table.by_unit.size:
            together = Patients.of(table, channels, *moments.at(own), patients)
        return Evidence(_sums(table.deviation, channels), moments, agreement, own, together)

    @property
    def standardised(self) -> FloatArray:
        """The deviations in standard errors of a calibrated model."""
        variance, _ = self.moments.at(self.own_agreement)
        return np.asarray(self.sums / np.sqrt(variance * self.patients.effect))

    @property
    def widened(self) -> FloatArray:
        """By how much raters of a case and cases of a patient widen the null, as variances."""
        alone, together = self.moments.variance, self.moments.variance_together
        shared = np.divide(together, alone, out=np.ones_like(alone), where=alone > 0) - 1
        return np.asarray((1 + self.own_agreement * shared) * self.patients.effect)

    def p_values(self) -> FloatArray:
        """Return the p-value of each statistic by itself."""
        _, skewness = self.moments.at(self.own_agreement)
        normal = self.patients.as_normal(self.standardised)
        return two_sided(normal, skewness * np.sqrt(self.patients.effect))


@dataclass(frozen=True, eq=False)
class Patients:
    """How far cases of a patient go together, and how well that is known; one of each statistic."""

    effect: FloatArray
    """By how much they widen the null, as a variance: at least 1."""
    number: FloatArray
    """Patients, or blocks of them."""
    worth: FloatArray
    """As many of equal size would tell as much."""

    @staticmethod
    def none(statistics: int) -> Patients:
        """Return that every case is its own patient."""
        one = np.ones(statistics)
        return Patients(one, np.inf * one, np.inf * one)

    @staticmethod
    def of(
        table: DeviationTable,
        channels: Sequence[Channel],
        variance: FloatArray,
        skewness: FloatArray,
        patients: int,
    ) -> Patients:
        """Return the design effects.

        The products of deviations of different cases of a patient, over the variance of independent
        cases, are what is `seen`; `full` is what it would be if all labels of a patient went
        together, which is the most there can be (Cauchy-Schwarz). Where a sum hangs on few events
        (a large skewness) little can be seen, and the most is supposed in part.
        """
        sums, spreads = (
            np.concatenate([by_unit[:, c.place] @ f(c.coefficients).T for c in channels], axis=1)
            for by_unit, f in ((table.by_unit, np.asarray), (table.spread, np.abs))
        )
        units, total = len(sums), spreads.sum(axis=0)
        products = (sums**2).sum(axis=0) - _sums(table.squares, channels, 2)
        full = (spreads**2).sum(axis=0)
        worth = np.divide(total**2, full, out=np.ones(len(full)), where=full > 0)
        cubes = (spreads**3).sum(axis=0) * total
        unequal = np.divide(cubes, full**2, out=np.ones(len(full)), where=full > 0)
        if patients > units:  # without the products of different patients who share a block
            pairs = _pairs_in_blocks(patients, units)
            full = (full - pairs * total**2) / (1 - pairs)
        number = np.maximum((spreads > 0).sum(axis=0), 1)
        full, seen = full / variance, 1 + products / variance
        few = (skewness * _hanging_on_few(unequal, full)) ** 2
        unseen = few / (1 + few)
        effect = np.clip((1 - unseen) * seen + unseen * full, 1, np.maximum(full, 1))
        return Patients(effect, number, worth)

    def as_normal(self, t: FloatArray) -> FloatArray:
        """Return standardised sums as far out in the normal distribution as they are in their own.

        Where patients make up most of the variance, and they are few, it is itself uncertain: the
        sum over its own scatter is Student's t. The scatter is around 0, and has the sum in it;
        t √((u-1) / (u-t²)) is the ratio with the scatter around the mean. Both follow from how much
        of the variance was estimated from the patients.
        """
        from scipy.special import ndtri, stdtr

        share = 1 - 1 / self.effect
        with np.errstate(divide="ignore", invalid="ignore"):
            units, freedom = self.number / share**2, (self.worth - 1) / share**2
            room = np.maximum(units - t**2, 1e-2 * units)
            student = t * np.sqrt(np.maximum(units - 1, 1e-3) / room)
            lower = stdtr(np.maximum(freedom, 0.1), -np.abs(student))
            found = -np.sign(t) * ndtri(np.maximum(lower, 1e-300))
        few = (share > 0) & np.isfinite(freedom) & (freedom < 1e6)
        return np.where(few, found, t)


def _pairs_in_blocks(patients: int, blocks: int) -> float:
    """Return what part of all pairs of patients share a block, where these are as even as can be.

    It is more where chance deals them out, and then less is taken off than could be: the safe side.

    >>> _pairs_in_blocks(4, 2)  # 2 of 6
    0.3333333333333333
    """
    each, more = divmod(patients, blocks)
    squares = more * (each + 1) ** 2 + (blocks - more) * each**2
    return (squares - patients) / (patients * (patients - 1))


def _hanging_on_few(unequal: FloatArray, together: FloatArray) -> FloatArray:
    """Return by how much more skewed sums of unequal patients are than those of their cases.

    `unequal` is E W³ E W / (E W²)² of the patients' sizes W: 1 where they are equal. If all cases
    of a patient went together (`together`, the design effect of that) the skewness would be
    √together as large, and `unequal` times that. Equal patients are many, and what they do is seen.
    """
    unequal = np.maximum(unequal, 1)
    heavy = (1 - 1 / unequal) ** 2
    return np.asarray(unequal * np.sqrt(1 + heavy * np.maximum(together - 1, 0)))


def two_sided(t: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return two-sided p-values of standardised sums with a known skewness (Pearson's type III).

    A gamma variable with shape 4/γ² has skewness γ; γ = 0 is the normal distribution. It is twice
    the tail on the side of the sum: where 0.0001 labels are expected, nearly all sums are "none",
    just below the mean, and that the tail above it is small is no evidence against them.

    >>> float(two_sided(np.array([-0.01]), np.array([100.0]))[0])  # none seen, 0.0001 expected
    1.0
    """
    from scipy.special import gammainc, gammaincc, ndtr

    t, skewness = np.broadcast_arrays(t, skewness)
    normal = np.minimum(1, 2 * ndtr(-np.abs(t)))
    skewed = np.abs(skewness) >= 0.01
    if not skewed.any():
        return np.asarray(normal)
    t, size = np.where(skewness < 0, -t, t), np.maximum(np.abs(skewness), 0.01)
    shape = 4 / size**2
    x = np.maximum(shape + np.sqrt(shape) * t, 0)
    tail = np.where(t > 0, gammaincc(shape, x), gammainc(shape, x))
    return np.asarray(np.where(skewed, np.minimum(1, 2 * tail), normal))


def simulated_p_values(
    table: DeviationTable,
    channels: Sequence[Channel],
    evidence: Evidence,
    simulations: int,
    seed: int,
    *,
    as_labels: bool = True,
    by_class: bool = False,
) -> FloatArray:
    """Return (simulations, statistics): the p-values that calibrated models get by chance.

    In every cell of a channel labels are drawn from its mean probability, as many as would vary as
    much as those that there are. Sums of many labels are drawn as correlated normal ones, and all
    of them unless `as_labels`. Labels that weigh what their class does (`by_class`) are skewed
    otherwise: the sum of a cell is drawn from the gamma distribution of its moments.
    """
    random = np.random.default_rng([seed, 7])
    variance, skewness = evidence.moments.at(evidence.agreement)
    found, begin = [], 0
    for channel in channels:
        own = slice(begin, begin + len(channel.statistics))
        begin = own.stop
        drawn = None
        if as_labels and len(channel.statistics) > 1:
            draw = _skewed if by_class else _labels
            drawn = draw(table, channel, evidence.agreement, random, simulations)
        if drawn is None:
            drawn = _normal(table, channel, evidence.agreement, random, simulations)
            found.append(two_sided(drawn / np.sqrt(variance[own]), np.zeros(1)))
        else:
            found.append(TIES * two_sided(drawn / np.sqrt(variance[own]), skewness[own]))
    return np.concatenate(found, axis=1)


def _variances(table: DeviationTable, place: int, agreement: float) -> FloatArray:
    alone, together = table.alone[place], table.together[place]
    return np.asarray(np.maximum(alone + agreement * (together - alone), 0))  # rounding


def _normal(
    table: DeviationTable,
    channel: Channel,
    agreement: float,
    random: np.random.Generator,
    simulations: int,
) -> FloatArray:
    """Return (simulations, statistics) of one channel, drawn with the covariance they have."""
    f = channel.coefficients
    root = f * np.sqrt(_variances(table, channel.place, agreement))
    values, vectors = np.linalg.eigh(root @ root.T)
    # The symmetric root: eigenvectors change their signs with the last digit of a sum, it does not.
    half = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return np.asarray(random.standard_normal((simulations, len(f))) @ half)


def _labels(
    table: DeviationTable,
    channel: Channel,
    agreement: float,
    random: np.random.Generator,
    simulations: int,
) -> FloatArray | None:
    """Return (simulations, statistics) of one channel, as sums of labels; None for very many."""
    place, f = channel.place, channel.coefficients
    variance, weight = _variances(table, place, agreement), table.weight[place]
    held = (variance > 0) & (weight > 0)
    variance, weight, z = variance[held], weight[held], table.predicted[place][held]
    z = z / weight
    spread = z * (1 - z)
    labels = weight**2 * spread / variance
    if not held.any() or (labels * spread).sum() > MANY:
        return None
    number = np.maximum(np.rint(labels), 1).astype(np.int64)
    positive = random.binomial(number, z, (simulations, len(number)))
    # As many labels as are needed is no whole number: what is missing of the variance is put back.
    scale = np.sqrt(variance * number / spread)
    return np.asarray(((positive / number - z) * scale) @ f[:, held].T)


def _skewed(
    table: DeviationTable,
    channel: Channel,
    agreement: float,
    random: np.random.Generator,
    simulations: int,
) -> FloatArray:
    """Return (simulations, statistics) of one channel, of cells with their skewness."""
    place, f = channel.place, channel.coefficients
    variance = _variances(table, place, agreement)
    held = variance > 0
    root = np.sqrt(variance[held])
    skewness = table.third[place][held] / root**3
    shape = 4 / np.maximum(np.abs(skewness), 0.01) ** 2
    drawn = random.standard_gamma(shape, (simulations, len(shape)))
    return np.asarray(((drawn - shape) / np.sqrt(shape) * np.sign(skewness) * root) @ f[:, held].T)


def adjusted_p_values(p: FloatArray, by_chance: FloatArray) -> FloatArray:
    """Return p-values adjusted for their number by the smallest that calibrated models show."""
    # A relative hair, so that equal sums that were added up in another order are equal.
    adjusted = step_down(-by_chance, -p, margin=1e-9 * p)
    return np.maximum(adjusted, p)  # a simulation of a few thousand may say less
