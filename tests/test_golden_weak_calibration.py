"""Weak calibration and the smooth calibration curve against R (glm, loess, survey, rms) and Python.

Repeated rows are ``per="annotation"``, rows weighted by 1 / n are ``per="case"``. R's loess counts
rows for its span whatever their weights, so that its weighted curve is another one.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from golden import FOLDER
from golden_clinical import ClinicalValue, inputs, values

R, STATSMODELS, SURVEY = "wch/r-source", "statsmodels/statsmodels", "cran/survey"
CALZONE = "DIDSR/calzone"

FITTED = [
    ("calibration slope", R, "calibration_slope"),
    ("calibration slope", STATSMODELS, "calibration_slope"),
    ("calibration slope", SURVEY, "calibration_slope"),
    ("calzone COX coef", CALZONE, "calibration_slope"),
    ("calibration in the large", R, "calibration_intercept"),
    ("calibration in the large", STATSMODELS, "calibration_intercept"),
    ("calibration in the large", SURVEY, "calibration_intercept"),
    ("calzone cox intercept, slope fixed", CALZONE, "calibration_intercept"),
]


def asked(golden: ClinicalValue) -> dict[str, Any]:
    """Return the options of a value without what is not ours."""
    return {key: golden.told[key] for key in ("positive", "per") if key in golden.told}


def is_small(golden: ClinicalValue) -> bool:
    """Where a fit at every score is a matter of moments; RATERWISE_GOLDEN has the others."""
    return len(golden.probs) <= (200 if "RATERWISE_GOLDEN" not in os.environ else 10**9)


@pytest.mark.parametrize(("what", "repository", "name"), FITTED)
def test_recalibration_is_that_of_other_packages(what: str, repository: str, name: str) -> None:
    """Every set, class and way to count that the folder has: 1e-9 (calzone stops earlier)."""
    for golden in values(what, repository):
        mine = getattr(rw, name)(golden.probs, golden.labels, **asked(golden))
        assert mine == pytest.approx(golden.value, abs=1e-6 if repository == CALZONE else 1e-9)


def test_the_slope_of_val_prob_is_ours() -> None:
    """rms::val.prob stops at eps = 0.025 in -2 log L, and prints the slope within 1e-6."""
    for golden in values("val.prob Slope", "harrelfe/rms"):
        mine = rw.calibration_slope(golden.probs, golden.labels, **asked(golden))
        assert mine == pytest.approx(golden.value, abs=1e-6), golden.key


@pytest.mark.parametrize(("what", "name"), [("ICI", "ici"), ("E50", "e50"), ("E90", "e90")])
def test_the_smooth_curve_is_that_of_loess(what: str, name: str) -> None:
    """R's loess, interpolated and direct, local lines and parabolas: 1e-12."""
    for golden in values(what, R):
        told = {key: golden.params[key] for key in ("span", "degree") if key in golden.params}
        if not told or "weights" in golden.params:  # lowess, or a span that counts rows
            continue
        told |= {"surface": golden.params.get("surface", "interpolate"), **asked(golden)}
        if told["surface"] == "direct" and not is_small(golden):
            continue
        mine = getattr(rw, name)(golden.probs, golden.labels, **told)
        assert mine == pytest.approx(golden.value, rel=0, abs=1e-12), golden.key


@pytest.mark.parametrize(("what", "name"), [("val.prob Eavg", "ici"), ("val.prob E90", "e90")])
def test_the_local_line_is_near_that_of_val_prob(what: str, name: str) -> None:
    """lowess interpolates within 1 % of the range and has a rule for crowded scores: 2e-3."""
    for golden in filter(is_small, values(what, "harrelfe/rms")):
        told = {"span": 2 / 3, "degree": 1, "surface": "direct", **asked(golden)}
        mine = getattr(rw, name)(golden.probs, golden.labels, **told)
        assert mine == pytest.approx(golden.value, abs=2e-3), golden.key


def test_local_lines_are_those_of_statsmodels() -> None:
    """lowess(frac, it=0, delta=0) at every score: 1e-9, but where k neighbours are all tied."""
    for golden in filter(is_small, values("ICI", STATSMODELS, delta=0.0)):
        span = round(golden.params["frac"] * 3) / 3 if golden.params["frac"] < 0.7 else 0.75
        told = {"span": span, "degree": 1, "surface": "direct", **asked(golden)}
        if golden.params.get("weights"):
            continue
        mine = rw.ici(golden.probs, golden.labels, **told)
        assert mine == pytest.approx(golden.value, abs=1e-9), golden.key


def test_the_curve_is_that_of_loess() -> None:
    """At 0.05, 0.1, 0.2 … 0.9, from labels of one rater and of all."""
    at = np.array([0.05, *(i / 10 for i in range(1, 10))])
    for golden in values("loess curve at 0.05,0.1,...,0.9", R):
        curve = rw.calibration_curve(
            golden.probs, golden.labels, at=at, resamples=0, **asked(golden)
        )
        assert curve.observed == pytest.approx(np.asarray(golden.value), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("calibration slope clustered std. error", "calibration_slope"),
        ("calibration in the large clustered std. error", "calibration_intercept"),
    ],
)
def test_the_error_is_the_clustered_one_of_svyglm(what: str, name: str) -> None:
    """Half an interval over Student's t is the sandwich by case or patient, within 8 %.

    Leaving out one unit at a time errs on the wide side of it.
    """
    for golden in values(what, SURVEY):
        groups = None
        if golden.params["cluster"] == "patient":
            groups = inputs(golden.set_name)["patient"]
        options = {name: asked(golden)}
        found = rw.evaluate(
            golden.probs, golden.labels, name, groups=groups, options=options, resamples=2
        )[name]
        assert found.low is not None and found.high is not None
        error = (found.high - found.low) / 2 / 1.98
        assert golden.value * 0.97 < error < golden.value * 1.08, golden.key


def test_shifted_probabilities_are_those_of_calzone() -> None:
    """Its function shifts from its argument to the mean of the labels."""
    for golden in values("shifted probabilities", CALZONE):
        p = golden.probs[:, golden.params["positive"]]
        mine = rw.shift_prevalence(p, golden.params["from"], golden.params["to"])
        assert mine == pytest.approx(np.asarray(golden.value), abs=1e-9), golden.key


PASTED = {
    # glm(y ~ qlogis(p), binomial): slope; glm(y ~ offset(qlogis(p))); loess(y ~ p), R 4.2.2
    "first": {
        "calibration_slope": 0.6596742422894473, "calibration_intercept": -0.24821924549988378,
        "ici": 0.06493927916910507, "e50": 0.06244383676153492, "e90": 0.09421671367404673,
    },
    "rows": {
        "calibration_slope": 0.7320624426856253, "calibration_intercept": 0.12980008453464034,
        "ici": 0.05409945981775313, "e50": 0.05676674011954275, "e90": 0.10505624326093026,
    },
}  # fmt: skip


@pytest.mark.parametrize("rows", PASTED)
def test_values_of_r_without_the_folder(rows: str) -> None:
    """The set K2_N200, class 1, of the first rater and of all: what R 4.2.2 printed."""
    with np.load(FOLDER / "inputs_K2_N200.npz", allow_pickle=False) as stored:
        probs, first, counts = stored["probs"], stored["labels"], stored["hist"]
    labels = rw.Labels.from_classes(first, 2) if rows == "first" else rw.Labels.from_counts(counts)
    for name, value in PASTED[rows].items():
        assert getattr(rw, name)(probs, labels) == pytest.approx(value, rel=0, abs=1e-12), name
