"""Images in files: NIfTI, Zarr, NPY/NPZ, PNG and TIFF, alone or as a stack of slices.

Files that belong together are checked against each other: shape, affine and orientation. Nothing
is resampled; a mismatch is an error that names both files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.io import image_files
from raterwise.io.axes import check_axes, order_of, ordered
from raterwise.io.files import check_can_write, replaced
from raterwise.io.manifests import CaseFiles
from raterwise.types import Array

SLICES = (".png", ".tif", ".tiff")


@dataclass(frozen=True, eq=False)
class Volume:
    """An image from a file, and where it lies in the patient, if the file says so."""

    path: Path
    array: Array
    affine: NDArray[np.float64] | None = None
    """(4, 4): from voxel to millimetres, of NIfTI files."""
    axes: str | None = None
    """The order of its axes, where an array's name tells it: nnU-Net's are z, y, x."""
    step: float = 0.0
    """Between its values, of scaled whole numbers: the slope of a NIfTI file."""
    located: bool = True
    """Whether a NIfTI file says where it lies; where not, its affine is made of sizes alone."""

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    @property
    def spacing(self) -> tuple[float, ...] | None:
        """The size of a voxel in mm along each axis."""
        if self.affine is None:
            return None
        return tuple(float(s) for s in np.linalg.norm(self.affine[:3, :3], axis=0))


@dataclass(frozen=True, eq=False)
class ImageSet:
    """The arrays of one case, checked against each other."""

    probabilities: Array
    """(K, *spatial), or (*spatial)."""
    masks: tuple[Array, ...]
    """Label maps, or one-hot (K, *spatial)."""
    one_hot: bool
    region: Array | None
    spacing: tuple[float, ...] | None
    affine: NDArray[np.float64] | None
    step: float = 0.0
    """Between the values that probabilities were stored as; 0 of floating-point numbers."""


def read_volume(path: str | PathLike[str]) -> Volume:
    """Return the image in a file, a Zarr store, or a folder of PNG or TIFF slices.

    Axes are as stored, except that slices are stacked along the first.

    >>> path = getfixture("tmp_path") / "image.npy"
    >>> np.save(path, np.zeros((4, 5, 6)))
    >>> read_volume(path).array.shape
    (4, 5, 6)
    """
    file = Path(path)
    if not file.exists():
        slash = "\\" in file.name and "; write / for \\, which Windows takes as well"
        raise InvalidInputError(f"{file}: there is no such file{slash or ''}")
    kind = _kind(file)
    try:
        array, affine, *more = _READERS[kind](file)
    except RaterwiseError:
        raise
    except Exception as error:  # there is no end to what readers raise on damaged files
        raise image_files.unreadable(file, error) from error
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"{file.name}: must hold numbers; got dtype {array.dtype}")
    return Volume(file, array, affine, *more)


def _kind(file: Path) -> str:
    name = file.name.lower()
    if name.endswith((".nii", ".nii.gz")):
        return "nifti"
    for suffix, kind in ((".npy", "npy"), (".npz", "npz"), (".zarr", "zarr"), (".png", "png")):
        if name.endswith(suffix):
            return kind
    if name.endswith((".tif", ".tiff")):
        return "tiff"
    if file.is_dir():
        return "slices"
    raise InvalidInputError(
        f"{file.name}: the name must end in .nii, .nii.gz, .npy, .npz, .zarr, .png, .tif or .tiff, "
        "or be a folder of PNG or TIFF slices"
    )


def _read_slices(folder: Path) -> tuple[Array, None]:
    found = [f for f in folder.iterdir() if f.suffix.lower() in SLICES]
    files = sorted((f for f in found if not f.name.startswith(".")), key=natural_order)
    if not files:
        raise InvalidInputError(f"{folder}: must hold PNG or TIFF slices; it has none")
    slices = [read_volume(f) for f in files]
    for other in slices[1:]:
        if other.array.shape != slices[0].array.shape:
            raise InvalidInputError(
                f"{slices[0].path} and {other.path}: slices must have one shape; got "
                f"{slices[0].array.shape} and {other.array.shape}"
            )
    return np.stack([volume.array for volume in slices]), None


def natural_order(file: Path) -> tuple[list[int | str], str]:
    """Return what puts slice_9 before slice_10, whatever the capitals."""
    parts = re.split(r"([0-9]+)", file.name)  # text and numbers in turn
    return [int(part) if i % 2 else part.lower() for i, part in enumerate(parts)], file.name


_READERS: dict[str, Any] = {
    "nifti": image_files.read_nifti,
    "npy": image_files.read_npy,
    "npz": image_files.read_npz,
    "zarr": image_files.read_zarr,
    "png": image_files.read_png,
    "tiff": image_files.read_tiff,
    "slices": _read_slices,
}


def read_images(files: CaseFiles) -> ImageSet:
    """Return the arrays of one case; an error names the case and the files that disagree.

    The classes of probabilities are the last axis in a NIfTI file and the first in the others.
    Masks with the shape of the probabilities, both with classes that sum to 1, are one-hot. Grey
    values of PNG and TIFF files, and unsigned integers of NPY and NPZ files, are fractions of the
    largest their type can hold; masks of 0 and that largest value are 0 and 1. Beside files that
    have a geometry, and wherever `files.axes` tells their order, the axes of arrays are brought
    into the order x, y, z.
    """
    try:
        probabilities = read_volume(files.probabilities)
        raters = [read_volume(path) for path in files.raters]
        region = None if files.mask is None else read_volume(files.mask)
        return _checked(files, *_in_one_order(files.axes, probabilities, raters, region))
    except RaterwiseError as error:
        raise type(error)(f"case {files.case}: {error}") from error


def _in_one_order(
    told: str | None, probabilities: Volume, raters: Sequence[Volume], region: Volume | None
) -> tuple[Volume, list[Volume], Volume | None]:
    """Return the images of a case with their axes in one order; it is not guessed from shapes."""
    told = None if told is None else check_axes(told)
    every = [probabilities, *raters, *([] if region is None else [region])]
    located = [volume.path for volume in every if volume.affine is not None]

    def in_order(volume: Volume) -> Volume:
        if volume.affine is not None:
            return volume
        axes = order_of(volume.path, volume.axes, told, located)
        if axes is None:
            return volume
        return replace(volume, array=ordered(volume.array, axes, volume.path))

    first, *others = (in_order(volume) for volume in every)
    return first, others[: len(raters)], None if region is None else others[-1]


def _checked(
    files: CaseFiles, probabilities: Volume, raters: Sequence[Volume], region: Volume | None
) -> ImageSet:
    first = raters[0]
    array, masks = probabilities.array, [_as_labels(rater) for rater in raters]
    one_hot = _are_one_hot(probabilities, masks)
    if one_hot:
        axis = _class_axis(first)
        masks = [np.moveaxis(mask, axis, 0) for mask in masks]
    spatial = masks[0].shape[1:] if one_hot else masks[0].shape
    if array.ndim == len(spatial) + 1:
        array = np.moveaxis(array, _class_axis(probabilities), 0)
        array = array[0] if len(array) == 1 else array  # one foreground channel with an axis
    if array.shape != spatial and array.shape[1:] != spatial:
        raise InvalidInputError(
            f"{probabilities.path} and {first.path}: must have the same image shape; got "
            f"{probabilities.array.shape} and {spatial}"
        )
    expected = [(rater, first.array.shape) for rater in raters[1:]]
    expected += [] if region is None else [(region, spatial)]
    for other, shape in expected:
        if other.array.shape != shape:
            raise InvalidInputError(
                f"{first.path} and {other.path}: must have the same shape; got {shape} and "
                f"{other.array.shape}"
            )
    _check_affines([probabilities, *raters, *([] if region is None else [region])])
    spacing = next((v.spacing for v in (first, probabilities) if v.spacing is not None), None)
    return ImageSet(
        _as_fractions(probabilities, array),
        tuple(masks),
        one_hot,
        None if region is None else region.array != 0,
        files.spacing if spacing is None else spacing[: len(spatial)],
        probabilities.affine if probabilities.affine is not None else first.affine,
        _step(probabilities),
    )


def _class_axis(volume: Volume) -> int:
    return -1 if _kind(volume.path) == "nifti" else 0


def _are_one_hot(probabilities: Volume, masks: Sequence[Array]) -> bool:
    """Tell whether masks have a class axis, as the probabilities do.

    One channel of an image and label maps have equal shapes, too; but its voxels do not all sum to
    1 along an axis. Voxels that one-hot masks mark as no class, or as two, are judged later.
    """
    array, axis = probabilities.array, _class_axis(probabilities)
    if array.ndim < 2 or array.shape[axis] < 2 or any(m.shape != array.shape for m in masks):
        return False
    if any(mask.max(initial=0) > 1 for mask in masks):
        return False
    whole = _as_fractions(probabilities, array).sum(axis=axis, dtype=np.float64)
    within = max(1e-2, array.shape[axis] * _step(probabilities) / 2)
    return bool(np.abs(whole - 1).max() <= within)


def _check_affines(volumes: Sequence[Volume]) -> None:
    known = [volume for volume in volumes if volume.affine is not None]
    for other in known[1:]:
        a, b = known[0].affine, other.affine
        assert a is not None and b is not None
        if np.allclose(a, b, rtol=1e-4, atol=1e-3):
            continue
        if known[0].located != other.located:
            silent, told = (known[0], other) if other.located else (other, known[0])
            raise InvalidInputError(
                f"{silent.path} and {told.path}: must both say where they lie; the first does not "
                "(its qform and sform codes are 0). Write it with the affine of the other, if it "
                "is in the same order"
            )
        first, second = _orientation(a), _orientation(b)
        if first != second:
            raise InvalidInputError(
                f"{known[0].path} and {other.path}: must have the same orientation; got "
                f"{first} and {second}"
            )
        raise InvalidInputError(
            f"{known[0].path} and {other.path}: must have the same affine; they differ by up to "
            f"{np.abs(a - b).max():.3g}. Resample them to one grid first"
        )


def _orientation(affine: NDArray[np.float64]) -> str:
    codes = image_files.imaging_module("nibabel").aff2axcodes(affine)
    return "".join(str(code) for code in codes)


def _is_grey(volume: Volume) -> bool:
    return _kind(volume.path) in ("png", "tiff", "slices", "npy", "npz")


def _as_fractions(volume: Volume, array: Array) -> Array:
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind == "u" and _is_grey(volume):
        return np.asarray(array, np.float32) / np.float32(np.iinfo(array.dtype).max)
    raise InvalidInputError(
        f"{volume.path}: probabilities must be floating-point numbers; got dtype {array.dtype}"
    )


def _step(volume: Volume) -> float:
    """Return the step between the probabilities of a file, 0 of floating-point numbers."""
    kind = volume.array.dtype
    return 1 / np.iinfo(kind).max if kind.kind == "u" and _is_grey(volume) else volume.step


def _as_labels(volume: Volume) -> Array:
    array = volume.array
    if array.dtype.kind == "u" and _is_grey(volume):
        most = np.iinfo(array.dtype).max
        if array.max(initial=0) == most and ((array == 0) | (array == most)).all():
            return np.asarray(array == most, np.uint8)
    if array.dtype.kind == "f":  # label maps saved as floats; whole numbers are checked later
        nearest = np.rint(array)
        # Scaled integers are a few last digits off; NaN is not near any number.
        with np.errstate(invalid="ignore"):  # infinite less infinite
            odd = ~(np.abs(array - nearest) <= 1e-6)
        if odd.any():
            voxel = tuple(int(i) for i in np.argwhere(odd)[0])
            raise InvalidInputError(
                f"{volume.path}: labels must be whole numbers; voxel {voxel} is {array[voxel]:g}"
            )
        return nearest.astype(np.int32)
    return array


def write_nifti(
    path: str | PathLike[str], array: Array, affine: NDArray[np.float64] | None
) -> Path:
    """Write an image as NIfTI with an affine, whole or not at all."""
    nibabel = image_files.imaging_module("nibabel")
    target = check_can_write(path)
    if not target.name.endswith((".nii", ".nii.gz")):
        raise InvalidInputError(f"{target.name}: the name must end in .nii or .nii.gz")
    suffix = ".nii.gz" if target.name.endswith(".gz") else ".nii"
    with replaced(target, suffix) as partial:
        image = nibabel.Nifti1Image(array, np.eye(4) if affine is None else affine)
        image.header.set_xyzt_units("mm")
        nibabel.save(image, partial)
    return target
