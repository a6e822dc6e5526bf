"""Images that several people outlined: lung nodules of LIDC-IDRI and cells of BU-BIL.

Both are read from NPZ files of 2-D images with one mask per rater. Neither comes with raterwise.
LIDC-IDRI is CC BY 3.0 (`raterwise.datasets.lidc.CITATION`); BU-BIL is Gurari et al., "How to
collect segmentations for biomedical images?", WACV 2015, https://doi.org/10.1109/WACV.2015.160.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets.sheets import files_in, read_npz, required, texts
from raterwise.errors import InvalidInputError, missing_extra
from raterwise.io.files import write_npz_atomically
from raterwise.rules import choose, positive_integer
from raterwise.types import Array


@dataclass(frozen=True, eq=False)
class OutlinedImages:
    """N grey images of one size, each outlined by up to R raters.

    Attributes
    ----------
    name : str
        Name of the data set.
    images : array of shape (N, H, W)
        Unsigned bytes.
    masks : array of shape (N, R, H, W)
        1 inside the outline. Rater r of image i counts where r < num_raters[i].
    num_raters : array of shape (N,)
        Number of raters who outlined each image.
    patients : array of str of shape (N,)
        The patient of each image; keep a patient's images on one side of a split.
    strata : array of shape (N,)
        Kinds of image that every fold should have its share of.
    names : tuple of str
        Name of each image.

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
            The image.

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
    datasets.convert_lidc_nodules : makes the file from the official ones.
    datasets.read_lidc_ratings : the readers' ratings of the nodules.

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
    datasets.convert_bubil_cells : makes the file from the official ones.
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


def convert_bubil_cells(
    folder: str | PathLike[str],
    out: str | PathLike[str],
    inside: Literal["dark", "bright"],
    *,
    size: int = 128,
) -> Path:
    """Write the file that `read_bubil_cells` reads, from the folders of BU-BIL.

    Parameters
    ----------
    folder : str or path
        Holds BU-BIL_Dataset1, BU-BIL_Dataset3 … as published, each with RawImages and, somewhere
        below it, a folder of masks per expert and tool, such as Person1_Amira. A mask is called as
        its image is, with or without ``seg_`` before it. Images that somebody did not outline are
        left out.
    out : str or path
        The NPZ file to write.
    inside : {"dark", "bright"}
        Which pixels of a mask are the cell. Look at one: the collections do not agree, and a
        program that guessed would sometimes take the background for the cell.
    size : int, default 128
        Pixels of a side; images are shrunk to it, masks by their nearest pixel.

    Returns
    -------
    Path
        That file. Needs the extra "imaging".

    See Also
    --------
    datasets.read_bubil_cells : reads it.

    Examples
    --------
    >>> from PIL import Image
    >>> place = getfixture("tmp_path") / "BU-BIL_Dataset1"
    >>> for name in ("RawImages", "Person1_Amira", "Person1_ImageJ"):
    ...     (place / name).mkdir(parents=True)
    ...     Image.new("L", (9, 9), 255).save(place / name / "B01.png")
    >>> file = convert_bubil_cells(place.parent, place.parent / "cells.npz", "bright", size=4)
    >>> read_bubil_cells(file).masks.shape
    (1, 2, 4, 4)
    """
    choose("inside", inside, ("dark", "bright"))
    positive_integer("size", size)
    found = required(folder, "folder").glob("BU-BIL_Dataset*")
    sets = sorted(path for path in found if path.is_dir())  # not the archives beside them
    images, masks, names, numbers = [], [], [], []
    raters = sorted({p.name for own in sets for p in own.rglob("Person*_*") if p.is_dir()})
    for own in sets:
        drawn = [_masks_of(own, rater) for rater in raters]
        for file in files_in(own / "RawImages"):
            if not drawn or any(file.stem not in by_name for by_name in drawn):
                continue
            images.append(_grey(file, size))
            outlined = np.stack([_grey(by_name[file.stem], size, mask=True) for by_name in drawn])
            masks.append((outlined > 127) if inside == "bright" else (outlined <= 127))
            names.append(file.stem)
            numbers.append(int(re.sub(r"[^0-9]", "", own.name) or 0))
    if not images:
        raise InvalidInputError(
            f"{folder}: must hold BU-BIL_Dataset… with RawImages and masks in Person1_Amira …; "
            f"found {len(sets)} collections and {len(raters)} raters"
        )
    arrays: dict[str, Any] = {
        "images": np.stack(images),
        "masks": np.stack(masks).astype(np.uint8),
        "name": texts(names),
        "dataset": np.array(numbers),
        "raters": texts(raters),
    }
    return write_npz_atomically(Path(out), arrays)


def _masks_of(place: Path, rater: str) -> dict[str, Path]:
    """Return a rater's masks by the name of the image, wherever the folder lies."""
    folders = [path for path in place.rglob(rater) if path.is_dir()]
    return {f.stem.removeprefix("seg_"): f for folder in folders for f in files_in(folder)}


def _grey(file: Path, size: int, *, mask: bool = False) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("convert_bubil_cells: pictures need Pillow", "imaging") from error
    way = Image.Resampling.NEAREST if mask else Image.Resampling.BOX
    with Image.open(file) as picture:
        return np.asarray(picture.convert("L").resize((size, size), way))


def _arrays(path: str | PathLike[str], names: tuple[str, ...]) -> dict[str, Array]:
    arrays = read_npz(path)
    if missing := [name for name in names if name not in arrays]:
        raise InvalidInputError(f"{path}: must have the arrays {', '.join(missing)}")
    return {name: arrays[name] for name in names}


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
