"""What is kept of every draw of a network: probabilities, logits, the features of a layer."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from raterwise.beliefs import EnsembleBelief
from raterwise.errors import InvalidInputError, InvalidTypeError, RaterwiseWarning
from raterwise.torch._inference import as_probabilities, class_rows

OutputName = Literal["probs", "logits", "features"]
Outputs = OutputName | Sequence[OutputName]
Layer = str | nn.Module | None
NAMES: tuple[OutputName, ...] = ("probs", "logits", "features")
MOST_LAYERS = 12


class DrawnOutputs(tuple[Any, ...]):
    """What was asked of every draw, in the order asked; also by name, as `drawn.logits`.

    >>> drawn = DrawnOutputs.of(("logits", "features"), (np.zeros((2, 5, 3)), np.ones((2, 5, 4))))
    >>> logits, features = drawn
    >>> drawn.features.shape, drawn["logits"].shape
    ((2, 5, 4), (2, 5, 3))
    """

    names: tuple[str, ...]

    @staticmethod
    def of(names: Sequence[str], values: Sequence[Any]) -> DrawnOutputs:
        """Return the values under their names."""
        found = DrawnOutputs(values)
        found.names = tuple(names)
        return found

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._place(key) if isinstance(key, str) else key)

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(f"{name!r} was not asked for; outputs= had {', '.join(self.names)}")
        return self.names.index(name)

    @property
    def probs(self) -> EnsembleBelief:
        """The belief of samples (S, N, K)."""
        belief: EnsembleBelief = self["probs"]
        return belief

    @property
    def logits(self) -> NDArray[np.float32]:
        """(S, N, K)."""
        return np.asarray(self["logits"])

    @property
    def features(self) -> NDArray[np.float32]:
        """(S, N, D)."""
        return np.asarray(self["features"])


class Kept:
    """Which outputs are kept, and how they are read from a network."""

    def __init__(self, outputs: Outputs, layer: Layer, output: str) -> None:
        self.alone = isinstance(outputs, str)
        several = isinstance(outputs, Iterable) and not self.alone
        self.names: tuple[Any, ...] = tuple(outputs) if several else (outputs,)
        unknown = [name for name in self.names if name not in NAMES]
        if unknown or not self.names or len(set(self.names)) < len(self.names):
            raise InvalidInputError(
                f'outputs: must be "probs", "logits" or "features", or several of them once each; '
                f"got {outputs!r}"
            )
        self.probabilities = as_probabilities(output)
        if "logits" in self.names and output != "logits":
            raise InvalidInputError(
                'outputs: "logits" are for a model that gives them; output is "probabilities"'
            )
        if (layer is None) == ("features" in self.names):
            raise InvalidInputError(
                'layer: goes with outputs "features", and says which layer\'s output they are; got '
                f"{layer!r} with {', '.join(self.names)}"
            )
        self.layer = layer
        self._logits = output == "logits"

    @contextlib.contextmanager
    def watching(self, model: nn.Module) -> Iterator[list[Tensor]]:
        """Give a list that holds the output of the layer after each call of the model."""
        seen: list[Tensor] = []
        if self.layer is None:
            yield seen
            return

        def keep(module: nn.Module, given: Any, found: Any) -> None:
            if not isinstance(found, Tensor):
                raise InvalidTypeError(f"layer: must give a tensor; got {type(found).__name__}")
            seen.append(found)

        handle = _module_of(model, self.layer).register_forward_hook(keep)
        try:
            yield seen
        finally:
            handle.remove()

    def rows(self, values: Tensor, seen: list[Tensor]) -> tuple[Tensor, ...]:
        """Return what is kept of one call, a row per case, on the CPU."""
        found = {"probs": class_rows(self.probabilities(values))}
        if self._logits:
            _warn_of_probabilities(class_rows(values.float()))
            self._logits = False  # the first call tells what the model gives
        if "logits" in self.names:
            found["logits"] = class_rows(values.float())
        if self.layer is not None:
            if len(seen) != 1:
                raise InvalidInputError(
                    f"layer: must run once whenever the model does; it ran {len(seen)} times"
                )
            found["features"] = _feature_rows(seen.pop(), values)
        return tuple(found[name] for name in self.names)


def drawn(rows: Sequence[Sequence[Tensor]], kept: Kept) -> Any:
    """Return the outputs of S draws, each a tuple of (N, …): a belief, an array, or several."""
    values = []
    for i, name in enumerate(kept.names):
        each = [draw[i] for draw in rows]
        sizes = {tuple(member.shape) for member in each}
        if len(sizes) > 1:
            same = "layer: must have as many features in every member" if name == "features" else (
                "members: must predict the same cases and classes"
            )  # fmt: skip
            raise InvalidInputError(f"{same}; got shapes {sorted(sizes)}")
        stacked = torch.stack(each).numpy()
        values.append(EnsembleBelief(stacked) if name == "probs" else stacked)
    return values[0] if kept.alone else DrawnOutputs.of(kept.names, values)


def _warn_of_probabilities(rows: Tensor) -> None:
    """Warn of what a model with a softmax of its own gives: a second one flattens it."""
    sums, inside = rows.sum(dim=1, dtype=torch.float64), (rows >= 0) & (rows <= 1)
    whole = bool((rows == rows.round()).all())  # logits made by hand, no softmax
    if len(rows) and not whole and inside.all() and (sums - 1).abs().max() <= 1e-4:
        warnings.warn(
            "output: these logits look like probabilities, as every row lies in [0, 1] and adds "
            'to 1, and a softmax flattens them; output="probabilities" takes them as they are',
            RaterwiseWarning,
            stacklevel=5,
        )


def _module_of(model: nn.Module, layer: str | nn.Module) -> nn.Module:
    known: dict[str, nn.Module] = dict(model.named_modules())
    if isinstance(layer, nn.Module):
        if not any(module is layer for module in known.values()):
            raise InvalidInputError(
                f"layer: must be a module of the model; this {type(layer).__name__} is not (of "
                "several networks, give its name)"
            )
        return layer
    if not isinstance(layer, str):
        raise InvalidTypeError(
            f"layer: must be a module or the name of one; got {type(layer).__name__}"
        )
    if layer not in known or not layer:
        names = [name for name in known if name]
        more = f" … ({len(names)} in all)" if len(names) > MOST_LAYERS else ""
        raise InvalidInputError(
            f"layer: must be one of {', '.join(names[:MOST_LAYERS])}{more}; got {layer!r}"
        )
    return known[layer]


def _feature_rows(features: Tensor, values: Tensor) -> Tensor:
    """Return (M, D): all numbers of the layer for an image, or those of each pixel."""
    if features.ndim < 2 or len(features) != len(values):
        raise InvalidInputError(
            f"layer: must give (N, …) for {len(values)} inputs; got {tuple(features.shape)}"
        )
    if values.ndim == 2:
        return features.float().flatten(1).cpu()
    if features.shape[2:] != values.shape[2:]:
        raise InvalidInputError(
            "layer: must give features for every pixel of the output, "
            f"{tuple(values.shape[2:])}; got {tuple(features.shape)}"
        )
    return class_rows(features.float())
