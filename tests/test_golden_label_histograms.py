"""Label-histogram losses (LH) against the numbers of the authors' released code.

Three habits of that code differ from the paper, and each has its test: a bin with one case keeps
its plugin value (here ``singletons="plugin"``; the paper and our default use 0), its dispersion
loss forgets the within-case correction of such bins, and cases with one label stay in some of its
means (ours are an error, or left out with ``on_single="drop"``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import oracle
import raterwise as rw
from golden import LABEL_HISTOGRAMS, Array, GoldenSet, GoldenValue, array, values
from raterwise.errors import InvalidInputError


def lh_values(*what: str, where: Any = lambda _: True) -> pytest.MarkDecorator:
    """Values computed from the raters' histograms (not from the true probabilities)."""
    return values(
        *what,
        repository=LABEL_HISTOGRAMS,
        where=lambda g: "labels" not in g.params and where(g),
    )


def two_labels(golden: GoldenValue) -> bool:
    """Every case of the set has two labels or more."""
    return not golden.data.has_single_labels


def single_labels(golden: GoldenValue) -> bool:
    """Some case of the set has one label only."""
    return golden.data.has_single_labels


def labels_of(data: GoldenSet) -> Any:
    """The set's label histograms."""
    return rw.Labels.from_counts(data.counts)


def rated_twice(data: GoldenSet) -> Array:
    """Rows with two labels or more."""
    return np.flatnonzero(data.counts.sum(axis=1) >= 2)


# class probabilities ---------------------------------------------------------------------------


@lh_values("L_sq_unbiased")
def test_expected_squared_loss(golden: GoldenValue) -> None:
    """LH eq 8, for every kind of prediction."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    assert rw.expected_squared_loss(probs, labels_of(golden.data)) == golden.approx()


@lh_values("L_sq_per_instance")
def test_expected_squared_loss_of_single_cases(golden: GoldenValue) -> None:
    """LH eq 24: the loss of a set of one case is that case's loss."""
    probs, counts = golden.data.probs, golden.data.counts
    mine = [
        rw.expected_squared_loss(probs[i : i + 1], rw.Labels.from_counts(counts[i : i + 1]))
        for i in range(len(probs))
    ]
    np.testing.assert_allclose(mine, golden.value, rtol=0, atol=1e-12)


@lh_values("accuracy")
def test_accuracy_against_the_majority(golden: GoldenValue) -> None:
    """The original scores the majority label, ties to the lowest class; ours given those labels."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    majority = labels_of(golden.data).majority()
    assert rw.accuracy(probs, majority) == golden.approx()


@lh_values("EL_plugin")
def test_epistemic_loss_plugin(golden: GoldenValue) -> None:
    """LH eq 9, which is defined for cases with one label too."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    mine = rw.epistemic_loss(probs, labels_of(golden.data), estimator="plugin")
    assert mine == golden.approx()


@lh_values("EL_unbiased", where=two_labels)
def test_epistemic_loss_unbiased(golden: GoldenValue) -> None:
    """LH eq 10."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    assert rw.epistemic_loss(probs, labels_of(golden.data)) == golden.approx()


@lh_values("EL_unbiased", where=two_labels)
def test_irreducible_loss(golden: GoldenValue) -> None:
    """LH eq 21, L_sq = EL + IL: the difference of two reference values, whatever the model."""
    data, pred = golden.data, golden.params["pred"]
    squared_loss = array(data, "L_sq_unbiased", LABEL_HISTOGRAMS, pred=pred, bins=15)
    assert rw.irreducible_loss(labels_of(data)) == pytest.approx(
        float(squared_loss) - golden.value, rel=0, abs=1e-12
    )


@lh_values("EL_unbiased", where=single_labels)
def test_epistemic_loss_with_single_labels(golden: GoldenValue) -> None:
    """Not matched on purpose: the original corrects only cases with two labels, so it is biased.

    The reference value is that rule; ours is an error, or eq 10 on the cases that allow it.
    """
    data = golden.data
    probs, _ = data.prediction(golden.params["pred"])
    plugin = oracle.epistemic_loss(probs, data.counts, "plugin")
    assert plugin - released_correction(probs, data.counts) == golden.approx()
    with pytest.raises(InvalidInputError, match="on_single"):
        rw.epistemic_loss(probs, labels_of(data))
    keep = rated_twice(data)
    assert rw.epistemic_loss(probs, labels_of(data), on_single="drop") == pytest.approx(
        oracle.epistemic_loss(probs[keep], data.counts[keep]), rel=0, abs=1e-12
    )


def released_correction(probs: Array, counts: Array) -> float:
    """Eq 10's correction summed over the cases that have one, divided by all cases."""
    mu, n = oracle.frequencies(counts), counts.sum(axis=1)
    terms = [
        oracle.epistemic_correction(float(mu[i, k]), int(n[i]))
        for i in range(len(probs))
        for k in range(probs.shape[1])
    ]
    return math.fsum(terms) / len(probs)


@lh_values("CL_plugin")
def test_calibration_loss_plugin(golden: GoldenValue) -> None:
    """LH eq 13, summed over classes and bins."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    bins = golden.bins
    mine = rw.calibration_loss(probs, labels_of(golden.data), bins=bins, estimator="plugin")
    assert mine == golden.approx()


@lh_values("CL_debiased")
def test_calibration_loss_debiased(golden: GoldenValue) -> None:
    """LH eq 14; the original keeps the plugin value of bins with one case."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    bins = golden.bins
    mine = rw.calibration_loss(probs, labels_of(golden.data), bins=bins, singletons="plugin")
    assert mine == golden.approx()


@lh_values("CL_debiased")
def test_calibration_loss_default_gives_nothing_for_bins_of_one(golden: GoldenValue) -> None:
    """Appendix B.3: our default is the released value less the plugin terms of such bins."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    counts, bins = golden.data.counts, golden.bins
    of_singletons = math.fsum(term.calibration for term in singleton_terms(probs, counts, bins))
    mine = rw.calibration_loss(probs, labels_of(golden.data), bins=bins)
    assert mine == pytest.approx(golden.value - of_singletons, rel=0, abs=1e-12)


class SingletonTerm:
    """What the one case of a bin gives to CL (eq 13) and to the correction of EL (eq 10)."""

    def __init__(self, z: float, mu: float, n: int, cases: int) -> None:
        self.calibration = (mu - z) ** 2 / cases
        self.correction = oracle.epistemic_correction(mu, n) / cases


def singleton_terms(probs: Array, counts: Array, bins: Any) -> list[SingletonTerm]:
    """The terms of every bin that holds one case, over all classes."""
    mu, n = oracle.frequencies(counts), counts.sum(axis=1)
    return [
        SingletonTerm(float(probs[i, k]), float(mu[i, k]), int(n[i]), len(probs))
        for k in range(probs.shape[1])
        for group in oracle.members(probs[:, k], bins)
        if len(group) == 1
        for i in group
    ]


@lh_values("cpe_decomp_bin_count", where=two_labels)
def test_losses_from_the_released_table_of_bins(golden: GoldenValue) -> None:
    """CL and DL, plugin and debiased, from the released terms of every class and bin.

    Other numbers of bins than 15 exist only here. Where a bin holds one case the table's
    corrections are NaN and our default takes 0 for its CL, as appendix B.3 says.
    """
    data, bins = golden.data, golden.bins

    def table(name: str) -> Array:
        return array(data, f"cpe_decomp_{name}", LABEL_HISTOGRAMS, bins=bins)

    many = golden.value > 1
    calibration = (table("cl_plugin") - table("cl_bias"))[many].sum()
    epistemic = (table("el_plugin") - table("el_bias")).sum()
    labels = labels_of(data)
    mine = [
        rw.calibration_loss(data.probs, labels, bins=bins),
        rw.calibration_loss(data.probs, labels, bins=bins, estimator="plugin"),
        rw.dispersion_loss(data.probs, labels, bins=bins),
        rw.dispersion_loss(data.probs, labels, bins=bins, estimator="plugin"),
    ]
    expected = [
        calibration,
        table("cl_plugin").sum(),
        epistemic - calibration,
        (table("el_plugin") - table("cl_plugin")).sum(),
    ]
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-12)


@lh_values("DL_plugin")
def test_dispersion_loss_plugin(golden: GoldenValue) -> None:
    """LH eq 35, which is defined for cases with one label too."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    mine = rw.dispersion_loss(probs, labels_of(golden.data), bins=golden.bins, estimator="plugin")
    assert mine == golden.approx()


@lh_values("DL_debiased", where=two_labels)
def test_dispersion_loss_debiased(golden: GoldenValue) -> None:
    """LH eq 36 as EL - CL; equal to the original where no bin holds one case.

    For such bins the original drops the correction of EL along with that of CL (a NaN skipped in
    a sum), so DL is no longer EL - CL there; the test puts both terms back.
    """
    probs, _ = golden.data.prediction(golden.params["pred"])
    counts, bins = golden.data.counts, golden.bins
    terms = singleton_terms(probs, counts, bins)
    forgotten = math.fsum(term.calibration - term.correction for term in terms)
    mine = rw.dispersion_loss(probs, labels_of(golden.data), bins=bins)
    assert mine == pytest.approx(golden.value + forgotten, rel=0, abs=1e-12)


@lh_values("DL_debiased", where=single_labels)
def test_dispersion_loss_with_single_labels(golden: GoldenValue) -> None:
    """Not matched on purpose, for the reason of the epistemic loss and that of bins of one.

    The reference value is explained by both rules; ours is an error, or eq 36 on the cases with
    two labels.
    """
    data = golden.data
    probs, _ = data.prediction(golden.params["pred"])
    bins = golden.bins
    released = (
        oracle.epistemic_loss(probs, data.counts, "plugin")
        - released_correction(probs, data.counts)
        - oracle.calibration_loss(probs, data.counts, bins, singletons="plugin")
        + math.fsum(term.correction for term in singleton_terms(probs, data.counts, bins))
    )
    assert released == golden.approx()
    with pytest.raises(InvalidInputError, match="on_single"):
        rw.dispersion_loss(probs, labels_of(data), bins=bins)
    keep = rated_twice(data)
    mine = rw.dispersion_loss(probs, labels_of(data), bins=bins, on_single="drop")
    expected = oracle.dispersion_loss(probs[keep], data.counts[keep], bins)
    assert mine == pytest.approx(expected, rel=0, abs=1e-12)


@lh_values("CE_plugin", "CE_debiased")
def test_calibration_error(golden: GoldenValue) -> None:
    """CE = sqrt(CL); the reference has NaN where the debiased CL is negative, ours 0."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    mine = rw.calibration_error(
        probs,
        labels_of(golden.data),
        bins=golden.bins,
        estimator=golden.what.removeprefix("CE_"),
        singletons="plugin",
    )
    assert mine == pytest.approx(np.nan_to_num(golden.value), rel=0, abs=1e-12)


@values(
    "L_sq_unbiased",
    "EL_plugin",
    "EL_unbiased",
    "CL_plugin",
    "CL_debiased",
    "DL_plugin",
    "DL_debiased",
    "L_phiD_unbiased",
    "CL_phiD_plugin",
    "CL_phiD_debiased",
    "accuracy",
    repository=LABEL_HISTOGRAMS,
    where=lambda g: g.params.get("labels") == "q_true_exact",
)
def test_infinitely_many_raters(golden: GoldenValue) -> None:
    """The original given the true class probabilities: histograms of about 10^9 raters come near.

    A frequency is then off by 10^-9, and so is every loss, hence the tolerance of 10^-8.
    """
    data = golden.data
    labels = rw.Labels.from_counts(np.round(data["q_true"] * 1e9).astype(np.int64))
    probs, disagreement = data.prediction(golden.params["pred"])
    estimator = golden.what.rpartition("_")[2]
    quantity = {
        "L_sq": lambda: rw.expected_squared_loss(probs, labels),
        "EL": lambda: rw.epistemic_loss(probs, labels, estimator=estimator),
        "CL": lambda: rw.calibration_loss(probs, labels, estimator=estimator, singletons="plugin"),
        "DL": lambda: rw.dispersion_loss(probs, labels, estimator=estimator),
        "L_phiD": lambda: rw.disagreement_loss(disagreement, labels),
        "CL_phiD": lambda: rw.disagreement_calibration_loss(
            disagreement, labels, estimator=estimator, singletons="plugin"
        ),
        "accuracy": lambda: rw.accuracy(probs, labels.majority()),
    }[golden.what.rpartition("_")[0] or golden.what]
    assert quantity() == golden.approx(1e-8)


@values("EL_unbiased_prior", "EL_unbiased_posterior", repository=LABEL_HISTOGRAMS)
def test_epistemic_loss_before_and_after_a_label(golden: GoldenValue) -> None:
    """LH eq 19: EL on the remaining labels, before and after one label updates the prediction."""
    data = golden.data
    keep = data["n_raters"] >= 3
    probs = data.probs
    if golden.what == "EL_unbiased_posterior":
        probs = array(data, "posterior_CPE", LABEL_HISTOGRAMS, pred=golden.params["pred"])
    labels = rw.Labels.from_counts(data["rem_hist"][keep])
    assert rw.epistemic_loss(probs[keep], labels) == golden.approx()


# disagreement ----------------------------------------------------------------------------------


@lh_values("agreement_probs")
def test_disagreement_probabilities_of_the_loader(golden: GoldenValue) -> None:
    """LH eqs 71-73 as the other tests use them; the original stores 1 - phi."""
    _, disagreement = golden.data.prediction(golden.params["pred"])
    np.testing.assert_allclose(disagreement, 1 - golden.value, rtol=0, atol=1e-12)


@lh_values("mu_phiD_unbiased")
def test_disagreement_frequency_of_single_cases(golden: GoldenValue) -> None:
    """LH eq 16: the loss of predicting 0 for one case is how often two of its raters differ."""
    counts = golden.data.counts
    mine = [
        rw.disagreement_loss(np.zeros(1), rw.Labels.from_counts(counts[i : i + 1]))
        for i in range(len(counts))
    ]
    np.testing.assert_allclose(mine, golden.value, rtol=0, atol=1e-12)


@lh_values("L_phiD_unbiased")
def test_disagreement_loss(golden: GoldenValue) -> None:
    """LH eq 40; cases with one label have no pair and are left out, as footnote 5 says."""
    _, disagreement = golden.data.prediction(golden.params["pred"])
    mine = rw.disagreement_loss(disagreement, labels_of(golden.data), on_single="drop")
    assert mine == golden.approx()


@lh_values("L_phiD_unbiased", where=two_labels)
def test_statistic_loss_of_disagreement(golden: GoldenValue) -> None:
    """The general eq 40 with phi = "two raters differ" is the disagreement loss."""
    _, disagreement = golden.data.prediction(golden.params["pred"])
    mine = rw.statistic_loss(oracle.disagree, disagreement, labels_of(golden.data), order=2)
    assert mine == golden.approx()


@lh_values("CL_phiD_plugin", "CL_phiD_debiased", where=two_labels)
def test_disagreement_calibration_loss(golden: GoldenValue) -> None:
    """LH eqs 42-45; bins with one case as the original treats them.

    The original bins the agreement 1 - phi. That mirrors the bins and changes nothing, save for
    predictions on an edge.
    """
    _, disagreement = golden.data.prediction(golden.params["pred"])
    mine = rw.disagreement_calibration_loss(
        disagreement,
        labels_of(golden.data),
        estimator=golden.what.removeprefix("CL_phiD_"),
        singletons="plugin",
    )
    assert mine == golden.approx()


@lh_values("CL_phiD_plugin", "CL_phiD_debiased", where=two_labels)
def test_statistic_calibration_loss_of_disagreement(golden: GoldenValue) -> None:
    """The general eqs 42-45 with phi = "two raters differ"."""
    _, disagreement = golden.data.prediction(golden.params["pred"])
    mine = rw.statistic_calibration_loss(
        oracle.disagree,
        disagreement,
        labels_of(golden.data),
        order=2,
        estimator=golden.what.removeprefix("CL_phiD_"),
        singletons="plugin",
    )
    assert mine == golden.approx()


@lh_values("CE_phiD_plugin", "CE_phiD_debiased")
def test_disagreement_calibration_error(golden: GoldenValue) -> None:
    """The square root of the loss; NaN in the reference where that is negative, 0 here."""
    _, disagreement = golden.data.prediction(golden.params["pred"])
    mine = rw.disagreement_calibration_error(
        disagreement,
        labels_of(golden.data),
        estimator=golden.what.removeprefix("CE_phiD_"),
        singletons="plugin",
    )
    assert mine == pytest.approx(np.nan_to_num(golden.value), rel=0, abs=1e-12)


@lh_values("dpe_bin_cl_plugin", where=two_labels)
def test_disagreement_calibration_loss_from_the_released_bins(golden: GoldenValue) -> None:
    """Other numbers of bins: the released terms summed; a bin of one case has no correction."""
    data, bins = golden.data, golden.bins
    correction = array(data, "dpe_bin_cl_bias", LABEL_HISTOGRAMS, bins=bins)
    _, disagreement = data.prediction("prob")
    labels = labels_of(data)
    plugin = rw.disagreement_calibration_loss(disagreement, labels, bins=bins, estimator="plugin")
    debiased = rw.disagreement_calibration_loss(
        disagreement, labels, bins=bins, singletons="plugin"
    )
    assert plugin == pytest.approx(golden.value.sum(), rel=0, abs=1e-12)
    expected = golden.value.sum() - np.nansum(correction)
    assert debiased == pytest.approx(expected, rel=0, abs=1e-12)


@lh_values("CL_phiD_plugin", "CL_phiD_debiased", where=single_labels)
def test_disagreement_calibration_loss_with_single_labels(golden: GoldenValue) -> None:
    """Not matched on purpose: in the original a case with one label counts, without an outcome.

    Its prediction enters the bin's mean and its size, but no pair of raters stands against it.
    The reference value is that rule; ours leaves the case out, as footnote 5 of the paper says.
    """
    data = golden.data
    _, disagreement = data.prediction(golden.params["pred"])
    estimator = golden.what.removeprefix("CL_phiD_")
    bins = golden.bins
    assert released_disagreement_loss(disagreement, data, bins, estimator) == golden.approx()
    mine = rw.disagreement_calibration_loss(
        disagreement, labels_of(data), bins=bins, estimator=estimator, on_single="drop"
    )
    keep = rated_twice(data)
    expected = oracle.statistic_calibration_loss(
        oracle.disagree, disagreement[keep], data.counts[keep], 2, bins, estimator
    )
    assert mine == pytest.approx(expected, rel=0, abs=1e-12)


def released_disagreement_loss(
    disagreement: Array, data: GoldenSet, bins: Any, estimator: str
) -> float:
    """Eqs 43-44 with bin sizes and mean predictions that include cases with one label."""
    total = 0.0
    for group in oracle.members(disagreement, bins):
        pairs = [
            oracle.statistic_mean(oracle.disagree, data.counts[i], 2)
            for i in group
            if data.counts[i].sum() >= 2
        ]
        if pairs:
            size, share = len(group), len(group) / len(disagreement)
            total += share * (np.mean(pairs) - np.mean(disagreement[group])) ** 2
            if estimator == "debiased" and size > 1:
                total -= share * np.var(pairs) / (size - 1)
    return total
