"""What dependents pass: names in arrays, objects that NumPy understands, and what is no argument.

Every error is about the argument that the caller typed, and is a ValueError or a TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import raterwise as rw
from raterwise.torch import losses

PROBS = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]] * 4)
LABELS = rw.Labels.from_counts([[2, 1], [0, 3], [1, 1]] * 4)
RAGGED = [[0.5, 0.5], [0.2]]
SAMPLES = np.stack([PROBS] * 4)
PAIR: Any = np.array([1, 2])
IMAGE = np.random.default_rng(0).random((4, 4))


def images() -> list[rw.segmentation.Case]:
    """Two images with two raters each."""
    return [rw.segmentation.Case(IMAGE, np.zeros((2, 4, 4), int)) for _ in range(2)]


def of_images(**told: Any) -> Any:
    """Evaluate the images."""
    return rw.segmentation.evaluate(images(), "ece", num_classes=2, resamples=0, **told)


@pytest.fixture(name="table")
def table_of_cases(tmp_path: Path) -> Path:
    """The cases in a file."""
    names = ("a", "b")
    columns = {f"prob_{name}": PROBS[:, k] for k, name in enumerate(names)}
    columns |= {f"count_{name}": LABELS.counts[:, k] for k, name in enumerate(names)}
    pl.DataFrame(columns).write_parquet(tmp_path / "cases.parquet")
    return tmp_path / "cases.parquet"


class OnlyAnArray:
    """All that NumPy asks of an object, and nothing else: no length, no shape."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype)


def test_what_numpy_takes_is_taken() -> None:
    """LH eq 16 by hand: Δ of the rows is 0.18, 0.32, 0.5, and D of the raters 2/3, 0, 1."""
    given = OnlyAnArray(PROBS)
    by_hand = np.mean([2 / 3 * 0.82**2 + 1 / 3 * 0.18**2, 0.32**2, 0.5**2])
    assert rw.disagreement_loss(given, LABELS) == pytest.approx(by_hand, abs=1e-12)
    assert rw.PointBelief(given).mean.tolist() == PROBS.tolist()
    alpha = rw.DirichletBelief(given, 2.0).posterior(LABELS).mean
    assert alpha[0] == pytest.approx([(1.8 + 2) / 5, (0.2 + 1) / 5])
    outside = [OnlyAnArray(PROBS), PROBS]
    first, second = (rw.auccc(PROBS, LABELS, outside=given) for given in outside)
    assert first == second


@pytest.mark.parametrize("kind", [np.array, pd.Index, pl.Series, iter])
def test_lists_of_names_are_of_any_kind(kind: Callable[[Any], Any], table: Path) -> None:
    """The columns of a data frame are an index, and names may stand in an array."""
    frame = pd.DataFrame({"ann": [0, 1, 1], "bob": [0, 0, 1], "age": [50, 60, 70]})
    labels = rw.Labels.from_frame(frame, raters=kind(["ann", "bob"]))
    assert labels.counts.tolist() == [[2, 0], [1, 1], [0, 2]]
    results = rw.evaluate_stream(
        table, kind(["brier", "ece"]), resamples=0, class_names=kind(["a", "b"]),
        count_columns=kind(["count_a", "count_b"]),
    )  # fmt: skip
    assert list(results) == ["brier", "ece"]
    assert results["ece"].value == pytest.approx(rw.ece(PROBS, LABELS), abs=1e-12)


def test_names_of_classes_may_be_numbers_in_streams(table: Path) -> None:
    """As in `evaluate`: grades are named 3 and 4, and results have them as words."""
    told: dict[str, Any] = {"metrics": "classwise_ece", "resamples": 0, "class_names": [3, 4]}
    columns = {f"{what}_columns": [f"{what}_a", f"{what}_b"] for what in ("prob", "count")}
    streamed = rw.evaluate_stream(table, **columns, **told)
    assert streamed.data["class_names"] == ["3", "4"]
    assert rw.evaluate(PROBS, LABELS, **told).data["class_names"] == ["3", "4"]


NO_ARGUMENTS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "one-element bins of a disagreement": (
        lambda: rw.disagreement_calibration_loss(PROBS, LABELS, bins=np.array(5)),
        "bins", "must be a whole number; got array(5)",
    ),
    "a table of bins": (
        lambda: rw.statistic_calibration_loss(
            lambda two: two[0] != two[1], [0.5] * 12, LABELS, 2, bins={}  # type: ignore[arg-type]
        ),
        "bins", "must be a whole number; got {}",
    ),
    "seed of a density": (
        lambda: rw.kde_ece(PROBS, LABELS, seed="x"),  # type: ignore[arg-type]
        "seed", "must be a whole number; got 'x'",
    ),
    "seed of mixtures": (
        lambda: rw.robust_ece_mixture(PROBS, LABELS, SAMPLES, seed=-1),
        "seed", "must be at least 0; got -1",
    ),
    "a choice of mixtures": (
        lambda: rw.robust_ece_mixture(
            PROBS, LABELS, SAMPLES, observed_bins_only="no"  # type: ignore[arg-type]
        ),
        "observed_bins_only", "must be one of True, False; got 'no'",
    ),
    "mixtures": (
        lambda: rw.robust_ece_mixture(PROBS, LABELS, None, mixtures=3),  # type: ignore[arg-type]
        "mixtures", "must be weights, means and standard deviations, (N, components) each; got 3",
    ),
    "a group of metrics for a plan": (
        lambda: rw.planning.plan("clinical", PROBS, LABELS), "metric",
        "no metric is called 'clinical'",
    ),
    "no metric for a plan": (
        lambda: rw.planning.plan(None, PROBS, LABELS),  # type: ignore[arg-type]
        "metric", "must be the name of a metric; got None",
    ),
    "no cases for a plan": (
        lambda: rw.planning.plan("ece", PROBS, LABELS, cases=()),
        "cases", "must hold a design with at least 2 cases; got ()",
    ),
    "metrics of images that are not of probabilities": (
        lambda: rw.segmentation.total_variation(images(), "robust_ece_mixture"),
        "metric", "robust_ece_mixture: it needs the draws of an ensemble",
    ),
    "progress": (
        lambda: rw.evaluate(PROBS, LABELS, "ece", progress=True),  # type: ignore[arg-type]
        "progress", "must be a function of a description and of the fraction done; got True",
    ),
    "progress of a variation": (
        lambda: rw.stability.total_variation(
            "ece", PROBS, LABELS, progress=1  # type: ignore[arg-type]
        ),
        "progress", "must be a function of a description and of the fraction done; got 1",
    ),
    "progress of images": (
        lambda: of_images(progress=True),
        "progress", "must be a function of a description and of the fraction done; got True",
    ),
    "a name for the positive class": (
        lambda: rw.calibration_curve(
            PROBS, LABELS, class_names=["a", "b"], positive="b"  # type: ignore[arg-type]
        ),
        "positive", "must be a whole number; got 'b'",
    ),
    "a positive class that is none": (
        lambda: rw.calibration_curve(PROBS, LABELS, class_names=["a", "b"], positive=2),
        "positive", "must be one of the classes 0 … 1; got 2",
    ),
    "half a class": (
        lambda: rw.curves.reliability_curve(
            PROBS, LABELS, "per_class", of_class=0.5  # type: ignore[arg-type]
        ),
        "of_class", "must be a whole number; got 0.5",
    ),
    "several questions": (
        lambda: rw.evaluate(
            PROBS, LABELS, "ece", question=np.zeros(3)  # type: ignore[arg-type]
        ),
        "question", "must be one value; got an array of shape (3,)",
    ),
    "ragged probabilities of a change": (
        lambda: rw.disagreement_change(RAGGED, PROBS), "probs", "with rows of one length",
    ),
    "ragged probabilities of findings": (
        lambda: rw.evaluate_multilabel(RAGGED, [[0, 1], [0, 1]], 1), "probs",
        "with rows of one length",
    ),
    "ragged probabilities to calibrate": (
        lambda: rw.TemperatureScaling(input="probs").fit(PROBS, LABELS).predict_proba(RAGGED),
        "probs", "with rows of one length",
    ),
    "ragged probabilities of α": (
        lambda: rw.AlphaCalibration(l2=0.1).fit(PROBS, LABELS, probs=RAGGED), "probs",
        "with rows of one length",
    ),
    "seed of folds": (
        lambda: rw.AlphaCalibration(seed=-1).fit(PROBS, LABELS, probs=PROBS), "seed",
        "must be at least 0; got -1",
    ),
    "a word for a penalty": (
        lambda: rw.AlphaCalibration(l2="x").fit(PROBS, LABELS, probs=PROBS),  # type: ignore
        "l2", "must be a number or \"cv\"; got 'x'",
    ),
    "a word for weights": (
        lambda: rw.TemperatureScaling(input="probs").fit(PROBS, LABELS, sample_weight="x"),
        "sample_weight", "must be an array of numbers",
    ),
    "a bad member": (
        lambda: rw.EnsembleBelief(np.stack([PROBS, 2 * PROBS])), "samples",
        "samples[1]: must lie in [0, 1]; row 0 holds 1.8",
    ),
    "probabilities for a belief": (
        lambda: rw.worklist.worklist(PROBS),  # type: ignore[arg-type]
        "belief", "must be a belief over class probabilities",
    ),
    "a number of raters": (
        lambda: rw.Labels.from_frame(pd.DataFrame({"a": [0]}), raters=3),  # type: ignore[arg-type]
        "raters", "must be a list of names; got 3",
    ),
    "a word for a label": (
        lambda: of_images(ignore_label="255"), "ignore_label", "must be a number; got '255'",
    ),
    "half a label": (
        lambda: of_images(ignore_label=2.5), "ignore_label", "must be a whole number; got 2.5",
    ),
    "a word for a distance": (
        lambda: of_images(boundary_mm="3"), "boundary_mm", "must be a number; got '3'",
    ),
    "the same class twice": (
        lambda: of_images(class_names=["a", "a"]), "class_names",
        "must differ from each other; 'a' is there twice",
    ),
    "a number of names of images": (
        lambda: of_images(class_names=3), "class_names", "must name each of the classes; got 3",
    ),
    "several flags": (
        lambda: of_images(foreground_only=PAIR), "foreground_only",
        "must be one value; got an array of shape (2,)",
    ),
    "several numbers of classes": (
        lambda: rw.segmentation.evaluate(images(), "ece", num_classes=PAIR), "num_classes",
        "must be a whole number; got array([1, 2])",
    ),
    "several penalties": (
        lambda: rw.AlphaCalibration(l2=pd.DataFrame({"l2": PAIR})).fit(PROBS, LABELS, probs=PROBS),
        "l2", "must be one value; got an array of shape (2, 1)",
    ),
    "no level": (
        lambda: rw.evaluate(PROBS, LABELS, "ece", level=1e-300), "level",
        "must be at least 1e-6 and at most 1 - 1e-9; got 1e-300",
    ),
    "a level that leaves nothing": (
        lambda: rw.evaluate(PROBS, LABELS, "ece", level=1 - 1e-16), "level",
        "must be at least 1e-6 and at most 1 - 1e-9; got 0.9999999999999999",
    ),
    "resamples beyond all memory": (
        lambda: rw.evaluate(PROBS, LABELS, "ece", resamples=10**12), "resamples",
        "must be at most 10,000,000; got 1,000,000,000,000",
    ),
    "steps without end": (
        lambda: rw.stability.total_variation("ece", PROBS, LABELS, step=1e-300), "step",
        "must make at most 10,000 steps from start to 1, and be at least 8e-05; got 1e-300",
    ),
    "weight of a term": (
        lambda: losses.Regularized(losses.MDCA(), losses.MDCA(), float("nan")), "beta",
        "must be finite; got nan",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NO_ARGUMENTS)
def test_what_is_no_argument_is_named(what: str) -> None:
    """The error is of the library, about the argument as it was typed, with rule and value."""
    call, argument, message = NO_ARGUMENTS[what]
    with pytest.raises(rw.RaterwiseError) as caught:
        call()
    assert isinstance(caught.value, ValueError | TypeError)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(argument)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"on_unrated": "leave"}, "on_unrated: must be one of error, drop; got 'leave'"),
        ({"subgroups": True}, "subgroups: must be a list of names; got True"),
        ({"class_names": 3}, "class_names: must be a list of names; got 3"),
        ({"prob_prefix": 3}, "prob_prefix: must be text; got 3"),
        ({"count_prefix": ["count_"]}, "count_prefix: must be text; got ['count_']"),
        ({"save_summary": 3}, "save_summary: must be the name of a file; got int"),
        *(
            ({name: PAIR}, f"{name}: must be one value; got an array of shape (2,) (weights are "
             "given by their name, weights=)")
            for name in ("group_column", "weight_column", "label_column")
        ),
    ],
)  # fmt: skip
def test_a_stream_names_its_arguments(table: Path, told: dict[str, Any], message: str) -> None:
    """They are looked at before a file is read, so the message is of no row group."""
    with pytest.raises(rw.RaterwiseError) as caught:
        rw.evaluate_stream(table, "ece", resamples=0, **{"count_prefix": "count_", **told})
    assert str(caught.value) == message
    assert caught.value.argument == message.partition(":")[0]


def test_whole_labels_may_be_floats() -> None:
    """Headers of volumes have floats: 255.0 is 255, and the voxels with it are left out."""
    masks = np.zeros((2, 4, 4), int)
    masks[:, :2] = 255
    cases = [rw.segmentation.Case(IMAGE, masks)]
    found = rw.segmentation.evaluate(cases, "brier", num_classes=2, resamples=0, ignore_label=255.0)
    assert float(found["brier"]) == pytest.approx((IMAGE[2:] ** 2).mean(), abs=1e-12)


def test_one_image_with_a_value_has_no_spread() -> None:
    """As for one image alone: the other, where nobody saw class 1, has no AUROC."""
    case = rw.segmentation.Case(IMAGE, (IMAGE > 0.5)[None].astype(int))
    alone = rw.segmentation.total_variation([case], "auroc", repeats=3)
    both = rw.segmentation.total_variation([case, images()[0]], "auroc", repeats=3)
    assert (alone.mean, alone.std) == (both.mean, both.std) == (0.0, 0.0)


def test_curves_are_themselves() -> None:
    """Comparing two curves is no error; arrays have no one truth."""
    one, other = (rw.ccc_curve(PROBS, LABELS) for _ in range(2))
    assert one == one
    assert one != other
