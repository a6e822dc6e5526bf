"""What a confidence network sees and learns: CCC eqs 2-3."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from raterwise.errors import InvalidInputError
from raterwise.tensors.cases import check_classes, check_not_negative


def soften(log_probs: Tensor, temperature: float) -> Tensor:
    """Return softmax(log P̄ / T) over axis 1 (CCC eq 2).

    Parameters
    ----------
    log_probs : Tensor
        (N, K, …): log P̄.
    temperature : float
        T; above 1 it makes the probabilities more equal.

    Returns
    -------
    Tensor
        (N, K, …): probabilities.

    See Also
    --------
    torch.distillation.UncertaintyDistillation : uses it.

    Examples
    --------
    >>> import torch
    >>> soften(torch.tensor([[0.9, 0.1]]).log(), temperature=2.0)  # 3 : 1
    tensor([[0.7500, 0.2500]])
    """
    return (log_probs / temperature).softmax(dim=1)


def with_planes(images: Tensor, probs: Tensor) -> Tensor:
    """Return images (N, C, …) with probabilities (N, K) as K more channels, each constant.

    Parameters
    ----------
    images : Tensor
        (N, C, …), floating point.
    probs : Tensor
        (N, K).

    Returns
    -------
    Tensor
        (N, C + K, …).

    See Also
    --------
    torch.distillation.UncertaintyDistillation : uses it.

    Examples
    --------
    >>> import torch
    >>> with_planes(torch.zeros(2, 3, 4, 4), torch.ones(2, 5)).shape
    torch.Size([2, 8, 4, 4])
    """
    if not images.is_floating_point():
        raise InvalidInputError(  # as whole numbers, every probability would be 0
            f"images: must be floating point to be joined with probabilities; got {images.dtype}"
        )
    spatial = images.shape[2:]
    planes = probs.to(images).reshape(*probs.shape, *(1 for _ in spatial))
    return torch.cat((images, planes.expand(*probs.shape, *spatial)), dim=1)


def confidence_loss(scores: Tensor, target: Tensor) -> Tensor:
    """Return -[P_t log s + (1 - P_t) log(1 - s)], s the sigmoid of `scores` (CCC eq 3).

    Parameters
    ----------
    scores : Tensor
        (N,) or (N, L): what the confidence network gives, before the sigmoid.
    target : Tensor
        Of the same shape: P_t.

    Returns
    -------
    Tensor
        The mean over cases, and over findings where there are several.

    See Also
    --------
    torch.distillation.UncertaintyDistillation : trains the confidence network with it.

    Examples
    --------
    >>> import torch
    >>> confidence_loss(torch.tensor([0.0]), torch.tensor([0.8]))  # log(2) whatever P_t is
    tensor(0.6931)
    """
    return functional.binary_cross_entropy_with_logits(scores.float(), target.float())


def soft_target(softened: Tensor, labels: Tensor, *, findings: bool) -> Tensor:
    """Return P̃_t of each case, or of each finding (CCC eq 3); see `UncertaintyDistillation`.

    >>> import torch
    >>> softened = torch.tensor([[0.7, 0.3], [0.6, 0.4]])
    >>> soft_target(softened, torch.tensor([0, 1]), findings=False)
    tensor([0.7000, 0.4000])
    >>> soft_target(softened, torch.tensor([[3, 1], [0, 2]]), findings=False)  # (3 · 0.7 + 0.3) / 4
    tensor([0.6000, 0.4000])
    """
    if findings:
        if labels.shape != softened.shape:
            raise InvalidInputError(
                f"labels: must be {tuple(softened.shape)}, one per finding; "
                f"got shape {tuple(labels.shape)}"
            )
        present = labels.to(softened)
        _check_share(present)
        return present * softened + (1 - present) * (1 - softened)
    if labels.shape == softened.shape:
        counts = labels.to(softened)
        check_not_negative(counts)
        if unrated := int((counts.sum(dim=1) == 0).sum()):
            raise InvalidInputError(
                f"labels: every case needs a rating; {unrated} of {len(counts)} in a batch have "
                "none"
            )
        return (counts * softened).sum(dim=1) / counts.sum(dim=1)
    if labels.ndim != 1 or labels.is_floating_point():
        raise InvalidInputError(
            f"labels: must be (N,) integer classes or {tuple(softened.shape)} label counts; "
            f"got {labels.dtype} of shape {tuple(labels.shape)}"
        )
    check_classes(labels, softened.shape[1])
    return softened.gather(1, labels.long()[:, None])[:, 0]


def _check_share(present: Tensor) -> None:
    outside = present[~((present >= 0) & (present <= 1))]  # NaN too
    if len(outside):
        raise InvalidInputError(
            f"labels: findings must be 0, 1 or a fraction of the raters; got {outside[0].item():g}"
        )
