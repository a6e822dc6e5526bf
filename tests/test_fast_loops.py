"""The fast loops give what NumPy gives: every bin, every tie, every bad row, any thread."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from raterwise.binning import edges_for
from raterwise.kernels import _tiles as tiles
from raterwise.kernels._threads import in_threads
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.summaries import BinPlan
from raterwise.summaries.one_pass import summarise

FLOATS = (np.float32, np.float64)


def rows_of(
    number: int, classes: int, dtype: Any = np.float32, spread: float = 1.5, seed: int = 0
) -> tuple[Any, Any]:
    """Draw rows of probabilities, the wider the more saturated, and labels."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, spread, (number, classes))
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(dtype)
    return probs, random.integers(0, classes, number)


def numpy_table(z: Any, hit: Any, bins: int) -> Any:
    """Sum the eight fields with NumPy's own search and counts.

    A float32 within one unit in its last place, 2^-24, of an edge counts as on it.
    """
    unit = 2.0**-24 if z.dtype == np.float32 else 0.0
    z, hit = z.astype(np.float64), hit.astype(np.float64)
    place = np.searchsorted(np.linspace(0, 1, bins + 1) - unit, z, side="right") - 1
    place = np.minimum(place, bins - 1)
    one = np.ones(len(z))
    fields = (one, one, one, z, hit, (hit - z) ** 2, hit, 0 * one)
    return np.stack([np.bincount(place, field, bins) for field in fields], axis=1)


def top_label_table(probs: Any, labels: Any, bins: int) -> tuple[bool, Any]:
    """Run the loop over tiles of rows: were they added, and the table."""
    table = np.zeros((1, bins, 8))
    add = tiles.top_label_loop(probs.shape[1])
    return add(probs.reshape(-1), labels, bins, 1e-4, table), table[0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes", [2, 7, 10, 32])
def test_confidences_are_summed_as_numpy_does(classes: int, dtype: Any) -> None:
    """Counts to the last case and sums to rounding, for one tile and many, few bins and many."""
    for number, spread, bins in ((16, 1, 1), (1008, 2, 10), (4096, 30, 200)):
        probs, labels = rows_of(number, classes, dtype, spread)
        added, table = top_label_table(probs, labels, bins)
        hit = probs.argmax(axis=1) == labels
        expected = numpy_table(probs.max(axis=1), hit, bins)
        assert added
        np.testing.assert_array_equal(table[:, [0, 1, 2, 4, 6, 7]], expected[:, [0, 1, 2, 4, 6, 7]])
        np.testing.assert_allclose(table[:, [3, 5]], expected[:, [3, 5]], rtol=1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scores_on_and_beside_every_edge_are_in_their_bin(dtype: Any) -> None:
    """For every number of bins up to 200: the edge, the floats next to it, and p = 1."""
    random = np.random.default_rng(1)
    for bins in range(1, 201):
        edges = np.linspace(0, 1, bins + 1)
        near = np.concatenate([edges, np.nextafter(edges, 2), np.nextafter(edges, -1)])
        near = near.astype(dtype)
        near = np.concatenate([near, np.nextafter(near, dtype(2)), np.nextafter(near, dtype(-1))])
        near = near[(near >= 0.1) & (near <= 1)]
        near = np.resize(near, -(-len(near) // tiles.ROWS) * tiles.ROWS)
        probs = np.repeat(((1 - near) / 9).astype(dtype)[:, None], 10, axis=1)
        predicted = random.integers(0, 10, len(near))
        probs[np.arange(len(near)), predicted] = near
        labels = random.integers(0, 10, len(near))
        added, table = top_label_table(probs, labels, bins)
        hit = probs.argmax(axis=1) == labels
        expected = numpy_table(probs.max(axis=1), hit, bins)
        assert added
        np.testing.assert_array_equal(table[:, [0, 4]], expected[:, [0, 4]])


@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_go_to_the_first_class(dtype: Any) -> None:
    """Votes of ten trees tie all the time; NumPy's arg-max takes the first, and so do we."""
    random = np.random.default_rng(2)
    votes = random.multinomial(10, np.full(10, 0.1), 20_000)
    probs, labels = (votes / 10).astype(dtype), random.integers(0, 10, 20_000)
    added, table = top_label_table(probs, labels, 15)
    assert added
    assert table[:, 4].sum() == (probs.argmax(axis=1) == labels).sum()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e-30, -0.0, -1, 1.00001, 2, 0.5])
def test_a_doubtful_row_is_noticed_wherever_it_stands(value: float, dtype: Any) -> None:
    """First, last, at the seam of two tiles: the table stays as it was."""
    column = 3 if value > 0 and np.isfinite(value) else 7
    labels = np.zeros(48, np.int64)
    for row in (0, 15, 16, 37, 47):
        probs = np.zeros((48, 10), dtype)
        probs[:, 3] = 1
        probs[row, column] = value
        added, table = top_label_table(probs, labels, 15)
        assert not added and not table.any()
        tables = np.zeros((10, 15, 8))
        assert not tiles.per_class_loop(10)(probs.reshape(-1), labels, 15, 1e-4, tables)
        assert not tables.any()


def test_edges_that_a_product_does_not_find_are_left_to_others() -> None:
    """Other edges than the usual ones, or too many, have no fast loop."""
    probs = np.ones((1, 2), np.float32)
    usual = edges_for(np.linspace(0, 1, 16), 2.0**-24)
    assert tiles.has_usual_edges(probs, usual)
    assert not tiles.has_usual_edges(probs, np.linspace(0, 1, 16))
    assert tiles.has_usual_edges(probs.astype(np.float64), np.linspace(0, 1, 16))
    assert not tiles.has_usual_edges(probs.astype(np.float64), usual)
    assert not tiles.has_usual_edges(probs, edges_for(np.array([0, 0.3, 1]), 2.0**-24))
    assert not tiles.has_usual_edges(probs, np.linspace(0, 1, 5041))
    assert not tiles.has_usual_edges(probs.astype(np.float16), np.linspace(0, 1, 16))


def test_the_fast_loops_are_used_and_right_on_large_data() -> None:
    """1.2 million probabilities, some rows left over, against NumPy; with -0.0 as well."""
    probs, labels = rows_of(120_007, 10, spread=12)
    predictions = Predictions.of(probs, labels)
    for name, scores, hit in (
        ("top_label", probs.max(axis=1), probs.argmax(axis=1) == labels),
        ("per_class", probs.reshape(-1), (labels[:, None] == np.arange(10)).reshape(-1)),
    ):
        plan = BinPlan(Question(name))
        assert plan.direct_loop(predictions) is not None
        table = numpy_table(scores, hit, 15)
        for values in (probs, np.where(probs == 0, np.float32(-0.0), probs)):
            found = summarise(Predictions.of(values, labels), [plan])[plan].table.sums
            np.testing.assert_allclose(found.sum(axis=0), table, rtol=1e-12)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN"), (-0.25, "row 77777 holds -0.25"), (0.9, "row 77777 sums to")],
)
def test_a_bad_row_of_large_data_is_explained(value: float, message: str) -> None:
    """The message is that of the slow loop: which row, what is wrong with it."""
    probs = np.zeros((120_000, 10), np.float32)
    probs[:, 0] = 1
    probs[77_777, 0 if value > 0 else 5] = value
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.ece(probs, np.zeros(len(probs), np.int64))


@pytest.mark.parametrize("question", ["top_label", "per_class"])
def test_any_number_of_threads_gives_the_same_digits(question: str) -> None:
    """Bit by bit, in one thread and in several."""
    predictions = Predictions.of(*rows_of(120_001, 10))
    plan = BinPlan(Question(question))
    tables = [summarise(predictions, [plan], threads=n)[plan].sums for n in (1, 2, 5)]
    assert tables[0].tobytes() == tables[1].tobytes() == tables[2].tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_every_class_is_summed_as_numpy_does(classes: int, dtype: Any) -> None:
    """Single labels, class by class."""
    for number, spread, bins in ((16, 1, 10), (1008, 20, 15), (496, 2, 200)):
        probs, labels = rows_of(number, classes, dtype, spread)
        table = np.zeros((classes, bins, 8))
        assert tiles.per_class_loop(classes)(probs.reshape(-1), labels, bins, 1e-4, table)
        for c in range(classes):
            expected = numpy_table(probs[:, c], labels == c, bins)
            np.testing.assert_allclose(table[c], expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("units", [3, 200])
def test_resampling_is_a_product(units: int) -> None:
    """Multiplicities × tables by NumPy, for more and fewer resamples than are taken at once."""
    probs, labels = rows_of(1000, 4)
    random = np.random.default_rng(3)
    unit = random.integers(0, units, 1000)
    predictions, plan = Predictions.of(probs, labels), BinPlan(Question("per_class"))
    table = summarise(predictions, [plan], units=unit, num_units=units)[plan]
    for resamples in (2, 16, 33):
        times = random.integers(0, 4, (resamples, units)).astype(np.float64)
        expected = np.tensordot(times, table.sums, 1)
        np.testing.assert_allclose(table.resampled(times).sums, expected, rtol=1e-12)


def test_results_come_in_the_order_of_the_items() -> None:
    """Whoever is done first."""
    assert in_threads(lambda i: i * i, range(100), 4) == [i * i for i in range(100)]


def test_the_error_of_the_first_item_that_fails_is_raised() -> None:
    """However many fail, and in whatever thread."""

    def work(i: int) -> int:
        if i in (3, 4, 7):
            raise ValueError(f"item {i}")
        return i

    for threads in (1, 2, 8):
        with pytest.raises(ValueError, match="item 3"):
            in_threads(work, range(10), threads)


def test_work_that_shares_out_work_does_not_wait_for_itself() -> None:
    """Helpers that ask for helpers: there are enough hands, as everybody works."""

    def outer(i: int) -> int:
        return sum(in_threads(lambda j: i * j, range(5), 4))

    done: list[list[int]] = []
    thread = threading.Thread(target=lambda: done.append(in_threads(outer, range(50), 64)))
    thread.start()
    thread.join(timeout=60)
    assert done == [[10 * i for i in range(50)]]


def count_in_threads() -> list[int]:
    """Work that a child process does."""
    return in_threads(int, range(4), 2)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_has_helpers_of_its_own(method: str) -> None:
    """Data loaders fork, and the threads of the parent do not come along."""
    assert count_in_threads() == [0, 1, 2, 3]
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply_async(count_in_threads).get(timeout=60) == [0, 1, 2, 3]
