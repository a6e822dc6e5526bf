"""Slow and obvious versions of the metrics, written straight from the papers' equations.

They judge the fast kernels and the reference values alike. One loop per sum, one line per
equation; nothing here is shared with the library. ``counts`` is always the (N, K) table of label
histograms, ``probs`` the (N, K) table of predicted probabilities.

References: LH = Mimori et al., Diagnostic Uncertainty Calibration (AISTATS 2021); RECE = Robust
Expected Calibration Error; MR = Multi-Rater Calibration Error; CCC = confidence-classification
characteristic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Bins = int | Sequence[float]


# bins ----------------------------------------------------------------------------------------


def edges_of(bins: Bins) -> list[float]:
    """The edges of M equal bins as NumPy has them, or those given."""
    if isinstance(bins, int):
        return [float(edge) for edge in np.linspace(0.0, 1.0, bins + 1)]
    return [float(edge) for edge in bins]


def members(scores: Array, bins: Bins) -> list[list[int]]:
    """The cases in each bin ``[a, b)``, the last one closed."""
    edges = edges_of(bins)
    groups: list[list[int]] = [[] for _ in edges[1:]]
    for i, score in enumerate(scores):
        found = max(b for b in range(len(groups)) if score >= edges[b])
        groups[found].append(i)
    return groups


def members_right_closed(scores: Array, bins: int) -> list[list[int]]:
    """The cases in each ``(a, b]``, edges by linspace: much released code, where 0 has no bin."""
    return members_between(scores, [float(edge) for edge in np.linspace(0.0, 1.0, bins + 1)])


def members_between(scores: Array, edges: Sequence[float]) -> list[list[int]]:
    """The cases in each ``(edge, next edge]``; the smallest score may be in none."""
    return [
        [i for i, score in enumerate(scores) if low < score <= high]
        for low, high in itertools.pairwise(edges)
    ]


# questions -----------------------------------------------------------------------------------


def frequencies(counts: Counts) -> Array:
    """LH: mu_ik = y_ik / n_i."""
    return np.array([[c / row.sum() for c in row] for row in counts], dtype=np.float64)


def top_label(probs: Array, counts: Counts) -> tuple[Array, Array]:
    """Confidence in the predicted class, and the fraction of raters who chose that class."""
    confidence, agreement = [], []
    for p, y in zip(probs, counts, strict=True):
        k = int(np.argmax(p))
        confidence.append(p[k])
        agreement.append(y[k] / y.sum())
    return np.array(confidence), np.array(agreement)


def one_rater(classes: npt.ArrayLike, num_classes: int) -> Counts:
    """Label histograms of one label per case."""
    table = np.zeros((len(np.asarray(classes)), num_classes), dtype=np.int64)
    for i, k in enumerate(np.asarray(classes)):
        table[i, k] += 1
    return table


def repeat_per_annotation(probs: Array, counts: Counts) -> tuple[Array, Counts]:
    """MR eq 4: every pair (case, label) is a sample of its own."""
    rows, labels = [], []
    for p, y in zip(probs, counts, strict=True):
        for k, c in enumerate(y):
            for _ in range(int(c)):
                rows.append(p)
                labels.append(k)
    return np.array(rows), one_rater(labels, counts.shape[1])


# binned calibration errors -------------------------------------------------------------------


def gaps(scores: Array, outcome: Array, groups: list[list[int]]) -> list[tuple[int, float]]:
    """Size and |mean score - mean outcome| of every bin that holds a case."""
    table = []
    for group in groups:
        if group:
            confidence = math.fsum(scores[i] for i in group) / len(group)
            accuracy = math.fsum(outcome[i] for i in group) / len(group)
            table.append((len(group), float(abs(confidence - accuracy))))
    return table


def ece_of(scores: Array, outcome: Array, groups: list[list[int]]) -> float:
    """RECE eq 3 and MR eq 3 with b_m / N: the mean gap, weighted by cases."""
    return math.fsum(size * gap for size, gap in gaps(scores, outcome, groups)) / len(scores)


def ece(probs: Array, counts: Counts, bins: Bins = 15) -> float:
    """Top-label ECE, every case once."""
    scores, outcome = top_label(probs, counts)
    return ece_of(scores, outcome, members(scores, bins))


def multi_rater_ece(probs: Array, counts: Counts, bins: Bins = 15) -> float:
    """MR eq 5 by repeating the cases."""
    return ece(*repeat_per_annotation(probs, counts), bins=bins)


def mce(probs: Array, counts: Counts, bins: Bins = 15) -> float:
    """The largest gap of any bin."""
    scores, outcome = top_label(probs, counts)
    return max(gap for _, gap in gaps(scores, outcome, members(scores, bins)))


def rms_ce(probs: Array, counts: Counts, bins: Bins = 15) -> float:
    """Root of the case-weighted mean squared gap."""
    scores, outcome = top_label(probs, counts)
    squares = [size * gap**2 for size, gap in gaps(scores, outcome, members(scores, bins))]
    return math.sqrt(math.fsum(squares) / len(scores))


def class_ece(probs: Array, counts: Counts, k: int, bins: Bins = 15) -> float:
    """ECE of the probability of class k, over every case."""
    scores, outcome = probs[:, k], frequencies(counts)[:, k]
    return ece_of(scores, outcome, members(scores, bins))


def classwise_ece(probs: Array, counts: Counts, bins: Bins = 15) -> float:
    """Mean over the classes of the class ECE."""
    num_classes = int(probs.shape[1])
    return math.fsum(class_ece(probs, counts, k, bins) for k in range(num_classes)) / num_classes


def sce(probs: Array, counts: Counts, bins: Bins = 15) -> float:
    """RECE eqs 4-5 as printed: per class k, only among the cases predicted as k."""
    scores, outcome = top_label(probs, counts)
    predicted = [int(np.argmax(p)) for p in probs]
    total = 0.0
    for k in range(probs.shape[1]):
        mine = [i for i, j in enumerate(predicted) if j == k]
        if mine:
            groups = members(scores[mine], bins)
            total += math.fsum(
                size * gap for size, gap in gaps(scores[mine], outcome[mine], groups)
            )
    return total / len(probs) / int(probs.shape[1])


def adaptive_ece_dropping_minimum(probs: Array, counts: Counts, bins: int = 15) -> float:
    """AECE of the released code: edges at every int(N / bins)-th sorted confidence, ``(a, b]``."""
    scores, outcome = top_label(probs, counts)
    step = len(scores) // bins
    ordered = sorted(scores)
    edges = [ordered[b * step] for b in range(bins)] + [1.0]
    return ece_of(scores, outcome, members_between(scores, edges))


def equal_mass_members(scores: Array, bins: int) -> list[list[int]]:
    """Equal-mass bins that hold every case: one closes when the cases so far reach its share.

    Equal scores share a bin, so there are fewer bins where ties are heavy.
    """
    groups: list[list[int]] = [[]]
    for score in sorted({float(s) for s in scores}):
        before = sum(len(group) for group in groups)
        groups[-1] += [i for i, s in enumerate(scores) if s == score]
        after = sum(len(group) for group in groups)
        if after * bins // len(scores) > before * bins // len(scores):
            groups.append([])
    return [group for group in groups if group]


def adaptive_ece(probs: Array, counts: Counts, bins: int = 15) -> float:
    """AECE over equal-mass bins that hold every case."""
    scores, outcome = top_label(probs, counts)
    return ece_of(scores, outcome, equal_mass_members(scores, bins))


# robust ECE ----------------------------------------------------------------------------------


def normal_cdf(x: float, mean: float, sd: float) -> float:
    """P(X <= x) of the normal distribution."""
    return 0.5 * math.erfc((mean - x) / (sd * math.sqrt(2.0)))


def interval_mass(low: float, high: float, mean: float, sd: float) -> float:
    """N([low, high]; mean, sd), taken from the nearer tail so that nothing cancels."""
    if low > mean:
        return normal_cdf(2 * mean - low, mean, sd) - normal_cdf(2 * mean - high, mean, sd)
    return normal_cdf(high, mean, sd) - normal_cdf(low, mean, sd)


def soft_bins(
    weights: Sequence[float], means: Sequence[float], sds: Sequence[float], bins: int
) -> Array:
    """RECE eq 7: mass of a case's mixture in every bin, divided by its mass on [0, 1]."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    mass = [
        math.fsum(
            w * interval_mass(edges[b], edges[b + 1], m, s)
            for w, m, s in zip(weights, means, sds, strict=True)
        )
        for b in range(bins)
    ]
    return np.array(mass) / math.fsum(mass)


def robust_ece_of(
    scores: Array, outcome: Array, soft: Sequence[Array], observed_bins_only: bool = False
) -> float:
    """RECE eqs 6 and 7: sum over bins of |A - C| / N with soft bin weights."""
    bins = len(soft[0])
    groups = members(scores, bins)
    total = 0.0
    for b in range(bins):
        if observed_bins_only and not groups[b]:
            continue
        confidence = math.fsum(scores[i] * soft[i][b] for i in range(len(scores)))
        accuracy = math.fsum(outcome[i] * soft[i][b] for i in range(len(scores)))
        total += abs(accuracy - confidence)
    return total / len(scores)


def robust_ece(
    probs: Array,
    counts: Counts,
    bins: int = 15,
    sigma: float = 0.1,
    observed_bins_only: bool = False,
) -> float:
    """RECE-G, eq 6: every confidence is the mean of a normal with standard deviation sigma."""
    scores, outcome = top_label(probs, counts)
    soft = [soft_bins([1.0], [float(c)], [sigma], bins) for c in scores]
    return robust_ece_of(scores, outcome, soft, observed_bins_only)


def robust_ece_mixture(
    probs: Array,
    counts: Counts,
    mixtures: tuple[Array, Array, Array],
    bins: int = 15,
    observed_bins_only: bool = False,
) -> float:
    """RECE-M, eq 7, given each case's mixture (weights, means, standard deviations)."""
    scores, outcome = top_label(probs, counts)
    soft = [soft_bins(w, m, s, bins) for w, m, s in zip(*mixtures, strict=True)]
    return robust_ece_of(scores, outcome, soft, observed_bins_only)


# label histograms ----------------------------------------------------------------------------


def expected_squared_loss(probs: Array, counts: Counts) -> float:
    """LH eq 24: mean over cases of the mean over raters of |y - z|^2 (equal to eq 8)."""
    total = 0.0
    for z, y in zip(probs, counts, strict=True):
        loss = 0.0
        for k, c in enumerate(y):
            onehot = np.eye(len(z))[k]
            loss += c * float(np.sum((onehot - z) ** 2))
        total += loss / y.sum()
    return total / len(probs)


def pair_frequency(y: Counts, k: int, other: int) -> float:
    """Fraction of ordered pairs of distinct raters with labels (k, other)."""
    n = int(y.sum())
    pairs = y[k] * (y[other] - (k == other))
    return float(pairs) / (n * (n - 1))


def epistemic_loss(probs: Array, counts: Counts, estimator: str = "unbiased") -> float:
    """LH eqs 9-10, the unbiased one through eq 29: mu^2 becomes a mean over pairs of raters."""
    total = 0.0
    for z, y in zip(probs, counts, strict=True):
        for k in range(len(z)):
            mu = y[k] / y.sum()
            square = mu * mu if estimator == "plugin" else pair_frequency(y, k, k)
            total += square - 2 * mu * z[k] + z[k] ** 2
    return total / len(probs)


def epistemic_correction(mu: float, n: int) -> float:
    """LH eq 10: what is subtracted for one case and class; 0 where there is one label only."""
    return mu * (1 - mu) / (n - 1) if n > 1 else 0.0


def calibration_loss_of(
    scores: Array, outcome: Array, bins: Bins, estimator: str = "debiased", singletons: str = "zero"
) -> float:
    """LH eqs 13-14 and 43-44 for one class; ``singletons``: what a bin with one case gives."""
    total = 0.0
    for group in members(scores, bins):
        m = len(group)
        if m == 0:
            continue
        c = math.fsum(outcome[i] for i in group) / m
        z = math.fsum(scores[i] for i in group) / m
        term = m / len(scores) * (c - z) ** 2
        if estimator == "debiased" and m == 1 and singletons == "zero":
            term = 0.0
        if estimator == "debiased" and m > 1:
            variance = math.fsum((outcome[i] - c) ** 2 for i in group) / m
            term -= m / len(scores) * variance / (m - 1)
        total += term
    return total


def calibration_loss(
    probs: Array,
    counts: Counts,
    bins: Bins = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
) -> float:
    """LH eq 11: the sum over the classes."""
    mu = frequencies(counts)
    return math.fsum(
        calibration_loss_of(probs[:, k], mu[:, k], bins, estimator, singletons)
        for k in range(probs.shape[1])
    )


def dispersion_loss(
    probs: Array, counts: Counts, bins: Bins = 15, estimator: str = "debiased"
) -> float:
    """LH eq 33: EL - CL, both plugin or both corrected."""
    first = "plugin" if estimator == "plugin" else "unbiased"
    return epistemic_loss(probs, counts, first) - calibration_loss(probs, counts, bins, estimator)


# statistics of several labels -----------------------------------------------------------------


def label_list(y: Counts) -> list[int]:
    """One entry per rater."""
    return [k for k, c in enumerate(y) for _ in range(int(c))]


def statistic_mean(statistic: Callable[[tuple[int, ...]], float], y: Counts, order: int) -> float:
    """LH eqs 16 and 39: the mean of the statistic over every subset of ``order`` raters."""
    values = [statistic(subset) for subset in itertools.combinations(label_list(y), order)]
    return math.fsum(values) / len(values)


def statistic_loss(
    statistic: Callable[[tuple[int, ...]], float], predicted: Array, counts: Counts, order: int
) -> float:
    """LH eq 40, enumerating the raters."""
    total = 0.0
    for phi, y in zip(predicted, counts, strict=True):
        values = [
            (statistic(subset) - phi) ** 2
            for subset in itertools.combinations(label_list(y), order)
        ]
        total += math.fsum(values) / len(values)
    return total / len(predicted)


def statistic_calibration_loss(
    statistic: Callable[[tuple[int, ...]], float],
    predicted: Array,
    counts: Counts,
    order: int,
    bins: Bins = 15,
    estimator: str = "debiased",
    singletons: str = "zero",
) -> float:
    """LH eqs 42-45."""
    outcome = np.array([statistic_mean(statistic, y, order) for y in counts])
    return calibration_loss_of(predicted, outcome, bins, estimator, singletons)


def disagree(pair: tuple[int, ...]) -> float:
    """LH section 4: phi^D, 1 when two raters differ."""
    return float(pair[0] != pair[1])


# ranks ---------------------------------------------------------------------------------------


def auccc(confidence: Array, correct: Array, out_confidence: Array | None = None) -> float:
    """CCC section 2.2 by pairs: P(an accurate case is more confident than an inaccurate one).

    A case with a fraction ``correct`` of its raters counts as that much accurate and the rest
    inaccurate; ties count one half; out-of-distribution cases are inaccurate.
    """
    right = [(float(s), float(c)) for s, c in zip(confidence, correct, strict=True)]
    wrong = [(s, 1.0 - c) for s, c in right]
    wrong += [(float(s), 1.0) for s in (out_confidence if out_confidence is not None else ())]
    won = 0.0
    for s, w in right:
        for t, v in wrong:
            won += w * v * (1.0 if s > t else 0.5 if s == t else 0.0)
    return won / (math.fsum(w for _, w in right) * math.fsum(v for _, v in wrong))


def selective_risks(confidence: Array, error: Array) -> tuple[list[float], list[float]]:
    """Selective and generalised risk at every coverage 1/N ... 1; confidences without ties."""
    order = sorted(range(len(confidence)), key=lambda i: -confidence[i])
    selective, generalised = [], []
    lost = 0.0
    for kept, i in enumerate(order, start=1):
        lost += float(error[i])
        selective.append(lost / kept)
        generalised.append(lost / len(confidence))
    return selective, generalised


def aurc(confidence: Array, error: Array) -> float:
    """Area under the risk-coverage curve: the mean selective risk over the N coverages."""
    selective, _ = selective_risks(confidence, error)
    return math.fsum(selective) / len(selective)


def augrc_by_pairs(confidence: Array, error: Array) -> float:
    """Area under the generalised risk-coverage curve, trapezoids from coverage 0.

    The generalised risk at coverage c is P(wrong and accepted); its area is the sum over cases of
    their error times the share of coverages at which they are accepted.
    """
    n = len(confidence)
    total = 0.0
    for i in range(n):
        ahead = 0.0
        for j in range(n):
            if i != j:
                ahead += 1.0 if confidence[j] > confidence[i] else 0.0
                ahead += 0.5 if confidence[j] == confidence[i] else 0.0
        total += float(error[i]) * (n - ahead - 0.5) / n
    return total / n


def ks_error(scores: Array, outcome: Array) -> float:
    """Largest |cumulative sum of (score - outcome)| / N over the sorted distinct scores."""
    worst = 0.0
    for cut in sorted({float(s) for s in scores}):
        inside = [float(s - y) for s, y in zip(scores, outcome, strict=True) if s <= cut]
        worst = max(worst, abs(math.fsum(inside)))
    return worst / len(scores)


# kernel density ------------------------------------------------------------------------------


def log_dirichlet_kernel(at: Array, centre: Array, bandwidth: float) -> float:
    """log Dir(at; centre / bandwidth + 1)."""
    alphas = [c / bandwidth + 1.0 for c in centre]
    log_beta = math.fsum(math.lgamma(a) for a in alphas) - math.lgamma(math.fsum(alphas))
    return math.fsum((a - 1.0) * math.log(x) for a, x in zip(alphas, at, strict=True)) - log_beta


def kde_gaps(
    points: Array,
    outcome: Array,
    bandwidth: float,
    p: int,
    leave_out: str = "case",
    copies: Sequence[int] | None = None,
) -> Array:
    """|E[outcome | points_j] - target|^p at every case, Nadaraya-Watson with Dirichlet kernels.

    ``outcome[i, k]`` is the frequency of event k among the raters of case i and the target is
    ``points[j, k]``. ``copies`` is how often each case occurs (its raters); ``leave_out="copy"``
    leaves out one copy of the case itself, chosen uniformly, and averages over that choice.
    """
    n, num_events = outcome.shape
    weight = [1.0] * n if copies is None else [float(c) for c in copies]
    result = np.zeros((n, num_events))
    for j in range(n):
        log_kernel = [log_dirichlet_kernel(points[j], points[i], bandwidth) for i in range(n)]
        others = [i for i in range(n) if i != j or (leave_out == "copy" and weight[j] > 1)]
        top = max(log_kernel[i] for i in others)
        kernel = [math.exp(v - top) for v in log_kernel]
        mass = math.fsum(weight[i] * kernel[i] for i in range(n) if i != j)
        for k in range(num_events):
            event = math.fsum(weight[i] * kernel[i] * outcome[i, k] for i in range(n) if i != j)
            if leave_out == "case" or copies is None:
                result[j, k] = abs(event / mass - points[j, k]) ** p
                continue
            rest = mass + (weight[j] - 1.0) * kernel[j]
            said = round(weight[j] * outcome[j, k])
            for removed, times in ((1.0, said), (0.0, weight[j] - said)):
                if times:
                    inside = event + (said - removed) * kernel[j]
                    result[j, k] += times / weight[j] * abs(inside / rest - points[j, k]) ** p
    return result
