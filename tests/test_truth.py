"""Values that are known: closed forms, sums over all subsets, simulations with a known truth.

Every simulation has a fixed seed and a tolerance of three of its own standard errors, or a stated
multiple of one that follows from theory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import oracle
import raterwise as rw
from strategies import Array, Counts, Problem, ordinary, problems

# a perfect predictor (LH figure 2) ------------------------------------------------------------


def perfect_predictor(
    cases: int, raters: int, runs: int, seed: int = 0
) -> Iterator[tuple[Array, rw.Labels]]:
    """Yield test sets in which the true probability q ~ U(0, 1) of a label is what is predicted."""
    random = np.random.default_rng([seed, cases, raters])
    for _ in range(runs):
        q = random.random(cases)
        positive = random.binomial(raters, q)
        counts = np.stack((raters - positive, positive), axis=1)
        yield np.stack((1 - q, q), axis=1), rw.Labels.from_counts(counts)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return the mean of the runs and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


SIZES = [(100, 300), (1_000, 100), (10_000, 40)]


@pytest.mark.parametrize("raters", [2, 5])
@pytest.mark.parametrize(("cases", "runs"), SIZES)
def test_unbiased_epistemic_loss_of_a_perfect_predictor(cases: int, runs: int, raters: int) -> None:
    """LH figure 2: unbiased is 0 on average; plugin is E[q(1-q)]·2/n = 1/(3n) at any N."""
    sets = list(perfect_predictor(cases, raters, runs))
    mean, error = mean_and_error([rw.epistemic_loss(p, y) for p, y in sets])
    assert abs(mean) < 3 * error
    plugin, error = mean_and_error([rw.epistemic_loss(p, y, estimator="plugin") for p, y in sets])
    assert plugin == pytest.approx(1 / (3 * raters), abs=3 * error)
    assert plugin > 20 * error


@pytest.mark.parametrize("raters", [2, 5])
@pytest.mark.parametrize(("cases", "runs"), SIZES)
def test_debiased_calibration_loss_of_a_perfect_predictor(
    cases: int, runs: int, raters: int
) -> None:
    """LH figure 2: debiased is 0 on average.

    Plugin is about 2 · 15 bins · E[q(1-q)] / (n N): each bin's mean of N/15 frequencies of
    variance q(1-q)/n is off by that much, squared, and counts 1/15.
    """
    sets = list(perfect_predictor(cases, raters, runs))
    mean, error = mean_and_error([rw.calibration_loss(p, y) for p, y in sets])
    assert abs(mean) < 3 * error
    plugin, spread = mean_and_error(
        [rw.calibration_loss(p, y, estimator="plugin") for p, y in sets]
    )
    assert plugin == pytest.approx(2 * 15 / 6 / (raters * cases), abs=3 * spread)
    assert abs(mean) < plugin / 3


@pytest.mark.parametrize("raters", [2, 5])
def test_disagreement_loss_is_unbiased(raters: int) -> None:
    """D ~ Bernoulli(d) with d = 2q(1-q) predicted: E[d(1-d)] = 1/3 - 2/15 = 1/5."""
    losses, calibration = [], []
    for probs, labels in perfect_predictor(1_000, raters, 100, seed=1):
        d = 2 * probs[:, 0] * probs[:, 1]
        losses.append(rw.disagreement_loss(d, labels))
        calibration.append(rw.disagreement_calibration_loss(d, labels))
    mean, error = mean_and_error(losses)
    assert mean == pytest.approx(1 / 5, abs=3 * error)
    mean, error = mean_and_error(calibration)
    assert abs(mean) < 3 * error


@pytest.mark.parametrize("gap", [0.1, 0.3])
def test_epistemic_and_calibration_loss_of_a_known_miscalibration(gap: float) -> None:
    """Predicting q(1-gap) of class 1: EL = 2 gap² E[q²] = 2 gap²/3, all of it in the means."""
    epistemic, calibration = [], []
    for probs, labels in perfect_predictor(2_000, 3, 60, seed=2):
        positive = probs[:, 1] * (1 - gap)
        epistemic.append(rw.epistemic_loss(positive, labels))
        calibration.append(rw.calibration_loss(positive, labels))
    mean, error = mean_and_error(epistemic)
    assert mean == pytest.approx(2 * gap**2 / 3, abs=3 * error)
    mean, error = mean_and_error(calibration)
    # Within a bin the gap varies with q by a little: at most (gap/15)²/12 · 2.
    assert mean == pytest.approx(2 * gap**2 / 3, abs=3 * error + (gap / 15) ** 2 / 6)


@settings(max_examples=30)
@given(problem=problems())
def test_squared_loss_is_epistemic_plus_irreducible(problem: Problem) -> None:
    """LH eqs 5-7 hold for the unbiased estimates exactly, and EL = CL + dispersion."""
    probs, labels = problem.probs, problem.labels
    epistemic = rw.epistemic_loss(probs, labels)
    parts = epistemic + rw.irreducible_loss(labels)
    assert rw.expected_squared_loss(probs, labels) == pytest.approx(parts, abs=1e-13)
    for estimator, first in (("debiased", "unbiased"), ("plugin", "plugin")):
        whole = rw.epistemic_loss(probs, labels, estimator=first)
        parts = rw.calibration_loss(probs, labels, estimator=estimator)
        parts += rw.dispersion_loss(probs, labels, estimator=estimator)
        assert parts == pytest.approx(whole, abs=1e-13)


# statistics of several labels -----------------------------------------------------------------


def differ(labels: tuple[int, ...]) -> bool:
    """Tell whether two raters disagree."""
    return labels[0] != labels[1]


def unanimous(labels: tuple[int, ...]) -> bool:
    """Tell whether all raters agree."""
    return len(set(labels)) == 1


def distinct(labels: tuple[int, ...]) -> int:
    """Count the different labels, less one: 0, 1 or 2 of three raters."""
    return len(set(labels)) - 1


def subsets(y: Counts, order: int) -> list[tuple[int, ...]]:
    """List the labels of every choice of `order` raters."""
    return list(itertools.combinations(oracle.label_list(y), order))


@pytest.mark.parametrize(("statistic", "order"), [(differ, 2), (unanimous, 3), (unanimous, 4)])
@settings(max_examples=25)
@given(problem=problems(min_raters=4, max_cases=6))
def test_statistic_losses_are_those_over_all_subsets_of_raters(
    statistic: Callable[[tuple[int, ...]], bool], order: int, problem: Problem
) -> None:
    """LH eqs 16 and 40: every subset of the raters in turn."""
    predicted = problem.probs[:, 0]
    mine = rw.statistic_loss(statistic, predicted, problem.labels, order=order)
    assert mine == pytest.approx(oracle.statistic_loss(statistic, predicted, problem.counts, order))
    for estimator in ("plugin", "debiased"):
        mine = rw.statistic_calibration_loss(
            statistic, predicted, problem.labels, order=order, bins=4, estimator=estimator
        )
        theirs = oracle.statistic_calibration_loss(
            statistic, predicted, problem.counts, order, 4, estimator
        )
        assert mine == pytest.approx(theirs, abs=1e-12)


@settings(max_examples=25)
@given(problem=problems(num_classes=3, min_raters=3, max_cases=6))
def test_a_statistic_of_three_values_sums_over_its_values(problem: Problem) -> None:
    """How many different labels three raters give: squared distance to its indicator, by hand."""
    mine = rw.statistic_loss(distinct, problem.probs, problem.labels, order=3)
    total = 0.0
    for p, y in zip(problem.probs, problem.counts, strict=True):
        each = [float(((np.eye(3)[distinct(s)] - p) ** 2).sum()) for s in subsets(y, 3)]
        total += float(np.mean(each))
    assert mine == pytest.approx(total / len(problem))


@settings(max_examples=25)
@given(problem=problems(max_cases=6))
def test_disagreement_is_the_statistic_of_two_labels(problem: Problem) -> None:
    """The closed form for pairs of raters is the general one."""
    predicted = problem.probs[:, 0]
    mine = rw.disagreement_loss(predicted, problem.labels)
    theirs = rw.statistic_loss(lambda a, b: a != b, predicted, problem.labels, order=2)
    assert mine == pytest.approx(theirs, abs=1e-13)


# calibration errors in the limit --------------------------------------------------------------


def test_ece_of_a_known_miscalibration() -> None:
    """P(class 1) = p² where p ~ U(0, 1) is predicted: ECE → E[p - p²] = 1/6, KS too."""
    random = np.random.default_rng(0)
    p = random.random(400_000)
    y = (random.random(400_000) < p**2).astype(np.int8)
    error = 3 * 0.5 / math.sqrt(400_000)
    for metric in (rw.ece, rw.adaptive_ece, rw.ks_error):
        assert metric(p, y, question="positive") == pytest.approx(1 / 6, abs=error)
    # sqrt(E[(p - p²)²]) = sqrt(1/30), less the variation within a bin.
    rms = rw.rms_ce(p, y, bins=100, question="positive")
    assert rms == pytest.approx(math.sqrt(1 / 30), abs=error)
    # The largest gap is 1/4, at p = 1/2.
    assert rw.mce(p, y, question="positive") == pytest.approx(1 / 4, abs=0.01)


def test_ece_of_an_overconfident_model_with_five_raters() -> None:
    """Confidence c ~ U(0.5, 1), each rater agrees with probability c - 0.1: every error is 0.1."""
    random = np.random.default_rng(1)
    c = random.uniform(0.5, 1, 100_000)
    agree = random.binomial(5, c - 0.1)
    probs = np.stack((c, 1 - c), axis=1)
    labels = rw.Labels.from_counts(np.stack((agree, 5 - agree), axis=1))
    for metric in (rw.ece, rw.adaptive_ece, rw.rms_ce, rw.ks_error, rw.robust_ece):
        assert metric(probs, labels) == pytest.approx(0.1, abs=0.003)
    assert rw.classwise_ece(probs, labels) == pytest.approx(0.1, abs=0.003)


def test_robust_ece_tends_to_ece() -> None:
    """With scores off the edges and σ → 0 each score is in its own bin alone."""
    problem = ordinary(300)
    confidence = problem.probs.max(axis=1)
    distance = np.abs(confidence[:, None] - np.linspace(0, 1, 16)).min()
    assert distance > 1e-6
    expected = rw.ece(problem.probs, problem.labels)
    near = rw.robust_ece(problem.probs, problem.labels, sigma=distance / 10)
    assert near == pytest.approx(expected, abs=1e-12)
    far = rw.robust_ece(problem.probs, problem.labels, sigma=0.1)
    assert far != pytest.approx(expected, abs=1e-4)


def test_robust_ece_of_a_very_wide_gaussian_is_the_overall_gap() -> None:
    """σ → ∞: every case is spread evenly, and what is left is |mean accuracy - confidence|."""
    problem = ordinary(300, raters=3)
    gap = abs(rw.accuracy(problem.probs, problem.labels) - problem.probs.max(axis=1).mean())
    assert rw.robust_ece(problem.probs, problem.labels, sigma=1e4) == pytest.approx(gap, rel=1e-6)


def test_several_raters_make_the_error_steadier() -> None:
    """MR's claim: over test sets, MR-ECE varies less than the ECE of one rater, and is lower.

    A calibrated model's ECE is all noise; five raters who vary independently have 1/5 of the
    variance in each bin, so both the mean and the spread shrink by about sqrt(5).
    """
    one: list[float] = []
    five: list[float] = []
    for probs, labels in perfect_predictor(500, 5, 150, seed=3):
        ratings = labels.counts
        random = np.random.default_rng(len(one))
        single = (random.random(500) < ratings[:, 1] / 5).astype(int)
        one.append(rw.ece(probs, single))
        five.append(rw.ece(probs, labels))
    assert np.std(one) / np.std(five) == pytest.approx(math.sqrt(5), rel=0.25)
    assert np.mean(one) / np.mean(five) == pytest.approx(math.sqrt(5), rel=0.1)


# proper scores by hand ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "label", "expected"),
    [
        ([0.5, 0.25, 0.25], 0, 0.5**2 + 0.25**2),
        ([0.5, 0.25, 0.25], 1, 0.5**2 + 0.25**2),
        ([0.5, 0.25, 0.25], 2, 0.5**2 + 0.75**2),
        ([1.0, 0.0, 0.0, 0.0], 3, 3.0),
        ([0.25, 0.25, 0.25, 0.25], 1, 0.25**2 + 0.5**2 + 0.25**2),
        ([0.3, 0.7], 1, 0.3**2),
    ],
)
def test_ranked_probability_score_by_hand(p: list[float], label: int, expected: float) -> None:
    """Σ_k (F_k - 1[label <= k])²; with two classes it is the (halved) Brier score."""
    assert rw.ranked_probability_score([p], [label]) == pytest.approx(expected)
    if len(p) == 2:
        assert rw.brier([p], [label]) == pytest.approx(expected)


def test_ranked_probability_score_of_two_raters_by_hand() -> None:
    """Like every proper score here, the mean over the raters: of classes 0 and 2."""
    labels = rw.Labels.from_counts([[1, 0, 1]])
    expected = ((0.5**2 + 0.25**2) + (0.5**2 + 0.75**2)) / 2
    assert rw.ranked_probability_score([[0.5, 0.25, 0.25]], labels) == pytest.approx(expected)


def test_brier_score_of_the_uniform_prediction() -> None:
    """K classes, 1/K each: 1 - 1/K, and half of it by convention for K = 2."""
    for k in (2, 3, 10):
        probs, y = np.full((4, k), 1 / k), [0, 1, 1, 0]
        assert rw.brier(probs, y, scale_by_half=False) == pytest.approx(1 - 1 / k)
        assert rw.brier(probs, y, scale_by_half=True) == pytest.approx((1 - 1 / k) / 2)
        assert rw.brier(probs, y) == pytest.approx((1 - 1 / k) / (2 if k == 2 else 1))
        assert rw.nll(probs, y) == pytest.approx(math.log(k))


# ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0])
def test_auccc_of_two_normals(distance: float) -> None:
    """P(N(d, 1) > N(0, 1)) = Φ(d / √2); the standard error is at most 1 / (2 √min(n))."""
    random = np.random.default_rng(0)
    right, wrong = random.normal(distance, 1, 30_000), random.normal(0, 1, 20_000)
    confidence = np.concatenate((right, wrong))
    correct = np.repeat([1, 0], [30_000, 20_000])
    expected = 0.5 * math.erfc(-distance / 2)
    tolerance = 3 * 0.5 / math.sqrt(20_000)
    assert rw.confidence.auccc(confidence, correct) == pytest.approx(expected, abs=tolerance)
    assert rw.confidence.auccc(right, np.ones(30_000), outside=wrong) == pytest.approx(
        expected, abs=tolerance
    )
    assert rw.confidence.io_auroc(right, wrong) == pytest.approx(expected, abs=tolerance)
    assert rw.confidence.ccc_curve(confidence, correct).area == pytest.approx(
        expected, abs=tolerance
    )


def test_risks_of_a_confidence_that_says_nothing() -> None:
    """Independent of being right: AURC is the error rate e, AUGRC e/2, AUCCC 1/2."""
    random = np.random.default_rng(0)
    confidence, correct = random.random(100_000), random.random(100_000) < 0.7
    assert rw.confidence.auccc(confidence, correct) == pytest.approx(0.5, abs=0.01)
    assert rw.confidence.aurc(confidence, correct) == pytest.approx(0.3, abs=0.01)
    assert rw.confidence.augrc(confidence, correct) == pytest.approx(0.15, abs=0.005)


def test_risks_of_a_confidence_that_knows() -> None:
    """All right ones first: AUCCC 1, AUGRC e²/2, AURC e + (1-e) log(1-e) as N grows."""
    correct = np.arange(100_000) >= 30_000
    confidence = np.arange(100_000) / 100_000
    e = 0.3
    assert rw.confidence.auccc(confidence, correct) == 1
    assert rw.confidence.augrc(confidence, correct) == pytest.approx(e**2 / 2)
    expected = e + (1 - e) * math.log(1 - e)
    assert rw.confidence.aurc(confidence, correct) == pytest.approx(expected, abs=1e-4)


def test_fractions_of_raters_count_as_so_many_cases() -> None:
    """A case that 2 of 3 raters call right is two right cases and one wrong one."""
    confidence, correct = np.array([0.9, 0.6, 0.3]), np.array([1.0, 2 / 3, 0.0])
    rows, hits = np.repeat(confidence, 3), np.array([1, 1, 1, 1, 1, 0, 0, 0, 0])
    functions: list[Callable[..., Any]] = [rw.confidence.auccc, rw.confidence.augrc]
    for function in functions:
        assert function(confidence, correct) == pytest.approx(function(rows, hits))
    assert rw.confidence.aurc(confidence, correct, weights=[3, 3, 3]) == pytest.approx(
        rw.confidence.aurc(rows, hits)
    )
