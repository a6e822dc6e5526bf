"""Tests of calibration with a p-value: Spiegelhalter's, and the test of the kernel error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.catalog import Metric, find
from raterwise.densities.laplace import laplace_pairs, squared_kernel_error
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.functions.measure import value_of
from raterwise.inference.draws import resampling_units
from raterwise.inference.p_values import p_of_signs
from raterwise.predictions import Predictions
from raterwise.questions import PerCaseScore, Question
from raterwise.rules import choose, positive, positive_integer
from raterwise.summaries import summarise
from raterwise.types import KernelQuestion, OnUnrated

DRAWS_TOGETHER = 64
"""How many draws are in memory at once."""


@dataclass(frozen=True)
class CalibrationTest:
    """A test of whether the probabilities are calibrated.

    Parameters
    ----------
    statistic : float
        The test statistic.
    p_value : float
        How often a calibrated model would show a statistic this extreme.

    See Also
    --------
    spiegelhalter_test, kernel_calibration_test : return it.

    Examples
    --------
    >>> import raterwise as rw
    >>> round(rw.spiegelhalter_test([0.9, 0.8, 0.3], [1, 0, 0]).p_value, 4)
    0.4679
    """

    statistic: float
    p_value: float


def spiegelhalter_test(
    probs: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    on_unrated: OnUnrated = "error",
) -> CalibrationTest:
    """Return Spiegelhalter's z with its two-sided p-value.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        What the raters said, or one class per case. The mean of several raters varies less than one
        label, so the p-value is then conservative.
    groups : array-like of shape (N,), default None
        The patient of each case. With it, the variance is that of the sums over patients instead of
        that of independent cases.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    CalibrationTest
        z and its p-value from the normal distribution; with `groups`, from Student's t with one
        degree of freedom less than there are patients.

    Raises
    ------
    UndefinedMetricError
        If every probability is 0, 1 or 1/K.

    See Also
    --------
    spiegelhalter_z : the statistic alone.

    References
    ----------
    Spiegelhalter, Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 1986.

    Examples
    --------
    >>> found = spiegelhalter_test([0.9, 0.8, 0.3], [1, 0, 0])
    >>> round(found.statistic, 4), round(found.p_value, 4)
    (0.7259, 0.4679)
    """
    from scipy.special import ndtr
    from scipy.stats import t

    predictions = Predictions.of(probs, labels, groups=groups, on_unrated=on_unrated)
    row = find("spiegelhalter_z")
    own = row.with_defaults({})
    plan = row.plan(own)
    z = value_of(row, own, summarise(predictions, [plan])[plan])
    if predictions.groups is None:
        return CalibrationTest(z, float(2 * ndtr(-abs(z))))
    excess = PerCaseScore("spiegelhalter").score(predictions.read(0, len(predictions))).mu[:, 0]
    sums = np.bincount(predictions.groups, excess)
    if len(sums) < 2:
        raise InvalidInputError(f"groups: must name at least 2 patients; got {len(sums)}")
    z = float(sums.sum() / np.sqrt((sums**2).sum()))
    return CalibrationTest(z, float(2 * t.sf(abs(z), len(sums) - 1)))


def kernel_calibration_test(
    probs: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    question: KernelQuestion = "top_label",
    bandwidth: float = 0.4,
    draws: int = 1000,
    seed: int = 0,
    on_unrated: OnUnrated = "error",
) -> CalibrationTest:
    """Return the squared kernel calibration error with its p-value.

    For a calibrated model, the raters' labels differ from the probabilities only by chance, in
    either direction. The differences of each case, or patient, are therefore multiplied by +1 or -1
    at random (a wild bootstrap), and the p-value is how often the error is then as large. This
    needs no model of the dependence between raters.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    groups : array-like of shape (N,), default None
        The patient of each case; the cases of a patient are kept together.
    question : {"top_label", "positive", "per_class", "canonical"}, default "top_label"
        Is the predicted class right; of two classes, is it class 1; is it class k, the mean over
        all classes; or is the whole vector right, by pairs of cases, whose time grows with the
        square of the cases.
    bandwidth : float, default 0.4
        Bandwidth of the Laplace kernel.
    draws : int, default 1000
        How many.
    seed : int, default 0
        Seed of the draws.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    CalibrationTest
        The debiased squared kernel error and its p-value.

    Raises
    ------
    UndefinedMetricError
        If there are fewer than two cases (patients).

    See Also
    --------
    kernel_calibration_error : the statistic alone.

    References
    ----------
    Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification, NeurIPS 2019.
    Chwialkowski, Sejdinovic & Gretton, A wild bootstrap for degenerate kernel tests, NeurIPS 2014.

    Examples
    --------
    >>> found = kernel_calibration_test([0.9] * 20, [1, 0] * 10, question="positive")
    >>> round(found.statistic, 4), found.p_value < 0.01
    (0.1468, True)
    """
    row = find("kernel_calibration_error")
    choose("question", question, row.questions)
    positive("bandwidth", bandwidth)
    positive_integer("draws", draws)
    positive_integer("seed", seed, least=0)
    predictions = Predictions.of(probs, labels, groups=groups, on_unrated=on_unrated)
    if question == "canonical":
        own = row.with_defaults({"question": question, "bandwidth": bandwidth})
        return _of_rows(row, own, predictions, draws, seed)
    asked = Question(question, "case")
    asked.channels(predictions.num_classes)
    scored = asked.score(predictions.read(0, len(predictions)))
    z, residual = (a.T.astype(np.float64) for a in (scored.z, scored.mu - scored.z))
    cases = z.shape[1]
    unit = np.arange(cases) if predictions.groups is None else predictions.groups
    units = int(unit.max()) + 1
    _require_two(units)
    # Pairs within a patient keep their sign in every draw, so they shift all of them alike.
    pairs = float(_pairs(z, residual[:, None], bandwidth)[0])
    random = np.random.default_rng([seed, cases])
    as_large = 0
    for first in range(0, draws, DRAWS_TOGETHER):
        rows = min(DRAWS_TOGETHER, draws - first)
        signs = random.integers(0, 2, (rows, units)) * 2.0 - 1
        by_chance = _pairs(z, signs[:, unit] * residual[:, None], bandwidth)
        as_large += int((by_chance >= pairs - 1e-12 * abs(pairs)).sum())
    each = [
        squared_kernel_error(score, off, np.ones(cases), bandwidth, "debiased")
        for score, off in zip(z, residual, strict=True)
    ]
    return CalibrationTest(float(np.mean(each)), (as_large + 1) / (draws + 1))


def _require_two(units: int) -> None:
    if units < 2:
        raise UndefinedMetricError(
            "kernel_calibration_test: undefined, it needs two cases of different patients"
        )


def _of_rows(
    row: Metric, own: Mapping[str, Any], predictions: Predictions, draws: int, seed: int
) -> CalibrationTest:
    """Return the test of whole vectors; many cases are pooled into blocks, whose signs are one."""
    unit, units = resampling_units(predictions, seed)
    _require_two(units)
    plan = row.plan(own)
    rows = summarise(predictions, [plan], units=unit, num_units=units)[plan].scores()
    signs = np.random.default_rng([seed, len(predictions)]).integers(0, 2, (draws, units)) * 2 - 1
    assert row.products is not None
    return CalibrationTest(
        value_of(row, own, rows), p_of_signs(row.products(rows, own, units), signs)
    )


def _pairs(
    scores: NDArray[np.float64], residuals: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    """Return the sums over pairs of each draw, over all classes (classes, draws, N)."""
    each = [laplace_pairs(z, off, bandwidth) for z, off in zip(scores, residuals, strict=True)]
    return np.asarray(np.sum(each, axis=0))
