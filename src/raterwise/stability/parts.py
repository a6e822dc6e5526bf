"""A metric on the growing parts of a test set: what total variations and curves are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from raterwise.catalog import Metric
from raterwise.catalog.metric import Given
from raterwise.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError
from raterwise.evaluation.request import Request, one_metric, options_of
from raterwise.inference.settings import Progress, reporting
from raterwise.predictions import Predictions
from raterwise.questions import score_outside
from raterwise.rules import a_number, between_zero_and_one, positive_integer, too_few_raters
from raterwise.summaries.outside import takes_outside
from raterwise.types import FloatArray, IntArray, Options

MOST_PARTS = 10_000
AnyMetric = str | Callable[..., float]


@dataclass(frozen=True)
class Partition:
    """The growing parts of a test set that a total variation is taken over."""

    start: float = 0.2
    step: float = 0.05
    repeats: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        positive_integer("repeats", self.repeats)
        positive_integer("seed", self.seed, least=0)
        between_zero_and_one("start", self.start)
        a_number("step", self.step)
        if not 0 < self.step <= 1 - self.start:
            raise InvalidInputError(f"step: must be in (0, {1 - self.start:g}]; got {self.step}")
        if (1 - self.start) / self.step > MOST_PARTS:
            raise InvalidInputError(
                f"step: must make at most {MOST_PARTS:,} steps from start to 1, and be at least "
                f"{(1 - self.start) / MOST_PARTS:g}; got {self.step}"
            )

    def ends(self, units: int) -> list[int]:
        """Return how many units each part has."""
        count = round((1 - self.start) / self.step)
        fractions = [*(self.start + self.step * i for i in range(count)), 1.0]
        return [part_of(fraction, units) for fraction in fractions]


def variation_along(paths: FloatArray) -> FloatArray:
    """Return the mean absolute change along each path (repeats, parts); NaN where it has none."""
    with np.errstate(invalid="ignore"):
        moves = np.abs(np.diff(paths, axis=-1))
    return of_known(np.mean, moves)


def of_known(statistic: Callable[[FloatArray], Any], rows: FloatArray) -> FloatArray:
    """Return a statistic of what each row has beside NaN; NaN of a row that has nothing else."""
    known = [row[~np.isnan(row)] for row in rows]
    with np.errstate(invalid="ignore"):  # infinite values have no spread
        return np.array([statistic(row) if row.size else np.nan for row in known])


def paths_of(
    predictions: Predictions,
    measure: tuple[Metric, Options] | Callable[..., float],
    partition: Partition,
    progress: Progress | None = None,
) -> FloatArray:
    """Return (repeats, parts): the metric on the growing parts of every repeat.

    Which cases are drawn follows from their number and the seed alone, so the paths of several
    findings of the same cases can be averaged.
    """
    report, units = reporting(progress), Units.of(predictions)
    ends = partition.ends(units.number)
    path = path_of(predictions, measure)
    paths = np.empty((partition.repeats, len(ends)))
    for r in range(partition.repeats):
        random = np.random.default_rng([partition.seed, r])
        drawn = random.integers(0, units.number, units.number)
        rows, sizes = units.rows(drawn)
        # What each part adds to the one before it.
        ring = np.repeat(np.searchsorted(ends, np.arange(units.number), side="right"), sizes)
        with np.errstate(invalid="ignore", divide="ignore"):
            paths[r] = path(rows, ring, len(ends))
        report("total variation", (r + 1) / partition.repeats)
    return paths


def part_of(fraction: float, units: int) -> int:
    """Return how many units a part has, at least one."""
    return max(1, round(fraction * units))


@dataclass(frozen=True)
class Units:
    """What is drawn: cases, or patients with all of their cases."""

    number: int
    members: list[IntArray] | None

    @staticmethod
    def of(predictions: Predictions) -> Units:
        """Return what is drawn of these predictions."""
        if predictions.groups is None:
            return Units(len(predictions), None)
        codes = predictions.groups
        members = [np.flatnonzero(codes == g) for g in range(len(predictions.group_ids))]
        return Units(len(members), members)

    def rows(self, drawn: IntArray) -> tuple[IntArray, IntArray]:
        """Return the cases of the units drawn, and how many each unit has."""
        if self.members is None:
            return drawn, np.ones(len(drawn), np.int64)
        chosen = [self.members[u] for u in drawn]
        return np.concatenate(chosen), np.array([len(rows) for rows in chosen])


def measure_of(
    metric: AnyMetric, predictions: Predictions, *, options: Options | None, **shared: Any
) -> tuple[Metric, Options] | Callable[..., float]:
    """Return a metric with its options, or the function given."""
    if not isinstance(metric, str):
        if not callable(metric):
            raise InvalidTypeError(f"metric: must be a name or a function; got {metric!r}")
        if options or any(shared[name] is not None for name in ("question", "per")):
            raise InvalidInputError("options: a function takes none; give the name of a metric")
        return metric
    metric = one_metric(metric)
    own = options_of(metric, options)
    request = Request.of([metric], options=own, given=Given.of(predictions), **shared)
    if metric not in request.asked:
        raise InvalidInputError(f"metric: {metric}: {request.lacking(*request.rows)}")
    return request.asked[metric]


GrowingPath = Callable[[IntArray, IntArray, int], FloatArray]
"""path(cases, which part each is new in, how many parts) -> the metric on each growing part."""


def path_of(
    predictions: Predictions,
    measure: tuple[Metric, Options] | Callable[..., float],
    *,
    settled: bool = True,
) -> GrowingPath:
    """Return how to measure growing parts of the cases; NaN where the metric is undefined.

    Where options are `settled`, those that follow from the data are chosen on all cases.
    """
    if callable(measure):
        return _path_of_function(predictions, measure)
    row, own = measure
    labels, least = predictions.labels, row.raters_needed(own)
    if labels.require_raters(least, "drop"):
        few = labels.num_raters < least
        raise too_few_raters(
            "labels", least, int(few.sum()), len(labels), labels.first_named(few, predictions.kept),
            dropping=False, way_out="leave them out first",
        )  # fmt: skip
    plan, classes = row.plan(own), predictions.num_classes
    prepared = plan.prepared(predictions.read(0, len(predictions)))
    outside = None
    if predictions.outside is not None and takes_outside(plan):
        outside = score_outside(predictions.outside, np.zeros(len(predictions.outside), np.int64))
    if settled and row.settle is not None:
        whole = plan.empty(classes)
        whole.take_in(prepared)
        own = row.settle(whole, own)

    def path(rows: IntArray, ring: IntArray, parts: int) -> FloatArray:
        summary = plan.empty(classes, parts)
        summary.take_in(prepared.take(rows, ring))
        if outside is not None:
            summary.take_in(outside)  # all of them beside every part of the cases
        values: FloatArray = summary.nested(row, own)
        return values

    return path


def _require_weights(function: Callable[..., float]) -> None:
    """Refuse a function that takes no weights, which would be left unread."""
    try:
        told = signature(function).parameters
    except (TypeError, ValueError):  # of compiled functions nobody knows
        return
    if "weights" not in told and not any(p.kind is p.VAR_KEYWORD for p in told.values()):
        raise InvalidInputError(
            "weights: a metric that is a function must take weights=; this one takes "
            f"{', '.join(told)}"
        )


def _path_of_function(predictions: Predictions, function: Callable[..., float]) -> GrowingPath:
    single, weights = predictions.labels.classes is not None, predictions.weights
    if weights is not None:
        _require_weights(function)

    def on(rows: IntArray) -> float:
        part = predictions.labels.take(rows)
        own = {} if weights is None else {"weights": weights[rows]}
        try:
            return float(function(predictions.probs[rows], part.classes if single else part, **own))
        except UndefinedMetricError:
            return math.nan

    return lambda rows, ring, parts: np.array([on(rows[ring <= last]) for last in range(parts)])
