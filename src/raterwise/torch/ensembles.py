"""Ensembles of predictions: dropout at test time, augmentation, several networks.

Each function runs a model over `inputs`, a tensor (N, …) or a DataLoader, keeps only the
probabilities (S, N, K), and returns an `EnsembleBelief`: its mean is the prediction, its spread
says how often raters will disagree (LH eqs 72, 80). Every pixel of a dense output is a case.
With `outputs=("probs", "logits", "features")` it also keeps what calibrators and `AlphaCalibration`
take of every draw (LH appendix E.4).
"""

# ruff: noqa: PT028 - test_time_augmentation is no test

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.inference.settings import Progress, within
from raterwise.progress_bar import reporting
from raterwise.rules import positive_integer
from raterwise.torch._checkpoints import load_file
from raterwise.torch._inference import (
    Inputs,
    batches,
    check_members,
    check_order,
    device_of,
    evaluating,
    reported_batches,
    seeded,
    total_cases,
)
from raterwise.torch._outputs import Kept, Layer, Outputs, drawn

__all__ = ["deep_ensemble", "mc_dropout", "test_time_augmentation"]

Transform = Callable[..., Tensor]
Output = Literal["logits", "probabilities"]


def mc_dropout(
    model: nn.Module,
    inputs: Inputs,
    samples: int = 20,
    seed: int = 0,
    *,
    output: Output = "logits",
    outputs: Outputs = "probs",
    layer: Layer = None,
    dropout_types: tuple[type[nn.Module], ...] = (),
    batch_size: int = 256,
    progress: bool | Progress = True,
) -> Any:
    """Return Monte-Carlo dropout: `samples` passes with dropout on (Gal & Ghahramani 2016).

    Only dropout layers are switched on, including those inside attention and recurrent layers.
    Batch normalisation and other layers stay in eval mode, and every mode is restored afterwards,
    even after an error. The draws of a case depend on `seed` and on its batch.

    Parameters
    ----------
    model : Module
        A network with dropout layers.
    inputs : Tensor or DataLoader
        (N, …), or batches of it; a loader must not shuffle.
    samples : int, default 20
        S, the number of passes.
    seed : int, default 0
        Seed of the draws.
    output : {"logits", "probabilities"}, default "logits"
        What the model returns along axis 1.
    outputs : {"probs", "logits", "features"} or tuple of them, default "probs"
        What to keep of every draw.
    layer : str or Module, optional
        The layer whose output gives the features: its name in `model.named_modules()`, or the
        module itself.
    dropout_types : tuple of types, default ()
        Further layers that are random in training, such as stochastic depth.
    batch_size : int, default 256
        Batch size for a tensor; a DataLoader has its own.
    progress : bool or function, default True
        Show a progress bar after two seconds; False for none, or a function of (description,
        fraction).

    Returns
    -------
    EnsembleBelief, array, or DrawnOutputs
        Of "probs" the belief of samples (S, N, K), of "logits" (S, N, K), of "features" (S, N, D),
        on the host; of several a tuple in the order asked, which also has them by name.

    Raises
    ------
    InvalidInputError
        If the model has no dropout layer.

    See Also
    --------
    torch.ensembles.deep_ensemble : several models.
    EnsembleBelief : takes the samples.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    >>> mc_dropout(model, torch.zeros(5, 4), samples=10).samples.shape
    (10, 5, 3)
    """
    number, seed = positive_integer("samples", samples), positive_integer("seed", seed, least=0)
    device = device_of(model)
    active = [m for m in model.modules() if _drops_out(m) or isinstance(m, dropout_types)]
    if not active:
        raise InvalidInputError(
            "model: must have a dropout layer (nn.Dropout and its kin, or one of dropout_types); "
            f"{type(model).__name__} has none"
        )
    check_order(inputs)
    kept = Kept(outputs, layer, output)

    def draw(batch: Tensor, position: int, s: int) -> Tensor:
        with seeded(seed, s, position, device=device):
            values: Tensor = model(batch.to(device))
            return values

    with evaluating(model, active), _without_fast_path():
        return _collect(model, inputs, number, draw, kept, batch_size, "MC dropout", progress)


def _drops_out(module: nn.Module) -> bool:
    """Say whether a module has dropout that its training mode, and nothing else of it, decides."""
    if isinstance(module, nn.MultiheadAttention | nn.RNNBase):
        return module.dropout > 0
    return isinstance(module, _DropoutNd)


@contextlib.contextmanager
def _without_fast_path() -> Iterator[None]:
    """Let transformers call their layers: in eval mode they take a way on which no dropout is."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def test_time_augmentation(
    model: nn.Module,
    inputs: Inputs,
    transforms: Transform | Sequence[Transform],
    samples: int = 10,
    seed: int = 0,
    *,
    output: Output = "logits",
    outputs: Outputs = "probs",
    layer: Layer = None,
    batch_size: int = 256,
    progress: bool | Progress = True,
) -> Any:
    """Return test-time augmentation: predictions of randomly transformed images.

    Transforms that take a second argument are given a `torch.Generator`; those with
    `set_random_state`, as MONAI's have, are seeded by it; all others draw from the global
    generators of PyTorch, NumPy and Python, which are seeded for each image and each draw and
    restored afterwards. So the draws of an image depend on `seed` and its position alone, and not
    on the batches.

    Parameters
    ----------
    model : Module
        A network that gives one prediction per image.
    inputs : Tensor or DataLoader
        (N, …), or batches of it; a loader must not shuffle.
    transforms : function or sequence of functions
        Transforms of an image (C, H, W); several are applied in turn.
    samples : int, default 10
        S, the number of draws of each image.
    seed : int, default 0
        Seed of the draws.
    output : {"logits", "probabilities"}, default "logits"
        What the model returns along axis 1.
    outputs : {"probs", "logits", "features"} or tuple of them, default "probs"
        What to keep of every draw.
    layer : str or Module, optional
        The layer whose output gives the features: its name in `model.named_modules()`, or the
        module itself.
    batch_size : int, default 256
        Batch size for a tensor; a DataLoader has its own.
    progress : bool or function, default True
        Show a progress bar after two seconds; False for none, or a function of (description,
        fraction).

    Returns
    -------
    EnsembleBelief, array, or DrawnOutputs
        Of "probs" the belief of samples (S, N, K), of "logits" (S, N, K), of "features" (S, N, D),
        on the host; of several a tuple in the order asked, which also has them by name.

    See Also
    --------
    torch.ensembles.mc_dropout : samples by dropout.
    EnsembleBelief : takes the samples.

    Examples
    --------
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    >>> flip = lambda image: image.flip(-1) if torch.rand(()) < 0.5 else image
    >>> test_time_augmentation(model, torch.zeros(5, 1, 2, 2), flip, samples=4).samples.shape
    (4, 5, 3)
    """
    number, seed = positive_integer("samples", samples), positive_integer("seed", seed, least=0)
    check_order(inputs)
    listed = isinstance(transforms, Iterable)
    chain = [transforms] if callable(transforms) else list(transforms) if listed else []
    if not chain or not all(callable(t) for t in chain):
        raise InvalidTypeError(f"transforms: must be functions of an image; got {transforms!r}")
    kept, device = Kept(outputs, layer, output), device_of(model)

    def draw(batch: Tensor, position: int, s: int) -> Tensor:
        images = [
            _augmented(image, chain, (seed, position + i, s)) for i, image in enumerate(batch)
        ]
        values: Tensor = model(torch.stack(images).to(device))
        if values.ndim > 2:
            raise InvalidInputError(
                "model: must give one prediction per image, (N, K), since a transform moves "
                f"pixels; got {tuple(values.shape)}"
            )
        return values

    label = "Test-time augmentation"
    with evaluating(model):
        return _collect(model, inputs, number, draw, kept, batch_size, label, progress)


# Nor does pytest take it for one where somebody imports it by name.
test_time_augmentation.__test__ = False  # type: ignore[attr-defined]


def _augmented(image: Tensor, chain: Sequence[Transform], key: tuple[int, int, int]) -> Tensor:
    with seeded(*key, device=image.device):
        for transform in chain:
            if hasattr(transform, "set_random_state"):
                transform.set_random_state(seed=int(torch.randint(2**31, ())))
            if _takes_generator(transform):
                generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
                image = transform(image, generator)
            else:
                image = transform(image)
    return torch.as_tensor(image)


def _takes_generator(transform: Transform) -> bool:
    try:
        parameters = inspect.signature(transform).parameters.values()
    except (TypeError, ValueError):  # a function written in C has no signature
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY,
              p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    return len(needed) == 2


def deep_ensemble(
    members: Sequence[nn.Module | str | PathLike[str]],
    inputs: Inputs,
    factory: Callable[[], nn.Module] | None = None,
    *,
    output: Output = "logits",
    outputs: Outputs = "probs",
    layer: Layer = None,
    state_key: str | None = None,
    device: torch.device | str | None = None,
    batch_size: int = 256,
    progress: bool | Progress = True,
) -> Any:
    """Predict with several networks (Lakshminarayanan et al. 2017).

    Parameters
    ----------
    members : sequence of Module or path
        Models, or files with their weights, which are loaded with `weights_only=True` into a model
        that `factory` makes; one at a time, so that one is in memory.
    inputs : Tensor or DataLoader
        (N, …), or batches of it; a loader is read once per member.
    factory : function, optional
        Makes the model whose weights are in a file.
    output : {"logits", "probabilities"}, default "logits"
        What the model returns along axis 1.
    outputs : {"probs", "logits", "features"} or tuple of them, default "probs"
        What to keep of every draw.
    layer : str or Module, optional
        The layer whose output gives the features: its name in `model.named_modules()`, or the
        module itself.
    state_key : str, optional
        The entry of the file with the weights, such as "state_dict"; by default the whole file.
    device : torch.device or str, optional
        The device for models from files; other models stay on their own device.
    batch_size : int, default 256
        Batch size for a tensor; a DataLoader has its own.
    progress : bool or function, default True
        Show a progress bar after two seconds; False for none, or a function of (description,
        fraction).

    Returns
    -------
    EnsembleBelief, array, or DrawnOutputs
        Of "probs" the belief of samples (S, N, K), of "logits" (S, N, K), of "features" (S, N, D),
        on the host; of several a tuple in the order asked, which also has them by name.

    See Also
    --------
    torch.ensembles.mc_dropout, torch.ensembles.test_time_augmentation : samples of one model.
    EnsembleBelief : takes the samples.

    Examples
    --------
    >>> models = [nn.Linear(4, 3) for _ in range(2)]
    >>> deep_ensemble(models, torch.zeros(5, 4)).samples.shape
    (2, 5, 3)
    """
    check_members(members, (nn.Module, str, PathLike))
    if not isinstance(inputs, Tensor) and iter(inputs) is inputs and len(members) > 1:
        raise InvalidTypeError("inputs: must be read once per member; got an iterator")
    check_order(inputs)
    kept = Kept(outputs, layer, output)
    rows = []
    with reporting(progress) as report:
        for number, model in enumerate(_models(members, factory, state_key, device)):
            label = f"Network {number + 1} of {len(members)}"
            part = within(report, number / len(members), (number + 1) / len(members))
            with evaluating(model), torch.inference_mode(), kept.watching(model) as watched:
                found = [
                    kept.rows(model(batch.to(device_of(model))), watched)
                    for batch in reported_batches(inputs, batch_size, part, label)
                ]
            rows.append([torch.cat(each) for each in zip(*found, strict=True)])
    return drawn(rows, kept)


def _models(
    members: Sequence[nn.Module | str | PathLike[str]],
    factory: Callable[[], nn.Module] | None,
    state_key: str | None,
    device: torch.device | str | None,
) -> Iterator[nn.Module]:
    for member in members:
        if isinstance(member, nn.Module):
            yield member
            continue
        if factory is None:
            raise InvalidTypeError(
                f"factory: must make the model whose weights are in {Path(member).name}; got None"
            )
        with seeded(0):  # its first weights are written over: they are to draw nothing
            model = factory()
        _load_weights(model, member, state_key)
        yield model if device is None else model.to(device)


def _load_weights(model: nn.Module, path: str | PathLike[str], state_key: str | None) -> None:
    """Load weights, and nothing that could run, into a model; an error names the file."""
    name = Path(path).name
    state = load_file(path, "members")
    if state_key is not None:
        if state_key not in state:
            known = ", ".join(map(repr, state))
            raise InvalidInputError(
                f"state_key: must be an entry of {name}, which has {known}; got {state_key!r}"
            )
        state = state[state_key]
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError) as error:
        raise InvalidInputError(
            f"members: {name} does not hold the weights of {type(model).__name__}: {error}"
        ) from error


def _collect(
    model: nn.Module,
    inputs: Inputs,
    samples: int,
    draw: Callable[[Tensor, int, int], Tensor],
    kept: Kept,
    batch_size: int,
    label: str,
    progress: bool | Progress,
) -> Any:
    """Draw every member of a batch before the next batch is read: inputs are read once."""
    rows: list[list[tuple[Tensor, ...]]] = [[] for _ in range(samples)]
    total, position = total_cases(inputs), 0
    with reporting(progress) as report, torch.inference_mode(), kept.watching(model) as watched:
        for batch in batches(inputs, batch_size):
            for s in range(samples):
                rows[s].append(kept.rows(draw(batch, position, s), watched))
                done = position + len(batch) * (s + 1) / samples
                report(label, min(done / total, 1.0) if total else 0.0)
            position += len(batch)
    if position == 0:
        raise InvalidInputError("inputs: must hold at least one case; got none")
    return drawn([[torch.cat(each) for each in zip(*one, strict=True)] for one in rows], kept)
