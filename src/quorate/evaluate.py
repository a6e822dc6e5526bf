"""Everything at once: plan what the metrics share, read the cases once, estimate, put intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import intervals
from quorate.arrays import choose, positive_integer
from quorate.catalog import CATALOG, Metric, find
from quorate.engines.local import summarise
from quorate.errors import InvalidInputError, QuorateError
from quorate.predictions import Predictions
from quorate.resample import multiplicities, resampled_raters, resampling_units
from quorate.results import Estimate, Results
from quorate.summaries import BinTable

__all__ = ["evaluate", "evaluate_predictions"]

Progress = Callable[[str, float], None]


def evaluate(
    probs: Any,
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
    resample: str = "cases",
    interval: str = "auto",
    on_unrated: str = "error",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Return every metric asked for, with an interval, from one pass over the cases.

    Parameters
    ----------
    probs, labels
        Class probabilities (N, K) or (N,); a `Labels` or (N,) classes.
    metrics
        "all", or names such as "ece,brier" or ["ece", "brier"].
    groups
        The patient of each case: patients, not cases, are resampled.
    resamples, level, seed
        Of the bootstrap; `resamples=0` gives values without intervals.
    resample
        "cases" (or patients), or "raters".
    interval
        "auto": test inversion for calibration errors, bias-corrected bootstrap for the rest;
        or "percentile" or "bias_corrected" for all.
    on_unrated, on_single
        "error" or "drop" for cases that nobody rated, or that too few rated for a metric. With
        "error", a metric that needs more raters is undefined in the results and the others go on.
    progress
        Called with a description and a fraction done.

    >>> import quorate as qr
    >>> probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> results = qr.evaluate(probs, [0, 1, 1, 0], metrics="accuracy,brier", resamples=200)
    >>> results["accuracy"].value, round(results["brier"].value, 4)
    (0.75, 0.225)
    """
    predictions = Predictions.of(
        probs,
        labels,
        weights=weights,
        groups=groups,
        class_names=class_names,
        on_unrated=on_unrated,
    )
    return evaluate_predictions(
        predictions,
        _rows(metrics),
        options={"bins": bins},
        resamples=resamples,
        level=level,
        seed=seed,
        resample=resample,
        interval=interval,
        on_single=on_single,
        threads=threads,
        progress=progress,
    )


def evaluate_predictions(
    predictions: Predictions,
    rows: Sequence[Metric],
    *,
    options: dict[str, Any],
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    resample: str = "cases",
    interval: str = "auto",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Return the results of catalog rows on checked predictions."""
    positive_integer("resamples", resamples, least=0)
    choose("resample", resample, ("cases", "raters"))
    choose("interval", interval, ("auto", "percentile", "bias_corrected"))
    choose("on_single", on_single, ("error", "drop"))
    if not 0 < level < 1:
        raise InvalidInputError(f"level: must be between 0 and 1; got {level}")
    report = progress or (lambda what, done: None)
    estimates: dict[str, Estimate] = {}
    asked: dict[str, tuple[Metric, dict[str, Any]]] = {}
    for row in rows:
        try:
            dropped = predictions.labels.require_raters(row.least_raters, on_single)
            estimates[row.name] = replace(_blank(row), dropped=dropped)
            asked[row.name] = row, row.with_defaults(options)
        except QuorateError as error:
            estimates[row.name] = replace(_blank(row), undefined=str(error))
    report("reading the cases", 0.0)
    pass_ = _Pass(predictions, asked, resamples, seed, resample, threads, report)
    for i, (name, (row, own)) in enumerate(asked.items()):
        report(row.title, 0.2 + 0.8 * i / len(asked))
        estimates[name] = _estimate(row, own, estimates[name], pass_, level, interval)
    report("done", 1.0)
    return Results(
        estimates,
        data=_facts(predictions),
        options={
            **options,
            "resamples": resamples,
            "level": level,
            "seed": seed,
            "resample": resample,
            "interval": interval,
            "on_single": on_single,
        },
        warnings=_warnings(predictions),
    )


class _Pass:
    """The summaries of one pass, and the stacks of resampled tables that metrics share."""

    def __init__(
        self,
        predictions: Predictions,
        asked: dict[str, tuple[Metric, dict[str, Any]]],
        resamples: int,
        seed: int,
        resample: str,
        threads: int | None,
        report: Progress,
    ) -> None:
        self.plans = {name: row.plan(own) for name, (row, own) in asked.items()}
        self.resamples = resamples
        self.tables: dict[Any, Any] = {}
        self.stacks: dict[Any, BinTable] = {}
        by_unit = resamples > 0 and resample == "cases"
        units, number = resampling_units(predictions, seed) if by_unit else (None, 1)
        self.units = number
        plans = list(self.plans.values())
        self.summaries = summarise(
            predictions, plans, units=units, num_units=number, threads=threads
        )
        self.draws = multiplicities(number, resamples, seed) if by_unit else None
        self.rater_draws: list[dict[Any, Any]] = []
        if resamples and resample == "raters":
            for b, drawn in enumerate(resampled_raters(predictions, resamples, seed)):
                report("resampling raters", 0.2 * b / resamples)
                self.rater_draws.append(summarise(drawn, plans, threads=1))

    def table(self, row: Metric, own: dict[str, Any]) -> Any:
        """Return the table per unit that `row` is a formula over."""
        key = self._key(row, own)
        if key not in self.tables:
            self.tables[key] = row.prepare(self.summaries[self.plans[row.name]], own)
        return self.tables[key]

    def stack(self, row: Metric, own: dict[str, Any]) -> Any:
        """Return the resampled tables, stacked."""
        key = self._key(row, own)
        if key not in self.stacks:
            table = self.table(row, own)
            if self.draws is not None:
                self.stacks[key] = table.resampled(self.draws)
            else:
                plan = self.plans[row.name]
                drawn = [row.prepare(s[plan], own, like=table).table for s in self.rater_draws]
                self.stacks[key] = type(drawn[0])(np.stack([t.sums for t in drawn]))
        return self.stacks[key]

    def _key(self, row: Metric, own: dict[str, Any]) -> Any:
        return self.plans[row.name], row.prepare, str(own.get("bins"))


def _estimate(
    row: Metric, own: dict[str, Any], blank: Estimate, pass_: _Pass, level: float, interval: str
) -> Estimate:
    try:
        value = row.estimate(pass_.summaries[pass_.plans[row.name]], own)
    except QuorateError as error:
        return replace(blank, undefined=str(error))
    if not math.isfinite(value):
        return replace(blank, undefined=row.undefined)
    blank = replace(blank, value=value)
    if pass_.resamples == 0:
        return blank
    table, stack = pass_.table(row, own).table, pass_.stack(row, own)
    if row.error and interval == "auto":
        found = _invert(row, own, value, table, stack, pass_.units, level)
        return replace(blank, low=found.low, high=found.high, debiased=found.debiased)
    with np.errstate(invalid="ignore"):
        replicates = row.over(stack, own)
    # Cells stand in for scores in the resamples; what they shift, they shift alike.
    replicates = replicates + (value - float(row.over(table, own)))
    if np.isnan(replicates).all():
        return blank
    if interval == "percentile":
        ends = intervals.percentile_interval(replicates, level)
    else:
        ends = intervals.bias_corrected_interval(value, replicates, level)
    return replace(blank, low=ends.low, high=ends.high)


def _invert(
    row: Metric,
    own: dict[str, Any],
    value: float,
    table: BinTable,
    stack: BinTable,
    units: int,
    level: float,
) -> intervals.CalibrationInterval:
    """Return the test-inverting interval of a non-negative error.

    The debiased and the plugin calibration loss estimate the same quantity; the test is that of
    the plugin, which is a norm of the deviations.
    """
    plugin = {**own, "estimator": "plugin"} if "estimator" in own else own
    total, totals = table.weight.sum(), stack.weight.sum(axis=(-2, -1), keepdims=True)
    deviation = table.deviation / total
    noise = stack.deviation / totals - deviation

    def norm(deviation: NDArray[Any]) -> NDArray[Any]:
        return row.over(table.with_deviation(deviation * total), plugin)

    return intervals.calibration_interval(
        norm, deviation, noise, level, value=value, units=units if units > 1 else None
    )


def _rows(metrics: str | Sequence[str]) -> list[Metric]:
    if metrics == "all":
        return [row for row in CATALOG.values() if row.in_all]
    names = metrics.split(",") if isinstance(metrics, str) else list(metrics)
    rows = [find(name.strip()) for name in names]
    if not rows:
        raise InvalidInputError("metrics: must name at least one metric; got none")
    return rows


def _blank(row: Metric) -> Estimate:
    return Estimate(
        row.name,
        None,
        title=row.title,
        group=row.group,
        meaning=row.meaning,
        direction=row.direction,
        reference=row.reference,
    )


def _facts(predictions: Predictions) -> dict[str, Any]:
    raters = predictions.labels.num_raters
    names = predictions.class_names
    return {
        "cases": len(predictions),
        "patients": len(predictions.group_ids) or None,
        "classes": predictions.num_classes,
        "class_names": None if names is None else list(names),
        "ratings": int(raters.sum()),
        "raters": {
            "mean": float(raters.mean()),
            "min": int(raters.min()),
            "max": int(raters.max()),
        },
        "dropped": dict(predictions.dropped),
    }


def _warnings(predictions: Predictions) -> tuple[str, ...]:
    """Return what a reader of the numbers should know before believing them."""
    found = []
    cases, patients = len(predictions), len(predictions.group_ids)
    if cases < 100:
        found.append(f"only {cases} cases: calibration errors are dominated by chance")
    if 0 < patients < 20:
        found.append(f"only {patients} patients: intervals by patient are too short below about 20")
    single = int((predictions.labels.num_raters < 2).sum())
    if single == cases:
        found.append("one rater per case: disagreement and epistemic loss cannot be estimated")
    elif single:
        found.append(f"{single} of {cases} cases have a single rater")
    return tuple(found)
