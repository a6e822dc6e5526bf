"""Parts of an experiment that are kept in files, so that a run that was stopped can go on."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.io.files import write_bytes_atomically, write_text_atomically

__all__ = ["copy_json", "fingerprint", "kept", "kept_arrays", "write_json"]


def kept(file: Path, made_of: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what `make` makes: from `file` where that was made of the same things.

    `made_of` is compared as JSON has it, and written beside the result.
    """
    made_of = json.loads(json.dumps(made_of))
    if file.is_file():
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            stored = None
        if isinstance(stored, dict) and stored.get("made_of") == made_of:
            return stored
    found = {"made_of": made_of, **make()}
    write_json(file, found)
    return found


def kept_arrays(
    file: Path, made_of: dict[str, Any], make: Callable[[], dict[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return the arrays that `make` makes, as `kept` does, from and to a compressed NPZ file."""
    text = json.dumps(made_of, sort_keys=True)
    if file.is_file():
        try:
            # Opened here: NumPy leaves a damaged archive open.
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                if "made_of" in stored.files and str(stored["made_of"]) == text:
                    return {name: stored[name] for name in stored.files if name != "made_of"}
        except (ValueError, OSError, zipfile.BadZipFile):
            pass  # damaged: it is made again
    arrays = make()
    buffer = io.BytesIO()
    everything: dict[str, Any] = {"made_of": np.array(text), **arrays}
    np.savez_compressed(buffer, **everything)
    write_bytes_atomically(file, buffer.getvalue())
    return arrays


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a digest of what arrays hold: another value, type or shape gives another one."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_json(path: Path, content: Any) -> None:
    """Write `content` as JSON, whole or not at all."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_text_atomically(path, text + "\n")


def copy_json(file: Path, folder: Path) -> None:
    """Copy a JSON file to a folder, without the spaces: in two thirds of the bytes."""
    content = json.loads(file.read_text(encoding="utf-8"))
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    write_text_atomically(folder / file.name, text + "\n")
