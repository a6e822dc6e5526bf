"""Tables in files: CSV, Parquet and Arrow behind one `columns` and one `read`.

CSV columns are read as text and converted by `raterwise.io.values`, never by inference: inference
would turn the id 007 into 7 and cannot say which row of a column is not a number.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterwise.errors import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FORMATS",
    "TableFile",
    "existing_file",
    "file_format",
    "listed",
    "matching_files",
    "open_table",
]

TAB = "\t"

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
}


@dataclass(frozen=True)
class TableFile:
    """A table in a file: what its columns are called, and the columns themselves when asked."""

    path: Path
    format: str
    columns: tuple[str, ...]
    delimiter: str = ","

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    def require(self, column: str, argument: str) -> str:
        """Return `column` where the file has it; otherwise say what it has."""
        if column not in self.columns:
            raise InvalidInputError(
                f"{argument}: must name a column of {self.name}; there is no {column!r} "
                f"(columns: {listed(self.columns)})"
            )
        return column

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns, every row of them."""
        wanted = list(dict.fromkeys(columns))
        if self.format == "csv":
            return _read_csv(self, wanted)
        with _readable(self.path, self.format):
            if self.format == "parquet":
                import pyarrow.parquet as pq

                with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                    return file.read(columns=wanted)
            return _read_arrow(self.path).select(wanted)


def open_table(path: str | PathLike[str], *, delimiter: str | None = None) -> TableFile:
    """Return the table in a CSV, Parquet or Arrow file; only its column names are read yet."""
    file = existing_file(path)
    kind = file_format(file)
    if kind == "npz":
        raise InvalidInputError(f"{file.name}: holds arrays, not a table with columns")
    separator = delimiter or (TAB if ".tsv" in file.suffixes else ",")
    separator = TAB if separator == "tab" else separator
    if len(separator) != 1:
        raise InvalidInputError(f"delimiter: must be one character, or tab; got {separator!r}")
    columns = _column_names(file, kind, separator)
    twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"{file.name}: column names must differ; {listed(twice)} stands there more than once"
        )
    return TableFile(file, kind, tuple(columns), separator)


def existing_file(path: str | PathLike[str]) -> Path:
    """Return `path` where it is a file that is there."""
    file = Path(path)
    if file.is_dir():
        raise InvalidInputError(f"{file}: must be a file; it is a folder")
    if not file.exists():
        raise InvalidInputError(f"{file}: there is no such file")
    return file


def matching_files(paths: Sequence[str | PathLike[str]]) -> list[Path]:
    """Return the files of some names and patterns, in order; the same file twice is an error.

    A name that is there is itself, whatever signs it has; a pattern that matches nothing, too, and
    is reported as a missing file when it is opened.
    """
    files: list[Path] = []
    for path in paths:
        found = [] if Path(path).exists() else sorted(glob.glob(str(path)))
        files += [Path(name) for name in found] or [Path(path)]
    known: set[Path] = set()
    for file in files:
        if file.resolve() in known:
            raise InvalidInputError(f"files: must be counted once each; got {file.name} twice")
        known.add(file.resolve())
    return files


def file_format(path: Path) -> str:
    """Return csv, parquet, arrow or npz, as the file's name ends."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and FORMATS.get((suffixes[-2:] or [""])[0]) == "csv":
        return "csv"
    found = FORMATS.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise InvalidInputError(f"{path}: the name must end in {', '.join(FORMATS)} (CSV also .gz)")
    return found


def listed(names: Sequence[Any], most: int = 20) -> str:
    """Return names for a message, in quotes so that blanks show, and no more than `most`."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" … ({len(names)} in all)" if len(names) > most else "")


def _column_names(file: Path, kind: str, separator: str) -> list[str]:
    if kind == "csv":
        return _csv_header(file, separator)
    with _readable(file, kind):
        if kind == "parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(file).names)
        return list(_read_arrow(file).column_names)


@contextlib.contextmanager
def _readable(file: Path, kind: str) -> Iterator[None]:
    """Turn what Arrow says of a damaged file into one sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.lib.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"{file.name}: cannot be read as {kind.capitalize()}; {_one_line(error)}"
        ) from error


def _csv_header(file: Path, separator: str) -> list[str]:
    import pyarrow as pa

    try:
        with pa.input_stream(str(file)) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            header = next(csv.reader(text, delimiter=separator), [])
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{file.name}: must be UTF-8 text; byte {error.object[error.start]:#04x} is not "
            "(in a spreadsheet program, save as 'CSV UTF-8')"
        ) from error
    except (csv.Error, OSError) as error:
        raise InvalidInputError(f"{file.name}: cannot be read as CSV; {error}") from error
    if not header:
        raise InvalidInputError(f"{file.name}: must begin with a line of column names; it is empty")
    other = next((mark for mark in ";\t|," if mark != separator and mark in header[0]), None)
    if len(header) == 1 and other:
        raise InvalidInputError(
            f"{file.name}: only one column was found, {header[0]!r}; it looks separated by "
            f'{other!r}, not by {separator!r}: say delimiter="{other.replace(TAB, "tab")}"'
        )
    return header


def _read_csv(file: TableFile, columns: list[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def read(threads: bool) -> pa.Table:
        return arrow_csv.read_csv(
            str(file.path),
            read_options=arrow_csv.ReadOptions(use_threads=threads),
            parse_options=arrow_csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    try:
        return read(threads=True)
    except pa.ArrowInvalid as error:
        message = _one_line(error)
    try:  # one thread is slower, but knows the number of the row
        return read(threads=False)
    except pa.ArrowInvalid as error:
        message = _one_line(error)
    hint = ""
    if "UTF8" in message:
        hint = " (the file must be UTF-8 text)"
    elif "Expected" in message:
        hint = " (row 1 is the line of column names; a decimal comma also splits a value in two)"
    raise InvalidInputError(f"{file.name}: {message}{hint}")


def _read_arrow(path: Path) -> pa.Table:
    """Return the whole table; the file is mapped, so unused columns cost nothing."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:200] + " …"
