"""Readers as a yardstick: does the model differ from a reader as much as readers do?

Each rater is judged against the others of the same cases, by the same metrics as the model: what
the rater said is a prediction of certainty, and the labels of the others are the reference. The
model is judged on the same cases against the same labels, so that the two can be subtracted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluation.request import Request
from raterwise.inference.differences import correlation_of, difference_interval
from raterwise.inference.draws import resampling_units
from raterwise.inference.jackknife import linearise, student_interval
from raterwise.inference.measures import Measure
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.inference.small_samples import proportion_interval
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.readers.yardstick import AgainstReaders, Ends, Reader, Yardstick
from raterwise.summaries.contract import Plan
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts
from raterwise.summaries.one_pass import summarise
from raterwise.types import FloatArray, IntArray

MODEL, READER = "model", "reader"
FEWEST_CASES = 10
"""With fewer shared cases a rater is not judged, and is part of the reference of others only."""
MOST_READERS = 100
"""Up to how many raters are each judged against the others in results."""
MOST_READINGS = 200_000
"""Up to how many ratings in memory they are."""
OF_TWO = ("accuracy", "sensitivity", "specificity")


def against_readers(
    probs: ArrayLike,
    labels: Labels,
    metrics: str | Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> AgainstReaders:
    """Compare the model with the readers, each evaluated against the other readers.

    For each rater, take the cases that somebody else rated too. The labels of the others are the
    reference, and the rater's own label is a prediction with probability 1. The model is evaluated
    on the same cases against the same labels. Means over raters are weighted by their readings.
    Intervals leave out one patient (or case) at a time, for the model and all raters together; they
    hold for these readers.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels
        What the raters said, with who said it: `from_ratings`, `from_long` or `from_frame`.
    metrics : str or sequence of str, default None
        By default the accuracy, which is the agreement with another reader, and of two classes
        sensitivity and specificity.
    groups : array-like of shape (N,), default None
        The patient of each case: patients are left out whole.
    options : mapping of str to mapping, default None
        By metric, options of its own: {"sensitivity": {"threshold": 0.2}}.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed for pooling patients, if there are more than a few thousand.

    Returns
    -------
    AgainstReaders
        Metrics of a reader, of the model and their difference, with intervals, and each reader.

    Raises
    ------
    InvalidInputError
        If it is not known who said what, or no rater shares ten cases with another.

    See Also
    --------
    exchangeability_test : whether the readers are alike.
    decision_curve : the net benefit of acting on one more reader.

    Examples
    --------
    >>> labels = Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
    >>> found = against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
    >>> found.metrics["accuracy"].reader[0], found.metrics["accuracy"].model[0]
    (0.75, 0.875)
    """
    predictions = Predictions.of(probs, labels, groups=groups, weights=weights, on_unrated="drop")
    if predictions.labels.ratings is None:
        raise InvalidInputError(
            "labels: must say who said what, as from_ratings and from_long do; label counts do not"
        )
    request = request_of(predictions.num_classes, metrics, options=options, level=level, seed=seed)
    units = resampling_units(predictions, seed)
    return judge_digests(readers_of(predictions, plans_of(request), *units), request)


def request_of(
    classes: int,
    metrics: str | Sequence[str] | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Request:
    """Return what is asked of a reader and of the model; the agreement by default."""
    if metrics is None:
        metrics = OF_TWO if classes == 2 else OF_TWO[:1]
    settings = Settings(2, level, seed)  # units are left out one by one, none is drawn
    return Request.of(metrics, options=options, settings=settings, classes=classes)


def plans_of(request: Request, *, bounded: bool = False) -> list[Any]:
    """Return what to keep of the cases of each reader."""
    plans = [row.plan_of(own) for row, own in request.asked.values()]
    return list(dict.fromkeys(plan.bounded() if bounded else plan for plan in plans))


def judge_digests(
    digests: Mapping[str, Mapping[Hashable, Digest]], request: Request
) -> AgainstReaders:
    """Return the model beside the readers, wherever their digests come from."""
    pairs = [
        _Pair(rater, model, digests[READER][rater])
        for rater, model in digests.get(MODEL, {}).items()
        if model.facts.cases >= FEWEST_CASES
    ]
    if not pairs:
        raise InvalidInputError(
            f"labels: no rater shares {FEWEST_CASES} cases with another; readers cannot be judged"
        )
    level = request.settings.level
    found: dict[str, Yardstick] = {}
    known: list[list[_Both]] = []
    for row, own in request.asked.values():
        each = [_both(pair, row, own, request.settings) for pair in pairs]
        known.append(each)
        if any(one is not None for one in each):
            found[row.name] = _yardstick(row, own, each, pairs, level)
    readers = tuple(
        Reader(pair.rater, pair.model.facts.cases, *_by_metric(request, known, i))
        for i, pair in enumerate(pairs)
    )
    return AgainstReaders(found, readers, level)


def beside_readers(predictions: Predictions, request: Request) -> dict[str, Any]:
    """Return what results say of the readers, where metrics of their agreement are asked for.

    Only where it is known who said what, and where there are few enough to judge one by one.
    """
    ratings = predictions.labels.ratings
    if ratings is None or not wanted(request, len(ratings.rater_ids)):
        return {}
    if len(ratings.case) > MOST_READINGS:
        return {}
    own = of_results(request, predictions.num_classes)
    units = resampling_units(predictions, request.settings.seed)
    return in_results(readers_of(predictions, plans_of(own), *units), own)


def wanted(request: Request, raters: int) -> bool:
    """Tell whether results are to have the model beside so many readers."""
    return bool(request.compares_raters and request.settings.resamples and raters <= MOST_READERS)


def of_results(request: Request, classes: int) -> Request:
    """Return what results ask of readers, at the level and seed of the other metrics."""
    return request_of(classes, level=request.settings.level, seed=request.settings.seed)


def in_results(
    digests: Mapping[str, Mapping[Hashable, Digest]], request: Request
) -> dict[str, Any]:
    """Return what results say of the readers; nothing where nobody shares enough cases."""
    try:
        return {"readers": judge_digests(digests, request).to_dict()}
    except RaterwiseError:
        return {}


def _by_metric(
    request: Request, known: Sequence[Sequence[_Both]], i: int
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Return what the i-th rater and the model there have by each metric."""
    reader: dict[str, float | None] = {}
    model: dict[str, float | None] = {}
    for name, each in zip(request.asked, known, strict=True):
        one = each[i]
        model[name], reader[name] = (None, None) if one is None else (one[0].value, one[1].value)
    return reader, model


@dataclass(frozen=True, eq=False)
class _Pair:
    """The cases that one rater shares: what the model says of them, and what the rater says."""

    rater: Hashable
    model: Digest
    reader: Digest

    @property
    def sizes(self) -> FloatArray:
        """(units,): how many of the rater's cases each has, as often as they count."""
        return self.model.unit_weights.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Judged:
    value: float
    without: FloatArray
    """(units,): the value without each of them."""


_Both = tuple[_Judged, _Judged] | None
"""The model and the reader by one metric; None where it is undefined for either."""


def _both(pair: _Pair, row: Metric, own: Mapping[str, Any], settings: Settings) -> _Both:
    """Return the model and the reader by one metric; None where it is undefined for either."""
    found = []
    for digest in (pair.model, pair.reader):
        try:
            digest.facts.require_raters(row.raters_needed(own), settings.on_single)
            measure = Measure(row, own, Pass(digest, {row.name: (row, own)}, settings))
            value = measure.value()[0]
            at = float(measure.over(measure.table))
            without = measure.without_each() + (value - at)
        except RaterwiseError:
            return None
        if not np.isfinite(value):
            return None
        found.append(_Judged(float(value), np.asarray(without)))
    return found[0], found[1]


def _yardstick(
    row: Metric,
    own: Mapping[str, Any],
    each: Sequence[_Both],
    pairs: Sequence[_Pair],
    level: float,
) -> Yardstick:
    used = [(one, pair.sizes) for one, pair in zip(each, pairs, strict=True) if one is not None]
    sizes = np.sum([size for _, size in used], axis=0)
    values, lefts = [], []
    for which in (1, 0):
        value = np.average(
            [one[which].value for one, _ in used], weights=[s.sum() for _, s in used]
        )
        left = np.array([one[which].without for one, _ in used])
        weight = np.array([s.sum() - s for _, s in used]) * np.isfinite(left)
        total = weight.sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean = (weight * np.nan_to_num(left)).sum(axis=0) / np.where(total > 0, total, np.nan)
        values.append(float(value))
        lefts.append(mean)
    bounds = row.within_bounds(-np.inf, np.inf, own, pairs[0].model.facts.classes)
    reader, model = (
        _ends(row, v, left, sizes, level, bounds) for v, left in zip(values, lefts, strict=True)
    )
    difference = _difference(row, values, lefts, (reader, model), sizes, level)
    return Yardstick(row.name, row.title, row.direction, reader, model, difference)


def _difference(
    row: Metric,
    values: Sequence[float],
    lefts: Sequence[FloatArray],
    ends: tuple[Ends, Ends],
    sizes: FloatArray,
    level: float,
) -> Ends:
    """Return the model minus the reader; of two proportions by the intervals of both.

    Their correlation follows from the errors of the two and of the difference (Newcombe's method
    for paired proportions): shares near 1 are not symmetric, and neither is their difference.
    """
    gap, left = values[1] - values[0], lefts[1] - lefts[0]
    try:
        errors = [linearise(v, w, sizes).error for v, w in zip(values, lefts, strict=True)]
        error = linearise(gap, left, sizes).error
    except RaterwiseError:
        return gap, float("nan"), float("nan")
    if row.shape != "proportion" or not errors[0] * errors[1] > 0:
        return _ends(None, gap, left, sizes, level)
    shared = correlation_of((errors[0], errors[1], error))
    return (gap, *difference_interval(ends[1], ends[0], min(max(shared, -1.0), 1.0)))


def _ends(
    row: Metric | None, value: float, without: FloatArray, sizes: FloatArray, level: float,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Ends:  # fmt: skip
    try:
        found = linearise(value, without, sizes)
    except RaterwiseError:
        return value, float("nan"), float("nan")
    if row is not None and row.shape == "proportion":
        return (value, *proportion_interval(found, level))
    low, high = student_interval(found, level)
    return value, max(low, bounds[0]), min(high, bounds[1])


def readers_of(
    predictions: Predictions, plans: Sequence[Plan], units: IntArray, number: int
) -> dict[str, dict[Hashable, Digest]]:
    """Return what the model and each rater say of the cases that others rated too, by rater.

    The labels of the others are the reference; what the rater said is a prediction of certainty.
    `units` (n,) is the resampling unit of each case, one of `number`. Nothing where it is not known
    who said what.

    >>> labels = Labels.from_ratings([[0, 0], [1, 1], [0, -1]], num_classes=2)
    >>> found = readers_of(Predictions.of([0.2, 0.9, 0.4], labels), [], np.arange(3), 3)
    >>> found[MODEL][0].unit_cases.tolist()
    [1, 1, 0]
    """
    found: dict[str, dict[Hashable, Digest]] = {MODEL: {}, READER: {}}
    for rater, case, said, reference in _shared(predictions):
        weights = None if predictions.weights is None else predictions.weights[case]
        own = units[case]
        for who, probs in ((MODEL, predictions.probs[case]), (READER, said)):
            cases = Predictions.of(probs, reference, weights=weights)
            summaries = summarise(cases, plans, units=own, num_units=number)
            counts = np.bincount(own, minlength=number)
            weighed = None if weights is None else np.bincount(own, weights, number).astype(float)
            found[who][rater] = Digest(summaries, Facts.counted(cases), counts, weights=weighed)
    return found


def _shared(predictions: Predictions) -> Iterator[tuple[Hashable, IntArray, Any, Labels]]:
    """Yield the cases that each rater shares with others, what was said, and what others said."""
    ratings = predictions.labels.ratings
    if ratings is None:
        return
    counts, classes = predictions.labels.counts, predictions.num_classes
    for r, rater in enumerate(ratings.rater_ids):
        mine = ratings.rater == r
        case, said = ratings.case[mine], ratings.label[mine]
        order = np.argsort(case, kind="stable")
        case, said = case[order], said[order]
        own = np.zeros((len(case), classes), np.int64)
        own[np.arange(len(case)), said] = 1
        others = counts[case] - own
        shared = others.sum(axis=1) > 0
        if shared.any():
            reference = Labels.from_counts(others[shared])
            yield rater, case[shared], own[shared].astype(np.float64), reference
