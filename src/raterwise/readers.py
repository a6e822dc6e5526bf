"""Readers as a yardstick: does the model differ from a reader as much as readers do?

Each rater is judged against the others of the same cases, by the same metrics as the model: what
the rater said is a prediction of certainty, and the labels of the others are the reference. The
model is judged on the same cases against the same labels, so that the two can be subtracted.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.inference.draws import Units, digest_in_memory, resampling_units
from raterwise.inference.jackknife import linearise, student_interval
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.inference.small import proportion_interval
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.request import Request

__all__ = ["AgainstReaders", "Reader", "Yardstick", "against_readers", "judge_readers"]

FloatArray = NDArray[np.float64]
Ends = tuple[float, float, float]
"""Value, low, high."""

FEWEST_CASES = 10
"""With fewer shared cases a rater is not judged, and is part of the reference of others only."""
OF_TWO = ("accuracy", "sensitivity", "specificity")


@dataclass(frozen=True)
class Yardstick:
    """One metric of a reader and of the model against the other readers of the same cases.

    Attributes
    ----------
    metric, title, direction : str
        Which, and whether "higher" or "lower" is better.
    reader, model, difference : tuple of float
        Value, low and high: the mean over readers, weighted by their readings; the model on the
        same cases against the same labels; the model minus the reader.

    Examples
    --------
    >>> import raterwise as rw
    >>> reads = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 5
    >>> labels = rw.Labels.from_ratings(reads, num_classes=2)
    >>> found = rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
    >>> found.metrics["accuracy"].title
    'Accuracy'
    """

    metric: str
    title: str
    direction: str
    reader: Ends
    model: Ends
    difference: Ends


@dataclass(frozen=True)
class Reader:
    """One rater against the others of the same cases, and the model there.

    Attributes
    ----------
    rater : hashable
        As the labels name it.
    cases : int
        How many of the rater's cases somebody else rated.
    reader, model : dict of str to float
        By metric; None where it is undefined on these cases.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
    >>> rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels).readers[0].reader["accuracy"]
    0.75
    """

    rater: Hashable
    cases: int
    reader: dict[str, float | None]
    model: dict[str, float | None]


@dataclass(frozen=True)
class AgainstReaders:
    """The model beside the readers, each against the other readers.

    Attributes
    ----------
    metrics : dict of str to Yardstick
        By the metric's name.
    readers : tuple of Reader
        Each rater that shares enough cases.
    level : float
        Of the intervals, over patients (or cases) and for these readers.

    See Also
    --------
    against_readers : where it comes from.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
    >>> found = rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
    >>> [reader.cases for reader in found.readers]
    [20, 20]
    """

    metrics: dict[str, Yardstick]
    readers: tuple[Reader, ...]
    level: float

    def sentence(self) -> str:
        """Return in words whether the model differs from a reader as much as readers do.

        Returns
        -------
        str
            A few sentences about agreement, "" without the accuracy among the metrics.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
        >>> print(rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels).sentence())
        A reader says what another reader says in 75.0 % [...] of cases; the model in 87.5 % ...
        """
        if "accuracy" not in self.metrics:
            return ""
        found = self.metrics["accuracy"]
        gap, low, high = (100 * x for x in found.difference)
        if low > 0:
            verdict = "The model differs from a reader less than readers differ from each other."
        elif high < 0:
            verdict = "The model differs from a reader more than readers differ from each other."
        else:
            verdict = (
                "The model differs from a reader about as often as readers differ from each "
                f"other; a difference of up to {max(-low, high):.1f} points cannot be ruled out."
            )
        verdict += self._otherwise()
        return (
            f"A reader says what another reader says in {_percent(found.reader)} of cases; the "
            f"model in {_percent(found.model)} of the same cases: {gap:+.1f} points "
            f"[{low:+.1f}, {high:+.1f}]. {verdict}"
        )

    def _otherwise(self) -> str:
        """Return in which other metrics the model and a reader differ beyond chance."""
        said = []
        for found in self.metrics.values():
            gap, low, high = found.difference
            if found.metric != "accuracy" and (low > 0 or high < 0):
                way = "higher" if gap > 0 else "lower"
                ends = f"[{100 * low:+.1f}, {100 * high:+.1f}]"
                said.append(f"{found.title.lower()} is {100 * abs(gap):.1f} points {way} {ends}")
        if not said:
            return ""
        return f" But not in the same way: its {' and its '.join(said)} than a reader's."

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values.

        Returns
        -------
        dict
            What JSON can hold.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
        >>> sorted(rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels).to_dict())
        ['level', 'metrics', 'readers', 'sentence']
        """
        return {
            "metrics": {name: asdict(found) for name, found in self.metrics.items()},
            "readers": [{**asdict(one), "rater": str(one.rater)} for one in self.readers],
            "level": self.level,
            "sentence": self.sentence(),
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> AgainstReaders:
        """Return what `to_dict` wrote down.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned.

        Returns
        -------
        AgainstReaders
            The same; raters are called by their names, as text.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
        >>> found = rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
        >>> AgainstReaders.from_dict(found.to_dict()).sentence() == found.sentence()
        True
        """
        ends = ("reader", "model", "difference")
        metrics = {
            name: Yardstick(**{**one, **{key: tuple(one[key]) for key in ends}})
            for name, one in content["metrics"].items()
        }
        readers = tuple(Reader(**one) for one in content["readers"])
        return AgainstReaders(metrics, readers, content["level"])


def _percent(ends: Ends) -> str:
    value, low, high = (100 * x for x in ends)
    return f"{value:.1f} % [{low:.1f}, {high:.1f}]"


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
    """Return the model beside the readers, each judged against the other readers.

    For each rater the cases that somebody else rated too are taken; the labels of the others are
    the reference, what the rater said is a prediction of certainty, and the model is judged on the
    same cases against the same labels. Means over raters are weighted by their readings. Intervals
    leave out one patient (or case) at a time, from the model and all raters at once; they are for
    these readers.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
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
        How much each case counts; 1 if left out.
    level : float, default 0.95
        Of confidence.
    seed : int, default 0
        Of pooling patients where there are more than a few thousand.

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
    return judge_readers(predictions, metrics, options=options, level=level, seed=seed)


def judge_readers(
    predictions: Predictions,
    metrics: str | Sequence[str] | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> AgainstReaders:
    """Return the same of checked predictions."""
    classes = predictions.num_classes
    if metrics is None:
        metrics = OF_TWO if classes == 2 else OF_TWO[:1]
    settings = Settings(2, level, seed)  # units are left out one by one, none is drawn
    request = Request.of(metrics, options=options, settings=settings, classes=classes)
    units = resampling_units(predictions, seed)
    pairs = _pairs(predictions, units)
    if not pairs:
        raise InvalidInputError(
            f"labels: no rater shares {FEWEST_CASES} cases with another; readers cannot be judged"
        )
    found: dict[str, Yardstick] = {}
    known: list[list[_Both]] = []
    for row, own in request.asked.values():
        each = [_both(pair, row, own, settings) for pair in pairs]
        known.append(each)
        if any(one is not None for one in each):
            found[row.name] = _yardstick(row, each, pairs, level)
    readers = tuple(
        Reader(pair.rater, len(pair.model), *_by_metric(request, known, i))
        for i, pair in enumerate(pairs)
    )
    return AgainstReaders(found, readers, level)


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
    model: Predictions
    reader: Predictions
    units: Units

    @property
    def sizes(self) -> FloatArray:
        """(units,): how many of the rater's cases each has."""
        return np.bincount(self.units[0], minlength=self.units[1]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Judged:
    value: float
    without: FloatArray
    """(units,): the value without each of them."""


_Both = tuple[_Judged, _Judged] | None
"""The model and the reader by one metric; None where it is undefined for either."""


def _pairs(predictions: Predictions, units: Units) -> list[_Pair]:
    ratings = predictions.labels.ratings
    if ratings is None:
        raise InvalidInputError(
            "labels: must say who said what, as from_ratings and from_long do; label counts do not"
        )
    counts, classes = predictions.labels.counts, predictions.num_classes
    found = []
    for r, rater in enumerate(ratings.rater_ids):
        mine = ratings.rater == r
        case, said = ratings.case[mine], ratings.label[mine]
        order = np.argsort(case, kind="stable")
        case, said = case[order], said[order]
        own = np.zeros((len(case), classes), np.int64)
        own[np.arange(len(case)), said] = 1
        others = counts[case] - own
        shared = others.sum(axis=1) > 0
        if shared.sum() < FEWEST_CASES:
            continue
        case, own = case[shared], own[shared]
        reference = Labels.from_counts(others[shared])
        weights = None if predictions.weights is None else predictions.weights[case]
        model = Predictions.of(predictions.probs[case], reference, weights=weights)
        reader = Predictions.of(own.astype(np.float64), reference, weights=weights)
        found.append(_Pair(rater, model, reader, (units[0][case], units[1])))
    return found


def _both(pair: _Pair, row: Metric, own: Mapping[str, Any], settings: Settings) -> _Both:
    """Return the model and the reader by one metric; None where it is undefined for either."""
    found = []
    for predictions in (pair.model, pair.reader):
        try:
            predictions.labels.require_raters(row.raters_needed(own))
            digest = digest_in_memory(predictions, [row.plan_of(own)], settings, pair.units)
            pass_ = Pass(digest, {row.name: (row, own)}, settings)
            value = pass_.value(row, own)[0]
            at = float(row.over(pass_.table(row, own), own))
            without = pass_.without_each(row, own) + (value - at)
        except RaterwiseError:
            return None
        if not np.isfinite(value):
            return None
        found.append(_Judged(float(value), np.asarray(without)))
    return found[0], found[1]


def _yardstick(
    row: Metric,
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
    reader, model = (
        _ends(row, v, left, sizes, level) for v, left in zip(values, lefts, strict=True)
    )
    gap = values[1] - values[0]
    difference = _ends(None, gap, lefts[1] - lefts[0], sizes, level)
    return Yardstick(row.name, row.title, row.direction, reader, model, difference)


def _ends(
    row: Metric | None, value: float, without: FloatArray, sizes: FloatArray, level: float
) -> Ends:
    try:
        found = linearise(value, without, sizes)
    except RaterwiseError:
        return value, float("nan"), float("nan")
    if row is not None and row.shape == "proportion":
        return (value, *proportion_interval(found, level))
    low, high = student_interval(found, level)
    return (value, *(row.within_bounds(low, high) if row is not None else (low, high)))
