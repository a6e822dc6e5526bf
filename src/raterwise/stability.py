"""How steady is a metric when the test set shrinks? (RECE Table 1 and Fig 2; MR Table 1, Fig 3)"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import positive_integer
from raterwise.beliefs import Belief
from raterwise.catalog import Metric
from raterwise.choices import Per, Questions
from raterwise.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError
from raterwise.evaluate import predictions_of
from raterwise.inference.settings import Progress
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.recipes.common import Options
from raterwise.request import Given, Request, options_of

__all__ = ["SubsampleCurve", "TotalVariation", "subsample_curve", "total_variation"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
AnyMetric = str | Callable[..., float]


class TotalVariation(NamedTuple):
    """The total variation of a metric: mean and standard deviation over repeats.

    Parameters
    ----------
    mean, std : float
        Over the repeats.

    See Also
    --------
    stability.total_variation : makes it.

    Examples
    --------
    >>> mean, std = total_variation("ece", [0.5] * 40, [0, 1] * 20, repeats=5)
    >>> 0 < mean < 0.2
    True
    """

    mean: float
    std: float


@dataclass(frozen=True)
class SubsampleCurve:
    """A metric on random subsets of growing size.

    Parameters
    ----------
    fractions : tuple of float
        How large the subsets are.
    sizes : tuple of int
        Cases (patients, where groups were given) in the subsets of each fraction.
    values : ndarray of shape (fractions, repeats)
        The metric on each subset; NaN where it is undefined.
    full : float
        The metric on all cases.
    unit : {"cases", "patients"}, default "cases"
        What `sizes` counts.

    See Also
    --------
    subsample_curve : makes it.
    plots.StabilityDisplay : draws it.

    Examples
    --------
    >>> curve = subsample_curve("ece", [0.5] * 40, [0, 1] * 20, fractions=(0.5, 1), repeats=4)
    >>> curve.values.shape, curve.full, curve.difference[-1].tolist()
    ((2, 4), 0.0, [0.0, 0.0, 0.0, 0.0])
    """

    fractions: tuple[float, ...]
    sizes: tuple[int, ...]
    values: FloatArray
    full: float
    unit: Literal["cases", "patients"] = "cases"

    @property
    def mean(self) -> FloatArray:
        """The mean over repeats."""
        return np.asarray(np.nanmean(self.values, axis=1))

    @property
    def std(self) -> FloatArray:
        """The standard deviation over repeats."""
        return np.asarray(np.nanstd(self.values, axis=1))

    @property
    def difference(self) -> FloatArray:
        """(fractions, repeats): absolute difference from the value on all cases (RECE Fig 2)."""
        return np.abs(self.values - self.full)


@dataclass(frozen=True)
class Partition:
    """The growing parts of a test set that a total variation is taken over."""

    start: float = 0.2
    step: float = 0.05
    repeats: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        positive_integer("repeats", self.repeats)
        if not 0 < self.start < 1:
            raise InvalidInputError(f"start: must be between 0 and 1; got {self.start}")
        if not 0 < self.step <= 1 - self.start:
            raise InvalidInputError(f"step: must be in (0, {1 - self.start:g}]; got {self.step}")

    def ends(self, units: int) -> list[int]:
        """Return how many units each part has."""
        count = round((1 - self.start) / self.step)
        fractions = [*(self.start + self.step * i for i in range(count)), 1.0]
        return [_part(fraction, units) for fraction in fractions]


def total_variation(
    metric: AnyMetric,
    probs: ArrayLike | Belief,
    labels: Labels | ArrayLike,
    start: float = 0.2,
    step: float = 0.05,
    repeats: int = 100,
    seed: int = 0,
    *,
    groups: ArrayLike | None = None,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> TotalVariation:
    """Return the mean absolute change of a metric as the test set shrinks (MR eq 6).

    TV = 1/n Σ_p |CE(X^p) - CE(X^{p-Δp})| over fractions p = start … 1, with nested random subsets.
    Each repeat bootstraps the test set first (MR section 3.2). Without the absolute values, which
    the paper's equation leaves out, the sum would telescope. The bandwidth of KDE-ECE is chosen
    once, on the whole set, so that its choice is no part of the variation.

    Parameters
    ----------
    metric : str or callable
        The name of a metric, such as "ece", or any function of (probs, labels).
    probs : array-like of shape (N, K) or (N,), or a belief
        Class probabilities; (N,) are those of class 1 of two. RECE-M needs an `EnsembleBelief`.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    start : float, default 0.2
        The smallest part of the cases.
    step : float, default 0.05
        By how much it grows.
    repeats : int, default 100
        Bootstraps of the test set.
    seed : int, default 0
        Of everything random.
    groups : array-like of shape (N,), default None
        The patient of each case: patients, not cases, are drawn.
    bins : int or array-like, default 15
        How many bins of equal width, or their edges from 0 to 1, of a metric by its name.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What a metric by its name asks of a case, as in `evaluate`.
    per : {"annotation", "case"}, default None
        Whether every label counts once, or every case.
    options : mapping, default None
        The metric's own, as in `evaluate`: {"robust_ece": {"sigma": 0.05}}, or {"sigma": 0.05}.
    progress : callable, default None
        Called with a description and the fraction done.

    Returns
    -------
    TotalVariation
        Mean and standard deviation over the repeats.

    Raises
    ------
    InvalidInputError
        If the data do not match, or there is no such metric, part or number of repeats.

    See Also
    --------
    subsample_curve : the metric itself on subsets.
    segmentation.total_variation : within images.

    References
    ----------
    MR eq 6 and section 3.2.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_classes([0, 1] * 50, num_classes=2)
    >>> tv = total_variation("ece", [[0.5, 0.5]] * 100, labels, repeats=5)
    >>> 0 < tv.mean < 0.1
    True
    """
    partition = Partition(start, step, repeats, seed)
    predictions = predictions_of(probs, labels, groups=groups)
    given = Given.of(predictions)
    measure = _measure_of(metric, given, bins=bins, question=question, per=per, options=options)
    variations = variations_of(predictions, measure, partition, progress)
    return TotalVariation(float(np.nanmean(variations)), float(np.nanstd(variations)))


def variations_of(
    predictions: Predictions,
    measure: tuple[Metric, Options] | Callable[..., float],
    partition: Partition,
    progress: Progress | None = None,
) -> FloatArray:
    """Return the variation in each repeat, of a metric with its options or of any function."""
    return variation_along(paths_of(predictions, measure, partition, progress))


def variation_along(paths: FloatArray) -> FloatArray:
    """Return the mean absolute change along each path (repeats, parts)."""
    with np.errstate(invalid="ignore"):
        return np.array([np.nanmean(np.abs(np.diff(path))) for path in paths])


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
    units = _Units.of(predictions)
    ends = units.ends(partition)
    path = _path_of(predictions, measure)
    paths = np.empty((partition.repeats, len(ends)))
    for r in range(partition.repeats):
        random = np.random.default_rng([partition.seed, r])
        drawn = random.integers(0, units.number, units.number)
        rows, sizes = units.rows(drawn)
        # What each part adds to the one before it.
        ring = np.repeat(np.searchsorted(ends, np.arange(units.number), side="right"), sizes)
        with np.errstate(invalid="ignore", divide="ignore"):
            paths[r] = path(rows, ring, len(ends))
        if progress:
            progress("total variation", (r + 1) / partition.repeats)
    return paths


def subsample_curve(
    metric: AnyMetric,
    probs: ArrayLike | Belief,
    labels: Labels | ArrayLike,
    fractions: Sequence[float] = (0.01, 0.05, 0.1, 0.25, 0.5, 1),
    repeats: int = 20,
    seed: int = 0,
    *,
    groups: ArrayLike | None = None,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> SubsampleCurve:
    """Return a metric on random subsets of the test set, drawn without replacement (RECE Table 1).

    Parameters
    ----------
    metric : str or callable
        The name of a metric, such as "ece", or any function of (probs, labels).
    probs : array-like of shape (N, K) or (N,), or a belief
        Class probabilities; (N,) are those of class 1 of two. RECE-M needs an `EnsembleBelief`.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case.
    fractions : sequence of float, default (0.01, 0.05, 0.1, 0.25, 0.5, 1)
        How large the subsets are.
    repeats : int, default 20
        Subsets of each size.
    seed : int, default 0
        Of everything random.
    groups : array-like of shape (N,), default None
        The patient of each case: patients, not cases, are drawn.
    bins : int or array-like, default 15
        How many bins of equal width, or their edges from 0 to 1, of a metric by its name.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What a metric by its name asks of a case, as in `evaluate`.
    per : {"annotation", "case"}, default None
        Whether every label counts once, or every case.
    options : mapping, default None
        The metric's own, as in `evaluate`: {"robust_ece": {"sigma": 0.05}}, or {"sigma": 0.05}.
    progress : callable, default None
        Called with a description and the fraction done.

    Returns
    -------
    SubsampleCurve
        The metric on every subset and on all cases.

    Raises
    ------
    InvalidInputError
        If the data do not match, or there is no such metric, fraction or number of repeats.

    See Also
    --------
    total_variation : one number for how much it moves.
    plots.StabilityDisplay : draws the curve.

    References
    ----------
    RECE Table 1 and Fig 2.

    Examples
    --------
    >>> import raterwise as rw
    >>> probs = [[0.8, 0.2], [0.3, 0.7]] * 50
    >>> curve = subsample_curve("accuracy", probs, [0, 1] * 50, fractions=(0.5, 1), repeats=3)
    >>> curve.sizes, curve.mean.tolist(), curve.full
    ((50, 100), [1.0, 1.0], 1.0)
    """
    repeats = positive_integer("repeats", repeats)
    parts = tuple(float(f) for f in fractions)
    if not parts or not all(0 < f <= 1 for f in parts):
        raise InvalidInputError(f"fractions: must be in (0, 1]; got {tuple(fractions)}")
    predictions = predictions_of(probs, labels, groups=groups)
    given = Given.of(predictions)
    measure = _measure_of(metric, given, bins=bins, question=question, per=per, options=options)
    path, units = _path_of(predictions, measure, settled=False), _Units.of(predictions)

    def on(chosen: IntArray) -> float:
        rows, _ = units.rows(chosen)
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(path(rows, np.zeros(len(rows), np.int64), 1)[0])

    values = np.empty((len(parts), repeats))
    sizes = tuple(_part(fraction, units.number) for fraction in parts)
    for i, size in enumerate(sizes):
        for r in range(repeats):
            random = np.random.default_rng([seed, i, r])
            values[i, r] = on(random.permutation(units.number)[:size])
            if progress:
                progress("subsamples", (i * repeats + r + 1) / (len(parts) * repeats))
    whole = on(np.arange(units.number))
    unit: Literal["cases", "patients"] = "cases" if units.members is None else "patients"
    return SubsampleCurve(parts, sizes, values, whole, unit)


def _part(fraction: float, units: int) -> int:
    return max(1, round(fraction * units))


@dataclass(frozen=True)
class _Units:
    """What is drawn: cases, or patients with all of their cases."""

    number: int
    members: list[IntArray] | None

    @staticmethod
    def of(predictions: Predictions) -> _Units:
        if predictions.groups is None:
            return _Units(len(predictions), None)
        codes = predictions.groups
        members = [np.flatnonzero(codes == g) for g in range(len(predictions.group_ids))]
        return _Units(len(members), members)

    def ends(self, partition: Partition) -> list[int]:
        return partition.ends(self.number)

    def rows(self, drawn: IntArray) -> tuple[IntArray, IntArray]:
        """Return the cases of the units drawn, and how many each unit has."""
        if self.members is None:
            return drawn, np.ones(len(drawn), np.int64)
        chosen = [self.members[u] for u in drawn]
        return np.concatenate(chosen), np.array([len(rows) for rows in chosen])


def _measure_of(
    metric: AnyMetric, given: Given, *, options: Options | None, **shared: Any
) -> tuple[Metric, Options] | Callable[..., float]:
    """Return a metric with its options, or the function given."""
    if not isinstance(metric, str):
        if not callable(metric):
            raise InvalidTypeError(f"metric: must be a name or a function; got {metric!r}")
        if options or any(shared[name] is not None for name in ("question", "per")):
            raise InvalidInputError("options: a function takes none; give the name of a metric")
        return metric
    own = options_of(metric, options)
    request = Request.of([metric], options=own, given=given, **shared)
    if metric not in request.asked:
        raise InvalidInputError(f"metric: {metric}: {request.lacking(*request.rows)}")
    return request.asked[metric]


Path = Callable[[IntArray, IntArray, int], FloatArray]
"""path(cases, which part each is new in, how many parts) -> the metric on each growing part."""


def _path_of(
    predictions: Predictions,
    measure: tuple[Metric, Options] | Callable[..., float],
    *,
    settled: bool = True,
) -> Path:
    """Return how to measure growing parts of the cases; NaN where the metric is undefined.

    Where options are `settled`, those that follow from the data are chosen on all cases.
    """
    if callable(measure):
        return _path_of_function(predictions, measure)
    row, own = measure
    predictions.labels.require_raters(row.raters_needed(own))
    plan, classes = row.plan(own), predictions.num_classes
    prepared = plan.prepared(predictions.read(0, len(predictions)))
    if settled and row.settle is not None:
        whole = plan.empty(classes)
        whole.take_in(prepared)
        own = row.settle(whole, own)

    def path(rows: IntArray, ring: IntArray, parts: int) -> FloatArray:
        summary = plan.empty(classes, parts)
        summary.take_in(prepared.take(rows, ring))
        values: FloatArray = summary.nested(row, own)
        return values

    return path


def _path_of_function(predictions: Predictions, function: Callable[..., float]) -> Path:
    single = predictions.labels.classes is not None

    def on(rows: IntArray) -> float:
        part = predictions.labels.take(rows)
        try:
            return float(function(predictions.probs[rows], part.classes if single else part))
        except UndefinedMetricError:
            return math.nan

    return lambda rows, ring, parts: np.array([on(rows[ring <= last]) for last in range(parts)])
