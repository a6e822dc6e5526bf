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
    """Compute the requested metrics with intervals, in one pass over the cases.

    Parameters
    ----------
    probs : array-like or data frame of shape (N, K) or (N,), a belief, or Predictions
        Class probabilities; with shape (N,), the probability of class 1 of two. For a belief, its
        predicted disagreement and its posterior are evaluated too, and for an ensemble RECE-M.
        `Predictions`, as returned by `read_cases`, already contain labels, patients, weights and
        names.
    labels : Labels or array-like of shape (N,), default None
        The raters' labels, or one class per case; words are matched to the class names.
    metrics : str or sequence of str, default "all"
        "all", names such as "ece,brier" or ["ece", "brier"], or the name of a group of metrics,
        such as "clinical".
    groups : array-like of shape (N,), default None
        The patient of each case; whole patients are then resampled.
    class_names : sequence of str, default None
        Names of the classes; by default those of the labels.
    resamples : int, default 1000
        Number of resamples for the intervals; 0 gives values without intervals.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed for everything random; the same seed gives the same digits with any number of threads.
    unit : {"cases", "raters", "both"}, default "cases"
        What is treated as a random sample: cases (patients, with `groups`), raters, or both; best
        if it is known who gave each rating.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1, for every binned metric.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of each case, in every metric that allows the choice: whether the predicted
        class is right; whether it is class 1 of two; whether it is class k; or the first,
        separately for the cases predicted as each class. By default as in the function of the same
        name.
    per : {"annotation", "case"}, default None
        Whether each label or each case counts once, in every metric that allows the choice. By
        default as in the function of the same name.
    threshold : float, default None
        A probability of at least this counts as a positive test, in every metric with a threshold;
        0.5 by default.
    options : mapping of str to mapping, default None
        Options of individual metrics: {"robust_ece": {"sigma": 0.05}}.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases in AUCCC, AURC, AUGRC and their curves, instead of the
        largest probability: any number that is higher for more certain predictions.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, of which the largest
        is used. In these metrics every prediction for them counts as wrong, with weight 1, and
        `io_auroc` says how well confidence separates them from the other cases. They are resampled
        as a separate sample.
    interval : {"auto", "percentile", "bias_corrected"}, default "auto"
        "auto" inverts a test for calibration errors; for other metrics it uses the standard error
        from leaving out one patient or case at a time, with a shape that suits the metric.
        "percentile" and "bias_corrected" use that bootstrap for every metric.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        What a metric does if cases have fewer labels than it needs. With "error" that metric is
        undefined in the results and the others are computed; with "drop" it leaves these cases out.
    subgroups : mapping of str to array-like, data frame, or array-like of shape (N,), default None
        Variables that define the sub-groups: {"scanner": values}. The metrics are computed within
        each level and compared with those of all other cases, in `results.subgroups`.
    subgroup_metrics : str or sequence of str, default None
        The metrics to compute in every level, out of those requested; by default accuracy, Brier
        score, calibration error, ECE and AUCCC.
    target_prevalence : float or array-like of shape (K,), default None
        Prevalence of the classes in use (of class 1 of two), for cases enriched with disease. Each
        label is weighted by its class and the probabilities are shifted accordingly
        (`shift_prevalence`; for an ensemble, every draw). The results record the weights. Metrics
        of rater disagreement are left out.
    source_prevalence : float or array-like of shape (K,), default None
        With `target_prevalence`, the prevalence at which the probabilities are right. By default
        that of these labels; repeat the target if they are already right in use.
    threads : int, default None
        Number of threads; by default one per core.
    progress : callable, default None
        Function called with a description and the fraction done.

    Returns
    -------
    Results
        The estimates by name, with warnings, curves and provenance.

    Raises
    ------
    InvalidInputError
        If the data or the options cannot be used. A metric that is undefined on valid data is not
        an error: its estimate gives the reason.

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
