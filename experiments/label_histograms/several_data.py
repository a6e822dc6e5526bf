"""What stands in for LH's blood cells (MDS): images that several people labelled.

CIFAR-10N has three people's labels of each training image, CIFAR-10H about fifty of each test
image; LIDC-IDRI has the grades of malignancy that up to four radiologists gave to a nodule. As in
LH appendix F.3, networks learn from one label of each image or from all there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.nodules import GRADES, folds_of, one_rating, read_nodules
from raterwise.datasets import read_cifar10h, read_cifar10n
from raterwise.errors import InvalidInputError

__all__ = [
    "CLASSES",
    "STUDIES",
    "CifarLabels",
    "NoduleLabels",
    "cifar_labels",
    "counted",
    "family",
    "nodule_labels",
    "one_label",
]

IntArray = NDArray[np.int64]

STUDIES = ("cifar10n_1", "cifar10n_3", "lidc_1", "lidc_all")
"""What is learnt, and from how many labels of each image."""
CLASSES = {"cifar10n": 10, "lidc": GRADES}
CIFAR_CASES = 40_000
"""Of the training images of CIFAR-10, the first so many: 6/8 to learn, 1/8 to validate, 1/8 to test
by the same kind of raters."""
NODULES, CIFAR10N, CIFAR10H = "lidc_nodules.npz", "cifar10n.npz", "cifar10h_counts.npy"


def family(study: str) -> str:
    """Return "cifar10n" or "lidc".

    >>> family("lidc_all")
    'lidc'
    """
    if study not in STUDIES:
        raise InvalidInputError(f"study: must be of {', '.join(STUDIES)}; got {study!r}")
    return study.partition("_")[0]


@dataclass(frozen=True, eq=False)
class CifarLabels:
    """The three labels of the training images of CIFAR-10, and how these are divided."""

    ratings: IntArray
    """(N, 3)."""

    def part(self, name: str) -> slice:
        """Return which training images are "train", "valid" or "same"."""
        cases = min(len(self.ratings), CIFAR_CASES)
        edges = (0, cases * 6 // 8, cases * 7 // 8, cases)
        place = ("train", "valid", "same").index(name)
        return slice(edges[place], edges[place + 1])

    def counts(self, name: str) -> IntArray:
        """Return the histograms of a part."""
        return counted(self.ratings[self.part(name)], CLASSES["cifar10n"])


@dataclass(frozen=True, eq=False)
class NoduleLabels:
    """The grades of nodules, and the folds of their patients."""

    ratings: IntArray
    """(N, R), -1 where there is none."""
    patients: NDArray[np.str_]
    folds: IntArray

    def rows(self, fold: int) -> dict[str, IntArray]:
        """Return which nodules the network of a fold learns, is validated and judged by."""
        test, valid = self.folds == fold, self.folds == (fold + 1) % (self.folds.max() + 1)
        parts = {"train": ~test & ~valid, "valid": valid, "test": test}
        return {name: np.flatnonzero(part) for name, part in parts.items()}

    @property
    def counts(self) -> IntArray:
        """(N, 5): the histograms."""
        return counted(self.ratings, CLASSES["lidc"])


def cifar_labels(data: str | PathLike[str]) -> CifarLabels:
    """Return the labels of cifar10n.npz."""
    return CifarLabels(np.asarray(read_cifar10n(Path(data) / CIFAR10N).ratings, np.int64))


def cifar10h(data: str | PathLike[str]) -> IntArray:
    """Return the histograms of the test images, of all people of CIFAR-10H."""
    return read_cifar10h(Path(data) / CIFAR10H)


def nodule_labels(data: str | PathLike[str]) -> tuple[NoduleLabels, NDArray[np.uint8]]:
    """Return the grades of malignancy of lidc_nodules.npz, and the slices."""
    nodules = read_nodules(Path(data) / NODULES, "malignancy")
    labels = NoduleLabels(nodules.ratings, nodules.patients, folds_of(nodules.patients))
    return labels, nodules.images


def counted(ratings: NDArray[Any], classes: int) -> IntArray:
    """Return the histograms of ratings (N, R), of which those below 0 are missing.

    >>> counted(np.array([[1, 1, -1]]), 3)
    array([[0, 2, 0]])
    """
    return np.asarray((ratings[:, :, None] == np.arange(classes)).sum(axis=1), np.int64)


def one_label(ratings: IntArray, classes: int) -> IntArray:
    """Return histograms of one label of each case, drawn at random, the same for all networks."""
    return counted(one_rating(ratings)[:, None], classes)
