"""Which cases results are of, in a few digits that add up.

What a bootstrap draws depends on the seed and on the units alone, not on the model. Two results
with equal fingerprints, seeds and numbers of resamples therefore drew the same cases in every
resample, and their resampled values are pairs. Each case adds a number made of its place and of
what is known of it, so parts may be read anywhere and in any order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.labels import Labels
from raterwise.predictions import Predictions

PARTS = {
    "summaries": "numbers of summaries, in each of which the places of the cases are counted",
    "cases": "numbers of cases",
    "ids": "cases",
    "labels": "labels",
    "raters": "raters",
    "weights": "weights of the cases",
    "patients": "patients",
    "units": "numbers of resampled units",
    "drawn": "units of resampling (a stream has blocks of its own)",
}
"""What each part of a fingerprint says, in the order in which they are compared."""

BYTES = 8
MODULUS = 1 << 64


@dataclass(frozen=True)
class Fingerprint:
    """What is known of the cases but for the predictions.

    >>> half = Predictions.of([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> whole = Predictions.of([[0.9, 0.1], [0.2, 0.8]] * 2, [0, 1] * 2)
    >>> Fingerprint.of(half) + Fingerprint.of(half, first=2) == Fingerprint.of(whole)
    True
    """

    labels: int = 0
    weights: int | None = None
    patients: int | None = None
    ids: str | None = None
    ids_sorted: str | None = None
    raters: int | None = None
    """Who said what, where raters are resampled."""
    drawn: int | None = None
    """Which case is in which resampling unit."""
    summaries: int = 1
    """How many saved summaries were merged: a case has its place in its own."""

    @staticmethod
    def of(predictions: Predictions, first: int = 0) -> Fingerprint:
        """Return that of predictions, the first of which is case number `first` of all."""
        from raterwise.kernels import _fingerprint as kernels
        from raterwise.summaries.facts import hashes_of

        labels, weights, patients = predictions.labels, predictions.weights, predictions.groups
        if labels.classes is not None:
            said = kernels.of_classes(labels.classes, labels.num_classes, first)
        else:
            said = kernels.of_counts(labels.counts, first)
        ids = labels.case_ids
        return Fingerprint(
            int(said),
            None if weights is None else int(kernels.add_up(weights.view(np.uint64), first)),
            None
            if patients is None
            else int(kernels.add_up(hashes_of(predictions.group_ids)[patients], first)),
            None if ids is None else _hash_of_text(ids),
            None if ids is None else _hash_of_text(sorted(map(str, ids))),
        )

    @staticmethod
    def of_text(*parts: Any) -> Fingerprint:
        """Return that of something described in words, such as an image."""
        text = "\n".join(map(str, parts)).encode()
        return Fingerprint(int.from_bytes(blake2b(text, digest_size=BYTES).digest(), "little"))

    def with_units(self, units: NDArray[np.int64], first: int = 0) -> Fingerprint:
        """Return it with the resampling unit of each case, the first of which is number `first`."""
        from raterwise.kernels import _fingerprint as kernels

        return replace(self, drawn=int(kernels.add_up(units.view(np.uint64), first)))

    def with_raters(self, labels: Labels, first: int = 0) -> Fingerprint:
        """Return it with who said what, which counts where raters are resampled."""
        from raterwise.kernels import _fingerprint as kernels

        known = labels.ratings
        if known is None:
            return self
        case, rater, label = (
            np.asarray(column, np.int64) for column in (known.case, known.rater, known.label)
        )
        told = kernels.of_ratings(case, rater, label, len(known.rater_ids), first)
        return replace(self, raters=int(told))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        # The ids of cases that are not in one place are not compared.
        return Fingerprint(
            (self.labels + other.labels) % MODULUS,
            _sum(self.weights, other.weights),
            _sum(self.patients, other.patients),
            raters=_sum(self.raters, other.raters),
            drawn=_sum(self.drawn, other.drawn),
        )

    def as_data(self, cases: int, units: int | None) -> dict[str, Any]:
        """Return what results keep, to be compared by `unlike_part`."""
        return {
            "summaries": self.summaries,
            "cases": cases,
            "units": units,
            "drawn": _hex(self.drawn),
            "ids": self.ids,
            "ids_sorted": self.ids_sorted,
            "labels": f"{self.labels:016x}",
            "raters": _hex(self.raters),
            "weights": _hex(self.weights),
            "patients": _hex(self.patients),
        }


def unlike_part(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """Return what two fingerprints differ in, in words; None where they agree.

    Ids, and who is in which unit, are compared where both have them.
    """
    for part, words in PARTS.items():
        usual = 1 if part == "summaries" else None  # files of earlier versions do not say
        a, b = first.get(part, usual), second.get(part, usual)
        if a == b or (part in ("ids", "drawn") and None in (a, b)):
            continue
        if part == "ids" and first.get("ids_sorted") == second.get("ids_sorted"):
            return "the same cases in another order"
        if part in ("cases", "summaries"):
            return f"other {words}: {a} and {b}"
        return f"other {words}"
    return None


def _hex(number: int | None) -> str | None:
    return None if number is None else f"{number:016x}"


def _sum(first: int | None, second: int | None) -> int | None:
    known = [part for part in (first, second) if part is not None]
    return sum(known) % MODULUS if known else None


def _hash_of_text(ids: Iterable[Hashable]) -> str:
    # Numbers and text alike: 7 in one table is "7" in another, as where tables are joined.
    return blake2b("\0".join(map(str, ids)).encode(), digest_size=BYTES).hexdigest()
