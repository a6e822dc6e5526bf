"""Losses that have seen no error: what one would cost, and one number has one interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

import raterwise as rw

NONE_OF_30 = stats.chi2.ppf(0.975, 2) / 60
"""The largest rate of which no event is seen in 30 cases: the Poisson limit 3.689 / 30."""


def ends(results: rw.Results, name: str) -> list[float | None]:
    """Return an estimate and its interval."""
    return [results[name].value, results[name].low, results[name].high]


@pytest.mark.parametrize("patients", [None, np.arange(30) // 3])
@pytest.mark.parametrize("sure", [0.0, 0.5, 2.0, 8.0])
def test_the_same_number_has_the_same_interval(sure: float, patients: object) -> None:
    """Of two classes L_sq is twice the Brier score, and the ordered scores are the plain ones.

    What one more error costs is read off bins or off the cases, which may differ a little.
    """
    random = np.random.default_rng(3)
    probs = softmax(sure * random.normal(size=(30, 2)), axis=1)
    probs = np.tile([0.9, 0.1], (30, 1)) if sure == 0 else probs
    names = ["brier", "expected_squared_loss", "ranked_probability_score", "top_label_brier"]
    names += ["nll", "ranked_log_score", "accuracy", "majority_accuracy"]
    for right in (probs.argmax(axis=1), (random.random(30) < probs[:, 1]).astype(int)):
        found = rw.evaluate(probs, right, names, patients, resamples=20)
        brier = np.array(ends(found, "brier"))
        assert brier[2] > brier[0] > brier[1]
        assert ends(found, "expected_squared_loss") == pytest.approx(2 * brier)
        assert ends(found, "top_label_brier") == pytest.approx(brier, rel=0.05)
        assert ends(found, "ranked_probability_score") == pytest.approx(brier, rel=0.05)
        assert ends(found, "ranked_log_score") == pytest.approx(ends(found, "nll"), rel=0.05)
        assert ends(found, "majority_accuracy") == pytest.approx(ends(found, "accuracy"))


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_a_wrong_label_is_off_about_two_classes(classes: int) -> None:
    """A model that says 0 or 1 and was right 30 times: the next error would add 2 to L_sq."""
    probs = np.eye(classes)[np.arange(30) % classes]
    found = rw.evaluate(probs, probs.argmax(axis=1), ["expected_squared_loss", "brier"])
    assert ends(found, "expected_squared_loss") == pytest.approx([0, 0, 2 * NONE_OF_30])
    half = 2 if classes == 2 else 1
    assert ends(found, "brier") == pytest.approx([0, 0, 2 * NONE_OF_30 / half])


def test_an_error_of_ordered_classes_costs_what_the_model_says_it_would() -> None:
    """Thirty cases with p = (0.9, 0.06, 0.04), all right: score 0.1² + 0.04² each.

    The other labels score 0.9² + 0.04² and 0.9² + 0.96². The moments of what is expected of a
    calibrated model follow; the error that makes up its variance adds the third over the second.
    """
    probs, each = np.array([0.9, 0.06, 0.04]), np.array([0.0116, 0.8116, 1.7316])
    mean = probs @ each
    variance = probs @ (each - mean) ** 2
    step = probs @ (each - mean) ** 3 / variance
    assert 30 * variance / step**2 < 5  # so that the whole step is allowed for
    theta, square = each[0] + step / 30, (step / 30) ** 2
    high = square / theta / 2 * stats.chi2.ppf(0.975, 2 * theta**2 / square)
    found = rw.evaluate(np.tile(probs, (30, 1)), [0] * 30, "ranked_probability_score")
    assert ends(found, "ranked_probability_score")[2] == pytest.approx(high)


@pytest.mark.parametrize("cases", [30, 120])
def test_an_error_of_ordered_classes_is_at_one_of_the_cuts(cases: int) -> None:
    """The same of the log score: the mean over the cuts of −log(1 − F), F = 0.9 and 0.96.

    Of 120 cases the loss is that of three events or so, and two thirds of a step are allowed for.
    """
    found = rw.evaluate(np.tile([0.9, 0.06, 0.04], (cases, 1)), [0] * cases, "ranked_log_score")
    value = -np.log(0.9) - np.log(0.96)
    f = np.array([0.9, 0.96])
    wrong = -np.log(1 - f)
    step, squared = wrong.mean(), (wrong**2).mean()
    spread = (f * (1 - f) * (wrong + np.log(f)) ** 2).sum()
    fewer = min(1.0, 2 / (value**2 / (spread / cases)))
    assert (fewer < 0.8) == (cases == 120)
    theta, square = value + fewer * step / cases, fewer**2 * squared / cases**2
    high = square / theta / 2 * stats.chi2.ppf(0.975, 2 * theta**2 / square)
    assert ends(found, "ranked_log_score")[2] == pytest.approx(high)


def test_raters_who_never_differed_may_differ_next_time() -> None:
    """Thirty cases of three raters who agree, the model saying 0 or 1: no disagreement in 30."""
    probs = np.eye(2)[np.arange(30) % 2]
    labels = rw.Labels.from_ratings(np.tile(probs.argmax(axis=1)[:, None], 3))
    found = rw.evaluate(probs, labels, "disagreement_loss", resamples=20)
    assert ends(found, "disagreement_loss") == pytest.approx([0, 0, NONE_OF_30])


def test_sure_models_of_several_classes_are_covered() -> None:
    """Errors in one of twenty cases at 0.999, anywhere on the scale: their losses are held.

    Without what an error costs that was not seen, 45 to 60% of the ordered scores were; with half
    of it, 91% of the Brier scores.
    """
    random, classes, cases, held = np.random.default_rng(41), 4, 30, []
    names = ["brier", "ranked_probability_score", "ranked_log_score"]
    wrong = np.full(classes, 0.001 / (classes - 1))
    for _ in range(100):
        top = random.integers(0, classes, cases)
        probs = np.tile(wrong, (cases, 1))
        probs[np.arange(cases), top] = 0.999
        said = np.where(random.random(cases) < 0.05, random.integers(0, classes, cases), top)
        found = rw.evaluate(probs, said, names, resamples=2)
        held.append(
            [
                found[name].low <= t <= found[name].high
                for name, t in zip(names, truth_of(wrong[0], classes), strict=True)
            ]
        )
    assert np.mean(held, axis=0).min() >= 0.94


def truth_of(wrong: float, classes: int) -> list[float]:
    """Return the expected losses, from the probability of each pair of top class and label."""
    total = np.zeros(3)
    for top in range(classes):
        p = np.full(classes, wrong)
        p[top] = 0.999
        f = np.cumsum(p)[:-1]
        for label in range(classes):
            share = 0.95 * (label == top) + 0.05 / classes
            reached = np.arange(classes - 1) >= label
            squares = ((p - np.eye(classes)[label]) ** 2).sum()
            logs = -np.log(np.where(reached, f, 1 - f)).sum()
            total += share / classes * np.array([squares, ((f - reached) ** 2).sum(), logs])
    return [float(one) for one in total]


def test_errors_far_off_are_not_taken_for_near_ones() -> None:
    """Four frequent classes of 22 and eighteen that one label in a hundred is in: 80 such cases.

    Most of the score's variance is in labels that are many classes off, of which there is one in
    such a test set. The cost of an average error made 78% of the intervals hold the truth.
    """
    random, held, usual = np.random.default_rng(43), [], np.repeat([3.0, -3.0], [4, 18])
    truth = np.mean([_expected_ranked(_soft(random, usual, 20_000)) for _ in range(3)])
    for _ in range(60):
        probs = _soft(random, usual, 80)
        said = (random.random((80, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 21)
        found = rw.evaluate(probs, said, "ranked_probability_score", resamples=2)
        held.append(ends(found, "ranked_probability_score")[2] >= truth)
    assert np.mean(held) >= 0.92


def _soft(random: np.random.Generator, usual: np.ndarray, cases: int) -> np.ndarray:
    return np.asarray(softmax(usual + 1.5 * random.normal(size=(cases, len(usual))), axis=1))


def _expected_ranked(probs: np.ndarray) -> float:
    """Return Σ F (1 - F), what the score of a calibrated model is on average."""
    below = probs.cumsum(axis=1)[:, :-1]
    return float((below * (1 - below)).sum(axis=1).mean())
