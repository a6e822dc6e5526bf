"""Accuracy, proper scores and ROC areas in the training loop; sigmoid maps; pictures; no checks."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn_metrics
from torchmetrics.functional.classification import binary_auroc, multiclass_accuracy

import raterwise as rw
from raterwise.torch import metrics
from strategies import ordinary

mpl.use("agg")


def batches(problem: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Cut a problem into three unequal batches."""
    cuts = [0, 20, 21, len(problem.probs)]
    probs, counts = torch.tensor(problem.probs), torch.tensor(problem.counts)
    return [(probs[a:b], counts[a:b]) for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("num_classes", [2, 5])
@pytest.mark.parametrize(
    ("kind", "function", "options"),
    [
        (metrics.Accuracy, rw.accuracy, {}),
        (metrics.Accuracy, rw.accuracy, {"per": "annotation"}),
        (metrics.Brier, rw.brier, {}),
        (metrics.Brier, rw.brier, {"scale_by_half": False, "per": "annotation"}),
        (metrics.NLL, rw.nll, {}),
        (metrics.NLL, rw.nll, {"per": "annotation"}),
        (metrics.ECE, rw.ece, {"norm": 3.0}),
    ],
)
def test_batches_give_the_number_of_the_function(
    kind: Any, function: Any, options: dict[str, Any], num_classes: int
) -> None:
    """Label counts of two to six raters, in three batches."""
    problem = ordinary(100, num_classes)
    metric = kind(num_classes=num_classes, **options)
    for probs, counts in batches(problem):
        metric.update(probs, counts)
    expected = function(problem.probs, problem.labels, **options)
    assert metric.compute().item() == pytest.approx(expected, rel=1e-12)


def test_one_rater_is_scikit_learn_and_torchmetrics() -> None:
    """Accuracy, Brier score, log loss and AUROC of other libraries, single labels."""
    problem = ordinary(200, 5)
    probs, y = torch.tensor(problem.probs), torch.tensor(problem.first_rater)
    found = {
        name: getattr(metrics, name)(num_classes=5)
        for name in ("Accuracy", "Brier", "NLL", "AUROC")
    }
    for metric in found.values():
        metric.update(probs, y)
    values = {name: metric.compute().item() for name, metric in found.items()}
    assert values["Accuracy"] == pytest.approx(
        float(multiclass_accuracy(probs, y, num_classes=5, average="micro")), rel=1e-6
    )
    onehot = np.eye(5)[problem.first_rater]
    assert values["Brier"] == pytest.approx(((problem.probs - onehot) ** 2).sum(axis=1).mean())
    assert values["NLL"] == pytest.approx(sklearn_metrics.log_loss(y, problem.probs))
    area = sklearn_metrics.roc_auc_score(y, problem.probs, multi_class="ovr")
    assert abs(values["AUROC"] - area) <= found["AUROC"].bound.item() + 1e-12
    assert abs(values["AUROC"] - rw.auroc(problem.probs, y)) <= found["AUROC"].bound.item() + 1e-12
    assert found["AUROC"].higher_is_better and found["Accuracy"].higher_is_better


def test_auroc_of_several_raters_is_that_of_weighted_copies() -> None:
    """A case that two of three raters call positive is two positives and a negative."""
    p, counts = np.array([0.9, 0.7, 0.4, 0.2]), np.array([[0, 3], [1, 2], [2, 1], [3, 0]])
    metric = metrics.AUROC(num_classes=2)
    metric.update(p, counts)
    copies = np.repeat(p, 3)
    said = [1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0]
    assert metric.compute().item() == pytest.approx(sklearn_metrics.roc_auc_score(said, copies))
    assert metric.compute().item() == pytest.approx(rw.auroc(p, rw.Labels.from_counts(counts)))
    by_case = metrics.AUROC(num_classes=2, per="case")
    by_case.update(p, counts)
    assert by_case.compute().item() == pytest.approx(metric.compute().item())


def test_auroc_without_both_kinds_is_undefined() -> None:
    """All labels of one class: undefined, in the words of the function; a batch of it is NaN."""
    metric = metrics.AUROC(num_classes=3)
    alone = metric(torch.eye(3), torch.tensor([1, 1, 1]))
    assert alone.isnan()
    with pytest.raises(rw.UndefinedMetricError, match="auroc: undefined, no rater chose"):
        metric.compute()


def test_auroc_is_the_mean_over_the_classes_that_have_a_value() -> None:
    """Nobody chose class 2: the mean of classes 0 and 1, of four pairs each."""
    probs = torch.tensor([[0.6, 0.1, 0.3], [0.2, 0.2, 0.6], [0.5, 0.4, 0.1], [0.1, 0.15, 0.75]])
    labels = torch.tensor([0, 1, 0, 1])
    metric = metrics.AUROC(num_classes=3)
    metric.update(probs, labels)
    assert metric.compute().item() == pytest.approx((1 + 1 / 2) / 2)
    assert rw.auroc(probs, labels) == pytest.approx((1 + 1 / 2) / 2)
    assert metric.bound.item() == 0


def test_a_class_given_nothing_has_no_log_loss() -> None:
    """-log 0 is infinite: undefined, in the words of the function."""
    metric = metrics.NLL(num_classes=2)
    metric.update([[1.0, 0.0]], [1])
    with pytest.raises(rw.UndefinedMetricError, match="nll: undefined, it is infinite"):
        metric.compute()


MAPS = torch.rand(2, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
MASKS = (torch.rand(2, 5, 6, generator=torch.Generator().manual_seed(1)) < MAPS).long()


@pytest.mark.parametrize("kind", ["ECE", "Accuracy", "Brier", "NLL", "AUROC", "AUCCC"])
@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (MAPS, MASKS),
        (MAPS[:, None], MASKS),
        (MAPS[:, None], MASKS[:, None]),
        (MAPS[:, None], torch.stack((1 - MASKS, MASKS), dim=1)),
        (MAPS, torch.stack((1 - MASKS, MASKS), dim=1)),
    ],
)
def test_sigmoid_maps_are_pixels(kind: str, probs: torch.Tensor, labels: torch.Tensor) -> None:
    """(B, H, W) and (B, 1, H, W), masks or counts: the same as a list of pixels."""
    flat = getattr(metrics, kind)(num_classes=2)
    flat.update(MAPS.reshape(-1), MASKS.reshape(-1))
    mapped = getattr(metrics, kind)(num_classes=2)
    mapped.update(probs, labels, torch.ones(2, 5, 6))
    assert mapped.compute().item() == pytest.approx(flat.compute().item(), rel=1e-12)


def test_maps_and_ignored_pixels_and_outside_images() -> None:
    """Ignored pixels of a map are left out; a map of another distribution is wrong everywhere."""
    masks = MASKS.clone()
    masks[:, 0] = 255
    metric = metrics.ECE(num_classes=2, question="positive", ignore_index=255)
    metric.update(MAPS[:, None], masks[:, None])
    expected = rw.ece(MAPS[:, 1:].reshape(-1).numpy(), MASKS[:, 1:].reshape(-1).numpy(),
                      question="positive")  # fmt: skip
    assert metric.compute().item() == pytest.approx(expected, rel=1e-12)
    several = [metrics.AUCCC(num_classes=2) for _ in range(3)]
    for metric, outside in zip(several, (MAPS, MAPS[:, None], MAPS.reshape(-1)), strict=True):
        metric.update(MAPS.reshape(-1), MASKS.reshape(-1))
        metric.update(outside, None)
    assert len({metric.compute().item() for metric in several}) == 1


def test_what_is_no_map_is_refused_as_before() -> None:
    """Three channels for two classes are no map unless the labels have the same shape."""
    metric = metrics.ECE(num_classes=2)
    with pytest.raises(rw.InvalidInputError, match="must have num_classes = 2 classes; got 3"):
        metric.update(torch.rand(2, 3, 4), torch.zeros(2, 4, dtype=torch.long))


@pytest.mark.parametrize(
    ("kind", "y_label", "lines"),
    [
        ("ECE", "Raters who agree", 1),
        ("Accuracy", "Raters who agree", 1),
        ("Brier", "Raters who say class 2", 3),
        ("AUCCC", "Right predictions accepted", 1),
        ("AUROC", "True positive rate", 3),
        ("LabelHistogramLosses", "Pairs of raters who differ", 1),
    ],
)
def test_plot_draws_the_curve(kind: str, y_label: str, lines: int) -> None:
    """The figure and the axes, as torchmetrics returns them; a line for each class asked about."""
    from matplotlib import pyplot as plt

    problem = ordinary(60, 3)
    metric = getattr(metrics, kind)(num_classes=3)
    metric.update(problem.probs, problem.counts)
    figure, ax = metric.plot()
    assert figure is ax.figure and ax.get_ylabel() == y_label
    assert sum(line.get_gid() == "series" for line in ax.lines) == lines
    again, same = metric.plot(ax=ax)
    assert (again, same) == (figure, ax)
    plt.close("all")


def test_the_reliability_diagram_shows_the_bins() -> None:
    """Two cases at 0.9, one right: the point (0.9, 0.5); values can be drawn as torchmetrics'."""
    from matplotlib import pyplot as plt

    metric = metrics.ECE(num_classes=2)
    metric.update([[0.9, 0.1], [0.9, 0.1]], [0, 1])
    _, ax = metric.plot()
    (line,) = [line for line in ax.lines if line.get_gid() == "series"]
    assert line.get_xdata() == pytest.approx([0.9]) and line.get_ydata() == pytest.approx([0.5])
    _, other = metric.plot([metric.compute(), metric.compute()])
    assert other is not ax
    loss = metrics.NLL(num_classes=2)
    loss.update([[0.5, 0.5], [0.25, 0.75]], [0, 0])
    figure, axes = loss.plot()  # which has no curve
    assert figure is axes.figure
    assert [float(line.get_ydata()[0]) for line in axes.lines] == [loss.compute().item()]
    for empty in (metrics.ECE(num_classes=2), metrics.NLL(num_classes=2)):
        with pytest.raises(rw.UndefinedMetricError, match="no case was given yet"):
            empty.plot()
    plt.close("all")


def test_the_roc_curve_has_the_area_of_another_library() -> None:
    """The area under the line drawn is torchmetrics' AUROC."""
    from matplotlib import pyplot as plt

    problem = ordinary(80, 2)
    metric = metrics.AUROC(num_classes=2)
    metric.update(problem.probs[:, 1], problem.first_rater)
    _, ax = metric.plot()
    (line,) = [line for line in ax.lines if line.get_gid() == "series"]
    area = float(np.trapezoid(line.get_ydata(), line.get_xdata()))
    y = torch.tensor(problem.first_rater)
    assert area == pytest.approx(
        float(binary_auroc(torch.tensor(problem.probs[:, 1]), y)), abs=1e-5
    )
    plt.close("all")


@pytest.mark.parametrize("kind", ["ECE", "ClasswiseECE", "Accuracy", "Brier", "AUROC"])
def test_without_checks_wrong_values_pass(kind: str) -> None:
    """Rows that do not add to 1 and a label that is no class raise with checks, and not without."""
    probs = torch.tensor([[0.5, 0.6], [0.7, 0.2], [0.3, 0.6], [0.9, 0.1]])
    labels = torch.tensor([0, 1, 1, 7])
    strict, lax = (getattr(metrics, kind)(num_classes=2, validate_args=v) for v in (True, False))
    with pytest.raises(rw.InvalidInputError):
        strict.update(probs, labels)
    lax.update(probs, labels)
    assert torch.isfinite(lax.compute())


def test_without_checks_good_values_give_the_same_number() -> None:
    """With and without checks the tables agree, for counts of several raters too."""
    problem = ordinary(200, 4)
    for kind in ("ECE", "ClasswiseECE", "Brier", "NLL", "LabelHistogramLosses", "AUROC", "AUCCC"):
        tables = [
            getattr(metrics, kind)(num_classes=4, validate_args=v).tables_of(
                problem.probs, problem.counts
            )
            for v in (True, False)
        ]
        for name, table in tables[0].items():
            torch.testing.assert_close(table, tables[1][name], rtol=1e-12, atol=1e-12)


def test_without_checks_a_wrong_row_counts_as_it_is() -> None:
    """The Brier score of (0.5, 0.6) for class 0 is halved 0.25 + 0.36; of label 7, 0.81 + 0.01."""
    metric = metrics.Brier(num_classes=2, validate_args=False)
    metric.update([[0.5, 0.6], [0.9, 0.1]], torch.tensor([0, 7]))
    assert metric.compute().item() == pytest.approx((0.61 + 0.82) / 4)
