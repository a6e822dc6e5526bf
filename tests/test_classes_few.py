"""Means over classes of which some have one or two cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import raterwise as rw

LOW, HIGH = 0.025, 0.975


def clopper_pearson(hits: int, cases: int) -> tuple[float, float]:
    """Return the interval of a proportion."""
    low = stats.beta.ppf(LOW, hits, cases - hits + 1) if hits else 0.0
    high = stats.beta.ppf(HIGH, hits + 1, cases - hits) if hits < cases else 1.0
    return float(low), float(high)


def test_a_class_of_one_case_may_be_anything_and_one_of_two_is_two_cases() -> None:
    """Found are 12 of 15, 2 of 2 and 1 of 1: Zou's lower end of the mean sensitivity by hand.

    Fifteen cases have a standard error with n - 1, and Student's t, as Korn and Graubard's has it.
    """
    said = np.repeat([0, 1, 2], [15, 2, 1])
    predicted = said.copy()
    predicted[:3] = 1
    probs = np.eye(3)[predicted] * 0.8 + 0.2 / 3
    found = rw.evaluate(probs, said, "sensitivity", resamples=20)["sensitivity"]
    share = 12 / 15
    # s² = θ (1 - θ) / (n - 1), so that n* = (n - 1) (z / t)² cases of Clopper and Pearson's.
    number = 14 * (stats.norm.ppf(HIGH) / stats.t.ppf(HIGH, 14)) ** 2
    low = stats.beta.ppf(LOW, number * share, number * (1 - share) + 1)
    below = [share - low, 1 - clopper_pearson(2, 2)[0], 1 - 0]
    assert found.value == pytest.approx((share + 1 + 1) / 3)
    assert found.low == pytest.approx(found.value - np.sqrt(np.sum(np.square(below))) / 3)


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
