"""Two classes, every voxel rated by every rater: the summaries straight from the image.

The probability of class 1 and the number of raters who chose it are all there is to a voxel, so
the masks need not become label histograms nor the image a table of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import settled
from raterwise.kernels._threads import in_threads
from raterwise.segmentation.cases import Voxels
from raterwise.summaries import Votes
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts
from raterwise.summaries.one_pass import STRIPES
from raterwise.types import Array

CHUNK = 1 << 15
"""Voxels that are summed together: their votes and scores stay in the cache."""
MOST_RATERS = 255


def has_binary_digest(voxels: Voxels, plans: Sequence[Any]) -> bool:
    """Tell whether these plans can be summed without label histograms."""
    return (
        voxels.probs.ndim == 1
        and not voxels.one_hot
        and voxels.ignore_label is None
        and voxels.concentration is None
        and len(voxels.raters) <= MOST_RATERS
        and voxels.probs.dtype in (np.float32, np.float64)
        and all(plan.takes_votes() for plan in plans)
    )


def binary_digest(voxels: Voxels, plans: Sequence[Any]) -> Digest:
    """Return the digest of one image."""
    total = voxels.probs.shape[0]
    chunks = -(-total // CHUNK)
    bounds = [s * chunks // STRIPES * CHUNK for s in range(STRIPES)] + [total]
    busy = [s for s in range(STRIPES) if bounds[s] < bounds[s + 1]]

    def stripe(s: int) -> tuple[list[Any], Array]:
        summaries, by_class = [plan.empty(2) for plan in plans], np.zeros(2, np.int64)
        for first in range(bounds[s], bounds[s + 1], CHUNK):
            last = min(first + CHUNK, bounds[s + 1])
            votes = _votes(voxels, first, last)
            if votes is None:
                continue
            for summary in summaries:
                summary.absorb_votes(votes)
            by_class += _chosen_by_any(votes)
        return summaries, by_class

    (merged, by_class), *rest = in_threads(stripe, busy)
    for part, counts in rest:
        merged = [a + b for a, b in zip(merged, part, strict=True)]
        by_class = by_class + counts
    cases, raters = len(voxels), len(voxels.raters)
    divided = int(by_class.sum()) - cases  # they have a rater for either class
    facts = Facts(
        2,
        cases,
        cases * raters,
        raters,
        raters,
        cases if raters < 2 else 0,
        cases if raters < 3 else 0,
        weight=float(cases) * raters,
        squared_weight=float(cases) * raters**2,
        by_class=(int(by_class[0]), int(by_class[1])),
        twos=cases if raters == 2 else 0,
        divided_twos=divided if raters == 2 else 0,
        threes=cases if raters == 3 else 0,
        divided_threes=divided if raters == 3 else 0,
    )
    return Digest(dict(zip(plans, merged, strict=True)), facts, np.array([cases]))


def _chosen_by_any(votes: Votes) -> Array:
    """Return how many voxels some rater gave to each of the classes."""
    positive = np.count_nonzero(votes.chosen)
    unanimous = np.count_nonzero(votes.chosen == votes.raters)
    return np.array([len(votes.chosen) - unanimous, positive])


def _votes(voxels: Voxels, first: int, last: int) -> Votes | None:
    """Return what is said of some voxels, checked; None where none of them is looked at."""
    from raterwise.kernels import _voxels as kernels

    votes = np.zeros(last - first, np.uint8)
    chosen = None if voxels.kept is None else voxels.kept[first:last]
    if chosen is not None and not chosen.any():
        return None
    for r, rater in enumerate(voxels.raters):
        if not kernels.count_votes(rater[first:last], votes):
            bad = _first_bad(rater[first:last], chosen)
            if bad >= 0:
                raise voxels.bad_label(r, first + bad)
    positive = voxels.probs[first:last]
    if chosen is not None and not chosen.all():
        positive, votes = positive[chosen], votes[chosen]
    if not kernels.are_probabilities(positive):
        positive = settled(positive)
    if not kernels.are_probabilities(positive):
        bad = int(np.flatnonzero(~((positive >= 0) & (positive <= 1)))[0])
        raise voxels.bad_probability(first, last, bad)
    return Votes(positive, votes, len(voxels.raters))


def _first_bad(labels: Array, chosen: NDArray[np.bool_] | None) -> int:
    bad = (labels != 0) & (labels != 1)
    found = np.flatnonzero(bad if chosen is None else bad & chosen)
    return int(found[0]) if len(found) else -1
