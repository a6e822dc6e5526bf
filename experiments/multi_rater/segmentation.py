"""Segmentation networks trained on one rater an image, for MR Table 2 with LIDC and BU-BIL.

A small U-Net sees one mask of each training image, of a rater drawn at random (in LIDC a slot is
not the same person from nodule to nodule), with plain cross-entropy. Each network writes its
probabilities of the test images into a file of its own; a run that finds the file, made with the
same data and settings, goes on to the next. What the files say is judged by
`experiments.multi_rater.judging`.

This module needs PyTorch and NumPy alone, so that a machine with a GPU can train and another judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.multi_rater.data import (
    STUDIES,
    Arrays,
    IntArray,
    Training,
    Unit,
    kept_predictions,
    network_seed,
    one_rater,
    read_study,
    splits_of,
    units_of,
)
from experiments.networks import UNet
from experiments.training import Recipe, predict, share, train
from raterwise.datasets.mask_arrays import OutlinedImages
from raterwise.inference.settings import Progress
from raterwise.torch.losses import HistogramCrossEntropy

__all__ = ["predictions_of", "train_networks", "turned"]


def turned(images: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
    """Turn and mirror each image (N, 1, S, S) and its mask at random, in one of eight ways."""
    for axes in ((-1,), (-2,), None):
        chosen = torch.rand(len(images), device=images.device) < 0.5
        here = chosen[:, None, None]
        other = [t.transpose(-1, -2) if axes is None else t.flip(axes) for t in (images, masks)]
        images = torch.where(here[:, None], other[0], images)
        masks = torch.where(here, other[1], masks)
    return images, masks


def train_networks(
    data: str | PathLike[str],
    out: str | PathLike[str],
    settings: Training | None = None,
    studies: Sequence[str] = tuple(STUDIES),
    *,
    device: str | torch.device = "cpu",
    shard: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> None:
    """Train every network whose predictions `out` does not have yet.

    `data` holds the files of the studies. `shard` = (i, n) takes every n-th network from the i-th
    on, so that several processes can share `out`.
    """
    settings = settings or Training()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = share(units_of(studies, settings), shard)
    for key in studies:
        images = read_study(data, key)
        for unit in (unit for unit in wanted if unit.study == key):
            if progress:
                progress(unit.name, wanted.index(unit) / len(wanted))
            predictions_of(images, unit, folder, settings, device)
    if progress:
        progress("trained", 1.0)


def predictions_of(
    images: OutlinedImages,
    unit: Unit,
    folder: Path,
    settings: Training,
    device: str | torch.device = "cpu",
) -> Arrays:
    """Return the kept predictions of a network, which is trained where there are none.

    Training itself goes on from its last whole epoch.
    """
    study, checkpoint = STUDIES[unit.study], folder / f"{unit.name}.pt"
    recipe = Recipe(
        epochs=settings.epochs or study.epochs,
        batch_size=study.batch_size,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        seed=network_seed(settings, unit),
    )

    def make() -> Arrays:
        split = splits_of(images, study, settings.seed)[unit.split]
        raters = one_rater(images, settings.seed)
        shown, wanted = _tensors(images, split.train, raters)
        share = float(wanted.float().mean())
        network = train(
            lambda: UNet(settings.channels, share),
            HistogramCrossEntropy(),
            (shown, wanted),
            recipe,
            validation=_tensors(images, split.validation, raters),
            augment=turned,
            checkpoint=checkpoint,
            device=device,
        )
        logits = predict(network, _scaled(images, split.test), batch_size=64)
        foreground = 1 / (1 + np.exp(logits[:, 0].astype(np.float64) - logits[:, 1]))
        return {"probabilities": foreground.astype(np.float16), "rows": split.test}

    found = kept_predictions(images, unit, folder, settings, make)
    checkpoint.unlink(missing_ok=True)
    return found


def _tensors(images: OutlinedImages, rows: IntArray, raters: IntArray) -> tuple[Tensor, Tensor]:
    """Return images (N, 1, H, W) between -1 and 1 and the mask (N, H, W) of one rater each."""
    return _scaled(images, rows), torch.from_numpy(images.masks[rows, raters[rows]]).long()


def _scaled(images: OutlinedImages, rows: IntArray) -> Tensor:
    return torch.from_numpy(images.images[rows]).float()[:, None] / 127.5 - 1
