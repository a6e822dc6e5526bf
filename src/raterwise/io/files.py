"""Writing files so that nobody ever sees half of one, and none is written over one that is read.

A file may be read through a pattern, a manifest, a folder or a link, and be written under another
name of the same file. It may be the only copy of somebody's data.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

JOB_FILE = "job.json"
"""Of a checkpoint: what the run is about."""

Names = Iterable[str | PathLike[str] | None]


def check_can_write(path: str | PathLike[str]) -> Path:
    """Return `path` where a file could be put: in a folder that may be written, not over a folder.

    Worth asking before a long computation and not after it.
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"{target}: must be a file to write to; it is a folder")
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"{target}: must be an ordinary file to write to; it is a device")
    if not target.parent.is_dir():
        raise InvalidInputError(f"{target}: the folder {target.parent} must exist; it does not")
    if not os.access(target.parent, os.W_OK):
        raise InvalidInputError(f"{target}: the folder {target.parent} must let you write into it")
    return target


def write_text_atomically(path: str | PathLike[str], text: str) -> Path:
    """Write `text` as UTF-8 under a temporary name in the same folder, then rename it to `path`.

    A reader sees the old file or the new one, whatever happens in between; an older file of that
    name is replaced. Line ends are written as they come.

    >>> folder = getfixture("tmp_path")
    >>> write_text_atomically(folder / "a.txt", "one").read_text()
    'one'
    """
    return write_bytes_atomically(path, text.encode("utf-8"))


def write_bytes_atomically(path: str | PathLike[str], content: bytes) -> Path:
    """Write bytes as `write_text_atomically` writes text."""
    target = check_can_write(path)
    # A link stays a link: the file behind it is replaced.
    target = target.resolve() if target.is_symlink() else target
    with replaced(target) as partial:
        with open(partial, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
    return Path(path)


def write_npz_atomically(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write arrays as NPZ; Python strings, which NumPy would pickle, become its own."""
    plain = {k: v.astype(np.str_) if v.dtype == object else v for k, v in arrays.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **plain)
    return write_bytes_atomically(path, buffer.getvalue())


@contextlib.contextmanager
def replaced(target: Path, suffix: str = ".part") -> Iterator[Path]:
    """Give a name to write under; the file gets its own name when it is whole.

    The name cannot be foreseen, so that nobody puts a link there. Where the disk is full, the error
    says which file was being written.
    """
    partial = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}{suffix}")
    try:
        yield partial
        os.replace(partial, target)
    except BaseException as error:  # Ctrl-C too must leave nothing behind
        with contextlib.suppress(OSError):
            os.unlink(partial)
        if isinstance(error, FileNotFoundError) and error.filename == str(partial):
            raise InvalidInputError(
                f"{target}: must be in a folder that takes new files; {target.parent} does not. "
                "Choose another folder"
            ) from error
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = str(target), None
        raise


def refuse_overwriting(outputs: Names, inputs: Names) -> None:
    """Refuse to write a file that is read, that lies in a folder that is read, or that would be.

    `inputs` are files, folders (a Zarr store, slices) and patterns, as they were
    given; None is nothing. A new file that a pattern matches is refused as well: the next run would
    read it.

    >>> folder = getfixture("tmp_path")
    >>> refuse_overwriting([folder / "results.json"], [folder / "cases.csv"])
    >>> refuse_overwriting([folder / "cases.csv"], [folder / "cases.csv"])
    Traceback (most recent call last):
        ...
    raterwise.errors.InvalidInputError: ...cases.csv: must not be written over; it is read as well
    """
    read = _Read.of(inputs)
    for name in outputs:
        if name is not None and (why := read.why_not(Path(name))):
            raise InvalidInputError(f"{name}: must not be written over; {why}")


def checkpoint_files(folder: str | PathLike[str] | None) -> tuple[Path, ...]:
    """Return the files of a checkpoint that a run which goes on reads, as a name and a pattern."""
    if folder is None:
        return ()
    return Path(folder) / JOB_FILE, Path(glob.escape(str(folder))) / "part_*.npz"


@dataclass(frozen=True)
class _Read:
    """Everything that is read: by its real name, and by its place on the disk."""

    names: frozenset[Path]
    places: frozenset[tuple[int, int]]
    """(device, inode): two names of one file, as hard links are."""
    patterns: tuple[Path, ...]

    @staticmethod
    def of(inputs: Names) -> _Read:
        """Return what some names and patterns stand for."""
        files: list[Path] = []
        patterns: list[Path] = []
        for name in inputs:
            if name is None:
                continue
            file = Path(name)
            if glob.has_magic(str(file)) and not file.exists():
                files += [Path(found) for found in glob.glob(str(file))]
                patterns.append(_real(file))
            else:
                files.append(file)
        places = (_place(file) for file in files)
        return _Read(
            frozenset(_real(file) for file in files),
            frozenset(place for place in places if place is not None),
            tuple(patterns),
        )

    def why_not(self, file: Path) -> str:
        """Return why a file must not be written, or nothing."""
        real = _real(file)
        if real in self.names or _place(file) in self.places:
            return "it is read as well"
        if folder := next((f for f in real.parents if f in self.names), None):
            return f"it lies in {folder.name}, which is read as well"
        if pattern := next((p for p in self.patterns if _matches(real, p)), None):
            return f"{pattern.name} is read, and the next run would read it, too"
        return ""


def _real(file: Path) -> Path:
    """Return the name behind links; signs of a pattern are kept."""
    return Path(os.path.realpath(file))


def _place(file: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = file.stat()
        return status.st_dev, status.st_ino
    return None


def _matches(file: Path, pattern: Path) -> bool:
    """Tell whether a pattern would find a file: part by part, as * stays within a folder."""
    parts, wanted = file.parts, pattern.parts
    return len(parts) == len(wanted) and all(map(fnmatch, parts, wanted))
