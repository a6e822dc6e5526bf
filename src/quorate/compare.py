"""Several models on the same cases: paired differences with intervals and adjusted p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import intervals
from quorate.catalog import find
from quorate.curves import curves_of
from quorate.errors import InvalidInputError
from quorate.evaluate import blanks, facts, predictions_of, rows_of, warnings_about
from quorate.inference import Draws, Pass, Progress, Settings, estimate
from quorate.results import Results

__all__ = ["Comparison", "Difference", "compare"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """One metric of two models on the same cases: first minus second."""

    metric: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p_value: float
    """Two-sided, of no difference, by the paired bootstrap: below 0.05 where 0 is outside."""
    adjusted_p_value: float
    """Adjusted over the pairs of models of this metric (Holm 1979)."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of every model, every pair's differences, and how steady the ranking is."""

    models: Mapping[str, Results]
    differences: tuple[Difference, ...]
    ranking: Mapping[str, Mapping[str, float]]
    """For each metric, the share of resamples in which each model is the best."""

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the difference of one metric between two models, first minus second."""
        for found in self.differences:
            if (found.metric, found.first, found.second) == (metric, first, second):
                return found
        raise InvalidInputError(
            f"no difference of {metric!r} between {first!r} and {second!r} was made, in that order"
        )

    def to_html(self, path: str | Path) -> None:
        """Write the comparison for people: one file that opens without a network."""
        from quorate.report import write_comparison

        write_comparison(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "models": {name: results.to_dict() for name, results in self.models.items()},
            "differences": [asdict(found) for found in self.differences],
            "ranking": {metric: dict(shares) for metric, shares in self.ranking.items()},
        }


def compare(
    models: Mapping[str, Any],
    labels: Any,
    metrics: str | Sequence[str] = "all",
    groups: Any = None,
    class_names: Sequence[str] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    *,
    weights: Any = None,
    bins: int = 15,
    on_unrated: str = "error",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return how models differ on the same cases, resampled together.

    `models` maps names to class probabilities or beliefs; the other arguments are those of
    `evaluate`. Every pair is compared, in the order given.

    >>> sharp, blunt = [[0.9, 0.1], [0.2, 0.8]] * 20, [[0.6, 0.4], [0.4, 0.6]] * 20
    >>> found = compare({"sharp": sharp, "blunt": blunt}, [0, 1] * 20, "brier", resamples=50)
    >>> round(found.difference("brier", "sharp", "blunt").difference, 4)
    -0.135
    """
    if len(models) < 2:
        raise InvalidInputError(f"models: must be at least two; got {len(models)}")
    settings = Settings(resamples, level, seed, "cases", "auto", on_single, threads)
    if resamples < 2:
        raise InvalidInputError(f"resamples: must be at least 2 to compare; got {resamples}")
    results: dict[str, Results] = {}
    replicates: dict[str, dict[str, FloatArray]] = {}
    for i, (name, probs) in enumerate(models.items()):
        if progress:
            progress(name, i / len(models))
        predictions = predictions_of(probs, labels, weights, groups, class_names, on_unrated)
        rows = rows_of(metrics, belief=predictions.belief is not None)
        estimates, asked = blanks(predictions, rows, {"bins": bins}, settings)
        pass_ = Pass(predictions, list(asked.values()), settings, Draws.of(predictions, settings))
        for metric, (row, own) in asked.items():
            estimates[metric] = estimate(row, own, estimates[metric], pass_)
            value = estimates[metric].value
            if value is not None:
                drawn = pass_.replicates(row, own, value)
                replicates.setdefault(metric, {})[name] = drawn
        options = {"bins": bins, **asdict(settings)}
        curves = curves_of(pass_, asked, predictions.class_names)
        results[name] = Results(
            estimates, facts(predictions), options, warnings_about(predictions), curves
        )
    if progress:
        progress("done", 1.0)
    differences: list[Difference] = []
    for metric, drawn_by in replicates.items():
        differences += _differences(metric, drawn_by, results, level, pass_.units)
    return Comparison(results, tuple(differences), _ranking(replicates, results))


def _differences(
    metric: str,
    drawn: Mapping[str, FloatArray],
    results: Mapping[str, Results],
    level: float,
    units: int | None,
) -> list[Difference]:
    found = []
    for first, second in combinations(drawn, 2):
        a, b = results[first][metric].value, results[second][metric].value
        assert a is not None and b is not None
        gap, value = _without_rounding(drawn[first] - drawn[second]), _without_rounding(a - b)
        if np.isnan(gap).all():
            continue
        corrected = intervals.bias_corrected_interval(float(value), gap, level, units=units)
        low, high, p = corrected.low, corrected.high, _p_value(gap, float(value))
        if find(metric).error:
            # Noise pushes both errors up, and by how much cannot be told apart from the
            # difference: the correction for it may be too much or too little, so take the wider.
            plain = intervals.percentile_interval(gap, level, units=units)
            low, high = min(low, plain.low), max(high, plain.high)
            p = max(p, _p_value(gap))
        found.append((first, second, float(value), low, high, p))
    adjusted = _holm([row[-1] for row in found])
    return [Difference(metric, *row, q) for row, q in zip(found, adjusted, strict=True)]


def _without_rounding(gap: Any) -> FloatArray:
    """Return differences with those below 1e-12, which are rounding, set to 0."""
    return np.where(np.abs(gap) < 1e-12, 0.0, gap)


def _p_value(gap: FloatArray, value: float | None = None) -> float:
    """Return the smallest p at which the percentile interval of level 1 - p excludes 0.

    That is 2 (1 - Φ(|Φ⁻¹(share below 0)|)), never below what the number of resamples can show.
    Given the value, the interval is the bias-corrected one: Φ⁻¹(share below 0) - 2 z₀, with z₀
    the bias of the resamples.
    """
    from scipy.special import ndtr, ndtri

    gap = gap[~np.isnan(gap)]
    half = 0.5 / len(gap)

    def place(point: float) -> float:
        share = float(np.mean(gap < point) + np.mean(gap == point) / 2)
        return float(ndtri(min(max(share, half), 1 - half)))

    bias = 0.0 if value is None else place(value)
    p = 2 * (1 - float(ndtr(abs(place(0.0) - 2 * bias))))
    return float(min(1.0, max(p, 2 / (len(gap) + 1))))


def _holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return [float(q) for q in adjusted]


def _ranking(
    replicates: Mapping[str, Mapping[str, FloatArray]], results: Mapping[str, Results]
) -> dict[str, dict[str, float]]:
    """Return how often each model is the best, for metrics that have a better side."""
    out: dict[str, dict[str, float]] = {}
    for metric, drawn in replicates.items():
        direction = next(iter(results.values()))[metric].direction
        if direction == "none" or len(drawn) < 2:
            continue
        stack = np.stack(list(drawn.values()))
        stack = stack[:, ~np.isnan(stack).any(axis=0)]
        if not stack.size:
            continue
        best = stack.min(axis=0) if direction == "lower" else stack.max(axis=0)
        wins = np.abs(stack - best) < 1e-12
        shares = (wins / wins.sum(axis=0)).mean(axis=1)
        out[metric] = dict(zip(drawn, (float(s) for s in shares), strict=True))
    return out
