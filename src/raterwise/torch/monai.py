"""The metrics of `raterwise.torch.metrics` for MONAI's evaluators."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor

from raterwise.errors import InvalidInputError, UndefinedMetricError, missing_extra
from raterwise.rules import choose
from raterwise.torch._tables import TableMetric

__all__ = ["monai_metric"]


def monai_metric(metric: TableMetric, *, reduction: Literal["pooled", "mean"] = "pooled") -> Any:
    """Return a `monai.metrics.CumulativeIterationMetric` around one of our metrics.

    It is called with `y_pred` (B, K, …), probabilities, or (B, 1, …), those of the foreground, and
    `y` (B, K, …), one-hot or the counts of several raters, or (B, 1, …) classes; or with lists of
    such without the B. It keeps one small table per image.

    Parameters
    ----------
    metric : TableMetric
        One of `raterwise.torch.metrics`; its `ignore_index=0` leaves the background out.
    reduction : {"pooled", "mean"}, default "pooled"
        `aggregate` gives the metric of all pixels together, or the mean over images. The mean
        leaves out images without a value, such as an AUCCC if every pixel is right, or an
        epistemic loss if no pixel has two raters; `metric.left_out` counts them (for each value,
        if the metric has several).

    Returns
    -------
    CumulativeIterationMetric

    Raises
    ------
    MissingExtraError
        If MONAI is not installed.

    See Also
    --------
    raterwise.torch.metrics : the metrics to wrap.
    raterwise.segmentation.evaluate : the same figures with intervals.

    Examples
    --------
    >>> from raterwise.torch.metrics import ECE
    >>> metric = monai_metric(ECE(num_classes=2), reduction="mean")
    >>> probabilities = torch.tensor([0.9, 0.1]).reshape(1, 2, 1, 1)
    >>> values = metric(y_pred=probabilities, y=torch.tensor([1, 0]).reshape(1, 2, 1, 1))
    >>> round(metric.aggregate().item(), 4), metric.left_out
    (0.1, 0)
    """
    choose("reduction", reduction, ("pooled", "mean"))
    try:
        base = import_module("monai.metrics").CumulativeIterationMetric
    except ImportError as error:
        raise missing_extra("raterwise.torch.monai needs MONAI", "torch") from error

    # MONAI asks whether a metric is one of its own, and importing it takes seconds: the class can
    # only be made here.
    class MonaiMetric(base):  # type: ignore[misc, valid-type]
        """Tables of images, collected as MONAI collects numbers."""

        left_out: int | dict[str, int] = 0

        def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **_: Any) -> Tensor:
            return _image_tables(metric, y_pred, y)

        def aggregate(self, reduction: str = reduction) -> Any:
            """Return the metric of everything so far."""
            value, self.left_out = _aggregate(metric, self.get_buffer(), reduction)
            return value

    return MonaiMetric()


def _image_tables(metric: TableMetric, y_pred: Tensor, y: Tensor | None) -> Tensor:
    """(B, sums): the tables of each image, end to end."""
    if y is None:
        raise InvalidInputError("y: must be given, one-hot or as classes; got None")
    if y_pred.shape[1] == 1 and metric.num_classes == 2:
        y_pred = torch.cat((1 - y_pred, y_pred), dim=1)
    if y.shape[1] == 1 and y_pred.shape[1] > 1:
        y = _classes(y[:, 0])
    images = range(len(y_pred))
    tables = (metric.tables_of(y_pred[i : i + 1], y[i : i + 1]) for i in images)
    return torch.stack([torch.cat([t.flatten() for t in table.values()]) for table in tables])


def _classes(y: Tensor) -> Tensor:
    """Return a label map, which MONAI's transforms make of floats, as whole numbers."""
    if y.is_floating_point() and len(parts := y[y != y.floor()]):
        raise InvalidInputError(f"y: classes must be whole numbers; got {parts[0].item():g}")
    return y.long()


Aggregated = Tensor | dict[str, Tensor]
LeftOut = int | dict[str, int]


def _aggregate(metric: TableMetric, buffer: Any, reduction: str) -> tuple[Aggregated, LeftOut]:
    """Return the metric, and how many images its mean leaves out, of each value if several."""
    choose("reduction", reduction, ("pooled", "mean"))
    if not isinstance(buffer, Tensor):
        raise InvalidInputError("aggregate: no image was given yet")
    shapes = {name: table.shape for name, table in metric.tables.items()}

    def value(sums: Tensor) -> Aggregated:
        parts = torch.split(sums, [shape.numel() for shape in shapes.values()])
        named = zip(shapes.items(), parts, strict=True)
        found: Aggregated = metric.compute_from(
            {name: part.reshape(shape) for (name, shape), part in named}
        )
        return found

    if reduction == "pooled":
        return value(buffer.sum(dim=0)), 0
    values: list[Any] = []
    for image in buffer:
        try:
            values.append(value(image))
        except UndefinedMetricError as error:
            reason = error
    if not values:
        raise reason
    if not isinstance(values[0], dict):
        return _mean(values, len(buffer))
    each = {name: _mean([v[name] for v in values], len(buffer)) for name in values[0]}
    return {name: mean for name, (mean, _) in each.items()}, {
        name: left_out for name, (_, left_out) in each.items()
    }


def _mean(values: list[Any], images: int) -> tuple[Tensor, int]:
    """Return the mean over the images that have a value, and how many have none."""
    known = [value for value in values if not bool(value.isnan())]
    mean = torch.stack(known).mean() if known else torch.full_like(values[0], torch.nan)
    return mean, images - len(known)
