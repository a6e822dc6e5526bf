"""The intervals of KDE-ECE and of the dispersion loss, against what is worked out without them."""

import numpy as np
import pytest

import raterwise as rw
from raterwise.catalog import find
from raterwise.inference.draws import digest_in_memory
from raterwise.inference.measures import Measure
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.predictions import Predictions


def test_smoothing_keeps_a_deviation_in_one_direction() -> None:
    """Smoothing moves deviations about and loses none: Σ w(μ - z) is that of the cases, by hand."""
    random = np.random.default_rng(0)
    p = random.uniform(0.6, 0.99, 400)
    right = random.random(400) < p - 0.2
    probs = np.stack((1 - p, p), axis=1)
    predictions = Predictions.of(probs, right.astype(int))
    settings = Settings(resamples=20)
    row = find("kde_ece")
    own = row.with_defaults({})
    digest = digest_in_memory(predictions, [row.plan(own)], settings)
    pass_ = Pass(digest, {"kde_ece": (row, own)}, settings)
    assert Measure(row, own, pass_).table.deviation.sum() == pytest.approx(
        (right - p).sum(), abs=1e-9
    )
    assert rw.evaluate(probs, right.astype(int), "kde_ece", resamples=100)["kde_ece"].low > 0.1


def test_the_width_of_the_dispersion_loss_is_that_of_the_jackknife() -> None:
    """The interval of a debiased loss is as wide as leaving cases out one by one says."""
    random = np.random.default_rng(1)
    cases = 150
    q = random.dirichlet(np.ones(4), cases)
    labels = rw.Labels.from_counts(random.multinomial(3, q))
    probs = random.dirichlet(np.ones(4), cases)
    found = rw.evaluate(probs, labels, "dispersion_loss", resamples=1000)["dispersion_loss"]
    everyone = np.arange(cases)
    left_out = [
        rw.dispersion_loss(probs[everyone != i], labels.take(everyone != i)) for i in everyone
    ]
    error = np.sqrt((cases - 1) * np.var(left_out))
    assert found.value is not None and found.low is not None and found.high is not None
    assert (found.high - found.low) / (2 * 1.976) == pytest.approx(error, rel=0.15)
    assert (found.low + found.high) / 2 == pytest.approx(found.value, abs=0.4 * error)


@pytest.mark.parametrize("unit", ["cases", "both"])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_p_value_of_zero_and_the_interval_are_one_statement(unit, factor) -> None:
    """p ≤ 0.05 exactly where the interval of a calibration error excludes 0; others have no p."""
    random = np.random.default_rng(3)
    logits = random.normal(0, 1.5, 120)
    said = (random.random((120, 3)) < 1 / (1 + np.exp(-logits))[:, None]).astype(int)
    found = rw.evaluate(
        1 / (1 + np.exp(-factor * logits)), rw.Labels.from_ratings(said, num_classes=2),
        resamples=60, unit=unit,
    )  # fmt: skip
    errors = [e for name, e in found.items() if find(name).error and e.value is not None]
    assert len(errors) > 8 and {e.low > 0 for e in errors} >= {factor > 1}
    assert all((e.p_value <= 0.05) == (e.low > 0) for e in errors)
    assert all(e.p_value is None for name, e in found.items() if not find(name).error)
