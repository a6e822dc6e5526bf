"""Focal losses: cross-entropy that cares less about the cases it already gets right."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from raterwise.rules import at_least_zero
from raterwise.torch.losses._cases import PerCaseLoss, Reduction, full_precision, read_cases, reduce

FLSD_53 = ((0.2, 5.0), (0.5, 3.0))
"""γ = 5 where the probability of the label is below 0.2, 3 below 0.5 (Mukhoti et al. 2020)."""


def _focal_terms(log_p: Tensor, share: Tensor, gamma: float | Tensor) -> Tensor:
    # What no rater chose costs nothing, also where it is impossible (log p = -∞).
    log_p = log_p.masked_fill(share == 0, 0)
    # 1 - p without cancellation; above 0, since 0^(γ-1) in the gradient is infinite for γ < 1.
    miss = (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).tiny)
    return -(miss**gamma) * log_p


@full_precision
def focal_loss(
    logits: Tensor,
    targets: Tensor,
    gamma: float = 1.0,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return -(1 - p_t)^γ log p_t, with p_t the probability of the label (Lin et al. 2017, eq 4).

    If raters disagree about a case, it counts with the mean over its raters.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    gamma : float, default 1.0
        How strongly cases that are already right are down-weighted; 0 gives cross-entropy.
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
    torch.losses.FocalLoss : the same as a module.

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 0.0]])
    >>> round(focal_loss(logits, torch.tensor([1]), gamma=2).item(), 4)  # log(2) / 4
    0.1733
    """
    at_least_zero("gamma", gamma)
    cases = read_cases(logits, targets, ignore_index)
    log_p, share = cases.asked()
    return reduce(_focal_terms(log_p, share, gamma), share, cases, weight, reduction)


@full_precision
def flsd_loss(
    logits: Tensor,
    targets: Tensor,
    gamma: float = 3.0,
    *,
    schedule: Sequence[tuple[float, float]] = FLSD_53,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the focal loss with a sample-dependent γ (FLSD, Mukhoti et al. 2020).

    The default is FLSD-53: γ = 5 for p_t < 0.2 and 3 for the rest; with `gamma=2` it is FLSD-532.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    gamma : float, default 3.0
        The exponent from the last bound of the schedule on.
    schedule : sequence of (float, float), default FLSD_53
        Pairs (bound, γ): the first bound that p_t is below decides.
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
    torch.losses.FLSD : the same as a module.

    Examples
    --------
    >>> p = torch.tensor([[0.1, 0.9], [0.25, 0.75], [0.5, 0.5]])
    >>> flsd_loss(p.log(), torch.tensor([0, 0, 0]), gamma=2, reduction="none")
    tensor([1.3597, 0.5848, 0.1733])
    """
    for value in (gamma, *(each for _, each in schedule)):
        at_least_zero("gamma", value)
    cases = read_cases(logits, targets, ignore_index)
    log_p, share = cases.asked()
    p = log_p.detach().exp()
    each = torch.full_like(p, gamma)
    for bound, value in sorted(schedule, reverse=True):
        each = torch.where(p < bound, value, each)
    return reduce(_focal_terms(log_p, share, each), share, cases, weight, reduction)


class FocalLoss(PerCaseLoss):
    """The focal loss -(1 - p_t)^γ log p_t; see `focal_loss`.

    Parameters
    ----------
    gamma : float, default 1.0
        How strongly cases that are already right are down-weighted; 0 gives cross-entropy.
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    See Also
    --------
    torch.losses.FLSD : with a γ that depends on the confidence.

    Examples
    --------
    >>> FocalLoss(gamma=2)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.1733)
    """

    _function = staticmethod(focal_loss)
    _own = ("gamma",)

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.gamma = at_least_zero("gamma", gamma)


class FLSD(PerCaseLoss):
    """The focal loss with a sample-dependent γ, by default FLSD-53; see `flsd_loss`.

    Parameters
    ----------
    gamma : float, default 3.0
        The exponent from the last bound of the schedule on.
    schedule : sequence of (float, float), default FLSD_53
        Pairs (bound, γ): the first bound that p_t is below decides.
    weight : Tensor, optional
        Shape (K,): weight of a label of each class; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to combine the cases; the mean is weighted, as in `torch.nn.CrossEntropyLoss`.

    See Also
    --------
    torch.losses.FocalLoss : with one γ.

    Examples
    --------
    >>> p = torch.tensor([[0.1, 0.9]])
    >>> FLSD()(p.log(), torch.tensor([0]))  # 0.9^5 log(10)
    tensor(1.3597)
    """

    _function = staticmethod(flsd_loss)
    _own = ("gamma", "schedule")

    def __init__(
        self,
        gamma: float = 3.0,
        *,
        schedule: Sequence[tuple[float, float]] = FLSD_53,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.gamma = at_least_zero("gamma", gamma)
        self.schedule = tuple(
            (float(bound), at_least_zero("gamma", float(value))) for bound, value in schedule
        )
