"""α-calibration: the likelihood, the released optima, LH's theorem and figure, known truths."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize, minimize_scalar
from scipy.special import digamma, gammaln
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from golden import Array, GoldenSet, golden_set
from raterwise.beliefs import DirichletBelief, PointBelief
from raterwise.beliefs.dirichlet import CountTerms, log_multinomial_coefficients
from raterwise.calibrators import alpha_loss, alpha_solver
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.alpha_cases import default_features
from raterwise.calibrators.alpha_loss import alpha_calibration_loss, optimal_concentration
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels

SETS = ("K2_N200", "K3_N1000")
PENALTIES = (0.005, 0.05)
PAPER: dict[str, Any] = {"l2": 0.005, "penalty": "paper"}
"""LH eq 50 as printed."""


@cache
def released() -> dict[str, Array]:
    """What the authors' code printed, by id."""
    path = Path(__file__).parent / "fixtures" / "lh_alpha" / "values.npz"
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored}


def inputs_of(name: str) -> tuple[GoldenSet, Array, Labels]:
    """A set, the columns [features, logits] that the released layer sees, and its labels."""
    data = golden_set(name)
    columns = np.column_stack((released()[f"{name}/features"], data["logits"]))
    return data, columns, Labels.from_counts(data.counts)


def simulated(cases: int, seed: int, classes: int = 3, raters: int = 5) -> dict[str, Any]:
    """Raters whose opinions q follow Dir(α0 f) with log α0 = 0.5 + 0.8 x, and what they said."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(cases, 1))
    f = rng.dirichlet(np.ones(classes), cases)
    q = np.array(
        [rng.dirichlet(a * row) for a, row in zip(np.exp(0.5 + 0.8 * x[:, 0]), f, strict=True)]
    )
    counts = rng.multinomial(raters, q / q.sum(axis=1, keepdims=True))
    return {"x": x, "f": f, "q": q, "labels": Labels.from_counts(counts)}


# the likelihood ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_likelihood_of_the_released_code(name: str) -> None:
    """DirMult per case, and the first term of LH eq 50: no multinomial coefficient."""
    data, _, labels = inputs_of(name)
    ours = -CountTerms.of(data.probs, data.counts).log_likelihood(data["alpha0"])
    theirs = released()[f"{name}/dirmult_nll_per_instance/alpha=alpha0*probs"]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    loss = alpha_calibration_loss(DirichletBelief(data.probs, data["alpha0"]), labels, l2=0)
    total = released()[f"{name}/dirmult_nll_sum_over_sum_n/alpha=alpha0*probs"]
    assert loss == pytest.approx(float(total), abs=1e-12)


def test_likelihood_against_scipy() -> None:
    """scipy's Dirichlet-multinomial has the coefficient; without it the two agree."""
    rng = np.random.default_rng(0)
    probs, alpha = rng.dirichlet(np.ones(4), 30), rng.uniform(0.1, 20, 30)
    counts = rng.integers(0, 5, (30, 4))
    ours = CountTerms.of(probs, counts).log_likelihood(alpha)
    theirs = [
        stats.dirichlet_multinomial.logpmf(y, a * f, y.sum())
        for y, a, f in zip(counts, alpha, probs, strict=True)
    ]
    np.testing.assert_allclose(ours + log_multinomial_coefficients(counts), theirs, atol=1e-11)


@pytest.mark.parametrize("alpha", [1e12, 1e100, 1e200, np.inf])
def test_likelihood_at_large_concentrations_is_multinomial(alpha: float) -> None:
    """Where differences of log-gamma have lost every digit, the limit Σ y log f is met to 1e-9."""
    probs, counts = np.array([[0.7, 0.2, 0.1], [0.05, 0.5, 0.45]]), np.array([[3, 2, 0], [4, 1, 1]])
    ours = CountTerms.of(probs, counts).log_likelihood(np.full(2, alpha))
    np.testing.assert_allclose(ours, (counts * np.log(probs)).sum(axis=1), rtol=0, atol=1e-9)


def test_likelihood_at_small_concentrations() -> None:
    """As α0 vanishes all labels are alike: unanimous ones have f_k, others 0."""
    probs, counts = np.array([[0.7, 0.3], [0.7, 0.3]]), np.array([[4, 0], [3, 1]])
    ours = CountTerms.of(probs, counts).log_likelihood(np.full(2, 1e-200))
    assert ours[0] == pytest.approx(np.log(0.7), abs=1e-13)
    assert ours[1] < -400


def test_labels_that_cannot_be() -> None:
    """No label has likelihood 1; a label of probability 0 has likelihood 0, not NaN."""
    probs, counts = np.array([[1.0, 0.0]] * 3), np.array([[0, 0], [1, 2], [2, 0]])
    for alpha in (1e-3, 1.0, 1e9, np.inf):
        ours = CountTerms.of(probs, counts).log_likelihood(np.full(3, alpha))
        assert ours.tolist() == [0, -np.inf, pytest.approx(0, abs=1e-14)]


@given(seed=st.integers(0, 10_000), u=st.floats(-12, 12))
def test_derivatives_are_those_of_the_likelihood(seed: int, u: float) -> None:
    """Slope and curvature in log α0 against central differences of the value and of the slope."""
    rng = np.random.default_rng(seed)
    terms = CountTerms.of(rng.dirichlet(np.ones(3), 8), rng.integers(0, 6, (8, 3)))
    at = np.full(8, u)

    def difference(function: Any, h: float) -> Array:
        return np.asarray((function(at + h) - function(at - h)) / (2 * h))

    numeric = difference(lambda v: terms.varying(np.exp(v)), 1e-5)
    np.testing.assert_allclose(terms.slope(at), numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        terms.curvature(at), difference(terms.slope, 1e-5), rtol=1e-6, atol=1e-8
    )


def test_slope_is_equation_51() -> None:
    """The bracket of LH eq 51 with digamma functions, times α0."""
    rng = np.random.default_rng(1)
    f, y, alpha = (
        rng.dirichlet(np.ones(3), 20),
        rng.integers(0, 6, (20, 3)),
        rng.uniform(0.2, 9, 20),
    )
    a, n = alpha[:, None], y.sum(axis=1)
    digammas = (f * (digamma(a * f + y) - digamma(a * f))).sum(axis=1)
    expected = alpha * (digammas - digamma(alpha + n) + digamma(alpha))
    np.testing.assert_allclose(CountTerms.of(f, y).slope(np.log(alpha)), expected, atol=1e-11)


def test_slope_keeps_its_digits_at_both_ends() -> None:
    """Leading terms: -α0 (1-f) Σ 1/l for unanimous labels; (Σ l - Σ l/f)/α0 at the other end."""
    terms = CountTerms.of(np.array([[0.25, 0.75]]), np.array([[4, 0]]))
    small = terms.slope(np.array([np.log(1e-30)]))[0]
    assert small == pytest.approx(-1e-30 * 0.75 * (1 + 1 / 2 + 1 / 3), rel=1e-12, abs=0)
    large = terms.slope(np.array([np.log(1e30)]))[0]
    assert large == pytest.approx((6 - 6 / 0.25) / 1e30, rel=1e-12, abs=0)


# the released losses and optima -----------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("l2", PENALTIES)
def test_loss_of_the_released_code(name: str, l2: float) -> None:
    """Its weighted loss at α0 = 1 and at fixed weights (it casts case weights to float32)."""
    data, columns, labels = inputs_of(name)
    values = released()
    start = alpha_calibration_loss(DirichletBelief(data.probs, 1.0), labels, l2, "per_case")
    key = f"{name}/alpha_calib_loss_at_init/lam={l2},weights=n_i/mean(n)"
    assert start == pytest.approx(float(values[key]), abs=1e-6)
    alpha = np.exp(0.4 + 0.7 * columns[:, 0] - 0.2 * columns[:, 2])
    belief = DirichletBelief(data.probs, alpha)
    np.testing.assert_allclose(
        belief.mean * alpha[:, None],
        values[f"{name}/alpha_calib_alphas_at_fixed_w/lam={l2}"],
        rtol=1e-6,
    )
    key = f"{name}/alpha_calib_loss_at_fixed_w/lam={l2},weights=n_i/mean(n)"
    ours = alpha_calibration_loss(belief, labels, l2, "per_case")
    assert ours == pytest.approx(float(values[key]), abs=1e-6)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("l2", PENALTIES)
def test_optimum_of_the_released_code(name: str, l2: float) -> None:
    """The loss at the optimum, log α0 of every case, and the weights and bias."""
    data, columns, labels = inputs_of(name)
    end = f"lam={l2},weights=n_i/mean(n)"
    fitted = AlphaCalibration(l2=l2, penalty="paper", weighting="per_case").fit(
        columns, labels, probs=data.probs
    )
    assert fitted.loss_ == pytest.approx(
        float(released()[f"{name}/alpha_calib_opt_loss/{end}"]), abs=1e-6
    )
    alpha = fitted.predict(columns, probs=data.probs).concentration
    theirs = released()[f"{name}/alpha_calib_opt_alpha0/{end}"]
    np.testing.assert_allclose(np.log(alpha), np.log(theirs), rtol=0, atol=1e-4)
    assert fitted.gradient_norm_ <= 1e-8
    line = released()[f"{name}/alpha_calib_opt_kernel_bias/{end}"]
    np.testing.assert_allclose([*fitted.coef_, fitted.intercept_], line, rtol=0, atol=1e-4)


def test_the_paper_s_weighting() -> None:
    """LH eq 50 written out with log-gamma functions and minimised by another method."""
    data, columns, labels = inputs_of("K2_N200")
    design = np.column_stack((np.ones(len(columns)), columns[:, :3]))
    f, y, n = data.probs, data.counts, data.counts.sum(axis=1)

    def equation_50(theta: Array) -> float:
        u = design @ theta
        a = np.exp(u)[:, None]
        log_likelihood = (
            (gammaln(a * f + y) - gammaln(a * f)).sum(axis=1)
            - gammaln(a[:, 0] + n)
            + gammaln(a[:, 0])
        )
        return float(-log_likelihood.sum() / n.sum() + 0.005 * (u**2).mean())

    other = minimize(equation_50, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    ours = AlphaCalibration(**PAPER).fit(columns[:, :3], labels, probs=f)
    assert ours.loss_ == pytest.approx(other.fun, abs=1e-10)
    np.testing.assert_allclose([ours.intercept_, *ours.coef_], other.x, atol=1e-4)


# known truths -----------------------------------------------------------------------------------


def test_disagreement_is_biased_before_and_not_after() -> None:
    """Raters simulated from known α0: a point belief predicts too much disagreement, everywhere."""
    train, test = simulated(6000, seed=1), simulated(6000, seed=2)
    belief = AlphaCalibration(l2=1e-4).fit(train["x"], train["labels"], probs=train["f"])
    calibrated = belief.predict(test["x"], probs=test["f"])
    truth = 1 - (test["q"] ** 2).sum(axis=1)
    for part in (test["x"][:, 0] < 0, test["x"][:, 0] >= 0):
        error = truth[part].std() / np.sqrt(part.sum())
        before = (PointBelief(test["f"]).disagreement() - truth)[part].mean()
        after = (calibrated.disagreement() - truth)[part].mean()
        assert before > 10 * error
        assert abs(after) < 3 * error


def test_the_true_line_is_found() -> None:
    """log α0 = 0.5 + 0.8 x is recovered from 20,000 simulated cases."""
    data = simulated(20_000, seed=3)
    fitted = AlphaCalibration(l2=1e-6).fit(data["x"], data["labels"], probs=data["f"])
    assert fitted.intercept_ == pytest.approx(0.5, abs=0.08)
    assert fitted.coef_[0] == pytest.approx(0.8, abs=0.08)


def test_a_label_helps_as_much_as_expected() -> None:
    """The squared error to the raters' true opinions falls by the expected gain (LH eq 18)."""
    data = simulated(20_000, seed=4)
    rng = np.random.default_rng(5)
    belief = AlphaCalibration(l2=1e-6).fit(data["x"], data["labels"], probs=data["f"])
    calibrated = belief.predict(data["x"], probs=data["f"])
    label = (rng.random((20_000, 1)) > data["q"].cumsum(axis=1)[:, :-1]).sum(axis=1)
    before = ((calibrated.mean - data["q"]) ** 2).sum(axis=1)
    after = ((calibrated.posterior(label).mean - data["q"]) ** 2).sum(axis=1)
    won = before - after
    error = won.std() / np.sqrt(len(won))
    assert won.mean() > 20 * error
    assert won.mean() == pytest.approx(calibrated.expected_gain().mean(), abs=4 * error)


# LH Theorem 1: a known distribution of the raters' opinions Q at one case -------------------------

OPINIONS = np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.8, 0.1, 0.1]])
SHARES = np.array([0.4, 0.2, 0.1, 0.3])
U_Q = float(SHARES @ (OPINIONS**2).sum(axis=1))
PREDICTIONS = [SHARES @ OPINIONS, np.array([0.4, 0.35, 0.25])]


def disagreement_loss(z: Array, alpha: float) -> float:
    """E[(φ^D - φ)²] over opinions and pairs of labels, φ from the belief."""
    phi = DirichletBelief([z], [alpha]).disagreement()[0]
    differ = 1 - (OPINIONS**2).sum(axis=1)
    return float(SHARES @ (differ * (1 - phi) ** 2 + (1 - differ) * phi**2))


def posterior_loss(z: Array, alpha: float) -> float:
    """E‖Z' - Q‖² over opinions and one label."""
    after = np.array([DirichletBelief([z], [alpha]).posterior([k]).mean[0] for k in range(3)])
    squared = ((after[None] - OPINIONS[:, None]) ** 2).sum(axis=2)
    return float(SHARES @ (OPINIONS * squared).sum(axis=1))


def epistemic(z: Array) -> float:
    """EL_G."""
    return float(SHARES @ ((z - OPINIONS) ** 2).sum(axis=1))


@pytest.mark.parametrize("z", PREDICTIONS, ids=["mean", "other"])
def test_theorem_1_disagreement(z: Array) -> None:
    """L_φD is least at (1-u)/(u-s), and no worse than the point belief's from (1-2u+s)/(2(u-s))."""
    s = float((z**2).sum())
    check_theorem(disagreement_loss, z, (1 - U_Q) / (U_Q - s), (1 - 2 * U_Q + s) / (2 * (U_Q - s)))


@pytest.mark.parametrize("z", PREDICTIONS, ids=["mean", "other"])
def test_theorem_1_posterior(z: Array) -> None:
    """EL' is least at (1-u)/EL, and no worse than EL from (1-u-EL)/(2 EL)."""
    loss = epistemic(z)
    check_theorem(posterior_loss, z, (1 - U_Q) / loss, (1 - U_Q - loss) / (2 * loss))


def check_theorem(loss: Any, z: Array, optimum: float, least: float) -> None:
    """The numerical minimum is the stated one, and the loss crosses the point's at `least`."""
    assert 0 < least < optimum
    found = minimize_scalar(
        lambda u: loss(z, np.exp(u)), bounds=(-10, 10), method="bounded", options={"xatol": 1e-10}
    )
    assert np.exp(found.x) == pytest.approx(optimum, rel=1e-5)
    point = loss(z, 1e200)
    assert loss(z, least) == pytest.approx(point, rel=1e-12)
    assert loss(z, 0.99 * least) > point > loss(z, 1.01 * least)
    assert loss(z, 100 * optimum) < point


def test_theorem_1_the_optima_coincide() -> None:
    """If Z is the mean opinion, both tasks want the same α0, (1-u)/v."""
    z = PREDICTIONS[0]
    v = U_Q - float((z**2).sum())
    assert epistemic(z) == pytest.approx(v, rel=1e-12)


# one case at a time: LH eq 51 and Fig 3 -----------------------------------------------------------

FIGURE_PROBS = (0.001, 0.01, *np.arange(0.1, 0.95, 0.1), 0.99, 0.999)


def figure_3(raters: int) -> tuple[Array, Array]:
    """Every histogram of `raters` labels of two classes under every probability of Fig 3."""
    grid = [((z, 1 - z), (y, raters - y)) for z in FIGURE_PROBS for y in range(raters + 1)]
    return np.array([z for z, _ in grid]), np.array([y for _, y in grid])


@pytest.mark.parametrize("raters", [2, 5, 10])
def test_figure_3(raters: int) -> None:
    """The range of log α0 contains 0 and narrows as λ grows; unanimity goes down, chance up."""
    probs, counts = figure_3(raters)
    before = np.inf
    for l2 in (0.0005, 0.005, 0.05, 0.5):
        logs = np.log(optimal_concentration(probs, counts, l2))
        assert logs.min() < 0 < logs.max()
        assert np.ptp(logs) < before
        before = float(np.ptp(logs))
        unanimous = counts.max(axis=1) == raters
        assert (logs[unanimous] < 0).all()
    if raters == 2:
        assert (logs[~unanimous] > 0).all()


@pytest.mark.parametrize("raters", [2, 5, 10])
@pytest.mark.parametrize("l2", [1e-6, 0.005, 0.5])
def test_optimal_concentration_solves_equation_51(raters: int, l2: float) -> None:
    """The right side of LH eq 51, by digamma functions, is 0, and a coarse scan finds no better."""
    probs, counts = figure_3(raters)
    u = np.log(optimal_concentration(probs, counts, l2))
    a, n = np.exp(u)[:, None], raters
    digammas = (probs * (digamma(a * probs + counts) - digamma(a * probs))).sum(axis=1)
    slope = a[:, 0] * (digammas - digamma(a[:, 0] + n) + digamma(a[:, 0]))
    np.testing.assert_allclose(-slope / n + 2 * l2 * u, 0, atol=1e-8)

    def objective(v: Array) -> Array:
        a = np.exp(v)[:, None]
        value = (gammaln(a * probs + counts) - gammaln(a * probs)).sum(axis=1)
        return -(value - gammaln(a[:, 0] + n) + gammaln(a[:, 0])) / n + l2 * v**2

    best = np.min([objective(np.full(len(u), v)) for v in np.arange(-12, 12, 0.1)], axis=0)
    assert (objective(u) <= best + 1e-9).all()


def test_optimal_concentration_without_a_penalty() -> None:
    """LH D.2: unanimous labels go to 0, one of each to ∞; labels that say nothing stay at 1."""
    probs = [[0.3, 0.7], [0.3, 0.7], [0.5, 0.5], [1.0, 0.0], [0.3, 0.7]]
    counts = [[3, 0], [1, 1], [0, 1], [4, 0], [0, 2]]
    assert optimal_concentration(probs, counts, l2=0).tolist() == [0, np.inf, 1, 1, 0]


@given(seed=st.integers(0, 10_000))
def test_unpenalised_optima_are_maxima_of_the_likelihood(seed: int) -> None:
    """0, ∞ or the finite maximum: no α0 between e^-25 and e^25 is more likely."""
    rng = np.random.default_rng(seed)
    probs, counts = rng.dirichlet(np.full(3, 0.7), 20), rng.multinomial(6, [0.5, 0.4, 0.1], 20)
    best = optimal_concentration(probs, counts, l2=0)
    terms = CountTerms.of(probs, counts)
    at_best = terms.varying(np.clip(best, 1e-250, np.inf))
    scan = [terms.varying(np.full(20, np.exp(v))) for v in np.arange(-25, 25, 0.25)]
    assert (at_best >= np.max(scan, axis=0) - 1e-9).all()


def test_a_vanishing_penalty_tends_to_none() -> None:
    """Finite optima at λ = 1e-10 and λ = 0 are the same."""
    probs, counts = np.array([[0.3, 0.7], [0.1, 0.9]]), np.array([[4, 2], [3, 3]])
    without = optimal_concentration(probs, counts, l2=0)
    assert np.isfinite(without).all() and (without > 0).all()
    np.testing.assert_allclose(optimal_concentration(probs, counts, l2=1e-10), without, rtol=1e-5)


@pytest.mark.parametrize(
    ("first", "labels", "side"), [(1e-6, (3, 1), "right"), (1e-3, (2, 1), "left")]
)
def test_the_deeper_of_two_dips(first: float, labels: tuple[int, int], side: str) -> None:
    """With the likelihood's sign turned its maximum parts two dips, and the deeper is found."""
    scan = np.arange(-30, 30, 0.001)
    f = np.tile([first, 1 - first], (len(scan), 1))
    terms = CountTerms.of(f, np.tile(labels, (len(scan), 1)))
    depth = terms.varying(np.exp(scan)) + 0.05 * scan**2
    assert (np.diff(np.sign(np.diff(depth))) > 0).sum() == 2
    one = CountTerms.of(f[:1], np.array([labels]))
    turned = alpha_solver.Objective(one, np.array([-1.0]), np.array([0.05]))
    (best,) = alpha_loss.best_of_each(turned, 1)
    assert best == pytest.approx(scan[depth.argmin()], abs=0.001)
    assert (best > 0) == (side == "right")


# the estimator ----------------------------------------------------------------------------------

SMALL = simulated(300, seed=6)
TWICE = {"features": SMALL["x"], "probs": SMALL["f"], "labels": SMALL["labels"]}


def test_scikit_learn_s_conventions() -> None:
    """Parameters are read, set and cloned; a clone is not fitted; fit returns the estimator."""
    calibrator = AlphaCalibration(l2=0.1, weighting="per_case")
    assert calibrator.get_params() == {
        "l2": 0.1,
        "penalty": "coefficients",
        "weighting": "per_case",
        "folds": 5,
        "seed": 0,
        "warm_start": False,
        "max_iter": 1000,
    }
    assert calibrator.fit(**TWICE) is calibrator
    copy = clone(calibrator).set_params(l2=0.2)
    assert copy.l2 == 0.2 and calibrator.l2 == 0.1
    with pytest.raises(NotFittedError, match="AlphaCalibration instance is not fitted"):
        copy.predict(SMALL["x"], probs=SMALL["f"])
    with pytest.raises(NotFittedError):
        copy.to_dict()


def test_the_mean_stays_as_it_is() -> None:
    """α-calibration changes no class probability (LH 5.3)."""
    belief = AlphaCalibration(**PAPER).fit(**TWICE).predict(SMALL["x"], probs=SMALL["f"])
    assert (belief.mean == SMALL["f"]).all()


def test_the_same_digits_every_time() -> None:
    """Two fits agree to the last bit."""
    first, second = AlphaCalibration(**PAPER).fit(**TWICE), AlphaCalibration(**PAPER).fit(**TWICE)
    assert (first.coef_ == second.coef_).all() and first.intercept_ == second.intercept_


@pytest.mark.parametrize("weighting", ["paper", "per_case"])
def test_weight_is_repetition(weighting: str) -> None:
    """A case of weight 3 counts as three; one of weight 0 as none."""
    weights = np.tile([3, 0, 1], 100)
    rows = np.repeat(np.arange(300), weights)
    once = AlphaCalibration(**PAPER, weighting=weighting).fit(**TWICE, sample_weight=weights)
    often = AlphaCalibration(**PAPER, weighting=weighting).fit(
        SMALL["x"][rows], SMALL["labels"].take(rows), probs=SMALL["f"][rows]
    )
    assert once.loss_ == pytest.approx(often.loss_, abs=1e-12)
    assert once.intercept_ == pytest.approx(often.intercept_, abs=1e-6)
    np.testing.assert_allclose(once.coef_, often.coef_, atol=1e-6)


def test_units_of_the_features_do_not_matter() -> None:
    """Kilometres or nanometres from a far origin: the same concentrations."""
    x = np.column_stack((SMALL["x"], SMALL["f"][:, 0]))
    fitted = AlphaCalibration(**PAPER).fit(x, SMALL["labels"], probs=SMALL["f"])
    moved = x * [1e-9, 1e6] + [5.0, -3e8]
    other = AlphaCalibration(**PAPER).fit(moved, SMALL["labels"], probs=SMALL["f"])
    np.testing.assert_allclose(
        other.predict(moved, probs=SMALL["f"]).concentration,
        fitted.predict(x, probs=SMALL["f"]).concentration,
        rtol=1e-5,
    )


def test_useless_features_do_no_harm() -> None:
    """A constant column and a copy change nothing, and the copies share the weight."""
    x = SMALL["x"]
    fitted = AlphaCalibration(**PAPER).fit(**TWICE)
    more = AlphaCalibration(**PAPER).fit(
        np.column_stack((x, np.full(300, 0.1), x)), SMALL["labels"], probs=SMALL["f"]
    )
    assert more.loss_ == pytest.approx(fitted.loss_, abs=1e-12)
    np.testing.assert_allclose(more.coef_, fitted.coef_[0] * np.array([0.5, 0, 0.5]), atol=1e-7)


def test_one_concentration_for_all() -> None:
    """Without columns there is an intercept alone, which beats its neighbours."""
    none = np.zeros((300, 0))
    fitted = AlphaCalibration(**PAPER).fit(none, SMALL["labels"], probs=SMALL["f"])
    alpha = fitted.predict(none, probs=SMALL["f"]).concentration
    assert (alpha == alpha[0]).all()
    for factor in (0.99, 1.01):
        worse = DirichletBelief(SMALL["f"], alpha * factor)
        assert alpha_calibration_loss(worse, SMALL["labels"]) > fitted.loss_


def test_one_case_alone() -> None:
    """A fit to one case finds that case's own optimum, which another method finds (LH eq 51)."""
    one = SMALL["labels"].take([3])
    fitted = AlphaCalibration(**PAPER).fit(np.ones((1, 2)), one, probs=SMALL["f"][3:4])
    alone = optimal_concentration(SMALL["f"][3:4], one)
    alpha = fitted.predict(np.ones((1, 2)), probs=SMALL["f"][3:4]).concentration
    np.testing.assert_allclose(alpha, alone, rtol=1e-6)


def test_warm_start() -> None:
    """Starting from the optimum takes no more than a step, and stays there."""
    calibrator = AlphaCalibration(**PAPER, warm_start=True).fit(**TWICE)
    first, cold = calibrator.coef_.copy(), calibrator.n_iter_
    calibrator.fit(**TWICE)
    assert calibrator.n_iter_ <= 1 < cold
    np.testing.assert_allclose(calibrator.coef_, first, atol=1e-7)


def test_default_features() -> None:
    """Centred log-probabilities, entropy and the largest probability; none is infinite."""
    columns = default_features(np.array([[0.25, 0.75], [1.0, 0.0]]))
    half = np.log(3) / 2
    entropy = -0.25 * np.log(0.25) - 0.75 * np.log(0.75)
    np.testing.assert_allclose(columns[0], [-half, half, entropy, 0.75], rtol=1e-14)
    np.testing.assert_allclose(
        columns[1], np.log(1e12) * np.array([0.5, -0.5, 0, 0]) + [0, 0, 0, 1]
    )
    fitted = AlphaCalibration(**PAPER).fit(None, SMALL["labels"], probs=SMALL["f"])
    explicit = default_features(SMALL["f"])
    other = AlphaCalibration(**PAPER).fit(explicit, SMALL["labels"], probs=SMALL["f"])
    assert (
        fitted.predict(None, probs=SMALL["f"]).concentration
        == other.predict(explicit, probs=SMALL["f"]).concentration
    ).all()


@pytest.mark.parametrize("features", [SMALL["x"], None], ids=["given", "default"])
def test_half_precision(features: Array | None) -> None:
    """float16 rows, which sum to 1 within 1e-2, are allowed throughout, as everywhere."""
    half = SMALL["f"].astype(np.float16)
    assert np.abs(half.astype(float).sum(axis=1) - 1).max() > 1e-4
    calibrator = AlphaCalibration(**PAPER).fit(features, SMALL["labels"], probs=half)
    exact = AlphaCalibration(**PAPER).fit(features, SMALL["labels"], probs=SMALL["f"])
    np.testing.assert_allclose(
        np.log(calibrator.predict(features, probs=half).concentration),
        np.log(exact.predict(features, probs=SMALL["f"]).concentration),
        atol=0.02,
    )


def test_a_chosen_class_of_probability_0() -> None:
    """The loss is infinite, but the fit is the limit of that with a small probability."""
    f, counts = SMALL["f"].copy(), SMALL["labels"].counts.copy()
    counts[0] = (1, 2, 2)
    f[0] = (0, 0.4, 0.6)
    zero = AlphaCalibration(**PAPER).fit(SMALL["x"], Labels.from_counts(counts), probs=f)
    f[0] = (1e-12, 0.4, 0.6)
    small = AlphaCalibration(**PAPER).fit(SMALL["x"], Labels.from_counts(counts), probs=f)
    assert zero.loss_ == np.inf and np.isfinite(small.loss_)
    np.testing.assert_allclose(zero.coef_, small.coef_, atol=1e-7)
    assert json.loads(json.dumps(zero.to_dict()))["loss"] is None
    assert AlphaCalibration.from_dict(zero.to_dict()).loss_ == np.inf


def test_single_labels_among_others() -> None:
    """Cases with one label add a constant to the likelihood, so at λ = 0 they change nothing."""
    counts = SMALL["labels"].counts.copy()
    counts[200:] = np.eye(3, dtype=int)[counts[200:].argmax(axis=1)]
    mixed = AlphaCalibration(l2=0).fit(SMALL["x"], Labels.from_counts(counts), probs=SMALL["f"])
    several = AlphaCalibration(l2=0).fit(
        SMALL["x"][:200], Labels.from_counts(counts[:200]), probs=SMALL["f"][:200]
    )
    np.testing.assert_allclose(mixed.coef_, several.coef_, atol=1e-5)


def test_a_case_of_weight_0_is_not_there() -> None:
    """Two labels of a case that counts for nothing are not two labels."""
    counts = np.eye(3, dtype=int)[SMALL["labels"].majority()]
    counts[0] = (1, 1, 0)
    labels, weights = Labels.from_counts(counts), np.ones(300)
    AlphaCalibration(**PAPER).fit(SMALL["x"], labels, probs=SMALL["f"], sample_weight=weights)
    weights[0] = 0
    with pytest.raises(InvalidInputError, match="labels: needs at least 2 labels per case; no"):
        AlphaCalibration(**PAPER).fit(SMALL["x"], labels, probs=SMALL["f"], sample_weight=weights)


@pytest.mark.parametrize("features", [SMALL["x"], None], ids=["given", "default"])
def test_stored_and_read_back(features: Array | None) -> None:
    """Through JSON and back, the calibrator predicts the same digits."""
    fitted = AlphaCalibration(l2=0.01).fit(features, SMALL["labels"], probs=SMALL["f"])
    again = AlphaCalibration.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.get_params() == fitted.get_params()
    before, after = (
        fitted.predict(features, probs=SMALL["f"]),
        again.predict(features, probs=SMALL["f"]),
    )
    assert (before.concentration == after.concentration).all()
    assert (again.loss_, again.n_iter_) == (fitted.loss_, fitted.n_iter_)


def test_an_unfinished_fit_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One iteration without Newton's help is not enough, and is not passed over."""
    monkeypatch.setattr(alpha_solver, "NEWTON_STEPS", 0)
    with pytest.warns(ConvergenceWarning, match="AlphaCalibration: stopped at a gradient norm of"):
        AlphaCalibration(**PAPER, max_iter=1).fit(**TWICE)


def test_newton_steps_finish_the_fit() -> None:
    """After one iteration of L-BFGS, Newton's method alone reaches the same optimum."""
    short, full = (
        AlphaCalibration(**PAPER, max_iter=1).fit(**TWICE),
        AlphaCalibration(**PAPER).fit(**TWICE),
    )
    assert short.gradient_norm_ <= 1e-8
    np.testing.assert_allclose(short.coef_, full.coef_, atol=1e-6)


def test_an_old_or_foreign_file() -> None:
    """Another format or version is refused by name."""
    stored = AlphaCalibration(**PAPER).fit(**TWICE).to_dict()
    with pytest.raises(InvalidInputError, match=r"stored: must be .*version 2; got .*, 3"):
        AlphaCalibration.from_dict(stored | {"version": 3})
    with pytest.raises(InvalidInputError, match=r"stored: must be .*; got None, None"):
        AlphaCalibration.from_dict({})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": SMALL["x"][:5]}, r"features: must have one row per case; got 5 rows for 300"),
        ({"features": SMALL["x"][:, 0]}, r"features: must be 2-dimensional"),
        ({"features": np.full((300, 2), np.nan)}, r"features: must not contain NaN; 600 values"),
        ({"features": np.full((300, 2), np.inf)}, r"features: must be finite; row 0"),
        ({"probs": SMALL["f"] * 2}, r"probs: must lie in|probs: rows must sum to 1"),
        ({"labels": np.zeros(300, int)}, r"labels: needs at least 2 labels per case; no case has"),
        ({"labels": SMALL["labels"].take(np.arange(9))}, r"labels: must match probs; got 9"),
        (
            {"labels": Labels.from_counts(np.zeros((300, 3), int))},
            r"labels: every case needs a rating",
        ),
        ({"sample_weight": np.ones(3)}, r"sample_weight: must have one value per case; got 3"),
        ({"sample_weight": np.zeros(300)}, r"sample_weight: at least one must be positive"),
    ],
)
def test_bad_data_is_named(change: dict[str, Any], message: str) -> None:
    """Each error names the argument, the rule and the value."""
    with pytest.raises(InvalidInputError, match=message):
        AlphaCalibration(**PAPER).fit(**TWICE | change)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l2": -1.0}, r"l2: must be finite and not negative; got -1"),
        ({"l2": np.nan}, r"l2: must be finite and not negative; got nan"),
        ({"weighting": "other"}, r"weighting: must be one of paper, per_case; got 'other'"),
        ({"max_iter": 0}, r"max_iter: must be at least 1; got 0"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    """Parameters are checked when they are used, as in scikit-learn."""
    with pytest.raises(InvalidInputError, match=message):
        AlphaCalibration(**parameters).fit(**TWICE)


@pytest.mark.parametrize(
    ("features", "probs", "message"),
    [
        (None, SMALL["f"], r"features: must be None exactly if they were .* was given features"),
        (np.zeros((300, 2)), SMALL["f"], r"features: must have the 1 columns of the fit; got 2"),
        (np.zeros((2, 1)), SMALL["f"], r"features: must have one row per case; got 2 rows"),
        (np.zeros((1, 1)), [[0.5, 0.5]], r"probs: must have the 3 classes of the fit; got 2"),
        (
            np.full((1, 1), 1e6),
            SMALL["f"][:1],
            r"features: must be like .* case 0 would have log α0",
        ),
        (np.zeros((1, 1)), [[0.5, 0.5, 0.5]], r"probs: rows must sum to 1"),
    ],
)
def test_unlike_data_are_refused(features: Any, probs: Any, message: str) -> None:
    """Predicting wants what the fit had."""
    calibrator = AlphaCalibration(**PAPER).fit(**TWICE)
    with pytest.raises(InvalidInputError, match=message):
        calibrator.predict(features, probs=probs)
