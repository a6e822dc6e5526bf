"""Which case of one file is which of the other: by their ids, as they are or loosely."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.values import SHORTENED
from raterwise.rules import listed
from raterwise.types import Array

ENDINGS = (
    "png|jpe?g|tiff?|bmp|gif|webp|dcm|dicom|nii|gz|mha|mhd|nrrd|npy|npz|h5|hdf5|svs|ndpi|zip|"
    "csv|txt|json|pt|zarr"
)
LOOSER: dict[str, Callable[[str], str]] = {
    "the folder": lambda text: re.split(r"[/\\]", text)[-1],
    "the ending of a file": lambda text: re.sub(rf"(?i)(\.({ENDINGS}))+$", "", text),
    "upper and lower case": lambda text: unicodedata.normalize("NFKC", text).casefold(),
    "leading zeros": lambda text: re.sub(r"(?<![0-9])0+(?=[0-9])", "", text),
    "blanks, dashes and underscores": lambda text: re.sub(r"[\s_\-\u2010-\u2015]+", "-", text),
    "the digits after the point": lambda text: re.sub(r"^([0-9]+)\.0+$", r"\1", text),
}
"""Ways in which one id is written in two files, and what both writings share; in this order."""
DAY = re.compile(r"(\d{4})([-./]?)(\d\d?)\2(\d\d?)|(\d\d?)([-./])(\d\d?)\6(\d{4})")
"""2024-12-31 or 20241231; 31.12.2024 or 12/31/2024."""


@dataclass(frozen=True, eq=False)
class JoinReport:
    """What matched and what did not."""

    rows: NDArray[np.int64]
    """The rows of the predictions whose cases are in both files."""
    without_ratings: tuple[Any, ...] = ()
    """Ids that only the predictions have."""
    without_predictions: tuple[Any, ...] = ()
    """Ids that only the ratings have."""
    loosely: int = 0
    """How many cases are written otherwise in the other file."""

    @property
    def cases(self) -> int:
        """How many are in both files."""
        return len(self.rows)

    @property
    def left_out(self) -> dict[str, tuple[Any, ...]]:
        """Which cases were left out, by reason; empty where none was."""
        reasons = {
            "without_ratings": self.without_ratings,
            "without_predictions": self.without_predictions,
        }
        return {reason: ids for reason, ids in reasons.items() if ids}

    @property
    def dropped(self) -> dict[str, int]:
        """How many they are."""
        return {reason: len(ids) for reason, ids in self.left_out.items()}


def positions(ids: Array, among: Array, *, loose: bool = False) -> NDArray[np.int64]:
    """Return where each of `ids` stands in `among`, -1 where it does not.

    Where it is `loose`, ids may differ in folder, ending, capitals and leading zeros; two ids of
    one file must not.

    >>> positions(np.array(["IMG_001.PNG"]), np.array(["x", "img_1"], object), loose=True).tolist()
    [1]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if loose:
        ids, among = (np.array(_loose(each), object) for each in (ids, among))
    wanted, known = pa.array(ids), pa.array(among)
    if wanted.type != known.type:
        wanted, known = wanted.cast(pa.string()), known.cast(pa.string())
    found = pc.index_in(wanted, value_set=known).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _key(text: str, without: str = "") -> str:
    for said, same in LOOSER.items():
        text = text if said == without else same(text)
    return text


def _loose(ids: Array) -> list[str]:
    """Return ids without what may differ; two that become one are an error."""
    first: dict[str, str] = {}
    for text in map(str, ids.tolist()):
        other = first.setdefault(_key(text), text)
        if other != text:
            raise InvalidInputError(
                f"loose_ids: must tell the cases apart; {other!r} and {text!r} would be the same"
            )
    return [_key(str(name)) for name in ids.tolist()]


def explain_unmatched(
    ids: Array, source: str, others: Array, other: str, report: JoinReport, *, loose: bool
) -> InvalidInputError:
    """Return the error that some cases of two files, `source` and `other`, are in one only."""
    parts = []
    for absent, of, present, missing in (
        (report.without_ratings, len(ids), source, other),
        (report.without_predictions, len(others), other, source),
    ):
        if absent:
            parts.append(
                f"{len(absent)} of {of} cases of {present} are not in {missing} "
                f"({listed(absent[:5], most=5)}{' …' if len(absent) > 5 else ''})"
            )
    way_out = "allow_unmatched leaves them out" if report.cases else "not one case is in both"
    hint = "" if loose else _written_otherwise(ids, others, report)
    hint = hint or _days_written_otherwise(report)
    way_out += hint
    if not report.cases and not hint:
        way_out += "; id_column and ratings_id_column name other columns"
    if any(SHORTENED.fullmatch(str(name)) for name in (*report.without_ratings, *others.tolist())):
        way_out += " (a spreadsheet shortened the numbers: export the ids again, as text)"
    return InvalidInputError(f"ids: {'; '.join(parts)}; {way_out}")


def _written_otherwise(ids: Array, others: Array, report: JoinReport) -> str:
    """Return in what way ids of two files are written differently, where some would match."""
    second = {_key(text): text for text in map(str, report.without_predictions)}
    for text in map(str, report.without_ratings):
        if (twin := second.get(_key(text))) is None:
            continue
        needed = [said for said in LOOSER if _key(text, said) != _key(twin, said)]
        pair = f"{text!r} and {twin!r} would match but for {' and '.join(needed) or 'all of these'}"
        try:
            _ = _loose(ids), _loose(others)
        except InvalidInputError:
            return f" ({pair}: write the ids alike)"
        return f" ({pair}: loose_ids=True takes them for the same)"
    return ""


def _days_written_otherwise(report: JoinReport) -> str:
    """Return that ids of two files are days in two writings, where they are.

    They are not matched: whether 01/02/2024 is in January or February cannot be known.
    """
    pairs: list[tuple[str, str]] = []
    for day_first in (True, False):
        second = {_day(text, day_first=day_first): text for text in report.without_predictions}
        first = ((_day(text, day_first=day_first), text) for text in report.without_ratings)
        found = [(text, second[day]) for day, text in first if day and day in second]
        pairs = max(pairs, found, key=len)
    if not pairs:
        return ""
    return (
        f" ({pairs[0][0]!r} and {pairs[0][1]!r} look like one day, written in two ways: write the "
        "dates alike)"
    )


def _day(name: object, *, day_first: bool) -> tuple[int, int, int] | None:
    """Return (year, month, day) of an id that is a date; None of others.

    >>> _day("31.01.2024", day_first=True), _day("12/31/2024", day_first=False)
    ((2024, 1, 31), (2024, 12, 31))
    """
    if (found := DAY.fullmatch(str(name))) is None:
        return None
    year, _, month, day, one, _, two, last = found.groups()
    if year is None:
        year, (day, month) = last, (one, two) if day_first else (two, one)
    valid = 1 <= int(month) <= 12 and 1 <= int(day) <= 31
    return (int(year), int(month), int(day)) if valid else None


def alike_note(ids: Sequence[Any], what: str, source: str) -> tuple[str, ...]:
    """Return that some names of `what` may be the same one, written in two ways.

    >>> alike_note(["p1", "P1", "p2"], "patients", "cases.csv")
    ("cases.csv: 'p1' and 'P1' count as two patients; if they are one, write them alike",)
    """
    first: dict[str, str] = {}
    for text in dict.fromkeys(map(str, ids)):
        plain = LOOSER["the digits after the point"](" ".join(text.split()).casefold())
        other = first.setdefault(plain, text)
        if other != text:
            return (
                f"{source}: {other!r} and {text!r} count as two {what}; if they are one, write "
                "them alike",
            )
    return ()
