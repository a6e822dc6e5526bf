"""MNIST, and other images in its idx format.

MNIST (LeCun et al. 1998, https://doi.org/10.1109/5.726791) has 60,000 handwritten digits to train
on and 10,000 to test with; Fashion-MNIST (Xiao et al. 2017, https://arxiv.org/abs/1708.07747) has
clothes in the same format. Neither comes with raterwise.
"""

from __future__ import annotations

import gzip
import math
import zlib
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.rules import choose

UNSIGNED_BYTE = 0x08
PARTS = {"train": "train", "test": "t10k"}


class LabelledImages(NamedTuple):
    """Images of 8 bits and their classes, in the order of the files.

    Attributes
    ----------
    images : array of shape (N, H, W), or (N, H, W, 3) in colour
        Of unsigned bytes.
    classes : array of shape (N,)
        What each image shows.

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


def find_file(folder: str | PathLike[str], *names: str) -> Path:
    """Return the first of `names`, each plain or with .gz, that a folder holds."""
    for candidate in _candidates(folder, *names):
        if candidate.is_file():
            return candidate
    raise InvalidInputError(
        f"folder: {folder} must hold {' or '.join(names)} (or the same with .gz); it does not"
    )


def has_file(folder: str | PathLike[str], *names: str) -> bool:
    """Tell whether `find_file` would find one."""
    return any(candidate.is_file() for candidate in _candidates(folder, *names))


def _candidates(folder: str | PathLike[str], *names: str) -> list[Path]:
    return [Path(folder) / f"{name}{suffix}" for name in names for suffix in ("", ".gz")]


def read_bytes(path: Path) -> bytes:
    """Return what a file holds, unpacked where its name ends in .gz."""
    if not path.is_file():
        raise InvalidInputError(f"{path}: no such file")
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(f"{path}: must be a whole gzip file; {error}") from error


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
        Of the shape that the file says.

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
        train-images-idx3-ubyte or train-images-idx3-ubyte.gz.
    part : {"train", "test"}, default "train"
        Which images.

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
    name = PARTS[choose("part", part, tuple(PARTS))]
    files = [find_file(folder, f"{name}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")]
    images, classes = (read_idx(file) for file in files)
    if images.ndim != 3 or classes.shape != images.shape[:1]:
        raise InvalidInputError(
            f"{files[0].name}: must hold images (N, H, W) and {files[1].name} their N classes; "
            f"got {images.shape} and {classes.shape}"
        )
    return LabelledImages(images, classes.astype(np.int64))
