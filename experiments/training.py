"""Training the networks of the experiments: everything in memory, seeded, resumable.

One loop for all: SGD, Adam or NAdam; the learning rate warmed up, then falling in steps or along a
cosine; patience; the best epoch kept where there are validation cases; a checkpoint after every
epoch. Several processes can share a GPU, each with networks of its own (`share`). What a run
carries from epoch to epoch is the library's (`raterwise.torch._training`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.replayed import Step
from raterwise.errors import InvalidInputError
from raterwise.rules import choose, positive_integer
from raterwise.torch._inference import device_of, evaluating, seeded
from raterwise.torch._training import Training, in_steps

__all__ = ["Recipe", "predict", "share", "train"]

Item = TypeVar("Item")
Loss = Callable[[Tensor, Tensor], Tensor]
"""loss(logits, targets) -> the mean over the batch."""
Augment = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""augment(images, targets) -> the same, changed at random."""
OPTIMIZERS = ("adam", "nadam", "sgd")
SCHEDULES = ("steps", "cosine", "constant")


@dataclass(frozen=True)
class Recipe:
    """How a network is trained."""

    epochs: int
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    """Decoupled from the gradient in Adam and NAdam (AdamW, NAdamW), part of it in SGD."""
    seed: int = 0
    """Of the weights, of the order of the cases and of their augmentation."""
    optimizer: Literal["adam", "nadam", "sgd"] = "adam"
    momentum: float = 0.9
    """Of SGD."""
    schedule: Literal["steps", "cosine", "constant"] = "steps"
    """How the learning rate falls: at each milestone, along half a cosine to 0, or not at all."""
    milestones: tuple[float, ...] = (1 / 2, 3 / 4)
    """Shares of the epochs after which "steps" multiplies the learning rate by `decay`."""
    decay: float = 0.1
    warm_up: int = 0
    """Epochs in which the learning rate rises evenly before it is whole."""
    patience: int | None = None
    """Stop after so many epochs without a lower loss on the validation cases."""

    def __post_init__(self) -> None:
        positive_integer("epochs", self.epochs)
        positive_integer("batch_size", self.batch_size)
        choose("optimizer", self.optimizer, OPTIMIZERS)
        choose("schedule", self.schedule, SCHEDULES)
        if not 0 <= self.warm_up < self.epochs:
            raise InvalidInputError(
                f"warm_up: must be 0 … {self.epochs - 1}, fewer than the epochs; got {self.warm_up}"
            )
        if self.patience is not None:
            positive_integer("patience", self.patience)

    def rate(self, number: int, epochs: int) -> float:
        """Return by what the learning rate is multiplied in an epoch.

        >>> [Recipe(8, schedule="cosine", warm_up=3).rate(number, 8) for number in (0, 1, 2, 3)]
        [0.25, 0.5, 0.75, 1.0]
        """
        if number < self.warm_up:
            return (number + 1) / (self.warm_up + 1)
        if self.schedule == "steps":
            return in_steps(number, epochs, self.milestones, self.decay)
        if self.schedule == "cosine":
            done = (number - self.warm_up) / (epochs - self.warm_up)
            return (1 + math.cos(math.pi * done)) / 2
        return 1.0

    def optimizer_of(self, parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimizer of a network's parameters."""
        weights = list(parameters)
        rate, decay = self.learning_rate, self.weight_decay
        if self.optimizer == "nadam":
            return torch.optim.NAdam(
                weights, lr=rate, weight_decay=decay, decoupled_weight_decay=True
            )
        fused = all(part.is_cuda for part in weights)  # and then a step can be recorded
        if self.optimizer == "sgd":
            return torch.optim.SGD(
                weights, lr=rate, momentum=self.momentum, weight_decay=decay, fused=fused
            )
        return torch.optim.AdamW(
            weights, lr=rate, weight_decay=decay, fused=fused, capturable=fused
        )


def train(
    make: Callable[[], nn.Module],
    loss: Loss,
    data: tuple[Tensor, Tensor],
    recipe: Recipe,
    *,
    validation: tuple[Tensor, Tensor] | None = None,
    augment: Augment | None = None,
    checkpoint: str | PathLike[str] | None = None,
    watch: Callable[[nn.Module, int], None] | None = None,
    device: str | torch.device = "cpu",
) -> nn.Module:
    """Return a trained network, in eval mode; of its best epoch where there is validation.

    `make` builds the network, from random weights that the recipe's seed decides. With a
    checkpoint, training that was killed goes on with the epoch after the last whole one. `watch`
    is shown the network after every epoch that is done here.
    """
    if recipe.patience is not None and validation is None:
        raise InvalidInputError("patience: needs validation cases to be patient with; got none")
    at = _usable(device)
    with seeded(recipe.seed, 0, device=at):
        network = make().to(at)
    if at.type == "cuda":  # weights that lie as cuDNN wants them are not turned in every step
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images, targets = (part.to(at) for part in data)
    held_out = None if validation is None else tuple(part.to(at) for part in validation)
    training = Training(recipe.optimizer_of(network.parameters()), asdict(recipe), checkpoint)
    step = Step(network, loss, training.optimizer)

    def one_epoch(number: int) -> tuple[float, float | None]:
        network.train()
        with seeded(recipe.seed, 1, number, device=at):
            mean = _epoch(step, images, targets, recipe.batch_size, augment)
        if watch is not None:
            watch(network, number)
        return mean, None if held_out is None else _loss_on(network, loss, *held_out)

    history = training.begin(network)
    training.go_on(
        network, history, recipe.epochs, one_epoch, patience=recipe.patience, rate=recipe.rate
    )
    training.finish(network, validation is not None)
    return network


def share(work: Iterable[Item], shard: tuple[int, int]) -> list[Item]:
    """Return every n-th part of the work from the i-th on, where `shard` is (i, n).

    >>> share("abcde", (1, 2))
    ['b', 'd']
    """
    part, parts = shard
    if not 0 <= part < parts:
        raise InvalidInputError(f"shard: must be (i, n) with 0 <= i < n; got {shard}")
    return list(work)[part::parts]


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
    step: Step, images: Tensor, targets: Tensor, batch_size: int, augment: Augment | None
) -> float:
    order = torch.randperm(len(images)).to(images.device)
    # The sum stays on the device: asking for it after each batch would wait for the device.
    total = torch.zeros((), device=images.device, dtype=torch.float64)
    for rows in torch.split(order, batch_size):
        if len(rows) == 1:  # batch norm needs two
            continue
        batch = images[rows], targets[rows]
        given, wanted = batch if augment is None else augment(*batch)
        total += step(given, wanted).double() * len(rows)
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
