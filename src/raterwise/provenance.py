"""Where results come from: when, which call, which files, which raters, which cases left out."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MOST_HASHED = 1 << 34
"""Files beyond 16 GiB are named by their size alone: reading them again takes minutes."""
MOST_LISTED = 100
"""How many files are listed one by one."""
MOST_NAMED = 1000
"""How many of the cases that were left out are named."""
PIECE = 1 << 20


def made(call: str, **facts: Any) -> dict[str, Any]:
    """Return the record of results that are made now.

    The date is in UTC; where SOURCE_DATE_EPOCH is set it is that one, so that files can be made
    again to the last byte.

    >>> sorted(made("raterwise.evaluate", seed=0))
    ['call', 'date', 'seed']
    """
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(told), UTC) if told.isdigit() else datetime.now(UTC)
    return {"date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "call": call, **facts}


def file_record(path: str | Path) -> dict[str, Any]:
    """Return the name, size and SHA-256 of a file; of a folder, those of its files together.

    >>> path = getfixture("tmp_path") / "cases.csv"
    >>> _ = path.write_text("abc")
    >>> record = file_record(path)
    >>> record["bytes"], record["sha256"][:16]
    (3, 'ba7816bf8f01cfea')
    """
    file = Path(path)
    if file.is_dir():
        parts = sorted(part for part in file.rglob("*") if part.is_file())
        return {"name": str(path), "files": len(parts), **_size_and_hash(parts, file)}
    return {"name": str(path), **_size_and_hash([file])}


def files_of(paths: Iterable[str | Path | None]) -> list[dict[str, Any]]:
    """Return the records of the files that are there; those beyond a hundred have one for all."""
    given = dict.fromkeys(str(path) for path in paths if path is not None)
    there = [Path(path) for path in given if Path(path).exists()]
    found = [file_record(path) for path in there[:MOST_LISTED]]
    if more := [path for path in there[MOST_LISTED:] if path.is_file()]:
        name = f"{len(more)} more files"
        found.append({"name": name, "files": len(more), **_size_and_hash(more)})
    return found


def _size_and_hash(files: Sequence[Path], folder: Path | None = None) -> dict[str, Any]:
    size = sum(file.stat().st_size for file in files)
    if size > MOST_HASHED:
        return {"bytes": size, "sha256": None}
    found = hashlib.sha256()
    for file in files:
        if len(files) > 1 or folder is not None:
            name = file.name if folder is None else file.relative_to(folder).as_posix()
            found.update(name.encode() + b"\0")
        with open(file, "rb") as stream:
            while piece := stream.read(PIECE):
                found.update(piece)
    return {"bytes": size, "sha256": found.hexdigest()}


def raters_record(rater_ids: Sequence[Hashable] | None) -> str | list[str]:
    """Return the names of the raters, or "anonymous" where they are numbers or not known.

    >>> raters_record(("Smith", "Lee")), raters_record((0, 1)), raters_record(None)
    (['Smith', 'Lee'], 'anonymous', 'anonymous')
    """
    if not rater_ids or all(str(name).isdigit() for name in rater_ids):
        return "anonymous"
    return [str(name) for name in rater_ids]


def left_out_record(
    left_out: Mapping[str, Sequence[Hashable]], counts: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return how many cases were left out, by the reason, and which they are where that is known.

    >>> left_out_record({"unrated": ("n7",)}, {"unrated": 1, "bad images": 2})
    {'unrated': {'cases': 1, 'names': ['n7']}, 'bad images': {'cases': 2}}
    """
    found: dict[str, dict[str, Any]] = {}
    for reason in dict.fromkeys((*left_out, *counts)):
        names = list(left_out.get(reason, ()))
        found[str(reason)] = {"cases": counts.get(reason, len(names))}
        if names:
            plain = [name if isinstance(name, int) else str(name) for name in names[:MOST_NAMED]]
            found[str(reason)]["names"] = plain
    return found


def versions() -> dict[str, str]:
    """Return the versions of what computes."""
    from importlib.metadata import version  # which loads much, for a start

    from raterwise import __version__  # of the code that runs, whatever was installed

    others = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"python": platform.python_version(), "raterwise": __version__, **others}
