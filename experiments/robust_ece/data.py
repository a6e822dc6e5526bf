"""The images of the experiment with training losses, and which of them train, choose and judge.

Where there is an official split it is used. BUSI, POCUS and Covid-CT are cross-validated, so that
every image is judged once: five parts, in turn one to judge, one to choose with, three to train on.
Images that belong together (a recording, a patient, near-duplicates) are in one part.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets import read_cifar10
from raterwise.datasets.image_arrays import read_medmnist
from raterwise.errors import InvalidInputError

__all__ = ["Fold", "Problem", "near_duplicates", "parts_of_groups", "problem_in"]

IntArray = NDArray[Any]

PARTS = 5
ALIKE = 0.98
"""Correlation of two images at 16 x 16 from which on they are taken for the same picture."""
CIFAR_VALIDATION, CIFAR_TEST = 1000, 5000


class Fold(NamedTuple):
    """Which images train a network, choose with it, and judge it."""

    train: IntArray
    validation: IntArray
    test: IntArray


class Problem(NamedTuple):
    """A data set."""

    images: NDArray[np.uint8]
    """(N, H, W) or (N, H, W, colours)."""
    labels: IntArray
    folds: tuple[Fold, ...]
    groups: IntArray | None = None
    """What is independent, where that is not the image."""


def problem_in(folder: str | PathLike[str], name: str) -> Problem | None:
    """Return a data set by its name; None where the folder has no file of it."""
    place, base = Path(folder), name.split("-")[0]
    if base == "cifar10":
        there = any((place / f"data_batch_1{end}").exists() for end in (".bin", ".bin.gz", ".png"))
        return _cifar10(place, int(name.split("-")[1])) if there else None
    file = place / f"{base}.npz"
    if not file.is_file():
        return None
    return READERS[base](file)


def parts_of_groups(groups: IntArray, parts: int = PARTS, seed: int = 0) -> IntArray:
    """Return the part of each case: whole groups, dealt out in random order to the smallest part.

    >>> parts_of_groups(np.array([7, 7, 3, 3, 5, 5]), parts=3).tolist() != [0] * 6
    True
    """
    names, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled, part = np.zeros(parts, dtype=int), np.zeros(len(names), dtype=int)
    for group in order:
        part[group] = int(np.argmin(filled))
        filled[part[group]] += sizes[group]
    return part[codes.reshape(-1)]


def near_duplicates(images: NDArray[np.uint8]) -> IntArray:
    """Return a group for each grey image: those that look the same at 16 x 16 are in one.

    >>> random = np.random.default_rng(0).integers(0, 255, (2, 32, 32)).astype(np.uint8)
    >>> near_duplicates(np.stack([random[0], random[1], random[0]])).tolist()
    [0, 1, 0]
    """
    cases, height, width = images.shape
    small = images.reshape(cases, 16, height // 16, 16, width // 16).mean(axis=(2, 4))
    flat = small.reshape(cases, -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    group = np.arange(cases)
    for a, b in np.argwhere(np.triu(flat @ flat.T > ALIKE, 1)):
        group[group == group[b]] = group[a]
    return np.unique(group, return_inverse=True)[1]


def _crossed(images: NDArray[np.uint8], labels: IntArray, groups: IntArray) -> Problem:
    part = parts_of_groups(groups)
    folds = []
    for i in range(PARTS):
        test, validation = part == i, part == (i + 1) % PARTS
        folds.append(Fold(*map(np.flatnonzero, (~(test | validation), validation, test))))
    codes = np.unique(groups, return_inverse=True)[1]
    return Problem(images, labels.astype(np.int64), tuple(folds), codes)


def _busi(file: Path) -> Problem:
    with np.load(file, allow_pickle=False) as stored:
        images, labels = stored["images"], stored["labels"]
    return _crossed(images, labels, near_duplicates(images))


def _pocus(file: Path) -> Problem:
    with np.load(file, allow_pickle=False) as stored:
        return _crossed(stored["images"], stored["labels"], stored["source"])


def _covid_ct(file: Path) -> Problem:
    with np.load(file, allow_pickle=False) as stored:
        patient, paper = stored["patient"], stored["paper"]
        groups = np.where(patient != "", patient, paper)
        alone = groups == ""
        groups = np.where(alone, np.char.add("image ", np.arange(len(groups)).astype(str)), groups)
        return _crossed(stored["images"], stored["labels"], groups)


def _medmnist(file: Path, *, colours: bool = False) -> Problem:
    data = read_medmnist(file)
    if data.train.images.ndim != 3 + colours or data.train.labels.ndim != 1:
        raise InvalidInputError(
            f"{file.name}: must hold {'coloured' if colours else 'grey'} images with one class "
            f"each; got images {data.train.images.shape}, labels {data.train.labels.shape}"
        )
    parts = (data.train, data.validation, data.test)
    ends = np.cumsum([len(part.labels) for part in parts])
    fold = Fold(*np.split(np.arange(ends[-1]), ends[:-1]))
    images = np.concatenate([part.images for part in parts])
    return Problem(images, np.concatenate([part.labels for part in parts]), (fold,))


def _split_by_name(file: Path) -> Problem:
    """Read an official file of MedMNIST, or a copy in one piece with a name of the part per image.

    Of the latter, a lesion that is photographed among the test images trains nothing and chooses
    nothing; the official files do not say which lesion it is.
    """
    with np.load(file, allow_pickle=False) as stored:
        if "train_images" in stored.files:
            return _medmnist(file, colours=True)
        if missing := [name for name in ("images", "labels", "split") if name not in stored.files]:
            raise InvalidInputError(
                f"{file.name}: must be a file of MedMNIST, or have the arrays images, labels and "
                f"split; {', '.join(missing)} missing"
            )
        labels, split = stored["labels"].astype(np.int64), stored["split"]
        groups = stored["lesion_id"] if "lesion_id" in stored.files else None
        images = stored["images"]
    usable = np.ones(len(labels), dtype=bool)
    if groups is not None:
        usable = (split == "test") | ~np.isin(groups, groups[split == "test"])
        groups = np.unique(groups, return_inverse=True)[1]
    fold = Fold(*(np.flatnonzero(usable & (split == part)) for part in ("train", "val", "test")))
    return Problem(images, labels, (fold,), groups)


def _cifar10(place: Path, number: int) -> Problem:
    """Return the first images of the first batch, its last to choose with, the first to judge by.

    The batches of CIFAR-10 are in random order.
    """
    train, test = read_cifar10(place, "train"), read_cifar10(place, "test")
    chosen = [np.arange(number), np.arange(10_000 - CIFAR_VALIDATION, 10_000)]
    images = np.concatenate([train.images[np.concatenate(chosen)], test.images[:CIFAR_TEST]])
    labels = np.concatenate([train.classes[np.concatenate(chosen)], test.classes[:CIFAR_TEST]])
    ends = [number, number + CIFAR_VALIDATION]
    return Problem(images, labels, (Fold(*np.split(np.arange(len(labels)), ends)),))


READERS: dict[str, Callable[[Path], Problem]] = {
    "breastmnist": _medmnist,
    "pneumoniamnist": _medmnist,
    "busi": _busi,
    "pocus": _pocus,
    "covid_ct": _covid_ct,
    "retinamnist": _split_by_name,
    "dermamnist": _split_by_name,
}
