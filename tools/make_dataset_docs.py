"""Write the table of docs/datasets.md from the rows of raterwise.datasets.catalog.SOURCES.

`python tools/make_dataset_docs.py` writes it, `--check` complains where it is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from raterwise.datasets.catalog import SOURCES

PAGE = Path(__file__).parents[1] / "docs" / "datasets.md"
BEGIN, END = "<!-- the table: python tools/make_dataset_docs.py -->", "<!-- end of the table -->"
HEAD = ("name", "data set", "what the path holds", "raters", "licence", "where to ask for it")


def table() -> str:
    """Return the rows as Markdown."""
    lines = [_row(HEAD), _row(["---"] * len(HEAD))]
    for name, source in SOURCES.items():
        cells = (source.title, source.layout, source.raters, source.licence, source.where)
        lines.append(_row([f"`{name}`", *(_escaped(cell) for cell in cells)]))
    return "\n".join(lines)


def page(text: str) -> str:
    """Return a page with its table replaced."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"docs/datasets.md: must have {BEGIN} and {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{table()}\n\n{END}", text)


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return re.sub(r"([|*_<>\[\]])", r"\\\1", text)


def main(arguments: list[str]) -> int:
    """Write the page, or with --check only compare it."""
    before = PAGE.read_text(encoding="utf-8")
    after = page(before)
    if "--check" in arguments:
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
