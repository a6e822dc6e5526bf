"""What a network of Mix-MNIST or Mix-CIFAR-10 says, kept small: its last layers can be remade.

Kept are the inputs of the head (the pooled channels), rounded to 64 levels, and the weights of
the head. All that is judged follows from them: logits, features, and every draw of Monte-Carlo
dropout. So the network that is judged is the one whose pooled channels are rounded.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import fingerprint
from raterwise.errors import InvalidInputError

__all__ = ["LEVELS", "Outputs", "load_outputs", "output_file", "restored", "rounded"]

FloatArray = NDArray[np.float32]

LEVELS = 63
"""The largest code; small values, which are most, are told apart more finely."""
PARTS = ("valid", "test", "same")
DROPOUT = 0.5
NARROW = 64
"""Of networks with so many channels or fewer the validation outputs are small enough to keep."""
HEAD = ("hidden_weight", "hidden_bias", "last_weight", "last_bias")


def rounded(values: FloatArray, name: str) -> dict[str, NDArray[Any]]:
    """Return codes 0 … 63 of values (…, D) that are not negative, and the largest of each column.

    The codes are even in the root of the values.

    >>> rounded(np.array([[0.0], [1.0], [4.0]], np.float32), "x")["x"].ravel()
    array([ 0, 32, 63], dtype=uint8)
    """
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InvalidInputError(f"{name}: must be finite and not negative; got {values.min()}")
    top = values.reshape(-1, values.shape[-1]).max(axis=0)
    share = values / np.where(top > 0, top, 1)
    return {name: np.rint(LEVELS * np.sqrt(share)).astype(np.uint8), f"{name}_top": top}


def restored(codes: NDArray[np.uint8], top: FloatArray) -> FloatArray:
    """Return the values of codes: top (code / 63)²."""
    return np.asarray((codes.astype(np.float32) / LEVELS) ** 2 * top, np.float32)


@dataclass(frozen=True, eq=False)
class Outputs:
    """The kept outputs of one network."""

    made_of: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def data(self) -> str:
        """Which data set."""
        return str(self.made_of["data"])

    @property
    def seed(self) -> int:
        """Of the network."""
        return int(self.made_of["seed"])

    def digest(self, part: str) -> str:
        """Return what tells a part, with the head, from others."""
        return fingerprint(*(self.arrays[name] for name in (part, f"{part}_top", *HEAD)))

    def has(self, part: str) -> bool:
        """Tell whether a part is kept: pooled_valid, pooled_test, hidden_tta."""
        return part in self.arrays

    def plain(self, part: str) -> tuple[FloatArray, FloatArray]:
        """Return logits and features of a part such as "valid" or "test", without dropout."""
        return self._head(self._part(f"pooled_{part}"), None)

    def dropout(self, part: str, samples: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return logits (S, N, K) and features (S, N, D) of a part with dropout."""
        pooled, which = self._part(f"pooled_{part}"), PARTS.index(part)
        draws = [
            self._head(pooled, np.random.default_rng([seed, which, s])) for s in range(samples)
        ]
        return np.stack([d[0] for d in draws]), np.stack([d[1] for d in draws])

    def augmentation(self) -> tuple[FloatArray, FloatArray]:
        """Return logits (S, N, K) and features (S, N, D) of augmented test images."""
        return self._last(self._part("hidden_tta"))

    def slim(self) -> dict[str, NDArray[Any]]:
        """Return the arrays without the draws, and without channels that are too many to keep.

        Without any channels the head is left out, too: nothing follows from it alone.
        """
        dropped = {"hidden_tta", "pooled_valid", "pooled_test", *HEAD}
        if self.data == "mixed_mnist":
            narrow = self.arrays["pooled_test"].shape[1] <= NARROW
            dropped -= {"pooled_test", *HEAD} | ({"pooled_valid"} if narrow else set())
        tops = {f"{name}_top" for name in dropped}
        return {key: value for key, value in self.arrays.items() if key not in dropped | tops}

    def _part(self, name: str) -> FloatArray:
        return restored(self.arrays[name], self.arrays[f"{name}_top"])

    def _head(
        self, pooled: FloatArray, random: np.random.Generator | None
    ) -> tuple[FloatArray, FloatArray]:
        weight, bias = (self.arrays[name].astype(np.float32) for name in HEAD[:2])
        hidden = np.maximum(_dropped(pooled, random) @ weight.T + bias, 0)
        return self._last(_dropped(hidden, random))

    def _last(self, hidden: FloatArray) -> tuple[FloatArray, FloatArray]:
        weight, bias = (self.arrays[name].astype(np.float32) for name in HEAD[2:])
        return np.asarray(hidden @ weight.T + bias), hidden


def _dropped(values: FloatArray, random: np.random.Generator | None) -> FloatArray:
    """Return values of which half are 0 and the others twice as large, where `random` draws."""
    if random is None:
        return values
    left = random.random(values.shape, np.float32) >= DROPOUT
    return np.asarray(values * left / np.float32(1 - DROPOUT), np.float32)


def output_file(folder: Path, data: str, seed: int) -> Path:
    """Return where the outputs of a network are kept."""
    return folder / f"{data}-{seed}.npz"


def load_outputs(folder: Path, data: str) -> list[Outputs]:
    """Return the kept networks of a data set, in the order of their seeds."""
    found: list[tuple[int, Outputs]] = []
    for file in folder.glob(f"{data}-*.npz"):
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
            made_of = json.loads(str(arrays.pop("made_of")))
            outputs = Outputs(made_of, arrays)
            found.append((outputs.seed, outputs))
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise InvalidInputError(
                f"{file.name}: must be a network that `python -m experiments` wrote; "
                f"{type(error).__name__} while reading it"
            ) from error
    return [outputs for _, outputs in sorted(found, key=lambda pair: pair[0])]
