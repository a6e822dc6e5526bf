"""How the metrics of the catalog get from predictions to a table.

A *plan* says which summary to keep; *prepare* turns the summary into a table per resampling unit;
*value* is the exact value where that table is coarser than the summary. The functions here return
these parts, with the options of a metric in place of its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import positive_integer
from raterwise.binning import bin_edges, equal_edges, equal_mass_edges
from raterwise.metrics import agreement, calibration, smoothing
from raterwise.questions import PerCaseScore, Question
from raterwise.summaries import (
    AgreementPlan,
    AgreementTable,
    BinPlan,
    BinSums,
    BinTable,
    ScoreMasses,
    SoftBinPlan,
    SortedPlan,
    SortedScores,
)

__all__ = [
    "Options",
    "Prepare",
    "agreement_plan",
    "beta_smoother",
    "binned",
    "by_edges",
    "exact_ks",
    "gaussian_smoother",
    "in_cells",
    "kde_norm",
    "kde_with_bound",
    "krippendorff",
    "of_ranks",
    "per_case",
    "smooth_value",
    "smoothed",
    "soft_binned",
    "sorted_scores",
]

Array = NDArray[Any]
Options = Mapping[str, Any]
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


def soft_binned(options: Options) -> SoftBinPlan:
    """Return the plan of RECE-G."""
    asked = Question(options["question"], options["per"])
    bins = positive_integer("bins", options["bins"])
    return SoftBinPlan(asked, bins, float(options["sigma"]))


def sorted_scores(options: Options) -> SortedPlan:
    """Return the plan of a metric of ranks, quantiles or kernels."""
    asked = Question(options.get("question", "top_label"), options.get("per", "annotation"))
    return SortedPlan(asked)


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
        channels = range(summary.channels)
        edges = [edges_of(summary.channel(c).pooled(), options) for c in channels]
        return BinSums.of_scores(summary, edges)

    return prepare


def in_cells(scores: ScoreMasses, options: Options) -> Array:
    """Return the edges of cells that stand in for the scores in the resamples."""
    return equal_mass_edges(scores.score, scores.mass, INTERVAL_CELLS)


def of_ranks(formula: Callable[[Array, Array], Array]) -> dict[str, Any]:
    """Return the parts of a metric that depends on the order of the scores alone."""

    def value(summary: SortedScores, options: Options) -> float:
        scores = summary.channel().pooled()
        return float(formula(scores.mass, scores.hits))

    return {
        "plan": sorted_scores,
        "prepare": by_edges(in_cells),
        "formula": lambda table: formula(table.weight[..., 0, :], table.positive[..., 0, :]),
        "value": value,
        "options": {"question": "top_label", "per": "annotation"},
    }


def exact_ks(summary: SortedScores, options: Options) -> float:
    """Return the KS error over every distinct score, not over cells."""
    gaps, total = [], 0.0
    for c in range(summary.channels):
        scores = summary.channel(c).pooled()
        gap = np.cumsum(scores.hits - scores.mass * scores.score)
        gaps.append(np.abs(gap).max(initial=0))
        total += float(scores.mass.sum())
    return float(np.sum(gaps) / total)


def smoothed(smoother_of: Callable[[SortedScores, BinTable, Options], Array]) -> Prepare:
    """Return how to table cells of scores whose deviations a kernel smooths."""
    tabled = by_edges(in_cells)

    def prepare(summary: SortedScores, options: Options, like: BinSums | None = None) -> BinSums:
        cells = tabled(summary, options, like)
        if like is not None and like.smoother is not None:
            return BinSums.smoothed(cells, like.smoother)
        return BinSums.smoothed(cells, smoother_of(summary, cells.table, options))

    return prepare


def beta_smoother(summary: SortedScores, cells: BinTable, options: Options) -> Array:
    """Return the smoother of KDE-ECE at the metric's bandwidth."""
    from raterwise.metrics.bandwidth import select_bandwidth

    score, mass = _centres(cells)
    bandwidth = options["bandwidth"]
    chosen = select_bandwidth(score, mass) if bandwidth is None else bandwidth
    return smoothing.beta_smoother(score, mass, chosen)


def gaussian_smoother(summary: SortedScores, cells: BinTable, options: Options) -> Array:
    """Return the smoother of SmoothECE, whose bandwidth is its own value."""
    score, _ = _centres(cells)
    return smoothing.gaussian_smoother(score, max(smooth_value(summary, options), 1e-3))


def _centres(cells: BinTable) -> tuple[Array, Array]:
    mass = cells.weight[0]
    return np.divide(cells.score[0], mass, out=np.zeros_like(mass), where=mass > 0), mass


def kde_with_bound(summary: SortedScores, options: Options) -> tuple[float, float]:
    """Return the KDE-ECE of one score and a bound on its error, 0 where it is exact."""
    from raterwise.metrics import bandwidth, kernel, kernel_cells

    score, mass, hits = summary.cases()
    p, given, method = options["p"], options["bandwidth"], options["method"]
    chosen = bandwidth.select_bandwidth(score, mass) if given is None else float(given)
    if method == "exact" or (method == "auto" and len(score) <= EXACT_KDE_CASES):
        leave_out = options["leave_out"]
        exact = kernel.top_label_kde(score, hits, mass, p=p, bandwidth=chosen, leave_out=leave_out)
        return exact, 0.0
    cells = kernel_cells.score_cells(score, hits / mass, mass)
    return kernel_cells.beta_kde_from_cells(cells, p=p, bandwidth=chosen)


def kde_norm(table: BinTable, p: int) -> Array:
    """Return the mean of the p-th power of smoothed deviations."""
    if p == 1:
        return calibration.ece(table)
    return smoothing.smoothed_squares(table.deviation[..., 0, :], table.weight[..., 0, :])


def smooth_value(summary: SortedScores, options: Options) -> float:
    """Return SmoothECE of the cases themselves."""
    from raterwise.metrics import smooth

    score, mass, hits = summary.cases()
    return smooth.smooth_ece(score, hits - mass * score, mass)


def agreement_plan(options: Options) -> AgreementPlan:
    """Return the plan of rater agreement."""
    return AgreementPlan()


def krippendorff(table: AgreementTable, scale: str) -> Array:
    """Return Krippendorff's alpha of the tables."""
    return agreement.krippendorff_from_coincidences(table.coincidences, scale)
