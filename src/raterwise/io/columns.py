"""Columns that nobody read although their names promise something: none is lost in silence.

Those of patients have a note of their own (`raterwise.io.patients`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from raterwise.io.sources import TableFile
from raterwise.rules import listed

LOOKS_LIKE = {
    "a rater": (
        re.compile(r"(reader|rater|annotator|radiologist|observer|expert)([ _.-]|\d|$)", re.I),
        "rater_columns",
    ),
    "a class": (re.compile(r"p(rob(ability)?)?[ _.-]+\S", re.I), "prob_columns"),
    "labels": (
        re.compile(r"(label|rating|truth|target|y_true)s?$|count[ _.-]\S", re.I),
        "label_column",
    ),
    "a weight": (re.compile(r"(case|sample)?[ _.-]?weights?$", re.I), "weight_column"),
}
"""By what a column may be: how it is called then, and the option that reads it."""


def unused_columns(file: TableFile, used: Collection[str]) -> dict[str, list[str]]:
    """Return the columns that were not read and look like something, by what they look like."""
    found: dict[str, list[str]] = {}
    for name in file.columns:
        if name in used:
            continue
        for what, (pattern, _) in LOOKS_LIKE.items():
            if pattern.match(name):
                found.setdefault(what, []).append(name)
                break
    return found


def unused_notes(
    file: TableFile, used: Collection[str], *, of_ratings: bool = False
) -> tuple[str, ...]:
    """Return a sentence for each kind of column that looks like something and was not read.

    Weights and classes are read from the file of predictions, not from one of ratings.
    """
    notes = []
    for what, names in unused_columns(file, used).items():
        were, them = ("was", "it") if len(names) == 1 else ("were", "them")
        option = LOOKS_LIKE[what][1]
        way = f"{option} would read {them}"
        if of_ratings and option in ("weight_column", "prob_columns"):
            way = f"{option} reads the file of the predictions only"
        notes.append(
            f"{file.name}: {listed(names)} {_looks(names)} like {what} and {were} not used; {way}"
        )
    return tuple(notes)


def _looks(names: Collection[str]) -> str:
    return "looks" if len(names) == 1 else "look"
