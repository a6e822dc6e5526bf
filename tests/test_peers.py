"""What other libraries have, against their numbers: released code, R, scikit-learn, simulation."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit
from scipy.stats import norm as normal
from scipy.stats import t as student
from sklearn import metrics as sklearn_metrics

import raterwise as rw
from golden import LABEL_HISTOGRAMS, GoldenValue, golden_set, values
from raterwise.catalog import find
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.summaries import SimplexPlan, summarise
from strategies import ordinary

# released code -------------------------------------------------------------------------------


def of_counts(golden: GoldenValue) -> bool:
    """The value is of label counts, not of exact class probabilities."""
    return "labels" not in golden.params


@values("accuracy", repository=LABEL_HISTOGRAMS, where=of_counts)
def test_majority_accuracy_is_the_papers(golden: GoldenValue) -> None:
    """LH's "Acc", ties to the lowest class, of every kind of prediction."""
    probs, _ = golden.data.prediction(golden.params["pred"])
    labels = rw.Labels.from_counts(golden.data.counts)
    assert rw.majority_accuracy(probs, labels) == golden.approx()
    assert (
        rw.evaluate(probs, labels, "majority_accuracy", resamples=0)["majority_accuracy"].value
        == golden.approx()
    )


FULL_ECE = [
    ("K2_N200", 10, 1, 0.1376311973631929),
    ("K2_N200", 15, 2, 0.029760172439242026),
    ("K3_N1000", 10, 1, 0.32496604624249864),
    ("K3_N1000", 15, 1, 0.4061114541491278),
    ("K3_N1000", 15, 2, 0.09610819639652171),
]


@pytest.mark.parametrize(("name", "bins", "power", "value"), FULL_ECE)
def test_canonical_ece_is_that_of_dirichlet_calibration(
    name: str, bins: int, power: int, value: float
) -> None:
    """full_ECE of experiments_neurips: linspace(0, 1, bins) makes a bin less, and no root."""
    data = golden_set(name)
    found = rw.canonical_ece(data.probs, data.classes, bins=bins - 1, norm=power)
    assert found**power == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "value"), [("K2_N200", 0.029588498958643277), ("K3_N1000", 0.03305012634399179)]
)
def test_the_root_of_the_plugin_kernel_error_is_the_mmce(name: str, value: float) -> None:
    """netcal's maximum mean calibration error: top label, kernel exp(-2.5 |d|)."""
    data = golden_set(name)
    found = rw.kernel_calibration_error(data.probs, data.classes, estimator="plugin")
    assert math.sqrt(found) == pytest.approx(value, rel=1e-6)


VAL_PROB = [
    ("K2_N200", 1, 2.3204971954947764, 0.020313996458513953, 3.1507164276008677),
    ("K3_N1000", 0, 2.1604788545338267, 0.030735618826726235, 8.720597379527574),
    ("K3_N1000", 2, 2.747365113125867, 0.006007621467785549, 7.103793151704187),
]


@pytest.mark.parametrize(("name", "positive", "z", "p", "of_ratings"), VAL_PROB)
def test_spiegelhalter_is_that_of_rms(
    name: str, positive: int, z: float, p: float, of_ratings: float
) -> None:
    """S:z and S:p of R's rms::val.prob 6.5, one class against the rest; a row per rating too."""
    data = golden_set(name)
    probs = data.probs[:, positive]
    first = (data.classes == positive).astype(int)
    found = rw.spiegelhalter_test(probs, first)
    assert (found.statistic, found.p_value) == (pytest.approx(z), pytest.approx(p))
    assert rw.spiegelhalter_z(probs, first) == pytest.approx(z)
    of_class = data.counts[:, positive]
    labels = rw.Labels.from_counts(np.stack((data.counts.sum(axis=1) - of_class, of_class), 1))
    assert rw.spiegelhalter_z(probs, labels, per="annotation") == pytest.approx(of_ratings)


@pytest.mark.parametrize("question", ["top_label", "positive"])
def test_failures_are_scikit_learns(question: Any) -> None:
    """ROC curve and average precision, ties included, one rater."""
    random = np.random.default_rng(0)
    p = random.uniform(0, 1, 300).round(2)
    y = (random.random(300) < p).astype(int)
    score = np.maximum(p, 1 - p) if question == "top_label" else p
    hit = (y == (p > 0.5)).astype(int) if question == "top_label" else y
    fpr, tpr, _ = sklearn_metrics.roc_curve(hit, score)
    assert rw.fpr_at_95_tpr(p, y, question=question) == pytest.approx(fpr[np.argmax(tpr >= 0.95)])
    errors = sklearn_metrics.average_precision_score(1 - hit, -score)
    assert rw.failure_average_precision(p, y, question=question) == pytest.approx(errors)
    right = sklearn_metrics.average_precision_score(hit, score)
    found = rw.failure_average_precision(p, y, of="successes", question=question)
    assert found == pytest.approx(right)


def test_failures_take_confidences_and_outside_cases() -> None:
    """A confidence from elsewhere ranks; outside cases are wrong, as in auccc."""
    random = np.random.default_rng(1)
    p, confidence, outside = random.dirichlet([1, 1], 80), random.random(80), random.random(30)
    y = (random.random(80) < p[:, 1]).astype(int)
    hit = np.concatenate((p.argmax(axis=1) == y, np.zeros(30)))
    score = np.concatenate((confidence, outside))
    given: dict[str, Any] = {"confidence": confidence, "outside": outside}
    expected = sklearn_metrics.average_precision_score(1 - hit, -score)
    assert rw.failure_average_precision(p, y, **given) == pytest.approx(expected)
    fpr, tpr, _ = sklearn_metrics.roc_curve(hit, score)
    assert rw.fpr_at_95_tpr(p, y, **given) == pytest.approx(fpr[np.argmax(tpr >= 0.95)])
    best = np.sort(1 - hit).cumsum() / np.arange(1, 111)
    assert rw.excess_aurc(p, y, **given) == pytest.approx(rw.aurc(p, y, **given) - best.mean())


def test_all_right_has_no_failures() -> None:
    """Nothing to find: undefined, with the reason; the excess of a perfect model is 0."""
    probs = [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(rw.UndefinedMetricError, match="fpr_at_95_tpr: undefined, every pred"):
        rw.fpr_at_95_tpr(probs, [0, 1])
    with pytest.raises(rw.UndefinedMetricError, match="no prediction is wrong"):
        rw.failure_average_precision(probs, [0, 1])
    assert rw.excess_aurc(probs, [0, 1]) == 0
    found = rw.evaluate(probs * 15, [0, 1] * 15, "excess_aurc,aurc", resamples=20)
    # Thirty right cases do not prove that the thirty-first is; as of the AURC itself.
    assert found["excess_aurc"].low == 0 < 0.1 < found["excess_aurc"].high
    assert found["excess_aurc"].high == found["aurc"].high
    with pytest.raises(rw.InvalidInputError, match="of: must be one of errors, successes"):
        rw.failure_average_precision(probs, [0, 1], of="both")  # type: ignore[arg-type]
    with pytest.raises(rw.InvalidInputError, match="of: must be one of errors, successes"):
        rw.failure_average_precision(probs, [0, 1], of="both", confidence=[0.9, 0.2])  # type: ignore[arg-type]


# norms and debiasing -------------------------------------------------------------------------


def test_the_norms_of_the_calibration_error() -> None:
    """1 is the ECE, 2 the RMS error, infinity the largest gap; 3 by hand; less than 1 is none."""
    problem = ordinary(100)
    at = {p: rw.ece(problem.probs, problem.labels, norm=p) for p in (1, 2, math.inf)}
    expected = [f(problem.probs, problem.labels) for f in (rw.ece, rw.rms_ce, rw.mce)]
    assert list(at.values()) == pytest.approx(expected)
    probs, y = [[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]
    by_hand = (2 / 3 * 0.4**3 + 1 / 3 * 0.3**3) ** (1 / 3)
    assert rw.ece(probs, y, norm=3) == pytest.approx(by_hand)
    found = rw.evaluate(problem.probs, problem.labels, "ece", options={"ece": {"norm": 2}})
    assert found["ece"].value == pytest.approx(expected[1])
    assert found["ece"].low <= found["ece"].value <= found["ece"].high
    for bad in (0.5, math.nan):
        with pytest.raises(rw.InvalidInputError, match="norm: must be at least 1"):
            rw.ece(probs, y, norm=bad)
        with pytest.raises(rw.InvalidInputError, match="norm: must be at least 1"):
            rw.evaluate(probs, y, "ece", options={"ece": {"norm": bad}})
    with pytest.raises(rw.InvalidInputError, match="norm: must be 1 or 2; got 3"):
        rw.debiased_ece(probs, y, norm=3)  # type: ignore[arg-type]


def test_debiased_ece_is_kumars_resampling() -> None:
    """2 ECE - mean of ECEs with frequencies drawn from N(A, A(1-A)/b), 200,000 draws."""
    random = np.random.default_rng(0)
    p = random.uniform(0.5, 1, 400)
    y = (random.random(400) < p**2).astype(int)
    index = np.minimum((p * 10).astype(int), 9)
    used = np.unique(index)
    size = np.array([(index == b).sum() for b in used])
    observed = np.array([y[index == b].mean() for b in used])
    predicted = np.array([p[index == b].mean() for b in used])
    sd = np.sqrt(observed * (1 - observed) / size)
    plugin = (size * np.abs(observed - predicted)).sum() / 400
    drawn = random.normal(observed, sd, (200_000, len(used)))
    theirs = 2 * plugin - (np.abs(drawn - predicted) @ size / 400).mean()
    found = rw.debiased_ece(p, y, bins=10, question="positive")
    assert found == pytest.approx(theirs, abs=2e-4)
    assert rw.debiased_ece(p, y, bins=10, question="positive", estimator="plugin") == (
        pytest.approx(plugin)
    )
    squares = (observed - predicted) ** 2 - observed * (1 - observed) / (size - 1)
    expected = math.sqrt(max((size * squares).sum() / 400, 0))
    assert rw.debiased_ece(p, y, bins=10, question="positive", norm=2) == pytest.approx(expected)


def test_debiasing_takes_off_what_chance_adds() -> None:
    """A calibrated model with two raters who agree: the mean over samples is nearer 0."""
    random = np.random.default_rng(0)
    plain, debiased = [], []
    for _ in range(60):
        p = random.uniform(0, 1, 150)
        said = random.random(150) < p
        labels = rw.Labels.from_counts(np.stack((2 * ~said, 2 * said), axis=1))
        plain.append(rw.ece(p, labels, question="positive", per="case"))
        debiased.append(rw.debiased_ece(p, labels, question="positive"))
    assert np.mean(plain) > 0.07
    assert np.mean(debiased) < 0.75 * np.mean(plain)


# cells of whole vectors ----------------------------------------------------------------------


def test_cells_of_vectors_are_resampled_cell_by_cell() -> None:
    """Drawn tables are those of the drawn cases, summed anew; joined bins lose no case."""
    problem = ordinary(60, 3)
    predictions = Predictions.of(problem.probs, problem.labels)
    plan = SimplexPlan(Question("per_class", "annotation"), 4)
    units = np.arange(60) % 12
    sums = summarise(predictions, [plan], units=units, num_units=12)[plan]
    times = np.random.default_rng(0).integers(0, 3, (5, 12))
    table = sums.tabled()
    stack = table.resampled(times).sums
    for drawn, found in zip(times, stack, strict=True):
        rows = np.repeat(np.arange(60), drawn[units])
        again = summarise(predictions.take(rows), [plan])[plan].tabled(like=table)
        np.testing.assert_allclose(found, again.table.sums, rtol=1e-12, atol=1e-12)
    coarse = sums.tabled(most=12)
    assert coarse.sums.shape[1] * coarse.sums.shape[2] <= 12
    np.testing.assert_allclose(coarse.table.sums.sum(axis=1), table.table.sums.sum(axis=1))
    left = table.without_each(3, 4).sums[0]
    rest = predictions.take(units != 3)
    np.testing.assert_allclose(
        left, summarise(rest, [plan])[plan].tabled(like=table).table.sums, atol=1e-12
    )


def test_cells_of_vectors_are_kept_and_merged() -> None:
    """Units can be chosen and stacked, arrays read back; other classes or bins do not add up."""
    problem = ordinary(40, 3)
    predictions = Predictions.of(problem.probs, problem.labels)
    plan = SimplexPlan(Question("per_class", "case"), 5)
    sums = summarise(predictions, [plan], units=np.arange(40) % 4, num_units=4)[plan]
    back = plan.from_arrays(sums.arrays())
    np.testing.assert_array_equal(back.tabled().sums, sums.tabled().sums)
    some = sums.with_units(sums.units[[1, 3]])
    other = summarise(predictions.take(np.arange(40) % 2 == 1), [plan])[plan]
    np.testing.assert_allclose(some.tabled().sums, other.tabled().sums)
    both = sums.units[1] + sums.units[3]
    np.testing.assert_allclose(
        sums.with_units(np.array([both, None])[:1]).tabled().sums, other.tabled().sums
    )
    with pytest.raises(rw.MergeError, match="cannot add"):
        sums + plan.empty(4, 4)


def test_canonical_ece_of_two_classes_is_twice_that_of_the_positive() -> None:
    """What is missing from the one class is in the other (no score on an edge)."""
    random = np.random.default_rng(0)
    p = random.uniform(0, 1, 200)
    y = (random.random(200) < p).astype(int)
    assert rw.canonical_ece(p, y, bins=8) == pytest.approx(2 * rw.ece(p, y, 8, "positive"))


# the kernel error and its test ---------------------------------------------------------------


def test_the_kernel_error_of_a_calibrated_model_is_0_on_average() -> None:
    """The mean over samples is within four standard errors of 0; with its diagonal it is not."""
    random = np.random.default_rng(0)
    found: dict[str, list[float]] = {"debiased": [], "plugin": []}
    for _ in range(200):
        p = random.uniform(0, 1, 50)
        counts = random.binomial(3, p)
        labels = rw.Labels.from_counts(np.stack((3 - counts, counts), axis=1))
        for estimator, kept in found.items():
            options: Any = {"question": "positive", "estimator": estimator}
            kept.append(rw.kernel_calibration_error(p, labels, **options))
    of = {name: np.mean(v) / (np.std(v) / math.sqrt(200)) for name, v in found.items()}
    assert abs(of["debiased"]) < 4 < of["plugin"]


def test_the_kernel_test_keeps_its_level_and_finds_errors() -> None:
    """Patients of four cases, two raters who agree: 5 % false alarms (± 3.5 SE); errors found."""
    random = np.random.default_rng(0)
    patients = np.repeat(np.arange(20), 4)

    def p_value(shift: float) -> float:
        z = np.repeat(random.uniform(0.2, 0.8, 20), 4)
        together = np.repeat(random.random(20), 4)
        said = np.where(random.random(80) < 0.5, together, random.random(80)) < z + shift
        labels = rw.Labels.from_counts(np.stack((2 * ~said, 2 * said), axis=1))
        return rw.kernel_calibration_test(
            z, labels, patients, question="positive", draws=99
        ).p_value

    alarms = np.mean([p_value(0.0) <= 0.05 for _ in range(300)])
    assert abs(alarms - 0.05) < 3.5 * math.sqrt(0.05 * 0.95 / 300)
    assert np.mean([p_value(0.25) <= 0.05 for _ in range(40)]) > 0.5


def test_the_kernel_error_of_every_class_is_the_mean_over_pairs() -> None:
    """Three classes, two raters, worked out pair by pair; so from cells, within their bound."""
    random = np.random.default_rng(3)
    probs = random.dirichlet([1, 2, 3], 40)
    ratings = random.integers(0, 3, (40, 2))
    labels = rw.Labels.from_ratings(ratings, num_classes=3)
    off = labels.frequencies - probs
    each = [
        off[i, k] * off[j, k] * math.exp(-abs(probs[i, k] - probs[j, k]) / 0.4)
        for k in range(3)
        for i in range(40)
        for j in range(40)
        if i != j
    ]
    found = rw.kernel_calibration_error(probs, labels, "per_class")
    assert found == pytest.approx(np.sum(each) / (3 * 40 * 39), abs=1e-14)
    asked: Any = {"kernel_calibration_error": {"question": "per_class"}}
    results = rw.evaluate(probs, labels, "kernel_calibration_error", options=asked, resamples=200)
    assert results["kernel_calibration_error"].value == pytest.approx(found, abs=1e-15)
    tested = rw.kernel_calibration_test(probs, labels, question="per_class", draws=200)
    assert tested.statistic == pytest.approx(found, abs=1e-15)
    row = find("kernel_calibration_error")
    own = row.with_defaults({"question": "per_class"})
    cells = row.plan(own).bounded()
    summary = summarise(Predictions.of(probs, labels), [cells])[cells]
    value, bound = summary.value(row, own)
    assert bound is not None and abs(value - found) <= bound + 1e-15


def test_two_whole_vectors_by_hand() -> None:
    """Widmann et al. 2019 with exp(-|p - q| / h) I: d = (.3, -.2, -.1) and (-.2, .5, -.3)."""
    probs, labels = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]], [0, 1]
    product, kernel = -0.06 - 0.1 + 0.03, math.exp(-0.5 / 0.4)  # half of .5 + .3 + .2
    found = rw.kernel_calibration_error(probs, labels, "canonical")
    assert found == pytest.approx(product * kernel, abs=1e-15)
    plugin = rw.kernel_calibration_error(probs, labels, "canonical", estimator="plugin")
    assert plugin == pytest.approx((2 * product * kernel + 0.14 + 0.38) / 4, abs=1e-15)


def test_whole_vectors_by_loops_over_pairs() -> None:
    """Every pair of cases and every sign by loops; the same in results, with the p-value."""
    random = np.random.default_rng(12)
    probs = random.dirichlet([1, 2, 1], 30)
    labels = rw.Labels.from_ratings(random.integers(0, 3, (30, 2)), num_classes=3)
    patients, off = np.arange(30) // 2, labels.frequencies - probs
    each = np.zeros((30, 30))
    for i in range(30):
        for j in range(30):
            apart = sum(abs(probs[i, k] - probs[j, k]) for k in range(3)) / 2
            each[i, j] = sum(off[i, k] * off[j, k] for k in range(3)) * math.exp(-apart / 0.3)
    expected = (each.sum() - np.trace(each)) / (30 * 29)
    how: Any = {"question": "canonical", "bandwidth": 0.3}
    assert rw.kernel_calibration_error(probs, labels, **how) == pytest.approx(expected, abs=1e-15)
    tested = rw.kernel_calibration_test(probs, labels, patients, draws=400, **how)
    assert tested.statistic == pytest.approx(expected, abs=1e-15)
    signs = random.choice([-1, 1], (3000, 15))[:, patients]
    by_chance = np.array([s @ each @ s for s in signs])
    assert tested.p_value == pytest.approx((by_chance >= each.sum()).mean(), abs=0.07)
    found = rw.evaluate(
        probs, labels, "kernel_calibration_error", patients, resamples=400,
        options={"kernel_calibration_error": how},
    )["kernel_calibration_error"]  # fmt: skip
    assert found.value == pytest.approx(expected, abs=1e-15)
    assert found.p_value == pytest.approx(tested.p_value, abs=0.07)


def test_whole_vectors_of_two_classes_are_twice_the_positive_class() -> None:
    """d and -d, and |p - q| is that of either class."""
    data = ordinary(50, num_classes=2, seed=3)
    one = rw.kernel_calibration_error(data.probs, data.labels, "positive")
    both = rw.kernel_calibration_error(data.probs, data.labels, "canonical")
    assert both == pytest.approx(2 * one, abs=1e-15)


def test_the_test_of_whole_vectors_keeps_its_level_and_finds_confused_classes() -> None:
    """Calibrated vectors of patients: p below 0.2 in about a fifth; confused classes are found."""
    small, found = 0, 0
    for seed in range(60):
        random = np.random.default_rng([3, seed])
        probs = np.repeat(random.dirichlet([2, 2, 2], 30), 2, axis=0)
        drawn = (random.random((60, 1)) > probs.cumsum(axis=1)).sum(axis=1)
        patients = np.arange(60) // 2
        how: Any = {"question": "canonical", "draws": 99, "seed": seed}
        small += rw.kernel_calibration_test(probs, drawn, patients, **how).p_value <= 0.2
        confused = np.roll(probs, 1, axis=1)
        found += rw.kernel_calibration_test(confused, drawn, patients, **how).p_value <= 0.2
    assert 4 <= small <= 21  # 12 ± 3 standard deviations
    assert found > 40


def test_whole_vectors_are_not_streamed(tmp_path: Path) -> None:
    """Every case is compared with every other, so they must all be there; what to ask is said."""
    pq.write_table(pa.table({"prob_a": [0.3], "prob_b": [0.7], "truth": ["b"]}), tmp_path / "t.pq")
    with pytest.raises(rw.InvalidInputError, match='use "per_class", or for two classes'):
        rw.evaluate_stream(
            tmp_path / "t.pq", "kernel_calibration_error", label_column="truth",
            options={"kernel_calibration_error": {"question": "canonical"}},
        )  # fmt: skip


def test_results_have_the_p_values_of_tests() -> None:
    """Those of the functions: exactly of Spiegelhalter's, by the same draws of the kernel's."""
    random = np.random.default_rng(1)
    p = random.beta(2, 2, 300)
    y = (random.random(300) < 1 / (1 + ((1 - p) / p) ** 1.6)).astype(int)
    patients = random.integers(0, 60, 300)
    for groups in (None, patients):
        results = rw.evaluate(
            p, y, "spiegelhalter_z,kernel_calibration_error,brier", groups=groups, resamples=400,
            options={"kernel_calibration_error": {"question": "positive"}},
        )  # fmt: skip
        assert results["spiegelhalter_z"].p_value == pytest.approx(
            rw.spiegelhalter_test(p, y, groups).p_value, rel=1e-9
        )
        other = rw.kernel_calibration_test(p, y, groups, question="positive", draws=400).p_value
        assert results["kernel_calibration_error"].p_value == pytest.approx(other, abs=0.08)
        assert results["brier"].p_value is None
        back = rw.Results.from_dict(results.to_dict())
        assert back["spiegelhalter_z"] == results["spiegelhalter_z"]
    assert ", p < 0.001." in results.to_text()
    assert str(results["spiegelhalter_z"]).endswith(", p = 0.0008")


def test_p_values_of_tests_agree_with_their_intervals() -> None:
    """At most 0.05 exactly where the interval excludes 0; z of independent cases is ± 1.96."""
    seen = set()
    for seed, power in itertools.product(range(6), (1.0, 2.5)):
        random = np.random.default_rng([7, seed])
        who = np.repeat(np.arange(12), random.integers(1, 15, 12))
        logit = random.normal(0, 1.2, 12)[who] + random.normal(0, 1, len(who))
        y = (random.random(len(who)) < expit(logit)).astype(int)
        for groups in (None, who):
            results = rw.evaluate(
                expit(power * logit), y, "spiegelhalter_z,kernel_calibration_error", groups=groups,
                resamples=99,
            )  # fmt: skip
            for found in (results[name] for name in results):
                clear = found.low > 0 or found.high < 0
                assert clear == (found.p_value <= 0.05)
                seen.add((found.name, groups is None, clear))
            z = results["spiegelhalter_z"]
            assert groups is not None or z.high - z.low == pytest.approx(2 * 1.959964)
    assert len(seen) >= 7  # of eight: both answers of both metrics, with and without patients


def test_the_kernel_test_reports_the_kernel_error() -> None:
    """Its statistic is the metric's; the seed decides the draws; one case has no pairs."""
    problem = ordinary(80)
    one = rw.kernel_calibration_test(problem.probs, problem.labels, draws=50)
    assert one.statistic == rw.kernel_calibration_error(problem.probs, problem.labels)
    assert one == rw.kernel_calibration_test(problem.probs, problem.labels, draws=50)
    with pytest.raises(rw.UndefinedMetricError, match="two cases"):
        rw.kernel_calibration_test([0.3], [1])
    with pytest.raises(rw.UndefinedMetricError, match="needs two cases"):
        rw.kernel_calibration_error([0.3], [1])


def test_patients_widen_spiegelhalters_test() -> None:
    """Every case four times is no news: with patients the p-value is that of the cases."""
    random = np.random.default_rng(0)
    p = random.uniform(0, 1, 100)
    y = (random.random(100) < p**1.5).astype(int)
    once, copied = rw.spiegelhalter_test(p, y), (np.repeat(p, 4), np.repeat(y, 4))
    grouped = rw.spiegelhalter_test(*copied, np.repeat(np.arange(100), 4))
    excess = (y - p) * (1 - 2 * p)
    by_hand = excess.sum() / math.sqrt((excess**2).sum())
    assert grouped.statistic == pytest.approx(by_hand)
    assert grouped.p_value == pytest.approx(2 * student.sf(abs(by_hand), 99))
    assert rw.spiegelhalter_test(*copied).statistic == pytest.approx(2 * once.statistic)
    assert once.p_value == pytest.approx(2 * normal.sf(abs(once.statistic)))
    with pytest.raises(rw.UndefinedMetricError, match="spiegelhalter_z: undefined"):
        rw.spiegelhalter_test([0.5, 1.0], [1, 1])


def test_kuiper_lies_between_ks_and_twice_it() -> None:
    """highest - lowest is at least the farther of the two from 0, and at most both."""
    for seed in range(20):
        problem = ordinary(50, seed=seed)
        ks = rw.ks_error(problem.probs, problem.labels)
        kuiper = rw.kuiper_error(problem.probs, problem.labels)
        assert ks <= kuiper + 1e-15 <= 2 * ks + 1e-12
