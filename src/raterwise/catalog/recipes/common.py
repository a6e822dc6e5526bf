"""How the metrics of the catalog get from predictions to a table.

A *plan* says which summary to keep; *prepare* turns the summary into a table per resampling unit;
*value* is the exact value where that table is coarser than the summary. The functions here return
these parts, with the options of a metric in place of its defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from raterwise.binning import bin_edges, equal_edges, equal_mass_edges
from raterwise.densities import smoothers
from raterwise.errors import InvalidInputError
from raterwise.metrics import agreement, calibration, proper
from raterwise.predictions import Rows
from raterwise.questions import PerCaseScore, Question
from raterwise.rules import at_least_zero, positive, positive_integer
from raterwise.summaries import (
    AgreementPlan,
    AgreementTable,
    BinPlan,
    BinSums,
    BinTable,
    CellSums,
    SamplePlan,
    ScoreMasses,
    SortedPlan,
    SortedScores,
)
from raterwise.types import Array, Options

Exact = Callable[[SortedScores, Options], tuple[float, float | None]]
Bound = Callable[[CellSums, float, Options], float]
Prepare = Callable[..., Any]
"""prepare(summary, options, like=None) -> table per unit; `like` is that of the original sample."""

INTERVAL_CELLS = 256
"""Into how many equal-mass cells sorted scores are gathered for the resamples of an interval."""
EXACT_KDE_CASES = 20_000
"""Up to how many cases the kernel error of one score is exact unless told otherwise."""


def binned(question: str, per: str = "annotation", least: int = 1) -> Callable[[Options], BinPlan]:
    """Return the plan of a binned metric."""

    def plan(options: Options) -> BinPlan:
        asked = Question(options.get("question", question), options.get("per", per))
        edges = bin_edges(options.get("bins", 15))
        bins = len(edges) - 1
        equal = np.array_equal(edges, equal_edges(bins))
        # A plugin estimator has no within-case correction, which is what needs two labels.
        one = question == "per_class" and options.get("estimator") == "plugin"
        return BinPlan(asked, bins if equal else tuple(edges.tolist()), 1 if one else least)

    return plan


def soft_binned(options: Options) -> BinPlan:
    """Return the plan of RECE-G."""
    asked = Question(options["question"], options["per"])
    bins, sigma = positive_integer("bins", options["bins"]), positive("sigma", options["sigma"])
    return BinPlan(asked, bins, spread=float(sigma))


def mixture_binned(options: Options) -> BinPlan:
    """Return the plan of RECE-M."""
    asked, bins = Question("top_label", options["per"]), positive_integer("bins", options["bins"])
    components = positive_integer("components", options["components"])
    seed = positive_integer("seed", options["seed"], least=0)
    return BinPlan(asked, bins, mixture=(components, seed))


def inside_scores(options: Options) -> SortedPlan:
    """Return the plan of what tells cases from those from elsewhere, each of which counts once."""
    return SortedPlan(Question("inside", "case"))


def sorted_scores(options: Options) -> SortedPlan:
    """Return the plan of a metric of ranks, quantiles or kernels."""
    if "bins" in options:  # of equal mass: how many, not where
        positive_integer("bins", options["bins"])
    asked = Question(options.get("question", "top_label"), options.get("per", "annotation"))
    return SortedPlan(asked)


def kernel_scores(options: Options) -> SortedPlan | SamplePlan:
    """Return the plan of KDE-ECE: scores, or whole rows where all classes are asked at once."""
    at_least_zero("floor", options["floor"])
    if options["leave_out"] == "copy" and options["per"] == "case":
        raise InvalidInputError('leave_out: "copy" needs per="annotation"; got per="case"')
    if options["question"] == "canonical":
        if options["method"] == "cells":
            raise InvalidInputError(
                'method: "cells" is for one score per case or class; got question="canonical"'
            )
        return SamplePlan(options["per"])
    if options["floor"]:
        raise InvalidInputError(
            f'floor: is for question="canonical"; got question="{options["question"]}"'
        )
    return sorted_scores(options)


def per_case(score: str, least: int = 1) -> Callable[[Options], BinPlan]:
    """Return the plan of a score that each case has by itself."""
    return lambda options: BinPlan(PerCaseScore(score, options.get("per", "case")), 1, least)


def by_edges(edges_of: Callable[[ScoreMasses, Options], Array]) -> Prepare:
    """Return how to table sorted scores over bins that follow from the scores themselves.

    For a resample the bins stay those of the sample it comes from, `like`.
    """

    def prepare(summary: SortedScores, options: Options, like: BinSums | None = None) -> BinSums:
        if like is not None:
            return BinSums.of_scores(summary, like.channel_edges)
        scores = [summary.pooled(c) for c in range(summary.channels)]
        none = equal_edges(1)  # a class that is predicted for no case has no scores
        edges = [edges_of(s, options) if len(s.score) else none for s in scores]
        return BinSums.of_scores(summary, edges)

    return prepare


def in_cells(scores: ScoreMasses, options: Options) -> Array:
    """Return the edges of cells that stand in for the scores in the resamples."""
    return equal_mass_edges(scores.score, scores.mass, INTERVAL_CELLS)


def of_ranks(
    formula: Callable[..., Array],
    bound: Bound,
    of_table: Callable[..., Array] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """Return the parts of a metric that depends on the order of the scores alone.

    `extra` are options of the formula with their defaults; `of_table` is the formula over the
    cells of a resample, where it is another one.
    """
    over = formula if of_table is None else of_table

    @wraps(over)
    def over_cells(table: BinTable, **own: Any) -> Array:
        return over(table.weight[..., 0, :], table.positive[..., 0, :], **own)

    def value(summary: SortedScores, options: Options) -> tuple[float, None]:
        scores = summary.pooled()
        own = {name: options[name] for name in extra}
        return float(formula(scores.mass, scores.hits, **own)), None

    return {
        "plan": sorted_scores,
        "prepare": by_edges(in_cells),
        "formula": over_cells,
        "exact": value,
        "of_cells": from_cells(value, bound),
        "options": {"question": "top_label", "per": "annotation", **extra},
        "questions": ("top_label", "positive"),
    }


def from_cells(value: Exact, bound: Bound) -> Callable[[CellSums, Options], tuple[float, float]]:
    """Return how to get a value, and its bound, where cells stand for the scores."""

    def of_cells(cells: CellSums, options: Options) -> tuple[float, float]:
        found, _ = value(cells.scores(), options)
        return found, float(bound(cells, found, options))

    return of_cells


def binned_cells(formula: Callable[..., Array], prepare: Prepare, bound: Bound) -> dict[str, Any]:
    """Return the parts of a metric over bins that follow from the scores."""

    def value(summary: SortedScores, options: Options) -> tuple[float, None]:
        return float(formula(prepare(summary, options).table)), None

    return {"formula": formula, "prepare": prepare, "of_cells": from_cells(value, bound)}


def exact_ks(summary: SortedScores, options: Options) -> tuple[float, None]:
    """Return the KS error over every distinct score, not over cells."""
    gaps, total = [], 0.0
    for c in range(summary.channels):
        scores = summary.pooled(c)
        gap = np.cumsum(scores.hits - scores.mass * scores.score)
        gaps.append(np.abs(gap).max(initial=0))
        total += float(scores.mass.sum())
    return float(np.sum(gaps) / total), None


def smoothed(
    smoother_of: Callable[[SortedScores, BinTable, Options], Array],
    edges_of: Callable[[ScoreMasses, Options], Array] = in_cells,
) -> Prepare:
    """Return how to table cells of scores whose deviations a kernel smooths."""
    tabled = by_edges(edges_of)

    def prepare(summary: SortedScores, options: Options, like: BinSums | None = None) -> BinSums:
        cells: BinSums = tabled(summary, options, like)
        if like is not None and like.smoother is not None:
            return BinSums.smoothed_like(cells, like)
        return BinSums.smoothed(cells, smoother_of(summary, cells.table, options))

    return prepare


def beta_smoother(summary: SortedScores, cells: BinTable, options: Options) -> Array:
    """Return the smoother of KDE-ECE at the metric's bandwidth, one per channel."""
    from raterwise.densities.bandwidth import select_bandwidth

    found = []
    for c in range(summary.channels):
        score, mass = cell_centres(cells, c)
        chosen = bandwidth_of(options, c)
        if chosen is None:
            held: Any = (
                mass > 0 if summary.channels > 1 else slice(None)
            )  # others end in empty ones
            chosen = select_bandwidth(score[held], mass[held])
        found.append(smoothers.beta_smoother(score, mass, chosen))
    return found[0] if len(found) == 1 else np.stack(found)


def gaussian_smoother(summary: SortedScores, cells: BinTable, options: Options) -> Array:
    """Return the smoother of SmoothECE, whose bandwidth is its own value."""
    score, _ = cell_centres(cells)
    return smoothers.gaussian_smoother(score, max(smooth_value(summary, options)[0], 1e-3))


def cell_centres(cells: BinTable, c: int = 0) -> tuple[Array, Array]:
    """Return the mean score and the mass of every cell of one channel."""
    mass = cells.weight[c]
    return np.divide(cells.score[c], mass, out=np.zeros_like(mass), where=mass > 0), mass


def kde_with_bound(summary: Any, options: Options) -> tuple[float, float]:
    """Return the KDE-ECE and a bound on its error, 0 where it is exact; the mean over classes."""
    from raterwise.densities import pairs

    settled = with_bandwidth(summary, options)
    if options["question"] == "canonical":
        value = pairs.canonical_kde(
            *summary.counting, p=options["p"], bandwidth=float(settled["bandwidth"]),
            leave_out=options["leave_out"], floor=options["floor"],
        )  # fmt: skip
        return value, 0.0
    each = [_kde_of_channel(summary, settled, c) for c in range(summary.channels)]
    value, bound = np.mean(each, axis=0)
    return float(value), float(bound)


def _kde_of_channel(summary: SortedScores, options: Options, c: int) -> tuple[float, float]:
    from raterwise.densities import cells as kernel_cells
    from raterwise.densities import pairs

    score, mass, hits = summary.cases(c)
    p, method, chosen = options["p"], options["method"], bandwidth_of(options, c)
    assert chosen is not None
    told = {"p": p, "bandwidth": float(chosen), "leave_out": options["leave_out"]}
    if method == "exact" or (method == "auto" and len(score) <= EXACT_KDE_CASES):
        return pairs.top_label_kde(score, hits, mass, **told), 0.0
    cells = kernel_cells.score_cells(score, hits / mass, mass)
    return kernel_cells.beta_kde_from_cells(cells, **told)


def kde_of_parts(summary: Any, options: Options) -> Array | None:
    """Return the KDE-ECE of the growing parts of the cases, where every part's is exact."""
    from raterwise.densities.pairs import growing_kde

    plain = options["question"] != "canonical" and options["leave_out"] == "case"
    if not plain or options["method"] == "cells" or options["bandwidth"] is None:
        return None
    each = []
    for c in range(summary.channels):
        order, *columns = summary.sorted_columns(c)
        score, mass, hits, unit = (column[order] for column in columns)
        counts = mass > 0
        if options["method"] == "auto" and np.count_nonzero(counts) > EXACT_KDE_CASES:
            return None
        score, mass, hits, unit = (column[counts] for column in (score, mass, hits, unit))
        each.append(growing_kde(
            score.astype(np.float64), hits, mass, unit, summary.units,
            p=options["p"], bandwidth=float(bandwidth_of(options, c) or 0),
        ))  # fmt: skip
    return np.asarray(np.mean(each, axis=0))


def bandwidth_of(options: Options, c: int) -> float | None:
    """Return the bandwidth of a channel: one for all, or one for each."""
    given = options["bandwidth"]
    chosen: float | None = given[c] if isinstance(given, tuple) else given
    return chosen


def with_bandwidth(summary: Any, options: Options) -> Options:
    """Return the options of KDE-ECE with the bandwidth that these cases choose, for each class."""
    from raterwise.densities.bandwidth import select_bandwidth, select_dirichlet_bandwidth

    if options["bandwidth"] is not None:
        return options
    each: tuple[Any, ...]
    if "bandwidth" not in summary.tables:
        if options["question"] == "canonical":
            probs, masses = summary.counting
            masses = masses.sum(axis=1)
            each = (select_dirichlet_bandwidth(probs, masses, seed=options["seed"]),)
        else:
            columns = [summary.cases(c)[:2] for c in range(summary.channels)]
            each = tuple(select_bandwidth(score, mass) for score, mass in columns)
        summary.tables["bandwidth"] = each[0] if len(each) == 1 else each
    return {**options, "bandwidth": summary.tables["bandwidth"]}


def about_bandwidth(summary: Any, options: Options) -> str | None:
    """Return what is to say of a bandwidth at the end of its grid."""
    if options["bandwidth"] is not None:
        return None
    chosen = with_bandwidth(summary.scores(), options)["bandwidth"]
    each = chosen if isinstance(chosen, tuple) else (chosen,)
    said = (getattr(one, "warning", None) for one in each)
    return next(filter(None, said), None)


def kde_norm(table: BinTable, p: int) -> Array:
    """Return the mean of the p-th power of smoothed deviations, over the classes too."""
    if p == 1:
        return calibration.ece(table)
    squares = table.deviation**2 / np.where(table.weight > 0, table.weight, 1)
    return np.asarray((squares.sum(axis=-1) / table.weight.sum(axis=-1)).mean(axis=-1))


def smooth_value(summary: SortedScores, options: Options) -> tuple[float, None]:
    """Return SmoothECE of the cases themselves."""
    from raterwise.densities import smooth_ece

    score, mass, hits = summary.cases()
    return smooth_ece.smooth_ece(score, hits - mass * score, mass), None


def agreement_plan(options: Options) -> AgreementPlan:
    """Return the plan of rater agreement."""
    return AgreementPlan()


def krippendorff(table: AgreementTable, scale: str) -> Array:
    """Return Krippendorff's alpha of the tables."""
    return agreement.krippendorff_from_coincidences(table.coincidences, scale)


def most_of_squares(options: Options, classes: int) -> float:
    """Return the largest Brier score: all cases sure and wrong."""
    return 1.0 if proper.is_halved(options["scale_by_half"], classes) else 2.0


def most_of_cuts(options: Options, classes: int) -> float:
    """Return the largest ranked probability score: sure of one end of the scale, and the other."""
    return classes - 1.0


def most_of_kernels(options: Options, classes: int) -> float:
    """Return the largest error of a kernel density: that of whole vectors, or of one score."""
    return 2.0 if options["question"] == "canonical" else 1.0


# What each rater's label would add to a score that is a mean over labels: (n, K) ------------------


def hit_of_label(rows: Rows) -> Array:
    """Return 1 for the class that is predicted."""
    return np.asarray(rows.predicted[:, None] == np.arange(rows.probs.shape[1]), np.float64)


def squares_of_label(rows: Rows) -> Array:
    """Return Σ_j (p_j - [j = k])² for a rater who says k."""
    probs = rows.probs.astype(np.float64)
    return np.asarray((probs**2).sum(axis=1, keepdims=True) - 2 * probs + 1)


def halved_squares_of_label(rows: Rows) -> Array:
    """Return the same by scikit-learn's convention: halved for two classes."""
    return squares_of_label(rows) / (2 if rows.probs.shape[1] == 2 else 1)


def log_of_label(rows: Rows) -> Array:
    """Return -log p_k for a rater who says k."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(rows.probs.astype(np.float64)))
