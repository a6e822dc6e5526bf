"""Curves: tables worked by hand, intervals with the right coverage, and a trip through JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import raterwise as rw
from raterwise.curves import ReliabilityCurve, ThresholdCurve, reliability_curve, threshold_curve
from raterwise.curves.reliability import MOST_CLASSES
from raterwise.curves.smooth import wilson_interval
from raterwise.curves.tables import MOST_THRESHOLDS
from raterwise.results import Results

# Three cases, two raters. Predicted: class 0 at 0.9, class 1 at 0.8, class 0 at 0.6.
PROBS = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
COUNTS = [[2, 0], [1, 1], [0, 2]]


def test_top_label_by_hand() -> None:
    """Two bins above one half: 0.6 with no rater agreeing; 0.9 and 0.8 with three of four."""
    labels = rw.Labels.from_counts(COUNTS)
    curve = reliability_curve(PROBS, labels, bins=4, resamples=0)
    assert curve.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert curve.cases.tolist() == [0, 0, 1, 2]
    assert curve.share == pytest.approx([0, 0, 1 / 3, 2 / 3])
    assert curve.predicted[2:] == pytest.approx([0.6, 0.85])
    assert curve.observed[2:] == pytest.approx([0, 0.75])
    assert np.isnan(curve.predicted[:2]).all() and np.isnan(curve.low).all()
    assert curve.gap == pytest.approx((0.9 + 0.8 + 0.6) / 3 - 3 / 6)


def test_a_class_and_disagreement_by_hand() -> None:
    """Class 1's probability in one bin; disagreement predicted as 1 - Σ p², seen in one case."""
    labels = rw.Labels.from_counts(COUNTS)
    named = reliability_curve(
        PROBS, labels, "per_class", 1, of_class=1, class_names=["benign", "<b>"], resamples=0
    )
    assert named.name == "<b>"
    assert (named.predicted[0], named.observed[0]) == pytest.approx((1.3 / 3, 3 / 6))
    differ = reliability_curve(PROBS, labels, "disagreement", 1, resamples=0)
    assert differ.predicted[0] == pytest.approx((0.18 + 0.32 + 0.48) / 3)
    assert differ.observed[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("hits", [0, 1, 7, 20])
def test_the_interval_is_wilsons(hits: int) -> None:
    """The formula agrees with SciPy's Wilson interval."""
    low, high = wilson_interval(np.array([hits / 20]), np.array([20.0]), 0.9)
    known = stats.binomtest(hits, 20).proportion_ci(0.9, method="wilson")
    assert (low[0], high[0]) == pytest.approx((known.low, known.high), abs=1e-12)


def test_raters_who_always_agree_are_one_rater() -> None:
    """Three copies of every label tell no more than one, and make the interval no shorter."""
    random = np.random.default_rng(0)
    p = random.uniform(0.5, 1, 300)
    y = (random.random(300) < p).astype(int)
    once = reliability_curve(p, y, bins=5)
    thrice = reliability_curve(
        p, rw.Labels.from_ratings(np.stack([y] * 3, 1), num_classes=2), bins=5
    )
    seen = once.cases > 0
    assert thrice.low[seen] == pytest.approx(once.low[seen])
    assert thrice.high[seen] == pytest.approx(once.high[seen])


@pytest.mark.parametrize("raters", [1, 3])
def test_intervals_cover_the_truth(raters: int) -> None:
    """Patients of four cases, of whom two share their outcome: 95 % intervals cover about 95 %.

    The truth of a bin is its mean probability, since the simulated model is calibrated.
    """
    random = np.random.default_rng(raters)
    covered = total = 0
    for _ in range(120):
        p = np.repeat(random.uniform(0.5, 1, 75), 4)
        rate = np.where(random.random(300) < 0.5, (random.random(300) < p) * 1.0, p)
        rate[1::4] = rate[::4]
        ratings = (random.random((300, raters)) < rate[:, None]).astype(int)
        labels = rw.Labels.from_ratings(ratings, num_classes=2)
        patients = np.repeat(np.arange(75), 4)
        curve = reliability_curve(p, labels, "positive", 10, groups=patients, resamples=200)
        seen = curve.cases >= 8
        inside = (curve.low <= curve.predicted) & (curve.predicted <= curve.high)
        covered, total = covered + int(inside[seen].sum()), total + int(seen.sum())
    assert 0.92 <= covered / total <= 0.985


def test_the_gap_has_an_interval_that_sees_over_confidence() -> None:
    """A model that says 90 % and is right 70 % of the time has a gap of 0.2, clear of 0."""
    y = np.r_[np.ones(140, int), np.zeros(60, int)]
    curve = reliability_curve(np.full(200, 0.9), y)
    assert curve.gap == pytest.approx(0.2)
    error = np.sqrt(0.7 * 0.3 / 200)
    assert curve.gap_low == pytest.approx(0.2 - 1.96 * error, abs=0.015)
    assert curve.gap_high == pytest.approx(0.2 + 1.96 * error, abs=0.015)


def test_thresholds_by_hand() -> None:
    """Confidences 0.9, 0.8, 0.6 with 2, 1 and 0 of two raters agreeing."""
    curve = threshold_curve(PROBS, rw.Labels.from_counts(COUNTS))
    assert curve.thresholds.tolist() == [np.inf, 0.9, 0.8, 0.6]
    assert curve.correct_accepts.tolist() == [0, 2, 3, 3]
    assert curve.incorrect_accepts.tolist() == [0, 0, 1, 3]
    assert curve.accepted_cases.tolist() == [0, 1, 2, 3]
    assert curve.coverage == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert curve.risk[1:] == pytest.approx([0, 0.25, 0.5])
    assert np.isnan(curve.risk[0])
    assert curve.at(0.85)["correct_accept_rate"] == pytest.approx(2 / 3)


def test_a_thinned_curve_keeps_points_of_the_whole() -> None:
    """Of ten thousand thresholds few are kept; they are exact, with both ends among them."""
    random = np.random.default_rng(1)
    p = random.uniform(0.5, 1, 10_000)
    hits = (random.random(10_000) < p).astype(int)
    thin = threshold_curve(p, hits)
    whole = rw.confidence.ccc_curve(p, hits)
    assert len(thin.thresholds) <= MOST_THRESHOLDS
    assert thin.thresholds[0] == np.inf and thin.thresholds[-1] == p.min()
    for i in (1, 50, len(thin.thresholds) - 1):
        at = thin.thresholds[i]
        assert thin.correct_accepts[i] == whole.at(at)["correct_accepts"]
        assert thin.accepted_cases[i] == (p >= at).sum()
    assert thin.area == pytest.approx(rw.confidence.auccc(p, hits), abs=1e-3)


def test_bands_cover_the_truth() -> None:
    """A calibrated model with confidences spread evenly over [½, 1] has known curves.

    Accepting from t on, a share (1 - t)/2 is wrong, of the right ones (1 - t²)/¾ are accepted and
    of the wrong ones 4(1 - t)². Each case comes twice, in one patient.
    """
    random = np.random.default_rng(8)
    at = np.array([0.1, 0.3, 0.5, 0.8])
    truth = (1 - (1 - np.sqrt(at) / 2) ** 2) / 0.75
    risks, rates = [], []
    for _ in range(80):
        p = random.uniform(0.5, 1, 150)
        ratings = (random.random((150, 2)) < p[:, None]).astype(int)
        labels = rw.Labels.from_ratings(np.repeat(ratings, 2, axis=0), num_classes=2)
        twice, patients = np.repeat(p, 2), np.repeat(np.arange(150), 2)
        curve = threshold_curve(twice, labels, groups=patients, resamples=200)
        x = 1 - curve.correct_reject_rate
        rates.append(np.interp(at, x, curve.rate_low) <= truth)
        rates.append(truth <= np.interp(at, x, curve.rate_high))
        chosen = np.searchsorted(curve.coverage, [0.2, 0.5, 0.9])
        risk = (1 - curve.thresholds[chosen]) / 2
        risks.append((curve.risk_low[chosen] <= risk) & (risk <= curve.risk_high[chosen]))
    assert 0.91 <= np.mean(risks) <= 0.99
    assert 0.95 <= np.mean(rates) <= 0.995  # of each end: half of 5 % may miss


def test_where_all_are_right_the_risk_may_still_be_above_0() -> None:
    """Resampling twenty right predictions shows no wrong one; Wilson's interval says up to 16 %."""
    curve = threshold_curve(np.full(20, 0.9), np.ones(20, int), resamples=50)
    known = stats.binomtest(0, 20).proportion_ci(0.95, method="wilson")
    assert curve.risk_low is not None and curve.risk_high is not None
    assert (curve.risk_low[-1], curve.risk_high[-1]) == pytest.approx((0, known.high))
    assert curve.rate_low is None  # without a wrong prediction there is no CCC


def test_bands_pass_through_json_and_may_be_missing() -> None:
    """A curve keeps its bands in a dictionary; one that was written before there were any has none.

    The bands hold the curve between them, and thinning keeps the points that belong together.
    """
    random = np.random.default_rng(4)
    p = random.uniform(0.5, 1, 700)
    curve = threshold_curve(p, (random.random(700) < p).astype(int), resamples=100)
    assert len(curve.thresholds) <= MOST_THRESHOLDS
    again = ThresholdCurve.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert again.rate_low == pytest.approx(curve.rate_low)
    assert again.risk_high == pytest.approx(curve.risk_high, nan_ok=True)
    risk = curve.risk[1:]
    assert ((curve.risk_low[1:] <= risk) & (risk <= curve.risk_high[1:])).all()
    few = curve.thinned(20)
    assert len(few.rate_high) == len(few.thresholds) <= 20
    bare = threshold_curve(p, np.ones(700, int), resamples=0)
    assert bare.risk_low is None and "risk_low" not in bare.to_dict()
    assert ThresholdCurve.from_dict(bare.to_dict()).rate_low is None


def test_results_carry_the_curves_of_what_was_asked(tmp_path: Path) -> None:
    """All metrics bring all curves, one brings its own; both survive JSON."""
    labels = rw.Labels.from_counts(COUNTS * 5)
    options = {"class_names": ["no", "yes"], "resamples": 20, "bins": 4}
    results = rw.evaluate(PROBS * 5, labels, **options)
    drawn = {"top_label", "per_class", "disagreement", "thresholds", "operating", "smooth"}
    assert set(results.curves) == drawn
    assert [curve["name"] for curve in results.curves["per_class"]] == ["no", "yes"]
    alone = reliability_curve(PROBS * 5, labels, bins=4, resamples=20)
    assert ReliabilityCurve.from_dict(results.curves["top_label"]).low == pytest.approx(
        alone.low, nan_ok=True
    )
    assert list(rw.evaluate(PROBS, [0, 1, 1], "ece,brier", resamples=0).curves) == ["top_label"]
    results.to_json(tmp_path / "results.json")
    again = Results.from_json(tmp_path / "results.json")
    assert again.curves == results.curves
    before = ThresholdCurve.from_dict(results.curves["thresholds"])
    assert before.thresholds[0] == np.inf
    assert json.loads(json.dumps(before.to_dict())) == results.curves["thresholds"]


def test_a_result_file_from_before_there_were_curves(tmp_path: Path) -> None:
    """A file without curves is read, and has none."""
    path = tmp_path / "old.json"
    rw.evaluate(PROBS, [0, 1, 1], "ece", resamples=0).to_json(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["curves"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert Results.from_json(path).curves == {}


def test_many_classes_keep_the_most_frequent() -> None:
    """Of 40 classes, those with the most labels keep a curve."""
    random = np.random.default_rng(0)
    labels = np.r_[np.arange(40), np.repeat(np.arange(MOST_CLASSES), 3)]
    probs = random.dirichlet(np.ones(40), len(labels))
    found = rw.evaluate(probs, labels, "classwise_ece", resamples=0).curves["per_class"]
    assert [curve["name"] for curve in found] == [f"class {k}" for k in range(MOST_CLASSES)]


def test_what_a_curve_refuses() -> None:
    """A class without its question, a question without its class, a class that is not there."""
    with pytest.raises(rw.InvalidInputError, match="of_class: goes with question"):
        reliability_curve(PROBS, [0, 1, 0], of_class=1)
    with pytest.raises(rw.InvalidInputError, match="of_class: goes with question"):
        reliability_curve(PROBS, [0, 1, 0], "per_class")
    with pytest.raises(rw.InvalidInputError, match="of_class: must be one of the classes 0 … 1"):
        reliability_curve(PROBS, [0, 1, 0], "per_class", of_class=2)
    with pytest.raises(rw.InvalidInputError, match="question"):
        reliability_curve(PROBS, [0, 1, 0], "weather")
