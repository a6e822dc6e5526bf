"""Predictions: what is checked, what is kept, how they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import raterwise as rw
from raterwise.predictions.mixtures import Draws
from strategies import ordinary

GOOD = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])


def test_nothing_is_copied_that_need_not_be() -> None:
    """Arrays and tensors of a usable type are kept as they are."""
    assert rw.Predictions.of(GOOD, [0, 1, 0]).probs is GOOD
    tensor = torch.tensor(GOOD)
    kept = rw.Predictions.of(tensor, [0, 1, 0]).probs
    assert kept.ctypes.data == tensor.data_ptr()
    half = GOOD.astype(np.float16)
    assert rw.Predictions.of(half, [0, 1, 0]).probs is half


def test_reading_gives_confidence_and_prediction() -> None:
    """The largest probability and its class, ties to the lowest; labels beside them."""
    rows = rw.Predictions.of(GOOD, [0, 1, 1], weights=[1, 2, 3]).read(1, 3)
    assert rows.confidence.tolist() == [0.7, 0.5]
    assert rows.predicted.tolist() == [1, 0]
    assert rows.classes is not None and rows.classes.tolist() == [1, 1]
    assert rows.weights is not None and rows.weights.tolist() == [2, 3]
    assert rows.counts is None and rows.num_raters is None
    assert rows.start == 1


def test_reading_histograms() -> None:
    """Several raters come as counts."""
    rows = rw.Predictions.of(GOOD, rw.Labels.from_counts([[2, 1], [0, 1], [1, 1]])).read(0, 2)
    assert rows.classes is None
    assert rows.counts is not None and rows.counts.tolist() == [[2, 1], [0, 1]]
    assert rows.num_raters is not None and rows.num_raters.tolist() == [3, 1]
    both = rows.with_raters(2)
    assert both.probs.tolist() == [[0.8, 0.2]]
    assert both.counts is not None and both.counts.tolist() == [[2, 1]]
    assert rows.with_raters(1) is rows


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f4", ">f8", int])
def test_what_is_read_is_native(kind: Any) -> None:
    """(n, K) in C order, float32 or float64, whatever came in."""
    probs = np.asfortranarray(np.round(GOOD).astype(kind))
    rows = rw.Predictions.of(probs, [0, 1, 0]).read(0, 2)
    assert rows.probs.dtype in (np.float32, np.float64) and rows.probs.dtype.isnative
    assert rows.probs.flags.c_contiguous
    assert rows.probs.tolist() == [[1, 0], [0, 1]]


def test_one_column_becomes_two() -> None:
    """(N,) is the probability of class 1."""
    predictions = rw.Predictions.of([0.2, 0.75], [0, 1])
    assert predictions.num_classes == 2
    assert predictions.read(0, 2).probs.tolist() == [[0.8, 0.2], [0.25, 0.75]]


def test_values_are_checked_in_the_row_where_they_stand() -> None:
    """Rows are read in chunks; the message counts rows of the whole."""
    probs = np.tile([0.4, 0.6], (200_000, 1))
    probs[150_000] = [0.4, 0.5]
    predictions = rw.Predictions.of(probs, np.ones(200_000, int))
    assert predictions.chunk_rows < 150_000
    with pytest.raises(rw.InvalidInputError, match=r"row 150000 sums to 0\.9"):
        rw.accuracy(probs, np.ones(200_000, int))


def test_the_first_bad_row_is_named_with_any_number_of_threads() -> None:
    """Threads race, messages do not."""
    probs = np.tile([0.4, 0.6], (600_000, 1))
    probs[[200_000, 590_000]] = [0.4, 0.5]
    for threads in (1, 4):
        with pytest.raises(rw.InvalidInputError, match="row 200000"):
            rw.evaluate(probs, np.ones(600_000, int), "accuracy", resamples=0, threads=threads)


def test_taking_cases_takes_everything() -> None:
    """Labels, weights, patients, confidences, draws, numbers of raters; by index or by mask."""
    problem = ordinary(10)
    predictions = rw.Predictions.of(
        problem.probs, problem.labels, weights=np.arange(1, 11), groups=list("aabbccddee")
    )
    numbers = np.arange(10)
    predictions = replace(
        predictions, confidence=numbers / 10, draws=Draws(np.zeros((2, 10))), case_raters=numbers
    )
    mask = np.arange(10) % 3 == 0
    for rows in (mask, np.flatnonzero(mask)):
        taken = predictions.take(rows)
        assert taken.probs.tolist() == problem.probs[mask].tolist()
        assert taken.labels.counts.tolist() == problem.counts[mask].tolist()
        assert taken.weights is not None and taken.weights.tolist() == [1, 4, 7, 10]
        assert taken.groups is not None
        assert [taken.group_ids[g] for g in taken.groups] == ["a", "b", "d", "e"]
        assert taken.confidence is not None and taken.confidence.tolist() == [0, 0.3, 0.6, 0.9]
        assert taken.case_raters is not None and taken.case_raters.tolist() == [0, 3, 6, 9]
        assert taken.draws is not None and taken.draws.rows is not None
        assert taken.draws.rows.tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize(
    "groups",
    [
        ["x", "x", "y"],
        [7, 7, 3],
        np.array([7.0, 7.0, 3.0]),
        torch.tensor([7, 7, 3]),
        np.array(["x", "x", "y"], object),
    ],
)
def test_patients_may_have_any_names(groups: Any) -> None:
    """Text, numbers or tensors; only who equals whom counts."""
    predictions = rw.Predictions.of(GOOD, [0, 1, 0], groups=groups)
    assert predictions.groups is not None and predictions.groups.tolist() == [0, 0, 1]
    assert len(predictions.group_ids) == 2


@pytest.mark.parametrize("groups", [["x", "y"], "xyz", [["x"], ["x"], ["y"]], 7])
def test_patients_that_do_not_fit(groups: Any) -> None:
    """One name per case."""
    with pytest.raises(rw.InvalidInputError, match="groups: must name the patient of each case"):
        rw.Predictions.of(GOOD, [0, 1, 0], groups=groups)
    with pytest.raises(rw.InvalidInputError, match="groups: must name the patient of each case"):
        rw.evaluate(GOOD, [0, 1, 0], groups=groups)


@pytest.mark.parametrize("names", [["benign"], ["a", "b", "c"], []])
def test_class_names_that_do_not_fit(names: list[str]) -> None:
    """One name per class."""
    message = f"class_names: must name each of the 2 classes; got {len(names)}"
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.evaluate(GOOD, [0, 1, 0], class_names=names)
