"""Which cases results are of, in a few digits.

What a bootstrap draws depends on the seed and on the units alone, not on the model. Two results
with equal fingerprints, seeds and numbers of resamples therefore drew the same cases in every
resample, and their resampled values are pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.labels import Labels
from raterwise.predictions import Predictions

__all__ = ["PARTS", "fingerprint", "unlike_part"]

PARTS = {
    "cases": "numbers of cases",
    "ids": "cases",
    "labels": "labels",
    "raters": "raters",
    "weights": "weights of the cases",
    "patients": "patients",
    "units": "numbers of resampled units",
}
"""What each part of a fingerprint says, in the order in which they are compared."""

BYTES = 8
ROWS = 65_536
"""How many cases are hashed at once."""


def fingerprint(
    predictions: Predictions, *, units: int | None, raters: bool = False
) -> dict[str, Any]:
    """Return what decides which cases a bootstrap draws, and what is known of each of them.

    Everything but the predictions takes part: how many cases, their ids and their order, what the
    raters said, weights and patients. Who said what does only where `raters` are resampled.

    >>> predictions = Predictions.of([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> found = fingerprint(predictions, units=2)
    >>> found["cases"], found["labels"], found["ids"]
    (2, 'a7871caf8bb1cd4e', None)
    """
    labels, weights, patients = predictions.labels, predictions.weights, predictions.groups
    return {
        "cases": len(predictions),
        "units": units,
        "ids": None if labels.case_ids is None else _hash_of_text(labels.case_ids),
        "ids_sorted": (
            None if labels.case_ids is None else _hash_of_text(sorted(map(str, labels.case_ids)))
        ),
        "labels": _hash_of_labels(labels),
        "raters": _hash_of_raters(labels) if raters else None,
        "weights": None if weights is None else _hash([weights.astype("<f8")]),
        "patients": None if patients is None else _hash([patients.astype("<i8")]),
    }


def unlike_part(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """Return what two fingerprints differ in, in words; None where they agree.

    Ids are compared where both have them.
    """
    for part, words in PARTS.items():
        a, b = first.get(part), second.get(part)
        if a == b or (part == "ids" and None in (a, b)):
            continue
        if part == "ids" and first.get("ids_sorted") == second.get("ids_sorted"):
            return "the same cases in another order"
        if part == "cases":
            return f"other {words}: {a} and {b}"
        return f"other {words}"
    return None


def _hash(parts: Iterable[NDArray[Any]]) -> str:
    found = blake2b(digest_size=BYTES)
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def _hash_of_text(ids: Iterable[Hashable]) -> str:
    # Numbers and text alike: 7 in one table is "7" in another, as where tables are joined.
    return blake2b("\0".join(map(str, ids)).encode(), digest_size=BYTES).hexdigest()


def _hash_of_labels(labels: Labels) -> str:
    """Return the hash of the label histograms, the same however the labels were given."""
    shape = np.array([len(labels), labels.num_classes], "<i8")
    if labels.classes is not None:
        return _hash([shape, labels.classes.astype("<i8")])
    counts = labels.counts
    if (labels.num_raters == 1).all():
        return _hash([shape, counts.argmax(axis=1).astype("<i8")])
    chunks = (counts[first : first + ROWS].astype("<i8") for first in range(0, len(counts), ROWS))
    return _hash(itertools.chain([shape], chunks))


def _hash_of_raters(labels: Labels) -> str | None:
    ratings = labels.ratings
    if ratings is None:
        return None
    order = np.lexsort((ratings.label, ratings.rater, ratings.case))
    columns = (ratings.case, ratings.rater, ratings.label)
    return _hash(column[order].astype("<i8") for column in columns)
