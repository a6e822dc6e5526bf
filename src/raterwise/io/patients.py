"""A column of patients that nobody asked for: found by its name, told to the reader.

Cases of one patient are not independent. Whoever leaves the column of patients unread gets
intervals that are too short, and nothing else would tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from raterwise.io.sources import TableFile

NAMES = re.compile(
    "(patients?|pat|pt|subjects?|subj|person|participant|individual|proband|casegroup|mrn|p)"
    "(id|nr|no|num|number|name|key|uid|code)?"
)
"""What columns of patients are called, without case, blanks, dashes and underscores."""


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
    group_column: cases.csv has a column 'patient_id' with 2 values for 3 cases that was not used.
    Cases of one patient are not independent: without it, intervals are too short
    """
    said = []
    for name in file.columns:
        plain = re.sub(r"[^a-z]", "", name.lower())
        if name in used or plain == "p" or not NAMES.fullmatch(plain):
            continue
        shared = ""
        if look:
            column = file.read([name]).column(name)
            known = [value for value in column.to_pylist() if value not in (None, "")]
            values = len(set(known))
            if not 1 < values < len(known):
                continue
            shared = f" with {values} values for {len(column)} cases"
        said.append(
            f"group_column: {file.name} has a column {name!r}{shared} that was not used. Cases of "
            "one patient are not independent: without it, intervals are too short"
        )
    return tuple(said)
