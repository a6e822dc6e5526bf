"""Warnings: each where something is wrong, with the numbers, and none where nothing is."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.datasets import load_lidc_malignancy
from raterwise.evaluate import evaluate_predictions, predictions_of
from raterwise.evaluation.request import Request
from raterwise.inference.settings import Settings
from raterwise.predictions import Predictions
from raterwise.summaries.facts import Facts
from strategies import ordinary


def told(probs: Any, labels: Any, metrics: Any = "all", bins: int = 15, **given: Any) -> list[str]:
    """Return the warnings about metrics on cases."""
    predictions = predictions_of(probs, labels, **given)
    request = Request.of(metrics, bins=bins, settings=Settings(resamples=0))
    return list(evaluate_predictions(predictions, request).warnings)


def test_nothing_is_said_where_nothing_is_wrong() -> None:
    """An ordinary test set; of the demonstration, what is known of its raters."""
    problem = ordinary(400)
    assert told(problem.probs, problem.labels, groups=np.arange(400) // 2) == []
    data = load_lidc_malignancy()
    said = told(data.probs, data.labels, groups=data.patients, class_names=data.class_names)
    single, panel = said
    assert single.startswith("488 of 1,880 cases have a single rater")
    assert panel.startswith("the raters are not interchangeable (p < 0.001)")


@pytest.mark.parametrize(
    ("cases", "metrics", "bins", "message"),
    [
        (120, "ece", 15, "only 120 cases for 15 bins, 8.0 per bin: chance alone makes"),
        (120, "ece", 10, None),
        (120, "brier", 15, None),
        (99, "brier", 15, "only 99 cases: chance alone makes calibration errors large"),
        (99, "adaptive_ece", 5, "only 99 cases for 5 bins, 19.8 per bin: chance alone makes"),
    ],
)
def test_cases_for_the_bins(cases: int, metrics: str, bins: int, message: str | None) -> None:
    """Ten cases a bin on average, and a hundred in all, are enough."""
    problem = ordinary(cases, num_classes=2)
    said = told(problem.probs, problem.labels, metrics, bins)
    if message is None:
        assert said == []
    else:
        assert len(said) == 1 and said[0].startswith(message)


def test_cases_for_the_kernel() -> None:
    """KDE-ECE wants fifty cases; other metrics say nothing of kernels."""
    problem = ordinary(49, num_classes=2)
    said = told(problem.probs, problem.labels, "kde_ece")
    assert said[1].startswith("only 49 cases for KDE-ECE: below about 50")
    assert len(told(problem.probs, problem.labels, "brier")) == 1


def test_classes() -> None:
    """A class that nobody chose, always; a rare one where a metric looks at each class."""
    random = np.random.default_rng(0)
    probs = random.dirichlet(np.ones(4), 200)
    labels = np.r_[np.full(4, 2), random.integers(0, 2, 196)]
    names = ("benign", "malignant", "rare", "never")
    absent = "no rater chose never (1 of 4 classes): these data cannot show whether "
    absent += "the model recognises it"
    single = "one rater per case: disagreement and epistemic loss cannot be estimated"
    assert told(probs, labels, "ece", class_names=names) == [single, absent]
    rare = (
        "fewer than 10 cases of rare (4): chance alone makes errors by class (Class-wise ECE) "
        "large there"
    )
    assert told(probs, labels, "ece,classwise_ece", class_names=names) == [single, absent, rare]
    several = told(random.dirichlet(np.ones(9), 200), labels, "brier")
    assert several[1].startswith("no rater chose class 3, class 4, class 5 and 3 more (6 of 9 cl")


def test_patients() -> None:
    """Few of them, or one who has more than a fifth of the cases."""
    problem = ordinary(300)
    many = np.r_[np.zeros(70, int), np.arange(1, 231)]
    said = told(problem.probs, problem.labels, "brier", groups=many)
    assert said == ["one patient has 70 of 300 cases (23%) and dominates the figures"]
    few = told(problem.probs, problem.labels, "brier", groups=np.arange(300) % 4)
    assert few == ["only 4 patients: the intervals allow for that and are wide"]


@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        (np.full(200, 0.75), "every confidence is 0.7500: they do not"),
        (np.linspace(0.9995, 1, 200), "every confidence lies between 0.9995 and 1.0000"),
        (np.r_[np.ones(120), np.linspace(0.6, 0.9, 80)], "60% of the confidences are exactly 1:"),
        (np.r_[np.ones(90), np.linspace(0.6, 0.9, 110)], None),
    ],
)
@pytest.mark.parametrize("columns", [1, 2])
def test_confidences(confidence: np.ndarray, message: str | None, columns: int) -> None:
    """Saturated or tied ones tell no cases apart, of either class; half of them may be certain."""
    second = np.where(np.arange(200) % 3 == 0, 1 - confidence, confidence)
    probs = np.stack((1 - second, second), axis=1)
    labels = rw.Labels.from_counts(np.tile([[1, 2], [2, 1]], (100, 1)))
    said = told(probs if columns == 2 else second, labels, "ece", bins=10)
    assert len(said) == (message is not None)
    assert message is None or said[0].startswith(message)


def test_labels_that_the_predictions_know() -> None:
    """Predictions made from the very labels vary less than raters can: said, with its value.

    p is the raters' own frequency, 0 or 1 or between, so what is left within a bin is less than
    the chance of three labels explains; predictions of other raters say nothing.
    """
    random = np.random.default_rng(3)
    truth = random.dirichlet(np.ones(2), 400)
    counts = random.multinomial(3, truth)
    labels = rw.Labels.from_counts(counts)
    other = random.multinomial(3, truth) / 3
    seen = rw.evaluate(counts / 3, labels, "dispersion_loss", resamples=200)
    honest = rw.evaluate(other, labels, "dispersion_loss", resamples=200)
    assert any(note.startswith("Dispersion loss is below 0") for note in seen.warnings)
    assert not any("Dispersion" in note for note in honest.warnings)


def test_numbers_of_raters_that_depend_on_the_case() -> None:
    """Hard cases with more raters: by ratings a calibrated model looks too sure; it is said."""
    random = np.random.default_rng(5)
    p = random.beta(1, 1, 800)
    truth = random.random(800) < p
    hard = truth != (p > 0.5)
    raters = np.where(hard, 6, 1)
    positive = np.where(truth, raters, 0)
    labels = rw.Labels.from_counts(np.stack((raters - positive, positive), axis=1))
    found = rw.evaluate(p, labels, "ece", resamples=100)
    assert found.data["verdict"]["counting"]["matters"]
    assert found.data["verdict"]["counting"]["sentence"] in found.warnings
    by_case = rw.evaluate(p, labels, "ece", resamples=100, per="case").data["verdict"]
    assert not by_case["miscalibrated"]


def test_a_metric_without_the_question_says_which_it_answers() -> None:
    """Asked about every class, Smooth ECE has a question of its own, and a warning says so."""
    found = rw.evaluate(
        [0.2, 0.7, 0.4], [0, 1, 1], "ece,smooth_ece", question="per_class", resamples=0
    )
    told = "Smooth ECE: has no question 'per_class', and answers 'top_label'"
    assert told in found.warnings


@pytest.mark.parametrize("patients", [None, np.arange(60) // 2])
def test_what_rests_on_one_case_has_no_interval(patients: Any) -> None:
    """One positive of sixty: every resample that has a value holds it, so all are alike."""
    probs = np.linspace(0.01, 0.6, 60)
    labels = (np.arange(60) == 40).astype(int)
    asked = ["average_precision", "calibration_intercept", "auroc", "brier"]
    found = rw.evaluate(probs, labels, asked, patients, resamples=100)
    for name in asked[:2]:
        assert found[name].value is not None and found[name].low is None
    assert all(found[name].low is not None for name in asked[2:])
    units = "cases" if patients is None else "patients"
    (said,) = [text for text in found.warnings if text.startswith("no interval for")]
    assert said == (
        "no interval for Average precision, Calibration intercept: "
        f"without one of the {units} they have no value"
    )
    labels[[20, 55]] = 1
    assert not any("no interval" in w for w in rw.evaluate(probs, labels, asked).warnings)


def test_a_slope_that_one_patient_decides_has_no_interval() -> None:
    """Without the large patient a threshold tells every yes from every no."""
    random = np.random.default_rng(3)
    probs = random.uniform(0.2, 0.8, 40)
    labels = (random.random(40) < probs).astype(int)
    probs, labels = np.append(probs, [0.3, 0.6]), np.append(labels, [0, 1])
    found = rw.evaluate(
        probs, labels, "calibration_slope", np.repeat([0, 1], [40, 2]), resamples=100
    )["calibration_slope"]
    assert found.value is not None and found.low is None and found.high is None


def test_raters_and_cases_resampled_together_say_which_leave_more_open() -> None:
    """Raters who are always alike differ by nothing; one who always says the opposite, by all."""
    random = np.random.default_rng(4)
    probs = random.uniform(0.1, 0.9, (300,))
    first = (random.random(300) < probs).astype(int)
    alike, opposed = np.stack([first] * 3, axis=1), np.stack([first, first, 1 - first], axis=1)
    probs_of_images, masks = probs.reshape(6, 50), opposed.T.reshape(3, 6, 50).swapaxes(0, 1)
    images = [
        rw.segmentation.Case(np.stack([1 - p, p]), m, raters=("a", "b", "c"))
        for p, m in zip(probs_of_images, masks, strict=True)
    ]
    asked: dict[str, Any] = {"resamples": 20, "unit": "both"}
    by_case, by_rater, by_image = (
        " ".join(results.warnings)
        for results in (
            rw.evaluate(probs, rw.Labels.from_ratings(alike), "brier", **asked),
            rw.evaluate(probs, rw.Labels.from_ratings(opposed), "brier", **asked),
            rw.segmentation.evaluate(images, "brier", num_classes=2, **asked),
        )
    )
    assert "most of the uncertainty of Brier score comes from the cases, not the raters" in by_case
    assert "most of the uncertainty of Brier score comes from the raters: more raters" in by_rater
    assert "narrow it more than more images" in by_image
    alone = rw.evaluate(probs, rw.Labels.from_ratings(opposed), "brier", resamples=20).warnings
    assert "most of the uncertainty" not in " ".join(alone)


@pytest.mark.parametrize(
    ("voxels", "share", "said"),
    [
        (21, 0.042**2 / (0.042**2 + 0.039**2), "comes from the raters: more raters"),  # 0.54
        (19, 0.038**2 / (0.038**2 + 0.041**2), "comes from the images, not the raters"),  # 0.46
    ],
)
def test_more_than_half_of_the_variance_is_most_of_it(voxels: int, share: float, said: str) -> None:
    """By hand: two images of 0.6 and 0.8 in all of 100 voxels, which a second rater calls no in f.

    Their losses are (1 - p)² - f (1 - 2p) / 2, 0.2 (0.6 - f) apart, so half of that is the error
    of their mean; those of the raters are 0.4 f apart.
    """
    ratings = np.ones((2, 1, 100), int)
    ratings[1, :, :voxels] = 0
    images = [
        rw.segmentation.Case(np.stack([np.full((1, 100), 1 - p), np.full((1, 100), p)]), ratings,
                             raters=("a", "b"))
        for p in (0.6, 0.8)
    ]  # fmt: skip
    found = rw.segmentation.evaluate(images, "brier", resamples=20, unit="both")
    assert found["brier"].rater_share == pytest.approx(share)
    assert f"most of the uncertainty of Brier score {said}" in " ".join(found.warnings)


@pytest.mark.parametrize("unit", ["raters", "both"])
def test_one_rater_of_two_has_nobody_to_disagree_with(unit: str) -> None:
    """Without either of them epistemic loss is undefined: a value, no interval, and why."""
    random = np.random.default_rng(0)
    probs = random.random((4, 6, 6))
    masks = (random.random((4, 2, 6, 6)) < probs[:, None]).astype(int)
    images = [
        rw.segmentation.Case(np.stack([1 - p, p]), m, raters=("a", "b"))
        for p, m in zip(probs, masks, strict=True)
    ]
    labels = rw.Labels.from_ratings(masks.swapaxes(1, 3).reshape(-1, 2), num_classes=2)
    asked: dict[str, Any] = {"metrics": "epistemic_loss,brier", "unit": unit, "resamples": 20}
    for found, units in (
        (rw.evaluate(probs.swapaxes(1, 2).ravel(), labels, **asked), "cases"),
        (rw.segmentation.evaluate(images, num_classes=2, **asked), "images"),
        (rw.segmentation.evaluate(images, num_classes=2, reduction="pooled", **asked), "images"),
    ):
        loss = found["epistemic_loss"]
        assert loss.value is not None and loss.low is None and loss.high is None
        assert found["brier"].low < found["brier"].value < found["brier"].high
        of = "raters" if unit == "raters" else f"{units} or raters"
        assert (
            f"no interval for Epistemic loss: without one of the {of} it has no value"
            in found.warnings
        )


def arbitrated(disputed: int, settled: int = 0) -> np.ndarray:
    """Return forty agreeing pairs, disputed pairs with a third label, and others with a third."""
    said = [[k, k, -1] for k in (0, 1) * 20] + [[k, 1 - k, 1] for k in (0, 1) * disputed][:disputed]
    return np.array(said + [[0, 0, 0]] * settled)


def test_a_third_rater_who_decides_is_noticed(tmp_path: Path) -> None:
    """Two readers and a third where they differ; counted by hand, in memory and in a stream."""
    about = "labels differ in 12 of the 12 cases with three labels and in 0 of the 40 with two"
    ratings = arbitrated(12)
    labels = rw.Labels.from_ratings(ratings, num_classes=2)
    probs = np.linspace(0.1, 0.9, len(labels))
    assert any(one.startswith(about) for one in told(probs, labels, "brier"))
    path, saved, merged = (tmp_path / name for name in ("t.parquet", "s.npz", "s.json"))
    said = dict(zip("abc", ratings.T, strict=True))
    pq.write_table(pa.table({"prob_1": probs, **said}), path, row_group_size=20)
    streamed = rw.evaluate_stream(
        path,
        "brier",
        resamples=0,
        rater_columns=["a", "b", "c"],
        missing=["-1"],
        save_summary=saved,
    )
    assert any(one.startswith(about) for one in streamed.warnings)
    done = CliRunner().invoke(app, ["merge", str(saved), "--resamples", "0", "--out", str(merged)])
    assert done.exit_code == 0 and any(
        one.startswith(about) for one in json.loads(merged.read_text())["warnings"]
    )
    for other in (arbitrated(11), arbitrated(12, settled=1)):
        labels = rw.Labels.from_ratings(other, num_classes=2)
        assert "labels differ" not in " ".join(told([0.5] * len(other), labels))


def test_readers_chosen_beforehand_decide_nothing() -> None:
    """A third label of some cases, or of the hardest, asked for whatever the others say."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        q = rng.beta(0.3, 0.3, 200)
        said = (rng.random((200, 3)) < q[:, None]).astype(int)
        said[abs(q - 0.5) > 0.2 if seed % 2 else rng.random(200) < 0.6, 2] = -1
        labels = rw.Labels.from_ratings(said, num_classes=2)
        assert not Facts.counted(Predictions.of(q, labels)).arbitrated
        assert not rw.exchangeability_test(labels, permutations=19).arbiters


FOLLOW = "the weights depend on the labels alone: 20 for {}0, 1 for {}1. The intervals and"


def test_weights_that_follow_from_the_label() -> None:
    """Of 20 for the five or more negatives and 1 for the positives; not of others."""
    labels = np.array([0] * 5 + [1] * 6)
    probs = np.linspace(0.1, 0.9, 11)
    weights = np.where(labels == 1, 1.0, 20.0)

    def followed(labels: Any, weights: Any, **given: Any) -> bool:
        said = [one for one in told(probs[: len(labels)], labels, weights=weights, **given)
                if "weights depend" in one]  # fmt: skip
        assert not said or said[0].startswith(FOLLOW.format("class ", "class "))
        return bool(said)

    assert followed(labels, weights)
    agreed = rw.Labels.from_ratings(np.stack((labels, labels, labels), axis=1), num_classes=2)
    assert followed(agreed, weights)
    other = weights.copy()
    other[3] = 19.0
    assert not followed(labels, other)  # two weights in a class
    assert not followed(labels[1:], weights[1:])  # four negatives
    assert not followed(labels, np.full(11, 20.0))
    assert not followed(labels, None)
    assert not followed([0] * 11, np.full(11, 20.0))  # one class
    shifted = rw.evaluate(probs, labels, "brier", target_prevalence=0.05, resamples=0)
    assert "weights depend" not in " ".join(shifted.warnings)


@pytest.mark.parametrize("strange", [None, 3])
def test_weights_that_follow_from_the_label_in_a_stream(tmp_path: Path, strange: Any) -> None:
    """In row groups of one class each, and of two sites whose summaries are merged."""
    said = np.repeat([0, 1], 8)
    weights = np.where(said == 1, 1.0, 20.0)
    if strange is not None:
        weights[strange] = 10.0
    out, merged = [], tmp_path / "both.json"
    for name, rows in (("a", slice(0, 9)), ("b", slice(9, 16))):
        path, saved = tmp_path / f"{name}.parquet", tmp_path / f"{name}.npz"
        table = {"prob_1": np.linspace(0.1, 0.9, 16)[rows], "label": said[rows]}
        pq.write_table(pa.table({**table, "w": weights[rows]}), path, row_group_size=4)
        results = rw.evaluate_stream(
            path,
            "brier",
            resamples=0,
            label_column="label",
            weight_column="w",
            save_summary=saved,
        )
        assert not any("weights depend" in one for one in results.warnings)  # one positive, or all
        out.append(str(saved))
    done = CliRunner().invoke(app, ["merge", *out, "--resamples", "0", "--out", str(merged)])
    assert done.exit_code == 0, done.output
    said_of_both = json.loads(merged.read_text())["warnings"]
    warned = sum(one.startswith(FOLLOW.format("", "")) for one in said_of_both)
    assert warned == (strange is None)


@pytest.mark.parametrize("disputed", [12, 11])
def test_a_third_rater_who_decides_is_noticed_where_no_results_are_made(disputed: int) -> None:
    """By α-calibration, its test and a plan, at the line that called them."""
    labels = rw.Labels.from_ratings(arbitrated(disputed), num_classes=2)
    even = np.linspace(0.1, 0.9, len(labels))
    probs = even[np.argsort(np.argsort(labels.frequencies[:, 1], kind="stable"))]

    def fit() -> None:
        rw.AlphaCalibration(l2=0.1).fit(None, labels, probs=probs)

    def ask() -> None:
        rw.alpha_can_help(probs, labels)

    def plan() -> None:
        rw.planning.plan("brier", probs, labels, cases=(100,), raters=(1,))

    for call in (fit, ask, plan):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            call()
        said = [one for one in heard if str(one.message).startswith("labels differ in 12 of the")]
        assert len(said) == (disputed == 12)
        for one in said:
            assert one.category is rw.RaterwiseWarning and one.filename == __file__


def test_a_third_rater_who_decides_on_images_is_noticed() -> None:
    """Two agree on all of 64 voxels of one image, and differ on all of another, which has three."""
    p, mask = np.full((8, 8), 0.4), np.zeros((8, 8), int)
    mask[:4] = 1
    said = "labels differ in 64 of the 64 voxels with three labels and in 0 of the 64 with two"
    for probs in (p, np.stack([1 - p, p])):  # counted by votes, and by label histograms
        images = [
            rw.segmentation.Case(probs, np.stack(masks))
            for masks in ([mask, mask], [mask, 1 - mask, mask])
        ]
        found = rw.segmentation.evaluate(images, "brier", resamples=0, num_classes=2)
        assert said in " ".join(found.warnings)
