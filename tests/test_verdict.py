"""The verdict: its null worked out by hand and by simulation, its errors, its words."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, softmax

import raterwise as rw
from raterwise.inference import evidence
from raterwise.inference.deviations import channels_of
from raterwise.inference.evidence import Evidence, Moments, adjusted_p_values, two_sided
from raterwise.inference.verdict import percentages
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries import DeviationPlan, DeviationTable, deviation_sums, summarise
from verdicts import judge

Array = NDArray[np.float64]


def table_of(probs: Array, counts: Array, *counted: float) -> DeviationTable:
    """Return the sums of cases of weight 1."""
    plan = DeviationPlan()
    whole = Predictions.of(probs, Labels.from_counts(counts))
    table: DeviationTable = summarise(whole, [plan])[plan].counted(*counted)
    return table


def one_channel(random: np.random.Generator, cases: int, scale: float = 2.0) -> Array:
    """Return probabilities of a positive class."""
    return np.asarray(expit(scale * random.normal(size=cases)))


def histograms(positive: NDArray[Any], raters: int | NDArray[Any]) -> Labels:
    """Return two-class labels from the numbers of raters who said yes."""
    return Labels.from_counts(np.stack((raters - positive, positive), axis=1).astype(int))


# --- the null ----------------------------------------------------------------------------------


@pytest.mark.parametrize("skewness", [-2.0, -0.3, 0.0, 0.05, 0.8, 3.0])
def test_tails_are_those_of_pearson_type_three(skewness: float) -> None:
    """SciPy has the same distribution under another name; the tail is on the side of the sum."""
    t = np.array([-2.5, -1.0, -0.2, 0.4, 1.7, 3.9])
    tail = np.where(t > 0, stats.pearson3.sf(t, skewness), stats.pearson3.cdf(t, skewness))
    expected = np.minimum(1, 2 * tail)
    np.testing.assert_allclose(two_sided(t, np.full(6, skewness)), expected, rtol=1e-6, atol=1e-12)


def test_no_label_of_a_class_that_nobody_expects_is_no_evidence() -> None:
    """0.00002 labels are expected of each of four classes: P(none) = 1 - 0.00002, so p is 1."""
    random = np.random.default_rng(5)
    logits = random.normal(0, 2, (80, 10))
    logits[:, :4] = -17.0
    probs = softmax(logits, axis=1)
    ratings = np.array([random.choice(10, size=2, p=row) for row in probs])
    labels = Labels.from_ratings(ratings, num_classes=10)
    assert labels.counts[:, :4].sum() == 0 and probs[:, :4].sum(axis=0).max() < 1e-5
    found = rw.evaluate(probs, labels, "ece", resamples=50).data["verdict"]
    about = [d for d in found["deviations"] if d["channel"] in {f"class {k}" for k in range(4)}]
    assert about and all(d["p_value"] > 0.999 for d in about)
    assert not found["miscalibrated"]


def test_moments_are_those_of_all_possible_labels() -> None:
    """Two cases, three classes, two raters each: every outcome is enumerated."""
    probs = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])
    outcomes = list(itertools.product(range(3), repeat=4))
    counts = np.array([[np.bincount(y[:2], minlength=3), np.bincount(y[2:], minlength=3)]
                       for y in outcomes])  # fmt: skip
    chance = np.array([probs[0, list(y[:2])].prod() * probs[1, list(y[2:])].prod()
                       for y in outcomes])  # fmt: skip
    channels = channels_of(table_of(probs, counts[0], 1.0, 0.0), 3)
    tables = [table_of(probs, c, 1.0, 0.0) for c in counts]
    sums = np.array([Evidence.of(table, channels).sums for table in tables])
    found = Evidence.of(tables[0], channels).moments
    assert sums.shape[1] > 10
    np.testing.assert_allclose(chance @ sums, 0, atol=1e-12)
    np.testing.assert_allclose(chance @ sums**2, found.variance, atol=1e-12)
    np.testing.assert_allclose(chance @ sums**3, found.third, atol=1e-12)
    same = np.array([y[0] == y[1] and y[2] == y[3] for y in outcomes])
    once = np.array([probs[0, y[0]] * probs[1, y[2]] for y in outcomes])[same]
    np.testing.assert_allclose(once @ sums[same] ** 2, found.variance_together, atol=1e-12)
    np.testing.assert_allclose(once @ sums[same] ** 3, found.third_together, atol=1e-12)


def test_copies_of_a_rater_bring_no_evidence() -> None:
    """Three raters who always agree are one rater."""
    random = np.random.default_rng(1)
    z = one_channel(random, 200)
    positive = (random.random(200) < z).astype(int)
    once, thrice = judge(z, histograms(positive, 1)), judge(z, histograms(3 * positive, 3))
    assert thrice.agreement == 1
    assert thrice.design_effect == pytest.approx(3)
    for a, b in zip(once.deviations, thrice.deviations, strict=True):
        assert a.p_value == pytest.approx(b.p_value, rel=1e-9)


def test_agreement_is_the_correlation_within_cases() -> None:
    """Beta-binomial raters: with concentration 2 two raters correlate by 1/3."""
    random = np.random.default_rng(2)
    z = one_channel(random, 20_000, 1.0)
    truth = random.beta(2 * z, 2 * (1 - z))
    verdict = judge(z, histograms(random.binomial(4, truth), 4))
    assert verdict.agreement == pytest.approx(1 / 3, abs=0.03)
    assert verdict.design_effect == pytest.approx(1 + 3 / 3, abs=0.3)


def test_step_down_is_westfall_and_young() -> None:
    """Each statistic against the smallest p of itself and those behind it."""
    random = np.random.default_rng(3)
    p, by_chance = random.random(4) ** 3, random.random((50, 4))
    expected, largest = np.empty(4), 0.0
    behind = sorted(range(4), key=lambda j: p[j])
    for place, j in enumerate(behind):
        often = sum(min(draw[k] for k in behind[place:]) <= p[j] for draw in by_chance)
        largest = max(largest, (1 + often) / 51, p[j])
        expected[j] = largest
    np.testing.assert_allclose(adjusted_p_values(p, by_chance), expected)


def test_a_case_may_count_in_any_way() -> None:
    """Sums of powers of the numbers of raters are those of the weights that they stand for."""
    random = np.random.default_rng(20)
    z, raters = one_channel(random, 60), random.integers(1, 6, 60)
    positive = random.binomial(raters, z)
    counts = np.stack((raters - positive, positive), axis=1)
    table, mu = table_of(z, counts, 0.4, -1.1), positive / raters
    a, v = 0.4 * raters - 1.1, z * (1 - z)
    expected = {
        "weight": a, "predicted": a * z, "observed": a * mu, "alone": a**2 * v / raters,
        "together": a**2 * v, "third": a**3 * v * (1 - 2 * z) / raters**2,
        "third_together": a**3 * v * (1 - 2 * z), "squares": a**2 * (mu - z) ** 2,
        "apart": a**2 * mu * (1 - mu),
    }  # fmt: skip
    for name, each in expected.items():
        assert getattr(table, name).sum() == pytest.approx(each.sum(), rel=1e-9), name


@pytest.mark.parametrize("classes", [2, 4, 12, 210])
def test_single_labels_are_histograms_of_one(classes: int) -> None:
    """The loop for one label per case gives the sums of the one for histograms, weights or not."""
    random = np.random.default_rng(21)
    probs = softmax(3 * random.normal(size=(80, classes)), axis=1)
    probs[:2] = np.eye(classes)[:2]  # exactly 0 and 1
    y = random.integers(0, classes, 80)
    plan, units = DeviationPlan(grouped=True), np.arange(80) % 7
    given = [
        Predictions.of(probs, y),
        Predictions.of(probs, y, weights=np.ones(80)),
        Predictions.of(probs, Labels.from_counts(np.eye(classes, dtype=int)[y])),
    ]
    first, *rest = (summarise(p, [plan], units=units, num_units=7)[plan] for p in given)
    for other in rest:
        np.testing.assert_allclose(other.sums, first.sums, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(other.units, first.units, rtol=1e-9, atol=1e-12)
    deviation = first.sums[..., 4] - first.sums[..., 2]
    np.testing.assert_allclose(first.units[..., 0].sum(axis=0), deviation, atol=1e-12)


def test_many_labels_have_the_same_null_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlated normal sums stand for drawn labels where these are too many."""
    random = np.random.default_rng(4)
    probs = softmax(1.5 * random.normal(size=(400, 3)), axis=1)
    truth = softmax(1.3 * np.log(probs), axis=1)
    labels = (random.random(400)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    monkeypatch.setattr(evidence, "MANY", np.inf)
    drawn = judge(probs, labels, simulations=4000)
    monkeypatch.setattr(evidence, "MANY", 0)
    normal = judge(probs, labels, simulations=4000)
    assert 0.005 < drawn.p_value < 0.9
    adjusted = [[d.adjusted for d in verdict.deviations] for verdict in (drawn, normal)]
    np.testing.assert_allclose(adjusted[0], adjusted[1], atol=0.06)


def test_order_of_cases_and_names_of_patients_do_not_matter() -> None:
    """Sums over patients are the same in any order."""
    random = np.random.default_rng(5)
    z, patients = one_channel(random, 90), np.arange(90) // 6
    positive = random.binomial(2, z)
    shuffled = random.permutation(90)
    first = judge(z, histograms(positive, 2), groups=patients)
    names = np.array([f"patient {99 - g}" for g in patients])
    second = judge(z[shuffled], histograms(positive[shuffled], 2), groups=names[shuffled])
    for a, b in zip(first.deviations, second.deviations, strict=True):
        assert a.p_value == pytest.approx(b.p_value, rel=1e-8)


def test_patients_in_blocks_go_together_as_far_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 patients of five copies in 512 blocks: the variance of a sum is five times as large."""
    random = np.random.default_rng(22)
    z, patients = np.repeat(one_channel(random, 1000, 1.0), 5), np.repeat(np.arange(1000), 5)
    positive = (np.repeat(random.random(1000), 5) < z).astype(int)
    pooled = judge(z, histograms(positive, 1), groups=patients, simulations=200)
    monkeypatch.setattr(deviation_sums, "BLOCKS", 10**6)
    alone = judge(z, histograms(positive, 1), groups=patients, simulations=200)
    for a, b in zip(pooled.deviations, alone.deviations, strict=True):
        assert (a.standardised / b.standardised) ** 2 == pytest.approx(1, abs=0.35)
    assert pooled.design_effect == pytest.approx(5, rel=0.3)
    assert alone.design_effect == pytest.approx(5, rel=0.3)


# --- false alarms and power ----------------------------------------------------------------------

SETS = 120
FEW = 0.1
"""A true rate of 5 % exceeds this in one of 150 runs of 120 test sets; the seeds are fixed."""


def rate(draw: Any, seed: int, **how: Any) -> float:
    """Return the fraction of test sets that are called miscalibrated."""
    called = 0
    for replication in range(SETS):
        random = np.random.default_rng([seed, replication])
        z, labels, patients = draw(random)
        groups = patients if how.get("with_patients", True) else None
        called += judge(z, labels, groups=groups, simulations=300, seed=replication).miscalibrated
    return called / SETS


def saturated(random: np.random.Generator) -> tuple[Array, Labels, None]:
    """Return a calibrated model that is nearly always sure."""
    z = one_channel(random, 60, 8.0)
    return z, histograms(random.binomial(3, z), 3), None


def vague(random: np.random.Generator) -> tuple[Array, Labels, None]:
    """Return a calibrated model of cases on which raters agree more than it knows."""
    z = one_channel(random, 60, 1.5)
    return z, histograms(random.binomial(5, random.beta(z, 1 - z)), 5), None


def unequal_patients(random: np.random.Generator) -> tuple[Array, Labels, NDArray[Any]]:
    """Return a calibrated model of patients of 1 to 30 cases, whose labels follow one draw."""
    sizes = np.clip(np.rint(np.exp(random.normal(0.6, 1.3, 100))), 1, 30).astype(int)
    patients = np.repeat(np.arange(100), sizes)[:100]
    z = one_channel(random, 100, 1.5)
    place = np.where(random.random(100) < 0.8, random.random(100)[patients], random.random(100))
    return z, histograms((place < z).astype(int), 1), patients


def five_classes(random: np.random.Generator) -> tuple[Array, Labels, None]:
    """Return a calibrated model of five classes, two of them rare."""
    probs = softmax(2 * random.normal(size=(50, 5)) - 3 * (np.arange(5) > 2), axis=1)
    counts = np.array([random.multinomial(1, row / row.sum()) for row in probs])
    return probs, Labels.from_counts(counts), None


@pytest.mark.parametrize("draw", [saturated, vague, unequal_patients, five_classes])
def test_calibrated_models_are_rarely_accused(draw: Any) -> None:
    """At most one in twenty, but for the chance of 120 test sets."""
    assert rate(draw, 6) <= FEW


def test_random_signs_would_accuse_saturated_models() -> None:
    """Why the null is drawn from the probabilities: rare errors are not symmetric."""
    called = 0
    for replication in range(20):
        random = np.random.default_rng([6, replication])
        z, labels, _ = saturated(random)
        fifth = np.argsort(np.argsort(z)) * 5 // len(z)
        each = (labels.frequencies[:, 1] - z)[:, None] * (fifth[:, None] == np.arange(5))
        flipped = random.choice([-1, 1], size=(200, len(each))) @ each
        spread = np.sqrt((each**2).sum(axis=0))
        largest, by_chance = (np.abs(x / spread).max(axis=-1) for x in (each.sum(axis=0), flipped))
        called += (by_chance >= largest).mean() <= 0.05
    assert called >= 10


def test_a_large_patient_without_the_rare_event_proves_nothing() -> None:
    """Sizes 1 (300 patients) and 90: what such a patient does with a rare event is not known."""
    patients = np.concatenate((np.arange(300), np.full(90, 300)))
    z, none = np.full(390, 0.03), histograms(np.zeros(390), 1)
    effect = judge(z, none, groups=patients, simulations=100).design_effect
    full = (300 + 90**2) / 390  # if all of its labels went together
    assert 0.2 * full < effect < full
    equal = judge(z, none, groups=np.arange(390) // 5, simulations=100).design_effect
    assert equal < 0.5 * 5


def test_patients_who_are_ignored_raise_false_alarms() -> None:
    """The design that keeps its error with patients loses it without."""
    assert rate(unequal_patients, 6, with_patients=False) > 2 * FEW


def test_agreement_that_is_ignored_raises_false_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raters of one case are not independent given the model's probability."""
    nothing = lambda self, means: (0.0, np.zeros(len(means)))  # noqa: E731
    monkeypatch.setattr(Moments, "agreement", nothing)
    assert rate(vague, 6) > 2 * FEW


def overconfident(random: np.random.Generator) -> tuple[Array, Labels, None]:
    """Return 100 cases, one rater, logits times 1.8."""
    logit = 2.1 * random.normal(size=100)
    return expit(1.8 * logit), histograms((random.random(100) < expit(logit)).astype(int), 1), None


def test_overconfident_models_are_found() -> None:
    """With 100 cases and one rater, more often than not."""
    assert rate(overconfident, 7) > 0.55


# --- words --------------------------------------------------------------------------------------


def test_says_which_finding_and_by_how_much() -> None:
    """500 films, 8 readers: oedema predicted in 42 %, read in 20 %."""
    random = np.random.default_rng(8)
    positive = np.where(np.arange(500) % 10 < 6, 2, 1)
    z = 0.05 * random.normal(size=500)
    z += 0.42 - z.mean()
    labels = Labels.from_counts(np.stack((8 - positive, positive), 1), class_names=["no", "oedema"])
    verdict = judge(z, labels)
    assert verdict.miscalibrated
    assert (verdict.channel, verdict.direction) == ("oedema", "too often")
    assert verdict.sentence == (
        "says *oedema* too often: it predicts 42% on average; raters say so 20% of the time"
    )
    assert judge(z, labels, per="case").sentence.endswith("say so 20% of the time")


def test_names_the_class_that_is_off_by_itself() -> None:
    """Three classes, one of them predicted too often."""
    random = np.random.default_rng(9)
    logits = random.normal(size=(800, 3))
    labels = (logits + random.gumbel(size=(800, 3))).argmax(axis=1)
    verdict = judge(
        softmax(logits + 0.8 * (np.arange(3) == 2), axis=1), labels, class_names=["a", "b", "mass"]
    )
    assert (verdict.channel, verdict.direction) == ("mass", "too often")
    assert verdict.predicted > verdict.observed


@pytest.mark.parametrize(
    ("factor", "direction"), [(2.5, "over-confident"), (0.4, "under-confident")]
)
@pytest.mark.parametrize("classes", [2, 4])
def test_says_over_and_under_confident(factor: float, direction: str, classes: int) -> None:
    """Logits that are too large, or too small."""
    random = np.random.default_rng(10)
    logits = 1.5 * random.normal(size=(600, classes))
    labels = (logits + random.gumbel(size=(600, classes))).argmax(axis=1)
    verdict = judge(softmax(factor * logits, axis=1), labels)
    assert verdict.direction == direction
    assert verdict.sentence.startswith(direction)


def test_is_never_green_against_a_significant_statistic() -> None:
    """The verdict follows from the statistics that it lists, and the other way round."""
    for seed in range(30):
        random = np.random.default_rng([11, seed])
        z = one_channel(random, 80)
        y = (random.random(80) < expit(0.6 * np.log(z / (1 - z)))).astype(int)
        verdict = judge(z, y, simulations=200)
        smallest = min(d.adjusted for d in verdict.deviations)
        assert verdict.p_value == smallest
        assert verdict.miscalibrated == bool(verdict.found) == (smallest <= 0.05)
        assert verdict.sentence.startswith("no miscalibration found") != verdict.miscalibrated
        assert all(d.adjusted >= d.p_value for d in verdict.deviations)


def test_becomes_json() -> None:
    """Nothing but plain numbers and words."""
    found = judge([0.2, 0.7, 0.4], [0, 1, 1]).to_dict()
    assert json.loads(json.dumps(found))["per"] == "annotation"


def test_frequencies_show_their_difference() -> None:
    """As many decimals as it takes."""
    assert percentages(0.42, 0.2) == ("42%", "20%")
    assert percentages(0.008, 0.064) == ("0.8%", "6.4%")
    assert percentages(0.9996, 0.9991) == ("99.96%", "99.91%")


# --- edges ---------------------------------------------------------------------------------------


def test_rounded_tables_get_the_benefit_of_rounding() -> None:
    """0.00 in a table with two decimals may be 0.003; beside four digits it may not."""
    random = np.random.default_rng(12)
    inner = np.round(random.random(1000), 2)
    y = np.append(np.arange(3000) % 333 == 0, random.random(1000) < inner).astype(int)
    z = np.append(np.zeros(3000), inner)
    assert not judge(z, y).miscalibrated
    literal = judge(np.append(np.zeros(3000), np.clip(inner + 0.0002345, 0, 1)), y)
    assert literal.miscalibrated


def test_a_model_that_is_always_sure_and_sometimes_wrong_is_found() -> None:
    """Probabilities of exactly 0 and 1, one in ten wrong."""
    z = np.arange(100) % 2
    wrong = np.arange(100) % 10 == 0
    verdict = judge(z.astype(float), np.where(wrong, 1 - z, z))
    assert verdict.p_value < 0.01


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_constant_predictions_that_are_right(value: float) -> None:
    """One probability for all: no bins, no slope, no alarm."""
    y = np.arange(40) % 2 if value == 0.5 else np.full(40, int(value))
    verdict = judge(np.full(40, value), y, simulations=200)
    assert not verdict.miscalibrated
    json.dumps(verdict.to_dict(), allow_nan=False)


def test_many_classes_are_judged_by_those_that_vary() -> None:
    """Sixty classes: twenty are looked at by themselves, and the one that is off is among them."""
    random = np.random.default_rng(15)
    logits = 2 * random.normal(size=(600, 60)) - 2 * (np.arange(60) > 9)
    labels = (logits + random.gumbel(size=(600, 60))).argmax(axis=1)
    verdict = judge(softmax(logits + 1.5 * (np.arange(60) == 3), axis=1), labels)
    assert verdict.channel == "class 3"
    assert len({d.channel for d in verdict.deviations}) == 22


def test_one_case() -> None:
    """Nothing can be said, and nothing breaks."""
    assert not judge([0.3], [1], simulations=200).miscalibrated


def test_hard_cases_with_more_raters_are_noticed() -> None:
    """Calibrated over cases, over-confident over ratings: the two ways of counting differ."""
    random = np.random.default_rng(13)
    z = one_channel(random, 500, 1.5)
    truth = random.beta(2 * z, 2 * (1 - z))
    hard = np.where(z > 0.5, truth < z, truth > z)
    raters = np.where(hard, 5, 1)
    labels = histograms(random.binomial(raters, truth), raters)
    verdict = judge(z, labels)
    assert verdict.direction == "over-confident"
    assert verdict.counting is not None and verdict.other is not None
    assert verdict.counting.matters
    assert not verdict.other.miscalibrated
    assert "the number of raters depends on the case" in verdict.counting.sentence


def test_numbers_of_raters_that_depend_on_nothing_are_not() -> None:
    """One to five raters by chance: a difference in about one test set of twenty."""
    alarms = 0
    for seed in range(60):
        random = np.random.default_rng([14, seed])
        z, raters = one_channel(random, 100, 1.5), random.integers(1, 6, 100)
        labels = histograms(random.binomial(raters, random.beta(2 * z, 2 * (1 - z))), raters)
        counting = judge(z, labels, simulations=300, seed=seed).counting
        assert counting is not None
        alarms += counting.matters
    assert alarms <= 7


def test_so_they_are_not_for_a_model_that_is_off() -> None:
    """Over-confident about cases with one to five raters by chance: the noise is not its own.

    By the model's own probabilities, which leave too little room, two in five would be alarms.
    """
    alarms = 0
    for seed in range(40):
        random = np.random.default_rng([15, seed])
        logit, raters = random.normal(-0.5, 1.5, 300), random.integers(1, 6, 300)
        same = random.random(300) < 0.7
        truth = 1 / (1 + np.exp(-logit))
        truth = np.where(same, random.random(300) < truth, truth)
        z = 1 / (1 + np.exp(-3 * logit))
        counted = histograms(random.binomial(raters, truth), raters)
        counting = judge(z, counted, simulations=300, seed=seed).counting
        assert counting is not None
        alarms += counting.matters
    assert alarms <= 6


def test_what_the_read_classes_were_given_is_said_beside_what_they_should_have_been() -> None:
    """Σ p² is what a calibrated model gives the read class on average: by hand 0.5² + 5 · 0.1²."""
    random, cases = np.random.default_rng(1), 100
    probs = np.stack([random.permutation([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]) for _ in range(cases)])
    said = random.integers(0, 6, cases)
    given = probs[np.arange(cases), said].mean()
    found = rw.evaluate(probs, said, "ece,classwise_ece", resamples=100)
    sentence = found.data["verdict"]["sentence"]
    assert (probs**2).sum(axis=1).mean() == pytest.approx(0.3)
    assert f"chose a probability of {given:.0%}; a calibrated model would give it 30%" in sentence
