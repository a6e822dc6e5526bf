"""Mix-MNIST and Mix-CIFAR-10: images that are mixed of two, whose class probabilities are known.

LH's authors publish which images are mixed, in which ratio, and the labels that they drew from the
ratio (https://github.com/m1m0r1/lh_calib, MIT licence). So the true class probabilities of every
case stand beside what the estimators say of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets import read_cifar10, read_mixed, read_mnist
from raterwise.datasets.sheets import find_file
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels

__all__ = [
    "DATA",
    "VALIDATION_LABELS",
    "MixedTable",
    "TestLabels",
    "mixed_images",
    "original_images",
    "read_mixed_table",
    "test_labels",
    "true_probabilities",
    "validation_labels",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

DATA = ("mixed_mnist", "mixed_cifar10")
VALIDATION_LABELS = (2, 5)
"""How many labels each validation case has when calibrators are fitted."""
CLASSES = 10


@dataclass(frozen=True, eq=False)
class MixedTable:
    """One of the authors' files: how each case is mixed, and its labels."""

    counts: IntArray
    """(N, 10): the label histogram."""
    sources: IntArray
    """(N, 2): rows of the original images, those to train on first; the same twice if unmixed."""
    classes: IntArray
    """(N, 2): the classes of those images."""
    ratio: FloatArray
    """(N,): the share of the first image, and the probability of its class."""
    partition: NDArray[np.str_]
    """(N,): train, valid or test."""

    def part(self, name: str) -> MixedTable:
        """Return the cases of one partition."""
        rows = np.flatnonzero(self.partition == name)
        if not len(rows):
            raise InvalidInputError(f"partition: must be one that the file has; got {name!r}")
        return MixedTable(
            self.counts[rows],
            self.sources[rows],
            self.classes[rows],
            self.ratio[rows],
            self.partition[rows],
        )


@dataclass(frozen=True, eq=False)
class TestLabels:
    """What the test cases are judged by."""

    __test__ = False  # pytest: no test, whatever its name

    counts: IntArray
    """(N, 10): ten labels of each case."""
    expert: IntArray
    """(N,): the one of them that the authors drew for the posterior; the other nine judge it."""
    classes: IntArray
    """(N, 2): the classes of the two images that are mixed."""
    ratio: FloatArray
    """(N,): the share of the first."""

    @cached_property
    def truth(self) -> FloatArray:
        """(N, 10): the true class probabilities."""
        return true_probabilities(self.classes, self.ratio)

    def first(self, number: int) -> TestLabels:
        """Return the first cases."""
        rows = slice(number)
        return TestLabels(
            self.counts[rows], self.expert[rows], self.classes[rows], self.ratio[rows]
        )


def read_mixed_table(path: str | PathLike[str]) -> MixedTable:
    """Return a table such as mixed_mnist.t1_v2.txt.gz: columns divided by tabs, with a head."""
    read = read_mixed(path)
    assert read.labels is not None and read.parts is not None
    counts = np.asarray(read.labels.counts, np.int64)
    sources, classes, ratio = (read.columns[name] for name in ("sources", "classes", "ratio"))
    return MixedTable(counts, sources, classes, ratio, read.parts)


def true_probabilities(classes: IntArray, ratio: FloatArray) -> FloatArray:
    """Return (N, 10): `ratio` for the first class and the rest for the second.

    >>> true_probabilities(np.array([[1, 0]]), np.array([0.75]))[0, :3]
    array([0.25, 0.75, 0.  ])
    """
    truth = np.zeros((len(classes), CLASSES))
    rows = np.arange(len(classes))
    truth[rows, classes[:, 0]] += ratio
    truth[rows, classes[:, 1]] += 1 - ratio
    return truth


def test_labels(folder: str | PathLike[str], name: str) -> TestLabels:
    """Return the test labels of a data set, and the split of them that the authors published."""
    place = Path(folder) / name
    test = read_mixed_table(find_file(place, f"{name}.t1_v2.txt")).part("test")
    drawn, left = (
        read_mixed_table(find_file(place, f"{name}.test_split.n1_s1.{part}.txt"))
        for part in ("sam", "rem")
    )
    if not np.array_equal(drawn.counts + left.counts, test.counts):
        raise InvalidInputError(f"{name}: the labels of sam and rem must add to those of t1_v2")
    if (drawn.counts.sum(axis=1) != 1).any():
        raise InvalidInputError(f"{name}: sam must hold one label of each case")
    return TestLabels(test.counts, drawn.counts.argmax(axis=1), test.classes, test.ratio)


test_labels.__test__ = False  # type: ignore[attr-defined]


def validation_labels(folder: str | PathLike[str], name: str) -> dict[int, Labels]:
    """Return the validation labels that calibrators are fitted to, by their number."""
    place = Path(folder) / name
    tables = {
        number: read_mixed_table(find_file(place, f"{name}.t1_v{number}.txt")).part("valid")
        for number in VALIDATION_LABELS
    }
    return {number: Labels.from_counts(table.counts) for number, table in tables.items()}


def original_images(folder: str | PathLike[str], name: str) -> NDArray[np.uint8]:
    """Return the images that are mixed, (N, C, H, W): those to train on, then the test images."""
    place = Path(folder)
    read: Any = read_mnist if name == "mixed_mnist" else read_cifar10
    images = np.concatenate([read(place, part).images for part in ("train", "test")])
    return images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)


def mixed_images(images: NDArray[np.uint8], table: MixedTable) -> NDArray[np.float32]:
    """Return the images of a table, 0 … 255, mixed in its ratios and not rounded."""
    if table.sources.min() < 0 or table.sources.max() >= len(images):
        raise InvalidInputError(
            f"images: must be all that are mixed, {table.sources.max() + 1} or more; "
            f"got {len(images)}"
        )
    share = table.ratio.astype(np.float32)[:, None, None, None]
    first, second = (images[table.sources[:, i]] for i in (0, 1))
    # Of one image twice, exactly that image.
    return np.asarray(second + share * (first.astype(np.float32) - second))
