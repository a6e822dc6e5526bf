"""Every metric of the catalog over images that several raters segmented."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence, Sized
from os import PathLike
from typing import Any, Literal

from numpy.typing import ArrayLike

from raterwise.errors import RaterwiseError
from raterwise.evaluation.request import Metrics, Request, names_asked
from raterwise.inference.settings import Progress, Settings, reporting
from raterwise.kernels._threads import with_threads
from raterwise.results import Results
from raterwise.rules import positive_integer
from raterwise.segmentation.cases import Selection, Voxels
from raterwise.segmentation.panels import roster_of
from raterwise.segmentation.reduction import Reduction, check_patients
from raterwise.segmentation.request import ImageRequest
from raterwise.segmentation.running import Job, Source, checkpoint_of, gather, measured, opened
from raterwise.segmentation.subgroups import LevelImages
from raterwise.subgroups.levels import metrics_by_level, refuse_metrics_alone
from raterwise.subgroups.variables import variables_of
from raterwise.types import Interval, OnSingle, Per, Questions, Unit


def evaluate(
    cases: Iterable[Source],
    metrics: Metrics = "all",
    reduction: Literal["per_case", "pooled"] = "per_case",
    num_classes: int | None = None,
    *,
    foreground_only: bool = False,
    boundary_mm: float | None = None,
    ignore_label: int | None = None,
    class_names: Sequence[str] | None = None,
    unit: Unit = "cases",
    raters: Sequence[str] | None = None,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    threshold: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    interval: Interval = "auto",
    on_single: OnSingle = "error",
    subgroups: Mapping[str, ArrayLike] | ArrayLike | None = None,
    subgroup_metrics: Metrics | None = None,
    threads: int | None = None,
    skip_bad: bool = False,
    client: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Results:
    """Compute the requested metrics over images segmented by several raters.

    Voxels are cases with label histograms: a voxel counts once per rater and is never repeated (MR
    section 2.3). Only one image is in memory at a time.

    Parameters
    ----------
    cases : iterable of Case, CaseFiles or callable
        The images, read once: each a `Case`, the files of one (`read_manifest` gives a list of
        them), or a function without arguments that returns a `Case`. Files and functions are opened
        where the image is measured, one at a time.
    metrics : str or sequence of str, default "all"
        "all", or names such as "ece,brier" or ["ece", "brier"]; the name of a group, such as
        "clinical", stands for its metrics. "all" has the clinical ones of two classes, as
        `raterwise.evaluate`; images that can be read only once must tell it by `num_classes=2`.
    reduction : {"per_case", "pooled"}, default "per_case"
        "per_case": one value per image, their mean and standard deviation, and an interval over
        images (the MR paper's). "pooled": all voxels together; every voxel counts, so large images
        count more.
    num_classes : int, default None
        Number of classes, to check the cases; by default that of the first case.
    foreground_only : bool, default False
        Evaluate only voxels that the prediction or any rater assigns to a class other than 0.
    boundary_mm : float, default None
        Evaluate only voxels within this many mm of any rater's boundary; the cases need a
        `spacing`.
    ignore_label : int, default None
        The label of voxels that a rater did not rate.
    class_names : sequence of str, default None
        Names of the classes.
    unit : {"cases", "raters", "both"}, default "cases"
        What is treated as a random sample: images (patients, if cases name them), raters, or both.
        With raters, every panel that the resamples draw is measured (3 raters: 10 panels, 5: 126),
        so it takes longer.
    raters : sequence of str, default None
        Who drew the masks, in their order, the same in every image. This is recorded in the
        provenance, and needed to resample raters if the images do not name them (`Case.raters`).
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1, for every binned metric.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of a voxel by the metrics that can ask it: "positive" is the foreground of two
        classes (MR eq 5). By default the top label.
    per : {"annotation", "case"}, default None
        Whether every label counts once, or every voxel, as in `raterwise.evaluate`.
    threshold : float, default None
        A probability of at least this counts as a positive test, in every metric with a threshold;
        0.5 by default.
    options : mapping of str to mapping, default None
        Options of individual metrics: {"robust_ece": {"sigma": 0.05}}.
    resamples : int, default 1000
        Number of resamples of the patients, or of the images if cases name no patients; 0 gives
        values without intervals.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    interval : {"auto", "percentile", "bias_corrected"}, default "auto"
        How intervals are made, as in `raterwise.evaluate`.
    on_single : {"error", "drop"}, default "error"
        What a metric does with voxels that have fewer labels than it needs.
    subgroups : mapping of str to array-like, data frame, or array-like, default None
        What tells images apart, one value per image: {"scanner": values}. The metrics are made
        within each level and compared with those of all other images: `results.subgroups`.
    subgroup_metrics : str or sequence of str, default None
        The metrics to compute in every level, out of those requested, as in `raterwise.evaluate`.
    threads : int, default None
        Number of threads; by default one per core.
    skip_bad : bool, default False
        Leave out images that cannot be used, count them in `data["dropped"]`, and name each in
        `warnings`; otherwise the first is an error.
    client : dask.distributed.Client, default None
        Measure the images on its workers, with the same digits. Pass files or functions; the arrays
        of a `Case` have to be sent.
    checkpoint : str or path, default None
        A folder that stores the results of every image, so that an interrupted run can resume; for
        cases given as files.
    progress : callable, default None
        Called with a description and the fraction done, where `cases` has a length.

    Returns
    -------
    Results
        With "per_case" also the values of each image: `results.per_case`.

    Raises
    ------
    InvalidInputError
        If an image or an option cannot be used; the message names the image.

    See Also
    --------
    raterwise.evaluate : tables of cases.
    segmentation.total_variation : how steady a metric is within images.

    References
    ----------
    MR sections 2.3 and 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from raterwise.segmentation import Case
    >>> masks = np.array([[[0, 1], [1, 1]], [[0, 0], [1, 1]]])  # two raters
    >>> image = np.array([[0.25, 0.5], [0.75, 1.0]])  # probability of class 1
    >>> results = evaluate([Case(image, masks)], "ece,brier", question="positive", resamples=0)
    >>> results["ece"].value  # (1/4 + 0 + 1/4 + 0) / 4
    0.125
    """
    job = job_of(
        cases, metrics, Settings(resamples, level, seed, unit, interval, on_single, threads),
        Selection(ignore_label, foreground_only, boundary_mm), reduction, raters, num_classes,
        bins=bins, question=question, per=per, threshold=threshold, options=options,
    )  # fmt: skip
    return evaluate_job(
        job, cases, class_names=class_names, skip_bad=skip_bad, client=client,
        checkpoint=checkpoint, progress=progress, subgroups=subgroups,
        subgroup_metrics=subgroup_metrics,
    )  # fmt: skip


def job_of(
    cases: Iterable[Source],
    metrics: Metrics,
    settings: Settings,
    selection: Selection,
    reduction: str,
    raters: Sequence[str] | None,
    num_classes: int | None,
    **asked: Any,
) -> Job:
    """Return what is done with every image; `asked` are the options of the metrics."""
    metrics = names_asked(metrics)
    if num_classes is not None:
        positive_integer("num_classes", num_classes, least=2)
    classes = classes_of(cases, num_classes) if "all" in metrics else None
    request = Request.of(metrics, **asked, settings=settings, classes=classes)
    roster = roster_of(raters, cases, needed=settings.draws_raters)
    return Job(ImageRequest(request, selection, reduction, roster), num_classes)


def classes_of(cases: Iterable[Source], num_classes: int | None = None) -> int | None:
    """Return how many classes the images have, by the first; None where it cannot be looked at."""
    if num_classes is not None or not isinstance(cases, Sequence) or not len(cases):
        return num_classes
    try:
        case = opened(cases[0])
        return None if case is None else Voxels.of(case, None, Selection()).num_classes
    except (RaterwiseError, OSError):
        return None  # what is wrong with it is said when it is measured


def evaluate_job(
    job: Job,
    cases: Iterable[Source],
    *,
    class_names: Sequence[str] | None = None,
    skip_bad: bool = False,
    client: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    subgroups: Any = None,
    subgroup_metrics: Metrics | None = None,
) -> Results:
    """Return the results of a job on images."""
    report = reporting(progress)
    check_patients(cases)
    kept = None if checkpoint is None else checkpoint_of(checkpoint, job, cases)
    levels = _levels(job, cases, class_names, subgroups, subgroup_metrics)
    gathered = Reduction(job.request, class_names)
    with with_threads(job.request.request.settings.threads):
        images = measured(job, cases, client=client, checkpoint=kept, progress=report)
        with contextlib.closing(images):  # an error here must stop what is still running there
            notes = gather(gathered, images, skip_bad=skip_bad, levels=levels)
        report("intervals", 1.0)
        results = gathered.results(tuple(notes))
        return results if levels is None else levels.in_results(results)


def _levels(
    job: Job,
    cases: Iterable[Source],
    class_names: Sequence[str] | None,
    subgroups: Any,
    metrics: Any,
) -> LevelImages | None:
    """Return what gathers images by level, where they are told apart."""
    if subgroups is None:
        refuse_metrics_alone(metrics)
        return None
    if isinstance(cases, Sized):
        number = len(cases)
    else:  # how many there are is known at the end, and checked then
        columns = subgroups.values() if isinstance(subgroups, Mapping) else [subgroups]
        number = len(next(iter(columns), ()))
    variables = variables_of(subgroups, number)
    chosen = metrics_by_level(metrics, job.request.request)
    return LevelImages(variables, job.request, chosen, class_names)
