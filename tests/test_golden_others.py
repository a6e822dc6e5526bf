"""Agreement, proper scores, Spiegelhalter's test and binned errors against other packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import raterwise as rw
from golden_clinical import ClinicalValue, inputs, values

STATSMODELS, IRR, IRRCAC = "statsmodels/statsmodels", "cran/irr", "cran/irrCAC"
KRIPPENDORFF, SKLEARN = "pln-fing-udelar/fast-krippendorff", "scikit-learn/scikit-learn"
CALZONE, RMS = "DIDSR/calzone", "harrelfe/rms"
VOXELS = "voxels"
"""In the name of ratings that are masks, which are not among the arrays of the folder."""
SCALES = {"unweighted": "nominal", "quadratic": "interval"}
"""irrCAC's name of a scale of measurement; its other weights are no metric of Krippendorff's."""


def rated(what: str, repository: str) -> list[ClinicalValue]:
    """Return the values of this name that are of tables of ratings."""
    return [g for g in values(what, repository) if VOXELS not in g.params["ratings"]]


def ratings_of(golden: ClinicalValue) -> np.ndarray:
    """Return (N, R) the ratings that a value is of, -1 where there is none."""
    return np.asarray(inputs(golden.set_name)[golden.params["ratings"]])


def of_ratings(ratings: np.ndarray) -> rw.Labels:
    """Return them as labels, without cases that nobody rated."""
    return rw.Labels.from_ratings(
        ratings[(ratings >= 0).any(axis=1)], num_classes=int(ratings.max()) + 1
    )


def against_rest(golden: ClinicalValue) -> tuple[np.ndarray, rw.Labels]:
    """Return probabilities and labels of one class against the rest."""
    k, labels = golden.params["positive"], golden.labels
    mine, every = labels.counts[:, k], labels.num_raters
    p = golden.probs[:, k]
    return np.stack((1 - p, p), axis=1), rw.Labels.from_counts(np.stack((every - mine, mine), 1))


@pytest.mark.parametrize(("repository", "scale"), [(KRIPPENDORFF, "level"), (IRR, "method")])
def test_alpha_is_that_of_two_packages(repository: str, scale: str) -> None:
    """Nominal, ordinal and interval, with missing ratings."""
    for golden in rated("Krippendorff alpha", repository):
        told: Any = golden.params[scale]
        found = rw.krippendorff_alpha(of_ratings(ratings_of(golden)), scale=told)
        assert found == pytest.approx(golden.value, abs=1e-9), golden.key


def test_alpha_is_that_of_irrcac() -> None:
    """Nominal and interval, to the five digits that it prints."""
    for golden in rated("irrCAC Krippendorff alpha", IRRCAC):
        scale: Any = SCALES.get(golden.params["weights"])
        if scale is None:
            continue
        found = rw.krippendorff_alpha(of_ratings(ratings_of(golden)), scale=scale)
        assert found == pytest.approx(golden.value, abs=1.1e-5), golden.key


def test_kappa_is_that_of_statsmodels_and_irr() -> None:
    """Of cases that every rater rated, and of those with two, three … ratings."""
    every = [*rated("fleiss kappa", STATSMODELS), *rated("Fleiss kappa", IRR)]
    for golden in every:
        if golden.params.get("method", "fleiss") != "fleiss":
            continue
        ratings = ratings_of(golden)
        raters, rows = (ratings >= 0).sum(axis=1), golden.params["rows"]
        number = ratings.shape[1] if rows == "complete" else int(rows.split()[2])
        labels = of_ratings(ratings[raters == number])
        assert rw.fleiss_kappa(labels) == pytest.approx(golden.value, abs=1e-9), golden.key


def test_agreement_of_pairs_is_that_of_irrcac() -> None:
    """1 - the irreducible loss is how often two raters of a case agree, to its five digits."""
    for golden in rated("irrCAC percent agreement", IRRCAC):
        if golden.params["weights"] == "unweighted":
            apart = rw.irreducible_loss(of_ratings(ratings_of(golden)), on_single="drop")
            assert 1 - apart == pytest.approx(golden.value, abs=1.1e-5), golden.key


def test_frequencies_are_the_votes_of_crowd_kit() -> None:
    """Its fractions of a majority vote, case by case, with missing ratings."""
    for golden in rated("majority vote fractions (N,K)", "Toloka/crowd-kit"):
        labels = rw.Labels.from_ratings(ratings_of(golden), golden.value.shape[1])
        np.testing.assert_allclose(labels.frequencies, golden.value, rtol=0, atol=1e-12)


def test_ranked_scores_are_those_of_scoringrules() -> None:
    """Four ordered classes, case by case and their mean."""
    for golden in values("ranked probability score per case", "frazane/scoringrules"):
        arrays = inputs(golden.set_name)
        probs, said = arrays["ord_probs"], arrays[golden.params["labels"]]
        each = [rw.ranked_probability_score(p[None], [y]) for p, y in zip(probs, said, strict=True)]
        np.testing.assert_allclose(each, golden.value, rtol=0, atol=1e-12)
        assert rw.ranked_probability_score(probs, said) == pytest.approx(golden.value.mean())


def test_proper_scores_are_scikit_learns() -> None:
    """One class against the rest and all classes; every label a row, or every case once."""
    for what, function in (("brier", rw.brier), ("log loss", rw.nll)):
        for golden in values(what, SKLEARN):
            found = function(*against_rest(golden), per=golden.told["per"])
            assert found == pytest.approx(golden.value, abs=1e-12), golden.key
        for golden in values(f"multi-class {what}", SKLEARN):
            found = function(golden.probs, golden.labels, per=golden.told["per"])
            assert found == pytest.approx(golden.value, abs=1e-12), golden.key


def test_the_brier_score_is_that_of_val_prob() -> None:
    """rms, every label a row or the first rater."""
    for golden in values("val.prob Brier", RMS):
        found = rw.brier(*against_rest(golden), per="annotation")
        assert found == pytest.approx(golden.value, abs=1e-9), golden.key


@pytest.mark.parametrize(
    ("repository", "z", "p"),
    [
        (RMS, "val.prob S:z", "val.prob S:p"),
        (CALZONE, "calzone SpiegelhalterZ score", "calzone SpiegelhalterZ p-value"),
    ],
)
def test_spiegelhalters_test_is_that_of_two_packages(repository: str, z: str, p: str) -> None:
    """Of one label per case, where repeated rows are not taken for independent ones."""
    both = zip(
        values(z, repository, rows="first"), values(p, repository, rows="first"), strict=True
    )
    for statistic, probability in both:
        probs, labels = against_rest(statistic)
        found = rw.spiegelhalter_test(probs, labels)
        assert found.statistic == pytest.approx(statistic.value, abs=1e-8), statistic.key
        assert found.p_value == pytest.approx(probability.value, abs=1e-8), probability.key


@pytest.mark.parametrize(
    ("name", "function", "question"),
    [
        ("calzone ECE-H", rw.ece, "positive"),
        ("calzone ECE-H topclass", rw.ece, "top_label"),
        ("calzone MCE-H", rw.mce, "positive"),
        ("calzone MCE-H topclass", rw.mce, "top_label"),
    ],
)
def test_binned_errors_are_calzones(name: str, function: Any, question: Any) -> None:
    """Ten bins of equal width, of the positive class and of the predicted one."""
    for golden in values(name, CALZONE):
        probs, labels = against_rest(golden)
        found = function(probs, labels, bins=10, question=question)
        assert found == pytest.approx(golden.value, abs=1e-9), golden.key
