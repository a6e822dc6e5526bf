"""Total variation per image: how steady a metric is when an image has fewer voxels (MR Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import stability
from raterwise.arrays import positive_integer
from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.inference import Progress, Settings
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.questions import ScoredCases
from raterwise.segmentation.cases import Case, Selection, Voxels
from raterwise.segmentation.request import Request
from raterwise.summaries import BinPlan, SoftBinPlan, SortedPlan, SortedScores

__all__ = ["ImageVariation", "total_variation"]

FloatArray = NDArray[np.float64]
Rows = NDArray[np.int64]


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
    leaves the absolute values out, without which the sum would telescope. The bandwidth of KDE-ECE
    is chosen once for the whole image, so that its choice is no part of the variation.

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
    request = Request.of(metric, "per_case", 15, question, Settings(resamples=0), selection)
    if len(request.metrics) != 1:
        raise InvalidInputError(f"metric: must be the name of one; got {metric!r}")
    ((row, own),) = request.asked.values()
    total = len(cases) if isinstance(cases, Sized) else None
    each = []
    for number, case in enumerate(cases):
        voxels = Voxels.of(case, None, selection, number)
        predictions = _all(voxels)
        each.append(_of_image(predictions, row, own, (start, step, repeats, seed)))
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
    row: Metric,
    own: Mapping[str, Any],
    partition: tuple[float, float, int, int],
) -> float:
    start, step, repeats, seed = partition
    plan = row.plan(own)
    cases = len(predictions)
    predictions.labels.require_raters(row.raters_needed(own))
    fractions = np.append(start + step * np.arange(round((1 - start) / step)), 1.0)
    ends = [max(1, round(fraction * cases)) for fraction in fractions]
    if isinstance(plan, BinPlan | SoftBinPlan):
        measure = _by_sums(predictions, plan, row, own, ends)
    elif isinstance(plan, SortedPlan):
        measure = _by_scores(predictions, plan, row, own, ends)
    else:
        given = predictions.probs, predictions.labels
        return stability.total_variation(row.name, *given, start, step, repeats, seed).mean
    variations = np.empty(repeats)
    for r in range(repeats):
        drawn = np.random.default_rng([seed, r]).integers(0, cases, cases)
        variations[r] = np.nanmean(np.abs(np.diff(measure(drawn))))
    return float(np.nanmean(variations))


def _by_sums(
    predictions: Predictions,
    plan: BinPlan | SoftBinPlan,
    row: Metric,
    own: Mapping[str, Any],
    ends: list[int],
) -> Callable[[Rows], FloatArray]:
    """Return how to measure the subsets that end at `ends`, from sums per bin."""
    from raterwise.kernels import _numba as kernels

    scored = plan.question.score(predictions.read(0, len(predictions)))
    # Nested subsets: what each adds to the one before is a ring, and the rings' sums cumulate.
    ring = np.searchsorted(ends, np.arange(len(predictions)), side="right")
    table = plan.empty(predictions.num_classes, len(ends)).table
    shares = []
    if isinstance(plan, SoftBinPlan):
        for z in scored.z.T.astype(np.float64):
            share = np.empty((len(z), plan.bins))
            sd = np.full((len(z), 1), plan.sigma)
            kernels.gaussian_shares(z[:, None], sd, np.ones_like(sd), plan.edges, share)
            shares.append(share)

    def measure(drawn: Rows) -> FloatArray:
        part = _take(scored, drawn, ring)
        sums = plan.empty(predictions.num_classes, len(ends)).sums
        if isinstance(plan, BinPlan):
            kernels.add_bin_sums(
                part.z, part.mu, part.v, part.weights, part.channel, part.units, plan.edges, sums
            )
        for c, share in enumerate(shares):
            z = part.z[:, c].astype(np.float64)
            kernels.add_soft_bin_sums(
                z, part.mu[:, c], part.weights, share[drawn], ring, plan.edges, sums[:, c]
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(row.over(type(table)(np.cumsum(sums, axis=0)), own))

    return measure


def _by_scores(
    predictions: Predictions,
    plan: SortedPlan,
    row: Metric,
    own: Mapping[str, Any],
    ends: list[int],
) -> Callable[[Rows], FloatArray]:
    """Return how to measure the subsets that end at `ends`, from the scores themselves."""
    from raterwise.metrics.bandwidth import select_bandwidth

    scored = plan.question.score(predictions.read(0, len(predictions)))
    channels = plan.question.channels(predictions.num_classes)
    options = dict(own)
    if row.name == "kde_ece" and own["bandwidth"] is None:
        scores = scored.z[:, 0].astype(np.float64)
        options["bandwidth"] = select_bandwidth(scores, scored.weights)

    def on(rows: Rows) -> float:
        pieces = (_take(scored, rows),)
        try:
            return row.estimate(SortedScores(plan, channels, 1, pieces), options)
        except UndefinedMetricError:
            return float("nan")

    return lambda drawn: np.array([on(drawn[:end]) for end in ends])


def _take(scored: ScoredCases, rows: Rows, units: Rows | None = None) -> ScoredCases:
    """Return the scored voxels of the given rows; arrays that are not needed stay empty."""
    names = ("z", "mu", "weights", "v", "channel")
    arrays = {name: getattr(scored, name) for name in names}
    taken = {name: array[rows] for name, array in arrays.items() if array.size}
    return replace(scored, **taken) if units is None else replace(scored, units=units, **taken)
