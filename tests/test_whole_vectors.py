"""The interval of the kernel error of whole vectors: cells of vectors, loops, a known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import raterwise as rw
from raterwise.catalog.recipes import peers
from raterwise.inference.draws import multiplicities
from raterwise.summaries.kept_sample import cells_of_vectors
from strategies import ordinary

WHOLE: Any = {"kernel_calibration_error": {"question": "canonical"}}


def skce(probs: Any, labels: Any, groups: Any = None, **told: Any) -> Any:
    """Return the kernel error of whole vectors with its interval."""
    asked = {"options": WHOLE, "resamples": 200, **told}
    return rw.evaluate(probs, labels, "kernel_calibration_error", groups, **asked)


def drawn(random: Any, truth: Any) -> Any:
    """Return a class of each case, drawn from its probabilities."""
    last = truth.shape[1] - 1
    return (random.random((len(truth), 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=last)


def test_two_classes_have_twice_the_interval_of_the_positive_class() -> None:
    """d and -d, and |p - q| is that of either class: every end is twice, and p is the same."""
    random = np.random.default_rng(4)
    p = random.beta(2, 2, 150)
    y = (random.random(150) < p**1.5).astype(int)
    both = skce(p, y)["kernel_calibration_error"]
    one = skce(p, y, options={"kernel_calibration_error": {"question": "positive"}})
    one = one["kernel_calibration_error"]
    assert 0 < both.low < both.value < both.high
    assert (both.low, both.high) == pytest.approx((2 * one.low, 2 * one.high), rel=1e-4)
    assert both.p_value == one.p_value


def test_resampled_values_by_loops_over_pairs() -> None:
    """Σ_ij n_i n_j d_i · d_j k(p_i, p_j) / (Σ n)² of how often each case is drawn."""
    random = np.random.default_rng(1)
    probs = random.dirichlet([1, 2, 1], 40)
    labels = drawn(random, probs)
    found = skce(probs, labels, resamples=9, seed=5)
    times = multiplicities(40, 9, 5)
    pairs = np.zeros((40, 40))
    for i in range(40):
        for j in range(40):
            apart = sum(abs(probs[i, k] - probs[j, k]) for k in range(3)) / 2
            off = [(np.eye(3)[labels[n]] - probs[n]) for n in (i, j)]
            pairs[i, j] = float(off[0] @ off[1]) * np.exp(-apart / 0.4)
    loops = np.array([n @ pairs @ n / n.sum() ** 2 for n in times])
    value = found["kernel_calibration_error"].value
    expected = value + loops - pairs.sum() / 40**2
    assert found.replicates["kernel_calibration_error"] == pytest.approx(expected, abs=1e-9)


def test_models_are_compared_by_whole_vectors() -> None:
    """One that confuses two classes is told from one that does not, with patients too."""
    random = np.random.default_rng(3)
    probs = random.dirichlet([1, 1, 1], 200)
    labels = drawn(random, probs)
    models = {"right": probs, "confused": probs[:, [1, 0, 2]]}
    for groups in (None, np.arange(200) // 4):
        (found,) = rw.compare(
            models, labels, "kernel_calibration_error", groups, options=WHOLE, resamples=200
        ).differences
        assert found.high < 0 and found.p_value < 0.05


def test_cells_hold_like_vectors_in_any_order() -> None:
    """Each vector has its own cell where there may be that many; order and copies are nothing."""
    random = np.random.default_rng(2)
    probs = random.dirichlet([1, 1, 1, 1], 300)
    mass = random.integers(1, 4, 300).astype(float)
    assert len(np.unique(cells_of_vectors(probs, mass, 400))) == 300
    cell = cells_of_vectors(probs, mass, 64)
    assert sorted(np.unique(cell)) == list(range(64))
    order = random.permutation(300)
    copies = np.repeat(np.arange(300), mass.astype(int))
    for other, again in (
        (cells_of_vectors(probs[order], mass[order], 64), cell[order]),
        (cells_of_vectors(probs[copies], np.ones(len(copies)), 64), cell[copies]),
    ):
        assert len(np.unique(np.column_stack((other, again)), axis=0)) == 64
    within = np.mean([cdist(probs[cell == c], probs[cell == c], "cityblock").mean() for c in cell])
    assert within < 0.3 * cdist(probs, probs, "cityblock").mean()


def test_cells_stand_for_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more cases than cells the interval is nearly that of the cases themselves."""
    random = np.random.default_rng(6)
    truth = random.dirichlet([1, 1, 1], 500)
    probs = truth**1.8 / (truth**1.8).sum(axis=1, keepdims=True)
    labels = drawn(random, truth)
    found = skce(probs, labels)["kernel_calibration_error"]
    monkeypatch.setattr(peers, "VECTOR_CELLS", 500)
    exact = skce(probs, labels)["kernel_calibration_error"]
    assert found.value == exact.value and found.p_value == exact.p_value
    width = exact.high - exact.low
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.05 * width)


def test_the_interval_of_whole_vectors_holds_the_truth() -> None:
    """E δ(p) · δ(q) k(p, q) of the true δ = E[y | p] - p: in 34 of 40 sets at least (95 %: 38)."""
    random = np.random.default_rng(7)

    def draw(number: int) -> tuple[Any, Any]:
        probs = random.dirichlet([1, 1, 1], number)
        return probs, 0.3 * probs + 0.7 * probs[:, [1, 2, 0]]

    probs, truth = draw(3000)
    pairs = np.exp(-cdist(probs, probs, "cityblock") / 0.8) * ((truth - probs) @ (truth - probs).T)
    expected = (pairs.sum() - np.trace(pairs)) / (3000 * 2999)
    held = above = 0
    for seed in range(40):
        probs, truth = draw(80)
        found = skce(probs, drawn(random, truth), seed=seed, resamples=100)
        error = found["kernel_calibration_error"]
        held += error.low <= expected <= error.high
        above += error.low > 0
    assert held >= 34
    assert above >= 20  # and is not so wide that nothing is ever found


def test_where_raters_are_a_sample_whole_vectors_have_no_interval() -> None:
    """The rows would be kept for every draw of raters; the results say what has an interval."""
    data = ordinary(40, num_classes=3, raters=3, seed=3)
    found = skce(data.probs, data.labels, unit="both", resamples=20)
    assert found["kernel_calibration_error"].low is None
    assert any("where raters are resampled" in w and 'unit="cases"' in w for w in found.warnings)
    assert skce(data.probs, data.labels, resamples=20)["kernel_calibration_error"].low is not None
