"""One verdict, whatever the cases come from: memory, streams, summaries, images, findings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.evaluation.judged import _beside_intervals
from raterwise.report.verdicts import verdict
from raterwise.segmentation import Case

SIDE = 5
"""Of the little images that cases of a patient are the pixels of."""


def cases(shift: float = 0.9, patients: int = 40, seed: int = 0) -> dict[str, Any]:
    """Return patients of 25 cases with three raters; a shift makes the model say yes too often."""
    random = np.random.default_rng(seed)
    n = patients * SIDE**2
    logit = 1.5 * random.normal(size=n)
    p = 1 / (1 + np.exp(-logit - shift))
    raters = (random.random((n, 3)) < 1 / (1 + np.exp(-logit))[:, None]).astype(int)
    return {"p": p, "raters": raters, "patient": np.repeat(np.arange(patients), SIDE**2)}


def labels_of(held: dict[str, Any]) -> rw.Labels:
    """Return what the raters said."""
    return rw.Labels.from_ratings(held["raters"], num_classes=2)


def in_memory(held: dict[str, Any], **options: Any) -> rw.Results:
    """Evaluate the cases as arrays."""
    options = {"resamples": 20, "class_names": ["no", "yes"], **options}
    return rw.evaluate(held["p"], labels_of(held), "ece", held["patient"], **options)


def written(held: dict[str, Any], path: Path, rows: int = 300) -> Path:
    """Write the cases as Parquet; row groups cut patients in two."""
    columns = {"prob_yes": held["p"], "patient": held["patient"].astype(str)}
    columns |= {f"r{i}": held["raters"][:, i] for i in range(3)}
    pq.write_table(pa.table(columns), path, row_group_size=rows)
    return path


STREAM: dict[str, Any] = {
    "rater_columns": ["r0", "r1", "r2"], "group_column": "patient", "class_names": ["no", "yes"],
    "missing": [], "resamples": 20,
}  # fmt: skip


def streamed(held: dict[str, Any], path: Path, **options: Any) -> rw.Results:
    """Evaluate the cases as a file of several parts."""
    held = {**held, "raters": np.array(["no", "yes"])[held["raters"]]}
    return rw.evaluate_stream(written(held, path), "ece", **{**STREAM, **options})


def as_images(held: dict[str, Any], reduction: Any, **options: Any) -> rw.Results:
    """Evaluate the cases as pixels, one image per patient."""
    images = []
    for patient in np.unique(held["patient"]):
        own = held["patient"] == patient
        masks = held["raters"][own].T.reshape(3, SIDE, SIDE)
        images.append(Case(held["p"][own].reshape(SIDE, SIDE), masks, patient=str(patient)))
    options = {"resamples": 20, "class_names": ["no", "yes"], **options}
    return rw.segmentation.evaluate(images, "ece", reduction, **options)


def as_finding(held: dict[str, Any]) -> rw.Results:
    """Evaluate the cases as one finding of that name."""
    positives = held["raters"].sum(axis=1, keepdims=True)
    return rw.evaluate_multilabel(
        held["p"][:, None], positives, np.full_like(positives, 3), ["yes"], "ece", held["patient"],
        resamples=20,
    ).findings["yes"]  # fmt: skip


def agree(found: dict[str, Any], expected: dict[str, Any], within: float) -> None:
    """Assert that two verdicts say the same; a p-value is as near as the deviations are."""
    said, known = (re.sub(r"p = [\d.]+", "p", v["sentence"]) for v in (found, expected))
    assert said == known
    assert found["p_value"] == pytest.approx(expected["p_value"], abs=max(within, 1e-3) / 2)
    assert found["miscalibrated"] == expected["miscalibrated"]
    for one, other in zip(found["deviations"], expected["deviations"], strict=True):
        assert one["statistic"] == other["statistic"]
        assert one["predicted"] == pytest.approx(other["predicted"], abs=1e-6)
        assert one["observed"] == pytest.approx(other["observed"], abs=1e-6)
        assert one["standardised"] == pytest.approx(other["standardised"], rel=within, abs=within)
        assert one["adjusted"] == pytest.approx(other["adjusted"], abs=0.05)


@pytest.mark.parametrize("shift", [0.0, 0.9])
def test_the_same_verdict_from_every_source(shift: float, tmp_path: Path) -> None:
    """The same sentence and the same deviations; blocks of a stream hold two patients by chance."""
    held = cases(shift)
    expected = in_memory(held).data["verdict"]
    assert expected["miscalibrated"] == (shift > 0)
    agree(as_finding(held).data["verdict"], expected, 1e-6)
    for reduction in ("pooled", "per_case"):
        agree(as_images(held, reduction).data["verdict"], expected, 1e-6)
    agree(streamed(held, tmp_path / "cases.parquet").data["verdict"], expected, 0.1)


def test_patients_are_patients_where_raters_are_drawn(tmp_path: Path) -> None:
    """The verdict takes raters as they are: with any unit it is that of the patients."""
    held = cases(shift=0.0)
    for evaluated in (
        lambda unit: in_memory(held, unit=unit),
        lambda unit: streamed(held, tmp_path / "c.parquet", unit=unit),
    ):
        by_cases, by_raters = (evaluated(unit).data["verdict"] for unit in ("cases", "raters"))
        assert by_cases["design_effect"] > 1.1
        for name in ("p_value", "design_effect", "deviations"):
            assert by_raters[name] == by_cases[name]


def test_four_classes_in_memory_and_in_a_stream(tmp_path: Path) -> None:
    """Channels of classes, of the top label and of all classes add up over parts."""
    random = np.random.default_rng(1)
    logits = random.normal(size=(900, 4))
    y = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    probs = np.exp(1.7 * logits)
    probs /= probs.sum(axis=1, keepdims=True)
    expected = rw.evaluate(probs, y, "ece", class_names=list("abcd"), resamples=20).data["verdict"]
    table = pa.table({f"prob_{name}": probs[:, k] for k, name in enumerate("abcd")})
    table = table.append_column("y", pa.array(np.array(list("abcd"))[y]))
    pq.write_table(table, tmp_path / "cases.parquet", row_group_size=250)
    found = rw.evaluate_stream(
        tmp_path / "cases.parquet", "ece", resamples=20, label_column="y"
    ).data["verdict"]
    agree(found, expected, 1e-6)
    assert expected["direction"] == "over-confident"


def test_merged_halves_are_the_whole(tmp_path: Path) -> None:
    """Summaries that two places saved give the verdict of all cases."""
    held = cases()
    first = held["patient"] < 17
    for i, rows in enumerate((first, ~first)):
        half = {name: values[rows] for name, values in held.items()}
        streamed(half, tmp_path / f"half{i}.parquet", save_summary=tmp_path / f"half{i}.npz")
    out = tmp_path / "merged.json"
    asked = ["merge", str(tmp_path / "half*.npz"), "--out", str(out), "--resamples", "20"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    whole = streamed(held, tmp_path / "whole.parquet")
    merged = rw.Results.from_json(out)
    agree(merged.data["verdict"], whole.data["verdict"], 1e-6)
    assert "Says “yes” too often." in done.output


def test_patients_count_in_every_source(tmp_path: Path) -> None:
    """Cases that follow their patient are no news, wherever they come from."""
    held, random = cases(0.0), np.random.default_rng(3)
    place = random.random(40)[held["patient"], None]  # one draw per patient, for every label
    held["raters"] = np.repeat((place < held["p"][:, None]).astype(int), 3, axis=1)
    found = [
        in_memory(held), streamed(held, tmp_path / "c.parquet"), as_images(held, "pooled"),
    ]  # fmt: skip
    for results in found:
        assert results.data["verdict"]["design_effect"] > 10
        assert not results.data["verdict"]["miscalibrated"]
    alone = rw.evaluate(held["p"], labels_of(held), "ece", resamples=20)
    assert alone.data["verdict"]["design_effect"] < 5


def test_a_few_images_that_are_all_off_in_the_same_way() -> None:
    """Student's t over ten images: what all of them show is found, what one shows is not."""
    held = cases(0.9, patients=10)
    assert as_images(held, "pooled").data["verdict"]["miscalibrated"]
    random = np.random.default_rng(4)
    alarms = 0
    for _ in range(40):
        shift = 0.8 * random.normal(size=6).repeat(SIDE**2)  # right over all images that might be
        logit = 1.5 * random.normal(size=len(shift))
        p = np.mean([1 / (1 + np.exp(-logit - s)) for s in 0.8 * random.normal(size=400)], axis=0)
        positive = random.random((len(p), 3)) < 1 / (1 + np.exp(-logit - shift))[:, None]
        six = {"p": p, "raters": positive.astype(int), "patient": np.arange(6).repeat(SIDE**2)}
        alarms += as_images(six, "pooled", resamples=2).data["verdict"]["miscalibrated"]
    assert alarms <= 5


# who said what -----------------------------------------------------------------------------------


def test_the_raters_are_compared_in_a_stream_as_in_memory(tmp_path: Path) -> None:
    """A reader who sees more than the others is found and warned of, also without patients."""
    held = cases(0.0, patients=30)
    held["raters"][::4, 2] = 1
    for grouped in (True, False):
        groups = held["patient"] if grouped else None
        expected = rw.evaluate(
            held["p"], labels_of(held), "fleiss_kappa", groups, class_names=["no", "yes"],
            resamples=20,
        )  # fmt: skip
        said = {**held, "raters": np.array(["no", "yes"])[held["raters"]]}
        path = written(said, tmp_path / "c.parquet")
        asked = {**STREAM, "group_column": "patient" if grouped else None}
        found = rw.evaluate_stream(path, "fleiss_kappa", **asked)
        one, other = (results.data["exchangeability"] for results in (found, expected))
        assert one["statistic"] == pytest.approx(other["statistic"], rel=1e-9)
        assert one["p_value"] == pytest.approx(other["p_value"], abs=0.02)
        assert one["p_value"] <= 0.05
        for mine, theirs in zip(one["raters"], other["raters"], strict=True):
            assert mine["excess"]["yes"] == pytest.approx(theirs["excess"]["1"])
        assert one["raters"][2]["rater_id"] == "r2" and one["raters"][2]["breaks"]
        assert any("the raters are not interchangeable" in note for note in found.warnings)


def test_summaries_keep_who_said_what_unless_it_is_about_patients(tmp_path: Path) -> None:
    """A file that leaves the house holds no patient, and so cannot say who is strict with whom."""
    held = cases(0.0, patients=8)
    held["raters"] = np.array(["no", "yes"])[held["raters"]]
    path = written(held, tmp_path / "c.parquet")
    for group, compared in ((None, True), ("patient", False)):
        saved = tmp_path / f"{compared}.npz"
        asked = {**STREAM, "group_column": group, "save_summary": saved}
        whole = rw.evaluate_stream(path, "fleiss_kappa", **asked)
        out = tmp_path / "merged.json"
        done = CliRunner().invoke(app, ["merge", str(saved), "--out", str(out), "-q"])
        assert done.exit_code == 0, done.output
        data = rw.Results.from_json(out).data
        if compared:
            assert data["exchangeability"]["p_value"] == whole.data["exchangeability"]["p_value"]
        else:
            assert "do not say who the patients are" in data["raters_not_compared"]


def test_nobody_is_compared_where_nobody_knows_who_said_what() -> None:
    """Counts and masks: the results say why there is no test."""
    labels = rw.Labels.from_counts([[2, 1], [1, 2], [0, 3]] * 5)
    found = rw.evaluate(np.linspace(0.1, 0.9, 15), labels, "fleiss_kappa", resamples=20)
    image = rw.segmentation.evaluate(
        [Case(np.full((3, 3), 0.4), np.eye(3, dtype=int)[None].repeat(2, axis=0))] * 2,
        "fleiss_kappa", resamples=20,
    )  # fmt: skip
    why = "no comparison of the raters because "
    assert found.data["raters_not_compared"] == f"{why}the labels do not say who gave them"
    assert image.data["raters_not_compared"] == f"{why}voxels are too many to shuffle"


# no verdict, and other evidence ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (lambda: rw.evaluate([0.2, 0.7, 0.4], [0, 1, 1], "brier", resamples=20), "no calibration"),
        (lambda: rw.evaluate([0.2, 0.7, 0.4], [0, 1, 1], "ece", resamples=0), "resamples=0 asks"),
        (lambda: rw.evaluate([0.2, 0.7], [0, 1], "ece", ["a", "a"], resamples=20), "one patient"),
        (lambda: as_images(cases(patients=1), "pooled"), "all cases are from one patient"),
    ],
)
def test_no_verdict_says_why(found: Any, why: str) -> None:
    """Where there is none the results say so, and why."""
    said = found().data["verdict"]
    assert said["miscalibrated"] is None
    assert said["sentence"].startswith("no verdict because ") and why in said["sentence"]


def sceptics(seed: int, gaps: tuple[float, ...]) -> tuple[Any, rw.Labels]:
    """Return probabilities, and raters who see less than that, each by a gap."""
    random = np.random.default_rng(seed)
    p = random.beta(2, 2, 60)
    said = [random.random(60) < np.clip(p - gap, 0, 1) for gap in gaps]
    return p, rw.Labels.from_ratings(np.stack(said, axis=1).astype(int), num_classes=2)


def test_red_only_where_intervals_over_raters_agree() -> None:
    """The verdict is on these raters; where others might say otherwise it is no more than amber."""
    tones = {}
    for seed in range(6):  # two who differ, or six who do not
        p, labels = sceptics(seed, (0.05, 0.3) if seed < 4 else (0.4,) * 6)
        results = rw.evaluate(p, labels, "ece", resamples=50, unit="both", question="positive")
        judged, told = results.data["verdict"], verdict(results)
        if judged["miscalibrated"]:
            reaches = results["ece"].low == 0
            assert judged["reach_zero"] == (["ece"] if reaches else [])
            assert told.tone == ("caution" if reaches else "bad")
            assert ("With others it might look different" in told.explanation) == reaches
            tones[told.tone] = seed
    assert set(tones) == {"caution", "bad"}


def calibrated(unit: Any = "cases", metrics: str = "ece,mce") -> rw.Results:
    """Return the results of a calibrated model of 3,000 cases and three raters."""
    p = np.linspace(0.02, 0.98, 3000)
    labels = rw.Labels.from_ratings(
        (np.random.default_rng(7).random((3000, 3)) < p[:, None]).astype(int), num_classes=2
    )
    return rw.evaluate(p, labels, metrics, resamples=50, unit=unit, question="positive")


def with_intervals(results: rw.Results, **p_values: float) -> Any:
    """Return what is told where calibration errors have these p-values of zero."""
    found = results.data["verdict"]
    errors = [
        replace(results[name], p_value=p, low=0.004 if p <= 0.05 else 0.0)
        for name, p in p_values.items()
    ]
    seen = {**found, **_beside_intervals(errors, found["unit"], found)}
    return verdict(replace(results, data={**results.data, "verdict": seen}))


@pytest.mark.parametrize("unit", ["cases", "raters"])
def test_never_green_against_the_intervals(unit: Any) -> None:
    """Intervals that exclude 0 beyond chance, all together, stand against a green headline."""
    results = calibrated(unit)
    assert verdict(results).tone == "good"
    assert results.data["verdict"]["above_zero"] == []
    told = with_intervals(results, ece=0.02, mce=0.8)  # twice 0.02 is below 0.05
    assert (told.headline, told.tone) == ("Possibly miscalibrated", "caution")
    assert "But the interval of Expected calibration error excludes 0, and chance is unlikely" in (
        told.explanation
    )
    assert "corrected for 2 intervals" in told.explanation
    assert ("these cases read by other raters" in told.explanation) == (unit == "raters")


def test_a_model_that_is_off_both_ways_is_not_judged_by_its_mean() -> None:
    """Log odds × 2.2 and + 0.25 are too extreme; twice every probability is too much everywhere."""
    random = np.random.default_rng(5)
    logit = random.normal(size=800)
    seen = random.binomial(1, 1 / (1 + np.exp(-logit)))
    steep = rw.evaluate(1 / (1 + np.exp(-2.2 * logit - 0.25)), seen, "ece", resamples=50)
    assert verdict(steep).headline == "Over-confident about “class 1”"
    share = random.beta(1, 12, 2000)
    double = rw.evaluate(
        np.minimum(2 * share, 0.999), random.binomial(1, share), "ece", resamples=50
    )
    assert verdict(double).headline == "Says “class 1” too often"


def test_the_p_value_beside_a_deviation_is_its_own() -> None:
    """A bin that is off by far does not lend its p-value to the mean that is named."""
    results = in_memory(cases())
    found = results.data["verdict"]
    apart = {"mean of yes": 0.034, "bin 5 of 5 of yes": found["p_value"]}
    each = [
        {**d, "adjusted": apart.get(d["statistic"], 0.9), "predicted": 0.5, "observed": 0.4}
        for d in found["deviations"]
    ]
    seen = {**found, "deviations": each}
    told = verdict(replace(results, data={**results.data, "verdict": seen}))
    assert told.headline == "Says “yes” too often"
    assert "(p\u00a0=\u00a00.034, corrected for 8 checks)" in told.explanation


WEAK = "observed_expected_ratio,calibration_intercept,calibration_slope"


def rare(times: float) -> tuple[Any, Any]:
    """Return 2,000 cases of 100 expected positives, read so many times as often at every p."""
    p = np.linspace(0, 0.1, 2001)[1:] - 0.1 / 4000
    return p, np.diff(np.floor(times * np.cumsum(p) + 0.5), prepend=0).astype(int)


def test_a_figure_beside_its_calibrated_value_is_explained() -> None:
    """123 positives of 100 expected: the interval of O/E excludes 1, eight checks do not."""
    p, y = rare(1.23)
    results = rw.evaluate(p, y, f"ece,{WEAK}", resamples=50)
    ratio, slope = results["observed_expected_ratio"], results["calibration_slope"]
    assert ratio.value == pytest.approx(1.23) and ratio.low > 1
    assert slope.low < 1 < slope.high
    found, told = results.data["verdict"], verdict(results)
    assert found["off_target"] == {"observed_expected_ratio": 1.0, "calibration_intercept": 0.0}
    assert (told.headline, told.tone) == ("No miscalibration found", "good")
    assert (
        "The intervals of Observed / expected and Calibration intercept exclude what a calibrated "
        f"model has when looked at alone; among {len(found['deviations'])} checks, chance can do "
        "that."
    ) in told.explanation
    alone = verdict(rw.evaluate(p, y, "ece,observed_expected_ratio", resamples=50))
    assert "interval of Observed / expected excludes 1 when looked at alone" in alone.explanation
    again = rw.Results.from_dict(results.to_dict())
    assert verdict(again) == told


@pytest.mark.parametrize("times", [1.0, 2.0])
def test_figures_are_not_explained_where_nothing_is_to_explain(times: float) -> None:
    """As many as predicted, and no interval excludes that; of twice as many the verdict is red."""
    p, y = rare(times)
    results = rw.evaluate(p, y, f"ece,{WEAK}", resamples=50)
    told = verdict(results)
    assert bool(results.data["verdict"]["off_target"]) == (times == 2)
    assert told.tone == ("good" if times == 1 else "bad")
    assert "looked at alone" not in told.explanation


def test_intervals_are_counted_together_as_simes_does() -> None:
    """Two of 0.04 are significant together where one of them is not (Simes 1986)."""
    assert with_intervals(calibrated(), ece=0.04, mce=0.04).tone == "caution"
    assert with_intervals(calibrated(), ece=0.04, mce=0.06).tone == "good"


def test_what_is_off_about_disagreement_alone_is_called_so() -> None:
    """Two raters of a case are copies: classes are right, how often they differ is not."""
    random = np.random.default_rng(4)
    p = np.full(300, 0.5) + random.uniform(-0.3, 0.3, 300)
    votes = 2 * (random.random(300) < p)  # 1 - Σ p² says that two of five pairs differ; none does
    labels = rw.Labels.from_counts(np.stack((2 - votes, votes), axis=1))
    results = rw.evaluate(p, labels, ["ece", "disagreement_calibration_error"], resamples=50)
    assert results["disagreement_calibration_error"].low > 0.3 and results["ece"].low == 0
    told, found = verdict(results), results.data["verdict"]
    assert (told.headline, told.tone) == ("Off about how often raters differ", "caution")
    assert "right about every class" in told.explanation
    assert found["off_about_disagreement"] and not found["possibly"]
    assert found["intervals_p_value"] < 0.02  # 50 draws alone could not say less than 0.078
    both = with_intervals(results, ece=0.01, disagreement_calibration_error=0.01)
    assert both.headline == "Possibly miscalibrated"


def test_sure_and_right_everywhere_has_no_bin_outside() -> None:
    """Probabilities of exactly 0 and 1 are in intervals that end there, up to rounding."""
    y = np.arange(80) % 20 < 9
    told = verdict(rw.evaluate(y.astype(float), y.astype(int), resamples=20))
    assert told.tone == "good" and "outside" not in told.explanation


def test_right_on_average_and_off_both_ways_is_told_by_what_is_off() -> None:
    """Four errors of one kind and five of the other: over-confident, not "too often" by 1 point."""
    y = np.arange(80) % 2
    p = y.astype(float)
    p[:8:2], p[1:11:2] = 1, 0
    told = verdict(rw.evaluate(p, y, "ece", resamples=20, question="positive"))
    assert (told.headline, told.tone) == ("Over-confident about “class 1”", "bad")


def test_a_single_interval_that_chance_explains_is_explained() -> None:
    """One of several intervals excludes 0, as one of twenty does: green, and the text says why."""
    told = with_intervals(calibrated(), ece=0.03, mce=0.8)  # twice 0.03 is above 0.05
    assert told.tone == "good"
    assert "excludes 0 when looked at alone; among 2 intervals, chance can" in told.explanation


@pytest.mark.parametrize(("p", "headline"), [(0.08, "Possibly"), (0.11, "No miscalibration")])
def test_amber_follows_from_the_p_value_of_all_checks(p: float, headline: str) -> None:
    """Up to 0.1 the checks leave it open, and the text names the clearest of them."""
    results = calibrated()
    found = {**results.data["verdict"], "p_value": p, "miscalibrated": False}
    found |= _beside_intervals([], "cases", found)
    told = verdict(replace(results, data={**results.data, "verdict": found}))
    assert told.headline.startswith(headline)
    assert ("In the clearest of 8, it says “class 1”" in told.explanation) == (p < 0.1)


@pytest.mark.parametrize(("out", "tone"), [(1, "good"), (2, "good"), (4, "caution")])
def test_bins_outside_their_intervals_are_counted(out: int, tone: str) -> None:
    """One or two of 15 bins are there by chance (16 %), four are not (0.5 %)."""
    results = calibrated(metrics="ece")
    curve = {**results.curves["top_label"], "low": [0.0] * 15, "high": [1.0] * 15}
    curve["high"] = [0.01] * out + [1.0] * (15 - out)
    told = verdict(replace(results, curves={"top_label": curve}))
    assert told.tone == tone
    assert f" {out} of 15 bins" in told.explanation
    assert ("more than chance explains" in told.explanation) == (tone == "caution")


def test_several_charts_have_several_chances() -> None:
    """Four of 15 bins (0.5 %) in one of four charts: as much happens in 2 % of calibrated models.

    Of 60 bins three are outside by chance.
    """
    results = calibrated(metrics="ece")
    calm = {**results.curves["top_label"], "low": [0.0] * 15, "high": [1.0] * 15}
    off = {**calm, "high": [0.01] * 4 + [1.0] * 11}
    told = verdict(replace(results, curves={"top_label": off, "per_class": [calm] * 3}))
    assert told.tone == "good"
    assert "4 of 60 bins lie outside their own intervals; by chance about 3" in told.explanation


@pytest.mark.parametrize(
    ("name", "told"), [("positive", " 1 of 15 bins lies"), ("top label", " 2 of 30 bins lie")]
)
def test_the_same_bins_are_counted_once(name: str, told: str) -> None:
    """Of two classes one says what the other says, and so does a first chart of the second."""
    results = calibrated(metrics="ece")
    off = {**results.curves["top_label"], "low": [0.0] * 15, "high": [0.01] + [1.0] * 14}
    curves = {"top_label": {**off, "name": name}, "per_class": [off, off]}
    assert told in verdict(replace(results, curves=curves)).explanation


@pytest.mark.parametrize(("ece", "tone"), [(0.001, "bad"), (0.5, "caution")])
def test_one_interval_over_raters_that_excludes_0_leaves_no_doubt(ece: float, tone: str) -> None:
    """Red stays red where some calibration error excludes 0 over raters, amber where none does."""
    p, labels = sceptics(5, (0.4,) * 6)
    off = rw.evaluate(p, labels, "ece,mce", resamples=50, unit="both", question="positive")
    told = with_intervals(off, ece=ece, mce=0.8)
    assert told.tone == tone
    assert ("With others it might look different" in told.explanation) == (tone == "caution")


@pytest.mark.parametrize(
    ("unit", "words"), [("both", "take these raters as they are"), ("raters", "read by these")]
)
def test_the_headline_says_that_it_takes_the_raters_as_they_are(unit: Any, words: str) -> None:
    """Red or green: the checks do not take raters for a sample where the intervals do."""
    assert words in verdict(calibrated(unit)).explanation
    p, labels = sceptics(5, (0.4,) * 6)
    off = rw.evaluate(p, labels, "ece", resamples=50, unit=unit, question="positive")
    assert verdict(off).tone == "bad" and words in verdict(off).explanation
