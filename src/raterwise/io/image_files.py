"""One reader for each kind of image file: the array, and where it lies in the patient if known.

Sizes and checksums are looked at before a pixel is believed.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import math
import threading
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, missing_extra
from raterwise.io.axes import KNOWN_KEYS
from raterwise.io.damaged import check_fits, one_line, read_archive
from raterwise.types import Array

PACKAGES = {"PIL": "pillow"}
"""Modules whose package is called otherwise."""
IN_MM = {"meter": 1000.0, "micron": 0.001}
"""Units of NIfTI files other than millimetres."""
ROUNDING = 2.0**-22
"""How far beyond 0 or 1 the float32 slope of a NIfTI file may put a probability of 0 or 1."""


def imaging_module(name: str) -> Any:
    """Return a module that reads images, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = PACKAGES.get(name, name)
        raise missing_extra(f"this kind of image needs {package}", "imaging") from error


def unreadable(file: Path, error: Exception) -> InvalidInputError:
    """Return the error of a file that a reader cannot read."""
    return InvalidInputError(f"{file}: cannot be read, it may be damaged ({one_line(error)})")


def read_nifti(file: Path) -> tuple[Array, NDArray[np.float64], None, float, bool]:
    """Read a NIfTI file, compressed or not, as the fields of a `Volume` after its path.

    Its affine is in millimetres.
    """
    nibabel = imaging_module("nibabel")
    with _heard("nibabel.global"):  # odd headers, which it mends or refuses
        if file.name.lower().endswith(".gz"):
            image, array = _unpacked(file, nibabel)
        else:
            image = nibabel.load(file)
            check_fits(math.prod(image.shape) * image.get_data_dtype().itemsize, file.name)
            array = np.asanyarray(image.dataobj)
    if array.ndim == 5 and array.shape[3] == 1:  # vectors are stored along the fifth axis
        array = array[:, :, :, 0]
    if array.ndim == 4 and array.shape[3] == 1:  # one channel, or one point in time
        array = array[..., 0]
    step = 0.0
    if array.dtype.kind == "f" and image.get_data_dtype().kind in "iu":
        step = abs(float(image.dataobj.slope))
        array[(array > 1) & (array <= 1 + ROUNDING)] = 1
        array[(array < 0) & (array >= -ROUNDING)] = 0
    affine = np.array(image.affine, np.float64)
    if not np.isfinite(affine).all():
        raise InvalidInputError(f"{file.name}: its affine must be finite; it may be damaged")
    affine[:3] *= IN_MM.get(image.header.get_xyzt_units()[0], 1.0)
    located = any(image.header[code] for code in ("qform_code", "sform_code"))
    return array, affine, None, step, located


def _unpacked(file: Path, nibabel: Any) -> tuple[Any, Array]:
    """Return a compressed image and its array, once the checksum behind it is compared."""
    with gzip.open(file) as stream:
        newer = stream.peek(4)[:4] in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c")  # 540
        image = (nibabel.Nifti2Image if newer else nibabel.Nifti1Image).from_stream(stream)
        check_fits(math.prod(image.shape) * image.get_data_dtype().itemsize, file.name)
        array = np.asanyarray(image.dataobj)
        while stream.read(1 << 20):
            pass
    return image, array


def read_npy(file: Path) -> tuple[Array, None]:
    """Map an NPY file into memory; pickles are not opened."""
    return np.load(file, mmap_mode="r", allow_pickle=False), None


def read_npz(file: Path) -> tuple[Array, None, str | None]:
    """Read the one array of an NPZ file; its name may tell the order of its axes."""
    if not zipfile.is_zipfile(file):
        raise unreadable(file, ValueError("it is not a ZIP archive"))
    content = read_archive(file, file.name)
    if len(content) != 1:
        raise InvalidInputError(
            f"{file.name}: must hold one array; it holds {', '.join(content) or 'none'}"
        )
    [(key, array)] = content.items()
    return array, None, KNOWN_KEYS.get(key)


def read_zarr(file: Path) -> tuple[Array, None]:
    """Read a Zarr array, version 2 or 3."""
    zarr = imaging_module("zarr")
    store = zarr.open(file, mode="r")
    if not isinstance(store, zarr.Array):
        raise InvalidInputError(f"{file.name}: must be a Zarr array, not a group")
    check_fits(math.prod(store.shape) * store.dtype.itemsize, file.name)
    return np.asarray(store[...]), None


def read_png(file: Path) -> tuple[Array, None]:
    """Read a PNG file with one channel of greys, once the checksum of every chunk was compared."""
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


def read_tiff(file: Path) -> tuple[Array, None]:
    """Read an image whose every strip is there.

    What the reader would only log is an error: it goes on with zeros after damage.
    """
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
    """Gather what a reader says to its log in this thread, in place of showing it."""
    logger, heard, here = logging.getLogger(name), [], threading.get_ident()

    def listen(record: logging.LogRecord) -> bool:
        if record.thread != here:
            return True
        if record.levelno >= logging.WARNING:
            heard.append(" ".join(record.getMessage().split()))
        return False

    logger.addFilter(listen)
    try:
        yield heard
    finally:
        logger.removeFilter(listen)
