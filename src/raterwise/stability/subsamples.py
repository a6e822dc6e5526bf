"""A metric on random subsets of growing size (RECE Table 1 and Fig 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from raterwise.arrays import as_float_array
from raterwise.beliefs import Belief
from raterwise.brief import brief
from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError
from raterwise.evaluate import predictions_of
from raterwise.inference.settings import Progress, reporting
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.rules import positive_integer
from raterwise.stability.parts import (
    AnyMetric,
    Units,
    measure_of,
    of_known,
    part_of,
    path_of,
)
from raterwise.types import FloatArray, IntArray, OnUnrated, Options, Per, Questions


@dataclass(frozen=True, eq=False)
class SubsampleCurve:
    """A metric on random subsets of growing size.

    Parameters
    ----------
    fractions : tuple of float
        Sizes of the subsets, as fractions of the test set.
    sizes : tuple of int
        Number of cases (patients, if groups were given) in the subsets of each fraction.
    values : ndarray of shape (fractions, repeats)
        The metric on each subset; NaN where it is undefined.
    full : float
        The metric on all cases.
    unit : {"cases", "patients"}, default "cases"
        The unit of `sizes`.

    See Also
    --------
    subsample_curve : returns it.
    plots.StabilityDisplay : draws it.

    Examples
    --------
    >>> curve = subsample_curve("ece", [0.5] * 40, [0, 1] * 20, fractions=(0.5, 1), repeats=4)
    >>> curve.values.shape, curve.full, curve.difference[-1].tolist()
    ((2, 4), 0.0, [0.0, 0.0, 0.0, 0.0])
    """

    __repr__ = brief

    fractions: tuple[float, ...]
    sizes: tuple[int, ...]
    values: FloatArray
    full: float
    unit: Literal["cases", "patients"] = "cases"

    @property
    def mean(self) -> FloatArray:
        """The mean over repeats; NaN where the metric is undefined in all of them."""
        return of_known(np.mean, self.values)

    @property
    def std(self) -> FloatArray:
        """The standard deviation over repeats; NaN where the metric is undefined in all of them."""
        return of_known(np.std, self.values)

    @property
    def difference(self) -> FloatArray:
        """(fractions, repeats): absolute difference from the value on all cases (RECE Fig 2)."""
        return np.abs(self.values - self.full)


def subsample_curve(
    metric: AnyMetric,
    probs: ArrayLike | Belief,
    labels: Labels | ArrayLike,
    fractions: Sequence[float] = (0.01, 0.05, 0.1, 0.25, 0.5, 1),
    repeats: int = 20,
    seed: int = 0,
    *,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    options: Options | None = None,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
    progress: Progress | None = None,
) -> SubsampleCurve:
    """Compute a metric on random subsets of the test set, drawn without replacement (RECE Table 1).

    Parameters
    ----------
    metric : str or callable
        The name of a metric, such as "ece", or any function of (probs, labels).
    probs : array-like of shape (N, K) or (N,), or a belief
        Class probabilities; with shape (N,), the probability of class 1 of two. RECE-M needs an
        `EnsembleBelief`.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    fractions : sequence of float, default (0.01, 0.05, 0.1, 0.25, 0.5, 1)
        Sizes of the subsets, as fractions of the test set.
    repeats : int, default 20
        Number of subsets of each size.
    seed : int, default 0
        Seed for everything random.
    groups : array-like of shape (N,), default None
        The patient of each case; whole patients are then drawn.
    weights : array-like of shape (N,), default None
        Weight of each case wherever it is drawn, as in `evaluate`; all cases are equally likely to
        be drawn. A function is called with the `weights` of the cases drawn.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1, for a metric given by name.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of each case, for a metric given by name, as in `evaluate`.
    per : {"annotation", "case"}, default None
        Whether each label or each case counts once.
    options : mapping, default None
        Options of the metric, as in `evaluate`: {"robust_ece": {"sigma": 0.05}}, or {"sigma":
        0.05}.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases instead of the largest probability, as in `evaluate`.
    outside : array-like of shape (M,) or (M, K), default None
        Out-of-distribution cases, as in `evaluate`; all of them are added to every subset.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    progress : callable, default None
        Function called with a description and the fraction done.

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
    predictions = predictions_of(
        probs, labels, weights, groups, on_unrated=on_unrated, confidence=confidence,
        outside=outside,
    )  # fmt: skip
    measure = measure_of(
        metric, predictions, bins=bins, question=question, per=per, options=options
    )
    return curve_of(predictions, measure, fractions, repeats, seed, progress)


def curve_of(
    predictions: Predictions,
    measure: tuple[Metric, Options] | Callable[..., float],
    fractions: Sequence[float],
    repeats: int,
    seed: int,
    progress: Progress | None = None,
) -> SubsampleCurve:
    """Return a metric with its options, or a function, on random subsets of the cases."""
    repeats = positive_integer("repeats", repeats)
    positive_integer("seed", seed, least=0)
    parts = tuple(as_float_array(fractions, "fractions", ndim=1).tolist())
    if not parts or not all(0 < f <= 1 for f in parts):
        raise InvalidInputError(f"fractions: must be in (0, 1]; got {parts}")
    path, units = path_of(predictions, measure, settled=False), Units.of(predictions)
    report = reporting(progress)

    def on(chosen: IntArray) -> float:
        rows, _ = units.rows(chosen)
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(path(rows, np.zeros(len(rows), np.int64), 1)[0])

    values = np.empty((len(parts), repeats))
    sizes = tuple(part_of(fraction, units.number) for fraction in parts)
    for i, size in enumerate(sizes):
        for r in range(repeats):
            random = np.random.default_rng([seed, i, r])
            values[i, r] = on(random.permutation(units.number)[:size])
            report("subsamples", (i * repeats + r + 1) / (len(parts) * repeats))
    whole = on(np.arange(units.number))
    unit: Literal["cases", "patients"] = "cases" if units.members is None else "patients"
    return SubsampleCurve(parts, sizes, values, whole, unit)
