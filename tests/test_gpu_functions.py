"""Functions of predictions on a GPU: the same numbers, and the predictions stay where they are.

Without a GPU the same code runs on tensors of the CPU that pretend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import raterwise as rw

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from raterwise import confidence as of_confidence  # noqa: E402
from raterwise.functions import kernel as kernel_functions  # noqa: E402
from raterwise.functions import measure as measuring  # noqa: E402
from raterwise.kernels import _torch as kernels  # noqa: E402
from raterwise.predictions import Predictions  # noqa: E402
from raterwise.tensors import device  # noqa: E402

CASES, CLASSES = 3000, 4
# Scores from 1e-20 to 1, whose density no bandwidth of the grid fits.
pytestmark = pytest.mark.filterwarnings("ignore:kde_ece. the bandwidth chosen:UserWarning")


@pytest.fixture(
    params=[
        "pretending",
        pytest.param(
            "cuda",
            marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
        ),
    ],
    name="put",
)
def putting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what puts an array on the device; nothing there may go the way of the host."""
    if request.param == "cuda":
        return lambda array: torch.as_tensor(array, device="cuda")

    def is_tensor(values: Any) -> bool:
        return isinstance(values, torch.Tensor)

    monkeypatch.setattr(measuring, "on_gpu", is_tensor)
    monkeypatch.setattr(of_confidence, "on_gpu", is_tensor)
    monkeypatch.setattr(kernel_functions, "on_gpu", is_tensor)
    monkeypatch.setattr(kernels, "POINTS", 700)
    monkeypatch.setattr(kernels, "CENTRES", 900)
    monkeypatch.setattr(device, "has_cpu_loops", lambda: False)
    return torch.as_tensor


@pytest.fixture(name="no_host_copy")
def forbidding(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what forbids predictions on the host from then on."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the predictions were copied to the host")

    return lambda: monkeypatch.setattr(Predictions, "of", refuse)


def made_up(seed: int = 0, dtype: Any = np.float64) -> tuple[Any, Any]:
    """Probabilities, a third of them nearly 0 and 1 and many equal, and counts of 2 to 5 raters."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(CASES, CLASSES)) * random.choice([1, 4, 30], size=(CASES, 1))
    logits[::5] = logits[0]
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    truth = 0.8 * probs + 0.2 / CLASSES
    counts = np.array([random.multinomial(random.integers(2, 6), row) for row in truth])
    return probs.astype(dtype), counts


FUNCTIONS: dict[str, Callable[..., float]] = {
    "accuracy": rw.accuracy,
    "brier": rw.brier,
    "nll": rw.nll,
    "ranked_probability_score": rw.ranked_probability_score,
    "expected_squared_loss": rw.expected_squared_loss,
    "epistemic_loss": rw.epistemic_loss,
    "calibration_loss": rw.calibration_loss,
    "calibration_error": rw.calibration_error,
    "dispersion_loss": rw.dispersion_loss,
    "ece": rw.ece,
    "ece of 200 bins": lambda *a, **k: rw.ece(*a, bins=200, **k),
    "mce": rw.mce,
    "rms_ce": rw.rms_ce,
    "adaptive_ece": rw.adaptive_ece,
    "ece_sweep": rw.ece_sweep,
    "classwise_ece": rw.classwise_ece,
    "sce": rw.sce,
    "robust_ece": rw.robust_ece,
    "kde_ece": lambda *a, **k: rw.kde_ece(*a, bandwidth=0.02, **k),
    "kde_ece from cells": lambda *a, **k: rw.kde_ece(*a, bandwidth=0.02, method="cells", **k),
    "kde_ece per class": lambda *a, **k: rw.kde_ece(*a, question="per_class", **k),
    "canonical kde_ece": lambda *a, **k: rw.kde_ece(*a, question="canonical", **k),
    "canonical squares": lambda *a, **k: rw.kde_ece(
        *a, question="canonical", p=2, bandwidth=0.003, **k
    ),
    "smooth_ece": rw.smooth_ece,
    "ks_error": rw.ks_error,
}
ONE_LABEL_IS_TOO_FEW = ("epistemic_loss", "dispersion_loss")
EQUAL_WEIGHTS_ONLY = ("calibration_loss", "calibration_error", "dispersion_loss")
each = pytest.mark.parametrize("name", FUNCTIONS)


def said(function: Callable[..., float], *given: Any) -> Any:
    """Return the number; or why there is none: float32 rounds some probabilities to 0."""
    try:
        return function(*given)
    except rw.UndefinedMetricError as error:
        return str(error)


def about(expected: Any) -> Any:
    """Return what a number may be, or the reason as it is."""
    return expected if isinstance(expected, str) else pytest.approx(expected, rel=0, abs=1e-9)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_raters_on_a_gpu(
    name: str, dtype: Any, put: Callable[..., Any], no_host_copy: Callable[[], None]
) -> None:
    """Label histograms: the number is that of the arrays."""
    probs, counts = made_up(dtype=dtype)
    labels, function = rw.Labels.from_counts(counts), FUNCTIONS[name]
    expected = said(function, probs, labels)
    no_host_copy()
    assert said(function, put(probs), labels) == about(expected)


@each
def test_one_label_a_case_on_a_gpu(
    name: str, put: Callable[..., Any], no_host_copy: Callable[[], None]
) -> None:
    """Plain classes, which are on the device too."""
    probs, counts = made_up(1, np.float32)
    classes, function = counts.argmax(axis=1), FUNCTIONS[name]
    if name in ONE_LABEL_IS_TOO_FEW:
        with pytest.raises(ValueError, match="needs at least 2 labels per case"):
            function(put(probs), put(classes))
        return
    expected = said(function, probs, classes)
    no_host_copy()
    assert said(function, put(probs), put(classes)) == about(expected)


@each
def test_weights_on_a_gpu(name: str, put: Callable[..., Any]) -> None:
    """Case weights of which some are 0; where they must be equal, the same error."""
    probs, counts = made_up(2)
    labels, function = rw.Labels.from_counts(counts), FUNCTIONS[name]
    weights = np.random.default_rng(3).integers(0, 3, CASES) * 0.5
    if name in EQUAL_WEIGHTS_ONLY:
        for given in (probs, put(probs)):
            with pytest.raises(ValueError, match="weights"):
                function(given, labels, weights=weights)
        return
    expected = function(probs, labels, weights=weights)
    found = function(put(probs), labels, weights=put(weights))
    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def test_binary_scores_and_other_questions_on_a_gpu(put: Callable[..., Any]) -> None:
    """(N,) probabilities of class 1, the positive class, and one channel per predicted class."""
    probs, counts = made_up(4)
    one, classes = probs[:, 0], (counts.argmax(axis=1) == 0).astype(int)
    for question in ("top_label", "positive", "per_class", "predicted_class"):
        expected = rw.ece(one, classes, question=question)
        found = rw.ece(put(one), put(classes), question=question)
        assert found == pytest.approx(expected, rel=0, abs=1e-12)


def test_half_precision_on_a_gpu(put: Callable[..., Any]) -> None:
    """float16 rows sum to 1 within 1e-2 only."""
    probs, counts = made_up(5, np.float16)
    expected = rw.ece(probs, counts.argmax(axis=1))
    assert rw.ece(put(probs), counts.argmax(axis=1)) == pytest.approx(expected, rel=0, abs=1e-9)


BAD: dict[str, tuple[Callable[..., Any], str]] = {
    "NaN": (lambda p, y: (np.where(p == p[3, 2], np.nan, p), y), "must not contain NaN"),
    "not summing to 1": (lambda p, y: (p * 0.5, y), "rows must sum to 1 within 1e-4; row 0"),
    "a class that is not there": (lambda p, y: (p, np.full_like(y, 4)), "labels: must be classes"),
    "too few labels": (lambda p, y: (p, y[:10]), "labels: must"),
    "a matrix of labels": (lambda p, y: (p, np.eye(4, dtype=int)[y]), "Labels.from_counts"),
    "no case": (lambda p, y: (p[:0], y[:0]), "probs: must"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_on_a_gpu(what: str, put: Callable[..., Any]) -> None:
    """The same rules, and messages that name the argument."""
    spoil, message = BAD[what]
    probs, counts = made_up(6)
    probs, classes = spoil(probs, counts.argmax(axis=1))
    for name in ("ece", "classwise_ece", "adaptive_ece", "sce"):
        with pytest.raises(ValueError, match=message):
            FUNCTIONS[name](put(probs), put(classes))


def test_bad_weights_on_a_gpu(put: Callable[..., Any]) -> None:
    """Negative, all 0, too few."""
    probs, counts = made_up(7)
    for weights, message in (
        (np.r_[-1.0, np.ones(CASES - 1)], "weights: must be finite and not negative; case 0"),
        (np.zeros(CASES), "weights: at least one must be positive"),
        (np.ones(3), "weights: must have one value per case"),
    ):
        with pytest.raises(ValueError, match=message):
            rw.ece(put(probs), counts.argmax(axis=1), weights=weights)


def test_unrated_cases_on_a_gpu(put: Callable[..., Any]) -> None:
    """They are an error, or left out."""
    probs, counts = made_up(8)
    counts[5] = 0
    labels = rw.Labels.from_counts(counts)
    with pytest.raises(ValueError, match=r"1 of 3,000 has none .* on_unrated"):
        rw.ece(put(probs), labels)
    expected = rw.ece(probs, labels, on_unrated="drop")
    assert rw.ece(put(probs), labels, on_unrated="drop") == pytest.approx(expected, abs=1e-12)


# ranks of any confidence ------------------------------------------------------------------------


def confidences() -> tuple[Any, Any, Any]:
    """Many ties; which are right; and the confidence of cases from elsewhere."""
    random = np.random.default_rng(9)
    confidence = random.integers(0, 500, CASES) / 500
    return confidence, random.random(CASES) < confidence, random.integers(0, 300, 700) / 500


@pytest.mark.parametrize("name", ["auccc", "aurc", "augrc"])
def test_ranks_on_a_gpu(name: str, put: Callable[..., Any]) -> None:
    """Right or wrong, fractions of raters, weights, other kinds of `correct`."""
    function = getattr(rw.confidence, name)
    confidence, right, _ = confidences()
    partly = np.where(right, 0.75, 0.25)
    for correct in (right, right.astype(np.float32), right.astype(int), partly):
        expected = function(confidence, correct)
        assert function(put(confidence), put(correct)) == pytest.approx(expected, abs=1e-12)
        assert function(put(confidence), correct) == pytest.approx(expected, abs=1e-12)
    weights = np.random.default_rng(1).integers(1, 4, CASES)
    expected = function(confidence, right, weights=weights)
    assert function(put(confidence), put(right), weights=weights) == pytest.approx(expected)


def test_cases_from_elsewhere_on_a_gpu(put: Callable[..., Any]) -> None:
    """AUCCC with out-of-distribution cases, their AUROC, and the curve."""
    confidence, right, outside = confidences()
    expected = rw.confidence.auccc(confidence, right, outside)
    assert rw.confidence.auccc(put(confidence), put(right), put(outside)) == pytest.approx(expected)
    expected = rw.confidence.io_auroc(confidence, outside)
    assert rw.confidence.io_auroc(put(confidence), put(outside)) == pytest.approx(
        expected, abs=1e-12
    )
    expected = rw.confidence.ccc_curve(confidence, right, outside=outside).area
    found = rw.confidence.ccc_curve(put(confidence), put(right), outside=put(outside)).area
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["auccc", "aurc", "augrc"])
def test_ranks_of_probabilities_on_a_gpu(name: str, put: Callable[..., Any]) -> None:
    """The metric as such, with a confidence of one's own, and with cases from elsewhere."""
    random, function = np.random.default_rng(2), getattr(rw, name)
    probs, y = random.dirichlet(np.ones(CLASSES), CASES), random.integers(0, CLASSES, CASES)
    own, outside = random.random(CASES), random.random(500)
    for options in ({}, {"confidence": own}, {"outside": outside}):
        there = {key: put(value) for key, value in options.items()}
        expected = function(probs, y, **options)
        assert function(put(probs), put(y), **there) == pytest.approx(expected, abs=1e-12)


def test_bad_confidences_on_a_gpu(put: Callable[..., Any]) -> None:
    """NaN, no cases, unequal lengths, and nothing to rank."""
    for confidence, right, message in (
        ([0.1, np.nan], [1, 0], "confidence: must not contain NaN; 1 values"),
        ([], [], "confidence: must hold at least one case"),
        ([0.1, 0.2], [1, 0, 1], "correct: must match confidence"),
        ([0.1, 0.2], [1.0, 1.5], r"correct: must lie in \[0, 1\]; case 1 has 1.5"),
        ([0.1, 0.2], [1, 1], "every case is right"),
    ):
        with pytest.raises(ValueError, match=message):
            rw.confidence.auccc(put(np.array(confidence)), put(np.array(right)))


def test_cases_without_weight_on_a_gpu(put: Callable[..., Any]) -> None:
    """They are not there: neither an infinite score of theirs counts, nor how few rated them."""
    probs, weights = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]), np.array([0.0, 1.0, 1.0])
    found = rw.nll(put(probs), put(np.array([1, 0, 1])), weights=put(weights))
    assert found == pytest.approx((np.log(2) + np.log(4 / 3)) / 2)
    counts = rw.Labels.from_counts([[1, 0], [1, 1], [1, 3]])
    # (μ - p)² less μ(1-μ)/(n-1), for both classes, and p is what the raters say
    expected = -2 * (0.25 + 0.1875 / 3) / 2
    assert rw.epistemic_loss(put(probs), counts, weights=put(weights)) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["ece", "kde_ece"])
def test_labels_of_other_types_on_a_gpu(kind: str, put: Callable[..., Any]) -> None:
    """Whole numbers in floats are classes, as they are on the host; text and nothing are not."""
    metric, probs = getattr(rw, kind), np.array([[0.9, 0.1], [0.5, 0.5], [0.25, 0.75]])
    floats = np.array([0.0, 1.0, 1.0])
    assert metric(put(probs), floats) == pytest.approx(metric(probs, [0, 1, 1]))
    assert metric(put(probs), put(floats)) == pytest.approx(metric(probs, [0, 1, 1]))
    for wrong in (None, "x"):
        with pytest.raises(rw.InvalidTypeError, match="labels: must be an array of numbers"):
            metric(put(probs), wrong)
