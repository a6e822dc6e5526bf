"""Results from a digest: summaries that were merged, wherever and whenever they were made.

The same catalog rows and intervals as `evaluate`. Where a metric needs sorted scores, a digest
has sums over fine cells, and the estimate says how far it may be from the exact value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from quorate.catalog import Metric
from quorate.errors import InvalidInputError, QuorateError
from quorate.inference import PAIRS, Draws, Pass, Progress, Settings, estimate
from quorate.metrics.cell_bounds import BOUNDS, kde_of_cells
from quorate.recipes import Options
from quorate.resample import multiplicities
from quorate.results import Estimate, Results
from quorate.summaries.cells import CellSums
from quorate.summaries.digest import Digest, Facts, bounded

__all__ = ["asked_of", "blank", "facts_as_data", "plans_of", "results_of", "value_of"]

Asked = Mapping[str, tuple[Metric, dict[str, Any]]]


def asked_of(rows: Sequence[Metric], options: Options) -> dict[str, tuple[Metric, dict[str, Any]]]:
    """Return the metrics with their options: those given, or the defaults."""
    return {row.name: (row, row.with_defaults(options)) for row in rows}


def plans_of(asked: Asked) -> list[Any]:
    """Return what to keep of the cases for these metrics, in memory that does not grow."""
    plans = [bounded(row.plan(own)) for row, own in asked.values()]
    return list(dict.fromkeys([*plans, PAIRS]))


def value_of(row: Metric, own: Options, summary: Any) -> tuple[float, float | None]:
    """Return a metric of a summary, and a bound on its error where cells stand for scores."""
    if not isinstance(summary, CellSums):
        return row.estimate_with_bound(summary, own)
    if row.name == "kde_ece":
        return kde_of_cells(summary, own)
    value = row.estimate(summary.scores(), own)
    return value, BOUNDS[row.name](summary, value, own)


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
    pass_ = _DigestPass(digest, asked, settings)
    for i, (name, (row, own)) in enumerate(asked.items()):
        report(row.title, i / len(asked))
        try:
            dropped = digest.facts.require_raters(row.raters_needed(own), settings.on_single)
        except QuorateError as error:
            estimates[name] = replace(estimates[name], undefined=str(error))
            continue
        estimates[name] = estimate(row, own, replace(estimates[name], dropped=dropped), pass_)
    report("done", 1.0)
    return Results(
        estimates,
        data=facts_as_data(digest),
        options={**options, **asdict(settings)},
        warnings=(*_warnings(digest), *_approximate(estimates)),
    )


class _DigestPass(Pass):
    """A pass that is over: its summaries were made elsewhere."""

    def __init__(self, digest: Digest, asked: Asked, settings: Settings) -> None:
        self.settings = settings
        self._plans = {name: bounded(row.plan(own)) for name, (row, own) in asked.items()}
        missing = [name for name, plan in self._plans.items() if plan not in digest.summaries]
        if missing:
            raise InvalidInputError(
                f"metrics: these were not summarised, or with other options: {', '.join(missing)}"
            )
        self._summaries = dict(digest.summaries)
        self._tables: dict[Any, Any] = {}
        self._stacks: dict[Any, Any] = {}
        self._rater_draws: list[dict[Any, Any]] = []
        self.raters = digest.facts.ratings / digest.facts.cases
        self.cases = digest.facts.weight**2 / digest.facts.squared_weight
        if digest.facts.most < 2:  # no pairs of raters: nothing is known of their agreement
            self._summaries.pop(PAIRS, None)
        units = len(digest.unit_cases)
        self.draws = None
        if settings.resamples and units > 1:
            times = multiplicities(units, settings.resamples, settings.seed)
            self.draws = Draws(np.empty(0, np.int64), units, times)

    @property
    def units(self) -> int | None:
        """How many units were resampled; 1 where there is nothing to resample."""
        return 1 if self.draws is None else self.draws.number

    def value(self, row: Metric, own: Options) -> tuple[float, float | None]:
        """Return the metric on all cases, and a bound on its error where it is approximate."""
        return value_of(row, own, self._summaries[self._plans[row.name]])

    def _per_unit(self, row: Metric, own: Options) -> Any:
        key = self._key(row, own)
        if key not in self._tables:
            summary = self._summaries[self._plans[row.name]]
            if isinstance(summary, CellSums):
                summary = summary.scores_by_unit()
            self._tables[key] = row.prepare(summary, own)
        return self._tables[key]


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


def _warnings(digest: Digest) -> tuple[str, ...]:
    found = []
    facts, units = digest.facts, len(digest.unit_cases)
    if facts.cases < 100:
        found.append(f"only {facts.cases} cases: calibration errors are dominated by chance")
    if digest.unit == "patients" and units < 20:
        found.append(f"only {units} patients: intervals by patient are too short below about 20")
    if facts.under_two == facts.cases:
        found.append("one rater per case: disagreement and epistemic loss cannot be estimated")
    elif facts.under_two:
        found.append(f"{facts.under_two} of {facts.cases} cases have a single rater")
    return tuple(found)
