"""The first sheet of an Excel file that holds anything, as a table."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterwise.errors import InvalidInputError, missing_extra
from raterwise.io.damaged import check_fits, one_line
from raterwise.io.texts import lines_above, titles_note

if TYPE_CHECKING:
    import pyarrow as pa

HEAD_ROWS = 50


def read_sheet(path: Path) -> tuple[pa.Table, str]:
    """Return the first sheet that is not empty as a table, and a note on what was not read, or "".

    Numbers stay numbers, formulas are their last values, dates become text.
    """
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_extra(f"{path.name}: reading Excel files needs openpyxl", "excel") from None
    try:
        with zipfile.ZipFile(path) as archive:
            # Cells take some ten times the memory of their XML.
            check_fits(10 * sum(info.file_size for info in archive.infolist()), path.name)
        with path.open("rb") as file:  # openpyxl leaves a bad one open
            book = load_workbook(file, read_only=True, data_only=True)
            sheet, rows = _first_filled(book.worksheets)
            titles = [str(each.title) for each in book.worksheets]
    except InvalidInputError:
        raise
    except Exception as error:  # openpyxl says of a bad file whatever its parsers say
        text = one_line(error)
        if isinstance(error, zipfile.BadZipFile):
            text = "it is not an Excel file, or damaged (if it is CSV, name it .csv)"
        raise InvalidInputError(f"{path.name}: cannot be read as Excel; {text}") from error
    if not rows:
        raise InvalidInputError(
            f"{path.name}: must begin with a line of column names; its first sheet {sheet!r} is "
            "empty"
        )
    above = lines_above([[_text(cell) or "" for cell in row] for row in rows[:HEAD_ROWS]])
    notes = [titles_note(path.name, _text(rows[0][0]) or "")] if above else []
    if others := ", ".join(repr(title) for title in titles if title != sheet):
        which = f"first sheet, {sheet!r}," if sheet == titles[0] else f"sheet {sheet!r}"
        notes.append(
            f"{path.name}: only the {which} was read; there are also {others}: "
            "save one as a file of its own to have it read"
        )
    rows = rows[above:]
    width = max(len(row) for row in rows)
    header = ["" if name is None else str(name) for name in rows[0]]
    header += [""] * (width - len(header))
    columns = [[row[j] if j < len(row) else None for row in rows[1:]] for j in range(width)]
    return pa.table([_column(column) for column in columns], names=header), "; ".join(notes)


def _first_filled(sheets: list[Any]) -> tuple[str, list[list[Any]]]:
    """Return the name and the rows of the first sheet that has any, or of the first."""
    for sheet in sheets:
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        if rows := [row for row in rows if any(value is not None for value in row)]:
            return str(sheet.title), rows
    return str(sheets[0].title), []


def _column(values: list[Any]) -> pa.Array:
    """Return a column of one type: whole numbers, numbers, or text."""
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if known and all(type(v) is int and abs(v) < 2**63 for v in known):
        return pa.array(values, pa.int64())
    if known and all(type(v) is float or (type(v) is int and abs(v) < 2**63) for v in known):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat().removesuffix("T00:00:00")  # a day, as Excel holds it
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or None
