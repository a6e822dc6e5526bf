"""Tables in files: CSV, Excel, Parquet and Arrow behind one `columns` and one `read`."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.io.csv_files import CsvFormat, read_columns, recognise, refuse_names_again
from raterwise.io.damaged import check_fits, one_line
from raterwise.io.excel import read_sheet
from raterwise.io.texts import clean_name, cleaned, titles_note
from raterwise.rules import did_you_mean, listed

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".xlsx": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
}


TO_PARQUET = "convert each to Parquet (docs/cluster.md has the lines for CSV, in little memory)"
"""What to do about many tables that are not Parquet."""
LEAST_BYTES = 4
"""Of one value in memory; a file may hold a million of them in a few bytes."""
CONVERT = {
    ".xls": "save it as .xlsx",
    ".ods": "save it as .xlsx",
    ".zip": "unpack it",
    ".npy": "np.savez makes an .npz of named arrays: probs, labels",
    ".json": "raterwise report and raterwise compare take results",
}
"""What to do about files of other kinds."""


@dataclass(frozen=True)
class TableFile:
    """A table in a file: what its columns are called, and the columns themselves when asked."""

    path: Path
    format: str
    columns: tuple[str, ...]
    csv: CsvFormat = field(default_factory=CsvFormat)
    raw: Mapping[str, str] = field(default_factory=dict)
    """The names as they stand in the file, blanks included."""
    held: Any = None
    """The table itself, of formats that are read at once."""
    note: str = ""
    """What to know about how it is read, if anything."""

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    @property
    def read_so(self) -> str:
        """How it was read, in brackets, where a column is not found: it may be in another sheet."""
        return f" ({self.note})" if self.note else ""

    @property
    def delimiter(self) -> str:
        """Between the values of a CSV file."""
        return self.csv.delimiter

    def where(self, column: str) -> str:
        """How a message names a column."""
        return f"{self.name}: column {column!r}"

    def require(self, column: str, argument: str) -> str:
        """Return `column` where the file has it; otherwise say what it has."""
        if column not in self.columns:
            raise InvalidInputError(
                f"{argument}: must name a column of {self.name}; there is no {column!r}"
                f"{did_you_mean(column, self.columns)} (columns: {listed(self.columns)})"
            )
        return column

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns, every row of them."""
        wanted = list(dict.fromkeys(columns))
        if self.format == "csv":
            return read_columns(self.path, self.csv, [self.raw[name] for name in wanted], wanted)
        import pyarrow as pa

        table = self._typed(wanted)
        table = pa.table([cleaned(column) for column in table.columns], names=wanted)
        if self.format == "excel":
            refuse_names_again(table, self.name)
        return table

    def _typed(self, wanted: list[str]) -> pa.Table:
        """Return columns of formats that know their types, as they are."""
        if self.held is not None:
            return self.held.select([self.columns.index(name) for name in wanted])
        raw = [self.raw[name] for name in wanted]
        with _readable(self.path, self.format):
            if self.format == "parquet":
                import pyarrow.parquet as pq

                with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                    check_fits(file.metadata.num_rows * len(raw) * LEAST_BYTES, self.name)
                    return file.read(columns=raw)
            return _read_arrow(self.path).select(raw)


def open_table(
    path: str | PathLike[str], *, delimiter: str | None = None, encoding: str | None = None
) -> TableFile:
    """Return the table in a CSV, Excel, Parquet or Arrow file; only its names are read yet.

    The delimiter and the encoding of a CSV file are recognised unless they are told.
    """
    file = existing_file(path)
    kind = file_format(file)
    if kind == "npz":
        raise InvalidInputError(f"{file.name}: holds arrays, not a table with columns")
    form, held, note = CsvFormat(), None, ""
    if kind == "csv":
        form, given = recognise(file, delimiter, encoding)
        note = titles_note(file.name, form.title)
    elif kind == "excel":
        held, note = read_sheet(file)
        given = held.column_names
    else:
        given = _column_names(file, kind)
    columns = [clean_name(name) for name in given]
    twice = [name for name in dict.fromkeys(columns) if name and columns.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"{file.name}: column names must differ; {listed(twice)} stands there more than once "
            "(rename one; if the names are in another line, delete those above it)"
        )
    raw = dict(zip(columns, given, strict=True))
    return TableFile(file, kind, tuple(columns), form, raw, held, note)


def existing_file(path: str | PathLike[str]) -> Path:
    """Return `path` where it is a file that is there."""
    file = Path(path)
    if file.is_dir():
        raise InvalidInputError(f"{file}: must be a file; it is a folder")
    if not file.exists():
        if several := glob.glob(str(file)):
            kinds = {FORMATS.get(Path(name).suffix.lower(), "parquet") for name in several}
            first = "" if kinds == {"parquet"} else f": {TO_PARQUET} first"
            raise InvalidInputError(
                f"{file}: must be one file; it is a pattern, which {len(several)} match. Put them "
                "into one table; or, if labels stand beside the predictions, read them as a stream "
                f"(raterwise evaluate --stream, evaluate_stream){first}"
            )
        raise InvalidInputError(f"{file}: there is no such file")
    if not file.is_file():  # a pipe would wait for ever, /dev/zero never end
        raise InvalidInputError(f"{file}: must be an ordinary file")
    return file


def as_path(path: Any, name: str) -> Path:
    """Return the name of a file as a path; arrays and frames are none."""
    if not isinstance(path, str | PathLike):
        raise InvalidTypeError(
            f"{name}: must be the name of a file; got {type(path).__name__} (evaluate takes arrays)"
        )
    return Path(path)


def matching_files(paths: Sequence[str | PathLike[str]]) -> list[Path]:
    """Return the files of some names and patterns, in order; the same file twice is an error.

    A name that is there is itself, whatever signs it has; a pattern that matches nothing, too, and
    is reported as a missing file when it is opened.
    """
    files: list[Path] = []
    for path in paths:
        as_path(path, "paths")
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
        existing_file(path)  # a folder, or a name that is not there, has no ending to be wrong
        way = CONVERT.get(suffixes[-1] if suffixes else "", "CSV also .gz")
        raise InvalidInputError(f"{path}: the name must end in {', '.join(FORMATS)} ({way})")
    return found


def _column_names(file: Path, kind: str) -> list[str]:
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
            f"{file.name}: cannot be read as {kind.capitalize()}; {one_line(error)}"
        ) from error


def _read_arrow(path: Path) -> pa.Table:
    """Return the whole table; the file is mapped, so unused columns cost nothing."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()
