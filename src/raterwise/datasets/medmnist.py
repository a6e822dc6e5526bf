"""MedMNIST: small medical images in the split that everybody uses.

Yang et al., Scientific Data 10, 41 (2023), https://doi.org/10.1038/s41597-022-01721-8. The files
(breastmnist.npz, pneumoniamnist.npz, …; CC BY 4.0 but for DermaMNIST) do not come with raterwise.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_integer_array
from raterwise.datasets.sheets import read_npz
from raterwise.errors import InvalidInputError

PARTS = ("train", "val", "test")


class MedMnistPart(NamedTuple):
    """The images of one part of the split, and what is on them.

    Attributes
    ----------
    images : array of shape (N, H, W), (N, H, W, 3) in colour, or (N, D, H, W) of the volumes
        Of unsigned bytes.
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
        To train on.
    validation : MedMnistPart
        To choose by.
    test : MedMnistPart
        To judge with.

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
    """Return what an official file of MedMNIST holds: `train_images`, `train_labels`, ….

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
    wanted = [f"{part}_{kind}" for part in PARTS for kind in ("images", "labels")]
    if missing := [key for key in wanted if key not in arrays]:
        raise InvalidInputError(
            f"{name}: must hold {', '.join(wanted)}; {', '.join(missing)} missing "
            f"(found: {', '.join(sorted(arrays)) or 'nothing'})"
        )
    return MedMnist(*(_part(name, arrays, part) for part in PARTS))


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
