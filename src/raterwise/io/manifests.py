"""Manifests: tables that say which files belong to which image."""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from raterwise.errors import InvalidInputError

__all__ = ["CaseFiles", "read_by", "read_manifest"]

REQUIRED = ("case", "probabilities", "raters")
KNOWN = (*REQUIRED, "mask", "patient", "spacing", "rater_names")


@dataclass(frozen=True)
class CaseFiles:
    """One row of a manifest: the files of an image.

    Parameters
    ----------
    case : str
        Its name.
    probabilities : Path
        The file of the model's probabilities.
    raters : tuple of Path
        The masks, one file per rater.
    mask : Path, default None
        The file of the region to look at.
    patient : str, default None
        Whose image it is.
    spacing : tuple of float, default None
        Of a voxel in mm along each axis of the array, where the files do not say.
    rater_names : tuple of str, default None
        Who drew each of the masks.
    values : tuple of (str, str), default ()
        What else the manifest says of the image, such as ("scanner", "A").

    See Also
    --------
    read_manifest : makes them.

    Examples
    --------
    >>> files = CaseFiles("c1", Path("c1.npy"), (Path("c1_ann.png"), Path("c1_bob.png")))
    >>> files.case, len(files.raters)
    ('c1', 2)
    """

    case: str
    probabilities: Path
    raters: tuple[Path, ...]
    mask: Path | None = None
    patient: str | None = None
    spacing: tuple[float, ...] | None = None
    rater_names: tuple[str, ...] | None = None
    values: tuple[tuple[str, str], ...] = ()

    def absolute(self) -> CaseFiles:
        """Return the same files under names that hold in every folder.

        Returns
        -------
        CaseFiles
            With absolute paths, for workers that run elsewhere.

        Examples
        --------
        >>> files = CaseFiles("c1", Path("c1.npy"), (Path("c1_ann.png"),))
        >>> files.absolute().probabilities.is_absolute()
        True
        """
        mask = None if self.mask is None else self.mask.absolute()
        raters = tuple(path.absolute() for path in self.raters)
        return replace(self, probabilities=self.probabilities.absolute(), raters=raters, mask=mask)


def read_manifest(
    path: str | PathLike[str], delimiter: str = ",", values: Sequence[str] = ()
) -> list[CaseFiles]:
    r"""Return the images that a table lists: case, probabilities, raters and what else is known.

    `raters` are paths or patterns (`masks/c1_*.png`) joined by ";". Paths are relative to the
    manifest. `mask`, `patient`, `spacing` (mm along each axis, joined by ";", where the files do
    not say) and `rater_names` (who drew each mask, joined by ";") may be missing.

    Parameters
    ----------
    path : str or path
        The table.
    delimiter : str, default ","
        What separates its columns.
    values : sequence of str, default ()
        Further columns whose values are kept, such as the scanner.

    Returns
    -------
    list of CaseFiles
        One per row; no image has been opened yet.

    Raises
    ------
    InvalidInputError
        If the table cannot be read, lacks a column or has an unknown one, or names a case twice.

    See Also
    --------
    segmentation.evaluate : takes the list.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "manifest.csv"
    >>> _ = path.write_text("case,probabilities,raters\nc1,c1.npy,c1_ann.png;c1_bob.png\n")
    >>> [files] = read_manifest(path)
    >>> files.case, [rater.name for rater in files.raters]
    ('c1', ['c1_ann.png', 'c1_bob.png'])
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError(f"{file}: there is no such file")
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            table = csv.DictReader(stream, delimiter=delimiter)
            rows, columns = list(table), list(table.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{file.name}: cannot be read as CSV; {error}") from error
    if len(set(columns)) < len(columns):
        raise InvalidInputError(f"{file.name}: columns must differ; got {', '.join(columns)}")
    missing = [name for name in REQUIRED if name not in columns]
    if missing or not rows:
        raise InvalidInputError(
            f"{file.name}: must have rows and the columns {', '.join(REQUIRED)}; "
            f"{', '.join(missing) or 'a row'} is not there "
            f"(columns: {', '.join(columns) or 'none'})"
        )
    absent = [name for name in values if name not in columns]
    if absent:
        raise InvalidInputError(
            f"values: must be columns of {file.name}; there is no {', '.join(absent)} "
            f"(columns: {', '.join(columns)})"
        )
    unknown = [name for name in columns if name not in (*KNOWN, *values)]
    if unknown:
        raise InvalidInputError(
            f"{file.name}: columns must be {', '.join(KNOWN)}; got {', '.join(unknown)}"
        )
    found = [
        replace(_case_of(row, i, file), values=tuple((name, row[name]) for name in values))
        for i, row in enumerate(rows, start=1)
    ]
    names = [case.case for case in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"{file.name}: cases must differ; {twice!r} is there twice")
    return found


def read_by(path: str | PathLike[str], files: Sequence[CaseFiles]) -> list[Path]:
    """Return every file and folder that a manifest names, and the patterns it names them by."""
    found = [path for f in files for path in (f.probabilities, *f.raters, f.mask) if path]
    with open(path, encoding="utf-8-sig", newline="") as stream:
        # A row was taken by read_manifest before, so it has its columns, whatever parts them.
        cells = {part.strip() for row in csv.reader(stream) for c in row for part in c.split(";")}
    folder = Path(glob.escape(str(Path(path).parent)))
    return [*found, *(folder / part for part in cells if glob.has_magic(part))]


def _case_of(row: dict[str, Any], number: int, manifest: Path) -> CaseFiles:
    if None in row or any(value is None for value in row.values()):
        raise InvalidInputError(f"{manifest.name}: row {number} has too many or too few columns")
    values = {key: value.strip() for key, value in row.items()}
    if any("\0" in value for value in values.values()):
        raise InvalidInputError(f"{manifest.name}: row {number} has a zero byte in it")
    empty = [key for key in REQUIRED if not values[key]]
    if empty:
        raise InvalidInputError(f"{manifest.name}: row {number} has no {', '.join(empty)}")
    folder = manifest.parent
    patterns = [part.strip() for part in values["raters"].split(";") if part.strip()]
    raters = tuple(path for pattern in patterns for path in _matching(folder, pattern))
    if len(set(raters)) < len(raters):
        twice = next(path for path in raters if raters.count(path) > 1)
        raise InvalidInputError(
            f"{manifest.name}: raters of row {number} must differ; {twice.name} is there twice"
        )
    return CaseFiles(
        values["case"],
        folder / values["probabilities"],
        raters,
        folder / values["mask"] if values.get("mask") else None,
        values.get("patient") or None,
        _spacing(values.get("spacing", ""), number, manifest),
        _names(values.get("rater_names", ""), raters, number, manifest),
    )


def _names(
    text: str, raters: tuple[Path, ...], number: int, manifest: Path
) -> tuple[str, ...] | None:
    names = tuple(part.strip() for part in text.split(";")) if text else None
    if names is not None and (len(names) != len(raters) or len(set(names)) < len(names)):
        raise InvalidInputError(
            f"{manifest.name}: rater_names of row {number} must name each of its {len(raters)} "
            f"masks once, joined by ;; got {text!r}"
        )
    return names


def _spacing(text: str, number: int, manifest: Path) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(";")) if text else None
    except ValueError:
        raise InvalidInputError(
            f"{manifest.name}: spacing of row {number} must be numbers joined by ;; got {text!r}"
        ) from None


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files of a pattern in order; a plain path is itself, whether it exists or not."""
    if not glob.has_magic(pattern) or (folder / pattern).exists():
        yield folder / pattern
        return
    found = sorted(glob.glob(pattern, root_dir=folder))  # brackets in folder's own name are plain
    # A pattern that nothing matches is reported with its case, as a missing file would be.
    yield from (folder / name for name in found or [pattern])
