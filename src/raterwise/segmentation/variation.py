"""Total variation per image: how steady a metric is when an image has fewer voxels (MR Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterwise import stability
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress, Settings
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.recipes import Options
from raterwise.request import Request
from raterwise.segmentation.cases import Case, Selection, Voxels

__all__ = ["ImageVariation", "total_variation"]


@dataclass(frozen=True, eq=False)
class ImageVariation:
    """The total variation of a metric over images."""

    mean: float
    std: float
    """Over images."""
    per_case: NDArray[np.float64]
    """The mean over the repeats of each image."""


def total_variation(
    cases: Iterable[Case],
    metric: str = "ece",
    start: float = 0.2,
    step: float = 0.05,
    repeats: int = 100,
    seed: int = 0,
    *,
    bins: int = 15,
    question: str | None = None,
    per: str | None = None,
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

    >>> image, masks = np.full((16, 16), 0.5), np.indices((16, 16)).sum(axis=0) % 2
    >>> tv = total_variation([Case(image, masks[None])], repeats=5)
    >>> 0 < tv.mean < 0.1
    True
    """
    partition = stability.Partition(start, step, repeats, seed)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    request = Request.of(
        metric, bins=bins, question=question, per=per,
        options={metric: options} if options else None, settings=Settings(resamples=0),
    )  # fmt: skip
    if len(request.metrics) != 1:
        raise InvalidInputError(f"metric: must be the name of one; got {metric!r}")
    (measure,) = request.asked.values()
    total = len(cases) if isinstance(cases, Sized) else None
    each = []
    for number, case in enumerate(cases):
        voxels = _all(Voxels.of(case, None, selection, number))
        each.append(float(np.nanmean(stability.variations_of(voxels, measure, partition))))
        if progress and total:
            progress("total variation", (number + 1) / total)
    if not each:
        raise InvalidInputError("cases: must hold at least one image; got none")
    values = np.array(each)
    std = float(np.nanstd(values, ddof=1)) if len(values) > 1 else 0.0
    return ImageVariation(float(np.nanmean(values)), std, values)


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
