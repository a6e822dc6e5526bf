"""What the raters said about each case, as label histograms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise import rules
from raterwise.arrays import as_array, as_integer_array, choose, positive_integer
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.kernels._threads import in_threads
from raterwise.ratings import Ratings

__all__ = ["Labels", "Ratings"]

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of N cases by any number of raters, K classes.

    Made by `from_classes`, `from_ratings`, `from_counts` or `from_long`. Single labels are kept
    as they come, and the histogram (N, K) is made only when somebody asks for it. `len`, `shape`
    and indexing work as for an array with a row per case, so that scikit-learn can split it.

    Attributes
    ----------
    num_classes : int
        K.
    classes : array of shape (N,) or None
        The label of each case where every case has exactly one.
    histogram : array of shape (N, K) or None
        How many raters chose each class, where there are several; `counts` is there always.
    ratings : Ratings or None
        Who said what, where that is known.
    class_names : tuple of str or None
        A name for each class.
    case_ids : tuple or None
        What the cases are called.

    See Also
    --------
    Predictions : labels together with class probabilities.
    read_cases : both from files.

    Examples
    --------
    >>> labels = Labels.from_ratings([[0, 1, 1], [2, 2, -1]], num_classes=3)
    >>> labels.counts
    array([[1, 2, 0],
           [0, 0, 2]])
    >>> labels.num_raters
    array([3, 2])
    >>> labels.majority()
    array([1, 2])
    >>> labels.shape, len(labels), labels[1:].counts.tolist()
    ((2, 3), 2, [[0, 0, 2]])
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
        y: ArrayLike, num_classes: int, *, class_names: Sequence[str] | None = None
    ) -> Labels:
        """Return the labels of cases with one rater each.

        Parameters
        ----------
        y : array-like of shape (N,)
            The class of each case, 0 … K-1.
        num_classes : int
            K, at least 2.
        class_names : sequence of str, default None
            A name for each class.

        Returns
        -------
        Labels
            With one label per case.

        Examples
        --------
        >>> Labels.from_classes([0, 2, 1], num_classes=3)
        Labels(3 cases, 3 classes, 1-1 raters a case)
        """
        num_classes = positive_integer("num_classes", num_classes, least=2)
        classes = as_integer_array(y, "labels", ndim=1)
        _check_range(classes, num_classes, "labels")
        return Labels(num_classes, classes=classes, class_names=_names(class_names, num_classes))

    @staticmethod
    def from_ratings(
        r: ArrayLike,
        num_classes: int,
        missing: float = -1,
        *,
        class_names: Sequence[str] | None = None,
    ) -> Labels:
        """Return the labels of a rating matrix: one row per case, one column per rater.

        Parameters
        ----------
        r : array-like of shape (N, R)
            The class that each rater gave each case.
        num_classes : int
            K, at least 2.
        missing : float, default -1
            What stands for no rating; may be NaN, as pandas writes absent ratings.
            Of a masked array, what is hidden is missing.
        class_names : sequence of str, default None
            A name for each class.

        Returns
        -------
        Labels
            Which know who said what.

        Examples
        --------
        >>> Labels.from_ratings([[0, 1, 1], [2, 2, -1]], num_classes=3).counts
        array([[1, 2, 0],
               [0, 0, 2]])
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
    def from_counts(c: ArrayLike, *, class_names: Sequence[str] | None = None) -> Labels:
        """Return the labels of histograms: how many raters chose each class.

        Parameters
        ----------
        c : array-like of shape (N, K)
            Whole numbers, not negative.
        class_names : sequence of str, default None
            A name for each class.

        Returns
        -------
        Labels
            Which do not know who said what.

        Examples
        --------
        >>> Labels.from_counts([[2, 1], [0, 3]]).frequencies.round(2)
        array([[0.67, 0.33],
               [0.  , 1.  ]])
        """
        counts = as_integer_array(c, "counts", ndim=2)
        num_classes = positive_integer("counts.shape[1] (classes)", counts.shape[1], least=2)
        if counts.size and counts.min() < 0:
            case, k = (int(i) for i in np.argwhere(counts < 0)[0])
            raise rules.negative_count("counts", case, k, int(counts[case, k]))
        rules.check_sum_of_counts("counts", float(counts.sum(dtype=np.float64)))
        return Labels(num_classes, histogram=counts, class_names=_names(class_names, num_classes))

    @staticmethod
    def from_long(
        items: Iterable[Hashable],
        raters: Iterable[Hashable],
        classes: ArrayLike,
        num_classes: int,
        *,
        class_names: Sequence[str] | None = None,
        order: Iterable[Hashable] | None = None,
    ) -> Labels:
        """Return the labels of a table with one row per rating.

        Parameters
        ----------
        items : sequence
            The case of each rating, by any id.
        raters : sequence
            The rater of each rating, by any id.
        classes : array-like
            The class of each rating, 0 … K-1.
        num_classes : int
            K, at least 2.
        class_names : sequence of str, default None
            A name for each class.
        order : iterable, default None
            The ids of the cases in the order wanted; otherwise that in which items first appear.

        Returns
        -------
        Labels
            Which know who said what; `case_ids` says which case is which.

        Examples
        --------
        >>> labels = Labels.from_long(["a", "b", "a"], ["ann", "ann", "bob"], [0, 1, 1], 2)
        >>> labels.case_ids, labels.counts.tolist()
        (('a', 'b'), [[1, 1], [0, 1]])
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

    # With `__getitem__` alone Python would try to iterate by 0, 1, 2 ….
    __iter__ = None

    def __getitem__(self, rows: Any) -> Labels:
        """Return the labels of the chosen cases, as `take`; `labels[i:i+1]` is one case."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # as scikit-learn asks for the rows of an array
        if isinstance(rows, tuple) or (not isinstance(rows, slice) and np.ndim(rows) != 1):
            raise InvalidTypeError(
                "rows: must be a slice, a list or array of rows, or a mask (labels[i:i+1] is one "
                f"case); got {rows!r}"
            )
        return self.take(rows)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        return len(self), self.num_classes

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
        """Return the class most raters chose; ties go to the lowest class.

        Returns
        -------
        array of shape (N,)
            Classes 0 … K-1.

        Examples
        --------
        >>> Labels.from_counts([[1, 2], [1, 1]]).majority()
        array([1, 0])
        """
        return np.asarray(self.classes if self.classes is not None else self.counts.argmax(axis=1))

    def take(self, indices: Any) -> Labels:
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
        >>> Labels.from_classes([0, 1, 2], num_classes=3).take([2, 0]).classes
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

    def require_raters(self, least: int, on_single: str = "error") -> int:
        """Return how many cases have fewer than `least` labels.

        Parameters
        ----------
        least : int
            How many labels a case needs.
        on_single : {"error", "drop"}, default "error"
            "error" allows no case with fewer; "drop" only counts them.

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
        >>> Labels.from_counts([[1, 1], [1, 0]]).require_raters(2, "drop")
        1
        """
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
        """Return how to name the first few chosen cases in a message: by id, or by row.

        Parameters
        ----------
        chosen : array of bool of shape (N,)
            Which cases.

        Returns
        -------
        str
            At most five of them.

        Examples
        --------
        >>> Labels.from_counts([[1, 1], [0, 0]]).first_named(np.array([False, True]))
        'cases 1'
        """
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
