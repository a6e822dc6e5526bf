"""Finished parts of a long run, kept in a folder so that a run that was killed goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.io.files import write_text_atomically
from raterwise.summaries.digest import Digest
from raterwise.summaries.saved import load_digest, save_digest

__all__ = ["Checkpoint", "stamp"]

JOB_FILE = "job.json"


def stamp(path: Path) -> tuple[int, int]:
    """Return size and time of a file, or of all files in a folder: they tell that it changed."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    stats = [file.stat() for file in files]
    return sum(s.st_size for s in stats), max((s.st_mtime_ns for s in stats), default=0)


def _load(path: Path) -> Digest:
    return load_digest(path)[0]


@dataclass(frozen=True)
class Checkpoint:
    """A folder with one file per finished part, and what the run is about."""

    folder: Path
    save: Callable[[Path, Any], Any] = save_digest
    load: Callable[[Path], Any] = _load

    @staticmethod
    def open(
        folder: str | PathLike[str],
        job: Mapping[str, Any],
        save: Callable[[Path, Any], Any] = save_digest,
        load: Callable[[Path], Any] = _load,
    ) -> Checkpoint:
        """Return the checkpoint of a job, new or begun; that of another job is an error."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        text = json.dumps(job, sort_keys=True, default=str)
        mark = hashlib.sha256(text.encode("utf-8")).hexdigest()
        if (place / JOB_FILE).exists():
            try:
                known = json.loads((place / JOB_FILE).read_text(encoding="utf-8"))["job"]
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInputError(f"checkpoint: {place / JOB_FILE} is damaged") from error
            if known != mark:
                raise InvalidInputError(
                    f"checkpoint: {place} holds parts of another run (other files, metrics or "
                    "options); give another folder, or remove it"
                )
        elif any(place.iterdir()):
            raise InvalidInputError(f"checkpoint: {place} must be empty or of an earlier run")
        else:
            write_text_atomically(place / JOB_FILE, json.dumps({"job": mark}) + "\n")
        return Checkpoint(place, save, load)

    def has(self, part: int) -> bool:
        """Tell whether a part is finished."""
        return self._file(part).exists()

    def put(self, part: int, result: Any) -> None:
        """Keep the result of a part."""
        self.save(self._file(part), result)

    def get(self, part: int) -> Any:
        """Return the result of a finished part."""
        return self.load(self._file(part))

    def _file(self, part: int) -> Path:
        return self.folder / f"part_{part:06d}.npz"
