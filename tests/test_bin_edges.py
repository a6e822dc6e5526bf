"""Scores on bin edges: k/255, k/100 and k/15 are in the same bin in every type and every path.

The oracle is exact rational arithmetic. A float64 is taken as the double it is and compared with
the doubles of `numpy.linspace`, which is exact rational arithmetic as well.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from raterwise.binning import bin_edges, edges_for, equal_edges, unit_in_last_place
from raterwise.predictions import Predictions
from raterwise.questions import Question, ScoredCases
from raterwise.summaries import BinPlan
from raterwise.summaries.cells import CellPlan, fine_cells, fine_cells_for
from raterwise.summaries.one_pass import summarise

Array = Any

TYPES = [np.float16, np.float32, np.float64]
STEPS, BINS = [255, 100, 15], [5, 10, 15, 20]
QUESTIONS = ["top_label", "positive", "per_class", "predicted_class"]
every_type = pytest.mark.parametrize("dtype", TYPES, ids=lambda kind: kind.__name__)
every_step = pytest.mark.parametrize("steps", STEPS)
every_bins = pytest.mark.parametrize("bins", BINS)


def scores(steps: int, dtype: Any, layout: str) -> Array:
    """0 … 1 in so many steps, as one channel or as two, the complement made in the same type."""
    one = (np.arange(steps + 1) / steps).astype(dtype)
    return one if layout == "one channel" else np.stack((dtype(1) - one, one), axis=1)


def bin_of(exact: Fraction, given: float, dtype: Any, bins: int) -> int:
    """The bin `[a, b)`, the last closed: of the true number, or of the double that was given."""
    if dtype == np.float64:
        edges = [Fraction(float(edge)) for edge in np.linspace(0, 1, bins + 1)]
        return max(b for b in range(bins) if Fraction(given) >= edges[b])
    return min(int(exact * bins), bins - 1)


def expected(steps: int, dtype: Any, bins: int, question: str) -> Array:
    """Cases per channel and bin, in exact arithmetic."""
    table = np.zeros((2, bins), int)
    for k in range(steps + 1):
        exact = Fraction(k, steps)
        positive = dtype(k / steps)
        both = [(1 - exact, float(dtype(1) - positive)), (exact, float(positive))]
        predicted = int(both[1][1] > both[0][1])
        asked = {
            "top_label": [(0, predicted)],
            "positive": [(0, 1)],
            "per_class": [(0, 0), (1, 1)],
            "predicted_class": [(predicted, predicted)],
        }[question]
        for channel, k_class in asked:
            table[channel, bin_of(*both[k_class], dtype, bins)] += 1
    return table if question in ("per_class", "predicted_class") else table[:1]


def counted(probs: Array, labels: Array, bins: int, question: str, **given: Any) -> Array:
    """Cases per channel and bin as the library has them."""
    plan = BinPlan(Question(question), bins)
    predictions = Predictions.of(probs, labels, **given)
    return summarise(predictions, [plan])[plan].table.cases.astype(int)


@every_type
@every_step
@every_bins
@pytest.mark.parametrize("layout", ["one channel", "two channels"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_fractions_are_in_their_bin(
    dtype: Any, steps: int, bins: int, layout: str, question: str
) -> None:
    """As one channel or as two, for every question."""
    probs = scores(steps, dtype, layout)
    labels = np.arange(len(probs)) % 2
    found = counted(probs, labels, bins, question)
    np.testing.assert_array_equal(found, expected(steps, dtype, bins, question))


@pytest.mark.parametrize("question", ["top_label", "per_class"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_bins
def test_the_fast_loops_agree(dtype: Any, bins: int, question: str) -> None:
    """The loops over tiles, which large data take, have 2048 times what one copy has."""
    for steps in STEPS:
        probs = np.tile(scores(steps, dtype, "two channels"), (2048 * 256 // (steps + 1) + 1, 1))
        copies = len(probs) // (steps + 1)
        labels = np.arange(len(probs)) % 2
        predictions = Predictions.of(probs, labels)
        assert BinPlan(Question(question), bins).direct_loop(predictions) is not None
        found = counted(probs, labels, bins, question)
        np.testing.assert_array_equal(found, copies * expected(steps, dtype, bins, question))


@every_type
@every_step
def test_weights_and_raters_change_no_bin(dtype: Any, steps: int) -> None:
    """Weighted cases, several raters, and cases left out for want of raters."""
    probs = scores(steps, dtype, "one channel")
    cases = len(probs)
    weights = np.full(cases, 0.5)
    for question in QUESTIONS:
        found = counted(probs, np.zeros(cases, int), 15, question, weights=weights)
        np.testing.assert_array_equal(found, expected(steps, dtype, 15, question))
    labels = rw.Labels.from_counts(np.tile([[1, 2], [1, 0]], (cases, 1)))
    plan = BinPlan(Question("per_class", "case"), 15, least_raters=2)
    predictions = Predictions.of(np.repeat(probs, 2), labels)
    found = summarise(predictions, [plan])[plan].table.cases.astype(int)
    np.testing.assert_array_equal(found, expected(steps, dtype, 15, "per_class"))


@every_type
@every_step
def test_soft_bins_count_their_scores_alike(dtype: Any, steps: int) -> None:
    """RECE over observed bins asks where the scores themselves are."""
    probs = scores(steps, dtype, "one channel")
    plan = BinPlan(Question("positive"), 15, spread=0.1)
    predictions = Predictions.of(probs, np.zeros(len(probs), int))
    found = summarise(predictions, [plan])[plan].table.cases.astype(int)
    np.testing.assert_array_equal(found, expected(steps, dtype, 15, "positive"))


@every_type
@pytest.mark.parametrize("question", ["top_label", "positive"])
def test_images_have_the_same_ece(dtype: Any, question: str) -> None:
    """An 8-bit probability map: ECE by exact bins and means, in tables and in images."""
    random = np.random.default_rng(3)
    grey = random.choice(np.r_[np.zeros(300, int), np.arange(256)], size=64 * 64)
    mask = (random.random(grey.shape) < grey / 255).astype(np.uint8)
    probs = (grey / 255).astype(dtype)
    sums: dict[int, Fraction] = {}
    for k, y in zip(grey.tolist(), mask.tolist(), strict=True):
        z = Fraction(k, 255)
        if question == "top_label" and z <= Fraction(1, 2):
            z, y = 1 - z, 1 - y
        given = dtype(k / 255) if z == Fraction(k, 255) else dtype(1) - dtype(k / 255)
        at = bin_of(z, float(given), dtype, 15)
        sums[at] = sums.get(at, Fraction(0)) + y - z
    truth = float(sum(abs(gap) for gap in sums.values()) / len(grey))
    near = {np.float16: 3e-4, np.float32: 1e-7, np.float64: 1e-12}[dtype]
    assert rw.ece(probs, mask, question=question) == pytest.approx(truth, rel=0, abs=near)
    case = rw.segmentation.Case(probs.reshape(64, 64), mask.reshape(1, 64, 64))
    results = rw.segmentation.evaluate([case], metrics=["ece"], question=question, resamples=0)
    assert results["ece"].value == pytest.approx(truth, rel=0, abs=near)


@every_step
@pytest.mark.parametrize("bins", [7, 15, 24])
def test_complements_of_the_disagreement_agree(steps: int, bins: int) -> None:
    """1 - Σp² of float32 rows is on the edge where that of the exact rows is, or next to none."""
    plan = BinPlan(Question("disagreement", "case"), bins, least_raters=2)
    labels = rw.Labels.from_counts(np.tile([[1, 1]], (steps + 1, 1)))
    truth = np.zeros(bins, int)
    for k in range(steps + 1):
        p = Fraction(k, steps)
        truth[min(int((1 - p * p - (1 - p) ** 2) * bins), bins - 1)] += 1
    for layout in ("one channel", "two channels"):
        predictions = Predictions.of(scores(steps, np.float32, layout), labels)
        found = summarise(predictions, [plan])[plan].table.cases[0].astype(int)
        np.testing.assert_array_equal(found, truth)


# the rule itself ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_one_unit_counts_and_two_do_not(dtype: Any) -> None:
    """Below the edge 0.8 of five bins: one unit in the last place is on it, two are below it."""
    near = dtype(0.8)
    near = np.nextafter(near, dtype(0)) if near > 0.8 else near
    below = np.nextafter(near, dtype(0))
    further = np.nextafter(below, dtype(0))
    assert 0.8 - float(near) <= unit_in_last_place(dtype) < 0.8 - float(further)
    found = counted(np.array([near, further]), np.zeros(2, int), 5, "positive")
    assert found.tolist() == [[0, 0, 0, 1, 1]]


def test_a_double_is_taken_exactly() -> None:
    """The double before an edge is below it, however near."""
    edge = np.linspace(0, 1, 16)[3]
    found = counted(np.array([np.nextafter(edge, 0), edge]), np.zeros(2, int), 15, "positive")
    assert found[0, 2:4].tolist() == [1, 1]


def test_zero_stays_in_the_first_bin() -> None:
    """Also where a float16 cannot tell the first edge from 0."""
    for dtype in TYPES:
        found = rw.ece(np.zeros(4, dtype), [0, 0, 0, 0], bins=[0, 1e-9, 1], question="positive")
        assert found == 0
        assert edges_for(bin_edges([0, 1e-9, 1]), unit_in_last_place(dtype))[1] > 0


# tensors --------------------------------------------------------------------------------------


@pytest.fixture(params=["compiled loops", "PyTorch alone", "cuda"], name="on_tensors")
def summing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what sums tensors: by the loops of the host, by PyTorch's operations, or on a GPU."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from raterwise.tensors import device

    if request.param == "cuda":
        if not torch.cuda.is_available():
            pytest.skip("there is no CUDA GPU")
        return lambda probs, labels, plans: device.summarise(probs.cuda(), labels.cuda(), plans)
    if request.param == "PyTorch alone":
        monkeypatch.setattr(device, "has_cpu_loops", lambda: False)
    return device.summarise


@every_type
@every_step
@pytest.mark.parametrize("question", QUESTIONS)
def test_tensors_have_the_bins_of_arrays(
    on_tensors: Callable[..., Any], dtype: Any, steps: int, question: str
) -> None:
    """float16 tensors become float32 ones on their way, and keep their own unit."""
    import torch

    plans = [BinPlan(Question(question), bins) for bins in BINS]
    for layout in ("one channel", "two channels"):
        probs = torch.as_tensor(scores(steps, dtype, layout))
        labels = torch.arange(len(probs)) % 2
        together = on_tensors(probs, labels, plans)
        for plan, bins in zip(plans, BINS, strict=True):
            truth = expected(steps, dtype, bins, question)
            alone = on_tensors(probs, labels, [plan])  # a GPU has a pass of its own for one plan
            for tables in (together, alone):
                np.testing.assert_array_equal(tables[plan].table.cases.astype(int), truth)


@every_type
def test_soft_bins_of_tensors_count_alike(on_tensors: Callable[..., Any], dtype: Any) -> None:
    """The first field of RECE's table."""
    import torch

    plan = BinPlan(Question("positive"), 15, spread=0.1)
    probs = torch.as_tensor(scores(255, dtype, "one channel"))
    found = on_tensors(probs, torch.arange(256) % 2, [plan])[plan].table.cases.astype(int)
    np.testing.assert_array_equal(found, expected(255, dtype, 15, "positive"))


def test_open_edges_of_a_gpu_are_the_first_scores_of_their_bin() -> None:
    """What the fused passes compare with: the least float32 that counts as on the edge."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from raterwise.kernels._triton import _open_edges

    for bins in BINS:
        compared = edges_for(bin_edges(bins), 2.0**-24)
        lower, upper, _ = _open_edges(torch.tensor(compared), torch.float32)
        for b in range(1, bins):
            first = np.float32(lower[b].item())
            edge = Fraction(float(np.linspace(0, 1, bins + 1)[b])) - Fraction(1, 2**24)
            assert Fraction(float(first)) >= edge
            assert Fraction(float(np.nextafter(first, np.float32(0)))) < edge
            assert upper[b - 1] == lower[b]


# fine cells -----------------------------------------------------------------------------------


def test_a_float32_on_an_equal_edge_is_in_the_cell_above() -> None:
    """1 - 0.8 in float32 is in the cell that begins at 0.2, at a distance just below 0."""
    z = np.array([1 - np.float32(0.8), np.float32(0.2)], np.float64)
    assert z[0] < 0.2
    plan = CellPlan(Question("positive"))
    at = int(np.searchsorted(fine_cells(), 0.2))
    for rounding, cells in ((2.0**-24, [at]), (0.0, [at - 1, at])):
        said, once = np.array([[0.0], [1.0]]), np.ones(2)
        sums = plan.empty(2)
        sums.take_in(ScoredCases(z[:, None], said, once, rounding=rounding))
        assert np.flatnonzero(sums.fine[0, :, 0]).tolist() == cells
        assert sums.scores().cases()[0].sum() / len(cells) == pytest.approx(0.2, abs=1e-8)
    assert (np.diff(fine_cells_for(2.0**-24)) > 0).all()


@pytest.mark.parametrize("steps", [255, 100])
def test_kernel_errors_from_cells_keep_their_bound_in_float32(steps: int) -> None:
    """Scores a little below their cell's edge: the value of the stream is within its bound."""
    from raterwise.densities.pairs import top_label_kde
    from raterwise.metrics.cell_bounds import kde_of_cells

    random = np.random.default_rng(steps)
    z = random.choice(np.arange(steps + 1) / steps, size=3000).astype(np.float32)
    z[::2] = np.float32(1) - z[::2]
    y = (random.random(3000) < z**1.3).astype(int)
    plan = CellPlan(Question("positive"))
    sums = summarise(Predictions.of(z, y), [plan])[plan]
    for p in (1, 2):
        value, bound = kde_of_cells(sums, {"bandwidth": 0.01, "p": p, "leave_out": "case"})
        given = z.astype(np.float64)
        exact = top_label_kde(given, y.astype(float), np.ones(3000), p=p, bandwidth=0.01)
        assert abs(value - exact) <= bound < 1e-3


def test_kept_edges_cannot_be_changed() -> None:
    """The next call gets the same array."""
    with pytest.raises(ValueError, match="read-only"):
        equal_edges(4)[0] = 1
