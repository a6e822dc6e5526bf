"""Calibration terms of a whole batch, to be added to a loss: MDCA, DCA.

Each compares what was predicted with what was observed, averaged over the batch, and so has one
value and no reduction. `Regularized` adds one to a loss.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.rules import a_number
from raterwise.torch.losses._cases import (
    Cases,
    LossModule,
    class_weights,
    full_precision,
    ratio,
    read_cases,
)


def mean_over_classes(gap: Tensor, weight: Tensor | None) -> Tensor:
    """Return Σ_k w_k |gap_k| / Σ_k w_k, the mean where there are no weights."""
    class_weights(weight, len(gap))
    if weight is None:
        return gap.abs().mean()
    return ratio((weight.to(gap) * gap.abs()).sum(), weight.to(gap).sum())


def top_label(cases: Cases) -> tuple[Tensor, Tensor]:
    """Return the confidence of the predicted class and how often raters agree with it: (M,)."""
    log_p, predicted = cases.log_probs.max(dim=1)
    if cases.single:
        return log_p.exp(), (predicted == cases.counts[:, 0]).to(log_p.dtype) * cases.keep
    return log_p.exp(), cases.frequencies.gather(1, predicted[:, None])[:, 0]


@full_precision
def mdca_term(
    logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, ignore_index: int = -100
) -> Tensor:
    """Return 1/K Σ_k |mean_i p_ik - mean_i 1[label_i = k]| (Hebbalaguppe et al. 2022, eq 5).

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    weight : Tensor, optional
        Shape (K,): weight of each class in the mean over classes; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.

    Returns
    -------
    Tensor
        One number, with a gradient.

    See Also
    --------
    torch.losses.MDCA : the same as a module.
    torch.losses.dca_term : for all classes together.

    Examples
    --------
    >>> import torch
    >>> p = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> mdca_term(p.log(), torch.tensor([0, 1]))  # |0.75 - 0.5| for both classes
    tensor(0.2500)
    """
    cases = read_cases(logits, targets, ignore_index)
    gap = (cases.probs * cases.keep[:, None] - cases.frequencies).sum(dim=0)
    return mean_over_classes(ratio(gap, cases.keep.sum()), weight)


@full_precision
def dca_term(
    logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, ignore_index: int = -100
) -> Tensor:
    """Return |mean confidence - accuracy| of the batch (Liang et al. 2020, eq 3).

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    weight : Tensor, optional
        Shape (K,): weight of a case by its label; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.

    Returns
    -------
    Tensor
        One number, with a gradient.

    See Also
    --------
    torch.losses.DCA : the same as a module.
    torch.losses.mdca_term : for each class.

    Examples
    --------
    >>> import torch
    >>> p = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> dca_term(p.log(), torch.tensor([0, 1]))  # |0.75 - 0.5|
    tensor(0.2500)
    """
    cases = read_cases(logits, targets, ignore_index)
    class_weights(weight, cases.log_probs.shape[1])
    w = cases.label_weights(weight)
    confidence, hit = top_label(cases)
    return ratio((w * (confidence - hit)).sum(), w.sum()).abs()


class MDCA(LossModule):
    """The multi-class difference of confidence and accuracy; see `mdca_term`.

    Parameters
    ----------
    weight : Tensor, optional
        Shape (K,): weight of each class in the mean over classes; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.

    See Also
    --------
    torch.losses.DCA : for all classes together.

    Examples
    --------
    >>> import torch
    >>> p = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> MDCA()(p.log(), torch.tensor([0, 1]))
    tensor(0.2500)
    """

    _function = staticmethod(mdca_term)


class DCA(LossModule):
    """The difference of mean confidence and accuracy; see `dca_term`.

    Parameters
    ----------
    weight : Tensor, optional
        Shape (K,): weight of a case by its label; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.

    See Also
    --------
    torch.losses.MDCA : for each class.

    Examples
    --------
    >>> import torch
    >>> p = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> DCA()(p.log(), torch.tensor([0, 1]))
    tensor(0.2500)
    """

    _function = staticmethod(dca_term)


class Regularized(nn.Module):
    """L_application + β L_regulariser (RECE eq 10).

    The paper trains with `Regularized(FocalLoss(gamma=1), RCR(), beta=1)`.

    Parameters
    ----------
    application : Module
        The main loss, called as `application(logits, targets)`.
    regulariser : Module
        The calibration term to add, called in the same way.
    beta : float, default 1.0
        Weight of the added term.

    See Also
    --------
    torch.losses.RCR, torch.losses.MDCA, torch.losses.DCA : terms to add.

    Examples
    --------
    >>> import torch
    >>> from raterwise.torch.losses import MDCA, HistogramCrossEntropy
    >>> loss = Regularized(HistogramCrossEntropy(), MDCA(), beta=2)
    >>> loss(torch.zeros(1, 2), torch.tensor([0]))  # log(2) + 2 · 0.5
    tensor(1.6931)
    """

    def __init__(self, application: nn.Module, regulariser: nn.Module, beta: float = 1.0) -> None:
        super().__init__()
        for name, loss in (("application", application), ("regulariser", regulariser)):
            if not callable(loss):
                raise InvalidTypeError(f"{name}: must be a loss; got {loss!r}")
        a_number("beta", beta)
        if not math.isfinite(beta):
            raise InvalidInputError(f"beta: must be finite; got {beta}")
        self.application, self.regulariser, self.beta = application, regulariser, beta

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of both for logits (N, K, …) and classes (N, …) or label counts."""
        loss: Tensor = self.application(logits, targets)
        term: Tensor = self.regulariser(logits, targets)
        return loss + self.beta * term

    def extra_repr(self) -> str:
        """The weight of the term."""
        return f"beta={self.beta}"
