"""How the metrics of a positive class get from predictions to a table: see `common`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from raterwise.binning import equal_mass_edges
from raterwise.catalog.recipes.common import INTERVAL_CELLS, Bound, by_edges, from_cells
from raterwise.metrics import operating
from raterwise.questions import Event
from raterwise.rules import between_zero_and_one
from raterwise.summaries import BinPlan, ScoreMasses, SortedPlan, SortedScores
from raterwise.types import Array, Options

OPERATING_POINTS = tuple((np.arange(101) / 100).tolist())
"""An operating curve has a threshold at every hundredth, as it is typed: 0.95, where equal steps
would add up to 0.9500000000000001 and a probability of 0.95 would test negative."""


def event(options: Options, *, per: str | None = None, alone: bool = False) -> Event:
    """Return the question about the positive class."""
    per = per or options.get("per", "annotation")
    return Event(options["positive"], per, options["ordered"], alone)


def at_threshold(options: Options) -> BinPlan:
    """Return the plan of what lies below a threshold and what from it on."""
    threshold = between_zero_and_one("threshold", options["threshold"])
    if options.get("prevalence") is not None:
        between_zero_and_one("prevalence", options["prevalence"])
    return BinPlan(event(options), (0.0, threshold, 1.0))


def operating_plans(options: Options) -> tuple[BinPlan, BinPlan]:
    """Return the plans of a curve over thresholds: the model's table, and the raters'."""
    model = BinPlan(event(options, alone=True), OPERATING_POINTS)
    return model, BinPlan(event(options, per="case", alone=True), 1, least_raters=2)


def of_event_ranks(formula: Callable[[Array, Array], Array], bound: Bound) -> dict[str, Any]:
    """Return the parts of a metric of the ranks of a class's probability."""

    def value(summary: SortedScores, options: Options) -> tuple[float, None]:
        pooled = [summary.pooled(c) for c in range(summary.channels)]
        each = np.array([float(formula(scores.mass, scores.hits)) for scores in pooled])
        return float(operating.mean_over_classes(each)), None

    return {
        "plan": lambda options: SortedPlan(event(options)),
        "prepare": by_edges(in_cells_of_events),
        "formula": lambda table: operating.mean_over_classes(formula(table.weight, table.positive)),
        "exact": value,
        "of_cells": from_cells(value, bound),
    }


def in_cells_of_events(scores: ScoreMasses, options: Options) -> Array:
    """Return the edges of cells that each hold few of the cases and few of the positives."""
    total, positives = scores.mass.sum(), scores.hits.sum()
    mass = scores.mass / total + (scores.hits / positives if positives > 0 else 0)
    return equal_mass_edges(scores.score, mass, INTERVAL_CELLS)
