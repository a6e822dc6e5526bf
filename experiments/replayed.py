"""Training steps and networks that are recorded once and replayed on a GPU.

Launching the hundreds of small kernels of a training step takes a slow processor longer than the
GPU needs to compute them (a DenseNet of 36 layers: 44 ms instead of 7). A CUDA graph launches them
at once. Everything on a processor goes the usual way.

`Step` records a whole step, with its loss and optimizer, for each shape of a batch; `Replayed` a
network alone, for training loops that are not ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["Replayed", "Step", "replayed_answers"]

WARM_UP = 3
"""Answers before a recording, in which cuDNN chooses its algorithms."""


class Step:
    """Steps of one network: forward, loss, backward, optimizer.

    On a GPU the first steps of a shape are taken one kernel at a time; then the step is recorded,
    and replayed from there on. So every step trains, and a recording changes nothing.

    >>> layer = nn.Linear(2, 1)
    >>> take = Step(layer, nn.MSELoss(), torch.optim.SGD(layer.parameters(), lr=0.1))
    >>> take(torch.ones(3, 2), torch.zeros(3, 1)) > take(torch.ones(3, 2), torch.zeros(3, 1))
    tensor(True)
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        optimizer: torch.optim.Optimizer,
    ) -> None:
        self._network, self._loss, self._optimizer = network, loss, optimizer
        self._seen: Counter[torch.Size] = Counter()
        self._recorded: dict[torch.Size, _Recording] = {}

    def __call__(self, images: Tensor, targets: Tensor) -> Tensor:
        """Take a step; return the loss of the batch, which the next step may overwrite."""
        # Others either wait for the device in a step, or take no learning rate that can change.
        replayable = isinstance(self._optimizer, torch.optim.AdamW | torch.optim.SGD)
        if not (images.is_cuda and replayable):
            return self._taken(images, targets)
        shape = images.shape
        if shape not in self._recorded:
            self._seen[shape] += 1
            if self._seen[shape] <= WARM_UP:
                with _aside(images.device):
                    return self._taken(images, targets)
            self._recorded[shape] = _Recording(self._taken, self._optimizer, images, targets)
        return self._recorded[shape](images, targets)

    def _taken(self, images: Tensor, targets: Tensor) -> Tensor:
        self._optimizer.zero_grad(set_to_none=True)
        value = self._loss(self._network(images), targets)
        value.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return value.detach()


class _Recording:
    """A recorded step, of one shape; the learning rate may change from one replay to the next."""

    def __init__(
        self,
        take: Callable[[Tensor, Tensor], Tensor],
        optimizer: torch.optim.Optimizer,
        images: Tensor,
        targets: Tensor,
    ) -> None:
        self._given, self._wanted = images.clone(), targets.clone()
        (self._group,) = optimizer.param_groups
        rate = self._group["lr"]
        self._rate = torch.tensor(rate, device=images.device)
        self._group["lr"] = self._rate
        optimizer.zero_grad(set_to_none=True)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._value = take(self._given, self._wanted)
        self._group["lr"] = rate

    def __call__(self, images: Tensor, targets: Tensor) -> Tensor:
        self._rate.fill_(self._group["lr"])
        self._given.copy_(images)
        self._wanted.copy_(targets)
        self._graph.replay()
        return self._value


@contextmanager
def _aside(device: torch.device) -> Iterator[None]:
    """Work on another stream, as recording does: what it leaves behind belongs to no recording."""
    here, stream = torch.cuda.current_stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(here)
    with torch.cuda.stream(stream):
        yield
    here.wait_stream(stream)


class Replayed(nn.Module):
    """A network that replays its training steps of the first shape that it is given on a GPU.

    It shares the network's weights; in eval mode it is the network.

    >>> Replayed(nn.Linear(2, 1))(torch.zeros(3, 2)).shape
    torch.Size([3, 1])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self._shape: torch.Size | None = None
        self._replay: Callable[[Tensor], Tensor] | None = None

    def forward(self, images: Tensor) -> Tensor:
        """Return what the network says."""
        if self.training and images.is_cuda and self._replay is None:
            self._shape = images.shape
            _expect_another_stream()
            # A module of its own: recording replaces the `forward` of what it is given, and only
            # that is kept, since a module would be one of this one's parts.
            whole = _Whole(self.network)
            torch.cuda.make_graphed_callables(whole, (images.clone(),))
            self._replay = whole.forward
        if self.training and self._replay is not None and images.shape == self._shape:
            return self._replay(images).clone()
        said: Tensor = self.network(images)
        return said


def _expect_another_stream() -> None:
    """Keep PyTorch from warning that gradients come from the stream of the recording: they do."""
    warn = getattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch", None)
    if warn is not None:
        warn(False)


class _Whole(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        said: Tensor = self.network(images)
        return said


def replayed_answers(ask: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function without gradients that replays what `ask` does with batches of one shape.

    >>> replayed_answers(lambda images: 2 * images)(torch.ones(1))
    tensor([2.])
    """
    graph: torch.cuda.CUDAGraph | None = None
    given = said = torch.empty(0)

    def answer(images: Tensor) -> Tensor:
        nonlocal graph, given, said
        with torch.no_grad():
            if not images.is_cuda or (graph is not None and images.shape != given.shape):
                return ask(images)
            if graph is None:
                given = images.clone()
                with _aside(images.device):
                    for _ in range(WARM_UP):
                        ask(given)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    said = ask(given)
            given.copy_(images)
            graph.replay()
            return said.clone()

    return answer
