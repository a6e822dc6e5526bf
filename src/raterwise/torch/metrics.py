"""Metrics for the training loop: the tables of raterwise as the state of torchmetrics metrics.

Each has a state of constant size: the sums per channel and bin from which raterwise's functions
are computed. No prediction is stored. Batches, devices and processes add up their sums, so any
batching gives the same numbers as the functions, and synchronising adds up one small table.

    metric = ECE(num_classes=4).to(device)
    for images, labels in loader:
        metric.update(model(images).softmax(dim=1), labels)
    metric.compute()

Probabilities are (N, K), dense (N, K, H, W[, D]), or for the probability of class 1 of two (N,)
and sigmoid maps (N, 1, H, W) or (N, H, W); labels are classes (N, …) or label counts (N, K, …)
if several raters labelled each case. `metric.plot()` draws the curve behind the number.
"""

from __future__ import annotations

from typing import Any, Literal

from raterwise.torch._binned import BinnedMetric, LabelHistogramLosses, ReliabilityMetric
from raterwise.torch._rank_metrics import AUCCC, AUROC
from raterwise.torch._tables import TableMetric

__all__ = [
    "AUCCC",
    "AUROC",
    "Accuracy",
    "Brier",
    "ClasswiseECE",
    "ECE",
    "LabelHistogramLosses",
    "MCE",
    "NLL",
    "RMSCE",
    "RobustECE",
    "SCE",
    "TableMetric",
]


Per = Literal["case", "annotation"]
TopQuestion = Literal["top_label", "positive", "per_class", "predicted_class"]


class _TopLabelMetric(ReliabilityMetric):
    def __init__(
        self,
        num_classes: int,
        bins: Any = 15,
        question: TopQuestion = "top_label",
        per: Per = "annotation",
        **kwargs: Any,
    ) -> None:
        options = {"bins": bins, "question": question, "per": per}
        super().__init__(num_classes, options, **kwargs)


class ECE(_TopLabelMetric):
    """The expected calibration error, `raterwise.ece` (RECE eq 2, MR eq 5).

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int or array of edges, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default "top_label"
        What is asked of each case; "positive" is for two classes.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    norm : float, default 1
        1 or more: the p of LH's Definition 2.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    ece : the function.

    Examples
    --------
    >>> import torch
    >>> metric = ECE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([[0.3, 0.7]]), torch.tensor([1]))
    >>> round(metric.compute().item(), 4)
    0.3667
    """

    metric_name = "ece"

    def __init__(
        self,
        num_classes: int,
        bins: Any = 15,
        question: TopQuestion = "top_label",
        per: Per = "annotation",
        norm: float = 1,
        **kwargs: Any,
    ) -> None:
        options = {"bins": bins, "question": question, "per": per, "norm": norm}
        ReliabilityMetric.__init__(self, num_classes, options, **kwargs)


class MCE(_TopLabelMetric):
    """The largest gap of any bin, `raterwise.mce` (Naeini et al. 2015).

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int or array of edges, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default "top_label"
        What is asked of each case; "positive" is for two classes.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    mce : the function.

    Examples
    --------
    >>> import torch
    >>> metric = MCE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.4
    """

    metric_name = "mce"


class RMSCE(_TopLabelMetric):
    """The root mean squared gap, `raterwise.rms_ce` (Kumar et al. 2019).

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int or array of edges, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default "top_label"
        What is asked of each case; "positive" is for two classes.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    rms_ce : the function.

    Examples
    --------
    >>> import torch
    >>> metric = RMSCE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.4
    """

    metric_name = "rms_ce"


class _PerClassMetric(ReliabilityMetric):
    def __init__(
        self,
        num_classes: int,
        bins: Any = 15,
        per: Per = "annotation",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, {"bins": bins, "per": per}, **kwargs)


class ClasswiseECE(_PerClassMetric):
    """The mean over classes of the ECE of each class's probability, `raterwise.classwise_ece`.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int or array of edges, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    classwise_ece : the function.

    Examples
    --------
    >>> import torch
    >>> metric = ClasswiseECE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.15
    """

    metric_name = "classwise_ece"


class SCE(_PerClassMetric):
    """The static calibration error over the cases predicted as each class, `raterwise.sce`.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int or array of edges, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    sce : the function.

    Examples
    --------
    >>> import torch
    >>> metric = SCE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.075
    """

    metric_name = "sce"


class RobustECE(ReliabilityMetric):
    """RECE-G: ECE with each confidence spread over the bins by a Gaussian, `raterwise.robust_ece`.

    RECE eq 6.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int, default 15
        Number of equal-width bins.
    sigma : float, default 0.1
        The standard deviation of the Gaussian, in units of probability.
    observed_bins_only : bool, default False
        Leave out bins without a confidence.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default "top_label"
        What is asked of each case; "positive" is for two classes.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    robust_ece : the function.

    Examples
    --------
    >>> import torch
    >>> metric = RobustECE(num_classes=2, sigma=1e-6)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.4
    """

    metric_name = "robust_ece"

    def __init__(
        self,
        num_classes: int,
        bins: int = 15,
        sigma: float = 0.1,
        observed_bins_only: bool = False,
        question: TopQuestion = "top_label",
        per: Per = "annotation",
        **kwargs: Any,
    ) -> None:
        options = {
            "bins": bins, "sigma": sigma, "observed_bins_only": observed_bins_only,
            "question": question, "per": per,
        }  # fmt: skip
        super().__init__(num_classes, options, **kwargs)


class Accuracy(ReliabilityMetric):
    """How often the predicted class agrees with a rater, `raterwise.accuracy`.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.accuracy : the same for arrays.
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
        super().__init__(num_classes, {"per": per}, **kwargs)


class Brier(ReliabilityMetric):
    """The mean squared distance from a rater's label, `raterwise.brier`.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    scale_by_half : bool or "auto", default "auto"
        Whether to halve; "auto" halves for two classes, as scikit-learn does.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.brier : the same for arrays.
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
        super().__init__(num_classes, {"per": per, "scale_by_half": scale_by_half}, **kwargs)


class NLL(BinnedMetric):
    """The mean of -log of the probability given to a rater's label, `raterwise.nll`.

    It has no value if that probability is 0. There is no curve, so `plot` draws the value.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.nll : the same for arrays.
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
        super().__init__(num_classes, {"per": per}, **kwargs)
