"""Do sub-groups differ? Levels are permuted between patients, over all levels and metrics at once.

If a variable has nothing to do with how well the model does, its levels could have been handed out
to the patients in any other way. The differences that arise then, of every level from the rest and
of every metric, say which of the observed ones is too large, and how often the largest of them all
is: the family-wise error is kept whatever the sizes of the levels, the correlation of the metrics
and of a patient's cases, and the noise that pushes calibration errors up in small levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.exchangeability.permutations import step_down
from raterwise.types import FloatArray

Formula = Callable[[FloatArray], FloatArray]
Grouped = Callable[[NDArray[Any], int], FloatArray]
"""grouped(level of each unit, levels) -> (levels, …): the sums of the units of each level."""


def level_test(
    sums: Sequence[Grouped],
    formulas: Sequence[Formula],
    levels: ArrayLike,
    *,
    random: np.random.Generator,
    permutations: int = 999,
    strata: ArrayLike | None = None,
) -> FloatArray:
    """Return p-values (levels, metrics) of each level against the rest, adjusted over all of them.

    With d_lm the difference of level l from the rest in metric m, and μ_lm and σ_lm its mean and
    standard deviation over the permutations (the observed one among them), t_lm = |d_lm − μ_lm| /
    σ_lm, and `step_down` says how often chance makes any of them so large (step-down max-T). Where
    the level or the rest has no value t_lm is 0, and the p of the observed one NaN.

    Parameters
    ----------
    sums: per metric, a function that adds up the tables of the units by level.
    formulas: per metric, the map from tables (n, …) to values (n,); NaN where there is none.
    levels: the level of each unit, 0 … L − 1. A level is the patient's: where a patient has cases
        in several levels, give a unit per case and the patient as its stratum.
    strata: units swap levels within a stratum only; all are in one by default.

    References
    ----------
    Westfall and Young (1993), Resampling-Based Multiple Testing, algorithm 4.1.

    Examples
    --------
    >>> right = np.array([1.0] * 20 + [0.0] * 10 + [1.0] * 10)
    >>> sums = lambda codes, levels: np.bincount(codes, right, levels) / np.bincount(codes)
    >>> random = np.random.default_rng(0)
    >>> p = level_test([sums], [lambda share: share], np.repeat([0, 1], 20), random=random)
    >>> bool((p < 0.01).all())
    True
    """
    codes = np.asarray(levels)
    number = int(codes.max()) + 1
    blocks = _blocks(np.zeros(len(codes)) if strata is None else np.asarray(strata))
    drawn = np.empty((permutations + 1, number, len(sums)))
    shuffled = codes.copy()
    for b in range(permutations + 1):
        if b:
            for block in blocks:
                shuffled[block] = random.permutation(codes[block])
        drawn[b] = _differences(sums, formulas, shuffled, number)
    return _adjusted(drawn)


def _blocks(strata: NDArray[Any]) -> list[NDArray[np.int64]]:
    """Return the units of each stratum that has several."""
    order = np.argsort(strata, kind="stable")
    ends = np.flatnonzero(np.diff(strata[order])) + 1
    return [block for block in np.split(order, ends) if len(block) > 1]


def _differences(
    sums: Sequence[Grouped], formulas: Sequence[Formula], codes: NDArray[Any], levels: int
) -> FloatArray:
    """Return level minus rest (levels, metrics)."""
    found = np.empty((levels, len(sums)))
    with np.errstate(invalid="ignore", divide="ignore"):
        for m, (grouped, formula) in enumerate(zip(sums, formulas, strict=True)):
            here = grouped(codes, levels)
            found[:, m] = formula(here) - formula(here.sum(axis=0) - here)
    return found


def _adjusted(drawn: FloatArray) -> FloatArray:
    """Return the p-values from differences (1 + permutations, levels, metrics), observed first."""
    defined = np.isfinite(drawn)
    count = np.maximum(defined.sum(axis=0), 1)
    mean = np.where(defined, drawn, 0).sum(axis=0) / count
    spread = np.sqrt((np.where(defined, drawn - mean, 0) ** 2).sum(axis=0) / count)
    # Differences that cannot vary, or are not defined, are no evidence of anything.
    moves = defined & (spread > 1e-12)
    t = np.where(moves, np.abs(drawn - mean) / np.where(spread > 1e-12, spread, 1), 0)
    # One that is undefined as observed stays among those that chance may make large: had levels
    # fallen otherwise, it would have been looked at.
    flat = t.reshape(len(t), -1)
    adjusted = step_down(flat[1:], flat[0], margin=1e-12).reshape(t.shape[1:])
    return np.where(defined[0], adjusted, np.nan)
