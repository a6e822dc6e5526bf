"""Running networks over tensors or loaders: modes restored, seeds counted, batches bounded."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.inference.settings import Progress
from raterwise.rules import choose, positive_integer

Inputs = Tensor | Iterable[Any]
"""A tensor (N, …), or a DataLoader or other iterable of batches."""


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's first parameter or buffer; the CPU where it has none."""
    if not isinstance(model, nn.Module):
        raise InvalidTypeError(f"model: must be a torch.nn.Module; got {type(model).__name__}")
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")


@contextlib.contextmanager
def evaluating(model: nn.Module, active: Sequence[nn.Module] = ()) -> Iterator[None]:
    """Put a model into eval mode, but for the modules `active`; restore every mode at the end."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        for module in active:
            module.training = True
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextlib.contextmanager
def seeded(*key: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed PyTorch, NumPy and Python from a tuple of counters; restore their states at the end.

    Each key has random numbers of its own, so that nothing depends on what was drawn before.
    """
    state = np.random.SeedSequence(key).generate_state(2)
    cuda = [device] if device is not None and device.type == "cuda" else []
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(int(state[0]))
        # Transforms of other libraries draw from these global generators.
        np.random.seed(int(state[1]))  # noqa: NPY002
        random.seed(int(state[1]))
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


def input_of(batch: Any) -> Tensor:
    """Return the images of a batch: a tensor, the first of several, or the entry "image"."""
    found: Any = batch
    if isinstance(batch, Mapping):
        found = batch.get("image")
    elif isinstance(batch, list | tuple) and batch:
        found = batch[0]
    if not isinstance(found, Tensor):
        raise InvalidTypeError(
            "inputs: a batch must be a tensor, a tuple that begins with one, or a mapping with "
            f'"image"; got {type(batch).__name__}'
        )
    return found


def batches(inputs: Inputs, batch_size: int) -> Iterator[Tensor]:
    """Yield the images batch by batch."""
    if isinstance(inputs, Tensor):
        yield from torch.split(inputs, positive_integer("batch_size", batch_size))
        return
    for batch in inputs:
        yield input_of(batch)


def reported_batches(
    inputs: Inputs, batch_size: int, report: Progress, label: str
) -> Iterator[Tensor]:
    """Yield the batches, and say of each that is dealt with what part is done; none is an error."""
    total, seen = total_cases(inputs), 0
    for batch in batches(inputs, batch_size):
        yield batch
        seen += len(batch)
        report(label, min(seen / total, 1.0) if total else 0.0)
    if not seen:
        raise InvalidInputError("inputs: must hold at least one case; got none")


def check_members(members: Any, kinds: tuple[type, ...]) -> None:
    """Raise where members are not a list of them: a Sequential, say, is one model of layers."""
    if isinstance(members, str) or not isinstance(members, Sequence | nn.ModuleList):
        raise InvalidTypeError(f"members: must be a list of models; got {type(members).__name__}")
    if not members:
        raise InvalidInputError("members: must hold at least one model; got none")
    for number, member in enumerate(members):
        if not isinstance(member, kinds):
            raise InvalidTypeError(
                f"members: must be models or files of weights; member {number} is "
                f"{type(member).__name__}"
            )


def check_order(inputs: Inputs) -> None:
    """Raise where there are no cases, or in an order that nobody knows afterwards."""
    if not isinstance(inputs, Iterable):
        raise InvalidTypeError(f"inputs: must be a tensor or a loader; got {inputs!r}")
    sampler = inputs.sampler if isinstance(inputs, DataLoader) else None
    if isinstance(sampler, RandomSampler | WeightedRandomSampler):
        raise InvalidInputError(
            "inputs: must come in a fixed order, so that predictions belong to known cases; "
            "got a DataLoader that shuffles"
        )


def total_cases(inputs: Inputs) -> int | None:
    """Return how many cases there will be, where that is known beforehand."""
    if isinstance(inputs, Tensor):
        return len(inputs)
    dataset = getattr(inputs, "dataset", None)
    if dataset is not None and hasattr(dataset, "__len__"):
        return len(dataset)
    return None


def as_probabilities(output: str) -> Callable[[Tensor], Tensor]:
    """Return how to turn what a model gives into probabilities over axis 1."""
    choose("output", output, ("logits", "probabilities"))

    def convert(values: Tensor) -> Tensor:
        if values.ndim < 2:
            raise InvalidInputError(
                f"model: must give (N, K) or (N, K, …) for each batch; got {tuple(values.shape)}"
            )
        if values.shape[1] < 2:
            one = "a logit z is (0, z)" if output == "logits" else "a probability p is (1 - p, p)"
            raise InvalidInputError(
                f"model: must give an output for each of at least 2 classes; got "
                f"{tuple(values.shape)} ({one} of two classes: torch.cat over axis 1)"
            )
        return values.float().softmax(dim=1) if output == "logits" else values.float()

    return convert


def class_rows(values: Tensor) -> Tensor:
    """Return (N, K, …) as (M, K), on the CPU."""
    return values.movedim(1, -1).reshape(-1, values.shape[1]).cpu()
