"""A loss and a calibration term together."""

from __future__ import annotations

from torch import Tensor, nn


class Regularized(nn.Module):
    """L_application + β L_regulariser (RECE eq 10).

    The paper trains with `Regularized(FocalLoss(gamma=1), RCR(), beta=1)`.

    Parameters
    ----------
    application : Module
        The loss that trains the network, called as `application(logits, targets)`.
    regulariser : Module
        The calibration term to add, called alike.
    beta : float, default 1.0
        How much of the term to add.

    See Also
    --------
    torch.losses.RCR, torch.losses.MDCA, torch.losses.DCA : what may be added.

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
        self.application, self.regulariser, self.beta = application, regulariser, beta

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of both for logits (N, K, …) and classes (N, …) or label counts."""
        loss: Tensor = self.application(logits, targets)
        term: Tensor = self.regulariser(logits, targets)
        return loss + self.beta * term

    def extra_repr(self) -> str:
        """The weight of the term."""
        return f"beta={self.beta}"
