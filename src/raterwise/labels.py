"""What the raters said about each case, as label histograms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.arrays import as_array, as_integer_array, choose, positive_integer
from raterwise.errors import InvalidInputError
from raterwise.kernels._threads import in_threads

__all__ = ["Labels", "Ratings"]

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Single ratings with the identity of the rater: one entry per (case, rater, label)."""

    case: IntArray
    rater: IntArray
    label: IntArray
    rater_ids: tuple[Hashable, ...]

    def take(self, indices: IntArray) -> Ratings:
        """Return the ratings of the chosen cases; a case chosen twice keeps its ratings twice."""
        order = np.argsort(self.case, kind="stable")
        first = np.searchsorted(self.case[order], indices, side="left")
        last = np.searchsorted(self.case[order], indices, side="right")
        lengths = last - first
        new_case = np.repeat(np.arange(len(indices)), lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = order[np.repeat(first, lengths) + within]
        return Ratings(new_case, self.rater[rows], self.label[rows], self.rater_ids)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of N cases by any number of raters, K classes.

    Made by `from_classes`, `from_ratings`, `from_counts` or `from_long`. Single labels are kept
    as they come, and the histogram (N, K) is made only when somebody asks for it.

    >>> labels = Labels.from_ratings([[0, 1, 1], [2, 2, -1]], num_classes=3)
    >>> labels.counts
    array([[1, 2, 0],
           [0, 0, 2]])
    >>> labels.num_raters
    array([3, 2])
    >>> labels.majority()
    array([1, 2])
    """

    num_classes: int
    classes: IntArray | None = None
    """(N,) the label of each case where every case has exactly one; otherwise None."""
    histogram: IntArray | None = None
    ratings: Ratings | None = None
    """Who said what, where that is known."""
    class_names: tuple[str, ...] | None = None
    case_ids: tuple[Hashable, ...] | None = None

    @staticmethod
    def from_classes(
        y: Any, num_classes: int, *, class_names: Sequence[str] | None = None
    ) -> Labels:
        """Return the labels of cases with one rater each: `y` is (N,), classes 0 … K-1."""
        num_classes = positive_integer("num_classes", num_classes, least=2)
        classes = as_integer_array(y, "labels", ndim=1)
        _check_range(classes, num_classes, "labels")
        return Labels(num_classes, classes=classes, class_names=_names(class_names, num_classes))

    @staticmethod
    def from_ratings(
        r: Any, num_classes: int, missing: float = -1, *, class_names: Sequence[str] | None = None
    ) -> Labels:
        """Return the labels of a rating matrix (N, R): one column per rater, `missing` allowed.

        `missing` may be NaN, as pandas writes absent ratings. Of a masked array, what is hidden is
        missing.
        """
        num_classes = positive_integer("num_classes", num_classes, least=2)
        hidden = np.ma.getmaskarray(r) if isinstance(r, np.ma.MaskedArray) else False
        matrix = as_array(r.data if isinstance(r, np.ma.MaskedArray) else r, "ratings")
        if matrix.ndim != 2:
            raise InvalidInputError(f"ratings: must be (cases, raters); got shape {matrix.shape}")
        present = ~np.isnan(matrix) if missing != missing else matrix != missing
        present &= ~np.asarray(hidden)
        case, rater = np.nonzero(present)
        label = as_integer_array(matrix[present], "ratings", ndim=1)
        ids = tuple(range(matrix.shape[1]))
        ratings = Ratings(case, rater, label, ids)
        return _from_triplets(ratings, len(matrix), num_classes, class_names, None)

    @staticmethod
    def from_counts(c: Any, *, class_names: Sequence[str] | None = None) -> Labels:
        """Return the labels of histograms (N, K): how many raters chose each class."""
        counts = as_integer_array(c, "counts", ndim=2)
        num_classes = positive_integer("counts.shape[1] (classes)", counts.shape[1], least=2)
        if counts.size and counts.min() < 0:
            case, k = (int(i) for i in np.argwhere(counts < 0)[0])
            raise rules.negative_count("counts", case, k, int(counts[case, k]))
        return Labels(num_classes, histogram=counts, class_names=_names(class_names, num_classes))

    @staticmethod
    def from_long(
        items: Any,
        raters: Any,
        classes: Any,
        num_classes: int,
        *,
        class_names: Sequence[str] | None = None,
        order: Iterable[Hashable] | None = None,
    ) -> Labels:
        """Return the labels of a table with one row per rating; items and raters may be any ids.

        Cases come in the order of `order`, or in the order in which items first appear;
        `labels.case_ids` says which is which. The identity of the raters is kept.
        """
        num_classes = positive_integer("num_classes", num_classes, least=2)
        label = as_integer_array(classes, "classes", ndim=1)
        case_ids = tuple(dict.fromkeys(_ids(items) if order is None else _ids(order)))
        case = _codes(_ids(items), case_ids, "items")
        rater_ids = tuple(dict.fromkeys(_ids(raters)))
        rater = _codes(_ids(raters), rater_ids, "raters")
        if not len(case) == len(rater) == len(label):
            raise InvalidInputError(
                "items, raters and classes: must have the same length; "
                f"got {len(case)}, {len(rater)} and {len(label)}"
            )
        ratings = Ratings(case, rater, label, rater_ids)
        return _from_triplets(ratings, len(case_ids), num_classes, class_names, case_ids)

    def __len__(self) -> int:
        held = self.classes if self.classes is not None else self.histogram
        assert held is not None
        return len(held)

    @cached_property
    def counts(self) -> IntArray:
        """(N, K): how many raters chose each class."""
        if self.histogram is not None:
            return self.histogram
        assert self.classes is not None
        counts = np.zeros((len(self.classes), self.num_classes), np.int64)
        counts[np.arange(len(self.classes)), self.classes] = 1
        return counts

    @cached_property
    def num_raters(self) -> IntArray:
        """(N,): how many raters labelled each case."""
        if self.classes is not None:
            return np.ones(len(self.classes), np.int64)
        assert self.histogram is not None
        return np.asarray(self.histogram.sum(axis=1, dtype=np.int64))

    @property
    def frequencies(self) -> FloatArray:
        """(N, K): the fraction of the raters who chose each class (NaN where nobody rated)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts / self.num_raters[:, None], np.float64)

    def majority(self) -> IntArray:
        """(N,): the class most raters chose; ties go to the lowest class."""
        return np.asarray(self.classes if self.classes is not None else self.counts.argmax(axis=1))

    def take(self, indices: Any) -> Labels:
        """Return the labels of the chosen cases, in the order chosen."""
        rows = np.asarray(indices)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        return replace(
            self,
            classes=None if self.classes is None else self.classes[rows],
            histogram=None if self.histogram is None else self.histogram[rows],
            ratings=None if self.ratings is None else self.ratings.take(rows),
            case_ids=None if self.case_ids is None else tuple(self.case_ids[i] for i in rows),
        )

    def require_raters(self, least: int, on_single: str = "error") -> int:
        """Return how many cases have fewer than `least` labels; with "error" there may be none."""
        choose("on_single", on_single, ("error", "drop"))
        if self.classes is not None and least <= 1:
            return 0  # one label each: no need to write a million ones to see it
        few = self.num_raters < least
        if (on_single == "error" and few.any()) or few.all():
            raise rules.too_few_raters(
                "labels", least, int(few.sum()), len(self), self.first_named(few),
                dropping=on_single == "drop",
            )  # fmt: skip
        return int(few.sum())

    def first_named(self, chosen: NDArray[np.bool_]) -> str:
        """How to name the first few chosen cases in a message: by id, or by row."""
        ids = self.case_ids
        return rules.first_cases(i if ids is None else repr(ids[i]) for i in np.flatnonzero(chosen))

    def __repr__(self) -> str:
        raters = self.num_raters
        span = f"{raters.min()}-{raters.max()}" if len(raters) else "0"
        return f"Labels({len(self)} cases, {self.num_classes} classes, {span} raters a case)"


def _from_triplets(
    ratings: Ratings,
    cases: int,
    num_classes: int,
    class_names: Sequence[str] | None,
    case_ids: tuple[Hashable, ...] | None,
) -> Labels:
    _check_range(ratings.label, num_classes, "ratings")
    flat = ratings.case.astype(np.int64) * num_classes + ratings.label
    counts = np.bincount(flat, minlength=cases * num_classes).reshape(cases, num_classes)
    return Labels(
        num_classes,
        histogram=counts,
        ratings=ratings,
        class_names=_names(class_names, num_classes),
        case_ids=case_ids,
    )


def _check_range(labels: IntArray, num_classes: int, name: str) -> None:
    # As unsigned numbers, negative ones are the largest: one pass finds both kinds.
    unsigned = labels.view(labels.dtype.str.replace("i", "u"))
    parts = np.array_split(unsigned, 8 if labels.size > 1 << 16 else 1)
    if labels.size and max(in_threads(lambda i: parts[i].max(), range(len(parts)))) >= num_classes:
        row = int(np.flatnonzero((labels < 0) | (labels >= num_classes))[0])
        raise rules.not_a_class(name, row, int(labels[row]), num_classes)


def _names(names: Sequence[str] | None, num_classes: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != num_classes:
        raise InvalidInputError(
            f"class_names: must name each of the {num_classes} classes; got {len(names)} names"
        )
    return tuple(str(name) for name in names)


def _ids(values: Any) -> list[Hashable]:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _codes(ids: list[Hashable], known: tuple[Hashable, ...], name: str) -> IntArray:
    code = {value: i for i, value in enumerate(known)}
    try:
        return np.fromiter((code[value] for value in ids), np.int64, len(ids))
    except KeyError as error:
        raise InvalidInputError(f"{name}: {error.args[0]!r} is not in order") from None
