"""Images as arrays in files: MNIST and what has its format, SVHN, MedMNIST.

MNIST: LeCun et al. 1998, https://doi.org/10.1109/5.726791, 60,000 handwritten digits to train on
and 10,000 to test with. Fashion-MNIST: Xiao et al. 2017, https://arxiv.org/abs/1708.07747, clothes
in the same format. SVHN: Netzer et al. 2011, http://ufldl.stanford.edu/housenumbers, digits of
house numbers in photographs, for non-commercial use. MedMNIST: Yang et al., Scientific Data 10, 41
(2023), https://doi.org/10.1038/s41597-022-01721-8, small medical images in the split that everybody
uses, CC BY 4.0 but for DermaMNIST. None of them comes with raterwise.
"""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_integer_array
from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import find_file, has_file, read_bytes, read_npz, required
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.rules import choose

UNSIGNED_BYTE = 0x08
MNIST_PARTS = {"train": "train", "test": "t10k"}
SVHN_SHAPE = (32, 32, 3)
TEN = 10
"""The class that SVHN gives the digit 0."""
MEDMNIST_PARTS = ("train", "val", "test")


class LabelledImages(NamedTuple):
    """Images of 8 bits and their classes, in the order of the files.

    Attributes
    ----------
    images : array of shape (N, H, W), or (N, H, W, 3) in colour
        Unsigned bytes.
    classes : array of shape (N,)
        Class of each image.

    See Also
    --------
    datasets.read_mnist, datasets.read_cifar10 : read them.

    Examples
    --------
    >>> LabelledImages(np.zeros((2, 28, 28), np.uint8), np.array([7, 1])).classes
    array([7, 1])
    """

    images: NDArray[np.uint8]
    classes: NDArray[np.int64]


def read_idx(path: str | PathLike[str]) -> NDArray[np.uint8]:
    """Return the array in an idx file of unsigned bytes, plain or gzip.

    The format: two zero bytes, the type (8 for unsigned bytes), the number of axes, the length of
    each axis as four bytes with the highest first, and then the values.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    array of uint8
        With the shape given in the file.

    See Also
    --------
    datasets.read_mnist : the images and labels of MNIST, from such files.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "two-by-three"
    >>> _ = file.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
    >>> read_idx(file)
    array([[1, 2, 3],
           [4, 5, 6]], dtype=uint8)
    """
    file = Path(path)
    content = read_bytes(file)
    if len(content) < 4 or content[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise InvalidInputError(
            f"{file}: must begin with the bytes 00 00 08, as idx files of 8 bits do; "
            f"got {content[:3].hex(' ')}"
        )
    axes = content[3]
    header = 4 + 4 * axes
    if len(content) < header:
        raise InvalidInputError(f"{file}: ends within its header of {header} bytes")
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", axes, offset=4))
    if len(content) - header != math.prod(shape):
        raise InvalidInputError(
            f"{file}: an array of {shape} must have {math.prod(shape)} bytes; "
            f"got {len(content) - header}"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def read_mnist(
    folder: str | PathLike[str], part: Literal["train", "test"] = "train"
) -> LabelledImages:
    """Return the images and digits of MNIST.

    Parameters
    ----------
    folder : str or path
        Holds the four files under the names that their authors gave them, such as
        train-images-idx3-ubyte or train-images-idx3-ubyte.gz; train-images.idx3-ubyte, as some
        programs unpack them, is the same.
    part : {"train", "test"}, default "train"
        The images to read.

    Returns
    -------
    LabelledImages
        Images (N, 28, 28) and digits (N,).

    See Also
    --------
    datasets.read_idx : one of the files.

    Examples
    --------
    >>> folder, one = getfixture("tmp_path"), [0, 0, 0, 1]
    >>> pixel, digit = [0, 0, 8, 3, *one, *one, *one, 255], [0, 0, 8, 1, *one, 7]
    >>> _ = (folder / "t10k-images-idx3-ubyte").write_bytes(bytes(pixel))
    >>> _ = (folder / "t10k-labels-idx1-ubyte").write_bytes(bytes(digit))
    >>> read_mnist(folder, "test").classes
    array([7])
    """
    name = MNIST_PARTS[choose("part", part, tuple(MNIST_PARTS))]
    kinds = (("images", "idx3"), ("labels", "idx1"))
    files = [_idx_file(folder, f"{name}-{kind}", f"{axes}-ubyte") for kind, axes in kinds]
    images, classes = (read_idx(file) for file in files)
    if images.ndim != 3 or classes.shape != images.shape[:1]:
        raise InvalidInputError(
            f"{files[0].name}: must hold images (N, H, W) and {files[1].name} their N classes; "
            f"got {images.shape} and {classes.shape}"
        )
    return LabelledImages(images, classes.astype(np.int64))


def _idx_file(folder: str | PathLike[str], name: str, ending: str) -> Path:
    """Return a file whose ending is divided by a hyphen or, where that is not there, by a dot."""
    dotted = f"{name}.{ending}"
    return find_file(folder, dotted if has_file(folder, dotted) else f"{name}-{ending}")


def read_svhn(
    folder: str | PathLike[str], part: Literal["train", "test", "extra"] = "test"
) -> Dataset:
    """Return the cropped digits of SVHN, "format 2".

    Parameters
    ----------
    folder : str or path
        Holds train_32x32.mat, test_32x32.mat or extra_32x32.mat as published: MATLAB files with X
        (32, 32, 3, N) of bytes and y (N, 1) of classes 1 … 10, where 10 is the digit 0.
    part : {"train", "test", "extra"}, default "test"
        The images to read.

    Returns
    -------
    Dataset
        Images (N, 32, 32, 3) and one label per image, the digits 0 … 9.

    See Also
    --------
    datasets.read_mnist : handwritten digits.

    Examples
    --------
    >>> from scipy.io import savemat
    >>> X, y = np.zeros((32, 32, 3, 2), np.uint8), np.array([[10], [7]])
    >>> savemat(getfixture("tmp_path") / "test_32x32.mat", {"X": X, "y": y})
    >>> read_svhn(getfixture("tmp_path")).labels.majority()
    array([0, 7])
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    choose("part", part, ("train", "test", "extra"))
    file = required(Path(folder) / f"{part}_32x32.mat")
    try:
        # Numbers only: nothing of MATLAB's objects, functions or structures is made.
        arrays = loadmat(file, variable_names=("X", "y"), chars_as_strings=False)
    except (MatReadError, LookupError, ValueError, TypeError, RuntimeError, OSError) as error:
        raise InvalidInputError(f"{file}: must be a MATLAB file of version 5; {error}") from error
    if missing := [name for name in ("X", "y") if name not in arrays]:
        raise InvalidInputError(f"{file}: must hold X and y; {', '.join(missing)} missing")
    images = arrays["X"]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != SVHN_SHAPE:
        raise InvalidInputError(
            f"{file}: X must be bytes (32, 32, 3, N); got {images.dtype} {images.shape}"
        )
    classes = as_integer_array(arrays["y"].reshape(-1), f"{file.name}: y", ndim=1).astype(np.int64)
    if len(classes) != images.shape[3] or not len(classes):
        raise InvalidInputError(
            f"{file}: y must have a class per image; got {len(classes)} for {images.shape[3]}"
        )
    if classes.min() < 1 or classes.max() > TEN:
        raise InvalidInputError(
            f"{file}: y must be classes 1 … 10; got {classes.min()} … {classes.max()}"
        )
    return Dataset(
        "SVHN",
        tuple(str(i) for i in range(len(classes))),
        Labels.from_classes(classes % TEN, TEN, class_names=[str(i) for i in range(TEN)]),
        parts=np.full(len(classes), part),
        images=np.ascontiguousarray(images.transpose(3, 0, 1, 2)),
    )


class MedMnistPart(NamedTuple):
    """The images of one part of the split and their labels.

    Attributes
    ----------
    images : array of shape (N, H, W), (N, H, W, 3) in colour, or (N, D, H, W) of the volumes
        Unsigned bytes.
    labels : array of shape (N,) or (N, L)
        Classes, or zeros and ones where an image has several findings.

    See Also
    --------
    datasets.read_medmnist : reads it.

    Examples
    --------
    >>> MedMnistPart(np.zeros((2, 28, 28), np.uint8), np.array([0, 1])).labels
    array([0, 1])
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


class MedMnist(NamedTuple):
    """A data set of MedMNIST in its official split.

    Attributes
    ----------
    train : MedMnistPart
        For training.
    validation : MedMnistPart
        For choosing.
    test : MedMnistPart
        For testing.

    See Also
    --------
    datasets.read_medmnist : reads it.

    Examples
    --------
    >>> part = MedMnistPart(np.zeros((2, 28, 28), np.uint8), np.array([0, 1]))
    >>> len(MedMnist(part, part, part).test.labels)
    2
    """

    train: MedMnistPart
    validation: MedMnistPart
    test: MedMnistPart


def read_medmnist(npz: str | PathLike[str]) -> MedMnist:
    """Return the contents of an official MedMNIST file: `train_images`, `train_labels`, ….

    Parameters
    ----------
    npz : str or path
        The file, such as breastmnist.npz.

    Returns
    -------
    MedMnist
        Images and labels of the three parts.

    See Also
    --------
    datasets.read_mnist : handwritten digits.

    Examples
    --------
    >>> images, labels = np.zeros((4, 28, 28), np.uint8), np.array([[0], [1], [1], [0]], np.uint8)
    >>> file = getfixture("tmp_path") / "tinymnist.npz"
    >>> np.savez(
    ...     file,
    ...     **{f"{part}_images": images for part in ("train", "val", "test")},
    ...     **{f"{part}_labels": labels for part in ("train", "val", "test")},
    ... )
    >>> read_medmnist(file).validation.labels
    array([0, 1, 1, 0])
    """
    name = Path(npz).name
    arrays = read_npz(npz)
    wanted = [f"{part}_{kind}" for part in MEDMNIST_PARTS for kind in ("images", "labels")]
    if missing := [key for key in wanted if key not in arrays]:
        raise InvalidInputError(
            f"{name}: must hold {', '.join(wanted)}; {', '.join(missing)} missing "
            f"(found: {', '.join(sorted(arrays)) or 'nothing'})"
        )
    return MedMnist(*(_part(name, arrays, part) for part in MEDMNIST_PARTS))


def _part(name: str, arrays: dict[str, NDArray[np.generic]], part: str) -> MedMnistPart:
    images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise InvalidInputError(
            f"{name}: {part}_images must be bytes (N, H, W) or (N, H, W, 3); "
            f"got {images.dtype} {images.shape}"
        )
    classes = as_integer_array(labels, f"{part}_labels", ndim=(1, 2)).astype(np.int64)
    if len(classes) != len(images) or not len(images):
        raise InvalidInputError(
            f"{name}: {part}_labels must have a row per image; "
            f"got {len(classes)} for {len(images)} images"
        )
    if classes.min() < 0:
        raise InvalidInputError(
            f"{name}: {part}_labels must not be negative; got {int(classes.min())}"
        )
    # A single column is how the official files hold one class per image.
    single = classes.ndim == 2 and classes.shape[1] == 1
    return MedMnistPart(images.astype(np.uint8), classes[:, 0] if single else classes)
