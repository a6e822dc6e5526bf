"""Tables and folders as data sets are published: read, checked, and named in the error."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.damaged import read_archive
from raterwise.io.volumes import natural_order

Rows = list[dict[str, str]]

PACKED = ("", ".gz", ".GZ")
IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif")


def required(path: str | PathLike[str], what: str = "file") -> Path:
    """Return a path that is there."""
    found = Path(path)
    if found.is_dir() if what == "folder" else found.is_file():
        return found
    if found.exists():
        kind = "file" if what == "folder" else "folder"
        raise InvalidInputError(f"{found}: must be a {what}; it is a {kind}")
    raise InvalidInputError(f"{found}: no such {what}")


def below(folder: str | PathLike[str], *names: str) -> Path:
    """Return a folder that lies below another, whatever its capitals; it need not be there.

    A part that was unpacked as "training" in the place of "Training" would be lost without a word.
    """
    place = Path(folder)
    for name in names:
        found = place / name
        if not found.is_dir() and place.is_dir():
            same = (path for path in sorted(place.iterdir()) if path.is_dir())
            found = next((path for path in same if path.name.lower() == name.lower()), found)
        place = found
    return place


def folder_in(folder: str | PathLike[str], *names: str) -> Path:
    """Return the first of several folders below one that is there; "." is itself."""
    required(folder, "folder")
    for name in names:
        if (found := below(folder, *name.split("/"))).is_dir():
            return found
    raise InvalidInputError(f"{folder}: must hold the folder {' or '.join(names)}; it does not")


def find_file(folder: str | PathLike[str], *names: str) -> Path:
    """Return the first of `names`, each plain or with .gz, that a folder holds."""
    for candidate in _candidates(folder, *names):
        if candidate.is_file():
            return candidate
    raise InvalidInputError(
        f"folder: {folder} must hold {' or '.join(names)} (or the same with .gz); it does not"
    )


def has_file(folder: str | PathLike[str], *names: str) -> bool:
    """Tell whether `find_file` would find one."""
    return any(candidate.is_file() for candidate in _candidates(folder, *names))


def _candidates(folder: str | PathLike[str], *names: str) -> list[Path]:
    return [Path(folder) / f"{name}{suffix}" for name in names for suffix in PACKED]


def _packed_or_plain(path: str | PathLike[str]) -> Path:
    """Return a text file that is there, or the same with .gz."""
    file = Path(path)
    return next((f for f in _candidates(file.parent, file.name) if f.is_file()), file)


def read_bytes(path: Path) -> bytes:
    """Return what a file holds, unpacked where its name ends in .gz."""
    content = required(path).read_bytes()
    if path.suffix.lower() != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(f"{path}: must be a whole gzip file; {error}") from error


def read_npy(path: str | PathLike[str]) -> NDArray[Any]:
    """Return the array of an NPY file; one that holds objects is refused."""
    file = required(path)
    try:
        with file.open("rb") as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInputError(f"{file.name}: must be an NPY file; {error}") from error


def read_npz(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an NPZ file; one that holds objects is refused."""
    file = required(path)
    return read_archive(file, file.name)


def read_rows(path: str | PathLike[str], columns: Iterable[str], *, delimiter: str = ",") -> Rows:
    """Return the rows of a table with a head, plain or gzip; it must have the columns."""
    file = required(_packed_or_plain(path))
    lines = io.StringIO(read_text(file), newline="")
    # Strict: a quote that is never closed would swallow the rest of the table.
    reader = csv.DictReader(lines, delimiter=delimiter, restkey="", strict=True)
    try:
        head = [name.strip() for name in reader.fieldnames or ()]
        if missing := [name for name in columns if name not in head]:
            raise InvalidInputError(
                f"{file}: must have the columns {', '.join(missing)}; "
                f"got {', '.join(head) or 'none'}"
            )
        reader.fieldnames = head
        rows = list(reader)
    except csv.Error as error:
        where = f"line {reader.reader.line_num}"
        raise InvalidInputError(
            f"{file}: must be a table separated by {delimiter!r}; {where}: {error}"
        ) from error
    if not rows:
        raise InvalidInputError(f"{file}: must have a row below the column names; it has none")
    for name in columns:
        if any(row[name] is None for row in rows):
            short = next(i for i, row in enumerate(rows) if row[name] is None)
            raise InvalidInputError(f"{file}: row {short} ends before the column {name}")
    return rows


def read_text(file: Path) -> str:
    """Return what a text file holds, plain or gzip."""
    try:
        return read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{file}: must be text in UTF-8; {error}") from error


def column(rows: Rows, name: str) -> list[str]:
    """Return a column as it stands, without blanks around it."""
    return [row[name].strip() for row in rows]


def keys(path: Any, rows: Rows, name: str) -> list[str]:
    """Return the column that says what each case is called: no two may be called the same."""
    found = column(rows, name)
    distinct(path, name, found)
    return found


def patients(path: Any, rows: Rows, name: str) -> NDArray[np.str_]:
    """Return the column that says whose each case is: blanks would make one patient of many."""
    found = column(rows, name)
    if "" in found:
        raise InvalidInputError(f"{path}: {name} must not be empty; row {found.index('')} is")
    return texts(found)


def distinct(path: Any, name: str, values: Sequence[str]) -> None:
    """Raise where a case stands in a table twice: it would count twice, perhaps with two labels."""
    seen: dict[str, int] = {}
    for row, value in enumerate(values):
        if value in seen:
            raise InvalidInputError(
                f"{path}: {name} must be different in each row; "
                f"rows {seen[value]} and {row} have {value!r}"
            )
        seen[value] = row


def texts(values: Iterable[Any]) -> NDArray[np.str_]:
    """Return an array of text."""
    return np.array([str(value) for value in values], np.str_)


def whole(
    path: Any, rows: Rows, name: str, low: int, high: int, *, missing: str | None = None
) -> NDArray[np.int64]:
    """Return a column of whole numbers from `low` to `high`; -1 where it says `missing`."""
    found = np.empty(len(rows), np.int64)
    for i, value in enumerate(column(rows, name)):
        if missing is not None and value == missing:
            found[i] = -1
            continue
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not (number.is_integer() and low <= number <= high):
            raise InvalidInputError(
                f"{path}: {name} must be a whole number {low} … {high}; row {i} has {value!r}"
            )
        found[i] = int(number)
    return found


def coded(path: Any, name: str, values: Sequence[str], codes: Mapping[str, int]) -> NDArray[Any]:
    """Return the codes of words; a word that nobody knows is an error that names its row."""
    for i, value in enumerate(values):
        if value not in codes:
            raise InvalidInputError(
                f"{path}: {name} must be {', '.join(map(repr, codes))}; row {i} has {value!r}"
            )
    return np.array([codes[value] for value in values], np.int64)


def lines_of(path: str | PathLike[str], *, empty: bool = False) -> list[str]:
    """Return the lines of a text file that are not blank; there must be one, or it may be empty."""
    found = [
        line.strip()
        for line in read_text(required(_packed_or_plain(path))).splitlines()
        if line.strip()
    ]
    if not found and not empty:
        raise InvalidInputError(f"{path}: must have a line; it has none")
    return found


def image_paths(folder: Path, names: Iterable[str], *, table: Any) -> tuple[Path, ...] | None:
    """Return where the images of a table are; None where the folder is not there at all.

    A name that leads out of the folder, and one whose file is missing, are errors. An ending in
    other letters, such as .PNG, is the same file.
    """
    if not folder.is_dir():
        return None
    found, others = [], _by_ending(folder)
    for name in names:
        inner = PurePosixPath(name.replace("\\", "/"))
        if inner.is_absolute() or ".." in inner.parts or ":" in name:
            raise InvalidInputError(f"{table}: images must lie in {folder}; got {name!r}")
        path = folder / inner
        path = path if path.is_file() else others.get(_plain(path), path)
        if not path.is_file():
            raise InvalidInputError(f"{folder}: must hold {name}, which {table} names; it does not")
        found.append(path)
    return tuple(found)


def _plain(path: Path) -> tuple[str, str]:
    return path.stem, path.suffix.lower()


def _by_ending(folder: Path) -> dict[tuple[str, str], Path]:
    """Return the files whose ending has capitals, by name and small ending."""
    inside = (path for path in folder.iterdir() if path.suffix != path.suffix.lower())
    return {_plain(path): path for path in inside}


def hidden(path: Path) -> bool:
    """Tell what a system leaves beside files: .DS_Store, ._x.png, the folder __MACOSX."""
    return path.name.startswith(".") or path.name == "__MACOSX"


def files_below(folder: Path, ending: str) -> list[Path]:
    """Return the files with an ending in a folder and all below it; hidden ones are left out."""
    wanted = (path for path in folder.rglob("*") if path.suffix.lower() == ending)
    return sorted(
        path
        for path in wanted
        if path.is_file() and not any(hidden(Path(p)) for p in path.relative_to(folder).parts)
    )


def files_in(folder: Path, endings: Sequence[str] = IMAGES) -> list[Path]:
    """Return the files of a folder by their endings, 2 before 10; hidden ones are left out."""
    inside = required(folder, "folder").iterdir()
    wanted = (p for p in inside if p.name.lower().endswith(tuple(endings)) and not hidden(p))
    return sorted((path for path in wanted if path.is_file()), key=natural_order)
