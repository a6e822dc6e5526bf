"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["table_head", "table_row"]


def table_head(names: Sequence[str]) -> list[str]:
    """Return the two lines that a table begins with.

    >>> table_head(["model", "ECE"])
    ['| model | ECE |', '| --- | --- |']
    """
    return [table_row(names), table_row(["---"] * len(names))]


def table_row(cells: Iterable[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"
