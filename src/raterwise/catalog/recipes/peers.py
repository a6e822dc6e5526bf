"""How the calibration errors that other libraries have get from predictions to a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from raterwise.catalog.recipes.common import binned, cell_centres, hit_of_label, smoothed
from raterwise.errors import InvalidInputError
from raterwise.predictions import Rows
from raterwise.questions import Question
from raterwise.rules import at_least_one, positive
from raterwise.summaries import (
    BinPlan,
    BinSums,
    BinTable,
    KeptSample,
    SamplePlan,
    SimplexPlan,
    SimplexSums,
    SortedPlan,
    SortedScores,
)
from raterwise.types import Array, Options

INTERVAL_CELLS = 2048
"""How many cells times classes the resamples of an interval may have."""
VECTOR_CELLS = 256
"""Into how many cells of like vectors whole rows are gathered at most, and `LEAST_CELLS` of very
many classes."""
LEAST_CELLS = 64


def normed(plan: Callable[[Options], Any]) -> Callable[[Options], Any]:
    """Return the plan of a metric with a norm, which must be 1 or more."""

    def checked(options: Options) -> Any:
        at_least_one("norm", options["norm"])
        return plan(options)

    return checked


def debiased_binned(options: Options) -> BinPlan:
    """Return the plan of the debiased ECE, whose norm is 1 or 2."""
    if options["norm"] not in (1, 2):
        raise InvalidInputError(f"norm: must be 1 or 2; got {options['norm']!r}")
    return binned("top_label", "case")(options)


def simplex_binned(options: Options) -> SimplexPlan:
    """Return the plan of bins of the whole probability vector."""
    plan = binned("per_class")(options)
    return SimplexPlan(Question("per_class", options["per"]), plan.bins)


def in_simplex_cells(
    summary: SimplexSums, options: Options, like: BinSums | None = None
) -> BinSums:
    """Return the table of the cells that hold a case; coarser ones where those are too many."""
    return summary.tabled(like, INTERVAL_CELLS)


def kernel_cases(options: Options) -> SortedPlan | SamplePlan:
    """Return the plan of the kernel error, which counts every case once: scores, or whole rows."""
    positive("bandwidth", options["bandwidth"])
    if options["question"] == "canonical":
        return SamplePlan("case", in_cells=True)
    return SortedPlan(Question(options["question"], "case"))


def exact_kuiper(summary: SortedScores, options: Options) -> tuple[float, None]:
    """Return Kuiper's statistic over every distinct score, not over cells."""
    reach = total = 0.0
    for c in range(summary.channels):
        scores = summary.pooled(c)
        gap = np.cumsum(scores.hits - scores.mass * scores.score)
        reach += float(gap.max(initial=0) - gap.min(initial=0))
        total += float(scores.mass.sum())
    return reach / total, None


def laplace_smoother(summary: SortedScores, cells: BinTable, options: Options) -> Array:
    """Return K^½ of the Laplace kernel between cells, at the metric's bandwidth, of each class."""
    found = []
    for c in range(summary.channels):
        score, mass = cell_centres(cells, c)
        kernel = np.exp(-np.abs(score[:, None] - score) / options["bandwidth"])
        held = np.where(mass[:, None] * mass > 0, kernel, np.eye(len(mass)))
        found.append(_root(held))
    return found[0] if len(found) == 1 else np.stack(found)


_of_scores = smoothed(laplace_smoother)


def kernel_tables(summary: Any, options: Options, like: BinSums | None = None) -> BinSums:
    """Return the table of cells whose deviations the kernel smooths: of scores, or of vectors."""
    found: BinSums
    if options["question"] != "canonical":
        found = _of_scores(summary, options, like)
        return found
    from scipy.spatial.distance import cdist

    classes = summary.probs.shape[1]
    most = min(VECTOR_CELLS, max(2 * INTERVAL_CELLS // classes, LEAST_CELLS))
    cells = summary.gathered(most)
    mass = cells.table.weight[0]
    held = mass > 0
    centre = np.divide(cells.table.score, mass, out=np.zeros_like(cells.table.score), where=held).T
    kernel = np.exp(-cdist(centre, centre, "cityblock") / 2 / options["bandwidth"])
    found = cells.smoothed(_root(np.where(held[:, None] & held, kernel, np.eye(len(mass)))))
    return found


def _root(kernel: Array) -> Array:
    """Return the square root of a symmetric matrix without negative eigenvalues but for rounding.

    >>> _root(np.array([[4.0, 0.0], [0.0, 9.0]]))
    array([[2., 0.],
           [0., 3.]])
    """
    values, vectors = np.linalg.eigh(kernel)
    return np.asarray((vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T)


def kernel_pairs(summary: Any, options: Options) -> tuple[float, None]:
    """Return the squared kernel error of the cases themselves, the mean over the classes."""
    from raterwise.densities.laplace import squared_canonical_error, squared_kernel_error

    if options["question"] == "canonical":
        probs, masses = summary.counting
        how = options["bandwidth"], options["estimator"]
        return squared_canonical_error(probs, masses, *how), None
    found = []
    for c in range(summary.channels):
        score, mass, hits = summary.cases(c)
        how = options["bandwidth"], options["estimator"]
        found.append(squared_kernel_error(score, hits - mass * score, mass, *how))
    return float(np.mean(found)), None


def kernel_products(rows: KeptSample, options: Options, units: int) -> Array:
    """Return (units, units): what cases of two units add to the error of whole vectors."""
    from raterwise.densities.laplace import canonical_products

    residual = rows.masses - rows.masses.sum(axis=1, keepdims=True) * rows.probs
    return canonical_products(rows.probs, residual, options["bandwidth"], rows.unit, units)


def top_squares_of_label(rows: Rows) -> Array:
    """Return (c - [k is predicted])², c the confidence, for a rater who says k."""
    return np.asarray((hit_of_label(rows) - rows.confidence[:, None]) ** 2)
