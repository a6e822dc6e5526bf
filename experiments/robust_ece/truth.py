"""Calibration errors where the truth is known: bias, spread, and how often two models are ranked.

A pool of cases has confidences c, ten views of each, and a known probability g(c) of being right.
The true error is the mean of |g(c) - c| over the pool; labels are drawn from g, over and over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import equal_edges
from raterwise.predictions.mixtures import bin_shares, fit_mixtures

__all__ = ["KERNELS", "PAIRS", "WORLDS", "Study", "errors_of", "shares_of", "study"]

Array = NDArray[Any]

BINS, VIEWS, COMPONENTS, CLASSES = 15, 10, 3, 10
SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
WAVE, PERIOD = 0.03, 0.25
AT_ONCE = 4_000_000
"""Numbers that are held at once."""


@dataclass(frozen=True)
class Study:
    """How large the simulation is."""

    pool: int = 20_000
    sizes: tuple[int, ...] = (20, 50, 100, 200, 500, 1000, 5000)
    repeats: int = 400
    kernel_density_repeats: int = 100
    """Of ECE-KDE, which takes a hundred times as long: the first of those samples."""
    seed: int = 0


def _logit(p: Array) -> Array:
    return np.asarray(np.log(p) - np.log1p(-p))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


WORLDS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda c: c,
    "over-confident": lambda c: _sigmoid(_logit(c) / 2),
    "too sure and too unsure": lambda c: 0.8 + 0.5 * (c - 0.8),
}
"""g(c): how often a case of confidence c is right."""


def _wavy(p: Array) -> Array:
    """Return confidences that are by turns too high and too low, in waves of a quarter."""
    return np.asarray(p + WAVE * np.sin(2 * np.pi * (p - 0.5) / PERIOD))


PAIRS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "two over-confident models": (
        lambda p: _sigmoid(1.25 * _logit(p)),
        lambda p: _sigmoid(1.5 * _logit(p)),
    ),
    "slightly over-confident, or wavy": (lambda p: _sigmoid(1.08 * _logit(p)), _wavy),
}
"""The confidences of a better and of a worse model, by the probability of being right."""


# Bins, hard and soft ------------------------------------------------------------------------------


def _gauss(x: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def _uniform(x: Array) -> Array:
    return np.asarray(np.clip(0.5 + x / (2 * np.sqrt(3)), 0, 1))


def _triangle(x: Array) -> Array:
    t = np.clip(x / np.sqrt(6), -1, 1)
    return np.asarray(np.where(t < 0, (1 + t) ** 2 / 2, 1 - (1 - t) ** 2 / 2))


def _laplace(x: Array) -> Array:
    tail = np.exp(-np.sqrt(2) * np.abs(x)) / 2
    return np.asarray(np.where(x < 0, tail, 1 - tail))


KERNELS: dict[str, Callable[[Array], Array]] = {
    "Gaussian": _gauss,
    "uniform": _uniform,
    "triangular": _triangle,
    "Laplace": _laplace,
}
"""Distribution functions with mean 0 and standard deviation 1."""


def shares_of(confidence: Array, sigma: float, kernel: str = "Gaussian") -> Array:
    """Return how much of each confidence lies in each bin when it is spread (RECE eq 6).

    >>> shares_of(np.array([0.5]), 1e-9).argmax()
    np.int64(7)
    """
    edges = equal_edges(BINS)
    below = KERNELS[kernel]((edges[None, :] - confidence[:, None]) / sigma)
    inside = np.diff(below, axis=1)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))


def _hard(confidence: Array) -> Array:
    place = np.clip(np.searchsorted(equal_edges(BINS), confidence, side="right") - 1, 0, BINS - 1)
    return np.eye(BINS)[place]


def _by_class(confidence: Array, classes: Array) -> Array:
    """Return the bins of each predicted class; SCE is the mean over classes, here their sum."""
    wide = np.zeros((len(confidence), CLASSES, BINS))
    wide[np.arange(len(confidence)), classes] = _hard(confidence)
    return wide.reshape(len(confidence), -1)


def errors_of(shares: Array, gaps: Array, rows: Array) -> Array:
    """Return Σ_bins |mean over cases of gap · share| of each sample: gaps and rows are (R, n)."""
    found = np.empty(len(rows))
    step = max(1, AT_ONCE // (rows.shape[1] * shares.shape[1]))
    for i in range(0, len(rows), step):
        part = slice(i, i + step)
        sums = np.einsum("rn,rnm->rm", gaps[part], shares[rows[part]])
        found[part] = np.abs(sums).sum(axis=1) / rows.shape[1]
    return found


def _adaptive(confidence: Array, gaps: Array, rows: Array) -> Array:
    """Return AECE of each sample: the same with bins of as many cases each."""
    order = np.argsort(confidence[rows], axis=1, kind="stable")
    inside = np.take_along_axis(gaps, order, axis=1)
    number = rows.shape[1]
    place = np.minimum(np.arange(number) * BINS // number, BINS - 1)
    table = np.eye(BINS)[place]
    return np.asarray(np.abs(inside @ table).sum(axis=1) / number)


# The study ----------------------------------------------------------------------------------------


def study(given: Study) -> dict[str, Any]:
    """Return bias and spread in every world, by size; ranks of pairs; other σ and kernels."""
    random = np.random.default_rng(given.seed)
    logits = np.abs(random.normal(2.0, 2.0, given.pool))
    pool = np.clip(_sigmoid(logits), 0.5, 1 - 1e-6)
    views = _sigmoid(_logit(pool) + 0.5 * random.normal(size=(VIEWS, given.pool)))
    mixture = bin_shares(fit_mixtures(views, COMPONENTS, given.seed), equal_edges(BINS))
    tables = {
        "ece": _hard(pool),
        "sce": _by_class(pool, random.integers(CLASSES, size=given.pool)),
        "robust_ece": shares_of(pool, 0.1),
        "robust_ece_mixture": mixture,
    }
    worlds = {name: _world(given, pool, truth, tables) for name, truth in WORLDS.items()}
    soft = {f"σ = {sigma:g}": shares_of(pool, sigma) for sigma in SIGMAS}
    soft |= {f"{kernel}, 0.1": shares_of(pool, 0.1, kernel) for kernel in KERNELS}
    ablation = {
        name: _world(given, pool, truth, soft, others=False) for name, truth in WORLDS.items()
    }
    return {
        "sizes": list(given.sizes),
        "repeats": given.repeats,
        "worlds": worlds,
        "ablation": ablation,
        "pairs": {name: _pair(given, *pair) for name, pair in PAIRS.items()},
    }


def _world(
    given: Study,
    pool: Array,
    truth: Callable[[Array], Array],
    tables: dict[str, Array],
    *,
    others: bool = True,
) -> dict[str, Any]:
    """Return the true error, and mean and standard deviation of each metric by size."""
    right = truth(pool)
    found: dict[str, dict[str, list[float]]] = {}
    for number, size in enumerate(given.sizes):
        random = np.random.default_rng([given.seed, 1, number])
        rows = random.integers(len(pool), size=(given.repeats, size))
        hits = random.random(rows.shape) < right[rows]
        gaps: Array = hits - pool[rows]
        values = {name: errors_of(table, gaps, rows) for name, table in tables.items()}
        if others:
            values["adaptive_ece"] = _adaptive(pool, gaps, rows)
            few = slice(given.kernel_density_repeats)
            values["kde_ece"] = _kernel_density(pool[rows[few]], hits[few])
        for name, each in values.items():
            own = found.setdefault(name, {"mean": [], "sd": []})
            own["mean"].append(float(each.mean()))
            own["sd"].append(float(each.std(ddof=1)))
    return {"truth": float(np.abs(right - pool).mean()), "metrics": found}


def _kernel_density(confidence: Array, hits: Array) -> Array:
    import warnings

    import raterwise as rw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        pairs = zip(confidence, hits, strict=True)
        return np.array([rw.kde_ece(np.stack([1 - c, c], axis=1), h.astype(int)) for c, h in pairs])


def _pair(
    given: Study, better: Callable[[Array], Array], worse: Callable[[Array], Array]
) -> dict[str, Any]:
    """Return how often each metric is lower for the model whose true error is."""
    random = np.random.default_rng([given.seed, 2])
    right = _sigmoid(np.abs(random.normal(1.2, 1.2, given.pool)))
    right = np.clip(right, 0.5, 1 - 1e-6)
    said = [np.clip(model(right), 0.5, 1 - 1e-9) for model in (better, worse)]
    classes = random.integers(CLASSES, size=given.pool)
    noise = random.normal(size=(VIEWS, given.pool))
    tables = []
    for confidence in said:
        views = _sigmoid(_logit(confidence) + 0.5 * noise)
        mixture = bin_shares(fit_mixtures(views, COMPONENTS, given.seed), equal_edges(BINS))
        tables.append(
            {
                "ece": _hard(confidence),
                "sce": _by_class(confidence, classes),
                "robust_ece": shares_of(confidence, 0.1),
                "robust_ece_mixture": mixture,
            }
        )
    found: dict[str, list[float]] = {}
    for number, size in enumerate(given.sizes):
        draw = np.random.default_rng([given.seed, 3, number])
        rows = draw.integers(given.pool, size=(given.repeats, size))
        hits = draw.random(rows.shape) < right[rows]
        gaps = [hits - confidence[rows] for confidence in said]
        for name in tables[0]:
            a, b = (errors_of(t[name], g, rows) for t, g in zip(tables, gaps, strict=True))
            found.setdefault(name, []).append(float((a < b).mean()))
        a, b = (_adaptive(c, g, rows) for c, g in zip(said, gaps, strict=True))
        found.setdefault("adaptive_ece", []).append(float((a < b).mean()))
        few = slice(given.kernel_density_repeats)
        a, b = (_kernel_density(confidence[rows[few]], hits[few]) for confidence in said)
        found.setdefault("kde_ece", []).append(float((a < b).mean()))
    truths = [float(np.abs(right - confidence).mean()) for confidence in said]
    return {"truths": truths, "right": found}
