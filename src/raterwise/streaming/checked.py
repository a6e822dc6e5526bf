"""Whether a saved summary can be what it says: what other sites send is checked before it is added.

A table that does not fit its plan, a count below 0 or totals that contradict the facts would turn
into figures that look like any other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts
from raterwise.summaries.label_weights import LabelWeights

MOST_CLASSES = 10_000
MOST_BINS = 1_000_000
LEADING = 2
"""Of every table of sums, the first two are counts and weights, which are never negative."""
SIGNED = frozenset({"units", "lowest", "highest", "digits", "unit", "cell", "number"})
"""Arrays that hold deviations, distances, digits or places, and no counts."""
MAY_BE_INFINITE = frozenset({"lowest", "highest"})
ROUNDING = 1e-9


def hash_of(arrays: Mapping[str, NDArray[Any]], leave: Iterable[str] = ()) -> str:
    """Return 64 hexadecimal digits that change with every byte of some arrays."""
    whole = hashlib.sha256()
    for key in sorted(set(arrays) - set(leave)):
        array = np.ascontiguousarray(arrays[key])
        whole.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        whole.update(array.tobytes())
    return whole.hexdigest()


def check_tables(
    summaries: Mapping[Any, Any], facts: Facts, units: NDArray[Any], name: str
) -> None:
    """Refuse tables of another shape, type or sign than their plans make."""
    _check_facts(facts, name)
    if units.dtype.kind not in "iu" or units.ndim != 1 or (units < 0).any():
        raise InvalidInputError(f"{name}: is a damaged summary (cases of each unit must be counts)")
    for plan, summary in summaries.items():
        bins = getattr(plan, "bins", 1)
        if isinstance(bins, bool) or (isinstance(bins, int) and not 1 <= bins <= MOST_BINS):
            raise InvalidInputError(f"{name}: is a damaged summary (got {bins!r} bins)")
        one, two = (plan.empty(facts.classes, number).arrays() for number in (1, 2))
        found = summary.arrays()
        for key, array in found.items():
            grows = one[key].shape[:1] == (0,)  # with the cells that are in use
            by_unit = one[key].shape != two[key].shape or (key == "units" and array.ndim == 4)
            _check_array(array, one[key], by_unit or grows, key, f"{name}: {plan.kind} of {key}")
        _check_places(found, bins if isinstance(bins, int) else len(bins) - 1, name)


def _check_places(arrays: Mapping[str, NDArray[Any]], bins: int, name: str) -> None:
    """Refuse cells that say of themselves to be where no unit and no bin is."""
    if "cell" not in arrays:
        return
    unit, cell = arrays["unit"], arrays["cell"]
    inside = (unit >= 0).all() and (unit < arrays["number"]).all()
    inside = inside and (cell >= 0).all() and (cell < bins).all()
    if not inside or not len(unit) == len(cell) == len(arrays["values"]):
        raise InvalidInputError(f"{name}: is a damaged summary (cells outside of its bins)")


def _check_array(
    array: NDArray[Any], like: NDArray[Any], by_unit: bool, key: str, where: str
) -> None:
    if array.dtype != like.dtype:
        raise InvalidInputError(f"{where}: must be of type {like.dtype}; got {array.dtype}")
    first = 1 if by_unit else 0
    if array.ndim != like.ndim or array.shape[first:] != like.shape[first:]:
        raise InvalidInputError(f"{where}: must have the shape {like.shape}; got {array.shape}")
    if np.isnan(array).any() or (key not in MAY_BE_INFINITE and np.isneginf(array).any()):
        raise InvalidInputError(f"{where}: must hold finite numbers")
    if key in SIGNED:
        return
    counts = array[..., :LEADING]
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise InvalidInputError(f"{where}: counts and weights must be finite and not negative")


def _check_facts(facts: Facts, name: str) -> None:
    """Refuse counts that are none, or that contradict each other."""
    numbers = ("classes", "cases", "ratings", "fewest", "most", "under_two", "under_three")
    for key in (*numbers, "twos", "divided_twos", "threes", "divided_threes"):
        value = getattr(facts, key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise InvalidInputError(f"{name}: facts: {key} must be a count; got {value!r:.60}")
    plain = (
        0 < facts.classes <= MOST_CLASSES
        and (facts.class_names is None or len(facts.class_names) == facts.classes)
        and len(facts.by_class) in (0, facts.classes)
        and facts.under_two <= facts.under_three <= facts.cases
        and facts.divided_twos <= facts.twos
        and facts.divided_threes <= facts.threes
        and facts.twos + facts.threes <= facts.cases
        and facts.fewest <= facts.most
        and facts.fewest * facts.cases <= facts.ratings <= facts.most * facts.cases
        and all(0 <= count <= facts.cases for count in facts.by_class)
        and (facts.label_weights is None or _of_all(facts.label_weights, facts.classes))
        and math.isfinite(facts.weight)
        and facts.weight >= 0
    )
    if not plain:
        raise InvalidInputError(f"{name}: its facts contradict each other, it may be damaged")


def _of_all(weighed: LabelWeights, classes: int) -> bool:
    return all(
        len(values) == classes and all(isinstance(v, int | float) and v >= 0 for v in values)
        for values in (weighed.cases, weighed.lightest, weighed.heaviest)
    )


def check_totals(digest: Digest, name: str) -> None:
    """Refuse tables that have other cases in them than the facts count."""
    facts = digest.facts
    held = int(digest.unit_cases.sum())
    if held != facts.cases:
        raise InvalidInputError(
            f"{name}: must have as many cases in its units as in its facts; got {held} and "
            f"{facts.cases}"
        )
    for plan, summary in digest.summaries.items():
        arrays = summary.arrays()
        table = arrays.get("fine", arrays.get("sums"))
        question = getattr(plan, "question", None)
        if table is None or question is None:
            continue
        axes = (1,) if "fine" in arrays else (0, 2)
        by_channel = table[..., 0].sum(axis=axes)
        most = float(by_channel.max(initial=0))
        cases = facts.cases - facts.too_few(getattr(plan, "least_raters", 1))
        whole = getattr(question, "name", "") == "top_label" and facts.fingerprint.weights is None
        if most > cases * (1 + ROUNDING) or (whole and most < cases * (1 - ROUNDING)):
            raise InvalidInputError(
                f"{name}: must have the {cases} cases of its facts in its table of {plan.kind}; "
                f"got {most:.12g}"
            )
    inside: list[Mapping[Any, Digest]] = [*digest.levels.values(), *digest.readers.values()]
    for own in inside:
        for level, inner in own.items():
            check_totals(inner, f"{name}, {level}")
