"""Training the small networks of the experiments: everything in memory, seeded, resumable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from raterwise.errors import InvalidInputError
from raterwise.torch._inference import device_of, evaluating, seeded
from raterwise.torch._training import MILESTONES, Epoch, Training

__all__ = ["Recipe", "predict", "train"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""loss(logits, targets) -> the mean over the batch."""
Augment = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""augment(images, targets) -> the same, changed at random."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: Adam (with decoupled weight decay), the rate falling in steps."""

    epochs: int
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    seed: int = 0
    """Of the weights, of the order of the cases and of their augmentation."""


def train(
    make: Callable[[], nn.Module],
    loss: Loss,
    data: tuple[Tensor, Tensor],
    recipe: Recipe,
    *,
    validation: tuple[Tensor, Tensor] | None = None,
    augment: Augment | None = None,
    checkpoint: str | PathLike[str] | None = None,
    device: str | torch.device = "cpu",
) -> nn.Module:
    """Return a trained network, in eval mode; of its best epoch where there is validation.

    `make` builds the network, from random weights that the recipe's seed decides. With a
    checkpoint, training that was killed goes on with the epoch after the last whole one.
    """
    at = _usable(device)
    with seeded(recipe.seed, 0, device=at):
        network = make().to(at)
    images, targets = (part.to(at) for part in data)
    held_out = None if validation is None else tuple(part.to(at) for part in validation)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    training = Training(optimizer, asdict(recipe), checkpoint)
    history = training.begin(network)
    while not training.is_over(len(history), recipe.epochs, patience=None):
        number = len(history)
        training.set_rate(sum(number >= m * recipe.epochs for m in MILESTONES))
        with seeded(recipe.seed, 1, number, device=at):
            mean = _epoch(network, loss, images, targets, optimizer, recipe.batch_size, augment)
        judged = None if held_out is None else _loss_on(network, loss, *held_out)
        history.append(Epoch(number, mean, judged))
        training.record(history, network)
    training.finish(network, validation is not None)
    return network


def _usable(device: str | torch.device) -> torch.device:
    try:
        at = torch.device(device)
        torch.empty(0, device=at)
    except (RuntimeError, AssertionError) as error:  # the latter where PyTorch has no CUDA
        raise InvalidInputError(
            f"device: must be one that PyTorch can use here, such as cpu or cuda; got {device!r}"
        ) from error
    return at


def _epoch(
    network: nn.Module,
    loss: Loss,
    images: Tensor,
    targets: Tensor,
    optimizer: torch.optim.Optimizer,
    batch_size: int,
    augment: Augment | None,
) -> float:
    network.train()
    order = torch.randperm(len(images)).to(images.device)
    # The sum stays on the device: asking for it after each batch would wait for the device.
    total = torch.zeros((), device=images.device, dtype=torch.float64)
    for rows in torch.split(order, batch_size):
        if len(rows) == 1:  # batch norm needs two
            continue
        batch = images[rows], targets[rows]
        given, wanted = batch if augment is None else augment(*batch)
        value = loss(network(given), wanted)
        optimizer.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += value.detach().double() * len(rows)
    return float(total.item() / len(images))


def _loss_on(network: nn.Module, loss: Loss, images: Tensor, targets: Tensor) -> float:
    with evaluating(network), torch.no_grad():
        logits = torch.cat([network(part) for part in torch.split(images, 1024)])
        return float(loss(logits, targets).item())


def predict(network: nn.Module, images: Tensor, batch_size: int = 1024) -> NDArray[np.float32]:
    """Return what a network says about images, on the host."""
    at = device_of(network)
    with evaluating(network), torch.no_grad():
        parts = [network(part.to(at)).float().cpu() for part in torch.split(images, batch_size)]
    return np.asarray(torch.cat(parts).numpy(), dtype=np.float32)
