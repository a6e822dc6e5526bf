"""Paired comparison of models on the same cases."""

import numpy as np
import pytest

import quorate as qr


def three_models(cases: int = 600, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The truth, an over-confident copy of it, and the truth with noise; labels drawn from it."""
    random = np.random.default_rng(seed)
    truth = random.beta(1, 1, cases)
    y = (random.random(cases) < truth).astype(int)
    logit = np.log(truth / (1 - truth))
    noisy = 1 / (1 + np.exp(-(logit + random.normal(0, 1, cases))))
    sharp = 1 / (1 + np.exp(-3 * logit))
    return {"true": truth, "sharp": sharp, "noisy": noisy}, y


def test_differences_are_those_of_the_values() -> None:
    """first minus second, of the values that `evaluate` reports."""
    models, y = three_models()
    found = qr.compare(models, y, "brier,ece,auccc", resamples=100)
    for metric in ("brier", "ece", "auccc"):
        a, b = (found.models[name][metric].value for name in ("true", "noisy"))
        assert found.difference(metric, "true", "noisy").difference == pytest.approx(a - b)


def test_pairing_makes_the_interval_shorter() -> None:
    """The standard error of a paired mean difference is that of the case-wise differences."""
    models, y = three_models()
    found = qr.compare(models, y, "brier", resamples=1000)
    each = (models["true"] - y) ** 2 - (models["noisy"] - y) ** 2
    error = each.std() / np.sqrt(len(each))
    paired = found.difference("brier", "true", "noisy")
    assert (paired.high - paired.low) / (2 * 1.96) == pytest.approx(error, rel=0.1)
    assert paired.low == pytest.approx(each.mean() - 1.96 * error, abs=0.2 * error)


def test_a_model_and_itself_do_not_differ() -> None:
    """Two equal models differ by nothing: the interval is [0, 0] and p is 1."""
    models, y = three_models(200)
    found = qr.compare({"a": models["true"], "b": models["true"]}, y, "nll", resamples=50)
    same = found.difference("nll", "a", "b")
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    assert found.ranking["nll"] == {"a": 0.5, "b": 0.5}


def test_the_better_model_wins() -> None:
    """The true probabilities beat a noisy copy in nearly every resample, and p says so."""
    models, y = three_models(2000)
    found = qr.compare(models, y, "brier,nll", resamples=200)
    for metric in ("brier", "nll"):
        best = found.difference(metric, "true", "sharp")
        assert best.high < 0
        assert best.adjusted_p_value < 0.05
        assert found.ranking[metric]["true"] > 0.9


def test_holm_by_hand() -> None:
    """Holm's adjustment of .01, .04, .03: 3·.01, then 2·.03, then the same again."""
    from quorate.compare import _holm

    assert _holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_p_values_are_uniform_under_the_null() -> None:
    """Models that differ by symmetric noise alone are called different about 5 % of the time."""
    rejected = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        truth = random.beta(2, 2, 150)
        y = (random.random(150) < truth).astype(int)
        models = {
            name: np.clip(truth + random.normal(0, 0.15, 150), 0.01, 0.99) for name in ("a", "b")
        }
        found = qr.compare(models, y, "brier", resamples=199, seed=seed)
        rejected += found.difference("brier", "a", "b").p_value <= 0.05
    assert 0 <= rejected <= 13  # 5 ± 3.5 standard deviations of 2.2


def test_beliefs_are_compared_by_what_they_believe() -> None:
    """A point and a Dirichlet of the same mean differ in predicted disagreement alone."""
    random = np.random.default_rng(0)
    f = random.dirichlet([2, 2], 400)
    q = np.array([random.dirichlet(2 * p) for p in f])
    labels = qr.Labels.from_counts([random.multinomial(4, p) for p in q])
    models = {"point": qr.PointBelief(f), "dirichlet": qr.DirichletBelief(f, np.full(400, 2.0))}
    found = qr.compare(models, labels, "brier,disagreement_loss,posterior_gain", resamples=200)
    assert found.difference("brier", "point", "dirichlet").difference == pytest.approx(0, abs=1e-12)
    assert found.difference("disagreement_loss", "point", "dirichlet").low > 0
    assert found.models["point"]["posterior_gain"].value == pytest.approx(0, abs=1e-12)
    assert found.models["dirichlet"]["posterior_gain"].low > 0


def test_to_dict_is_plain() -> None:
    """A comparison becomes plain values."""
    models, y = three_models(100)
    content = qr.compare(models, y, "brier", resamples=20).to_dict()
    assert set(content) == {"models", "differences", "ranking"}
    assert len(content["differences"]) == 3


def test_bad_input() -> None:
    """One model, one resample or an unknown pair is an error."""
    models, y = three_models(100)
    with pytest.raises(ValueError, match="models: must be at least two; got 1"):
        qr.compare({"a": models["true"]}, y)
    with pytest.raises(ValueError, match="resamples: must be at least 2 to compare; got 0"):
        qr.compare(models, y, resamples=0)
    found = qr.compare(models, y, "brier", resamples=20)
    with pytest.raises(ValueError, match="no difference of 'brier' between 'noisy' and 'true'"):
        found.difference("brier", "noisy", "true")


def test_the_p_value_and_the_interval_agree() -> None:
    """An interval of level 1 - p just reaches 0: where p < 0.05 the 95 % interval excludes 0."""
    models, y = three_models(300, seed=3)
    for level in (0.5, 0.8, 0.95):
        found = qr.compare(models, y, "brier,ece,calibration_error", resamples=999, level=level)
        for each in found.differences:
            excludes = each.low > 0 or each.high < 0
            if abs(each.p_value - (1 - level)) > 0.05:  # beyond the Student expansion and ties
                assert excludes == (each.p_value < 1 - level), each
