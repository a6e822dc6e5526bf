"""Several models on the same cases: paired differences with intervals and adjusted p-values."""

from __future__ import annotations

import warnings as python_warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from raterwise.arrays import as_array
from raterwise.beliefs import Belief
from raterwise.catalog.metric import Given
from raterwise.compare.comparison import Comparison
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.evaluate import as_in_use, evaluate_predictions, predictions_of, told_of_cases
from raterwise.evaluation.request import Metrics, Request, rows_of
from raterwise.inference.differences import resamples_needed
from raterwise.inference.paired import Difference, differences, ranking, require_pairs
from raterwise.inference.settings import Progress, Settings, reporting
from raterwise.kernels._threads import with_threads
from raterwise.labels import Labels
from raterwise.provenance import made
from raterwise.results import Results
from raterwise.rules import positive_integer
from raterwise.types import OnSingle, OnUnrated, Per, Questions, Unit

RESAMPLES, LEVEL, SEED, BINS = 1000, 0.95, 0, 15
UNIT: Unit = "cases"


def compare(
    models: Mapping[str, ArrayLike | Belief | Results],
    labels: Labels | ArrayLike | None = None,
    metrics: Metrics = "all",
    groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
    *,
    unit: Unit = UNIT,
    bins: int | ArrayLike = BINS,
    question: Questions | None = None,
    per: Per | None = None,
    threshold: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    weights: ArrayLike | None = None,
    confidence: Mapping[str, ArrayLike] | None = None,
    outside: Mapping[str, ArrayLike] | None = None,
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
    target_prevalence: float | ArrayLike | None = None,
    source_prevalence: float | ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare models on the same cases, resampled together.

    Pass predictions, or the `Results` of `evaluate`, which may come from files; both give the same
    numbers. Results already know their cases and options, so only `metrics` can be chosen. Results
    of different cases, labels, patients, weights or seeds are refused, because their resamples
    cannot be paired.

    Parameters
    ----------
    models : mapping of str to array-like, belief or Results
        The class probabilities of each model by name, as in `evaluate`, or its results. Every pair
        is compared, in the order given.
    labels : Labels or array-like of shape (N,), default None
        The raters' labels, or one class per case; needed with predictions.
    metrics : str or sequence of str, default "all"
        "all", names such as "ece,brier" or ["ece", "brier"], or the name of a group of metrics,
        such as "clinical".
    groups : array-like of shape (N,), default None
        The patient of each case; whole patients are then resampled.
    class_names : sequence of str, default None
        Names of the classes; by default those of the labels.
    resamples : int, default 1000
        Number of resamples, at least 2.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    unit : {"cases", "raters", "both"}, default "cases"
        What is treated as a random sample: cases (patients, with `groups`), raters, or both, drawn
        for all models together.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1, for every binned metric.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of each case, as in `evaluate`.
    per : {"annotation", "case"}, default None
        Whether each label or each case counts once, as in `evaluate`.
    threshold : float, default None
        A probability of at least this counts as a positive test, in every metric with a threshold;
        0.5 by default.
    options : mapping of str to mapping, default None
        Options of individual metrics: {"robust_ece": {"sigma": 0.05}}.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    confidence : mapping of str to array-like of shape (N,), default None
        For each model, the confidence that ranks the cases instead of its largest probability, as
        in `evaluate`; models left out use their largest probability.
    outside : mapping of str to array-like of shape (M,) or (M, K), default None
        For each model, its confidences for the same out-of-distribution cases in the same order, or
        its class probabilities.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        What a metric does if cases have fewer labels than it needs: it is undefined, or it leaves
        these cases out.
    target_prevalence, source_prevalence : float or array-like of shape (K,), default None
        Prevalence of class 1 in use (or of every class), where a test set is enriched with disease,
        and where the probabilities of every model are right, as in `evaluate`. Of models that are
        right at different prevalences compare the results.
    threads : int, default None
        Number of threads; by default one per core.
    progress : callable, default None
        Function called with a description and the fraction done.

    Returns
    -------
    Comparison
        The results of each model, the differences with intervals and p-values, and the ranking.

    Raises
    ------
    InvalidInputError
        If there are fewer than two models, or their resamples are no pairs.

    See Also
    --------
    evaluate : one model.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 65-70.

    Examples
    --------
    >>> import raterwise as rw
    >>> sharp, blunt = [[0.9, 0.1], [0.2, 0.8]] * 20, [[0.6, 0.4], [0.4, 0.6]] * 20
    >>> found = rw.compare({"sharp": sharp, "blunt": blunt}, [0, 1] * 20, "brier", resamples=50)
    >>> round(found.difference("brier", "sharp", "blunt").difference, 4)
    -0.135
    >>> of_sharp = rw.evaluate(sharp, [0, 1] * 20, "brier", resamples=50)
    >>> of_blunt = rw.evaluate(blunt, [0, 1] * 20, "brier", resamples=50)
    >>> again = rw.compare({"sharp": of_sharp, "blunt": of_blunt})
    >>> again.differences == found.differences
    True
    """
    if not isinstance(models, Mapping):
        raise InvalidTypeError(
            'models: must be a mapping of names to models, such as {"a": probs_a, "b": probs_b}; '
            f"got {type(models).__name__}"
        )
    if len(models) < 2:
        raise InvalidInputError(f"models: must be at least two; got {len(models)}")
    if unnamed := [name for name in models if not isinstance(name, str)]:
        raise InvalidTypeError(f"models: names must be text; got {unnamed[0]!r}")
    judged = {name: model for name, model in models.items() if isinstance(model, Results)}
    if judged:
        if len(judged) < len(models):
            one, other = next(iter(judged)), next(name for name in models if name not in judged)
            raise InvalidInputError(
                f"models: must be all results or all predictions; {one!r} is the first, "
                f"{other!r} the second"
            )
        cases = {"labels": labels, "groups": groups, "class_names": class_names,
                 "weights": weights, "confidence": confidence, "outside": outside,
                 "target_prevalence": target_prevalence,
                 "source_prevalence": source_prevalence}  # fmt: skip
        made_with = {"resamples": (resamples, RESAMPLES), "level": (level, LEVEL),
                     "seed": (seed, SEED), "unit": (unit, UNIT), "bins": (bins, BINS),
                     "question": (question, None), "per": (per, None),
                     "threshold": (threshold, None), "options": (options, None)}  # fmt: skip
        _refuse_what_results_know(next(iter(judged.values())), cases, made_with)
        require_pairs(judged)
        return _compared(_with_metrics(judged, metrics))
    if labels is None:
        raise InvalidInputError("labels: must be given with predictions; got None")
    if positive_integer("resamples", resamples, least=0) < 2:
        raise InvalidInputError(f"resamples: must be at least 2 to compare; got {resamples}")
    settings = Settings(resamples, level, seed, unit, on_single=on_single, threads=threads)
    ranked = _ranked_by(models, confidence, outside)
    results: dict[str, Results] = {}
    classes: dict[str, int] = {}
    report = reporting(progress)
    for i, (name, probs) in enumerate(models.items()):
        report(name, i / len(models))
        predictions = predictions_of(
            probs, labels, weights, groups, class_names, on_unrated, *ranked[name]
        )
        classes[name] = predictions.num_classes
        _refuse_other_classes(classes)
        request = Request.of(
            metrics, bins=bins, question=question, per=per, threshold=threshold, options=options,
            settings=settings,
            given=Given.of(predictions), classes=predictions.num_classes,
        )  # fmt: skip
        with with_threads(threads):
            cases_in_use, request, told = as_in_use(
                predictions, request, metrics, target_prevalence, source_prevalence
            )
            found = evaluate_predictions(cases_in_use, request)
        results[name] = found if told is None else told_of_cases(found, told, predictions)
    report("done", 1.0)
    return _compared(results)


def _refuse_other_classes(classes: Mapping[str, int]) -> None:
    """Refuse models of other numbers of classes, whose metrics are not the same questions."""
    (first, one), *rest = classes.items()
    for name, other in rest:
        if other != one:
            raise InvalidInputError(
                f"models: must share the classes; {first!r} has {one}, {name!r} has {other}"
            )


def _ranked_by(
    models: Mapping[str, Any],
    confidence: Mapping[str, Any] | None,
    outside: Mapping[str, Any] | None,
) -> dict[str, tuple[Any, Any]]:
    """Return the confidences of each model, and those of cases from elsewhere, which all have."""
    for name, given in (("confidence", confidence), ("outside", outside)):
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise InvalidTypeError(f"{name}: must be given by model; got {type(given).__name__}")
        if unknown := [model for model in given if model not in models]:
            raise InvalidInputError(f"{name}: there is no model {unknown[0]!r}")
    if outside is not None and (missing := [model for model in models if model not in outside]):
        raise InvalidInputError(f"outside: must be given for every model; {missing[0]!r} has none")
    elsewhere = [as_array(given, "outside") for given in (outside or {}).values()]
    if len(sizes := {given.shape[:1] for given in elsewhere}) > 1:
        raise InvalidInputError(
            "outside: must be of the same cases for every model; got "
            f"{sorted(n for size in sizes for n in size)} of them"
        )
    return {name: ((confidence or {}).get(name), (outside or {}).get(name)) for name in models}


def _compared(models: Mapping[str, Results]) -> Comparison:
    seed = next(iter(models.values())).options.get("seed")
    origin = made("raterwise.compare", seed=seed, inputs=[])
    found = tuple(differences(models))
    valued = {name for r in models.values() for name, e in r.items() if e.value is not None}
    if without := sorted(valued - {name for r in models.values() for name in r.replicates}):
        python_warnings.warn(
            f"not compared, since they have no resampled values: {', '.join(without)}",
            stacklevel=3,
        )
    for note in _about_differences(models, found):
        python_warnings.warn(note, stacklevel=3)
    return Comparison(dict(models), found, ranking(models), origin)


def _about_differences(models: Mapping[str, Results], found: Sequence[Difference]) -> Iterator[str]:
    """Yield which metrics have no difference, and that resamples are too few for Holm's p."""
    made = Counter(d.metric for d in found)
    drawn = Counter(name for r in models.values() for name in r.replicates)
    if without := sorted(name for name, n in drawn.items() if made[name] < n * (n - 1) / 2):
        yield f"not compared where a model has no interval: {', '.join(without)}"
    options = next(iter(models.values())).options
    resamples, level = int(options["resamples"]), float(options["level"])
    apart = [d for d in found if d.debiased is not None and not d.low <= 0 <= d.high]
    pairs = max((made[d.metric] for d in apart), default=0)
    if pairs and resamples < (enough := resamples_needed(pairs, level)):
        yield (
            f"resamples: {resamples:,} are too few for {pairs} pair{'' if pairs == 1 else 's'} of "
            "models: the adjusted p of a calibration error cannot be below "
            f"{min(1.0, 2 * pairs / (resamples + 1)):.2g}, even where the interval excludes 0; "
            f"{enough:,} are enough to reach {1 - level:.3g}"
        )


def _refuse_what_results_know(
    results: Results,
    cases: Mapping[str, Any],
    made_with: Mapping[str, tuple[Any, Any]],
) -> None:
    """Refuse arguments that would be left unread: results know their cases and their resamples."""
    for argument, given in cases.items():
        if given is not None:
            raise InvalidInputError(f"{argument}: is for predictions; results already contain it")
    for argument, (value, usual) in made_with.items():
        known = results.options.get(argument)
        value = value.tolist() if hasattr(value, "tolist") else value
        if value not in (usual, known):
            raise InvalidInputError(
                f"{argument}: the results were made with {known!r}, which cannot be changed; "
                f"got {value!r}"
            )


def _with_metrics(
    models: Mapping[str, Results], metrics: str | Sequence[str]
) -> dict[str, Results]:
    """Return the results with the metrics asked for, or with those that all of them have."""
    known = list(dict.fromkeys(metric for results in models.values() for metric in results))
    if metrics == "all":
        wanted = [metric for metric in known if all(metric in r for r in models.values())]
        if not wanted:
            raise InvalidInputError("models: must have a metric in common; they have none")
        if missing := [metric for metric in known if metric not in wanted]:
            python_warnings.warn(
                f"not compared, since not all models have them: {', '.join(missing)}", stacklevel=3
            )
    else:
        wanted = [row.name for row in rows_of(metrics)]
        for name, results in models.items():
            if missing := [metric for metric in wanted if metric not in results]:
                raise InvalidInputError(
                    f"metrics: {name!r} has no {', '.join(missing)}; it has {', '.join(results)}"
                )
    return {
        name: replace(
            results,
            estimates={metric: results[metric] for metric in wanted},
            replicates={m: results.replicates[m] for m in wanted if m in results.replicates},
        )
        for name, results in models.items()
    }
