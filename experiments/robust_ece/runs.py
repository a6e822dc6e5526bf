"""The networks of the experiment with training losses: which there are, and their files.

Needs no torch: what was trained on one machine can be judged on another.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

__all__ = ["BETAS", "DATA", "LOSS_NAMES", "WEIGHTED", "Run", "Settings", "load_runs", "runs_of"]

DATA = ("breastmnist", "pneumoniamnist")
LOSS_NAMES = (
    *("cross-entropy", "focal", "focal+mdca", "flsd"),
    *("dca", "focal+rcr", "focal+rcr-paper"),
)
WEIGHTED = ("focal+mdca", "dca", "focal+rcr")
"""Those trained with every weight β; the printed RCR has no gradient to weigh."""
BETAS = (1.0, 5.0, 10.0)
"""Weights of the calibration terms that are tried; RECE states 1, for RCR."""


@dataclass(frozen=True)
class Settings:
    """What the networks depend on, besides the data."""

    seeds: int = 10
    epochs: dict[str, int] = field(
        default_factory=lambda: {"breastmnist": 160, "pneumoniamnist": 40}
    )
    """RECE's number where images are few; nine times as many images are seen less often."""
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    width: int = 32
    samples: int = 10
    """Of test-time augmentation."""
    betas: tuple[float, ...] = BETAS


@dataclass(frozen=True)
class Run:
    """One network: data set, loss, weight of its term, seed."""

    data: str
    loss: str
    beta: float
    seed: int

    @property
    def name(self) -> str:
        """What its file is called, without the ending."""
        weight = f"-{self.beta:g}" if self.loss in WEIGHTED else ""
        return f"{self.data}-{self.loss}{weight}-{self.seed}"


def runs_of(settings: Settings, data: Sequence[str] = DATA) -> list[Run]:
    """Return every network to train, seed by seed, so that what is done first is comparable.

    >>> len(runs_of(Settings(seeds=2, betas=(1.0, 5.0)), ["breastmnist"]))  # 2 (4 + 3 · 2)
    20
    """
    return [
        Run(name, loss, beta, seed)
        for seed in range(settings.seeds)
        for name in data
        for loss in LOSS_NAMES
        for beta in (settings.betas if loss in WEIGHTED else (1.0,))
    ]


def load_runs(folder: str | PathLike[str]) -> Iterator[tuple[Run, dict[str, NDArray[Any]]]]:
    """Yield the kept networks of a folder, with their arrays."""
    for file in sorted(Path(folder).glob("*.npz")):
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
            made_of = json.loads(str(arrays.pop("made_of")))
            run = Run(*(made_of[key] for key in ("data", "loss", "beta", "seed")))
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise InvalidInputError(
                f"{file.name}: must be a network that `experiments robust_ece` wrote, "
                f"as every NPZ file of its folder; {type(error).__name__} while reading it"
            ) from error
        yield run, arrays
