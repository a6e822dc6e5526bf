"""Facts: what numbers rest on, as counts that add up.

Every source of cases yields them beside its summaries; what a reader is warned of, what the
results say about the data, and whether two results are of the same cases all follow from them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.errors import MergeError
from raterwise.predictions import Predictions
from raterwise.summaries.deciders import asked_to_decide
from raterwise.summaries.fingerprint import Fingerprint
from raterwise.summaries.label_weights import LabelWeights
from raterwise.summaries.panel import Panel

MOST_PATIENTS = 1 << 20
"""Up to how many patients are told apart; of more, those with the smallest hashes are kept."""
LOOKED_AT = 20_000
"""How many confidences of a part are looked at, spread over its cases."""
MOST_VALUES = 64
"""How many of the most frequent confidences are remembered."""


def hashes_of(names: Iterable[Hashable]) -> NDArray[np.uint64]:
    """Return 64 bits for each name; 7 in one table is "7" in another."""
    digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Patients:
    """How many cases each patient has, whatever the order in which they come.

    >>> codes = np.array([0, 1, 0])
    >>> both = Patients.of_codes(codes, ["a", "b"]) + Patients.of_codes(codes, ["b", "c"])
    >>> both.number, both.largest
    (3, 3)
    """

    hashes: NDArray[np.uint64]
    """Increasing; one per patient."""
    cases: NDArray[np.int64]
    more: int = 0
    """Patients who are only counted: of summaries that came from elsewhere."""
    most: int = 0
    """Cases of the largest of these."""
    lists: int = 0
    """In how many summaries they were counted: who is in two of them counts twice."""

    @staticmethod
    def of_codes(codes: NDArray[np.int64], ids: Iterable[Hashable]) -> Patients:
        """Return the patients of cases, by codes and what the codes stand for."""
        cases = np.bincount(codes)
        hashes = hashes_of(ids)[: len(cases)]
        return Patients._counted(hashes[cases > 0], cases[cases > 0])

    @staticmethod
    def _counted(hashes: NDArray[np.uint64], cases: NDArray[np.int64], *rest: int) -> Patients:
        known, place = np.unique(hashes, return_inverse=True)
        counts = np.bincount(place, cases, len(known)).astype(np.int64)
        return Patients(known[:MOST_PATIENTS], counts[:MOST_PATIENTS], *rest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Patients):
            return NotImplemented
        same = (np.array_equal(self.hashes, other.hashes), np.array_equal(self.cases, other.cases))
        counts = [(one.more, one.most, one.lists) for one in (self, other)]
        return all(same) and counts[0] == counts[1]

    def __add__(self, other: Patients) -> Patients:
        return Patients._counted(
            np.concatenate((self.hashes, other.hashes)),
            np.concatenate((self.cases, other.cases)),
            self.more + other.more,
            max(self.most, other.most),
            self.lists + other.lists,
        )

    @property
    def number(self) -> int:
        """How many patients; where there are more than are told apart, how many there should be."""
        known = len(self.hashes)
        if known == MOST_PATIENTS:  # hashes are spread evenly: the k-th smallest tells the number
            known = round((MOST_PATIENTS - 1) / (float(self.hashes[-1]) / 2.0**64))
        return known + self.more

    @property
    def largest(self) -> int:
        """Cases of the patient who has the most."""
        return max(int(self.cases.max(initial=0)), self.most)

    @property
    def shares(self) -> NDArray[np.float64] | None:
        """The part of the cases that each patient has; None where not all are told apart."""
        if self.more or len(self.hashes) == MOST_PATIENTS or not len(self.hashes):
            return None
        return np.asarray(self.cases / self.cases.sum())

    def anonymous(self) -> Patients:
        """Return the counts alone: what may leave the place where the patients are known."""
        nobody = self.hashes[:0], self.cases[:0]
        lists = self.lists + (1 if len(self.hashes) else 0)
        return Patients(*nobody, self.number, self.largest, lists)


@dataclass(frozen=True)
class Confidences:
    """Of the largest probabilities: the range, and the values that come most often."""

    low: float = np.inf
    high: float = -np.inf
    looked_at: int = 0
    values: Mapping[float, int] = field(default_factory=dict)

    @staticmethod
    def of(probs: NDArray[Any]) -> Confidences:
        """Return what is to say of class probabilities (n, K), or (n,) of class 1."""
        some = probs[:: max(-(-len(probs) // LOOKED_AT), 1)]
        columns = (some, 1 - some) if some.ndim == 1 else np.ascontiguousarray(some.T)
        confidence = np.max(columns, axis=0, initial=0)
        values, counts = np.unique(confidence, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        often = zip(values[order].tolist(), counts[order].tolist(), strict=True)
        low = float(confidence.min(initial=np.inf))
        high = float(confidence.max(initial=-np.inf))
        return Confidences(low, high, len(confidence), dict(often))

    def __add__(self, other: Confidences) -> Confidences:
        values = dict(self.values)
        for value, count in other.values.items():
            values[value] = values.get(value, 0) + count
        often = sorted(values.items(), key=lambda item: -item[1])[:MOST_VALUES]
        return Confidences(
            min(self.low, other.low),
            max(self.high, other.high),
            self.looked_at + other.looked_at,
            dict(often),
        )

    @property
    def most_frequent(self) -> tuple[float, float]:
        """The value that comes most often, and its share of those looked at."""
        if not self.values:
            return np.nan, 0.0
        value = max(self.values, key=lambda v: self.values[v])
        return value, self.values[value] / self.looked_at


@dataclass(frozen=True)
class AsGiven:
    """Cases as they were given, where each has a row for every class that its raters chose."""

    cases: int
    ratings: int
    fewest: int
    most: int
    under_two: int
    patients: bool
    """Whether patients were named."""
    weight: float
    squared_weight: float
    """Of the cases: Σ w and Σ w², the rows of a case together."""
    class_weights: tuple[float, ...] = ()
    """What a label of each class weighs."""

    @staticmethod
    def of(predictions: Predictions) -> AsGiven | None:
        """Return what is to say of the cases that these rows are of; None where rows are cases."""
        if predictions.case_raters is None or predictions.kept is None:
            return None
        _, first, case = np.unique(predictions.kept, return_index=True, return_inverse=True)
        weight = np.bincount(case, predictions.weights, len(first)).astype(np.float64)
        raters = predictions.case_raters[first]
        few, most = (int(raters.min()), int(raters.max())) if len(raters) else (0, 0)
        named = predictions.groups is not None and not predictions.groups_are_cases
        counts = int(raters.sum()), few, most, int((raters < 2).sum())
        by_class = predictions.class_weights
        return AsGiven(
            len(raters), *counts, named, float(weight.sum()), float(weight @ weight),
            () if by_class is None else tuple(by_class.tolist()),
        )  # fmt: skip

    @property
    def worth(self) -> float:
        """How many cases of equal weight would carry as much (Kish)."""
        return self.weight**2 / self.squared_weight

    def __add__(self, other: AsGiven) -> AsGiven:
        return AsGiven(
            self.cases + other.cases,
            self.ratings + other.ratings,
            min(self.fewest, other.fewest),
            max(self.most, other.most),
            self.under_two + other.under_two,
            self.patients and other.patients,
            self.weight + other.weight,
            self.squared_weight + other.squared_weight,
            self.class_weights or other.class_weights,
        )


@dataclass(frozen=True)
class Facts:
    """What numbers rest on."""

    classes: int
    cases: int = 0
    ratings: int = 0
    fewest: int = 0
    """Raters of the case that has the fewest; 0 where there are no cases."""
    most: int = 0
    under_two: int = 0
    """Cases with fewer than two labels."""
    under_three: int = 0
    twos: int = 0
    """Cases with two labels."""
    divided_twos: int = 0
    """Of them, those whose labels differ."""
    threes: int = 0
    divided_threes: int = 0
    weight: float = 0.0
    """Σ w n over the cases, with n labels each."""
    squared_weight: float = 0.0
    by_class: tuple[int, ...] = ()
    """In how many cases some rater chose each class."""
    class_names: tuple[str, ...] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    patients: Patients | None = None
    confidences: Confidences = field(default_factory=Confidences)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    images: int = 0
    """How many images the cases are voxels of; 0 where cases are no voxels."""
    rater_names: tuple[str, ...] = ()
    """The names of the raters; empty where some of them are not known."""
    panel: Panel | None = None
    """Who said what, where raters are to be compared."""
    outside: int = 0
    """Cases from elsewhere, which are not among the cases."""
    given: AsGiven | None = None
    """What a reader is told instead, where a case has several rows."""
    label_weights: LabelWeights | None = None
    """What the cases of each class weigh; None where some have no weights of their own."""

    @staticmethod
    def of(predictions: Predictions, first: int = 0, *, panel: bool = False) -> Facts:
        """Return the facts about predictions, the first of which is case number `first` of all.

        With `panel`, they have who said what.
        """
        groups = predictions.groups
        names = hashes_of(predictions.group_ids) if panel and groups is not None else None
        ratings = predictions.labels.ratings
        return Facts(
            predictions.num_classes,
            len(predictions),
            by_class=_cases_by_class(predictions),
            class_names=predictions.class_names,
            dropped=dict(predictions.dropped),
            patients=None if groups is None else Patients.of_codes(groups, predictions.group_ids),
            confidences=Confidences.of(predictions.probs),
            fingerprint=Fingerprint.of(predictions, first),
            rater_names=() if ratings is None else tuple(map(str, ratings.rater_ids)),
            panel=Panel.of(predictions, names) if panel else None,
            given=AsGiven.of(predictions),
            label_weights=LabelWeights.of(predictions),
            **_counts_of_raters(predictions),
        )

    @staticmethod
    def counted(predictions: Predictions) -> Facts:
        """Return how many cases and ratings there are, and nothing else."""
        about = _counts_of_raters(predictions)
        return Facts(predictions.num_classes, len(predictions), **about)

    def __add__(self, other: Facts) -> Facts:
        if (self.classes, self.class_names) != (other.classes, other.class_names):
            raise MergeError(
                f"cannot add cases of {other._classes()} to cases of {self._classes()}"
            )
        if (self.patients is None) != (other.patients is None) and self.cases and other.cases:
            raise MergeError("cannot add cases of unknown patients to cases of known ones")
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name in ADDED
        }
        held = [facts for facts in (self, other) if facts.cases]
        counts = (facts.by_class or (0,) * self.classes for facts in (self, other))
        by_class = tuple(a + b for a, b in zip(*counts, strict=True))
        known = [facts.patients for facts in (self, other) if facts.patients is not None]
        given = [facts.given for facts in held if facts.given is not None]
        weighed = [one.label_weights for one in held if one.label_weights is not None]
        return Facts(
            classes=self.classes,
            given=reduce(add, given) if given else None,
            fewest=min((facts.fewest for facts in held), default=0),
            most=max(self.most, other.most),
            by_class=by_class,
            class_names=self.class_names,
            dropped=_added(self.dropped, other.dropped),
            patients=known[0] + known[1] if len(known) == 2 else next(iter(known), None),
            rater_names=_all_named([facts.rater_names for facts in held]),
            panel=_joined(self, other),
            label_weights=reduce(add, weighed) if 0 < len(weighed) == len(held) else None,
            **sums,
        )

    def _classes(self) -> str:
        names = "" if self.class_names is None else f" ({', '.join(self.class_names)})"
        return f"{self.classes} classes{names}"

    @property
    def grouped(self) -> bool:
        """Whether some patient has several cases, or an image several voxels."""
        several = self.patients is not None and self.patients.largest > 1
        return several or self.of_voxels

    @property
    def of_voxels(self) -> bool:
        """Whether cases are voxels of images; an image of one voxel is a case like any other."""
        return 0 < self.images < self.cases

    @property
    def told(self) -> Facts | AsGiven:
        """What has the numbers of cases and ratings that a reader is told."""
        return self.given or self

    @property
    def named_patients(self) -> Patients | None:
        """The patients, where somebody named them."""
        return None if self.given is not None and not self.given.patients else self.patients

    @property
    def raters(self) -> float:
        """Labels per case, on average."""
        return self.ratings / self.cases

    @property
    def worth(self) -> float:
        """(Σw)² / Σw²: how many cases of equal weight would carry as much."""
        return self.weight**2 / self.squared_weight

    @property
    def arbitrated(self) -> bool:
        """Whether a third label seems to have been asked for where two differ, and only there."""
        return asked_to_decide(self.divided_threes, self.threes, self.divided_twos, self.twos)

    def too_few(self, least: int) -> int:
        """Return how many cases have fewer than `least` labels, 1 to 3."""
        return (0, 0, self.under_two, self.under_three)[least]

    def require_raters(self, least: int, on_single: str) -> int:
        """Return how many cases have too few labels; with "error" there may be none."""
        few, dropping = self.too_few(least), on_single == "drop"
        if (few and not dropping) or few == self.cases:
            raise rules.too_few_raters("labels", least, few, self.cases, "", dropping=dropping)
        return few

    def as_data(self) -> dict[str, Any]:
        """Return what results say of the data."""
        names, told, patients = self.class_names, self.told, self.named_patients
        counted = {"cases": self.images, "voxels": self.cases} if self.images else {
            "cases": told.cases
        }  # fmt: skip
        return {
            **counted,
            "patients": None if patients is None else patients.number,
            "classes": self.classes,
            "class_names": None if names is None else list(names),
            "ratings": told.ratings,
            "raters": {"mean": told.ratings / told.cases, "min": told.fewest, "max": told.most},
            "dropped": dict(self.dropped),
            **({"outside": self.outside} if self.outside else {}),
        }


ADDED = {
    *("cases", "ratings", "under_two", "under_three", "weight", "squared_weight", "images"),
    *("twos", "divided_twos", "threes", "divided_threes"),
    *("confidences", "fingerprint", "outside"),
}
"""The facts of which the sum is that of both."""


def _all_named(raters: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the raters of all parts, each once; none where a part does not name its own."""
    return tuple(dict.fromkeys(name for each in raters for name in each)) if all(raters) else ()


def _joined(first: Facts, second: Facts) -> Panel | None:
    held = [facts.panel for facts in (first, second) if facts.cases]
    if len(held) < 2 or held[0] is None or held[1] is None:
        return held[0] if len(held) == 1 else None
    return held[0] + held[1]


def _added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}}


def _counts_of_raters(predictions: Predictions) -> dict[str, Any]:
    """Return how many labels there are, and how much the cases weigh with them."""
    cases, labels, given = len(predictions), predictions.labels, predictions.weights
    by_number: dict[str, int] = {}
    if labels.classes is not None:  # one label each: no need to write a million ones
        ratings = under_two = under_three = cases
        few = most = int(cases > 0)
        weights = given
    else:
        raters = labels.num_raters
        ratings, under_two = int(raters.sum()), int((raters < 2).sum())
        under_three = int((raters < 3).sum())
        few, most = (int(raters.min()), int(raters.max())) if cases else (0, 0)
        divided = labels.counts.max(axis=1, initial=0) < raters
        by_number = {
            f"{which}{name}": int(np.count_nonzero(found & (raters == number)))
            for number, name in ((2, "twos"), (3, "threes"))
            for which, found in (("", True), ("divided_", divided))
        }
        weights = raters.astype(np.float64) if given is None else raters * given
    weight = squares = float(cases)
    if weights is not None:
        with np.errstate(over="ignore"):
            weight, squares = float(weights.sum()), float(weights @ weights)
    if given is not None and given.any():
        rules.check_squared_weights("weights", squares)
    return {
        "ratings": ratings, "fewest": few, "most": most, "under_two": under_two,
        "under_three": under_three, "weight": weight, "squared_weight": squares, **by_number,
    }  # fmt: skip


def _cases_by_class(predictions: Predictions) -> tuple[int, ...]:
    labels = predictions.labels
    if labels.classes is not None:
        found = np.bincount(labels.classes, minlength=labels.num_classes)
    else:
        found = (labels.counts > 0).sum(axis=0)
    return tuple(int(n) for n in found)
