"""Binned, robust and multi-rater calibration errors against the numbers of released code.

Most of that code puts a score on an edge into the lower bin, ``(a, b]``, and gives p = 0 no bin at
all. Ours are ``[a, b)``, the last closed, so values are matched on sets without such scores and
explained, rule by rule, on sets with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oracle
import raterwise as rw
from golden import (
    DIRICHLET,
    FOCAL,
    LABEL_HISTOGRAMS,
    MDCA,
    NETCAL,
    RIGHT_CLOSED,
    ROBUST,
    Array,
    GoldenSet,
    GoldenValue,
    array,
    values,
)
from raterwise.binning import bin_edges, locate


def no_edge_scores(golden: GoldenValue) -> bool:
    """No probability of the set lies on an edge."""
    return not golden.data.has_edge_scores


def edge_scores(golden: GoldenValue) -> bool:
    """Some probabilities of the set lie on an edge."""
    return golden.data.has_edge_scores


def single(data: GoldenSet) -> Array:
    """Histograms of the first rater alone, for the oracle."""
    return oracle.one_rater(data.classes, data.num_classes)


def several(data: GoldenSet) -> Any:
    """All raters."""
    return rw.Labels.from_counts(data.counts)


def agrees(expected: float) -> Any:
    """Equal to twelve decimals."""
    return pytest.approx(expected, rel=0, abs=1e-12)


# one rater -------------------------------------------------------------------------------------


@values(
    "ECE",
    "ECELoss",
    "guo_ECE",
    repository=(*RIGHT_CLOSED, DIRICHLET),
    where=no_edge_scores,
)
def test_top_label_ece(golden: GoldenValue) -> None:
    """RECE eq 3, six implementations."""
    data = golden.data
    assert rw.ece(data.probs, data.classes, bins=golden.bins) == golden.approx()


@values("MCE", repository=(*RIGHT_CLOSED, DIRICHLET), where=no_edge_scores)
def test_top_label_mce(golden: GoldenValue) -> None:
    """The largest gap of any bin."""
    data = golden.data
    assert rw.mce(data.probs, data.classes, bins=golden.bins) == golden.approx()


@values("L2CE", repository=FOCAL)
def test_rms_calibration_error(golden: GoldenValue) -> None:
    """The root of the case-weighted mean squared gap of the top label."""
    data = golden.data
    assert rw.rms_ce(data.probs, data.classes, bins=golden.bins) == golden.approx()


@values("SCE", "ClasswiseECELoss", repository=(ROBUST, MDCA, FOCAL), where=no_edge_scores)
def test_classwise_ece(golden: GoldenValue) -> None:
    """What these name SCE takes every case for every class: our ``classwise_ece``, not ``sce``."""
    data = golden.data
    assert rw.classwise_ece(data.probs, data.classes, bins=golden.bins) == golden.approx()


@values("SCE", repository=ROBUST, where=no_edge_scores)
def test_sce_as_printed_has_no_released_value(golden: GoldenValue) -> None:
    """Not matched on purpose: ``sce`` is RECE eqs 4-5, where class k has the cases predicted as k.

    No released code computes that, so the naive loop judges it; the reference value differs.
    """
    data = golden.data
    mine = rw.sce(data.probs, data.classes, bins=golden.bins)
    assert mine == agrees(oracle.sce(data.probs, single(data), golden.bins))
    assert mine != golden.approx(1e-6)


@values("classwise_ECE", repository=DIRICHLET)
def test_classwise_ece_of_bins_less_one(golden: GoldenValue) -> None:
    """The original's ``linspace(0, 1, bins)`` makes bins - 1 intervals; power 2 has no root."""
    data, bins = golden.data, golden.bins - 1
    if golden.params["power"] == 1:
        mine = rw.classwise_ece(data.probs, data.classes, bins=bins)
    else:
        mine = rw.rms_ce(data.probs, data.classes, bins=bins, question="per_class") ** 2
    assert mine == golden.approx()


@values("ClassjECE", repository=ROBUST)
def test_ece_of_each_class(golden: GoldenValue) -> None:
    """One class against the rest is a binary problem, asked about its positive class."""
    data = golden.data
    mine = [
        rw.ece(
            np.stack([1 - data.probs[:, k], data.probs[:, k]], axis=1),
            (data.classes == k).astype(np.int64),
            bins=golden.bins,
            question="positive",
        )
        for k in range(data.num_classes)
    ]
    np.testing.assert_allclose(mine, golden.value, rtol=0, atol=1e-12)


@values("BrierMulti", repository=ROBUST)
def test_brier(golden: GoldenValue) -> None:
    """The original sums the classes for every K: ours without halving, and the loss of LH eq 8."""
    data = golden.data
    assert rw.brier(data.probs, data.classes, scale_by_half=False) == golden.approx()
    assert rw.expected_squared_loss(data.probs, data.classes) == golden.approx()
    halved = golden.value / (2 if data.num_classes == 2 else 1)
    assert rw.brier(data.probs, data.classes) == agrees(halved)


@values("loss_CE", repository=ROBUST)
def test_nll(golden: GoldenValue) -> None:
    """Cross entropy of the softmax of the logits; ours of its probabilities."""
    data = golden.data
    assert rw.nll(data.probs, data.classes) == golden.approx()


# netcal: the positive class when K = 2 ---------------------------------------------------------


def netcal_question(data: GoldenSet) -> str:
    """The original silently switches; ours says which."""
    return "positive" if data.num_classes == 2 else "top_label"


@values("ECE", "MCE", repository=NETCAL, where=lambda g: g.params["equal_intervals"])
def test_netcal(golden: GoldenValue) -> None:
    """K = 2 is the positive class, K > 2 the top label; bins [a, b) as ours."""
    data, metric = golden.data, {"ECE": rw.ece, "MCE": rw.mce}[golden.what]
    mine = metric(data.probs, data.classes, bins=golden.bins, question=netcal_question(data))
    assert mine == golden.approx()


@values(
    "ECE_binary1d",
    "MCE_binary1d",
    repository=NETCAL,
    where=lambda g: g.params.get("equal_intervals", True),
)
def test_netcal_one_column(golden: GoldenValue) -> None:
    """One column of probabilities of class 1, with scores on edges, at 0 and at 1 as well."""
    metric = {"ECE_binary1d": rw.ece, "MCE_binary1d": rw.mce}[golden.what]
    data, positive = golden.data, golden.data.probs[:, 1]
    bins = golden.bins
    assert metric(positive, data.classes, bins=bins, question="positive") == golden.approx()


@values(
    "ACE",
    "ACE_binary1d",
    repository=NETCAL,
    where=lambda g: g.params.get("equal_intervals", True),
)
def test_netcal_average(golden: GoldenValue) -> None:
    """Its ACE is the mean gap of the bins that hold a case; scores on edges, at 0 and 1 as well."""
    data, question = golden.data, netcal_question(golden.data)
    mine = rw.average_calibration_error(
        data.probs, data.classes, bins=golden.bins, question=question
    )
    assert mine == golden.approx()


@values("ACE_average", repository=FOCAL, where=lambda g: not g.data.has_edge_scores)
def test_focal_calibration_average(golden: GoldenValue) -> None:
    """The same of the top label; its bins are (a, b], so that no score may lie on an edge."""
    data = golden.data
    mine = rw.average_calibration_error(data.probs, data.classes, bins=golden.bins)
    assert mine == golden.approx()


@values(
    "ECE",
    repository=NETCAL,
    where=lambda g: not g.params["equal_intervals"] and len(g.data.probs) % g.bins == 0,
)
def test_netcal_equal_mass(golden: GoldenValue) -> None:
    """Equal-mass bins, where the number of bins divides the cases.

    Where it does not, the original interpolates its edges between cases; not matched.
    """
    data = golden.data
    mine = rw.adaptive_ece(
        data.probs, data.classes, bins=golden.bins, question=netcal_question(data)
    )
    assert mine == golden.approx()


@values("bin_index", repository=LABEL_HISTOGRAMS)
def test_bins_of_scores_on_edges(golden: GoldenValue) -> None:
    """[a, b), the last closed: 0 in the first bin, 1 in the last, an edge in the bin it opens."""
    positive = golden.data.probs[:, 1]
    edges = bin_edges(golden.bins)
    np.testing.assert_array_equal(locate(positive, edges), golden.value)


# scores on edges, where the originals are (a, b] -----------------------------------------------


@values("ECE", "MCE", "SCE", repository=ROBUST, where=edge_scores)
def test_scores_on_edges_go_up(golden: GoldenValue) -> None:
    """Not matched on purpose: the original's bins are (a, b] and p = 0 is in none.

    The reference value is that rule, worked by the naive loop; ours is the loop with [a, b).
    """
    data = golden.data
    counts = single(data)
    rule: dict[str, tuple[Callable[..., float], Callable[..., float]]] = {
        "ECE": (rw.ece, oracle.ece),
        "MCE": (rw.mce, oracle.mce),
        "SCE": (rw.classwise_ece, oracle.classwise_ece),
    }
    assert right_closed(golden.what, data, golden.bins) == golden.approx()
    metric, naive = rule[golden.what]
    mine = metric(data.probs, data.classes, bins=golden.bins)
    assert mine == agrees(naive(data.probs, counts, golden.bins))


def right_closed(what: str, data: GoldenSet, bins: int) -> float:
    """ECE, MCE or the mean class ECE with bins (a, b]."""
    if what == "SCE":
        columns = [(data.probs[:, k], data.classes == k) for k in range(data.num_classes)]
        return float(
            np.mean(
                [
                    oracle.ece_of(z, mu.astype(float), oracle.members_right_closed(z, bins))
                    for z, mu in columns
                ]
            )
        )
    scores, outcome = oracle.top_label(data.probs, single(data))
    groups = oracle.members_right_closed(scores, bins)
    if what == "MCE":
        return max(gap for _, gap in oracle.gaps(scores, outcome, groups))
    return oracle.ece_of(scores, outcome, groups)


@values("SCE_class1_bin_prop", repository=ROBUST)
def test_right_closed_bins_lose_cases(golden: GoldenValue) -> None:
    """The rule of the loop above is the original's: the same share of cases in every bin."""
    positive = golden.data.probs[:, 1]
    groups = oracle.members_right_closed(positive, golden.bins)
    shares = [len(group) / len(positive) for group in groups]
    np.testing.assert_allclose(shares, golden.value, rtol=0, atol=1e-12)


# equal-mass bins -------------------------------------------------------------------------------


@values("AECE", "AECE_toplabel", repository=ROBUST)
def test_adaptive_ece_keeps_every_case(golden: GoldenValue) -> None:
    """Not matched on purpose: the original's first bin is open at the smallest confidence.

    The reference value is that rule (edges at every int(N / bins)-th case, (a, b]); ours is the
    loop with bins that hold every case.
    """
    data = golden.data
    released = oracle.adaptive_ece_dropping_minimum(data.probs, single(data), golden.bins)
    assert released == golden.approx()
    mine = rw.adaptive_ece(data.probs, data.classes, bins=golden.bins)
    assert mine == agrees(oracle.adaptive_ece(data.probs, single(data), golden.bins))


@values("AECE_first_m", repository=ROBUST)
def test_adaptive_ece_of_fewer_cases_than_bins(golden: GoldenValue) -> None:
    """Not matched on purpose: below 15 cases all the original's edges but the last coincide.

    Everything but the smallest confidence then shares one bin; ours has a bin per case.
    """
    m = golden.params["m"]
    probs, classes = golden.data.probs[:m], golden.data.classes[:m]
    counts = oracle.one_rater(classes, golden.data.num_classes)
    released = oracle.adaptive_ece_dropping_minimum(probs, counts, golden.bins)
    assert released == golden.approx()
    mine = rw.adaptive_ece(probs, classes, bins=golden.bins)
    assert mine == agrees(oracle.adaptive_ece(probs, counts, golden.bins))


@values("AdaptiveECELoss", repository=FOCAL)
def test_adaptive_ece_with_interpolated_edges(golden: GoldenValue) -> None:
    """Not matched on purpose: edges interpolated between cases, (a, b], smallest case dropped."""
    data = golden.data
    scores, outcome = oracle.top_label(data.probs, single(data))
    positions = np.linspace(0, len(scores), golden.bins + 1)
    edges = np.interp(positions, np.arange(len(scores)), np.sort(scores))
    released = oracle.ece_of(scores, outcome, oracle.members_between(scores, list(edges)))
    assert released == golden.approx()
    mine = rw.adaptive_ece(data.probs, data.classes, bins=golden.bins)
    assert mine == agrees(oracle.adaptive_ece(data.probs, single(data), golden.bins))


# robust ECE ------------------------------------------------------------------------------------


@values("RECE_G", repository=ROBUST, where=lambda g: g.params["distr"] == "gaussian")
def test_robust_ece_of_observed_bins(golden: GoldenValue) -> None:
    """The original leaves out bins that hold no confidence."""
    data, sigma = golden.data, golden.params["sigma"]
    mine = rw.robust_ece(
        data.probs, data.classes, bins=golden.bins, sigma=sigma, observed_bins_only=True
    )
    assert mine == golden.approx()


@values("RECE_G_allbins", repository=ROBUST, where=lambda g: g.params["distr"] == "gaussian")
def test_robust_ece(golden: GoldenValue) -> None:
    """RECE eq 6 as printed: the sum runs over all bins."""
    data, sigma = golden.data, golden.params["sigma"]
    mine = rw.robust_ece(data.probs, data.classes, bins=golden.bins, sigma=sigma)
    assert mine == golden.approx()


@values("RECE_M", repository=ROBUST, where=lambda g: g.params["mode"] == "gmm_estimate")
def test_robust_ece_mixture(golden: GoldenValue) -> None:
    """RECE eq 7 given the original's fitted mixtures.

    It passes variances where standard deviations are meant, so they are passed as such here, and
    leaves out bins that hold no confidence.
    """
    data = golden.data
    weights, means, variances = (
        array(data, f"RECE_M_gmm_{part}", ROBUST) for part in ("weights", "means", "covs")
    )
    mine = rw.robust_ece_mixture(
        data.probs,
        data.classes,
        None,
        bins=golden.bins,
        mixtures=(weights, means, variances),
        observed_bins_only=True,
    )
    assert mine == golden.approx()


@values("RECE_M_fixed", repository=ROBUST)
def test_robust_ece_mixture_of_equal_components(golden: GoldenValue) -> None:
    """RECE eq 7 with one component per augmentation, all of one standard deviation."""
    data = golden.data
    means = data["mc_probs"].max(axis=2)
    mixtures = (
        np.full(means.shape, 1 / means.shape[1]),
        means,
        np.full(means.shape, golden.params["sigma"]),
    )
    mine = rw.robust_ece_mixture(
        data.probs,
        data.classes,
        None,
        bins=golden.bins,
        mixtures=mixtures,
        observed_bins_only=True,
    )
    assert mine == golden.approx()


# several raters --------------------------------------------------------------------------------


@values("MR_ECE_top_label", repository=(ROBUST, NETCAL))
def test_multi_rater_ece(golden: GoldenValue) -> None:
    """MR eq 5 with b_m / N: the originals on cases repeated once per rater."""
    assert rw.ece(golden.data.probs, several(golden.data), bins=golden.bins) == golden.approx()


@values("MR_ECE_positive_class", repository=NETCAL)
def test_multi_rater_ece_of_the_positive_class(golden: GoldenValue) -> None:
    """MR eqs 1, 2 and 5."""
    data = golden.data
    mine = rw.ece(data.probs, several(data), bins=golden.bins, question="positive")
    assert mine == golden.approx()


@values("MR_MCE", repository=ROBUST)
def test_multi_rater_mce(golden: GoldenValue) -> None:
    """The largest gap, every annotation a sample."""
    assert rw.mce(golden.data.probs, several(golden.data), bins=golden.bins) == golden.approx()


@values("MR_SCE", repository=ROBUST)
def test_multi_rater_classwise_ece(golden: GoldenValue) -> None:
    """What the original names SCE is our ``classwise_ece``."""
    data = golden.data
    assert rw.classwise_ece(data.probs, several(data), bins=golden.bins) == golden.approx()


@values("MR_RECE_G", repository=ROBUST)
def test_multi_rater_robust_ece(golden: GoldenValue) -> None:
    """RECE eq 6 on annotations; the original leaves out bins that hold no confidence."""
    data = golden.data
    mine = rw.robust_ece(
        data.probs,
        several(data),
        bins=golden.bins,
        sigma=golden.params["sigma"],
        observed_bins_only=True,
    )
    assert mine == golden.approx()


@values("MR_AECE", repository=ROBUST)
def test_multi_rater_adaptive_ece(golden: GoldenValue) -> None:
    """Not matched on purpose, as with one rater: the original drops the smallest confidence.

    Ours is the loop over repeated cases, where equal confidences share a bin.
    """
    data = golden.data
    probs, counts = oracle.repeat_per_annotation(data.probs, data.counts)
    released = oracle.adaptive_ece_dropping_minimum(probs, counts, golden.bins)
    assert released == golden.approx()
    mine = rw.adaptive_ece(data.probs, several(data), bins=golden.bins)
    assert mine == agrees(oracle.adaptive_ece(probs, counts, golden.bins))


@values("SR_ECE_majority", repository=ROBUST)
def test_ece_of_the_majority_label(golden: GoldenValue) -> None:
    """One label per case by majority, ties to the lowest class."""
    data = golden.data
    assert rw.ece(data.probs, several(data).majority(), bins=golden.bins) == golden.approx()


@values("MR_ECE_top_label", repository=ROBUST)
def test_multi_rater_wrapper(golden: GoldenValue) -> None:
    """MR eq 4 round anybody's error: the naive single-rater loop becomes the multi-rater one."""
    data = golden.data

    def naive_ece(probs: Array, classes: Array) -> float:
        counts = oracle.one_rater(classes, data.num_classes)
        return oracle.ece(np.asarray(probs), counts, golden.bins)

    assert rw.multi_rater(naive_ece)(data.probs, several(data)) == golden.approx()
