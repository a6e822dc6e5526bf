"""Total variation per image: how steady a metric is when an image has fewer voxels (MR Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.evaluation.request import Request, one_metric, options_of
from raterwise.inference.settings import Progress, Settings, reporting
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.segmentation.cases import Case, Selection, Voxels
from raterwise.stability.parts import Partition, paths_of
from raterwise.stability.variation import variation_of
from raterwise.types import Options, Per, Questions


@dataclass(frozen=True, eq=False)
class ImageVariation:
    """The total variation of a metric over images.

    Parameters
    ----------
    mean, std : float
        Over images.
    per_case : ndarray
        The mean over the repeats of each image.
    """

    mean: float
    std: float
    per_case: NDArray[np.float64]


def total_variation(
    cases: Iterable[Case],
    metric: str = "ece",
    start: float = 0.2,
    step: float = 0.05,
    repeats: int = 100,
    seed: int = 0,
    *,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    options: Options | None = None,
    foreground_only: bool = False,
    boundary_mm: float | None = None,
    ignore_label: int | None = None,
    progress: Progress | None = None,
) -> ImageVariation:
    """Return the total variation of a metric within each image (MR eq 6, section 3.2, Table 2).

    Each image is a test set of voxels. TV = 1/n Σ_p |CE(X^p) - CE(X^{p-Δp})| over growing nested
    subsets of its voxels, drawn from a bootstrap of the image in each repeat; the paper's equation
    leaves the absolute values out, without which the sum would telescope. The bandwidth of KDE-ECE
    is chosen once for the whole image, so that its choice is no part of the variation.

    Parameters
    ----------
    cases : iterable of Case
        The images, read once.
    metric : str, default "ece"
        The name of one.
    start : float, default 0.2
        The smallest fraction of the voxels.
    step : float, default 0.05
        Step between the fractions.
    repeats : int, default 100
        Bootstraps of each image.
    seed : int, default 0
        Seed for everything random.
    bins : int or array-like, default 15
        How many bins of equal width, or their edges from 0 to 1, of a metric with bins.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What the metric asks of a voxel, as in `segmentation.evaluate`.
    per : {"annotation", "case"}, default None
        Whether every label counts once, or every voxel.
    options : mapping, default None
        Options of the metric, as in `evaluate`: {"robust_ece": {"sigma": 0.05}}, or {"sigma":
        0.05}.
    foreground_only : bool, default False
        Evaluate only voxels that the prediction or any rater assigns to a class other than 0.
    boundary_mm : float, default None
        Evaluate only voxels within this many mm of any rater's boundary; the cases need a
        `spacing`.
    ignore_label : int, default None
        The label of voxels that a rater did not rate.
    progress : callable, default None
        Called with a description and the fraction done, where `cases` has a length.

    Returns
    -------
    ImageVariation
        Mean and standard deviation over images, and the value of each.

    Raises
    ------
    InvalidInputError
        If there is no image, one has no rated voxel, or the metric is not one.
    UndefinedMetricError
        If the metric has no value on any image, or is infinite on one.

    See Also
    --------
    stability.total_variation : for a table of cases.

    References
    ----------
    MR eq 6, section 3.2 and Table 2.

    Examples
    --------
    >>> image, masks = np.full((16, 16), 0.5), np.indices((16, 16)).sum(axis=0) % 2
    >>> tv = total_variation([Case(image, masks[None])], repeats=5)
    >>> 0 < tv.mean < 0.1
    True
    """
    partition = Partition(start, step, repeats, seed)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    metric = one_metric(metric)
    request = Request.of(
        metric, bins=bins, question=question, per=per,
        options=options_of(metric, options), settings=Settings(resamples=0),
    )  # fmt: skip
    if metric not in request.asked:
        raise InvalidInputError(f"metric: {metric}: {request.lacking(*request.rows)}")
    measure = request.asked[metric]
    total, report = len(cases) if isinstance(cases, Sized) else None, reporting(progress)
    each = []
    for number, case in enumerate(cases):
        voxels = _all(Voxels.of(case, None, selection, number))
        paths = paths_of(voxels, measure, partition)
        each.append(variation_of(paths).mean)
        if total:
            report("total variation", (number + 1) / total)
    if not each:
        raise InvalidInputError("cases: must hold at least one image; got none")
    values = np.array(each)
    row, missing = measure[0], int(np.isnan(values).sum())
    if missing == len(values) or (missing and "infinite" in row.tags):
        raise UndefinedMetricError(
            f"{row.name}: undefined, {row.undefined} (in {missing} of {len(values)} images)"
        )
    known = values[~np.isnan(values)]
    std = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    return ImageVariation(float(known.mean()), std, values)


def _all(voxels: Voxels) -> Predictions:
    """Return every voxel of an image at once: subsets are drawn from all of them."""
    parts = list(voxels.parts())
    if not parts:
        raise InvalidInputError(f"case {voxels.name}: has no rated voxels")
    probs = np.concatenate([part.probs for part in parts])
    if parts[0].labels.classes is not None:
        classes = np.concatenate([part.labels.classes for part in parts])
        labels = Labels(voxels.num_classes, classes=classes)
    else:
        counts = np.concatenate([part.labels.counts for part in parts])
        labels = Labels(voxels.num_classes, histogram=counts)
    return replace(parts[0], probs=probs, labels=labels, belief=None)
