"""Do calibration losses calibrate? The networks of RECE Table 2, on public images.

A residual network (ResNet-18; a small one for BreastMNIST and PneumoniaMNIST) is trained with each
loss from several seeds, and what it says of the test images is kept in one file per network;
`judging` judges them. A seed decides the
first weights, the order of the images and their flips, so networks of one seed begin alike and are
shown the same. A run that finds a file made of the same data and settings goes on to the next, and
several processes may share the work (`shard`).

This module needs torch, NumPy and SciPy, and nothing else of what raterwise needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
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
from experiments.networks import ResNet8, ResNet18
from experiments.robust_ece.data import Problem, problem_in
from experiments.robust_ece.runs import DATA, PEEKED, WIDTHS, Run, Settings, runs_of
from experiments.training import Recipe, predict, share, train
from raterwise.errors import InvalidInputError
from raterwise.rules import positive_integer
from raterwise.torch import losses

__all__ = [
    "LOSSES",
    "Settings",
    "augmented_views",
    "loss_of",
    "train_all",
]

VERSION = 2
GAMMA, SIGMA = 1.0, 0.1
FLIP, DEGREES = 0.25, 10.0
"""Test-time augmentation as the paper's released code has it for breast ultrasound."""


def _rcr(sigma: float, beta: float) -> nn.Module:
    return losses.Regularized(losses.FocalLoss(GAMMA), losses.RCR(sigma), beta)


LOSSES: dict[str, Callable[[float], nn.Module]] = {
    "cross-entropy": lambda _: nn.CrossEntropyLoss(),
    "focal": lambda _: losses.FocalLoss(GAMMA),
    "focal+mdca": lambda b: losses.Regularized(losses.FocalLoss(GAMMA), losses.MDCA(), b),
    "flsd": lambda _: losses.FLSD(),
    "dca": lambda b: losses.Regularized(nn.CrossEntropyLoss(), losses.DCA(), b),
    "focal+rcr": partial(_rcr, SIGMA),
    "focal+rcr-paper": lambda b: losses.Regularized(
        losses.FocalLoss(GAMMA), losses.RCR(SIGMA, normalization="paper"), b
    ),
    **{name: partial(_rcr, sigma) for name, sigma in WIDTHS.items()},
}


def loss_of(run: Run) -> nn.Module:
    """Return the loss that a network is trained with.

    >>> loss_of(Run("breastmnist", "focal+rcr", 1.0, 0)).regulariser
    RCR(sigma=0.1, normalization='smooth', max_cases=2048)
    """
    return LOSSES[run.loss](run.beta)


def train_all(
    folder: str | PathLike[str],
    out: str | PathLike[str],
    settings: Settings | None = None,
    *,
    data: Sequence[str] = DATA,
    losses_named: Collection[str] = (),
    device: str = "cpu",
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[str, float], None] | None = None,
) -> list[Path]:
    """Train what is not there yet, and return the files of this shard.

    `folder` holds the files of at least one of `data`; `out` receives one NPZ file per network.
    `shard` = (i, n) takes every n-th network from the i-th on; `losses_named`, where there are
    some, only those of these losses.
    """
    settings = settings or Settings()
    positive_integer("seeds", settings.seeds)
    found = _data_in(folder, data)
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    wanted = runs_of(settings, list(found))
    runs = share([run for run in wanted if not losses_named or run.loss in losses_named], shard)
    files = []
    for number, run in enumerate(runs):
        if progress:
            progress(run.name, number / len(runs))
        problem = found[run.data]
        file = target / f"{run.name}.npz"
        kept_arrays(
            file,
            _made_of(run, settings, problem),
            partial(_trained, run, settings, problem, device),
        )
        files.append(file)
    if progress:
        progress("done", 1.0)
    return files


def _data_in(folder: str | PathLike[str], names: Sequence[str]) -> dict[str, Problem]:
    read = {name: problem_in(folder, name) for name in names}
    found = {name: problem for name, problem in read.items() if problem is not None}
    if not found:
        wanted = " or ".join(f"{name}.npz" for name in names)
        raise InvalidInputError(f"data: {folder} must hold {wanted}")
    return found


def _made_of(run: Run, settings: Settings, problem: Problem) -> dict[str, Any]:
    """Return what a network was made of; how many others there are is no part of it."""
    used = asdict(settings)
    used = {key: used[key] for key in used if key not in ("seeds", "epochs", "betas")}
    digest = fingerprint(problem.images, problem.labels, *problem.folds[run.fold])
    epochs = settings.epochs[run.data]
    return {"version": VERSION, **asdict(run), "epochs": epochs, **used, "images": digest}


def _trained(run: Run, settings: Settings, problem: Problem, device: str) -> dict[str, Any]:
    """Train one network; return what it says of the validation and test images."""
    begun = time.monotonic()
    recipe = Recipe(
        settings.epochs[run.data],
        settings.batch_of(run.data),
        settings.learning_rate,
        settings.weight_decay,
        seed=run.seed,
    )
    fold = problem.folds[run.fold]
    train_part, validation, test = (_tensors(problem, rows) for rows in fold)
    best: dict[str, Any] = {"hits": -1}

    def watch(network: nn.Module, epoch: int) -> None:
        """Keep the epoch that is best on the test images, as the paper's released code does."""
        logits = predict(network, test[0])
        hits = int((logits.argmax(axis=1) == test[1].numpy()).sum())
        if hits > best["hits"]:
            best.update(hits=hits, epoch=epoch, logits=logits)

    small = run.data.startswith("cifar10")
    peeked = not small and run.loss in PEEKED and run.beta == settings.betas[0]
    # The fastest algorithm may add in another order each time; these do not.
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        network = train(
            partial(_network_of, run.data, problem, settings.width),
            loss_of(run),
            train_part,
            recipe,
            augment=_flipped,
            device=device,
            watch=watch if peeked else None,
        )
        fitted = predict(network, train_part[0]).argmax(axis=1) == train_part[1].numpy()
        found: dict[str, Any] = {
            "test_logits": predict(network, test[0]),
            "test_labels": test[1].numpy(),
            "test_index": fold.test,
            "validation_logits": predict(network, validation[0]),
            "validation_labels": validation[1].numpy(),
            "train_accuracy": np.asarray(fitted.mean()),
            "seconds": np.asarray(time.monotonic() - begun),
        }
        if problem.groups is not None:
            found["test_groups"] = problem.groups[fold.test]
        if peeked:
            found["best_logits"], found["best_epoch"] = best["logits"], np.asarray(best["epoch"])
        if not small:
            views = augmented_views(test[0], settings.samples)
            found["test_view_logits"] = np.stack([predict(network, view) for view in views])
        return found


def _network_of(data: str, problem: Problem, width: int) -> nn.Module:
    classes = int(problem.labels.max()) + 1
    if data in DATA:
        return ResNet8(classes, width)
    colours = 1 if problem.images.ndim == 3 else problem.images.shape[-1]
    return ResNet18(colours, classes, 2 * width, large=problem.images.shape[1] >= 64)


def _tensors(problem: Problem, rows: NDArray[Any]) -> tuple[Tensor, Tensor]:
    images = torch.from_numpy(problem.images[rows]).float().div(255)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    return images, torch.from_numpy(problem.labels[rows].astype(np.int64))


def _flipped(images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Flip every second image from left to right: RECE's only augmentation in training."""
    turn = torch.rand(len(images)).to(images.device) < 0.5
    return torch.where(turn[:, None, None, None], images.flip(-1), images), targets


def augmented_views(images: Tensor, samples: int, seed: int = 0) -> Iterator[Tensor]:
    """Yield images (N, C, H, W) `samples` times, flipped and turned at random by up to 10 degrees.

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
