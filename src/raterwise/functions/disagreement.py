"""Losses of predicted statistics of several labels, such as disagreement (LH section 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_float_array
from raterwise.binning import bin_edges, unit_in_last_place
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.labels import Labels
from raterwise.metrics import disagreement, proper
from raterwise.predictions.checks import counted_weights, row_sum_tolerance
from raterwise.predictions.predictions import rows_of
from raterwise.questions import Question, ScoredCases, disagreement_frequency
from raterwise.rules import choose, contains_nan, positive_integer, spelled
from raterwise.summaries import BinPlan, BinSums, BinTable
from raterwise.types import Debiasing, OnSingle, Singletons

Statistic = Callable[..., Any]


def disagreement_loss(
    predicted: ArrayLike,
    labels: Labels,
    *,
    weights: ArrayLike | None = None,
    on_single: OnSingle = "error",
) -> float:
    """Return the squared loss of predicted disagreement probabilities (LH eq 40 for φ^D).

    Parameters
    ----------
    predicted : array-like of shape (N,) or (N, K)
        The predicted probability that two raters of a case differ, or class probabilities, which
        give 1 - Σ_k p_k², as in `evaluate`.
    labels : Labels
        The raters' labels, with at least two per case.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_single : {"error", "drop"}, default "error"
        Whether cases with too few labels are an error or are left out.

    Returns
    -------
    float
        0 is best; the raters' own disagreement keeps it above 0.

    See Also
    --------
    statistic_loss : the same for any other symmetric statistic of several labels.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eq 40.

    Examples
    --------
    >>> labels = Labels.from_counts([[1, 1], [2, 0]])
    >>> disagreement_loss([0.5, 0.5], labels)
    0.25
    >>> disagreement_loss([[0.5, 0.5], [0.5, 0.5]], labels)  # 1 - Σ p² = 0.5 for both
    0.25
    """
    table = _disagreement_table(predicted, labels, 1, weights, on_single)
    return float(proper.expected_squared_loss(table))


def disagreement_calibration_loss(
    predicted: ArrayLike,
    labels: Labels,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_single: OnSingle = "error",
) -> float:
    """Return the squared gap between predicted and observed disagreement (LH eqs 42-45).

    Parameters
    ----------
    predicted : array-like of shape (N,) or (N, K)
        The predicted probability that two raters of a case differ, or class probabilities, which
        give 1 - Σ_k p_k², as in `evaluate`.
    labels : Labels
        The raters' labels, with at least two per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts the contribution of chance from each bin and may be negative.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to the debiased loss: nothing, or its plug-in value.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_single : {"error", "drop"}, default "error"
        Whether cases with too few labels are an error or are left out.

    Returns
    -------
    float
        0 if the cases of every bin disagree as often as predicted.

    See Also
    --------
    disagreement_calibration_error : its root.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 42-45.

    Examples
    --------
    >>> labels = Labels.from_counts([[1, 1], [2, 0], [2, 0]])
    >>> round(disagreement_calibration_loss([0.5, 0.5, 0.5], labels, estimator="plugin"), 4)
    0.0278
    """
    _check_estimator(estimator, singletons)
    table = _disagreement_table(predicted, labels, bins, weights, on_single)
    return float(proper.calibration_loss(table, estimator=estimator, singletons=singletons))


def disagreement_calibration_error(
    predicted: ArrayLike,
    labels: Labels,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_single: OnSingle = "error",
) -> float:
    """Return the root of `disagreement_calibration_loss`, or 0 if that is negative.

    Parameters
    ----------
    predicted : array-like of shape (N,) or (N, K)
        The predicted probability that two raters of a case differ, or class probabilities, which
        give 1 - Σ_k p_k², as in `evaluate`.
    labels : Labels
        The raters' labels, with at least two per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts the contribution of chance from each bin and may be negative.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to the debiased loss: nothing, or its plug-in value.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_single : {"error", "drop"}, default "error"
        Whether cases with too few labels are an error or are left out.

    Returns
    -------
    float
        In units of a probability.

    See Also
    --------
    disagreement_calibration_loss : its square, which may be negative.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 42-45.

    Examples
    --------
    >>> labels = Labels.from_counts([[1, 1], [2, 0], [2, 0]])
    >>> round(disagreement_calibration_error([0.5, 0.5, 0.5], labels, estimator="plugin"), 4)
    0.1667
    """
    loss = disagreement_calibration_loss(
        predicted, labels, bins, estimator, singletons, weights=weights, on_single=on_single
    )
    return float(np.sqrt(max(loss, 0.0)))


def statistic_loss(
    statistic: Statistic,
    predicted: ArrayLike,
    labels: Labels,
    order: int,
    *,
    weights: ArrayLike | None = None,
    on_single: OnSingle = "error",
) -> float:
    """Return the squared loss of a predicted symmetric statistic of `order` labels (LH eq 40).

    Parameters
    ----------
    statistic : callable
        φ of `order` labels of one case, given as a tuple (or as separate arguments where it takes
        several): 0 or 1; or, where `predicted` is (N, M), one of the values 0 … M-1.
    predicted : array-like of shape (N,) or (N, M)
        The predicted probability of φ = 1, or of each of its M values, which sum to 1.
    labels : Labels
        What the raters said, `order` labels per case or more.
    order : int
        Number of labels that φ depends on.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_single : {"error", "drop"}, default "error"
        Whether cases with too few labels are an error or are left out.

    Returns
    -------
    float
        Summed over the values of an M-valued statistic.

    See Also
    --------
    raterwise.DirichletBelief.statistic : predicts such a statistic from a belief.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eq 40.

    Examples
    --------
    >>> labels = Labels.from_counts([[2, 1], [3, 0]])
    >>> unanimous = lambda three: len(set(three)) == 1
    >>> statistic_loss(unanimous, [0.5, 0.8], labels, order=3)
    0.145
    """
    table = _statistic_table(statistic, predicted, labels, order, 1, weights, on_single)
    return float(proper.expected_squared_loss(table))


def statistic_calibration_loss(
    statistic: Statistic,
    predicted: ArrayLike,
    labels: Labels,
    order: int,
    bins: int | ArrayLike = 15,
    estimator: Debiasing = "debiased",
    singletons: Singletons = "zero",
    *,
    weights: ArrayLike | None = None,
    on_single: OnSingle = "error",
) -> float:
    """Return the calibration loss of a predicted symmetric statistic (LH eqs 42-45).

    Parameters
    ----------
    statistic : callable
        φ of `order` labels of one case, given as a tuple (or as separate arguments where it takes
        several): 0 or 1; or, where `predicted` is (N, M), one of the values 0 … M-1.
    predicted : array-like of shape (N,) or (N, M)
        The predicted probability of φ = 1, or of each of its M values, which sum to 1.
    labels : Labels
        What the raters said, `order` labels per case or more.
    order : int
        Number of labels that φ depends on.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" subtracts the contribution of chance from each bin and may be negative.
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to the debiased loss: nothing, or its plug-in value.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_single : {"error", "drop"}, default "error"
        Whether cases with too few labels are an error or are left out.

    Returns
    -------
    float
        Summed over the values of an M-valued statistic.

    See Also
    --------
    statistic_loss : the whole squared loss, of which this is a part.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eqs 42-45.

    Examples
    --------
    >>> labels = Labels.from_counts([[2, 1], [3, 0]])
    >>> unanimous = lambda three: len(set(three)) == 1
    >>> statistic_calibration_loss(unanimous, [0.5, 0.5], labels, order=3, estimator="plugin")
    0.0
    """
    _check_estimator(estimator, singletons)
    table = _statistic_table(statistic, predicted, labels, order, bins, weights, on_single)
    return float(proper.calibration_loss(table, estimator=estimator, singletons=singletons))


def _disagreement_table(
    predicted: Any, labels: Labels, bins: Any, weights: Any, on_single: str
) -> BinTable:
    _check_labels(labels, 2)
    z = as_float_array(predicted, "predicted", ndim=(1, 2))
    rounding = unit_in_last_place(z.dtype)
    if z.ndim == 2:
        z, rounding = _of_class_probabilities(predicted, labels, z.shape)

    def observed(counts: NDArray[Any]) -> NDArray[np.float64]:
        return disagreement_frequency(counts)[:, None]

    return _table(z[:, None], rounding, labels, 2, observed, bins, weights, on_single)


def _of_class_probabilities(
    predicted: Any, labels: Labels, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], float]:
    """Return 1 - Σ_k p_k² of each case and its rounding, by the rules for class probabilities."""
    if shape != (len(labels), labels.num_classes):
        raise InvalidInputError(
            "predicted: must be (N,) probabilities that two raters differ, or class probabilities "
            f"{(len(labels), labels.num_classes)} like the labels; got shape {shape}"
        )
    rows = rows_of(predicted, "predicted")
    probs = rows.probs.astype(np.float64)
    return np.clip(1 - (probs * probs).sum(axis=1), 0, 1), rows.rounding


def _statistic_table(
    statistic: Statistic,
    predicted: Any,
    labels: Labels,
    order: int,
    bins: Any,
    weights: Any,
    on_single: str,
) -> BinTable:
    if not callable(statistic):
        raise InvalidTypeError(f"statistic: must be a function of labels; got {statistic!r}")
    order = positive_integer("order", order)
    _check_labels(labels, order)
    z = as_float_array(predicted, "predicted", ndim=(1, 2))
    if z.ndim == 2:
        _check_sums(z.astype(np.float64), row_sum_tolerance(predicted, z))
    else:
        z = z[:, None]

    def observed(counts: NDArray[Any]) -> NDArray[np.float64]:
        return disagreement.mean_statistic(statistic, counts, order, z.shape[1])

    rounding = unit_in_last_place(z.dtype)
    return _table(z, rounding, labels, order, observed, bins, weights, on_single)


def _check_estimator(estimator: str, singletons: str) -> None:
    choose("estimator", estimator, ("debiased", "plugin"))
    choose("singletons", singletons, ("zero", "plugin"))


def _check_labels(labels: Any, order: int) -> None:
    if not isinstance(labels, Labels):
        raise InvalidTypeError(
            f"labels: must be a Labels with {order} labels per case; got {type(labels).__name__}"
        )


def _check_sums(z: NDArray[np.float64], tolerance: float) -> None:
    """Raise where the probabilities of the values of a statistic are not those of all of them."""
    if z.shape[1] < 2:
        raise InvalidInputError(
            "predicted: must be (N,), or (N, M) for a statistic of M >= 2 values; "
            f"got shape {z.shape}"
        )
    wrong = np.abs(z.sum(axis=1) - 1) > tolerance
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            f"predicted: rows must sum to 1 within {spelled(tolerance)}, over the values of the "
            f"statistic; row {row} sums to {z[row].sum():.6g}"
        )


def _table(
    given: NDArray[Any],
    rounding: float,
    labels: Labels,
    order: int,
    observed: Callable[[NDArray[Any]], NDArray[np.float64]],
    bins: Any,
    weights: Any,
    on_single: str,
) -> BinTable:
    """Return the table of predicted probabilities against observed frequencies of a statistic."""
    z = given.astype(np.float64)
    _check_probabilities(z, len(labels))
    choose("on_single", on_single, ("error", "drop"))
    w = counted_weights(labels, weights, order, on_single)
    enough = (labels.num_raters >= order) & (w > 0)
    scored = ScoredCases(
        np.ascontiguousarray(z[enough]), observed(labels.counts[enough]), w[enough],
        rounding=rounding,
    )  # fmt: skip
    edges = tuple(bin_edges(bins).tolist())
    plan = BinPlan(Question("disagreement", "case"), edges)
    return BinSums.of_scored(plan, scored, channels=z.shape[1]).table


def _check_probabilities(z: NDArray[np.float64], cases: int) -> None:
    if len(z) != cases:
        raise InvalidInputError(f"predicted: must match labels; got {len(z)} for {cases} cases")
    if missing := int(np.isnan(z).sum()):
        raise contains_nan("predicted", missing)
    outside = ~((z >= 0) & (z <= 1)).all(axis=1)
    if outside.any():
        case = int(np.flatnonzero(outside)[0])
        raise InvalidInputError(
            f"predicted: must lie in [0, 1]; case {case} has {z[case].tolist()}"
        )
