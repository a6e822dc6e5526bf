"""Reading what others send: depth, sizes and types are looked at before anything is believed.

A file that is damaged, or made to do harm, ends in one sentence. Nothing here runs what a file
holds, and nothing takes more memory than there is because a header says so.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import zipfile
from collections.abc import Collection, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, RaterwiseError

MOST_JSON = 1 << 30
"""Bytes of the largest JSON file that is read."""
MOST_SAID = 200
"""Letters of an error of somebody else's that are passed on."""
AT_ONCE = 1 << 20
"""Bytes of an array that are read together."""
MOST_DEPTH = 200
"""How deep JSON may be nested: ours is less than 10."""
SENSELESS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
)
"""What code runs into whose numbers and names do not fit together."""


def one_line(error: BaseException) -> str:
    """Return what an error says, short and in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MOST_SAID else text[:MOST_SAID] + " …"


def check_fits(size: int, name: str) -> None:
    """Refuse what is larger than the memory of this machine, whatever a header promises."""
    memory = math.inf
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not on every system
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise InvalidInputError(
            f"{name}: must fit into memory ({memory / 2**30:.0f} GiB); it says that it holds "
            f"{size / 2**30:.3g} GiB, or is damaged"
        )


def read_json(path: str | PathLike[str], what: str) -> Any:
    """Return the content of a JSON file; `what` is what it should be, as "a raterwise result file".

    NaN and Infinity, which no JSON has, are refused.

    >>> path = getfixture("tmp_path") / "deep.json"
    >>> _ = path.write_text("[" * 100_000)
    >>> read_json(path, "a saved calibrator")
    Traceback (most recent call last):
        ...
    raterwise.errors.InvalidInputError: ...deep.json: is not a saved calibrator (nested too deep)
    """
    file = Path(path)
    if (size := file.stat().st_size) > MOST_JSON:
        raise InvalidInputError(f"{path}: is not {what} ({size / 2**30:.1f} GiB are too many)")
    if zipfile.is_zipfile(file):
        raise InvalidInputError(
            f"{path}: is not {what} (it is an archive, such as NPZ; raterwise merge makes results "
            "of a summary)"
        )
    try:
        content = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        _check_depth(content)
        return content
    except RecursionError:
        raise InvalidInputError(f"{path}: is not {what} (nested too deep)") from None
    except json.JSONDecodeError as error:
        why = "it is empty" if not size else "it is no JSON" if not error.pos else (
            f"its JSON is damaged or cut off at line {error.lineno}"
        )  # fmt: skip
        raise InvalidInputError(f"{path}: is not {what} ({why})") from error
    except (ValueError, MemoryError) as error:  # not UTF-8, a number of 5000 digits
        raise InvalidInputError(f"{path}: is not {what} ({one_line(error)})") from error


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number of JSON")


def _check_depth(content: Any) -> None:
    level = [content] if isinstance(content, dict | list) else []
    for _ in range(MOST_DEPTH):
        parts = (one.values() if isinstance(one, dict) else one for one in level)
        level = [part for each in parts for part in each if isinstance(part, dict | list)]
        if not level:
            return
    raise RecursionError


@contextlib.contextmanager
def reading(path: str | PathLike[str], what: str, version: int) -> Iterator[Any]:
    """Give the content of a JSON file of a version; what it lacks is said as by `read_json`."""
    content = read_json(path, what)
    try:
        if (found := content["schema_version"]) != version:
            raise InvalidInputError(f"{path}: schema_version must be {version}; got {found!r}")
        yield content
    except RaterwiseError:
        raise
    except SENSELESS as error:
        raise InvalidInputError(f"{path}: is not {what} ({error})") from error


@contextlib.contextmanager
def making_sense(*names: object) -> Iterator[None]:
    """Turn what goes wrong with the content of files into one sentence that names them.

    For files whose parts were checked one by one, and yet do not fit together.
    """
    try:
        yield
    except (RaterwiseError, OSError):
        raise
    except SENSELESS as error:
        files = ", ".join(str(name) for name in names if name is not None)
        raise InvalidInputError(
            f"{files}: holds values that do not fit together ({type(error).__name__}: "
            f"{one_line(error)}); was a file edited by hand?"
        ) from error


def read_archive(
    source: str | PathLike[str] | IO[bytes], name: str, wanted: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an NPZ file, those `wanted` or all; every byte of them is checked.

    Of each array, the header must agree with the size that the archive has, and the bytes with
    their checksum. Pickles are not opened.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise InvalidInputError(f"{name}: cannot be read as NPZ; a name is in it twice")
            chosen = {k: m for k, m in members.items() if wanted is None or k in wanted}
            check_fits(sum(info.file_size for info in chosen.values()), name)
            return {key: _member(archive, info, name) for key, info in chosen.items()}
    except (RaterwiseError, FileNotFoundError):
        raise
    except Exception as error:  # zlib, zipfile and NumPy's header parser have errors of their own
        raise InvalidInputError(f"{name}: cannot be read as NPZ; {one_line(error)}") from error


def names_in_archive(source: str | PathLike[str]) -> list[str]:
    """Return what the arrays of an NPZ file are called that can be read."""
    with zipfile.ZipFile(source) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    where = f"{name}: array {info.filename.removesuffix('.npy')!r}"
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise InvalidInputError(f"{where}: its format must be version 1 or 2; got {version}")
        if dtype.hasobject:
            raise InvalidInputError(
                f"{name}: must hold plain arrays; Python objects are stored as a pickle, which "
                "can run code and is not opened. Save text with np.array(values, dtype=str)"
            )
        size, held = math.prod(shape) * dtype.itemsize, info.file_size - stream.tell()
        if size != held or dtype.itemsize == 0 or min(shape, default=0) < 0:
            raise InvalidInputError(
                f"{where}: must have {size} bytes for shape {shape} of {dtype}; it has {held}"
            )
        values = np.empty(held, np.uint8)
        for start in range(0, held, AT_ONCE):
            part = values.data[start : start + AT_ONCE]
            part[:] = stream.read(len(part))
        stream.read(1)  # at the end the checksum is compared
    return values.view(dtype).reshape(shape, order="F" if fortran else "C")
