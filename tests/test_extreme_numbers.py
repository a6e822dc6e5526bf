"""Numbers at the ends of what a float or an integer holds: the right value, or a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from raterwise.densities.smooth_ece import smooth_ece

PROBS = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
CLASSES = [0, 1, 1, 1]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize(
    "name",
    [
        *("rms_ce", "ece", "mce", "brier", "nll", "smooth_ece", "auccc", "augrc", "auroc"),
        "canonical_ece",
    ],
)
@pytest.mark.filterwarnings("error")
def test_the_unit_of_the_weights_does_not_matter(name: str, scale: float) -> None:
    """Σ w f / Σ w, by hand for RMS-CE: sqrt((0.1² + 0.2² + 0.6² + 0.3²) / 4) in bins of one."""
    metric = getattr(rw, name)
    assert metric(PROBS, CLASSES, weights=np.full(4, scale)) == pytest.approx(
        metric(PROBS, CLASSES), rel=1e-12
    )
    if name == "rms_ce":
        by_hand = np.sqrt((0.1**2 + 0.2**2 + 0.6**2 + 0.3**2) / 4)
        assert metric(PROBS, CLASSES, weights=np.full(4, scale)) == pytest.approx(by_hand)


@pytest.mark.filterwarnings("error")
def test_the_order_of_confidences_takes_weights_of_any_unit() -> None:
    """AUCCC by hand: of the pairs right-wrong, weights 2 · 1, 3 · 1, one is ordered rightly."""
    probs, said = [0.9, 0.6, 0.8], [1, 1, 0]  # the last one is wrong
    for scale in (1e-200, 1.0, 1e200):
        weights = scale * np.array([2.0, 3.0, 1.0])
        assert rw.auccc(probs, said, weights=weights) == pytest.approx(2 / 5, rel=1e-12)
        # (1 - AUCCC) a (1 - a) + (1 - a)² / 2, a = 5/6
        by_hand = 3 / 5 * 5 / 36 + 1 / 72
        assert rw.augrc(probs, said, weights=weights) == pytest.approx(by_hand, rel=1e-12)
        # log 3 / log 9: 2 of 8 said yes at 0.1, 4 of 8 at 0.5, 6 of 8 at 0.9
        labels = rw.Labels.from_counts([[6, 2], [4, 4], [2, 6]])
        slope = rw.calibration_slope([0.1, 0.5, 0.9], labels, weights=np.full(3, scale))
        assert slope == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("largest", [1e6, 1e9, 1e12])
def test_one_case_may_have_nearly_all_the_weight(largest: float) -> None:
    """It is what the estimate says; one right answer of one is a share of at least 0.025."""
    y = np.arange(30) % 3 > 0
    p, weights = np.where(y, 0.8, 0.3), np.r_[np.ones(29), largest]
    found = rw.evaluate(p, y.astype(int), "brier,ece,accuracy,auroc", weights=weights, resamples=20)
    assert found["brier"].value == pytest.approx(0.04, abs=1e-6)  # (1 - 0.8)²
    if largest > 1e6:  # all but a millionth: nothing is known of others
        assert [found[name].low for name in found] == [None] * 4
        return
    assert found["accuracy"].low == pytest.approx(0.025, rel=1e-3)
    assert found["brier"].low < 0.01 and found["brier"].high > 0.5
    assert (found["ece"].low, found["ece"].high) == pytest.approx((0, 1), abs=0.2)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["calibration_loss", "debiased_ece", "grouping_loss"])
def test_squares_that_are_lost_do_not_pass_for_equal(name: str, scale: float) -> None:
    """Debiased metrics tell unequal weights by their squares: where these vanish, they say so."""
    labels = rw.Labels.from_counts([[2, 0], [1, 2], [2, 1], [0, 3]])
    with pytest.raises(rw.InvalidInputError, match="to compute the effective number of cases"):
        getattr(rw, name)(PROBS, labels, weights=scale * np.array([1.0, 2.0, 3.0, 4.0]))


def test_weights_that_cannot_be_added_up_are_refused() -> None:
    """A sum beyond what floats hold, and squares beyond it, are named with the remedy."""
    for metric in (rw.ece, rw.brier, rw.accuracy, rw.smooth_ece):
        with pytest.raises(rw.InvalidInputError, match=r"weights: must sum to less than 1e\+300"):
            metric(PROBS, CLASSES, weights=np.full(4, 1e308))
    for scale, word in ((1e200, "large"), (1e-200, "small")):
        with pytest.raises(rw.InvalidInputError, match=f"too {word} to compute"):
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


# A little more than 1 ----------------------------------------------------------------------------

EXACT = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0], [0.5, 0.5]])
ROUNDED = EXACT + np.array([[2e-7, -2e-7], [0, 0], [-3e-8, 3e-8], [0, 0]])


def _csv(folder: Path, probs: np.ndarray) -> Path:
    rows = enumerate(zip(probs.tolist(), "aaba", strict=True))
    lines = ["case,prob_a,prob_b,label", *(f"{i},{a!r},{b!r},{said}" for i, ((a, b), said) in rows)]
    file = folder / "cases.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _tensor(probs: np.ndarray, device: str = "cpu") -> Any:
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.tensor(probs, device=device)


def _surer_where_right(probs: Any) -> float:
    """AUCCC of torch, which reads its rows by itself."""
    from raterwise.torch.metrics import AUCCC

    metric = AUCCC(num_classes=2)
    metric.update(probs, probs.new_tensor([0, 0, 1, 0]).long())
    return float(metric.compute())


WAYS: dict[str, Callable[[Path, np.ndarray], float]] = {
    "function": lambda _, p: rw.ece(p, [0, 0, 1, 0]),
    "one column": lambda _, p: rw.ece(p[:, 1], [0, 0, 1, 0]),
    "several metrics": lambda _, p: float(rw.evaluate(p, [0, 0, 1, 0], "brier,ece")["ece"]),
    "findings": lambda _, p: float(
        rw.evaluate_multilabel(
            p, [[1, 0], [1, 0], [0, 1], [1, 0]], np.ones((4, 2)), metrics="brier"
        )["brier"]
    ),
    "image": lambda _, p: float(
        rw.segmentation.evaluate(
            [rw.segmentation.Case(p[None, :, 1], np.array([[[0, 0, 1, 0]]]))], ["ece"], resamples=0
        )["ece"]
    ),
    "tensor": lambda _, p: rw.ece(pytest.importorskip("torch").tensor(p), [0, 0, 1, 0]),
    "tensor on a GPU": lambda _, p: rw.ece(_tensor(p, "cuda"), [0, 0, 1, 0]),
    "torch metric": lambda _, p: _surer_where_right(_tensor(p)),
    "belief": lambda _, p: float(rw.PointBelief(p).mean[0, 0]),
    "file": lambda folder, p: float(
        rw.evaluate(rw.read_cases(_csv(folder, p), label_column="label"), metrics="ece")["ece"]
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_what_leaves_0_and_1_by_rounding_counts_as_0_and_1(
    way: str, kind: type, tmp_path: Path
) -> None:
    """As the same probabilities without the rounding; what is further off is told to the digit."""
    found = WAYS[way](tmp_path, ROUNDED.astype(kind))
    assert found == pytest.approx(WAYS[way](tmp_path, EXACT), abs=1e-12)
    with pytest.raises(rw.InvalidInputError, match=r"must lie in \[0, 1\].* (1\.0000[123]|-[123])"):
        WAYS[way](tmp_path, (EXACT + 1e-5 * np.array([-2, 2])).astype(kind))


def test_the_mean_of_draws_that_are_sure_is_a_probability() -> None:
    """Twenty times 0.05 is more than 1 in floats; a certain class has probability 1."""
    draws = np.tile(EXACT, (20, 1, 1))
    belief = rw.EnsembleBelief(draws)
    assert belief.mean.max() == 1
    results = rw.evaluate(belief, [0, 0, 1, 0], metrics="ece", resamples=0)
    assert float(results["ece"]) == pytest.approx((0.75 + 0.5) / 4)  # by hand, top label
    assert rw.ece(draws.astype(np.float32).mean(axis=0), [0, 0, 1, 0]) == pytest.approx(1.25 / 4)
