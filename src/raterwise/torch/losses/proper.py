"""Proper losses: Brier, cross-entropy of rater histograms, label smoothing."""

from __future__ import annotations

from torch import Tensor

from raterwise.errors import InvalidInputError
from raterwise.torch.losses._cases import PerCaseLoss, Reduction, full_precision, read_cases, reduce


@full_precision
def brier_loss(
    logits: Tensor,
    targets: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return Σ_k (p_k - 1[label = k])², the mean over the raters of a case (LH eq 8).

    Never halved, also for two classes: `raterwise.expected_squared_loss` of the same batch.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    Returns
    -------
    Tensor
        A number, or with `reduction="none"` one for each case, (N, …).

    See Also
    --------
    torch.losses.Brier : the same as a module.

    Examples
    --------
    >>> import torch
    >>> brier_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.5000)
    """
    cases = read_cases(logits, targets, ignore_index)
    log_p, share = cases.asked()
    terms = (cases.probs**2).sum(dim=1, keepdim=True) - 2 * log_p.exp() + 1
    return reduce(terms, share, cases, weight, reduction)


@full_precision
def histogram_cross_entropy(
    logits: Tensor,
    targets: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return -1/Σ_i n_i Σ_i Σ_k y_ik log p_ik, every annotation counting once (LH eq 82).

    `reduction="sum"` leaves the division out; "none" is -Σ_k y_k log p_k of each case.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    Returns
    -------
    Tensor
        A number, or with `reduction="none"` one for each case, (N, …).

    See Also
    --------
    torch.losses.HistogramCrossEntropy : the same as a module.

    Examples
    --------
    >>> import torch
    >>> counts = torch.tensor([[3, 0], [0, 1]])
    >>> p = torch.tensor([[0.5, 0.5], [0.75, 0.25]])
    >>> histogram_cross_entropy(p.log(), counts)  # (3 log 2 + log 4) / 4
    tensor(0.8664)
    """
    cases = read_cases(logits, targets, ignore_index)
    log_p, labels = cases.chosen()
    return reduce(-log_p, labels, cases, weight, reduction)


@full_precision
def label_smoothing_loss(
    logits: Tensor,
    targets: Tensor,
    smoothing: float = 0.1,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return cross-entropy with 1 - α on the label and α/(K-1) on each other class.

    The convention of RECE's released code. `torch.nn.CrossEntropyLoss(label_smoothing=ε)` gives
    the label its share of ε too: it is this loss with α = ε (K-1)/K.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    smoothing : float, default 0.1
        α, the share of the label that goes to the other classes; at least 0 and below 1.
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    Returns
    -------
    Tensor
        A number, or with `reduction="none"` one for each case, (N, …).

    See Also
    --------
    torch.losses.LabelSmoothing : the same as a module.

    Examples
    --------
    >>> import torch
    >>> label_smoothing_loss(torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([1]))  # log(3)
    tensor(1.0986)
    """
    _check_smoothing(smoothing)
    cases = read_cases(logits, targets, ignore_index)
    log_p, share = cases.asked()
    each = smoothing / (cases.log_probs.shape[1] - 1)
    others = cases.log_probs.sum(dim=1, keepdim=True) - log_p
    terms = -(1 - smoothing) * log_p - each * others
    return reduce(terms, share, cases, weight, reduction)


def _check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing < 1:
        raise InvalidInputError(f"smoothing: must be at least 0 and below 1; got {smoothing}")


class Brier(PerCaseLoss):
    """The Brier loss Σ_k (p_k - 1[label = k])²; see `brier_loss`.

    Parameters
    ----------
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    See Also
    --------
    torch.losses.HistogramCrossEntropy : the other proper loss.
    brier : the metric.

    Examples
    --------
    >>> import torch
    >>> Brier()(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.5000)
    """

    _function = staticmethod(brier_loss)


class HistogramCrossEntropy(PerCaseLoss):
    """Cross-entropy of label histograms, every annotation counting once (LH eq 82).

    Parameters
    ----------
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    See Also
    --------
    torch.losses.Brier : the other proper loss.
    nll : the metric.

    Examples
    --------
    >>> import torch
    >>> logits, counts = torch.zeros(1, 2), torch.tensor([[3, 1]])
    >>> HistogramCrossEntropy()(logits, counts)
    tensor(0.6931)
    """

    _function = staticmethod(histogram_cross_entropy)


class LabelSmoothing(PerCaseLoss):
    """Cross-entropy with a smoothed label; see `label_smoothing_loss`.

    Parameters
    ----------
    smoothing : float, default 0.1
        α, the share of the label that goes to the other classes; at least 0 and below 1.
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    See Also
    --------
    torch.losses.FocalLoss : another way to lower confidence.

    Examples
    --------
    >>> import torch
    >>> LabelSmoothing(0.1)(torch.zeros(1, 3), torch.tensor([1]))
    tensor(1.0986)
    """

    _function = staticmethod(label_smoothing_loss)
    _own = ("smoothing",)

    def __init__(
        self,
        smoothing: float = 0.1,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        _check_smoothing(smoothing)
        self.smoothing = smoothing
