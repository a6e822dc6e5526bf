"""Numbers at the ends of what a float or an integer holds: the right value, or a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import raterwise as rw
from raterwise.densities.smooth_ece import smooth_ece

PROBS = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
CLASSES = [0, 1, 1, 1]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["rms_ce", "ece", "mce", "brier", "nll", "smooth_ece"])
def test_the_unit_of_the_weights_does_not_matter(name: str, scale: float) -> None:
    """Σ w f / Σ w, by hand for RMS-CE: sqrt((0.1² + 0.2² + 0.6² + 0.3²) / 4) in bins of one."""
    metric = getattr(rw, name)
    assert metric(PROBS, CLASSES, weights=np.full(4, scale)) == pytest.approx(
        metric(PROBS, CLASSES), rel=1e-12
    )
    if name == "rms_ce":
        by_hand = np.sqrt((0.1**2 + 0.2**2 + 0.6**2 + 0.3**2) / 4)
        assert metric(PROBS, CLASSES, weights=np.full(4, scale)) == pytest.approx(by_hand)


def test_weights_that_cannot_be_added_up_are_refused() -> None:
    """A sum beyond what floats hold, and squares beyond it, are named with the remedy."""
    for metric in (rw.ece, rw.brier, rw.accuracy, rw.smooth_ece):
        with pytest.raises(rw.InvalidInputError, match=r"weights: must sum to less than 1e\+300"):
            metric(PROBS, CLASSES, weights=np.full(4, 1e308))
    for scale, word in ((1e200, "large"), (1e-200, "small")):
        with pytest.raises(rw.InvalidInputError, match=f"too {word} for their squares"):
            rw.evaluate(PROBS, CLASSES, "ece", resamples=20, weights=np.full(4, scale))


@pytest.mark.parametrize(
    "counts",
    [
        [[2**62, 2**62], [1, 1]],
        [[2**62, 1], [2**62, 1]],
        [[1e30, 1], [1, 1]],
        np.array([[2**63, 1], [1, 1]], np.uint64),
    ],
)
def test_counts_beyond_integers_are_refused(counts: object) -> None:
    """Sums of labels beyond 2⁶³ would come out negative."""
    with pytest.raises(rw.InvalidInputError, match=r"(sum to less than|be below) 2\*\*63"):
        rw.Labels.from_counts(counts)  # type: ignore[arg-type]
    assert int(rw.Labels.from_counts([[2**61, 1], [1, 1]]).num_raters[0]) == 2**61 + 1


@pytest.mark.parametrize("cases", [1, 3, 7, 10, 997])
@pytest.mark.parametrize("classes", [2, 5])
def test_all_wrong_and_sure_is_an_error_of_one(cases: int, classes: int) -> None:
    """One-hot rows, all of them wrong: no bandwidth below 1 solves σ = smECE(σ), and it is 1."""
    said = np.arange(cases) % classes
    probs = np.eye(classes)[(said + 1) % classes]
    assert rw.smooth_ece(probs, said) == pytest.approx(1.0, abs=1e-9)
    weights = np.random.default_rng(cases).random(cases) + 0.1
    assert rw.smooth_ece(probs, said, weights=weights) == pytest.approx(1.0, abs=1e-9)
    assert smooth_ece(np.ones(cases), -weights * (1 + 1e-15), weights) <= 1.0
