"""Tables larger than memory: every metric from one pass over their parts, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise import rules
from raterwise.catalog.metric import Given
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.evaluate import told_in_use
from raterwise.evaluation.judged import judge, results_of
from raterwise.evaluation.request import Metrics, Request
from raterwise.inference.raters import Panels
from raterwise.inference.settings import Progress, Settings, within
from raterwise.io.files import check_can_write, checkpoint_files, refuse_overwriting
from raterwise.kernels._threads import with_threads
from raterwise.predictions import Predictions
from raterwise.prevalence import Prior, refuse_source_alone
from raterwise.questions import Question
from raterwise.readers.against import in_results, of_results, plans_of, wanted
from raterwise.results import Results
from raterwise.rules import choose, did_you_mean, several_names
from raterwise.streaming.digests import PartJob, digest_of_parts, those_who_rated
from raterwise.streaming.parts import (
    STREAMED,
    Part,
    StreamColumns,
    check_in_cells,
    notes_on_labels,
    parts_of,
    refuse_stream_of_fractions,
)
from raterwise.streaming.saved import save_digest
from raterwise.subgroups.levels import metrics_by_level, refuse_metrics_alone, with_subgroups
from raterwise.subgroups.sources import subgroups_of_digests
from raterwise.subgroups.variables import Variable, in_order
from raterwise.summaries import BinPlan
from raterwise.summaries.digest import Digest
from raterwise.summaries.outside import with_outside
from raterwise.types import Interval, OnSingle, OnUnrated, Per, Questions, Unit

SHARED = ("bins", "question", "per", "threshold", "options")
"""What a saved summary says of its metrics, besides their names."""
READING = 0.9
"""How much of the progress is reading and adding up; the rest is making intervals."""


def evaluate_stream(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    metrics: Metrics = "all",
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
    outside: ArrayLike | None = None,
    interval: Interval = "auto",
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
    subgroups: str | Sequence[str] | None = None,
    subgroup_metrics: Metrics | None = None,
    target_prevalence: float | ArrayLike | None = None,
    source_prevalence: float | ArrayLike | None = None,
    threads: int | None = None,
    client: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    save_summary: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    **columns: Any,
) -> Results:
    """Compute the metrics of `evaluate` for tables that do not fit into memory.

    Each Parquet row group, or run of Zarr chunks, is read once and summarised. Metrics of ranks,
    quantiles and kernels are computed from fine cells, and state how far they may be from the exact
    value (`bound`). Patients or cases are pooled into 512 blocks for the intervals.

    Parameters
    ----------
    paths : str, path, or sequence of them
        Parquet files or Zarr stores with the same columns, or patterns of their names.
    metrics : str or sequence of str, default "all"
        "all", names such as "ece,brier" or ["ece", "brier"], or the name of a group of metrics,
        such as "clinical".
    resamples : int, default 1000
        Number of resamples for the intervals; 0 gives values without intervals.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the blocks and the resamples.
    unit : {"cases", "raters", "both"}, default "cases"
        What is treated as a random sample: cases (patients, with a `group_column`), raters, or
        both. Each rater then needs a column, and every panel that the resamples draw is summed (3
        raters: 10 panels, 5: 126), so it takes longer.
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
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities, as in `evaluate`:
        they are in memory, and confidences lie in [0, 1].
    interval : {"auto", "percentile", "bias_corrected"}, default "auto"
        How intervals are made, as in `evaluate`.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        What a metric does if cases have fewer labels than it needs: it is undefined, or it leaves
        these cases out.
    subgroups : str or sequence of str, default None
        Columns that tell cases apart, such as the scanner: the metrics are made within each level
        and compared with those of all other cases, as in `evaluate`.
    subgroup_metrics : str or sequence of str, default None
        The metrics to compute in every level, out of those requested, as in `evaluate`.
    target_prevalence, source_prevalence : float or array-like of shape (K,), default None
        How frequent the classes are in use, and where the probabilities are right, as in
        `evaluate`. The files are read twice: how frequent classes are among the labels comes first.
    threads : int, default None
        Number of threads; by default one per core.
    client : dask.distributed.Client, default None
        Its workers summarise the parts, with the same digits.
    checkpoint : str or path, default None
        A folder that keeps finished parts, so that a run that was killed goes on.
    save_summary : str or path, default None
        A file for the summary, which contains no individual cases, for `raterwise merge`.
    progress : callable, default None
        Function called with a description and the fraction done.
    **columns : str or sequence of str
        Which column is what, as options of `raterwise evaluate`: `prob_prefix` or `prob_columns`,
        `label_column`, `rater_columns` or `rater_prefix`, `count_columns` or `count_prefix`,
        `group_column`, `weight_column`, `class_names`, `missing`, `confidence_column`; and how the
        values are read: `normalize`, `percent`, `ignore_case`. Columns called reader_…, rater_… or
        count_… are found without being named.

    Returns
    -------
    Results
        As those of `evaluate`; an estimate from cells has a `bound`.

    Raises
    ------
    InvalidInputError
        If a file, a column or an option cannot be used.
    MissingExtraError
        If the files need a library that is not installed.

    See Also
    --------
    evaluate : tables in memory.

    References
    ----------
    The papers of each metric are named in its estimate (`results["ece"].reference`).

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> path = getfixture("tmp_path") / "cases.parquet"
    >>> pq.write_table(pa.table({"prob_1": [0.9, 0.8, 0.3, 0.4], "y": [1, 0, 0, 0]}), path)
    >>> evaluate_stream(path, "accuracy", resamples=0, label_column="y")["accuracy"].value
    0.75
    """
    if save_summary is not None:
        if not isinstance(save_summary, str | PathLike):
            raise InvalidTypeError(
                f"save_summary: must be the name of a file; got {type(save_summary).__name__}"
            )
        read = [paths] if isinstance(paths, str | PathLike) else list(paths)
        refuse_overwriting([check_can_write(save_summary)], [*read, *checkpoint_files(checkpoint)])
    settings = Settings(resamples, level, seed, unit, interval, on_single, threads)
    choose("on_unrated", on_unrated, ("error", "drop"))
    apart = several_names("subgroups", subgroups)
    if not apart:
        refuse_metrics_alone(subgroup_metrics)
    parts, found, doubts = _parts_and_columns(paths, apart, columns)
    given = Given(confidence=found.confidence is not None, outside=outside is not None)
    request = Request.of(
        metrics, bins=bins, question=question, per=per, threshold=threshold, options=options,
        settings=settings, given=given,
        classes=len(found.class_names) if isinstance(metrics, str) and metrics == "all" else None,
    )  # fmt: skip
    elsewhere = _outside(outside, found, save_summary)
    chosen = metrics_by_level(subgroup_metrics, request) if apart else None
    prior = None
    refuse_source_alone(target_prevalence, source_prevalence)
    if target_prevalence is not None:
        _refuse_in_use(found, outside, save_summary)
        request = request.at_other_prevalence(metrics)
        prior = _prior(found, parts, on_unrated, target_prevalence, source_prevalence, client)
    job = replace(_job(found, parts, request, on_unrated, chosen), prior=prior)
    if save_summary is not None and job.panels:
        raise InvalidInputError(
            'unit: must be "cases" for a saved summary, since the raters of the places that are '
            "merged are different persons, and adding up would take the first of each for one; "
            f"got {unit!r}"
        )
    with with_threads(threads):
        digest = digest_of_parts(
            job,
            parts,
            cluster=client,
            checkpoint=checkpoint,
            progress=within(progress, 0, READING),
        )
        if not digest.facts.cases:
            unrated = "unrated" in digest.facts.dropped
            raise rules.none_rated("labels") if unrated else rules.no_weight("weights")
        if save_summary is not None:
            about = header_of(request, chosen)
            save_digest(fspath(save_summary), digest, about, anonymous=True, notes=doubts)
        results = evaluate_digest(
            digest, request, within(progress, READING, 1), chosen, outside=elsewhere
        )  # fmt: skip
    results = replace(results, warnings=(*results.warnings, *doubts)) if doubts else results
    if prior is None:
        return results
    return told_in_use(results, prior.told(digest.facts.told.worth), digest.facts.class_names)


LABELS = BinPlan(Question("per_class", "case"), 1)
"""The plan of how frequent each class is among the labels, every case once."""


def _prior(
    columns: StreamColumns, parts: Any, on_unrated: OnUnrated, target: Any, source: Any, client: Any
) -> Prior:
    """Return how frequent classes are here and in use, from a first reading of the labels."""
    job = PartJob(columns, (LABELS,), 0, intervals=False, on_unrated=on_unrated)
    table = digest_of_parts(job, parts, cluster=client).summaries[LABELS].table
    return Prior.of(table.positive.sum(axis=-1), target, source)


def _refuse_in_use(columns: StreamColumns, outside: Any, saved: Any) -> None:
    """Refuse what does not go with another prevalence."""
    if saved is not None:
        raise InvalidInputError(
            "target_prevalence: a saved summary knows the labels of one place alone; leave out "
            "save_summary"
        )
    for name, given in (("confidence", columns.confidence), ("outside", outside)):
        if given is not None:
            raise InvalidInputError(
                f"target_prevalence: cannot be combined with {name}; leave out one"
            )


def _parts_and_columns(
    paths: Any, subgroups: Sequence[str], columns: Mapping[str, Any]
) -> tuple[list[Part], StreamColumns, tuple[str, ...]]:
    """Return the parts of all files, which column is what, and what labels may be besides."""
    several = isinstance(paths, Iterable) and not isinstance(paths, str | PathLike)
    parts, names = parts_of(list(paths) if several else [paths])
    _check_arguments(columns)
    source = Path(parts[0].path).name
    found = StreamColumns.of(names, subgroups=subgroups, source=source, **columns)
    if found.percent:
        refuse_stream_of_fractions(parts, found)
    named, probs = (columns.get(name) for name in ("class_names", "prob_columns"))
    ordered = named is not None or len(several_names("prob_columns", probs)) > 1
    return parts, found, notes_on_labels(parts, found, in_order=ordered)


def _check_arguments(columns: Mapping[str, Any]) -> None:
    """Refuse what is neither an argument nor a way to name a column."""
    known = sorted((*STREAMED, "confidence_column"))
    for name in columns:
        if name not in known:
            own = [own for own in signature(evaluate_stream).parameters if own != "columns"]
            raise InvalidTypeError(
                f"{name}: is no argument of evaluate_stream{did_you_mean(name, [*known, *own])}; "
                f"columns are named by {', '.join(known)}"
            )


def _outside(values: Any, columns: StreamColumns, save_summary: Any) -> Any:
    """Return the confidences of cases from elsewhere, checked; None where there are none."""
    if values is None:
        return None
    if columns.subgroups:
        raise InvalidInputError(
            "outside: cannot be combined with subgroups in a stream; leave out one"
        )
    if save_summary is not None:
        raise InvalidInputError(
            "outside: a saved summary holds the cases of the files alone; leave out save_summary"
        )
    classes = max(len(columns.probs), 2)
    nothing = np.full((1, classes), 1 / classes), np.zeros(1, np.int64)
    ranked = None if columns.confidence is None else np.ones(1)
    found = Predictions.of(*nothing, confidence=ranked, outside=values).outside
    check_in_cells(found, "outside")
    return found


def _job(
    columns: StreamColumns,
    parts: Sequence[Part],
    request: Request,
    on_unrated: OnUnrated,
    chosen: Request | None,
) -> PartJob:
    """Return how each part becomes a digest; `chosen` is what is asked of its levels."""
    settings = request.settings
    if settings.draws_raters and not columns.raters:
        held = "label" if columns.label is not None else "count"
        raise InvalidInputError(
            f"unit: {settings.unit!r} needs to know who said what, and {held}_column"
            f"{'' if held == 'label' else 's'} does not say it; give rater_columns or "
            'rater_prefix, or resample "cases"'
        )
    rated = those_who_rated(parts, columns, on_unrated) if settings.draws_raters else ()
    panels = Panels.for_persons(len(rated), settings)
    readers: tuple[Any, ...] = ()
    if len(columns.raters) > 1 and wanted(request, len(columns.raters)):
        readers = tuple(plans_of(of_results(request, len(columns.class_names)), bounded=True))
    return PartJob(
        columns,
        tuple(request.plans(bounded=True)),
        settings.seed,
        intervals=settings.resamples > 0 and settings.unit != "raters",
        on_unrated=on_unrated,
        panels=() if panels is None else panels.different,
        rated=rated,
        verdict_plans=tuple(request.verdict_plans(columns.group is not None)),
        compares_raters=request.compares_raters,
        level_plans=() if chosen is None else tuple(chosen.plans(bounded=True)),
        reader_plans=readers,
    )


def evaluate_digest(
    digest: Digest,
    request: Request,
    progress: Progress | None = None,
    chosen: Request | None = None,
    *,
    outside: NDArray[np.float64] | None = None,
) -> Results:
    """Return the results of a request on a digest whose units are blocks, some perhaps empty.

    `chosen` is what is asked of the levels, where the digest has some.
    """
    whole, settings = digest.occupied(), request.settings
    if outside is not None:
        whole = with_outside(whole, outside, settings.seed, drawn=settings.resamples > 0)
    judged = judge(whole, request, progress=progress)
    about = in_results(digest.readers, of_results(request, digest.facts.classes))
    results = results_of(judged, data=about, origin={"call": "raterwise.evaluate_stream"})
    if digest.levels and chosen is not None:
        levels = {
            name: {level: own[level] for level in in_order(name, own)}
            for name, own in digest.levels.items()
        }
        variables = [Variable(name, tuple(own), np.empty(0, int)) for name, own in levels.items()]
        found = subgroups_of_digests(levels, chosen, progress)
        results = with_subgroups(results, variables, found, chosen)
    if progress:
        progress("done", 1.0)
    return results


def header_of(request: Request, chosen: Request | None = None) -> dict[str, Any]:
    """Return what a saved summary says of how it was made, which others must share."""
    settings = request.settings
    told = {} if chosen is None else {"subgroup_metrics": list(chosen.metrics)}
    return {
        **told,
        "metrics": list(request.metrics),
        **request.shared,
        "options": {name: dict(own) for name, own in request.own.items()},
        "seed": settings.seed,
        "on_single": settings.on_single,
    }


def request_of_header(header: Mapping[str, Any], **settings: Any) -> Request:
    """Return the request that a saved summary was made for."""
    made = {"seed": int(header["seed"]), "on_single": header.get("on_single", "error")}
    told = {name: header[name] for name in SHARED if name in header}
    return Request.of(header["metrics"], **told, settings=Settings(**made, **settings))
