"""What a perfectly calibrated model would show: its noise, and the test of "is it off at all?".

All of it follows from the table of a metric: the model's own probabilities say how the labels would
fall if they were right. So it is there for tables in memory, of streams and of images alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from raterwise.errors import InvalidInputError
from raterwise.inference.jackknife import resampling_of
from raterwise.summaries import through
from raterwise.types import FloatArray

Norm = Callable[[FloatArray], FloatArray]
CLEAR = 0.05
"""A p-value up to which draws have answered, so that it matters only how clear the answer is."""


def propagated_noise(weights: ArrayLike, noise: ArrayLike) -> FloatArray:
    """Return the standard errors of weighted sums of independent cells: sqrt(Σ_i S_ji² σ_i²).

    `weights` S (cells out, cells in), or one for each channel, is the smoother of a kernel error,
    or the shares that a soft bin has of each cell of scores; `noise` σ (…, cells in) is that of
    `calibrated_noise` for the cells before they are smoothed. Neighbours share cases, but each has
    this much noise by itself.

    >>> propagated_noise([[0.5, 0.5], [0.0, 1.0]], [0.3, 0.4])
    array([0.25, 0.4 ])
    """
    smoother = np.asarray(weights, dtype=np.float64)
    error = np.asarray(noise, dtype=np.float64)
    if smoother.ndim not in (2, 3) or smoother.shape[-1] != error.shape[-1]:
        raise InvalidInputError(
            f"weights: must be (cells out, {error.shape[-1]}) for as many cells in; "
            f"got {smoother.shape}"
        )
    return np.sqrt(through(smoother**2, error**2))


def soft_noise(
    score: ArrayLike,
    counts: ArrayLike,
    shares: ArrayLike,
    cases: float,
    raters: float = 1,
    agreement: float = 1,
) -> FloatArray:
    """Return the standard error of each soft bin's deviation for a perfectly calibrated model.

        sqrt( z̄_b (1 − z̄_b) · Σ_c part_c s_cb² / cases · (a + (1 − a) / raters) )

    as `calibrated_noise`, with the squares of the shares s_cb that bin b has of the cases in cell
    c: a case in several bins is not in each of them with all its noise.

    Parameters
    ----------
    score: z̄_b, the mean score of a soft bin.
    counts: how many cases have their score in each cell; `shares` (cells, bins) of its centre.
    cases, raters, agreement: as in `calibrated_noise`.

    >>> soft_noise([0.5, 0.5], counts=[100], shares=[[0.5, 0.5]], cases=100)
    array([0.025, 0.025])
    """
    mean, number = np.asarray(score, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    per_case = (agreement + (1 - agreement) / raters) / cases
    spread = propagated_noise(np.asarray(shares).T, np.sqrt(number / number.sum() * per_case))
    return np.sqrt(np.clip(mean * (1 - mean), 0, None)) * spread


def coarser_cells(weight: ArrayLike) -> FloatArray:
    """Return (cells, bins): which bin of equal mass each cell of rising scores belongs to.

    A smoothed norm cannot see deviations that change sign within the kernel's width, so that its
    upper end lies below the true error of a model that is too sure here and not sure enough there.
    The same deviations summed over bins keep their signs apart; 2 n^(1/3) bins, at least 15, for a
    weight of n cases, as many as can be told from noise.

    >>> coarser_cells([1.0] * 30).sum(axis=0).tolist() == [2.0] * 15
    True
    """
    mass = np.asarray(weight, dtype=np.float64)
    bins = int(np.clip(round(2 * float(mass.sum()) ** (1 / 3)), 15, max(len(mass), 15)))
    upto = np.cumsum(mass)
    place = np.clip(bins * (upto - mass / 2) / max(float(upto[-1]), 1e-300), 0, bins - 1)
    return np.eye(bins)[place.astype(np.int64)]


def calibrated_draws(
    score: ArrayLike,
    share: ArrayLike,
    cases: float,
    raters: float = 1,
    agreement: float = 1,
    *,
    draws: int = 1000,
    random: np.random.Generator,
) -> FloatArray:
    """Return tables of deviations (draws, *cells) as a calibrated model would have them.

    Labels are drawn from the model's own probabilities (consistency resampling). In a cell with
    the part `share` of all cases and the mean score z̄ they are binomial,

        d = share · ((X + Y / R) / n − z̄),     n = share · cases,   M ~ Binomial(n, a),
        X ~ Binomial(M, z̄),     Y ~ Binomial(m, z̄),     m = (n − M) R

    with R raters of agreement a, as in `calibrated_noise`: those of M cases all say the same, and
    of the others each by himself. So a bin of one case is off by all that it can be as often as its
    raters are wrong together. n and m are rounded and the spread corrected for it. Cells of one
    channel hold different cases, so they are independent; channels that hold the same cases are not
    (`in_concert`).

    References
    ----------
    Bröcker and Smith (2007), Increasing the reliability of reliability diagrams, Weather and
    Forecasting 22, 651-661.

    >>> random = np.random.default_rng(0)
    >>> drawn = calibrated_draws([0.5], [1.0], cases=100, draws=4000, random=random)
    >>> drawn.shape, round(float(drawn.std()), 2)
    ((4000, 1), 0.05)
    """
    mean, part = np.broadcast_arrays(
        np.clip(np.asarray(score, dtype=np.float64), 0, 1), np.asarray(share, dtype=np.float64)
    )
    number = part * cases
    whole = np.maximum(np.round(number), 1).astype(np.int64)
    size = (draws, *mean.shape)
    if agreement >= 1 or raters <= 1:
        found = random.binomial(whole, mean, size) / whole - mean
    else:
        same = random.binomial(whole, agreement, size)
        found = random.binomial(same, mean) - same * mean
        labels = (whole - same) * raters
        by_oneself = np.round(labels).astype(np.int64)
        apart = random.binomial(by_oneself, mean) - by_oneself * mean
        found = (found + apart * np.sqrt(labels / np.maximum(by_oneself, 1)) / raters) / whole
    spread = np.sqrt(whole / np.where(number > 0, number, 1))
    return np.asarray(part * spread * found)


def in_concert(draws: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the draws of each cell in an order in which cells vary together.

    `draws` (draws, *cells) of `calibrated_draws` are independent, but cells of channels that hold
    the same cases are not: a label that falls on one class does not fall on another. Normal numbers
    with the correlations of `covariance` (cells, cells) give the order; each cell keeps its draws
    (Iman and Conover 1982). Which numbers is always the same, as good as random.

    >>> apart = np.random.default_rng(0).normal(size=(500, 2))
    >>> opposed = in_concert(apart, np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> round(float(np.corrcoef(opposed.T)[0, 1]), 1)
    -1.0
    """
    flat = draws.reshape(len(draws), -1)
    deviation = np.sqrt(covariance.diagonal())
    varies = deviation > 1e-9 * deviation.max(initial=0)
    scale = np.where(varies, deviation, 1)
    within = (covariance / np.outer(scale, scale))[np.ix_(varies, varies)]
    values, vectors = np.linalg.eigh(within)
    root = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.random.default_rng(0).standard_normal((len(flat), len(within))) @ root.T
    place = normal.argsort(axis=0).argsort(axis=0)
    out = flat.copy()
    out[:, varies] = np.take_along_axis(np.sort(flat[:, varies], axis=0), place, axis=0)
    return out.reshape(draws.shape)


def design_effect(
    deviation: ArrayLike, weight: ArrayLike, variance: float, least: float = 1.0
) -> float:
    """Return by how much patients make the noise of deviations larger than independent cases do.

        D = max(least, Σ_g (d_g − h_g Σ d)² / (1 − Σ h²) / variance),    h_g = W_g / Σ W

    d_g is the sum of w (μ − z) over the cases of patient g (one for each of several channels) and
    `variance` what it would add up to if cases were independent and the model calibrated:
    Σ w² z (1 − z) (a + (1 − a) / R). One number for all cells: the cells by themselves have too few
    cases to say.

    >>> design_effect([2.0, -2.0, 2.0, -2.0], [4, 4, 4, 4], variance=4.0)  # four alike in each
    5.333333333333333
    """
    sums, weights = np.asarray(deviation, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    share = weights / weights.sum()
    left = 1 - float(np.sum(share**2))
    if variance <= 0 or left <= 0:
        return 1.0
    apart = sums - share.reshape(-1, *[1] * (sums.ndim - 1)) * sums.sum(axis=0)
    return max(least, float(np.sum(apart**2)) / left / variance)


def of_patients(
    draws: FloatArray,
    effect: float,
    sizes: ArrayLike,
    channels: int = 1,
    *,
    random: np.random.Generator,
) -> FloatArray:
    """Return draws of independent cases as far apart as those of patients, as far as few can tell.

    The design effect D that was seen (`design_effect`, with least=0) is itself of few patients,
    f = channels / Σ h² of them if they were equal, and may be small by chance. Draws are times

        sqrt(max(1, D (1 + 1 / f)) ν / χ²_ν),  ν = f / s,  s = 1 − 1 / max(1, D (1 + sqrt(2 / f)))

    which makes Student's distribution of the normal one where patients say most of the variance (s
    is their part of it, with D one standard error higher) and leaves it where they say nothing.
    Were D known instead, eight patients of 1 to 137 cases would raise 13 to 17% false alarms.

    >>> draws = np.random.default_rng(1).normal(size=(20_000, 1))
    >>> alone = of_patients(draws, 0.3, [5] * 9, random=np.random.default_rng(0))
    >>> bool((alone == draws).all())
    True
    >>> few = of_patients(draws, 100.0, [5] * 9, random=np.random.default_rng(0)) / 10
    >>> round(float(np.quantile(few, 0.975)), 1)  # Student's t with about 9 degrees: 2.26 · 1.05
    2.4
    """
    freedom = resampling_of(sizes)[2] * channels
    upper = max(1.0, effect * (1 + np.sqrt(2 / freedom)))
    scale = np.full(len(draws), max(1.0, effect * (1 + 1 / freedom)))
    if upper > 1:
        tails = freedom / (1 - 1 / upper)
        scale *= tails / random.chisquare(tails, len(draws))
    return np.asarray(draws * np.sqrt(scale).reshape(-1, *[1] * (draws.ndim - 1)))


def p_of_calibration(norm: Norm, observed: float, draws: FloatArray) -> float:
    """Return how often a calibrated model shows so large an error: (1 + #{‖d‖ ≥ T}) / (1 + B).

    `draws` are those of `calibrated_draws`, smoothed where the metric is.

    >>> ece = lambda table: np.abs(table).sum(axis=-1)
    >>> p_of_calibration(ece, 0.3, np.array([[0.1, 0.1], [0.2, 0.2], [0.0, 0.1]]))
    0.5
    """
    return share_as_large(norm(draws), observed * (1 - 1e-12))


def share_as_large(null: FloatArray, observed: float, sides: int = 1) -> float:
    """Return `sides` times the share of draws that are as large: (1 + #{T* ≥ T}) / (1 + B).

    Where that is clear and no draw is as large, it is at most what is left to any distribution with
    one mode so many standard deviations out (the one-sided inequality of Vysochanskij and Petunin;
    Mercadier and Strobel 2021). Few draws then do not make an error that is off by far look like
    one of several that chance explains.

    >>> null = np.linspace(0, 1, 100)
    >>> share_as_large(null, 0.9), round(share_as_large(null, 30.0), 6)
    (0.10891089108910891, 4.3e-05)
    """
    as_large = int(np.count_nonzero(null >= observed))
    p = sides * (1 + as_large) / (1 + len(null))
    if as_large or p > CLEAR or (spread := float(np.std(null))) == 0:
        return float(p)
    beyond = (observed - float(null.mean())) / spread
    return float(min(p, sides * 4 / 9 / (1 + beyond**2)) if beyond**2 > 5 / 3 else p)


def zero_tested_ends(
    ends: tuple[float, float],
    value: float,
    p: float,
    level: float = 0.95,
    gap: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Return the interval of a calibration error whose low end is 0 exactly where p > 1 - level.

    At zero the noise is known: it is that of the model's own probabilities (`p_of_calibration`).
    Away from zero it is not, and `ends`, from resampled noise, hold. Where zero is rejected but no
    truth above it is, the interval begins at a hundredth of the value. `gap` is the interval of
    the overall gap (`gap_interval`), below which such an error cannot lie.

    >>> zero_tested_ends((0.0, 0.12), 0.08, p=0.03), zero_tested_ends((0.02, 0.12), 0.08, p=0.2)
    ((0.0008, 0.12), (0.0, 0.12))
    """
    low, high = ends
    least, most = (0.0, 0.0) if gap is None else gap
    low = max(low, least, value / 100) if p <= 1 - level else 0.0
    return min(low, value), max(high, most, value)
