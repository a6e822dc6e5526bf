"""Metrics over ranks and at a threshold: by hand with two raters, and scikit-learn with one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy.special import expit
from sklearn import metrics as theirs

import oracle
import raterwise as rw
from raterwise.catalog import CATALOG, find
from raterwise.evaluation.request import Request, rows_of
from raterwise.questions import Event, cumulative
from raterwise.segmentation import Case
from raterwise.summaries import BinPlan, SortedPlan
from raterwise.summaries.cells import CellPlan
from raterwise.summaries.one_pass import summarise
from strategies import Problem, ordinary, same, value

AT_A_THRESHOLD = [n for n, row in CATALOG.items() if "threshold" in row.options]
OVER_RANKS = ["auroc", "average_precision"]
MINE = [*OVER_RANKS, *AT_A_THRESHOLD]

# Four cases, two raters each: 5 labels say yes and 3 say no.
PROBS = [0.9, 0.8, 0.3, 0.4]
LABELS = rw.Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)


def two_classes(cases: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities with ties and some on the thresholds, and one label per case."""
    random = np.random.default_rng(seed)
    p = np.round(random.beta(1, 3, cases), 2)
    return p, (random.random(cases) < p).astype(int)


# values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("auroc", 12.5 / 15),  # 0.9 is above all three no, twice; 0.8 above two, and a tie; 0.4 …
        ("average_precision", (2 * 1 + 1 * 3 / 4 + 2 * 5 / 6) / 5),
        ("sensitivity", 3 / 5),
        ("specificity", 2 / 3),
        ("ppv", 3 / 4),
        ("npv", 2 / 4),
        ("f1", 2 * 3 / (4 + 5)),
        ("net_benefit", (3 - 1) / 8),
    ],
)
def test_two_raters_by_hand(name: str, expected: float) -> None:
    """A case on which the raters differ is half a positive and half a negative."""
    assert getattr(rw, name)(PROBS, LABELS) == pytest.approx(expected, abs=1e-15)
    assert rw.evaluate(PROBS, LABELS, name, resamples=0)[name].value == pytest.approx(expected)


def test_cases_and_annotations_count_differently() -> None:
    """One yes of one rater, one yes and two no of three: by labels 2 of 4, by cases 2/3 of 2."""
    labels = rw.Labels.from_counts([[0, 1], [2, 1]])
    assert rw.ppv([0.9, 0.6], labels) == pytest.approx(2 / 4)
    assert rw.ppv([0.9, 0.6], labels, per="case") == pytest.approx((1 + 1 / 3) / 2)
    assert rw.net_benefit([0.9, 0.6], labels, 0.2, per="case") == pytest.approx(
        (4 / 3 - 0.25 * 2 / 3) / 2
    )


def test_net_benefit_weighs_false_alarms_by_the_odds() -> None:
    """At 0.2 a false alarm costs a quarter of a find: (5 - 3 / 4) / 8."""
    assert rw.net_benefit(PROBS, LABELS, threshold=0.2) == pytest.approx((5 - 3 / 4) / 8)


def test_another_prevalence_by_bayes_rule() -> None:
    """Sensitivity 3/5 and specificity 2/3, where one in ten is positive."""
    right, wrong = 0.1 * 3 / 5, 0.9 / 3
    assert rw.ppv(PROBS, LABELS, prevalence=0.1) == pytest.approx(right / (right + wrong))
    missed = 0.1 * 2 / 5
    assert rw.npv(PROBS, LABELS, prevalence=0.1) == pytest.approx(0.6 / (0.6 + missed))
    assert rw.net_benefit(PROBS, LABELS, prevalence=0.1) == pytest.approx(right - wrong)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_one_rater_is_scikit_learn(seed: int, weighted: bool) -> None:
    """Ties, probabilities on the threshold, weights: to 1e-12."""
    p, y = two_classes(seed=seed)
    w = np.random.default_rng(seed).uniform(0, 2, len(p)) if weighted else None
    t = 0.25
    test = p >= t
    told = {"sample_weight": w}
    tn, fp, fn, tp = theirs.confusion_matrix(y, test, **told).ravel()
    expected = {
        "auroc": theirs.roc_auc_score(y, p, **told),
        "average_precision": theirs.average_precision_score(y, p, **told),
        "sensitivity": theirs.recall_score(y, test, **told),
        "specificity": theirs.recall_score(1 - y, ~test, **told),
        "ppv": theirs.precision_score(y, test, **told),
        "npv": theirs.precision_score(1 - y, ~test, **told),
        "f1": theirs.f1_score(y, test, **told),
        "net_benefit": (tp - fp * t / (1 - t)) / (tn + fp + fn + tp),
    }
    for name, number in expected.items():
        options = {} if name in OVER_RANKS else {"threshold": t}
        mine = getattr(rw, name)(p, y, weights=w, **options)
        assert mine == pytest.approx(number, rel=0, abs=1e-12), name


def test_three_classes_are_scikit_learns_macro_average() -> None:
    """Each class against the rest, and `positive` picks one of them."""
    problem = ordinary(300, 3, raters=1)
    y = problem.first_rater
    onehot, test = np.eye(3)[y], problem.probs >= 0.4
    mine = rw.auroc(problem.probs, y)
    assert mine == pytest.approx(theirs.roc_auc_score(y, problem.probs, multi_class="ovr"))
    assert rw.f1(problem.probs, y, 0.4) == pytest.approx(
        theirs.f1_score(onehot, test, average="macro")
    )
    for k in range(3):
        each = theirs.average_precision_score(onehot[:, k], problem.probs[:, k])
        assert rw.average_precision(problem.probs, y, positive=k) == pytest.approx(each)


def test_a_class_that_nobody_chose_has_no_part_in_the_mean() -> None:
    """Two classes of three occur; the third has no positives to rank."""
    probs = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.3, 0.4, 0.3], [0.4, 0.3, 0.3]]
    y = [0, 1, 0, 1]
    each = [rw.auroc(probs, y, positive=k) for k in (0, 1)]
    assert rw.auroc(probs, y) == pytest.approx(np.mean(each))
    with pytest.raises(rw.UndefinedMetricError, match="auroc: undefined, no rater chose"):
        rw.auroc(probs, y, positive=2)


@pytest.mark.parametrize("name", MINE)
def test_ordered_classes_are_cut_at_every_class(name: str) -> None:
    """Class k or higher against the lower ones: two classes each, and the mean over k."""
    problem = ordinary(80, 4)
    labels = problem.labels
    each = []
    for k in (1, 2, 3):
        upper = problem.probs[:, k:].sum(axis=1)
        votes = problem.counts[:, k:].sum(axis=1)
        two = rw.Labels.from_counts(np.stack([problem.counts.sum(axis=1) - votes, votes], axis=1))
        expected = getattr(rw, name)(upper, two)
        mine = getattr(rw, name)(problem.probs, labels, ordered=True, positive=k)
        assert mine == pytest.approx(expected, abs=1e-12)
        each.append(expected)
    mine = getattr(rw, name)(problem.probs, labels, ordered=True)
    assert mine == pytest.approx(np.mean(each), abs=1e-12)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_sums_of_ordered_classes_are_tied_where_their_digits_are(kind: str) -> None:
    """Probabilities of ten votes: scikit-learn on whole numbers of votes, at every cut."""
    random = np.random.default_rng(3)
    tenths = random.multinomial(10, np.full(5, 0.2), 300)
    y = np.array([random.choice(5, p=t / 10) for t in tenths])
    probs = (tenths / 10).astype(kind)
    for k in (1, 2, 3):
        votes, yes = tenths[:, k:].sum(axis=1), y >= k
        told = {"ordered": True, "positive": k}
        expected = theirs.roc_auc_score(yes, votes)
        assert rw.auroc(probs, y, **told) == pytest.approx(expected, abs=1e-12)
        at_8 = (votes >= 8)[yes].mean()
        assert rw.sensitivity(probs, y, 0.8, **told) == pytest.approx(at_8, abs=1e-12)
        if kind != "float16":
            tensors = torch.from_numpy(probs), torch.from_numpy(y)
            assert rw.auroc(*tensors, **told) == pytest.approx(expected, abs=1e-12)


def test_sums_of_ordered_classes_stay_small_and_unsure() -> None:
    """What is left below a sum of nearly 1 keeps its log odds; tiny sums keep their digits."""
    rows = np.array([[1e-15, 0.4, 0.6 - 1e-15], [0.0, 0.1, 0.9], [1.0, 1e-30, 2e-30]])
    found = cumulative(rows, 0.0)
    assert found[0, 1] < 1 and found[1, 1] == 1
    assert found[2, 1:].tolist() == pytest.approx([3e-30, 2e-30], rel=1e-13, abs=0)


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("num_classes", [2, 4])
def test_the_class_keeps_its_value_whatever_its_number(name: str, num_classes: int) -> None:
    """Permuting the columns and the labels alike moves `positive` with them."""
    problem = ordinary(200, num_classes)
    order = np.random.default_rng(1).permutation(num_classes)
    renamed = Problem(problem.probs[:, order], problem.counts[:, order])
    for k in range(num_classes):
        place = int(np.flatnonzero(order == k)[0])
        assert value(name, renamed, positive=place) == same(value(name, problem, positive=k))
    if num_classes > 2:
        assert value(name, renamed) == same(value(name, problem))


@pytest.mark.parametrize("name", MINE)
def test_sums_of_both_classes_are_those_of_one(name: str) -> None:
    """Of two classes, class 0 has the specificity of class 1 as its sensitivity, and so on."""
    p, y = two_classes()
    swapped = {"sensitivity": "specificity", "specificity": "sensitivity", "ppv": "npv"}
    other = swapped.get(name)
    if other is not None:
        # A probability on the threshold tests positive for both classes: none is there.
        mine = getattr(rw, name)(p, y, 0.305, positive=1)
        assert mine == pytest.approx(getattr(rw, other)(p, y, 0.695, positive=0))
    else:
        assert getattr(rw, name)(p, y, positive=1) == getattr(rw, name)(p, y)


def test_a_probability_on_the_threshold_is_a_positive_test() -> None:
    """Also where it is 0.7 rounded to float32."""
    assert rw.sensitivity([0.7, 0.7], [1, 0], threshold=0.7) == 1.0
    single = np.array([0.7, 1 - np.float32(0.3)], np.float32)
    assert rw.specificity(single, [0, 0], threshold=0.7) == 0.0


# refusals -------------------------------------------------------------------------------------


def test_what_cannot_be_is_said() -> None:
    """The argument, the rule and the value."""
    with pytest.raises(rw.InvalidInputError, match=r"threshold: must lie between 0 and 1.*got 1"):
        rw.sensitivity(PROBS, LABELS, threshold=1)
    with pytest.raises(rw.InvalidInputError, match=r"prevalence: must lie between 0 and 1.*got 0"):
        rw.ppv(PROBS, LABELS, prevalence=0)
    with pytest.raises(rw.InvalidInputError, match=r"positive: must be one of the classes 0 … 1"):
        rw.auroc(PROBS, LABELS, positive=2)
    with pytest.raises(rw.InvalidTypeError, match="positive: must be a whole number"):
        rw.auroc(PROBS, LABELS, positive="yes")  # type: ignore[arg-type]
    with pytest.raises(rw.InvalidInputError, match="positive: must be at least 1; got 0"):
        rw.auroc(PROBS, LABELS, positive=0, ordered=True)
    with pytest.raises(rw.UndefinedMetricError, match="ppv: undefined, no case tests positive"):
        rw.ppv(PROBS, LABELS, threshold=0.95)
    with pytest.raises(rw.InvalidInputError, match="threshold: none of these metrics"):
        rw.evaluate(PROBS, LABELS, "brier", threshold=0.2)
    with pytest.raises(rw.InvalidInputError, match="no metric of clinical has an option 'sigma'"):
        rw.evaluate(PROBS, LABELS, "clinical", options={"clinical": {"sigma": 1}})
    with pytest.raises(rw.InvalidInputError, match=r"positive: must name one of the 3 classes"):
        rw.decision_curve(np.full((2, 3), 1 / 3), [0, 1])


# one evaluation -------------------------------------------------------------------------------


def test_a_group_stands_for_its_metrics_and_takes_options() -> None:
    """By name in `metrics`, and in `options`, where a metric's own come first."""
    names = [row.name for row in rows_of("brier,clinical")]
    assert names[0] == "brier" and set(MINE) <= set(names)
    request = Request.of(
        "clinical", options={"clinical": {"threshold": 0.2}, "ppv": {"threshold": 0.4}}
    )
    assert request.asked["npv"][1]["threshold"] == 0.2
    assert request.asked["ppv"][1]["threshold"] == 0.4
    found = rw.evaluate(PROBS, LABELS, MINE, threshold=0.2, resamples=0)
    assert found["net_benefit"].value == pytest.approx((5 - 3 / 4) / 8)


def cells_of(name: str, p: Any, y: Any, **options: Any) -> tuple[float, float]:
    """Return the value from fine cells, and its bound."""
    row = find(name)
    own = row.with_defaults(options)
    plan = CellPlan(row.plan(own).question)
    found, bound = summarise(rw.Predictions.of(p, y), [plan])[plan].value(row, own)
    return found, float(bound)


@pytest.mark.parametrize("name", OVER_RANKS)
def test_no_order_within_the_cells_is_beyond_the_bound(name: str) -> None:
    """Cells know how many of their cases are positive, not which: all orders, by brute force."""
    cells = [(0.5, 5, 2), (0.9, 4, 3)]
    z = np.concatenate([at + 1e-9 + 1e-8 * np.arange(n) for at, n, _ in cells])
    chosen = [list(itertools.combinations(range(n), yes)) for _, n, yes in cells]
    exact, of_cells = [], []
    for low, high in itertools.product(*chosen):
        y = np.concatenate([np.isin(np.arange(5), low), np.isin(np.arange(4), high)]).astype(int)
        exact.append(getattr(rw, name)(z, y))
        of_cells.append(cells_of(name, z, y))
    value_, bound = of_cells[0]
    assert all(other == pytest.approx((value_, bound)) for other in of_cells)
    worst = np.abs(np.array(exact) - value_).max()
    assert worst <= bound + 1e-12
    assert bound < 0.5


@pytest.mark.parametrize("name", OVER_RANKS)
def test_the_bound_holds_for_several_raters_and_classes(name: str) -> None:
    """A mean over classes has the mean of their bounds."""
    problem = ordinary(4000, 3)
    near, bound = cells_of(name, problem.probs, problem.labels)
    assert 0 < abs(near - value(name, problem)) <= bound < 2e-3


def test_the_same_from_a_stream_findings_images_and_memory(tmp_path: Path) -> None:
    """Within the bounds stated; exactly, at a threshold."""
    random = np.random.default_rng(0)
    p = np.round(random.beta(1, 1, 120), 3)
    votes = random.binomial(3, p)
    labels = rw.Labels.from_counts(np.stack((3 - votes, votes), axis=1))
    told: dict[str, Any] = {"threshold": 0.3, "resamples": 0}
    plain = rw.evaluate(p, labels, MINE, **told)
    table = {"prob_1": p, "count_0": 3 - votes, "count_1": votes}
    pq.write_table(pa.table(table), tmp_path / "t.parquet", row_group_size=40)
    masks = np.stack([votes > r for r in range(3)]).astype(int)
    others = [
        rw.evaluate_stream(tmp_path / "t.parquet", MINE, count_prefix="count_", **told),
        rw.evaluate_multilabel(
            p[:, None], votes[:, None], np.full((120, 1), 3), metrics=MINE, **told
        ),
        rw.segmentation.evaluate([Case(p, masks)], MINE, "pooled", **told),
    ]
    for found in others:
        for name in MINE:
            near, exact = found[name], plain[name].value
            assert near.value == pytest.approx(exact, abs=1e-12 + (near.bound or 0)), name
    assert "operating" in others[0].curves


def test_a_stream_of_two_classes_has_the_auroc_in_all(tmp_path: Path) -> None:
    """As `evaluate` has; of three it has not."""
    for k in (2, 3):
        problem = ordinary(60, k, raters=3)
        table = {f"prob_{c}": problem.probs[:, c] for c in range(k)}
        table |= {f"count_{c}": problem.counts[:, c] for c in range(k)}
        pq.write_table(pa.table(table), tmp_path / "t.parquet")
        found = rw.evaluate_stream(tmp_path / "t.parquet", resamples=0, count_prefix="count_")
        assert ("auroc" in found) == (k == 2)


def test_voxels_of_two_classes_go_without_histograms() -> None:
    """Votes answer the question about class 1, not that about class 0."""
    for question, can in ((Event(), True), (Event(1, ordered=True), True), (Event(0), False)):
        for plan in (SortedPlan(question), CellPlan(question), BinPlan(question, (0.0, 0.3, 1.0))):
            assert plan.takes_votes() == can


@pytest.mark.parametrize("options", [{}, {"positive": 2}, {"ordered": True}])
@pytest.mark.parametrize("name", MINE)
def test_tensors_on_a_device_have_the_same_summaries(name: str, options: Any) -> None:
    """The twin of the questions for tensors, here on the CPU."""
    from raterwise.tensors import device

    problem, row = ordinary(90, 3), find(name)
    own = row.with_defaults(options)
    plan = row.plan(own)
    assert device.can_summarise(plan)
    found = device.summarise(torch.tensor(problem.probs), problem.labels, [plan])[plan]
    assert row.estimate(found, own) == pytest.approx(value(name, problem, **options), abs=1e-12)


# intervals ------------------------------------------------------------------------------------


def test_only_positives_count_in_the_interval_of_a_sensitivity() -> None:
    """Twelve positives, all found, among a thousand: 1 - 0.025^(1/12) could be missed."""
    p, y = np.r_[np.full(12, 0.9), np.full(988, 0.1)], np.r_[np.ones(12), np.zeros(988)].astype(int)
    found = rw.evaluate(p, y, MINE)
    assert found["sensitivity"].low == pytest.approx(0.025 ** (1 / 12), abs=1e-9)
    assert found["ppv"].low == pytest.approx(0.025 ** (1 / 12), abs=1e-9)
    assert found["average_precision"].low == pytest.approx(0.025 ** (1 / 12), abs=1e-9)
    assert found["specificity"].low == pytest.approx(0.025 ** (1 / 988), abs=1e-9)
    assert found["npv"].low == pytest.approx(0.025 ** (1 / 988), abs=1e-9)
    assert 0.7 < found["auroc"].low < 0.95 and found["auroc"].high == 1.0  # type: ignore[operator]


def test_positives_of_one_patient_are_one() -> None:
    """Twelve positives of three patients are worth three."""
    p, y = np.r_[np.full(12, 0.9), np.full(988, 0.1)], np.r_[np.ones(12), np.zeros(988)].astype(int)
    patients = np.r_[np.arange(12) // 4, np.arange(988) + 3]
    found = rw.evaluate(p, y, "sensitivity", groups=patients)["sensitivity"]
    assert found.low == pytest.approx(0.025 ** (1 / 3), abs=1e-9)


def test_a_net_benefit_that_was_never_put_to_the_test_has_an_interval() -> None:
    """No case tests positive: the false alarms that were not seen could be 3.7 in 100."""
    y = np.zeros(100, int)
    y[:10] = 1
    found = rw.evaluate(np.full(100, 0.1), y, "net_benefit", threshold=0.5)["net_benefit"]
    most = 1 - 0.025 ** (1 / 100)
    assert (found.low, found.value, found.high) == pytest.approx((-most, 0.0, most), abs=1e-9)


def test_the_interval_of_a_net_benefit_is_students_where_cases_are_many() -> None:
    """Against the error of the mean of TP - odds FP over the cases, worked out directly."""
    p, y = two_classes(4000)
    found = rw.evaluate(p, y, "net_benefit", threshold=0.2)["net_benefit"]
    each = (p >= 0.2) * np.where(y == 1, 1.0, -0.25)
    error = each.std(ddof=1) / np.sqrt(4000)
    assert found.value == pytest.approx(each.mean())
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.04)  # type: ignore[operator]


def test_compare_has_paired_differences() -> None:
    """A model that is right about ranks against its shuffled self."""
    p, y = two_classes()
    shuffled = np.random.default_rng(0).permutation(p)
    found = rw.compare({"a": p, "b": shuffled}, y, MINE, threshold=0.3, resamples=200)
    assert {d.metric for d in found.differences} == set(MINE)
    gap = found.difference("auroc", "a", "b")
    assert gap.low > 0 and gap.p_value < 0.01


def test_the_oracle_agrees_on_pairs() -> None:
    """AUROC of fractions is the pairwise loop that AUCCC has, of the positive class."""
    problem = ordinary(50, 2)
    share = problem.counts[:, 1] / problem.counts.sum(axis=1)
    expected = oracle.auccc(problem.probs[:, 1], share)
    assert rw.auroc(problem.probs, problem.labels, per="case") == pytest.approx(expected)


def test_the_interval_of_an_average_precision_with_few_negatives_holds_the_truth() -> None:
    """98% positive, 200 cases: the truth from a million, by its definition. 83% held it before."""
    random = np.random.default_rng(20)
    everyone = np.sort(expit(random.normal(5.2, 1.5, 1_000_000)))[::-1]
    precision = np.cumsum(everyone) / np.arange(1, len(everyone) + 1)
    truth = float((everyone * precision).sum() / everyone.sum())
    held = []
    for _ in range(150):
        probs = expit(random.normal(5.2, 1.5, 200))
        labels = (random.random(200) < probs).astype(int)
        found = rw.evaluate(probs, labels, "average_precision", resamples=2)["average_precision"]
        held.append(found.low is not None and found.low <= truth <= found.high)
    assert np.mean(held) > 0.92
