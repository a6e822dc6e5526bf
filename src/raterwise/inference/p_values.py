"""P-values of metrics that are the statistic of a test: how often a calibrated model shows as much.

"normal": a z with variance 1; of patients, what they add up to has their own variance, and the z is
Student's. "signs": were the model calibrated, what each patient or case is off by could as well be
off in the other direction (a wild bootstrap), over the cells of the interval. Test and interval are
one statement: p is at most 1 - level exactly where the interval excludes 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raterwise.inference.measures import Measure
from raterwise.inference.noise import zero_tested_ends
from raterwise.results.estimate import Estimate
from raterwise.summaries import through

SIGNS = 11
"""The stream of random numbers that draws the signs."""


def tested(measure: Measure, found: Estimate) -> Estimate:
    """Return the estimate with the p-value of the metric's test, and an interval that agrees.

    Without units to make a test of, or where raters are a sample too, there is no p-value.
    """
    if measure.row.test == "normal":
        return _of_z(measure, found)
    p = _of_signs(measure)
    if p is None or found.low is None or found.high is None or found.value is None:
        return replace(found, p_value=p)
    level = measure.pass_.settings.level
    ends = zero_tested_ends((found.low, found.high), found.value, p, level)
    return replace(found, low=ends[0], high=ends[1], p_value=p)


def _of_z(measure: Measure, found: Estimate) -> Estimate:
    """Return z with its p-value, and z ± what a calibrated model's z varies by."""
    from scipy.stats import norm, t

    value, pass_ = found.value, measure.pass_
    assert value is not None
    if pass_.rater_draws is not None:
        return replace(found, p_value=None)
    law, error = norm(), 1.0
    if pass_.facts.grouped:
        if pass_.units is None or pass_.units < 2:
            return replace(found, p_value=None)
        sums = measure.unit_positives
        spread, total = float(np.sqrt((sums**2).sum())), float(sums.sum())
        if spread == 0:
            return replace(found, p_value=None)
        law = t(len(sums) - 1)
        error = abs(value / total) * spread if total else 0.0
    p = float(2 * law.sf(abs(value) / error)) if error else 1.0
    if found.low is None or not error:
        return replace(found, p_value=p)
    half = error * float(law.isf((1 - pass_.settings.level) / 2))
    return replace(found, low=value - half, high=value + half, p_value=p)


def _of_signs(measure: Measure) -> float | None:
    row, pass_ = measure.row, measure.pass_
    if not pass_.resampled or pass_.units is None or pass_.rater_draws is not None:
        return None
    random = np.random.default_rng([pass_.settings.seed, SIGNS])
    signs = random.integers(0, 2, (pass_.settings.resamples, pass_.units), np.int8) * 2 - 1
    if measure.plan.grows:  # whole rows are kept
        assert row.products is not None
        return p_of_signs(row.products(measure.scores(), measure.own, pass_.units), signs)
    cells, smoother = measure.cells, measure.smoother
    assert smoother is not None
    channels, bins = cells.table.weight.shape
    drawn = cells.by_cell.resampled(signs, channels * bins).reshape(len(signs), channels, bins, -1)
    by_chance = _squares(smoother, drawn[..., 4] - drawn[..., 3])
    seen = float(_squares(smoother, cells.table.deviation[None])[0])
    return _share(by_chance, seen)


def p_of_signs(products: np.ndarray, signs: np.ndarray) -> float:
    """Return how often sᵀ P s of signs (draws, units) is as large as Σ P, of products P.

    >>> p_of_signs(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[1, -1], [-1, -1], [-1, 1]]))
    0.5
    """
    signs = signs.astype(np.float64)
    by_chance = ((signs @ products) * signs).sum(axis=1)
    return _share(by_chance, float(products.sum()))


def _share(by_chance: np.ndarray, seen: float) -> float:
    # Pairs within a patient keep their sign in every draw, so they shift all of them alike.
    as_large = int((by_chance >= seen - 1e-12 * abs(seen)).sum())
    return (as_large + 1) / (len(by_chance) + 1)


def _squares(smoother: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return dᵀ K d of each draw, summed over the channels, with K^½ the smoother."""
    return np.asarray((through(smoother, deviation) ** 2).sum(axis=(-2, -1)))
