"""What a calibrated model would show of every class: one label per case, over all classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

import raterwise as rw
from raterwise.inference.noise import calibrated_draws, in_concert
from raterwise.summaries.entries import Entries

BINS = 4


def covariance_of(probs: np.ndarray) -> np.ndarray:
    """Return that of the cells' sums of labels, case by case: diag(p) - p pᵀ."""
    classes = probs.shape[1]
    out = np.zeros((classes * BINS, classes * BINS))
    for p in probs:
        cells = np.minimum((p * BINS).astype(int), BINS - 1) + BINS * np.arange(classes)
        out[np.ix_(cells, cells)] += np.diag(p) - np.outer(p, p)
    return out


def one_case_each(probs: np.ndarray) -> Entries:
    """Return entries in which every case is a unit of its own."""
    cases, classes = probs.shape
    cell = np.minimum((probs * BINS).astype(int), BINS - 1) + BINS * np.arange(classes)
    values = np.zeros((cases * classes, 5))
    values[:, :2], values[:, 3] = 1, probs.ravel()
    return Entries(np.repeat(np.arange(cases), classes), cell.ravel(), values)


def test_labels_that_are_drawn_case_by_case_are_multinomial() -> None:
    """Mean 0 and the covariance of one label per case, worked out from the probabilities."""
    random = np.random.default_rng(0)
    probs = softmax(random.normal(0, 1.5, (40, 3)), axis=1)
    drawn = one_case_each(probs).null_draws(3, BINS, 1, 1, 20_000, random)
    assert drawn is not None
    flat, exact = drawn.reshape(len(drawn), -1), covariance_of(probs)
    spread = np.sqrt(np.outer(exact.diagonal(), exact.diagonal())) + 1e-12
    assert np.abs(flat.mean(axis=0)).max() < 0.05
    assert np.abs((np.cov(flat.T) - exact) / spread).max() < 0.05
    assert np.abs(drawn.sum(axis=(1, 2))).max() < 1e-9  # every label is of one class
    three = one_case_each(probs).null_draws(3, BINS, 3, 0, 20_000, random)
    assert three is not None
    assert three.var() == pytest.approx(drawn.var() / 3, rel=0.05)


def test_raters_of_one_case_are_wrong_together_about_every_class() -> None:
    """Two raters who agree by a: both say k in a p + (1 - a) p², one of them 2 (1 - a) p (1 - p).

    A single label shrunk to the variance of the mean of two is never off by all that it can be, and
    MCE by class of calibrated models then had 8 to 22% false alarms.
    """
    p, a = np.array([0.2, 0.3, 0.5]), 0.6
    random = np.random.default_rng(11)
    drawn = one_case_each(p[None]).null_draws(3, BINS, 2, a, 40_000, random)
    assert drawn is not None
    off = drawn.sum(axis=2)  # of the one bin that the case is in
    both, one = a * p + (1 - a) * p**2, 2 * (1 - a) * p * (1 - p)
    for at, expected in ((1 - p, both), (0.5 - p, one), (-p, 1 - both - one)):
        assert np.isclose(off, at).mean(axis=0) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("raters", [1.4, 2.6, 40.0])
def test_any_number_of_raters_has_the_variance_of_their_mean(raters: float) -> None:
    """p (1 - p) (a + (1 - a) / R), also of part of a rater, or more raters than are drawn."""
    p, a = np.array([0.2, 0.3, 0.5]), 0.3
    random = np.random.default_rng(12)
    drawn = one_case_each(p[None]).null_draws(3, BINS, raters, a, 200_000, random)
    assert drawn is not None
    expected = p * (1 - p) * (a + (1 - a) / raters)
    assert drawn.sum(axis=2).var(axis=0) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("metric", ["ece", "mce"])
def test_raters_who_always_say_the_same_are_one_rater(metric: str) -> None:
    """Their labels are drawn together, so that three tell no more of each class than one."""
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(3), 80)
    y = np.array([random.choice(3, p=q) for q in p])
    alone, together = (
        rw.evaluate(p, labels, metric, question="per_class", resamples=100)[metric]
        for labels in (rw.Labels.from_classes(y, 3), rw.Labels.from_ratings(np.stack([y] * 3, 1)))
    )
    for end in ("value", "low", "high", "debiased", "p_value"):
        assert getattr(together, end) == pytest.approx(getattr(alone, end), abs=1e-9)


def test_raters_who_speak_for_themselves_show_more_than_one() -> None:
    """A model that is far too sure of 60 cases: one rater leaves it open, nine do not."""
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(3), 60)
    truth = p**0.4 / (p**0.4).sum(axis=1, keepdims=True)
    ratings = np.array([random.choice(3, 9, p=q) for q in truth])
    asked = {"metrics": "mce", "question": "per_class", "resamples": 200}
    one = rw.evaluate(p, rw.Labels.from_classes(ratings[:, 0], 3), **asked)["mce"]
    nine = rw.evaluate(p, rw.Labels.from_ratings(ratings, num_classes=3), **asked)["mce"]
    assert nine.p_value < 0.05 < one.p_value
    assert nine.low > 0 == one.low


def test_units_of_several_cases_have_no_probabilities_of_their_own() -> None:
    """Two cases in one unit: their sums are known, not who has which."""
    both = one_case_each(softmax(np.random.default_rng(1).normal(size=(20, 3)), axis=1))
    together = Entries(both.unit // 2, both.cell, both.values)
    assert together.null_draws(3, BINS, 1, 1, 10, np.random.default_rng(0)) is None


def test_cells_vary_together_as_their_cases_do() -> None:
    """The covariance from sums is that of the cases; draws of cells are put in its order."""
    random = np.random.default_rng(2)
    probs = softmax(random.normal(0, 1.5, (400, 3)), axis=1)
    exact = covariance_of(probs)
    assert one_case_each(probs).null_covariance(3, BINS) == pytest.approx(exact, abs=1e-9)
    cell = np.minimum((probs * BINS).astype(int), BINS - 1)
    number, mean = np.zeros((2, 3, BINS))
    for k in range(3):
        number[k] = np.bincount(cell[:, k], minlength=BINS)
        mean[k] = np.bincount(cell[:, k], probs[:, k], BINS) / np.maximum(number[k], 1)
    apart = calibrated_draws(mean, number / 400, 400, draws=4000, random=random)
    moved = in_concert(apart, exact)
    assert np.sort(moved, axis=0) == pytest.approx(np.sort(apart, axis=0))
    flat, held = moved.reshape(4000, -1), number.ravel() > 20
    wanted = (exact / np.sqrt(np.outer(exact.diagonal(), exact.diagonal()) + 1e-300))[held][:, held]
    assert np.corrcoef(flat[:, held].T) == pytest.approx(wanted, abs=0.08)


@pytest.mark.parametrize("p", [0.02, 0.03])
def test_a_class_without_positives_is_tested_by_the_binomial(p: float) -> None:
    """200 cases with one probability and no positive: `low` is 0 where the exact test says so."""
    probs = np.tile([1 - p, p], (200, 1))
    labels = rw.Labels.from_classes(np.zeros(200, int), num_classes=2)
    found = rw.evaluate(probs, labels, metrics=["classwise_ece", "calibration_error"])
    counts = np.arange(201)
    as_far = np.abs(counts - 200 * p) >= 200 * p - 1e-9
    exact = binom.pmf(counts[as_far], 200, p).sum()  # 0.067 and 0.005
    for name in ("classwise_ece", "calibration_error"):
        assert (found[name].low > 0) == (exact <= 0.05)


def test_the_test_at_zero_of_classes_has_its_size_and_power() -> None:
    """Three classes, 100 cases: few calibrated models are called off, most with logits × 2 are."""
    called = {1.0: 0, 2.0: 0}
    for scale in called:
        for r in range(60):
            random = np.random.default_rng([3, r])
            logits = random.normal(0, 1.5, (100, 3))
            reached = np.cumsum(softmax(logits, axis=1), axis=1)
            labels = (random.random((100, 1)) > reached).sum(axis=1).clip(max=2)
            found = rw.evaluate(
                softmax(scale * logits, axis=1), rw.Labels.from_classes(labels, num_classes=3),
                metrics="classwise_ece", resamples=100, seed=r, threads=1,
            )["classwise_ece"]  # fmt: skip
            called[scale] += found.low > 0
    assert called[1.0] <= 8  # 3 are expected
    assert called[2.0] >= 40  # the inverted test finds a handful
