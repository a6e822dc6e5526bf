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
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.kept import fingerprint, kept_arrays
from experiments.multi_rater.data import Arrays
from experiments.networks import ResNet18
from experiments.training import Recipe, predict, share, train
from raterwise.errors import InvalidInputError

__all__ = ["FOLDS", "TASKS", "Nodules", "Settings", "folds_of", "read_nodules", "train_ratings"]

TASKS = ("malignancy", "texture")
FOLDS = 5
GRADES = 5
VERSION = 1
FOLD, RATER = 11, 12
"""What a seed is for; each draws numbers of its own."""


class Nodules(NamedTuple):
    """Slices of nodules, and what the radiologists say of them."""

    images: NDArray[np.uint8]
    ratings: NDArray[np.int64]
    """(N, R) grades 0 … 4, -1 where a radiologist did not mark the nodule."""
    patients: NDArray[np.str_]


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


def read_nodules(file: str | PathLike[str], task: str) -> Nodules:
    """Return the nodules of lidc_nodules.npz with the ratings of one kind."""
    if task not in TASKS:
        raise InvalidInputError(f"task: must be of {', '.join(TASKS)}; got {task!r}")
    with np.load(file, allow_pickle=False) as stored:
        column = stored["rating_names"].tolist().index(task)
        ratings = stored["ratings"][:, :, column].astype(np.int64) - 1
        return Nodules(stored["images"], ratings, stored["patient"].astype(np.str_))


def folds_of(patients: NDArray[np.str_], seed: int = 0) -> NDArray[np.int64]:
    """Return the fold 0 … 4 of each nodule; those of one patient have the same."""
    names, patient = np.unique(patients, return_inverse=True)
    order = np.random.default_rng([seed, FOLD]).permutation(len(names))
    fold = np.empty(len(names), np.int64)
    fold[order] = np.arange(len(names)) % FOLDS
    return np.asarray(fold[patient])


def one_rating(ratings: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """Return one radiologist's grade of each nodule, drawn at random among those there are."""
    chance = np.random.default_rng([seed, RATER]).random(ratings.shape)
    return np.asarray(
        np.take_along_axis(
            ratings, np.where(ratings >= 0, chance, -1).argmax(axis=1)[:, None], axis=1
        )[:, 0]
    )


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
