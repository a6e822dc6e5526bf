"""Metrics in the loops that people write: collections, odd batches, ignored classes, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from raterwise.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError  # noqa: E402
from raterwise.torch import metrics  # noqa: E402

torch.set_num_threads(1)

# Confidences 0.8 (right), 0.9 (wrong), 0.6 (right): gaps 0.2, 0.9 and 0.4 in bins of their own.
PROBS = torch.tensor([[0.2, 0.8], [0.9, 0.1], [0.6, 0.4]], dtype=torch.float64)
CLASSES = torch.tensor([1, 1, 0])


def test_a_collection_keeps_metrics_apart_that_ask_different_things() -> None:
    """After a first batch on which they agree, metrics of other questions still differ."""
    collection = torchmetrics.MetricCollection(
        {
            "top": metrics.ECE(num_classes=2),
            "positive": metrics.ECE(num_classes=2, question="positive"),
            "case": metrics.ECE(num_classes=2, per="case"),
            "foreground": metrics.ECE(num_classes=2, ignore_index=0),
            "largest": metrics.MCE(num_classes=2),
        }
    )
    collection.update(PROBS[:1], torch.tensor([[0, 1]]))  # all of them say: 0.8, and it is so
    collection.update(PROBS[1:], torch.tensor([[0, 3], [1, 0]]))
    found = {name: value.item() for name, value in collection.compute().items()}
    assert found["top"] == pytest.approx((0.2 + 3 * 0.9 + 0.4) / 5)
    # 0.8 seen once, 0.1 seen three times and always there, 0.4 seen once and not there
    assert found["positive"] == pytest.approx((0.2 + 3 * 0.9 + 0.4) / 5)
    assert found["case"] == pytest.approx((0.2 + 0.9 + 0.4) / 3)
    assert found["foreground"] == pytest.approx((0.2 + 3 * 0.9) / 4)
    assert found["largest"] == pytest.approx(0.9)
    groups = sorted(sorted(group) for group in collection.compute_groups.values())
    assert groups == [["case"], ["foreground"], ["largest", "top"], ["positive"]]


def test_forward_of_a_batch_without_a_value_is_nan_and_loses_nothing() -> None:
    """A batch of ignored pixels, or one with no mistake, does not end the loop."""
    metric = metrics.ECE(num_classes=2, ignore_index=7)
    assert metric(PROBS, CLASSES).item() == pytest.approx(0.5)
    assert metric(PROBS, torch.full((3,), 7)).isnan()
    assert metric.compute().item() == pytest.approx(0.5)
    area = metrics.AUCCC(num_classes=2)
    assert area(PROBS[[0, 2]], CLASSES[[0, 2]]).isnan()
    with pytest.raises(UndefinedMetricError, match="every prediction is right"):
        area.compute()
    area.update(PROBS[1:2], CLASSES[1:2])
    assert area.compute().item() == 0.0  # the surest of the three is the wrong one
    several = metrics.LabelHistogramLosses(num_classes=2, ignore_index=1)
    values = several(PROBS, torch.tensor([[0, 2]] * 3))
    assert "disagreement_loss" in values and all(v.isnan() for v in values.values())


def test_forward_of_a_wrong_batch_leaves_the_state() -> None:
    """An error in the middle of an epoch does not throw away what was there."""
    metric = metrics.ECE(num_classes=2)
    metric(PROBS, CLASSES)
    with pytest.raises(InvalidInputError, match="rows must sum to 1"):
        metric(PROBS * 0.5, CLASSES)
    assert metric.compute().item() == pytest.approx(0.5)
    metric(PROBS, CLASSES)
    assert metric.tables["sums"][..., 0].sum().item() == 6


@pytest.mark.parametrize(
    "batch",
    [
        (PROBS[:0], CLASSES[:0]),
        (torch.zeros(0, 2, 4, 4), torch.zeros(0, 4, 4).long()),
        (PROBS, CLASSES, torch.zeros(3)),
        (PROBS, torch.zeros(3, 2)),
    ],
    ids=["no case", "no image", "no weight", "no rating"],
)
def test_batches_in_which_nothing_counts(batch: tuple[Any, ...]) -> None:
    """They change nothing, however the cases fall into batches."""
    metric = metrics.ECE(num_classes=2, on_unrated="drop")
    metric.update(PROBS, CLASSES)
    metric.update(*batch)
    assert metric.compute().item() == pytest.approx(0.5)


def test_weights_of_pixels() -> None:
    """Dense outputs have weights of the shape of the labels, ignored pixels or not."""
    dense, labels = PROBS.T.reshape(1, 2, 3, 1), CLASSES.reshape(1, 3, 1)
    weights = torch.tensor([3.0, 1.0, 1.0]).reshape(1, 3, 1)
    metric = metrics.ECE(num_classes=2)
    metric.update(dense, labels, weights)
    assert metric.compute().item() == pytest.approx((3 * 0.2 + 0.9 + 0.4) / 5)
    without = metrics.ECE(num_classes=2, ignore_index=0)
    without.update(dense, labels, weights)
    assert without.compute().item() == pytest.approx((3 * 0.2 + 0.9) / 4)


def test_the_ignored_class_of_label_counts() -> None:
    """Its labels do not count, nor cases that have no other: one-hot labels are as classes."""
    onehot = torch.nn.functional.one_hot(CLASSES, 2)
    metric = metrics.ECE(num_classes=2, ignore_index=0)
    metric.update(PROBS, onehot)
    assert metric.compute().item() == pytest.approx((0.2 + 0.9) / 2)
    mixed = metrics.ECE(num_classes=2, ignore_index=0)
    mixed.update(PROBS, torch.tensor([[2, 1], [1, 0], [4, 0]]))
    assert mixed.compute().item() == pytest.approx(0.2)
    with pytest.raises(InvalidInputError, match="1 of 2 has none"):  # that one was never rated
        mixed.update(PROBS, torch.tensor([[2, 1], [0, 0], [4, 0]]))


def test_confidences_and_outside_cases_beside_an_ignored_class() -> None:
    """Both follow the pixels: what is ignored goes from both, what is outside has no class."""
    metric = metrics.AUCCC(num_classes=2, ignore_index=0)
    own = torch.tensor([0.9, 0.1, 0.5], dtype=torch.float64)
    metric.update(PROBS, CLASSES, confidence=own)
    assert metric.compute().item() == 1.0  # 0.9 is right, 0.1 wrong, 0.5 ignored
    metric.update(PROBS, None)  # 0.8 and 0.6 are below the right one, 0.9 ties with it
    assert metric.tables["mass"].sum().item() == 5
    assert metric.compute().item() == pytest.approx(3.5 / 4)


def test_labels_of_another_shape() -> None:
    """As many labels as pixels in another order are refused, not read in the wrong order."""
    dense = torch.full((1, 2, 3, 4), 0.5)
    with pytest.raises(InvalidInputError, match=r"\(1, 3, 4\) classes or .* got shape \(1, 4, 3\)"):
        metrics.ECE(num_classes=2).update(dense, torch.zeros(1, 4, 3).long())
    with pytest.raises(InvalidInputError, match=r"weights: .* \(1, 3, 4\); got shape \(1, 4, 3\)"):
        metrics.ECE(num_classes=2).update(dense, torch.zeros(1, 3, 4).long(), torch.ones(1, 4, 3))


def test_arrays_do_as_well() -> None:
    """What `np.asarray` takes is taken; an ignored class must be a number."""
    metric = metrics.ECE(num_classes=2)
    metric.update(PROBS.numpy(), CLASSES.tolist())
    assert metric.compute().item() == pytest.approx(0.5)
    with pytest.raises(InvalidTypeError, match="ignore_index: must be a whole number or None"):
        metrics.ECE(num_classes=2, ignore_index="background")  # type: ignore[arg-type]


def test_too_few_raters_are_counted_in_the_message() -> None:
    """Which case has one label only is said."""
    with pytest.raises(InvalidInputError, match=r"2 of 3 cases have fewer \(cases 1, 2\)"):
        metrics.LabelHistogramLosses(2).update(PROBS, torch.tensor([[1, 1], [1, 0], [0, 1]]))


@pytest.mark.parametrize("kind", [metrics.RobustECE, metrics.AUCCC, metrics.LabelHistogramLosses])
def test_copies_and_pickles_go_on(kind: Any) -> None:
    """A copy has the state of its original and a life of its own."""
    metric, counts = kind(num_classes=2), torch.tensor([[1, 3], [2, 2], [4, 0]])
    metric.update(PROBS, counts)
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        twin.update(PROBS, counts)
        for name, table in metric.tables.items():
            np.testing.assert_allclose(twin.tables[name], 2 * table)


# MONAI ---------------------------------------------------------------------------------------


def test_monai_leaves_out_what_has_no_value() -> None:
    """Images of background alone do not count in the mean; one channel is the foreground's."""
    pytest.importorskip("monai", reason="MONAI is not installed")
    from raterwise.torch.monai import monai_metric

    foreground = PROBS[:, 1].reshape(3, 1, 1, 1)
    labels = CLASSES.reshape(3, 1, 1, 1).float()
    each = monai_metric(metrics.ECE(num_classes=2, ignore_index=0), reduction="mean")
    each(y_pred=foreground, y=labels)
    assert each.aggregate().item() == pytest.approx((0.2 + 0.9) / 2)
    assert each.left_out == 1
    with pytest.raises(InvalidInputError, match=r"y: classes must be whole numbers; got 0\.5"):
        each(y_pred=foreground, y=labels * 0.5)
    each.reset()
    each(y_pred=foreground, y=labels * 0)
    with pytest.raises(UndefinedMetricError, match="no case"):
        each.aggregate()


def test_monai_mean_of_images_that_lack_two_raters() -> None:
    """Such an image has no epistemic loss: the mean is of the others, and says how many lack it."""
    pytest.importorskip("monai", reason="MONAI is not installed")
    from raterwise.torch.monai import monai_metric

    probs = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    counts = torch.tensor([[2, 1], [1, 0], [0, 3]])
    losses = metrics.LabelHistogramLosses(2, bins=1, estimator="plugin", on_single="drop")
    each = monai_metric(losses, reduction="mean")
    each(y_pred=probs.reshape(3, 2, 1, 1), y=counts.reshape(3, 2, 1, 1))
    got = each.aggregate()
    assert got["epistemic_loss"].item() == pytest.approx((1 / 18 + 0.08) / 2)
    assert each.left_out["epistemic_loss"] == 1
    assert each.left_out["expected_squared_loss"] == 0
    squared = (1 / 18 + 4 / 9) + 0.02 + 0.08  # LH eq 8
    assert got["expected_squared_loss"].item() == pytest.approx(squared / 3)
    each.reset()
    each(y_pred=probs[1].reshape(1, 2, 1, 1), y=counts[1].reshape(1, 2, 1, 1))
    assert each.aggregate()["epistemic_loss"].isnan()
    assert each.left_out["epistemic_loss"] == 1
