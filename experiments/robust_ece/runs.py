"""The networks of the experiment with training losses: which there are, and their files.

Needs no torch: what was trained on one machine can be judged on another.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.robust_ece.data import PARTS
from raterwise.errors import InvalidInputError
from raterwise.io.files import write_bytes_atomically

__all__ = [
    "BETAS",
    "CROSSED",
    "DATA",
    "EPOCHS",
    "FEWER",
    "FEWER_SEEDS",
    "LOSS_NAMES",
    "MORE_DATA",
    "PEEKED",
    "WEIGHTED",
    "WIDTHS",
    "Run",
    "Settings",
    "load_runs",
    "pack",
    "runs_of",
]

DATA = ("breastmnist", "pneumoniamnist")
MORE_DATA = (
    *("busi", "pocus", "covid_ct", "retinamnist", "dermamnist"),
    *("cifar10-1000", "cifar10-1000-batch32", "cifar10-5000", "cifar10-5000-batch32"),
)
CROSSED = ("busi", "pocus", "covid_ct")
"""Cross-validated: a network per fold."""
LOSS_NAMES = (
    *("cross-entropy", "focal", "focal+mdca", "flsd"),
    *("dca", "focal+rcr", "focal+rcr-paper"),
)
WIDTHS = {"focal+rcr-0.05": 0.05, "focal+rcr-0.2": 0.2}
"""RCR with another σ, with the largest weight."""
WEIGHTED = ("focal+mdca", "dca", "focal+rcr")
"""Those trained with every weight β; the printed RCR has no gradient to weigh."""
FEWER = ("focal+rcr-paper", *WIDTHS)
FEWER_SEEDS = 4
"""So many training runs at the most have the printed RCR, which has no gradient, and other σ."""
PEEKED = ("cross-entropy", "focal", "focal+rcr")
"""Those, with the least weight, of which the epoch that is best on the test images is kept too."""
BETAS = (1.0, 5.0, 10.0)
"""Weights of the calibration terms that are tried; RECE states 1, for RCR."""


EPOCHS: dict[str, int] = {
    "breastmnist": 160, "pneumoniamnist": 40, "busi": 80, "pocus": 80, "covid_ct": 80,
    "retinamnist": 80, "dermamnist": 80, "cifar10-1000": 100, "cifar10-1000-batch32": 60,
    "cifar10-5000": 50, "cifar10-5000-batch32": 20,
}  # fmt: skip
"""RECE's number where images are few and the network is small; more images are seen less often."""


@dataclass(frozen=True)
class Settings:
    """What the networks depend on, besides the data."""

    seeds: int = 10
    epochs: dict[str, int] = field(default_factory=lambda: dict(EPOCHS))
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    width: int = 32
    """Of the small network; ResNet-18 has twice as many channels."""
    samples: int = 10
    """Of test-time augmentation."""
    betas: tuple[float, ...] = BETAS

    def batch_of(self, data: str) -> int:
        """Return how many images are in a batch."""
        return 32 if data.endswith("-batch32") else self.batch_size


@dataclass(frozen=True)
class Run:
    """One network: data set, loss, weight of its term, seed, fold."""

    data: str
    loss: str
    beta: float
    seed: int
    fold: int = 0

    @property
    def name(self) -> str:
        """What its file is called, without the ending."""
        weight = f"-{self.beta:g}" if self.loss in WEIGHTED else ""
        fold = f"-fold{self.fold}" if self.data in CROSSED else ""
        return f"{self.data}-{self.loss}{weight}-{self.seed}{fold}"


def runs_of(settings: Settings, data: Sequence[str] = DATA) -> list[Run]:
    """Return every network to train, seed by seed, so that what is done first is comparable.

    >>> len(runs_of(Settings(seeds=2, betas=(1.0, 5.0)), ["breastmnist"]))  # 2 (4 + 3 · 2)
    20
    """
    out = []
    for seed in range(settings.seeds):
        for name in data:
            kinds = [
                (loss, beta)
                for loss in LOSS_NAMES
                for beta in (settings.betas if loss in WEIGHTED else (1.0,))
            ]
            if name not in DATA:
                kinds += [(loss, settings.betas[-1]) for loss in WIDTHS]
            kinds = [kind for kind in kinds if kind[0] not in FEWER or seed < FEWER_SEEDS]
            folds = range(PARTS if name in CROSSED else 1)
            out += [Run(name, *kind, seed, fold) for kind in kinds for fold in folds]
    return out


def load_runs(folder: str | PathLike[str]) -> Iterator[tuple[Run, dict[str, NDArray[Any]]]]:
    """Yield the kept networks of a folder, with their arrays; those of all folds as one.

    A run is given where every fold of it is there.
    """
    folds: dict[Run, list[dict[str, NDArray[Any]]]] = {}
    for file in sorted(Path(folder).glob("*.npz")):
        for run, arrays in _in_file(file):
            folds.setdefault(replace(run, fold=0), []).append(arrays)
    for run, parts in folds.items():
        if len(parts) == (PARTS if run.data in CROSSED else 1):
            yield run, _together(parts)


def _in_file(file: Path) -> Iterator[tuple[Run, dict[str, NDArray[Any]]]]:
    """Yield the networks of a file: one as it was trained, or several that were packed."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        packed: dict[str, dict[str, NDArray[Any]]] = {}
        for key, array in arrays.items():
            name, _, field_name = key.rpartition("/")
            packed.setdefault(name, {})[field_name] = array
        for own in packed.values():
            made_of = json.loads(str(own.pop("made_of")))
            yield Run(*(made_of[key] for key in ("data", "loss", "beta", "seed", "fold"))), own
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInputError(
            f"{file.name}: must be a network that `experiments robust_ece` wrote, "
            f"as every NPZ file of its folder; {type(error).__name__} while reading it"
        ) from error


def pack(folder: str | PathLike[str], target: str | PathLike[str], data: str) -> Path:
    """Write the networks of one data set into one file, logits in half precision."""
    arrays: dict[str, Any] = {}
    for file in sorted(Path(folder).glob(f"{data}-*.npz")):
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            if json.loads(str(stored["made_of"]))["data"] == data:
                arrays |= {f"{file.stem}/{key}": _halved(stored[key]) for key in stored.files}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    path = Path(target) / f"{data}.npz"
    write_bytes_atomically(path, buffer.getvalue())
    return path


def _halved(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float16) if array.dtype == np.float32 else array


def _together(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all folds, one after the other; `…_fold` says which each case is of."""
    out = {}
    for key, first in parts[0].items():
        axis = 1 if key == "test_view_logits" else 0
        own = [part[key] for part in parts]
        out[key] = np.concatenate(own, axis=axis) if first.ndim else np.mean(own)
    for key in ("test", "validation"):
        sizes = [len(part[f"{key}_labels"]) for part in parts]
        out[f"{key}_fold"] = np.repeat(np.arange(len(parts)), sizes)
    out["seconds"] = np.sum([part["seconds"] for part in parts])
    return out
