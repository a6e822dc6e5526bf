"""From a digest to judged metrics, and from these to results: the same for every source of cases.

source of cases -> Digest (summaries, facts)
Digest, Request -> Judged (estimates with intervals)
Judged          -> Results (what a reader is told and warned of, curves, resampled values)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from raterwise.catalog import Metric
from raterwise.curves.reliability import curves_of
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluation.request import Request
from raterwise.evaluation.warnings import UNKNOWN_RATERS, warnings_about, warnings_about_data
from raterwise.exchangeability import exchangeability_test
from raterwise.inference.draws import Units, digest_in_memory, resampling_units
from raterwise.inference.estimates import blank, estimate
from raterwise.inference.jackknife import resampling_of, several
from raterwise.inference.measures import Measure
from raterwise.inference.nested import in_order
from raterwise.inference.passes import Asked, Pass
from raterwise.inference.raters import RATERS_SHARE, Panels, RaterDraws
from raterwise.inference.settings import Progress, reporting, within
from raterwise.inference.verdict import About, judge_sums
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.provenance import left_out_record, made, raters_record
from raterwise.results import Estimate, Results, to_digits
from raterwise.summaries import DeviationPlan, summarise
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts
from raterwise.summaries.panel import MOST_RATINGS, Panel
from raterwise.types import FloatArray, Options

SIMULATIONS = 1000
"""Calibrated models that the verdict is judged by."""
POSSIBLY = 0.1
"""Up to this p-value, of all checks together, a model is possibly miscalibrated: not called so at
0.05, and not cleared either."""


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
    """Resampled values that were made already, such as means over images."""
    curves: Mapping[str, Any] | None = None
    """The curves, where they were made already."""
    by_image: bool = False
    """Whether estimates are means over images, each of which has a value of its own."""

    def replicates(self) -> dict[str, FloatArray]:
        """Return every metric on every resample, where it has a value."""
        if self.own_replicates or self.pass_ is None:
            return dict(self.own_replicates)
        return _replicates(self.measures(), self.estimates)

    def measures(self) -> dict[str, Measure]:
        """Return the metrics on the pass over the cases; none where there was no such pass."""
        if self.pass_ is None:
            return {}
        return {name: Measure(*one, self.pass_) for name, one in self.asked.items()}


def judge(
    digest: Digest,
    request: Request,
    *,
    rater_draws: RaterDraws | None = None,
    require: Callable[[int, str], int] | None = None,
    progress: Progress | None = None,
    in_full: bool = False,
) -> Judged:
    """Return the estimates of every metric asked for on a digest.

    `require(least, on_single)` returns how many cases have too few raters, or raises; by default
    that of the facts. Where results follow (`in_full`), so do curves and resampled values.
    """
    report = reporting(progress)
    require = require or digest.facts.require_raters
    estimates: dict[str, Estimate] = {}
    rated: dict[str, tuple[Metric, Options]] = {}
    asked, on_single = request.asked, request.settings.on_single
    for row in request.rows:
        estimates[row.name] = blank(row)
        if row.name not in asked:
            estimates[row.name] = replace(blank(row), undefined=request.lacking(row))
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
    turns, done = pass_.in_turns(), 0
    drawn: dict[str, FloatArray] = {}
    curves: dict[str, Any] = {}
    for names in turns:
        for name in names:
            measure = Measure(*rated[name], pass_)
            report(measure.row.title, done / len(rated))
            estimates[name] = estimate(measure, estimates[name])
            done += 1
            if len(turns) > 1:  # what all this is made of will not be there any more later
                if in_full:
                    drawn |= _replicates({name: measure}, estimates)
                    curves |= curves_of([measure], digest.facts.class_names)
                pass_.let_go([name], part=True)
        pass_.let_go(() if names is turns[-1] else names)
    estimates = in_order(estimates, rated, request.settings.level)
    made = curves if in_full and len(turns) > 1 else None
    return Judged(request, digest, estimates, rated, pass_, drawn, made)


def _replicates(
    measures: Mapping[str, Measure], estimates: Mapping[str, Estimate]
) -> dict[str, FloatArray]:
    """Return metrics on every resample, where they have a value."""
    return {
        name: measure.replicates(value, paired=True)
        for name, measure in measures.items()
        if (value := estimates[name].value) is not None
        if measure.pass_.resampled and measure.tabled
    }


def judge_predictions(
    predictions: Predictions,
    request: Request,
    units: Units | None = None,
    progress: Progress | None = None,
    *,
    verdict: bool = False,
) -> Judged:
    """Return the estimates of every metric asked for on predictions in memory.

    With `verdict` the digest has what a verdict on calibration needs. So it has where several
    raters chose among more than two classes: how far they agree on what is asked is in it, and the
    interval of an error is the same with and without a verdict.
    """
    report, settings = reporting(progress), request.settings
    report("reading the cases", 0.0)
    plans = request.plans()
    labels, wanted = predictions.labels, verdict
    if labels.num_classes > 2 and labels.num_raters.max(initial=0) > 1:
        wanted = True
    more = request.verdict_plans(predictions.groups is not None if wanted else None)
    by_unit = settings.unit != "raters"
    digest = digest_in_memory(predictions, [*plans, *more] if by_unit else plans, settings, units)
    if more and not by_unit:  # raters are resampled, but patients are patients all the same
        codes, number = resampling_units(predictions, settings.seed)
        own = summarise(predictions, more, units=codes, num_units=number)
        digest = replace(digest, summaries={**digest.summaries, **own})
    drawn, begin = None, 0.0
    if settings.draws_raters:
        facts = digest.facts
        known = facts.fingerprint.with_raters(predictions.labels)
        digest = replace(digest, facts=replace(facts, fingerprint=known))
        begin = RATERS_SHARE
        drawn = RaterDraws.of(predictions, plans, settings, progress)
    return judge(
        digest,
        request,
        rater_draws=drawn,
        require=partial(predictions.labels.require_raters, rows=predictions.kept),
        progress=within(progress, begin, 1),
        in_full=verdict,
    )


def verdict_on(judged: Judged, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return whether the model is miscalibrated and how, or why that cannot be said.

    One procedure for all that a report shows, with the family-wise error kept. `names` are those
    of the classes, where the facts do not have them.
    """
    request, facts = judged.request, judged.digest.facts
    plans = [plan for plan in judged.digest.summaries if plan.kind == DeviationPlan.kind]
    if why := request.no_verdict or _no_verdict(facts, bool(plans)):
        return {"miscalibrated": None, "sentence": f"no verdict because {why}"}
    patients = None
    if facts.grouped:
        patients = facts.images if facts.patients is None else facts.patients.number
    about = About(
        facts.classes, names or facts.class_names, facts.fewest, facts.most, patients,
        by_class=facts.given is not None,
    )  # fmt: skip
    sums = judged.digest.summaries[plans[0]]
    found = judge_sums(
        sums, about, request.shared.get("per", "annotation"),
        simulations=SIMULATIONS, seed=request.settings.seed,
    ).to_dict()  # fmt: skip
    errors = [judged.estimates[row.name] for row, _ in judged.asked.values() if row.error]
    beside = _beside_intervals(errors, request.settings.unit, found)
    return {**found, **beside, "off_target": _off_target(judged)}


def _no_verdict(facts: Facts, summed: bool) -> str:
    if not summed:
        return "what it needs of the cases was not kept"
    if facts.cases < 2:
        return "there is one case"
    if facts.patients is not None and facts.patients.number < 2:
        return "all cases are from one patient"
    return "all voxels are of one image" if facts.images == 1 else ""


def _beside_intervals(
    errors: list[Estimate], unit: str, found: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the intervals of calibration errors say beside the checks of the verdict.

    Each interval has a level of its own, so some exclude 0 by chance. All m together have the
    p-value min_k m p_(k) / k of Simes (1986), which holds for tests that go together (Sarkar 1998),
    as those of several errors of one model do. Where it is significant the model is `possibly`
    miscalibrated, as it is where the checks have a p-value up to `POSSIBLY`; unless it is so for
    the errors of disagreement alone: a model may be right about every class and still not know how
    often two raters differ. The checks take the cases for a sample and the raters as they are; an
    interval that takes the raters for a sample asks something else, and may answer otherwise.
    """
    shown = [e for e in errors if e.low is not None]
    together = _simes(shown)
    of_classes = _simes([e for e in shown if e.group != "Disagreement"])
    doubted = together is not None and together <= found["significance"]
    classes_doubted = found["p_value"] <= POSSIBLY or (
        of_classes is not None and of_classes <= found["significance"]
    )
    called = found["miscalibrated"]
    return {
        "possibly": bool(classes_doubted and not called),
        "possibly_up_to": POSSIBLY,
        "off_about_disagreement": bool(doubted and not classes_doubted and not called),
        "intervals_p_value": together,
        "above_zero": [e.name for e in shown if e.low is not None and e.low > 0],
        "reach_zero": [e.name for e in shown if e.low == 0],
        "unit": unit,
    }


def _off_target(judged: Judged) -> dict[str, float]:
    """Return what a calibrated model has of metrics whose intervals, looked at alone, exclude it.

    They count for nothing in the verdict: its checks ask of every class whether the mean and the
    slope are right, and are corrected for each other. A reader sees the intervals all the same.
    """
    found = {}
    for row, _ in judged.asked.values():
        e = judged.estimates[row.name]
        if row.calibrated is None or e.low is None or e.high is None:
            continue
        if not e.low <= row.calibrated <= e.high:
            found[row.name] = row.calibrated
    return found


def _simes(estimates: list[Estimate]) -> float | None:
    """Return the p-value of all intervals together: that no error is above 0."""
    each = sorted(e.p_value for e in estimates if e.p_value is not None)
    return min((len(each) * p / k for k, p in enumerate(each, 1)), default=None)


def raters_compared(request: Request, labels: Labels, groups: Any) -> dict[str, Any]:
    """Return whether the raters are interchangeable, or why that cannot be said.

    With the metrics of their agreement only, and where shuffling labels is a matter of seconds.
    """
    if not request.compares_raters or labels.num_raters.max() < 2:
        return {}
    try:
        if labels.ratings is None:
            raise InvalidInputError("the labels do not say who gave them")
        if len(labels.ratings.case) > MOST_RATINGS:
            raise InvalidInputError(f"there are more than {MOST_RATINGS:,} ratings")
        test = exchangeability_test(labels, groups, seed=request.settings.seed)
    except RaterwiseError as error:
        why = "no case has two raters" if "at least two different" in str(error) else str(error)
        return {"raters_not_compared": f"no comparison of the raters because {why}"}
    return {"exchangeability": test.to_dict()}


def _panel_compared(request: Request, facts: Facts) -> dict[str, Any]:
    """Return the same where cases are not in memory, from counts of what the raters said."""
    if not request.compares_raters or facts.most < 2:
        return {}
    unknown = (
        "voxels are too many to shuffle" if facts.images else "the labels do not say who gave them"
    )
    panel = facts.panel or Panel.none(unknown)
    if panel.why:
        return {"raters_not_compared": f"no comparison of the raters because {panel.why}"}
    labels, groups = panel.labels()
    return raters_compared(request, replace(labels, class_names=facts.class_names), groups)


def results_of(
    judged: Judged,
    *,
    data: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    names: tuple[str, ...] | None = None,
    origin: Mapping[str, Any] | None = None,
    **parts: Any,
) -> Results:
    """Return the results of judged metrics: the one place that makes them.

    `data`, `notes` and `origin` are what only the source of the cases knows: `origin` is for the
    provenance. `names` are those of the classes in the verdict; `parts` are further fields of
    `Results`, such as the values of each image.
    """
    request, digest, pass_ = judged.request, judged.digest, judged.pass_
    facts, settings, measures = digest.facts, request.settings, judged.measures()
    units = len(digest.unit_cases) if settings.unit != "raters" and settings.resamples else None
    about: dict[str, Any] = facts.as_data()
    if units is not None and units not in (about["cases"], about["patients"], 1):
        about["resampled"] = f"{units} blocks of {digest.unit}"
    if units is not None and several(digest.unit_weights):
        inflation, freedom, worth = resampling_of(digest.unit_weights)
        about["resampling"] = {
            "units": units, "worth": worth, "freedom": freedom, "inflation": inflation
        }  # fmt: skip
    if pass_ is not None and pass_.rater_draws is not None and pass_.rater_draws.persons:
        about["resampled_raters"] = pass_.rater_draws.persons
    about |= {
        "fingerprint": facts.fingerprint.as_data(facts.images or facts.cases, units),
        **(data or {}),
    }
    if not {"exchangeability", "raters_not_compared"} & about.keys():
        about |= _panel_compared(request, facts)
    if "verdict" not in about:
        about["verdict"] = verdict_on(judged, names)
    curves = judged.curves
    if curves is None:
        curves = curves_of(measures.values(), facts.class_names)
    warnings = warnings_about(
        digest, judged.asked, settings, judged.estimates, by_image=judged.by_image
    )
    warnings += tuple(note for measure in measures.values() for note in measure.notices())
    if pass_ is not None and pass_.rater_draws is not None and not pass_.rater_draws.persons:
        warnings += (UNKNOWN_RATERS,)
    warnings += (*warnings_about_data(about), *request.notices())
    known = {"raters": raters_record(facts.rater_names), "inputs": []}
    origin = {"call": "raterwise", **known, **(origin or {})}
    origin.setdefault("left_out", left_out_record({}, about.get("dropped", {})))
    return Results(
        dict(judged.estimates),
        data=about,
        provenance=made(**origin, seed=settings.seed),
        options=request.as_options(),
        warnings=(*warnings, *notes),
        curves=parts.pop("curves", curves),
        replicates={name: to_digits(values) for name, values in judged.replicates().items()},
        **parts,
    )
