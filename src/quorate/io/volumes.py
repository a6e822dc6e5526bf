"""Images in files: NIfTI, Zarr, NPY/NPZ, PNG and TIFF, alone or as a stack of slices.

Files that belong together are checked against each other: shape, affine and orientation. Nothing
is resampled; a mismatch is an error that names both files.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InvalidInputError, MissingExtraError, QuorateError
from quorate.io.files import check_can_write

__all__ = [
    "CaseFiles",
    "ImageSet",
    "Volume",
    "imaging_module",
    "read_images",
    "read_manifest",
    "read_volume",
    "write_nifti",
]

Array = NDArray[Any]

PACKAGES = {"PIL": "pillow"}
"""Modules whose package is called otherwise."""
SLICES = (".png", ".tif", ".tiff")
REQUIRED = ("case", "probabilities", "raters")
KNOWN = (*REQUIRED, "mask", "patient")


@dataclass(frozen=True, eq=False)
class Volume:
    """An image from a file, and where it lies in the patient, if the file says so."""

    path: Path
    array: Array
    affine: NDArray[np.float64] | None = None
    """(4, 4): from voxel to millimetres, of NIfTI files."""

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


@dataclass(frozen=True)
class CaseFiles:
    """One row of a manifest: the files of an image."""

    case: str
    probabilities: Path
    raters: tuple[Path, ...]
    mask: Path | None = None
    patient: str | None = None


@dataclass(frozen=True, eq=False)
class ImageSet:
    """The arrays of one case, checked against each other."""

    files: CaseFiles
    probabilities: Array
    """(K, *spatial), or (*spatial)."""
    masks: tuple[Array, ...]
    region: Array | None
    spacing: tuple[float, ...] | None
    affine: NDArray[np.float64] | None


def imaging_module(name: str) -> Any:
    """Return a module that reads images, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = PACKAGES.get(name, name)
        raise MissingExtraError(
            f"this kind of image needs {package}: pip install 'quorate[imaging]'"
        ) from error


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
        raise InvalidInputError(f"{file}: there is no such file")
    kind = _kind(file)
    try:
        array, affine = _READERS[kind](file)
    except QuorateError:
        raise
    except (OSError, ValueError, EOFError, KeyError, TypeError, zlib.error,
            zipfile.BadZipFile, MemoryError, SyntaxError) as error:  # fmt: skip
        raise _unreadable(file, error) from error
    except Exception as error:  # nibabel, tifffile and zarr have error classes of their own
        if type(error).__module__.split(".")[0] not in ("nibabel", "tifffile", "zarr", "PIL"):
            raise
        raise _unreadable(file, error) from error
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"{file.name}: must hold numbers; got dtype {array.dtype}")
    return Volume(file, array, affine)


def _unreadable(file: Path, error: Exception) -> InvalidInputError:
    text = " ".join(str(error).split()) or type(error).__name__
    return InvalidInputError(f"{file}: cannot be read, it may be damaged ({text[:200]})")


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


def _read_nifti(file: Path) -> tuple[Array, NDArray[np.float64]]:
    image = imaging_module("nibabel").load(file)
    array = np.asanyarray(image.dataobj)
    if array.ndim == 5 and array.shape[3] == 1:  # vectors are stored along the fifth axis
        array = array[:, :, :, 0]
    return array, np.asarray(image.affine, np.float64)


def _read_npy(file: Path) -> tuple[Array, None]:
    return np.load(file, mmap_mode="r", allow_pickle=False), None


def _read_npz(file: Path) -> tuple[Array, None]:
    with np.load(file, allow_pickle=False) as content:
        if len(content.files) != 1:
            raise InvalidInputError(
                f"{file.name}: must hold one array; it holds {', '.join(content.files) or 'none'}"
            )
        return content[content.files[0]], None


def _read_zarr(file: Path) -> tuple[Array, None]:
    zarr = imaging_module("zarr")
    store = zarr.open(file, mode="r")
    if not isinstance(store, zarr.Array):
        raise InvalidInputError(f"{file.name}: must be a Zarr array, not a group")
    return np.asarray(store[...]), None


def _read_png(file: Path) -> tuple[Array, None]:
    imaging_module("PIL")
    with import_module("PIL.Image").open(file) as image:
        if image.mode not in ("1", "L", "I;16", "I", "F"):
            raise InvalidInputError(
                f"{file.name}: must have one channel of grey values; its mode is {image.mode!r}"
            )
        return np.array(image), None


def _read_tiff(file: Path) -> tuple[Array, None]:
    return np.asarray(imaging_module("tifffile").imread(file)), None


def _read_slices(folder: Path) -> tuple[Array, None]:
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in SLICES)
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


_READERS: dict[str, Any] = {
    "nifti": _read_nifti,
    "npy": _read_npy,
    "npz": _read_npz,
    "zarr": _read_zarr,
    "png": _read_png,
    "tiff": _read_tiff,
    "slices": _read_slices,
}


def read_images(files: CaseFiles) -> ImageSet:
    """Return the arrays of one case; an error names the case and the files that disagree.

    The classes of probabilities are the last axis in a NIfTI file and the first in the others.
    Grey values of PNG and TIFF files are fractions of the largest their type can hold; masks of 0
    and that largest value are 0 and 1.
    """
    try:
        probabilities = read_volume(files.probabilities)
        raters = [read_volume(path) for path in files.raters]
        region = None if files.mask is None else read_volume(files.mask)
        return _checked(files, probabilities, raters, region)
    except QuorateError as error:
        raise type(error)(f"case {files.case}: {error}") from error


def _checked(
    files: CaseFiles, probabilities: Volume, raters: Sequence[Volume], region: Volume | None
) -> ImageSet:
    first = raters[0]
    array = probabilities.array
    spatial = first.array.shape
    if _kind(probabilities.path) == "nifti" and array.ndim == len(spatial) + 1:
        array = np.moveaxis(array, -1, 0)
    if array.shape != spatial and array.shape[1:] != spatial:
        raise InvalidInputError(
            f"{probabilities.path} and {first.path}: must have the same image shape; got "
            f"{probabilities.array.shape} and {spatial}"
        )
    others = [*raters[1:], *([] if region is None else [region])]
    for other in others:
        if other.array.shape != spatial:
            raise InvalidInputError(
                f"{first.path} and {other.path}: must have the same shape; got {spatial} and "
                f"{other.array.shape}"
            )
    _check_affines([probabilities, *raters, *([] if region is None else [region])])
    spacing = next((v.spacing for v in (first, probabilities) if v.spacing is not None), None)
    return ImageSet(
        files,
        _as_fractions(probabilities, array),
        tuple(_as_labels(rater) for rater in raters),
        None if region is None else region.array != 0,
        None if spacing is None else spacing[: len(spatial)],
        probabilities.affine if probabilities.affine is not None else first.affine,
    )


def _check_affines(volumes: Sequence[Volume]) -> None:
    known = [volume for volume in volumes if volume.affine is not None]
    for other in known[1:]:
        a, b = known[0].affine, other.affine
        assert a is not None and b is not None
        if np.allclose(a, b, rtol=1e-4, atol=1e-3):
            continue
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
    codes = imaging_module("nibabel").aff2axcodes(affine)
    return "".join(str(code) for code in codes)


def _is_grey(volume: Volume) -> bool:
    return _kind(volume.path) in ("png", "tiff", "slices")


def _as_fractions(volume: Volume, array: Array) -> Array:
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind == "u" and _is_grey(volume):
        return np.asarray(array, np.float32) / np.float32(np.iinfo(array.dtype).max)
    raise InvalidInputError(
        f"{volume.path}: probabilities must be floating-point numbers; got dtype {array.dtype}"
    )


def _as_labels(volume: Volume) -> Array:
    array = volume.array
    if array.dtype.kind == "u" and _is_grey(volume):
        most = np.iinfo(array.dtype).max
        if array.max(initial=0) == most and ((array == 0) | (array == most)).all():
            return np.asarray(array == most, np.uint8)
    if array.dtype.kind == "f":  # label maps saved as floats; whole numbers are checked later
        whole = array.astype(np.int32)
        if not (whole == array).all():
            raise InvalidInputError(f"{volume.path}: labels must be whole numbers")
        return whole
    return array


def read_manifest(path: str | PathLike[str], delimiter: str = ",") -> list[CaseFiles]:
    """Return the cases of a table with the columns case, probabilities, raters, mask, patient.

    `raters` are paths or patterns (`masks/c1_*.png`) joined by ";". Paths are relative to the
    manifest; `mask` and `patient` may be missing.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError(f"{file}: there is no such file")
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            table = csv.DictReader(stream, delimiter=delimiter)
            rows, columns = list(table), list(table.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{file.name}: cannot be read as CSV; {error}") from error
    missing = [name for name in REQUIRED if name not in columns]
    if missing or not rows:
        raise InvalidInputError(
            f"{file.name}: must have rows and the columns {', '.join(REQUIRED)}; "
            f"{', '.join(missing) or 'a row'} is not there "
            f"(columns: {', '.join(columns) or 'none'})"
        )
    unknown = [name for name in columns if name not in KNOWN]
    if unknown:
        raise InvalidInputError(
            f"{file.name}: columns must be {', '.join(KNOWN)}; got {', '.join(unknown)}"
        )
    found = [_case_of(row, i, file) for i, row in enumerate(rows, start=1)]
    names = [case.case for case in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"{file.name}: cases must differ; {twice!r} is there twice")
    return found


def _case_of(row: dict[str, Any], number: int, manifest: Path) -> CaseFiles:
    if None in row or any(value is None for value in row.values()):
        raise InvalidInputError(f"{manifest.name}: row {number} has too many or too few columns")
    values = {key: value.strip() for key, value in row.items()}
    empty = [key for key in REQUIRED if not values[key]]
    if empty:
        raise InvalidInputError(f"{manifest.name}: row {number} has no {', '.join(empty)}")
    folder = manifest.parent
    patterns = [part.strip() for part in values["raters"].split(";") if part.strip()]
    return CaseFiles(
        values["case"],
        folder / values["probabilities"],
        tuple(path for pattern in patterns for path in _matching(folder, pattern)),
        folder / values["mask"] if values.get("mask") else None,
        values.get("patient") or None,
    )


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files of a pattern in order; a plain path is itself, whether it exists or not."""
    if not glob.has_magic(pattern) or (folder / pattern).exists():
        yield folder / pattern
        return
    found = sorted(glob.glob(str(folder / pattern)))
    # A pattern that nothing matches is reported with its case, as a missing file would be.
    yield from (Path(name) for name in found or [str(folder / pattern)])


def write_nifti(
    path: str | PathLike[str], array: Array, affine: NDArray[np.float64] | None
) -> Path:
    """Write an image as NIfTI with an affine, whole or not at all."""
    nibabel = imaging_module("nibabel")
    target = check_can_write(path)
    if not target.name.endswith((".nii", ".nii.gz")):
        raise InvalidInputError(f"{target.name}: the name must end in .nii or .nii.gz")
    suffix = ".nii.gz" if target.name.endswith(".gz") else ".nii"
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{suffix}")
    try:
        image = nibabel.Nifti1Image(array, np.eye(4) if affine is None else affine)
        nibabel.save(image, partial)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    return target
