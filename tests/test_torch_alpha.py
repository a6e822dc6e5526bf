"""α-calibration by a small network."""

import numpy as np
import pytest
import torch

import raterwise as rw
from raterwise.torch.alpha import AlphaHead, dirichlet_multinomial_nll


def raters(
    log_alpha: np.ndarray, number: int, random: np.random.Generator
) -> tuple[np.ndarray, rw.Labels]:
    """Class probabilities, and labels of a Dirichlet around them with the given log α0."""
    probs = random.dirichlet(np.ones(3), len(log_alpha))
    gammas = random.standard_gamma(np.exp(log_alpha)[:, None] * probs) + 1e-300
    truth = gammas / gammas.sum(axis=1, keepdims=True)
    return probs, rw.Labels.from_counts(random.multinomial(number, truth))


def test_likelihood_is_that_of_log_gammas() -> None:
    """The sums of logarithms are the textbook formula in log-gamma functions."""
    random = np.random.default_rng(0)
    probs, counts = random.dirichlet(np.ones(4), 20), random.multinomial(6, np.ones(4) / 4, 20)
    log_alpha = random.normal(0, 1, 20)
    lgamma, a = torch.lgamma, torch.as_tensor(np.exp(log_alpha)[:, None] * probs)
    y = torch.as_tensor(counts, dtype=torch.float64)
    ends = lgamma(a.sum(1) + y.sum(1)) - lgamma(a.sum(1))
    expected = ends - (lgamma(a + y) - lgamma(a)).sum(1)
    found = dirichlet_multinomial_nll(
        torch.as_tensor(log_alpha), torch.as_tensor(probs), torch.as_tensor(counts)
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighting", ["paper", "per_case"])
def test_without_hidden_layers_it_is_alpha_calibration(weighting: str) -> None:
    """The linear head finds the optimum that the exact solver finds."""
    random = np.random.default_rng(1)
    x = random.normal(size=(300, 2))
    probs, labels = raters(0.5 + x[:, 0], 4, random)
    head = AlphaHead(hidden=(), weight_l2=0.0, weighting=weighting, steps=500)
    found = head.fit(x, probs, labels).predict(x, probs)
    linear = rw.AlphaCalibration(l2=0.005, penalty="paper", weighting=weighting)
    exact = linear.fit(x, labels, probs=probs).predict(x, probs=probs)
    np.testing.assert_allclose(found.concentration, exact.concentration, rtol=1e-4)
    np.testing.assert_array_equal(found.mean, exact.mean)


def test_a_hidden_layer_finds_what_is_not_linear() -> None:
    """Where raters agree at both ends of a feature, a line sees nothing and a network does."""
    random = np.random.default_rng(2)
    x = random.uniform(-2, 2, (600, 1))
    truth = 2.0 - 2.0 * x[:, 0] ** 2
    probs, labels = raters(truth, 5, random)
    found = {
        hidden: AlphaHead(hidden=hidden, steps=60).fit(x, probs, labels).predict(x, probs)
        for hidden in ((), (8,))
    }
    curved, straight = (np.log(found[hidden].concentration) for hidden in ((8,), ()))
    assert np.corrcoef(curved, truth)[0, 1] > 0.9
    assert abs(np.corrcoef(straight, truth)[0, 1]) < 0.3


def test_it_generalises_to_new_cases() -> None:
    """Fitted on one half, predicted disagreement is closer to the raters of the other half."""
    random = np.random.default_rng(3)
    x = random.uniform(-2, 2, (1600, 1))
    probs, labels = raters(2.0 - 2.0 * x[:, 0] ** 2, 5, random)
    fit, new = np.arange(600), np.arange(600, 1600)
    losses = {}
    for hidden in ((), (8,)):
        head = AlphaHead(hidden=hidden, steps=60).fit(x[fit], probs[fit], labels.take(fit))
        belief = head.predict(x[new], probs[new])
        losses[hidden] = rw.disagreement_loss(belief.disagreement(), labels.take(new))
    assert losses[(8,)] < losses[()] - 0.002


def test_the_same_seed_gives_the_same_digits() -> None:
    """Nothing in the fit is random but the seed."""
    random = np.random.default_rng(4)
    x = random.normal(size=(80, 2))
    probs, labels = raters(x[:, 1], 3, random)
    one, two = (
        AlphaHead(seed=5, steps=30).fit(x, probs, labels).predict(x, probs) for _ in range(2)
    )
    np.testing.assert_array_equal(one.concentration, two.concentration)


def test_bad_input() -> None:
    """Every bad input is named with its rule and its value."""
    random = np.random.default_rng(5)
    x = random.normal(size=(10, 2))
    probs, labels = raters(x[:, 0], 3, random)
    head = AlphaHead()
    with pytest.raises(ValueError, match="must be fitted before it predicts"):
        head.predict(x, probs)
    with pytest.raises(ValueError, match="features: must match probs; got 9 rows for 10 cases"):
        head.fit(x[:9], probs, labels)
    with pytest.raises(ValueError, match="features: must be finite; 1 values are not"):
        head.fit(np.where(np.arange(20).reshape(10, 2) == 3, np.nan, x), probs, labels)
    with pytest.raises(ValueError, match="needs at least 2 labels per case; no case has that many"):
        head.fit(x, probs, np.zeros(10, int))
    with pytest.raises(ValueError, match="weighting: must be one of paper, per_case; got 'other'"):
        AlphaHead(weighting="other")
    with pytest.raises(ValueError, match="l2: must be finite and not negative; got -1"):
        AlphaHead(l2=-1)
    fitted = head.fit(x, probs, labels)
    with pytest.raises(ValueError, match="features: must have 2 columns, as fitted; got 1"):
        fitted.predict(x[:, :1], probs)
