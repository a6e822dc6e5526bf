"""Whether figures read from a file can be what a metric gives: a check on edited or damaged files.

Nothing is corrected. What cannot be is refused, with the value and the rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from raterwise.catalog import CATALOG
from raterwise.errors import InvalidInputError
from raterwise.results.estimate import Estimate, LevelDifference, Subgroup

NUMBERS = ("value", "low", "high", "debiased", "bound", "std", "rater_share", "p_value")
COUNTS = ("dropped", "defined")
WORDS = ("name", "title", "group", "meaning", "direction", "reference")
ROUNDING = 1e-9
"""How far beyond its bounds the digits of a file may put a value."""


def estimates_of(content: Mapping[str, Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return estimates by the name of their metric, each checked.

    >>> estimates_of({"ece": {"name": "ece", "value": -5.0}})
    Traceback (most recent call last):
        ...
    raterwise.errors.InvalidInputError: ece: value must lie between 0 and 1; got -5.0
    """
    return {name: _checked(name, Estimate(**row)) for name, row in content.items()}


def subgroup_of(content: Mapping[str, Any]) -> Subgroup:
    """Return one level of a variable, its estimates and differences checked."""
    differences = {name: LevelDifference(**row) for name, row in content["differences"].items()}
    for name, one in differences.items():
        for key in ("difference", "low", "high", "p_value", "adjusted_p_value"):
            _check_number(name, key, getattr(one, key))
        _check_order(name, one.low, one.high)
        for key in ("p_value", "adjusted_p_value"):
            value = getattr(one, key)
            if value is not None and not 0 <= value <= 1:
                raise InvalidInputError(f"{name}: {key} must lie between 0 and 1; got {value!r}")
    check_data(content)
    parts = {"estimates": estimates_of(content["estimates"]), "differences": differences}
    return Subgroup(**{**content, **parts})


BESIDE_RESULTS = {
    "calibrate": "; a report takes before_after.json instead of results",
    "stability": "; a report of results shows it with --stability",
    "worklist": "; a report of results shows the list with --worklist, as CSV",
}


def written_by_another(content: Any) -> str:
    """Return what a file holds that another command wrote; nothing where that is not known.

    >>> written_by_another({"provenance": {"call": "raterwise plan ece pilot.csv"}})
    'holds what raterwise plan writes, not results of evaluate, segment or merge'
    """
    origin = content.get("provenance") if isinstance(content, Mapping) else None
    call = origin.get("call") if isinstance(origin, Mapping) else None
    commands = "agreement|calibrate|compare|plan|stability|worklist"
    wrote = re.match(rf"raterwise[ .]({commands})\b", str(call))
    if wrote is None:
        return ""
    way = BESIDE_RESULTS.get(wrote[1], "")
    return f"holds what raterwise {wrote[1]} writes, not results of evaluate, segment or merge{way}"


def check_parts(content: Mapping[str, Any]) -> None:
    """Refuse results whose parts are of other types than results have."""
    for key in ("metrics", "data", "options", "curves", "versions", "replicates", "findings"):
        if not isinstance(content.get(key, {}), Mapping):
            raise InvalidInputError(f"{key} must be an object; got {content[key]!r:.60}")
    notes = content["warnings"]
    if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
        raise InvalidInputError(f"warnings must be a list of sentences; got {notes!r:.60}")
    check_data(content["data"])


def check_data(data: Mapping[str, Any]) -> None:
    """Refuse counts of cases, classes and patients that are no counts."""
    for key in ("cases", "classes", "patients", "ratings"):
        if data.get(key) is not None:
            _check_count("data", key, data[key])


def _checked(name: str, found: Estimate) -> Estimate:
    for key in WORDS:
        if not isinstance(getattr(found, key), str):
            raise InvalidInputError(f"{name}: {key} must be text; got {getattr(found, key)!r:.60}")
    if found.name != name:
        raise InvalidInputError(f"{name}: name must be {name!r}; got {found.name!r:.60}")
    if found.undefined is not None and not isinstance(found.undefined, str):
        raise InvalidInputError(f"{name}: undefined must be text; got {found.undefined!r:.60}")
    for key in NUMBERS:
        _check_number(name, key, getattr(found, key))
    if found.value is None and found.undefined is None:
        raise InvalidInputError(f"{name}: must have a value, or say why it is undefined")
    for key in COUNTS:
        if getattr(found, key) is not None:
            _check_count(name, key, getattr(found, key))
    _check_order(name, found.low, found.high)
    low, high = _bounds(name)
    for key in ("value", "low", "high"):
        value = getattr(found, key)
        if value is not None and not low - ROUNDING <= value <= high + ROUNDING:
            raise InvalidInputError(
                f"{name}: {key} must lie between {low:g} and {high:g}; got {value!r}"
            )
    for key in ("bound", "std"):
        value = getattr(found, key)
        if value is not None and value < 0:
            raise InvalidInputError(f"{name}: {key} must not be negative; got {value!r}")
    return found


def _bounds(name: str) -> tuple[float, float]:
    """Return the smallest and the largest value of a metric that a file may hold."""
    row = CATALOG.get(name)
    if row is None:
        return -math.inf, math.inf
    low, high = row.possible
    # An estimate without bias may be below what it estimates can be, by chance.
    return min(low, -high) if "estimator" in row.options else low, high


def _check_number(name: str, key: str, value: Any) -> None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (plain and math.isfinite(value)):
        raise InvalidInputError(f"{name}: {key} must be a finite number; got {value!r:.60}")


def _check_count(name: str, key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidInputError(f"{name}: {key} must be a count; got {value!r:.60}")


def _check_order(name: str, low: float | None, high: float | None) -> None:
    if low is not None and high is not None and low > high:
        raise InvalidInputError(f"{name}: low must not be above high; got {low!r} and {high!r}")
