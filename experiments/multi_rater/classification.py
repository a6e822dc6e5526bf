"""Stability of calibration errors of classes, by one rater and by several: MR Table 1.

The total variation of an error (MR eq 6) is found with labels of one rater of each case (SR), of
three, of seven and of all (MR), 100 bootstraps each: ten draws of the raters, ten bootstraps of the
cases for each. Beside the factor SR / MR stands what the raters' agreement predicts.

**The effective number of raters.** A label of case i is an event with probability q_i, predicted
as z_i. What n raters of a case say differs from the prediction by μ_i - z_i, whose variance over
cases (within a bin) is A + B / n: A = Var(q - z), which no further rater lowers (and in which the
cases of one patient hang together, where patients are drawn), and
B = E[q (1 - q)], in which raters differ about one case. With ρ = A / (A + B), the correlation of
two raters' errors of one case,

    n_eff = (A + B) / (A + B / n) = n / (1 + (n - 1) ρ)                         (Kish 1965)

raters who err independently would say as much. An error moves in proportion to its noise, so the
factor is √n_eff: at most √n (ρ = 0) and, however many the raters, at most 1 / √ρ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.evaluate import predictions_of
from raterwise.inference.intervals import percentile_interval
from raterwise.labels import Labels
from raterwise.stability.parts import Partition, measure_of, paths_of, variation_along

__all__ = ["Column", "Settings", "agreement", "drawn_raters", "effective_raters", "judged_column"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
VERSION = 2
METRICS = ("ece", "kde_ece", "classwise_ece", "robust_ece")
BINS = 15


@dataclass(frozen=True, eq=False)
class Column:
    """A model on cases that several raters labelled: a column of the table."""

    name: str
    probs: FloatArray
    """(N, K)."""
    counts: IntArray
    """(N, K): how many raters said each class; at least two a case."""
    patients: NDArray[Any] | None = None
    question: str = "top_label"
    """Of ECE, kdeECE and RECE-G."""
    metrics: tuple[str, ...] = METRICS


@dataclass(frozen=True)
class Settings:
    """What the numbers depend on, besides the data."""

    raters: tuple[int, ...] = (1, 3, 7)
    """How many raters of a case are drawn, where there are as many; all of them besides."""
    draws: int = 10
    """Of the raters."""
    repeats: int = 10
    """Bootstraps of the cases for each draw."""
    seed: int = 0


def drawn_raters(counts: IntArray, number: int, seed: Sequence[int]) -> IntArray:
    """Return label histograms of so many raters of each case, drawn without replacement.

    A case that has fewer keeps all of them.

    >>> drawn_raters(np.array([[3, 0], [0, 1]]), 2, [0]).tolist()
    [[2, 0], [0, 1]]
    """
    random = np.random.default_rng(list(seed))
    left = counts.sum(axis=1)
    drawn = np.minimum(left, number)
    out = np.empty_like(counts)
    for k in range(counts.shape[1]):  # class by class: each takes its share of what is left
        out[:, k] = random.hypergeometric(counts[:, k], left - counts[:, k], drawn)
        left, drawn = left - counts[:, k], drawn - out[:, k]
    return out


# What agreement predicts -------------------------------------------------------------------------


def agreement(
    z: FloatArray, mu: FloatArray, raters: IntArray, patients: NDArray[Any] | None = None
) -> tuple[float, float]:
    """Return (A, B) of an event: what more raters do not lower, and what they do.

    `z` (N,) predicts the share `mu` of the raters who say so; of `raters`, at least two a case.
    Where patients are drawn, what their cases have in common is part of A.

    The variance of mu - z within bins, of their own means, is A + B mean(1 / n).

    >>> A, B = agreement(np.full(5, 0.5), np.array([1.0, 0.0, 1.0, 0.0, 0.5]), np.full(5, 2))
    >>> (A, B)  # 4 · 0.5² / 4 = A + B / 2, and one case of five has 0.5 · 0.5 · 2 within it
    (0.2, 0.1)
    """
    within = float(np.mean(mu * (1 - mu) * raters / (raters - 1)))
    place = np.minimum((z * BINS).astype(int), BINS - 1)
    cases = np.bincount(place, minlength=BINS)
    gap = np.bincount(place, mu - z, BINS) / np.maximum(cases, 1)
    own = np.arange(len(z)) if patients is None else np.unique(patients, return_inverse=True)[1]
    _, unit = np.unique(own * BINS + place, return_inverse=True)
    sums = np.bincount(unit, mu - z - gap[place])
    spread = (sums**2).sum() / max(len(z) - np.count_nonzero(cases), 1)
    return max(float(spread - within * np.mean(1 / raters)), 0.0), within


def effective_raters(a: float, b: float, raters: FloatArray | IntArray) -> float:
    """Return n_eff: how many times one rater's labels these are worth.

    >>> effective_raters(0.0, 0.25, np.array([7])), effective_raters(0.25, 0.0, np.array([7]))
    (7.0, 1.0)
    """
    return (a + b) / (a + b * float(np.mean(1 / np.asarray(raters)))) if a + b else 1.0


def predicted_factor(column: Column, metric: str) -> float:
    """Return √n_eff of all raters of a column, for the events that a metric asks about."""
    raters = column.counts.sum(axis=1)
    shares = column.counts / raters[:, None]
    top = column.probs.argmax(axis=1)
    rows = np.arange(len(top))
    if metric == "classwise_ece":
        events = [(column.probs[:, k], shares[:, k]) for k in range(column.probs.shape[1])]
    elif column.question == "positive":
        events = [(column.probs[:, 1], shares[:, 1])]
    else:
        events = [(column.probs[rows, top], shares[rows, top])]
    found = [agreement(z, mu, raters, column.patients) for z, mu in events]
    # The error is the sum over classes: what is noise in it adds up class by class.
    one = sum(math.sqrt(a + b) for a, b in found)
    several = sum(math.sqrt((a + b) / effective_raters(a, b, raters)) for a, b in found)
    return one / several if several else 1.0


# The total variation -----------------------------------------------------------------------------


def judged_column(column: Column, settings: Settings) -> dict[str, Any]:
    """Return every bootstrap's total variation of each metric, for each number of raters."""
    least = int(column.counts.sum(axis=1).min())
    numbers = [n for n in settings.raters if n < least] or [1]
    out: dict[str, Any] = {
        "cases": len(column.probs),
        "raters": float(column.counts.sum(axis=1).mean()),
        "variation": {},
        "values": {},
        "predicted": {m: predicted_factor(column, m) for m in column.metrics},
    }
    for metric in column.metrics:
        own: dict[str, list[float]] = {}
        levels: dict[str, list[float]] = {}
        for number in (*numbers, None):
            key = "all" if number is None else str(number)
            for draw in range(settings.draws):
                values, level = _variations(column, metric, number, draw, settings)
                own.setdefault(key, []).extend(values)
                levels.setdefault(key, []).append(level)
        if metric == "ece":
            own["all, labels drawn"] = _labels_drawn(column, settings)
        out["variation"][metric] = own
        out["values"][metric] = {key: float(np.mean(level)) for key, level in levels.items()}
    return out


def _variations(
    column: Column, metric: str, number: int | None, draw: int, settings: Settings
) -> tuple[list[float], float]:
    """Return the variations with one draw of so many raters (all, if None), and the error."""
    key = (settings.seed, draw)
    counts = column.counts if number is None else drawn_raters(column.counts, number, key)
    partition = Partition(repeats=settings.repeats, seed=1000 * settings.seed + draw)
    return _measured(column, column.probs, counts, column.patients, metric, partition)


def _measured(
    column: Column,
    probs: FloatArray,
    counts: IntArray,
    patients: NDArray[Any] | None,
    metric: str,
    partition: Partition,
) -> tuple[list[float], float]:
    predictions = predictions_of(probs, Labels.from_counts(counts), groups=patients)
    question = None if metric == "classwise_ece" else column.question
    measure = measure_of(metric, predictions, bins=BINS, question=question, per=None, options=None)
    paths = paths_of(predictions, measure, partition)
    return variation_along(paths).tolist(), float(np.nanmean(paths[:, -1]))


def _labels_drawn(column: Column, settings: Settings) -> list[float]:
    """Return the variations of ECE where labels, not cases, are drawn and taken away.

    "Considering each data point with a different label as a single sample" (MR section 4): a case
    is in the smallest part with some of its labels almost always, so that A is lowered too.
    """
    rows, classes = _annotations(column.counts)
    one = np.eye(column.counts.shape[1], dtype=np.int64)[classes]
    found: list[float] = []
    for draw in range(settings.draws):
        partition = Partition(repeats=settings.repeats, seed=1000 * settings.seed + draw)
        found += _measured(column, column.probs[rows], one, None, "ece", partition)[0]
    return found


def _annotations(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the case and the class of every single label."""
    case, label = np.nonzero(counts)
    times = counts[case, label]
    return np.repeat(case, times), np.repeat(label, times)


def factor(
    one: Sequence[float], several: Sequence[float], resamples: int = 2000, level: float = 0.95
) -> dict[str, float]:
    """Return the ratio of mean variations with its interval over the bootstraps, drawn in pairs.

    >>> factor([2.0, 4.0], [1.0, 2.0])
    {'value': 2.0, 'low': 2.0, 'high': 2.0}
    """
    first, second = np.asarray(one), np.asarray(several)
    rows = np.random.default_rng(0).integers(len(first), size=(resamples, len(first)))
    low, high = percentile_interval(first[rows].mean(axis=1) / second[rows].mean(axis=1), level)
    return {"value": float(first.mean() / second.mean()), "low": low, "high": high}
