"""Everything at once: values, intervals, patients, raters, results on paper."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.functions.measure import measure
from raterwise.inference.draws import MAX_UNITS, multiplicities, resampling_units
from raterwise.predictions import Predictions
from strategies import (
    OF_BELIEFS,
    OF_PROBABILITIES,
    OUTSIDE,
    Problem,
    belief_for,
    mixture,
    ordinary,
)

PROBLEM = ordinary(120, num_classes=3)


def evaluate(problem: Problem = PROBLEM, **options: Any) -> rw.Results:
    """Evaluate a problem with few resamples."""
    given = {"metrics": OF_PROBABILITIES, "resamples": 100, **options}
    return rw.evaluate(problem.probs, problem.labels, **given)


@pytest.fixture(scope="module")
def results() -> rw.Results:
    """Return every metric of bare probabilities with its interval."""
    return evaluate()


@pytest.fixture(scope="module")
def belief_results() -> rw.Results:
    """Return every metric of a belief, those of its mean among them, with its interval."""
    belief = mixture(PROBLEM.probs)
    return rw.evaluate(
        belief, PROBLEM.labels, metrics=list(CATALOG), resamples=100, outside=OUTSIDE
    )


def width(estimate: rw.Estimate) -> float:
    """Return the length of an interval."""
    assert estimate.low is not None and estimate.high is not None
    return estimate.high - estimate.low


# values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_values_are_those_of_the_functions(name: str, results: rw.Results) -> None:
    """The function of the same name, given what it takes, returns the same number."""
    probs, labels = PROBLEM.probs, PROBLEM.labels
    chosen = probs.argmax(axis=1)
    agree = labels.frequencies[np.arange(len(PROBLEM)), chosen]
    per_annotation: dict[str, Any] = {"weights": labels.num_raters}
    disagreement = 1 - (probs**2).sum(axis=1)
    function = getattr(rw, name)
    if name in ("auccc", "aurc", "augrc"):
        plain = getattr(rw.confidence, name)(probs.max(axis=1), agree, **per_annotation)
        assert results[name].value == pytest.approx(plain, rel=1e-12)
    if name.startswith("disagreement"):
        assert function(disagreement, labels) == pytest.approx(function(probs, labels), rel=1e-12)
    if CATALOG[name].group == "Rater agreement":
        found = function(labels)
        expected = getattr(found, "value", found)
    elif name == "irreducible_loss":
        expected = function(labels)
    else:
        expected = function(probs, labels)
    assert results[name].value == pytest.approx(expected, rel=1e-12)
    assert results[name].value == pytest.approx(measure(name, probs, labels, None), rel=1e-12)


def test_all_is_every_metric_but_those_on_request() -> None:
    """`metrics="all"` leaves out what is only for ordered classes, or for a class looked for."""
    found = rw.evaluate(PROBLEM.probs, PROBLEM.labels, resamples=0)
    assert list(found) == [name for name in OF_PROBABILITIES if CATALOG[name].in_all is True]
    two = rw.evaluate([0.2, 0.9, 0.4], [0, 1, 1], resamples=0)
    assert list(two) == [name for name in OF_PROBABILITIES if CATALOG[name].in_all]
    weak = {"observed_expected_ratio", "calibration_intercept", "calibration_slope", "ici"}
    assert set(two) - set(found) == {"auroc", *weak}
    assert "ranked_probability_score" not in found
    assert "ece" in found


@pytest.mark.parametrize("metrics", ["ece,brier", "ece, brier", ["ece", "brier"], ("ece", "brier")])
def test_metrics_may_be_text_or_a_list(metrics: Any) -> None:
    """In the order asked for."""
    assert list(evaluate(metrics=metrics, resamples=0)) == ["ece", "brier"]


def test_bins_reach_every_metric_that_has_them() -> None:
    """As `bins=` of the functions does."""
    found = evaluate(bins=7, resamples=0)
    for name in ("ece", "mce", "adaptive_ece", "classwise_ece", "calibration_loss", "robust_ece"):
        expected = getattr(rw, name)(PROBLEM.probs, PROBLEM.labels, bins=7)
        assert found[name].value == pytest.approx(expected)
        assert found[name].value != evaluate(resamples=0)[name].value


def test_weights_reach_every_metric() -> None:
    """A case of weight 2 is two cases; the debiased losses say that they have no such thing."""
    weights = np.where(np.arange(120) < 30, 2, 1)
    found = evaluate(weights=weights, resamples=0)
    expected = rw.ece(PROBLEM.probs, PROBLEM.labels, weights=weights)
    assert found["ece"].value == pytest.approx(expected)
    assert found["calibration_loss"].value is None
    assert "equal case weights" in str(found["calibration_loss"].undefined)


# intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOG)
def test_intervals_contain_the_value(
    name: str, results: rw.Results, belief_results: rw.Results
) -> None:
    """And have a length: 120 cases do not settle anything."""
    for found in (results, belief_results):
        if name in OF_PROBABILITIES or found is belief_results:
            estimate = found[name]
            assert estimate.value is not None
            assert estimate.low is not None and estimate.high is not None
            assert estimate.low <= estimate.value <= estimate.high
            assert estimate.low < estimate.high


@pytest.mark.parametrize("name", OF_BELIEFS)
def test_metrics_of_a_belief_need_one(name: str) -> None:
    """Bare probabilities leave them undefined, and say why."""
    found = evaluate(metrics=[name, "ece"])
    assert found[name].value is None
    wanted = {"belief": "a belief", "samples": "the draws", "outside": "out-of-distribution cases"}
    assert f"it needs {wanted[CATALOG[name].needs]}" in str(found[name].undefined)
    assert found["ece"].value is not None


@pytest.mark.parametrize("name", [n for n in OF_BELIEFS if CATALOG[n].needs != "outside"])
def test_metrics_of_a_belief_are_resampled_over_raters(name: str) -> None:
    """Other raters would have judged otherwise: the interval has a length."""
    belief = belief_for(name, PROBLEM.probs)
    found = rw.evaluate(belief, PROBLEM.labels, name, resamples=50, unit="raters")
    assert width(found[name]) > 0


@pytest.mark.parametrize("interval", ["auto", "percentile", "bias_corrected"])
def test_the_seed_makes_the_digits(interval: str) -> None:
    """The same seed, the same results; another seed, other intervals of the same values."""
    first, again = evaluate(interval=interval), evaluate(interval=interval)
    assert dict(first) == dict(again)
    other = evaluate(interval=interval, seed=1)
    assert all(first[name].value == other[name].value for name in first)
    assert first["ece"].low != other["ece"].low or first["ece"].high != other["ece"].high


@pytest.mark.parametrize("interval", ["percentile", "bias_corrected"])
def test_bootstrap_intervals_on_request(interval: str) -> None:
    """Of the mean of 120 scores, both are about ±1.96 standard errors."""
    found = evaluate(interval=interval, metrics="nll,ece", resamples=1000)
    chosen = PROBLEM.labels.frequencies
    each = -(chosen * np.log(PROBLEM.probs)).sum(axis=1)
    error = each.std(ddof=1) / math.sqrt(120)
    assert width(found["nll"]) == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert width(found["ece"]) > 0
    assert found.options["interval"] == interval


def test_the_percentile_interval_of_an_error_is_biased() -> None:
    """A calibrated model: "auto" contains its true error 0, the percentile interval does not."""
    random = np.random.default_rng(0)
    p = random.random(300)
    y = (random.random(300) < p).astype(int)
    auto = rw.evaluate(p, y, "ece", resamples=300)["ece"]
    percentile = rw.evaluate(p, y, "ece", resamples=300, interval="percentile")["ece"]
    assert auto.low == 0
    assert percentile.low is not None and percentile.low > 0.01


def test_a_higher_level_is_a_wider_interval() -> None:
    """50, 90 and 99 %: each contains the one before it."""
    levels = [evaluate(level=level, metrics="brier,ece") for level in (0.5, 0.9, 0.99)]
    for name in ("brier", "ece"):
        widths = [width(found[name]) for found in levels]
        assert widths == sorted(widths)
        assert widths[0] < widths[2]


@pytest.mark.parametrize("cases", [2_000, 20_000])
def test_accuracy_has_its_textbook_standard_error(cases: int) -> None:
    """sqrt(p(1-p)/N); above 4096 cases they are drawn in blocks, which changes nothing."""
    random = np.random.default_rng(0)
    y = (random.random(cases) < 0.2).astype(int)
    found = rw.evaluate(np.full(cases, 0.1), y, "accuracy", resamples=1000)["accuracy"]
    assert found.value == pytest.approx(1 - y.mean())
    error = math.sqrt(y.mean() * (1 - y.mean()) / cases)
    assert width(found) == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert (cases > MAX_UNITS) == (cases == 20_000)


def test_pooled_units_keep_patients_together() -> None:
    """9,000 patients of two cases: blocks of patients, about as many in each."""
    patients = np.repeat(np.arange(9_000), 2)
    predictions = rw.Predictions.of(np.full(18_000, 0.5), np.zeros(18_000, int), groups=patients)
    units, number = resampling_units(predictions, seed=0)
    assert number == MAX_UNITS
    assert (units[::2] == units[1::2]).all()
    assert set(np.bincount(units, minlength=number)) == {4, 6}


def test_every_resample_draws_as_many_units() -> None:
    """N of N with replacement: Poisson-like counts that sum to N."""
    times = multiplicities(50, 2_000, seed=0)
    assert (times.sum(axis=1) == 50).all()
    assert times.mean(axis=0) == pytest.approx(np.ones(50), abs=0.12)
    assert times.var() == pytest.approx(1 - 1 / 50, rel=0.05)


def test_patients_not_cases_are_drawn() -> None:
    """Ten equal cases per patient: the interval by patient is sqrt(10) times that by case."""
    one_each = ordinary(200, num_classes=3, seed=5)
    repeated = one_each.take(np.repeat(np.arange(200), 10))
    patients = np.repeat(np.arange(200), 10)
    options: dict[str, Any] = {"metrics": "brier,accuracy,ece", "resamples": 600}
    by_case = evaluate(repeated, **options)
    by_patient = evaluate(repeated, groups=patients, **options)
    assert by_patient.data["patients"] == 200 and by_case.data["patients"] is None
    for name in ("brier", "accuracy"):
        ratio = width(by_patient[name]) / width(by_case[name])
        assert ratio == pytest.approx(math.sqrt(10), rel=0.15)
    assert width(by_patient["ece"]) > 1.5 * width(by_case["ece"])
    assert by_patient["ece"].value == pytest.approx(by_case["ece"].value)


def test_one_patient_per_case_is_no_grouping() -> None:
    """Patients with one case each: the digits of no groups at all."""
    assert dict(evaluate(groups=np.arange(120))) == dict(evaluate())


# raters ---------------------------------------------------------------------------------------


def ratings_of(problem: Problem) -> rw.Labels:
    """Return four raters who each label every case, with their identity."""
    random = np.random.default_rng(0)
    ratings = np.stack([
        [random.choice(problem.probs.shape[1], p=p) for p in problem.probs] for _ in range(4)
    ])  # fmt: skip
    return rw.Labels.from_ratings(ratings.T, num_classes=problem.probs.shape[1])


def test_raters_are_resampled_as_persons() -> None:
    """With known raters and without: same values, intervals of both, and they differ."""
    labels = ratings_of(PROBLEM)
    anonymous = rw.Labels.from_counts(labels.counts)
    options: dict[str, Any] = {"metrics": "brier,ece,epistemic_loss", "resamples": 200}
    known = rw.evaluate(PROBLEM.probs, labels, unit="raters", on_single="drop", **options)
    unknown = rw.evaluate(PROBLEM.probs, anonymous, unit="raters", on_single="drop", **options)
    for name in known:
        assert known[name].value == unknown[name].value
        assert width(known[name]) > 0 and width(unknown[name]) > 0
    assert width(known["brier"]) != width(unknown["brier"])


def test_a_rater_who_differs_widens_the_interval() -> None:
    """One of four raters always says class 0: drawing persons sees it, drawing labels does not."""
    random = np.random.default_rng(1)
    y = random.integers(0, 2, 400)
    ratings = np.stack((y, y, y, np.zeros(400, int)), axis=1)
    labels = rw.Labels.from_ratings(ratings, num_classes=2)
    probs = np.where(y == 1, 0.8, 0.2)
    options: dict[str, Any] = {"metrics": "accuracy", "resamples": 300, "unit": "raters"}
    persons = rw.evaluate(probs, labels, **options)["accuracy"]
    anonymous = rw.Labels.from_counts(labels.counts)
    single = rw.evaluate(probs, anonymous, **options)["accuracy"]
    # The raters are right in 1, 1, 1 and 1 - 4 odd of the cases: with s = 2 odd the standard error
    # of their mean is odd, and Student's t of 3 degrees of freedom 3.18; accuracy ends at 1.
    odd = (y == 1).mean() / 4
    assert persons.value == pytest.approx(1 - odd)
    assert persons.low == pytest.approx(1 - odd - 3.1824 * odd, rel=1e-4)
    assert persons.high == pytest.approx(min(1, 1 - odd + 3.1824 * odd), rel=1e-4)
    assert width(persons) > 5 * width(single)


@pytest.mark.parametrize("unit", ["cases", "raters", "both"])
def test_resampled_raters_who_are_not_known_are_warned_of(unit: Any) -> None:
    """The test above shows what is left out; where raters are known, or fixed, nothing is."""
    labels = ratings_of(PROBLEM)
    anonymous = rw.Labels.from_counts(labels.counts)
    for given, known in ((labels, True), (anonymous, False)):
        found = rw.evaluate(PROBLEM.probs, given, "brier", unit=unit, resamples=20)
        warned = [w for w in found.warnings if "not known which rater" in w]
        assert len(warned) == (unit != "cases" and not known)


def test_raters_who_agree_leave_nothing_to_resample() -> None:
    """Whoever is drawn says the same: the interval is the value."""
    y = PROBLEM.first_rater
    labels = rw.Labels.from_ratings(np.stack((y, y, y), axis=1), num_classes=3)
    found = rw.evaluate(PROBLEM.probs, labels, metrics="brier,nll", resamples=50, unit="raters")
    for estimate in found.values():
        assert estimate.low == pytest.approx(estimate.value)
        assert estimate.high == pytest.approx(estimate.value)


# undefined metrics ----------------------------------------------------------------------------


def test_one_rater_leaves_some_metrics_undefined() -> None:
    """They say why, and the others go on."""
    found = rw.evaluate(PROBLEM.probs, PROBLEM.first_rater, resamples=20)
    missing = {name for name, e in found.items() if e.value is None}
    needy = {n for n in OF_PROBABILITIES if CATALOG[n].least_raters > 1 and CATALOG[n].in_all}
    assert missing >= needy
    for name in missing:
        assert found[name].low is None and found[name].undefined
    assert "needs at least 2 labels" in str(found["epistemic_loss"].undefined)
    assert found["ece"].low is not None
    assert any("one rater per case" in warning for warning in found.warnings)


def test_undefined_metrics_say_why() -> None:
    """All right: no AUCCC. A class of probability 0 that a rater chose: no likelihood."""
    probs, y = np.array([[1.0, 0.0], [0.3, 0.7], [0.8, 0.2]]), [0, 1, 0]
    found = rw.evaluate(probs, y, resamples=20)
    assert found["auccc"].value is None
    assert "every prediction is right" in str(found["auccc"].undefined)
    assert found["nll"].value is not None and found["ece"].low is not None
    found = rw.evaluate(probs, [1, 1, 0], resamples=20)
    assert found["nll"].value is None
    assert "the probability 0" in str(found["nll"].undefined)
    assert found["brier"].value == pytest.approx((1 + 0.09 + 0.04) / 3)
    assert "undefined" in str(found["nll"]) and "undefined" in repr(found)


def test_no_interval_without_resamples() -> None:
    """`resamples=0` is the values alone."""
    found = evaluate(resamples=0)
    assert all(e.low is None and e.high is None and e.debiased is None for e in found.values())
    assert all(e.value is not None for e in found.values())


def test_one_case_is_evaluated() -> None:
    """Its values are those of the case; intervals, where there are any, contain them."""
    found = rw.evaluate([[0.9, 0.1]], [0], resamples=20)
    assert found["ece"].value == pytest.approx(0.1)
    for estimate in found.values():
        if estimate.low is not None:
            assert estimate.value is not None and estimate.high is not None
            assert estimate.low <= estimate.value <= estimate.high
    assert any("only 1 case " in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metrics": "ece,eec"},
            r"no metric is called 'eec' \(did you mean 'ece'\?\); known: accuracy, brier",
        ),
        ({"metrics": ""}, "metrics: "),
        ({"metrics": []}, "metrics: must name at least one metric"),
        ({"level": 0}, "level: must .*; got 0"),
        ({"level": 1}, "level: must .*; got 1"),
        ({"level": 95}, "level: must .*; got 95"),
        ({"level": math.nan}, "level: must .*; got nan"),
        ({"resamples": -1}, "resamples: must be at least 0; got -1"),
        ({"resamples": 1}, "resamples: must"),
        ({"resamples": 10.5}, "resamples: must be a whole number; got 10.5"),
        ({"unit": "patients"}, "unit: must be one of cases, raters, both; got 'patients'"),
        ({"interval": "exact"}, "interval: must be one of auto, percentile, bias_corrected"),
        ({"on_single": "keep"}, "on_single: must be one of error, drop; got 'keep'"),
        ({"seed": -1}, "seed: must"),
        ({"seed": 0.5}, "seed: must"),
        ({"threads": 0}, "threads: must"),
        ({"threads": -2}, "threads: must"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    """Before anything is computed, with the argument, the rule and the value."""
    with pytest.raises(rw.RaterwiseError, match=message):
        evaluate(**options)


def test_progress_is_reported() -> None:
    """Fractions rise from 0 to 1, with words."""
    seen: list[tuple[str, float]] = []
    evaluate(metrics="ece,brier", resamples=10, progress=lambda *what: seen.append(what))
    fractions = [done for _, done in seen]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0 and fractions[-1] == 1
    assert all(words for words, _ in seen)


def test_progress_is_reported_while_raters_are_drawn() -> None:
    """The slow part counts, and the fraction still never falls."""
    seen: list[float] = []
    evaluate(
        metrics="brier", resamples=10, unit="raters", progress=lambda _, done: seen.append(done)
    )
    assert len(seen) >= 10
    assert seen == sorted(seen)


# results --------------------------------------------------------------------------------------


def test_results_go_to_json_and_back(results: rw.Results, tmp_path: Path) -> None:
    """Nothing is lost: estimates, data, options, warnings."""
    path = tmp_path / "results.json"
    results.to_json(path)
    again = rw.Results.from_json(path)
    assert dict(again) == dict(results)
    assert again.to_dict() == results.to_dict()
    assert again.warnings == results.warnings


def test_the_json_has_the_keys_that_others_read(tmp_path: Path) -> None:
    """`schema_version`, `metrics`, `data`, `options`, `versions`: plain, strict JSON."""
    found = rw.evaluate(
        [[1.0, 0.0], [0.3, 0.7]], [1, 1], groups=["p", "q"], class_names=["no", "yes"], resamples=10
    )
    found.to_json(tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=pytest.fail)
    assert content == found.to_dict()
    assert content["schema_version"] == 1
    assert {"metrics", "data", "options", "versions", "warnings"} <= set(content)
    assert {"value", "low", "high", "undefined"} <= set(content["metrics"]["ece"])
    assert content["metrics"]["nll"]["value"] is None
    fingerprint = content["data"].pop("fingerprint")
    assert fingerprint["cases"] == fingerprint["units"] == 2 and fingerprint["weights"] is None
    resampling, verdict = (content["data"].pop(key) for key in ("resampling", "verdict"))
    assert (resampling["units"], resampling["worth"], resampling["freedom"]) == (2, 2.0, 1.0)
    assert {"miscalibrated", "p_value", "sentence", "deviations"} <= set(verdict)
    assert content["data"] == {
        "cases": 2,
        "patients": 2,
        "classes": 2,
        "class_names": ["no", "yes"],
        "ratings": 2,
        "raters": {"mean": 1.0, "min": 1, "max": 1},
        "dropped": {},
    }
    assert content["options"]["resamples"] == 10 and content["options"]["level"] == 0.95
    assert content["versions"]["raterwise"] == rw.__version__


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "is not a raterwise result file"),
        ("[]", "is not a raterwise result file"),
        ("{}", "is not a raterwise result file"),
        ('{"schema_version": 999}', "schema_version must be 1; got 999"),
        ('{"schema_version": 1, "metrics": {"ece": {"x": 1}}}', "is not a raterwise result file"),
    ],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    """A file that is no result file says so."""
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.Results.from_json(path)


def test_results_are_a_mapping(results: rw.Results) -> None:
    """By name, in order, with a readable form."""
    assert list(results) == OF_PROBABILITIES
    assert "ece" in results and "nonsense" not in results
    with pytest.raises(KeyError):
        results["nonsense"]
    assert "Expected calibration error" in repr(results)
    value, low, high = results["ece"].value, results["ece"].low, results["ece"].high
    p = results["ece"].p_value
    assert str(results["ece"]) == (
        f"Expected calibration error: {value:.4f} [{low:.4f}, {high:.4f}], p = {p:.2g}"
    )


def test_warnings_about_small_sets() -> None:
    """Few cases, few patients, single raters."""
    small = ordinary(40, num_classes=2)
    counts = small.counts.copy()
    counts[:3] = [1, 0]
    found = rw.evaluate(
        small.probs,
        rw.Labels.from_counts(counts),
        metrics="brier",
        groups=np.arange(40) // 4,
        resamples=10,
    )
    said = " | ".join(found.warnings)
    assert "only 40 cases" in said
    assert "only 10 patients" in said
    assert "3 of 40 cases have a single rater" in said
    assert evaluate(ordinary(150), metrics="brier", resamples=0).warnings == ()


def test_the_seed_decides_who_is_pooled_with_whom() -> None:
    """Above the most units: the same blocks with one seed, others with another, all as large."""
    cases = Predictions.of(np.full(2 * MAX_UNITS, 0.5), np.arange(2 * MAX_UNITS) % 2)
    (one, number), (again, _), (other, _) = (resampling_units(cases, seed) for seed in (1, 1, 2))
    assert number == MAX_UNITS and np.array_equal(one, again) and not np.array_equal(one, other)
    assert set(np.bincount(one, minlength=MAX_UNITS)) == {2}


def test_without_single_labels_both_estimates_are_of_the_same_cases() -> None:
    """The plug-in epistemic loss needs one label; asked to drop single ones, it goes without them.

    By hand: (p - μ)² of two classes, twice, is 0.02, 0.32 and, of the single label, 0.5.
    """
    probs, labels = [0.6, 0.9, 0.5], rw.Labels.from_counts([[1, 1], [1, 1], [0, 1]])
    plugin: dict[str, Any] = {"options": {"epistemic_loss": {"estimator": "plugin"}}}
    for on_single, value, left_out in (("error", 0.28, 0), ("drop", 0.17, 1)):
        asked = {**plugin, "on_single": on_single, "resamples": 0}
        found = rw.evaluate(probs, labels, "epistemic_loss", **asked)["epistemic_loss"]
        assert found.value == pytest.approx(value)
        assert (found.dropped or 0) == left_out


def test_names_of_classes_may_be_an_array() -> None:
    """`classes_` of a scikit-learn estimator is one, the columns of a frame are another."""
    for names in (np.array(["benign", "malignant"]), pd.Index(["benign", "malignant"])):
        found = rw.evaluate([0.2, 0.9], [0, 1], "brier", class_names=names, resamples=0)
        assert found.data["class_names"] == ["benign", "malignant"]
        words = np.array(["benign", "malignant"])
        assert rw.evaluate([0.2, 0.9], words, "brier", class_names=names, resamples=0)[
            "brier"
        ].value == pytest.approx((0.2**2 + 0.1**2) / 2)
