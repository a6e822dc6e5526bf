"""What a console shows of objects that hold long columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import raterwise as rw

P = np.linspace(0.01, 0.99, 400)
Y = (np.arange(400) % 3 == 0).astype(int)
VOTES = rw.Labels.from_ratings(np.c_[Y, 1 - Y, Y], num_classes=2)
MADE: dict[str, Any] = {
    "CCCCurve": rw.ccc_curve(P, Y),
    "CalibrationCurve": rw.calibration_curve(P, Y, resamples=0),
    "DecisionCurve": rw.decision_curve(P, Y, resamples=0),
    "RocCurve": rw.roc_curve(P, Y, resamples=0),
    "PrecisionRecallCurve": rw.precision_recall_curve(P, Y, resamples=0),
    "ThresholdCurve": rw.curves.threshold_curve(P, Y, resamples=0),
    "ReliabilityCurve": rw.curves.reliability_curve(P, Y, resamples=0),
    "SubsampleCurve": rw.stability.subsample_curve("brier", P, Y, repeats=3),
    "StudyPlan": rw.planning.plan("brier", P, VOTES),
    "ExchangeabilityTest": rw.exchangeability_test(VOTES),
}


@pytest.mark.parametrize("name", MADE)
def test_one_short_line(name: str) -> None:
    """It names the class, and no array is printed."""
    told = repr(MADE[name])
    assert told.startswith(f"{name}(") and told.endswith(")")
    assert len(told) < 200 and "\n" not in told and "[" not in told and "nan" not in told


def test_what_the_line_says() -> None:
    """How long the first column is, and the single values."""
    assert repr(rw.ccc_curve([0.9, 0.6, 0.2], [1, 0, 1])) == "CCCCurve(4 thresholds)"
    curve = rw.roc_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    assert repr(curve) == "RocCurve(5 thresholds, area=0.75, level=0.95)"
