"""Where results come from, as a section of the report: on the screen and on paper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from raterwise.report.markup import Html, data_table, el
from raterwise.report.words import counted_in_words, unit_of
from raterwise.results import left_out

MOST_FILES = 8
"""More files than this are folded."""
MOST_NAMED = 20
"""How many of the cases that were left out are named for each reason."""


def provenance(
    found: Mapping[str, Any], versions: Mapping[str, str], data: Mapping[str, Any]
) -> Html | None:
    """Return when, by what, from which files and whose ratings; None for files that do not say."""
    if not found:
        return None
    rows: list[tuple[str, Any]] = [
        ("Made", str(found.get("date", "unknown")).replace("T", " ").replace("Z", " UTC")),
        ("By", _command(str(found.get("call", "unknown")))),
        ("Software", ", ".join(f"{name} {number}" for name, number in versions.items())),
    ]
    rows += [("Seed", found["seed"])] if found.get("seed") is not None else []
    rows += [("Raters", _raters(found["raters"], data))] if "raters" in found else []
    rows += [(f"Left out: {left_out(reason, part['cases'])}", _named(part))
             for reason, part in found.get("left_out", {}).items()]  # fmt: skip
    files = found.get("inputs", [])
    content: list[Any] = [data_table(("What", "Value"), rows, "When, by what, whose ratings")]
    if files:
        listed = [
            (file["name"], f"{file['bytes']:,}", el("code", file["sha256"] or "too large to read"))
            for file in files
        ]
        title = "Files that were read"
        table = data_table(("File", "Bytes", "SHA-256"), listed, title, class_="files")
        if len(files) > MOST_FILES:
            told = el("summary", f"The {len(files):,} files that were read")
            table = el("details", told, table)
        content.append(table)
    else:
        content.append(el("p", "The data came from memory, not from files.", class_="note"))
    heading = el("h2", "Provenance", id="provenance-heading")
    # All of it in print, too: wide hashes wrap, and nothing is hidden behind a scroll bar.
    body = el("div", content, style="overflow-wrap:anywhere")
    return el("section", heading, body, id="provenance", aria_labelledby="provenance-heading")


def _command(call: str) -> Html:
    """Return a command that wraps between its words, not after the hyphens of an option."""
    parts = re.split(r"(\S*-\S*)", call)
    return el("code", [el("span", part, class_="word") if "-" in part else part for part in parts])


def _raters(names: Any, data: Any) -> str:
    if isinstance(names, list):
        return ", ".join(map(str, names))
    most = data.get("raters", {}).get("max")
    if most is None:
        return "anonymous"
    return f"anonymous, up to {counted_in_words(most, 'rating')} per {unit_of(data)}"


def _named(part: Any) -> str:
    names = part.get("names", [])
    more = f" and {part['cases'] - MOST_NAMED:,} more" if part["cases"] > MOST_NAMED else ""
    shown = ", ".join(map(str, names[:MOST_NAMED]))
    return f"{shown}{more}" if shown else "names are not known"
