"""How a belief about cases that several people labelled is judged: LH Table 6, with errors.

Every metric is a formula over sums over cases, so that it can be had without any one group of
cases: the standard errors are those of a jackknife over fifty groups, in which patients stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.label_histograms.mixed_scores import unbiased
from raterwise.beliefs import Belief, EnsembleBelief
from raterwise.labels import Labels

__all__ = [
    "BINS",
    "GROUPS",
    "Said",
    "JudgedCases",
    "disagreement_bins",
    "error_of",
    "estimates",
    "said_of",
    "together",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BINS, GROUPS = 15, 50


class Said(NamedTuple):
    """What a belief says of cases."""

    mean: FloatArray
    """(N, K)."""
    disagreement: FloatArray
    """(N,): how likely two raters differ."""
    posterior: FloatArray
    """(N, K): the mean once the expert's label is known."""
    posterior_sum: FloatArray | None
    """The same of an ensemble with the released weights."""


class JudgedCases(NamedTuple):
    """What people said of the cases that are judged."""

    counts: IntArray
    """(N, K)."""
    expert: IntArray
    """(N,): the label of each case that the posterior is given; the others judge it."""
    groups: IntArray
    """(N,): which of the fifty groups."""

    @staticmethod
    def of(counts: IntArray, units: NDArray[np.generic] | None = None) -> JudgedCases:
        """Draw the expert's labels, and deal the cases (or the patients) into groups."""
        random = np.random.default_rng([0, 21])
        ticket = random.integers(counts.sum(axis=1))
        expert = (counts.cumsum(axis=1) <= ticket[:, None]).sum(axis=1)
        names = np.arange(len(counts)) if units is None else units
        _, unit = np.unique(names, return_inverse=True)
        order = np.random.default_rng([0, 22]).permutation(unit.max() + 1)
        return JudgedCases(counts, expert, (order % GROUPS)[unit])

    def rows(self, rows: IntArray) -> JudgedCases:
        """Return some of the cases."""
        return JudgedCases(self.counts[rows], self.expert[rows], self.groups[rows])


def said_of(belief: Belief, cases: JudgedCases) -> Said:
    """Return what a belief says of the cases, before and after the expert."""
    expert = Labels.from_classes(cases.expert, num_classes=cases.counts.shape[1])
    released = None
    if isinstance(belief, EnsembleBelief):
        released = belief.posterior(expert, weights="sum").mean
    return Said(belief.mean, belief.disagreement(), belief.posterior(expert).mean, released)


def together(parts: Sequence[tuple[IntArray, Said]]) -> Said:
    """Return what several networks say, each of its own rows, as if one had said it."""
    rows = np.concatenate([own for own, _ in parts])
    order = np.argsort(rows)
    mean, disagreement, posterior = (
        np.concatenate([said[column] for _, said in parts])[order] for column in range(3)
    )
    sums = [said.posterior_sum for _, said in parts if said.posterior_sum is not None]
    released = np.concatenate(sums)[order] if len(sums) == len(parts) else None
    return Said(mean, disagreement, posterior, released)


def estimates(said: Said, cases: JudgedCases) -> dict[str, FloatArray]:
    """Return each metric of all cases, followed by its values without each of the groups."""
    counts, groups = cases.counts, cases.groups
    n = counts.sum(axis=1)
    mu = counts / n[:, None]
    two, three = n >= 2, n >= 3
    left = counts - np.eye(counts.shape[1], dtype=np.int64)[cases.expert]
    best = counts == counts.max(axis=1, keepdims=True)
    right = (best / best.sum(axis=1, keepdims=True))[np.arange(len(n)), said.mean.argmax(axis=1)]
    differ = _differing(counts[two])
    found = {
        "accuracy": _means(right, groups),
        "squared_loss": _means(((mu - said.mean) ** 2 + mu * (1 - mu)).sum(axis=1), groups),
        "epistemic_loss": _means(unbiased(said.mean[two], counts[two]), groups[two]),
        "calibration_error": _calibration(said.mean, mu, groups),
        "disagreement": _means(said.disagreement[two], groups[two]),
        "disagreement_loss": _means(
            (differ - said.disagreement[two]) ** 2 + differ * (1 - differ), groups[two]
        ),
        "disagreement_calibration_error": _calibration(
            said.disagreement[two, None], differ[:, None], groups[two]
        ),
        "prior": _means(unbiased(said.mean[three], left[three]), groups[three]),
        "posterior": _means(unbiased(said.posterior[three], left[three]), groups[three]),
    }
    if said.posterior_sum is not None:
        released = unbiased(said.posterior_sum[three], left[three])
        found["posterior_sum"] = _means(released, groups[three])
    return found


def error_of(values: FloatArray) -> float:
    """Return the standard error of a number, which is followed by those without each group.

    Of the mean of as many cases as groups it is the usual one.

    >>> error_of(np.array([2.0, 2.5, 1.5]))
    0.5
    """
    without = values[1:]
    return float(
        np.sqrt((len(without) - 1) / len(without) * ((without - without.mean()) ** 2).sum())
    )


def disagreement_bins(said: Said, cases: JudgedCases) -> dict[str, list[float]]:
    """Return the reliability diagram of disagreement: cases, predicted and observed by bin."""
    two = cases.counts.sum(axis=1) >= 2
    predicted, differ = said.disagreement[two], _differing(cases.counts[two])
    place = _place(predicted)
    sizes = np.bincount(place, minlength=BINS)
    sums = (np.bincount(place, values, minlength=BINS) for values in (predicted, differ))
    means = (
        [round(float(s / max(n, 1)), 6) for s, n in zip(part, sizes, strict=True)] for part in sums
    )
    names = ("predicted", "observed")
    return {"cases": sizes.tolist(), **dict(zip(names, means, strict=True))}


def _differing(counts: IntArray) -> FloatArray:
    """Return the share of pairs of raters that differ."""
    n = counts.sum(axis=1)
    return np.asarray(1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))


def _with_and_without(values: FloatArray, groups: IntArray) -> FloatArray:
    """Return the sums over cases of values (N,), in all and without each group."""
    own = np.bincount(groups, values, minlength=GROUPS)
    return np.concatenate(([own.sum()], own.sum() - own))


def _means(values: FloatArray, groups: IntArray) -> FloatArray:
    sums, sizes = (_with_and_without(v, groups) for v in (values, np.ones(len(values))))
    return np.asarray(sums / sizes)


def _place(scores: FloatArray) -> IntArray:
    return np.minimum((scores * BINS).astype(np.int64), BINS - 1)


def _calibration(scores: FloatArray, observed: FloatArray, groups: IntArray) -> FloatArray:
    """Return the root of the debiased calibration loss (LH eqs 14, 44), summed over the columns.

    A bin of one case counts 0.
    """
    total = np.zeros(GROUPS + 1)
    for z, mu in zip(scores.T, observed.T, strict=True):
        where = groups * BINS + _place(z)
        own = [
            np.bincount(where, values, minlength=GROUPS * BINS).reshape(GROUPS, BINS)
            for values in (np.ones(len(z)), mu - z, mu, mu**2)
        ]
        n, gap, s, q = (np.vstack((part.sum(axis=0), part.sum(axis=0) - part)) for part in own)
        n, more = np.maximum(n, 1), n > 1.5
        spread = (q - s**2 / n) / np.maximum(n - 1, 1)
        total += np.where(more, gap**2 / n - spread, 0).sum(axis=1)
    sizes = _with_and_without(np.ones(len(scores)), groups)
    return np.asarray(np.sqrt(np.maximum(total / sizes, 0)))
