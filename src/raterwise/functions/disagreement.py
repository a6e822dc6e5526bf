"""Losses of predicted statistics of several labels, such as disagreement (LH section 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_float_array, choose, positive_integer
from raterwise.binning import unit_in_last_place
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.functions.measure import check_estimator
from raterwise.labels import Labels
from raterwise.metrics import disagreement, proper
from raterwise.predictions import check_weights
from raterwise.questions import Question, ScoredCases, disagreement_frequency
from raterwise.summaries import BinPlan, BinSums, BinTable

__all__ = [
    "disagreement_calibration_error",
    "disagreement_calibration_loss",
    "disagreement_loss",
    "statistic_calibration_loss",
    "statistic_loss",
]

Statistic = Callable[..., Any]


def disagreement_loss(
    dpe: Any, labels: Labels, weights: Any = None, *, on_single: str = "error"
) -> float:
    """Return the squared loss of predicted disagreement probabilities (LH eq 40 for φ^D).

    `dpe` (N,) is the predicted probability that two raters of the case differ.

    >>> disagreement_loss([0.5, 0.5], Labels.from_counts([[1, 1], [2, 0]]))
    0.25
    """
    table = _disagreement_table(dpe, labels, 1, weights, on_single)
    return float(proper.expected_squared_loss(table))


def disagreement_calibration_loss(
    dpe: Any,
    labels: Labels,
    bins: int = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
    weights: Any = None,
    *,
    on_single: str = "error",
) -> float:
    """Return the squared gap between predicted and observed disagreement (LH eqs 42-45).

    >>> labels = Labels.from_counts([[1, 1], [2, 0], [2, 0]])
    >>> round(disagreement_calibration_loss([0.5, 0.5, 0.5], labels, estimator="plugin"), 4)
    0.0278
    """
    check_estimator(estimator, ("debiased", "plugin"), singletons)
    table = _disagreement_table(dpe, labels, bins, weights, on_single)
    return float(proper.calibration_loss(table, estimator=estimator, singletons=singletons))


def disagreement_calibration_error(
    dpe: Any,
    labels: Labels,
    bins: int = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
    weights: Any = None,
    *,
    on_single: str = "error",
) -> float:
    """Return the root of `disagreement_calibration_loss`, floored at 0.

    >>> labels = Labels.from_counts([[1, 1], [2, 0], [2, 0]])
    >>> round(disagreement_calibration_error([0.5, 0.5, 0.5], labels, estimator="plugin"), 4)
    0.1667
    """
    loss = disagreement_calibration_loss(
        dpe, labels, bins, estimator, singletons, weights, on_single=on_single
    )
    return float(np.sqrt(max(loss, 0.0)))


def statistic_loss(
    statistic: Statistic,
    predicted: Any,
    labels: Labels,
    order: int,
    weights: Any = None,
    *,
    on_single: str = "error",
) -> float:
    """Return the squared loss of a predicted symmetric statistic of `order` labels (LH eq 40).

    Parameters
    ----------
    statistic
        φ of `order` labels of one case, given as a tuple (or as separate arguments where it takes
        several): 0 or 1; or, where `predicted` is (N, M), one of the values 0 … M-1.
    predicted
        (N,) the predicted probability of φ = 1, or (N, M) of each of its values.

    >>> labels = Labels.from_counts([[2, 1], [3, 0]])
    >>> unanimous = lambda three: len(set(three)) == 1
    >>> statistic_loss(unanimous, [0.5, 0.8], labels, order=3)
    0.145
    """
    table = _statistic_table(statistic, predicted, labels, order, 1, weights, on_single)
    return float(disagreement.statistic_loss(table))


def statistic_calibration_loss(
    statistic: Statistic,
    predicted: Any,
    labels: Labels,
    order: int,
    bins: int = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
    weights: Any = None,
    *,
    on_single: str = "error",
) -> float:
    """Return the calibration loss of a predicted symmetric statistic (LH eqs 42-45).

    `statistic` and `predicted` are as for `statistic_loss`; an M-valued one sums over its values.

    >>> labels = Labels.from_counts([[2, 1], [3, 0]])
    >>> unanimous = lambda three: len(set(three)) == 1
    >>> statistic_calibration_loss(unanimous, [0.5, 0.5], labels, order=3, estimator="plugin")
    0.0
    """
    check_estimator(estimator, ("debiased", "plugin"), singletons)
    table = _statistic_table(statistic, predicted, labels, order, bins, weights, on_single)
    return float(
        disagreement.statistic_calibration_loss(table, estimator=estimator, singletons=singletons)
    )


def _disagreement_table(
    dpe: Any, labels: Labels, bins: int, weights: Any, on_single: str
) -> BinTable:
    def observed(counts: NDArray[Any]) -> NDArray[np.float64]:
        return disagreement_frequency(counts)[:, None]

    return _table("dpe", dpe, labels, 2, observed, bins, weights, on_single)


def _statistic_table(
    statistic: Statistic,
    predicted: Any,
    labels: Labels,
    order: int,
    bins: int,
    weights: Any,
    on_single: str,
) -> BinTable:
    if not callable(statistic):
        raise InvalidTypeError(f"statistic: must be a function of labels; got {statistic!r}")
    order = positive_integer("order", order)
    values = 1 if np.ndim(predicted) < 2 else np.shape(predicted)[1]

    def observed(counts: NDArray[Any]) -> NDArray[np.float64]:
        return disagreement.mean_statistic(statistic, counts, order, values)

    return _table("predicted", predicted, labels, order, observed, bins, weights, on_single)


def _table(
    name: str,
    predicted: Any,
    labels: Labels,
    order: int,
    observed: Callable[[NDArray[Any]], NDArray[np.float64]],
    bins: int,
    weights: Any,
    on_single: str,
) -> BinTable:
    """Return the table of predicted probabilities against observed frequencies of a statistic."""
    if not isinstance(labels, Labels):
        raise InvalidTypeError(
            f"labels: must be a Labels with {order} labels per case; got {type(labels).__name__}"
        )
    given = as_float_array(predicted, name, ndim=(1, 2))
    z = given.astype(np.float64)
    z = z[:, None] if z.ndim == 1 else z
    _check_probabilities(z, name, len(labels))
    choose("on_single", on_single, ("error", "drop"))
    labels.require_raters(order, on_single)
    enough = labels.num_raters >= order
    w = check_weights(weights, len(labels))
    enough = enough if w is None else enough & (w > 0)
    scored = ScoredCases(
        np.ascontiguousarray(z[enough]),
        observed(labels.counts[enough]),
        np.ones(int(enough.sum())) if w is None else w[enough],
        rounding=unit_in_last_place(given.dtype),
    )
    plan = BinPlan(Question("disagreement", "case"), bins)
    return BinSums.of_scored(plan, scored, channels=z.shape[1]).table


def _check_probabilities(z: NDArray[np.float64], name: str, cases: int) -> None:
    if len(z) != cases:
        raise InvalidInputError(f"{name}: must match labels; got {len(z)} for {cases} cases")
    if missing := int(np.isnan(z).sum()):
        raise InvalidInputError(f"{name}: must not contain NaN; {missing} values are NaN")
    outside = ~((z >= 0) & (z <= 1)).all(axis=1)
    if outside.any():
        case = int(np.flatnonzero(outside)[0])
        raise InvalidInputError(f"{name}: must lie in [0, 1]; case {case} has {z[case].tolist()}")
