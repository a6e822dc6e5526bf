"""Do calibration losses calibrate? The networks of RECE Table 2 on BreastMNIST and PneumoniaMNIST.

A small residual network is trained with each loss from several seeds, and what it says of the test
images is kept in one file per network; `judging` judges them. A seed decides the
first weights, the order of the images and their flips, so networks of one seed begin alike and are
shown the same. A run that finds a file made of the same data and settings goes on to the next, and
several processes may share the work (`shard`).

This module needs torch, NumPy and SciPy, and nothing else of what raterwise needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.kept import fingerprint, kept_arrays
from experiments.networks import ResNet8
from experiments.robust_ece.runs import DATA, Run, Settings, runs_of
from experiments.training import Recipe, predict, share, train
from raterwise.arrays import positive_integer
from raterwise.datasets.medmnist import MedMnist, MedMnistPart, read_medmnist
from raterwise.errors import InvalidInputError
from raterwise.torch import losses

__all__ = [
    "LOSSES",
    "Settings",
    "augmented_views",
    "loss_of",
    "train_all",
]

VERSION = 1
GAMMA, SIGMA = 1.0, 0.1
FLIP, DEGREES = 0.25, 10.0
"""Test-time augmentation as the paper's released code has it for breast ultrasound."""

LOSSES: dict[str, Callable[[float], nn.Module]] = {
    "cross-entropy": lambda _: nn.CrossEntropyLoss(),
    "focal": lambda _: losses.FocalLoss(GAMMA),
    "focal+mdca": lambda b: losses.Regularized(losses.FocalLoss(GAMMA), losses.MDCA(), b),
    "flsd": lambda _: losses.FLSD(),
    "dca": lambda b: losses.Regularized(nn.CrossEntropyLoss(), losses.DCA(), b),
    "focal+rcr": lambda b: losses.Regularized(losses.FocalLoss(GAMMA), losses.RCR(SIGMA), b),
    "focal+rcr-paper": lambda b: losses.Regularized(
        losses.FocalLoss(GAMMA), losses.RCR(SIGMA, normalization="paper"), b
    ),
}


def loss_of(run: Run) -> nn.Module:
    """Return the loss that a network is trained with.

    >>> loss_of(Run("breastmnist", "focal+rcr", 1.0, 0)).regulariser
    RCR(sigma=0.1, normalization='smooth')
    """
    return LOSSES[run.loss](run.beta)


def train_all(
    folder: str | PathLike[str],
    out: str | PathLike[str],
    settings: Settings | None = None,
    *,
    device: str = "cpu",
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[str, float], None] | None = None,
) -> list[Path]:
    """Train what is not there yet, and return the files of this shard.

    `folder` holds the files of MedMNIST, of which there must be at least one of `DATA`; `out`
    receives one NPZ file per network. `shard` = (i, n) takes every n-th network from the i-th on.
    """
    settings = settings or Settings()
    positive_integer("seeds", settings.seeds)
    found = _data_in(folder)
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    runs = share(runs_of(settings, list(found)), shard)
    files = []
    for number, run in enumerate(runs):
        if progress:
            progress(run.name, number / len(runs))
        data = found[run.data]
        file = target / f"{run.name}.npz"
        kept_arrays(
            file,
            _made_of(run, settings, data),
            partial(_trained, run, settings, data, device),
        )
        files.append(file)
    if progress:
        progress("done", 1.0)
    return files


def _data_in(folder: str | PathLike[str]) -> dict[str, MedMnist]:
    place = Path(folder)
    found = {n: read_medmnist(place / f"{n}.npz") for n in DATA if (place / f"{n}.npz").is_file()}
    if not found:
        wanted = " or ".join(f"{name}.npz" for name in DATA)
        raise InvalidInputError(f"data: {place} must hold {wanted}")
    for name, data in found.items():
        if data.train.images.ndim != 3 or data.train.labels.ndim != 1:
            raise InvalidInputError(
                f"{name}.npz: must hold grey images with one class each; got images "
                f"{data.train.images.shape}, labels {data.train.labels.shape}"
            )
    return found


def _made_of(run: Run, settings: Settings, data: MedMnist) -> dict[str, Any]:
    """Return what a network was made of; how many others there are is no part of it."""
    used = asdict(settings)
    used = {key: used[key] for key in used if key not in ("seeds", "epochs", "betas")}
    digest = fingerprint(*(array for part in data for array in part))
    epochs = settings.epochs[run.data]
    return {"version": VERSION, **asdict(run), "epochs": epochs, **used, "images": digest}


def _trained(run: Run, settings: Settings, data: MedMnist, device: str) -> dict[str, NDArray[Any]]:
    """Train one network; return what it says of the validation and test images."""
    begun = time.monotonic()
    classes = int(data.train.labels.max()) + 1
    recipe = Recipe(
        settings.epochs[run.data],
        settings.batch_size,
        settings.learning_rate,
        settings.weight_decay,
        seed=run.seed,
    )
    train_part = _tensors(data.train)
    # The fastest algorithm may add in another order each time; these do not.
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        network = train(
            lambda: ResNet8(classes, settings.width),
            loss_of(run),
            train_part,
            recipe,
            augment=_flipped,
            device=device,
        )
        test_images, test_labels = _tensors(data.test)
        fitted = predict(network, train_part[0]).argmax(axis=1) == data.train.labels
        views = augmented_views(test_images, settings.samples)
        return {
            "test_logits": predict(network, test_images),
            "test_view_logits": np.stack([predict(network, view) for view in views]),
            "test_labels": test_labels.numpy(),
            "validation_logits": predict(network, _tensors(data.validation)[0]),
            "validation_labels": data.validation.labels,
            "train_accuracy": np.asarray(fitted.mean()),
            "seconds": np.asarray(time.monotonic() - begun),
        }


def _tensors(part: MedMnistPart) -> tuple[Tensor, Tensor]:
    images = torch.from_numpy(part.images).float().div(255)[:, None]
    return images, torch.from_numpy(part.labels)


def _flipped(images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Flip every second image from left to right: RECE's only augmentation in training."""
    turn = torch.rand(len(images)).to(images.device) < 0.5
    return torch.where(turn[:, None, None, None], images.flip(-1), images), targets


def augmented_views(images: Tensor, samples: int, seed: int = 0) -> Iterator[Tensor]:
    """Yield images (N, 1, H, W) `samples` times, flipped and turned at random by up to 10 degrees.

    Each network sees the same views, so that networks differ in nothing else. Corners that come
    from outside an image are black. (`raterwise.torch.ensembles.test_time_augmentation` is for any
    transform; this one turns all images at once.)
    """
    generator = torch.Generator().manual_seed(seed)
    for _ in range(samples):
        flip = torch.rand(len(images), generator=generator) < FLIP
        turn = 2 * torch.rand(len(images), generator=generator) - 1
        angle = turn * (np.pi / 180 * DEGREES)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        matrix = torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)
        grid = nn.functional.affine_grid(matrix, list(images.shape), align_corners=False)
        given = torch.where(flip[:, None, None, None], images.flip(-1), images)
        yield nn.functional.grid_sample(given, grid, align_corners=False)
