"""Images in files: NIfTI, Zarr, NPY/NPZ, PNG and TIFF, alone or as a stack of slices.

Files that belong together are checked against each other: shape, affine and orientation. Nothing
is resampled; a mismatch is an error that names both files.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import math
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, RaterwiseError, missing_extra
from raterwise.io.damaged import check_fits, read_archive
from raterwise.io.files import check_can_write, replaced
from raterwise.io.manifests import CaseFiles

__all__ = [
    "ImageSet",
    "Volume",
    "imaging_module",
    "read_images",
    "read_volume",
    "write_nifti",
]

Array = NDArray[Any]

PACKAGES = {"PIL": "pillow"}
"""Modules whose package is called otherwise."""
SLICES = (".png", ".tif", ".tiff")
IN_MM = {"meter": 1000.0, "micron": 0.001}
"""Units of NIfTI files other than millimetres."""
ROUNDING = 2.0**-22
"""How far beyond 0 or 1 the float32 slope of a NIfTI file may put a probability of 0 or 1."""


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


@dataclass(frozen=True, eq=False)
class ImageSet:
    """The arrays of one case, checked against each other."""

    files: CaseFiles
    probabilities: Array
    """(K, *spatial), or (*spatial)."""
    masks: tuple[Array, ...]
    """Label maps, or one-hot (K, *spatial)."""
    one_hot: bool
    region: Array | None
    spacing: tuple[float, ...] | None
    affine: NDArray[np.float64] | None


def imaging_module(name: str) -> Any:
    """Return a module that reads images, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = PACKAGES.get(name, name)
        raise missing_extra(f"this kind of image needs {package}", "imaging") from error


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
    except RaterwiseError:
        raise
    except Exception as error:  # there is no end to what readers raise on damaged files
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
    nibabel = imaging_module("nibabel")
    if file.name.lower().endswith(".gz"):
        with gzip.open(file) as stream:
            newer = stream.peek(4)[:4] in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c")  # 540
            image = (nibabel.Nifti2Image if newer else nibabel.Nifti1Image).from_stream(stream)
            check_fits(math.prod(image.shape) * image.get_data_dtype().itemsize, file.name)
            array = np.asanyarray(image.dataobj)
            while stream.read(1 << 20):  # the checksum is at the end, behind the image
                pass
    else:
        image = nibabel.load(file)
        array = np.asanyarray(image.dataobj)
    if array.ndim == 5 and array.shape[3] == 1:  # vectors are stored along the fifth axis
        array = array[:, :, :, 0]
    if array.dtype.kind == "f" and image.get_data_dtype().kind in "iu":
        array[(array > 1) & (array <= 1 + ROUNDING)] = 1
        array[(array < 0) & (array >= -ROUNDING)] = 0
    affine = np.array(image.affine, np.float64)
    if not np.isfinite(affine).all():
        raise InvalidInputError(f"{file.name}: its affine must be finite; it may be damaged")
    affine[:3] *= IN_MM.get(image.header.get_xyzt_units()[0], 1.0)
    return array, affine


def _read_npy(file: Path) -> tuple[Array, None]:
    return np.load(file, mmap_mode="r", allow_pickle=False), None


def _read_npz(file: Path) -> tuple[Array, None]:
    if not zipfile.is_zipfile(file):
        raise _unreadable(file, ValueError("it is not a ZIP archive"))
    content = read_archive(file, file.name)
    if len(content) != 1:
        raise InvalidInputError(
            f"{file.name}: must hold one array; it holds {', '.join(content) or 'none'}"
        )
    return next(iter(content.values())), None


def _read_zarr(file: Path) -> tuple[Array, None]:
    zarr = imaging_module("zarr")
    store = zarr.open(file, mode="r")
    if not isinstance(store, zarr.Array):
        raise InvalidInputError(f"{file.name}: must be a Zarr array, not a group")
    check_fits(math.prod(store.shape) * store.dtype.itemsize, file.name)
    return np.asarray(store[...]), None


def _read_png(file: Path) -> tuple[Array, None]:
    imaging_module("PIL")
    pillow = import_module("PIL.Image")
    with pillow.open(file) as image:
        image.verify()  # the checksum of every chunk; an image that is verified cannot be decoded
    with pillow.open(file) as image:
        if image.mode == "P" and _has_grey_palette(image):
            image = image.convert("L")
        if image.mode not in ("1", "L", "I;16", "I", "F"):
            raise InvalidInputError(
                f"{file.name}: must have one channel of grey values; its mode is {image.mode!r}"
            )
        array = np.array(image)
        return (array.view(np.uint8) != 0 if image.mode == "1" else array), None  # bytes of 255


def _has_grey_palette(image: Any) -> bool:
    """Tell whether every colour that an image uses is a grey."""
    used = np.unique(np.asarray(image))
    colours = np.array(image.getpalette("RGB"), np.int64).reshape(-1, 3)
    return bool(used.max() < len(colours) and (np.ptp(colours[used], axis=1) == 0).all())


def _read_tiff(file: Path) -> tuple[Array, None]:
    """Read an image whose every strip is there; what the reader would only log is an error."""
    tifffile = imaging_module("tifffile")
    with _heard("tifffile") as complaints, tifffile.TiffFile(file) as tiff:
        size = file.stat().st_size
        for page in tiff.pages:
            pieces = list(zip(page.dataoffsets, page.databytecounts, strict=True))
            cut_off = any(at <= 0 or long <= 0 or at + long > size for at, long in pieces)
            if cut_off or math.prod(page.chunked) != len(pieces):  # a million strips are promised
                raise InvalidInputError(f"{file}: cannot be read, it may be damaged (cut off)")
            whole = math.prod(page.shape) * page.dtype.itemsize
            check_fits(whole, file.name)
            if page.compression == 1 and page.bitspersample % 8 == 0 and not page.is_tiled:
                held = sum(long for _, long in pieces)
                if held != whole:
                    raise InvalidInputError(
                        f"{file}: cannot be read, it may be damaged ({held} bytes for {whole})"
                    )
        array = np.asarray(tiff.asarray(maxworkers=1))
    if complaints:
        raise InvalidInputError(f"{file}: cannot be read, it may be damaged ({complaints[0]:.200})")
    return array, None


@contextlib.contextmanager
def _heard(name: str) -> Iterator[list[str]]:
    """Gather what a reader says to its log in this thread: it goes on with zeros after damage."""
    logger, heard, here = logging.getLogger(name), [], threading.get_ident()

    class _Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == here:
                heard.append(" ".join(record.getMessage().split()))

    listener, before = _Listener(logging.WARNING), logger.propagate
    logger.addHandler(listener)
    logger.propagate = False  # one sentence, not two
    try:
        yield heard
    finally:
        logger.removeHandler(listener)
        logger.propagate = before


def _read_slices(folder: Path) -> tuple[Array, None]:
    found = [f for f in folder.iterdir() if f.suffix.lower() in SLICES]
    files = sorted((f for f in found if not f.name.startswith(".")), key=_natural_order)
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


def _natural_order(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Return what puts slice_9 before slice_10."""
    parts = re.findall(r"\d+|\D+", file.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], file.name


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
    Masks with the shape of the probabilities, both with classes that sum to 1, are one-hot. Grey
    values of PNG and TIFF files, and unsigned integers of NPY and NPZ files, are fractions of the
    largest their type can hold; masks of 0 and that largest value are 0 and 1.
    """
    try:
        probabilities = read_volume(files.probabilities)
        raters = [read_volume(path) for path in files.raters]
        region = None if files.mask is None else read_volume(files.mask)
        return _checked(files, probabilities, raters, region)
    except RaterwiseError as error:
        raise type(error)(f"case {files.case}: {error}") from error


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
        files,
        _as_fractions(probabilities, array),
        tuple(masks),
        one_hot,
        None if region is None else region.array != 0,
        files.spacing if spacing is None else spacing[: len(spatial)],
        probabilities.affine if probabilities.affine is not None else first.affine,
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
    return bool(np.abs(whole - 1).max() <= 1e-2)


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
    return _kind(volume.path) in ("png", "tiff", "slices", "npy", "npz")


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
        nearest = np.rint(array)
        # Scaled integers are a few last digits off; NaN is not near any number.
        if not np.isfinite(array).all() or (np.abs(array - nearest) > 1e-6).any():
            raise InvalidInputError(f"{volume.path}: labels must be whole numbers")
        return nearest.astype(np.int32)
    return array


def write_nifti(
    path: str | PathLike[str], array: Array, affine: NDArray[np.float64] | None
) -> Path:
    """Write an image as NIfTI with an affine, whole or not at all."""
    nibabel = imaging_module("nibabel")
    target = check_can_write(path)
    if not target.name.endswith((".nii", ".nii.gz")):
        raise InvalidInputError(f"{target.name}: the name must end in .nii or .nii.gz")
    suffix = ".nii.gz" if target.name.endswith(".gz") else ".nii"
    with replaced(target, suffix) as partial:
        image = nibabel.Nifti1Image(array, np.eye(4) if affine is None else affine)
        image.header.set_xyzt_units("mm")
        nibabel.save(image, partial)
    return target
