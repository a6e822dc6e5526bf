"""Kernel-density calibration errors (KDE-ECE), exact: one score, per class, all classes.

The estimator of Popordanoska et al. (2022) compares each case's prediction with the observed
frequency among *other* cases, weighted by a Beta (one score) or Dirichlet (K classes) kernel:

    ratio_j = sum_{i != j} k(f_j; f_i) h_i / sum_{i != j} k(f_j; f_i) m_i,
    k(f_j; f_i) = Dir(f_j; f_i / bandwidth + 1),
    error = sum_j m_j |ratio_j - f_j|^p / sum_j m_j                      (no p-th root),

where m_i is the mass of a case (its annotations times its weight) and h_i the part of it that
names the event. A case is left out with *all* its annotations: a copy that stayed behind would
tell the estimator what it is about to be asked. `leave_out="copy"` leaves one annotation out, as
software that repeats the rows does.

Logarithms see probabilities clipped to [2.2e-16, 1 - 2.2e-16], so 0 and 1 give finite values.

Growing parts of a test set, as a total variation asks for them (MR eq 6), share most of their
pairs: `growing_kde` computes the kernel of two scores once, for the largest part. The same error
from mergeable sums is in `cells`, the choice of a bandwidth in `bandwidth`.

Reference: Popordanoska, Sayer, Blaschko. A consistent and differentiable Lp canonical calibration
error estimator. NeurIPS 2022. arXiv:2210.07810.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from raterwise.errors import UndefinedMetricError
from raterwise.kernels._threads import in_threads
from raterwise.types import FloatArray, IntArray

LeaveOut = Literal["case", "copy"]

EPSILON = float(np.finfo(np.float64).eps)
_BLOCK = 512  # evaluation points per task: fixed, so that digits do not depend on the threads


def in_blocks(task: Callable[[int, int], None], size: int) -> None:
    """Call task(start, stop) on blocks of `size` rows; every block writes its own rows."""
    in_threads(lambda start: task(start, min(start + _BLOCK, size)), range(0, size, _BLOCK))


# --- one score: the Beta kernel --------------------------------------------------------------


class BetaTerms(NamedTuple):
    """What the Beta kernel needs of each sorted score: log k(z_j; z_i) = c_i s_j + g_i + t_j."""

    c: FloatArray  # z / bandwidth
    g: FloatArray  # -log B(z / bandwidth + 1, (1 - z) / bandwidth + 1)
    slope: FloatArray  # derivative of g in c: decreasing, so the kernel has one peak
    s: FloatArray  # log-odds of z
    t: FloatArray  # log(1 - z) / bandwidth, common to all centres of a point
    peaks: NDArray[np.int64]  # centre with the largest kernel at each point


def beta_terms(scores: FloatArray, bandwidth: float) -> BetaTerms:
    """Return the terms of the Beta kernel at sorted `scores`."""
    c, rest = scores / bandwidth, (1 - scores) / bandwidth
    slope = digamma(rest + 1) - digamma(c + 1)
    inside = np.clip(scores, EPSILON, 1 - EPSILON)
    log_rest = np.log1p(-inside)
    s = np.log(inside) - log_rest
    peaks = np.clip(np.searchsorted(-slope, s), 0, len(scores) - 1)
    return BetaTerms(c, -betaln(c + 1, rest + 1), slope, s, log_rest / bandwidth, peaks)


class KernelSums(NamedTuple):
    """Sums of kernels at each score."""

    mass: FloatArray  # kernel x mass, own score left out, relative to exp(shift)
    hits: FloatArray
    own: FloatArray  # kernel of the own score on the same scale, 0 where it is alone
    shift: FloatArray  # log of the largest kernel, without t


def cutoff(masses: FloatArray) -> float:
    """How far below the largest a log-kernel is negligible: all such together are under 2^-53."""
    return float(np.log(len(masses)) + np.log(masses.max() / masses.min()) + 37.0)


def sum_beta_kernels(
    terms: BetaTerms, mass: FloatArray, hits: FloatArray, alone: NDArray[np.bool_]
) -> KernelSums:
    """Return the sums at each score; `alone` is where a score counts without itself."""
    from raterwise.kernels._kde import beta_sums

    n = len(mass)
    shift, own, out = np.empty(n), np.empty(n), np.empty((2, n))
    c, g, _, s, _, peaks = terms
    cut = cutoff(mass)

    def task(start: int, stop: int) -> None:
        beta_sums(c, g, s, peaks, mass, hits, alone, cut, start, stop, shift, own, out)

    in_blocks(task, n)
    return KernelSums(out[0], out[1], own, shift)


class _TiedScores(NamedTuple):
    """Cases sorted by score and grouped where scores are equal."""

    scores: FloatArray
    mass: FloatArray
    hits: FloatArray
    cases: NDArray[np.int64]
    order: NDArray[np.int64]
    group: NDArray[np.int64]


def _tied_scores(
    z: FloatArray, hits: FloatArray, masses: FloatArray, leave_out: LeaveOut
) -> _TiedScores:
    order = np.flatnonzero(masses > 0)
    order = order[np.argsort(z[order], kind="stable")]
    sorted_z = np.asarray(z, np.float64)[order]
    copies = leave_out == "copy" and float(masses.sum()) > 1
    if len(order) < 2 and not copies:
        raise UndefinedMetricError(
            f"kde_ece: needs at least two cases, to compare one with the others; got {len(order)}"
        )
    new = np.concatenate(([True], np.diff(sorted_z) > 0))
    first = np.flatnonzero(new)
    return _TiedScores(
        sorted_z[first],
        np.add.reduceat(np.asarray(masses, np.float64)[order], first),
        np.add.reduceat(np.asarray(hits, np.float64)[order], first),
        np.diff(np.append(first, len(order))),
        order,
        np.cumsum(new) - 1,
    )


def top_label_kde(
    z: FloatArray,
    hits: FloatArray,
    masses: FloatArray,
    *,
    p: int = 1,
    bandwidth: float,
    leave_out: LeaveOut = "case",
) -> float:
    """KDE-ECE of one score: mean over annotations of |ratio_j - z_j|^p, Beta kernel, exact.

    Args:
        z: (N,) predicted probability of the event, such as the confidence.
        hits: (N,) annotation mass that says the event happened.
        masses: (N,) total annotation mass of the case.
        p: power of the error.
        bandwidth: width of the Beta kernel.
        leave_out: "case", or "copy" for unit annotations as if every one were a row.

    Reference: Popordanoska et al. (2022), eqs 8 and 12.

    >>> z = np.array([0.25, 0.75])
    >>> top_label_kde(z, np.array([0.0, 1.0]), np.ones(2), bandwidth=0.1)
    0.75
    """
    tied = _tied_scores(z, hits, masses, leave_out)
    alone = tied.cases == 1 if leave_out == "case" else tied.mass <= 1
    sums = sum_beta_kernels(beta_terms(tied.scores, bandwidth), tied.mass, tied.hits, alone)
    if leave_out == "copy":
        return _leave_copy_out(tied, sums, p)
    g, m, h = tied.group, masses[tied.order], hits[tied.order]
    other_hits = np.clip(tied.hits[g] - h, 0, None)
    ratio = (sums.hits[g] + sums.own[g] * other_hits) / (
        sums.mass[g] + sums.own[g] * (tied.mass[g] - m)
    )
    return float(np.dot(m, np.abs(ratio - tied.scores[g]) ** p) / m.sum())


def _leave_copy_out(tied: _TiedScores, sums: KernelSums, p: int) -> float:
    """Leave one annotation out: hits and misses at a score each have one ratio of their own."""
    misses = tied.mass - tied.hits
    mass = sums.mass + sums.own * (tied.mass - 1)
    of_hit = (sums.hits + sums.own * np.clip(tied.hits - 1, 0, None)) / mass
    of_miss = (sums.hits + sums.own * tied.hits) / mass
    total = tied.hits * np.abs(of_hit - tied.scores) ** p
    total += misses * np.abs(of_miss - tied.scores) ** p
    return float(total.sum() / tied.mass.sum())


def sum_dirichlet_kernels(
    centres: FloatArray,
    hits: FloatArray,
    points: FloatArray,
    bandwidth: float,
    group: NDArray[np.int64],
    point_group: NDArray[np.int64],
) -> tuple[FloatArray, FloatArray]:
    """Return sums of kernel x hits (C, P) over centres of other groups, and their log scale."""
    from raterwise.kernels._kde import dirichlet_sums

    a = centres / bandwidth
    g = gammaln(a.sum(axis=1) + centres.shape[1]) - gammaln(a + 1).sum(axis=1)
    # Alike points side by side: what is negligible for one is then so for its neighbours.
    order = np.lexsort((points.max(axis=1), points.argmax(axis=1)))
    log_f = np.ascontiguousarray(np.log(np.clip(points[order], EPSILON, None)).T)
    sorted_group, cut = point_group[order], cutoff(hits[:, 0])
    sorted_shift, sorted_out = np.empty(len(points)), np.empty((hits.shape[1], len(points)))

    def task(start: int, stop: int) -> None:
        dirichlet_sums(
            a, g, group, hits, log_f, sorted_group, cut, start, stop, sorted_shift, sorted_out
        )

    in_blocks(task, len(points))
    shift, out = np.empty_like(sorted_shift), np.empty_like(sorted_out)
    shift[order], out[:, order] = sorted_shift, sorted_out
    return out, shift


def canonical_kde(
    probs: FloatArray,
    hits: FloatArray,
    *,
    p: int = 1,
    bandwidth: float,
    leave_out: LeaveOut = "case",
    floor: float = 0.0,
) -> float:
    """KDE-ECE of all classes together: mean of sum_k |ratio_jk - f_jk|^p, Dirichlet kernel.

    Pairs are taken in tiles: the memory needed is that of the inputs.

    Args:
        probs: (N, K) predicted probabilities.
        hits: (N, K) annotation mass per class.
        p: power of the error.
        bandwidth: width of the Dirichlet kernel.
        leave_out: as in `top_label_kde`.
        floor: smallest sum of kernels by which is divided. With the 1e-10 of the released
            estimator, a case far from all others is compared with (nearly) zero instead of with
            its distant neighbours, and the value depends on the scale of the masses.

    Reference: Popordanoska et al. (2022), eq 8.

    >>> probs = np.array([[0.25, 0.75], [0.75, 0.25]])
    >>> canonical_kde(probs, np.eye(2)[[1, 0]], bandwidth=0.1)
    1.5
    """
    hits = np.asarray(hits, np.float64)
    rated = hits.sum(axis=1) > 0
    probs, hits = np.asarray(probs, np.float64)[rated], hits[rated]
    masses = hits.sum(axis=1)
    if len(probs) < 2:
        raise UndefinedMetricError(
            f"kde_ece: needs at least two cases, to compare one with the others; got {len(probs)}"
        )
    cases = np.arange(len(probs))
    columns = np.column_stack((masses, hits))
    sums, shift = sum_dirichlet_kernels(probs, columns, probs, bandwidth, cases, cases)
    if leave_out == "case":
        mass = np.maximum(sums[0], _floor(floor, shift))
        distance = np.abs((sums[1:] / mass).T - probs) ** p
        return float(np.dot(masses, distance.sum(axis=1)) / masses.sum())
    return _leave_canonical_copy_out(probs, hits, sums, shift, bandwidth, p, floor)


def _floor(density: float, shift: FloatArray) -> FloatArray:
    """The smallest denominator, relative to exp(shift)."""
    with np.errstate(divide="ignore"):  # of 0 it is 0
        return np.asarray(np.exp(np.minimum(np.log(density) - shift, 700)))


def _leave_canonical_copy_out(
    probs: FloatArray, hits: FloatArray, sums: FloatArray, shift: FloatArray,
    bandwidth: float, p: int, floor: float,
) -> float:  # fmt: skip
    """Add the own case's other annotations to the sums, for each label that may be left out."""
    a = probs / bandwidth
    own = gammaln(a.sum(axis=1) + a.shape[1]) - gammaln(a + 1).sum(axis=1)
    own += (a * np.log(np.clip(probs, EPSILON, None))).sum(axis=1)
    masses = hits.sum(axis=1)
    scale = np.where(masses > 1, np.maximum(shift, own), shift)
    kernel = np.where(masses > 1, np.exp(np.minimum(own - scale, 0)), 0.0)
    sums = sums * np.exp(shift - scale)
    mass = np.maximum(sums[0] + kernel * (masses - 1), _floor(floor, scale))
    total = 0.0
    for k in range(hits.shape[1]):
        others = hits.copy()
        others[:, k] = np.clip(others[:, k] - 1, 0, None)
        ratio = (sums[1:].T + kernel[:, None] * others) / mass[:, None]
        total += float(np.dot(hits[:, k], (np.abs(ratio - probs) ** p).sum(axis=1)))
    return total / float(masses.sum())


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
