"""Manifests: tables that say which files belong to which image."""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from raterwise.errors import InvalidInputError
from raterwise.io.axes import check_axes
from raterwise.io.csv_files import recognise
from raterwise.rules import did_you_mean

ENDINGS = (".csv", ".tsv", ".txt")
REQUIRED = ("case", "probabilities", "raters")
KNOWN = (*REQUIRED, "mask", "patient", "spacing", "rater_names", "axes")


@dataclass(frozen=True)
class CaseFiles:
    """One row of a manifest: the files of an image.

    Parameters
    ----------
    case : str
        Name of the image.
    probabilities : Path
        The file of the model's probabilities.
    raters : tuple of Path
        The masks, one file per rater.
    mask : Path, default None
        The file of the region to evaluate.
    patient : str, default None
        The patient of the image.
    spacing : tuple of float, default None
        Size of a voxel in mm along each axis of the array, if the files do not contain it.
    rater_names : tuple of str, default None
        Who drew each of the masks.
    values : tuple of (str, str), default ()
        Further columns of the manifest, such as ("scanner", "A").
    axes : str, default None
        The order of the axes of arrays, which have no geometry: "zyx" or "xyz". They are brought
        into the order x, y, z, which `spacing` then has. It must be told where other files of the
        image have a geometry (NIfTI); nnU-Net's NPZ files are known to be "zyx".

    See Also
    --------
    read_manifest : returns them.

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
    axes: str | None = None

    def absolute(self) -> CaseFiles:
        """Return the same files with absolute paths.

        Returns
        -------
        CaseFiles
            For workers that run in another folder.

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
    path: str | PathLike[str],
    delimiter: str | None = None,
    values: str | Sequence[str] = (),
    axes: str | None = None,
) -> list[CaseFiles]:
    r"""Read a manifest: the images listed in a table.

    `raters` are paths or patterns (`masks/c1_*.png`) joined by ";". Paths are relative to the
    manifest. `mask`, `patient`, `spacing` (mm along each axis, joined by ";", where the files do
    not say), `rater_names` (who drew each mask, joined by ";") and `axes` may be missing.

    Parameters
    ----------
    path : str or path
        The table.
    delimiter : str, default None
        Separator of the columns; by default it is recognised.
    values : str or sequence of str, default ()
        Further columns whose values are kept, such as the scanner.
    axes : str, default None
        The order of the axes of arrays, such as "zyx", where the table does not tell it.

    Returns
    -------
    list of CaseFiles
        One per row; no image has been opened yet.

    Raises
    ------
    InvalidInputError
        If `axes` names no axes; if the table cannot be read, lacks a column or has an unknown one,
        or names a case twice.

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
    axes = None if axes is None else check_axes(axes)
    file = Path(path)
    if not file.is_file():
        raise InvalidInputError(f"{file}: there is no such file")
    if file.suffix.lower() not in ENDINGS:
        raise InvalidInputError(
            f"{file.name}: must be a CSV file that lists the images ({', '.join(ENDINGS)}), with "
            f"the columns {', '.join(REQUIRED)}"
        )
    columns, *lines = _lines(file, delimiter) or [[]]
    values = (values,) if isinstance(values, str) else values
    _check_columns(file, columns, bool(lines), values)
    found = []
    for i, line in enumerate(lines, start=1):
        if len(line) != len(columns):
            raise InvalidInputError(f"{file.name}: data row {i} has too many or too few columns")
        found.append(_case_of(dict(zip(columns, line, strict=True)), i, file, values, axes))
    names = [case.case for case in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"{file.name}: cases must differ; {twice!r} is there twice")
    return found


def read_by(path: str | PathLike[str], files: Sequence[CaseFiles]) -> list[Path]:
    """Return every file and folder that a manifest names, and the patterns it names them by."""
    found = [path for f in files for path in (f.probabilities, *f.raters, f.mask) if path]
    lines = _lines(Path(path), None)
    cells = {part.strip() for line in lines for cell in line for part in cell.split(";")}
    folder = Path(glob.escape(str(Path(path).parent)))
    return [*found, *(folder / part for part in cells if glob.has_magic(part))]


def _lines(file: Path, delimiter: str | None) -> list[list[str]]:
    """Return the cells of a table, that of the column names first, without empty lines."""
    if not file.stat().st_size:
        return []
    form, _ = recognise(file, delimiter, None)
    encoding = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    try:
        with open(file, encoding=encoding, newline="") as stream:
            for _ in range(form.skipped):
                next(stream)
            lines = [line for line in csv.reader(stream, delimiter=form.delimiter) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{file.name}: cannot be read as CSV; {error}") from error
    return lines


def _check_columns(file: Path, columns: Sequence[str], rows: bool, values: Sequence[str]) -> None:
    """Refuse a manifest whose columns are not those that are known, or asked for."""
    there = f"(columns: {', '.join(columns) or 'none'})"
    if len(set(columns)) < len(columns):
        raise InvalidInputError(f"{file.name}: columns must differ; got {', '.join(columns)}")
    missing = [name for name in REQUIRED if name not in columns]
    if missing or not rows:
        meant = did_you_mean(missing[0], columns) if missing else ""
        if "raters" in missing and sum(name.lower().startswith("rater") for name in columns) > 1:
            meant = ' (one column holds the files of all raters, joined by ";")'
        raise InvalidInputError(
            f"{file.name}: must have rows and the columns {', '.join(REQUIRED)}; "
            f"there is no {' and no '.join(missing) or 'row'}{meant} {there}"
        )
    for name in values:
        if name not in columns:
            meant = did_you_mean(name, columns)
            raise InvalidInputError(
                f"values: must be columns of {file.name}; there is no {name!r}{meant} {there}"
            )
    unknown = [name for name in columns if name not in (*KNOWN, *values)]
    if unknown:
        kept = f' (remove it, or, if it says the sub-group: values="{unknown[0]}")'
        raise InvalidInputError(
            f"{file.name}: columns must be {', '.join(KNOWN)}; got {', '.join(unknown)}"
            f"{did_you_mean(unknown[0], KNOWN) or kept}"
        )


def _case_of(
    row: dict[str, str],
    number: int,
    manifest: Path,
    kept: Sequence[str],
    axes: str | None,
) -> CaseFiles:
    values = {key: value.strip() for key, value in row.items()}
    if any("\0" in value for value in values.values()):
        raise InvalidInputError(f"{manifest.name}: data row {number} has a zero byte in it")
    empty = [key for key in REQUIRED if not values[key]]
    if empty:
        raise InvalidInputError(f"{manifest.name}: data row {number} has no {', '.join(empty)}")
    folder = manifest.parent
    patterns = [part.strip() for part in values["raters"].split(";") if part.strip()]
    raters = tuple(path for pattern in patterns for path in _matching(folder, pattern))
    if len(set(raters)) < len(raters):
        twice = next(path for path in raters if raters.count(path) > 1)
        raise InvalidInputError(
            f"{manifest.name}: raters of data row {number} must differ; {twice.name} is there twice"
        )
    return CaseFiles(
        values["case"],
        folder / values["probabilities"],
        raters,
        folder / values["mask"] if values.get("mask") else None,
        values.get("patient") or None,
        _spacing(values.get("spacing", ""), number, manifest),
        _names(values.get("rater_names", ""), raters, number, manifest),
        tuple((name, row[name]) for name in kept),
        check_axes(values["axes"]) if values.get("axes") else axes,
    )


def _names(
    text: str, raters: tuple[Path, ...], number: int, manifest: Path
) -> tuple[str, ...] | None:
    names = tuple(part.strip() for part in text.split(";")) if text else None
    if names is not None and (len(names) != len(raters) or len(set(names)) < len(names)):
        raise InvalidInputError(
            f"{manifest.name}: rater_names of data row {number} must name each of its "
            f"{len(raters)} masks once, joined by ;; got {text!r}"
        )
    return names


def _spacing(text: str, number: int, manifest: Path) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(";")) if text else None
    except ValueError:
        raise InvalidInputError(
            f"{manifest.name}: spacing of data row {number} must be numbers joined by ;; "
            f"got {text!r}"
        ) from None


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files of a pattern in order; a plain path is itself, whether it exists or not."""
    if not glob.has_magic(pattern) or (folder / pattern).exists():
        yield folder / pattern
        return
    found = sorted(glob.glob(pattern, root_dir=folder))  # brackets in folder's own name are plain
    # A pattern that nothing matches is reported with its case, as a missing file would be.
    yield from (folder / name for name in found or [pattern])
