"""The mergeable tables: what they hold, how they add up, what they refuse."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.questions import Question, ScoredCases
from raterwise.summaries import (
    BinPlan,
    BinSums,
    KeptSample,
    SamplePlan,
    ScoreMasses,
    SortedPlan,
    facts,
)
from raterwise.summaries.cells import CellPlan, cells_of, fine_cells, fine_cells_for
from raterwise.summaries.one_pass import summarise
from strategies import Problem, ordinary, problems

CASES = Question("top_label", "case")


def summary_of(plan: BinPlan, rows: Any) -> BinSums:
    """Return the sums of one chunk."""
    table = plan.empty(rows.probs.shape[1])
    table.absorb(rows)
    return table


def rows_of(problem: Problem, start: int = 0, stop: int | None = None, **more: Any) -> Any:
    """Read cases of a problem."""
    predictions = rw.Predictions.of(problem.probs, problem.labels, **more)
    return predictions.read(start, len(problem) if stop is None else stop)


# sums over bins -------------------------------------------------------------------------------


@given(problem=problems())
def test_bin_sums_hold_the_sums_they_name(problem: Problem) -> None:
    """Each field against a loop over the cases of each class and bin."""
    weights = np.linspace(0.5, 2, len(problem))
    plan = BinPlan(Question("per_class", "case"), 4)
    table = summary_of(plan, rows_of(problem, weights=weights)).table
    raters = problem.counts.sum(axis=1)
    for k in range(problem.probs.shape[1]):
        for b in range(4):
            mine = [i for i, p in enumerate(problem.probs[:, k]) if min(int(p * 4), 3) == b]
            w = weights[mine]
            z, n = problem.probs[mine, k], raters[mine]
            mu = problem.counts[mine, k] / n
            expected = {
                "cases": len(mine),
                "weight": math.fsum(w),
                "squared_weight": math.fsum(w * w),
                "score": math.fsum(w * z),
                "positive": math.fsum(w * mu),
                "squared_gap": math.fsum(w * (mu - z) ** 2),
                "squared_positive": math.fsum(w * mu * mu),
                "within": math.fsum(w * mu * (1 - mu) / (n - 1)),
                "deviation": math.fsum(w * (mu - z)),
            }
            found = {name: getattr(table, name)[k, b] for name in expected}
            assert found == pytest.approx(expected, abs=1e-13)


@given(problem=problems(), seed=st.integers(0, 9))
def test_resampled_tables_are_tables_of_resampled_cases(problem: Problem, seed: int) -> None:
    """Multiplicities × tables per case = the table of the drawn cases, repeated."""
    cases = len(problem)
    plan = BinPlan(CASES, 5)
    predictions = rw.Predictions.of(problem.probs, problem.labels)
    summary = summarise(predictions, [plan], units=np.arange(cases), num_units=cases)[plan]
    drawn = np.random.default_rng(seed).integers(0, cases, cases)
    times = np.bincount(drawn, minlength=cases)
    stack = summary.resampled(times[None])
    expected = summary_of(plan, rows_of(problem.take(drawn))).table
    np.testing.assert_allclose(stack.sums[0], expected.sums, rtol=1e-12, atol=1e-13)


def test_a_moved_table_has_the_deviation_it_is_given() -> None:
    """`with_deviation` moves what was observed and nothing else."""
    table = summary_of(BinPlan(CASES), rows_of(ordinary(50))).table
    deviation = np.linspace(-1, 1, 15).reshape(1, 15)
    stack = table.with_deviation(np.stack((deviation, 2 * deviation)))
    np.testing.assert_allclose(stack.deviation[1], 2 * deviation)
    np.testing.assert_array_equal(stack.score[0], table.score)
    np.testing.assert_array_equal(stack.weight[1], table.weight)


def test_soft_bins_share_out_the_whole_weight() -> None:
    """A Gaussian's shares sum to 1: weight, scores and hits are those of the hard bins."""
    rows = rows_of(ordinary(100))
    soft = summary_of(BinPlan(CASES, 15, spread=0.1), rows).table
    hard = summary_of(BinPlan(CASES, 15), rows).table
    for name in ("weight", "score", "positive", "cases"):
        assert getattr(soft, name).sum() == pytest.approx(getattr(hard, name).sum())
    np.testing.assert_array_equal(soft.cases, hard.cases)
    assert (soft.weight > 0).all() and not (hard.weight > 0).all()


@pytest.mark.parametrize("score", [0.0, 1.0, 0.5])
def test_soft_bins_of_a_narrow_gaussian_are_finite(score: float) -> None:
    """σ far below a bin's width, on an edge or at an end: halves, and never 0/0."""
    mine = rw.robust_ece([score, score], [0, 1], bins=2, sigma=1e-9, question="positive")
    assert mine == pytest.approx(abs(score - 0.5))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (BinPlan(CASES, 10), "cannot add .* made for different questions"),
        (BinPlan(Question("top_label", "annotation")), "cannot add .*different questions"),
        (BinPlan(CASES, 15, least_raters=2), "cannot add .*different questions"),
        (BinPlan(CASES, spread=0.1), "cannot add .*different questions"),
    ],
)
def test_tables_of_other_plans_are_refused(other: Any, message: str) -> None:
    """Other bins, other counting, other cases, soft for hard."""
    with pytest.raises(rw.MergeError, match=message):
        BinPlan(CASES).empty(3) + other.empty(3)


def test_tables_of_other_shapes_are_refused() -> None:
    """Other numbers of classes or of resampling units."""
    plan = BinPlan(Question("per_class", "case"))
    with pytest.raises(rw.MergeError, match=r"cannot add tables of shapes .*different classes or"):
        plan.empty(3) + plan.empty(4)
    with pytest.raises(rw.MergeError, match="different classes or resampling units"):
        plan.empty(3, units=5) + plan.empty(3, units=6)


# sorted scores --------------------------------------------------------------------------------


@given(problem=problems())
def test_sorted_scores_are_distinct_and_complete(problem: Problem) -> None:
    """Increasing scores; the mass and the hits of each are those of its cases."""
    plan = SortedPlan(Question("top_label", "annotation"))
    scores = plan.empty(problem.probs.shape[1])
    scores.absorb(rows_of(problem))
    masses = scores.pooled()
    confidence, predicted = problem.probs.max(axis=1), problem.probs.argmax(axis=1)
    agree = problem.counts[np.arange(len(problem)), predicted]
    assert masses.score.tolist() == sorted(set(confidence.tolist()))
    for score, mass, hits in zip(masses.score, masses.mass, masses.hits, strict=True):
        tied = confidence == score
        assert mass == pytest.approx(problem.counts[tied].sum())
        assert hits == pytest.approx(agree[tied].sum())


def test_sorted_scores_by_unit_pool_to_the_same() -> None:
    """A score appears once per unit that has it, and pooling forgets the units."""
    score = np.array([0.5, 0.2, 0.5, 0.5])
    mass, hits = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, 1.0, 2.0])
    by_unit = ScoreMasses.of(score, mass, hits, np.array([0, 0, 1, 0]))
    assert by_unit.score.tolist() == [0.2, 0.5, 0.5]
    assert by_unit.unit is not None and by_unit.unit.tolist() == [0, 0, 1]
    assert by_unit.mass.tolist() == [2, 5, 3]
    pooled = ScoreMasses.of(by_unit.score, by_unit.mass, by_unit.hits)
    assert pooled.score.tolist() == [0.2, 0.5]
    assert pooled.mass.tolist() == [2, 8] and pooled.hits.tolist() == [0, 4]


def test_sorted_scores_of_other_questions_are_refused() -> None:
    """Another question, or another number of classes where each has its own scores."""
    one = SortedPlan(Question("top_label"))
    with pytest.raises(rw.MergeError, match="cannot add"):
        one.empty(3) + SortedPlan(Question("top_label", "case")).empty(3)
    each = SortedPlan(Question("per_class"))
    with pytest.raises(rw.MergeError, match=r"cannot add .* with 4 channels .* with 3"):
        each.empty(3) + each.empty(4)


# kept samples ---------------------------------------------------------------------------------


@given(data=st.data())
def test_a_kept_sample_does_not_depend_on_the_split(data: st.DataObject) -> None:
    """However the cases are cut up and in whatever order the parts are added."""
    problem, plan = ordinary(30), SamplePlan()
    bounds = [0, *sorted(data.draw(st.lists(st.integers(0, 30), max_size=3))), 30]
    parts = [
        KeptSample.of(plan, rows_of(problem, a, b)) for a, b in itertools.pairwise(bounds) if a < b
    ]
    merged = plan.empty(5)
    for part in data.draw(st.permutations(parts)):
        merged = merged + part
    assert merged.in_order.position.tolist() == list(range(30))
    np.testing.assert_array_equal(merged.in_order.probs, problem.probs)
    np.testing.assert_array_equal(merged.in_order.masses, problem.counts)


def test_kept_samples_of_other_classes_are_refused() -> None:
    """Another number of classes."""
    with pytest.raises(rw.MergeError, match=r"cannot add .* classes"):
        SamplePlan().empty(3) + SamplePlan().empty(4)


# the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [row.name for row in CATALOG.values() if not row.needs_belief])
def test_leaving_out_a_unit_is_the_metric_of_the_rest(name: str) -> None:
    """`without_each` and `nested` against the metric of the cases themselves, patient by patient.

    Metrics of ranks and kernels are made of cells there: few cases, so that each is its own cell.
    """
    problem, row = ordinary(24, num_classes=3), CATALOG[name]
    own = row.with_defaults({})
    unit = np.arange(24) % 6
    predictions = rw.Predictions.of(problem.probs, problem.labels)
    plan = row.plan(own)
    summary = summarise(predictions, [plan], units=unit, num_units=6)[plan]

    def of(rows: Any) -> float:
        part = predictions.take(rows)
        return summarise(part, [plan])[plan].value(row, own)[0]

    nested = [of(np.isin(unit, range(last + 1))) for last in range(6)]
    # A part is in the order of its units, not of its cases; ties aside that changes rounding alone.
    np.testing.assert_allclose(summary.nested(row, own), nested, rtol=1e-9, atol=1e-12)
    if row.exact is None and name not in ("adaptive_ece", "ece_sweep"):
        without = row.over(row.prepare(summary.by_unit(), own).without_each(1, 4), own)
        expected = [of(unit != u) for u in (1, 2, 3)]
        np.testing.assert_allclose(without, expected, rtol=1e-9, atol=1e-12)


def test_leaving_out_units_of_sorted_scores() -> None:
    """Cells of scores with their units, unit by unit: each field minus that unit's own sums."""
    problem = ordinary(40)
    plan = SortedPlan(Question("top_label"))
    predictions = rw.Predictions.of(problem.probs, problem.labels)
    unit = np.arange(40) % 5
    summary = summarise(predictions, [plan], units=unit, num_units=5)[plan]
    row = CATALOG["auccc"]
    cells = row.prepare(summary, row.with_defaults({}))
    without = cells.without_each(0, 5)
    confidence, predicted = problem.probs.max(axis=1), problem.probs.argmax(axis=1)
    raters = problem.counts.sum(axis=1)
    hits = problem.counts[np.arange(40), predicted]
    for u in range(5):
        rest = unit != u
        assert without.weight[u].sum() == pytest.approx(raters[rest].sum())
        assert without.positive[u].sum() == pytest.approx(hits[rest].sum())
        assert without.score[u].sum() == pytest.approx((raters * confidence)[rest].sum())


def test_a_thread_leaves_the_sums_of_other_units_alone() -> None:
    """Of cases of one unit nothing is written to another, not even + 0, which turns -0.0 round."""
    from raterwise.kernels._numba import FIELDS, add_single_labels

    table = np.full((2, 1, 3, FIELDS), -0.0)
    z, said = np.full((40, 1), 0.5), np.zeros(40, np.int64)
    unit, nothing = np.zeros(40, np.int64), np.empty(0, np.int64)
    add_single_labels(z, said, nothing, unit, np.linspace(0, 1, 4), table)
    assert table[0, 0, 1].tolist() == [40, 40, 40, 20, 40, 10, 40, 0]
    assert np.signbit(table[1]).all() and (table[1] == 0).all()


@pytest.mark.parametrize("rounding", [0.0, 2.0**-24])
def test_fine_cells_are_found_without_a_search(rounding: float) -> None:
    """On every edge, a float beside it, and beyond both ends: as `numpy.searchsorted` says."""
    compared = fine_cells_for(rounding)
    beside = np.nextafter(compared, -1), np.nextafter(compared, 2)
    z = np.concatenate((compared, *beside, [-0.5, 0.0, 5e-324, 1 - 2**-53, 1.0, 1.5]))
    scored = ScoredCases(z[:, None], np.ones((len(z), 1)), np.ones(len(z)), rounding=rounding)
    found = CellPlan(Question()).empty(2)
    found.take_in(scored)
    where = np.clip(np.searchsorted(compared, z, side="right") - 1, 0, len(compared) - 2)
    assert np.array_equal(found.fine[0, :, 0], np.bincount(where, minlength=len(compared) - 1))


@pytest.mark.parametrize("plan", [BinPlan, CellPlan])
@pytest.mark.parametrize("question", ["top_label", "per_class", "predicted_class"])
def test_single_labels_are_cases_of_weight_one(plan: Any, question: str) -> None:
    """The loops for one label per case add what those for weights do, unit by unit."""
    random = np.random.default_rng(3)
    probs = random.dirichlet([0.3, 0.3, 0.3], 26_000).astype(np.float32)
    probs[:6] = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    y, units = random.integers(0, 3, len(probs)), random.integers(0, 8, len(probs))
    asked = plan(Question(question, "case"))
    found, expected = (
        summarise(rw.Predictions.of(probs, y, weights=w), [asked], units=units, num_units=8)[asked]
        for w in (None, np.ones(len(probs)))
    )
    for name, array in expected.arrays().items():
        np.testing.assert_allclose(found.arrays()[name], array, rtol=1e-9, atol=1e-12)


def test_what_was_there_before_stays_in_the_cells() -> None:
    """The second chunk of single labels adds to the first: also to cells that it has nothing in."""
    random = np.random.default_rng(4)
    confidence = np.sort(random.uniform(0.5, 1, 60_000))
    p, y = np.stack((1 - confidence, confidence), axis=1), random.integers(0, 2, 60_000)
    plan = CellPlan(Question("top_label", "case"))
    found = plan.empty(2)
    for start in (0, 30_000):
        found.absorb(rw.Predictions.of(p, y).read(start, start + 30_000))
    distance = confidence - fine_cells()[cells_of(confidence)]
    occupied, first = np.unique(cells_of(confidence), return_index=True)
    for got, ufunc in ((found.lowest, np.minimum), (found.highest, np.maximum)):
        expected = ufunc.reduceat(distance, first)
        np.testing.assert_allclose(got[0, occupied], expected, atol=1e-15)
    assert found.fine[0, :, 0].sum() == 60_000


def test_how_many_patients_there_are_where_not_all_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third smallest of hashes spread evenly over 0 to 1 is 1/2: there should be 2 / (1/2)."""
    monkeypatch.setattr(facts, "MOST_PATIENTS", 3)
    smallest = np.array([1, 2, 2**63], np.uint64)
    known = facts.Patients(smallest, np.array([1, 5, 2]))
    assert (known.number, known.largest, known.shares) == (4, 5, None)
    two = facts.Patients(smallest[:2], np.array([1, 3]))
    assert two.number == 2 and two.shares is not None and two.shares.tolist() == [0.25, 0.75]
    apart = two.anonymous() + facts.Patients(smallest[1:2], np.array([7])).anonymous()
    assert (apart.number, apart.largest, apart.lists) == (3, 7, 2)
