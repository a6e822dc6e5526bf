"""Training on one label of each image or on all there are (LH appendix F.3), and what comes of it.

The network is that of LH for MDS, VGG16 with a head of two layers, at half the width. It learns
with the cross-entropy of label histograms (LH eq 82); the epoch is that with the lowest such loss
on all labels of the validation images. This module needs PyTorch and NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.kept import fingerprint, kept_arrays
from experiments.label_histograms.mixed_networks import MixedNetwork, augmented, vgg16
from experiments.label_histograms.mixed_outputs import output_file
from experiments.label_histograms.network_outputs import said
from experiments.label_histograms.several_data import (
    CLASSES,
    CifarLabels,
    NoduleLabels,
    cifar_labels,
    counted,
    family,
    nodule_labels,
    one_label,
)
from experiments.nodules import FOLDS
from experiments.training import Recipe, share, train
from raterwise.datasets import read_cifar10
from raterwise.inference.settings import Progress
from raterwise.torch.losses import HistogramCrossEntropy

__all__ = ["Learning", "Settings", "learnings", "train_all"]

VERSION = 1
SIDE = 64
"""Pixels of the middle of a nodule's slice that are shown."""
CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "cifar10n": augmented,
    "lidc": partial(augmented, turn=180.0, shift=4.0, zoom=0.1),
}


@dataclass(frozen=True)
class Settings:
    """What the networks depend on, besides the data."""

    seeds: int = 3
    cifar10n_epochs: int = 80
    lidc_epochs: int = 60
    samples: int = 10
    """Of test-time augmentation; Monte-Carlo dropout is drawn when it is judged."""
    width: float = 0.5

    def recipe(self, study: str, seed: int) -> Recipe:
        """Return how a network is trained: Adam, a warm-up, a tenth of the rate twice (LH E.3)."""
        if family(study) == "cifar10n":
            epochs = self.cifar10n_epochs
            return Recipe(epochs, seed=seed, milestones=(2 / 5, 3 / 5), warm_up=min(5, epochs - 1))
        epochs = self.lidc_epochs
        return Recipe(epochs, batch_size=64, seed=seed, warm_up=min(5, epochs - 1))


class Learning(NamedTuple):
    """What one network learns from and is shown."""

    name: str
    """Of the study, and of the fold where there are some: what the file is called."""
    study: str
    images: dict[str, Tensor]
    """(N, C, H, W), 0 … 255: train, valid, test and, of CIFAR-10N, same."""
    counts: dict[str, Tensor]
    """The label histograms of train and valid."""
    rows: NDArray[np.int64] | None
    """Which nodules "test" are."""


def runs(studies: list[str], settings: Settings) -> list[tuple[str, int | None, int]]:
    """Return study, fold and seed of every network."""
    found: list[tuple[str, int | None, int]] = []
    for seed in range(settings.seeds):
        for study in studies:
            folds = range(FOLDS) if family(study) == "lidc" else (None,)
            found += [(study, fold, seed) for fold in folds]
    return found


def train_all(
    data: str | PathLike[str],
    out: str | PathLike[str],
    studies: list[str],
    settings: Settings,
    *,
    device: str = "cpu",
    shard: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> None:
    """Train the networks that `out` does not hold yet, and keep their outputs there."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    work = share(runs(studies, settings), shard)
    read: dict[str, Any] = {}
    for i, (study, fold, seed) in enumerate(work):
        if progress:
            progress(f"{study}, seed {seed}", i / len(work))
        kind = family(study)
        if kind not in read:
            read[kind] = _cifar(data) if kind == "cifar10n" else nodule_labels(data)
        learning = learnings(study, fold, read[kind])
        _kept(folder, learning, fold, seed, settings, device)
    if progress:
        progress("trained", 1.0)


def learnings(study: str, fold: int | None, read: Any) -> Learning:
    """Return what the network of a study (and fold) learns, of what was read for its family."""
    if fold is None:
        return _learning_cifar(study, *read)
    return _learning_nodules(study, fold, *read)


def _learning_cifar(
    study: str, labels: CifarLabels, images: dict[str, NDArray[np.uint8]]
) -> Learning:
    shown = {name: images["train"][labels.part(name)] for name in ("train", "valid", "same")}
    ratings = {name: labels.ratings[labels.part(name)] for name in ("train", "valid")}
    return _learning(study, study, shown | {"test": images["test"]}, ratings, None)


def _learning_nodules(
    study: str, fold: int, labels: NoduleLabels, slices: NDArray[np.uint8]
) -> Learning:
    rows = labels.rows(fold)
    first = max(0, (slices.shape[1] - SIDE) // 2)
    middle = slices[:, None, first : first + SIDE, first : first + SIDE]
    shown = {name: middle[part] for name, part in rows.items()}
    ratings = {name: labels.ratings[rows[name]] for name in ("train", "valid")}
    return _learning(f"{study}_fold{fold}", study, shown, ratings, rows["test"])


def _learning(
    name: str,
    study: str,
    shown: dict[str, NDArray[np.uint8]],
    ratings: dict[str, NDArray[np.int64]],
    rows: NDArray[np.int64] | None,
) -> Learning:
    """Return images and histograms as tensors; of the study "…_1" one label is learnt from."""
    classes = CLASSES[family(study)]
    counts = {part: counted(given, classes) for part, given in ratings.items()}
    if study.endswith("_1"):
        counts["train"] = one_label(ratings["train"], classes)
    images = {part: torch.from_numpy(np.ascontiguousarray(x)).float() for part, x in shown.items()}
    histograms = {part: torch.from_numpy(y).float() for part, y in counts.items()}
    return Learning(name, study, images, histograms, rows)


def _cifar(data: str | PathLike[str]) -> tuple[CifarLabels, dict[str, NDArray[np.uint8]]]:
    images = {}
    for part in ("train", "test"):
        stored = read_cifar10(data, part).images
        assert stored is not None
        images[part] = stored.transpose(0, 3, 1, 2)
    return cifar_labels(data), images


def _kept(
    folder: Path, learning: Learning, fold: int | None, seed: int, settings: Settings, device: str
) -> None:
    kind = family(learning.study)
    key = (seed,) if fold is None else (seed, fold)
    own = int(np.random.SeedSequence(key).generate_state(1)[0])
    recipe = settings.recipe(learning.study, own)
    checkpoint = folder / f"{learning.name}-{seed}.pt"
    change = CHANGES[kind]
    images, counts = learning.images, learning.counts

    def make() -> dict[str, NDArray[Any]]:
        network = train(
            lambda: vgg16(settings.width, images["train"].shape[1], CLASSES[kind]),
            HistogramCrossEntropy(),
            (images["train"], counts["train"]),
            recipe,
            validation=(images["valid"], counts["valid"]),
            augment=lambda x, y: (change(x), y),
            checkpoint=checkpoint,
            device=device,
        )
        assert isinstance(network, MixedNetwork)
        shown = {name: part for name, part in images.items() if name != "train"}
        arrays = said(network, shown, seed=own, samples=settings.samples, change=change)
        return arrays | ({} if learning.rows is None else {"rows": learning.rows})

    made_of = {
        **{"version": VERSION, "data": learning.name, "seed": seed, "recipe": asdict(recipe)},
        **{"samples": settings.samples, "width": settings.width},
        "images": fingerprint(*(part.numpy()[:100] for part in images.values())),
        "labels": fingerprint(*(part.numpy() for part in counts.values())),
    }
    kept_arrays(output_file(folder, learning.name, seed), made_of, make)
    checkpoint.unlink(missing_ok=True)
