"""Training on Mix-MNIST and Mix-CIFAR-10 (LH appendix E), and what the networks say.

One label of each training image, one of each validation image to choose the epoch by. What is
kept of each network is in `mixed_outputs`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.kept import fingerprint, kept_arrays
from experiments.label_histograms.mixed_data import (
    MixedTable,
    mixed_images,
    original_images,
    read_mixed_table,
)
from experiments.label_histograms.mixed_networks import MixedNetwork, augmented, network_of
from experiments.label_histograms.mixed_outputs import output_file
from experiments.label_histograms.network_outputs import said
from experiments.training import Recipe, share, train
from raterwise.datasets.sheets import find_file
from raterwise.inference.settings import Progress

__all__ = ["Settings", "train_all"]

Arrays = dict[str, NDArray[Any]]

VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What the networks depend on, besides the data."""

    mnist_seeds: int = 5
    cifar10_seeds: int = 3
    mnist_epochs: int = 100
    """At most: ten epochs without a lower validation loss are the last (LH E.3)."""
    cifar10_epochs: int = 250
    """The rate falls to a tenth after 2/5 and after 3/5 of them, LH's 100 and 150 of 250."""
    samples: int = 20
    """Of test-time augmentation; Monte-Carlo dropout is drawn when it is judged."""
    width: float = 1.0
    batch_norm: bool = False
    """Of VGG16; the released code has none."""
    limit: int | None = None
    """At most so many images of each part, for a trial."""

    def runs(self, names: list[str]) -> list[tuple[str, int]]:
        """Return every network to train."""
        seeds = {"mixed_mnist": self.mnist_seeds, "mixed_cifar10": self.cifar10_seeds}
        return [(name, seed) for name in names for seed in range(seeds[name])]

    def recipe(self, name: str, seed: int) -> Recipe:
        """Return how a network is trained (LH E.3)."""
        if name == "mixed_mnist":
            return Recipe(self.mnist_epochs, seed=seed, schedule="constant", patience=10)
        return Recipe(
            self.cifar10_epochs,
            seed=seed,
            milestones=(2 / 5, 3 / 5),
            warm_up=min(5, self.cifar10_epochs - 1),
        )


def train_all(
    data: str | PathLike[str],
    out: str | PathLike[str],
    names: list[str],
    settings: Settings,
    *,
    device: str = "cpu",
    shard: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> None:
    """Train the networks that `out` does not hold yet, and keep their outputs there."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    runs = share(settings.runs(names), shard)
    parts: dict[str, dict[str, tuple[Tensor, Tensor]]] = {}
    for i, (name, seed) in enumerate(runs):
        if progress:
            progress(f"{name}, seed {seed}", i / len(runs))
        if name not in parts:
            parts[name] = _parts(data, name, settings.limit)
        _kept(folder, name, seed, parts[name], settings, device)
    if progress:
        progress("trained", 1.0)


def _parts(
    data: str | PathLike[str], name: str, limit: int | None
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the images and the first labels of train, valid and test."""
    table = read_mixed_table(find_file(Path(data) / name, f"{name}.t1_v1.txt"))
    images = original_images(data, name)

    def part(cases: MixedTable) -> tuple[Tensor, Tensor]:
        mixed = mixed_images(images, cases)[:limit]
        return torch.from_numpy(mixed), torch.from_numpy(cases.counts.argmax(axis=1)[:limit])

    return {key: part(table.part(key)) for key in ("train", "valid", "test")}


def _kept(
    folder: Path,
    name: str,
    seed: int,
    parts: dict[str, tuple[Tensor, Tensor]],
    settings: Settings,
    device: str,
) -> Arrays:
    recipe = settings.recipe(name, seed)
    checkpoint = folder / f"{name}-{seed}.pt"

    def make() -> Arrays:
        network = train(
            lambda: network_of(name, settings.width, settings.batch_norm),
            nn.CrossEntropyLoss(),
            parts["train"],
            recipe,
            validation=parts["valid"],
            augment=_augment if name == "mixed_cifar10" else None,
            checkpoint=checkpoint,
            device=device,
        )
        assert isinstance(network, MixedNetwork)
        shown = {part: parts[part][0] for part in ("valid", "test")}
        change = augmented if name == "mixed_cifar10" else None
        return said(network, shown, seed=seed, samples=settings.samples, change=change)

    made_of = {
        **{"version": VERSION, "data": name, "seed": seed, "recipe": asdict(recipe)},
        **{"samples": settings.samples, "width": settings.width, "limit": settings.limit},
        "images": fingerprint(*(parts[key][0].numpy()[:100] for key in ("train", "valid", "test"))),
    }
    if name == "mixed_cifar10" and not settings.batch_norm:
        made_of["batch_norm"] = False
    arrays = kept_arrays(output_file(folder, name, seed), made_of, make)
    checkpoint.unlink(missing_ok=True)
    return arrays


def _augment(images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return augmented(images), targets
