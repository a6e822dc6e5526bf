"""Two classes, every voxel rated by every rater: the summaries straight from the image.

The probability of class 1 and the number of raters who chose it are all there is to a voxel, so
the masks need not become label histograms nor the image a table of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.engines.local import STRIPES
from raterwise.kernels._threads import in_threads
from raterwise.predictions import Rows
from raterwise.questions import ScoredCases
from raterwise.segmentation.cases import Voxels
from raterwise.summaries import AgreementPlan, BinPlan, SoftBinPlan, SortedPlan, SortedScores
from raterwise.summaries.cells import CellPlan
from raterwise.summaries.digest import Digest, Facts

__all__ = ["binary_digest", "has_binary_digest"]

Array = NDArray[Any]

CHUNK = 1 << 15
"""Voxels that are summed together: their votes and scores stay in the cache."""
MOST_RATERS = 255
WHOLE_BINS = ("top_label", "positive", "per_class", "predicted_class")
"""Questions whose scores have the precision of the probabilities."""


def has_binary_digest(voxels: Voxels, plans: Sequence[Any]) -> bool:
    """Tell whether these plans can be summed without label histograms."""
    return (
        voxels.probs.ndim == 1
        and not voxels.one_hot
        and voxels.ignore_label is None
        and voxels.concentration is None
        and len(voxels.raters) <= MOST_RATERS
        and voxels.probs.dtype in (np.float32, np.float64)
        and all(_is_known(plan) for plan in plans)
    )


def _is_known(plan: Any) -> bool:
    from raterwise.kernels._voxels import QUESTION_CODES

    if isinstance(plan, AgreementPlan):
        return True
    if isinstance(plan, BinPlan):
        known = plan.question.name in QUESTION_CODES and isinstance(plan.bins, int)
        return known and (plan.question.name != "disagreement" or plan.least_raters >= 2)
    single = ("top_label", "positive")
    return isinstance(plan, CellPlan | SoftBinPlan | SortedPlan) and plan.question.name in single


def binary_digest(voxels: Voxels, plans: Sequence[Any], threads: int | None = None) -> Digest:
    """Return the digest of one image."""
    total = voxels.probs.shape[0]
    chunks = -(-total // CHUNK)
    bounds = [s * chunks // STRIPES * CHUNK for s in range(STRIPES)] + [total]
    busy = [s for s in range(STRIPES) if bounds[s] < bounds[s + 1]]

    def stripe(s: int) -> list[Any]:
        summaries = [plan.empty(2) for plan in plans]
        for first in range(bounds[s], bounds[s + 1], CHUNK):
            last = min(first + CHUNK, bounds[s + 1])
            _absorb(voxels, first, last, plans, summaries)
        return summaries

    merged, *rest = in_threads(stripe, busy, threads)
    for part in rest:
        merged = [a + b for a, b in zip(merged, part, strict=True)]
    cases, raters = len(voxels), len(voxels.raters)
    facts = Facts(
        2,
        cases,
        cases * raters,
        raters,
        raters,
        cases if raters < 2 else 0,
        cases if raters < 3 else 0,
        float(cases) * raters,
        float(cases) * raters**2,
    )
    return Digest(dict(zip(plans, merged, strict=True)), facts, np.array([cases]))


def _absorb(
    voxels: Voxels, first: int, last: int, plans: Sequence[Any], summaries: list[Any]
) -> None:
    from raterwise.kernels import _voxels as kernels

    raters = len(voxels.raters)
    votes = np.zeros(last - first, np.uint8)
    chosen = None if voxels.kept is None else voxels.kept[first:last]
    if chosen is not None and not chosen.any():
        return
    for r, rater in enumerate(voxels.raters):
        if not kernels.count_votes(rater[first:last], votes):
            bad = _first_bad(rater[first:last], chosen)
            if bad >= 0:
                raise voxels.bad_label(r, first + bad)
    positive = voxels.probs[first:last]
    if chosen is not None and not chosen.all():
        positive, votes = positive[chosen], votes[chosen]
    if not kernels.are_probabilities(positive):
        bad = int(np.flatnonzero(~((positive >= 0) & (positive <= 1)))[0])
        raise voxels.bad_probability(first, last, bad)
    for i, plan in enumerate(plans):
        summaries[i] = _with(plan, summaries[i], positive, votes, raters)


def _first_bad(labels: Array, chosen: NDArray[np.bool_] | None) -> int:
    bad = (labels != 0) & (labels != 1)
    found = np.flatnonzero(bad if chosen is None else bad & chosen)
    return int(found[0]) if len(found) else -1


def _with(plan: Any, summary: Any, positive: Array, votes: Array, raters: int) -> Any:
    """Return the summary with some voxels added, most often in place."""
    from raterwise.kernels import _voxels as kernels

    if raters < getattr(plan, "least_raters", 1):
        return summary
    if isinstance(plan, AgreementPlan):
        summary.absorb(_rows_by_votes(votes, raters))
        return summary
    question = plan.question
    code = kernels.QUESTION_CODES[question.name]
    per_annotation = question.per == "annotation"
    if isinstance(plan, BinPlan):
        edges = plan.edges
        whole = question.name in WHOLE_BINS and _whole_bins(positive.dtype, tuple(edges.tolist()))
        kernels.add_binary_voxels(
            positive, votes, raters, code, per_annotation, edges, whole, summary.sums[0]
        )
        return summary
    z, mu = np.empty((len(positive), 1)), np.empty((len(positive), 1))
    kernels.score_binary_voxels(positive, votes, raters, code, z, mu)
    weights = np.full(len(positive), float(raters) if per_annotation else 1.0)
    scored = ScoredCases(z, mu, weights)
    if isinstance(plan, SortedPlan):
        return summary + SortedScores(plan, 1, 1, (scored,))
    summary._absorb_scored(scored)
    return summary


def _whole_bins(dtype: Any, edges: tuple[float, ...]) -> bool:
    """Tell whether the whole part of z × bins is the bin, for every float32 z."""
    from raterwise.kernels import _tiles

    return bool(dtype == np.float32) and _tiles.are_usual(edges, 32)


def _rows_by_votes(votes: Array, raters: int) -> Rows:
    """Return one row per number of votes, weighted by how many voxels have it."""
    often = np.bincount(votes, minlength=raters + 1).astype(np.float64)
    number = np.arange(raters + 1)
    return Rows(
        np.zeros((raters + 1, 2)),
        np.zeros(raters + 1),
        np.zeros(raters + 1, np.int64),
        classes=None,
        counts=np.stack((raters - number, number), axis=1),
        num_raters=np.full(raters + 1, raters),
        weights=often,
    )
