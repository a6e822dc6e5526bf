"""How far a metric of fine cells can be from that of the scores themselves.

A cell knows the mass, the hits and the moments of its cases, not their order. Each bound is the
worst that any order within the cells could do; a cell whose scores are all equal hides nothing.
bound(cells, value of the cells, options of the metric).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.densities.laplace import laplace_pairs
from raterwise.metrics.proper import unequal_weights
from raterwise.summaries.cells import CellSums, fine_cells
from raterwise.types import FloatArray, Options


class _Cells(NamedTuple):
    """The cells of one channel that hold cases, in increasing order."""

    mass: FloatArray
    hits: FloatArray
    low: FloatArray
    """The least score."""
    high: FloatArray
    mean: FloatArray
    lean: FloatArray
    """Σ w (μ - z)(z - mean)."""
    square: FloatArray
    """Σ w (z - mean)²."""
    squares: FloatArray
    """Σ w (μ - z)²."""
    gap: FloatArray
    """Σ w |μ - z| at most."""
    tied: NDArray[np.bool_]


def _cells(sums: CellSums, channel: int) -> _Cells:
    used = np.flatnonzero(sums.fine[channel, :, 1] > 0)
    _, w, _, mu, mumu, _, d, dd, mud, _ = sums.fine[channel, used].T
    edge = fine_cells()[used]
    lowest, highest = sums.lowest[channel, used], sums.highest[channel, used]
    tied = sums.tied[channel, used]
    mean = np.clip(d / w, lowest, highest)
    variance = np.clip(dd / w - mean**2, 0, (highest - mean) * (mean - lowest))
    low, high = edge + lowest, np.minimum(edge + highest, 1)
    # From the moments about the edge, and |μ - z| <= μ (1 - z) + (1 - μ) z.
    squares = mumu - 2 * (mud + edge * mu) + dd + 2 * edge * d + edge**2 * w
    rough = mu * (1 - low) + (w - mu) * high
    gap = np.minimum(rough, np.sqrt(w * np.clip(squares, 0, None)) * (1 + 1e-9) + 1e-12 * w)
    lean = np.where(tied, 0.0, (mud - mean * mu) - (dd - mean * d))
    square = np.where(tied, 0.0, w * variance)
    return _Cells(w, mu, low, high, edge + mean, lean, square, squares, gap, tied)


def ends_of_cells(sums: CellSums) -> Iterator[tuple[FloatArray, ...]]:
    """Yield, for each channel, mass, hits, least, mean and largest score of its cells."""
    for channel in range(len(sums.fine)):
        cells = _cells(sums, channel)
        yield cells.mass, cells.hits, cells.low, cells.mean, cells.high


def auroc(sums: CellSums, value: float, options: Options) -> float:
    """Pairs of a right and a wrong case within a cell count half, and could count 0 or 1.

    On average over the channels that have positives and negatives.
    """
    each = []
    for channel in range(len(sums.fine)):
        cells = _cells(sums, channel)
        wrong = cells.mass - cells.hits
        pairs = cells.hits.sum() * wrong.sum()
        if pairs > 0:
            each.append(np.where(cells.tied, 0, 0.5 * cells.hits * wrong).sum() / pairs)
    return float(np.mean(each)) if each else 0.0


auccc = auroc
"""Of the one channel that a confidence is."""


def average_precision(sums: CellSums, value: float, options: Options) -> float:
    """All positives of a cell could stand above its negatives, or below them.

    With C accepted before a cell of mass m, T of them and h of its own positive, the precision at
    a positive of the cell is at most (T + h) / (C + h), where the cell as a tie has
    (T + h) / (C + m). After D = C + m - h others it is at least, summed over the positives,
    ∫ (T + x) / (D + x) dx from 0 to h = h - (D - T) log(1 + h / D).
    """
    each = []
    for channel in range(len(sums.fine)):
        cells = _cells(sums, channel)
        if not cells.hits.sum() > 0:
            continue
        all_hits, all_mass = cells.hits[::-1], cells.mass[::-1]
        open_ = ~cells.tied[::-1] & (all_hits > 0)  # also of positives alone, one after the other
        hits, mass = all_hits[open_], all_mass[open_]
        before, found = ((np.cumsum(x) - x)[open_] for x in (all_mass, all_hits))
        tie = hits * (found + hits) / (before + mass)
        above = hits * (found + hits) / (before + hits)
        others = np.maximum(before + mass - hits, 0)
        # Without others before them, all that were found among these, positives have precision 1.
        below = hits - (others - found) * np.log1p(hits / np.where(others > 0, others, 1))
        worst = max(float((above - tie).sum()), float((tie - below).sum()))
        each.append(worst / all_hits.sum())
    return float(np.mean(each)) if each else 0.0


def augrc(sums: CellSums, value: float, options: Options) -> float:
    """AUGRC = (1 - AUCCC) a (1 - a) + …, with an accuracy a that cells know exactly."""
    cells = _cells(sums, 0)
    accuracy = cells.hits.sum() / cells.mass.sum()
    return float(auccc(sums, value, options) * accuracy * (1 - accuracy))


def aurc(sums: CellSums, value: float, options: Options) -> float:
    """All wrong cases of a cell could be its most confident ones, or its least.

    With C accepted before a cell of mass m, w of it wrong, the j-th acceptance has between
    max(0, j - (m - w)) and min(j, w) more errors, where the cell as a tie has j w / m.
    """
    from scipy.special import digamma

    cells = _cells(sums, 0)
    mass, wrong = cells.mass[::-1], (cells.mass - cells.hits)[::-1]
    before = np.cumsum(mass) - mass
    rate = wrong / mass

    def ones(a: FloatArray, b: FloatArray) -> FloatArray:
        """Σ_{j=a+1…b} 1 / (C + j)."""
        return np.asarray(digamma(before + b + 1) - digamma(before + a + 1))

    def ramp(a: FloatArray, b: FloatArray) -> FloatArray:
        """Σ_{j=a+1…b} j / (C + j)."""
        return np.asarray(b - a - before * ones(a, b))

    none, right = np.zeros_like(mass), mass - wrong
    above = ramp(none, wrong) + wrong * ones(wrong, mass) - rate * ramp(none, mass)
    below = rate * ramp(none, mass) - ramp(right, mass) + right * ones(right, mass)
    open_ = ~cells.tied[::-1]
    worst = max(float(above[open_].sum()), float(below[open_].sum()))
    return max(worst, 0.0) / float(mass.sum())


def ks(sums: CellSums, value: float, options: Options) -> float:
    """The largest that the cumulative gap can be within a cell; see `_reaches`."""
    reaches, total = _reaches(sums)
    return max(sum(max(high, -low) for high, low in reaches) / total - value, 0.0)


def kuiper(sums: CellSums, value: float, options: Options) -> float:
    """The highest the cumulative gap can be within a cell, less the lowest, as in `ks`."""
    reaches, total = _reaches(sums)
    return max(sum(high - low for high, low in reaches) / total - value, 0.0)


def _reaches(sums: CellSums) -> tuple[list[tuple[float, float]], float]:
    """Return the highest and lowest cumulative gap of each channel, and the mass of all.

    Between two edges the gap can rise by its hits, or fall by its misses, first.
    """
    reaches, total = [], 0.0
    for channel in range(len(sums.fine)):
        cells = _cells(sums, channel)
        gap = cells.hits - cells.mass * cells.mean
        before = np.cumsum(gap) - gap
        up = np.where(cells.tied, 0, cells.hits * (1 - cells.low))
        down = np.where(cells.tied, 0, (cells.mass - cells.hits) * cells.high)
        ends = before + gap
        high = max(float((before + up).max(initial=0)), float(ends.max(initial=0)))
        low = min(float((before - down).min(initial=0)), float(ends.min(initial=0)))
        reaches.append((high, low))
        total += float(cells.mass.sum())
    return reaches, total


def fpr(sums: CellSums, value: float, options: Options) -> float:
    """The threshold lies within one cell: any part of its wrong cases may be above it."""
    cells = _cells(sums, 0)
    right = np.cumsum(cells.hits[::-1])
    wrong = (cells.mass - cells.hits)[::-1]
    first = int(np.argmax(right >= 0.95 * right[-1] * (1 - 1e-12)))
    total = float(wrong.sum())
    return 0.0 if cells.tied[::-1][first] or total <= 0 else float(wrong[first]) / total


def failure_average_precision(sums: CellSums, value: float, options: Options) -> float:
    """What is looked for could come first in its cell, or last.

    With A found among B before a cell of mass m that holds f of them, the j-th found there has a
    precision between (A + j) / (B + j + m - f) and (A + j) / (B + j), where a tie has one for all.
    """
    from scipy.special import digamma

    cells = _cells(sums, 0)
    mass, found = cells.mass, cells.mass - cells.hits
    open_ = ~cells.tied
    if options["of"] == "successes":
        mass, found, open_ = mass[::-1], cells.hits[::-1], open_[::-1]
    a, b = np.cumsum(found) - found, np.cumsum(mass) - mass
    tie = found * (a + found) / (b + mass)

    def precisions(below: FloatArray) -> FloatArray:
        """Σ_{j=1…f} (A + j) / (below + j)."""
        return np.asarray(found + (a - below) * (digamma(below + found + 1) - digamma(below + 1)))

    first, last = precisions(b), precisions(b + mass - found)
    total = float(found.sum())
    off = max(float((first - tie)[open_].sum()), float((tie - last)[open_].sum()), 0.0)
    return off / total if total > 0 else 0.0


def adaptive(sums: CellSums, value: float, options: Options) -> float:
    """A bin that ends within a cell may take any part of it: 2 Σ w |μ - z| over such cells."""
    moved = total = 0.0
    for channel in range(len(sums.fine)):
        cells = _cells(sums, channel)
        if not len(cells.mass):
            continue
        mass = np.cumsum(cells.mass)
        targets = mass[-1] * np.arange(1, options["bins"]) / options["bins"]
        cut = np.unique(np.searchsorted(mass, targets * (1 - 1e-12), side="left"))
        cut = cut[cut < len(mass)]
        moved += 2 * float(np.where(cells.tied, 0, cells.gap)[cut].sum())
        total += float(mass[-1])
    return moved / total


def sweep(sums: CellSums, value: float, options: Options) -> float:
    """The number of bins hangs on every score: any partition is between one bin and a bin each."""
    one = each = total = 0.0
    for channel in range(len(sums.fine)):
        cells = _cells(sums, channel)
        if cells.tied.all():
            one, each = one + value * cells.mass.sum(), each + value * cells.mass.sum()
        else:
            one += abs(float((cells.hits - cells.mass * cells.mean).sum()))
            each += float(cells.gap.sum())
        total += float(cells.mass.sum())
    return max(value - one / total, each / total - value, 0.0)


def smooth(sums: CellSums, value: float, options: Options) -> float:
    """Moving residuals to the mean of their cell changes what the kernel K makes of them.

    By the first moment times ∫|K'| = sqrt(2/π) / σ, and by half the second times
    ∫|K''| = 4 φ(1) / σ², or altogether by Σ w |z - mean| ∫|K'|. The grid of the transform adds
    h²/8 ∫|K''| to a residual on either side. SmoothECE falls as σ grows, so the σ that equals it
    moves by no more than its value at one σ does.
    """
    cells = _cells(sums, 0)
    if cells.tied.all():
        return 0.0
    sigma = max(value, 2.0**-12)  # the finest kernel of `densities.smooth_ece`
    slope, bend = np.sqrt(2 / np.pi) / sigma, 0.96788 / sigma**2
    grid = 2 * cells.gap.sum() * 2.0**-28 / 8 * bend
    second = slope * np.abs(cells.lean).sum() + 0.5 * bend * cells.square.sum()
    first = slope * np.sqrt(cells.mass * cells.square).sum()
    return float((min(first, second) + grid) / cells.mass.sum())


def kde_of_cells(sums: CellSums, options: Options) -> tuple[float, float]:
    """Return the KDE-ECE from its cells, and a bound on its error; the mean over classes."""
    from raterwise.densities import bandwidth
    from raterwise.densities import cells as kernel_cells

    given, found = options["bandwidth"], []
    for c, fine in enumerate(sums.fine):
        table = kernel_cells.ScoreCells(*np.ascontiguousarray(fine.T))
        chosen = given[c] if isinstance(given, tuple) else given
        if chosen is None:
            chosen = bandwidth.select_bandwidth_from_cells(table.w, table.d)
        found.append(
            kernel_cells.beta_kde_from_cells(
                table, p=options["p"], bandwidth=float(chosen), leave_out=options["leave_out"]
            )
        )
    value, bound = np.mean(found, axis=0)
    return float(value), float(bound)


def kernel_of_cells(sums: CellSums, options: Options) -> tuple[float, float]:
    """Return the squared kernel error from cells, and a bound on its error.

    Cases stand at the mean of their cell, where the kernel of two of them is off by at most
    (|z - mean| + |z' - mean'|) / h. What each case adds with itself is known exactly.
    """
    each = [_kernel_of_channel(sums, c, options) for c in range(len(sums.fine))]
    value, bound = np.mean(each, axis=0)
    return float(value), float(bound)


def _kernel_of_channel(sums: CellSums, c: int, options: Options) -> tuple[float, float]:
    cells, cases = _cells(sums, c), float(sums.fine[c, :, 0].sum())
    total, squares = float(cells.mass.sum()), float(sums.fine[c, :, 2].sum())
    residual = cells.hits - cells.mass * cells.mean
    pairs = float(laplace_pairs(cells.mean, residual[None], options["bandwidth"])[0])
    whole = 2 * pairs + float((residual**2).sum())
    width = np.where(cells.tied, 0, np.maximum(cells.high - cells.mean, cells.mean - cells.low))
    moved = 2 * float(cells.gap.sum()) * float((cells.gap * width).sum()) / options["bandwidth"]
    if options["estimator"] == "plugin":
        return whole / total**2, moved / total**2
    if not np.isclose(cases * squares, total**2, rtol=1e-9, atol=0):
        raise unequal_weights("kernel error")
    if cases < 2:
        return float("nan"), 0.0
    own = float(cells.squares.sum()) * total / cases
    scale = total**2 * (1 - 1 / cases)
    return (whole - own) / scale, moved / scale
