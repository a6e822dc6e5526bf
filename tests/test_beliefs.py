"""Beliefs about class probabilities: released numbers, Bayes by hand, and simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from golden import LABEL_HISTOGRAMS, Array, GoldenValue, values
from raterwise.beliefs import (
    Belief,
    DirichletBelief,
    DirichletMixtureBelief,
    EnsembleBelief,
    PointBelief,
)
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.functions.histograms import epistemic_loss
from raterwise.labels import Labels

ALPHA_VALUES = Path(__file__).parent / "fixtures" / "lh_alpha" / "values.npz"


def random_probs(rng: np.random.Generator, *shape: int, classes: int = 3) -> Array:
    """Class probabilities of the shape, none of them extreme."""
    return rng.dirichlet(np.full(classes, 1.5), shape)


def one_of_each(cases: int = 6, classes: int = 3, members: int = 4, seed: int = 0) -> list[Belief]:
    """A belief of every kind about the same number of cases."""
    rng = np.random.default_rng(seed)
    samples = random_probs(rng, members, cases, classes=classes)
    weights = rng.dirichlet(np.ones(members), cases).T
    return [
        PointBelief(samples[0]),
        EnsembleBelief(samples, weights),
        DirichletBelief(samples[0], rng.uniform(0.3, 9, cases)),
        DirichletMixtureBelief(samples, rng.uniform(0.3, 9, (members, cases)), weights),
    ]


EVERY_KIND = pytest.mark.parametrize("belief", one_of_each(), ids=lambda b: type(b).__name__)


# against the released code ----------------------------------------------------------------------


@values("agreement_probs", repository=LABEL_HISTOGRAMS)
def test_disagreement_of_every_kind(golden: GoldenValue) -> None:
    """LH eqs 17, 71, 72 and 73: one minus the released agreement probabilities."""
    data = golden.data
    samples, alpha = data["mc_probs"].transpose(1, 0, 2), data["mc_alpha0"].T
    belief: Belief = {
        "prob": lambda: PointBelief(data.probs),
        "alpha": lambda: DirichletBelief(data.probs, data["alpha0"]),
        "mc_prob": lambda: EnsembleBelief(samples),
        "mc_alpha": lambda: DirichletMixtureBelief(samples, alpha),
    }[golden.params["pred"]]()
    np.testing.assert_allclose(belief.disagreement(), 1 - golden.value, rtol=0, atol=1e-12)


@values("posterior_CPE", repository=LABEL_HISTOGRAMS)
def test_posterior_mean_after_one_label(golden: GoldenValue) -> None:
    """LH eq 19: the mean after the first rater's label; and eq 79: the parameters."""
    data = golden.data
    belief = DirichletBelief(data.probs, data["alpha0"]).posterior(data.classes)
    np.testing.assert_allclose(belief.mean, golden.value, rtol=0, atol=1e-12)
    with np.load(ALPHA_VALUES, allow_pickle=False) as stored:
        parameters = stored[f"{data.name}/posterior_alpha/pred=alpha"]
    np.testing.assert_allclose(belief.mean * belief.concentration[:, None], parameters, rtol=1e-12)


@values("EL_unbiased_prior", "EL_unbiased_posterior", repository=LABEL_HISTOGRAMS)
def test_epistemic_loss_before_and_after_a_label(golden: GoldenValue) -> None:
    """LH Table 2's quantity: EL on the other raters, before and after the first one's label."""
    data = golden.data
    belief = DirichletBelief(data.probs, data["alpha0"])
    if golden.what == "EL_unbiased_posterior":
        belief = belief.posterior(data.classes)
    several = data["n_raters"] >= 3
    labels = Labels.from_counts(data["rem_hist"][several])
    assert epistemic_loss(belief.mean[several], labels) == golden.approx()


# Bayes' rule ------------------------------------------------------------------------------------


def test_ensemble_posterior_by_hand() -> None:
    """Weights are products of member probabilities (LH eq 81), here 1·0.9²·0.1 : 2·0.2²·0.8."""
    belief = EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]], weights=[1 / 3, 2 / 3])
    after = belief.posterior(Labels.from_counts([[2, 1]]))
    total = 0.081 + 0.064
    np.testing.assert_allclose(after.weights[:, 0], [0.081 / total, 0.064 / total], rtol=1e-13)
    np.testing.assert_allclose(after.mean[0, 0], (0.9 * 0.081 + 0.2 * 0.064) / total, rtol=1e-13)
    assert (after.samples == belief.samples).all()


def test_mixture_posterior_by_hand() -> None:
    """Weights are Dirichlet-multinomial: labels (1, 1) have f(1-f) α/(α+1) under each member."""
    belief = DirichletMixtureBelief([[[0.5, 0.5]], [[0.2, 0.8]]], [[1.0], [4.0]])
    after = belief.posterior(Labels.from_counts([[1, 1]]))
    first, second = 0.25 * 1 / 2, 0.16 * 4 / 5
    share = first / (first + second)
    np.testing.assert_allclose(after.weights[:, 0], [share, 1 - share], rtol=1e-13)
    np.testing.assert_allclose(after.samples[:, 0, 0], [1.5 / 3, 1.8 / 6], rtol=1e-13)
    np.testing.assert_allclose(after.concentration[:, 0], [3, 6], rtol=1e-13)


@pytest.mark.parametrize("belief", one_of_each(cases=1)[1:], ids=lambda b: type(b).__name__)
def test_posterior_by_weighted_draws(belief: Belief) -> None:
    """Draws of the prior, weighted by the labels' likelihood, have the posterior's moments."""
    counts = np.array([[3, 0, 1]])
    draws = belief.sample(400_000, seed=1)[:, 0]
    weights = (draws**counts).prod(axis=1)
    weights /= weights.sum()
    after = belief.posterior(Labels.from_counts(counts))
    error = 5 / np.sqrt(1 / (weights**2).sum())  # 5 standard errors of a mean of values below 1
    np.testing.assert_allclose(after.mean[0], weights @ draws, rtol=0, atol=error)
    differ = weights @ (1 - (draws**2).sum(axis=1))
    assert after.disagreement()[0] == pytest.approx(differ, abs=error)


@EVERY_KIND
def test_no_label_changes_nothing(belief: Belief) -> None:
    """Cases without a label stay as they are to the last bit, whatever the others hear."""
    counts = np.zeros((6, 3), int)
    counts[4] = (0, 2, 1)
    after = belief.posterior(Labels.from_counts(counts))
    same = np.arange(6) != 4
    assert type(after) is type(belief)
    for name in ("mean", "samples", "concentration", "weights"):
        if hasattr(belief, name):
            axis = 0 if getattr(belief, name).shape[0] == 6 else 1
            before = np.moveaxis(getattr(belief, name), axis, 0)
            assert (np.moveaxis(getattr(after, name), axis, 0)[same] == before[same]).all()
    assert (after.disagreement()[same] == belief.disagreement()[same]).all()
    everywhere = belief.posterior(Labels.from_counts(np.zeros((6, 3), int)))
    assert (everywhere.mean == belief.mean).all()


@EVERY_KIND
def test_labels_may_come_one_by_one(belief: Belief) -> None:
    """Two labels in turn leave the same belief as both at once."""
    first, second = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 2, 1, 1, 0])
    both = np.eye(3, dtype=int)[first] + np.eye(3, dtype=int)[second]
    one_by_one = belief.posterior(first).posterior(second)
    at_once = belief.posterior(Labels.from_counts(both))
    np.testing.assert_allclose(one_by_one.mean, at_once.mean, rtol=1e-12)
    np.testing.assert_allclose(one_by_one.disagreement(), at_once.disagreement(), rtol=1e-12)


@EVERY_KIND
def test_the_answers_average_to_what_was_believed(belief: Belief) -> None:
    """The means after each possible answer, weighted by its probability, are the mean before."""
    after = [belief.posterior(np.full(6, k)).mean for k in range(3)]
    average = np.einsum("nk,knj->nj", belief.mean, np.array(after))
    np.testing.assert_allclose(average, belief.mean, rtol=1e-12)


def test_released_weights_are_sums_over_the_classes() -> None:
    """weights="sum" is Σ_k f_k^y_k: by hand, two labels of class 0 and one of class 1 of three."""
    belief = EnsembleBelief([[[0.5, 0.3, 0.2]], [[0.1, 0.8, 0.1]]], weights=[0.25, 0.75])
    after = belief.posterior(Labels.from_counts([[2, 1, 0]]), weights="sum")
    first, second = 0.25 * (0.25 + 0.3 + 1), 0.75 * (0.01 + 0.8 + 1)
    expected = np.array([first, second]) / (first + second)
    np.testing.assert_allclose(after.weights[:, 0], expected, rtol=1e-13)
    np.testing.assert_array_equal(after.samples, belief.samples)
    unrated = belief.posterior(Labels.from_counts([[0, 0, 0]]), weights="sum")
    np.testing.assert_allclose(unrated.weights[:, 0], [0.25, 0.75], rtol=1e-13)


def test_released_weights_are_asked_for_by_name() -> None:
    """Another name for the weights, or labels of other cases, is an error that says so."""
    belief = EnsembleBelief([[[0.5, 0.5]], [[0.1, 0.9]]])
    with pytest.raises(InvalidInputError, match="weights: must be one of product, sum"):
        belief.posterior([1], weights="mean")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="got 2 labels for 1 cases"):
        belief.posterior([1, 0], weights="sum")


def test_a_point_learns_nothing() -> None:
    """A point belief is the same after any labels, and expects nothing of them."""
    belief = PointBelief([[0.2, 0.8], [1.0, 0.0]])
    assert (belief.posterior([0, 1]).mean == belief.mean).all()
    assert (belief.expected_gain() == 0).all()


def test_a_large_concentration_is_a_point() -> None:
    """At α0 = 1e12 a Dirichlet believes, and learns, what a point does."""
    probs = random_probs(np.random.default_rng(3), 5)
    point, sure = PointBelief(probs), DirichletBelief(probs, 1e12)
    labels = Labels.from_counts(np.tile([4, 0, 1], (5, 1)))
    np.testing.assert_allclose(sure.disagreement(), point.disagreement(), rtol=1e-11)
    np.testing.assert_allclose(sure.posterior(labels).mean, probs, rtol=0, atol=1e-11)
    np.testing.assert_allclose(sure.expected_gain(), 0, atol=1e-23)
    np.testing.assert_allclose(sure.sample(3, seed=0), point.sample(3, seed=0), atol=1e-5)


def test_a_sure_mixture_is_an_ensemble() -> None:
    """At α0 = 1e12 a mixture of Dirichlets has the posterior of the ensemble of its means."""
    samples = random_probs(np.random.default_rng(4), 3, 5)
    labels = Labels.from_counts(np.tile([2, 1, 0], (5, 1)))
    mixture = DirichletMixtureBelief(samples, 1e12).posterior(labels)
    ensemble = EnsembleBelief(samples).posterior(labels)
    np.testing.assert_allclose(mixture.weights, ensemble.weights, rtol=1e-10)
    np.testing.assert_allclose(mixture.expected_gain(), ensemble.expected_gain(), rtol=1e-9)


# the value of one more label --------------------------------------------------------------------


def test_gain_of_a_dirichlet_by_hand() -> None:
    """Beta(1, 1): variances 1/12 fall to 1/18 in each of 2 classes, whatever the answer."""
    belief = DirichletBelief([[0.5, 0.5]], [2.0])
    assert belief.expected_gain()[0] == pytest.approx(2 * (1 / 12 - 1 / 18), rel=1e-14)


def test_gain_of_an_ensemble_by_hand() -> None:
    """Two members that are each certain of another class: one label settles it, and all is won."""
    belief = EnsembleBelief([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert belief.expected_gain()[0] == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize("belief", one_of_each(cases=1)[1:], ids=lambda b: type(b).__name__)
def test_gain_by_simulation(belief: Belief) -> None:
    """Truth, label and update drawn from the belief lower the squared error by the gain."""
    truth = belief.sample(200_000, seed=2)[:, 0]
    uniform = np.random.default_rng(3).random((len(truth), 1))
    label = (uniform > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    after = np.array([belief.posterior([k]).mean[0] for k in range(3)])[label]
    won = ((belief.mean[0] - truth) ** 2).sum(axis=1) - ((after - truth) ** 2).sum(axis=1)
    assert belief.expected_gain()[0] == pytest.approx(
        won.mean(), abs=4 * won.std() / np.sqrt(len(won))
    )


def test_the_closed_form_is_the_sum_over_answers() -> None:
    """A mixture of one member, which sums over the answers, has the Dirichlet's closed form."""
    rng = np.random.default_rng(5)
    probs, alpha = random_probs(rng, 50, classes=5), rng.uniform(0.01, 100, 50)
    one = DirichletMixtureBelief(probs[None], alpha[None])
    closed = DirichletBelief(probs, alpha).expected_gain()
    np.testing.assert_allclose(one.expected_gain(), closed, rtol=1e-11)


def test_gain_where_a_class_is_impossible() -> None:
    """A class of probability 0 is no possible answer, and does not spoil the sum."""
    with_class = EnsembleBelief([[[0.9, 0.1, 0.0]], [[0.2, 0.8, 0.0]]]).expected_gain()
    without = EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]]).expected_gain()
    np.testing.assert_allclose(with_class, without, rtol=1e-14)


# statistics of several labels -------------------------------------------------------------------


def not_all_the_same(labels: tuple[int, ...]) -> bool:
    """φ: some labels differ."""
    return len(set(labels)) > 1


@EVERY_KIND
@pytest.mark.parametrize("order", [1, 2, 5])
def test_closed_form_and_enumeration_agree(belief: Belief, order: int) -> None:
    """P(not all of n labels are the same), by formula and by summing over histograms."""
    closed = belief.statistic("disagreement", order)
    summed = belief.statistic(not_all_the_same, order)
    assert (closed.method, summed.method) == ("closed form", "enumeration")
    np.testing.assert_allclose(closed.values, summed.values, rtol=1e-12, atol=1e-15)
    assert not closed.standard_error.any() and not summed.standard_error.any()
    unanimity = belief.statistic("unanimity", order).values
    np.testing.assert_allclose(unanimity, 1 - closed.values, rtol=1e-12, atol=1e-15)


@EVERY_KIND
def test_disagreement_is_the_statistic_of_two_labels(belief: Belief) -> None:
    """LH eq 17 is the order-2 case."""
    pair = belief.statistic(lambda a, b: a != b, order=2)
    np.testing.assert_allclose(pair.values, belief.disagreement(), rtol=1e-12)


def test_histogram_probabilities_against_scipy() -> None:
    """How many of 6 raters say class 0, against scipy's beta-binomial and binomial."""
    probs, alpha = np.array([[0.3, 0.7], [0.02, 0.98]]), np.array([0.4, 30.0])

    def how_many(labels: tuple[int, ...]) -> int:
        return labels.count(0)

    number = np.arange(7)
    dirichlet = DirichletBelief(probs, alpha).statistic(how_many, order=6, values=7)
    point = PointBelief(probs).statistic(how_many, order=6, values=7)
    for i in range(2):
        a, b = alpha[i] * probs[i]
        np.testing.assert_allclose(
            dirichlet.values[i], stats.betabinom(6, a, b).pmf(number), rtol=1e-12
        )
        np.testing.assert_allclose(
            point.values[i], stats.binom(6, probs[i, 0]).pmf(number), rtol=1e-12
        )


@EVERY_KIND
def test_sampling_agrees_with_enumeration(belief: Belief) -> None:
    """Sampled probabilities lie within 4.5 of their own standard errors, which are not 0."""
    majority = {"statistic": lambda four: four.count(0) >= 3, "order": 4}
    exact = belief.statistic(**majority)
    drawn = belief.statistic(**majority, method="sampling", samples=5000, seed=7)
    assert drawn.method == "sampling"
    assert (np.abs(drawn.values - exact.values) < 4.5 * drawn.standard_error).all()
    assert (drawn.standard_error > 0).all() and (drawn.standard_error < 0.5 / np.sqrt(4900)).all()
    again = belief.statistic(**majority, method="sampling", samples=5000, seed=7)
    assert (again.values == drawn.values).all()


def test_too_many_histograms_are_sampled() -> None:
    """12 labels of 10 classes have 293,930 histograms: drawn, and right for a known answer."""
    belief = DirichletBelief(np.full((2, 10), 0.1), [1.0, 50.0])
    drawn = belief.statistic(not_all_the_same, order=12, samples=1000, seed=1)
    assert drawn.method == "sampling"
    closed = belief.statistic("disagreement", order=12).values
    assert (np.abs(drawn.values - closed) < 4.5 * drawn.standard_error).all()


def test_predictions_that_sum_to_nearly_one_can_be_sampled() -> None:
    """Rows that sum to 1.00005, as the rules allow, are no obstacle to drawing labels."""
    belief = PointBelief([[0.50005, 0.5, 0.0], [0.99995, 0.0, 0.0]])
    drawn = belief.statistic(not_all_the_same, 2, method="sampling", samples=4000)
    assert drawn.values[0] == pytest.approx(0.5, abs=0.04)
    assert drawn.values[1] == 0


# draws ------------------------------------------------------------------------------------------


def test_draws_of_a_dirichlet_have_its_moments() -> None:
    """Means f_k and variances f_k (1 - f_k)/(α0 + 1), within 5 standard errors."""
    probs, alpha = np.array([[0.6, 0.3, 0.1], [0.05, 0.05, 0.9]]), np.array([0.5, 8.0])
    draws = DirichletBelief(probs, alpha).sample(100_000, seed=4)
    assert draws.shape == (100_000, 2, 3)
    np.testing.assert_allclose(draws.sum(axis=2), 1, rtol=1e-12)
    expected = probs * (1 - probs) / (alpha[:, None] + 1)
    error = 5 * np.sqrt(expected / len(draws))
    assert (np.abs(draws.mean(axis=0) - probs) < error).all()
    np.testing.assert_allclose(draws.var(axis=0), expected, rtol=0.05)


def test_draws_of_an_ensemble_follow_its_weights() -> None:
    """Members are drawn as often as they weigh, within 5 standard errors."""
    samples = np.array([[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]])
    draws = EnsembleBelief(samples, weights=[0.2, 0.7, 0.1]).sample(20_000, seed=5)[:, 0, 0]
    for value, share in ((1.0, 0.2), (0.5, 0.7), (0.0, 0.1)):
        error = 5 * np.sqrt(share * (1 - share) / len(draws))
        assert (draws == value).mean() == pytest.approx(share, abs=error)


def test_draws_at_a_tiny_concentration_are_corners() -> None:
    """At α0 = 1e-200 a draw is one class for certain, chosen with the probabilities f."""
    draws = DirichletBelief([[0.3, 0.7]], [1e-200]).sample(4000, seed=6)[:, 0]
    assert set(np.unique(draws)) == {0.0, 1.0}
    assert draws[:, 0].mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 4000))


@EVERY_KIND
def test_the_seed_decides(belief: Belief) -> None:
    """The same seed gives the same digits."""
    assert (belief.sample(3, seed=11) == belief.sample(3, seed=11)).all()


# properties -------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 0.1, 1.0, 1e3, 1e9]))
def test_probabilities_stay_probabilities(seed: int, scale: float) -> None:
    """Means sum to 1, disagreement lies in [0, 1 - Σ m²], and the gain below the variance."""
    rng = np.random.default_rng(seed)
    samples = rng.dirichlet(np.full(4, 0.2), (3, 5))
    belief = DirichletMixtureBelief(samples, scale * rng.uniform(0.5, 2, (3, 5)))
    after = belief.posterior(Labels.from_counts(rng.integers(0, 3, (5, 4))))
    for each in (belief, after):
        mean, differ, gain = each.mean, each.disagreement(), each.expected_gain()
        variance = 1 - (mean**2).sum(axis=1) - differ
        np.testing.assert_allclose(mean.sum(axis=1), 1, rtol=1e-12)
        assert (differ >= 0).all() and (variance >= -1e-12).all()
        assert (gain >= 0).all() and (gain <= variance + 1e-12).all()


@EVERY_KIND
def test_a_choice_of_cases(belief: Belief) -> None:
    """The belief about chosen cases is what was believed of them."""
    chosen = belief.take([4, 1])
    assert type(chosen) is type(belief) and len(chosen) == 2
    assert (chosen.mean == belief.mean[[4, 1]]).all()
    assert (chosen.disagreement() == belief.disagreement()[[4, 1]]).all()
    assert repr(chosen) == f"{type(belief).__name__}(2 cases, 3 classes)"


def test_two_classes_as_one_column() -> None:
    """(N,) is the probability of class 1, as everywhere."""
    assert PointBelief([0.2, 0.7]).mean == pytest.approx(np.array([[0.8, 0.2], [0.3, 0.7]]))
    assert EnsembleBelief([[0.2, 0.7]]).samples.shape == (1, 2, 2)


# what is refused --------------------------------------------------------------------------------

HALVES = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PointBelief([[0.5, 0.4]]), r"probs: rows must sum to 1 within 1e-4; row 0 sums"),
        (lambda: PointBelief([[np.nan, 1]]), r"probs: must not contain NaN; 1 values are NaN"),
        (lambda: PointBelief([[3.0, -2.0]]), r"probs: must lie in \[0, 1\]; row 0 holds 3"),
        (lambda: PointBelief(np.empty((0, 2))), r"probs: must hold at least one case"),
        (lambda: EnsembleBelief([HALVES, [[0.5, 0.5], [1, 1]]]), r"samples\[1\]: rows must sum"),
        (lambda: EnsembleBelief(np.empty((0, 2, 2))), r"samples: must hold at least one member"),
        (lambda: EnsembleBelief([0.5]), r"samples: must be 2-dimensional or 3-dimensional"),
        (
            lambda: EnsembleBelief([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]),
            r"samples: must be \(members, cases, classes\); got shape \(2, 3\) whose rows all "
            r"sum to 1.*PointBelief\(probs\)",
        ),
        (lambda: EnsembleBelief([HALVES] * 2, [0.5, 0.6]), r"weights: rows must sum to 1"),
        (lambda: EnsembleBelief([HALVES], [0.5]), r"weights: rows must sum to 1"),
        (lambda: EnsembleBelief([HALVES] * 2, [1.0]), r"weights: must be \(2,\) or \(2, 2\)"),
        (lambda: DirichletBelief(HALVES, [1.0]), r"concentration: .*of shape \(2,\).*\(1,\)"),
        (lambda: DirichletBelief(HALVES, [1.0, 0.0]), r"concentration: .*; case 1 has 0"),
        (lambda: DirichletBelief(HALVES, [np.inf, 1.0]), r"concentration: .*; case 0 has inf"),
        (lambda: DirichletBelief(HALVES, [np.nan, 1.0]), r"concentration: .*1 values are NaN"),
        (lambda: PointBelief(HALVES).posterior([0]), r"labels: must match the belief; got 1"),
        (lambda: PointBelief(HALVES).posterior([0, 2]), r"labels: must be classes 0 … 1"),
        (
            lambda: PointBelief(HALVES).posterior(Labels.from_counts([[1, 0, 0]] * 2)),
            r"labels: must have the classes of probs; got 3",
        ),
        (
            lambda: EnsembleBelief([[[1.0, 0.0]], [[1.0, 0.0]]]).posterior([1]),
            r"labels: some member must give .* none does for case 0, labelled \[0, 1\]",
        ),
        (lambda: PointBelief(HALVES).sample(0), r"n: must be at least 1; got 0"),
        (lambda: PointBelief(HALVES).statistic("majority", 2), r"statistic: must be one of"),
        (lambda: PointBelief(HALVES).statistic(max, 0), r"order: must be at least 1"),
        (lambda: PointBelief(HALVES).statistic(max, 2, method="guess"), r"method: must be one of"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    """Each error names the argument, the rule and the value."""
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_statistic_must_be_a_function() -> None:
    """A number is no statistic."""
    with pytest.raises(InvalidTypeError, match=r"statistic: must be a function .* got 3"):
        PointBelief(HALVES).statistic(3, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ensembles_of_short_floats(dtype: str) -> None:
    """Members in 16 bits are held to the sums that 16 bits can give, as predictions are."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    samples = torch.tensor([[[0.1, 0.2, 0.7]], [[0.3, 0.3, 0.4]]]).to(getattr(torch, dtype))
    belief = EnsembleBelief(samples)
    np.testing.assert_allclose(belief.mean, [[0.2, 0.25, 0.55]], atol=4e-3)
