"""How steady is a metric when the test set shrinks? (RECE Table 1 and Fig 2; MR Table 1, Fig 3)"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import positive_integer
from raterwise.catalog import find
from raterwise.engines.local import summarise
from raterwise.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError
from raterwise.predictions import Predictions

__all__ = ["SubsampleCurve", "TotalVariation", "subsample_curve", "total_variation"]

FloatArray = NDArray[np.float64]
Metric = str | Callable[..., float]
Progress = Callable[[str, float], None]


class TotalVariation(NamedTuple):
    """The total variation of a metric: mean and standard deviation over repeats."""

    mean: float
    std: float


@dataclass(frozen=True)
class SubsampleCurve:
    """A metric on random subsets of growing size."""

    fractions: tuple[float, ...]
    sizes: tuple[int, ...]
    """Cases (patients, where groups were given) in the subsets of each fraction."""
    values: FloatArray
    """(fractions, repeats): the metric on each subset; NaN where it is undefined."""
    full: float
    """The metric on all cases."""
    unit: str = "cases"
    """What `sizes` counts: "cases", or "patients" where groups were given."""

    @property
    def mean(self) -> FloatArray:
        """The mean over repeats."""
        return np.asarray(np.nanmean(self.values, axis=1))

    @property
    def std(self) -> FloatArray:
        """The standard deviation over repeats."""
        return np.asarray(np.nanstd(self.values, axis=1))

    @property
    def difference(self) -> FloatArray:
        """(fractions, repeats): absolute difference from the value on all cases (RECE Fig 2)."""
        return np.abs(self.values - self.full)


def total_variation(
    metric: Metric,
    probs: Any,
    labels: Any,
    start: float = 0.2,
    step: float = 0.05,
    repeats: int = 100,
    seed: int = 0,
    *,
    groups: Any = None,
    progress: Progress | None = None,
) -> TotalVariation:
    """Return the mean absolute change of a metric as the test set shrinks (MR eq 6).

    TV = 1/n Σ_p |CE(X^p) - CE(X^{p-Δp})| over fractions p = start … 1, with nested random subsets.
    Each repeat bootstraps the test set first (MR section 3.2). Without the absolute values, which
    the paper's equation leaves out, the sum would telescope.

    Parameters
    ----------
    metric
        The name of a metric, such as "ece", or any function of (probs, labels).
    groups
        The patient of each case: patients, not cases, are drawn.

    >>> import raterwise as rw
    >>> labels = rw.Labels.from_classes([0, 1] * 50, num_classes=2)
    >>> tv = total_variation("ece", [[0.5, 0.5]] * 100, labels, repeats=5)
    >>> 0 < tv.mean < 0.1
    True
    """
    measure = _measurer(metric, probs, labels, groups)
    repeats = positive_integer("repeats", repeats)
    if not 0 < start < 1:
        raise InvalidInputError(f"start: must be between 0 and 1; got {start}")
    if not 0 < step <= 1 - start:
        raise InvalidInputError(f"step: must be in (0, {1 - start:g}]; got {step}")
    count = round((1 - start) / step)
    fractions = [*(start + step * i for i in range(count)), 1.0]
    variations = np.empty(repeats)
    for r in range(repeats):
        random = np.random.default_rng([seed, r])
        drawn = random.integers(0, measure.units, measure.units)
        values = [measure.on(drawn[: _part(f, measure.units)]) for f in fractions]
        variations[r] = np.nanmean(np.abs(np.diff(values)))
        if progress:
            progress("total variation", (r + 1) / repeats)
    return TotalVariation(float(np.nanmean(variations)), float(np.nanstd(variations)))


def subsample_curve(
    metric: Metric,
    probs: Any,
    labels: Any,
    fractions: Sequence[float] = (0.01, 0.05, 0.1, 0.25, 0.5, 1),
    repeats: int = 20,
    seed: int = 0,
    *,
    groups: Any = None,
    progress: Progress | None = None,
) -> SubsampleCurve:
    """Return a metric on random subsets of the test set, drawn without replacement (RECE Table 1).

    >>> import raterwise as rw
    >>> probs = [[0.8, 0.2], [0.3, 0.7]] * 50
    >>> curve = subsample_curve("accuracy", probs, [0, 1] * 50, fractions=(0.5, 1), repeats=3)
    >>> curve.sizes, curve.mean.tolist(), curve.full
    ((50, 100), [1.0, 1.0], 1.0)
    """
    measure = _measurer(metric, probs, labels, groups)
    repeats = positive_integer("repeats", repeats)
    parts = tuple(float(f) for f in fractions)
    if not parts or not all(0 < f <= 1 for f in parts):
        raise InvalidInputError(f"fractions: must be in (0, 1]; got {tuple(fractions)}")
    values = np.empty((len(parts), repeats))
    sizes = []
    for i, fraction in enumerate(parts):
        size = _part(fraction, measure.units)
        for r in range(repeats):
            random = np.random.default_rng([seed, i, r])
            values[i, r] = measure.on(random.permutation(measure.units)[:size])
            if progress:
                progress("subsamples", (i * repeats + r + 1) / (len(parts) * repeats))
        sizes.append(size)
    full = measure.on(np.arange(measure.units))
    unit = "cases" if measure.cases_of is None else "patients"
    return SubsampleCurve(parts, tuple(sizes), values, full, unit)


def _part(fraction: float, units: int) -> int:
    return max(1, round(fraction * units))


@dataclass(frozen=True)
class _Measurer:
    """A metric that can be asked about any choice of units (cases, or patients)."""

    units: int
    cases_of: list[NDArray[np.int64]] | None
    measure: Callable[[NDArray[np.int64]], float]

    def on(self, units: NDArray[np.int64]) -> float:
        """Return the metric on the chosen units, or NaN where it is undefined."""
        chosen = self.cases_of
        rows = units if chosen is None else np.concatenate([chosen[u] for u in units])
        try:
            return self.measure(rows)
        except UndefinedMetricError:
            return math.nan


def _measurer(metric: Metric, probs: Any, labels: Any, groups: Any) -> _Measurer:
    predictions = Predictions.of(probs, labels, groups=groups)
    if isinstance(metric, str):
        row = find(metric)
        own = row.with_defaults({})
        plan = row.plan(own)
        predictions.labels.require_raters(row.raters_needed(own))

        def measure(rows: NDArray[np.int64]) -> float:
            return row.estimate(summarise(predictions.take(rows), [plan], threads=1)[plan], own)
    elif callable(metric):
        single = predictions.labels.classes is not None

        def measure(rows: NDArray[np.int64]) -> float:
            part = predictions.labels.take(rows)
            return float(metric(predictions.probs[rows], part.classes if single else part))
    else:
        raise InvalidTypeError(f"metric: must be a name or a function; got {metric!r}")
    if predictions.groups is None:
        return _Measurer(len(predictions), None, measure)
    members = [np.flatnonzero(predictions.groups == g) for g in range(len(predictions.group_ids))]
    return _Measurer(len(members), members, measure)
