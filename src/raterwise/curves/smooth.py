"""The smooth calibration curve of a class's probability, with a band by patient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from raterwise.brief import brief
from raterwise.catalog.recipes.weak_calibration import channels_of, smoother_of
from raterwise.curves.tables import ReliabilityCurve, Table
from raterwise.inference.inversion import less_smooth
from raterwise.inference.jackknife import noise_expansion, normal_quantile, several
from raterwise.inference.measures import Measure
from raterwise.summaries import ScoreMasses
from raterwise.types import FloatArray, Options

POINTS = 101
"""Places that a curve is evaluated at, evenly spread over the probabilities."""


@dataclass(frozen=True, eq=False)
class CalibrationCurve(Table):
    """Smoothed observed frequency against predicted probability, with a band.

    Attributes
    ----------
    name : str
        The class of the curve.
    predicted : array of shape (m,)
        Where the curve was evaluated, between the smallest and the largest probability.
    observed : array of shape (m,)
        The smoothed frequency among the raters; as in R, it may lie outside [0, 1].
    low, high : arrays of shape (m,)
        The band; NaN without resampling.
    level : float
        Pointwise confidence level of the band.
    binned : ReliabilityCurve or None
        The curve in bins, if requested.

    See Also
    --------
    calibration_curve : returns it.

    Examples
    --------
    >>> import raterwise as rw
    >>> probs = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> curve = rw.calibration_curve(probs, [0, 0, 1, 0, 1, 0, 1, 1], resamples=0)
    >>> len(curve.predicted), float(curve.predicted[0])
    (101, 0.1)
    """

    __repr__ = brief

    parts: ClassVar = {"binned": ReliabilityCurve}

    name: str
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    binned: ReliabilityCurve | None = None


def smooth_calibration(
    measure: Measure, name: str, at: FloatArray | None = None
) -> CalibrationCurve:
    """Return the curve whose distance from the diagonal is measured, of one class.

    The band is Wilson's, of as many cases as the curve rests on at a place; the design effect, of
    raters who agree and of cases of one patient, is that of all places together. It holds the band
    of a curve that is smoothed less as well, as the interval of the error does (`Metric.closer`).
    """
    scores = channels_of(measure.scores())[0]
    if at is None:
        at = np.linspace(scores.score[0], scores.score[-1], POINTS)
    observed = _observed(scores, measure.own, at)
    low, high = np.full_like(at, np.nan), np.full_like(at, np.nan)
    if measure.pass_.resampled:
        either = measure, replace(measure, own=less_smooth(measure))
        bands = [_band(m, at, _observed(scores, m.own, at)) for m in either]
        low, high = np.min([b[0] for b in bands], axis=0), np.max([b[1] for b in bands], axis=0)
    return CalibrationCurve(name, at, observed, low, high, measure.pass_.settings.level)


def _observed(scores: ScoreMasses, own: Options, at: FloatArray) -> FloatArray:
    """Return the smoothed frequency at each place; NaN where there are no scores around it."""
    smoother = smoother_of(scores.score, scores.mass, own)
    gap = smoother.curve(scores.hits / scores.mass - scores.score, at)
    inside = (at >= scores.score[0]) & (at <= scores.score[-1])
    return np.where(inside, at + gap, np.nan)


def _band(measure: Measure, at: FloatArray, observed: FloatArray) -> tuple[FloatArray, FloatArray]:
    table, pass_ = measure.cells.table, measure.pass_
    if pass_.units is not None and not several(measure.unit_sizes):
        return np.full(at.shape, np.nan), np.full(at.shape, np.nan)
    used = table.weight[0] > 0
    mass = table.weight[0, used]
    score = table.score[0, used] / mass
    smoother = smoother_of(score, mass, measure.own)
    weights = smoother.matrix(at) / mass
    fitted = smoother.curve(table.deviation[0, used] / mass, score)
    stack = measure.unsmoothed_stack()
    # What the raters said beyond the curve: how much of each score there is does not move it.
    beyond = stack.deviation[:, 0][:, used] - stack.weight[:, 0][:, used] * fitted
    variance = (beyond @ weights.T).var(axis=0)
    rate = np.clip(score + fitted, 0, 1)
    alone = (weights**2 * mass * rate * (1 - rate)).sum(axis=1)
    level = pass_.settings.level
    spread = 1.0 if pass_.units is None else noise_expansion(measure.unit_sizes, level) ** 2
    known = np.isfinite(observed)
    chance = float(alone[known].sum())
    # A curve that is 0 or 1 everywhere leaves nothing to compare the resamples with.
    effect = spread * (float(variance[known].sum()) / chance if chance > 1e-12 else 1.0)
    worth = 1 / (np.maximum(effect, 1 / mass.sum()) * (weights**2 * mass).sum(axis=1))
    # A local polynomial may leave [0, 1]; its band then reaches as far, as one does that holds it.
    low, high = wilson_interval(np.clip(observed, 0, 1), worth, level)
    return np.minimum(low, observed), np.maximum(high, observed)


def wilson_interval(
    rate: FloatArray, cases: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval (1927) of a proportion."""
    z2 = normal_quantile(level) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (rate + z2 / (2 * cases)) / (1 + z2 / cases)
        variance = np.maximum(rate * (1 - rate), 0) / cases + z2 / (4 * cases**2)
        reach = np.sqrt(z2 * variance) / (1 + z2 / cases)
    return np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1)
