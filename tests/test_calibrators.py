"""Calibrators: their optima, their laws, scikit-learn's interface, saving, and what they refuse."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from raterwise.calibrators import saved
from raterwise.calibrators._cases import CalibrationSet
from raterwise.calibrators._linear import LinearLikelihood
from raterwise.calibrators._temperature import _Sums
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.cross_validation import (
    MatrixScalingCV,
    VectorScalingCV,
    patient_folds,
)
from raterwise.calibrators.nonparametric import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    _BinomialLikelihood,
)
from raterwise.calibrators.scaling import (
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
    diagonal_penalty,
    full_penalty,
)
from raterwise.errors import InvalidInputError, InvalidTypeError, RaterwiseWarning
from raterwise.kernels import _threads
from raterwise.kernels._threads import with_threads
from raterwise.labels import Labels

Array = npt.NDArray[Any]

ALL = (
    TemperatureScaling(),
    VectorScaling(bias_l2=0.1),
    MatrixScaling(off_diagonal_l2=0.1, bias_l2=0.1),
    DirichletCalibration(),
    DirichletCalibration("diagonal", bias_l2=0.1),
    DirichletCalibration("fixed_diagonal"),
    IsotonicCalibration(),
    HistogramBinning(bins=5),
    HistogramBinning(bins=5, strategy="quantile"),
    BetaCalibration(),
    VectorScalingCV(folds=3),
    MatrixScalingCV(off_diagonal_l2=(0.1, 1), bias_l2=(0.1,), folds=3),
)
CONVEX = ALL[:6]
each_calibrator = pytest.mark.parametrize("calibrator", ALL, ids=repr)


def softmax(logits: Array) -> Array:
    """The definition."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def simulated(
    cases: int = 300, classes: int = 3, raters: int = 3, seed: int = 0
) -> tuple[Array, Labels]:
    """Overconfident logits and raters who choose with probabilities softmax(0.6 u + b)."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(cases, classes))
    truth = softmax(0.6 * logits + 0.2 * np.arange(classes))
    return logits, Labels.from_counts(rng.multinomial(raters, truth))


def naive_loss(probs: Array, counts: Array) -> float:
    """LH eq 82, term by term."""
    total = sum(
        counts[i, k] * np.log(probs[i, k])
        for i in range(len(counts))
        for k in range(counts.shape[1])
        if counts[i, k]
    )
    return float(-total / counts.sum())


# the optimum -------------------------------------------------------------------------------


def test_temperature_of_hand_worked_cases() -> None:
    """Logits (u, 0), right in a fraction r of the ratings: u/T = log(r / (1 - r))."""
    logits = np.array([[3.0, 0.0], [0.0, 3.0]])
    calibrator = TemperatureScaling().fit(logits, Labels.from_counts([[7, 2], [3, 8]]))
    assert calibrator.temperature_ == pytest.approx(3 / np.log(15 / 5), rel=1e-13)
    assert calibrator.loss_ == pytest.approx(
        -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)), rel=1e-13
    )
    np.testing.assert_allclose(calibrator.predict_proba(logits[:1]), [[0.75, 0.25]], rtol=1e-13)


@pytest.mark.parametrize("calibrator", [*CONVEX[:1], VectorScaling(), MatrixScaling(), *CONVEX[3:]])
def test_what_is_calibrated_stays_as_it_is(calibrator: Any) -> None:
    """Where the raters' frequencies are the predicted probabilities, the identity is the best map.

    The gradient of the likelihood is Σ (z - μ) x, which is 0 at z = μ.
    """
    counts = np.random.default_rng(0).integers(1, 9, (40, 3))
    logits = np.log(counts)
    calibrated = clone(calibrator).set_params(**_without_penalty(calibrator))
    calibrated.fit(logits, Labels.from_counts(counts))
    np.testing.assert_allclose(calibrated.predict_proba(logits), softmax(logits), atol=1e-9)


def _without_penalty(calibrator: Any) -> dict[str, float]:
    return {name: 0.0 for name in calibrator.get_params() if name.endswith("l2")}


def test_beta_calibration_of_calibrated_cases_is_the_identity() -> None:
    """Frequencies equal to p: a = b = 1, c = 0 has a gradient of 0."""
    positives = np.arange(1, 10)
    counts = Labels.from_counts(np.column_stack((10 - positives, positives)))
    calibrator = BetaCalibration(input="probs").fit(positives / 10, counts)
    np.testing.assert_allclose(calibrator.coef_, [[1, 1]], atol=1e-8)
    np.testing.assert_allclose(calibrator.intercept_, [0], atol=1e-8)


@pytest.mark.parametrize("calibrator", CONVEX, ids=repr)
def test_the_gradient_vanishes(calibrator: Any) -> None:
    """Newton ends at a gradient norm below 1e-8, and nothing nearby is better."""
    logits, labels = simulated()
    fitted = clone(calibrator).fit(logits, labels)
    assert fitted.gradient_norm_ <= 1e-8
    if not any(_without_penalty(calibrator)):
        best = naive_loss(fitted.predict_proba(logits), labels.counts)
        assert fitted.loss_ == pytest.approx(best, rel=1e-12)


def vector_objective(theta: Array, logits: Array, counts: Array) -> float:
    """LH eq 82 + eq 48 with λ_b = 0.3, for (v, b)."""
    v, b = theta.reshape(2, -1)
    log_z = log_softmax(logits * v + b, axis=1)
    return float(-(counts * log_z).sum() / counts.sum() + 0.3 * np.mean(b**2))


def matrix_objective(theta: Array, logits: Array, counts: Array) -> float:
    """LH eq 82 + eq 49 with λ_w = 0.7 and λ_b = 0.3, for (W, b)."""
    classes = logits.shape[1]
    w, b = theta[: classes**2].reshape(classes, classes), theta[classes**2 :]
    log_z = log_softmax(logits @ w.T + b, axis=1)
    off_diagonal = np.mean([w[i, j] ** 2 for i in range(classes) for j in range(classes) if i != j])
    return float(-(counts * log_z).sum() / counts.sum() + 0.7 * off_diagonal + 0.3 * np.mean(b**2))


@pytest.mark.parametrize(
    ("calibrator", "objective", "start"),
    [
        (VectorScaling(bias_l2=0.3), vector_objective, np.repeat([1.0, 0.0], 3)),
        (
            MatrixScaling(off_diagonal_l2=0.7, bias_l2=0.3),
            matrix_objective,
            np.append(np.eye(3).ravel(), np.zeros(3)),
        ),
    ],
    ids=["vector", "matrix"],
)
def test_penalised_optimum_against_scipy(
    calibrator: Any, objective: Callable[..., float], start: Array
) -> None:
    """LH eqs 48, 49 and 82 as printed, minimised by SciPy, give the same loss and parameters."""
    logits, labels = simulated()
    found = minimize(objective, start, (logits, labels.counts), tol=1e-10, options={"gtol": 1e-7})
    fitted = clone(calibrator).fit(logits, labels)
    assert fitted.loss_ == pytest.approx(found.fun, abs=1e-11)
    ours = np.append(fitted.coef_.ravel(), fitted.intercept_)
    np.testing.assert_allclose(ours, found.x, rtol=0, atol=1e-4)


def test_temperature_of_many_cases_is_the_zero_of_the_naive_slope() -> None:
    """With enough cases for a thinned start, T is where SciPy finds dL/dβ = 0."""
    logits, labels = simulated(cases=5000, classes=4, raters=1, seed=2)
    chosen = logits[np.arange(5000), labels.majority()].mean()
    root = brentq(
        lambda beta: (softmax(beta * logits) * logits).sum(axis=1).mean() - chosen,
        0.1,
        2,
        xtol=1e-14,
    )
    calibrator = TemperatureScaling().fit(logits, labels)
    assert 1 / calibrator.temperature_ == pytest.approx(root, rel=1e-11)


def test_known_truths_are_found() -> None:
    """With many cases the map that made the labels comes back."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(60_000, 3))
    truth = np.array([[0.8, 0.3, -0.3], [0.1, 0.5, 0.0], [0.0, -0.2, 1.1]])
    bias = np.array([0.3, -0.5, 0.2])
    labels = Labels.from_counts(rng.multinomial(2, softmax(logits @ truth.T + bias)))
    calibrator = MatrixScaling().fit(logits, labels)
    # Only differences between rows can be known; a standard error is about 0.01.
    np.testing.assert_allclose(
        calibrator.coef_ - calibrator.coef_.mean(axis=0), truth - truth.mean(axis=0), atol=0.04
    )
    np.testing.assert_allclose(calibrator.intercept_, bias - bias.mean(), atol=0.04)
    labels = Labels.from_counts(rng.multinomial(1, softmax(logits / 2.5)))
    assert TemperatureScaling().fit(logits, labels).temperature_ == pytest.approx(2.5, abs=0.08)


def test_beta_calibration_is_constrained_logistic_regression() -> None:
    """It minimises the log loss of a ln p - b ln(1-p) + c over a, b ≥ 0, as SciPy's bounds do."""
    rng = np.random.default_rng(3)
    p = rng.beta(2, 2, 400)
    for truth in (p**1.5 / (p**1.5 + 2 * (1 - p)), 0.9 * (1 - p), 0.3 + 0.4 * p**8):
        y = (rng.random(400) < truth).astype(int)

        def loss(theta: Array, y: Array = y) -> float:
            odds = theta[0] * np.log(p) - theta[1] * np.log(1 - p) + theta[2]
            return float(np.mean(np.logaddexp(0, odds) - y * odds))

        found = minimize(
            loss, [1, 1, 0], bounds=[(0, None), (0, None), (None, None)], options={"ftol": 1e-15}
        )
        calibrator = BetaCalibration(input="probs").fit(p, y)
        ours = np.append(calibrator.coef_[0], calibrator.intercept_)
        assert (ours[:2] >= 0).all()
        assert loss(ours) <= found.fun + 1e-10
        np.testing.assert_allclose(ours, found.x, rtol=0, atol=2e-3)


# derivatives -------------------------------------------------------------------------------


def assert_derivatives(objective: Any, theta: Array) -> None:
    """Compare gradient and Hessian with central differences."""
    step = 1e-5
    gradient, hessian = objective.gradient(theta).ravel(), objective.hessian(theta)
    for i in range(theta.size):
        move = np.zeros(theta.size)
        move[i] = step
        up, down = theta + move.reshape(theta.shape), theta - move.reshape(theta.shape)
        slope = (objective.value(up)[0] - objective.value(down)[0]) / (2 * step)
        curvature = (objective.gradient(up) - objective.gradient(down)).ravel() / (2 * step)
        assert gradient[i] == pytest.approx(slope, abs=1e-8)
        np.testing.assert_allclose(hessian[i], curvature, rtol=0, atol=1e-8)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_derivatives_of_the_linear_likelihood(form: str) -> None:
    """Gradient and Hessian are the differences of value and gradient."""
    logits, labels = simulated(cases=50)
    penalty = diagonal_penalty(3, 0.3) if form == "diagonal" else full_penalty(3, 0.7, 0.3)
    targets = CalibrationSet(logits, labels, np.linspace(0.5, 2, 50)).targets
    theta = np.random.default_rng(0).normal(size=penalty.shape)
    assert_derivatives(LinearLikelihood(logits, targets, penalty), theta)


def test_derivatives_of_the_binomial_likelihood() -> None:
    """Gradient and Hessian are the differences of value and gradient."""
    rng = np.random.default_rng(0)
    masses = rng.random(30)
    objective = _BinomialLikelihood(rng.normal(size=(30, 3)), masses * rng.random(30), masses)
    assert_derivatives(objective, rng.normal(size=3))


def test_derivatives_of_the_tempered_loss() -> None:
    """One pass gives LH eq 82 at β and its first three derivatives."""
    logits, labels = simulated(cases=40)
    cases = CalibrationSet(logits, labels, None)
    sums = _Sums(cases)
    low, here, high = (sums.at(beta) for beta in (0.7 - 1e-5, 0.7, 0.7 + 1e-5))
    assert here.loss == pytest.approx(naive_loss(softmax(0.7 * logits), labels.counts), rel=1e-13)
    assert here.first == pytest.approx((high.loss - low.loss) / 2e-5, abs=1e-8)
    assert here.second == pytest.approx((high.first - low.first) / 2e-5, abs=1e-8)
    assert here.third == pytest.approx((high.second - low.second) / 2e-5, abs=1e-8)


# laws ---------------------------------------------------------------------------------------


@each_calibrator
def test_histograms_are_repeated_single_labels(calibrator: Any) -> None:
    """A case with three labels is three cases with one, in every calibrator."""
    logits, labels = simulated(cases=120)
    rows, classes = np.nonzero(labels.counts)
    times = labels.counts[rows, classes]
    repeated = np.repeat(rows, times), np.repeat(classes, times)
    test = simulated(cases=50, seed=9)[0]
    options, single = _same_folds(calibrator, len(logits), repeated[0])
    together = clone(calibrator).fit(logits, labels, **options).predict_proba(test)
    apart = clone(calibrator).fit(logits[repeated[0]], repeated[1], **single).predict_proba(test)
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-9)


@each_calibrator
def test_weights_are_repetitions(calibrator: Any) -> None:
    """A case of weight 2 counts as two cases, one of weight 0 as none."""
    logits, labels = simulated(cases=120)
    weights = np.random.default_rng(5).integers(0, 3, 120)
    rows = np.repeat(np.arange(120), weights)
    test = simulated(cases=50, seed=9)[0]
    options, repeated = _same_folds(calibrator, 120, rows)
    weighted = clone(calibrator).fit(logits, labels, sample_weight=weights, **options)
    apart = clone(calibrator).fit(logits[rows], labels.take(rows), **repeated)
    np.testing.assert_allclose(
        weighted.predict_proba(test), apart.predict_proba(test), rtol=0, atol=1e-9
    )


def _same_folds(calibrator: Any, cases: int, rows: Array) -> tuple[dict[str, Any], dict[str, Any]]:
    """Groups that keep copies of a case together, for those that split the cases."""
    if not hasattr(calibrator, "folds"):
        return {}, {}
    return {"groups": np.arange(cases)}, {"groups": np.asarray(rows)}


@given(
    hnp.arrays(np.float64, (6, 3), elements=st.floats(-1e3, 1e3)),
    st.floats(-12, 12),
)
def test_temperature_never_changes_the_predicted_class(logits: Array, log_t: float) -> None:
    """The class of the largest logit stays the most probable, whatever T and however close."""
    calibrator = TemperatureScaling(input="logits")
    calibrator.fit([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 1, 0])
    calibrator.temperature_ = float(np.exp(log_t))
    probs = calibrator.predict_proba(logits)
    np.testing.assert_array_equal(probs.argmax(axis=1), logits.argmax(axis=1))
    np.testing.assert_array_equal(calibrator.predict(logits), logits.argmax(axis=1))
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)


def test_temperature_scales_with_the_logits() -> None:
    """Logits times c have c times the temperature, from 1e-6 to 1e6."""
    logits, labels = simulated()
    base = TemperatureScaling().fit(logits, labels).temperature_
    for factor in (1e-6, 1e-3, 7.0, 1e3, 1e6):
        scaled = TemperatureScaling().fit(factor * logits, labels).temperature_
        assert scaled == pytest.approx(factor * base, rel=1e-9)


MAPS_OF_PROBABILITIES = (ALL[0], *ALL[3:10])
"""Vector and matrix scaling map bare logits, in which a constant may be seen."""


@pytest.mark.parametrize("calibrator", MAPS_OF_PROBABILITIES, ids=repr)
def test_a_constant_added_to_the_logits_changes_nothing(calibrator: Any) -> None:
    """Logits are known up to a constant for each case, and maps of probabilities do not see it."""
    logits, labels = simulated()
    shifts = np.random.default_rng(0).normal(size=(300, 1))
    plain = clone(calibrator).fit(logits, labels).predict_proba(logits)
    shifted = clone(calibrator).fit(logits + shifts, labels).predict_proba(logits + shifts)
    np.testing.assert_allclose(plain, shifted, atol=1e-9)


@each_calibrator
def test_probabilities_and_their_logarithms_are_the_same_input(calibrator: Any) -> None:
    """`input="probs"` with p is `input="logits"` with ln p; rows sum to 1."""
    logits, labels = simulated()
    probs = softmax(logits)
    from_probs = clone(calibrator).set_params(input="probs").fit(probs, labels)
    from_logits = clone(calibrator).fit(np.log(probs), labels)
    calibrated = from_probs.predict_proba(probs)
    np.testing.assert_allclose(calibrated, from_logits.predict_proba(np.log(probs)), atol=1e-9)
    np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-12)
    assert ((calibrated >= 0) & (calibrated <= 1)).all()


@each_calibrator
@pytest.mark.parametrize("input", ["logits", "probs"])
def test_two_classes_in_one_column(calibrator: Any, input: str) -> None:
    """(N,) is the logit or probability of class 1, and is what two columns say."""
    logits, labels = simulated(classes=2)
    one = logits[:, 1] - logits[:, 0]
    two = np.column_stack((-one / 2, one / 2))
    if input == "probs":
        one, two = 1 / (1 + np.exp(-one)), softmax(two)
    made = clone(calibrator).set_params(input=input)
    from_one = clone(made).fit(one, labels).predict_proba(one)
    from_two = clone(made).fit(two, labels).predict_proba(two)
    assert from_one.shape == (300, 2)
    np.testing.assert_allclose(from_one, from_two, atol=1e-8)


@each_calibrator
def test_single_precision_and_other_layouts(calibrator: Any) -> None:
    """float32, Fortran order, lists and read-only arrays are taken, and left as they were."""
    logits, labels = simulated(cases=100)
    logits = logits.astype(np.float32)
    logits.setflags(write=False)
    expected = clone(calibrator).fit(logits.astype(np.float64), labels).predict_proba(logits)
    for same in (logits, np.asfortranarray(logits), logits.tolist()):
        found = clone(calibrator).fit(same, labels).predict_proba(same)
        np.testing.assert_allclose(found, expected, atol=2e-7)


def test_the_number_of_threads_changes_no_digit() -> None:
    """One thread and four give the same temperature and the same matrix, bit by bit."""
    logits, labels = simulated(cases=100_000, classes=4)
    few = [TemperatureScaling().fit(logits, labels).temperature_]
    small, small_labels = logits[:60_000], labels.take(np.arange(60_000))
    matrices = [MatrixScaling().fit(small, small_labels).coef_]
    for threads in (1, 4):
        with with_threads(threads):
            few.append(TemperatureScaling().fit(logits, labels).temperature_)
            matrices.append(MatrixScaling().fit(small, small_labels).coef_)
    assert few[0] == few[1] == few[2]
    np.testing.assert_array_equal(matrices[0], matrices[1])
    np.testing.assert_array_equal(matrices[0], matrices[2])


@pytest.mark.parametrize("calibrator", [TemperatureScaling(), MatrixScaling()], ids=repr)
def test_the_one_setting_of_threads_holds(calibrator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread no helper is asked; with two, some are."""
    logits, labels = simulated(cases=100_000, classes=4)
    asked: list[int] = []
    pool = _threads._pool()

    class Counting:
        def submit(self, *work: Any) -> Any:
            asked.append(1)
            return pool.submit(*work)

    monkeypatch.setattr(_threads, "_pool", Counting)
    with with_threads(1):
        clone(calibrator).fit(logits, labels)
    assert not asked
    with with_threads(2):
        clone(calibrator).fit(logits, labels)
    assert asked


# isotonic, histogram binning -------------------------------------------------------------------


def test_isotonic_is_scikit_learns_on_two_classes() -> None:
    """Class 1 is mapped by IsotonicRegression with clipping, class 0 gets the rest."""
    logits, labels = simulated(classes=2, raters=1)
    p, test = softmax(logits)[:, 1], np.linspace(0, 1, 201)
    y = labels.majority()
    peer = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(test)
    ours = IsotonicCalibration(input="probs").fit(p, y).predict_proba(test)
    np.testing.assert_allclose(ours, np.column_stack((1 - peer, peer)), atol=1e-12)


def test_isotonic_pools_hand_worked_neighbours() -> None:
    """0.2 (0 of 1) and 0.4 (3 of 4) rise; 0.6 (1 of 4) falls below and is pooled to 4 of 8."""
    counts = Labels.from_counts([[1, 0], [1, 3], [3, 1], [0, 2]])
    calibrator = IsotonicCalibration(input="probs").fit([0.2, 0.4, 0.6, 0.9], counts)
    found = calibrator.predict_proba([0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 1.0])[:, 1]
    np.testing.assert_allclose(found, [0, 0, 0.25, 0.5, 0.5, 1, 1], atol=1e-12)


@given(st.integers(0, 1000))
def test_maps_of_two_classes_never_decrease(seed: int) -> None:
    """A larger probability is never mapped to a smaller one (isotonic and beta)."""
    logits, labels = simulated(cases=60, classes=2, seed=seed)
    p = softmax(logits)[:, 1]
    for calibrator in (IsotonicCalibration(input="probs"), BetaCalibration(input="probs")):
        mapped = calibrator.fit(p, labels).predict_proba(np.linspace(0, 1, 101))[:, 1]
        assert (np.diff(mapped) >= 0).all()


def test_histogram_binning_of_hand_worked_cases() -> None:
    """Frequencies of ratings, not of cases; 0.5 is in the upper bin; an empty bin keeps 0.375."""
    counts = Labels.from_counts([[1, 1], [5, 1], [1, 3], [0, 4]])
    calibrator = HistogramBinning(bins=4, input="probs").fit([0.0, 0.2, 0.5, 1.0], counts)
    np.testing.assert_allclose(calibrator.values_[0], [2 / 8, 0.375, 3 / 4, 1], rtol=1e-12)
    found = calibrator.predict_proba([0.24, 0.3, 0.74, 0.75])[:, 1]
    np.testing.assert_allclose(found, [0.25, 0.375, 0.75, 1], rtol=1e-12)


def test_equal_mass_bins_of_hand_worked_cases() -> None:
    """Two bins with four ratings each: the first case alone against the other three."""
    counts = Labels.from_counts([[3, 1], [1, 0], [0, 1], [0, 2]])
    calibrator = HistogramBinning(bins=2, strategy="quantile", input="probs")
    calibrator.fit([0.1, 0.3, 0.4, 0.6], counts)
    np.testing.assert_allclose(calibrator.edges_[0], [0, 0.3, 1])
    np.testing.assert_allclose(calibrator.values_[0], [1 / 4, 3 / 4], rtol=1e-12)


def test_classes_are_normalised_and_zeros_become_uniform() -> None:
    """Mapped probabilities are divided by their sum; three zeros become thirds."""
    probs = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    calibrator = IsotonicCalibration(input="probs").fit(probs, [0, 1, 2])
    found = calibrator.predict_proba([[0.45, 0.45, 0.1], [0.1, 0.45, 0.45], [0.8, 0.1, 0.1]])
    np.testing.assert_allclose(found, [[0.5, 0.5, 0], [0, 0.5, 0.5], [1, 0, 0]], atol=1e-12)
    calibrator = HistogramBinning(bins=[0, 0.5, 1], input="probs").fit(probs, [0, 1, 2])
    np.testing.assert_allclose(calibrator.predict_proba([[0.4, 0.4, 0.2]]), [[1 / 3] * 3])


# where there is no optimum --------------------------------------------------------------------


def test_temperature_of_cases_told_apart() -> None:
    """No mistake in the calibration set: T -> 0 is best, so it is stopped there with a warning."""
    logits = np.array([[2.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.warns(ConvergenceWarning, match=r"every rater chose .* stopped at T = 0\.0"):
        calibrator = TemperatureScaling().fit(logits, [0, 1, 2])
    assert 0 < calibrator.temperature_ < 0.1
    assert calibrator.gradient_norm_ <= 1e-8
    assert calibrator.loss_ < 1e-8


def test_temperature_of_logits_that_say_nothing() -> None:
    """Always wrong: T -> ∞ is best, all but uniform, and the predicted class stays."""
    logits = np.array([[2.0, 0], [0, 2]])
    with pytest.warns(ConvergenceWarning, match="the logits say nothing about the labels"):
        calibrator = TemperatureScaling().fit(logits, [1, 0])
    np.testing.assert_allclose(calibrator.predict_proba(logits), 0.5, atol=1e-7)
    np.testing.assert_array_equal(calibrator.predict(logits), [0, 1])


@pytest.mark.parametrize("calibrator", [VectorScaling(), MatrixScaling(), BetaCalibration()])
def test_linear_maps_of_cases_told_apart_warn(calibrator: Any) -> None:
    """No finite map is best where nothing is in doubt; the warning says so, where fit is called."""
    logits = np.array([[2.0, 0], [1.5, 0], [0, 1], [0, 2], [0, 3]])
    with pytest.warns(ConvergenceWarning, match="told apart without a mistake") as caught:
        clone(calibrator).fit(logits, [0, 0, 1, 1, 1])
    assert caught[-1].filename == __file__


def test_too_few_steps_warn() -> None:
    """What was not reached is said, with the gradient norm."""
    logits, labels = simulated()
    with pytest.warns(ConvergenceWarning, match="stopped at a gradient norm of .* after 1 Newton"):
        VectorScaling(max_iter=1).fit(logits, labels)


# what is refused ----------------------------------------------------------------------------

LOGITS = 2 * np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
CLASSES = np.array([0, 1, 2, 2])


@each_calibrator
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (LOGITS * np.nan, CLASSES, r"logits: must not contain NaN; 12 values .* row 0"),
        (
            np.where(LOGITS > 0, -np.inf, 0),
            CLASSES,
            r"logits: must be finite; row 0 holds -inf .*input=\"probs\"",
        ),
        (LOGITS, CLASSES[:3], r"labels: must match logits; got 3 labels for 4 cases"),
        (LOGITS[:, :1], CLASSES, r"logits: must have at least 2 classes, or be \(N,\)"),
        (LOGITS[:0], CLASSES[:0], "logits: must hold at least one case"),
        (LOGITS[:1], CLASSES[:1], "logits: must hold at least 2 cases to calibrate on; got 1"),
        (LOGITS, [1, 1, 1, 1], "labels: must be of at least 2 classes .* all are of class 1"),
        (LOGITS, [0, 1, 2, 3], "labels: must be classes 0 … 2; entry 3 is 3"),
        (LOGITS, np.eye(4), r"labels: a plain array must be \(N,\).* got shape \(4, 4\)"),
        (LOGITS, None, "labels: .* is None"),
        (
            LOGITS,
            Labels.from_counts([[1, 0], [0, 1], [1, 0], [0, 1]]),
            "got 2 classes in labels and 3 in logits",
        ),
        (
            LOGITS,
            Labels.from_counts([[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]]),
            "every case needs a rating; 1 of 4 has none .case 1.",
        ),
    ],
)
def test_bad_cases_are_refused(calibrator: Any, logits: Any, labels: Any, message: str) -> None:
    """The error names the argument, the rule and the value, for every calibrator."""
    with pytest.raises(InvalidInputError, match=message):
        clone(calibrator).fit(logits, labels)


@each_calibrator
def test_a_missing_class_is_named(calibrator: Any) -> None:
    """Every calibrator but temperature scaling needs each class, and names the missing ones."""
    logits, _ = simulated(cases=9)
    names = ["normal", "benign", "malignant"]
    labels = Labels.from_classes([0, 2] * 4 + [0], num_classes=3, class_names=names)
    if isinstance(calibrator, TemperatureScaling):
        assert clone(calibrator).fit(logits, labels).temperature_ > 0
        return
    with pytest.raises(InvalidInputError, match=r"every class must occur.* class 1 \('benign'\)"):
        clone(calibrator).fit(logits, labels)


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (TemperatureScaling(input="scores"), "input: must be one of logits, probs; got 'scores'"),
        (VectorScaling(bias_l2=-1), "bias_l2: must be finite and not negative; got -1"),
        (MatrixScaling(off_diagonal_l2=np.nan), "off_diagonal_l2: must be finite and not negative"),
        (MatrixScaling(bias_l2="1"), "bias_l2: must be a number; got '1'"),
        (VectorScaling(max_iter=0), "max_iter: must be at least 1; got 0"),
        (DirichletCalibration("square"), "form: must be one of full, diagonal, fixed_diagonal"),
        (DirichletCalibration("diagonal", 1.0), "off_diagonal_l2: must be 0 for form='diagonal'"),
        (DirichletCalibration("fixed_diagonal", l2=1.0), "l2: must be 0 for form='fixed_diagonal'"),
        (HistogramBinning(bins=0), "bins: must be at least 1; got 0"),
        (HistogramBinning(strategy="even"), "strategy: must be one of uniform, quantile"),
        (
            VectorScalingCV(bias_l2=(), folds=2),
            r"bias_l2: must be the values to choose from; got \(\)",
        ),
        (VectorScalingCV(folds=1), "folds: must be at least 2; got 1"),
        (VectorScalingCV(folds=5), "folds: must be at most the 4 cases; got 5"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_bad_parameters_are_refused(calibrator: Any, message: str) -> None:
    """Parameters are checked when the calibrator is fitted, as scikit-learn asks."""
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        calibrator.fit(LOGITS, CLASSES)


def test_a_full_matrix_needs_cases() -> None:
    """Without a penalty, K + 1 cases can always be told apart."""
    with pytest.raises(InvalidInputError, match="needs more than 4 cases for 3 classes; got 4"):
        MatrixScaling().fit(LOGITS, CLASSES)
    assert MatrixScaling(1, 1).fit(LOGITS, CLASSES).gradient_norm_ <= 1e-8


def test_equal_logits_have_no_temperature() -> None:
    """Logits that never differ between the classes cannot be scaled."""
    with pytest.raises(InvalidInputError, match="logits: must differ between the classes"):
        TemperatureScaling().fit(np.ones((4, 3)), CLASSES)


def test_bad_probabilities_are_refused() -> None:
    """`input="probs"` is checked as probabilities are everywhere; logits are never guessed."""
    with pytest.raises(InvalidInputError, match=r"probs: must lie in \[0, 1\]; row 0 holds 2"):
        TemperatureScaling(input="probs").fit(LOGITS, CLASSES)
    with pytest.raises(InvalidInputError, match=r"probs: rows must sum to 1 within 1e-4; row 0"):
        TemperatureScaling(input="probs").fit(LOGITS / 4, CLASSES)
    with pytest.raises(InvalidTypeError, match="logits: must be an array of numbers"):
        TemperatureScaling().fit([["a", "b"]], [0])


def test_bad_weights_are_refused() -> None:
    """Case weights are called what scikit-learn calls them."""
    with pytest.raises(InvalidInputError, match="sample_weight: must be finite and not negative"):
        TemperatureScaling().fit(LOGITS, CLASSES, sample_weight=[1, -1, 1, 1])
    with pytest.raises(InvalidInputError, match=r"every class must occur.*missing: class 0"):
        VectorScaling().fit(LOGITS, CLASSES, sample_weight=[0, 1, 1, 1])


@each_calibrator
def test_predicting_is_checked(calibrator: Any) -> None:
    """Before a fit, and with another number of classes, it says so."""
    with pytest.raises(NotFittedError):
        clone(calibrator).predict_proba(LOGITS)
    logits, labels = simulated()
    fitted = clone(calibrator).fit(logits, labels)
    with pytest.raises(InvalidInputError, match="must have the 3 classes of the fit; got 2"):
        fitted.predict_proba(LOGITS[:, :2])


def test_probabilities_of_zero_and_one_are_taken() -> None:
    """An exact 0 counts as the smallest number of its type: finite, and below all others."""
    probs = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.3, 0.7], [0.2, 0.6, 0.2]] * 3)
    for dtype in (np.float16, np.float32, np.float64):
        for calibrator in (TemperatureScaling(), VectorScaling(1.0), BetaCalibration()):
            calibrator.set_params(input="probs")
            with warnings.catch_warnings():  # that raters chose what has probability 0
                warnings.simplefilter("ignore", RaterwiseWarning)
                calibrator.fit(probs.astype(dtype), [0, 1, 2, 1, 2, 0] * 2)
            calibrated = calibrator.predict_proba(probs.astype(dtype))
            assert np.isfinite(calibrated).all()
            assert (calibrated > 0)[probs > 0].all()


# cross-validation ---------------------------------------------------------------------------


@given(st.integers(0, 100), st.integers(2, 5))
def test_patients_are_never_split(seed: int, folds: int) -> None:
    """Each patient is in one fold, no fold is empty, and the seed decides."""
    rng = np.random.default_rng(seed)
    groups = np.unique(rng.integers(0, 20, 80), return_inverse=True)[1]
    counts = rng.multinomial(3, [0.7, 0.25, 0.05], 80)
    fold = patient_folds(counts, groups, folds, seed)
    assert all(len(set(fold[groups == g])) == 1 for g in groups)
    assert set(fold) == set(range(folds))
    np.testing.assert_array_equal(fold, patient_folds(counts, groups, folds, seed))


def test_a_rare_class_is_spread_over_the_folds() -> None:
    """Five patients with the rare class go to five folds."""
    counts = np.zeros((100, 3), int)
    counts[:, 0], counts[40:, 1] = 1, 1
    counts[[3, 14, 15, 92, 65], 2] = 1
    fold = patient_folds(counts, np.arange(100), 5, seed=0)
    assert sorted(fold[counts[:, 2] > 0]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["vector", "matrix"])
def test_the_best_penalty_is_chosen_and_refitted(kind: str) -> None:
    """Held-out losses are those of fits done one by one; the best is fitted to all cases."""
    logits, labels = simulated(cases=150, seed=4)
    groups = np.arange(150) // 2
    grid = (0.01, 1.0)
    if kind == "vector":
        chosen: Any = VectorScalingCV(grid, folds=3, seed=7)
        candidates: list[Any] = [VectorScaling(b) for b in grid]
    else:
        chosen = MatrixScalingCV(grid, grid, folds=3, seed=7)
        candidates = [MatrixScaling(w, b) for w in grid for b in grid]
    chosen.fit(logits, labels, groups=groups)
    fold = patient_folds(labels.counts, groups, 3, seed=7)
    losses = []
    for candidate in candidates:
        calibrated = np.empty_like(logits)
        for f in range(3):
            train = np.flatnonzero(fold != f)
            fitted = candidate.fit(logits[train], labels.take(train))
            calibrated[fold == f] = fitted.predict_proba(logits[fold == f])
        losses.append(naive_loss(calibrated, labels.counts))
    np.testing.assert_allclose(chosen.cv_loss_.ravel(), losses, rtol=1e-9)
    best = candidates[int(np.argmin(losses))]
    assert chosen.bias_l2_ == best.bias_l2
    refitted = best.fit(logits, labels)
    np.testing.assert_allclose(chosen.coef_, refitted.coef_, atol=1e-9)
    np.testing.assert_allclose(chosen.intercept_, refitted.intercept_, atol=1e-9)


def test_grids_are_those_of_the_paper() -> None:
    """LH F.3: λ in {0.1, 1, 10}."""
    assert VectorScalingCV().bias_l2 == (0.1, 1.0, 10.0)
    assert MatrixScalingCV().bias_l2 == MatrixScalingCV().off_diagonal_l2 == (0.1, 1.0, 10.0)


def test_cross_validation_refuses_what_it_cannot_split() -> None:
    """Too few patients, of the wrong length or without a name; a class in one patient only."""
    logits, labels = simulated(cases=30)
    with pytest.raises(InvalidInputError, match=r"at most the 2 patients \(groups\); got 5"):
        VectorScalingCV().fit(logits, labels, groups=np.arange(30) % 2)
    with pytest.raises(InvalidInputError, match=r"groups: must name the patient .* \(29,\) for 30"):
        VectorScalingCV().fit(logits, labels, groups=np.arange(29))
    with pytest.raises(InvalidInputError, match=r"groups: .* 30 of 30 are NaN or None"):
        VectorScalingCV().fit(logits, labels, groups=np.full(30, np.nan))
    rare = Labels.from_classes([0, 1] * 14 + [2, 2], num_classes=3)
    with pytest.raises(InvalidInputError, match=r"missing: class 2 \(in all folds but one"):
        VectorScalingCV().fit(logits, rare, groups=np.append(np.arange(28), [28, 28]))


# scikit-learn -------------------------------------------------------------------------------

# Its generic checks fit data whose labels are not one per column of X, or miss some; we refuse
# these. The rules themselves hold and are tested above, each with data of the right form.
OTHER_DATA = [
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_shape",
    "check_sample_weights_list",
    "check_sample_weights_not_overwritten",
    "check_pipeline_consistency",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_non_transformer_estimators_n_iter",
    "check_dont_overwrite_parameters",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_fit_check_is_fitted",
    "check_f_contiguous_array_estimator",
]
# Its wording of errors, where ours names the argument, the rule and the value.
OTHER_WORDS = [
    "check_all_zero_sample_weights_error",
    "check_complex_data",
    "check_dtype_object",
    "check_estimators_empty_data_messages",
    "check_classifiers_regression_target",
    "check_supervised_y_2d",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
]
# It wants the second argument called y: ours are (logits, labels), as in the rest of raterwise.
OTHER_NAMES = ["check_fit_score_takes_y", "check_sample_weight_equivalence_on_dense_data"]


@pytest.mark.parametrize("calibrator", [ALL[0], ALL[1], ALL[6], ALL[9]], ids=repr)
def test_scikit_learns_checks(calibrator: Any) -> None:
    """Its estimator checks pass, but for those that cannot apply."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = check_estimator(clone(calibrator), on_fail=None, on_skip=None)
    failed = {record["check_name"] for record in records if record["status"] == "failed"}
    assert failed <= {*OTHER_DATA, *OTHER_WORDS, *OTHER_NAMES}
    passed = {record["check_name"] for record in records if record["status"] == "passed"}
    assert {"check_estimator_cloneable", "check_no_attributes_set_in_init"} <= passed
    assert {"check_get_params_invariance", "check_estimators_unfitted"} <= passed


@each_calibrator
def test_parameters_clones_and_pickles(calibrator: Any) -> None:
    """clone copies parameters and nothing else; fit sets only names ending in _; pickles work."""
    logits, labels = simulated(cases=100)
    before = calibrator.get_params()
    fitted = clone(calibrator).fit(logits, labels)
    assert fitted.get_params() == before
    assert {name for name in vars(fitted) if not name.endswith("_")} == set(before)
    assert not any(name.endswith("_") for name in vars(clone(fitted)))
    again = pickle.loads(pickle.dumps(fitted))
    expected = fitted.predict_proba(logits)
    np.testing.assert_array_equal(again.predict_proba(logits), expected)
    refitted = fitted.fit(logits, labels)
    np.testing.assert_array_equal(refitted.predict_proba(logits), expected)
    np.testing.assert_array_equal(fitted.classes_, [0, 1, 2])
    assert fitted.n_features_in_ == 3


def test_in_a_pipeline_and_in_cross_validation() -> None:
    """A pipeline may take logarithms first; scorers that need probabilities work."""
    logits, labels = simulated(raters=1)
    probs, y = softmax(logits), labels.majority()
    pipeline = make_pipeline(FunctionTransformer(np.log), TemperatureScaling()).fit(probs, y)
    direct = TemperatureScaling(input="probs").fit(probs, y)
    np.testing.assert_allclose(pipeline.predict_proba(probs), direct.predict_proba(probs))
    scores = cross_val_score(TemperatureScaling(), logits, y, scoring="neg_log_loss", cv=3)
    assert scores.mean() > -naive_loss(softmax(logits), labels.counts)


def test_importing_raterwise_loads_no_calibrator() -> None:
    """scikit-learn comes with the first calibrator and not before."""
    code = (
        "import sys, raterwise; "
        "print([m for m in ('sklearn', 'raterwise.calibrators', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# saving -------------------------------------------------------------------------------------


@each_calibrator
def test_a_saved_calibrator_is_the_same(calibrator: Any, tmp_path: Path) -> None:
    """What is loaded predicts the same digits, and knows parameters and class names."""
    logits, labels = simulated()
    named = Labels.from_counts(labels.counts, class_names=["a", "b", "ç"])
    fitted = clone(calibrator).fit(logits, named)
    loaded = saved.load(fitted.save(tmp_path / "calibrator.json"))
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.class_names_ == ("a", "b", "ç")
    np.testing.assert_array_equal(loaded.predict_proba(logits), fitted.predict_proba(logits))
    assert set(vars(loaded)) == set(vars(fitted))
    assert [file.name for file in tmp_path.iterdir()] == ["calibrator.json"]


def test_alpha_calibration_is_saved_too(tmp_path: Path) -> None:
    """Concentrations are the same after loading."""
    logits, labels = simulated()
    probs = softmax(logits)
    fitted = AlphaCalibration(l2=0.01).fit(None, labels, probs=probs)
    loaded = saved.load(saved.save(fitted, tmp_path / "alpha.json"))
    np.testing.assert_array_equal(
        loaded.predict(None, probs=probs).concentration,
        fitted.predict(None, probs=probs).concentration,
    )


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    """JSON with a schema version, the kind, the library's version and the state."""
    logits, labels = simulated()
    path = TemperatureScaling().fit(logits, labels).save(tmp_path / "t.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert list(content) == ["schema_version", "kind", "raterwise_version", "state"]
    assert content["schema_version"] == 1 and content["kind"] == "TemperatureScaling"
    assert content["state"]["params"] == {"input": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema_version must be 1; got 2, written by raterwise"),
        ({"kind": "os.system"}, "kind must be one of AlphaCalibration, .*; got 'os.system'"),
        ({"kind": ["list"]}, "kind must be one of"),
        ({"state": {}}, "is damaged; stored VectorScaling: lacks 'params'"),
        ({"state": None}, "is damaged"),
    ],
)
def test_other_files_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Unknown versions and kinds, and files with something missing, are named and refused."""
    logits, labels = simulated()
    path = VectorScaling().fit(logits, labels).save(tmp_path / "v.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **change}), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        saved.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("coef_", [1.0, 2.0], r"coef_: must have shape \(3,\); got \(2,\)"),
        ("coef_", [1.0, float("nan"), 1.0], "NaN is not a number of JSON"),
        ("intercept_", "abc", "intercept_: must be an array of numbers"),
        ("loss_", None, "loss_: must be an array of numbers"),
    ],
)
def test_damaged_numbers_are_refused(name: str, value: Any, message: str, tmp_path: Path) -> None:
    """Numbers of another shape, or no numbers, are not taken."""
    logits, labels = simulated()
    path = VectorScaling().fit(logits, labels).save(tmp_path / "v.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["state"]["fitted"][name] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        saved.load(path)


def test_what_is_no_file_of_ours(tmp_path: Path) -> None:
    """A missing file, a pickle, half a file, an unfitted or foreign object."""
    with pytest.raises(InvalidInputError, match=r"nothing\.json: cannot be read"):
        saved.load(tmp_path / "nothing.json")
    for content in (pickle.dumps([1]), b'{"schema_version": 1, "ki', b"[1, 2]"):
        (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(InvalidInputError, match=r"x\.json: is not a saved calibrator"):
            saved.load(tmp_path / "x.json")
    with pytest.raises(NotFittedError):
        TemperatureScaling().save(tmp_path / "t.json")
    with pytest.raises(InvalidInputError, match=r"calibrator: must be one of .*; got dict"):
        saved.save({}, tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()
