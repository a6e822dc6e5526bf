"""Bounds on what fine cells hide, by brute force: every order of the labels within the cells.

Scores a hair apart lie in one cell, which knows how many of its cases are right and not which.
The largest error over all orders is what a bound must reach, and what a good one does not exceed
by much.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import oracle
import raterwise as rw
from raterwise.catalog import find
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.summaries.cells import CellPlan, CellSums
from raterwise.summaries.one_pass import summarise

Array = Any

# (where the cell is, how many cases, how many of them are right)
CELLS = {
    "one cell": [(0.7, 9, 6)],
    "mostly right": [(0.5, 10, 8)],
    "mostly wrong": [(0.8, 8, 2)],
    "two cells": [(0.6, 6, 4), (0.9, 6, 3)],
    "the surer one is wrong": [(0.55, 5, 4), (0.95, 6, 1)],
    "over-confident, then under-confident": [(0.9, 6, 3), (0.6, 6, 5)],
}


def scores_of(cells: list[tuple[float, int, int]]) -> Array:
    """Scores a hair above the lower end of each cell."""
    return np.concatenate([at + 1e-9 + 1e-8 * np.arange(cases) for at, cases, _ in cells])


def orders(cells: list[tuple[float, int, int]]) -> Any:
    """Every way to say which cases of each cell are right."""
    each = []
    for _, cases, right in cells:
        chosen = itertools.combinations(range(cases), right)
        each.append([np.isin(np.arange(cases), list(which)).astype(int) for which in chosen])
    return (np.concatenate(labels) for labels in itertools.product(*each))


def by_cells(z: Array, labels: Array) -> CellSums:
    """Return the sums over fine cells of the top label of two classes."""
    plan = CellPlan(Question("positive"))
    sums: CellSums = summarise(Predictions.of(z, labels), [plan])[plan]
    return sums


def value_and_bound(name: str, z: Array, labels: Array) -> tuple[float, float]:
    """Return the metric of the cells, and its bound."""
    row, sums = find(name), by_cells(z, labels)
    own = row.with_defaults({"question": "positive"})
    assert row.of_cells is not None
    value, bound = row.of_cells(sums, own)
    return value, float(bound)


def test_kernel_error_of_cases_in_cells_of_their_own_is_that_of_pairs() -> None:
    """Σ_{i≠j} r_i r_j exp(-|z_i - z_j| / 0.4) / (3 · 2) with r = (-0.2, 0.5, -0.9), bound 0."""
    value, bound = value_and_bound(
        "kernel_calibration_error", np.array([0.2, 0.5, 0.9]), np.array([0, 1, 0])
    )
    near, far, both = np.exp(-0.3 / 0.4), np.exp(-0.4 / 0.4), np.exp(-0.7 / 0.4)
    pairs = -0.2 * 0.5 * near - 0.5 * 0.9 * far + 0.2 * 0.9 * both
    assert (value, bound) == pytest.approx((pairs / 3, 0), abs=1e-12)


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("name", ["auccc", "augrc", "aurc"])
def test_the_worst_order_is_as_far_as_the_bound(
    name: str, cells: list[tuple[float, int, int]]
) -> None:
    """Ranks hang on the order alone: the bound is the largest error of all orders, no less."""
    z = scores_of(cells)
    naive = {"auccc": oracle.auccc, "augrc": naive_augrc, "aurc": naive_aurc}[name]
    value, bound = value_and_bound(name, z, next(iter(orders(cells))))
    errors = [abs(naive(z, labels) - value) for labels in orders(cells)]
    assert max(errors) == pytest.approx(bound, abs=1e-9)
    assert bound > 0.01


def naive_augrc(z: Array, labels: Array) -> float:
    """Pair by pair."""
    return oracle.augrc_by_pairs(z, 1 - labels)


def naive_aurc(z: Array, labels: Array) -> float:
    """The mean over coverages of the error rate among the surest cases; no two are tied."""
    wrong = 1 - labels[np.argsort(-z)]
    return float(np.mean([wrong[:n].mean() for n in range(1, len(z) + 1)]))


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_the_worst_order_of_the_ks_error_is_as_far_as_its_bound(
    cells: list[tuple[float, int, int]],
) -> None:
    """The cumulative gap of the cases themselves, order by order, case by case."""
    z = np.sort(scores_of(cells))
    cells = sorted(cells)
    value, bound = value_and_bound("ks_error", z, next(iter(orders(cells))))
    largest = max(np.abs(np.cumsum(labels - z)).max() / len(z) for labels in orders(cells))
    assert largest - value == pytest.approx(bound, abs=1e-7)


def test_positives_alone_in_a_cell_hide_their_order() -> None:
    """One negative above two positives that share a cell: a tie has 2/3, one by one 7/12.

    With the positives at two thresholds the precision is 1/2, then 2/3; at one it is 2/3 twice.
    """
    z, labels = np.array([0.9, 0.5 + 2e-5, 0.5 + 1e-5]), np.array([0, 1, 1])
    value, bound = value_and_bound("average_precision", z, labels)
    assert value == pytest.approx(2 / 3)
    assert rw.average_precision(z, labels) == pytest.approx(7 / 12)
    assert bound >= 2 / 3 - 7 / 12


def test_positives_alone_above_all_others_hide_nothing() -> None:
    """Whatever the order of the surest cases, all of them positive, every precision is 1."""
    z = np.append(0.9 + 1e-7 * np.arange(50), 0.1)
    labels = np.append(np.ones(50, int), 0)
    value, bound = value_and_bound("average_precision", z, labels)
    assert (value, bound) == (1.0, pytest.approx(0, abs=1e-12))


def test_a_rise_within_a_cell_is_bounded() -> None:
    """60 of 100 at 0.5 are right and come first: the gap rises to 0.3 and ends at 0.1."""
    z = 0.5 + 1e-9 + 1e-7 * np.arange(100)
    labels = (np.arange(100) < 60).astype(int)
    value, bound = value_and_bound("ks_error", z, labels)
    assert value == pytest.approx(0.1, abs=1e-5)
    assert value + bound == pytest.approx(0.3, abs=1e-4)
    assert rw.ks_error(z, labels, question="positive") == pytest.approx(0.3, abs=1e-4)


def test_a_slope_that_only_the_places_within_cells_show_is_bounded() -> None:
    """Half of every cell is positive, so its slope is 0; but the positives are the higher half."""
    cell = np.repeat(np.arange(900, 4200, 300), 10)  # none where cells are finer, near 0 and 1
    labels = np.tile([0] * 5 + [1] * 5, 11)
    z = (cell + np.where(labels == 1, 0.98, 0.02)) / 5040
    row = find("calibration_slope")
    own = row.with_options({}, {})
    plan = row.plan(own).bounded()
    assert row.of_cells is not None
    value, bound = row.of_cells(summarise(Predictions.of(z, labels), [plan])[plan], own)
    exact = rw.calibration_slope(z, labels)
    assert value == pytest.approx(0, abs=1e-9)
    assert exact > 1e-5
    assert bound is not None and exact - value <= bound * (1 + 1e-3)  # it is of first order
