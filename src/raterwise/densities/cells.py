"""The kernel-density calibration error of one score from mergeable sums over fine cells.

Ten sums per cell stand in for the cases. Kernel sums over a cell are taken to second order in the
distance from the cell's mean, and so is the error of the cases of a cell; the own case is left
out by the mean mass of a case in its cell. What the second order leaves over is added up along
the way and returned as a bound beside the value.

The cells must be narrow compared with the kernel, whose standard deviation is about
sqrt(z (1 - z) h + h^2): near 0 and 1, where it shrinks to h and where confidences pile up, equal
cells are split geometrically.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma

from raterwise.binning import unit_in_last_place
from raterwise.densities.pairs import BetaTerms, LeaveOut, beta_terms, cutoff, in_blocks
from raterwise.errors import UndefinedMetricError
from raterwise.summaries.cells import cells_of, fine_cells, fine_cells_for
from raterwise.types import FloatArray

TOGETHER = 1 << 17
"""How many cases are looked at together."""
FLOAT32_UNIT = unit_in_last_place(np.float32)


class ScoreCells(NamedTuple):
    """Sums over the cases of each fine cell, d = z - lower edge; add two to merge them.

    Distances from the edge, not scores, are summed: sums of z^2 near 1 would drown the width of
    the tail cells in rounding.
    """

    cases: FloatArray  # 1
    w: FloatArray
    ww: FloatArray  # w^2
    mu: FloatArray  # w mu
    mumu: FloatArray  # w mu^2
    wmu: FloatArray  # w^2 mu
    d: FloatArray  # w d
    dd: FloatArray  # w d^2
    mud: FloatArray  # w mu d
    mudd: FloatArray  # w mu d^2


def score_cells(z: FloatArray, mu: FloatArray, w: FloatArray) -> ScoreCells:
    """Sum scored cases: predicted probability z, observed frequency mu, annotation mass w."""
    edges = fine_cells()
    sums = np.zeros((len(ScoreCells._fields), len(edges) - 1))
    for part in parts_of(len(z)):
        cell, some = cells_of(z[part]), (w[part], mu[part])
        add_by_cell(sums, cell, _terms(*some, z[part] - edges[cell]))
    return ScoreCells(*sums)


def _terms(w: FloatArray, mu: FloatArray, d: FloatArray) -> Iterator[FloatArray]:
    """Yield what is summed, one after another."""
    yield np.ones_like(w)
    yield from (w, w * w)
    yield from (w * mu, w * mu**2, w * w * mu, w * d, w * d * d, w * mu * d, w * mu * d * d)


def add_by_cell(sums: FloatArray, cell: NDArray[np.int64], terms: Iterable[FloatArray]) -> None:
    """Add each of the terms over the cases of each fine cell, in place."""
    for total, term in zip(sums, terms, strict=True):
        total += np.bincount(cell, term, len(total))


def parts_of(cases: int) -> list[slice]:
    """Return the cases some at a time, so that what is made of each of them is small."""
    return [slice(i, i + TOGETHER) for i in range(0, max(cases, 1), TOGETHER)]


class _Cells(NamedTuple):
    """The cells that hold cases: means and central moments."""

    z: FloatArray  # mean score
    reach: FloatArray  # largest distance of a case from the mean
    cases: FloatArray
    mass: FloatArray
    variance: FloatArray  # of z
    hits: FloatArray
    first: FloatArray  # sum of w mu (z - mean)
    second: FloatArray  # sum of w mu (z - mean)^2
    mu: FloatArray
    mu_variance: FloatArray
    case_mass: FloatArray  # mean mass of a case, each annotation counting once
    case_hits: FloatArray  # mean hit mass of a case, likewise


def _central(cells: ScoreCells) -> _Cells:
    used = np.flatnonzero(cells.w > 0)
    edges = fine_cells()
    cases, w, ww, mu, mumu, wmu, d, dd, mud, mudd = (np.asarray(x)[used] for x in cells)
    low, width = edges[used], np.diff(edges)[used]
    below = low - fine_cells_for(FLOAT32_UNIT)[used]  # where a float32 counts as on the edge
    mean = np.clip(d / w, -below, width)
    several = cases > 1
    reach = np.where(several, np.maximum(mean + below, width - mean), 0.0)
    largest = (mean + below) * (width - mean)
    variance = np.where(several, np.clip(dd / w - mean**2, 0, largest), 0.0)
    frequency = np.clip(mu / w, 0, 1)
    return _Cells(
        z=low + mean, reach=reach, cases=cases, mass=w, variance=variance, hits=mu,
        first=np.where(several, mud - mu * mean, 0.0),
        second=np.where(several, np.clip(mudd - 2 * mean * mud + mu * mean**2, 0, None), 0.0),
        mu=frequency,
        mu_variance=np.clip(mumu / w - frequency**2, 0, frequency * (1 - frequency)),
        case_mass=ww / w, case_hits=wmu / w,
    )  # fmt: skip


class _CellSums(NamedTuple):
    """Kernel sums at the mean of each cell, own cell left out (see `beta_cell_sums`)."""

    mass: FloatArray
    hits: FloatArray
    mass_q: FloatArray
    hits_q: FloatArray
    mass_qq: FloatArray
    hits_qq: FloatArray
    rest_misses: FloatArray
    rest_hits: FloatArray
    own: FloatArray


def _cell_sums(cells: _Cells, terms: BetaTerms, bends: FloatArray, bandwidth: float) -> _CellSums:
    from raterwise.kernels._kde import beta_cell_sums

    n, h = len(cells.z), bandwidth
    second = cells.mass * cells.variance / h**2
    moments = np.stack((
        cells.mass, second, cells.hits, cells.first / h, cells.second / h**2,
        cells.reach / h * second / 6,
    ))  # fmt: skip
    alone = cells.cases <= 1
    shift, own, out = np.empty(n), np.empty(n), np.zeros((8, n))
    c, g, _, s, _, peaks = terms
    cut = cutoff(cells.mass)

    def task(start: int, stop: int) -> None:
        beta_cell_sums(c, g, bends, s, peaks, moments, alone, cut, start, stop, shift, own, out)

    in_blocks(task, n)
    return _CellSums(*(*out, own))


def beta_kde_from_cells(
    cells: ScoreCells, *, p: int = 1, bandwidth: float, leave_out: LeaveOut = "case"
) -> tuple[float, float]:
    """KDE-ECE of one score from fine cells, and a bound on its distance from the exact value.

    `leave_out` is that of `top_label_kde`. The bound is computed from the third-order rest of
    every kernel sum and error, to leading order; it holds for cells narrower than the kernel,
    that is for bandwidths of 1e-5 and more.
    """
    if leave_out == "copy":
        # The sums that a row for every annotation would have: mass 1, frequency 0 or 1.
        cells = cells._replace(cases=cells.w, ww=cells.w, mumu=cells.mu, wmu=cells.mu)
    if cells.cases.sum() < 2:
        raise UndefinedMetricError(
            "kde_ece: needs at least two cases, to compare one with the others; "
            f"got {int(cells.cases.sum())}"
        )
    table = _central(cells)
    terms = beta_terms(table.z, bandwidth)
    a, b = terms.c + 1, (1 - table.z) / bandwidth + 1
    curve = -polygamma(1, a) - polygamma(1, b)
    bends = np.column_stack((terms.slope, curve, polygamma(2, b) - polygamma(2, a)))
    sums = _cell_sums(table, terms, bends, bandwidth)
    total = bound = 0.0
    spread = np.sqrt(table.mu_variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.nan_to_num(spread * np.sqrt((1 - table.mu) / table.mu))
        down = np.nan_to_num(spread * np.sqrt(table.mu / (1 - table.mu)))
    # Two kinds of case stand for the cell's observed frequencies, with their mean and variance.
    # With one rater they are the hits and the misses, exactly.
    for share, away in ((table.mu, up), (1 - table.mu, -down)):
        error, rest = _error_of_kind(table, terms, curve, sums, away, bandwidth, p)
        total += float(np.dot(table.mass * share, error))
        bound += float(np.dot(table.mass * share, rest))
    mass = float(table.mass.sum())
    return total / mass, bound / mass + 1e-12 + 1e-15 / bandwidth


def _error_of_kind(
    table: _Cells, terms: BetaTerms, curve: FloatArray, sums: _CellSums, away: FloatArray,
    bandwidth: float, p: int,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Mean |ratio - z|^p of a cell's cases whose frequency is mu + away, and a bound on its rest.

    In the log-odds s of the point, d log k / ds = (z_i - z_j) / h = q and d^2 log k / ds^2 is the
    same for all centres, so the derivatives of the ratio follow from sums of k q and k q^2.
    """
    z = table.z
    inside = np.clip(z * (1 - z), 2.3e-16, None)
    # Within a cell the frequencies may lean towards higher or lower scores.
    leaning = table.first * np.divide(
        1.0, table.mass * table.mu_variance, out=np.zeros_like(z), where=table.mu_variance > 1e-12
    )
    drift = leaning * away
    variance = np.clip(table.variance - leaning**2 * table.mu_variance, 0, None)
    mates, hit_mates = _cell_mates(table, terms, curve, away, drift, variance, bandwidth)
    mass = sums.mass + sums.own * mates
    ratio = (sums.hits + sums.own * hit_mates) / mass
    ratio_s = (sums.hits_q - ratio * sums.mass_q) / mass
    ratio_ss = (sums.hits_qq - ratio * sums.mass_qq - 2 * ratio_s * sums.mass_q) / mass
    first = ratio_s / inside - 1
    second = (ratio_ss - (1 - 2 * z) * ratio_s) / inside**2
    mean = ratio - z + first * drift + 0.5 * second * (variance + drift**2)
    rest = _rest(table, sums, mass, ratio, np.abs(ratio_s), np.abs(ratio_ss), inside)
    # Means next to 1 are rounded by as much as 2^-53.
    rest += 2.0**-53 * np.abs(first)
    own = sums.own * table.case_mass / mass
    # Squared variation of the cases' masses: the mean mass stands for them.
    unequal = np.clip(table.cases * table.case_mass / table.mass - 1, 0, None)
    # How cell mates weigh against the others depends on where in the cell the case itself is.
    blur = table.variance / (bandwidth * inside)
    rest += own * (own * unequal + blur)
    if p == 2:
        return mean**2 + first**2 * variance, (2 * np.abs(mean) + rest) * rest + own**2 * unequal
    swing = np.sqrt(mean**2 + first**2 * variance) - np.abs(mean)
    crossing = np.abs(first) * table.reach + rest > np.abs(mean)
    return np.abs(mean), rest + np.where(crossing, swing, 0.0) + _mixed(table, own, unequal, ratio)


def _cell_mates(
    table: _Cells, terms: BetaTerms, curve: FloatArray, away: FloatArray, drift: FloatArray,
    variance: FloatArray, bandwidth: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Kernel sums over the other cases of the own cell: of mass and of hits, over the own kernel.

    Leaving a case out moves the mean of those that stay away from it, so the moments that remain
    are taken: in the centre, of first and second order, and the product of centre and point.
    """
    out_mass = table.case_mass
    out_hits = table.case_hits + table.case_mass * away
    slope = (terms.s + terms.slope) / bandwidth
    bend = 0.5 * ((terms.s + terms.slope) ** 2 + curve) / bandwidth**2
    cross = 1 / (bandwidth * np.clip(table.z * (1 - table.z), 2.3e-16, None))
    square = drift**2 + variance
    mates = (
        np.clip(table.mass - out_mass, 0, None)
        - out_mass * (slope * drift + (bend + cross) * square)
        + bend * table.mass * table.variance
    )
    hit_mates = table.hits - out_hits * (1 + slope * drift + (bend + cross) * square)
    hit_mates += table.first * (slope + cross * drift) + bend * table.second
    return mates, hit_mates


def _rest(
    table: _Cells, sums: _CellSums, mass: FloatArray, ratio: FloatArray, ratio_s: FloatArray,
    ratio_ss: FloatArray, inside: FloatArray,
) -> FloatArray:  # fmt: skip
    """Bound what the second order leaves over, in the ratio, at each cell."""
    centres = (sums.rest_misses * ratio + sums.rest_hits * (1 - ratio)) / mass
    steepness = np.sqrt(np.clip(sums.mass_qq / mass - (sums.mass_q / mass) ** 2, 0, None))
    third = 0.5 * ratio_ss * steepness + ratio_s / 3  # the kernel's, and that of the log-odds
    return np.abs(centres) + third * table.reach * table.variance / inside**3


def _mixed(table: _Cells, own: FloatArray, unequal: FloatArray, ratio: FloatArray) -> FloatArray:
    """Bound the error where leaving out the own case makes errors of either sign in a cell.

    The mean of |x| lies between |mean x| and sqrt(mean x^2); with one rater and equal weights the
    two kinds of case are the cases themselves and nothing is left to bound.
    """
    middle = np.abs(ratio - table.z)
    spread = own**2 * (table.mu_variance + unequal)
    binary = table.mu_variance >= table.mu * (1 - table.mu) * (1 - 1e-9)
    settled = (binary & (unequal < 1e-9)) | (own * (1 + 3 * np.sqrt(unequal)) < middle)
    return np.where(settled, 0.0, np.sqrt(middle**2 + spread) - middle)
