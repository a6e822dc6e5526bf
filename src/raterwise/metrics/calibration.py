"""Binned calibration errors: formulas over a `BinTable`, or over sorted scores.

Every formula works on a table with leading axes for resamples. Σ |Σ w(μ - z)| / W over bins is the
same number as Σ b_m/N |acc - conf| (RECE eq 2) and needs no division by empty bins.
"""

from __future__ import annotations

import numpy as np

from raterwise.binning import MAX_BINS, equal_mass_cuts, equal_mass_edges, number_of_bins
from raterwise.metrics.proper import require_equal_weights
from raterwise.summaries.bin_table import BinTable
from raterwise.summaries.sorted_scores import ScoreMasses
from raterwise.types import Array

SMALL, LARGE = 1e-100, 1e100
"""Weights beyond these have squares that are not numbers, or nearly not."""


def _all_weight(table: BinTable) -> Array:
    return np.asarray(table.weight.sum(axis=(-2, -1)))


def ece(table: BinTable) -> Array:
    """ECE = Σ_m b_m/N |A_m - C_m| (RECE eq 2).

    Where every case is in every channel, dividing by the weight of all makes it their mean.
    """
    return np.asarray(np.abs(table.deviation).sum(axis=(-2, -1)) / _all_weight(table))


def norm_error(table: BinTable, *, norm: float = 1) -> Array:
    """CE_p = (Σ_m b_m/N |A_m - C_m|^p)^(1/p) (LH Definition 2), the mean over channels inside.

    p = 1 is the ECE, p = 2 the RMS calibration error, and as p grows it comes to the largest gap.
    """
    if norm == 1:
        return ece(table)
    if np.isinf(norm):
        return mce(table)
    return _power_mean(table, _all_weight(table), norm)


def _gaps(table: BinTable) -> Array:
    """|A_m - C_m|, 0 in bins without a case."""
    return np.asarray(np.abs(table.deviation) / np.where(table.weight > 0, table.weight, 1))


def _power_mean(table: BinTable, total: Array, norm: float) -> Array:
    """(Σ b/W |A - C|^p)^(1/p) over channels and bins, W the total.

    The gaps are taken as shares of the largest, since 0.05^300 is 0 for a computer.
    """
    gaps = _gaps(table)
    largest = gaps.max(axis=(-2, -1), keepdims=True, initial=0)
    shares = gaps / np.where(largest > 0, largest, 1)
    powers = (table.weight * shares**norm).sum(axis=(-2, -1))
    return np.asarray(largest[..., 0, 0] * (powers / total) ** (1 / norm))


def average_calibration_error(table: BinTable) -> Array:
    """ACE = mean over occupied bins of |A_m - C_m|, every bin alike (Neumann et al. 2018).

    Then the mean over the channels that have a case.
    """
    occupied = (table.weight > 0).sum(axis=-1)
    each = _gaps(table).sum(axis=-1) / np.maximum(occupied, 1)
    return np.asarray(each.sum(axis=-1) / np.maximum((occupied > 0).sum(axis=-1), 1))


def debiased_ece(table: BinTable, *, norm: float = 1, estimator: str = "debiased") -> Array:
    """CE_p less what chance adds to it, p = 1 or 2 (Kumar et al. 2019, section 5).

    p = 2: sqrt(max(Σ_m b_m/N [d_m² - σ̄_m²/(b_m - 1)], 0)), as LH eq 14; a bin of one case adds 0.
    p = 1: 2 ECE - E[ECE'], where the gaps of ECE' are drawn from N(d_m, σ̄_m²/b_m). They draw them;
    here E|N(d, s²)| = s sqrt(2/π) exp(-d²/2s²) + |d| erf(|d| / s√2) is exact.
    σ̄² is the variance of μ over the cases of a bin, which for one rater is A (1 - A).
    """
    if estimator == "plugin":
        return norm_error(table, norm=norm)
    require_equal_weights(table, "ECE")
    occupied = np.where(table.weight > 0, table.weight, 1)
    variance = np.maximum(table.squared_positive / occupied - (table.positive / occupied) ** 2, 0)
    gap = _gaps(table)
    if norm == 2:
        less = gap**2 - variance / np.maximum(table.cases - 1, 1)
        squares = (table.weight * np.where(table.cases > 1, less, 0)).sum(axis=(-2, -1))
        return np.asarray(np.sqrt(np.maximum(squares / _all_weight(table), 0)))
    error = np.sqrt(variance / np.maximum(table.cases, 1))
    folded = table.weight * (2 * gap - _folded_mean(gap, error))
    return np.asarray(folded.sum(axis=(-2, -1)) / _all_weight(table))


def _folded_mean(mean: Array, sd: Array) -> Array:
    """E|X| of X ~ N(mean, sd²), |mean| where sd is 0."""
    from scipy.special import erf

    away = mean / (np.sqrt(2) * np.where(sd > 0, sd, 1))
    found = sd * np.sqrt(2 / np.pi) * np.exp(-(away**2)) + mean * erf(away)
    return np.asarray(np.where(sd > 0, found, mean))


def canonical_ece(table: BinTable, *, norm: float = 1) -> Array:
    """(Σ_c b_c/N Σ_k |A_ck - C_ck|^p)^(1/p) over cells of the whole probability vector.

    Vaicenavicius et al. 2019, with a grid of bins for every class. Channels are classes, bins are
    the cells that hold a case, so every case is in each channel once.
    """
    if np.isinf(norm):
        return mce(table)
    return _power_mean(table, table.weight[..., 0, :].sum(axis=-1), norm)


def mce(table: BinTable) -> Array:
    """MCE = max_m |A_m - C_m| over the occupied bins of every channel."""
    return np.asarray(_gaps(table).max(axis=(-2, -1)))


def rms_ce(table: BinTable) -> Array:
    """RMS-CE = sqrt(Σ_m b_m/N (A_m - C_m)²), the mean over channels inside the root."""
    deviation, weight, total = table.deviation, table.weight, _all_weight(table)
    most = float(np.max(total, initial=0))
    if not SMALL < most < LARGE:  # where squares leave the numbers; a power of 2 keeps the digits
        scale = 2.0 ** -np.frexp(most)[1]
        deviation, weight, total = deviation * scale, weight * scale, total * scale
    squares = deviation**2 / np.where(weight > 0, weight, 1)
    return np.asarray(np.sqrt(squares.sum(axis=(-2, -1)) / total))


def sce(table: BinTable) -> Array:
    """SCE = 1/K Σ_m Σ_k B_mk/N |A_mk - C_mk|, over the cases predicted as k (RECE eqs 4-5)."""
    return np.asarray(ece(table) / table.sums.shape[-3])


def robust_ece(table: BinTable, *, observed_bins_only: bool = False) -> Array:
    """RECE = Σ_i 1/N |Ã_i - C̃_i| over soft bins (RECE eqs 6-7).

    The sum runs over all bins; the released code leaves out those that hold no observed score.
    """
    error = np.abs(table.deviation)
    if observed_bins_only:
        error = np.where(table.cases > 0, error, 0)
    return np.asarray(error.sum(axis=(-2, -1)) / _all_weight(table))


def adaptive_edges(scores: ScoreMasses, bins: int) -> Array:
    """Return equal-mass edges that hold every case: fewer bins where cases or scores are few."""
    return equal_mass_edges(scores.score, scores.mass, number_of_bins(bins))


def sweep_edges(scores: ScoreMasses) -> Array:
    """Return the most equal-mass bins whose observed frequencies still increase.

    Bins are added until the frequencies of the bins are no longer monotonic (Roelofs et al. 2022,
    Mitigating bias in calibration error estimation, algorithm 1), or there are as many as cases
    or MAX_BINS of them. Equal scores share a bin, so as many bins as cases are a bin for each
    distinct score, and so are more: the search may end where that is reached.
    """
    mass, hits = np.cumsum(scores.mass), np.cumsum(scores.hits)
    best = 1
    for bins in range(2, MAX_BINS + 1):
        last = np.append(equal_mass_cuts(mass, bins), len(mass) - 1)
        frequency = np.diff(hits[last], prepend=0) / np.diff(mass[last], prepend=0)
        if (np.diff(frequency) < -1e-12).any():
            break
        best = bins
        # With so many, each score has the mass of a bin or more, and every bin ends at a score.
        if bins * scores.mass.min() >= mass[-1]:
            break
    return equal_mass_edges(scores.score, scores.mass, best)


def ks_error(table: BinTable) -> Array:
    """KS = max over thresholds t of |Σ_{z <= t} w (μ - z)| / W (Gupta et al. 2021, eq 8)."""
    gap = np.cumsum(table.deviation, axis=-1)
    return np.asarray(np.abs(gap).max(axis=-1).sum(axis=-1) / _all_weight(table))


def kuiper_error(table: BinTable) -> Array:
    """Kuiper = highest minus lowest Σ_{z <= t} w (μ - z) / W over t (Arrieta-Ibarra et al. 2022).

    Before the first score the sum is 0.
    """
    gap = np.cumsum(table.deviation, axis=-1)
    high, low = np.maximum(gap.max(axis=-1), 0), np.minimum(gap.min(axis=-1), 0)
    return np.asarray((high - low).sum(axis=-1) / _all_weight(table))


def kernel_error(table: BinTable, *, question: str = "top_label") -> Array:
    """dᵀ K d / W² of a table whose deviations are K^½ d: squared kernel error, diagonal included.

    A table of cells does not know what each case adds to the diagonal, so that the estimator
    without it (Widmann et al. 2019) is made of the cases, and the interval of this one. Of several
    classes it is the mean, and of whole vectors (`question` "canonical") the sum; the weight of all
    counts every case as often as there are classes.
    """
    classes = table.deviation.shape[-2]
    often = classes**2 if question == "canonical" else classes
    return np.asarray(often * (table.deviation**2).sum(axis=(-2, -1)) / _all_weight(table) ** 2)
