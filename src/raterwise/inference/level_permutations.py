"""Do sub-groups differ? Levels are permuted between patients, over all levels and metrics at once.

If a variable has nothing to do with how well the model does, its levels could have been handed out
to the patients in any other way. The differences that arise then, of every level from the rest and
of every metric, say which of the observed ones is too large, and how often the largest of them all
is: the family-wise error is kept whatever the sizes of the levels, the correlation of the metrics
and of a patient's cases, and the noise that pushes calibration errors up in small levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.errors import InvalidInputError
from raterwise.exchangeability.permutations import step_down
from raterwise.types import FloatArray

Formula = Callable[[FloatArray], FloatArray]
Grouped = Callable[[NDArray[Any], int], FloatArray]
"""grouped(level of each unit, levels) -> (levels, …): the sums of the units of each level."""


@dataclass(frozen=True, eq=False)
class LevelTest:
    """Each level against the rest, for each metric: arrays (levels, metrics)."""

    difference: FloatArray
    """Level minus rest; NaN where one of the two has no value."""
    by_chance: FloatArray
    """What the difference is on average when levels are handed out at random."""
    p_value: FloatArray
    """Of this difference alone."""
    adjusted_p_value: FloatArray
    """Of any difference so large among all levels and metrics (step-down max-T)."""
    comparisons: int
    """How many differences were looked at."""


def level_test(
    tables: Sequence[ArrayLike | Grouped],
    formulas: Sequence[Formula],
    levels: ArrayLike,
    *,
    random: np.random.Generator,
    permutations: int = 999,
    strata: ArrayLike | None = None,
) -> LevelTest:
    """Test each level against the rest by permuting levels between units.

    With d_lm the difference of level l from the rest in metric m, and μ_lm and σ_lm its mean and
    standard deviation over the permutations (the observed one among them),

        t_lm = |d_lm − μ_lm| / σ_lm,
        p_lm = (1 + #{b: t_lm^b ≥ t_lm}) / (1 + B),

    and `step_down` adjusts over l and m.

    Parameters
    ----------
    tables: per metric, additive tables (units, …): the sums of each patient, or of each case; or a
        function that adds them up by level, where few of a table's cells are in use.
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
    >>> table = np.stack([right, np.ones(40)], axis=1)
    >>> share = lambda sums: sums[:, 0] / sums[:, 1]
    >>> random = np.random.default_rng(0)
    >>> test = level_test([table], [share], np.repeat([0, 1], 20), random=random)
    >>> test.difference.ravel(), bool((test.adjusted_p_value < 0.01).all())
    (array([ 0.5, -0.5]), True)
    """
    codes = np.asarray(levels)
    number = int(codes.max()) + 1
    sums = [_grouped(table, len(codes)) for table in tables]
    blocks = _blocks(np.zeros(len(codes)) if strata is None else np.asarray(strata))
    drawn = np.empty((permutations + 1, number, len(sums)))
    shuffled = codes.copy()
    for b in range(permutations + 1):
        if b:
            for block in blocks:
                shuffled[block] = random.permutation(codes[block])
        drawn[b] = _differences(sums, formulas, shuffled, number)
    return _judged(drawn)


def _blocks(strata: NDArray[Any]) -> list[NDArray[np.int64]]:
    """Return the units of each stratum that has several."""
    order = np.argsort(strata, kind="stable")
    ends = np.flatnonzero(np.diff(strata[order])) + 1
    return [block for block in np.split(order, ends) if len(block) > 1]


def _grouped(table: ArrayLike | Grouped, units: int) -> Grouped:
    """Return how to add up a table by level."""
    if callable(table):
        return table
    sums = np.asarray(table, dtype=np.float64)
    if len(sums) != units:
        raise InvalidInputError(f"levels: must be one per unit; got {units} for {len(sums)} units")

    def grouped(codes: NDArray[Any], levels: int) -> FloatArray:
        member = (codes == np.arange(levels)[:, None]).astype(np.float64)
        return np.asarray((member @ sums.reshape(units, -1)).reshape(levels, *sums.shape[1:]))

    return grouped


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


def _judged(drawn: FloatArray) -> LevelTest:
    """Return the test from differences (1 + permutations, levels, metrics), observed first."""
    defined = np.isfinite(drawn)
    count = np.maximum(defined.sum(axis=0), 1)
    mean = np.where(defined, drawn, 0).sum(axis=0) / count
    spread = np.sqrt((np.where(defined, drawn - mean, 0) ** 2).sum(axis=0) / count)
    # Differences that cannot vary, or are not defined, are no evidence of anything.
    moves = defined & (spread > 1e-12)
    t = np.where(moves, np.abs(drawn - mean) / np.where(spread > 1e-12, spread, 1), 0)
    seen = np.isfinite(drawn[0])
    p = (t >= t[0] - 1e-12).mean(axis=0)
    flat = t[:, seen]
    adjusted = np.full(seen.shape, np.nan)
    adjusted[seen] = step_down(flat[1:], flat[0], margin=1e-12)
    return LevelTest(
        drawn[0], np.where(seen, mean, np.nan), np.where(seen, p, np.nan), adjusted, int(seen.sum())
    )
