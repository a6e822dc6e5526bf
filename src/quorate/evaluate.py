"""Everything at once: plan what the metrics share, read the cases once, estimate, put intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from quorate.binning import bin_edges
from quorate.catalog import CATALOG, Metric, find
from quorate.curves import curves_of
from quorate.errors import InvalidInputError, QuorateError
from quorate.inference import RATERS_SHARE, Draws, Pass, Progress, Settings, estimate
from quorate.predictions import Predictions
from quorate.results import Estimate, Results

__all__ = [
    "blanks",
    "evaluate",
    "evaluate_predictions",
    "facts",
    "predictions_of",
    "rows_of",
    "warnings_about",
]


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
        Class probabilities (N, K) or (N,), or a belief over them, whose disagreement and
        posterior are judged too; a `Labels` or (N,) classes.
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
    predictions = predictions_of(probs, labels, weights, groups, class_names, on_unrated)
    settings = Settings(resamples, level, seed, resample, interval, on_single, threads)
    bin_edges(bins)  # a bad number is the caller's mistake, not a metric without a value
    rows = rows_of(metrics, belief=predictions.belief is not None)
    return evaluate_predictions(predictions, rows, {"bins": bins}, settings, progress)


def predictions_of(
    probs: Any,
    labels: Any,
    weights: Any = None,
    groups: Any = None,
    class_names: Sequence[str] | None = None,
    on_unrated: str = "error",
) -> Predictions:
    """Return checked predictions from probabilities, or from a belief over them."""
    belief = None
    if hasattr(probs, "expected_gain"):  # a belief: arrays have no such method
        belief, probs = probs, probs.mean
    predictions = Predictions.of(
        probs,
        labels,
        weights=weights,
        groups=groups,
        class_names=class_names,
        belief=belief,
        on_unrated=on_unrated,
    )
    # A belief was checked when it was made, by the rules of the type it was made of.
    return predictions if belief is None else replace(predictions, tolerance=1e-2)


def evaluate_predictions(
    predictions: Predictions,
    rows: Sequence[Metric],
    options: dict[str, Any],
    settings: Settings,
    progress: Progress | None = None,
) -> Results:
    """Return the results of catalog rows on checked predictions."""
    report = progress or (lambda what, done: None)
    estimates, asked = blanks(predictions, rows, options, settings)
    report("reading the cases", 0.0)
    begin = RATERS_SHARE if settings.resample == "raters" and settings.resamples else 0.0
    curves: dict[str, Any] = {}
    if asked:
        draws = Draws.of(predictions, settings)
        pass_ = Pass(predictions, list(asked.values()), settings, draws, progress)
        for i, (name, (row, own)) in enumerate(asked.items()):
            report(row.title, begin + (1 - begin) * i / len(asked))
            estimates[name] = estimate(row, own, estimates[name], pass_)
        curves = curves_of(pass_, asked, predictions.class_names)
    report("done", 1.0)
    return Results(
        estimates,
        data=facts(predictions),
        options={**options, **asdict(settings)},
        warnings=warnings_about(predictions),
        curves=curves,
    )


def blanks(
    predictions: Predictions, rows: Sequence[Metric], options: dict[str, Any], settings: Settings
) -> tuple[dict[str, Estimate], dict[str, tuple[Metric, dict[str, Any]]]]:
    """Return an empty estimate for every metric, and those that the raters suffice for."""
    estimates: dict[str, Estimate] = {}
    asked: dict[str, tuple[Metric, dict[str, Any]]] = {}
    for row in rows:
        if row.needs_belief and predictions.belief is None:
            reason = "it needs a belief over class probabilities, not probabilities alone"
            estimates[row.name] = replace(_blank(row), undefined=reason)
            continue
        try:
            own = row.with_defaults(options)
            needed = row.raters_needed(own)
            dropped = predictions.labels.require_raters(needed, settings.on_single)
            estimates[row.name] = replace(_blank(row), dropped=dropped)
            asked[row.name] = row, own
        except QuorateError as error:
            estimates[row.name] = replace(_blank(row), undefined=str(error))
    return estimates, asked


def rows_of(metrics: str | Sequence[str], *, belief: bool = False) -> list[Metric]:
    """Return the catalog rows asked for; "all" has those of a belief where there is one."""
    if metrics == "all":
        return [row for row in CATALOG.values() if row.in_all and (belief or not row.needs_belief)]
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


def facts(predictions: Predictions) -> dict[str, Any]:
    """Return what the numbers rest on."""
    raters = predictions.labels.num_raters
    names = predictions.class_names
    return {
        "cases": len(predictions),
        "patients": number_of_patients(predictions),
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


def number_of_patients(predictions: Predictions) -> int | None:
    """Return how many patients the cases are from, where that is known."""
    return None if predictions.groups is None else len(np.unique(predictions.groups))


def warnings_about(predictions: Predictions) -> tuple[str, ...]:
    """Return what a reader of the numbers should know before believing them."""
    found = []
    cases, patients = len(predictions), number_of_patients(predictions)
    if cases < 100:
        found.append(f"only {cases} cases: calibration errors are dominated by chance")
    if patients is not None and patients < 20:
        found.append(f"only {patients} patients: intervals by patient are too short below about 20")
    single = int((predictions.labels.num_raters < 2).sum())
    if single == cases:
        found.append("one rater per case: disagreement and epistemic loss cannot be estimated")
    elif single:
        found.append(f"{single} of {cases} cases have a single rater")
    return tuple(found)
