"""CPU loops over voxels: rater masks to label histograms, and two classes straight to bins.

Where there are two classes, what the raters said of a voxel is one number, how many of them chose
class 1. With the probability of that class it answers every question, without a table of rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from raterwise.kernels._numba import FIELDS
from raterwise.kernels._tiles import UNIT

Array = Any

TOP_LABEL, POSITIVE, PER_CLASS, PREDICTED_CLASS, DISAGREEMENT, LOG = range(6)
QUESTION_CODES = {
    "top_label": TOP_LABEL,
    "positive": POSITIVE,
    "per_class": PER_CLASS,
    "predicted_class": PREDICTED_CLASS,
    "disagreement": DISAGREEMENT,
    "log": LOG,
}
COPIES = 4
"""A power of two."""
BLOCK = 128
"""Voxels between scoring and adding."""
SUMS = 5
"""1, z, μ, (μ - z)², μ²."""


@njit(nogil=True, cache=True)
def count_labels(
    labels: Array, chosen: Array, ignored: int, has_ignored: bool, counts: Array
) -> int:
    """Add one rater's labels (n,) to label histograms (m, K); return the first bad voxel, or -1.

    `chosen` are the m voxels to count, or is empty for all of them. A voxel of the label `ignored`
    was not rated by this rater.
    """
    classes = counts.shape[1]
    every = chosen.size == 0
    for i in range(len(counts)):
        at = i if every else chosen[i]
        label = int(labels[at])
        if has_ignored and label == ignored:
            continue
        if label < 0 or label >= classes or label != labels[at]:
            return at
        counts[i, label] += 1
    return -1


@njit(nogil=True, cache=True)
def count_one_hot(onehot: Array, chosen: Array, counts: Array) -> int:
    """Add one rater's one-hot masks (K, n) likewise; a voxel without a class was not rated."""
    classes = counts.shape[1]
    every = chosen.size == 0
    for i in range(len(counts)):
        at = i if every else chosen[i]
        marked = 0
        for k in range(classes):
            value = onehot[k, at]
            if value == 1:
                counts[i, k] += 1
                marked += 1
            elif value != 0:
                return at
        if marked > 1:
            return at
    return -1


@njit(nogil=True, cache=True)
def count_votes(labels: Array, votes: Array) -> bool:
    """Add one rater's labels 0 and 1 (n,) to the votes for class 1; return whether all are such.

    It goes on to the end in any case: a loop without a way out is done on many voxels at once.
    """
    wrong = 0
    for i in range(len(labels)):
        label = labels[i]
        votes[i] += label == 1
        wrong += (label != 0) & (label != 1)
    return wrong == 0


@njit(nogil=True, cache=True)
def are_probabilities(positive: Array) -> bool:
    """Return whether no value is NaN or outside [0, 1]."""
    good = 0
    for i in range(len(positive)):
        good += (positive[i] >= 0) & (positive[i] <= 1)
    return good == len(positive)


@njit(inline="always")
def _event(p: float, other: float, share: float, question: int, c: int) -> tuple[float, float]:
    """Return z and μ of a question about a voxel: p and 1 - p, and the share of class 1."""
    if question == POSITIVE or (question == PER_CLASS and c == 1):
        return p, share
    if question == PER_CLASS:
        return other, 1.0 - share
    first = p > other  # a tie goes to class 0
    return (p if first else other), (share if first else 1.0 - share)


@njit(nogil=True, cache=True)
def score_binary_voxels(
    positive: Array, votes: Array, raters: int, question: int, z: Array, mu: Array
) -> None:
    """Fill in the scores (n, 1) and frequencies of a question with one channel."""
    one = positive.dtype.type(1)
    for i in range(len(positive)):
        other = np.float64(one - positive[i])  # in the precision of the input, as its own column
        z[i, 0], mu[i, 0] = _event(np.float64(positive[i]), other, votes[i] / raters, question, 0)


@njit(nogil=True, cache=True)
def add_binary_voxels(
    positive: Array, votes: Array, raters: int, question: int, per_annotation: bool,
    edges: Array, whole_bins: bool, table: Array,
) -> None:  # fmt: skip
    """Add voxels of two classes to `table` (channels, bins, FIELDS).

    `positive` (n,) is the probability of class 1 and `votes` (n,) how many of the raters, all of
    whom rated every voxel, chose it. The bins are equal ones, `edges` what scores of this type are
    compared with; with `whole_bins` the whole part of (z + UNIT) × bins, of float32 z, is known to
    be the bin, otherwise the product may round across an edge.
    """
    nearly = UNIT * table.shape[1] if whole_bins else 0.0
    channels, bins, _ = table.shape
    said = _frequencies(raters, question)
    z, mu = np.empty(BLOCK), np.empty(BLOCK)
    cell = np.empty(BLOCK, np.int32)
    # Copies: with saturated probabilities the addition before went to the same bin.
    sums = np.zeros(COPIES * channels * bins * SUMS)
    for c in range(2 if question == PER_CLASS else 1):
        for start in range(0, len(positive), BLOCK):
            size = min(BLOCK, len(positive) - start)
            # First what can be done on many voxels at once, then the additions, which cannot.
            for j in range(size):
                i = start + j
                row = _score(positive[i], votes[i], said, question, c, j, z, mu)
                b = min(np.int32(z[j] * bins + nearly), np.int32(bins - 1))
                if not whole_bins:
                    b += (b + 1 < bins) & (z[j] >= edges[b + 1])
                    b -= z[j] < edges[b]
                cell[j] = ((j & (COPIES - 1)) * channels + row) * bins + b
            for j in range(size):
                at = np.uint64(cell[j]) * np.uint64(SUMS)
                gap = mu[j] - z[j]
                sums[at] += 1.0
                sums[at + np.uint64(1)] += z[j]
                sums[at + np.uint64(2)] += mu[j]
                sums[at + np.uint64(3)] += gap * gap
                sums[at + np.uint64(4)] += mu[j] * mu[j]
    # A score of the voxel itself has no second label to be corrected by.
    corrected = not per_annotation and raters > 1 and question != LOG
    _add_weighted(sums, float(raters) if per_annotation else 1.0, corrected, raters, table)


@njit(nogil=True, cache=True)
def _frequencies(raters: int, question: int) -> Array:
    """Return the observed frequency of the event, by how many raters chose class 1."""
    votes = np.arange(raters + 1)
    if question == DISAGREEMENT:
        return 2.0 * votes * (raters - votes) / (raters * (raters - 1.0))
    return votes / raters


@njit(inline="always")
def _score(
    positive: Any, votes: int, said: Array, question: int, c: int, j: int, z: Array, mu: Array
) -> int:
    """Write z and μ of a voxel at j; return the channel it belongs to."""
    p, other = np.float64(positive), np.float64(type(positive)(1) - positive)
    if question == DISAGREEMENT:
        z[j] = min(max(1.0 - (other * other + p * p), 0.0), 1.0)
        mu[j] = said[votes]
        return 0
    if question == LOG:
        z[j], mu[j] = 0.0, _log_score(p, other, said[votes])
        return 0
    z[j], mu[j] = _event(p, other, said[votes], question, c)
    if question == PREDICTED_CLASS:
        return 1 if p > other else 0
    return c


@njit(inline="always")
def _log_score(p: float, other: float, share: float) -> float:
    """Return -Σ_k μ_k log p_k."""
    score = 0.0
    if share > 0.0:
        score -= share * math.log(p) if p > 0.0 else -math.inf
    if share < 1.0:
        score -= (1.0 - share) * math.log(other) if other > 0.0 else -math.inf
    return score


@njit(nogil=True, cache=True)
def _add_weighted(sums: Array, weight: float, corrected: bool, raters: int, table: Array) -> None:
    """Add the copies of sums over voxels of one weight, in a fixed order, to `table`."""
    flat = table.reshape(-1)
    for copy in range(COPIES):
        for j in range(0, table.size, FIELDS):
            at = (copy * table.size + j) // FIELDS * SUMS
            flat[j] += sums[at]
            flat[j + 1] += weight * sums[at]
            flat[j + 2] += weight * weight * sums[at]
            for f in range(1, 5):  # z, μ, (μ - z)², μ²
                flat[j + 2 + f] += weight * sums[at + f]
            if corrected:
                flat[j + 7] += weight * (sums[at + 2] - sums[at + 4]) / (raters - 1.0)
