"""Parts of an experiment that are kept in files, so that a run that was stopped can go on.

What lies in the repository is packed: NAME.json.xz stands for NAME.json where that is not there.

    python -m experiments.kept FOLDER OUT

packs the JSON files of FOLDER, what --out of an experiment was, but summary.json.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.io.files import write_bytes_atomically, write_text_atomically

__all__ = [
    "fingerprint",
    "is_there",
    "json_files",
    "kept",
    "kept_arrays",
    "pack_json",
    "read_json",
    "write_json",
]

PACKED = ".xz"


def kept(file: Path, made_of: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what `make` makes: from `file` where that was made of the same things.

    `made_of` is compared as JSON has it, and written beside the result.
    """
    made_of = json.loads(json.dumps(made_of))
    if is_there(file):
        try:
            stored = read_json(file)
        except (ValueError, lzma.LZMAError, EOFError):
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


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, or the packed one that stands for it."""
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    return json.loads(lzma.decompress(_packed(path).read_bytes()))


def is_there(path: Path) -> bool:
    """Tell whether there is a JSON file to read, packed or not."""
    return path.is_file() or _packed(path).is_file()


def json_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the JSON files of a folder that `read_json` can read, in the order of their names."""
    found = {*folder.glob(pattern), *(f.with_suffix("") for f in folder.glob(pattern + PACKED))}
    yield from sorted(found)


def pack_json(file: Path, folder: Path) -> None:
    """Copy a JSON file to a folder, packed: in a quarter of the bytes."""
    text = json.dumps(read_json(file), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    write_bytes_atomically(_packed(folder / file.name), packed)


def _packed(path: Path) -> Path:
    return path.with_name(path.name + PACKED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    for each in json_files(given.folder, "*.json"):
        if each.name != "summary.json":
            pack_json(each, given.out)
