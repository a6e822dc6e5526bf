"""What calibrators take: logits or probabilities, never guessed; draws and beliefs; scores."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.metrics import accuracy_score

import raterwise as rw
from raterwise.beliefs import DirichletBelief, EnsembleBelief, PointBelief
from raterwise.calibrators import saved
from raterwise.errors import InvalidInputError, RaterwiseWarning
from raterwise.labels import Labels

Array = npt.NDArray[Any]

KINDS = (
    rw.TemperatureScaling(),
    rw.VectorScaling(),
    rw.MatrixScaling(1, 1),
    rw.DirichletCalibration("diagonal"),
    rw.IsotonicCalibration(),
    rw.HistogramBinning(5),
    rw.BetaCalibration(),
    rw.VectorScalingCV(folds=3),
    rw.MatrixScalingCV((1.0,), (1.0,), folds=3),
)
FROM_ANY_ORIGIN = [kind for kind in KINDS if "Scaling" not in repr(kind)] + [KINDS[0]]
each = pytest.mark.parametrize("calibrator", KINDS, ids=repr)
EITHER = r"logits: could be logits or probabilities, as every {} lies in \[0, 1\].*; say which "
ROWS, VALUES = EITHER.format("row"), EITHER.format("value")


def study(cases: int = 200, seed: int = 0) -> tuple[Array, Labels]:
    """Calibrated logits and what three raters said."""
    random = np.random.default_rng(seed)
    logits = 1.5 * random.normal(size=(cases, 3))
    return logits, Labels.from_counts(random.multinomial(3, softmax(logits, axis=1)))


@each
def test_what_could_be_either_is_refused(calibrator: Any) -> None:
    """Probabilities without a word are refused in fit and in predict_proba, naming both choices."""
    logits, labels = study()
    probs = softmax(logits, axis=1)
    with pytest.raises(InvalidInputError, match=ROWS + 'they are with input="logits" or input="p'):
        clone(calibrator).fit(probs, labels)
    fitted = clone(calibrator).fit(logits, labels)
    for use in (fitted.predict_proba, fitted.predict):
        with pytest.raises(InvalidInputError, match=ROWS):
            use(probs)
    with pytest.raises(InvalidInputError, match=ROWS):
        fitted.predict_proba(probs[None])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_of_every_type_are_recognised(dtype: Any) -> None:
    """Rows of 16 bits add to 1 less exactly, and are refused all the same."""
    logits, labels = study()
    with pytest.raises(InvalidInputError, match=ROWS):
        rw.TemperatureScaling().fit(softmax(logits, axis=1).astype(dtype), labels)


def test_two_classes_in_one_column_could_be_either() -> None:
    """(N,) numbers in [0, 1] may be logits or probabilities of class 1; others are logits."""
    y = np.array([0, 1, 0, 1, 1])
    with pytest.raises(InvalidInputError, match=VALUES):
        rw.TemperatureScaling().fit([0.2, 0.9, 0.6, 0.7, 1.0], y)
    assert rw.TemperatureScaling().fit([-0.2, 0.9, 0.6, 0.7, 1.0], y).temperature_ > 0
    assert rw.TemperatureScaling("probs").fit([0.2, 0.9, 0.6, 0.7, 1.0], y).temperature_ > 0


@each
def test_anything_else_is_taken_as_logits(calibrator: Any) -> None:
    """Without a word, logits; one row that adds to 2 is enough to tell."""
    logits, labels = study()
    told = clone(calibrator).set_params(input="logits").fit(logits, labels)
    untold = clone(calibrator).fit(logits, labels)
    np.testing.assert_array_equal(untold.predict_proba(logits), told.predict_proba(logits))
    probs = softmax(logits, axis=1)
    probs[7] *= 2
    np.testing.assert_array_equal(
        clone(calibrator).fit(probs, labels).predict_proba(logits),
        clone(calibrator).set_params(input="logits").fit(probs, labels).predict_proba(logits),
    )


def test_a_calibrated_model_has_a_temperature_of_1() -> None:
    """Told that they are probabilities, T is 1; taken for logits it would be 0.4 (the old trap)."""
    logits, labels = study(5000)
    probs = softmax(logits, axis=1)
    assert rw.TemperatureScaling("probs").fit(probs, labels).temperature_ == pytest.approx(
        1, abs=0.05
    )
    assert rw.TemperatureScaling("logits").fit(probs, labels).temperature_ < 0.5


@each
def test_a_saved_calibrator_still_asks(calibrator: Any, tmp_path: Any) -> None:
    """What was not said when fitting is not known after loading."""
    logits, labels = study()
    fitted = clone(calibrator).fit(logits, labels)
    loaded = saved.load(fitted.save(tmp_path / "calibrator.json"))
    assert loaded.input is None
    with pytest.raises(InvalidInputError, match=ROWS):
        loaded.predict_proba(softmax(logits, axis=1))


# draws and beliefs -------------------------------------------------------------------------------


@each
def test_draws_are_calibrated_one_by_one(calibrator: Any) -> None:
    """(S, N, K) logits become an EnsembleBelief whose members are those of each draw alone."""
    logits, labels = study()
    fitted = clone(calibrator).fit(logits, labels)
    draws = np.stack([logits, logits + 0.3, 2 * logits])
    belief = fitted.predict_proba(draws)
    assert isinstance(belief, EnsembleBelief)
    for s in range(3):
        np.testing.assert_array_equal(belief.samples[s], fitted.predict_proba(draws[s]))
    np.testing.assert_array_equal(fitted.predict(draws), belief.mean.argmax(axis=1))


@pytest.mark.parametrize("calibrator", FROM_ANY_ORIGIN, ids=repr)
def test_members_of_a_belief_are_calibrated(calibrator: Any) -> None:
    """Where the origin of logits does not matter a belief is as good; its weights stay."""
    logits, labels = study()
    fitted = clone(calibrator).fit(logits, labels)
    draws = np.stack([logits, 2 * logits])
    belief = fitted.predict_proba(EnsembleBelief(softmax(draws, axis=2), [0.3, 0.7]))
    np.testing.assert_allclose(belief.samples, fitted.predict_proba(draws).samples, atol=1e-9)
    np.testing.assert_allclose(belief.weights[:, 0], [0.3, 0.7])
    point = fitted.predict_proba(PointBelief(softmax(logits, axis=1)))
    assert isinstance(point, PointBelief)
    np.testing.assert_allclose(point.mean, fitted.predict_proba(logits), atol=1e-9)


@pytest.mark.parametrize("calibrator", [KINDS[1], KINDS[2], KINDS[7], KINDS[8]], ids=repr)
def test_a_belief_does_not_determine_logits(calibrator: Any) -> None:
    """Vector and matrix scaling of logits refuse a belief; fitted to probabilities they take it."""
    logits, labels = study()
    probs = softmax(logits, axis=1)
    belief = EnsembleBelief(np.stack([probs, probs]))
    with pytest.raises(InvalidInputError, match="the probabilities of a belief do not determine"):
        clone(calibrator).fit(logits, labels).predict_proba(belief)
    told = clone(calibrator).set_params(input="probs").fit(probs, labels)
    expected = clone(calibrator).fit(log_softmax(logits, axis=1), labels)
    np.testing.assert_allclose(
        told.predict_proba(belief).samples[1],
        expected.predict_proba(log_softmax(logits, axis=1)),
        atol=1e-9,
    )


def test_beliefs_that_cannot_be_calibrated() -> None:
    """Of a Dirichlet the mean would change and α0 not: calibrate first. Classes must match."""
    logits, labels = study()
    fitted = rw.TemperatureScaling().fit(logits, labels)
    with pytest.raises(InvalidInputError, match=r"got DirichletBelief \(calibrate first"):
        fitted.predict_proba(DirichletBelief([[0.2, 0.3, 0.5]], [1.0]))
    with pytest.raises(InvalidInputError, match="probs: must have the 3 classes of the fit; got 2"):
        fitted.predict_proba(PointBelief([[0.4, 0.6]]))


def test_temperature_then_alpha_of_an_ensemble() -> None:
    """LH E.4 from draws to a posterior: every step gives what the next one takes."""
    logits, labels = study()
    draws = logits + 0.2 * np.random.default_rng(1).normal(size=(4, 200, 3))
    scaled = rw.TemperatureScaling().fit(logits, labels).predict_proba(draws)
    belief = rw.AlphaCalibration(l2=0.1).fit(None, labels, probs=scaled).predict(None, probs=scaled)
    assert isinstance(belief, rw.DirichletMixtureBelief)
    np.testing.assert_allclose(belief.mean, scaled.mean)
    after = belief.posterior(labels.majority())
    assert (after.mean[np.arange(200), labels.majority()] > belief.mean.max(axis=1)).mean() > 0.5


# score -------------------------------------------------------------------------------------------


@each
def test_the_score_is_scikit_learns_accuracy(calibrator: Any) -> None:
    """Of one label per case; of histograms every rating counts, as in raterwise.accuracy."""
    logits, labels = study()
    fitted, single = clone(calibrator).fit(logits, labels), labels.majority()
    weights = np.arange(200.0)
    predicted = fitted.predict(logits)
    assert fitted.score(logits, single) == pytest.approx(accuracy_score(single, predicted))
    assert fitted.score(logits, single, sample_weight=weights) == pytest.approx(
        accuracy_score(single, predicted, sample_weight=weights)
    )
    expected = rw.accuracy(fitted.predict_proba(logits), labels)
    assert fitted.score(logits, labels) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_a_class_of_probability_0_that_a_rater_chose_is_told(kind: str) -> None:
    """Zeros that rounding made rule the fit; those that no rater chose say nothing."""
    random = np.random.default_rng(0)
    probs = random.dirichlet([0.5, 0.5, 0.5], 100).clip(0.01)
    probs[0], probs[1] = [0, 0.5, 0.5], [0.5, 0.5, 0]
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(kind)
    classes = np.array([random.choice(3, p=p / p.sum()) for p in probs.astype(float)])
    assert classes[0] != 0 and classes[1] != 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rw.TemperatureScaling(input="probs").fit(probs, classes)
    classes[:2] = 0, 2
    counts = np.eye(3, dtype=int)[classes]
    chosen = rw.VectorScalingCV(bias_l2=(1.0,), folds=2, input="probs")  # of the same cases
    for labels, calibrator in product(
        (classes, Labels.from_counts(counts)), (rw.TemperatureScaling(input="probs"), chosen)
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            calibrator.fit(probs, labels)
        assert issubclass(told[0].category, RaterwiseWarning) and told[0].filename == __file__
        assert str(told[0].message).startswith("2 of 100 cases have probability 0")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rw.HistogramBinning(5, input="probs").fit(probs, labels)
