"""Weak calibration: are probabilities right on average, and are they spread as they should be?

Formulas over cells of scores in increasing order, with any leading axes for resamples. The model's
log odds l = log p / (1 - p) are recalibrated by logistic regression on what the raters said,

    log odds of a yes = a + b l,

which depends on the sums of mass and of hits at each score alone: every rater's label counts.

References
----------
Cox, Two further applications of a model for binary regression, Biometrika 45 (1958) 562-565. Van
Calster et al., A calibration hierarchy for risk models was defined, J Clin Epidemiol 74 (2016)
167-176. Austin & Steyerberg, The Integrated Calibration Index, Stat Med 38 (2019) 4051-4065.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterwise.densities.loess import weighted_quantile
from raterwise.metrics.ranking import near_one
from raterwise.summaries.bin_table import BinTable
from raterwise.types import Array

NOTHING = 1e-12
"""The part of all mass that is no label but what rounding left of one that was taken out."""
MOST_STEPS = 100
LONGEST_STEP = 2.0
CLOSE = 1e-8
"""The last of Newton's steps, whose error is about its square."""


def observed_expected_ratio(table: BinTable) -> Array:
    """O/E = Σ w μ / Σ w z, the mean over channels."""
    observed, expected = table.positive.sum(axis=-1), table.score.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(expected > 0, observed / expected, np.nan)
    return _over_channels(ratio)


def intercept_of_table(table: BinTable, clip: float | None = None) -> Array:
    """Return calibration in the large of cells, the mean over channels."""
    return _over_channels(calibration_in_the_large(*_log_odds_of(table, clip)))


def slope_of_table(table: BinTable, clip: float | None = None) -> Array:
    """Return the calibration slope of cells, the mean over channels."""
    return _over_channels(recalibration(*_log_odds_of(table, clip))[1])


def quantile_of_errors(table: BinTable, q: float) -> Array:
    """Return the q-quantile over cases of |smoothed observed - predicted|, the mean over channels.

    The table's deviations are smoothed: Σ w (μ - z) of a cell is its mass in the sample times the
    gap there. How many cases have it in a resample is what the resample holds.
    """
    gap = np.abs(table.deviation) / np.where(table.weight > 0, table.weight, 1)
    return _over_channels(weighted_quantile(gap, table.held, q))


def log_odds(score: Array) -> Array:
    """Return log p / (1 - p), infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(score) - np.log1p(-score))


def _log_odds_of(table: BinTable, clip: float | None) -> tuple[Array, Array, Array]:
    used = table.weight > 0
    score = np.where(used, table.score / np.where(used, table.weight, 1), 0.5)
    low, high = (1e-300, 1 - 1e-16) if clip is None else (clip, 1 - clip)
    return log_odds(np.clip(score, low, high)), table.weight, table.positive


def _over_channels(values: Array) -> Array:
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(values.mean(axis=-1))


def calibration_in_the_large(odds: Array, mass: Array, hits: Array) -> Array:
    """Return a of log odds = a + l, the slope held at 1; NaN where all labels agree.

    The root of Σ m (μ - σ(a + l)) = 0, which falls with a: Newton's steps, kept between ends that
    close in on it.

    >>> odds = np.log([0.2 / 0.8, 0.6 / 0.4])
    >>> a = calibration_in_the_large(odds, np.array([10.0, 10.0]), np.array([2.0, 6.0]))
    >>> bool(abs(a) < 1e-12)
    True
    """
    from scipy.special import expit

    total, yes = mass.sum(axis=-1), hits.sum(axis=-1)
    defined = (yes > NOTHING * total) & (total - yes > NOTHING * total)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.log(np.where(defined, yes / np.where(defined, total - yes, 1), 1))
    some = np.where(mass > 0, odds, np.nan)
    with np.errstate(invalid="ignore"):
        low = middle - np.nanmax(np.where(np.isnan(some), -np.inf, some), axis=-1)
        high = middle - np.nanmin(np.where(np.isnan(some), np.inf, some), axis=-1)
    low, high = np.where(defined, low, 0), np.where(defined, high, 0)
    a = (low + high) / 2
    for _ in range(MOST_STEPS):
        p = expit(a[..., None] + odds)
        excess = yes - (mass * p).sum(axis=-1)
        low, high = np.where(excess >= 0, a, low), np.where(excess <= 0, a, high)
        with np.errstate(invalid="ignore", divide="ignore"):
            newton = a + excess / (mass * p * (1 - p)).sum(axis=-1)
        inside = (newton >= low) & (newton <= high)
        after = np.where(inside, newton, (low + high) / 2)
        done = inside & (np.abs(after - a) <= CLOSE * (1 + np.abs(a)))
        a = after
        if (done | ~defined).all():
            break
    return np.asarray(np.where(defined, a, np.nan))


def recalibration(odds: Array, mass: Array, hits: Array) -> tuple[Array, Array]:
    """Return (a, b) of log odds = a + b l; NaN where there is no largest likelihood.

    Newton's steps on scaled log odds, none longer than a few units: the likelihood is concave, and
    where the labels overlap it has one summit.

    >>> odds = np.log([0.1 / 0.9, 0.5 / 0.5, 0.9 / 0.1])
    >>> a, b = recalibration(odds, np.full(3, 8.0), np.array([2.0, 4.0, 6.0]))
    >>> float(a.round(6)), float(b.round(6))  # log 3 / log 9
    (0.0, 0.5)
    """
    from scipy.special import expit

    mass, hits = near_one(mass, hits)
    total = mass.sum(axis=-1)
    defined = ~separated(mass, hits) & (total > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (mass * odds).sum(axis=-1) / total
        spread = np.sqrt((mass * (odds - centre[..., None]) ** 2).sum(axis=-1) / total)
        defined = defined & (spread > 1e-12 * (1 + np.abs(centre)))
    centre, spread = np.where(defined, centre, 0), np.where(defined, spread, 1)
    u = (odds - centre[..., None]) / spread[..., None]
    a = b = np.zeros(np.shape(total))
    for _ in range(MOST_STEPS):
        p = expit(a[..., None] + b[..., None] * u)
        rest, weight = hits - mass * p, mass * p * (1 - p)
        g0, g1 = rest.sum(axis=-1), (rest * u).sum(axis=-1)
        h0, h1, h2 = weight.sum(axis=-1), (weight * u).sum(axis=-1), (weight * u * u).sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            det = h0 * h2 - h1 * h1
            step0, step1 = (h2 * g0 - h1 * g1) / det, (h0 * g1 - h1 * g0) / det
            length = np.hypot(step0, step1)
            shrink = np.where(length > LONGEST_STEP, LONGEST_STEP / length, 1)
            a = a + np.where(defined, shrink * step0, 0)
            b = b + np.where(defined, shrink * step1, 0)
        done = length <= CLOSE * (1 + np.abs(a) + np.abs(b))
        if (done | ~defined | ~np.isfinite(length)).all():
            break
    slope = np.where(defined, b / spread, np.nan)
    return np.asarray(np.where(defined, a - slope * centre, np.nan)), np.asarray(slope)


def separated(mass: Array, hits: Array) -> NDArray[np.bool_]:
    """Tell whether a threshold tells every yes from every no, but for ties at the threshold.

    Then there is no largest likelihood: the slope runs off to infinity. Also where all labels are
    the same, or all scores.

    >>> separated(np.array([2.0, 2.0]), np.array([[0.0, 2.0], [1.0, 1.0]]))
    array([ True, False])
    """
    least = NOTHING * mass.sum(axis=-1, keepdims=True)
    yes, no = hits > least, mass - hits > least
    last = mass.shape[-1] - 1
    first_yes, first_no = yes.argmax(axis=-1), no.argmax(axis=-1)
    last_yes = last - yes[..., ::-1].argmax(axis=-1)
    last_no = last - no[..., ::-1].argmax(axis=-1)
    one_kind = ~(yes.any(axis=-1) & no.any(axis=-1))
    return np.asarray(one_kind | (last_no <= first_yes) | (last_yes <= first_no))
