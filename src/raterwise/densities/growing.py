"""KDE-ECE on the growing parts of a test set, as a total variation asks for it (MR eq 6).

The same as `pairs.top_label_kde` of each part. Parts share most of their pairs, and the kernel of
two scores is the same in all of them: it is computed once, for the largest part.
"""

from __future__ import annotations

import numpy as np

from raterwise.densities.pairs import beta_terms, cutoff, in_blocks
from raterwise.types import FloatArray, IntArray


def growing_kde(
    z: FloatArray,
    hits: FloatArray,
    masses: FloatArray,
    ring: IntArray,
    parts: int,
    *,
    p: int = 1,
    bandwidth: float,
) -> FloatArray:
    """Return the KDE-ECE of one score on each part, exact; NaN of fewer than two cases.

    Args:
        z: (N,) predicted probability of the event, in increasing order, ties by their ring.
        hits: (N,) annotation mass that says the event happened.
        masses: (N,) total annotation mass of the case, above 0.
        ring: (N,) the part that the case is new in; later parts have it too.
        parts: how many there are.
        p, bandwidth: as in `top_label_kde`.

    >>> z, hits, ring = np.array([0.25, 0.5, 0.75]), np.array([0.0, 1, 1]), np.array([0, 1, 0])
    >>> growing_kde(z, hits, np.ones(3), ring, 2, bandwidth=0.1).round(4).tolist()
    [0.75, 0.3269]
    """
    from raterwise.kernels._kde_growing import LONELY, add_errors, growing_beta_sums

    new_score = np.diff(z, prepend=-1.0) > 0
    group = np.cumsum(new_score) - 1
    entry = np.flatnonzero(new_score | (np.diff(ring, prepend=-1) != 0))
    added, added_hits = (np.add.reduceat(x, entry) for x in (masses, hits))
    score, parts_of = z[new_score], ring[entry]
    begin = np.append(np.flatnonzero(new_score[entry]), len(entry))
    tied_cases, tied_mass, tied_hits = (
        _by_part(group, ring, x, len(score), parts) for x in (np.ones(len(z)), masses, hits)
    )
    c, g, _, s, _, peaks = beta_terms(score, bandwidth)
    cut = cutoff(np.append(tied_mass[:, -1], added.min())) + LONELY
    own, sums, alone = np.empty(len(score)), np.empty((2, len(score), parts)), tied_cases == 1

    def task(start: int, stop: int) -> None:
        growing_beta_sums(
            c, g, s, peaks, begin, parts_of, added, added_hits, alone, cut, added.min(),
            start, stop, own, sums,
        )  # fmt: skip

    in_blocks(task, len(score))
    errors = np.zeros(parts)
    add_errors(group, ring, masses, hits, score, tied_mass, tied_hits, own, sums, p, errors)
    enough, mass = tied_cases.sum(axis=0) > 1, tied_mass.sum(axis=0)
    found: FloatArray = np.divide(errors, mass, out=np.full(parts, np.nan), where=enough)
    return found


def _by_part(
    group: IntArray, ring: IntArray, values: FloatArray, groups: int, parts: int
) -> FloatArray:
    """Return the sums of the cases of each score in each part (groups, parts)."""
    new = np.bincount(group * parts + ring, values, groups * parts).reshape(groups, parts)
    return np.cumsum(new, axis=1)
