"""What a belief adds to an evaluation: disagreement, and what an expert's label teaches."""

from __future__ import annotations

import numpy as np

from raterwise.beliefs.base import Belief
from raterwise.labels import Labels
from raterwise.types import FloatArray


def case_values(belief: Belief, labels: Labels) -> dict[str, FloatArray]:
    """Return what `evaluate` needs of a belief, case by case."""
    before, after = epistemic_losses(belief, labels)
    return {
        "disagreement": belief.disagreement(),
        "prior_epistemic_loss": before,
        "posterior_epistemic_loss": after,
        "posterior_gain": before - after,
    }


def epistemic_losses(belief: Belief, labels: Labels) -> tuple[FloatArray, FloatArray]:
    """Return each case's epistemic loss before and after an expert's label (LH Table 2).

    One rater is set aside as the expert and the others judge. LH draws the expert at random; here
    the mean over every choice is taken, which is what repeated draws tend to:
    Σ_k y_k/n EL(z | y - e_k), before with z the mean and after with z the posterior mean given k.
    Cases with fewer than three labels, which leave no two judges, have NaN; so has, after a label
    to which no member of an ensemble gives any probability, what it teaches them.
    """
    counts = labels.counts.astype(np.float64)
    n = counts.sum(axis=1)
    before, after = np.zeros(len(counts)), np.zeros(len(counts))
    prior, several = belief.mean, len(belief._members.weights) > 1
    for k in range(labels.num_classes):
        said = np.flatnonzero((counts[:, k] > 0) & (n >= 3))
        if not len(said):
            continue
        judges = counts[said].copy()
        judges[:, k] -= 1
        share = counts[said, k] / n[said]
        possible = (prior[said, k] > 0) | (not several)
        expert = Labels.from_classes(np.full(possible.sum(), k), num_classes=labels.num_classes)
        posterior = np.full((len(said), labels.num_classes), np.nan)
        posterior[possible] = belief.take(said[possible]).posterior(expert).mean
        before[said] += share * _unbiased_loss(prior[said], judges)
        after[said] += share * _unbiased_loss(posterior, judges)
    before[n < 3], after[n < 3] = np.nan, np.nan
    return before, after


def _unbiased_loss(z: FloatArray, counts: FloatArray) -> FloatArray:
    """Return Σ_k (μ_k - z_k)² - μ_k (1 - μ_k)/(n - 1) of each case (LH eq 10)."""
    n = counts.sum(axis=1, keepdims=True)
    mu = counts / n
    return np.asarray(((mu - z) ** 2 - mu * (1 - mu) / (n - 1)).sum(axis=1))
