"""Networks that rate lung nodules, for the LIDC columns of MR Table 1.

A ResNet-18 sees the middle of the slice of a nodule and the rating that one radiologist, drawn at
random, gave it: malignancy or texture, 1 … 5. Patients are dealt into five folds, so that every
nodule is judged once, by a network that has not seen its patient. As in MR section 3.1, the
optimiser is NAdam with a cosine and the epoch is that with the lowest validation loss; the batches
and the learning rate are four times the paper's.

This module needs PyTorch and NumPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.kept import fingerprint, kept_arrays
from experiments.multi_rater.data import Arrays
from experiments.networks import ResNet18
from experiments.nodules import FOLDS, GRADES, TASKS, Nodules, folds_of, one_rating, read_nodules
from experiments.training import Recipe, predict, share, train

__all__ = ["Settings", "train_ratings"]

VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What the networks depend on, besides the data."""

    seed: int = 0
    """Of the folds and of the radiologist of each nodule; networks differ by their weights."""
    networks: int = 3
    width: int = 64
    side: int = 64
    """Pixels of the middle that are shown."""
    epochs: int = 30
    batch_size: int = 32
    learning_rate: float = 4e-4


def train_ratings(
    file: str | PathLike[str],
    out: str | PathLike[str],
    settings: Settings | None = None,
    tasks: Sequence[str] = TASKS,
    *,
    device: str | torch.device = "cpu",
    shard: tuple[int, int] = (0, 1),
) -> list[Path]:
    """Train the networks that `out` has no logits of; return the files of this shard.

    A file has `logits` (n, 5) of the nodules `rows` of its fold.
    """
    settings = settings or Settings()
    Path(out).mkdir(parents=True, exist_ok=True)
    work = [(t, f, n) for n in range(settings.networks) for t in tasks for f in range(FOLDS)]
    files = []
    for task, fold, number in share(work, shard):
        nodules = read_nodules(file, task)
        made_of = {
            "version": VERSION, "task": task, "fold": fold, "network": number,
            "data": fingerprint(nodules.images, nodules.ratings, nodules.patients),
            **asdict(settings),
        }  # fmt: skip
        files.append(Path(out) / f"{task}-fold{fold}-network{number}.npz")
        make = partial(_logits, nodules, fold, number, settings, device)
        kept_arrays(files[-1], made_of, make)
    return files


def _logits(
    nodules: Nodules, fold: int, number: int, settings: Settings, device: str | torch.device
) -> Arrays:
    """Return what a network of one fold says of the nodules of that fold."""
    folds = folds_of(nodules.patients, settings.seed)
    wanted = torch.from_numpy(one_rating(nodules.ratings, settings.seed))
    shown = _middle(nodules.images, settings.side)
    chosen = [folds == fold, folds == (fold + 1) % FOLDS]
    test, held_out = (torch.from_numpy(np.flatnonzero(part)) for part in chosen)
    learnt = torch.from_numpy(np.flatnonzero(~chosen[0] & ~chosen[1]))
    network = train(
        lambda: ResNet18(1, GRADES, settings.width, large=True),
        nn.CrossEntropyLoss(),
        (shown[learnt], wanted[learnt]),
        Recipe(
            settings.epochs,
            settings.batch_size,
            settings.learning_rate,
            seed=int(np.random.SeedSequence((settings.seed, fold, number)).generate_state(1)[0]),
            optimizer="nadam",
            schedule="cosine",
        ),
        validation=(shown[held_out], wanted[held_out]),
        augment=_turned,
        device=device,
    )
    return {"logits": predict(network, shown[test]), "rows": test.numpy()}


def _turned(images: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Mirror and transpose each image at random."""
    for axes in ((-1,), (-2,), None):
        here = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
        other = images.transpose(-1, -2) if axes is None else images.flip(axes)
        images = torch.where(here, other, images)
    return images, wanted


def _middle(images: NDArray[np.uint8], side: int) -> Tensor:
    """Return the middle of each image as (N, 1, side, side), 0 … 1."""
    first = (images.shape[1] - side) // 2
    cut = images[:, first : first + side, first : first + side]
    return torch.from_numpy(np.ascontiguousarray(cut)).float()[:, None] / 255
