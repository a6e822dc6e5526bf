"""The Dirichlet-multinomial likelihood of label histograms, by sums of logarithms (LH eqs 50-51).

    log DirMult(y | α0 f) = Σ_k Σ_{l<y_k} log(α0 f_k + l) - Σ_{l<n} log(α0 + l)

is the log-probability of the n labels of a case in the order they came, so without the multinomial
coefficient. Differences of log-gamma functions are the same on paper, but cancel for large α0 and
invent a minimum that is not there.

Both sums have n terms, so each may be divided by α0 + 1. With the kept share κ = α0 / (α0 + 1) and
the spread ρ = 1 / (α0 + 1), which is the correlation between two labels of one case,

    log DirMult(y | α0 f) = Σ_k Σ_{l<y_k} log(κ f_k + l ρ) - Σ_{l<n} log(κ + l ρ)

has no large numbers, and α0 = ∞ (κ = 1, ρ = 0) is the multinomial likelihood itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.types import FloatArray, IntArray

LARGEST_LOG = 700.0
"""exp of more than this overflows; at ± this α0 the likelihood is at its limit to the last bit."""


def shares(concentration: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return the kept share κ = α0/(α0+1) and the spread ρ = 1/(α0+1), for α0 up to ∞."""
    alpha = np.asarray(concentration, np.float64)
    return 1 / (1 + 1 / alpha), 1 / (1 + alpha)


def concentration_of(log_concentration: FloatArray) -> FloatArray:
    """Return α0 = exp(log α0), held within the range of floats.

    >>> concentration_of(np.array([0.0, 1e6])) < np.inf
    array([ True,  True])
    """
    return np.asarray(np.exp(np.clip(log_concentration, -LARGEST_LOG, LARGEST_LOG)))


@dataclass(frozen=True, eq=False)
class CountTerms:
    """The terms of the likelihood laid out flat, once for many values of α0.

    The terms with l = 0 are Π_k f_k over the classes seen, which does not depend on α0 and is kept
    as `constant`, and a power of α0. So a class of probability 0 that a rater chose makes the
    likelihood 0, but the part that varies with α0 stays finite.
    """

    constant: FloatArray
    """(N,): Σ log f_k over the classes that somebody chose."""
    power: IntArray
    """(N,): the classes seen less one; 0 for a case without labels."""
    repeat_case: IntArray
    """(E,): the case of each label that repeats a class: l = 1 … y_k-1 for each k."""
    repeat_prob: FloatArray
    """(E,): the f_k of that class."""
    repeat_rank: FloatArray
    """(E,): l."""
    later_case: IntArray
    """(F,): the case of each label after the first: l = 1 … n-1."""
    later_rank: FloatArray

    @staticmethod
    def of(probs: NDArray[Any], counts: NDArray[Any]) -> CountTerms:
        """Return the terms of N cases: f (N, K) and label histograms y (N, K)."""
        counts = np.asarray(counts, np.int64)
        seen = counts > 0
        with np.errstate(divide="ignore"):
            logs = np.log(probs, where=seen, out=np.zeros(seen.shape))
        case, klass = np.nonzero(counts > 1)
        repeats, rank = _one_to(counts[case, klass] - 1)
        later, later_rank = _one_to(np.maximum(counts.sum(axis=1) - 1, 0))
        return CountTerms(
            logs.sum(axis=1),
            np.maximum(seen.sum(axis=1) - 1, 0),
            case[repeats],
            np.asarray(probs[case, klass], np.float64)[repeats],
            rank,
            later,
            later_rank,
        )

    def log_likelihood(self, concentration: FloatArray) -> FloatArray:
        """Return log DirMult of each case at α0 (N,)."""
        return self.constant + self.varying(concentration)

    def varying(self, concentration: FloatArray) -> FloatArray:
        """Return log DirMult of each case without its constant."""
        kept, spread = shares(concentration)
        with np.errstate(divide="ignore"):  # a class of probability 0 at α0 = ∞: log 0 is meant
            repeats = np.log(
                kept[self.repeat_case] * self.repeat_prob
                + self.repeat_rank * spread[self.repeat_case]
            )
        later = np.log(kept[self.later_case] + self.later_rank * spread[self.later_case])
        return np.asarray(
            self.power * np.log(kept)
            + self._by_case(self.repeat_case, repeats)
            - self._by_case(self.later_case, later)
        )

    def slope(self, log_concentration: FloatArray) -> FloatArray:
        """Return d log DirMult / d log α0 of each case: minus the bracket of LH eq 51, times α0.

        As a/(a+l) = 1 - l/(a+l), it is (classes seen - 1) + Σ α0 f/(α0 f + l) - Σ α0/(α0 + l)
        or Σ l/(α0 + l) - Σ l/(α0 f + l): the first has its digits where α0 < 1, the second
        elsewhere.
        """
        alpha = concentration_of(log_concentration)
        small = alpha < 1
        a, b = alpha[self.repeat_case] * self.repeat_prob, alpha[self.later_case]
        repeats = np.where(small[self.repeat_case], a, -self.repeat_rank) / (a + self.repeat_rank)
        later = np.where(small[self.later_case], b, -self.later_rank) / (b + self.later_rank)
        return np.asarray(
            np.where(small, self.power, 0)
            + self._by_case(self.repeat_case, repeats)
            - self._by_case(self.later_case, later)
        )

    def curvature(self, log_concentration: FloatArray) -> FloatArray:
        """Return d² log DirMult / d (log α0)²: Σ al/(a+l)² with a = α0 f, less that with a = α0."""
        alpha = concentration_of(log_concentration)
        a, b = alpha[self.repeat_case] * self.repeat_prob, alpha[self.later_case]
        repeats = (a / (a + self.repeat_rank)) * (self.repeat_rank / (a + self.repeat_rank))
        later = (b / (b + self.later_rank)) * (self.later_rank / (b + self.later_rank))
        return np.asarray(
            self._by_case(self.repeat_case, repeats) - self._by_case(self.later_case, later)
        )

    def _by_case(self, case: IntArray, terms: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(case, terms, minlength=len(self.constant)), np.float64)


def histogram_log_probabilities(
    probs: FloatArray, concentration: FloatArray, rows: IntArray
) -> FloatArray:
    """Return the log-probability (N, H) of each histogram (H, K) of n labels, each row of `rows`.

    C(n; h) DirMult(h | α0 f), which sums to 1 over all histograms of n labels.

    >>> two = np.array([[2, 0], [1, 1], [0, 2]])
    >>> np.exp(histogram_log_probabilities(np.array([[0.5, 0.5]]), np.array([1.0]), two))
    array([[0.375, 0.25 , 0.375]])
    """
    order = int(rows[0].sum())
    kept, spread = shares(concentration)
    rank = np.arange(order)
    with np.errstate(divide="ignore"):
        steps = np.log(kept[:, None, None] * probs[:, :, None] + rank * spread[:, None, None])
    chosen = np.zeros((*probs.shape, order + 1))  # (N, K, j): Σ_{l<j} log(κ f_k + l ρ)
    np.cumsum(steps, axis=2, out=chosen[:, :, 1:])
    total = np.log(kept[:, None] + rank * spread[:, None]).sum(axis=1)
    out = log_multinomial_coefficients(rows) - total[:, None]
    for k in range(probs.shape[1]):
        out += chosen[:, k, rows[:, k]]
    return np.asarray(out)


def log_multinomial_coefficients(counts: NDArray[Any]) -> FloatArray:
    """Return log(n! / Π_k y_k!) of each histogram: in how many orders its labels may come.

    >>> np.exp(log_multinomial_coefficients(np.array([[2, 1, 0], [1, 1, 1]])))
    array([3., 6.])
    """
    totals = counts.sum(axis=-1)
    factorials = np.zeros(int(totals.max(initial=0)) + 1)
    np.cumsum(np.log(np.arange(1, len(factorials))), out=factorials[1:])
    return np.asarray(factorials[totals] - factorials[counts].sum(axis=-1))


def _one_to(lengths: NDArray[Any]) -> tuple[IntArray, FloatArray]:
    """Return for each i `lengths[i]` entries: i itself, and 1 … lengths[i]."""
    index = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    return index, np.arange(1.0, len(index) + 1) - first[index]
