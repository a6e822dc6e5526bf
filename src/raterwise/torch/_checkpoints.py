"""Checkpoints that are whole at any moment, and hold nothing that could run."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from raterwise.errors import InvalidInputError

__all__ = ["check_settings", "load_checkpoint", "load_file", "save_checkpoint"]


def save_checkpoint(path: str | PathLike[str], content: dict[str, Any]) -> None:
    """Write under a temporary name, to the disk, and rename: a kill leaves the old file or the new.

    The temporary name is always the same, so what a kill leaves behind is overwritten next time.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.part")
    with open(partial, "wb") as stream:
        torch.save(content, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, target)
    if hasattr(os, "O_DIRECTORY"):  # the new name, too, must reach the disk
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load_checkpoint(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Return the content of a checkpoint, or None where there is none yet."""
    if not Path(path).exists():
        return None
    content: dict[str, Any] = load_file(path, "checkpoint")
    if not {"settings", "network", "optimizer", "best", "history"} <= set(content):
        raise InvalidInputError(
            f"checkpoint: {Path(path).name} is none of this training; use another file, or "
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
