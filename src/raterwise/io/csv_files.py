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
from raterwise.io.damaged import one_line
from raterwise.io.texts import NUMBER, cleaned, is_text, lines_above

if TYPE_CHECKING:
    import pyarrow as pa

TAB = "\t"
DELIMITERS = ",;\t|"
HEAD_BYTES = 1 << 16
HEAD_ROWS = 50
WRONG_ROW = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
ONE_BYTE = re.compile(r"(cp125|iso8859|latin|mac)", re.IGNORECASE)
"""Encodings in which every file is valid, one that is UTF-8 as well."""
NO_CSV = {
    b"PK\x03\x04": "a ZIP archive, as Excel files are: name it .xlsx if it is one",
    b"\xd0\xcf\x11\xe0": "an Excel file of the old kind: save it as .xlsx",
    b"PAR1": "a Parquet file: name it .parquet",
    b"<html": "a web page: open it in a spreadsheet program and save it as .xlsx",
    b"<!doc": "a web page: open it in a spreadsheet program and save it as .xlsx",
    b"<tabl": "a web page: open it in a spreadsheet program and save it as .xlsx",
}
"""How files begin that somebody called .csv, and what they are."""


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    skipped: int = 0
    """Lines before that of the column names: sep=;, or titles."""
    title: str = ""
    """The first of those lines that is a title."""


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
    lines = _numbered_rows(text, separator, file.name)
    if not lines:
        raise InvalidInputError(f"{file.name}: must begin with a line of column names; it is empty")
    above = lines_above([row for _, row in lines])
    if above:
        skipped += lines[above][0]
    header, *_ = rows = [row for _, row in lines[above:]]
    other = next((mark for mark in DELIMITERS if mark != separator and mark in header[0]), None)
    if len(header) == 1 and other:
        # What is told is told of every file: of two that differ, it can be right for one alone.
        alone = " (or leave it out: files are recognised one by one)" if delimiter else ""
        raise InvalidInputError(
            f"{file.name}: only one column was found, {header[0]!r:.60}; it looks separated by "
            f'{other!r}, not by {separator!r}: say delimiter="{other.replace(TAB, "tab")}"{alone}'
        )
    _check_header(rows, file.name)
    title = lines[0][1][0].strip() if above else ""
    return CsvFormat(separator, encoding, skipped, title), header


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
    begin = content[:5].lower() if content[:1] == b"<" else content[:4]
    if begin in NO_CSV:
        raise InvalidInputError(f"{file.name}: is not CSV but {NO_CSV[begin]}")
    # A mark at the beginning is surer than what was said, which may be meant for another file; so
    # are letters of UTF-8, which no other encoding makes by chance.
    marked = next((name for bom, name in BOMS.items() if content.startswith(bom)), "")
    if encoding and ONE_BYTE.match(encoding) and not content.isascii() and _is_utf8(content):
        marked = marked or "utf-8"
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


def _is_utf8(content: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(text: str, usual: str) -> str:
    """Return the delimiter that splits the lines evenly, and into most columns."""
    columns: dict[str, int] = {}
    for mark in dict.fromkeys((usual, *DELIMITERS)):
        try:
            rows = [row for _, row in _numbered_rows(text, mark, "")]
        except InvalidInputError:
            continue
        rows = rows[next((i for i, row in enumerate(rows) if not _is_title(row)), 0) :]
        # The last row may be cut short where the head of the file ends.
        lengths = {len(row) for row in (rows[:-1] if len(rows) > 2 else rows)}
        if rows and len(rows[0]) > 1 and len(lengths) == 1:
            columns[mark] = len(rows[0])
    if not columns:  # uneven lines: by the names of the columns alone
        first = next((line for line in text.splitlines() if set(line) & set(DELIMITERS)), "")
        return max((usual, *DELIMITERS), key=lambda mark: first.count(mark)) if first else usual
    return max(columns, key=lambda mark: columns[mark])


def _is_title(row: list[str]) -> bool:
    return len(row) == 1 and not set(row[0]) & set(DELIMITERS)


def _numbered_rows(text: str, separator: str, name: str) -> list[tuple[int, list[str]]]:
    """Return the first rows that are not empty, and how many lines stand above each."""
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        above = 0
        for row in reader:
            if row:
                rows.append((above, row))
            if len(rows) == HEAD_ROWS:
                break
            above = reader.line_num
    except csv.Error as error:
        raise InvalidInputError(f"{name}: cannot be read as CSV; {error}") from error
    return rows


def read_columns(
    path: Path, form: CsvFormat, columns: Sequence[str], names: Sequence[str]
) -> pa.Table:
    """Return columns as clean text, given these `names`; rows that are empty throughout are none.

    A row that repeats the names of the columns is an error: files were put together.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _read_texts(path, form, columns).rename_columns(list(names))
    table = pa.table([cleaned(column) for column in table.columns], names=table.column_names)
    filled = _filled(table)
    if not pc.all(filled).as_py():  # what is empty here may be full elsewhere
        whole = _read_texts(path, form, None)
        table = table.filter(_filled(pa.table(list(map(cleaned, whole)), whole.column_names)))
    refuse_names_again(table, path.name)
    return table


def refuse_names_again(table: pa.Table, name: str) -> None:
    """Raise an error where a row holds nothing but the names of its columns."""
    import pyarrow.compute as pc

    again = None
    for title in table.column_names:
        if not is_text(table.column(title).type):
            return
        same = pc.fill_null(pc.equal(table.column(title), title), False)
        again = same if again is None else pc.and_(again, same)
    if again is not None and pc.any(again).as_py():
        row = pc.index(again, True).as_py() + 1
        raise InvalidInputError(
            f"{name}: data row {row} repeats the names of the columns; delete that line"
        )


def _filled(table: pa.Table) -> pa.ChunkedArray:
    """Return which rows hold anything."""
    import pyarrow.compute as pc

    filled = pc.is_valid(table.column(0))
    for i in range(1, table.num_columns):
        filled = pc.or_(filled, pc.is_valid(table.column(i)))
    return filled


def _read_texts(path: Path, form: CsvFormat, columns: Sequence[str] | None) -> pa.Table:
    """Return columns, or all of them, as text."""
    import pyarrow as pa
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
                column_types=dict.fromkeys(columns or (), pa.string()),
                include_columns=list(columns or ()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    try:
        return read(True)
    except pa.ArrowInvalid:
        return _read_slowly(path.name, read)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path.name}: is not text in {form.encoding}; {error}") from error


def _read_slowly(name: str, read: Callable[[bool], pa.Table]) -> pa.Table:
    """Read once more with one thread, which is slower but knows the number of the bad row."""
    import pyarrow as pa

    try:
        return read(False)
    except pa.ArrowInvalid as error:
        message = one_line(error)
    hint = ""
    if "UTF8" in message:
        hint = ' (the file must be UTF-8 text; or say encoding="cp1252")'
    elif "straddling" in message:
        hint = ' (a quote " is opened and never closed)'
    elif wrong := WRONG_ROW.search(message):
        hint = f" (row 1 is the line of column names; {_why_uneven(*wrong.groups())})"
    raise InvalidInputError(f"{name}: {message}{hint}")


def _why_uneven(expected: str, got: str, text: str) -> str:
    """Return what to do about a row that has more or fewer cells than there are columns."""
    if int(got) < int(expected):
        return "if this one is no case, delete it"
    if int(got) == int(expected) + 1 and text[-1:] in DELIMITERS:
        return f"if every row ends in {text[-1]!r}, end that line so, too"
    return "a decimal comma also splits a value in two"
