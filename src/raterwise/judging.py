"""From a digest to judged metrics, and from these to results: the same for every source of cases.

source of cases -> Digest (summaries, facts)
Digest, Request -> Judged (estimates with intervals)
Judged          -> Results (what a reader is told and warned of, curves, resampled values)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.cautions import warnings_about, warnings_about_data
from raterwise.curves import curves_of
from raterwise.errors import RaterwiseError
from raterwise.inference.draws import Units, digest_in_memory
from raterwise.inference.estimates import blank, estimate
from raterwise.inference.jackknife import resampling_of
from raterwise.inference.passes import Asked, Pass
from raterwise.inference.raters import RATERS_SHARE, Panels, RaterDraws
from raterwise.inference.settings import Progress, silent
from raterwise.predictions import Predictions
from raterwise.request import Request
from raterwise.results import Estimate, Results, to_digits
from raterwise.summaries.digest import Digest

__all__ = ["Judged", "judge", "judge_predictions", "results_of"]

FloatArray = NDArray[np.float64]

NO_BELIEF = "it needs a belief over class probabilities, not probabilities alone"


@dataclass(frozen=True, eq=False)
class Judged:
    """The metrics of some cases, and what they came from."""

    request: Request
    digest: Digest
    estimates: Mapping[str, Estimate]
    asked: Asked
    """Those that the raters suffice for, with their options."""
    pass_: Pass | None
    own_replicates: Mapping[str, FloatArray] = field(default_factory=dict)
    """Resampled values that were made elsewhere, such as means over images."""

    def replicates(self) -> dict[str, FloatArray]:
        """Return every metric on every resample, where it has a value."""
        if self.own_replicates or self.pass_ is None or not self.pass_.resampled:
            return dict(self.own_replicates)
        return {
            name: self.pass_.replicates(row, own, value, paired=True)
            for name, (row, own) in self.asked.items()
            if (value := self.estimates[name].value) is not None and self.pass_.tabled(row)
        }


def judge(
    digest: Digest,
    request: Request,
    *,
    rater_draws: RaterDraws | None = None,
    require: Callable[[int, str], int] | None = None,
    progress: Progress | None = None,
) -> Judged:
    """Return the estimates of every metric asked for on a digest.

    `require(least, on_single)` returns how many cases have too few raters, or raises; by default
    that of the facts.
    """
    report = progress or silent
    require = require or digest.facts.require_raters
    estimates: dict[str, Estimate] = {}
    rated: dict[str, Any] = {}
    asked, on_single = request.asked, request.settings.on_single
    for row in request.rows:
        estimates[row.name] = blank(row)
        if row.name not in asked:
            estimates[row.name] = replace(blank(row), undefined=NO_BELIEF)
            continue
        own = asked[row.name][1]
        try:
            dropped = require(row.raters_needed(own, on_single), on_single)
        except RaterwiseError as error:
            estimates[row.name] = replace(blank(row), undefined=str(error))
            continue
        estimates[row.name] = replace(blank(row, own), dropped=dropped)
        rated[row.name] = row, own
    if not rated:
        return Judged(request, digest, estimates, rated, None)
    if rater_draws is None and digest.panels:
        settings, persons = request.settings, len(next(iter(digest.panels)))
        panels = Panels.of(persons, settings)
        rater_draws = RaterDraws.of_panels(panels, digest.panels, settings.seed)
    pass_ = Pass(digest, rated, request.settings, rater_draws=rater_draws)
    for i, (name, (row, own)) in enumerate(rated.items()):
        report(row.title, i / len(rated))
        estimates[name] = estimate(row, own, estimates[name], pass_)
    return Judged(request, digest, estimates, rated, pass_)


def judge_predictions(
    predictions: Predictions,
    request: Request,
    units: Units | None = None,
    progress: Progress | None = None,
) -> Judged:
    """Return the estimates of every metric asked for on predictions in memory."""
    report, settings = progress or silent, request.settings
    report("reading the cases", 0.0)
    digest = digest_in_memory(predictions, request.plans(), settings, units)
    drawn, begin = None, 0.0
    if settings.draws_raters:
        facts = digest.facts
        known = facts.fingerprint.with_raters(predictions.labels)
        digest = replace(digest, facts=replace(facts, fingerprint=known))
        begin, plans = RATERS_SHARE, request.plans()
        drawn = RaterDraws.of(predictions, plans, settings, progress)
    return judge(
        digest,
        request,
        rater_draws=drawn,
        require=predictions.labels.require_raters,
        progress=lambda what, done: report(what, begin + (1 - begin) * done),
    )


def results_of(
    judged: Judged,
    *,
    data: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    **parts: Any,
) -> Results:
    """Return the results of judged metrics: the one place that makes them.

    `data` and `notes` are what only the source of the cases knows; `parts` are further fields of
    `Results`, such as the values of each image.
    """
    request, digest, pass_ = judged.request, judged.digest, judged.pass_
    facts, settings = digest.facts, request.settings
    units = len(digest.unit_cases) if settings.unit != "raters" and settings.resamples else None
    about: dict[str, Any] = facts.as_data()
    if units is not None and units not in (about["cases"], about["patients"], 1):
        about["resampled"] = f"{units} blocks of {digest.unit}"
    if units is not None and units > 1:
        inflation, freedom, worth = resampling_of(digest.unit_cases)
        about["resampling"] = {
            "units": units, "worth": worth, "freedom": freedom, "inflation": inflation
        }  # fmt: skip
    if pass_ is not None and pass_.rater_draws is not None and pass_.rater_draws.persons:
        about["resampled_raters"] = pass_.rater_draws.persons
    about |= {
        "fingerprint": facts.fingerprint.as_data(facts.images or facts.cases, units),
        **(data or {}),
    }
    curves = {} if pass_ is None else curves_of(pass_, judged.asked, facts.class_names)
    warnings = warnings_about(digest, judged.asked, settings, judged.estimates)
    if pass_ is not None:
        warnings += tuple(pass_.notices(judged.asked))
    warnings += (*warnings_about_data(about), *request.notices())
    return Results(
        dict(judged.estimates),
        data=about,
        options=request.as_options(),
        warnings=(*warnings, *notes),
        curves=parts.pop("curves", curves),
        replicates={name: to_digits(values) for name, values in judged.replicates().items()},
        **parts,
    )
