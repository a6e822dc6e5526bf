"""Gaussian mixtures on a line, fitted to many cases at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_mixtures"]

FloatArray = NDArray[Any]

LEAST_VARIANCE = 1e-6
TOLERANCE, MOST_STEPS = 1e-3, 100


def fit_mixtures(
    values: FloatArray, components: int, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (weights, means, standard deviations), each (N, components), of values (S, N).

    Expectation-maximisation from the clusters of k-means++, to the tolerance and with the least
    variance that scikit-learn's GaussianMixture has, which fits one case at a time and so takes a
    hundred times as long. A case with fewer distinct values than components has as many as it
    has values; the weights of the others are 0.

    >>> fit_mixtures(np.array([[0.1], [0.1], [0.9]]), 2)[0].tolist()
    [[0.6666666666666666, 0.3333333333333333]]
    """
    x = np.asarray(values, dtype=np.float64).T  # (N, S)
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
    parts = (weights, means, np.sqrt(variances))
    return tuple(np.take_along_axis(part, order, axis=1) for part in parts)  # type: ignore[return-value]


def _clusters(x: FloatArray, components: int, random: np.random.Generator) -> FloatArray:
    """Return which cluster each value is in, (N, S, components), by k-means from k-means++."""
    cases, size = x.shape
    rows = np.arange(cases)
    centres = np.full((cases, components), np.inf)  # no value is near one that was never placed
    centres[:, 0] = x[rows, random.integers(size, size=cases)]
    for k in range(1, components):
        far = ((x[:, :, None] - centres[:, None, :k]) ** 2).min(axis=2).cumsum(axis=1)
        chosen = (far < random.random((cases, 1)) * far[:, -1:]).sum(axis=1)
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


def _maximise(x: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weights, means and variances that suit how values are shared out."""
    number = share.sum(axis=1)
    there = number > 0
    divisor = np.where(there, number, 1)
    means = np.where(there, (share * x[:, :, None]).sum(axis=1) / divisor, x[:, :1])
    spread = (share * (x[:, :, None] - means[:, None, :]) ** 2).sum(axis=1) / divisor
    return number / x.shape[1], means, np.where(there, spread + LEAST_VARIANCE, 1.0)


def _log_joint(
    x: FloatArray, weights: FloatArray, means: FloatArray, variances: FloatArray
) -> FloatArray:
    """Return log w_k N(x; m_k, v_k), (N, S, components); -inf for components without weight."""
    with np.errstate(divide="ignore"):
        constant = np.log(weights) - 0.5 * np.log(2 * np.pi * variances)
    distance = (x[:, :, None] - means[:, None, :]) ** 2 / variances[:, None, :]
    return np.asarray(constant[:, None, :] - 0.5 * distance)
