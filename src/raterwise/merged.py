"""Results from a digest: summaries that were merged, wherever and whenever they were made.

The same catalog rows and intervals as `evaluate`. Where a metric needs sorted scores, a digest
has sums over fine cells, and the estimate says how far it may be from the exact value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from raterwise.catalog import Metric
from raterwise.curves import curves_of
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluate import blank
from raterwise.inference import PAIRS, Draws, Pass, Progress, Settings, estimate
from raterwise.recipes import Options
from raterwise.resample import multiplicities
from raterwise.results import Estimate, Results
from raterwise.summaries.digest import Digest, Facts, bounded

__all__ = ["asked_of", "facts_as_data", "pass_of", "plans_of", "results_of"]

Asked = Mapping[str, tuple[Metric, dict[str, Any]]]


def asked_of(rows: Sequence[Metric], options: Options) -> dict[str, tuple[Metric, dict[str, Any]]]:
    """Return the metrics with their options: those given, or the defaults."""
    return {row.name: (row, row.with_defaults(options)) for row in rows}


def plans_of(asked: Asked) -> list[Any]:
    """Return what to keep of the cases for these metrics, in memory that does not grow."""
    plans = [bounded(row.plan(own)) for row, own in asked.values()]
    return list(dict.fromkeys([*plans, PAIRS]))


def results_of(
    digest: Digest,
    asked: Asked,
    options: Options,
    settings: Settings,
    progress: Progress | None = None,
) -> Results:
    """Return the results of metrics, asked with their options, on a digest."""
    report = progress or (lambda what, done: None)
    if settings.resample == "raters":
        raise InvalidInputError(
            'resample: "raters" needs the cases themselves; summaries have "cases" or patients'
        )
    digest = digest.occupied()
    estimates = {name: blank(row) for name, (row, _) in asked.items()}
    pass_ = pass_of(digest, asked, settings)
    rated = {}
    for i, (name, (row, own)) in enumerate(asked.items()):
        report(row.title, i / len(asked))
        try:
            dropped = digest.facts.require_raters(row.raters_needed(own), settings.on_single)
        except RaterwiseError as error:
            estimates[name] = replace(estimates[name], undefined=str(error))
            continue
        rated[name] = row, own
        estimates[name] = estimate(row, own, replace(estimates[name], dropped=dropped), pass_)
    report("done", 1.0)
    return Results(
        estimates,
        data=facts_as_data(digest),
        options={**options, **asdict(settings)},
        warnings=(*_warnings(digest, settings), *_approximate(estimates)),
        curves=curves_of(pass_, rated, digest.facts.class_names),
    )


def pass_of(digest: Digest, asked: Asked, settings: Settings) -> Pass:
    """Return the pass that the digest is what is left of."""
    plans = {name: bounded(row.plan(own)) for name, (row, own) in asked.items()}
    missing = [name for name, plan in plans.items() if plan not in digest.summaries]
    if missing:
        raise InvalidInputError(
            f"metrics: these were not summarised, or with other options: {', '.join(missing)}"
        )
    summaries, facts = dict(digest.summaries), digest.facts
    if facts.most < 2:  # no pairs of raters: nothing is known of their agreement
        summaries.pop(PAIRS, None)
    draws = None
    if settings.resamples:
        units = len(digest.unit_cases)
        times = multiplicities(units, settings.resamples, settings.seed)
        draws = Draws(np.empty(0, np.int64), units, times)
    raters, cases = facts.ratings / facts.cases, facts.weight**2 / facts.squared_weight
    return Pass(summaries, plans, settings, draws, raters=raters, cases=cases)


def facts_as_data(digest: Digest) -> dict[str, Any]:
    """Return what the numbers rest on, as `evaluate` says it."""
    facts: Facts = digest.facts
    names = facts.class_names
    return {
        "cases": facts.cases,
        "patients": None,
        "classes": facts.classes,
        "class_names": None if names is None else list(names),
        "ratings": facts.ratings,
        "raters": {
            "mean": facts.ratings / facts.cases,
            "min": facts.fewest,
            "max": facts.most,
        },
        "dropped": dict(facts.dropped),
        "resampled": f"{len(digest.unit_cases)} blocks of {digest.unit}",
    }


def _approximate(estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Say which values are sums over fine cells, and how far they may be from the exact ones."""
    bounds = [f"{e.title} {e.bound:.1e}" for e in estimates.values() if e.bound is not None]
    return (f"approximate, with an error of at most: {', '.join(bounds)}",) if bounds else ()


def _warnings(digest: Digest, settings: Settings) -> tuple[str, ...]:
    found = []
    facts, units = digest.facts, len(digest.unit_cases)
    if settings.resamples and units < 2:
        found.append(
            f"no intervals: all {digest.unit} are in one block, as summaries that were saved with "
            "resamples 0 have it"
        )
    if facts.cases < 100:
        found.append(f"only {facts.cases} cases: calibration errors are dominated by chance")
    if digest.unit == "patients" and units < 20:
        found.append(f"only {units} patients: intervals by patient are too short below about 20")
    if facts.under_two == facts.cases:
        found.append("one rater per case: disagreement and epistemic loss cannot be estimated")
    elif facts.under_two:
        found.append(f"{facts.under_two} of {facts.cases} cases have a single rater")
    return tuple(found)
