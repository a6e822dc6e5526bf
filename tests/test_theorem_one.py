"""The rest of LH: Theorem 1 as a check, its losses, optimal weights, DPE changes, Fig 3."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import raterwise as rw
from strategies import ordinary

mpl.use("agg")


def labels_of(truth: Any, raters: Any, seed: int = 0) -> rw.Labels:
    """Draw label histograms from class probabilities."""
    random = np.random.default_rng(seed)
    raters = np.broadcast_to(raters, len(truth))
    return rw.Labels.from_counts(random.multinomial(raters, truth))


def dirichlet(mean: Any, concentration: float, seed: int = 0) -> Any:
    """Draw class probabilities around a mean."""
    random = np.random.default_rng(seed)
    gammas = random.standard_gamma(np.maximum(concentration * mean, 1e-9))
    return gammas / gammas.sum(axis=1, keepdims=True)


MEANS = np.random.default_rng(1).dirichlet([2, 2, 2], 4000)


# Theorem 1 -----------------------------------------------------------------------------------


def test_the_numbers_of_theorem_one_by_hand() -> None:
    """u_Q from pairs of raters, s_Z, LH eqs 61 and 69, four cases."""
    probs = np.array([[0.6, 0.4], [0.5, 0.5], [0.7, 0.3], [0.4, 0.6]])
    labels = rw.Labels.from_counts([[4, 0], [3, 1], [4, 0], [0, 4]])
    found = rw.alpha_can_help(probs, labels)
    u, s = (1 + 1 / 2 + 1 + 1) / 4, (0.52 + 0.5 + 0.58 + 0.52) / 4
    loss = rw.epistemic_loss(probs, labels)
    assert (found.u_q.value, found.s_z.value) == (pytest.approx(u), pytest.approx(s))
    assert found.excess.value == pytest.approx(u - s)
    assert found.epistemic_loss.value == pytest.approx(loss)
    assert found.concentration.value == pytest.approx((1 - u) / (u - s))
    assert found.posterior_concentration.value == pytest.approx((1 - u) / loss)
    assert found.least_concentration == pytest.approx(max((1 - 2 * u + s) / 2 / (u - s), 0))
    assert found.least_posterior_concentration == max((1 - u - loss) / 2 / loss, 0)
    assert "87.5%" in str(found) and "53.0%" in found.sentence


def test_the_concentration_that_made_the_labels_is_found() -> None:
    """Q ~ Dirichlet(α0 f): u_Q, both optima are known; α-calibration then lowers the losses."""
    alpha0 = 3.0
    labels = labels_of(dirichlet(MEANS, alpha0), 4)
    found = rw.alpha_can_help(MEANS, labels)
    s = (MEANS**2).sum(axis=1).mean()
    u = (alpha0 * s + 1) / (alpha0 + 1)
    assert found.u_q.low < u < found.u_q.high and found.s_z.value == pytest.approx(s)
    for best in (found.concentration, found.posterior_concentration):
        assert best.low < alpha0 < best.high
    assert found.helps is True and found.sentence.startswith("α-calibration can help")
    before = rw.disagreement_loss(MEANS, labels)
    for alpha in (found.least_concentration * 1.1, found.concentration.value):
        belief = rw.DirichletBelief(MEANS, np.full(len(MEANS), alpha))
        assert rw.disagreement_loss(belief.disagreement(), labels) < before
    # What is α-calibrated already, by the true α0, has nothing left to gain.
    belief = rw.DirichletBelief(MEANS, np.full(len(MEANS), alpha0))
    assert rw.alpha_can_help(belief, labels).helps is None


def test_raters_who_answer_by_the_probabilities_leave_nothing_to_gain() -> None:
    """Labels drawn from the probabilities: the data do not tell, in about 95 % of samples."""
    told = [rw.alpha_can_help(MEANS[:200], labels_of(MEANS[:200], 3, s)).helps for s in range(100)]
    assert told.count(None) >= 87


def test_a_model_that_is_too_sure_is_told_so() -> None:
    """Raters agree less often than the probabilities say: recalibrate first."""
    sharp = MEANS**4 / (MEANS**4).sum(axis=1, keepdims=True)
    found = rw.alpha_can_help(sharp, labels_of(MEANS, 3))
    assert found.helps is False and "too sure" in str(found)
    assert math.isinf(found.concentration.value) and math.isinf(found.least_concentration)


def test_patients_and_weights_of_the_check() -> None:
    """Cases that hang together widen it; a weight of 2 is the case twice; one label is refused."""
    probs = MEANS[:60]
    labels = labels_of(dirichlet(probs, 2.0), 3)
    twice = rw.alpha_can_help(
        np.repeat(probs, 2, axis=0),
        labels[np.repeat(np.arange(60), 2)],
        np.repeat(np.arange(60), 2),
    )
    once = rw.alpha_can_help(probs, labels)
    assert twice.excess.low == pytest.approx(once.excess.low)
    assert twice.excess.high == pytest.approx(once.excess.high)
    weights = np.arange(60) % 3
    copies = np.repeat(np.arange(60), weights)
    weighted = rw.alpha_can_help(probs, labels, weights=weights)
    copied = rw.alpha_can_help(probs[copies], labels[copies])
    assert weighted.u_q.value == pytest.approx(copied.u_q.value, rel=1e-12)
    with pytest.raises(rw.InvalidInputError, match="labels: needs at least 2 labels per case"):
        rw.alpha_can_help(probs, labels.majority())
    mixed = rw.Labels.from_counts(np.concatenate((labels.counts[:-1], [[1, 0, 0]])))
    dropped = rw.alpha_can_help(probs, mixed, on_single="drop")
    assert dropped.u_q.value == pytest.approx(
        rw.alpha_can_help(probs[:-1], labels[np.arange(59)]).u_q.value
    )


# losses --------------------------------------------------------------------------------------


def test_the_losses_add_up() -> None:
    """LH eqs 5-6: L = CL + RL, RL = DL + IL; cases alike within a bin have GL = DL."""
    problem = ordinary(300, 3)
    probs, labels = problem.probs, problem.labels
    refined = rw.refinement_loss(probs, labels)
    assert refined + rw.calibration_loss(probs, labels) == pytest.approx(
        rw.expected_squared_loss(probs, labels)
    )
    assert refined == pytest.approx(rw.dispersion_loss(probs, labels) + rw.irreducible_loss(labels))
    p = np.random.default_rng(0).choice([0.1, 0.4, 0.8], 300)
    labels = labels_of(dirichlet(np.stack((1 - p, p), axis=1), 3.0), 4)
    for estimator in ("debiased", "plugin"):
        options: Any = {"estimator": estimator}
        grouped = rw.grouping_loss(p, labels, **options)
        assert grouped == pytest.approx(rw.dispersion_loss(p, labels, **options))


def test_the_grouping_loss_is_the_true_variance_within_bins() -> None:
    """True frequencies are known: the mean over samples of raters is that of their variance."""
    probs = MEANS[:300]
    truth = dirichlet(probs, 4.0)
    expected = 0.0
    for k in range(3):
        index = np.minimum((probs[:, k] * 15).astype(int), 14)
        for b in np.unique(index):
            inside = truth[index == b, k]
            expected += len(inside) * inside.var(ddof=1) / 300 if len(inside) > 1 else 0
    found = [rw.grouping_loss(probs, labels_of(truth, 3, s)) for s in range(80)]
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / math.sqrt(80))
    plugin = [rw.grouping_loss(probs, labels_of(truth, 3, s), estimator="plugin") for s in range(5)]
    assert np.mean(plugin) > 1.5 * expected


# optimal weights -----------------------------------------------------------------------------


def test_optimal_weights_vary_least() -> None:
    """One to twenty raters: less variance than equal weights and than counting ratings (B.1)."""
    probs, raters = MEANS[:150], np.where(np.arange(150) % 2, 1, 20)
    truth = dirichlet(probs, 2.0)
    random = np.random.default_rng(0)
    found: dict[str, list[float]] = {"equal": [], "optimal": [], "ratings": []}
    for s in range(150):
        rows = random.integers(0, 150, 150)
        labels = labels_of(truth[rows], raters[rows], s)
        found["equal"].append(rw.expected_squared_loss(probs[rows], labels))
        found["optimal"].append(rw.expected_squared_loss(probs[rows], labels, weights="optimal"))
        found["ratings"].append(rw.expected_squared_loss(probs[rows], labels, weights=raters[rows]))
    spread = {name: np.std(values) for name, values in found.items()}
    assert spread["optimal"] < spread["equal"] and spread["optimal"] < spread["ratings"]
    assert np.mean(found["optimal"]) == pytest.approx(np.mean(found["equal"]), rel=0.02)


def test_optimal_weights_at_their_ends() -> None:
    """Raters who never differ: equal; cases alike: as many as raters; as many raters each: 1."""
    unanimous = rw.Labels.from_counts([[5, 0], [0, 1], [1, 0], [0, 3]])
    p = [0.1, 0.9, 0.4, 0.6]
    assert rw.optimal_weights(p, unanimous) == pytest.approx([1, 1, 1, 1])
    alike = rw.Labels.from_counts([[1, 1], [3, 3], [2, 2]])
    assert rw.optimal_weights([0.3] * 3, alike) == pytest.approx([0.5, 1.5, 1.0])
    assert rw.optimal_weights(p, [0, 1, 0, 1]).tolist() == [1, 1, 1, 1]
    optimal = rw.optimal_weights([0.3] * 3, alike)
    assert rw.brier([0.3] * 3, alike, weights="optimal") == rw.brier([0.3] * 3, alike,
                                                                      weights=optimal)  # fmt: skip
    with pytest.raises(rw.InvalidInputError, match=r'weights: must be .* or "optimal"; got .best.'):
        rw.brier(p, unanimous, weights="best")  # type: ignore[arg-type]


# recalibration and Fig 3 ---------------------------------------------------------------------


def test_a_temperature_raises_the_predicted_disagreement() -> None:
    """LH eq 83 is the difference of the beliefs' disagreement; softer probabilities raise it."""
    problem = ordinary(50)
    soft = np.sqrt(problem.probs) / np.sqrt(problem.probs).sum(axis=1, keepdims=True)
    found = rw.disagreement_change(problem.probs, soft)
    expected = rw.PointBelief(soft).disagreement() - rw.PointBelief(problem.probs).disagreement()
    assert found == pytest.approx(expected, abs=1e-12)
    assert (found > -1e-12).all()
    assert rw.disagreement_change([0.9], [0.5]) == pytest.approx([0.32])
    with pytest.raises(rw.InvalidInputError, match="recalibrated: must have the shape of probs"):
        rw.disagreement_change([0.9], [0.5, 0.5])
    with pytest.raises(rw.InvalidInputError, match="recalibrated: rows must sum to 1"):
        rw.disagreement_change([[0.9, 0.1]], [[0.9, 0.3]])


def test_the_display_of_figure_three_shows_optima() -> None:
    """LH eq 51 is 0 at every point; the range contains 0 and narrows as λ grows."""
    from matplotlib import pyplot as plt

    display = rw.plots.OptimalConcentrationDisplay(raters=5, strengths=[0.001, 0.01, 0.1, 1.0])
    log = display.log_concentration
    assert log.shape == (6, 13, 4)
    for said in range(6):
        for j, p in enumerate(display.probabilities):
            for s, strength in enumerate(display.strengths):
                a = math.exp(log[said, j, s])
                gradient = -sum(1 / (a + i) for i in range(5))
                gradient += sum(p / (a * p + i) for i in range(said))
                gradient += sum((1 - p) / (a * (1 - p) + i) for i in range(5 - said))
                balance = -a / 5 * gradient + 2 * strength * math.log(a)
                assert balance == pytest.approx(0, abs=1e-8)
    low, high = log.min(axis=(0, 1)), log.max(axis=(0, 1))
    assert (low < 0).all() and (high > 0).all() and (np.diff(high - low) < 0).all()
    assert [t.get_text() for t in display.plot().ax_.get_legend().get_texts()] == [
        "all 5 agree", "1 of 5 differ", "2 of 5 differ",
    ]  # fmt: skip
    with pytest.raises(rw.InvalidInputError, match="probabilities: must lie between 0 and 1"):
        rw.plots.OptimalConcentrationDisplay(probabilities=[0.0, 0.5])
    plt.close("all")


def test_the_interval_of_an_agreement_is_that_of_a_proportion() -> None:
    """Two of six pairs differ; Clopper and Pearson's interval of as many cases as t leaves."""
    labels = rw.Labels.from_counts([[2, 0], [1, 1], [2, 0], [1, 1], [0, 2], [0, 2]])
    found = rw.alpha_can_help([0.1, 0.2, 0.35, 0.4, 0.6, 0.9], labels)
    n = 5 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 5)) ** 2  # s² = θ (1 - θ) / 5
    x = n * 2 / 3
    assert found.agreement.value == pytest.approx(2 / 3)
    assert found.agreement.low == pytest.approx(stats.beta.ppf(0.025, x, n - x + 1))
    assert found.agreement.high == pytest.approx(stats.beta.ppf(0.975, x + 1, n - x))
    assert found.predicted_agreement.high is not None and found.predicted_agreement.high <= 1


def test_three_unanimous_cases_prove_nothing() -> None:
    """All pairs of three cases agree: 0.025^(1/3) may be the truth, below what is predicted."""
    labels = rw.Labels.from_counts([[2, 0], [0, 2], [2, 0]])
    found = rw.alpha_can_help([0.5, 0.6, 0.4], labels)
    assert found.agreement.low == pytest.approx(0.025 ** (1 / 3))
    assert found.agreement.high == 1
    assert found.helps is None and found.excess.low is not None and found.excess.low < 0
    many = rw.Labels.from_counts([[2, 0], [0, 2]] * 20)
    assert rw.alpha_can_help([0.5, 0.6] * 20, many).helps
