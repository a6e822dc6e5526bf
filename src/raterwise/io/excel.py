"""The first sheet of an Excel file as a table."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterwise.errors import InvalidInputError, missing_extra
from raterwise.io.damaged import check_fits, one_line

if TYPE_CHECKING:
    import pyarrow as pa


def read_sheet(path: Path) -> tuple[pa.Table, str]:
    """Return the first sheet as a table, and a note where there are others; "" otherwise.

    Numbers stay numbers, formulas are their last values, dates become text.
    """
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_extra(f"{path.name}: reading Excel files needs openpyxl", "excel") from None
    try:
        with zipfile.ZipFile(path) as archive:
            check_fits(sum(info.file_size for info in archive.infolist()), path.name)
        with path.open("rb") as file:  # openpyxl leaves a bad one open
            book = load_workbook(file, read_only=True, data_only=True)
            titles = list(book.sheetnames)
            rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
    except InvalidInputError:
        raise
    except Exception as error:  # openpyxl says of a bad file whatever its parsers say
        text = one_line(error)
        raise InvalidInputError(f"{path.name}: cannot be read as Excel; {text}") from error
    rows = [row for row in rows if any(value is not None for value in row)]
    if not rows:
        raise InvalidInputError(
            f"{path.name}: must begin with a line of column names; its first sheet "
            f"{titles[0]!r} is empty"
        )
    width = max(len(row) for row in rows)
    header = ["" if name is None else str(name).strip() for name in rows[0]]
    header += [""] * (width - len(header))
    columns = [[row[j] if j < len(row) else None for row in rows[1:]] for j in range(width)]
    table = pa.table([_column(column) for column in columns], names=header)
    others = ", ".join(repr(title) for title in titles[1:])
    note = f"{path.name}: only the first sheet, {titles[0]!r}, was read; there are also {others}"
    return table, note if others else ""


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
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or None
