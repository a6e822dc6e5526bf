"""Every metric of the catalog against a slow and obvious loop; a row without one fails the suite.

What `oracle` has already is used from there; the rest stands here, one line per equation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_weak
import oracle
from raterwise.catalog import CATALOG
from strategies import (
    CONCENTRATION,
    OUTSIDE,
    Array,
    Counts,
    draws,
    ordinary,
    problems_for,
    same,
    value,
)


def mean(values: Any) -> float:
    """Return the mean, summed exactly."""
    return math.fsum(values) / len(values)


def half_for_two(loss: float, num_classes: int) -> float:
    """scikit-learn's Brier score is halved for two classes."""
    return loss / 2 if num_classes == 2 else loss


def naive_nll(probs: Array, counts: Counts) -> float | None:
    """Return the mean over cases of the mean over raters of -log p; none where it is infinite."""
    with np.errstate(divide="ignore"):
        log = np.log(probs)
    found = mean([mean([-log[i, k] for k in oracle.label_list(y)]) for i, y in enumerate(counts)])
    return found if math.isfinite(found) else None


def naive_ranked_score(probs: Array, counts: Counts) -> float:
    """Return the mean over cases and raters of Σ_k (P(class <= k) - 1[label <= k])²."""

    def of(p: Array, label: int) -> float:
        cumulative = [math.fsum(p[: k + 1]) for k in range(len(p) - 1)]
        return math.fsum((f - (label <= k)) ** 2 for k, f in enumerate(cumulative))

    return mean(
        [mean([of(p, k) for k in oracle.label_list(y)]) for p, y in zip(probs, counts, strict=True)]
    )


def naive_calibration_error(probs: Array, counts: Counts) -> float:
    """Return the root of LH eq 14, floored at 0."""
    return math.sqrt(max(oracle.calibration_loss(probs, counts), 0))


def naive_mixture(probs: Array, counts: Counts) -> float:
    """Return RECE-M with one Gaussian, whose fit is the draws' mean and variance (and 1e-6)."""
    samples = draws(probs)
    blunted = np.array([[mean([s[i, k] for s in samples]) for k in range(len(p))]
                        for i, p in enumerate(probs)])  # fmt: skip
    each = [[s[i, int(np.argmax(p))] for s in samples] for i, p in enumerate(blunted)]
    means = [mean(values) for values in each]
    spread = [
        math.sqrt(mean([(v - m) ** 2 for v in values]) + 1e-6)
        for values, m in zip(each, means, strict=True)
    ]
    one = np.ones((len(probs), 1))
    fitted = one, np.array(means)[:, None], np.array(spread)[:, None]
    return oracle.robust_ece_mixture(blunted, counts, fitted)


def naive_io_auroc(probs: Array, counts: Counts) -> float:
    """Return how often a case is surer than one from elsewhere, ties half."""
    pairs = [(max(p), o) for p in probs for o in OUTSIDE]
    return mean([(z > o) + 0.5 * (z == o) for z, o in pairs])


def predicted_disagreement(probs: Array) -> Array:
    """Return the probability that two labels drawn from p differ."""
    return np.array([1 - math.fsum(x * x for x in p) for p in probs]).clip(0, 1)


def naive_disagreement_loss(probs: Array, counts: Counts) -> float:
    """LH eq 40, enumerating the pairs of raters."""
    return oracle.statistic_loss(oracle.disagree, predicted_disagreement(probs), counts, 2)


def naive_disagreement_calibration(probs: Array, counts: Counts) -> float:
    """LH eqs 42-45, enumerating the pairs of raters."""
    predicted = predicted_disagreement(probs)
    return oracle.statistic_calibration_loss(oracle.disagree, predicted, counts, 2)


def naive_sweep(probs: Array, counts: Counts) -> float:
    """Roelofs et al. 2022, algorithm 1: add equal-mass bins while the frequencies increase."""
    scores, outcome = oracle.top_label(probs, counts)
    best = [list(range(len(scores)))]
    for bins in range(2, len(scores) + 1):
        groups = oracle.equal_mass_members(scores, bins)
        frequency = [mean([outcome[i] for i in group]) for group in groups]
        if (np.diff(frequency) < -1e-9).any():
            break
        best = groups
    return oracle.ece_of(scores, outcome, best)


def naive_aurc(probs: Array, counts: Counts) -> float:
    """Return the mean selective risk; tied cases come in random order, in expectation."""
    scores, outcome = oracle.top_label(probs, counts)
    risks, accepted, lost = [], 0, 0.0
    for score in sorted(set(scores), reverse=True):
        tied = [1 - o for s, o in zip(scores, outcome, strict=True) if s == score]
        for j in range(1, len(tied) + 1):
            risks.append((lost + j * mean(tied)) / (accepted + j))
        accepted, lost = accepted + len(tied), lost + math.fsum(tied)
    return mean(risks)


def naive_augrc(probs: Array, counts: Counts) -> float:
    """Return the area under the generalised risk, pair by pair."""
    scores, outcome = oracle.top_label(probs, counts)
    return oracle.augrc_by_pairs(scores, 1 - outcome)


def naive_auccc(probs: Array, counts: Counts) -> float | None:
    """Return the probability that a right case is surer than a wrong one; None without both."""
    scores, outcome = oracle.top_label(probs, counts)
    return oracle.auccc(scores, outcome) if 0 < outcome.sum() < len(outcome) else None


def naive_smooth(probs: Array, counts: Counts) -> float:
    """Return the σ at which ∫ |Σ_i (μ_i - z_i) K_σ(t, z_i)| dt / N is σ, K reflected at 0 and 1."""
    scores, outcome = oracle.top_label(probs, counts)
    t = (np.arange(1000) + 0.5)[:, None, None] / 1000
    images = np.stack([sign * scores + 2 * m for sign in (-1, 1) for m in range(-3, 4)])

    def smoothed(sigma: float) -> float:
        bells = np.exp(-(((t - images) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        return float(np.abs(((outcome - scores) * bells).sum(axis=(1, 2))).mean() / len(scores))

    low, high = 2e-3, 1.0
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
    return smoothed(low) if low == 2e-3 else low


def naive_kde(probs: Array, counts: Counts) -> float | None:
    """Popordanoska et al. 2022, every other case in turn; None for a single case."""
    if len(probs) < 2:
        return None
    scores, outcome = oracle.top_label(probs, counts)
    inside = scores.clip(np.finfo(float).eps, 1 - np.finfo(float).eps)
    points, raters = np.stack((inside, 1 - inside), axis=1), counts.sum(axis=1)
    gaps = oracle.kde_gaps(points, outcome[:, None], 0.05, 1, copies=raters.tolist())
    return math.fsum(raters * gaps[:, 0]) / int(raters.sum())


def naive_majority(probs: Array, counts: Counts) -> float:
    """Return how often the first largest count is the first largest probability."""
    pairs = zip(probs.tolist(), counts.tolist(), strict=True)
    return mean([p.index(max(p)) == y.index(max(y)) for p, y in pairs])


def naive_ranked_log(probs: Array, counts: Counts) -> float | None:
    """Return the mean over cases and raters of Σ_k -log of what is given to label <= k, or > k."""

    def of(p: Array, label: int) -> float:
        sides = [p[: k + 1] if label <= k else p[k + 1 :] for k in range(len(p) - 1)]
        given = [min(math.fsum(side), 1) for side in sides]
        return math.inf if min(given) == 0 else -math.fsum(map(math.log, given))

    found = mean(
        [mean([of(p, k) for k in oracle.label_list(y)]) for p, y in zip(probs, counts, strict=True)]
    )
    return found if math.isfinite(found) else None


def naive_top_brier(probs: Array, counts: Counts) -> float:
    """Return the mean over cases and raters of (confidence - 1[rater agrees])²."""
    top = [int(np.argmax(p)) for p in probs]
    return mean(
        [
            mean([(probs[i, top[i]] - (k == top[i])) ** 2 for k in oracle.label_list(y)])
            for i, y in enumerate(counts)
        ]
    )


def naive_spiegelhalter(probs: Array, counts: Counts) -> float | None:
    """Return z from each possible label's squared loss: its mean and its variance."""
    excess, variance = 0.0, 0.0
    for p, y in zip(probs, counts, strict=True):
        losses = [math.fsum((p - np.eye(len(p))[k]) ** 2) for k in range(len(p))]
        expected = math.fsum(p * losses)
        excess += mean([losses[k] for k in oracle.label_list(y)]) - expected
        variance += math.fsum(p * (np.array(losses) - expected) ** 2)
    return excess / math.sqrt(variance) if variance > 1e-25 else None


def naive_grouping(probs: Array, counts: Counts) -> float:
    """Return Σ_k Σ_bins |I|/N (variance of μ over cases - mean variance within cases)."""
    total = 0.0
    for k in range(probs.shape[1]):
        for group in oracle.members(probs[:, k], 15):
            if len(group) < 2:
                continue
            mu = [counts[i, k] / counts[i].sum() for i in group]
            within = [m * (1 - m) / (counts[i].sum() - 1) for i, m in zip(group, mu, strict=True)]
            spread = math.fsum((m - mean(mu)) ** 2 for m in mu) / (len(mu) - 1)
            total += len(group) * (spread - mean(within))
    return total / len(probs)


def naive_debiased_ece(probs: Array, counts: Counts) -> float:
    """Return 2 ECE - E ECE', the expectation of |N(d, s²)| by the sum over a fine grid."""
    scores, outcome = oracle.top_label(probs, counts)
    t = (np.arange(40_000) + 0.5) / 20_000 * 10 - 10
    bell = np.exp(-(t**2) / 2) / np.exp(-(t**2) / 2).sum()
    total = 0.0
    for group in oracle.members(scores, 15):
        if group:
            d = mean([outcome[i] - scores[i] for i in group])
            variance = mean([(outcome[i] - mean(outcome[group])) ** 2 for i in group])
            drawn = np.abs(d + t * math.sqrt(variance / len(group)))
            total += len(group) * (2 * abs(d) - float(drawn @ bell))
    return total / len(probs)


def naive_average_error(probs: Array, counts: Counts) -> float:
    """Return the mean of the gaps of the bins that hold a case."""
    scores, outcome = oracle.top_label(probs, counts)
    return mean([gap for _, gap in oracle.gaps(scores, outcome, oracle.members(scores, 15))])


def naive_canonical(probs: Array, counts: Counts) -> float:
    """Return Σ over cells of all classes' bins of the summed gap, a dictionary of cells."""
    bins = np.stack(
        [
            np.array([max(b for b in range(15) if z >= np.linspace(0, 1, 16)[b]) for z in column])
            for column in probs.T
        ],
        axis=1,
    )
    cells: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(bins.tolist()):
        cells.setdefault(tuple(row), []).append(i)
    mu = oracle.frequencies(counts)
    return math.fsum(
        len(group) * abs(mean(probs[group, k]) - mean(mu[group, k]))
        for group in cells.values()
        for k in range(probs.shape[1])
    ) / len(probs)


def naive_kuiper(probs: Array, counts: Counts) -> float:
    """Return the largest |Σ (μ - z)| / N over every range of scores, from every a to every b."""
    scores, outcome = oracle.top_label(probs, counts)
    ends = sorted(set(scores.tolist()))
    ranges = itertools.combinations_with_replacement(ends, 2)
    return max(
        abs(math.fsum((outcome - scores)[(scores >= a) & (scores <= b)])) for a, b in ranges
    ) / len(scores)


def naive_kernel(probs: Array, counts: Counts) -> float | None:
    """Return the mean over ordered pairs of different cases; None for a single case."""
    scores, outcome = oracle.top_label(probs, counts)
    d = outcome - scores
    pairs = list(itertools.permutations(range(len(d)), 2))
    each = [d[i] * d[j] * math.exp(-abs(scores[i] - scores[j]) / 0.4) for i, j in pairs]
    return mean(each) if pairs else None


def naive_excess_aurc(probs: Array, counts: Counts) -> float:
    """Return the AURC minus that of the same hits with the right ones first."""
    _, outcome = oracle.top_label(probs, counts)
    lost = np.cumsum(np.sort(1 - outcome))
    return naive_aurc(probs, counts) - mean(lost / np.arange(1, len(lost) + 1))


def naive_fpr(probs: Array, counts: Counts) -> float | None:
    """scikit-learn's ROC curve, at its first true positive rate of 0.95 or more."""
    from sklearn.metrics import roc_curve

    scores, outcome = oracle.top_label(probs, counts)
    if not 0 < outcome.sum() < len(outcome):
        return None
    fpr, tpr, _ = roc_curve(outcome, scores, drop_intermediate=False)
    return float(fpr[np.argmax(tpr >= 0.95 - 1e-12)])


def naive_failure_precision(probs: Array, counts: Counts) -> float | None:
    """scikit-learn's average precision of being wrong, ranked by less confidence."""
    from sklearn.metrics import average_precision_score

    scores, outcome = oracle.top_label(probs, counts)
    if outcome.sum() == len(outcome):
        return None
    return float(average_precision_score(1 - outcome, -scores))


def naive_fleiss(probs: Array, counts: Counts) -> float | None:
    """Return κ from the pairs of raters of each case, a case weighted by n - 1."""
    labels = [oracle.label_list(y) for y in counts]
    share = counts.sum(axis=0) / counts.sum()
    chance = math.fsum(share**2)
    if max(share) == 1:
        return None
    alike = [mean([a == b for a, b in itertools.combinations(of, 2)]) for of in labels]
    weights = [len(of) - 1 for of in labels]
    observed = math.fsum(np.multiply(weights, alike)) / sum(weights)
    return (observed - chance) / (1 - chance)


def naive_alpha(probs: Array, counts: Counts) -> float | None:
    """Return 1 - D_o / D_e from pairs within a case and pairs among all labels."""
    labels = [oracle.label_list(y) for y in counts]
    everything = [label for of in labels for label in of]
    expected = mean([a != b for a, b in itertools.permutations(everything, 2)])
    if expected == 0:
        return None
    pairs = [sum(a != b for a, b in itertools.permutations(of, 2)) / (len(of) - 1) for of in labels]
    return 1 - math.fsum(pairs) / len(everything) / expected


def naive_expert(probs: Array, counts: Counts, label_seen: bool) -> float:
    """LH Table 2: set each rater aside in turn; judge the mean, or the mean given their label."""
    losses = []
    for p, y in zip(probs, counts, strict=True):
        each = []
        for k in oracle.label_list(y):
            said = np.eye(len(p))[k]
            z = (CONCENTRATION * p + said) / (CONCENTRATION + 1) if label_seen else p
            judges = y - said.astype(int)
            each.append(oracle.epistemic_loss(z[None], judges[None]))
        losses.append(mean(each))
    return mean(losses)


def each_class(of_one: Callable[[list[tuple[float, bool]]], float | None]) -> Naive:
    """Return the mean over classes, class 1 alone of two, of a loop over (probability, positive).

    Every rater's label is a pair of its own. A class without a value does not count.
    """

    def naive(probs: Array, counts: Counts) -> float | None:
        classes = [1] if probs.shape[1] == 2 else range(probs.shape[1])
        said = [(p, k) for p, y in zip(probs, counts, strict=True) for k in oracle.label_list(y)]
        values = [of_one([(float(p[c]), k == c) for p, k in said]) for c in classes]
        known = [v for v in values if v is not None]
        return mean(known) if known else None

    return naive


def naive_auroc(pairs: list[tuple[float, bool]]) -> float | None:
    """Compare every positive with every negative."""
    yes, no = ([p for p, y in pairs if y == which] for which in (True, False))
    if not yes or not no:
        return None
    return mean([(a > b) + 0.5 * (a == b) for a in yes for b in no])


def naive_average_precision(pairs: list[tuple[float, bool]]) -> float | None:
    """Return the mean over positives of the precision among those at least as probable."""
    yes = [p for p, y in pairs if y]
    if not yes:
        return None
    return mean([mean([y for p, y in pairs if p >= cut]) for cut in yes])


def naive_ratio(part: Callable[[bool, bool], bool], whole: Callable[[bool, bool], bool]) -> Naive:
    """Return the part of some labels, by (tests positive at 1/2, is positive), among others."""

    def of_one(pairs: list[tuple[float, bool]]) -> float | None:
        inside = [part(p >= 0.5, y) for p, y in pairs if whole(p >= 0.5, y)]
        return mean(inside) if inside else None

    return each_class(of_one)


def naive_f1(pairs: list[tuple[float, bool]]) -> float | None:
    """Return the harmonic mean of precision and recall, 0 where both are."""
    found = sum(p >= 0.5 and y for p, y in pairs)
    tested, yes = sum(p >= 0.5 for p, _ in pairs), sum(y for _, y in pairs)
    return 2 * found / (tested + yes) if tested + yes else None


Naive = Callable[[Array, Counts], float | None]


def per_annotation(naive: Naive) -> Naive:
    """Return the multi-rater version of a naive loop: MR eq 4."""
    return lambda probs, counts: naive(*oracle.repeat_per_annotation(probs, counts))


NAIVE: dict[str, Naive] = {
    "accuracy": lambda probs, counts: mean(oracle.top_label(probs, counts)[1]),
    "majority_accuracy": naive_majority,
    "ranked_log_score": naive_ranked_log,
    "top_label_brier": naive_top_brier,
    "spiegelhalter_z": naive_spiegelhalter,
    "refinement_loss": lambda probs, counts: (
        oracle.expected_squared_loss(probs, counts) - oracle.calibration_loss(probs, counts)
    ),
    "grouping_loss": naive_grouping,
    "debiased_ece": naive_debiased_ece,
    "average_calibration_error": per_annotation(naive_average_error),
    "canonical_ece": per_annotation(naive_canonical),
    "kuiper_error": per_annotation(naive_kuiper),
    "kernel_calibration_error": naive_kernel,
    "excess_aurc": per_annotation(naive_excess_aurc),
    "fpr_at_95_tpr": per_annotation(naive_fpr),
    "failure_average_precision": per_annotation(naive_failure_precision),
    "brier": lambda probs, counts: half_for_two(
        oracle.expected_squared_loss(probs, counts), probs.shape[1]
    ),
    "nll": naive_nll,
    "ranked_probability_score": naive_ranked_score,
    "expected_squared_loss": oracle.expected_squared_loss,
    "epistemic_loss": oracle.epistemic_loss,
    "irreducible_loss": lambda probs, counts: (
        oracle.expected_squared_loss(probs, counts) - oracle.epistemic_loss(probs, counts)
    ),
    "calibration_loss": oracle.calibration_loss,
    "calibration_error": naive_calibration_error,
    "dispersion_loss": oracle.dispersion_loss,
    "disagreement_loss": naive_disagreement_loss,
    "disagreement_calibration_loss": naive_disagreement_calibration,
    "disagreement_calibration_error": lambda probs, counts: math.sqrt(
        max(naive_disagreement_calibration(probs, counts), 0)
    ),
    "prior_epistemic_loss": lambda probs, counts: naive_expert(probs, counts, False),
    "posterior_epistemic_loss": lambda probs, counts: naive_expert(probs, counts, True),
    "posterior_gain": lambda probs, counts: (
        naive_expert(probs, counts, False) - naive_expert(probs, counts, True)
    ),
    "ece": oracle.multi_rater_ece,
    "mce": per_annotation(oracle.mce),
    "rms_ce": per_annotation(oracle.rms_ce),
    "adaptive_ece": per_annotation(oracle.adaptive_ece),
    "ece_sweep": per_annotation(naive_sweep),
    "classwise_ece": per_annotation(oracle.classwise_ece),
    "sce": per_annotation(oracle.sce),
    "robust_ece": per_annotation(oracle.robust_ece),
    "robust_ece_mixture": per_annotation(naive_mixture),
    "ks_error": per_annotation(
        lambda probs, counts: oracle.ks_error(*oracle.top_label(probs, counts))
    ),
    "smooth_ece": per_annotation(naive_smooth),
    "kde_ece": naive_kde,
    "auccc": per_annotation(naive_auccc),
    "aurc": per_annotation(naive_aurc),
    "augrc": per_annotation(naive_augrc),
    "auroc": each_class(naive_auroc),
    "average_precision": each_class(naive_average_precision),
    "sensitivity": naive_ratio(lambda test, is_so: test, lambda test, is_so: is_so),
    "specificity": naive_ratio(lambda test, is_so: not test, lambda test, is_so: not is_so),
    "ppv": naive_ratio(lambda test, is_so: is_so, lambda test, is_so: test),
    "npv": naive_ratio(lambda test, is_so: not is_so, lambda test, is_so: not test),
    "f1": each_class(naive_f1),
    "net_benefit": each_class(lambda pairs: mean([(p >= 0.5) * (2 * y - 1) for p, y in pairs])),
    **naive_weak.NAIVE,
    "io_auroc": naive_io_auroc,
    "fleiss_kappa": naive_fleiss,
    "krippendorff_alpha": naive_alpha,
}

NAIVE_OPTIONS: dict[str, dict[str, Any]] = {
    "kde_ece": {"bandwidth": 0.05},
    "robust_ece_mixture": {"components": 1},
}
"""What a naive loop takes as given."""

DIGITS = {
    "calibration_error": 1e-7,  # a root: 1e-16 more or less under it is 1e-8
    "disagreement_calibration_error": 1e-7,
    "smooth_ece": 2e-3,  # the loop's grid
    "debiased_ece": 1e-6,  # likewise
    "calibration_slope": 1e-6,  # the loop's solver
    "ici": 1e-8,  # the loop's weighted least squares
    "e50": 1e-8,
    "e90": 1e-8,
}
"""How far a value may be from its loop where that is more than 1e-12."""


def test_every_metric_has_a_naive_loop() -> None:
    """A metric that nobody wrote down slowly is not in the catalog, and the other way round."""
    assert set(NAIVE) == set(CATALOG)


@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.parametrize("num_classes", [2, 3, 22])
@settings(max_examples=25)
@given(data=st.data())
def test_the_value_is_that_of_the_naive_loop(
    name: str, num_classes: int, data: st.DataObject
) -> None:
    """Two classes and 22, unequal numbers of raters, zeros, ones, edges, ties, lone cases."""
    most = 12 if num_classes < 22 else 6
    problem = data.draw(problems_for(name, num_classes=num_classes, max_cases=most))
    expected = NAIVE[name](problem.probs, problem.counts)
    mine = value(name, problem, **NAIVE_OPTIONS.get(name, {}))
    assert mine == same(expected, rel=1e-10, absolute=DIGITS.get(name, 1e-12))


@pytest.mark.parametrize("name", NAIVE)
def test_an_ordinary_set_has_the_value_of_the_naive_loop(name: str) -> None:
    """Sixty cases of five classes, two to six raters each."""
    problem = ordinary(60)
    expected = NAIVE[name](problem.probs, problem.counts)
    assert expected is not None
    mine = value(name, problem, **NAIVE_OPTIONS.get(name, {}))
    assert mine == same(expected, rel=1e-11, absolute=DIGITS.get(name, 1e-12))
