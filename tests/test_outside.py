"""A confidence of one's own, and cases from elsewhere: the same numbers everywhere (CCC)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest, norm
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.errors import InvalidInputError
from raterwise.results import Results
from strategies import ordinary

RANKS = ("auccc", "aurc", "augrc")
PROBLEM = ordinary(150, num_classes=3)
RANDOM = np.random.default_rng(5)
CONFIDENCE = PROBLEM.probs.max(axis=1).round(1) * 3 - 4 + RANDOM.normal(0, 0.2, 150)
"""Below 0 and above: an order, no probabilities."""
CONFIDENCE[::7] = CONFIDENCE[0]  # ties
OUTSIDE = np.r_[RANDOM.normal(-2.8, 0.5, 39), CONFIDENCE[0]]
OUTSIDE_PROBS = RANDOM.dirichlet([2, 2, 2], 40)
PATIENTS = np.arange(150) // 3


def evaluated(metrics: Any = (*RANKS, "io_auroc", "ece"), **options: Any) -> Results:
    """Evaluate with a confidence of its own and cases from elsewhere, few resamples."""
    given = {"confidence": CONFIDENCE, "outside": OUTSIDE, "resamples": 60, **options}
    return rw.evaluate(PROBLEM.probs, PROBLEM.labels, list(metrics), **given)


def flat(weights: Any = None, per: str = "annotation") -> tuple[Any, Any, Any]:
    """Return score, whether right, and weight, a row per annotation and outside case."""
    rows = []
    for i, y in enumerate(PROBLEM.counts):
        w = 1.0 if weights is None else weights[i]
        predicted = int(PROBLEM.probs[i].argmax())
        for k, times in enumerate(y):
            share = 1.0 if per == "annotation" else 1 / y.sum()
            rows += [(CONFIDENCE[i], float(k == predicted), w * share)] * int(times)
    rows += [(c, 0.0, 1.0) for c in OUTSIDE]
    score, right, mass = np.array(rows).T
    return score, right, mass


# values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", ["annotation", "case"])
@pytest.mark.parametrize("weighted", [False, True])
def test_auccc_is_the_area_that_scikit_learn_finds(per: str, weighted: bool) -> None:
    """Right against wrong annotations, outside cases among the wrong, with their weights."""
    weights = np.linspace(0.5, 2, 150) if weighted else None
    score, right, mass = flat(weights, per)
    found = evaluated(["auccc"], per=per, weights=weights)["auccc"].value
    assert found == pytest.approx(roc_auc_score(right, score, sample_weight=mass), abs=1e-12)


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("given", ["confidence", "outside", "both", "probabilities"])
@pytest.mark.parametrize("per", ["annotation", "case"])
def test_evaluate_has_the_numbers_of_the_functions(name: str, given: str, per: str) -> None:
    """With one of them or both, patients, weights and cases that nobody rated."""
    counts = PROBLEM.counts.copy()
    counts[3] = 0
    own: dict[str, Any] = {"confidence": CONFIDENCE.copy(), "outside": OUTSIDE}
    own["confidence"][3] = np.nan  # which is left out
    own = {k: v for k, v in own.items() if given in (k, "both")}
    own = {"outside": OUTSIDE_PROBS} if given == "probabilities" else own
    both: dict[str, Any] = {"weights": np.linspace(0.5, 2, 150), "on_unrated": "drop", "per": per}
    labels = rw.Labels.from_counts(counts)
    found = rw.evaluate(
        PROBLEM.probs, labels, name, groups=PATIENTS, resamples=20, **own, **both
    )[name]  # fmt: skip
    assert found.value == pytest.approx(
        getattr(rw, name)(PROBLEM.probs, labels, **own, **both), rel=1e-14
    )
    plain = getattr(rw, name)(PROBLEM.probs, labels, **both)
    assert found.value != pytest.approx(plain, rel=1e-3)
    assert found.low is not None and found.low < found.value < found.high


def test_risk_over_coverages_by_a_loop() -> None:
    """AURC: the error rate among the surest i, taken one by one; AUGRC: their errors over all."""
    probs, y = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), [0, 1, 1]
    confidence, outside = [3.0, -1.0, 7.0], [5.0, -2.0]
    order = [False, False, True, True, False]  # 7 wrong, 5 outside, 3 and -1 right, -2 outside
    wrong = np.cumsum([not right for right in order])
    found = rw.evaluate(probs, y, "aurc,augrc", confidence=confidence, outside=outside, resamples=0)
    assert found["aurc"].value == pytest.approx(np.mean(wrong / np.arange(1, 6)))
    areas = (np.r_[0, wrong[:-1]] + wrong) / 2 / 5  # trapezoids of accepted and wrong
    assert found["augrc"].value == pytest.approx(np.mean(areas))


def test_the_in_and_out_area_is_that_of_scikit_learn() -> None:
    """Cases against cases from elsewhere, each once whatever its raters, by weight where given."""
    score = np.r_[CONFIDENCE, OUTSIDE]
    inside = np.r_[np.ones(150), np.zeros(40)]
    found = evaluated(["io_auroc"])["io_auroc"].value
    assert found == pytest.approx(roc_auc_score(inside, score), abs=1e-12)
    assert found == pytest.approx(rw.confidence.io_auroc(CONFIDENCE, OUTSIDE), abs=1e-12)
    weights = np.linspace(0.5, 2, 150)
    expected = roc_auc_score(inside, score, sample_weight=np.r_[weights, np.ones(40)])
    assert evaluated(["io_auroc"], weights=weights)["io_auroc"].value == pytest.approx(expected)


def test_other_metrics_do_not_notice() -> None:
    """Values, intervals and resampled values of the others are those without a second sample."""
    names = ["accuracy", "ece", "kde_ece", "adaptive_ece", "brier"]
    first = evaluated([*names, "auccc"], groups=PATIENTS)
    plain = rw.evaluate(PROBLEM.probs, PROBLEM.labels, names, groups=PATIENTS, resamples=60)
    for name in names:
        assert first[name] == plain[name]
        np.testing.assert_array_equal(first.replicates[name], plain.replicates[name])
    assert first.data["outside"] == 40
    assert "outside" not in plain.data


# intervals ----------------------------------------------------------------------------------------


def delong(inside: Any, outside: Any) -> float:
    """Return DeLong's standard error (1988) of the area, from the placements of each value."""
    a, b = np.asarray(inside)[:, None], np.asarray(outside)[None, :]
    pairs = (a > b) + 0.5 * (a == b)
    v10, v01 = pairs.mean(axis=1), pairs.mean(axis=0)
    return math.sqrt(v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01))


def test_both_samples_are_resampled() -> None:
    """The bootstrap has the error of DeLong, which that of either sample alone falls short of."""
    found = evaluated(["io_auroc"], resamples=2000)
    error = delong(CONFIDENCE, OUTSIDE)
    assert found.replicates["io_auroc"].std() == pytest.approx(error, rel=0.06)
    fixed = rw.evaluate(
        PROBLEM.probs, PROBLEM.labels, "io_auroc", confidence=CONFIDENCE, outside=OUTSIDE[:1]
    )
    assert fixed.replicates["io_auroc"].std() > 0  # one case from elsewhere is no sample
    e = found["io_auroc"]
    assert e.high - e.low == pytest.approx(2 * 1.97 * error, rel=0.06)


def test_patients_are_resampled_beside_the_others() -> None:
    """Ten equal cases of each of fifteen patients are as good as fifteen cases."""
    random = np.random.default_rng(0)
    confidence, outside = random.normal(1, 1, 15), random.normal(0, 1, 400)
    probs, y, patients = np.full(150, 0.7), np.tile([0, 1], 75), np.repeat(np.arange(15), 10)
    many = rw.evaluate(
        probs, y, "io_auroc", groups=patients, confidence=np.repeat(confidence, 10),
        outside=outside, resamples=20,
    )["io_auroc"]  # fmt: skip
    few = rw.evaluate(
        probs[:15], y[:15], "io_auroc", confidence=confidence, outside=outside, resamples=20
    )["io_auroc"]
    assert many.value == pytest.approx(few.value)
    assert (many.low, many.high) == pytest.approx((few.low, few.high), abs=0.02)


def test_the_interval_contains_the_truth() -> None:
    """Two normal samples a distance of 1 apart, 60 and 25 cases: Φ(1/√2), in 150 studies."""
    truth, hits = norm.cdf(1 / math.sqrt(2)), 0
    for seed in range(150):
        random = np.random.default_rng([1, seed])
        e = rw.evaluate(
            np.full(60, 0.7), random.integers(0, 2, 60), "io_auroc", resamples=2,
            confidence=random.normal(1, 1, 60), outside=random.normal(0, 1, 25),
        )["io_auroc"]  # fmt: skip
        assert e.low is not None and e.high is not None
        hits += e.low <= truth <= e.high
    assert 134 <= hits <= 149  # 142.5 ± 2.7 at 95 %


def test_many_outside_cases_are_pooled() -> None:
    """Six thousand are drawn in 4096 blocks, with the error of so many cases."""
    random = np.random.default_rng(1)
    outside = random.normal(-2.8, 0.5, 6000)
    found = evaluated(["io_auroc"], outside=outside, resamples=300)
    error = delong(CONFIDENCE, outside)
    assert found.replicates["io_auroc"].std() == pytest.approx(error, rel=0.15)


@pytest.mark.parametrize("unit", ["raters", "both"])
def test_raters_may_be_drawn_too(unit: str) -> None:
    """The value stays; of raters alone the outside cases are as they are."""
    found = evaluated(["auccc", "aurc"], unit=unit)
    plain = evaluated(["auccc", "aurc"])
    for name, e in found.items():
        assert e.value == plain[name].value
        assert e.low is not None and e.low < e.value < e.high


# curves, sub-groups, comparisons ------------------------------------------------------------------


def test_the_curve_with_and_without_them() -> None:
    """Results keep both; the counts are those of `ccc_curve`."""
    found = evaluated(["auccc"])
    for key, own in (("thresholds", {"outside": OUTSIDE}), ("thresholds_inside", {})):
        kept = rw.curves.ThresholdCurve.from_dict(found.curves[key])
        whole = rw.ccc_curve(PROBLEM.probs, PROBLEM.labels, confidence=CONFIDENCE, **own)
        for threshold in (-2.5, -1.8):
            near = kept.thresholds[np.abs(kept.thresholds - threshold).argmin()]
            expected = whole.at(near)
            assert kept.at(near)["correct_accepts"] == expected["correct_accepts"]
            assert kept.at(near)["incorrect_accepts"] == expected["incorrect_accepts"]
        assert kept.rate_low is not None
        assert kept.accepted_cases[-1] == 150 + len(own.get("outside", ()))
    drawn = rw.curves.threshold_curve(
        PROBLEM.probs, PROBLEM.labels, confidence=CONFIDENCE, outside=OUTSIDE, resamples=60
    )
    np.testing.assert_array_equal(
        drawn.risk_low, rw.curves.ThresholdCurve.from_dict(found.curves["thresholds"]).risk_low
    )
    assert "thresholds_inside" not in evaluated(["auccc"], outside=None).curves


def test_outside_cases_are_set_against_every_level() -> None:
    """A level's figures are those of its cases and all outside ones."""
    sex = np.where(np.arange(150) % 2, "f", "m")
    found = evaluated(
        ["auccc", "io_auroc"], subgroups={"sex": sex}, subgroup_metrics=["auccc", "io_auroc"]
    )
    for level in found.subgroups:
        own = sex == level.level
        expected = rw.auccc(
            PROBLEM.probs[own], PROBLEM.labels.take(own), confidence=CONFIDENCE[own],
            outside=OUTSIDE,
        )  # fmt: skip
        assert level.estimates["auccc"].value == pytest.approx(expected, rel=1e-12)
        among = rw.confidence.io_auroc(CONFIDENCE[own], OUTSIDE)
        assert level.estimates["io_auroc"].value == pytest.approx(among, rel=1e-12)
        for difference in level.differences.values():
            assert difference.adjusted_p_value is not None and difference.adjusted_p_value > 0.01


def test_a_level_that_is_unlike_is_found() -> None:
    """Cases of one scanner have the confidences of cases from elsewhere."""
    random = np.random.default_rng(3)
    other = np.arange(150) < 60
    confidence = np.where(other, random.normal(0, 1, 150), random.normal(3, 1, 150))
    found = rw.evaluate(
        PROBLEM.probs, PROBLEM.labels, "io_auroc", confidence=confidence,
        outside=random.normal(0, 1, 50), subgroups={"scanner": other},
        subgroup_metrics="io_auroc", resamples=400,
    )  # fmt: skip
    assert all(s.differences["io_auroc"].adjusted_p_value < 0.01 for s in found.subgroups)


def test_models_are_compared_on_the_same_outside_cases() -> None:
    """Pairs: a model and itself do not differ; files agree with arrays."""
    models = {"a": PROBLEM.probs, "b": PROBLEM.probs}
    one = {
        "confidence": {"a": CONFIDENCE, "b": CONFIDENCE},
        "outside": dict.fromkeys("ab", OUTSIDE),
    }
    same = rw.compare(models, PROBLEM.labels, ["auccc", "io_auroc"], resamples=50, **one)
    assert all(d.difference == d.low == d.high == 0 for d in same.differences)
    two = {"confidence": {"a": CONFIDENCE}, "outside": {"a": OUTSIDE, "b": OUTSIDE_PROBS}}
    found = rw.compare(models, PROBLEM.labels, ["auccc", "io_auroc"], resamples=50, **two)
    apart = {
        "a": evaluated(["auccc", "io_auroc"], resamples=50),
        "b": evaluated(["auccc", "io_auroc"], resamples=50, confidence=None, outside=OUTSIDE_PROBS),
    }
    assert rw.compare(apart).differences == found.differences
    largest = OUTSIDE_PROBS.max(axis=1)
    expected = rw.confidence.io_auroc(PROBLEM.probs.max(axis=1), largest)
    assert found.models["b"]["io_auroc"].value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"outside": {"a": OUTSIDE}}, "outside: must be given for every model; 'b' has none"),
        ({"outside": OUTSIDE}, "outside: must be given by model; got ndarray"),
        ({"confidence": {"c": CONFIDENCE}}, "confidence: there is no model 'c'"),
        (
            {"outside": {"a": OUTSIDE, "b": OUTSIDE[1:]}},
            r"the same cases for every model; got \[39",
        ),
        (
            {"outside": {"a": [[0.1, 0.9], [0.2]], "b": OUTSIDE}},
            "outside: must be an array of numbers with rows of one length; row 0 has 2 values",
        ),
    ],
)
def test_what_models_must_share(own: dict[str, Any], message: str) -> None:
    """The cases from elsewhere, but not the confidence."""
    models = {"a": PROBLEM.probs, "b": PROBLEM.probs}
    with pytest.raises((ValueError, TypeError), match=message):
        rw.compare(models, PROBLEM.labels, "auccc", resamples=5, **own)


def test_results_of_other_outside_cases_are_no_pairs() -> None:
    """Forty and thirty-nine of them."""
    first, second = evaluated(["auccc"]), evaluated(["auccc"], outside=OUTSIDE[1:])
    with pytest.raises(
        InvalidInputError, match="must have the same out-of-distribution cases; 'a' has 40"
    ):
        rw.compare({"a": first, "b": second})


# what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {"metrics": ["ece", "brier"]},
            "confidence: none of these metrics ranks cases by it; auccc",
        ),
        ({"question": "positive"}, "confidence: needs question=\"top_label\"; got 'positive'"),
        ({"confidence": CONFIDENCE[1:]}, "confidence: must match probs; got 149 for 150 cases"),
        ({"confidence": np.full(150, np.nan)}, "confidence: must not contain NaN; 150 values"),
        ({"outside": OUTSIDE_PROBS}, r"outside: must be \(M,\) confidences of the same kind"),
        (
            {"outside": np.zeros((4, 2)), "confidence": None},
            r"outside: must be \(M,\), or \(M, 3\)",
        ),
        ({"outside": np.zeros((4, 3)), "confidence": None}, "outside: rows must sum to 1"),
        ({"outside": []}, "outside: must hold at least one case; got none"),
    ],
)
def test_what_cannot_be_ranked(own: dict[str, Any], message: str) -> None:
    """An error names the argument and the rule."""
    given = {"metrics": ["auccc"], **own}
    with pytest.raises(InvalidInputError, match=message):
        evaluated(**given)


def test_without_outside_cases_there_is_no_area() -> None:
    """The metric says what it needs, and "all" leaves it out."""
    found = rw.evaluate(PROBLEM.probs, PROBLEM.labels, "io_auroc,auccc", resamples=0)
    assert found["io_auroc"].undefined == "it needs out-of-distribution cases (outside=)"
    assert "io_auroc" not in rw.evaluate(PROBLEM.probs, PROBLEM.labels, resamples=0)
    assert "io_auroc" in rw.evaluate(PROBLEM.probs, PROBLEM.labels, outside=[0.5], resamples=0)


# files, streams, reports --------------------------------------------------------------------------

COLUMNS = ("a", "b", "c")


def tables(folder: Path, confidence: Any, outside: Any) -> tuple[Path, Path]:
    """Write the cases, in several row groups, and the cases from elsewhere."""
    cases = {"case": np.arange(150), "conf": confidence}
    cases |= {f"prob_{name}": PROBLEM.probs[:, k] for k, name in enumerate(COLUMNS)}
    cases |= {f"count_{name}": PROBLEM.counts[:, k] for k, name in enumerate(COLUMNS)}
    pq.write_table(pa.table(cases), folder / "cases.parquet", row_group_size=40)
    pq.write_table(pa.table({"conf": outside}), folder / "outside.parquet")
    return folder / "cases.parquet", folder / "outside.parquet"


@pytest.mark.parametrize("streamed", [False, True])
def test_the_command_line_has_the_numbers_of_python(tmp_path: Path, streamed: bool) -> None:
    """From tables, and from a stream within the bound that it states."""
    confidence = 1 / (1 + np.exp(-CONFIDENCE - 2))
    outside = 1 / (1 + np.exp(-OUTSIDE - 2))
    cases, others = tables(tmp_path, confidence, outside)
    command = (
        f"evaluate {cases} --count-prefix count_ --confidence-column conf --outside {others} "
        f"--metrics auccc,aurc,io_auroc --resamples 100 --out {tmp_path}/out.json -q"
    )
    done = CliRunner().invoke(app, [*command.split(), *(["--stream"] if streamed else [])])
    assert done.exit_code == 0, done.output
    found = Results.from_json(tmp_path / "out.json")
    expected = evaluated(
        ["auccc", "aurc", "io_auroc"], confidence=confidence, outside=outside, resamples=100
    )
    for name, e in found.items():
        assert e.value == pytest.approx(expected[name].value, abs=(e.bound or 0) + 1e-9)
        assert e.high - e.low == pytest.approx(
            expected[name].high - expected[name].low, rel=0.35 if streamed else 1e-9
        )
        assert streamed or e.bound is None
    assert (found["auccc"].bound is not None) == streamed
    assert found.data["outside"] == 40
    assert {"thresholds", "thresholds_inside"} <= set(found.curves)


def test_stability_of_metrics_that_rank_and_of_others(tmp_path: Path) -> None:
    """The cases from elsewhere and the confidence are told to AUCCC alone; ECE goes without."""
    cases, others = tables(tmp_path, CONFIDENCE, OUTSIDE)
    command = (
        f"stability {cases} --count-prefix count_ --confidence-column conf --outside {others} "
        f"--metrics ece,auccc --fractions 0.5,1 --repeats 2 --out {tmp_path}/out.json -q"
    )
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["metrics"]
    whole = {name: every["full"] for name, (every, _) in found.items()}
    ranked = rw.auccc(PROBLEM.probs, PROBLEM.labels, confidence=CONFIDENCE, outside=OUTSIDE)
    assert whole["auccc"] == pytest.approx(ranked)
    assert whole["ece"] == pytest.approx(rw.ece(PROBLEM.probs, PROBLEM.labels))


def test_what_streams_cannot_rank(tmp_path: Path) -> None:
    """Confidences beyond [0, 1] have no cell, and summaries hold the cases alone."""
    cases, _ = tables(tmp_path, CONFIDENCE, OUTSIDE)
    told: dict[str, Any] = {"count_prefix": "count_", "resamples": 0}
    with pytest.raises(InvalidInputError, match=r"'conf': confidences of a stream must lie in \[0"):
        rw.evaluate_stream(cases, "auccc", confidence_column="conf", **told)
    with pytest.raises(InvalidInputError, match=r"outside: confidences of a stream must lie in"):
        rw.evaluate_stream(cases, "auccc", outside=[2.0], **told)
    with pytest.raises(InvalidInputError, match="outside: a saved summary holds the cases of"):
        rw.evaluate_stream(cases, "auccc", outside=[1.0], save_summary=tmp_path / "s.npz", **told)
    found = rw.evaluate_stream(cases, "auccc", outside=OUTSIDE_PROBS, **told)["auccc"]
    expected = rw.auccc(PROBLEM.probs, PROBLEM.labels, outside=OUTSIDE_PROBS)
    assert found.value == pytest.approx(expected, abs=found.bound)


def test_one_column_of_outside_probabilities(tmp_path: Path) -> None:
    """Of two classes it is the second's: 0.1 is a confidence of 0.9."""
    (tmp_path / "cases.csv").write_text("case,prob_1,y\n1,0.9,1\n2,0.4,1\n3,0.3,0\n")
    (tmp_path / "outside.csv").write_text("case,prob_1\nx,0.1\ny,0.5\n")
    command = f"evaluate {tmp_path}/cases.csv --label-column y --outside {tmp_path}/outside.csv"
    command += f" --metrics io_auroc --resamples 0 -q --out {tmp_path}/out.json"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    found = Results.from_json(tmp_path / "out.json")["io_auroc"].value
    assert found == pytest.approx((0.5 + 1 + 0 + 1 + 0 + 1) / 6)  # 0.9, 0.6, 0.7 against 0.9, 0.5


def test_findings_rank_by_their_own_probabilities(tmp_path: Path) -> None:
    """What findings do not have is refused, not left unread."""
    command = f"evaluate {tmp_path}/x.csv --multilabel --confidence-column c"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 2
    assert "confidence" in done.output


def test_the_report_says_how_many_and_draws_both(tmp_path: Path) -> None:
    """With cases from elsewhere the section has two curves and the areas; without, one."""
    names = ["auccc", "io_auroc", "ece", "accuracy"]
    evaluated(names).to_html(tmp_path / "with.html")
    page = (tmp_path / "with.html").read_text(encoding="utf-8")
    assert "The cases below include 40 from elsewhere." in page
    assert "with cases from elsewhere" in page and "in/out AUROC" in page
    assert '"of_shares": false' in page or '"of_shares":false' in page
    plain = rw.evaluate(PROBLEM.probs, PROBLEM.labels, ["auccc", "ece", "accuracy"], resamples=60)
    plain.to_html(tmp_path / "without.html")
    page = (tmp_path / "without.html").read_text(encoding="utf-8")
    assert "from elsewhere" not in page
    assert '"of_shares": true' in page or '"of_shares":true' in page


def test_the_band_of_the_risk_is_of_all_cases_that_are_accepted() -> None:
    """Of 100 cases, 20 of them wrong, and 300 from elsewhere: Wilson's interval of 320 of 400."""
    confidence = np.linspace(0.7, 0.9, 100)
    labels = (np.arange(100) % 5 > 0).astype(int)
    found = rw.evaluate(confidence, labels, "auccc", outside=np.linspace(0.5, 0.7, 300))
    curve = rw.curves.ThresholdCurve.from_dict(found.curves["thresholds"])
    known = binomtest(320, 400).proportion_ci(method="wilson")
    assert curve.risk_low is not None and curve.risk_high is not None
    assert (curve.risk_low[-1], curve.risk_high[-1]) == pytest.approx((known.low, known.high))
