"""Study planning against direct simulation."""

import numpy as np
import pytest

import quorate as qr
from quorate.planning import plan

LEVEL = 2 * 1.959964


def study(
    cases: int, raters: int, random: np.random.Generator, spread: float = 2.0
) -> tuple[np.ndarray, qr.Labels]:
    """An over-confident model of a Dirichlet truth, and its raters."""
    mean = random.dirichlet(np.ones(3), cases)
    gammas = random.standard_gamma(spread * mean)
    truth = gammas / gammas.sum(axis=1, keepdims=True)
    sharp = mean**1.5
    labels = qr.Labels.from_counts(random.multinomial(raters, truth))
    return sharp / sharp.sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("metric", ["accuracy", "brier", "nll"])
def test_formula_widths_are_those_of_real_studies(metric: str) -> None:
    """The width foreseen from a pilot is 2 · 1.96 standard deviations of repeated real studies."""
    pilot = plan(metric, *study(3000, 2, np.random.default_rng(0)), cases=(150,), raters=(1, 4))
    for design in pilot.designs:
        assert design.method == "formula"
        random = np.random.default_rng(design.raters)
        function = getattr(qr, metric)
        values = [function(*study(150, design.raters, random)) for _ in range(400)]
        assert design.width == pytest.approx(LEVEL * np.std(values), rel=0.12), design


def test_simulated_width_and_bias_of_ece() -> None:
    """The foreseen bias of the plain ECE is that of real studies; fewer raters, more bias."""
    probs, labels = study(1500, 3, np.random.default_rng(1))
    found = plan("ece", probs, labels, cases=(150,), raters=(1, 4), repeats=30, resamples=50)
    random = np.random.default_rng(2)
    truth = qr.ece(*study(200_000, 5, random))
    for design in found.designs:
        assert design.method == "simulation"
        values = [qr.ece(*study(150, design.raters, random)) for _ in range(300)]
        assert design.bias == pytest.approx(np.mean(values) - truth, abs=0.01), design
        assert 0 < design.width < 0.4
    one, four = found.designs
    assert one.bias > four.bias
    assert one.width > four.width


def test_patients_widen_the_plan() -> None:
    """Copies of a case are no new information: five per patient multiply the variance by five."""
    probs, labels = study(400, 2, np.random.default_rng(3))
    copied, five = np.repeat(probs, 5, axis=0), np.repeat(labels.counts, 5, axis=0)
    many = qr.Labels.from_counts(five)
    patients = np.repeat(np.arange(400), 5)
    alone = plan("brier", probs, labels, cases=(100,), raters=(2,)).designs[0]
    together = plan("brier", copied, many, cases=(100,), raters=(2,), groups=patients).designs[0]
    ignored = plan("brier", copied, many, cases=(100,), raters=(2,)).designs[0]
    assert ignored.width == pytest.approx(alone.width, rel=0.02)
    assert together.width > 1.8 * alone.width


def test_the_best_design_by_cost() -> None:
    """(A + B/n)/N at equal cost: free cases want one rater, dear cases want n* = √(B c / A r)."""
    probs, labels = study(3000, 2, np.random.default_rng(4))
    sizes = (50, 100, 200, 400, 800)
    found = plan("brier", probs, labels, cases=sizes, raters=(1, 2, 4, 8))
    assert found.best(400).raters == 1
    assert found.best(4000, case_cost=30).raters > 1
    assert "a new case" in found.advice(400)
    assert "another rater" in found.advice(4000, case_cost=30)
    with pytest.raises(ValueError, match="budget: must pay for one of the designs; got 10"):
        found.best(10)


def test_metrics_that_need_two_raters_are_planned_with_two() -> None:
    """A design with one rater is no design for the epistemic loss."""
    probs, labels = study(300, 3, np.random.default_rng(5))
    found = plan("epistemic_loss", probs, labels, cases=(100,), raters=(1, 2), repeats=3)
    assert [design.raters for design in found.designs] == [2]
    with pytest.raises(ValueError, match="must hold a design with at least 2 raters"):
        plan("epistemic_loss", probs, labels, cases=(100,), raters=(1,))


def test_a_pilot_of_single_labels_cannot_tell_raters_from_cases() -> None:
    """Without two labels on any case there is nothing to plan raters from."""
    with pytest.raises(ValueError, match="the pilot needs cases with two labels"):
        plan("brier", [[0.5, 0.5]] * 4, [0, 1, 0, 1])
