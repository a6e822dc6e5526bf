"""How strongly α-calibration is held back: chosen by cross-validation, judged by known truths."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from golden import Array
from raterwise.beliefs import DirichletBelief, DirichletMixtureBelief, EnsembleBelief
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.alpha_loss import alpha_calibration_loss
from raterwise.calibrators.cross_validation import patient_folds
from raterwise.errors import InvalidInputError, RaterwiseWarning
from raterwise.kernels._threads import with_threads
from raterwise.labels import Labels


def simulated(
    log_alpha: Array, raters: int, random: np.random.Generator, classes: int = 3
) -> tuple[Array, Labels]:
    """Class probabilities, and labels of raters who follow Dir(α0 f)."""
    f = random.dirichlet(np.ones(classes), len(log_alpha))
    gammas = random.standard_gamma(np.exp(log_alpha)[:, None] * f) + 1e-300
    opinions = gammas / gammas.sum(axis=1, keepdims=True)
    return f, Labels.from_counts(random.multinomial(raters, opinions))


def line(cases: int, seed: int, features: int = 1, raters: int = 5) -> tuple[Array, Array, Labels]:
    """log α0 = 0.5 + 0.8 x of the first feature; the others are noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(cases, features))
    return x, *simulated(0.5 + 0.8 * x[:, 0], raters, random)


def log_likelihood(f: Array, counts: Array, u: Array) -> Array:
    """The textbook formula in log-gamma functions, case by case."""
    a, n = np.exp(u)[:, None], counts.sum(axis=1)
    inner = (gammaln(a * f + counts) - gammaln(a * f)).sum(axis=1)
    return np.asarray(inner - gammaln(a[:, 0] + n) + gammaln(a[:, 0]))


# the loss ---------------------------------------------------------------------------------------


def test_penalised_coefficients_against_another_method() -> None:
    """The loss written out with log-gamma functions, features standardised by hand, and BFGS."""
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 2)) * [0.01, 50] + [3, -7]
    f, labels = simulated(0.3 + 60 * (x[:, 0] - 3), 4, random)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    total = labels.num_raters.sum()

    def loss(theta: Array) -> float:
        fit = -log_likelihood(f, labels.counts, theta[0] + z @ theta[1:]).sum() / total
        return float(fit + 0.01 * (theta[1:] ** 2).sum() + theta[0] ** 2 / (2 * 25 * total))

    other = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    ours = AlphaCalibration(l2=0.01).fit(x, labels, probs=f)
    assert ours.loss_ == pytest.approx(other.fun, abs=1e-10)
    np.testing.assert_allclose(ours.coef_ * x.std(axis=0), other.x[1:], atol=1e-5)
    assert ours.intercept_ + x.mean(axis=0) @ ours.coef_ == pytest.approx(other.x[0], abs=1e-5)
    assert ours.gradient_norm_ <= 1e-8


def test_more_features_than_cases() -> None:
    """A ridge line in 60 dimensions from 40 cases is found as well, against BFGS."""
    x, f, labels = line(40, seed=1, features=60)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    total = labels.num_raters.sum()

    def loss(theta: Array) -> float:
        fit = -log_likelihood(f, labels.counts, theta[0] + z @ theta[1:]).sum() / total
        return float(fit + 0.1 * (theta[1:] ** 2).sum() + theta[0] ** 2 / (2 * 25 * total))

    other = minimize(loss, np.zeros(61), method="BFGS", options={"gtol": 1e-7})
    ours = AlphaCalibration(l2=0.1).fit(x, labels, probs=f)
    assert ours.loss_ == pytest.approx(other.fun, abs=1e-9)
    np.testing.assert_allclose(ours.coef_ * x.std(axis=0), other.x[1:], atol=1e-5)


def test_an_infinite_penalty_is_one_concentration() -> None:
    """λ = ∞, and nearly a large λ, give every case the α0 that a scan finds."""
    x, f, labels = line(200, seed=2)
    total = labels.num_raters.sum()
    levels = np.linspace(-2, 3, 5001)
    losses = [
        -log_likelihood(f, labels.counts, np.full(200, u)).sum() / total + u**2 / (50 * total)
        for u in levels
    ]
    fitted = AlphaCalibration(l2=np.inf).fit(x, labels, probs=f)
    assert fitted.intercept_ == pytest.approx(levels[int(np.argmin(losses))], abs=1e-3)
    assert fitted.coef_.tolist() == [0.0] and fitted.gradient_norm_ <= 1e-8
    near = AlphaCalibration(l2=1e6).fit(x, labels, probs=f)
    assert near.intercept_ == pytest.approx(fitted.intercept_, abs=1e-6)
    with pytest.raises(InvalidInputError, match="l2: must be finite and not negative; got inf"):
        AlphaCalibration(l2=np.inf, penalty="paper").fit(x, labels, probs=f)


def test_units_and_origins_do_not_matter() -> None:
    """Features in other units from another origin: the same λ and the same concentrations."""
    x, f, labels = line(200, seed=3, features=2)
    moved = x * [1e-9, 1e6] + [5.0, -3e8]
    here = AlphaCalibration().fit(x, labels, probs=f)
    there = AlphaCalibration().fit(moved, labels, probs=f)
    assert here.l2_ == there.l2_
    np.testing.assert_allclose(
        there.predict(moved, probs=f).concentration,
        here.predict(x, probs=f).concentration,
        rtol=1e-5,
    )


def test_weight_is_repetition() -> None:
    """With patients named, a case of weight 3 counts as three in the folds and in the fit."""
    x, f, labels = line(150, seed=4)
    weights = np.tile([3, 0, 1], 50)
    rows = np.repeat(np.arange(150), weights)
    once = AlphaCalibration(l2=0.01).fit(x, labels, probs=f, sample_weight=weights)
    often = AlphaCalibration(l2=0.01).fit(x[rows], labels.take(rows), probs=f[rows])
    assert once.loss_ == pytest.approx(often.loss_, abs=1e-12)
    np.testing.assert_allclose(once.coef_, often.coef_, atol=1e-7)


# the choice -------------------------------------------------------------------------------------


def test_the_line_is_found_however_many_cases_there_are() -> None:
    """10,000 cases: the slope of 0.8 is found, where the paper's penalty leaves 0.5 to 0.6."""
    x, f, labels = line(10_000, seed=5, raters=2)
    chosen = AlphaCalibration().fit(x, labels, probs=f)
    assert 0.75 < chosen.coef_[0] < 0.9 and chosen.beats_constant_ is True
    assert chosen.intercept_ == pytest.approx(0.5, abs=0.1)
    paper = AlphaCalibration(l2=0.005, penalty="paper").fit(x, labels, probs=f)
    assert paper.coef_[0] < 0.65


def test_wide_useless_features_do_no_harm() -> None:
    """512 features of noise, 300 cases: within 1 % of one α0 for all, and a warning says so."""
    random = np.random.default_rng(6)
    x, new_x = random.normal(size=(300, 512)), random.normal(size=(2000, 512))
    f, labels = simulated(np.full(300, 0.5), 5, random)
    new_f, new_labels = simulated(np.full(2000, 0.5), 5, random)
    with pytest.warns(RaterwiseWarning, match="the features do not help .* same α0 = "):
        chosen = AlphaCalibration().fit(x, labels, probs=f)
    constant = AlphaCalibration(l2=np.inf).fit(x, labels, probs=f)
    best = constant.score(new_x, new_labels, probs=new_f)
    assert chosen.score(new_x, new_labels, probs=new_f) > 1.01 * best  # both are negative
    assert chosen.beats_constant_ is False and chosen.l2_ == np.inf
    paper = AlphaCalibration(l2=0.005, penalty="paper").fit(x, labels, probs=f)
    assert paper.score(new_x, new_labels, probs=new_f) < 1.05 * best


def test_many_features_that_each_say_a_little() -> None:
    """64 features, each with a share of the truth, beat one α0 for all on new cases."""
    random = np.random.default_rng(7)
    x, new_x = random.normal(size=(1500, 64)), random.normal(size=(2000, 64))
    f, labels = simulated(0.5 + 0.1 * x.sum(axis=1), 5, random)
    new_f, new_labels = simulated(0.5 + 0.1 * new_x.sum(axis=1), 5, random)
    chosen = AlphaCalibration().fit(x, labels, probs=f)
    constant = AlphaCalibration(l2=np.inf).fit(x, labels, probs=f)
    gained = chosen.score(new_x, new_labels, probs=new_f) - constant.score(
        new_x, new_labels, probs=new_f
    )
    assert gained > 0.005


def test_the_cross_validated_loss_is_what_it_says() -> None:
    """Fold by fold by hand: fitted to the others, judged by log-gamma functions on the one left."""
    x, f, labels = line(120, seed=8)
    groups = np.arange(120) // 2
    chosen = AlphaCalibration(folds=3, seed=4).fit(x, labels, probs=f, groups=groups)
    fold = patient_folds(labels.counts, groups, 3, seed=4)
    # The standard deviations are those of all cases, so they are undone where λ is that of a fold.
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    total = labels.num_raters.sum()
    constant = (np.log(f) * (labels.counts > 0)).sum() / total
    for i in (0, 5, 9):
        l2, loss = chosen.cv_l2_[i], 0.0
        for k in range(3):
            known, left = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            scale = l2 * z[known].std() ** -2 if np.isfinite(l2) else l2
            model = AlphaCalibration(l2=scale).fit(z[known], labels.take(known), probs=f[known])
            u = np.log(model.predict(z[left], probs=f[left]).concentration)
            loss -= log_likelihood(f[left], labels.counts[left], u).sum()
        assert chosen.cv_loss_[i] == pytest.approx(loss / total + constant, abs=1e-5)
    assert chosen.l2_ == chosen.cv_l2_[chosen.cv_loss_.argmin()]


def test_patients_stay_together() -> None:
    """A feature that only names the patient helps between cases of one, not between patients."""
    random = np.random.default_rng(9)
    patient = np.repeat(np.arange(40), 8)
    x = np.eye(40)[patient]
    f, labels = simulated(np.repeat(random.normal(0.5, 1.5, 40), 8), 5, random)
    assert AlphaCalibration().fit(x, labels, probs=f).beats_constant_
    with pytest.warns(RaterwiseWarning, match="the features do not help"):
        together = AlphaCalibration().fit(x, labels, probs=f, groups=patient)
    assert together.beats_constant_ is False


def test_the_paper_s_penalty_is_chosen_too() -> None:
    """Where the truth is far from α0 = 1 a small λ of eq 50 wins; where it is 1, the largest."""
    random = np.random.default_rng(10)
    f, labels = simulated(np.full(400, np.log(40)), 5, random)
    far = AlphaCalibration(penalty="paper").fit(None, labels, probs=f)
    assert far.l2_ <= 0.0005 and far.cv_l2_.tolist() == [0.05, 0.005, 0.0005, 0.00005]
    f, labels = simulated(np.zeros(60), 2, random)
    near = AlphaCalibration(penalty="paper").fit(None, labels, probs=f, groups=np.arange(60) // 2)
    assert near.l2_ == 0.05 and near.beats_constant_ is None


def test_the_same_digits_with_any_number_of_threads() -> None:
    """One thread and four: the same λ, losses and line, bit by bit; another seed, other folds."""
    x, f, labels = line(400, seed=11, features=5)
    found = []
    for threads in (1, 4):
        with with_threads(threads):
            found.append(AlphaCalibration().fit(x, labels, probs=f))
    first, second = found
    assert (first.cv_loss_ == second.cv_loss_).all() and (first.coef_ == second.coef_).all()
    other = AlphaCalibration(seed=1).fit(x, labels, probs=f)
    assert (first.cv_loss_ != other.cv_loss_).any()


@pytest.mark.parametrize("cases", [1, 2, 3])
def test_very_few_cases(cases: int) -> None:
    """Fewer cases than folds are as many folds; one alone gets its own α0 and no slope."""
    x, f, labels = line(40, seed=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaterwiseWarning)
        fitted = AlphaCalibration().fit(x[:cases], labels.take(np.arange(cases)), probs=f[:cases])
    assert np.isfinite(fitted.predict(x[:cases], probs=f[:cases]).concentration).all()
    if cases == 1:
        assert fitted.l2_ == np.inf


def test_default_features_that_do_not_help_are_no_news() -> None:
    """Nobody claimed that they would: no warning, but the attribute says so."""
    f, labels = simulated(np.full(100, 1.0), 4, np.random.default_rng(13))
    fitted = AlphaCalibration().fit(None, labels, probs=f)
    assert fitted.beats_constant_ is False and not fitted.coef_.any()


@pytest.mark.parametrize("l2", ["cv", 0, 1e-6])
def test_cases_told_apart(l2: Any) -> None:
    """Where a feature tells unanimous raters from divided ones, the training cases have an α0."""
    x = np.repeat([[-1.0], [1.0]], 20, axis=0)
    counts = np.repeat([[4, 0], [2, 2]], 20, axis=0)
    f, labels = np.full((40, 2), 0.5), Labels.from_counts(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there may be no optimum to reach
        fitted = AlphaCalibration(l2=l2).fit(x, labels, probs=f)
    alpha = fitted.predict(x, probs=f).concentration
    assert alpha[0] < 0.1 and alpha[-1] > 10
    belief = fitted.predict(x[::39], probs=f[::39])
    assert belief.disagreement()[0] < 0.1 and belief.disagreement()[1] > 0.4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l2": "best"}, "l2: must be a number or \"cv\"; got 'best'"),
        ({"penalty": "lasso"}, "penalty: must be one of coefficients, paper; got 'lasso'"),
        ({"folds": 1}, "folds: must be at least 2; got 1"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    """Parameters are checked when they are used."""
    x, f, labels = line(20, seed=14)
    with pytest.raises(InvalidInputError, match=message):
        AlphaCalibration(**parameters).fit(x, labels, probs=f)


def test_stored_and_read_back() -> None:
    """The choice is kept in JSON, ∞ included; a file of version 1 is one of the paper's penalty."""
    x, f, labels = line(60, seed=15)
    for l2 in ("cv", np.inf, 0.1):
        fitted = AlphaCalibration(l2=l2).fit(x, labels, probs=f)
        again = AlphaCalibration.from_dict(json.loads(json.dumps(fitted.to_dict())))
        assert again.get_params() == fitted.get_params() and again.l2_ == fitted.l2_
        assert again.to_dict() == fitted.to_dict()
    old = AlphaCalibration(l2=0.1, penalty="paper").fit(x, labels, probs=f)
    stored = old.to_dict() | {"version": 1}
    stored["params"] = {"l2": 0.1, "weighting": "paper", "warm_start": False, "max_iter": 1000}
    for name in ("l2", "beats_constant", "cv", "log_concentration_range"):
        del stored[name]
    read = AlphaCalibration.from_dict(stored)
    assert (read.penalty, read.l2_) == ("paper", 0.1)
    np.testing.assert_array_equal(
        read.predict(x, probs=f).concentration, old.predict(x, probs=f).concentration
    )


def test_the_score_is_the_likelihood() -> None:
    """Minus the loss without a penalty: the mean log-likelihood of a label."""
    x, f, labels = line(80, seed=16)
    fitted = AlphaCalibration(l2=0.1).fit(x, labels, probs=f)
    u = np.log(fitted.predict(x, probs=f).concentration)
    expected = log_likelihood(f, labels.counts, u).sum() / labels.num_raters.sum()
    assert fitted.score(x, labels, probs=f) == pytest.approx(expected, abs=1e-12)
    weights = np.arange(80)
    belief = fitted.predict(x, probs=f)
    assert fitted.score(x, labels, probs=f, sample_weight=weights) == -alpha_calibration_loss(
        belief, labels, 0.0, sample_weight=weights
    )


def test_the_old_order_of_arguments_is_refused() -> None:
    """Labels come second and probabilities by name, so that nothing is taken for another."""
    x, f, labels = line(20, seed=17)
    with pytest.raises(TypeError, match="positional argument"):
        AlphaCalibration().fit(x, f, labels)  # type: ignore[call-arg, misc]


# ensembles (LH appendix E.4) ---------------------------------------------------------------------


def ensemble(seed: int, cases: int = 200, draws: int = 3) -> tuple[Array, Array, Labels]:
    """Features (S, N, 2) and probabilities (S, N, 3) of draws that scatter round the truth."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(cases, 2))
    f, labels = simulated(0.5 + 0.8 * x[:, 0], 4, random)
    logits = np.log(f) + 0.3 * random.normal(size=(draws, cases, 3))
    samples = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return x + 0.2 * random.normal(size=(draws, cases, 2)), samples, labels


def test_draws_count_as_weighted_cases() -> None:
    """A fit to draws is one to S·N cases of weight 1/S; the belief is the mixture of the draws."""
    x, samples, labels = ensemble(18)
    together = AlphaCalibration(l2=0.01).fit(x, labels, probs=samples)
    rows = np.tile(np.arange(200), 3)
    apart = AlphaCalibration(l2=0.01).fit(
        x.reshape(-1, 2),
        labels.take(rows),
        probs=samples.reshape(-1, 3),
        sample_weight=np.full(600, 1 / 3),
    )
    np.testing.assert_allclose(together.coef_, apart.coef_, rtol=1e-12)
    belief = together.predict(x, probs=samples)
    assert isinstance(belief, DirichletMixtureBelief)
    np.testing.assert_array_equal(belief.samples, samples)
    for s in range(3):
        one = together.predict(x[s], probs=samples[s])
        assert isinstance(one, DirichletBelief)
        np.testing.assert_allclose(belief.concentration[s], one.concentration, rtol=1e-12)
    np.testing.assert_allclose(belief.weights, 1 / 3)


def test_draws_of_a_case_are_never_split() -> None:
    """Draws as cases of their own look as if three times as much were known: the choice differs."""
    x, samples, labels = ensemble(19)
    chosen = AlphaCalibration().fit(x, labels, probs=samples)
    rows = np.tile(np.arange(200), 3)
    same = AlphaCalibration().fit(
        x.reshape(-1, 2),
        labels.take(rows),
        probs=samples.reshape(-1, 3),
        sample_weight=np.full(600, 1 / 3),
        groups=rows,
    )
    np.testing.assert_array_equal(chosen.cv_loss_, same.cv_loss_)


def test_an_ensemble_belief_and_shared_features() -> None:
    """A belief gives samples and weights; (N, D) features are those of every draw."""
    x, samples, labels = ensemble(20)
    shared, belief = x[0], EnsembleBelief(samples, [0.5, 0.3, 0.2])
    fitted = AlphaCalibration(l2=0.01).fit(shared, labels, probs=belief)
    mixture = fitted.predict(shared, probs=belief)
    np.testing.assert_allclose(mixture.concentration[0], mixture.concentration[2])
    np.testing.assert_allclose(mixture.weights[:, 0], [0.5, 0.3, 0.2])
    np.testing.assert_allclose(mixture.mean, belief.mean)
    default = AlphaCalibration(l2=0.01).fit(None, labels, probs=belief)
    assert default.predict(None, probs=belief).concentration.shape == (3, 200)


def test_draws_that_do_not_match_are_named() -> None:
    """Features of other draws, or of draws where probs has none."""
    x, samples, labels = ensemble(21)
    with pytest.raises(InvalidInputError, match=r"features: \(S, N, D\) must have the draws .* 3"):
        AlphaCalibration().fit(x[:2], labels, probs=samples)
    with pytest.raises(InvalidInputError, match=r"features: \(S, N, D\) .* for no draws"):
        AlphaCalibration().fit(x, labels, probs=samples[0])
    fitted = AlphaCalibration(l2=0.01).fit(x, labels, probs=samples)
    with pytest.raises(InvalidInputError, match="probs: must be of one model"):
        fitted.score(x, labels, probs=samples)
