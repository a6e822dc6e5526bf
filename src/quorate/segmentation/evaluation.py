"""Every metric of the catalog over images that several raters segmented."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

from quorate.errors import InvalidInputError
from quorate.inference import Progress, Settings
from quorate.segmentation.cases import Case, Selection
from quorate.segmentation.reduction import Reduction, SegmentationResults
from quorate.segmentation.request import Request

__all__ = ["evaluate"]


def evaluate(
    cases: Iterable[Case],
    metrics: str | Sequence[str] = "all",
    reduction: str = "per_case",
    num_classes: int | None = None,
    *,
    foreground_only: bool = False,
    boundary_mm: float | None = None,
    ignore_label: int | None = None,
    class_names: Sequence[str] | None = None,
    bins: int = 15,
    question: str | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    interval: str = "auto",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> SegmentationResults:
    """Return every metric asked for over images that several raters segmented.

    Voxels are cases with label histograms: a voxel counts once per rater and is never repeated
    (MR section 2.3). Memory is that of one image, whatever their number.

    Parameters
    ----------
    cases
        Any iterable of `Case`, read once.
    reduction
        "per_case": one value per image, their mean and standard deviation, and an interval over
        images (the MR paper's). "pooled": all voxels together; every voxel counts, so large images
        count more.
    num_classes
        To check the cases by; that of the first case where it is None.
    foreground_only
        Look at voxels that the prediction or any rater calls other than class 0.
    boundary_mm
        Look at voxels within so many mm of any rater's boundary; the cases need a `spacing`.
    ignore_label
        The label of voxels that a rater left out.
    question
        "top_label" (the default), or "positive" for the foreground of two classes (MR eq 5).
    resamples, level, seed, interval
        Of the bootstrap over patients, or over images where cases name no patient.
    on_single
        "error" or "drop" for voxels that too few raters labelled for a metric.
    progress
        Called with a description and the fraction done, where `cases` has a length.

    >>> import numpy as np
    >>> masks = np.array([[[0, 1], [1, 1]], [[0, 0], [1, 1]]])  # two raters
    >>> image = np.array([[0.25, 0.5], [0.75, 1.0]])  # probability of class 1
    >>> results = evaluate([Case(image, masks)], "ece,brier", question="positive", resamples=0)
    >>> results["ece"].value  # (1/4 + 0 + 1/4 + 0) / 4
    0.125
    """
    settings = Settings(resamples, level, seed, "cases", interval, on_single, threads)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    request = Request.of(metrics, reduction, bins, question, settings, selection)
    gathered = Reduction(request, class_names)
    total = len(cases) if isinstance(cases, Sized) else None
    for number, case in enumerate(cases):
        if not isinstance(case, Case):
            raise InvalidInputError(f"cases: must be of Case; case {number} is a {type(case)}")
        if progress and total:
            progress(f"image {number + 1} of {total}", number / total)
        known = num_classes if num_classes is not None else gathered.num_classes
        values = request.digest(case, known, number)
        gathered.add(case.name or str(number), case.patient, gathered.of(values))
    if progress:
        progress("done", 1.0)
    return gathered.results()
