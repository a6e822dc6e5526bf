"""Metrics over ranks and at a threshold against scikit-learn, pROC, survival, caret and dcurves.

Repeated rows are ``per="annotation"`` and rows weighted by 1 / n are ``per="case"``; the packages
take p >= threshold for a positive test, as we do.
"""

from __future__ import annotations

import numpy as np
import pytest

import raterwise as rw
from golden_clinical import ClinicalValue, inputs, values

SKLEARN, PROC, DCURVES = "scikit-learn/scikit-learn", "xrobin/pROC", "MSKCC-Epi-Bio/dcurves"

SAME = [
    ("auc", SKLEARN, "auroc"),
    ("auc", PROC, "auroc"),
    ("auc", "tdhock/WeightedROC", "auroc"),
    ("auc, soft labels", "cran/PRROC", "auroc"),
    ("concordance", "therneau/survival", "auroc"),
    ("average precision", SKLEARN, "average_precision"),
    ("sensitivity", SKLEARN, "sensitivity"),
    ("specificity", SKLEARN, "specificity"),
    ("ppv", SKLEARN, "ppv"),
    ("npv", SKLEARN, "npv"),
    ("f1", SKLEARN, "f1"),
    ("sensitivity", PROC, "sensitivity"),
    ("specificity", PROC, "specificity"),
    ("ppv", PROC, "ppv"),
    ("npv", PROC, "npv"),
    ("ppv at another prevalence", "topepo/caret", "ppv"),
    ("npv at another prevalence", "topepo/caret", "npv"),
    ("net benefit", DCURVES, "net_benefit"),
]
"""What a package calls it, the package, and our name."""


def is_known(golden: ClinicalValue) -> bool:
    """scikit-learn calls a share of nothing 0, pROC NaN; ours is undefined."""
    of_nothing = golden.value == 0 and golden.what in ("ppv", "npv")
    return not (np.isnan(golden.value) or of_nothing)


@pytest.mark.parametrize(("what", "repository", "name"), SAME)
def test_the_values_are_those_of_other_packages(what: str, repository: str, name: str) -> None:
    """Every set, class, threshold, prevalence and way to count that the folder has: 1e-12."""
    for golden in filter(is_known, values(what, repository)):
        mine = getattr(rw, name)(golden.probs, golden.labels, **golden.told)
        assert mine == pytest.approx(golden.value, rel=0, abs=1e-12), golden.key


def test_the_mean_over_classes_is_scikit_learns_macro_average() -> None:
    """Each class against the rest."""
    for golden in values("multi-class auc", SKLEARN, multi_class="ovr", average="macro"):
        told = {"per": golden.told["per"]}
        mine = rw.auroc(golden.probs, golden.labels, **told)
        assert mine == pytest.approx(golden.value, rel=0, abs=1e-12), golden.key


@pytest.mark.parametrize("what", ["net benefit of treating all", "net interventions avoided"])
def test_the_decision_curve_is_that_of_dcurves(what: str) -> None:
    """Treating all, and interventions avoided per case, at the prevalence of the data."""
    for golden in values(what, DCURVES):
        if "prevalence" in golden.params:
            continue
        told, t = golden.told, golden.params["threshold"]
        del told["threshold"]
        curve = rw.decision_curve(golden.probs, golden.labels, resamples=0, **told)
        i = int(np.abs(curve.thresholds - t).argmin())
        assert curve.thresholds[i] == pytest.approx(t, abs=1e-12)
        mine = curve.treat_all if "treating" in what else curve.interventions_avoided
        assert mine[i] == pytest.approx(golden.value, rel=0, abs=1e-12), golden.key


def test_the_error_of_an_auroc_is_that_of_survival() -> None:
    """The infinitesimal jackknife by patient or case: half the width of a large set's interval.

    Ours is a score interval with Student's t, so it is near, not equal.
    """
    for golden in values("concordance clustered std. error", "therneau/survival"):
        groups = None
        if golden.params["cluster"] == "patient":
            groups = inputs(golden.set_name)["patient"]
        own = {"positive": golden.params["positive"], "per": golden.told["per"]}
        found = rw.evaluate(
            golden.probs, golden.labels, "auroc", groups=groups, options={"auroc": own}
        )["auroc"]
        assert found.low is not None and found.high is not None
        error = (found.high - found.low) / 2 / 1.96
        assert error == pytest.approx(golden.value, rel=0.06), golden.key


@pytest.mark.parametrize("what", ["sensitivity", "specificity", "ppv", "npv"])
def test_the_interval_is_near_that_of_independent_cases(what: str) -> None:
    """One rater and no patients: Clopper and Pearson's (statsmodels), with Student's t for z."""
    for golden in values(f"{what} 95% interval", "statsmodels/statsmodels", method="beta"):
        told = {k: golden.params[k] for k in ("positive", "threshold")}
        found = rw.evaluate(golden.probs, golden.labels, what, options={what: told})[what]
        low, high = np.asarray(golden.value)
        if found.value is None:
            continue
        assert found.low == pytest.approx(low, abs=0.02), golden.key
        assert found.high == pytest.approx(high, abs=0.02), golden.key
