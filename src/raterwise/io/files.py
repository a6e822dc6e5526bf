"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError


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
        if isinstance(error, OSError) and error.errno is not None:
            error.filename, error.filename2 = str(target), None
        raise
