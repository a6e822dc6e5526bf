"""ECE <= RMS error <= MCE of the same bins: the intervals, too, where one speaks clearly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.inference.nested import in_order

NAMES = ["ece", "rms_ce", "mce"]


def found_of(slope: float, seed: int, cases: int = 1000, **options: object) -> rw.Results:
    """Return the errors of a model whose log odds are `slope` times the true ones."""
    random = np.random.default_rng(seed)
    x = random.normal(0, 2, cases)
    said = (random.random(cases) < expit(x)).astype(int)
    return rw.evaluate(expit(slope * x), said, NAMES, resamples=200, **options)


def test_the_largest_gap_is_not_said_to_be_below_the_mean_gap() -> None:
    """Log odds twice too large: the ECE is clearly above 0, and its interval bounds the others.

    Alone the interval of MCE began at 0 in three of four such test sets.
    """
    for seed in range(5):
        ece, rms, mce = (found_of(1.75, seed)[name] for name in NAMES)
        assert ece.low > 0.02
        assert ece.low <= rms.low <= mce.low <= mce.value
        assert ece.high <= rms.high <= mce.high
        assert max(rms.p_value, mce.p_value) <= 0.05
        assert mce.low <= mce.debiased <= mce.high


def test_only_errors_of_the_same_bins_are_compared() -> None:
    """One error is about the positive class, or has other bins: its gaps are not those of MCE."""
    of_class = {"mce": {"question": "positive"}, "rms_ce": {"bins": 7}}
    for seed in range(3):
        apart = found_of(1.75, seed, options=of_class)
        together = found_of(1.75, seed)
        assert apart["ece"] == together["ece"]
        alone = []
        for name in NAMES[1:]:
            own = {name: of_class[name]}
            alone.append(rw.evaluate(*_data(seed), name, resamples=200, options=own)[name])
        assert [apart[n] for n in NAMES[1:]] == alone


def _data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(0, 2, 1000)
    said = (random.random(1000) < expit(x)).astype(int)
    return expit(1.75 * x), said


@pytest.mark.parametrize(("level", "chance"), [(0.95, 0.05), (0.6, 0.4)])
def test_p_and_intervals_stay_one_statement(level: float, chance: float) -> None:
    """Calibrated and slightly off: p is at most 1 - level exactly where 0 is excluded.

    At a fifth of 1 - level, whatever that is, the ECE speaks for the largest gap.
    """
    for seed in range(20):
        found = found_of(1.0 + 0.02 * seed, seed, 200, level=level)
        for name in NAMES:
            assert (found[name].p_value <= chance) == (found[name].low > 0)
        if found["ece"].p_value <= chance / 5:
            assert found["mce"].low >= found["ece"].low


@pytest.mark.parametrize(("p", "low", "after"), [(0.01, 0.06, 0.05), (0.0101, 0.0, 0.2)])
def test_a_smaller_error_speaks_for_a_larger_one_at_a_fifth_of_the_level(
    p: float, low: float, after: float
) -> None:
    """Five tests of 0.01 are one of 0.05: at 0.0101 the lower end stays; the upper one never does.

    The interval of MCE ended at 0.12, below that of the ECE, which cannot be.
    """
    sure = rw.Estimate("ece", 0.1, low=0.06, high=0.14, debiased=0.1, p_value=p)
    one = rw.Estimate("mce", 0.11, low=0.0, high=0.12, debiased=0.02, p_value=0.2)
    asked = {name: (CATALOG[name], CATALOG[name].options) for name in ("ece", "mce")}
    found = in_order({"ece": sure, "mce": one}, asked, 0.95)
    assert found["ece"] == sure
    assert (found["mce"].low, found["mce"].high) == (low, 0.14)
    assert found["mce"].p_value == pytest.approx(after)


def test_a_larger_error_keeps_the_stronger_test() -> None:
    """Its own p of 0.001 is smaller than five times the 0.002 of the ECE, which begins higher."""
    sure = rw.Estimate("ece", 0.1, low=0.06, high=0.14, debiased=0.1, p_value=0.002)
    one = rw.Estimate("mce", 0.3, low=0.01, high=0.5, debiased=0.2, p_value=0.001)
    asked = {name: (CATALOG[name], CATALOG[name].options) for name in ("ece", "mce")}
    found = in_order({"ece": sure, "mce": one}, asked, 0.95)["mce"]
    assert (found.low, found.p_value) == (0.06, 0.001)


def test_errors_that_are_one_by_all_but_their_last_digit() -> None:
    """Where all gaps are alike 0.1 + 0.2 may stand beside 0.3: the interval holds its value."""
    sure = rw.Estimate("ece", 0.1 + 0.2, low=0.1 + 0.2, high=0.4, debiased=0.3, p_value=0.002)
    one = rw.Estimate("mce", 0.3, low=0.2, high=0.4, debiased=0.3, p_value=0.002)
    asked = {name: (CATALOG[name], CATALOG[name].options) for name in ("ece", "mce")}
    assert sure.value > one.value
    assert in_order({"ece": sure, "mce": one}, asked, 0.95)["mce"].low == one.value
