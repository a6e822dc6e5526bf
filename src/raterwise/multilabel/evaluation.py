"""Multi-label tasks: L yes-or-no findings per case, each and on average."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_array
from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError
from raterwise.evaluation.judged import Judged, judge_predictions, raters_compared, results_of
from raterwise.evaluation.request import Metrics, Request
from raterwise.inference.draws import Units, resampling_units
from raterwise.inference.estimates import blank, infinite_mean, mean_estimate
from raterwise.inference.settings import Progress, Settings, reporting, silent, within
from raterwise.kernels._threads import with_threads
from raterwise.labels import Labels
from raterwise.multilabel.inputs import answers_of, checked, counted, prevalence_of_each, titles_of
from raterwise.predictions import Predictions
from raterwise.prevalence import Prior, in_use, in_words, refuse_source_alone
from raterwise.readers.against import beside_readers
from raterwise.results import Estimate, Results
from raterwise.rules import choose, have
from raterwise.subgroups.levels import metrics_by_level, refuse_metrics_alone, with_subgroups
from raterwise.subgroups.sources import subgroups_of
from raterwise.subgroups.variables import Variable, variables_of
from raterwise.types import Array, Interval, OnSingle, OnUnrated, Per, Questions, Unit

JUDGING = 0.6
"""How much of the progress is judging the findings, where sub-groups follow."""


def evaluate_multilabel(
    probs: ArrayLike,
    positives: ArrayLike | None = None,
    raters: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    metrics: Metrics = "all",
    groups: ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    *,
    ratings: ArrayLike | None = None,
    unit: Unit = "cases",
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    threshold: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    weights: ArrayLike | None = None,
    interval: Interval = "auto",
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
    subgroups: Mapping[str, ArrayLike] | ArrayLike | None = None,
    subgroup_metrics: Metrics | None = None,
    target_prevalence: float | ArrayLike | None = None,
    source_prevalence: float | ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Compute metrics for each of several findings, and their means, with intervals.

    Each of the L findings is a separate yes-or-no task. Calibration errors ask about the positive
    class unless a `question` is given. AUCCC and related metrics are about the decision (yes from
    a probability of 0.5): whether the model is more confident where it is right. `auroc` says how
    well it ranks the cases by the finding itself. The findings are resampled together, patient by
    patient, so the interval of the mean accounts for their correlation.

    Parameters
    ----------
    probs : array-like of shape (N, L)
        The probability that each finding is present.
    positives : array-like of shape (N, L), default None
        How many raters saw the finding.
    raters : int or array-like of shape (N, L), default None
        How many raters looked for it; 1 if `positives` has a single answer, 0 or 1, for each case.
    names : sequence of str, default None
        Names of the findings.
    metrics : str or sequence of str, default "all"
        "all", names such as "ece,brier" or ["ece", "brier"], or the name of a group of metrics,
        such as "clinical".
    groups : array-like of shape (N,), default None
        The patient of each case; whole patients are then resampled.
    resamples : int, default 1000
        Number of resamples for the intervals; 0 gives values without intervals.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    ratings : array-like of shape (N, L, R), default None
        The answer of each of R raters, instead of both counts: 1 or 0; -1 and NaN mean no rating.
    unit : {"cases", "raters", "both"}, default "cases"
        What is treated as a random sample: cases (patients, with `groups`), raters, or both. Raters
        need `ratings`, because counts do not identify them.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1, for every binned metric.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of a case, as in `evaluate`; by default calibration errors ask "positive".
    per : {"annotation", "case"}, default None
        Whether each label or each case counts once, as in `evaluate`.
    threshold : float, default None
        A probability of at least this counts as a positive test, in every metric with a threshold;
        0.5 by default.
    options : mapping of str to mapping, default None
        Options of individual metrics: {"robust_ece": {"sigma": 0.05}}.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    interval : {"auto", "percentile", "bias_corrected"}, default "auto"
        How intervals are made, as in `evaluate`.
    on_unrated : {"error", "drop"}, default "error"
        "drop" leaves a case out of the findings that nobody rated.
    on_single : {"error", "drop"}, default "error"
        What a metric does if cases have fewer labels than it needs: it is undefined, or it leaves
        these cases out.
    subgroups : mapping of str to array-like, data frame, or array-like of shape (N,), default None
        What tells cases apart: {"scanner": values}, as in `evaluate`.
    subgroup_metrics : str or sequence of str, default None
        The metrics to compute in every level, out of those requested.
    target_prevalence, source_prevalence : float or array-like of shape (L,), default None
        How frequent each finding is in use, and where its probabilities are right, as in
        `evaluate`; one number is for all of them.
    threads : int, default None
        Number of threads; by default one per core.
    progress : callable, default None
        Function called with a description and the fraction done.

    Returns
    -------
    Results
        The means over the findings (`results["ece"]`); `results.findings["mass"]` are the results
        of one finding.

    Raises
    ------
    InvalidInputError
        If the arrays do not match, nobody rated a finding of a case, or raters are to be resampled
        and nobody knows who said what.

    See Also
    --------
    evaluate : one task with exclusive classes.

    References
    ----------
    The papers of each metric are named in its estimate (`results["ece"].reference`).

    Examples
    --------
    >>> probs = [[0.9, 0.2], [0.4, 0.1], [0.7, 0.6]]
    >>> positives, raters = [[1, 0], [0, 0], [1, 1]], [[1, 1], [1, 1], [1, 1]]
    >>> results = evaluate_multilabel(
    ...     probs, positives, raters, names=["mass", "nodule"], metrics="accuracy", resamples=0
    ... )
    >>> results["accuracy"].value, results.findings["mass"]["accuracy"].value
    (1.0, 1.0)
    """
    settings = Settings(resamples, level, seed, unit, interval, on_single, threads)
    request = Request.of(
        metrics,
        bins=bins,
        question=question,
        per=per,
        threshold=threshold,
        options=options,
        settings=settings,
        classes=2,
    )
    if question is None:
        request = request.about_the_positive_class()
    answers = answers_of(ratings, positives, raters, settings, as_array(probs, "probs").shape)
    findings = _Findings.of(
        probs, *counted(answers, positives, raters), answers, names, weights, groups, on_unrated
    )
    refuse_source_alone(target_prevalence, source_prevalence)
    if target_prevalence is not None:
        findings = findings.at_prevalence(target_prevalence, source_prevalence)
        request = request.at_other_prevalence(metrics)
    report = reporting(progress)
    with with_threads(threads):
        whole, each = findings.judged(findings.cases, request, None, report, verdict=True)
        results = _results(findings, whole, each)
        if subgroups is not None:
            variables = variables_of(subgroups, findings.cases.given)
            variables = tuple(v.take(findings.cases.kept) for v in variables)
            chosen = metrics_by_level(subgroup_metrics, request)
            results = _with_levels(findings, results, variables, chosen, report)
        else:
            refuse_metrics_alone(subgroup_metrics)
    report("done", 1.0)
    return results


@dataclass(frozen=True, eq=False)
class _Findings:
    """The findings of all cases."""

    cases: Predictions
    """Patients and weights of the cases; its probabilities are those of the first finding."""
    probs: Array
    positives: Array
    raters: Array
    answers: Array | None
    """(N, L, R): what each rater said, where that is known; negative is no rating."""
    titles: tuple[str, ...]
    priors: tuple[Prior, ...] = ()
    """Of each finding, where it is to count as in use."""

    @staticmethod
    def of(
        probs: Any, positives: Any, raters: Any, answers: Array | None, names: Any, weights: Any,
        groups: Any, on: str,
    ) -> _Findings:  # fmt: skip
        array, counts, labelled = checked(probs, positives, raters)
        titles = titles_of(names, array.shape[1])
        choose("on_unrated", on, ("error", "drop"))
        nobody = np.argwhere(labelled == 0)
        if on == "error" and len(nobody):
            row, finding = nobody[0]
            missing = int((labelled[:, finding] == 0).sum())
            raise InvalidInputError(
                f"raters: every case needs a rating of {titles[finding]}; {missing} "
                f'{have(missing)} none (first: row {row}); on_unrated="drop" leaves them out'
            )
        said = np.zeros(len(array), int)
        cases = Predictions.of(array[:, 0], said, weights=weights, groups=groups)
        return _Findings(cases, array, counts, labelled, answers, tuple(titles))

    def finding(self, i: int, cases: Predictions) -> tuple[Predictions, NDArray[np.int64]]:
        """Return one finding of some of the cases, and which of them they are: those rated."""
        rows = np.arange(len(cases)) if cases.kept is None else cases.kept
        raters, positives = self.raters[rows, i], self.positives[rows, i]
        seen = raters > 0
        labels = Labels.from_counts(np.stack((raters - positives, positives), axis=1))
        if self.answers is not None:
            labels = Labels.from_ratings(self.answers[rows, i], num_classes=2)
        dropped = {} if seen.all() else {"unrated": int((~seen).sum())}
        whole = replace(cases, probs=self.probs[rows, i], labels=labels, kept=None)
        part = whole.take(seen, dropped=dropped)
        if not self.priors:
            return part, np.flatnonzero(seen)
        moved, rows = in_use(part, self.priors[i])
        return moved, np.flatnonzero(seen)[rows]

    def at_prevalence(self, target: Any, source: Any) -> _Findings:
        """Return the findings as they count in use: of each its prevalence, or one for all."""
        number = len(self.titles)
        to = prevalence_of_each("target_prevalence", target, number)
        before = prevalence_of_each("source_prevalence", source, number)
        priors = (
            Prior.of_cases(self.finding(i, self.cases)[0], to[i], before[i]) for i in range(number)
        )
        return replace(self, priors=tuple(priors))

    def judged(
        self,
        cases: Predictions,
        request: Request,
        units: Units | None,
        progress: Progress = silent,
        *,
        verdict: bool = False,
    ) -> tuple[Judged, dict[str, Judged]]:
        """Return the mean over the findings, and each finding, resampled together."""
        units = units or resampling_units(cases, request.settings.seed)
        found: dict[str, Judged] = {}
        for i, title in enumerate(self.titles):
            progress(title, JUDGING * i / len(self.titles))
            part, seen = self.finding(i, cases)
            if not len(part):
                raise InvalidInputError(f"raters: nobody rated {title} in any case")
            own = units[0][seen], units[1]
            found[title] = judge_predictions(part, request, own, verdict=verdict)
        return _mean(request, found), found

    def judge_mean(self, cases: Predictions, request: Request, units: Units | None) -> Judged:
        """Return the mean over the findings."""
        return self.judged(cases, request, units)[0]

    def judge_one(self, i: int) -> Any:
        """Return how to judge one finding."""

        def judge(cases: Predictions, request: Request, units: Units | None) -> Judged:
            part, seen = self.finding(i, cases)
            own = None if units is None else (units[0][seen], units[1])
            return judge_predictions(part, request, own)

        return judge


def _mean(request: Request, findings: Mapping[str, Judged]) -> Judged:
    """Return the means over the findings in which each metric is defined."""
    estimates: dict[str, Estimate] = {}
    replicates: dict[str, Any] = {}
    each = {title: judged.replicates() for title, judged in findings.items()}
    for row in request.rows:
        having = [
            t for t, judged in findings.items() if judged.estimates[row.name].value is not None
        ]
        why = [judged.estimates[row.name].undefined for judged in findings.values()]
        if infinite := infinite_mean(row, why, "findings"):
            left = len(findings) - len(having)
            estimates[row.name] = replace(blank(row), dropped=left, undefined=infinite)
            continue
        estimates[row.name] = _mean_of(row, [findings[t] for t in having], len(findings))
        drawn = [each[t][row.name] for t in having if row.name in each[t]]
        if drawn:
            replicates[row.name] = np.mean(drawn, axis=0)
    first = next(iter(findings.values()))
    facts = first.digest.facts
    for judged in list(findings.values())[1:]:
        other = judged.digest.facts
        if facts.given is not None and other.given is not None:
            both = replace(facts.given + other.given, cases=facts.given.cases)
            facts = replace(facts, given=both)
        facts = replace(
            facts,
            ratings=facts.ratings + other.ratings,
            fingerprint=facts.fingerprint + other.fingerprint,
            fewest=min(facts.fewest, other.fewest),
            most=max(facts.most, other.most),
        )
    return Judged(
        request, replace(first.digest, facts=facts), estimates, first.asked, None, replicates
    )


def _mean_of(row: Metric, having: Sequence[Judged], findings: int) -> Estimate:
    if not having:
        point = replace(blank(row), dropped=findings)
        return replace(point, undefined="it is undefined for every finding")
    own = having[0].asked[row.name][1]  # as of all of them
    point = replace(blank(row, own), dropped=findings - len(having))
    values = [value for j in having if (value := j.estimates[row.name].value) is not None]
    return mean_estimate(point, [judged.measures()[row.name] for judged in having], values)


def _results(findings: _Findings, whole: Judged, each: Mapping[str, Judged]) -> Results:
    """Return the results of all findings; what is said of every one of them is said once."""
    of_each = {}
    for i, (title, judged) in enumerate(each.items()):
        part, _ = findings.finding(i, findings.cases)
        about = raters_compared(judged.request, part.labels, part.groups)
        about |= beside_readers(part, judged.request)
        names = f"no {title}", title
        own: tuple[str, ...] = ()
        if findings.priors:
            about["target_prevalence"] = findings.priors[i].told(judged.digest.facts.told.worth)
            own = (in_words(about["target_prevalence"], names),)
        of_each[title] = results_of(judged, data=about, names=names, notes=own)
    said = [set(results.warnings) for results in of_each.values()]
    common = set.intersection(*said)
    first = next(iter(of_each.values()))
    notes = [note for note in first.warnings if note in common]
    notes += _of_some(
        (title, note)
        for title, results in of_each.items()
        for note in results.warnings
        if note not in common
    )
    facts, known = whole.digest.facts, first.data.get("resampled_raters")
    rated = int((findings.raters > 0).sum())
    data = {
        "cases": len(findings.cases),
        "findings": list(findings.titles),
        "raters": {
            "mean": facts.told.ratings / rated,
            "min": facts.told.fewest,
            "max": facts.told.most,
        },
        "dropped": dict(findings.cases.dropped),
        "verdict": _verdict_on_each(of_each),
        **_raters_of_each(first),
        **({} if known is None else {"resampled_raters": known}),
    }
    origin = {"call": "raterwise.evaluate_multilabel"}
    found = results_of(whole, data=data, origin=origin, findings=of_each, curves={})
    return replace(found, warnings=tuple(notes))


def _of_some(noted: Iterable[tuple[str, str]]) -> list[str]:
    """Return what is to know of some findings; of several the same, once with all their names.

    >>> _of_some(
    ...     [
    ...         ("edema", "not interchangeable (p < 0.001): so"),
    ...         ("mass", "not interchangeable (p = 0.034): so"),
    ...         ("mass", "few of class 1 (5)"),
    ...     ]
    ... )
    ['edema, mass: not interchangeable: so', 'mass: few of “mass” (5)']
    """
    same: dict[str, list[tuple[str, str]]] = {}
    for title, note in noted:
        named = re.sub(r"\bclass 1\b", f"“{title}”", note)
        same.setdefault(re.sub(r" \(p [<=] [^)]*\)", "", named), []).append((title, named))
    return [
        f"{', '.join(title for title, _ in each)}: {each[0][1] if len(each) == 1 else told}"
        for told, each in same.items()
    ]


def _raters_of_each(first: Results) -> dict[str, Any]:
    """Return where the raters are compared, or why they are not."""
    if "exchangeability" in first.data:
        return {"raters_not_compared": "the raters are compared finding by finding"}
    return {k: v for k, v in first.data.items() if k == "raters_not_compared"}


def _verdict_on_each(findings: Mapping[str, Results]) -> dict[str, Any]:
    """Return how many findings are miscalibrated; each has a verdict of its own."""
    verdicts = {title: found.data["verdict"] for title, found in findings.items()}
    judged = [title for title, v in verdicts.items() if v["miscalibrated"] is not None]
    if not judged:
        return next(iter(verdicts.values()))
    off = [title for title in judged if verdicts[title]["miscalibrated"]]
    possibly = [title for title in judged if verdicts[title].get("possibly")]
    named = f": {', '.join(off)}" if off else ""
    is_are = "is" if len(off) == 1 else "are"
    sentence = f"{len(off)} of {len(judged)} findings {is_are} miscalibrated{named}"
    if possibly:
        sentence += f"; possibly {', '.join(possibly)}"
    sentence += " (each judged on its own)"
    return {"miscalibrated": None, "sentence": sentence, "findings": off, "possibly": possibly}


def _with_levels(
    findings: _Findings,
    results: Results,
    variables: tuple[Variable, ...],
    chosen: Request,
    progress: Progress,
) -> Results:
    """Return the results with sub-groups, of the means and of every finding."""
    cases = findings.cases
    judges = [findings.judge_mean, *(findings.judge_one(i) for i in range(len(findings.titles)))]
    ends = np.linspace(JUDGING, 1, len(judges) + 1).tolist()
    made = [
        subgroups_of(cases, variables, judge, chosen, within(progress, *ends[i : i + 2]))
        for i, judge in enumerate(judges)
    ]
    titled = zip(findings.titles, made[1:], strict=True)
    found = {t: replace(results.findings[t], subgroups=levels) for t, levels in titled}
    return replace(with_subgroups(results, variables, made[0], chosen), findings=found)
