"""What labels hold: how many raters chose each class, case by case, and who said what."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.rules import choose
from raterwise.types import FloatArray, Integers


@dataclass(frozen=True, eq=False)
class Ratings:
    """Single ratings with the identity of the rater: one entry per (case, rater, label).

    Attributes
    ----------
    case : array of int
        The row of the case of each rating.
    rater : array of int
        Its rater, as a place in `rater_ids`.
    label : array of int
        The class given.
    rater_ids : tuple
        What the raters are called.

    Examples
    --------
    >>> ratings = Ratings(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), ("ann",))
    >>> ratings.take(np.array([1])).case
    array([0])
    """

    case: Integers
    rater: Integers
    label: Integers
    rater_ids: tuple[Hashable, ...]

    def take(self, indices: Integers) -> Ratings:
        """Return the ratings of the chosen cases; a case chosen twice keeps its ratings twice.

        Parameters
        ----------
        indices : array of int
            Rows of cases.

        Returns
        -------
        Ratings
            With the cases numbered as chosen.

        Examples
        --------
        >>> ratings = Ratings(np.array([0, 1]), np.array([0, 0]), np.array([0, 1]), ("ann",))
        >>> ratings.take(np.array([1, 1])).label
        array([1, 1])
        """
        order = np.argsort(self.case, kind="stable")
        first = np.searchsorted(self.case[order], indices, side="left")
        last = np.searchsorted(self.case[order], indices, side="right")
        lengths = last - first
        new_case = np.repeat(np.arange(len(indices)), lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = order[np.repeat(first, lengths) + within]
        return Ratings(new_case, self.rater[rows], self.label[rows], self.rater_ids)


@dataclass(frozen=True, eq=False)
class LabelTable:
    """What `Labels` holds, and what can be read from it; `Labels` says how one is made."""

    num_classes: int
    classes: Integers | None = None
    """(N,) the label of each case where every case has exactly one; otherwise None."""
    histogram: Integers | None = None
    ratings: Ratings | None = None
    """Who gave each rating, if known."""
    class_names: tuple[str, ...] | None = None
    case_ids: tuple[Hashable, ...] | None = None
    inferred: bool = False
    """Whether K is only the largest class that occurs and one: see `widened`."""
    notes: tuple[str, ...] = ()
    """Notes about how the labels were made; results repeat them."""

    def __len__(self) -> int:
        held = self.classes if self.classes is not None else self.histogram
        assert held is not None
        return len(held)

    # With `__getitem__` alone Python would try to iterate by 0, 1, 2 ….
    __iter__ = None

    def __getitem__(self, rows: Any) -> Self:
        """Return the labels of the chosen cases, as `take`; `labels[i:i+1]` is one case."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # as scikit-learn asks for the rows of an array
        if isinstance(rows, tuple) or (not isinstance(rows, slice) and np.ndim(rows) != 1):
            raise InvalidTypeError(
                "rows: must be a slice, a list or array of rows, or a mask (labels[i:i+1] is one "
                f"case); got {rows!r}"
            )
        return self.take(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the counts (N, K): how scikit-learn tells what to split, and splits it plainly."""
        return np.array(self.counts, dtype=dtype, copy=bool(copy) or dtype is not None)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        return len(self), self.num_classes

    @cached_property
    def counts(self) -> Integers:
        """(N, K): how many raters chose each class."""
        if self.histogram is not None:
            return self.histogram
        assert self.classes is not None
        counts = np.zeros((len(self.classes), self.num_classes), np.int64)
        counts[np.arange(len(self.classes)), self.classes] = 1
        return counts

    @cached_property
    def num_raters(self) -> Integers:
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

    def majority(self) -> Integers:
        """Return the class most raters chose; ties go to the lowest class.

        Returns
        -------
        array of shape (N,)
            Classes 0 … K-1.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.Labels.from_counts([[1, 2], [1, 1]]).majority()
        array([1, 0])
        """
        return np.asarray(self.classes if self.classes is not None else self.counts.argmax(axis=1))

    def take(self, indices: Any) -> Self:
        """Return the labels of the chosen cases, in the order chosen.

        Parameters
        ----------
        indices : slice, array-like of rows, or mask of shape (N,)
            Rows count from the end where they are negative.

        Returns
        -------
        Labels
            With the ratings and ids of the chosen cases.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.Labels.from_classes([0, 1, 2], num_classes=3).take([2, 0]).classes
        array([2, 0])
        """
        chosen = indices if isinstance(indices, slice) else np.asarray(indices)
        if not isinstance(chosen, slice) and chosen.size == 0:
            chosen = chosen.astype(np.int64)  # of an empty list NumPy makes floats
        try:
            rows = np.arange(len(self))[chosen]
        except IndexError as error:
            raise InvalidInputError(
                f"rows: must be rows of {len(self)} cases, or a mask; {error}"
            ) from None
        return replace(
            self,
            classes=None if self.classes is None else self.classes[rows],
            histogram=None if self.histogram is None else self.histogram[rows],
            ratings=None if self.ratings is None else self.ratings.take(rows),
            case_ids=None if self.case_ids is None else tuple(self.case_ids[i] for i in rows),
        )

    def widened(self, num_classes: int) -> Self:
        """Return the same labels among more classes, where their number was only inferred.

        Parameters
        ----------
        num_classes : int
            How many classes there are, as the probabilities say.

        Returns
        -------
        Labels
            Unchanged where the number of classes was told, or is no larger.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.Labels.from_ratings([[0, 1], [1, 1]]).widened(3).counts
        array([[1, 1, 0],
               [0, 2, 0]])
        """
        more = num_classes - self.num_classes
        if not self.inferred or more <= 0:
            return self
        counts = None if self.histogram is None else np.pad(self.histogram, ((0, 0), (0, more)))
        return replace(self, num_classes=num_classes, histogram=counts)

    def require_raters(
        self, least: int, on_single: str = "error", *, rows: Integers | None = None
    ) -> int:
        """Return how many cases have fewer than `least` labels.

        Parameters
        ----------
        least : int
            How many labels a case needs.
        on_single : {"error", "drop"}, default "error"
            "error" allows no case with fewer; "drop" only counts them.
        rows : array of int of shape (N,), default None
            The number of each case in what the user gave, where some of that was left out.

        Returns
        -------
        int
            The number of cases with fewer.

        Raises
        ------
        InvalidInputError
            Where there are such cases and there may be none, or where there are no others.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.Labels.from_counts([[1, 1], [1, 0]]).require_raters(2, "drop")
        1
        """
        choose("on_single", on_single, ("error", "drop"))
        if self.classes is not None and least <= 1:
            return 0  # one label each: no need to write a million ones to see it
        few = self.num_raters < least
        if (on_single == "error" and few.any()) or few.all():
            raise rules.too_few_raters(
                "labels", least, int(few.sum()), len(self), self.first_named(few, rows),
                dropping=on_single == "drop",
            )  # fmt: skip
        return int(few.sum())

    def first_named(self, chosen: NDArray[np.bool_], rows: Integers | None = None) -> str:
        """Return how to name the first few chosen cases in a message: by id, or by row.

        Parameters
        ----------
        chosen : array of bool of shape (N,)
            Which cases.
        rows : array of int of shape (N,), default None
            The number of each case in what the user gave; 0 … N - 1 by default.

        Returns
        -------
        str
            At most five of them.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.Labels.from_counts([[1, 1], [0, 0]]).first_named(np.array([False, True]))
        'case 1'
        """
        ids, chosen_rows = self.case_ids, np.flatnonzero(chosen)
        if ids is not None:
            return rules.first_cases(repr(ids[i]) for i in chosen_rows)
        return rules.first_cases(chosen_rows if rows is None else rows[chosen_rows])

    def __repr__(self) -> str:
        return f"Labels({len(self)} cases, {self.num_classes} classes, {self._raters_in_words()})"

    def _raters_in_words(self) -> str:
        raters = self.num_raters
        fewest, most = (int(raters.min()), int(raters.max())) if len(raters) else (0, 0)
        if fewest == most:
            return f"{most} rater{'s' if most != 1 else ''} per case"
        return f"{fewest} to {most} raters per case"
