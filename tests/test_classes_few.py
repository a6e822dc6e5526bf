"""Means over classes of which some have one or two cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import raterwise as rw

LOW, HIGH = 0.025, 0.975


def clopper_pearson(hits: int, cases: int) -> tuple[float, float]:
    """Return the interval of a proportion."""
    low = stats.beta.ppf(LOW, hits, cases - hits + 1) if hits else 0.0
    high = stats.beta.ppf(HIGH, hits + 1, cases - hits) if hits < cases else 1.0
    return float(low), float(high)


@pytest.mark.parametrize(
    ("end", "hits", "cases"),
    [
        ("low", (12, 2, 1), (15, 2, 1)),
        ("low", (170, 40, 180), (200, 40, 200)),
        ("high", (3, 0, 0), (15, 2, 1)),
    ],
)
@pytest.mark.parametrize("absent", [0, 2])
def test_a_class_of_one_case_may_be_anything_and_one_of_two_is_two_cases(
    end: str, hits: tuple[int, ...], cases: tuple[int, ...], absent: int
) -> None:
    """Found are 12 of 15, 2 of 2 and 1 of 1: Zou's lower end of the mean sensitivity by hand.

    Fifteen cases have a standard error with n - 1, and Student's t, as Korn and Graubard's has it.
    Forty found of forty are few as well, and classes that nobody chose are not in the mean. Where
    none is found of few, it is the upper end; the other one may be that of the mean itself.
    """
    said, classes = np.repeat([0, 1, 2], cases), 3 + absent
    order = np.concatenate([np.arange(number) for number in cases])
    predicted = np.where(order < np.repeat(hits, cases), said, (said + 1) % 3)
    probs = np.eye(classes)[predicted] * 0.8 + 0.2 / classes
    labels = rw.Labels.from_classes(said, num_classes=classes)
    found = rw.evaluate(probs, labels, "sensitivity", resamples=20)["sensitivity"]
    ends = [of_share(*class_) for class_ in zip(hits, cases, strict=True)]
    shares = np.divide(hits, cases)
    off = np.sqrt(np.square(shares[:, None] - ends).sum(axis=0)) / 3
    assert found.value == pytest.approx(shares.mean())
    zou = {"low": found.value - off[0], "high": found.value + off[1]}
    assert getattr(found, end) == pytest.approx(zou[end])
    assert found.low < zou["low"] + 1e-9
    assert found.high > zou["high"] - 1e-9


def of_share(hits: int, cases: int) -> tuple[float, float]:
    """Return the interval of a class's share, all of 0 to 1 where it has a single case."""
    if cases == 1:
        return 0.0, 1.0
    if hits in (0, cases):
        return clopper_pearson(hits, cases)
    # s² = θ (1 - θ) / (n - 1), so that n* = (n - 1) (z / t)² cases of Clopper and Pearson's.
    number = (cases - 1) * (stats.norm.ppf(HIGH) / stats.t.ppf(HIGH, cases - 1)) ** 2
    yes, no = number * hits / cases, number * (1 - hits / cases)
    return float(stats.beta.ppf(LOW, yes, no + 1)), float(stats.beta.ppf(HIGH, yes + 1, no))


@pytest.mark.parametrize("classes", [2, 3])
def test_raters_who_agree_are_not_more_cases(classes: int) -> None:
    """Three raters who say the same of every case: the areas of classes are no surer for it."""
    random, said = np.random.default_rng(0), np.repeat(range(classes), [15, 6, 3][:classes])
    probs = random.dirichlet([1] * classes, len(said)) * 0.7 + np.eye(classes)[said] * 0.3
    threefold = rw.Labels.from_ratings(np.tile(said[:, None], 3), num_classes=classes)
    for per in ("case", "annotation"):
        one, three = (
            rw.evaluate(probs, labels, "auroc", resamples=20, per=per)["auroc"]
            for labels in (said, threefold)
        )
        assert [three.low, three.high] == pytest.approx([one.low, one.high])


def test_two_classes_have_the_interval_of_their_positive_one() -> None:
    """There the metric is of one class, and of no mean: 12 of 15 by Korn and Graubard's."""
    said = np.repeat([1, 0], [15, 15])
    p = np.where(np.arange(30) < 12, 0.9, 0.1)
    found = rw.evaluate(p, said, "sensitivity", resamples=20)["sensitivity"]
    number = 14 * (stats.norm.ppf(HIGH) / stats.t.ppf(HIGH, 14)) ** 2
    assert found.low == pytest.approx(stats.beta.ppf(LOW, number * 0.8, number * 0.2 + 1))


def test_means_over_rare_classes_are_covered() -> None:
    """Four classes of 60, 30, 5 and 5 in a hundred, 40 cases, a model that is calibrated.

    The truth is that of the classes that have a value, from half a million cases. With the error of
    the mean alone these were 83% (predictive value), 88% (F1), 89% (sensitivity) and 90% (average
    precision).
    """
    names = ["ppv", "sensitivity", "average_precision", "f1"]
    random, shares, threshold = np.random.default_rng(51), np.array([0.6, 0.3, 0.05, 0.05]), 0.3

    def drawn(cases: int) -> tuple[np.ndarray, np.ndarray]:
        said = random.choice(4, p=shares, size=cases)
        x = random.normal(size=(cases, 4)) + 1.5 * np.eye(4)[said]
        odds = shares * np.exp(1.5 * x)
        return odds / odds.sum(axis=1, keepdims=True), said

    probs, said = drawn(500_000)
    truth = np.array([_of_class(probs[:, k], said == k, threshold) for k in range(4)]).T
    held = []
    for _ in range(100):
        probs, said = drawn(40)
        labels = rw.Labels.from_classes(said, num_classes=4)
        found = rw.evaluate(probs, labels, names, resamples=2, threshold=threshold)
        there = np.bincount(said, minlength=4) > 0
        above = (probs >= threshold).any(axis=0)
        having = [above, there, there, there | above]
        true = [t[had].mean() for t, had in zip(truth, having, strict=True)]
        held.append([found[n].low <= t <= found[n].high for n, t in zip(names, true, strict=True)])
    assert np.mean(held, axis=0).min() >= 0.94


def _of_class(p: np.ndarray, positive: np.ndarray, threshold: float) -> list[float]:
    above = p >= threshold
    hits = float((above & positive).sum())
    order = positive[np.argsort(-p)]
    precision = np.cumsum(order) / np.arange(1, len(order) + 1)
    return [
        hits / above.sum(),
        hits / positive.sum(),
        float(precision[order].mean()),
        2 * hits / (above.sum() + positive.sum()),
    ]


def test_a_class_that_nobody_chose_may_be_as_frequent_as_expected() -> None:
    """Observed / expected of 30 cases, of classes with p = 0.6, 0.39, 0.01 and 18, 12, 0 labels.

    None of 30 is at most 1 - 0.025^(1/30), which is 11.6 times what was expected: by itself a third
    of that is in the mean. The error of the mean alone knows nothing of this class.
    """
    labels = rw.Labels.from_classes(np.repeat([0, 1], [18, 12]), num_classes=3)
    name = "observed_expected_ratio"
    found = rw.evaluate(np.tile([0.6, 0.39, 0.01], (30, 1)), labels, name, resamples=20)[name]
    assert found.value == pytest.approx((1 + 0.4 / 0.39 + 0) / 3)
    most = (1 - LOW ** (1 / 30)) / 0.01
    assert found.high >= found.value + most / 3
    assert found.high == pytest.approx(found.value + most / 3, rel=0.01)
    assert found.low < found.value < 1 < found.high


def test_the_area_of_a_class_with_one_case_is_that_of_one_positive() -> None:
    """Classes of 15, 6 and 1 cases, all ranked right: Zou's lower end of Newcombe's (method 5).

    A single positive has an interval, as it has with two classes: of 1 and 21 cases. Of the other
    classes the error, 0, is known to 21 degrees of freedom.
    """
    said = np.repeat([0, 1, 2], [15, 6, 1])
    labels = rw.Labels.from_classes(said, num_classes=3)
    found = rw.evaluate(np.eye(3)[said] * 0.7 + 0.1, labels, "auroc", resamples=20)["auroc"]
    sure, t = stats.norm.ppf(HIGH), stats.t.ppf(HIGH, 21)
    ends = [newcombe_of_one(15, 7, t), newcombe_of_one(6, 16, t), newcombe_of_one(1, 21, sure)]
    assert found.low == pytest.approx(1 - np.sqrt(np.square(1 - np.array(ends)).sum()) / 3)


def newcombe_of_one(m: int, n: int, t: float) -> float:
    """Return the lower end of an area of 1: where (1 - θ)² = t² V(θ) (Newcombe 2006, eq 6)."""
    more = (m + n) / 2 - 1

    def beyond(area: float) -> float:
        spread = 1 + more * ((1 - area) / (2 - area) + area / (1 + area))
        return (1 - area) - t**2 * area * spread / (m * n)

    return float(optimize.brentq(beyond, 0, 1))


def test_average_precisions_of_few_positives_are_too_high() -> None:
    """22 classes and 60 cases, calibrated: two or three positives each, in which AP is too high.

    With the error of the mean alone the interval held the truth in 82%, always above it.
    """
    random, name = np.random.default_rng(85_001), "average_precision"

    def drawn(cases: int) -> tuple[np.ndarray, np.ndarray]:
        odds = np.exp(2 * random.normal(size=(cases, 22)))
        probs = odds / odds.sum(axis=1, keepdims=True)
        said = (probs.cumsum(axis=1) < random.random((cases, 1))).sum(axis=1)
        return probs, np.minimum(said, 21)

    probs, said = drawn(200_000)
    truth = np.array([_of_class(probs[:, k], said == k, 0.5)[2] for k in range(22)])
    held = []
    for _ in range(120):
        probs, said = drawn(60)
        labels = rw.Labels.from_classes(said, num_classes=22)
        found = rw.evaluate(probs, labels, name, resamples=2)[name]
        true = truth[np.bincount(said, minlength=22) > 0].mean()
        held.append(found.low <= true <= found.high)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize(
    ("metric", "gaps"),
    [
        ("adaptive_ece", 0.6 + 0.3 + 0.7),
        ("ece_sweep", 0.6 + 0.3 + 0.7),
        ("ks_error", 0.6 + 0.7),
        ("kuiper_error", 0.6 + 0.7),
    ],
)
@pytest.mark.parametrize("absent", [1, 20])
def test_a_class_that_is_never_predicted_has_no_gap(
    metric: str, gaps: float, absent: int, tmp_path: Path
) -> None:
    """Predicted 0 are 0.6 (wrong) and 0.7 (right), predicted 1 is 0.7 (wrong); by hand, over 3.

    Each case has a bin; the gaps of class 0 in order are -0.6 and 0.3, which together are -0.3.
    """
    probs = np.zeros((3, 2 + absent))
    probs[:, :3] = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]]
    labels = rw.Labels.from_classes([0, 2, 1], num_classes=2 + absent)
    expected = pytest.approx(gaps / 3)
    assert getattr(rw, metric)(probs, labels, question="predicted_class") == expected
    asked = {"metrics": metric, "question": "predicted_class", "resamples": 20}
    found = rw.evaluate(probs, labels, **asked)[metric]
    assert found.value == expected
    assert found.low <= found.value <= found.high
    table = pd.DataFrame(probs, columns=[f"prob_{k}" for k in range(2 + absent)])
    table.assign(label=[0, 2, 1]).to_parquet(tmp_path / "cases.parquet")
    streamed = rw.evaluate_stream(tmp_path / "cases.parquet", label_column="label", **asked)[metric]
    assert streamed.value == expected
    assert type(streamed.bound) in (float, type(None))
