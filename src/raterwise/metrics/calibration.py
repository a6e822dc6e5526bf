"""Binned calibration errors: formulas over a `BinTable`, or over sorted scores.

Every formula works on a table with leading axes for resamples. Σ |Σ w(μ - z)| / W over bins is the
same number as Σ b_m/N |acc - conf| (RECE eq 2) and needs no division by empty bins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import positive_integer
from raterwise.binning import MAX_BINS, equal_mass_cuts, equal_mass_edges
from raterwise.summaries.bin_sums import BinTable
from raterwise.summaries.sorted_scores import ScoreMasses

__all__ = [
    "adaptive_edges",
    "ece",
    "ks_error",
    "mce",
    "mixture_responsibilities",
    "rms_ce",
    "robust_ece",
    "sce",
    "sweep_edges",
]

FloatArray = NDArray[Any]

SMALL, LARGE = 1e-100, 1e100
"""Weights beyond these have squares that are not numbers, or nearly not."""


def _all_weight(table: BinTable) -> FloatArray:
    return np.asarray(table.weight.sum(axis=(-2, -1)))


def ece(table: BinTable) -> FloatArray:
    """ECE = Σ_m b_m/N |A_m - C_m| (RECE eq 2).

    Where every case is in every channel, dividing by the weight of all makes it their mean.
    """
    return np.asarray(np.abs(table.deviation).sum(axis=(-2, -1)) / _all_weight(table))


def mce(table: BinTable) -> FloatArray:
    """MCE = max_m |A_m - C_m| over the occupied bins of every channel."""
    gap = np.abs(table.deviation) / np.where(table.weight > 0, table.weight, 1)
    return np.asarray(gap.max(axis=(-2, -1)))


def rms_ce(table: BinTable) -> FloatArray:
    """RMS-CE = sqrt(Σ_m b_m/N (A_m - C_m)²), the mean over channels inside the root."""
    deviation, weight, total = table.deviation, table.weight, _all_weight(table)
    most = float(np.max(total, initial=0))
    if not SMALL < most < LARGE:  # where squares leave the numbers; a power of 2 keeps the digits
        scale = 2.0 ** -np.frexp(most)[1]
        deviation, weight, total = deviation * scale, weight * scale, total * scale
    squares = deviation**2 / np.where(weight > 0, weight, 1)
    return np.asarray(np.sqrt(squares.sum(axis=(-2, -1)) / total))


def sce(table: BinTable) -> FloatArray:
    """SCE = 1/K Σ_m Σ_k B_mk/N |A_mk - C_mk|, over the cases predicted as k (RECE eqs 4-5)."""
    return np.asarray(ece(table) / table.sums.shape[-3])


def robust_ece(table: BinTable, *, observed_bins_only: bool = False) -> FloatArray:
    """RECE = Σ_i 1/N |Ã_i - C̃_i| over soft bins (RECE eqs 6-7).

    The sum runs over all bins; the released code leaves out those that hold no observed score.
    """
    error = np.abs(table.deviation)
    if observed_bins_only:
        error = np.where(table.cases > 0, error, 0)
    return np.asarray(error.sum(axis=(-2, -1)) / _all_weight(table))


def mixture_responsibilities(
    weights: FloatArray, means: FloatArray, sds: FloatArray, bins: int
) -> FloatArray:
    """Return how much of each case's mixture (N, components) lies in each bin (RECE eq 7)."""
    from raterwise.binning import equal_edges
    from raterwise.kernels import _numba as kernels

    share = np.empty((len(means), bins))
    kernels.gaussian_shares(
        np.ascontiguousarray(means, np.float64),
        np.ascontiguousarray(sds, np.float64),
        np.ascontiguousarray(weights, np.float64),
        equal_edges(bins),
        share,
    )
    return share


def adaptive_edges(scores: ScoreMasses, bins: int) -> FloatArray:
    """Return equal-mass edges that hold every case: fewer bins where cases or scores are few."""
    positive_integer("bins", bins)
    return equal_mass_edges(scores.score, scores.mass, bins)


def sweep_edges(scores: ScoreMasses) -> FloatArray:
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


def ks_error(table: BinTable) -> FloatArray:
    """KS = max over thresholds t of |Σ_{z <= t} w (μ - z)| / W (Gupta et al. 2021, eq 8)."""
    gap = np.cumsum(table.deviation, axis=-1)
    return np.asarray(np.abs(gap).max(axis=-1).sum(axis=-1) / _all_weight(table))
