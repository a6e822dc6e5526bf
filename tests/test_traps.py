"""Traps that calibration code falls into, each set on purpose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raterwise as rw
from raterwise.binning import bin_edges, locate
from raterwise.catalog import CATALOG
from raterwise.questions import Question
from raterwise.summaries import BinPlan
from raterwise.summaries.one_pass import summarise
from raterwise.torch import metrics
from strategies import OF_PROBABILITIES, Array, Problem, ordinary


def cases_per_bin(positive: Any, bins: int) -> list[int]:
    """Count the cases that the library itself puts into each bin of p(class 1)."""
    plan = BinPlan(Question("positive"), bins)
    predictions = rw.Predictions.of(positive, np.zeros(len(positive), int))
    return [int(n) for n in summarise(predictions, [plan])[plan].table.cases[0]]


def values(probs: Any, labels: Any, **options: Any) -> dict[str, float | None]:
    """Return every metric of bare probabilities, without intervals."""
    results = rw.evaluate(probs, labels, metrics=OF_PROBABILITIES, resamples=0, **options)
    return {name: estimate.value for name, estimate in results.items()}


# bins -----------------------------------------------------------------------------------------


def test_zero_and_one_are_in_the_outer_bins() -> None:
    """p = 0 is in the first bin and p = 1 in the last, for every number of bins up to 200."""
    for bins in range(1, 201):
        found = cases_per_bin([0.0, 1.0, 1.0], bins)
        assert found[0] == (1 if bins > 1 else 3)
        assert found[-1] == (2 if bins > 1 else 3)
        assert sum(found) == 3


def test_every_edge_is_in_the_bin_above_it() -> None:
    """The edge between bins i - 1 and i is in bin i, as `[a, b)` says, for up to 200 bins."""
    for bins in range(1, 201):
        edges = bin_edges(bins)
        assert cases_per_bin(edges, bins) == [1] * (bins - 1) + [2]
        assert locate(edges, edges).tolist() == [*range(bins), bins - 1]


def test_just_below_an_edge_is_in_the_bin_below_it() -> None:
    """The float before an edge is in the bin below: no rounding moves a score across an edge."""
    for bins in range(2, 201):
        edges = bin_edges(bins)
        np.testing.assert_allclose(edges, np.arange(bins + 1) / bins, rtol=0, atol=2e-16)
        assert cases_per_bin(np.nextafter(edges[1:-1], 0), bins) == [1] * (bins - 1) + [0]


def test_bins_may_be_edges() -> None:
    """Unequal bins [0, 0.3), [0.3, 1]: gaps 0.1 and 0.6 - 1, by hand."""
    mine = rw.ece([0.1, 0.3, 0.9], [0, 1, 1], bins=[0, 0.3, 1], question="positive")
    assert mine == pytest.approx((0.1 + 2 * abs(0.6 - 1)) / 3)


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (0, "bins: must be at least 1; got 0"),
        (-3, "bins: must be at least 1; got -3"),
        (5041, "bins: must be at most 5040; got 5041"),
        (2.5, "bins: "),
        ("ten", "bins: "),
        ([0.0, 0.5], "bins: edges must run from 0 to 1"),
        ([0.0, 0.7, 0.7, 1.0], "bins: edges must increase"),
    ],
)
def test_impossible_bins_are_refused(bins: Any, message: str) -> None:
    """By the functions and by `evaluate`, naming the argument."""
    with pytest.raises(rw.RaterwiseError, match=message):
        rw.ece([0.2, 0.8], [0, 1], bins=bins)
    with pytest.raises(rw.RaterwiseError, match=message):
        rw.evaluate([0.2, 0.8], [0, 1], metrics="ece", bins=bins)


@pytest.mark.parametrize("bins", [0, 2.5, 5041, 10**20])
def test_impossible_equal_mass_bins_are_refused(bins: Any) -> None:
    """The same for bins that follow from the scores."""
    with pytest.raises(rw.RaterwiseError, match="bins: "):
        rw.adaptive_ece([0.2, 0.8], [0, 1], bins=bins)
    with pytest.raises(rw.RaterwiseError, match="bins: "):
        rw.evaluate([0.2, 0.8], [0, 1], metrics="adaptive_ece", bins=bins)


@pytest.mark.parametrize("norm", [1, 2, 300, 1e6, math.inf])
def test_powers_of_small_gaps_do_not_vanish(norm: float) -> None:
    """One bin with a gap of 0.05 has that error in every norm; 0.05^300 is 0 for a computer.

    Over both classes the sum of powers is twice as large, so that its root is 2^(1/p) 0.05.
    """
    y = [1] * 18 + [0] * 2
    assert rw.ece([0.95] * 20, y, norm=norm) == pytest.approx(0.05)
    assert rw.canonical_ece([0.95] * 20, y, norm=norm) == pytest.approx(0.05 * 2 ** (1 / norm))
    metric = metrics.ECE(num_classes=2, norm=norm)
    metric.update(torch.full((20,), 0.95, dtype=torch.float64), torch.tensor(y))
    assert metric.compute().item() == pytest.approx(0.05)


def test_equal_mass_bins_with_sixty_percent_zeros() -> None:
    """Six zeros of ten fill three of five bins; the rest are pairs. By hand."""
    probs = np.array([0, 0, 0, 0, 0, 0, 0.2, 0.3, 0.6, 0.8])
    y = np.array([0, 0, 0, 0, 0, 1, 1, 0, 1, 1])
    gaps = [abs(0 - 1), abs(0.5 - 1), abs(1.4 - 2)]
    mine = rw.adaptive_ece(probs, y, bins=5, question="positive")
    assert mine == pytest.approx(sum(gaps) / 10)


def test_fewer_cases_than_bins() -> None:
    """Three cases and 15 equal-mass bins: every case is its own bin."""
    probs, y = [0.1, 0.4, 0.8], [1, 0, 1]
    mine = rw.adaptive_ece(probs, y, question="positive")
    assert mine == pytest.approx((0.9 + 0.4 + 0.2) / 3)


# sums -----------------------------------------------------------------------------------------


def test_forty_million_float32_scores() -> None:
    """A float32 sum stops growing at 2^24 cases; 3·10^7 in one bin need float64."""
    scores = np.full(40_000_000, 0.9, np.float32)
    scores[30_000_000:] = 0.3
    y = np.zeros(40_000_000, np.int8)
    y[:24_000_000] = 1
    y[30_000_000:32_500_000] = 1
    many, few = float(np.float32(0.9)), float(np.float32(0.3))
    expected = 0.75 * abs(0.8 - many) + 0.25 * abs(0.25 - few)
    # 3·10^7 additions lose nine digits at the worst, and none of the first seven.
    assert rw.ece(scores, y, question="positive") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("question", ["top_label", "positive"])
def test_float16_does_not_overflow(question: str) -> None:
    """2·10^5 scores of 0.7, half of them right: 0.2. (A float16 sum is infinite at 65504.)"""
    scores = np.full(200_000, 0.7, np.float16)
    y = np.arange(200_000) % 2
    assert rw.ece(scores, y, question=question) == pytest.approx(0.2, abs=1e-3)
    two = np.stack((1 - scores, scores), axis=1)
    assert rw.ece(two, y, question=question) == pytest.approx(0.2, abs=1e-3)


# ties -----------------------------------------------------------------------------------------


def risk_coverage(confidence: Array, correct: Array) -> dict[str, float]:
    """Return the three numbers that depend on the order of the cases by confidence."""
    return {
        "auccc": rw.confidence.auccc(confidence, correct),
        "aurc": rw.confidence.aurc(confidence, correct),
        "augrc": rw.confidence.augrc(confidence, correct),
    }


def test_tied_cases_in_any_order_have_the_same_risks() -> None:
    """All orders of six cases with two ties; AURC is the mean over the orders of tied cases."""
    confidence = np.array([0.9, 0.7, 0.7, 0.7, 0.4, 0.4])
    correct = np.array([1.0, 1, 0, 1, 0, 1])
    expected = risk_coverage(confidence, correct)
    risks = []
    for order in itertools.permutations(range(6)):
        rows = list(order)
        assert risk_coverage(confidence[rows], correct[rows]) == pytest.approx(expected)
        if (np.diff(confidence[rows]) <= 0).all():
            lost = np.cumsum(1 - correct[rows])
            risks.append(np.mean(lost / np.arange(1, 7)))
    assert len(risks) == 12
    assert expected["aurc"] == pytest.approx(np.mean(risks))


def test_all_cases_tied() -> None:
    """One confidence for all: no order to reward, so AUCCC is 1/2 and AURC the error rate."""
    confidence, correct = np.full(10, 0.5), np.arange(10) % 5 > 0
    assert rw.confidence.auccc(confidence, correct) == pytest.approx(0.5)
    assert rw.confidence.aurc(confidence, correct) == pytest.approx(0.2)
    assert rw.confidence.augrc(confidence, correct) == pytest.approx(0.1)


def test_ties_for_the_top_label_go_to_the_lowest_class() -> None:
    """p = (1/2, 1/2): class 0 is predicted, whatever the raters say."""
    assert rw.accuracy([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], [0, 1, 1]) == pytest.approx(1 / 3)
    assert rw.accuracy([0.5, 0.5, 0.5], [0, 1, 1]) == pytest.approx(1 / 3)


# probabilities that are none ------------------------------------------------------------------

GOOD = [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([np.nan, np.nan], r"probs: must not contain NaN; 2 values are NaN, the first in row 1"),
        ([0.5, np.nan], r"probs: must not contain NaN; 1 values are NaN, the first in row 1"),
        ([np.inf, 0.0], r"probs: must lie in \[0, 1\]; row 1 holds inf"),
        ([-np.inf, 1.0], r"probs: must lie in \[0, 1\]; row 1 holds -inf"),
        ([-0.1, 1.1], r"probs: must lie in \[0, 1\]; row 1 holds -0.1 \(logits need a softmax"),
        ([1.5, -0.5], r"probs: must lie in \[0, 1\]; row 1 holds 1.5"),
        ([0.5, 0.33], r"probs: rows must sum to 1 within 1e-4; row 1 sums to 0.83"),
        ([0.9, 0.9], r"probs: rows must sum to 1 within 1e-4; row 1 sums to 1.8"),
        ([0.0, 0.0], r"probs: rows must sum to 1 within 1e-4; row 1 sums to 0"),
    ],
)
def test_rows_that_are_no_probabilities(row: list[float], message: str) -> None:
    """The message says the rule, the row and the value; nothing is clipped or renormalised."""
    probs = np.array([GOOD[0], row, GOOD[2]])
    for kind in (np.float64, np.float32):
        with pytest.raises(rw.InvalidInputError, match=message):
            rw.ece(probs.astype(kind), [0, 1, 0])
    for asked in ("all", "brier", "ece", "auroc"):
        for resamples in (0, 100):
            with pytest.raises(ValueError, match=message):
                rw.evaluate(probs, [0, 1, 0], asked, resamples=resamples)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.1])
def test_scores_that_are_no_probabilities(value: float) -> None:
    """The same for (N,) probabilities of class 1."""
    with pytest.raises(rw.InvalidInputError, match=r"probs: must .* row 2"):
        rw.ece([0.1, 0.2, value], [0, 1, 0])


def test_all_nans_of_a_long_table_are_counted() -> None:
    """A million rows are read in chunks; the message counts the NaNs of all of them."""
    scores = np.full(1_000_000, 0.5)
    scores[[7, 500_000, 999_999]] = np.nan
    with pytest.raises(rw.InvalidInputError, match="3 values are NaN, the first in row 7"):
        rw.ece(scores, np.zeros(1_000_000, int))


def test_float16_rows_may_sum_to_one_within_a_hundredth() -> None:
    """Three digits are what float16 has; more than that is an error in it, too."""
    assert rw.accuracy(np.array([[0.33, 0.674]], np.float16), [1]) == 1
    with pytest.raises(rw.InvalidInputError, match="rows must sum to 1 within 1e-2; row 0"):
        rw.accuracy(np.array([[0.33, 0.7]], np.float16), [1])
    with pytest.raises(rw.InvalidInputError, match="rows must sum to 1 within 1e-4; row 0"):
        rw.accuracy(np.array([[0.33, 0.674]], np.float32), [1])


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        ([], [], "probs: must hold at least one case"),
        (np.empty((0, 3)), [], "probs: must hold at least one case"),
        (np.ones((3, 1)), [0, 0, 0], "probs: must have at least 2 classes"),
        (0.5, [1], "probs: must be 1-dimensional or 2-dimensional"),
        (np.full((2, 2, 2), 0.5), [0, 1], "probs: must be 1-dimensional or 2-dimensional"),
        (GOOD, [0, 1], "labels: must match probs; got 2 labels for 3 cases"),
        (GOOD, [0, 1, 2], "labels: must be classes 0 … 1; entry 2 is 2"),
        (GOOD, [0, -1, 1], "labels: must be classes 0 … 1; entry 1 is -1"),
        (GOOD, [0, 0.5, 1], "labels: must be whole numbers; got 0.5"),
        (GOOD, [0, np.nan, 1], "labels: must be whole numbers; 1 are NaN"),
        (GOOD, [0, np.inf, 1], "labels: must be whole numbers; some are infinite"),
        (GOOD, [[0], [1], [1]], "labels: a plain array must be .*from_ratings.*from_counts"),
        ([0, 1, 1], GOOD, r"labels: a plain array .*; probabilities come first, \(probs, labels\)"),
        (GOOD, rw.Labels.from_classes([0, 1, 2], num_classes=3), "3 classes in labels and 2 in"),
    ],
)
def test_shapes_and_labels_that_do_not_fit(probs: Any, labels: Any, message: str) -> None:
    """Refused by a function and by `evaluate`, with the argument and the value."""
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.ece(probs, labels)
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.evaluate(probs, labels)


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        (["0.5", "0.7"], [0, 1], "probs: must be an array of numbers; got dtype <U3"),
        (np.array([0.5, None], object), [0, 1], "probs: must be an array of numbers; got dtype ob"),
        ([[0.5, 0.5], [1.0]], [0, 1], "probs: must be an array of numbers"),
        ([0.5 + 0j, 0.5], [0, 1], "probs: must be an array of numbers; got dtype complex128"),
        ({"p": 0.5}, [0], "probs: must be an array of numbers"),
        (None, [0], "probs: must be an array of numbers"),
        ([0.5, 0.7], ["benign", "malignant"], "labels: must be an array of numbers.*'benign'"),
        ([0.5, 0.7], np.array([0, "x"], object), "labels: must be an array of numbers"),
    ],
)
def test_things_that_are_no_numbers(probs: Any, labels: Any, message: str) -> None:
    """Text, objects, ragged lists and complex numbers are a TypeError that says so."""
    with pytest.raises(rw.InvalidTypeError, match=message):
        rw.ece(probs, labels)
    with pytest.raises(TypeError):
        rw.ece(probs, labels)


# weights, groups, options ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], "weights: must be finite and not negative; case 1 has -1"),
        ([1, 1, np.nan], "weights: must be finite and not negative; case 2 has nan"),
        ([np.inf, 1, 1], "weights: must be finite and not negative; case 0 has inf"),
        ([0, 0, 0], "weights: at least one must be positive; all are 0"),
        ([1, 1], "weights: must have one value per case; got 2 for 3 cases"),
        ([[1], [1], [1]], "weights: must be 1-dimensional"),
    ],
)
def test_weights_that_are_none(weights: Any, message: str) -> None:
    """Negative, missing, infinite, all zero or too few."""
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.ece(GOOD, [0, 1, 0], weights=weights)
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.confidence.auccc([0.9, 0.8, 0.7], [1, 0, 1], weights=weights)
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.evaluate(GOOD, [0, 1, 0], weights=weights)


def test_a_case_of_weight_zero_cannot_make_the_likelihood_infinite() -> None:
    """0 · -log 0 is a case that does not count, not a NaN: -log 0.5 is left."""
    mine = rw.nll([[1.0, 0.0], [0.5, 0.5]], [1, 0], weights=[0, 1])
    assert mine == pytest.approx(np.log(2))


def test_a_case_of_weight_zero_is_left_out_of_ranks_and_statistics() -> None:
    """Functions that take no probabilities obey the same rule, the debiased ones too."""
    weights, kept = np.array([1.0, 0, 1, 1, 0, 1]), [0, 2, 3, 5]
    confidence = np.array([0.9, 0.8, 0.8, 0.6, 0.3, 0.2])
    correct = np.array([1.0, 0, 1, 0, 1, 0])
    for function in (rw.confidence.auccc, rw.confidence.aurc, rw.confidence.augrc):
        expected = function(confidence[kept], correct[kept])
        assert function(confidence, correct, weights=weights) == pytest.approx(expected)
    labels = ordinary(6).labels
    for loss in (rw.disagreement_loss, rw.disagreement_calibration_loss):
        mine = loss(confidence, labels, weights=weights)
        assert mine == pytest.approx(loss(confidence[kept], labels.take(kept)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question": "second_label"}, "question: must be one of top_label.*'second_label'"),
        ({"per": "patient"}, "per: must be one of annotation, case; got 'patient'"),
        ({"on_unrated": "keep"}, "on_unrated: must be one of error, drop; got 'keep'"),
        ({"bins": True}, "bins: must be a whole number"),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], message: str) -> None:
    """The message lists what is known."""
    with pytest.raises(rw.RaterwiseError, match=message):
        rw.ece(GOOD, [0, 1, 0], **options)


def test_the_positive_question_is_for_two_classes() -> None:
    """Which class would be positive of three is not guessed."""
    with pytest.raises(rw.InvalidInputError, match='"positive" is for 2 classes; probs has 3'):
        rw.ece(np.full((2, 3), 1 / 3), [0, 1], question="positive")


@pytest.mark.parametrize("sigma", [0, -0.1, np.nan, np.inf])
def test_robust_ece_needs_a_width(sigma: float) -> None:
    """A Gaussian of no width is no Gaussian."""
    with pytest.raises(rw.InvalidInputError, match="sigma: must be positive and finite; got"):
        rw.robust_ece(GOOD, [0, 1, 0], sigma=sigma)


def test_a_class_that_is_never_predicted() -> None:
    """SCE counts it as 0; nothing divides by its zero cases."""
    probs, y = [[0.9, 0.1, 0.0], [0.7, 0.2, 0.1]], [0, 0]
    assert rw.sce(probs, y) == pytest.approx((0.1 + 0.3) / 2 / 3)
    within = rw.ece(probs, y, question="predicted_class")
    assert within == pytest.approx(0.2)


# few cases, few classes -----------------------------------------------------------------------


def test_one_case() -> None:
    """p = 0.9 and right: every error is 0.1, ranks are undefined or perfect. By hand."""
    found = values([[0.9, 0.1]], [0])
    expected = {
        **{"accuracy": 1.0, "brier": 0.01, "nll": -np.log(0.9), "ranked_probability_score": 0.01},
        **{"expected_squared_loss": 0.02, "calibration_loss": 0.0, "calibration_error": 0.0},
        **{"ece": 0.1, "mce": 0.1, "rms_ce": 0.1, "adaptive_ece": 0.1, "ece_sweep": 0.1},
        **{"classwise_ece": 0.1, "sce": 0.05, "robust_ece": 0.1, "ks_error": 0.1},
        **{"aurc": 0.0, "augrc": 0.0, "auccc": None, "kde_ece": None, "epistemic_loss": None},
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("right", [True, False])
def test_all_right_and_all_wrong(right: bool) -> None:
    """AUCCC has nobody to compare with; the risks are 0, or 1 and 1/2."""
    confidence = [0.9, 0.8, 0.6]
    correct = [right] * 3
    said = "every case is right" if right else "every case is wrong"
    for function in (rw.confidence.auccc, rw.confidence.ccc_curve):
        with pytest.raises(rw.UndefinedMetricError, match=f"undefined, {said}"):
            function(confidence, correct)
    assert rw.confidence.aurc(confidence, correct) == pytest.approx(0 if right else 1)
    assert rw.confidence.augrc(confidence, correct) == pytest.approx(0 if right else 0.5)


def test_one_class_present() -> None:
    """All labels are class 2 of four: nothing is undefined but the raters' agreement and ranks."""
    problem = ordinary(50, num_classes=4)
    counts = np.zeros_like(problem.counts)
    counts[:, 2] = problem.counts.sum(axis=1)
    found = values(problem.probs, rw.Labels.from_counts(counts))
    missing = {name for name, value in found.items() if value is None}
    no_contrast = {"auroc", "calibration_intercept", "calibration_slope"}
    assert missing == {"fleiss_kappa", "krippendorff_alpha", *no_contrast}
    assert found["irreducible_loss"] == 0
    assert found["nll"] == pytest.approx(-np.log(problem.probs[:, 2]).mean())


def test_perfect_certainty_is_perfect() -> None:
    """p = 1 for what all raters say: no loss, no error, at p = 0 and p = 1."""
    y = np.array([0, 1, 2, 1])
    found = values(np.eye(3)[y], rw.Labels.from_counts(3 * np.eye(3, dtype=int)[y]))
    nothing_wrong = {"auccc", "fpr_at_95_tpr", "failure_average_precision", "spiegelhalter_z"}
    nothing_wrong |= {"calibration_intercept", "calibration_slope"}  # no log odds of 0 and 1
    assert {name for name, value in found.items() if value is None} == nothing_wrong
    for name, value in found.items():
        if name in nothing_wrong or name == "net_benefit":
            continue
        best = 1 if CATALOG[name].direction == "higher" else 0
        if CATALOG[name].group == "Rater agreement" or name == "observed_expected_ratio":
            best = 1
        assert value == pytest.approx(best, abs=1e-12), name
    assert found["net_benefit"] == pytest.approx(1 / 3)  # the mean share of a class


# what the arrays look like --------------------------------------------------------------------


def read_only(array: Any) -> Any:
    """Return a copy that cannot be written to."""
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


FORMS: dict[str, Callable[[Any], Any]] = {
    "Fortran order": np.asfortranarray,
    "every other row of a larger array": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every other column": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "reversed twice": lambda a: a[::-1].copy()[::-1],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "little-endian": lambda a: a.astype(a.dtype.newbyteorder("<")),
    "read-only": read_only,
    "a list": lambda a: a.tolist(),
    "a subclass": lambda a: a.view(np.recarray) if a.ndim == 3 else a.view(np.memmap),
    "long double": lambda a: a.astype(np.longdouble),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_layout_of_the_arrays_does_not_matter(form: str) -> None:
    """Probabilities, counts and weights in another layout give the same digits."""
    problem = ordinary(80)
    change, ones = FORMS[form], np.ones(80)
    expected = values(problem.probs, problem.labels, weights=ones)
    counts = change(problem.counts)
    found = values(change(problem.probs), rw.Labels.from_counts(counts), weights=change(ones))
    assert found == expected


@pytest.mark.parametrize("form", FORMS)
def test_the_layout_of_confidences_does_not_matter(form: str) -> None:
    """The functions of confidence and correctness, and of predicted disagreement, likewise."""
    random, change = np.random.default_rng(0), FORMS[form]
    confidence, correct = random.random(60), random.integers(0, 2, 60).astype(float)
    expected = risk_coverage(confidence, correct)
    assert risk_coverage(change(confidence), change(correct)) == expected
    assert rw.confidence.io_auroc(change(confidence), change(correct)) == rw.confidence.io_auroc(
        confidence, correct
    )
    labels = ordinary(60).labels
    mine = rw.disagreement_loss(change(confidence), labels)
    assert mine == rw.disagreement_loss(confidence, labels)


def test_memory_mapped_arrays(tmp_path: Path) -> None:
    """Predictions and counts that stay on disk."""
    problem = ordinary(80)
    np.save(tmp_path / "probs.npy", problem.probs)
    np.save(tmp_path / "counts.npy", problem.counts)
    probs = np.load(tmp_path / "probs.npy", mmap_mode="r")
    counts = np.load(tmp_path / "counts.npy", mmap_mode="r")
    assert isinstance(probs, np.memmap)
    assert values(probs, rw.Labels.from_counts(counts)) == values(problem.probs, problem.labels)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint64, np.float32, bool])
def test_the_type_of_the_labels_does_not_matter(kind: type) -> None:
    """Any whole numbers, and True and False for two classes, as labels, ratings and counts."""
    problem = ordinary(50, num_classes=2)
    y = problem.first_rater
    expected = rw.brier(problem.probs, y)
    assert rw.brier(problem.probs, y.astype(kind)) == expected
    ratings = rw.Labels.from_ratings(y[:, None].astype(kind), num_classes=2)
    assert rw.brier(problem.probs, ratings) == expected
    long = rw.Labels.from_long(range(50), [0] * 50, y.astype(kind), num_classes=2)
    assert rw.brier(problem.probs, long) == expected
    counts = rw.Labels.from_counts(np.eye(2, dtype=kind)[y])
    assert rw.brier(problem.probs, counts) == expected


def test_whole_numbers_are_probabilities_too() -> None:
    """0 and 1 as integers: a model that is always sure, right twice of three."""
    assert rw.accuracy([0, 1, 1], [0, 1, 0]) == pytest.approx(2 / 3)
    assert rw.ece(np.array([[1, 0], [0, 1], [0, 1]]), [0, 1, 0]) == pytest.approx(1 / 3)


def test_inputs_are_never_modified() -> None:
    """After everything has been computed, the caller's arrays hold what they held."""
    problem = ordinary(60)
    mine = {
        "probs": problem.probs.copy(),
        "counts": problem.counts.copy(),
        "weights": np.linspace(1, 2, 60),
        "groups": np.arange(60) // 3,
    }
    before = {name: array.copy() for name, array in mine.items()}
    rw.evaluate(
        mine["probs"],
        rw.Labels.from_counts(mine["counts"]),
        metrics=OF_PROBABILITIES,
        weights=mine["weights"],
        groups=mine["groups"],
        resamples=20,
    )
    confidence, correct = mine["probs"].max(axis=1), mine["counts"].argmax(axis=1) == 0
    held = confidence.copy(), correct.copy()
    risk_coverage(confidence, correct)
    for name, array in mine.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    np.testing.assert_array_equal((confidence, correct), held)


def test_order_of_the_cases_of_an_ordinary_set() -> None:
    """A shuffled test set has the same values, metric for metric."""
    problem = ordinary(500)
    order = np.random.default_rng(1).permutation(500)
    shuffled: Problem = problem.take(order)
    expected = values(problem.probs, problem.labels)
    assert values(shuffled.probs, shuffled.labels) == pytest.approx(expected, rel=1e-12, abs=1e-14)


# the sweep of equal-mass bins -------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.1, 3.0])
def test_the_sweep_goes_on_to_as_many_bins_as_cases(scale: float) -> None:
    """Three distinct scores, twenty cases: ten equal-mass bins tell them apart, three do not.

    16 cases at 0.3, 4 right; 2 at 0.4, 1 right; 2 at 0.9, 1 right: gaps 0.8, 0.2 and 0.8 of 20.
    """
    z = np.repeat([0.3, 0.4, 0.9], [16, 2, 2])
    labels = np.r_[np.ones(4, int), np.zeros(12, int), 0, 1, 0, 1]
    found = rw.ece_sweep(z, labels, question="positive", weights=np.full(20, scale))
    assert found == pytest.approx((0.8 + 0.2 + 0.8) / 20)
    repeated = rw.ece_sweep(np.repeat(z, 3), np.repeat(labels, 3), question="positive")
    assert repeated == pytest.approx(found)
