"""ROC, precision-recall and decision curves: scikit-learn, definitions, pairs of raters."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as theirs

import raterwise as rw
from raterwise.curves.clinical_tables import DecisionCurve

Array = Any


def cases(number: int = 80, seed: int = 0) -> tuple[Array, Array]:
    """Return probabilities with ties and two to four raters' labels, -1 where there is none."""
    random = np.random.default_rng(seed)
    p = np.round(random.beta(1, 2, number), 2)
    ratings = (random.random((number, 4)) < p[:, None]).astype(int)
    ratings[:, 3][random.random(number) < 0.5] = -1
    ratings[:, 2][random.random(number) < 0.5] = -1
    return p, ratings


def test_the_roc_curve_is_scikit_learns() -> None:
    """Every threshold, one label per case."""
    p, ratings = cases()
    y = ratings[:, 0]
    fpr, tpr, thresholds = theirs.roc_curve(y, p, drop_intermediate=False)
    mine = rw.roc_curve(p, y, resamples=0)
    assert mine.false_positive_rate == pytest.approx(fpr, abs=1e-12)
    assert mine.sensitivity == pytest.approx(tpr, abs=1e-12)
    assert mine.thresholds.tolist() == thresholds.tolist()
    assert mine.area == pytest.approx(rw.auroc(p, y), abs=1e-12)
    assert np.isnan(mine.low).all()


def test_the_precision_recall_curve_is_scikit_learns() -> None:
    """Theirs rises in the threshold and ends in an extra point at recall 0."""
    p, ratings = cases()
    y = ratings[:, 0]
    precision, recall, thresholds = theirs.precision_recall_curve(y, p)
    mine = rw.precision_recall_curve(p, y, resamples=0)
    assert mine.precision[::-1] == pytest.approx(precision[:-1], abs=1e-12)
    assert mine.recall[::-1] == pytest.approx(recall[:-1], abs=1e-12)
    assert mine.thresholds[::-1].tolist() == thresholds.tolist()
    assert mine.average_precision == pytest.approx(theirs.average_precision_score(y, p))
    assert mine.prevalence == pytest.approx(y.mean())


def test_several_raters_are_repeated_cases() -> None:
    """A label each: the curves of the repeated table."""
    p, ratings = cases()
    labels = rw.Labels.from_ratings(ratings, 2)
    case, rater = np.nonzero(ratings >= 0)
    once = rw.roc_curve(p[case], ratings[case, rater], resamples=0)
    mine = rw.roc_curve(p, labels, resamples=0)
    assert mine.sensitivity == pytest.approx(once.sensitivity, abs=1e-12)
    assert mine.false_positive_rate == pytest.approx(once.false_positive_rate, abs=1e-12)


def test_bands_hold_their_curve_and_narrow_with_more_cases() -> None:
    """By patient: the same cases four times over as one patient each say no more.

    A band holds its curve.
    """
    p, ratings = cases(150)
    y = ratings[:, 0]
    for make, column in ((rw.roc_curve, "sensitivity"), (rw.precision_recall_curve, "precision")):
        alone = make(p, y, resamples=200)
        shown = getattr(alone, column)
        assert ((alone.low <= shown) & (shown <= alone.high)).all()
        four = np.repeat(np.arange(150), 4)
        patients = make(p[four], y[four], groups=four, resamples=200)
        loose = make(p[four], y[four], resamples=200)
        width = [np.nanmean(c.high - c.low) for c in (alone, patients, loose)]
        assert width[1] == pytest.approx(width[0], rel=0.15)
        assert width[2] < 0.7 * width[0]


def test_the_decision_curve_has_the_metrics_of_each_threshold() -> None:
    """Values and intervals of `evaluate` at that threshold."""
    p, ratings = cases()
    labels = rw.Labels.from_ratings(ratings, 2)
    patients = np.arange(len(p)) // 3
    curve = rw.decision_curve(p, labels, groups=patients)
    names = ("sensitivity", "specificity", "ppv", "npv", "net_benefit")
    for t in (0.1, 0.37, 0.6):
        found = rw.evaluate(p, labels, names, groups=patients, threshold=t)
        i = round(100 * t) - 1
        for name in names:
            band = getattr(curve.model, name)
            mine = band.value[i], band.low[i], band.high[i]
            e = found[name]
            assert mine == pytest.approx((e.value, e.low, e.high), abs=1e-9), (name, t)


def test_treating_all_and_none_by_definition() -> None:
    """Everybody is positive from 0 on: prevalence less the odds times the rest."""
    p, ratings = cases()
    y = ratings[:, 0]
    curve = rw.decision_curve(p, y, resamples=0)
    share = y.mean()
    expected = [share - (1 - share) * t / (1 - t) for t in curve.thresholds]
    assert curve.treat_all == pytest.approx(expected)
    assert not curve.treat_none.any()
    assert rw.net_benefit(np.full(len(y), 0.999), y, 0.3) == pytest.approx(curve.treat_all[29])
    saved = (curve.net_benefit - curve.treat_all) * (1 - curve.thresholds) / curve.thresholds
    assert curve.interventions_avoided == pytest.approx(saved)


def naive_raters(ratings: Array, t: float) -> dict[str, float]:
    """Each rater of a case as the test, each other rater as the truth; every case counts once."""
    sums = dict.fromkeys(("tp", "fp", "fn", "tn"), 0.0)
    cases_ = 0
    for row in ratings:
        said = [r for r in row if r >= 0]
        if len(said) < 2:
            continue
        cases_ += 1
        pairs = list(itertools.permutations(said, 2))
        for test, truth in pairs:
            kind = ("t" if test == truth else "f") + ("p" if test else "n")
            sums[kind] += 1 / len(pairs)
    tp, fp, fn, tn = (sums[k] for k in ("tp", "fp", "fn", "tn"))
    return {
        "sensitivity": tp / (tp + fn),
        "specificity": tn / (tn + fp),
        "ppv": tp / (tp + fp),
        "npv": tn / (tn + fn),
        "net_benefit": (tp - fp * t / (1 - t)) / cases_,
    }


def test_one_more_rater_is_a_loop_over_pairs_of_raters() -> None:
    """Unequal numbers of raters, some cases with one."""
    p, ratings = cases()
    ratings[::9, 1:] = -1
    curve = rw.decision_curve(p, rw.Labels.from_ratings(ratings, 2), resamples=0)
    assert curve.raters is not None
    for t in (0.05, 0.5, 0.8):
        i = round(100 * t) - 1
        assert curve.raters.at(i) == pytest.approx(naive_raters(ratings, t), abs=1e-12)


def test_without_a_second_rater_nobody_can_say() -> None:
    """One label per case: no raters on the curve."""
    assert rw.decision_curve([0.2, 0.9], [0, 1], resamples=0).raters is None


def test_several_models_and_one_class_of_three() -> None:
    """A mapping gives a curve each; `positive` names the class."""
    random = np.random.default_rng(0)
    probs = random.dirichlet(np.ones(3), 60)
    y = np.array([random.choice(3, p=row) for row in probs])
    curves = rw.decision_curve(
        {"a": probs, "b": probs[::-1]}, y, positive=2, class_names=["x", "y", "z"], resamples=0
    )
    assert list(curves) == ["a", "b"] and curves["a"].name == "z"
    assert curves["a"].at(0.4)["ppv"] == pytest.approx(rw.ppv(probs, y, 0.4, positive=2))
    assert curves["a"].treat_all == pytest.approx(curves["b"].treat_all)


def test_the_probabilities_of_each_outcome() -> None:
    """Yes and no labels by hundredths, as parts of all labels."""
    curve = rw.decision_curve([0.05, 0.05, 0.95, 1.0], [0, 1, 1, 1], resamples=0)
    assert curve.positives[[5, 95, 99]].tolist() == [0.25, 0.25, 0.25]
    assert curve.negatives[5] == 0.25 and curve.negatives.sum() == 0.25
    assert curve.prevalence == 0.75


def test_results_keep_the_curve_through_json() -> None:
    """Of two classes, `evaluate` has it, and a file gives it back."""
    p, ratings = cases()
    results = rw.evaluate(p, rw.Labels.from_ratings(ratings, 2), "auroc", resamples=20)
    again = rw.Results.from_dict(results.to_dict())
    kept = DecisionCurve.from_dict(again.curves["operating"])
    assert kept.raters is not None
    exact = rw.decision_curve(p, rw.Labels.from_ratings(ratings, 2))
    assert kept.net_benefit == pytest.approx(exact.net_benefit)
    assert kept.raters.ppv.low == pytest.approx(exact.raters.ppv.low)


def test_curves_that_cannot_be() -> None:
    """One kind of label only."""
    with pytest.raises(rw.UndefinedMetricError, match="roc_curve: undefined, no rater chose"):
        rw.roc_curve([0.2, 0.3], [0, 0])
    with pytest.raises(rw.UndefinedMetricError, match="precision_recall_curve: undefined"):
        rw.precision_recall_curve([0.2, 0.3], [0, 0])


def test_the_band_of_the_smooth_curve_by_hand() -> None:
    """Two probabilities, so that the curve is the share at each; six patients of twenty cases.

    Wilson's interval has ends with (θ - p)² = z² θ (1 - θ) / n, both of the same n: that of the
    cases divided by the design effect of the patients, with t in place of z for so few.
    """
    patients, level = 6, 0.95
    probs = np.tile([0.3] * 10 + [0.7] * 10, patients)
    groups = np.repeat(np.arange(patients), 20)
    each = [np.r_[np.arange(10) < k, np.arange(10) < k + 3] for k in (1, 2, 3, 3, 4, 5)]
    truth = np.concatenate(each).astype(int)
    curve = rw.calibration_curve(
        probs, truth, groups=groups, at=[0.3, 0.7], degree=1, span=1.0, resamples=20_000
    )
    share = np.array([truth[probs == p].mean() for p in (0.3, 0.7)])
    assert curve.observed == pytest.approx(share)
    z, t = stats.norm.ppf((1 + level) / 2), stats.t.ppf((1 + level) / 2, patients - 1)
    sums = [
        [(truth[(probs == p) & (groups == g)] - m).sum() for g in range(patients)]
        for p, m in zip((0.3, 0.7), share, strict=True)
    ]
    variance = (np.array(sums) ** 2).sum() / 60**2 * patients / (patients - 1) * (t / z) ** 2
    number = 60 / (variance / (share * (1 - share) / 60).sum())
    for end in (curve.low, curve.high):
        implied = z**2 * end * (1 - end) / (end - share) ** 2
        assert implied == pytest.approx(number, rel=0.03)
    both = [z**2 * e * (1 - e) / (e - share) ** 2 for e in (curve.low, curve.high)]
    assert both[0] == pytest.approx(both[1], rel=1e-9)


def test_the_band_of_a_roc_curve_has_its_level_on_both_sides() -> None:
    """Half of 200 positives are above every negative: a share of 1/2 ± 0.674 sqrt(1/4 / 200)."""
    probs = [0.8] * 100 + [0.2] * 200
    curve = rw.roc_curve(probs, [1] * 200 + [0] * 100, level=0.5, resamples=2000)
    reach = stats.norm.ppf(0.75) * np.sqrt(0.25 / 200)
    assert curve.sensitivity[1] == 0.5
    assert curve.low[1] == pytest.approx(0.5 - reach, abs=0.004)
    assert curve.high[1] == pytest.approx(0.5 + reach, abs=0.004)


def test_bands_of_few_positives_hold_the_true_curve() -> None:
    """Positives N(1, 1), negatives N(0, 1): the sensitivity at 1 - specificity f is known.

    Φ(1 + Φ⁻¹(f)), and precision and recall follow with the prevalence. 60 sets of 60 cases, six
    positives or so: quantiles of resampled curves held the truth in 73 and 90 % of 240 places.
    """
    random, places = np.random.default_rng(3), np.array([0.1, 0.2, 0.5, 0.8])
    f = np.linspace(0, 1, 100_001)[1:-1]
    sensitivity = stats.norm.cdf(1 + stats.norm.ppf(f))
    precision = 0.1 * sensitivity / (0.1 * sensitivity + 0.9 * f)
    truth = np.interp(places, f, sensitivity), np.interp(places, sensitivity, precision)
    held: list[list[float]] = [[], []]
    for seed in range(60):
        y = (random.random(60) < 0.1).astype(int)
        if y.sum() < 2:
            continue
        p = stats.norm.cdf(random.normal(y, 1))
        roc = rw.roc_curve(p, y, resamples=100, seed=seed)
        pr = rw.precision_recall_curve(p, y, resamples=100, seed=seed)
        for i, (x, curve) in enumerate(((roc.false_positive_rate, roc), (pr.recall, pr))):
            low, high = (np.interp(places, x, end) for end in (curve.low, curve.high))
            held[i].append(float(((low <= truth[i]) & (truth[i] <= high)).mean()))
    assert min(np.mean(one) for one in held) > 0.92


def test_the_band_of_a_smooth_curve_holds_the_curve() -> None:
    """A local polynomial leaves [0, 1] where most scores are one; its band goes along."""
    random = np.random.default_rng(4)
    p = np.where(random.random(1000) < 0.95, 0.02, random.random(1000))
    y = (random.random(1000) < np.clip(0.8 * p, 0, 1)).astype(int)
    curve = rw.calibration_curve(p, y, resamples=50)
    known = np.isfinite(curve.observed)
    assert curve.observed[known].min() < 0
    assert (curve.low <= curve.observed)[known].all()
    assert (curve.observed <= curve.high)[known].all()
