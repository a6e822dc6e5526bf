"""Predicted disagreement: as such, or from class probabilities, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from strategies import ordinary

LOSSES: list[Callable[..., float]] = [
    rw.disagreement_loss,
    rw.disagreement_calibration_loss,
    rw.disagreement_calibration_error,
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_class_probabilities_are_taken_as_evaluate_takes_them(
    loss: Callable[..., float], weighted: bool
) -> None:
    """(N, K) gives what (N,) of 1 - Σ p² gives, and what `evaluate` prints."""
    problem = ordinary(120)
    weights = np.arange(120) % 3 if weighted and loss is rw.disagreement_loss else None
    mine = loss(problem.probs, problem.labels, weights=weights)
    differ = 1 - (problem.probs**2).sum(axis=1)
    assert mine == pytest.approx(loss(differ, problem.labels, weights=weights), rel=1e-12)
    results = rw.evaluate(
        problem.probs, problem.labels, loss.__name__, weights=weights, resamples=0
    )
    assert mine == pytest.approx(results[loss.__name__].value, rel=1e-12)


def test_class_probabilities_by_hand() -> None:
    """1 - Σ p² is 0.5 and 0.18; the raters differ always, and in 2 of 3 pairs."""
    labels = rw.Labels.from_counts([[1, 1], [2, 1]])
    probs = [[0.5, 0.5], [0.9, 0.1]]
    # Σ (μ - z)² + μ (1 - μ), the expected squared loss against a pair drawn at random
    expected = (0.5**2 + (2 / 3 - 0.18) ** 2 + 2 / 9) / 2
    assert rw.disagreement_loss(probs, labels) == pytest.approx(expected)
    assert rw.disagreement_loss([0.5, 0.18], labels) == pytest.approx(expected)


def test_edges_of_bins() -> None:
    """Edges instead of a number of bins, as elsewhere: equal ones give the same."""
    problem = ordinary(60)
    edges = np.linspace(0, 1, 6)
    for loss in LOSSES[1:]:
        expected = loss(problem.probs, problem.labels, bins=5)
        assert loss(problem.probs, problem.labels, bins=edges) == pytest.approx(expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([[0.5, 0.5, 0.0]] * 2, r"predicted: must be \(N,\) .* \(2, 2\) like the labels"),
        ([[0.5, 0.5]], r"predicted: must be \(N,\) .* got shape \(1, 2\)"),
        ([[0.5], [0.5]], r"predicted: must be \(N,\) .* got shape \(2, 1\)"),
        ([[0.5, 0.7], [0.5, 0.5]], "predicted: rows must sum to 1 within 1e-4; row 0 sums to 1.2"),
        ([[-1.0, 2.0], [0.5, 0.5]], r"predicted: must lie in \[0, 1\]; row 0 holds -1"),
        ([0.5, 1.5], r"predicted: must lie in \[0, 1\]; case 1 has \[1.5\]"),
        ([0.5, np.nan], "predicted: must not contain NaN; 1 values"),
        ([0.5], "predicted: must match labels; got 1 for 2 cases"),
        (0.5, "predicted: must be 1-dimensional or 2-dimensional"),
        (np.full((2, 2, 2), 0.5), "predicted: must be 1-dimensional or 2-dimensional"),
    ],
)
def test_anything_else_is_an_error(
    loss: Callable[..., float], predicted: Any, message: str
) -> None:
    """Logits, other numbers of classes, single columns: nothing is silently a number."""
    with pytest.raises(rw.InvalidInputError, match=message):
        loss(predicted, rw.Labels.from_counts([[1, 1], [2, 0]]))


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([[0.5, 0.7], [0.5, 0.5]], "predicted: rows must sum to 1 within 1e-4, over the values"),
        ([[0.5], [0.5]], r"predicted: must be \(N,\), or \(N, M\) for a statistic of M >= 2"),
        ([0.5, 1.5], r"predicted: must lie in \[0, 1\]"),
    ],
)
def test_probabilities_of_a_statistic(predicted: Any, message: str) -> None:
    """Of each of M values there is one, and together they are 1."""
    labels = rw.Labels.from_counts([[1, 1], [2, 0]])
    for loss in (rw.statistic_loss, rw.statistic_calibration_loss):
        with pytest.raises(rw.InvalidInputError, match=message):
            loss(lambda a, b: a != b, predicted, labels, order=2)
