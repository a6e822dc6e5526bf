"""What acting on a probability does: sensitivity, predictive values, net benefit; areas over ranks.

Every rater's label counts: a case of which the fraction μ of the raters say the positive class is a
positive of mass μ and a negative of mass 1 - μ. A probability of at least the threshold is a
positive test. The tables have two bins, below the threshold and from it on; leading axes are
resamples. Of several classes (channels) a value is the mean over those that have one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterwise.metrics import ranking
from raterwise.summaries import BinTable
from raterwise.types import Array

NOTHING = 1e-12
"""A part of all mass below this is rounding: nothing is there."""


class Confusion(NamedTuple):
    """Masses of labels by what the test says and what the raters say: arrays of any shape."""

    true_positive: Array
    false_positive: Array
    false_negative: Array
    true_negative: Array

    @property
    def total(self) -> Array:
        """All of them."""
        return np.asarray(sum(self))

    def share(self, part: Array, whole: Array) -> Array:
        """Return part / whole, NaN where there is no whole."""
        there = whole > NOTHING * self.total
        return np.where(there, part / np.where(there, whole, 1), np.nan)

    @property
    def sensitivity(self) -> Array:
        """TP / (TP + FN)."""
        return self.share(self.true_positive, self.true_positive + self.false_negative)

    @property
    def specificity(self) -> Array:
        """TN / (TN + FP)."""
        return self.share(self.true_negative, self.true_negative + self.false_positive)

    def ppv(self, prevalence: float | None = None) -> Array:
        """TP / (TP + FP), or what it would be where the positive class has this prevalence."""
        if prevalence is None:
            return self.share(self.true_positive, self.true_positive + self.false_positive)
        right = prevalence * self.sensitivity
        wrong = (1 - prevalence) * (1 - self.specificity)
        return _ratio(right, right + wrong)

    def npv(self, prevalence: float | None = None) -> Array:
        """TN / (TN + FN), or what it would be where the positive class has this prevalence."""
        if prevalence is None:
            return self.share(self.true_negative, self.true_negative + self.false_negative)
        right = (1 - prevalence) * self.specificity
        wrong = prevalence * (1 - self.sensitivity)
        return _ratio(right, right + wrong)

    @property
    def f1(self) -> Array:
        """2 TP / (2 TP + FP + FN)."""
        twice = 2 * self.true_positive
        return self.share(twice, twice + self.false_positive + self.false_negative)

    def acted_on(self, prevalence: float | None = None) -> tuple[Array, Array, float, float]:
        """Return two shares and their parts of all cases: those rightly and wrongly acted on.

        Without a prevalence they are shares of all cases, TP / n and FP / n; with one, the
        sensitivity and 1 - specificity, which count with the prevalence and 1 - prevalence.
        """
        if prevalence is None:
            return (
                self.share(self.true_positive, self.total),
                self.share(self.false_positive, self.total),
                1.0,
                1.0,
            )
        return self.sensitivity, 1 - self.specificity, prevalence, 1 - prevalence

    def net_benefit(self, threshold: float | Array, prevalence: float | None = None) -> Array:
        """TP / n - FP / n · t / (1 - t)."""
        right, wrong, of_right, of_wrong = self.acted_on(prevalence)
        odds = threshold / (1 - threshold)
        return np.asarray(of_right * right - of_wrong * wrong * odds)


def _ratio(part: Array, whole: Array) -> Array:
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), np.nan)


def confusion(table: BinTable) -> Confusion:
    """Return the masses of each class at the threshold between the table's two bins."""
    hits, misses = table.positive, table.weight - table.positive
    return Confusion(hits[..., 1], misses[..., 1], hits[..., 0], misses[..., 0])


def of_raters(table: BinTable) -> Confusion:
    """Return the masses where the test is one of the raters and the others say what is so.

    Over the pairs of distinct raters of a case, n₁ of whose n raters say the positive class,

        TP = n₁ (n₁ - 1) / n (n - 1) = μ² - v,   FP = FN = n₁ n₀ / n (n - 1) = μ - μ² + v

    with v = μ (1 - μ) / (n - 1); every case counts once (`per="case"`). The bins add up.
    """
    weight, mu = table.weight.sum(axis=-1), table.positive.sum(axis=-1)
    both = (table.squared_positive - table.within).sum(axis=-1)
    one = mu - both
    return Confusion(both, one, one, weight - both - 2 * one)


def mean_over_classes(values: Array) -> Array:
    """Return the mean over the last axis of the classes that have a value; NaN where none has."""
    known = np.isfinite(values)
    number = known.sum(axis=-1)
    total = np.where(known, values, 0).sum(axis=-1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def sensitivity(table: BinTable) -> Array:
    """Of the labels of the positive class, the part whose case tests positive: TP / (TP + FN)."""
    return mean_over_classes(confusion(table).sensitivity)


def specificity(table: BinTable) -> Array:
    """Of the other labels, the part whose case tests negative: TN / (TN + FP)."""
    return mean_over_classes(confusion(table).specificity)


def ppv(table: BinTable, prevalence: float | None = None) -> Array:
    """Of the labels of cases that test positive, the part of the positive class."""
    return mean_over_classes(confusion(table).ppv(prevalence))


def npv(table: BinTable, prevalence: float | None = None) -> Array:
    """Of the labels of cases that test negative, the part of the other classes."""
    return mean_over_classes(confusion(table).npv(prevalence))


def f1(table: BinTable) -> Array:
    """2 TP / (2 TP + FP + FN), the harmonic mean of sensitivity and positive predictive value."""
    return mean_over_classes(confusion(table).f1)


def net_benefit(table: BinTable, threshold: float, prevalence: float | None = None) -> Array:
    """TP / n - FP / n · t / (1 - t) of acting on p >= t (Vickers & Elkin 2006)."""
    return mean_over_classes(confusion(table).net_benefit(threshold, prevalence))


def net_benefit_parts(
    table: BinTable, threshold: float, prevalence: float | None = None
) -> tuple[tuple[Array, float], tuple[Array, float]]:
    """Return the two shares that the net benefit is the difference of, each with its factor."""
    right, wrong, of_right, of_wrong = confusion(table).acted_on(prevalence)
    odds = of_wrong * threshold / (1 - threshold)
    return (mean_over_classes(right), of_right), (mean_over_classes(wrong), odds)


# Over ranks: masses and hits (…, n) in order of increasing score ----------------------------------


def auroc(mass: Array, hits: Array) -> Array:
    """P(a positive's probability is above a negative's), ties half: the area under the ROC."""
    nothing = hits.sum(axis=-1) <= NOTHING * mass.sum(axis=-1)
    return np.where(nothing, np.nan, ranking.auccc(mass, hits))


def average_precision(mass: Array, hits: Array) -> Array:
    """Σ_i (R_i - R_{i-1}) P_i over falling thresholds, R the sensitivity and P the precision."""
    mass, hits = mass[..., ::-1], hits[..., ::-1]
    accepted, found = np.cumsum(mass, axis=-1), np.cumsum(hits, axis=-1)
    total = found[..., -1]
    there = total > NOTHING * accepted[..., -1]
    precision = found / np.where(accepted > 0, accepted, 1)
    area = (hits * precision).sum(axis=-1)
    return np.where(there, area / np.where(there, total, 1), np.nan)
