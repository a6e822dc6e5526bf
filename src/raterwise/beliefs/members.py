"""The one distribution behind every belief: a weighted mixture of Dirichlet distributions.

    P(ζ) = Σ_s w_s Dir(ζ | α_s f_s)

With one member it is a Dirichlet (LH eq 78), with α_s = ∞ an ensemble of points (LH eq 80), with
both a single point. So each formula stands here once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.beliefs.dirichlet import CountTerms, shares
from raterwise.errors import InvalidInputError
from raterwise.types import FloatArray


@dataclass(frozen=True, eq=False)
class Members:
    """S members for each of N cases, K classes; checked by whoever makes it."""

    probs: FloatArray
    """(S, N, K): f, the mean of each member."""
    concentration: FloatArray
    """(S, N): α; ∞ for a point."""
    weights: FloatArray
    """(S, N): w, summing to 1 over the members of a case."""

    @property
    def mean(self) -> FloatArray:
        """(N, K): Σ_s w_s f_s."""
        # Twenty weights of 0.05 add to a little more than 1, and a probability may not be.
        return np.asarray(np.minimum(np.einsum("sn,snk->nk", self.weights, self.probs), 1))

    def disagreement(self) -> FloatArray:
        """(N,): Σ_s w_s α_s/(α_s + 1) (1 - Σ_k f_sk²) (LH eqs 71-73)."""
        kept, _ = shares(self.concentration)
        # A row may sum to a little more than 1, and a probability of disagreement may not.
        differ = np.clip(1 - np.einsum("snk,snk->sn", self.probs, self.probs), 0, 1)
        return np.asarray((self.weights * kept * differ).sum(axis=0))

    def expected_gain(self) -> FloatArray:
        """(N,): how far one more label is expected to move the mean, squared.

        If the label is k, which has probability m_k, the mean moves from m by Cov(ζ_k, ζ)/m_k, so
        the expected squared move is Σ_k ‖Cov(ζ_k, ζ)‖² / m_k. By the law of total variance that is
        what the label is expected to take from Σ_k Var(ζ_k), the expected epistemic loss.
        """
        mean = self.mean
        _, spread = shares(self.concentration)
        within = self.weights * spread
        total = np.zeros(len(mean))
        for k in range(mean.shape[1]):
            shared = within * self.probs[:, :, k]
            deviation = self.weights * (self.probs[:, :, k] - mean[:, k])
            covariance = np.einsum("sn,snk->nk", deviation - shared, self.probs)
            covariance[:, k] += shared.sum(axis=0)
            moved = np.einsum("nk,nk->n", covariance, covariance)
            np.divide(moved, mean[:, k], where=mean[:, k] > 0, out=moved)
            total += moved
        return total

    def updated(self, counts: NDArray[Any]) -> Members:
        """Return the members after labels y (N, K): each Dir(α f + y), reweighted (LH eqs 79, 81).

        The new weights are w_s DirMult(y | α_s f_s), up to their sum: for points w_s Π_k f_sk^y_k.
        """
        labels = counts.sum(axis=1)
        kept = 1 / (1 + labels / self.concentration)
        given = counts / (self.concentration + labels)[:, :, None]
        return Members(
            self.probs * kept[:, :, None] + given,
            self.concentration + labels,
            self._reweighted(counts, labels > 0),
        )

    def _reweighted(self, counts: NDArray[Any], rated: NDArray[np.bool_]) -> FloatArray:
        if len(self.weights) == 1:
            return self.weights
        with np.errstate(divide="ignore"):
            scores = np.log(self.weights)
        for s, probs in enumerate(self.probs):
            scores[s] += CountTerms.of(probs, counts).log_likelihood(self.concentration[s])
        best = scores.max(axis=0)
        if np.isneginf(best).any():
            case = int(np.flatnonzero(np.isneginf(best))[0])
            raise InvalidInputError(
                "labels: some member must give the labels of a case a positive probability; "
                f"none does for case {case}, labelled {counts[case].tolist()}"
            )
        weights = np.exp(scores - best)
        return np.where(rated, weights / weights.sum(axis=0), self.weights)

    def reweighted_by_sums(self, counts: NDArray[Any]) -> Members:
        """Return the members with the weights w_s Σ_k f_sk^y_k of the authors' released code."""
        scores = self.weights * (self.probs**counts).sum(axis=2)
        return replace(self, weights=scores / scores.sum(axis=0))

    def take(self, rows: NDArray[Any]) -> Members:
        """Return the members of the chosen cases."""
        return Members(self.probs[:, rows], self.concentration[:, rows], self.weights[:, rows])

    def sample(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Return `number` draws of ζ for every case: (number, N, K)."""
        member = np.zeros((number, self.weights.shape[1]), np.int64)
        if len(self.weights) > 1:
            uniform = rng.random(member.shape)
            for upper in np.cumsum(self.weights, axis=0)[:-1]:
                member += uniform >= upper
        cases = np.arange(member.shape[1])
        probs = self.probs[member, cases]
        concentration = self.concentration[member, cases]
        if np.isinf(concentration).all():
            return probs
        return _dirichlet(concentration[:, :, None] * probs, rng)


def _dirichlet(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return Dirichlet draws with parameters `alpha` along the last axis, which may be tiny or 0.

    Gamma(a) is Gamma(a + 1) U^(1/a); in logarithms it does not underflow where all a are small.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(rng.standard_gamma(alpha + 1)) - rng.standard_exponential(alpha.shape) / alpha
    draws = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(draws / draws.sum(axis=-1, keepdims=True))
