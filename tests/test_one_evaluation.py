"""One evaluation: whatever the cases come from, the same values, facts, warnings and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.segmentation import Case

NAMES = [row.name for row in CATALOG.values() if not row.needs_belief and row.in_all]


def cases(number: int = 120) -> dict[str, Any]:
    """Return two classes, one to three raters, 61 patients of whom one has a quarter."""
    random = np.random.default_rng(0)
    p = np.round(random.beta(1, 1, number), 3)
    raters = random.integers(1, 4, number)
    positive = random.binomial(raters, p)
    patient = np.r_[np.zeros(number // 4, int), np.arange(number - number // 4) % 60 + 1]
    return {"p": p, "counts": np.stack((raters - positive, positive), axis=1), "patient": patient}


def in_memory(held: dict[str, Any], metrics: Any, **options: Any) -> rw.Results:
    """Evaluate the cases as arrays."""
    return rw.evaluate(
        held["p"], rw.Labels.from_counts(held["counts"]), metrics, groups=held["patient"],
        class_names=["0", "1"], on_single="drop", **options,
    )  # fmt: skip


def streamed(held: dict[str, Any], metrics: Any, folder: Path, **options: Any) -> rw.Results:
    """Evaluate the cases as a Parquet file of four row groups."""
    columns = {"prob_1": held["p"], "patient": held["patient"].astype(str)}
    columns |= {f"count_{k}": held["counts"][:, k] for k in range(2)}
    path = folder / "cases.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=len(held["p"]) // 4)
    return rw.evaluate_stream(
        path, metrics, count_prefix="count_", group_column="patient", on_single="drop", **options
    )


def as_findings(held: dict[str, Any], metrics: Any, **options: Any) -> rw.Results:
    """Evaluate the cases as one finding."""
    options.setdefault("question", "top_label")
    return rw.evaluate_multilabel(
        held["p"][:, None], held["counts"][:, 1:], held["counts"].sum(axis=1, keepdims=True),
        metrics=metrics, groups=held["patient"], on_single="drop", **options,
    )  # fmt: skip


def as_image(held: dict[str, Any], metrics: Any, **options: Any) -> rw.Results:
    """Evaluate the cases as voxels of one image; a rater who said nothing left the voxel out."""
    n, most = held["counts"].sum(axis=1), 3
    masks = np.full((most, len(n)), 9)
    for r in range(most):
        here = n > r
        masks[r, here] = (held["counts"][here, 1] > r).astype(int)
    image = Case(held["p"], masks)
    return rw.segmentation.evaluate(
        [image], metrics, "pooled", ignore_label=9, on_single="drop", **options
    )


def test_the_same_values_from_every_source(tmp_path: Path) -> None:
    """Memory, stream, findings and voxels agree on every metric, within stated bounds."""
    held = cases()
    plain = in_memory(held, NAMES, resamples=0)
    for found in (
        streamed(held, NAMES, tmp_path, resamples=0),
        as_findings(held, NAMES, resamples=0),
        as_image(held, NAMES, resamples=0),
    ):
        for name in NAMES:
            expected, mine = plain[name], found[name]
            if expected.value is None:
                assert mine.value is None and mine.undefined
                continue
            tolerance = (mine.bound or 0) + 1e-12
            assert mine.value == pytest.approx(expected.value, abs=tolerance), name


def test_the_same_facts_and_warnings_from_memory_and_a_stream(tmp_path: Path) -> None:
    """120 rows with patients: the same counts, and the same four warnings."""
    held = cases()
    plain = in_memory(held, "ece,brier,kde_ece", resamples=50)
    found = streamed(held, "ece,brier,kde_ece", tmp_path, resamples=50)
    assert plain.data["patients"] == found.data["patients"] == 61
    for key in ("cases", "classes", "class_names", "ratings", "raters", "dropped"):
        assert plain.data[key] == found.data[key], key
    exact = [note for note in found.warnings if not note.startswith("approximate")]
    assert exact == list(plain.warnings)
    assert len(exact) == 4
    assert any(note.startswith("only 120 cases for 15 bins, 8.0 per bin") for note in exact)
    assert "one patient has 30 of 120 cases (25%) and dominates the figures" in exact
    of_findings = as_findings(held, "ece,brier,kde_ece", resamples=50)
    assert of_findings.warnings == plain.warnings
    assert of_findings.data["patients"] == 61


OPTIONS: dict[str, Any] = {
    "bins": 8, "per": "case", "question": "positive", "options": {"robust_ece": {"sigma": 0.04}},
}  # fmt: skip


def test_options_reach_every_front_end(tmp_path: Path) -> None:
    """Bins, question, counting and an option of one metric: the numbers of the functions."""
    held = cases()
    p, labels = held["p"], rw.Labels.from_counts(held["counts"])
    asked = {"bins": 8, "per": "case", "question": "positive"}
    expected = {
        "ece": rw.ece(p, labels, **asked),
        "robust_ece": rw.robust_ece(p, labels, sigma=0.04, **asked),
        "classwise_ece": rw.classwise_ece(p, labels, bins=8, per="case"),
    }
    names = list(expected)
    for found in (
        in_memory(held, names, resamples=0, **OPTIONS),
        streamed(held, names, tmp_path, resamples=0, **OPTIONS),
        as_findings(held, names, resamples=0, **OPTIONS),
        as_image(held, names, resamples=0, **OPTIONS),
    ):
        assert {k: found[k].value for k in names} == pytest.approx(expected, abs=1e-12)
        assert found.options["question"] == "positive" and found.options["per"] == "case"
        assert found.options["options"]["robust_ece"]["sigma"] == 0.04
    model = rw.compare({"a": p, "b": p**2}, labels, names, resamples=40, **OPTIONS)
    assert model.models["a"]["robust_ece"].value == pytest.approx(expected["robust_ece"])


def test_options_reach_stability_and_planning() -> None:
    """The whole set of a stability curve, and a plan's pilot, are asked the same way."""
    held = cases()
    p, labels = held["p"], rw.Labels.from_counts(held["counts"])
    own = {"sigma": 0.04}
    shared = {"bins": 8, "per": "case", "question": "positive"}
    curve = rw.stability.subsample_curve("robust_ece", p, labels, (1,), 1, options=own, **shared)
    assert curve.full == pytest.approx(rw.robust_ece(p, labels, sigma=0.04, **shared))
    usual, narrow = (
        rw.stability.total_variation("robust_ece", p, labels, repeats=3, options=options).mean
        for options in (None, {"sigma": 0.01})
    )
    assert usual != narrow
    plans = [
        rw.planning.plan("ece", p, labels, (50,), (1,), repeats=2, resamples=20, **given)
        for given in ({}, {"bins": 2}, {"question": "positive"})
    ]
    widths = {plan.designs[0].width for plan in plans}
    assert len(widths) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": {"ece": {"sigma": 1}}}, "options: ece has no option 'sigma'; it has: bins, q"),
        ({"options": {"brier": {"sigma": 1}}}, "options: brier is not among the metrics asked for"),
        ({"options": {"nothing": {}}}, "options: no metric is called 'nothing'"),
        ({"options": {"ece": {"question": "canonical"}}}, "question of ece: must be one of top_la"),
        ({"question": "canonical"}, "question: none of these metrics can use"),
        ({"per": "voxel", "metrics": "nll"}, "^per: must be one of annotation, case"),
        ({"per": "case", "metrics": "fleiss_kappa"}, "per: none of these metrics"),
        ({"per": "case", "metrics": "fleiss_kappa"}, "they take no such option; accuracy, .* do$"),
        ({"threshold": 0.3}, "threshold: none .* no such option; sensitivity, specificity, .* do$"),
        ({"metrics": "clinical", "options": {"clinical": {"sigma": 1}}},
         "options: no metric of clinical has an option 'sigma'; they have: .*threshold"),
        ({"options": {"robust_ece": {"sigma": -1}}}, "sigma: must be positive and finite; got -1"),
        ({"options": {"robust_ece": {"observed_bins_only": "no"}}}, "must be one of True, False"),
        ({"metrics": "calibration_loss", "options": {"calibration_loss": {"estimator": "best"}}},
         "estimator of calibration_loss: must be one of debiased, plugin; got 'best'"),
    ],
)  # fmt: skip
def test_options_that_cannot_be(given: dict[str, Any], message: str) -> None:
    """An option that a metric does not have, or a value it may not have, is named with its rule."""
    asked = {"metrics": "ece,robust_ece", **given}
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.evaluate([0.2, 0.8], [0, 1], **asked)


@pytest.mark.parametrize(
    ("metric", "given", "message"),
    [
        ("kde_ece", {"bandwidth": -1}, "bandwidth: must be positive and finite; got -1"),
        ("kde_ece", {"bandwidth": "wide"}, "bandwidth: must be a number; got 'wide'"),
        ("kde_ece", {"p": 3}, "p( of kde_ece)?: must be one of 1, 2; got 3"),
        ("kde_ece", {"method": "fast"}, "method.*: must be one of auto, exact, cells; got 'fast'"),
        ("kde_ece", {"leave_out": "annotation"}, "leave_out.*: must be one of case, copy; got"),
        ("robust_ece", {"sigma": "wide"}, "sigma: must be a number; got 'wide'"),
        ("brier", {"scale_by_half": "yes"}, "scale_by_half.*: must be .*; got 'yes'"),
        ("adaptive_ece", {"bins": [0, 0.5, 1]}, "bins: must be a whole number; got"),
    ],
)
def test_a_function_and_evaluate_refuse_the_same_values(
    metric: str, given: dict[str, Any], message: str
) -> None:
    """What the function of a metric refuses, its option refuses as well, and never computes."""
    held = cases()
    p, labels = held["p"], rw.Labels.from_counts(held["counts"])
    with pytest.raises(rw.RaterwiseError, match=message):
        getattr(rw, metric)(p, labels, **given)
    with pytest.raises(rw.RaterwiseError, match=message) as caught:
        rw.evaluate(p, labels, metric, resamples=0, options={metric: given})
    assert caught.value.argument in ("options", *given)


def test_leaving_out_copies_is_an_option() -> None:
    """The released rule of KDE-ECE, leave_out="copy", gives evaluate the number of the function."""
    held = cases()
    p, labels = held["p"], rw.Labels.from_counts(held["counts"])
    own = {"kde_ece": {"leave_out": "copy"}}
    found = rw.evaluate(p, labels, "kde_ece", resamples=0, options=own)["kde_ece"].value
    assert found == pytest.approx(rw.kde_ece(p, labels, leave_out="copy"), abs=1e-12)
    assert found != pytest.approx(rw.kde_ece(p, labels), abs=1e-6)


@pytest.mark.parametrize("given", [3, {"ece": 3}, [("ece", {})]])
def test_options_that_are_no_options(given: Any) -> None:
    """Options that are not by metric are refused in words, not by whatever trips over them."""
    with pytest.raises(rw.InvalidTypeError, match="options: must give options by metric") as caught:
        rw.evaluate([0.2, 0.8], [0, 1], "ece", options=given)
    assert caught.value.argument == "options"


def test_edges_for_metrics_that_want_a_number() -> None:
    """Edges for every metric name the one that cannot take them, and how to give it its own."""
    held, edges = cases(), [0, 0.3, 1]
    p, labels = held["p"], rw.Labels.from_counts(held["counts"])
    with pytest.raises(rw.InvalidTypeError, match="bins: robust_ece takes how many, not edges"):
        rw.evaluate(p, labels, "ece,robust_ece", bins=edges)
    own = {"robust_ece": {"bins": 10}}
    found = rw.evaluate(p, labels, "ece,robust_ece", bins=edges, options=own, resamples=0)
    assert found["ece"].value == pytest.approx(rw.ece(p, labels, bins=edges))
    assert found["robust_ece"].value == pytest.approx(rw.robust_ece(p, labels, bins=10))


def test_options_by_metric_in_stability_and_planning() -> None:
    """Stability and plans take options as evaluate does, with or without the metric's name."""
    held = cases()
    p, labels = held["p"], rw.Labels.from_counts(held["counts"])
    own: tuple[Any, ...] = ({"sigma": 0.04}, {"robust_ece": {"sigma": 0.04}})
    for first, second in (
        [
            rw.stability.subsample_curve("robust_ece", p, labels, (1,), 1, options=o).full
            for o in own
        ],
        [rw.stability.total_variation("robust_ece", p, labels, repeats=2, options=o) for o in own],
        [
            rw.planning.plan(
                "robust_ece", p, labels, (50,), (1,), repeats=2, resamples=20, options=o
            ).designs
            for o in own
        ],
    ):
        assert first == second
    found = rw.stability.subsample_curve("robust_ece", p, labels, (1,), 1, options=own[1])
    assert found.full == pytest.approx(rw.robust_ece(p, labels, sigma=0.04))
    with pytest.raises(rw.InvalidInputError, match="options: ece is not among the metrics"):
        rw.stability.total_variation("robust_ece", p, labels, options={"ece": {"bins": 3}})


def test_unequal_patients_are_worth_the_same_in_a_stream(tmp_path: Path) -> None:
    """A stream resamples blocks of patients; what it says of the patients does not depend on it."""
    random = np.random.default_rng(7)
    sizes = random.integers(1, 12, 400)
    sizes[:8] = 300  # worth (sum n)^2 / sum n^2, by hand below
    patient = np.repeat(np.arange(len(sizes)), sizes)
    p = np.round(random.beta(1, 1, len(patient)), 3)
    positive = random.binomial(2, p)
    held = {"p": p, "counts": np.stack((2 - positive, positive), axis=1), "patient": patient}
    worth = sizes.sum() ** 2 / (sizes**2).sum()
    said = (
        "the 400 patients have very different numbers of cases: "
        f"they are worth about {worth:.0f} patients with equal numbers"
    )
    for found in (
        in_memory(held, "brier", resamples=20),
        streamed(held, "brier", tmp_path, resamples=20),
    ):
        assert said in found.warnings


def test_comparing_streams_and_images(tmp_path: Path) -> None:
    """Streams and images keep their resampled values: the same units are drawn for both models."""
    held = cases()
    worse = {**held, "p": np.clip(held["p"] + 0.6, 0, 1)}
    a, b = (streamed(h, "brier", tmp_path, resamples=100) for h in (held, worse))
    found = rw.compare({"a": a, "b": b}).difference("brier", "a", "b")
    assert found.difference == pytest.approx(a["brier"].value - b["brier"].value)
    assert found.high < 0
    random = np.random.default_rng(1)
    images = [(random.random((8, 8)), random.integers(0, 2, (3, 8, 8))) for _ in range(12)]
    for reduction in ("per_case", "pooled"):
        one, other = (
            rw.segmentation.evaluate(
                [Case(i**power, m) for i, m in images], "brier,ece", reduction, resamples=100
            )
            for power in (1, 8)
        )
        gap = rw.compare({"one": one, "other": other}).difference("brier", "one", "other")
        assert gap.difference == pytest.approx(one["brier"].value - other["brier"].value)
        assert gap.high < 0
    moved = rw.segmentation.evaluate(
        [Case(i, 1 - m) for i, m in images], "brier,ece", "pooled", resamples=100
    )
    with pytest.raises(rw.InvalidInputError, match="other labels"):
        rw.compare({"one": one, "moved": moved})
