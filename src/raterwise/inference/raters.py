"""Other raters: the same cases with raters drawn again, or without one of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries import summarise

__all__ = ["RATERS_SHARE", "RaterDraws", "resampled_raters", "spread_of_raters"]

IntArray = NDArray[np.int64]

MAX_LEFT_OUT = 200
"""How many persons, or groups of them, are left out one at a time."""
RATERS_SHARE = 0.5
"""How much of the progress is resampling raters, where that is done."""


@dataclass(frozen=True, eq=False)
class RaterDraws:
    """The summaries of predictions with other raters."""

    drawn: Sequence[Mapping[Any, Any]]
    """By their plans, with raters drawn at random, for every resample."""
    left_out: Sequence[Mapping[Any, Any]]
    """By their plans, without one person at a time; empty where nobody knows who said what."""
    spread: float
    """By how much the drawn ones are too close together."""
    seed: int

    @staticmethod
    def of(
        predictions: Predictions,
        plans: Sequence[Any],
        resamples: int,
        seed: int,
        progress: Progress | None = None,
    ) -> RaterDraws:
        """Summarise the predictions with every resample of raters."""
        spread = spread_of_raters(predictions.labels)
        drawn = []
        for b, redrawn in enumerate(resampled_raters(predictions, resamples, seed)):
            drawn.append(summarise(redrawn, plans, threads=1))
            if progress:
                progress("resampling raters", RATERS_SHARE * (b + 1) / resamples)
        left_out = [summarise(rest, plans) for rest in _without_each(predictions, seed)]
        return RaterDraws(drawn, left_out, spread, seed)

    def around(self, value: float, without: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return resampled values of a metric from its values without each person in turn.

        A person drawn twice agrees with himself, which would be most of what resamples of a metric
        that compares raters show. Leaving out one of R persons at a time makes no copies: the
        values are those of Student's t with R - 1 degrees of freedom round the estimate, as far
        apart as the jackknife's error. They are NaN where a rest of persons has no value.
        """
        count = len(without)
        squares = float(((without - without.mean()) ** 2).sum())
        error = math.sqrt((count - 1) / count * squares)
        random = np.random.default_rng([self.seed, 4])
        return value + error * random.standard_t(count - 1, len(self.drawn))

    def expansion(self, level: float) -> float:
        """Return by how much noise that was drawn is too small for an interval of this level.

        Known persons are a sample of few: Student's t of R - 1 degrees of freedom takes the place
        of the normal quantile.
        """
        from scipy.special import ndtri, stdtrit

        if not self.left_out:
            return self.spread
        place = (1 + level) / 2
        return float(self.spread * stdtrit(len(self.left_out) - 1, place) / ndtri(place))


def resampled_raters(predictions: Predictions, resamples: int, seed: int) -> Iterator[Predictions]:
    """Yield the predictions with resampled raters.

    Where it is known who said what, raters are drawn as persons: all of a rater's labels come or
    go together, and a case that none of the drawn raters saw is left out of that resample.
    Otherwise each case draws its labels again from its own histogram, as if each came from
    another rater (the papers' assumption of interchangeable raters).
    """
    labels = predictions.labels
    for b in range(resamples):
        random = np.random.default_rng([seed, 3, b])
        if labels.ratings is not None:
            counts = _draw_persons(labels, random)
        else:
            counts = random.multinomial(labels.num_raters, labels.frequencies)
        yield _with_counts(predictions, counts)


def spread_of_raters(labels: Labels) -> float:
    """Return sqrt(n / (n - 1)) for n raters: by how much resamples of few are too close together.

    n labels drawn from their own histogram vary by (n - 1) / n of what n new ones would. Persons
    are counted where they are known, otherwise the labels of a case, on average.

    >>> spread_of_raters(Labels.from_counts([[1, 1], [2, 0]])) ** 2
    2.0000000000000004
    """
    persons = labels.ratings is not None
    number = len(labels.ratings.rater_ids) if labels.ratings else float(labels.num_raters.mean())
    if number <= 1:
        what = "one person rated" if persons else "every case has one label"
        raise InvalidInputError(f'unit: "raters" needs several of them; {what}')
    return math.sqrt(number / (number - 1))


def _without_each(predictions: Predictions, seed: int) -> Iterator[Predictions]:
    """Yield the predictions without one person at a time, or without a group of many persons."""
    labels = predictions.labels
    if labels.ratings is None:
        return
    number = len(labels.ratings.rater_ids)
    groups = np.arange(number)
    if number > MAX_LEFT_OUT:
        groups = np.random.default_rng([seed, 5]).permutation(number) % MAX_LEFT_OUT
    for group in range(groups.max() + 1):
        yield _with_counts(predictions, _counts(labels, (groups != group).astype(np.float64)))


def _with_counts(predictions: Predictions, counts: IntArray) -> Predictions:
    seen = counts.sum(axis=1) > 0
    drawn = replace(predictions.labels, classes=None, histogram=counts, ratings=None)
    whole = replace(predictions, labels=drawn)
    return whole if seen.all() else whole.take(seen)


def _draw_persons(labels: Labels, random: np.random.Generator) -> IntArray:
    assert labels.ratings is not None
    number = len(labels.ratings.rater_ids)
    return _counts(labels, np.bincount(random.integers(0, number, number), minlength=number))


def _counts(labels: Labels, times: NDArray[Any]) -> IntArray:
    """Return the label histograms (N, K) with each person's labels so many times."""
    ratings = labels.ratings
    assert ratings is not None
    flat = ratings.case.astype(np.int64) * labels.num_classes + ratings.label
    size = len(labels) * labels.num_classes
    counts = np.bincount(flat, weights=times[ratings.rater], minlength=size)
    return counts.astype(np.int64).reshape(len(labels), labels.num_classes)
