"""A training run that can be taken up where it was killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.torch._checkpoints import check_settings, load_checkpoint, save_checkpoint

Data = Dataset[Any] | DataLoader[Any] | tuple[Tensor, Tensor]

DECAY, MILESTONES = 0.1, (1 / 2, 3 / 4)
"""The learning rate is divided by ten at half and at three quarters of the epochs (CCC 4.1)."""


Rate = Callable[[int, int], float]
"""rate(number, epochs) -> by what the learning rate is multiplied in one of so many epochs."""


def in_steps(
    number: int, epochs: int, milestones: Sequence[float] = MILESTONES, decay: float = DECAY
) -> float:
    """Return the factor of an epoch where the rate falls at each milestone, a share of the epochs.

    >>> [in_steps(number, 8) for number in (0, 3, 4, 5)]
    [1.0, 1.0, 0.1, 0.1]
    """
    return float(decay ** sum(number >= share * epochs for share in milestones))


class Epoch(NamedTuple):
    """The result of one epoch.

    Parameters
    ----------
    number : int
        From 0 on.
    train_loss : float
        The mean over the training cases.
    validation_loss : float or None
        The mean over the validation cases, if there are any.

    See Also
    --------
    torch.distillation.UncertaintyDistillation : returns them.

    Examples
    --------
    >>> Epoch(0, 0.5, None).train_loss
    0.5
    """

    number: int
    train_loss: float
    validation_loss: float | None


class Training:
    """What a training run carries from epoch to epoch, and writes down."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        settings: dict[str, Any],
        path: str | PathLike[str] | None,
    ) -> None:
        self.optimizer, self.settings, self.path = optimizer, settings, path
        self.best: dict[str, Any] | None = None
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def begin(self, network: nn.Module) -> list[Epoch]:
        """Take up a checkpoint where there is one; return the epochs it has."""
        saved = None if self.path is None else load_checkpoint(self.path)
        if saved is None or self.path is None:
            return []
        check_settings(self.path, saved["settings"], self.settings)
        try:
            network.load_state_dict(saved["network"])
            self.optimizer.load_state_dict(saved["optimizer"])
        except (RuntimeError, ValueError) as error:
            raise InvalidInputError(
                f"checkpoint: {Path(self.path).name} was made with another network or optimizer; "
                f"use another file, or resume=False to begin anew: {error}"
            ) from error
        self.best = saved["best"]
        return [Epoch(*epoch) for epoch in saved["history"]]

    def go_on(
        self,
        network: nn.Module,
        history: list[Epoch],
        epochs: int,
        one_epoch: Callable[[int], tuple[float, float | None]],
        *,
        patience: int | None = None,
        rate: Rate = in_steps,
    ) -> None:
        """Do the epochs that `history` does not have, and add them to it.

        `one_epoch(number)` trains and returns the loss, and that of the validation if there is one.
        """
        while not self.is_over(len(history), epochs, patience):
            number = len(history)
            for group in self.optimizer.param_groups:
                group["lr"] = group["initial_lr"] * rate(number, epochs)
            history.append(Epoch(number, *one_epoch(number)))
            self.record(history, network)

    def record(self, history: Sequence[Epoch], network: nn.Module) -> None:
        """Remember the best epoch, and write everything down."""
        loss = history[-1].validation_loss
        if loss is not None and (self.best is None or loss < self.best["loss"]):
            weights = {k: v.detach().cpu().clone() for k, v in network.state_dict().items()}
            self.best = {"epoch": history[-1].number, "loss": loss, "network": weights}
        if self.path is not None:
            content = {
                "settings": self.settings,
                "network": network.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "best": self.best,
                "history": [tuple(epoch) for epoch in history],
            }
            save_checkpoint(self.path, content)

    def is_over(self, done: int, epochs: int, patience: int | None) -> bool:
        """Say whether every epoch is done, or patience is at its end."""
        if done >= epochs:
            return True
        return (
            patience is not None
            and self.best is not None
            and (done - 1 - self.best["epoch"] >= patience)
        )

    def finish(self, network: nn.Module, validated: bool) -> None:
        """Leave the network in eval mode, with its best weights where there was validation."""
        if validated and self.best is not None:
            network.load_state_dict(self.best["network"])
        network.eval()


def digest(member: nn.Module) -> list[float]:
    """Return numbers that another member would not have."""
    with torch.no_grad():
        sums = [p.double().abs().sum().item() for p in member.parameters()]
    return [float(sum(sums)), float(len(sums))]


def pair_of(batch: Any) -> tuple[Tensor, Tensor]:
    """Return the images and labels of a batch."""
    if not isinstance(batch, list | tuple) or len(batch) < 2:
        raise InvalidTypeError(
            f"data: a batch must be (images, labels); got {type(batch).__name__}"
        )
    return batch[0], torch.as_tensor(batch[1])


def _check_pair(data: tuple[Tensor, ...]) -> None:
    sizes = [len(part) for part in data]
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise InvalidInputError(
            f"data: must be (images, labels) of as many cases; got {sizes} of {len(sizes)} parts"
        )
    if sizes[0] == 0:
        raise InvalidInputError("data: must hold at least one case; got none")


def loader_of(
    data: Data, batch_size: int, *, shuffle: bool, epoch: int = 0, seed: int = 0
) -> DataLoader[Any]:
    """Return a loader whose order depends on seed and epoch alone."""
    if isinstance(data, tuple):
        _check_pair(data)
        pairs = TensorDataset(*data)
        order = RandomSampler(pairs) if shuffle else SequentialSampler(pairs)
        # A batch is taken out of the tensors at once: case by case costs more than a small
        # network does, and on a GPU a hundred times as much.
        rows = BatchSampler(order, batch_size, drop_last=False)
        return DataLoader(pairs, sampler=rows, batch_size=None)
    if not isinstance(data, DataLoader):
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle)
    # A loader of the user's draws its order from generators of its own, if it has some.
    number = int(np.random.SeedSequence((seed, epoch)).generate_state(1)[0])
    for holder in (data, data.sampler):
        generator = getattr(holder, "generator", None)
        if isinstance(generator, torch.Generator):
            generator.manual_seed(number)
    if hasattr(data.sampler, "set_epoch"):
        data.sampler.set_epoch(epoch)
    return data
