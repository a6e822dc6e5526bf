"""Accuracy and proper scores as metrics of the training loop."""

from __future__ import annotations

from typing import Any, Literal

from raterwise.rules import choose
from raterwise.torch._binned import BinnedMetric, ReliabilityMetric

Per = Literal["case", "annotation"]


class Accuracy(ReliabilityMetric):
    """How often the predicted class is what a rater says, `raterwise.accuracy`.

    Parameters
    ----------
    num_classes : int
        K.
    per : {"case", "annotation"}, default "case"
        Whether every case counts once, or every label.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.accuracy : the same of arrays.
    AUCCC : whether confidence tells right from wrong.

    Examples
    --------
    >>> metric = Accuracy(num_classes=2)
    >>> metric.update([[0.9, 0.1], [0.2, 0.8]], [[2, 1], [0, 3]])  # label counts
    >>> round(metric.compute().item(), 4)
    0.8333
    """

    metric_name = "accuracy"
    higher_is_better = True

    def __init__(self, num_classes: int, per: Per = "case", **kwargs: Any) -> None:
        choose("per", per, ("case", "annotation"))
        super().__init__(num_classes, {"per": per}, **kwargs)


class Brier(ReliabilityMetric):
    """The mean squared distance to what a rater says, `raterwise.brier`.

    Parameters
    ----------
    num_classes : int
        K.
    scale_by_half : bool or "auto", default "auto"
        Whether to halve; "auto" halves for two classes, as scikit-learn does.
    per : {"case", "annotation"}, default "case"
        Whether every case counts once, or every label.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.brier : the same of arrays.
    ECE : calibration alone.

    Examples
    --------
    >>> metric = Brier(num_classes=2)
    >>> metric.update([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> round(metric.compute().item(), 4)
    0.025
    """

    metric_name = "brier"

    def __init__(
        self,
        num_classes: int,
        scale_by_half: bool | Literal["auto"] = "auto",
        per: Per = "case",
        **kwargs: Any,
    ) -> None:
        choose("per", per, ("case", "annotation"))
        choose("scale_by_half", scale_by_half, (True, False, "auto"))  # type: ignore[arg-type]
        super().__init__(num_classes, {"per": per, "scale_by_half": scale_by_half}, **kwargs)


class NLL(BinnedMetric):
    """The mean of -log of the probability given to what a rater says, `raterwise.nll`.

    It has no value where that probability is 0. No curve belongs to it, so `plot` draws the value.

    Parameters
    ----------
    num_classes : int
        K.
    per : {"case", "annotation"}, default "case"
        Whether every case counts once, or every label.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.nll : the same of arrays.
    Brier : does not become infinite.

    Examples
    --------
    >>> metric = NLL(num_classes=2)
    >>> metric.update([[0.5, 0.5], [0.25, 0.75]], [0, 0])
    >>> round(metric.compute().item(), 4)
    1.0397
    """

    metric_name = "nll"

    def __init__(self, num_classes: int, per: Per = "case", **kwargs: Any) -> None:
        choose("per", per, ("case", "annotation"))
        super().__init__(num_classes, {"per": per}, **kwargs)
