"""Checkpoints that are whole at any moment, and hold nothing that could run."""

from __future__ import annotations

import contextlib
import glob
import os
import time
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from raterwise.errors import InvalidInputError
from raterwise.io.files import replaced

LEFT_BEHIND = 24 * 3600.0
"""Seconds after which nobody is writing a temporary file any more."""


def save_checkpoint(path: str | PathLike[str], content: dict[str, Any]) -> None:
    """Write under a temporary name, to the disk, and rename: a kill leaves the old file or the new.

    The temporary name is random and new, and a link in the place of the checkpoint is replaced, not
    followed: nobody else who may write into the folder chooses which file is written over. What a
    kill left behind long ago is removed.
    """
    target = Path(path)
    with replaced(target) as partial, open(partial, "xb") as stream:
        torch.save(content, stream)
        stream.flush()
        os.fsync(stream.fileno())
    _remove_left_behind(target)
    if hasattr(os, "O_DIRECTORY"):  # the new name, too, must reach the disk
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove_left_behind(target: Path) -> None:
    for file in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
        with contextlib.suppress(OSError):  # another process may be faster
            if time.time() - file.lstat().st_mtime > LEFT_BEHIND:
                file.unlink()


def load_checkpoint(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Return the content of a checkpoint, or None where there is none yet."""
    if not Path(path).exists():
        return None
    content: dict[str, Any] = load_file(path, "checkpoint")
    if not {"settings", "network", "optimizer", "best", "history"} <= set(content):
        raise InvalidInputError(
            f"checkpoint: {Path(path).name} is not from this training; use another file, or "
            "resume=False to write over it"
        )
    return content


def load_file(path: str | PathLike[str], argument: str) -> Any:
    """Return a dictionary that torch saved, of tensors and plain values alone."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # what a damaged file raises depends on its bytes
        raise InvalidInputError(
            f"{argument}: {Path(path).name} must be a file of weights that torch saved; it is "
            f"damaged, or holds more than weights_only=True reads ({type(error).__name__})"
        ) from error
    if not isinstance(content, dict):
        raise InvalidInputError(
            f"{argument}: {Path(path).name} must hold a dictionary; got {type(content).__name__}"
        )
    return content


def check_settings(path: str | PathLike[str], saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise where a checkpoint was made with other settings than those of now."""
    for name, value in now.items():
        if not _same(saved.get(name), value):
            raise InvalidInputError(
                f"checkpoint: {Path(path).name} was made with {name} = {saved.get(name)!r}, and "
                f"now it is {value!r}; use another file, or resume=False to begin anew"
            )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        # Sums over weights may round otherwise on another device.
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1.0)
    return bool(a == b)
