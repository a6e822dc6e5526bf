"""CSV as programs export it: delimiter, encoding and a first line sep=; are recognised per file.

Columns are read as text and converted by `raterwise.io.values`, never by inference: inference
would turn the id 007 into 7 and cannot say which row of a column is not a number.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raterwise.errors import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa

TAB = "\t"
DELIMITERS = ",;\t|"
HEAD_BYTES = 1 << 16
HEAD_ROWS = 50
NUMBER = re.compile(r"[+-]?[0-9]*[.,]?[0-9]+")
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    skipped: int = 0
    """Lines before that of the column names: sep=;"""


def recognise(
    file: Path, delimiter: str | None, encoding: str | None
) -> tuple[CsvFormat, list[str]]:
    """Return how a file is written, and its column names as they stand there.

    What is told is taken; a delimiter that gives one column only is an error that names a better.
    """
    text, encoding = _head(file, encoding)
    usual = TAB if ".tsv" in file.suffixes else ","
    first = text.partition("\n")[0].strip("\ufeff\r\n ")
    skipped = 0
    if first.lower().startswith("sep=") and len(first) == 5:
        usual, skipped = first[-1], 1
        text = text.partition("\n")[2]
    separator = (TAB if delimiter == "tab" else delimiter) or _delimiter(text, usual)
    if len(separator) != 1:
        raise InvalidInputError(f"delimiter: must be one character, or tab; got {separator!r}")
    header = _rows(text, separator, file.name, most=1)
    if not header:
        raise InvalidInputError(f"{file.name}: must begin with a line of column names; it is empty")
    other = next((mark for mark in DELIMITERS if mark != separator and mark in header[0][0]), None)
    if len(header[0]) == 1 and other:
        raise InvalidInputError(
            f"{file.name}: only one column was found, {header[0][0]!r}; it looks separated by "
            f'{other!r}, not by {separator!r}: say delimiter="{other.replace(TAB, "tab")}"'
        )
    _check_header(_rows(text, separator, file.name, most=HEAD_ROWS), file.name)
    return CsvFormat(separator, encoding, skipped), header[0]


def _check_header(rows: list[list[str]], name: str) -> None:
    """Refuse a first line before that of the column names: no number there, but in the next."""
    named, *others = (len(row) for row in rows)
    others = others[:-1] if len(others) > 1 else others  # the last may be cut short
    if not others or set(others) != {max(others[0], named + 1)}:
        return
    numbers = [any(NUMBER.fullmatch(cell.strip()) for cell in row) for row in rows[1:3]]
    if numbers == [False, True]:
        raise InvalidInputError(
            f"{name}: the first line must name every column; it is {', '.join(rows[0])!r:.60} "
            f"({named}), and those after it have {others[0]} (delete what stands before the column "
            "names)"
        )


def _head(file: Path, encoding: str | None) -> tuple[str, str]:
    """Return the beginning of a file as text, and its encoding."""
    import pyarrow as pa

    try:
        with pa.input_stream(str(file)) as stream:
            content = bytes(stream.read(HEAD_BYTES))
    except OSError as error:
        raise InvalidInputError(f"{file.name}: cannot be read as CSV; {error}") from error
    # A mark at the beginning is surer than what was said, which may be meant for another file.
    marked = next((name for bom, name in BOMS.items() if content.startswith(bom)), "")
    found = marked or encoding or ""
    if not found and b"\0" in content[:2]:
        likely = "utf-16-be" if content[:1] == b"\0" else "utf-16-le"
        raise InvalidInputError(
            f"{file.name}: has zero bytes; it looks like UTF-16 without a mark at its beginning: "
            f'say encoding="{likely}"'
        )
    try:
        # Not the end: the last character may be cut in two.
        codecs.lookup(encoding or "utf-8")
        decoder = codecs.getincrementaldecoder(found or "utf-8")()
        return decoder.decode(content).removeprefix("\ufeff"), found or "utf-8"
    except LookupError:
        raise InvalidInputError(
            f"encoding: must be one that Python knows, such as utf-8 or cp1252; got {encoding!r}"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{file.name}: must be UTF-8 text; byte {error.object[error.start]:#04x} is not "
            "(in a spreadsheet program, save as 'CSV UTF-8'; a file of Windows in Western Europe: "
            'encoding="cp1252")'
        ) from error


def _delimiter(text: str, usual: str) -> str:
    """Return the delimiter that splits the lines evenly, and into most columns."""
    columns: dict[str, int] = {}
    for mark in dict.fromkeys((usual, *DELIMITERS)):
        try:
            rows = _rows(text, mark, "", most=HEAD_ROWS)
        except InvalidInputError:
            continue
        # The last row may be cut short where the head of the file ends.
        lengths = {len(row) for row in (rows[:-1] if len(rows) > 2 else rows)}
        if rows and len(rows[0]) > 1 and len(lengths) == 1:
            columns[mark] = len(rows[0])
    if not columns:  # uneven lines: by the names of the columns alone
        first = text.partition("\n")[0]
        return max((usual, *DELIMITERS), key=lambda mark: first.count(mark)) if first else usual
    return max(columns, key=lambda mark: columns[mark])


def _rows(text: str, separator: str, name: str, most: int) -> list[list[str]]:
    """Return the first rows that are not empty."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) == most:
                break
    except csv.Error as error:
        raise InvalidInputError(f"{name}: cannot be read as CSV; {error}") from error
    return rows


def read_columns(
    path: Path, form: CsvFormat, columns: Sequence[str], names: Sequence[str]
) -> pa.Table:
    """Return columns as text without blanks around it; they are given these `names`."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    def read(threads: bool) -> pa.Table:
        return arrow_csv.read_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(
                use_threads=threads, encoding=form.encoding, skip_rows=form.skipped
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=form.delimiter,
                newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
        text = pc.utf8_trim_whitespace(column)
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)

    try:
        table = read(True)
    except pa.ArrowInvalid:
        table = _read_slowly(path.name, read)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path.name}: is not text in {form.encoding}; {error}") from error
    return pa.table([trimmed(column) for column in table.columns], names=list(names))


def _read_slowly(name: str, read: Callable[[bool], pa.Table]) -> pa.Table:
    """Read once more with one thread, which is slower but knows the number of the bad row."""
    import pyarrow as pa

    try:
        return read(False)
    except pa.ArrowInvalid as error:
        message = " ".join(str(error).split())
        message = message if len(message) <= 200 else message[:200] + " …"
    hint = ""
    if "UTF8" in message:
        hint = ' (the file must be UTF-8 text; or say encoding="cp1252")'
    elif "Expected" in message:
        hint = " (row 1 is the line of column names; a decimal comma also splits a value in two)"
    raise InvalidInputError(f"{name}: {message}{hint}")
