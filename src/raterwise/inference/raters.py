"""Other raters: the same cases with raters drawn again, or without one of them at a time.

A *panel* says how often the labels of each person count. Where it is known who said what, the
panels that resamples draw, and those without one person, follow from the number of persons and the
seed alone: parts of a stream and images are summarised panel by panel, wherever they are, and the
summaries add up (`Digest.panels`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress, Settings
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries import summarise
from raterwise.summaries.outside import with_outside_cases
from raterwise.types import FloatArray, IntArray

Panel = tuple[int, ...]
"""How often each person's labels count."""

MAX_LEFT_OUT = 200
"""How many persons, or groups of them, are left out one at a time."""
RATERS_SHARE = 0.5
"""How much of the progress is resampling raters, where that is done."""


@dataclass(frozen=True)
class Panels:
    """The panels of so many persons: those that resamples draw, and those without one person.

    >>> panels = Panels.of(2, Settings(resamples=3))
    >>> len(panels.drawn), panels.left_out
    (3, ((0, 1), (1, 0)))
    """

    drawn: tuple[Panel, ...]
    """One per resample."""
    left_out: tuple[Panel, ...]
    """Without one person, or one group of very many."""

    @staticmethod
    def of(persons: int, settings: Settings) -> Panels:
        """Return the panels of these settings."""
        _require_several(persons, "one person rated")
        return _panels(persons, settings.resamples, settings.seed)

    @staticmethod
    def for_persons(persons: int, settings: Settings) -> Panels | None:
        """Return the panels where raters are resampled; None where they are not."""
        return Panels.of(persons, settings) if settings.draws_raters else None

    @cached_property
    def different(self) -> tuple[Panel, ...]:
        """Each panel once: of few persons there are few, however many the resamples."""
        return tuple(dict.fromkeys((*self.drawn, *self.left_out)))


@lru_cache(maxsize=8)
def _panels(persons: int, resamples: int, seed: int) -> Panels:
    drawn = []
    for b in range(resamples):
        chosen = _random(seed, b).integers(0, persons, persons)
        drawn.append(_as_panel(np.bincount(chosen, minlength=persons)))
    groups = np.arange(persons)
    if persons > MAX_LEFT_OUT:
        groups = np.random.default_rng([seed, 5]).permutation(persons) % MAX_LEFT_OUT
    left_out = [_as_panel(groups != group) for group in range(groups.max() + 1)]
    return Panels(tuple(drawn), tuple(left_out))


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
        settings: Settings,
        progress: Progress | None = None,
    ) -> RaterDraws:
        """Summarise the predictions with every resample of raters."""
        predictions = of_those_who_rated(predictions)
        spread, seed = spread_of_raters(predictions.labels), settings.seed
        plans = [plan for plan in plans if not plan.grows]

        def report(done: int, of: int) -> None:
            if progress:
                progress("resampling raters", RATERS_SHARE * done / of)

        ratings = predictions.labels.ratings
        if ratings is not None:
            panels = Panels.of(len(ratings.rater_ids), settings)
            return RaterDraws.of_panels(
                panels, summaries_by_panel(predictions, plans, panels.different, report), seed
            )
        drawn = []
        for b, redrawn in enumerate(resampled_raters(predictions, settings.resamples, seed)):
            summaries = summarise(redrawn, plans, threads=1)
            drawn.append(with_outside_cases(summaries, predictions.outside))
            report(b + 1, settings.resamples)
        return RaterDraws(drawn, (), spread, seed)

    @staticmethod
    def of_panels(
        panels: Panels, summaries: Mapping[Panel, Mapping[Any, Any]], seed: int
    ) -> RaterDraws:
        """Return the draws of persons whose panels are summarised already."""
        persons = len(panels.drawn[0])
        return RaterDraws(
            [summaries[panel] for panel in panels.drawn],
            [summaries[panel] for panel in panels.left_out],
            math.sqrt(persons / (persons - 1)),
            seed,
        )

    @property
    def persons(self) -> int | None:
        """How many persons, or groups of them, are known; None where nobody knows who said what."""
        return len(self.left_out) or None

    def replicates(
        self, value: float, drawn: FloatArray, without: FloatArray | None, *, of_pairs: bool
    ) -> FloatArray:
        """Return resampled values of a metric round its value.

        Parameters
        ----------
        drawn
            The metric of every resample.
        without
            The metric without each person in turn, where persons are known.
        of_pairs
            Whether the metric compares raters with each other: labels that are drawn twice would
            agree, so the values come from those without each person.
        """
        if without is not None and of_pairs:
            return value + self._linear(without)
        return np.asarray(value + self.spread * (drawn - np.nanmean(drawn)))

    def around(self, value: float, without: FloatArray) -> FloatArray:
        """Return values of Student's t with R - 1 degrees of freedom round the estimate.

        As far apart as the jackknife's error: leaving out one of R persons at a time makes no
        copies, while a person drawn twice agrees with himself, which would be most of what
        resamples of a metric that compares raters show. NaN where a rest of persons has no value.
        """
        count = len(without)
        squares = float(((without - without.mean()) ** 2).sum())
        error = math.sqrt((count - 1) / count * squares)
        random = np.random.default_rng([self.seed, 4])
        return value + error * random.standard_t(count - 1, len(self.drawn))

    def _linear(self, without: FloatArray) -> FloatArray:
        """Return normal deviations with the jackknife's error, made of what each person does.

        Two models that the same persons move in the same way move together, so differences of such
        values are those of pairs; Student's t is for whoever makes an interval of them.
        """
        count = len(without)
        random = np.random.default_rng([self.seed, 6])
        moves = random.standard_normal((len(self.drawn), count)) @ (without - without.mean())
        return np.asarray(math.sqrt((count - 1) / count) * moves)

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


def summaries_by_panel(
    predictions: Predictions,
    plans: Sequence[Any],
    panels: Sequence[Panel],
    report: Callable[[int, int], None] = lambda done, of: None,
) -> dict[Panel, dict[Any, Any]]:
    """Return the summaries of predictions for every panel; it must be known who said what.

    A case that nobody of a panel saw is left out of it.
    """
    found = {}
    for i, panel in enumerate(panels):
        part = panel_of(predictions, panel)
        if len(part):
            found[panel] = summarise(part, plans, threads=1)
        else:
            found[panel] = {plan: plan.empty(predictions.num_classes) for plan in plans}
        found[panel] = with_outside_cases(found[panel], predictions.outside)
        report(i + 1, len(panels))
    return found


def panel_of(predictions: Predictions, panel: Panel) -> Predictions:
    """Return the predictions with each person's labels counted as often as the panel says."""
    labels, times = predictions.labels, np.array(panel, np.float64)
    ratings = labels.ratings
    assert ratings is not None
    flat = ratings.case.astype(np.int64) * labels.num_classes + ratings.label
    size = len(labels) * labels.num_classes
    counts = np.bincount(flat, weights=times[ratings.rater], minlength=size)
    return _with_counts(predictions, counts.astype(np.int64).reshape(labels.shape))


def resampled_raters(predictions: Predictions, resamples: int, seed: int) -> Iterator[Predictions]:
    """Yield the predictions with resampled labels, where nobody knows who said what.

    Each case draws its labels again from its own histogram, as if each came from another rater
    (the papers' assumption of interchangeable raters).
    """
    labels = predictions.labels
    for b in range(resamples):
        counts = _random(seed, b).multinomial(labels.num_raters, labels.frequencies)
        yield _with_counts(predictions, counts)


def of_those_who_rated(predictions: Predictions, rated: Sequence[int] | None = None) -> Predictions:
    """Leave out persons who rated none of the cases: drawing them would draw nobody.

    `rated` are the places of all others, increasing, where these cases are a part of all.
    """
    ratings = predictions.labels.ratings
    if ratings is None:
        return predictions
    known = np.unique(ratings.rater) if rated is None else np.asarray(rated)
    names = tuple(ratings.rater_ids[i] for i in known)
    found = replace(ratings, rater=np.searchsorted(known, ratings.rater), rater_ids=names)
    return replace(predictions, labels=replace(predictions.labels, ratings=found))


def spread_of_raters(labels: Labels) -> float:
    """Return sqrt(n / (n - 1)) for n raters: by how much resamples of few are too close together.

    n labels drawn from their own histogram vary by (n - 1) / n of what n new ones would. Persons
    are counted where they are known, otherwise the labels of a case, on average.

    >>> spread_of_raters(Labels.from_counts([[1, 1], [2, 0]])) ** 2
    2.0000000000000004
    """
    persons = labels.ratings is not None
    number = len(labels.ratings.rater_ids) if labels.ratings else float(labels.num_raters.mean())
    _require_several(number, "one person rated" if persons else "every case has one label")
    return math.sqrt(number / (number - 1))


def _require_several(number: float, what: str) -> None:
    if number <= 1:
        raise InvalidInputError(f'unit: "raters" needs several raters; {what}')


def _random(seed: int, resample: int) -> np.random.Generator:
    return np.random.default_rng([seed, 3, resample])


def _as_panel(times: NDArray[Any]) -> Panel:
    return tuple(int(n) for n in times)


def _with_counts(predictions: Predictions, counts: IntArray) -> Predictions:
    seen = counts.sum(axis=1) > 0
    drawn = replace(predictions.labels, classes=None, histogram=counts, ratings=None)
    whole = replace(predictions, labels=drawn)
    return whole if seen.all() else whole.take(seen)
