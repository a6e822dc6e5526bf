"""Weak calibration of a class's probability, and how far its smooth calibration curve is off."""

from __future__ import annotations

from typing import Any

from raterwise.catalog import common
from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import weak_calibration as recipes

CLASS: dict[str, Any] = {"positive": None, "per": "annotation", "ordered": False}
CLIPPED: dict[str, Any] = {**CLASS, "clip": None}
SMOOTH: dict[str, Any] = {**CLASS, **recipes.SMOOTHING}
ALIKE = "all labels are of one class, of this or of the others"

ROWS = (
    Metric(
        "observed_expected_ratio", "Observed / expected", "Clinical",
        "Positives seen by the raters, divided by the sum of the probabilities; 1 is right.",
        "none", "Van Calster et al. 2016",
        **recipes.of_totals(), options=CLASS, shape="ratio", bounds=common.POSITIVE,
        calibrated=1.0,
        undefined="the probability of the class is 0 in every case", in_all="two classes",
    ),
    Metric(
        "calibration_intercept", "Calibration intercept", "Clinical",
        "Calibration in the large: what to add to the log odds so that the mean is right; above 0 "
        "the probabilities are too low.",
        "none", "Cox 1958",
        **recipes.of_recalibration("intercept"), options=CLIPPED, undefined=ALIKE,
        in_all="two classes", calibrated=0.0, tags=frozenset({"log_odds"}),
    ),
    Metric(
        "calibration_slope", "Calibration slope", "Clinical",
        "What to multiply the log odds by; below 1 the probabilities are too extreme.",
        "none", "Cox 1958",
        **recipes.of_recalibration("slope"), options=CLIPPED, in_all="two classes",
        undefined="all probabilities are the same, all raters say the same, or a threshold on the "
        "probability tells every yes from every no, so that no slope is the best",
        calibrated=1.0, headline=(4, None),
    ),
    Metric(
        "ici", "Integrated calibration index", "Clinical",
        "Mean distance of the smooth calibration curve from the diagonal.",
        "lower", "Austin & Steyerberg 2019",
        **recipes.of_smooth_curve(None), options=SMOOTH, error=True, bounds=common.UNIT,
        measured_bound=True,
        in_all="two classes", curve="smooth",
    ),
    Metric(
        "e50", "E50", "Clinical",
        "Half of all cases are nearer to the smooth calibration curve than this.",
        "lower", "Austin & Steyerberg 2019",
        **recipes.of_smooth_curve(0.5), options=SMOOTH, error=True, bounds=common.UNIT,
        measured_bound=True, tags=frozenset({"quantile"}),
        in_all=False,
    ),
    Metric(
        "e90", "E90", "Clinical",
        "Nine of ten cases are nearer to the smooth calibration curve than this.",
        "lower", "Austin & Steyerberg 2019",
        **recipes.of_smooth_curve(0.9), options=SMOOTH, error=True, bounds=common.UNIT,
        measured_bound=True, tags=frozenset({"quantile"}),
        in_all=False,
    ),
)  # fmt: skip
