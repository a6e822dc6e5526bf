"""The problems of the distillation experiment: images to learn, to judge by, and from elsewhere.

- *cifar10*: CIFAR-10, as in CCC section 4.1; from elsewhere come digits, in grey and in colour,
  clothes, chest X-rays and ultrasound.
- *cifar8*: CIFAR-10 without cats and trucks, which are from elsewhere then: the hard kind of
  out-of-distribution case, because a dog and an automobile, which are learnt, look much like them.
- *mnist*: digits; from elsewhere come clothes, chest X-rays and the images of CIFAR-10 in grey.
- *pneumonia*: chest X-rays with and without pneumonia (PneumoniaMNIST), in the place of
  ChestX-ray14; from elsewhere come ultrasound, digits, clothes and CIFAR-10 in grey.

The paper's SVHN and OCT2017 are not among them. Files that the folder does not hold are left out,
but for those that are learnt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from experiments.kept import fingerprint
from raterwise.datasets import read_cifar10, read_idx, read_medmnist, read_mnist
from raterwise.datasets.cifar import CIFAR10_CLASSES
from raterwise.datasets.sheets import find_file, has_file
from raterwise.errors import InvalidInputError
from raterwise.rules import choose, positive_integer

__all__ = ["PROBLEMS", "Part", "Problem", "coloured", "load_problem", "shaped"]

PROBLEMS = ("cifar10", "cifar8", "mnist", "pneumonia")
UNKNOWN_CLASSES = (CIFAR10_CLASSES.index("cat"), CIFAR10_CLASSES.index("truck"))
LUMINANCE = (0.299, 0.587, 0.114)
"""Of red, green and blue (ITU-R BT.601)."""
FASHION = ("fashion-images-idx3-ubyte", "fashion-t10k-images-idx3-ubyte")

ELSEWHERE = {
    "cifar10": ("digits", "digits in colour", "clothes", "chest X-rays", "ultrasound"),
    "cifar8": (),
    "mnist": ("clothes", "chest X-rays", "CIFAR-10 in grey"),
    "pneumonia": ("ultrasound", "digits", "clothes", "CIFAR-10 in grey"),
}

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """Images, what is on them, and where they stand in the data set's own order."""

    images: Tensor
    """(N, C, H, W) of 8 bits."""
    classes: IntArray
    rows: IntArray

    def take(self, chosen: IntArray) -> Part:
        """Return some of the cases."""
        return Part(self.images[torch.from_numpy(chosen)], self.classes[chosen], self.rows[chosen])


@dataclass(frozen=True, eq=False)
class Problem:
    """What a cascade is trained on and judged by."""

    name: str
    classes: int
    train: Part
    held_out: Part
    """Of the training images of the data set: the members never see them."""
    test: Part
    outside: dict[str, Tensor]
    """Images from elsewhere, as large and as coloured as the others."""

    @cached_property
    def _scale(self) -> tuple[Tensor, Tensor]:
        """The mean and deviation of each colour over the training images."""
        colours = self.train.images.shape[1]
        levels = torch.arange(256, dtype=torch.float64)
        share = torch.stack(
            [
                torch.bincount(self.train.images[:, c].flatten(), minlength=256)
                for c in range(colours)
            ]
        ).double()
        share /= share.sum(dim=1, keepdim=True)
        mean = share @ levels
        return mean, (share @ levels**2 - mean**2).sqrt()

    def normalised(self, images: Tensor, device: str | torch.device = "cpu") -> Tensor:
        """Return images as numbers with mean 0 and deviation 1 per colour over the training set."""
        values = images.to(device).float()
        mean, deviation = (part.to(values).view(1, -1, 1, 1) for part in self._scale)
        return (values - mean) / deviation

    def fingerprint(self) -> str:
        """Return a digest of every image and class."""
        parts: list[NDArray[Any]] = []
        for part in (self.train, self.held_out, self.test):
            parts += [part.images.numpy(), part.classes, part.rows]
        return fingerprint(*parts, *(self.outside[name].numpy() for name in sorted(self.outside)))


def load_problem(
    name: str,
    folder: str | PathLike[str],
    *,
    seed: int = 0,
    held_out: int = 5000,
    outside_cases: int | None = None,
    limit: int | None = None,
) -> Problem:
    """Read a problem from a folder with the files of its data sets.

    `held_out` of the training images, drawn with `seed`, are kept from the members. Of each kind
    of images from elsewhere the first `outside_cases` are taken. `limit` takes no more than so
    many cases of each part, for a trial.
    """
    choose("name", name, PROBLEMS)
    classes = 10
    if name == "mnist":
        train, test = (_part(*read_mnist(folder, part), 28, 1) for part in ("train", "test"))
    elif name == "pneumonia":
        chests = read_medmnist(Path(folder) / "pneumoniamnist.npz")
        train, test = (_part(*part, 28, 1) for part in (chests.train, chests.test))
        classes = 2
    else:
        train, test = (_part(*read_cifar10(folder, part), 32, 3) for part in ("train", "test"))
    outside = _from_elsewhere(name, Path(folder))
    if name == "cifar8":
        unknown = np.isin(test.classes, UNKNOWN_CLASSES)
        outside = {"cats and trucks": test.images[torch.from_numpy(np.flatnonzero(unknown))]}
        train, test, classes = _known(train), _known(test), 8
    order = np.random.default_rng([seed, 1]).permutation(len(train.classes))
    if not 0 < positive_integer("held_out", held_out) < len(order):
        raise InvalidInputError(f"held_out: must be fewer than {len(order)}; got {held_out}")
    few = slice(None) if limit is None else slice(positive_integer("limit", limit))
    return Problem(
        name,
        classes,
        train=train.take(order[held_out:][few]),
        held_out=train.take(order[:held_out][few]),
        test=test.take(np.arange(len(test.classes))[few]),
        outside={kind: images[:outside_cases][few] for kind, images in outside.items()},
    )


def _part(images: NDArray[np.uint8], classes: IntArray, side: int, colours: int) -> Part:
    return Part(shaped(images, side, colours), classes, np.arange(len(classes)))


def _known(part: Part) -> Part:
    """Return the cases of the eight classes that are learnt, numbered 0 … 7."""
    kept = part.take(np.flatnonzero(~np.isin(part.classes, UNKNOWN_CLASSES)))
    below = sum((kept.classes > unknown).astype(np.int64) for unknown in UNKNOWN_CLASSES)
    return Part(kept.images, kept.classes - below, kept.rows)


def _from_elsewhere(name: str, folder: Path) -> dict[str, Tensor]:
    """Return the images that are not what the networks learn, as far as the folder has them."""
    digits = ("t10k-images-idx3-ubyte",)
    cifar = ("test_batch.bin", "test_batch.png")
    readers: dict[str, tuple[tuple[str, ...], Callable[[], NDArray[np.uint8]]]] = {
        "digits": (digits, lambda: read_mnist(folder, "test").images),
        "digits in colour": (digits, lambda: coloured(read_mnist(folder, "test").images)),
        "clothes": (FASHION, lambda: read_idx(find_file(folder, *FASHION))),
        "chest X-rays": (("pneumoniamnist.npz",), lambda: _medical(folder / "pneumoniamnist.npz")),
        "ultrasound": (("breastmnist.npz",), lambda: _medical(folder / "breastmnist.npz")),
        "CIFAR-10 in grey": (cifar, lambda: read_cifar10(folder, "test").images),
    }
    side, colours = (32, 3) if name.startswith("cifar") else (28, 1)
    return {
        kind: shaped(readers[kind][1](), side, colours)
        for kind in ELSEWHERE[name]
        if has_file(folder, *readers[kind][0])
    }


def _medical(file: Path) -> NDArray[np.uint8]:
    return np.concatenate([part.images for part in read_medmnist(file)])


def coloured(digits: NDArray[np.uint8], seed: int = 0) -> NDArray[np.uint8]:
    """Return (N, H, W) grey images in colours: each of one colour on a ground of another.

    House numbers (SVHN) are digits of any colour on any ground; these stand in for them.
    """
    random = np.random.default_rng([seed, 2])
    ground, ink = random.integers(0, 256, (2, len(digits), 1, 1, 3))
    share = digits[..., None] / 255.0
    return np.asarray(np.rint(ground + share * (ink - ground)), dtype=np.uint8)


def shaped(images: NDArray[np.uint8], side: int, colours: int) -> Tensor:
    """Return (N, H, W) or (N, H, W, 3) bytes as (N, colours, side, side) bytes.

    Another size is interpolated bilinearly; grey is the luminance, and three times itself in
    colour.
    """
    values = torch.from_numpy(np.array(images))
    values = values[:, None] if values.ndim == 3 else values.movedim(3, 1)
    if values.shape[1] == colours and values.shape[2:] == (side, side):
        return values.contiguous()
    changed = values.float()
    if colours == 1 and changed.shape[1] == 3:
        weights = torch.tensor(LUMINANCE).view(1, 3, 1, 1)
        changed = (changed * weights).sum(dim=1, keepdim=True)
    if changed.shape[2:] != (side, side):
        changed = functional.interpolate(
            changed, size=(side, side), mode="bilinear", align_corners=False
        )
    changed = changed.expand(-1, colours, -1, -1)
    return changed.round().clamp(0, 255).to(torch.uint8).contiguous()
