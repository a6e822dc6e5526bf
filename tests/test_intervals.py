"""Intervals against closed forms, another implementation, and simulations with known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, stats

import raterwise as rw
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.inference.intervals import (
    bias_corrected_interval,
    calibrated_noise,
    calibration_interval,
    percentile_interval,
)

# Normal noise without sampling error: its own quantiles.
NORMAL = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)


def absolute(table):
    """ECE: the sum of absolute deviations."""
    return np.abs(table).sum(axis=(-2, -1))


def euclidean(table):
    """RMS calibration error with equal shares."""
    return np.sqrt((table**2).sum(axis=(-2, -1)))


def cumulated(table):
    """The Kolmogorov-Smirnov calibration error."""
    return np.abs(np.cumsum(table, axis=-1)).max(axis=(-2, -1))


def inverted(cdf, probability):
    """Return the truth at which the observed value has this probability of not being exceeded."""
    if cdf(1e-12) <= probability:
        return 0.0
    return optimize.brentq(lambda truth: cdf(truth) - probability, 1e-12, 50)


# --- closed forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("observed", [0.7, 1.0, 1.9, 2.0, 2.5, 4.0, 8.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_one_cell_is_the_folded_normal_inversion(observed, sign):
    """|d| of one normal deviation follows the folded normal law, whose inversion is known."""
    sigma = 0.02
    found = calibration_interval(
        absolute, [[sign * observed * sigma]], sigma * NORMAL[:, None, None], level=0.9
    )

    def cdf(truth):
        return stats.foldnorm.cdf(observed, truth)

    assert found.low == pytest.approx(sigma * inverted(cdf, 0.95), rel=2e-3, abs=2e-5)
    assert found.high == pytest.approx(sigma * inverted(cdf, 0.05), rel=2e-3, abs=2e-5)
    assert found.debiased == pytest.approx(sigma * inverted(cdf, 0.5), rel=2e-3, abs=2e-5)


@pytest.mark.parametrize("observed", [0.0, 0.01, 0.3, 0.6])
def test_luck_does_not_lower_the_upper_end(observed):
    """Below the median of a calibrated model, `high` is the one that the median would give."""
    found = calibration_interval(absolute, [[observed]], NORMAL[:, None, None])
    median = stats.halfnorm.median()
    expected = inverted(lambda truth: stats.foldnorm.cdf(median, truth), 0.025)
    assert found.low == found.debiased == 0
    assert found.high == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("size", [3.5, 4.5, 6.0, 12.0])
def test_euclidean_norm_is_the_noncentral_chi_squared_inversion(size):
    """‖d‖² of ten equally noisy cells is noncentral χ² whatever the shape of the truth."""
    random = np.random.default_rng(1)
    noise = random.normal(size=(40_000, 1, 10))
    table = random.normal(size=(1, 10))
    table *= size / np.linalg.norm(table)
    found = calibration_interval(euclidean, table, noise)

    def cdf(truth):
        return stats.ncx2.cdf(size**2, 10, truth**2)

    # The ends are read off 40000 random draws, a standard error of which is 1.
    assert found.low == pytest.approx(inverted(cdf, 0.975), abs=0.06)
    assert found.high == pytest.approx(max(inverted(cdf, 0.025), size), abs=0.06)
    assert found.debiased == pytest.approx(inverted(cdf, 0.5), abs=0.06)


def test_far_from_zero_the_interval_is_the_normal_one():
    """Where every cell is far off, ECE is a sum of signed deviations with normal noise."""
    noise = np.random.default_rng(2).normal(0, 0.001, (20_000, 1, 5))
    table = np.array([[0.1, -0.1, 0.2, -0.05, 0.1]])
    found = calibration_interval(absolute, table, noise)
    half = 1.96 * 0.001 * np.sqrt(5)
    assert found.low == pytest.approx(0.55 - half, abs=2e-4)
    assert found.high == pytest.approx(0.55 + half, abs=2e-4)
    assert found.debiased == pytest.approx(0.55, abs=1e-4)


@pytest.mark.parametrize(("observed", "rejected"), [(1.95, False), (1.97, True)])
def test_zero_is_inside_exactly_if_calibration_is_not_rejected(observed, rejected):
    """The two-sided 5% point of the normal law, 1.96, is where `low` leaves zero."""
    found = calibration_interval(absolute, [[observed]], NORMAL[:, None, None], level=0.95)
    assert (found.low > 0) == (stats.halfnorm.cdf(observed) > 0.975)
    one_sided = calibration_interval(absolute, [[observed]], NORMAL[:, None, None], level=0.9)
    assert (one_sided.low > 0) == rejected


# --- coverage --------------------------------------------------------------------------------

TRUTHS = {
    "calibrated": np.zeros(15),
    "two bins off": np.where(np.arange(15) < 2, 5.0, 0.0) * np.where(np.arange(15) % 2, -1, 1),
    "one bin of fifteen": np.where(np.arange(15) == 7, 5.0, 0.0),
    "every bin a little off": np.where(np.arange(15) % 2, -1.0, 1.0),
    "drift": np.full(15, 0.7),
}


@pytest.mark.parametrize("norm", [absolute, euclidean, cumulated])
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
def test_interval_covers_sparse_and_diffuse_truths(norm, truth):
    """At least 92% of 95% intervals contain the truth, whatever its shape (250 data sets)."""
    random = np.random.default_rng(3)
    sigma = np.linspace(0.5, 1.5, 15)
    delta = (truth * sigma)[None]
    noise = random.normal(size=(400, 1, 15)) * sigma
    target, hits = norm(delta), 0
    for error in random.normal(size=(250, 1, 15)) * sigma:
        found = calibration_interval(norm, delta + error, noise)
        hits += found.low <= target <= found.high
    assert hits / 250 >= 0.92


def test_interval_covers_a_diffuse_truth_where_nothing_can_drift():
    """Cells that trade cases with each other have no noise in their total, hence no drift."""
    random = np.random.default_rng(12)

    def draw(number):
        cells = random.normal(size=(number, 1, 15))
        return cells - cells.mean(axis=-1, keepdims=True)

    delta = np.where(np.arange(15) % 2, -1.0, 1.0)[None]
    noise = draw(400)
    found = [calibration_interval(absolute, delta + error, noise) for error in draw(250)]
    assert np.mean([interval.low <= 15 <= interval.high for interval in found]) >= 0.92


def test_a_median_is_zero_where_most_cells_are_right():
    """Nine of fifteen cells are right and six off by twenty standard errors: the median is 0."""
    random, truth = np.random.default_rng(5), np.zeros((1, 15))
    truth[0, 9:] = 0.2

    def median(table):
        return np.median(np.abs(table), axis=-1).mean(axis=-1)

    noise = random.normal(0, 0.01, (400, 1, 15))
    seen = truth + random.normal(0, 0.01, (40, 1, 15))
    low = [calibration_interval(median, table, noise).low for table in seen]
    assert np.mean(np.array(low) == 0) >= 0.9


def test_two_raters_leave_room_above_a_lucky_value():
    """Panels AA, AB, BA and BB: with three of them a calibrated model shows 0.02, with one 0.05.

    0.01 is luck, and gets what the median calibrated model has: no less than its 0.02. Since no
    panel shows less than the median, [0, 0] was said of a debiased error.
    """
    noise = np.array([0.02, 0.02, 0.02, 0.05] * 25)[:, None, None]
    assert calibration_interval(absolute, np.array([[0.01]]), noise, value=0.0).high == 0.02


def test_percentile_interval_never_covers_perfect_calibration():
    """Why the percentile bootstrap is not used for errors: it covers the truth 0 in no data set."""
    random = np.random.default_rng(4)
    noise = random.normal(size=(500, 1, 15))
    tables = random.normal(size=(100, 1, 15))
    assert all(percentile_interval(absolute(table + noise))[0] > 0 for table in tables)
    assert np.mean([calibration_interval(absolute, t, noise).low == 0 for t in tables]) >= 0.93


def test_sparse_truth_is_not_inflated_by_the_noise_of_right_cells():
    """One cell off by 10σ among 100: the debiased error is near 10σ, the plain one near 90σ."""
    random = np.random.default_rng(5)
    noise = random.normal(size=(1000, 1, 100))
    table = random.normal(size=(1, 100))
    table[0, 0] += 10
    found = calibration_interval(absolute, table, noise)
    assert absolute(table) > 70
    assert found.low < 10 < found.high
    assert found.debiased < 40


# --- laws ------------------------------------------------------------------------------------

SMALL = st.floats(-1, 1, allow_subnormal=False)
TABLES = st.tuples(st.integers(1, 3), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.float64, shape, elements=SMALL),
        hnp.arrays(np.float64, (20, *shape), elements=SMALL),
    )
)


@settings(max_examples=80, deadline=None)
@given(TABLES, st.sampled_from([absolute, euclidean, cumulated]), st.floats(0.05, 0.99))
def test_interval_contains_its_estimate(tables, norm, level):
    """0 ≤ low ≤ value ≤ high and low ≤ debiased ≤ high, for any table, noise and level."""
    table, noise = tables
    found = calibration_interval(norm, table, noise, level)
    assert 0 <= found.low <= norm(table) <= found.high < np.inf
    assert found.low <= found.debiased <= found.high


@settings(max_examples=30, deadline=None)
@given(TABLES, st.sampled_from([absolute, euclidean, cumulated]))
def test_interval_scales_and_mirrors_with_the_data(tables, norm):
    """Another unit scales the ends; exchanging over- and underconfidence leaves them alone."""
    table, noise = tables
    plain = calibration_interval(norm, table, noise)
    scaled = calibration_interval(norm, 8 * table, 8 * noise)
    assert (scaled.low, scaled.high) == pytest.approx((8 * plain.low, 8 * plain.high), rel=1e-3)
    # Mirror a table without zeros: a zero deviation has no sign to exchange.
    if (table != 0).all() and (table.sum(axis=-1) != 0).all():
        mirrored = calibration_interval(norm, -table, -noise)
        assert (mirrored.low, mirrored.high) == pytest.approx((plain.low, plain.high), rel=1e-3)


@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays(np.float64, 30, elements=st.one_of(SMALL, st.just(np.nan))).filter(
        lambda values: not np.isnan(values).all()
    ),
    SMALL,
)
def test_bias_corrected_interval_contains_its_value(replicates, value):
    """low ≤ value ≤ high, wherever the replicates lie and whichever are NaN."""
    low, high = bias_corrected_interval(value, replicates)
    assert low <= value <= high


def test_higher_level_gives_a_wider_interval():
    """Intervals of increasing level are nested."""
    random = np.random.default_rng(6)
    noise, table = random.normal(size=(1000, 1, 15)), random.normal(0, 3, size=(1, 15))
    found = [calibration_interval(absolute, table, noise, level) for level in (0.5, 0.8, 0.95)]
    assert found[0].low > found[1].low > found[2].low
    assert found[0].high < found[1].high < found[2].high


def test_one_dimensional_table_is_one_channel():
    """(bins,) and (1, bins) are the same data."""
    random = np.random.default_rng(7)
    noise, table = random.normal(size=(200, 6)), random.normal(0, 3, size=6)
    flat = calibration_interval(lambda d: np.abs(d).sum(axis=-1), table, noise)
    assert flat == calibration_interval(absolute, table[None], noise[:, None])


# --- options ---------------------------------------------------------------------------------


def test_reported_value_is_inside_even_if_negative():
    """A debiased estimate may be negative; its interval then starts there."""
    found = calibration_interval(absolute, [[0.5]], NORMAL[:, None, None], value=-0.1)
    assert found.low == -0.1
    assert found.debiased == 0


def test_least_noise_replaces_noise_that_collapsed():
    """A cell resampled with a tenth of its noise is scaled up to the noise it has."""
    table = [[1.5]]
    noise = NORMAL[:, None, None]
    whole = calibration_interval(absolute, table, noise)
    floor = [[noise.std()]]
    rescued = calibration_interval(absolute, table, noise / 10, least_noise=floor)
    assert (rescued.low, rescued.high) == pytest.approx((whole.low, whole.high), rel=1e-3)
    assert calibration_interval(absolute, table, noise / 10).low > 1  # what happens without
    unchanged = calibration_interval(absolute, table, noise, least_noise=[[0.5]])
    assert unchanged == whole


def test_cells_without_any_noise_get_normal_noise():
    """A cell that resamples to nothing, or to rounding, has the interval of normal noise."""
    whole = calibration_interval(
        absolute, [[3.0]], NORMAL[:1000, None, None] * 0, least_noise=[[1]]
    )
    assert (whole.low, whole.high) == pytest.approx((3 - 1.96, 3 + 1.96), abs=0.02)
    rounding = np.where(np.arange(1000) == 7, 1e-17, 0.0)[:, None, None]
    assert calibration_interval(absolute, [[3.0]], rounding, least_noise=[[1]]) == whole


@pytest.mark.parametrize("cells", [2, 8, 60])
def test_cells_without_any_noise_are_independent(cells):
    """The square of k such cells' norm is χ² with k degrees of freedom: `low` leaves 0 there."""
    limit = np.sqrt(stats.chi2.ppf(0.975, cells))
    nothing, floor = np.zeros((1000, 1, cells)), np.ones((1, cells))
    for part, rejected in ((0.94, False), (1.06, True)):
        table = np.full((1, cells), part * limit / np.sqrt(cells))
        found = calibration_interval(euclidean, table, nothing, least_noise=floor)
        assert (found.low > 0) == rejected


def test_supposed_noise_does_not_lower_the_upper_end():
    """A floor of twice the noise explains the whole value; `high` stays where it was."""
    random = np.random.default_rng(11)
    noise, table = random.normal(size=(500, 1, 100)), random.normal(0, 2, size=(1, 100))
    floor = np.full((1, 100), 2.0)
    plain = calibration_interval(absolute, table, noise, value=0)  # 0: not held up by the value
    floored = calibration_interval(absolute, table, noise, value=0, least_noise=floor)
    assert plain.debiased > floored.debiased
    assert floored.high >= plain.high


def test_few_units_give_students_interval():
    """Far from zero, five units with bootstrap noise s/√5 · √(4/5) give d ± t₄ · s/√5."""
    standard_error = 0.1
    noise = standard_error * np.sqrt(4 / 5) * NORMAL
    half = stats.t.ppf(0.975, 4) * standard_error
    few = calibration_interval(absolute, [[4.0]], noise[:, None, None], units=5)
    assert (few.low, few.high) == pytest.approx((4 - half, 4 + half), abs=1e-3)
    for found in (
        percentile_interval(4 + noise, units=5),
        bias_corrected_interval(4.0, 4 + noise, units=5),
    ):
        assert found == pytest.approx((4 - half, 4 + half), abs=2e-3)


def test_calibrated_noise_is_binomial():
    """√(z̄(1−z̄)·share/N): 100 of 400 cases with z̄ = 0.2 have √(100·0.16)/400 = 0.01."""
    assert calibrated_noise(0.2, 0.25, 400) == pytest.approx(0.01)
    assert calibrated_noise(0.2, 0.25, 400, raters=4, agreement=0) == pytest.approx(0.005)
    half = calibrated_noise(0.2, 0.25, 400, raters=2, agreement=0.5)
    assert half == pytest.approx(0.01 * np.sqrt(0.75))
    np.testing.assert_array_equal(calibrated_noise([0.0, 1.0], [0.5, 0.5], 10), [0, 0])


def test_no_noise_and_no_deviation_is_the_point_zero():
    """A saturated model that is always right has error 0 for certain."""
    found = calibration_interval(absolute, np.zeros((1, 3)), np.zeros((10, 1, 3)))
    assert (found.low, found.high, found.debiased) == (0, 0, 0)


# --- ordinary metrics ------------------------------------------------------------------------


def test_percentile_interval_leaves_out_undefined_resamples():
    """The quantiles are those of the defined resamples (worked by hand on 0 … 100)."""
    replicates = np.concatenate([np.arange(101.0), [np.nan, np.nan]])
    assert percentile_interval(replicates, 0.5) == (25, 75)


def test_bias_correction_worked_by_hand():
    """30% of 0 … 1000 below the value: ends at Φ(2Φ⁻¹(0.3) ± 1.645) of the replicates."""
    found = bias_corrected_interval(300, np.arange(1001), level=0.9)
    below = (300 + 0.5) / 1001
    expected = 1000 * stats.norm.cdf(2 * stats.norm.ppf(below) + np.array([-1, 1]) * 1.6448536)
    assert found == pytest.approx(tuple(expected), rel=1e-6)


@pytest.mark.parametrize("value", [-5.0, 205.0])
def test_all_replicates_on_one_side(value):
    """The interval stays finite, reaches the value, and ends at the nearest replicates."""
    low, high = bias_corrected_interval(value, np.arange(201.0))
    assert low == (-5 if value < 0 else pytest.approx(200, abs=1))
    assert high == (pytest.approx(0, abs=1) if value < 0 else 205)


def test_constant_replicates_give_a_point():
    """Accuracy 1 in every resample: nothing to spread."""
    assert bias_corrected_interval(1.0, np.ones(10)) == (1, 1)


def test_bias_corrected_interval_covers_a_skewed_mean():
    """95% BC intervals of the mean of 60 exponentials cover it in about 93% (300 data sets)."""
    random = np.random.default_rng(10)
    drawn = random.multinomial(60, np.full(60, 1 / 60), size=500) / 60
    hits = 0
    for sample in random.exponential(size=(300, 60)):
        low, high = bias_corrected_interval(sample.mean(), drawn @ sample)
        hits += low <= 1 <= high
    assert 0.9 <= hits / 300 <= 0.98


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 1.0}, r"level: must lie between 0 and 1, both excluded; got 1\.0"),
        ({"noise": np.ones((5, 1, 3))}, r"noise: .* got \(5, 1, 3\) for deviation \(1, 2\)"),
        ({"noise": np.full((5, 1, 2), np.nan)}, r"noise: must be finite; 10 of 10 are not"),
        ({"deviation": [[0, np.inf]]}, r"deviation: must be finite; 1 of 2 are not"),
        ({"least_noise": [[1.0, -1.0]]}, r"least_noise: .* smallest -1\.0"),
        ({"least_noise": [1.0]}, r"least_noise: .* got shape \(1,\)"),
        ({"units": 1}, r"units: at least 2 are needed for an interval; got 1"),
        ({"norm": lambda d: d.sum(axis=(-2, -1))}, r"norm: must be finite .* got -1\.0"),
        ({"norm": lambda d: np.where(d[..., 0, 0] > 0, np.nan, 0)}, r"norm: .* got nan"),
        ({"norm": lambda d: np.tanh(absolute(d)) + (d.ndim == 2)}, r"norm: must grow"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    """The message names the argument, the rule and the value."""
    good = {"norm": absolute, "deviation": [[-1.0, 0.0]], "noise": np.ones((5, 1, 2))}
    with pytest.raises(InvalidInputError, match=message):
        calibration_interval(**{**good, **change})


def test_wrong_replicates_are_named():
    """No replicates, no defined replicates and an undefined value are errors."""
    with pytest.raises(InvalidInputError, match=r"replicates: must be one-dimensional.*\(0,\)"):
        percentile_interval([])
    with pytest.raises(UndefinedMetricError, match="undefined in all 3 of them"):
        percentile_interval([np.nan] * 3)
    with pytest.raises(InvalidInputError, match="value: must be finite; got nan"):
        bias_corrected_interval(np.nan, [1.0, 2.0])


# other raters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True], ids=["labels", "persons"])
@pytest.mark.parametrize("name", ["brier", "fleiss_kappa", "irreducible_loss"])
def test_intervals_over_raters_are_as_long_as_new_raters_differ(name: str, known: bool) -> None:
    """Four new raters a case, again and again: the spread of the values is what intervals show."""
    random = np.random.default_rng(0)
    truth = random.dirichlet(np.ones(3), 150)

    def asked(resamples: int) -> Any:
        ratings = np.array([random.choice(3, 4, p=p) for p in truth])
        counts = np.stack([(ratings == k).sum(axis=1) for k in range(3)], axis=1)
        labels = (
            rw.Labels.from_ratings(ratings, num_classes=3)
            if known
            else rw.Labels.from_counts(counts)
        )
        return rw.evaluate(truth, labels, name, unit="raters", resamples=resamples)[name]

    spread = np.std([asked(0).value for _ in range(150)])
    found = [asked(60) for _ in range(15)]
    # Of persons the error has three degrees of freedom, and intervals are longer for it.
    quantile = 3.18 if known else 1.96
    length = np.mean([e.high - e.low for e in found]) / (2 * quantile)
    # Leaving out one of four persons overstates the spread of what compares them in pairs.
    assert 0.75 * spread < length < 1.7 * spread
    assert all(e.low < e.value < e.high for e in found)


def test_one_rater_cannot_be_resampled() -> None:
    """One label a case, or one person, is an error that says so."""
    probs = np.full((4, 2), 0.5)
    with pytest.raises(ValueError, match=r'unit: "raters" needs several raters; every case'):
        rw.evaluate(probs, [0, 1, 1, 0], "brier", unit="raters")
    one = rw.Labels.from_long([0, 1, 2, 3], ["A"] * 4, [0, 1, 1, 0], num_classes=2)
    with pytest.raises(ValueError, match="one person rated"):
        rw.evaluate(probs, one, "brier", unit="raters")
