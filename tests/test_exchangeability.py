"""The test of interchangeable raters, against enumeration, textbook statistics and simulation."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.exchangeability import ExchangeabilityTest, exchangeability_test, permutations
from raterwise.kernels import _agreement as kernels
from raterwise.kernels._threads import with_threads
from raterwise.labels import Labels

Array = NDArray[Any]

BINARY = [
    *([1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]),
    *([1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1]),
]


def simulate(cases: int, raters: int, classes: int, seed: int) -> Array:
    """Ratings (cases, raters) that are independent draws from one distribution per case."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(classes, 0.8), size=cases)
    below = rng.random((cases, raters, 1)) > probabilities.cumsum(axis=1)[:, None, :-1]
    return np.asarray(below.sum(axis=-1))


def biased(ratings: Array, rater: int, klass: int, share: float, seed: int) -> Array:
    """The same ratings, but one rater gives one class on a share of the cases come what may."""
    out = ratings.copy()
    out[np.random.default_rng(seed).random(len(out)) < share, rater] = klass
    return out


def read(
    seed: int, *, patients: int = 20, raters: int = 3, missing: float = 0.0, shift: float = 0.0
) -> tuple[Labels, Array]:
    """Two classes; each reader is strict with some patients and lax with others, by chance alone.

    Patients have 1 to 30 images. The last reader's logits are shifted.
    """
    rng = np.random.default_rng(seed)
    sizes = np.clip(np.exp(rng.normal(1.2, 1, patients)), 1, 30).astype(int)
    patient = np.repeat(np.arange(patients), sizes)
    logits = rng.normal(size=(len(patient), 1)) + 2 * rng.normal(size=(patients, raters))[patient]
    logits[:, -1] += shift
    ratings = (rng.logistic(size=logits.shape) < logits).astype(int)
    ratings[rng.random(ratings.shape) < missing] = -1
    rated = (ratings >= 0).any(axis=1)
    return Labels.from_ratings(ratings[rated], num_classes=2), patient[rated]


# The statistic ----------------------------------------------------------------------------------


def test_statistic_is_cochrans_q_for_two_classes() -> None:
    """Complete ratings of two classes: the digits of statsmodels 0.15.0 `cochrans_q`."""
    test = exchangeability_test(Labels.from_ratings(BINARY, num_classes=2), permutations=8000)
    assert test.statistic == pytest.approx(11.909090909090908, rel=1e-12)
    assert test.p_value == pytest.approx(0.0077, abs=0.005)  # its χ² approximation, df = 3
    assert (test.cases, test.divided_cases, test.patients) == (12, 10, None)


def test_statistic_is_stuart_maxwell_for_two_raters() -> None:
    """Two raters, three classes: statsmodels 0.15.0 `SquareTable(...).homogeneity()`."""
    table = np.array([[20, 10, 5], [3, 30, 15], [0, 5, 40]])
    ratings = np.repeat([(i, j) for i in range(3) for j in range(3)], table.ravel(), axis=0)
    test = exchangeability_test(Labels.from_ratings(ratings, num_classes=3), permutations=8000)
    assert test.statistic == pytest.approx(13.76470588235294, rel=1e-12)
    assert test.p_value == pytest.approx(0.001026, abs=0.0015)  # its χ² approximation, df = 2
    assert test.breaking == (0, 1)  # two raters differ from each other equally


def test_statistic_of_patients_is_that_of_their_sums() -> None:
    """Two raters, two classes: (Σ_g D_g)² / Σ_g D_g², D_g the difference of counts, by hand."""
    difference = np.array([2, 1, -1, 0, 3])  # of 3 images each, ratings below
    first = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 0, 0], [1, 1, 1]])
    second = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert ((first - second).sum(axis=1) == difference).all()
    labels = Labels.from_ratings(np.stack((first.ravel(), second.ravel()), 1), num_classes=2)
    test = exchangeability_test(labels, groups=np.repeat(list("abcde"), 3), permutations=8000)
    assert test.statistic == pytest.approx(5**2 / (difference**2).sum())
    signs = np.array(list(itertools.product((-1, 1), repeat=5)))
    exact = (np.abs(signs @ difference) >= 5).mean()  # swapping the two readers of a patient
    assert test.p_value == pytest.approx(exact, abs=0.02)
    assert (test.patients, test.uneven_patients) == (5, 0)


def test_excess_is_the_mean_difference_from_the_others() -> None:
    """By hand: 'a' says yes, yes, no where of the others ½, 0, 0 say yes; its lone label is out."""
    items = [1, 1, 1, 2, 2, 3, 3, 4]
    raters = ["a", "b", "c", "a", "b", "a", "c", "a"]
    labels = Labels.from_long(
        items, raters, [1, 1, 0, 1, 0, 0, 0, 1], num_classes=2, class_names=["no", "yes"]
    )
    for groups in (None, ["p", "p", "q", "q"]):
        test = exchangeability_test(labels, groups, permutations=99)
        a, b, c = test.raters
        assert (a.rater_id, a.ratings, b.ratings, c.ratings) == ("a", 3, 2, 2)
        assert a.excess == pytest.approx({"no": -0.5, "yes": 0.5})  # (½ + 1 + 0) / 3
        assert b.excess == pytest.approx({"no": 0.25, "yes": -0.25})  # (½ - 1) / 2
        assert c.excess == pytest.approx({"no": 0.5, "yes": -0.5})  # (-1 + 0) / 2
        assert test.cases == 3 and test.divided_cases == 2


# The permutations -------------------------------------------------------------------------------

# Three classes. Patient 0: all see both cases. 1: 0 and 1 see the same, 2 only one of them.
# 2: 0 labels its case twice. 3: 0 and 1 see one case, 2 and 3 another. 4: all say the same.
LONG = [
    *((0, 0, 0, 0), (0, 0, 1, 1), (0, 0, 2, 2), (0, 1, 0, 0), (0, 1, 1, 2), (0, 1, 2, 2)),
    *((1, 2, 0, 0), (1, 2, 1, 1), (1, 2, 2, 1), (1, 3, 0, 0), (1, 3, 1, 0)),
    *((2, 4, 0, 0), (2, 4, 0, 1), (2, 4, 1, 2), (2, 4, 2, 2)),
    *((3, 5, 0, 1), (3, 5, 1, 0), (3, 6, 2, 0), (3, 6, 3, 2)),
    *((4, 7, 0, 1), (4, 7, 3, 1), (0, 8, 2, 0), (0, 8, 3, 0), (2, 9, 3, 0), (2, 9, 0, 1)),
]


def naive_deviations(rows: list[tuple[int, int, int, int]]) -> dict[tuple[int, int], Array]:
    """Sum, for each (patient, rater), own label minus the share among the others, by the words."""
    found: dict[tuple[int, int], Array] = defaultdict(lambda: np.zeros(3))
    for patient, case, rater, label in rows:
        others = [said for _, c, r, said in rows if c == case and r != rater]
        share = np.bincount(others, minlength=3) / len(others)
        found[patient, rater] += np.eye(3)[label] - share
    return found


def naive_trades(rows: list[tuple[int, int, int, int]]) -> dict[int, list[Array]]:
    """Every way the deviations (4, 3) of each patient may come out, by the words of the docs."""
    deviations, ways = naive_deviations(rows), {}
    for patient in sorted({row[0] for row in rows}):
        seen: dict[int, Counter[int]] = defaultdict(Counter)
        for p, case, rater, _ in rows:
            if p == patient:
                seen[rater][case] += 1
        pools: list[list[int]] = []
        for rater, cases in seen.items():
            same = next((pool for pool in pools if seen[pool[0]] == cases), None)
            pools.append([rater]) if same is None else same.append(rater)
        raters_of = {c: {r for _, d, r, _ in rows if d == c} for q, c, *_ in rows if q == patient}
        closed = [all(raters_of[c] == set(pool) for c in seen[pool[0]]) for pool in pools]
        ways[patient] = []
        for orders in itertools.product(*[itertools.permutations(pool) for pool in pools]):
            for sign in (1, -1) if not all(closed) else (1,):
                table = np.zeros((4, 3))
                for pool, order, whole in zip(pools, orders, closed, strict=True):
                    for place, taken in zip(pool, order, strict=True):
                        table[place] = (1 if whole else sign) * deviations[patient, taken]
                ways[patient].append(table)
    return ways


def test_moments_and_p_values_of_every_permutation() -> None:
    """Against all permutations, enumerated by hand: mean, covariance, degrees and p-values."""
    ways = naive_trades(LONG)
    every = np.array([sum(tables) for tables in itertools.product(*ways.values())])
    np.testing.assert_allclose(every.mean(axis=0), 0, atol=1e-12)
    statistics = np.zeros(every.shape[:2])
    degrees = np.zeros(4)
    for r in range(4):
        inverse = np.linalg.pinv(np.cov(every[:, r].T, bias=True), rcond=1e-9, hermitian=True)
        statistics[:, r] = np.einsum("bi,ij,bj->b", every[:, r], inverse, every[:, r])
        degrees[r] = statistics[:, r].mean()  # E[dᵀV⁺d] is the rank of V

    patient, case, rater, label = np.transpose(LONG)
    labels = Labels.from_long(case, rater, label, num_classes=3, duplicates="keep")
    groups = [int(patient[case == c][0]) for c in labels.case_ids or ()]
    comparison = permutations.compare_raters(case, rater, label, patient, 4, 3)
    np.testing.assert_allclose(comparison.rank, degrees)

    observed = sum(
        np.array([naive_deviations(LONG).get((p, r), np.zeros(3)) for r in range(4)])
        for p in range(5)
    )
    place = int(np.flatnonzero(np.abs(every - observed).max(axis=(1, 2)) < 1e-9)[0])
    test = exchangeability_test(labels, groups, permutations=20_000)
    reached = statistics.sum(axis=1) >= statistics[place].sum() - 1e-9
    assert test.statistic == pytest.approx(statistics[place].sum() * 3 / 4)
    assert test.p_value == pytest.approx(reached.mean(), abs=0.015)
    assert (test.patients, test.uneven_patients) == (5, 3)  # 0 has a case that only 2 and 3 see
    for r, found in enumerate(test.raters):
        exact = (statistics[:, r] >= statistics[place, r] - 1e-9).mean()
        assert found.statistic == pytest.approx(statistics[place, r])
        assert found.p_value == pytest.approx(exact, abs=0.015)
        shown = np.array(list(found.excess.values())) * found.ratings
        np.testing.assert_allclose(shown, observed[r], atol=1e-12)  # what is shown is tested


def test_trades_come_in_every_order_equally_often() -> None:
    """Three blocks of one pool: each of the six orders in 1/6 of 60,000 permutations."""
    seeds = np.random.default_rng(0).integers(2**64, size=60_000, dtype=np.uint64)
    table = np.zeros((len(seeds), 3, 3))
    kernels.sum_traded_blocks(
        np.array([0, 3]), np.array([0]), np.arange(3), np.eye(3), seeds, np.empty(3, int), table
    )
    assert (table.sum(axis=1) == 1).all() and (table.sum(axis=2) == 1).all()
    orders, times = np.unique(table.argmax(axis=2), axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(times - 10_000).max() < 4 * np.sqrt(60_000 * 5 / 36)


def test_pools_that_trade_alike_may_be_traded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often each arrangement comes up has the distribution of trades pool by pool."""
    random = np.random.default_rng(30)
    ratings = random.integers(0, 3, (3000, 4))
    ratings[random.random((3000, 4)) < 0.1] = -1
    labels = Labels.from_ratings(ratings[(ratings >= 0).sum(axis=1) > 1], num_classes=3)
    held = labels.ratings
    assert held is not None
    seeds = np.random.default_rng(31).integers(2**64, size=4000, dtype=np.uint64)
    made = permutations.compare_raters(held.case, held.rater, held.label, held.case, 4, 3)
    _, often = permutations.alike_pools(made.first, made.flip, made.rater, made.deviation[:, :-1])
    assert sum(number for _, number in often) > 500
    together = made.permuted(seeds)
    monkeypatch.setattr(permutations, "MANY_ALIKE", 10**9)
    apart = made.permuted(seeds)
    for r in range(4):
        assert stats.ks_2samp(together[:, r], apart[:, r]).pvalue > 0.01
    assert together.mean(axis=0) == pytest.approx([2.0] * 4, abs=0.15)  # χ² with 2 degrees


def test_pools_of_an_uneven_patient_share_their_sign() -> None:
    """Pools 0 and 2 have one sign, 3 another, 1 none; each sign is + in half of the permutations.

    The four signs of two patients come equally often: no more than four standard deviations off.
    """
    seeds = np.random.default_rng(0).integers(2**64, size=10_000, dtype=np.uint64)
    table = np.zeros((len(seeds), 4, 1))
    flip = np.array([7, 0, 7, 8])
    kernels.sum_traded_blocks(
        np.arange(5), flip, np.arange(4), np.ones((4, 1)), seeds, np.empty(1, int), table
    )
    signs = table[:, :, 0]
    assert (signs[:, 1] == 1).all() and (signs[:, 0] == signs[:, 2]).all()
    kinds, times = np.unique(signs[:, [0, 3]], axis=0, return_counts=True)
    assert kinds.tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    assert np.abs(times - 2500).max() < 4 * np.sqrt(10_000 * 3 / 16)


def test_cases_are_patients_of_their_own() -> None:
    """Naming a different patient for each case changes nothing but their count."""
    ratings = simulate(60, 4, 3, seed=3)
    ratings[np.random.default_rng(0).random(ratings.shape) < 0.2] = -1
    labels = Labels.from_ratings(ratings[(ratings >= 0).any(axis=1)], num_classes=3)
    alone = exchangeability_test(labels, permutations=99)
    named = exchangeability_test(labels, groups=np.arange(len(labels)), permutations=99)
    assert named.raters == alone.raters and named.p_value == alone.p_value
    assert (alone.patients, named.patients) == (None, named.cases)
    assert named.uneven_patients == 0


# Size and power, simulated ----------------------------------------------------------------------


def test_type_one_error_is_nominal() -> None:
    """400 data sets of interchangeable raters, some ratings missing: 5 % ± 3.3 % are rejected."""
    rejected = named = 0
    for seed in range(400):
        ratings = simulate(25, 3, 3, seed)
        ratings[np.random.default_rng(seed).random(ratings.shape) < 0.15] = -1
        ratings = ratings[(ratings >= 0).any(axis=1)]
        test = exchangeability_test(
            Labels.from_ratings(ratings, num_classes=3), permutations=99, seed=seed
        )
        rejected += test.p_value <= 0.05
        named += bool(test.breaking)
    assert 7 <= rejected <= 33  # three standard deviations of a binomial about 20
    assert named <= rejected


def test_who_decides_between_the_others_is_not_compared() -> None:
    """300 data sets of readers alike, a third where two differ: 5 % ± 3.8 %, and 15 % with him."""
    rejected, seen = 0, 0
    for seed in range(300):
        rng = np.random.default_rng([7, seed])
        truth = 1 / (1 + np.exp(-rng.normal(-1, 1.5, 200)))
        ratings = (rng.random((200, 3)) < truth[:, None]).astype(int)
        ratings[ratings[:, 0] == ratings[:, 1], 2] = -1
        test = exchangeability_test(Labels.from_ratings(ratings, num_classes=2), permutations=99)
        rejected += test.p_value <= 0.05
        seen += test.arbiters == (2,)
    assert seen == 300 and 4 <= rejected <= 26
    assert str(test).endswith("Rater 2 seems to have been asked only where the others differ, and "
                              "is not compared.")  # fmt: skip
    again = ExchangeabilityTest.from_dict(test.to_dict())
    assert again.arbiters == ("2",) and again.raters[2].ratings == 0


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_readers_who_vary_with_the_patient_are_interchangeable(missing: float) -> None:
    """20 patients of 1 to 30 images, 300 data sets: 5 % ± 3.8 % rejected, a third by cases.

    Taking the cases of a patient for independent is the wrong method that this must tell apart.
    """
    by_patient = by_case = 0
    for seed in range(300):
        labels, patient = read(seed, missing=missing)
        settings = {"permutations": 99, "seed": seed}
        by_patient += exchangeability_test(labels, patient, **settings).p_value <= 0.05
        by_case += exchangeability_test(labels, **settings).p_value <= 0.05
    assert 4 <= by_patient <= 26  # three standard deviations of a binomial about 15
    assert by_case > 90


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_reader_who_differs_from_patient_to_patient_alike_is_found(missing: float) -> None:
    """A shift of 3 on the logit, beside a reader × patient effect of 2: found, and found first."""
    found = first = 0
    for seed in range(60):
        labels, patient = read(seed, patients=40, missing=missing, shift=3.0)
        test = exchangeability_test(labels, patient, permutations=99, seed=seed)
        found += test.p_value <= 0.05
        first += test.breaking[:1] == (2,)
    assert found >= 54
    assert first >= 50


# Which raters are named -------------------------------------------------------------------------


def test_the_raters_named_are_those_that_are_shown_to_differ() -> None:
    """Four readers at 31, 45, 52 and 53 %: the second is like the rest, the other three are not.

    Against the other three: (31 - 50), (45 - 45.3), (52 - 43), (53 - 42.7) percentage points. Once
    the first is set aside the second differs from the last two, but that is not what is shown.
    """
    cases = 2000
    ratings = np.stack([np.arange(cases) < s * cases for s in (0.31, 0.45, 0.52, 0.53)], axis=1)
    for r in range(4):  # each reader errs at random places, none more than another
        flipped = np.random.default_rng(r).permutation(cases) < 0.2 * cases
        ratings[flipped, r] = ~ratings[flipped, r]
    test = exchangeability_test(Labels.from_ratings(ratings.astype(int), num_classes=2))
    shown = [rater.largest[1] for rater in test.raters]
    assert abs(shown[1]) < 0.02 and min(abs(d) for d in (shown[0], *shown[2:])) > 0.04
    assert test.breaking[0] == 0 and set(test.breaking) == {0, 2, 3}
    assert test.raters[1].adjusted_p_value >= test.raters[1].p_value > 0.3
    assert "Rater 0 gives class 1 less often" in str(test) and "Rater 1 " not in str(test)


@settings(max_examples=60)
@given(ratings=hnp.arrays(np.int64, (12, 4), elements=st.integers(-1, 2)), seed=st.integers(0, 9))
def test_no_adjusted_p_value_is_below_its_own_or_that_of_the_panel(
    ratings: Array, seed: int
) -> None:
    """Whatever the ratings and patients; and the order of adjusted values is that of the raw."""
    ratings[0] = [0, 1, 1, 2]
    ratings[(ratings < 0).all(axis=1), 0] = 0
    groups = np.random.default_rng(seed).integers(5, size=12)
    labels = Labels.from_ratings(ratings, num_classes=3)
    test = exchangeability_test(labels, groups, significance=0.2, permutations=39, seed=seed)
    for rater in test.raters:
        assert rater.adjusted_p_value >= max(rater.p_value, test.p_value)
        assert rater.breaks == (rater.adjusted_p_value <= 0.2)
    if test.p_value > 0.2:
        assert test.breaking == () and test.rest_p_value is None


def test_step_down_by_the_words_of_the_book() -> None:
    """Westfall & Young's algorithm, written as loops: successive maxima, then kept from falling."""
    rng = np.random.default_rng(0)
    permuted, observed = rng.chisquare(1, (199, 5)), rng.chisquare(1, 5) * 2
    order = sorted(range(5), key=lambda r: -observed[r])
    expected, floor = {}, 0.0
    for j, r in enumerate(order):
        reached = sum(max(row[s] for s in order[j:]) >= observed[r] for row in permuted)
        floor = max(floor, (1 + reached) / 200)
        expected[r] = floor
    adjusted = permutations.step_down(permuted, observed)
    np.testing.assert_allclose(adjusted, [expected[r] for r in range(5)])
    assert (adjusted >= permutations.at_least_as_large(permuted, observed)).all()


def test_a_biased_rater_is_named_first_and_the_rest_look_alike() -> None:
    """Of 40 data sets with rater 2 of 4 biased, all name rater 2 first and clear most of the rest.

    Next to the biased rater the others differ from the rest the other way, by a third of it.
    """
    alike = 0
    for seed in range(40):
        ratings = biased(simulate(600, 4, 3, seed), 2, klass=1, share=0.3, seed=seed + 1000)
        test = exchangeability_test(
            Labels.from_ratings(ratings, num_classes=3), permutations=199, seed=seed
        )
        assert test.p_value == pytest.approx(1 / 200)
        assert test.breaking[0] == 2
        assert test.rest_p_value is not None
        alike += test.rest_p_value > 0.05
    assert alike >= 33  # 38 expected: 5 % of interchangeable panels are rejected


def test_two_experts_with_different_policies() -> None:
    """LH appendix D.6: two fixed experts of different policy break the assumption, both named."""
    ratings = simulate(300, 2, 2, seed=5)
    ratings = biased(biased(ratings, 0, 0, 0.3, seed=6), 1, 1, 0.3, seed=7)
    test = exchangeability_test(Labels.from_ratings(ratings, num_classes=2))
    assert test.p_value == pytest.approx(1 / 2001)
    assert test.breaking == (0, 1) and test.rest_p_value is None


def test_nobody_is_left_when_the_others_share_no_case() -> None:
    """'b' and 'c' share cases with 'a' alone: without 'a' there is nothing to compare, p = 1."""
    items = np.repeat(np.arange(80), 2)
    raters = np.array([name for i in range(80) for name in ("a", "b" if i < 40 else "c")])
    classes = np.where(raters == "a", 1, 0)
    test = exchangeability_test(Labels.from_long(items, raters, classes, num_classes=2))
    assert test.breaking[0] == "a"
    assert test.rest_p_value == 1


@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.999])
def test_statistics_of_any_degrees_of_freedom_come_to_one_scale(quantile: float) -> None:
    """The χ² quantiles of 1, 2, 5 and 20 degrees land near the normal quantile, as scipy has it."""
    from scipy import stats

    degrees = np.array([1, 2, 5, 20])
    none = np.empty(0, np.int64)
    comparison = permutations.Comparison(
        none, none, none, np.empty((0, 2)), np.empty(0), degrees, none
    )
    scaled = comparison.common_scale(stats.chi2.ppf(quantile, degrees))
    np.testing.assert_allclose(scaled, stats.norm.ppf(quantile), atol=0.1)


# Laws and edges ---------------------------------------------------------------------------------


def test_order_of_raters_and_cases_does_not_matter() -> None:
    """Statistics and excess are the same; p-values agree within the noise of permutations."""
    ratings = biased(simulate(80, 4, 3, seed=3), 1, klass=0, share=0.15, seed=4)
    ratings[np.random.default_rng(0).random(ratings.shape) < 0.2] = -1
    ratings = ratings[(ratings >= 0).any(axis=1)]
    patient = np.arange(len(ratings)) // 3
    columns, rows = [2, 0, 3, 1], np.random.default_rng(1).permutation(len(ratings))
    for groups in (None, patient):
        test = exchangeability_test(Labels.from_ratings(ratings, num_classes=3), groups)
        other = exchangeability_test(
            Labels.from_ratings(ratings[rows][:, columns], num_classes=3),
            None if groups is None else groups[rows],
        )
        assert other.statistic == pytest.approx(test.statistic, rel=1e-9)
        assert other.p_value == pytest.approx(test.p_value, abs=0.05)
        for column, rater in zip(columns, other.raters, strict=True):
            same = test.raters[column]
            assert rater.statistic == pytest.approx(same.statistic, rel=1e-9)
            assert rater.excess == pytest.approx(same.excess)
            assert rater.p_value == pytest.approx(same.p_value, abs=0.06)
            assert rater.adjusted_p_value == pytest.approx(same.adjusted_p_value, abs=0.06)


def test_the_seed_decides_every_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same p-values however the permutations are split among threads."""
    labels = Labels.from_ratings(simulate(60, 3, 3, seed=8), num_classes=3)
    groups = np.arange(60) // 2
    test = exchangeability_test(labels, groups, permutations=500, seed=1)
    monkeypatch.setattr(permutations, "BATCH_PERMUTATIONS", 7)
    for threads in (1, 4):
        with with_threads(threads):
            again = exchangeability_test(labels, groups, permutations=500, seed=1)
        assert again == test
    assert exchangeability_test(labels, groups, permutations=500, seed=2) != test


def test_one_thread_is_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one setting of the library holds here: with one thread no helper takes part."""
    used, real = set(), kernels.sum_traded_blocks

    def noted(*arguments: Any) -> None:
        used.add(threading.get_ident())
        real(*arguments)

    monkeypatch.setattr(kernels, "sum_traded_blocks", noted)
    with with_threads(1):
        exchangeability_test(Labels.from_ratings(BINARY, num_classes=2))
    assert used == {threading.get_ident()}


def test_many_ties_give_p_one() -> None:
    """Raters whose differences cancel exactly have statistic 0, which every dealing reaches."""
    test = exchangeability_test(Labels.from_ratings([[0, 1], [1, 0]] * 5, num_classes=2))
    assert test.statistic == 0
    assert test.p_value == 1
    assert [r.adjusted_p_value for r in test.raters] == [1, 1]


@pytest.mark.parametrize("groups", [None, ["p", "p", "q"]])
def test_raters_who_always_agree_are_interchangeable(groups: Any) -> None:
    """No case divides them: statistic 0, p = 1, and the summary says how few cases speak."""
    labels = Labels.from_ratings([[0, 0], [1, 1], [1, 1]], num_classes=2)
    test = exchangeability_test(labels, groups)
    assert (test.statistic, test.p_value, test.breaking) == (0, 1, ())
    assert "labels differ on 0 of 3 shared cases" in str(test)


def test_patients_whose_differences_cancel_say_nothing() -> None:
    """Sevenths that cancel within each patient leave exact zeros, not rounding of one sign."""
    ratings = np.tile(np.eye(7, dtype=int), (6, 1))
    labels = Labels.from_ratings(ratings, num_classes=2)
    test = exchangeability_test(labels, groups=np.arange(42) // 7)
    assert (test.statistic, test.p_value) == (0, 1)


def test_a_rater_with_one_label_to_compare_is_not_judged() -> None:
    """Rater 2 labels one shared case and rater 3 none: p = 1, and no excess for the latter."""
    ratings = np.full((30, 4), -1)
    ratings[:, :2] = simulate(30, 2, 2, seed=9)
    ratings[0, :3] = (0, 0, 1)
    test = exchangeability_test(Labels.from_ratings(ratings, num_classes=2))
    assert [r.ratings for r in test.raters] == [30, 30, 1, 0]
    for rater in test.raters[2:]:
        assert (rater.statistic, rater.p_value, rater.adjusted_p_value) == (0, 1, 1)
    assert np.isnan(list(test.raters[3].excess.values())).all()
    assert str(test.raters[3]) == "Rater 3 shares no case with another rater."


def test_the_summary_names_rater_class_and_direction() -> None:
    """The text a person reads: verdict, p, who gives what more often, by how much, and the rest."""
    ratings = [[i % 2, (i // 2) % 2, (i // 4) % 2, 1] for i in range(40)]
    labels = Labels.from_ratings(ratings, num_classes=2, class_names=["benign", "malignant"])
    assert exchangeability_test(labels).summary().splitlines() == [
        "The raters are not interchangeable (p < 0.001; their labels differ on 35 of 40 shared "
        "cases).",
        "Rater 3 gives class 'malignant' more often than the other raters of the same 40 cases: "
        "+50.0 percentage points (adjusted p < 0.001).",
        "Without rater 3 the others look alike (p = 1).",
    ]
    calm = str(exchangeability_test(Labels.from_ratings([[0, 1], [1, 0]] * 5, num_classes=2)))
    assert calm == (
        "The raters look interchangeable (p = 1; their labels differ on 10 of 10 shared cases)."
    )


def test_the_outcome_is_frozen_and_can_be_written_down() -> None:
    """Nobody changes a p-value afterwards; files of version 0.1 call the significance level."""
    labels = Labels.from_ratings(BINARY, num_classes=2)
    test = exchangeability_test(labels, groups=np.arange(12) // 2, permutations=19)
    with pytest.raises(FrozenInstanceError):
        test.p_value = 0.0  # type: ignore[misc]
    content = test.to_dict()
    again = ExchangeabilityTest.from_dict(content)
    assert again.to_dict() == content and again.p_value == test.p_value
    old = {**content, "level": content["significance"]}
    for new in ("significance", "patients", "uneven_patients", "rest_p_value"):
        del old[new]
    assert ExchangeabilityTest.from_dict(old).significance == 0.05


def test_labels_must_be_labels_that_name_their_raters() -> None:
    """Histograms do not say who gave which label; the message says what to use instead."""
    with pytest.raises(InvalidTypeError, match=r"labels: must be Labels .* got ndarray"):
        exchangeability_test(np.array([[2, 0], [0, 2]]))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"Labels\.from_ratings or Labels\.from_long"):
        exchangeability_test(Labels.from_counts([[1, 1], [2, 0]]))
    alone = Labels.from_long([0, 0, 1], ["a", "a", "b"], [0, 1, 1], 2, duplicates="keep")
    with pytest.raises(InvalidInputError, match="at least two different raters; there is none"):
        exchangeability_test(alone)


def test_exchangeability_checks_its_arguments() -> None:
    """Too few permutations could never reach the significance; every case has a patient."""
    labels = Labels.from_ratings(BINARY, num_classes=2)
    with pytest.raises(InvalidInputError, match=r"significance 0\.05: at least 19 are needed; got"):
        exchangeability_test(labels, permutations=18)
    with pytest.raises(InvalidInputError, match=r"significance: .* both excluded; got 1"):
        exchangeability_test(labels, significance=1.0)
    with pytest.raises(InvalidInputError, match="permutations: must be at least 1; got 0"):
        exchangeability_test(labels, permutations=0)
    with pytest.raises(InvalidTypeError, match="seed: must be a whole number"):
        exchangeability_test(labels, seed=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"groups: must name the patient of each case"):
        exchangeability_test(labels, groups=[1, 2])
