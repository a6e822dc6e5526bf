"""What a confidence network learns: the softened probability of what is actually there."""

from __future__ import annotations

from torch import Tensor

from raterwise import rules
from raterwise.errors import InvalidInputError

__all__ = ["soft_target"]


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
        _check_counts(counts)
        return (counts * softened).sum(dim=1) / counts.sum(dim=1)
    if labels.ndim != 1 or labels.is_floating_point():
        raise InvalidInputError(
            f"labels: must be (N,) integer classes or {tuple(softened.shape)} label counts; "
            f"got {labels.dtype} of shape {tuple(labels.shape)}"
        )
    _check_classes(labels, softened.shape[1])
    return softened.gather(1, labels.long()[:, None])[:, 0]


def _check_share(present: Tensor) -> None:
    outside = present[~((present >= 0) & (present <= 1))]  # NaN too
    if len(outside):
        raise InvalidInputError(
            f"labels: findings must be 0, 1 or a fraction of the raters; got {outside[0].item():g}"
        )


def _check_counts(counts: Tensor) -> None:
    if missing := int(counts.isnan().sum()):
        raise rules.contains_nan("labels", missing)
    if len(wrong := (counts < 0).nonzero()):
        case, k = (int(i) for i in wrong[0])
        raise rules.negative_count("labels", case, k, counts[case, k].item())
    if unrated := int((counts.sum(dim=1) == 0).sum()):
        raise InvalidInputError(
            f"labels: every case needs a rating; {unrated} of {len(counts)} in a batch have none"
        )


def _check_classes(labels: Tensor, classes: int) -> None:
    if len(outside := ((labels < 0) | (labels >= classes)).nonzero()):
        entry = int(outside[0, 0])
        raise rules.not_a_class("labels", entry, int(labels[entry]), classes)
