"""Kernel-density and ranking metrics against the numbers of released code.

ece-kde: no p-th root; its ``marginal`` sums the classes where ``per_class`` averages them; its
bandwidth rule has a spurious term and is not matched, so bandwidths are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oracle
import raterwise as rw
from golden import FOCAL, KDE, SKLEARN, Array, GoldenSet, GoldenValue, find, values


def given_bandwidth(golden: GoldenValue) -> bool:
    """The bandwidth is a number."""
    return golden.params["bandwidth"] != "LOO"


def single(data: GoldenSet) -> Array:
    """Histograms of the first rater alone, for the oracle."""
    return oracle.one_rater(data.classes, data.num_classes)


def several(data: GoldenSet) -> Any:
    """All raters."""
    return rw.Labels.from_counts(data.counts)


def top_label_pairs(probs: Array, counts: Array) -> tuple[Array, Array]:
    """The top label as a two-class problem: (c, 1 - c) and (right, wrong)."""
    confidence, right = oracle.top_label(probs, counts)
    return np.stack([confidence, 1 - confidence], 1), np.stack([right, 1 - right], 1)


# kernel density --------------------------------------------------------------------------------


@values("ECE_KDE_top_label", repository=KDE, where=given_bandwidth)
def test_kde_ece_of_the_top_label(golden: GoldenValue) -> None:
    """Mean over cases of |E[right | c] - c|^p, beta kernel, the case itself left out."""
    data, p, bandwidth = golden.data, golden.params["p"], golden.params["bandwidth"]
    mine = rw.kde_ece(data.probs, data.classes, question="top_label", p=p, bandwidth=bandwidth)
    assert mine == golden.approx()


@values("ECE_KDE_marginal", repository=KDE, where=given_bandwidth)
def test_kde_ece_of_each_class(golden: GoldenValue) -> None:
    """Ours is the mean over the classes, the original their sum."""
    data, p, bandwidth = golden.data, golden.params["p"], golden.params["bandwidth"]
    mine = rw.kde_ece(data.probs, data.classes, question="per_class", p=p, bandwidth=bandwidth)
    assert mine == golden.approx(divisor=data.num_classes)


@values("ECE_KDE_binary", repository=KDE, where=given_bandwidth)
def test_kde_ece_of_one_column(golden: GoldenValue) -> None:
    """Given one column the original doubles the binary estimate: both classes, by symmetry."""
    data, p, bandwidth = golden.data, golden.params["p"], golden.params["bandwidth"]
    mine = rw.kde_ece(
        data.probs[:, 1], data.classes, question="per_class", p=p, bandwidth=bandwidth
    )
    assert mine == golden.approx(divisor=2)


@values("ECE_KDE_canonical", "ECE_KDE_canonical_log", repository=KDE, where=given_bandwidth)
def test_kde_ece_canonical(golden: GoldenValue) -> None:
    """Mean over cases of the sum over classes, Dirichlet kernel."""
    data, p, bandwidth = golden.data, golden.params["p"], golden.params["bandwidth"]
    mine = rw.kde_ece(
        data.probs, data.classes, question="canonical", p=p, bandwidth=bandwidth, floor=1e-10
    )
    assert mine == golden.approx()


@values(
    "ECE_KDE_canonical",
    repository=KDE,
    where=lambda g: not given_bandwidth(g) and g.params["dtype"] == "float64",
)
def test_kde_ece_canonical_where_the_density_is_tiny(golden: GoldenValue) -> None:
    """At the original's own, minute bandwidth some cases have no neighbours to speak of.

    Both divide by no density below 10^-10, which compares such a case with nearly nothing.
    Log-kernels near 10^5 leave eleven decimals.
    """
    data, p = golden.data, golden.params["p"]
    bandwidth = released_bandwidth(data)
    mine = rw.kde_ece(
        data.probs, data.classes, question="canonical", p=p, bandwidth=bandwidth, floor=1e-10
    )
    assert mine == golden.approx(1e-11)


def released_bandwidth(data: GoldenSet) -> float:
    """What the original's bandwidth rule chose for the Dirichlet kernel."""
    (found,) = (
        value.value
        for value in find("bandwidth_LOO_MLE", repository=KDE)
        if value.set_name == data.name
        and value.params == {"kernel": "dirichlet", "dtype": "float64"}
    )
    return float(found)


@values("MR_kdeECE_top_label", "MR_kdeECE_canonical", repository=KDE)
def test_multi_rater_kde_ece_leaving_out_the_copy(golden: GoldenValue) -> None:
    """The original on repeated cases leaves out one copy; the case's other copies stay.

    ``leave_out="copy"`` reproduces that; the default leaves out the case.
    """
    data, question = golden.data, golden.what.removeprefix("MR_kdeECE_")
    mine = rw.kde_ece(
        data.probs,
        several(data),
        question=question,
        p=golden.params["p"],
        bandwidth=golden.params["bandwidth"],
        leave_out="copy",
        floor=1e-10 if question == "canonical" else 0.0,
    )
    assert mine == golden.approx()


@values("MR_kdeECE_top_label", "MR_kdeECE_canonical", repository=KDE)
def test_multi_rater_kde_ece_leaving_out_the_case(golden: GoldenValue) -> None:
    """Not matched on purpose: a case must not vouch for itself through its other raters.

    The naive loop judges the default on the first cases, and with one copy left out it agrees
    with our ``leave_out="copy"``, which the test above ties to the original.
    """
    rows = slice(0, 120)
    probs, counts = golden.data.probs[rows], golden.data.counts[rows]
    question, bandwidth = golden.what.removeprefix("MR_kdeECE_"), golden.params["bandwidth"]
    points, outcome = probs, oracle.frequencies(counts)
    if question == "top_label":
        points, outcome = top_label_pairs(probs, counts)
    raters = counts.sum(axis=1)
    for leave_out in ("case", "copy"):
        gaps = oracle.kde_gaps(points, outcome, bandwidth, 1, leave_out, raters)
        per_case = gaps[:, 0] if question == "top_label" else gaps.sum(axis=1)
        mine = rw.kde_ece(
            probs,
            rw.Labels.from_counts(counts),
            question=question,
            p=1,
            bandwidth=bandwidth,
            leave_out=leave_out,
        )
        assert mine == pytest.approx(np.average(per_case, weights=raters), rel=0, abs=1e-12)


# ranking ---------------------------------------------------------------------------------------


def confidence_and_correct(data: GoldenSet, confidence: str) -> tuple[Array, Array]:
    """The confidences the reference names, and whether the first rater agrees."""
    probs = data["mc_probs"].mean(axis=1) if confidence.startswith("ensemble") else data.probs
    correct = (probs.argmax(axis=1) == data.classes).astype(float)
    if confidence == "negative entropy":
        return (probs * np.log(probs)).sum(axis=1), correct
    highest = probs.max(axis=1)
    return (highest.round(1) if "rounded" in confidence else highest), correct


@values("AUCCC", "AUCCC_ties", repository=SKLEARN)
def test_auccc(golden: GoldenValue) -> None:
    """CCC section 2.2: the ROC area of confidence for being right; ties count one half."""
    confidence, correct = confidence_and_correct(golden.data, golden.params["confidence"])
    assert rw.confidence.auccc(confidence, correct) == golden.approx()


@values("AUCCC", "AUCCC_ties", repository=SKLEARN)
def test_auccc_with_several_raters_and_strangers(golden: GoldenValue) -> None:
    """Fractions of raters and out-of-distribution cases: the loop over pairs judges them.

    The reference shows that the loop is right where every label is single.
    """
    confidence, correct = confidence_and_correct(golden.data, golden.params["confidence"])
    assert oracle.auccc(confidence, correct) == golden.approx()
    half = len(confidence) // 2
    _, agreement = oracle.top_label(golden.data.probs, golden.data.counts)
    mine = rw.confidence.auccc(confidence[:half], agreement[:half], outside=confidence[half:])
    expected = oracle.auccc(confidence[:half], agreement[:half], confidence[half:])
    assert mine == pytest.approx(expected, rel=0, abs=1e-12)


@values("OOD_AUROC_confidence", "OOD_AUROC_entropy", repository=FOCAL)
def test_out_of_distribution_auroc(golden: GoldenValue) -> None:
    """First half of the cases against the second half with logits divided by 3."""
    logits = golden.data["logits"]
    half = len(logits) // 2
    score = confidence_of if golden.what == "OOD_AUROC_confidence" else negative_entropy_of
    assert rw.confidence.io_auroc(score(logits[:half]), score(logits[half:] / 3)) == golden.approx()


def softmax(logits: Array) -> Array:
    """Probabilities of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def confidence_of(logits: Array) -> Array:
    """The largest probability."""
    return np.asarray(softmax(logits).max(axis=1))


def negative_entropy_of(logits: Array) -> Array:
    """The higher, the more certain."""
    probs = softmax(logits)
    return np.asarray((probs * np.log(probs)).sum(axis=1))


@values("AUCCC", repository=SKLEARN)
def test_risk_coverage_areas(golden: GoldenValue) -> None:
    """AURC and AUGRC have no released value; the naive loops judge them, one rater and several."""
    data = golden.data
    confidence, correct = confidence_and_correct(data, golden.params["confidence"])
    _, agreement = oracle.top_label(data.probs, data.counts)
    for right in (correct, agreement):
        expected = oracle.aurc(confidence, 1 - right)
        assert rw.confidence.aurc(confidence, right) == pytest.approx(expected, rel=0, abs=1e-12)
        expected = oracle.augrc_by_pairs(confidence, 1 - right)
        assert rw.confidence.augrc(confidence, right) == pytest.approx(expected, rel=0, abs=1e-12)


@values("AUCCC_ties", repository=SKLEARN)
def test_generalised_risk_coverage_area_with_ties(golden: GoldenValue) -> None:
    """AUGRC, and its closed form through AUCCC: a (1 - a) (1 - AUCCC) + (1 - a)^2 / 2."""
    confidence, correct = confidence_and_correct(golden.data, golden.params["confidence"])
    accuracy = correct.mean()
    expected = accuracy * (1 - accuracy) * (1 - golden.value) + (1 - accuracy) ** 2 / 2
    assert rw.confidence.augrc(confidence, correct) == pytest.approx(expected, rel=0, abs=1e-12)
    pairs = oracle.augrc_by_pairs(confidence, 1 - correct)
    assert pairs == pytest.approx(expected, rel=0, abs=1e-12)


@values("AUCCC_ties", repository=SKLEARN)
def test_ks_error(golden: GoldenValue) -> None:
    """The Kolmogorov-Smirnov error has no released value; the naive loop judges it."""
    data = golden.data
    expected = oracle.ks_error(*oracle.top_label(data.probs, single(data)))
    assert rw.ks_error(data.probs, data.classes) == pytest.approx(expected, rel=0, abs=1e-12)
    repeated = oracle.top_label(*oracle.repeat_per_annotation(data.probs, data.counts))
    expected = oracle.ks_error(*repeated)
    assert rw.ks_error(data.probs, several(data)) == pytest.approx(expected, rel=0, abs=1e-12)
