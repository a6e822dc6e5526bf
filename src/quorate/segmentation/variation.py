"""Total variation per image: how steady a metric is when an image has fewer voxels (MR Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate import stability
from quorate.arrays import positive_integer
from quorate.catalog import find
from quorate.engines.local import summarise
from quorate.errors import InvalidInputError
from quorate.inference import Progress
from quorate.labels import Labels
from quorate.predictions import Predictions
from quorate.segmentation.cases import Case, Selection, Voxels
from quorate.summaries import BinPlan, BinSums, SoftBinPlan

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
    question: str | None = None,
    foreground_only: bool = False,
    boundary_mm: float | None = None,
    ignore_label: int | None = None,
    progress: Progress | None = None,
) -> ImageVariation:
    """Return the total variation of a metric within each image (MR eq 6, section 3.2, Table 2).

    Each image is a test set of voxels. TV = 1/n Σ_p |CE(X^p) - CE(X^{p-Δp})| over growing nested
    subsets of its voxels, drawn from a bootstrap of the image in each repeat; the paper's equation
    leaves the absolute values out, without which the sum would telescope.

    >>> image, masks = np.full((16, 16), 0.5), np.indices((16, 16)).sum(axis=0) % 2
    >>> tv = total_variation([Case(image, masks[None])], repeats=5)
    >>> 0 < tv.mean < 0.1
    True
    """
    repeats = positive_integer("repeats", repeats)
    if not 0 < start < 1:
        raise InvalidInputError(f"start: must be between 0 and 1; got {start}")
    if not 0 < step <= 1 - start:
        raise InvalidInputError(f"step: must be in (0, {1 - start:g}]; got {step}")
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    total = len(cases) if isinstance(cases, Sized) else None
    each = []
    for number, case in enumerate(cases):
        voxels = Voxels.of(case, None, selection, number)
        predictions = _all(voxels)
        each.append(_of_image(predictions, metric, question, start, step, repeats, seed))
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


def _of_image(
    predictions: Predictions,
    metric: str,
    question: str | None,
    start: float,
    step: float,
    repeats: int,
    seed: int,
) -> float:
    row = find(metric)
    own = row.with_defaults({} if question is None else {"question": question})
    plan = row.plan(own)
    if not isinstance(plan, BinPlan | SoftBinPlan):
        if question is not None:
            raise InvalidInputError(f"question: {metric} has none to choose in total_variation")
        tv = stability.total_variation(
            metric, predictions.probs, predictions.labels, start, step, repeats, seed
        )
        return tv.mean
    predictions.labels.require_raters(row.raters_needed(own))
    count = round((1 - start) / step)
    fractions = np.append(start + step * np.arange(count), 1.0)
    cases = len(predictions)
    ends = [max(1, round(fraction * cases)) for fraction in fractions]
    ring = np.searchsorted(ends, np.arange(cases), side="right")
    variations = np.empty(repeats)
    for r in range(repeats):
        drawn = np.random.default_rng([seed, r]).integers(0, cases, cases)
        # Nested subsets: what each adds to the one before is a unit, and their sums cumulate.
        rings = summarise(
            predictions.take(drawn), [plan], units=ring, num_units=len(ends), threads=1
        )[plan]
        assert isinstance(rings, BinSums)
        tables = BinSums(rings.plan, np.cumsum(rings.sums, axis=0))
        stack = type(tables.table)(tables.sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = row.over(stack, own)
        variations[r] = np.nanmean(np.abs(np.diff(values)))
    return float(np.nanmean(variations))
