"""Study planning against direct simulation."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import raterwise as rw
from raterwise.catalog import find
from raterwise.evaluation.request import Request
from raterwise.planning import Design, StudyPlan, plan
from raterwise.planning.pilot import _truth
from raterwise.predictions import Predictions

LEVEL = 2 * 1.959964


def gamma_width(mean: float, variance: float, freedom: float) -> float:
    """Fay and Feuer's interval of a loss of that variance: one more event, as those seen."""
    variance *= (stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975)) ** 2
    more = variance / mean
    above, spread = mean + more, variance + more**2
    low = stats.gamma.ppf(0.025, mean**2 / variance, scale=variance / mean)
    return float(stats.gamma.ppf(0.975, above**2 / spread, scale=spread / above) - low)


def study(
    cases: int, raters: int, random: np.random.Generator, spread: float = 2.0
) -> tuple[np.ndarray, rw.Labels]:
    """An over-confident model of a Dirichlet truth, and its raters."""
    mean = random.dirichlet(np.ones(3), cases)
    gammas = random.standard_gamma(spread * mean)
    truth = gammas / gammas.sum(axis=1, keepdims=True)
    sharp = mean**1.5
    labels = rw.Labels.from_counts(random.multinomial(raters, truth))
    return sharp / sharp.sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("metric", ["accuracy", "brier", "nll"])
def test_formula_widths_are_those_of_real_studies(metric: str) -> None:
    """The width foreseen from a pilot is 2 · 1.96 standard deviations of repeated real studies."""
    pilot = plan(metric, *study(3000, 2, np.random.default_rng(0)), cases=(150,), raters=(1, 4))
    for design in pilot.designs:
        assert design.method == "formula"
        random = np.random.default_rng(design.raters)
        function = getattr(rw, metric)
        values = [function(*study(150, design.raters, random)) for _ in range(400)]
        assert design.width == pytest.approx(LEVEL * np.std(values), rel=0.12), design


@pytest.mark.parametrize("metric", ["accuracy", "brier"])
def test_formula_widths_are_those_of_the_intervals_of_real_studies(metric: str) -> None:
    """Studies of 60 cases have intervals 4 to 8% wider than 2 · 1.96 standard errors: foreseen."""
    pilot = plan(metric, *study(4000, 2, np.random.default_rng(0)), cases=(60,), raters=(1, 4))
    for design in pilot.designs:
        random = np.random.default_rng(design.raters)
        made = [
            rw.evaluate(*study(60, design.raters, random), metrics=metric, resamples=2)[metric]
            for _ in range(150)
        ]
        widths = [e.high - e.low for e in made if e.high is not None and e.low is not None]
        assert design.width == pytest.approx(np.mean(widths), rel=0.02), design


def test_a_pilot_without_an_error_does_not_promise_a_point() -> None:
    """Forty cases, all right: Clopper and Pearson's 1 - 0.025^(1/N) of N cases, not 0."""
    labels = rw.Labels.from_ratings([[0, 0], [1, 1]] * 20, num_classes=2)
    found = plan("accuracy", [0.1, 0.9] * 20, labels, cases=(50, 200), raters=(1, 2))
    for design in found.designs:
        assert design.width == pytest.approx(1 - 0.025 ** (1 / design.cases))


def test_simulated_width_and_bias_of_ece() -> None:
    """The foreseen bias of the plain ECE is that of real studies; fewer raters, more bias."""
    probs, labels = study(1500, 3, np.random.default_rng(1))
    found = plan("ece", probs, labels, cases=(150,), raters=(1, 4), repeats=30, resamples=50)
    random = np.random.default_rng(2)
    truth = rw.ece(*study(200_000, 5, random))
    for design in found.designs:
        assert design.method == "simulation"
        values = [rw.ece(*study(150, design.raters, random)) for _ in range(300)]
        assert design.bias == pytest.approx(np.mean(values) - truth, abs=0.01), design
        assert 0 < design.width < 0.4
    one, four = found.designs
    assert one.bias > four.bias
    assert one.width > four.width


def test_simulated_widths_are_those_of_real_studies() -> None:
    """The foreseen width of the ECE's interval is the mean width in studies of the real world."""
    probs, labels = study(1500, 3, np.random.default_rng(7))
    found = plan("ece", probs, labels, cases=(150,), raters=(1, 4), repeats=30, resamples=100)
    random = np.random.default_rng(8)
    for design in found.designs:
        results = [
            rw.evaluate(*study(150, design.raters, random), metrics="ece", resamples=100)["ece"]
            for _ in range(30)
        ]
        widths = [result.high - result.low for result in results]
        spread = np.std(widths, ddof=1)
        error = spread / np.sqrt(len(widths))
        # Of 30 simulated studies, and of a pilot ten times as large as the study.
        assert design.width_error == pytest.approx(spread * np.sqrt(1 / 30 + 1 / 10), rel=0.5)
        assert abs(design.width - np.mean(widths)) < 3.5 * np.hypot(error, design.width_error)


@pytest.mark.parametrize(("metric", "raters", "least"), [("brier", 2, 0.85), ("nll", 3, 0.75)])
def test_the_error_of_a_formula_is_that_of_the_pilot(
    metric: str, raters: int, least: float
) -> None:
    """Pilots of 80 cases scatter by what they say, and two standard errors reach the truth."""
    truth = plan(metric, *study(40_000, 3, np.random.default_rng(10)), cases=(150,), raters=(1, 4))
    random = np.random.default_rng(11)
    pilots = [
        plan(metric, *study(80, raters, random), cases=(150,), raters=(1, 4)).designs
        for _ in range(120)
    ]
    for j, true in enumerate(truth.designs):
        widths = np.array([designs[j].width for designs in pilots])
        errors = np.array([designs[j].width_error for designs in pilots])
        assert errors.mean() == pytest.approx(widths.std(ddof=1), rel=0.25)
        assert np.mean(np.abs(widths - true.width) < 2 * errors) > least


def test_patients_make_the_pilot_less_sure() -> None:
    """Five copies of each case, told to be one patient's, leave the pilot's relative error."""
    probs, labels = study(100, 2, np.random.default_rng(12))
    copied = np.repeat(probs, 5, axis=0)
    many, who = rw.Labels.from_counts(np.repeat(labels.counts, 5, axis=0)), np.arange(500) // 5
    alone = plan("brier", probs, labels, cases=(100,), raters=(2,)).designs[0]
    together = plan("brier", copied, many, cases=(100,), raters=(2,), groups=who).designs[0]
    ignored = plan("brier", copied, many, cases=(100,), raters=(2,)).designs[0]
    relative = alone.width_error / alone.width
    assert together.width_error / together.width == pytest.approx(relative, rel=0.3)
    assert ignored.width_error / ignored.width < 0.6 * relative


def test_the_error_of_a_simulation_counts_the_pilot() -> None:
    """Small pilots disagree about the width of the ECE's interval by no more than they say."""
    random, options = np.random.default_rng(13), {"cases": (100,), "raters": (3,)}
    pilots = [
        plan("ece", *study(60, 3, random), repeats=8, resamples=40, seed=s, **options).designs[0]
        for s in range(24)
    ]
    real = [
        rw.evaluate(*study(100, 3, random), metrics="ece", resamples=40)["ece"] for _ in range(40)
    ]
    truth = np.mean([result.high - result.low for result in real])
    widths = np.array([design.width for design in pilots])
    errors = np.array([design.width_error for design in pilots])
    assert widths.std(ddof=1) < 1.2 * errors.mean()
    assert np.mean(np.abs(widths - truth) < 2 * errors) > 0.8
    # The error of eight simulations alone would not do.
    alone = errors / np.sqrt(1 + 8 * 100 / 60)
    assert np.mean(np.abs(widths - truth) < 2 * alone) < 0.8


def test_the_standard_errors_are_those_of_the_simulation() -> None:
    """With one large pilot, bias scatters over seeds by what `bias_error` says."""
    probs, labels = study(4000, 3, np.random.default_rng(9))
    options = {"cases": (60,), "raters": (2,), "repeats": 15, "resamples": 2}
    designs = [plan("ece", probs, labels, seed=s, **options).designs[0] for s in range(20)]
    scatter = np.std([design.bias for design in designs], ddof=1)
    said = np.mean([design.bias_error for design in designs])
    # 20 draws: the standard deviation of a standard deviation is 16 %; the truth adds a little.
    assert said == pytest.approx(scatter, rel=0.55)


def test_advice_admits_what_the_simulation_cannot_tell() -> None:
    """Designs whose widths differ by less than 1.96 standard errors: 0.05 ± 0.0784 holds 0.

    A pilot that is (0.0784 / 0.05)² = 2.46 times as large could tell, were that the difference.
    """
    clear = Design(100, 1, 0.20, 0.0, "simulation", 0.001), Design(50, 2, 0.25, 0.0, "simulation")
    close = Design(100, 1, 0.20, 0.0, "simulation", 0.04), Design(50, 2, 0.25, 0.0, "simulation")
    for designs, doubt in ((clear, False), (close, True)):
        said = StudyPlan("ece", 0.95, designs).advice(100)
        assert "100 cases with 1 rater each: expected interval width 0.2." in said
        assert "50 cases with 2 raters each: 0.25" in said
        assert said.startswith("This pilot cannot tell whether the next reading is") == doubt
        assert ("wider by 0.05 [-0.028, 0.13], an interval that holds 0." in said) == doubt
        assert ("2.5 times as many cases and as many more --repeats could tell" in said) == doubt
        assert ("better spent on a new case than on another rater" in said) != doubt
    assert "next reading" not in StudyPlan("ece", 0.95, clear[:1]).advice(100)


def test_patients_widen_the_plan() -> None:
    """Copies of a case are no new information: five per patient multiply the variance by five."""
    probs, labels = study(400, 2, np.random.default_rng(3))
    copied, five = np.repeat(probs, 5, axis=0), np.repeat(labels.counts, 5, axis=0)
    many = rw.Labels.from_counts(five)
    patients = np.repeat(np.arange(400), 5)
    alone = plan("brier", probs, labels, cases=(100,), raters=(2,)).designs[0]
    together = plan("brier", copied, many, cases=(100,), raters=(2,), groups=patients).designs[0]
    ignored = plan("brier", copied, many, cases=(100,), raters=(2,)).designs[0]
    assert ignored.width == pytest.approx(alone.width, rel=0.02)
    assert together.width > 1.8 * alone.width


def test_the_best_design_by_cost() -> None:
    """(A + B/n)/N at equal cost: free cases want one rater, dear cases want n* = √(B c / A r)."""
    probs, labels = study(3000, 2, np.random.default_rng(4))
    sizes = (50, 100, 120, 200, 400, 800)
    found = plan("brier", probs, labels, cases=sizes, raters=(1, 2, 4, 8))
    assert found.best(400).raters == 1
    assert found.best(4000, case_cost=30).raters > 1
    assert "better spent on a new case than" in found.advice(400)
    assert "better spent on another rater of" in found.advice(4000, case_cost=30)
    fewer = plan("brier", probs, labels, cases=(50, 100), raters=(1, 2))  # a part is no rival
    assert fewer.advice(200).endswith("No design with more cases is within the budget, to compare "
                                      "it with.")  # fmt: skip
    with pytest.raises(ValueError, match="budget: must pay for one of the designs; got 10"):
        found.best(10)


def test_metrics_that_need_two_raters_are_planned_with_two() -> None:
    """A design with one rater is no design for the epistemic loss."""
    probs, labels = study(300, 3, np.random.default_rng(5))
    found = plan("epistemic_loss", probs, labels, cases=(100,), raters=(1, 2), repeats=3)
    assert [design.raters for design in found.designs] == [2]
    with pytest.raises(ValueError, match="must hold a design with at least 2 raters"):
        plan("epistemic_loss", probs, labels, cases=(100,), raters=(1,))


def test_metrics_of_a_belief_cannot_be_planned() -> None:
    """What needs a distribution over class probabilities is refused by its name."""
    probs, labels = study(50, 3, np.random.default_rng(6))
    with pytest.raises(ValueError, match="posterior_gain: it needs a belief"):
        plan("posterior_gain", probs, labels)


def test_a_pilot_of_single_labels_cannot_tell_raters_from_cases() -> None:
    """Without two labels on any case there is nothing to plan raters from."""
    with pytest.raises(ValueError, match="the pilot needs cases with two labels"):
        plan("brier", [[0.5, 0.5]] * 4, [0, 1, 0, 1])


def test_a_pilot_of_one_patient_cannot_tell_patients_apart() -> None:
    """One patient says nothing of how patients vary."""
    labels = rw.Labels.from_counts([[1, 1]] * 4)
    with pytest.raises(ValueError, match="groups: the pilot must hold at least 2 patients; got 1"):
        plan("brier", [[0.5, 0.5]] * 4, labels, groups=["a"] * 4)


def test_what_lies_between_cases_is_less_the_noise_of_their_raters() -> None:
    """Two, two and four raters: means 0, 1/2 and 1; squares within cases 1/2, of 1 + 1 + 3 degrees.

    The means vary by 1/4, of which 0.1 (1/2 + 1/2 + 1/4) / 3 is of the raters.
    """
    from raterwise.metrics.proper import variance_components

    loss, counts = np.tile([0.0, 1.0], (3, 1)), np.array([[2, 0], [1, 1], [0, 4]])
    expected = 1 / 4 - 0.1 * 5 / 12, 0.1
    assert variance_components(loss, counts) == pytest.approx(expected)
    # Each of them twice is six cases of three patients, whose means are as sure as before.
    twice = [np.repeat(values, 2, axis=0) for values in (loss, counts)]
    between, within = variance_components(*twice, np.arange(6) // 2)
    assert within == pytest.approx(0.1)
    assert between / 6 == pytest.approx(1 / 4 / 3 - 0.1 * 5 / 12 / 6)


def test_a_small_pilot_cannot_tell_raters_from_cases() -> None:
    """The interval of the difference is the jackknife's, by loops; a large pilot can tell."""
    from raterwise.metrics.proper import variance_components

    probs, labels = study(30, 2, np.random.default_rng(8))
    found = plan("brier", probs, labels, cases=(100, 110), raters=(1, 2))
    small, other = found.designs[2], found.designs[1]  # 110 with 1 rater, 100 with 2
    square = (probs**2).sum(axis=1, keepdims=True) - 2 * probs + 1
    gaps = []
    for i in range(30):
        rest = np.arange(30) != i
        a, b = variance_components(square[rest], labels.counts[rest])
        mean = (square[rest] * labels.frequencies[rest]).sum(axis=1).mean()
        widths = [
            gamma_width(mean, (a + b / d.raters) / d.cases, d.cases - 1) for d in (small, other)
        ]
        gaps.append(widths[1] - widths[0])
    error = np.sqrt(29 * np.mean((np.array(gaps) - np.mean(gaps)) ** 2))
    assert found._error_of_gap(small, other) == pytest.approx(error, rel=1e-6)
    close = StudyPlan("brier", 0.95, (small, other), 30, found.without[2:0:-1])
    assert close._error_of_gap(small, other) == pytest.approx(error, rel=1e-6)


def test_the_plan_of_a_weighted_mean() -> None:
    """The error of a weighted mean by the delta method, √Σ w² (x - θ)² / Σ w, by hand.

    One rater says everything (B = 0 where both raters agree), so that A is N times that.
    """
    random = np.random.default_rng(5)
    p, w = random.random(300), random.choice([1.0, 9.0], 300, p=[0.8, 0.2])
    y = (random.random(300) < p).astype(int)
    labels = rw.Labels.from_ratings(np.column_stack((y, y)), num_classes=2)
    loss = (y - p) ** 2
    theta = np.average(loss, weights=w)
    error = np.sqrt((w**2 * (loss - theta) ** 2).sum()) / w.sum()
    (found,) = plan("brier", p, labels, cases=(300,), raters=(2,), weights=w).designs
    worth = w.sum() ** 2 / (w**2).sum()
    assert found.width == pytest.approx(gamma_width(theta, error**2, worth - 1), rel=0.015)
    (plain,) = plan("brier", p, labels, cases=(300,), raters=(2,)).designs
    assert found.width > 1.1 * plain.width
    (same,) = plan("brier", p, labels, cases=(300,), raters=(2,), weights=7 * w).designs
    assert same.width == pytest.approx(found.width)


def test_a_simulated_plan_has_the_weights_of_the_pilot() -> None:
    """Expected width against that of weighted sets from the same population, within its error."""
    random = np.random.default_rng(6)

    def drawn(number: int) -> tuple[Any, Any, Any]:
        p = random.beta(1, 1, number)
        ratings = (random.random((number, 2)) < p[:, None] ** 1.5).astype(int)
        weights = np.where(random.random(number) < 0.2, 8.0, 1.0)
        return p, rw.Labels.from_ratings(ratings, num_classes=2), weights

    p, labels, w = drawn(600)
    told: dict[str, Any] = {"cases": (200,), "raters": (2,), "repeats": 8, "resamples": 60}
    (found,) = plan("auroc", p, labels, weights=w, **told).designs
    (plain,) = plan("auroc", p, labels, **told).designs
    widths = []
    for _ in range(12):
        p, labels, w = drawn(200)
        one = rw.evaluate(p, labels, "auroc", weights=w, resamples=60)["auroc"]
        widths.append(one.high - one.low)
    assert found.width == pytest.approx(np.mean(widths), rel=0.15)
    assert plain.width < 0.8 * found.width


def test_the_truth_of_a_study_has_the_weights_of_the_pilot() -> None:
    """Of weight 3 is a gap of 0.1, of weight 1 none: the ECE of an endless study is 0.075."""
    probs = np.array([[0.1, 0.9], [0.5, 0.5]])
    labels = rw.Labels.from_counts([[0, 2], [1, 1]])
    pilot = Predictions.of(probs, labels, weights=[3.0, 1.0])
    belief = np.array([[1e-6, 1e6], [1e8, 1e8]])  # all say the second class; one half does
    request = Request.of(["ece"], bins=10, question="positive")
    found = _truth(find("ece"), pilot, belief, request)
    assert found == pytest.approx(0.075, abs=1e-4)
