"""P-values of metrics that are the statistic of a test: how often a calibrated model shows as much.

"normal": a z with variance 1; of patients, what they add up to has their own variance, and the z is
Student's. "signs": were the model calibrated, what each patient or case is off by could as well be
off in the other direction (a wild bootstrap), over the cells of the interval.
"""

from __future__ import annotations

import numpy as np

from raterwise.catalog import Metric
from raterwise.inference.passes import Pass
from raterwise.recipes.common import Options
from raterwise.summaries import through

__all__ = ["p_value"]

SIGNS = 11
"""The stream of random numbers that draws the signs."""


def p_value(row: Metric, own: Options, value: float, pass_: Pass) -> float | None:
    """Return the p-value of a metric's test; None without a test, or units to make it of."""
    if row.test == "normal":
        return _of_z(row, own, value, pass_)
    if row.test == "signs":
        return _of_signs(row, own, pass_)
    return None


def _of_z(row: Metric, own: Options, value: float, pass_: Pass) -> float | None:
    from scipy.special import ndtr
    from scipy.stats import t

    if not pass_.facts.grouped:
        return float(2 * ndtr(-abs(value)))
    if pass_.units is None or pass_.units < 2:
        return None
    sums = pass_.cells(row, own).sums_by_unit(4)
    spread = float(np.sqrt((sums**2).sum()))
    return None if spread == 0 else float(2 * t.sf(abs(sums.sum()) / spread, len(sums) - 1))


def _of_signs(row: Metric, own: Options, pass_: Pass) -> float | None:
    if not pass_.resampled or pass_.units is None or pass_.rater_draws is not None:
        return None
    cells, smoother = pass_.cells(row, own), pass_.smoother(row, own)
    assert smoother is not None
    channels, bins = cells.table.weight.shape
    random = np.random.default_rng([pass_.settings.seed, SIGNS])
    signs = random.integers(0, 2, (pass_.settings.resamples, pass_.units), np.int8) * 2 - 1
    drawn = cells.by_cell.resampled(signs, channels * bins).reshape(len(signs), channels, bins, -1)
    by_chance = _squares(smoother, drawn[..., 4] - drawn[..., 3])
    seen = float(_squares(smoother, cells.table.deviation[None])[0])
    # Pairs within a patient keep their sign in every draw, so they shift all of them alike.
    as_large = int((by_chance >= seen - 1e-12 * abs(seen)).sum())
    return (as_large + 1) / (len(signs) + 1)


def _squares(smoother: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return dᵀ K d of each draw, summed over the channels, with K^½ the smoother."""
    return np.asarray((through(smoother, deviation) ** 2).sum(axis=(-2, -1)))
