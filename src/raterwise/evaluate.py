"""Everything at once: plan what the metrics share, read the cases once, estimate, put intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import bin_edges
from raterwise.catalog import CATALOG, Metric, find
from raterwise.cautions import number_of_patients, warnings_about
from raterwise.curves import curves_of
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.exchangeability import exchangeability_test
from raterwise.fingerprint import fingerprint
from raterwise.inference import Draws, Pass, Progress, Settings, estimate
from raterwise.predictions import Predictions
from raterwise.resample import RATERS_SHARE
from raterwise.results import Estimate, Results, to_digits
from raterwise.subgroups import (
    Judged,
    metrics_by_level,
    subgroups_of,
    warnings_about_levels,
)
from raterwise.variables import variables_of

__all__ = [
    "blank",
    "blanks",
    "evaluate",
    "evaluate_predictions",
    "facts",
    "predictions_of",
    "rows_of",
    "warnings_about",
]

WHOLE_SHARE = 0.5
"""How much of the progress is the evaluation of all cases, where sub-groups follow."""
AGREEMENT = {"fleiss_kappa", "krippendorff_alpha"}
"""The metrics that come with a test whether the raters are interchangeable."""
MOST_SHUFFLED = 200_000
"""Up to how many ratings are shuffled for it."""


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
    subgroups: Any = None,
    subgroup_metrics: str | Sequence[str] | None = None,
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
    subgroups, subgroup_metrics
        What tells cases apart, by name: {"scanner": (N,) values, …}, or a data frame, or one
        column. The metrics are made within each level and compared with those of the other cases:
        `results.subgroups`. By default those of `raterwise.subgroups.DEFAULT_METRICS`.
    progress
        Called with a description and a fraction done.

    >>> import raterwise as rw
    >>> probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> results = rw.evaluate(probs, [0, 1, 1, 0], metrics="accuracy,brier", resamples=200)
    >>> results["accuracy"].value, round(results["brier"].value, 4)
    (0.75, 0.225)
    """
    predictions = predictions_of(probs, labels, weights, groups, class_names, on_unrated)
    settings = Settings(resamples, level, seed, resample, interval, on_single, threads)
    bin_edges(bins)  # a bad number is the caller's mistake, not a metric without a value
    rows = rows_of(metrics, belief=predictions.belief is not None)
    if subgroups is None:
        if subgroup_metrics is not None:
            raise InvalidInputError(
                f"subgroup_metrics: needs subgroups to apply to; got {subgroup_metrics!r} alone"
            )
        return evaluate_predictions(predictions, rows, {"bins": bins}, settings, progress)
    given = len(predictions) + sum(predictions.dropped.values())
    variables = [v.take(predictions.kept) for v in variables_of(subgroups, given)]
    chosen = metrics_by_level(subgroup_metrics, rows)
    first, second = _shares(progress, WHOLE_SHARE)
    results = evaluate_predictions(predictions, rows, {"bins": bins}, settings, first)

    def judge(part: Predictions) -> Judged:
        return judged(part, chosen, {"bins": bins}, settings)

    found = subgroups_of(predictions, variables, judge, settings, second)
    second("done", 1.0)
    return replace(
        results,
        options={**results.options, "subgroup_metrics": [row.name for row in chosen]},
        warnings=(*results.warnings, *warnings_about_levels(variables, found)),
        subgroups=found,
    )


def _shares(progress: Progress | None, share: float) -> tuple[Progress, Progress]:
    """Return a report of progress for the first part of the work and one for the rest."""
    report = progress or (lambda what, done: None)
    return (
        lambda what, done: report(what, share * done),
        lambda what, done: report(what, share + (1 - share) * done),
    )


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
    found = judged(predictions, rows, options, settings, progress)
    curves: dict[str, Any] = {}
    of_cases: dict[str, Any] = {}
    if found.pass_ is not None:
        curves = curves_of(found.pass_, found.asked, predictions.class_names)
        by_rater = settings.resample == "raters"
        of_cases["fingerprint"] = fingerprint(predictions, units=found.pass_.units, raters=by_rater)
    if progress:
        progress("done", 1.0)
    about_raters = _about_raters(predictions, found.asked, settings)
    return Results(
        found.estimates,
        data={**facts(predictions), **about_raters, **of_cases},
        options={**options, **asdict(settings)},
        warnings=warnings_about(predictions, found.asked),
        curves=curves,
        replicates=_replicates(found),
    )


def _replicates(found: Judged) -> dict[str, NDArray[np.float64]]:
    """Return every metric on every resample, as a file will hold it."""
    pass_ = found.pass_
    if pass_ is None or not pass_.settings.resamples or pass_.units == 1:
        return {}
    return {
        name: to_digits(pass_.replicates(row, own, value))
        for name, (row, own) in found.asked.items()
        if (value := found.estimates[name].value) is not None
    }


def judged(
    predictions: Predictions,
    rows: Sequence[Metric],
    options: dict[str, Any],
    settings: Settings,
    progress: Progress | None = None,
) -> Judged:
    """Return the estimates of catalog rows on checked predictions, and the pass behind them."""
    report = progress or (lambda what, done: None)
    estimates, asked = blanks(predictions, rows, options, settings)
    report("reading the cases", 0.0)
    if not asked:
        return Judged(estimates, asked, None)
    begin = RATERS_SHARE if settings.resample == "raters" and settings.resamples else 0.0
    draws = Draws.of(predictions, settings)
    pass_ = Pass.of(predictions, list(asked.values()), settings, draws, progress)
    for i, (name, (row, own)) in enumerate(asked.items()):
        report(row.title, begin + (1 - begin) * i / len(asked))
        estimates[name] = estimate(row, own, estimates[name], pass_)
    return Judged(estimates, asked, pass_)


def blanks(
    predictions: Predictions, rows: Sequence[Metric], options: dict[str, Any], settings: Settings
) -> tuple[dict[str, Estimate], dict[str, tuple[Metric, dict[str, Any]]]]:
    """Return an empty estimate for every metric, and those that the raters suffice for."""
    estimates: dict[str, Estimate] = {}
    asked: dict[str, tuple[Metric, dict[str, Any]]] = {}
    for row in rows:
        if row.needs_belief and predictions.belief is None:
            reason = "it needs a belief over class probabilities, not probabilities alone"
            estimates[row.name] = replace(blank(row), undefined=reason)
            continue
        try:
            own = row.with_defaults(options)
            needed = row.raters_needed(own)
            dropped = predictions.labels.require_raters(needed, settings.on_single)
            estimates[row.name] = replace(blank(row), dropped=dropped)
            asked[row.name] = row, own
        except RaterwiseError as error:
            estimates[row.name] = replace(blank(row), undefined=str(error))
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


def blank(row: Metric) -> Estimate:
    """Return the estimate of a metric before it has a value."""
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


def _about_raters(
    predictions: Predictions, asked: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    """Return whether the raters are interchangeable, with the metrics of their agreement.

    Only where it is known who said what, and where shuffling the labels is a matter of seconds.
    """
    ratings = predictions.labels.ratings
    if ratings is None or len(ratings.case) > MOST_SHUFFLED or not asked.keys() & AGREEMENT:
        return {}
    try:
        test = exchangeability_test(predictions.labels, seed=settings.seed)
    except RaterwiseError:  # no case has two raters
        return {}
    return {"exchangeability": test.to_dict()}
