"""Gaussian mixtures on a line, fitted to many cases at once; what several draws say of a case."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.types import Array

Mixtures = tuple[Array, Array, Array]
"""Weights, means and standard deviations, each (N, components)."""

LEAST_VARIANCE = 1e-6
TOLERANCE, MOST_STEPS = 1e-3, 100
VALUES_AT_ONCE = 1 << 20
"""How many values times components are held in memory while mixtures are fitted."""
_fitting = Lock()


@dataclass(frozen=True, eq=False)
class Draws:
    """What several draws of a model say of the predicted class of each case.

    The mixtures are fitted once, to all cases; parts of the cases share them.

    >>> draws = Draws(np.array([[0.1, 0.7], [0.1, 0.9]]))
    >>> weights, means, sds = draws[[1]].mixtures(1, seed=0)
    >>> means.round(6).tolist(), len(draws), draws.number
    ([[0.8]], 2, 2)
    """

    values: Array
    """(S, N): of all cases that there were, float64."""
    rows: NDArray[np.int64] | None = None
    """Which of them these are; None for all."""
    fitted: dict[tuple[int, int], Mixtures] = field(default_factory=dict)
    """By components and seed, the mixtures of all cases."""

    @staticmethod
    def of(samples: Array, probs: Array) -> Draws:
        """Return the draws (S, N, K) of the classes that (N, K) or (N,) probabilities predict."""
        predicted = probs.argmax(axis=1) if probs.ndim == 2 else (probs > 0.5).astype(np.int64)
        chosen = samples[:, np.arange(samples.shape[1]), predicted]
        return Draws(np.asarray(chosen, dtype=np.float64))

    def __len__(self) -> int:
        return self.values.shape[1] if self.rows is None else len(self.rows)

    @property
    def number(self) -> int:
        """S, how many draws there are of each case."""
        return len(self.values)

    def __getitem__(self, rows: Any) -> Draws:
        known = np.arange(self.values.shape[1]) if self.rows is None else self.rows
        return replace(self, rows=known[rows])

    def mixtures(self, components: int, seed: int) -> Mixtures:
        """Return the mixture of each of these cases."""
        key = components, seed
        with _fitting:
            if key not in self.fitted:
                self.fitted[key] = fit_mixtures(self.values, components, seed)
        weights, means, sds = self.fitted[key]
        if self.rows is None:
            return weights, means, sds
        return weights[self.rows], means[self.rows], sds[self.rows]


def fit_mixtures(values: Array, components: int, seed: int = 0) -> Mixtures:
    """Return (weights, means, standard deviations), each (N, components), of values (S, N).

    Expectation-maximisation from the clusters of k-means++, to the tolerance and with the least
    variance that scikit-learn's GaussianMixture has, which fits one case at a time and so takes a
    hundred times as long. A case with fewer distinct values than components has as many as it
    has values; the weights of the others are 0. Every case is given the same random numbers, so
    that its mixture follows from its own values, whatever the other cases and their order.

    >>> fit_mixtures(np.array([[0.1], [0.1], [0.9]]), 2)[0].tolist()
    [[0.6666666666666666, 0.3333333333333333]]
    """
    x = np.asarray(values, dtype=np.float64).T  # (N, S)
    step = max(1, VALUES_AT_ONCE // (x.shape[1] * components))
    parts = [_fitted(x[i : i + step], components, seed) for i in range(0, max(len(x), 1), step)]
    weights, means, sds = (np.concatenate(each) for each in zip(*parts, strict=True))
    return weights, means, sds


def bin_shares(mixtures: Mixtures, edges: Array) -> Array:
    """Return how much of each case's mixture lies in each bin, (N, bins) (RECE eq 7).

    >>> part = np.ones((1, 1))
    >>> bin_shares((part, 0.5 * part, part), np.array([0.0, 0.5, 1.0]))
    array([[0.5, 0.5]])
    """
    from raterwise.kernels import _numba as kernels

    weights, means, sds = (np.ascontiguousarray(part, np.float64) for part in mixtures)
    share = np.empty((len(means), len(edges) - 1))
    kernels.gaussian_shares(means, sds, weights, edges, share)
    return share


def _fitted(x: Array, components: int, seed: int) -> Mixtures:
    share = _clusters(x, components, np.random.default_rng(seed))
    weights, means, variances = _maximise(x, share)
    likelihood = np.full(len(x), -np.inf)
    moving = np.arange(len(x))
    for _ in range(MOST_STEPS):
        given = x[moving]
        joint = _log_joint(given, weights[moving], means[moving], variances[moving])
        total = np.logaddexp.reduce(joint, axis=2, keepdims=True)
        found = _maximise(given, np.exp(joint - total))
        weights[moving], means[moving], variances[moving] = found
        reached = total.mean(axis=(1, 2))
        still = np.abs(reached - likelihood[moving]) >= TOLERANCE
        likelihood[moving] = reached
        moving = moving[still]
        if not moving.size:
            break
    order = np.argsort(np.where(weights > 0, means, np.inf), axis=1)
    weights, means, sds = (
        np.take_along_axis(part, order, axis=1) for part in (weights, means, np.sqrt(variances))
    )
    return weights, means, sds


def _clusters(x: Array, components: int, random: np.random.Generator) -> Array:
    """Return which cluster each value is in, (N, S, components), by k-means from k-means++."""
    cases, size = x.shape
    rows = np.arange(cases)
    centres = np.full((cases, components), np.inf)  # no value is near one that was never placed
    centres[:, 0] = x[:, random.integers(size)]
    for k in range(1, components):
        far = ((x[:, :, None] - centres[:, None, :k]) ** 2).min(axis=2).cumsum(axis=1)
        chosen = (far < random.random() * far[:, -1:]).sum(axis=1)
        centres[:, k] = np.where(far[:, -1] > 0, x[rows, np.minimum(chosen, size - 1)], np.inf)
    nearest = np.full((cases, size), -1)
    for _ in range(MOST_STEPS):
        before, nearest = nearest, np.abs(x[:, :, None] - centres[:, None, :]).argmin(axis=2)
        if (before == nearest).all():
            break
        member = nearest[:, :, None] == np.arange(components)
        number = member.sum(axis=1)
        sums = (member * x[:, :, None]).sum(axis=1)
        centres = np.divide(sums, number, out=np.full_like(centres, np.inf), where=number > 0)
    return np.asarray(nearest[:, :, None] == np.arange(components), dtype=np.float64)


def _maximise(x: Array, share: Array) -> tuple[Array, Array, Array]:
    """Return the weights, means and variances that suit how values are shared out."""
    number = share.sum(axis=1)
    there = number > 0
    divisor = np.where(there, number, 1)
    means = np.where(there, (share * x[:, :, None]).sum(axis=1) / divisor, x[:, :1])
    spread = (share * (x[:, :, None] - means[:, None, :]) ** 2).sum(axis=1) / divisor
    return number / x.shape[1], means, np.where(there, spread + LEAST_VARIANCE, 1.0)


def _log_joint(x: Array, weights: Array, means: Array, variances: Array) -> Array:
    """Return log w_k N(x; m_k, v_k), (N, S, components); -inf for components without weight."""
    with np.errstate(divide="ignore"):
        constant = np.log(weights) - 0.5 * np.log(2 * np.pi * variances)
    distance = (x[:, :, None] - means[:, None, :]) ** 2 / variances[:, None, :]
    return np.asarray(constant[:, None, :] - 0.5 * distance)
