"""Everything at once: plan what the metrics share, read the cases once, estimate, put intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise.beliefs import Belief
from raterwise.catalog.metric import Given
from raterwise.errors import InvalidInputError
from raterwise.evaluation.judged import judge_predictions, raters_compared, results_of
from raterwise.evaluation.request import Metrics, Request
from raterwise.inference.settings import Progress, Settings, within
from raterwise.kernels._threads import with_threads
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.predictions.mixtures import Draws
from raterwise.prevalence import Prior, in_use, in_words, refuse_source_alone
from raterwise.provenance import files_of, left_out_record, raters_record
from raterwise.readers.against import beside_readers
from raterwise.results import Results
from raterwise.subgroups.levels import metrics_by_level, refuse_metrics_alone, with_subgroups
from raterwise.subgroups.sources import subgroups_of
from raterwise.subgroups.variables import variables_of
from raterwise.summaries.facts import AsGiven
from raterwise.types import Interval, OnSingle, OnUnrated, Per, Questions, Unit

WHOLE_SHARE = 0.5
"""How much of the progress is the evaluation of all cases, where sub-groups follow."""


def evaluate(
    probs: ArrayLike | Belief | Predictions,
    labels: Labels | ArrayLike | None = None,
    metrics: Metrics = "all",
    groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    *,
    unit: Unit = "cases",
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    threshold: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    weights: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
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
    """Return every metric asked for, with an interval, from one pass over the cases.

    Parameters
    ----------
    probs : array-like or data frame of shape (N, K) or (N,), a belief, or Predictions
        Class probabilities; (N,) are those of class 1 of two. Of a belief, the disagreement that it
        predicts and its posterior are judged too, and of an ensemble RECE-M. `Predictions`, as
        `read_cases` returns them, hold labels, patients, weights and names already.
    labels : Labels or array-like of shape (N,), default None
        What the raters said, or one class per case; words by the names of the classes.
    metrics : str or sequence of str, default "all"
        "all", or names such as "ece,brier" or ["ece", "brier"]; the name of a group, such as
        "clinical", stands for its metrics.
    groups : array-like of shape (N,), default None
        The patient of each case: patients, not cases, are resampled.
    class_names : sequence of str, default None
        A name for each class; by default what the labels call them.
    resamples : int, default 1000
        How many, for the intervals; 0 gives values without intervals.
    level : float, default 0.95
        Of confidence.
    seed : int, default 0
        Of everything random: the same seed gives the same digits, with any number of threads.
    unit : {"cases", "raters", "both"}, default "cases"
        What is a sample of a population: cases (patients, where `groups` names them), raters, or
        both at once; best where it is known who said what.
    bins : int or array-like, default 15
        How many bins of equal width, or their edges from 0 to 1, for every metric with bins.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of a case, by every metric that can ask it: is the predicted class right; of
        two classes, is it class 1; is it class k; the first among the cases predicted as each
        class. By default what the function of the same name asks.
    per : {"annotation", "case"}, default None
        Whether every label counts once, or every case, in every metric that can count both ways.
        By default as in the function of the same name.
    threshold : float, default None
        A probability of at least this is a positive test, in every metric at a threshold; 0.5 if
        left out.
    options : mapping of str to mapping, default None
        By metric, options of its own: {"robust_ece": {"sigma": 0.05}}.
    weights : array-like of shape (N,), default None
        How much each case counts; 1 if left out.
    confidence : array-like of shape (N,), default None
        What ranks the cases in AUCCC, AURC, AUGRC and their curve instead of the largest
        probability: any number that is higher where the model is surer.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, of which the
        largest counts. Whatever was predicted for them is wrong in these metrics, in which each
        counts once, and `io_auroc` says how well confidence tells them apart. They are a sample of
        their own, resampled by themselves.
    interval : {"auto", "percentile", "bias_corrected"}, default "auto"
        "auto": test inversion for calibration errors; for the rest the error of leaving out one
        patient or case at a time, with a shape that suits the metric. "percentile" and
        "bias_corrected": that bootstrap for every metric.
    on_unrated : {"error", "drop"}, default "error"
        What to do about cases that nobody rated.
    on_single : {"error", "drop"}, default "error"
        What a metric does about cases with fewer labels than it needs. With "error" that metric is
        undefined in the results, and the others go on.
    subgroups : mapping of str to array-like, data frame, or array-like of shape (N,), default None
        What tells cases apart: {"scanner": values}. The metrics are made within each level and
        compared with those of all other cases: `results.subgroups`.
    subgroup_metrics : str or sequence of str, default None
        Of the metrics asked for, those to make in every level; by default accuracy, Brier score,
        calibration error, ECE and AUCCC.
    target_prevalence : float or array-like of shape (K,), default None
        How frequent the classes are in use (of two, class 1), where disease is enriched in these
        cases: every label is weighted by its class, probabilities are shifted alike
        (`shift_prevalence`; of an ensemble, every draw), and the results say how. Metrics of how
        raters of a case differ are left out.
    source_prevalence : float or array-like of shape (K,), default None
        With `target_prevalence`, where the probabilities are right: by default with these labels;
        give the target again where they are right in use already.
    threads : int, default None
        How many to use; by default as many as the machine has cores.
    progress : callable, default None
        Called with a description and the fraction done.

    Returns
    -------
    Results
        The estimates by name, with warnings, curves and how they were made.

    Raises
    ------
    InvalidInputError
        If the data or the options cannot be used. A metric that is undefined on good data is no
        error: its estimate says why it has no value.

    See Also
    --------
    compare : several models on the same cases.
    evaluate_stream : tables larger than memory.
    evaluate_multilabel : several yes-or-no findings per case.
    segmentation.evaluate : images.

    References
    ----------
    The papers of each metric are named in its estimate (`results["ece"].reference`).

    Examples
    --------
    >>> import raterwise as rw
    >>> probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> results = rw.evaluate(probs, [0, 1, 1, 0], metrics="accuracy,brier", resamples=200)
    >>> results["accuracy"].value, round(results["brier"].value, 4)
    (0.75, 0.225)
    """
    predictions = predictions_of(
        probs, labels, weights, groups, class_names, on_unrated, confidence, outside
    )
    settings = Settings(resamples, level, seed, unit, interval, on_single, threads)
    request = Request.of(
        metrics, bins=bins, question=question, per=per, threshold=threshold, options=options,
        settings=settings,
        given=Given.of(predictions), classes=predictions.num_classes,
    )  # fmt: skip
    cases, request, told = as_in_use(
        predictions, request, metrics, target_prevalence, source_prevalence
    )
    results = _with_subgroups(
        cases, request, subgroups, subgroup_metrics, predictions.given, progress
    )
    return results if told is None else told_of_cases(results, told, predictions)


def as_in_use(
    predictions: Predictions,
    request: Request,
    metrics: Metrics,
    target: float | ArrayLike | None,
    source: float | ArrayLike | None,
) -> tuple[Predictions, Request, dict[str, Any] | None]:
    """Return cases as they count at the prevalence of use, what to ask of them, and what to tell.

    Without a target they count as they are, and there is nothing to tell.
    """
    refuse_source_alone(target, source)
    if target is None:
        return predictions, request, None
    prior = Prior.of_cases(predictions, target, source)
    moved, _ = in_use(predictions, prior)
    given = AsGiven.of(moved)
    assert given is not None  # a case may have several rows here
    return moved, request.at_other_prevalence(metrics, Given.of(moved)), prior.told(given.worth)


def told_of_cases(results: Results, told: Mapping[str, Any], predictions: Predictions) -> Results:
    """Return results that say at which prevalence these cases counted, and who rated them."""
    results = told_in_use(results, told, predictions.class_names)
    ratings = predictions.labels.ratings  # which rows of their own, one per class, do not have
    raters = raters_record(None if ratings is None else ratings.rater_ids)
    return replace(results, provenance={**results.provenance, "raters": raters})


def told_in_use(
    results: Results, told: Mapping[str, Any], class_names: Sequence[str] | None
) -> Results:
    """Return results that say at which prevalence the cases counted."""
    return replace(
        results,
        data={**results.data, "target_prevalence": told},
        warnings=(in_words(told, class_names), *results.warnings),
    )


def _with_subgroups(
    predictions: Predictions,
    request: Request,
    subgroups: Any,
    subgroup_metrics: Metrics | None,
    given: int,
    progress: Progress | None,
) -> Results:
    """Return the results of all cases, and of every level where there are sub-groups."""
    with with_threads(request.settings.threads):
        if subgroups is None:
            refuse_metrics_alone(subgroup_metrics)
            return evaluate_predictions(predictions, request, progress)
        variables = [v.take(predictions.kept) for v in variables_of(subgroups, given)]
        chosen = metrics_by_level(subgroup_metrics, request)
        results = evaluate_predictions(predictions, request, within(progress, 0, WHOLE_SHARE))
        rest = within(progress, WHOLE_SHARE, 1)
        found = subgroups_of(predictions, variables, judge_predictions, chosen, rest)
        rest("done", 1.0)
    return with_subgroups(results, variables, found, chosen)


def predictions_of(
    probs: Any,
    labels: Any,
    weights: Any = None,
    groups: Any = None,
    class_names: Sequence[str] | None = None,
    on_unrated: OnUnrated = "error",
    confidence: Any = None,
    outside: Any = None,
) -> Predictions:
    """Return checked predictions from probabilities, or from a belief over them."""
    if isinstance(probs, Predictions):
        told = {"labels": labels, "weights": weights, "groups": groups, "class_names": class_names}
        told |= {"confidence": confidence, "outside": outside}
        if twice := [name for name, value in told.items() if value is not None]:
            meant = f"; metrics={labels!r} names metrics" if isinstance(labels, str) else ""
            raise InvalidInputError(f"{twice[0]}: must be left out; the predictions hold it{meant}")
        return probs
    if labels is None:
        raise InvalidInputError("labels: must be given with probabilities; got None")
    belief = draws = None
    if hasattr(probs, "expected_gain"):  # a belief: arrays have no such method
        belief, probs = probs, probs.mean
        draws = _draws_of(belief)
    predictions = Predictions.of(
        probs,
        labels,
        weights=weights,
        groups=groups,
        class_names=class_names,
        belief=belief,
        on_unrated=on_unrated,
        confidence=confidence,
        outside=outside,
        draws=draws,
    )
    # A belief was checked when it was made, by the rules of the type it was made of.
    return predictions if belief is None else replace(predictions, tolerance=1e-2)


def _draws_of(belief: Any) -> Draws | None:
    """Return the draws of an ensemble; None where there are none, or of unequal weights."""
    samples = getattr(belief, "samples", None)
    if samples is None or np.ptp(belief.weights) > 1e-9:
        return None
    return Draws.of(samples, belief.mean)


def evaluate_predictions(
    predictions: Predictions, request: Request, progress: Progress | None = None
) -> Results:
    """Return the results of a request on checked predictions."""
    judged = judge_predictions(predictions, request, progress=progress, verdict=True)
    data = dict(raters_compared(request, predictions.labels, predictions.groups))
    data |= beside_readers(predictions, request)
    unread = {k: len(v) for k, v in predictions.left_out.items() if k not in predictions.dropped}
    if unread:  # cases that never reached the evaluation
        data["dropped"] = {**unread, **judged.digest.facts.dropped}
    results = results_of(
        judged, data=data, notes=predictions.notes, origin=origin_of(predictions, "evaluate")
    )
    if progress:
        progress("done", 1.0)
    return results


def origin_of(predictions: Predictions, call: str) -> dict[str, Any]:
    """Return what the provenance of results says of the predictions they are of."""
    return {
        "call": f"raterwise.{call}",
        "inputs": files_of(predictions.sources),
        "left_out": left_out_record(predictions.left_out, predictions.dropped),
    }
