"""Columns that nobody read although their names promise something: none is lost in silence.

Cases of one patient are not independent. Whoever leaves the column of patients unread gets
intervals that are too short, and nothing else would tell: these have a note of their own.
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

PATIENTS = re.compile(
    "(patients?|pat|pt|subjects?|subj|person|participant|individual|proband|casegroup|mrn|p)"
    "(id|nr|no|num|number|name|key|uid|code)?"
)
"""What columns of patients are called, without case, blanks, dashes and underscores."""


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
        one = len(names) == 1
        looks, were, them = ("looks", "was", "it") if one else ("look", "were", "them")
        option = LOOKS_LIKE[what][1]
        way = f"{option} would read {them}"
        if of_ratings and option in ("weight_column", "prob_columns"):
            way = f"{option} reads the file of the predictions only"
        notes.append(f"{file.name}: {listed(names)} {looks} like {what} and {were} not used; {way}")
    return tuple(notes)


def unused_patients(
    file: TableFile, used: Collection[str], *, look: bool = True
) -> tuple[str, ...]:
    """Return what to tell of columns that look like patients and are not `used`.

    A column with a value of its own for every case, or one value for all, groups nothing and is
    not mentioned; that is known only where the column is read (`look`).

    >>> from raterwise.io.sources import open_table
    >>> path = getfixture("tmp_path") / "cases.csv"
    >>> _ = path.write_text("case,patient_id,prob_a\\nn1,p1,0.3\\nn2,p1,0.4\\nn3,p2,0.5\\n")
    >>> print(*unused_patients(open_table(path), ["case", "prob_a"]))
    cases.csv has a column 'patient_id' with 2 values for 3 cases that was not used; group_column
    would read it. Cases of one patient are not independent: without it, intervals are too short
    """
    said = []
    for name in file.columns:
        plain = re.sub(r"[^a-z]", "", name.lower())
        if name in used or plain == "p" or not PATIENTS.fullmatch(plain):
            continue
        shared = ""
        if look:
            column = file.read([name]).column(name)
            known = [value for value in column.to_pylist() if value not in (None, "")]
            values = len(set(known))
            if not 1 < values < len(known):
                continue
            shared = f" with {values:,} values for {len(column):,} cases"
        said.append(
            f"{file.name} has a column {name!r}{shared} that was not used; group_column would read "
            "it. Cases of one patient are not independent: without it, intervals are too short"
        )
    return tuple(said)
