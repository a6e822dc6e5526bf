"""Gaussian mixtures of many cases at once, against scikit-learn's one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import raterwise as rw
from raterwise.predictions.mixtures import fit_mixtures


def by_scikit_learn(values: np.ndarray, components: int) -> tuple[np.ndarray, ...]:
    """The mixture of each column, its components in the order of their means."""
    fitted = [GaussianMixture(components, random_state=0).fit(v[:, None]) for v in values.T]
    order = [np.argsort(f.means_[:, 0]) for f in fitted]
    return (
        np.array([f.weights_[o] for f, o in zip(fitted, order, strict=True)]),
        np.array([f.means_[o, 0] for f, o in zip(fitted, order, strict=True)]),
        np.array([np.sqrt(f.covariances_[o, 0, 0]) for f, o in zip(fitted, order, strict=True)]),
    )


def mean_likelihood(values: np.ndarray, parts: tuple[np.ndarray, ...]) -> float:
    """The mean log-density of the values under their mixtures."""
    weights, means, sds = (part[None] for part in parts)
    gap = (values[:, :, None] - means) / sds
    density = weights * np.exp(-0.5 * gap**2) / (sds * np.sqrt(2 * np.pi))
    return float(np.log(density.sum(axis=2)).mean())


def test_clusters_that_are_apart_are_those_of_scikit_learn() -> None:
    """Where there is one optimum, both find it, to the digits that their tolerance leaves."""
    random = np.random.default_rng(0)
    centres = np.repeat([0.1, 0.5, 0.9], (5, 10, 5))
    values = random.permuted(centres[:, None] + random.normal(0, 0.01, (20, 30)), axis=0)
    for mine, theirs in zip(fit_mixtures(values, 3), by_scikit_learn(values, 3), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_few_scattered_values_fit_as_well() -> None:
    """With many optima the likelihoods, and RECE-M, are as good on average."""
    random = np.random.default_rng(1)
    values = random.beta(8, 2, (10, 60))
    mine, theirs = [fit_mixtures(values, 3, seed) for seed in range(6)], by_scikit_learn(values, 3)
    likelihood = np.mean([mean_likelihood(values, fitted) for fitted in mine])
    assert likelihood == pytest.approx(mean_likelihood(values, theirs), abs=0.03)
    probs, labels = values.mean(axis=0), random.integers(0, 2, 60)
    found = [rw.robust_ece_mixture(probs, labels, None, mixtures=m) for m in (*mine, theirs)]
    assert np.mean(found[:-1]) == pytest.approx(found[-1], abs=2e-3)


def test_a_mixture_follows_from_the_values_of_its_case() -> None:
    """Another order of the cases, a part of them or a case twice: each keeps its mixture."""
    values = np.random.default_rng(3).beta(5, 3, (12, 40))
    rows = np.array([7, 7, 31, 0])
    for whole, part in zip(fit_mixtures(values, 3), fit_mixtures(values[:, rows], 3), strict=True):
        np.testing.assert_array_equal(whole[rows], part)


def test_equal_values_are_one_component() -> None:
    """One distinct value is one Gaussian of the least variance; two are two."""
    values = np.array([[0.7, 0.2], [0.7, 0.2], [0.7, 0.2], [0.7, 0.6]])
    weights, means, sds = fit_mixtures(values, 3)
    np.testing.assert_allclose(weights, [[1, 0, 0], [0.75, 0.25, 0]])
    np.testing.assert_allclose(means[:, 0], [0.7, 0.2])
    np.testing.assert_allclose(means[1, 1], 0.6)
    np.testing.assert_allclose(sds[0, 0], 1e-3)


def test_a_case_does_not_depend_on_how_long_others_take() -> None:
    """Cases that have settled are left alone: the slow one has no say in the others' result."""
    random = np.random.default_rng(2)
    quick = np.repeat([0.1, 0.9], 10)[:, None] + random.normal(0, 1e-3, (20, 1))
    alone = fit_mixtures(quick, 2)
    both = fit_mixtures(np.concatenate([quick, random.random((20, 1))], axis=1), 2)
    for one, two in zip(alone, both, strict=True):
        np.testing.assert_allclose(one[0], two[0], atol=1e-12)
