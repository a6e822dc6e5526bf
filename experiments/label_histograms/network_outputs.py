"""What is kept of a trained network of LH appendix E.2, for `mixed_outputs` to remake the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.label_histograms.mixed_networks import MixedNetwork
from experiments.label_histograms.mixed_outputs import rounded
from experiments.training import predict
from raterwise.torch._inference import device_of, evaluating, seeded

__all__ = ["said"]


def said(
    network: MixedNetwork,
    images: Mapping[str, Tensor],
    *,
    seed: int,
    samples: int = 0,
    change: Callable[[Tensor], Tensor] | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the head, the pooled channels of each part, and what is said of changed test images.

    `change` is the augmentation, drawn `samples` times for the part "test".
    """
    arrays: dict[str, NDArray[Any]] = {
        f"{layer}_{kind}": value.detach().float().cpu().numpy().astype(np.float16)
        for layer in ("hidden", "last")
        for kind, value in getattr(network, layer).named_parameters()
    }
    at = device_of(network)
    with evaluating(network), torch.no_grad():
        for part, shown in images.items():
            pooled = [network.pooled(x.to(at)).cpu() for x in torch.split(shown, 1024)]
            arrays |= rounded(torch.cat(pooled).numpy(), f"pooled_{part}")
        # Of the network before its channels are rounded: to see what the rounding does.
        arrays["logits_test"] = predict(network, images["test"]).astype(np.float16)
        if change is not None and samples:
            draws = [_hidden(network, images["test"], change, (seed, 2, s)) for s in range(samples)]
            arrays |= rounded(np.stack(draws), "hidden_tta")
    return arrays


def _hidden(
    network: MixedNetwork,
    images: Tensor,
    change: Callable[[Tensor], Tensor],
    key: tuple[int, int, int],
) -> NDArray[np.float32]:
    """Return the features of every image, changed at random."""
    at = device_of(network)
    with seeded(*key, device=at):
        hidden = [
            torch.relu(network.hidden(network.pooled(change(x.to(at))))).cpu()
            for x in torch.split(images, 1024)
        ]
    return np.asarray(torch.cat(hidden).numpy())
