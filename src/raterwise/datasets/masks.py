"""Images that several people outlined: lung nodules of LIDC-IDRI and cells of BU-BIL.

Both are read from NPZ files of 2-D images with one mask per rater. Neither comes with raterwise.
LIDC-IDRI is CC BY 3.0 (`raterwise.datasets.lidc.CITATION`); BU-BIL is Gurari et al., "How to
collect segmentations for biomedical images?", WACV 2015, https://doi.org/10.1109/WACV.2015.160.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

__all__ = ["OutlinedImages", "read_bubil_cells", "read_lidc_nodules"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class OutlinedImages:
    """N grey images of one size, each outlined by up to R raters.

    Attributes
    ----------
    name : str
        Of the data set.
    images : array of shape (N, H, W)
        Of unsigned bytes.
    masks : array of shape (N, R, H, W)
        1 inside the outline. Rater r of image i counts where r < num_raters[i].
    num_raters : array of shape (N,)
        How many outlined each image.
    patients : array of str of shape (N,)
        Whose image it is; images of one patient must not be on both sides of a split.
    strata : array of shape (N,)
        Kinds of image that every fold should have its share of.
    names : tuple of str
        What an image is called.

    See Also
    --------
    datasets.read_lidc_nodules, datasets.read_bubil_cells : read them.

    Examples
    --------
    >>> images, masks = np.zeros((1, 2, 2), np.uint8), np.ones((1, 3, 2, 2), np.uint8)
    >>> who = np.array(["p"])
    >>> cells = OutlinedImages("cells", images, masks, np.array([2]), who, np.array([0]), ("a",))
    >>> len(cells), cells.masks_of(0).shape
    (1, (2, 2, 2))
    """

    name: str
    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    num_raters: NDArray[np.int64]
    patients: NDArray[np.str_]
    strata: NDArray[np.int64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.images)

    def masks_of(self, image: int) -> NDArray[np.uint8]:
        """Return the masks of the raters who outlined an image.

        Parameters
        ----------
        image : int
            Which image.

        Returns
        -------
        array of shape (raters, H, W)
            1 inside the outline.

        Examples
        --------
        >>> file = getfixture("tmp_path") / "cells.npz"
        >>> masks = np.ones((1, 3, 2, 2), np.uint8)
        >>> np.savez(file, images=masks[:, 0], masks=masks, name=["a"], dataset=[0])
        >>> read_bubil_cells(file).masks_of(0).shape
        (3, 2, 2)
        """
        return self.masks[image, : self.num_raters[image]]


def read_lidc_nodules(path: str | PathLike[str]) -> OutlinedImages:
    """Return the nodules of an NPZ with one slice of each LIDC-IDRI nodule.

    A radiologist who did not mark the nodule has no mask, one whose outline does not reach the
    slice has an empty one. Mask r of one nodule and of the next are of different people.

    Parameters
    ----------
    path : str or path
        Of a file with the arrays images (N, H, W) uint8; masks (N, R H W / 8), the bits of up to
        R = 4 masks an image, packed by `numpy.packbits`; n_raters (N,), whose first masks count;
        patient (N,); nodule (N,), its number within the patient.

    Returns
    -------
    OutlinedImages
        One image per nodule.

    See Also
    --------
    datasets.read_lidc_ratings : what the readers say of the nodules.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "nodules.npz"
    >>> masks = np.packbits(np.ones((1, 2 * 4 * 4), np.uint8), axis=1)
    >>> images = np.zeros((1, 4, 4), np.uint8)
    >>> np.savez(file, images=images, masks=masks, n_raters=[2], patient=["p"], nodule=[0])
    >>> read_lidc_nodules(file).names
    ('p-n0',)
    """
    table = _arrays(path, ("images", "masks", "n_raters", "patient", "nodule"))
    images, packed = table["images"], table["masks"]
    if images.ndim != 3 or packed.ndim != 2 or packed.shape[1] * 8 % images[0].size:
        raise InvalidInputError(
            f"{path}: images must be (N, H, W) and masks (N, R H W / 8) packed bits; "
            f"got shapes {images.shape} and {packed.shape}"
        )
    masks = np.unpackbits(packed, axis=1).reshape(len(images), -1, *images.shape[1:])
    where = zip(table["patient"], table["nodule"], strict=True)
    return _checked(
        path,
        "LIDC-IDRI nodules",
        images,
        masks,
        table["n_raters"],
        table["patient"],
        np.zeros(len(images)),
        [f"{patient}-n{nodule}" for patient, nodule in where],
    )


def read_bubil_cells(path: str | PathLike[str]) -> OutlinedImages:
    """Return the cells of an NPZ of BU-BIL images: every image is a patient of its own.

    Parameters
    ----------
    path : str or path
        Of a file with the arrays images (N, H, W) uint8; masks (N, R, H, W) of 0 and 1; name (N,);
        dataset (N,), the collection that the image comes from. Masks are of five experts, with two
        tools each.

    Returns
    -------
    OutlinedImages
        One image per cell.

    See Also
    --------
    datasets.read_lidc_nodules : outlines of lung nodules.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "cells.npz"
    >>> masks = np.ones((1, 3, 2, 2), np.uint8)
    >>> np.savez(file, images=masks[:, 0], masks=masks, name=["a"], dataset=[0])
    >>> read_bubil_cells(file).num_raters
    array([3])
    """
    table = _arrays(path, ("images", "masks", "name", "dataset"))
    images, masks = table["images"], table["masks"]
    if images.ndim != 3 or masks.ndim != 4 or masks.shape[2:] != images.shape[1:]:
        raise InvalidInputError(
            f"{path}: images must be (N, H, W) and masks (N, R, H, W); "
            f"got shapes {images.shape} and {masks.shape}"
        )
    raters = np.full(len(images), masks.shape[1])
    names = table["name"]
    return _checked(
        path, "BU-BIL cells", images, masks, raters, names, table["dataset"], list(names)
    )


def _arrays(path: str | PathLike[str], names: tuple[str, ...]) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as file:
        if missing := [name for name in names if name not in file.files]:
            raise InvalidInputError(f"{path}: must have the arrays {', '.join(missing)}")
        return {name: file[name] for name in names}


def _checked(
    path: str | PathLike[str],
    name: str,
    images: Array,
    masks: Array,
    raters: Array,
    patients: Array,
    strata: Array,
    names: list[str],
) -> OutlinedImages:
    if images.dtype != np.uint8:
        raise InvalidInputError(f"{path}: images must be uint8; got {images.dtype}")
    lengths = {len(part) for part in (images, masks, raters, patients, strata)}
    if len(lengths) > 1 or not len(images):
        raise InvalidInputError(f"{path}: arrays must be of the same images; got {sorted(lengths)}")
    if ((raters < 1) | (raters > masks.shape[1])).any():
        bad = int(np.flatnonzero((raters < 1) | (raters > masks.shape[1]))[0])
        raise InvalidInputError(
            f"{path}: raters of an image must be 1 … {masks.shape[1]}; "
            f"image {bad} has {raters[bad]}"
        )
    if masks.max() > 1:
        raise InvalidInputError(f"{path}: masks must be 0 or 1; got {masks.max()}")
    return OutlinedImages(
        name,
        images,
        masks.astype(np.uint8, copy=False),
        raters.astype(np.int64),
        patients.astype(np.str_),
        strata.astype(np.int64),
        tuple(str(each) for each in names),
    )
