"""Text without what nobody sees in it: blanks and marks at its ends, signs that steer a screen.

One id must be one id whatever program wrote it, and a name out of a file must not be able to move
the cursor of the terminal it is printed on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from raterwise.results.exports import unquoted_cell

if TYPE_CHECKING:
    import pyarrow as pa

NUMBER = re.compile(r"[+-]?[0-9]*[.,]?[0-9]+")
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
"""Marks without a width; at the ends of a text they say nothing."""
STEERING = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
"""Control characters, but for tabs and the ends of lines."""
QUOTED_FORMULA = "^'([=+@-])"
"""How text is written that a spreadsheet would take for a formula: see `exports.safe_cell`."""


def clean_name(text: str) -> str:
    r"""Return the name of a column as people read it.

    >>> clean_name("\ufeff prob_a\x1b[31m ")
    'prob_a[31m'
    """
    text = re.sub(STEERING, "", text).strip().strip(INVISIBLE).strip()
    return unicodedata.normalize("NFC", unquoted_cell(text))


def lines_above(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows stand above that of the column names: they fill their first cell alone.

    >>> lines_above([["Export of Monday"], ["", ""], ["case", "prob_a"], ["n1", "0.5"]])
    2
    >>> lines_above([["case"], ["n1"]])  # one column
    0
    """
    full = [[bool(cell.strip()) for cell in row] for row in rows]
    above = next((i for i, row in enumerate(full) if sum(row) > 1), 0)
    alone = all(sum(row) == row[0] for row in full[:above])
    # A row of numbers names no columns: then it is the first line that is cut short.
    named = bool(rows) and not any(NUMBER.fullmatch(cell.strip()) for cell in rows[above])
    return above if alone and named else 0


def titles_note(name: str, title: str) -> str:
    """Return that lines above the names of the columns were not read, if there are any."""
    return (
        f"{name}: what stands above the column names was not read: {title!r:.60}" if title else ""
    )


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds text."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def cleaned(column: Any) -> Any:
    """Return a column of text, dictionaries included, as `clean_name` would; empty is null.

    Other columns stay as they are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return column
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pc.any(pc.match_substring_regex(column, STEERING)).as_py():
        column = pc.replace_substring_regex(column, STEERING, "")
    text = pc.utf8_trim_whitespace(column)
    if not pc.all(pc.string_is_ascii(text)).as_py():
        text = pc.utf8_trim_whitespace(pc.utf8_trim(text, characters=INVISIBLE))
        text = _composed(text)
    if pc.any(pc.starts_with(text, "'")).as_py():  # as we write what looks like a formula
        text = pc.replace_substring_regex(text, QUOTED_FORMULA, r"\1")
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def _composed(text: Any) -> Any:
    """Return text in the form NFC: ö is one letter, not o and a mark.

    Not by Arrow's `utf8_normalize`, which takes letters apart instead in many versions (18 to 23).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.unique(text)
    composed = [v and unicodedata.normalize("NFC", v) for v in values.to_pylist()]
    found = pa.array(composed, text.type)
    return text if found.equals(values) else pc.take(found, pc.index_in(text, values))
