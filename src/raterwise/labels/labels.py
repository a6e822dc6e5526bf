"""What the raters said about each case, as label histograms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise import rules
from raterwise.arrays import as_integer_array
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.frames import as_list, require_columns
from raterwise.kernels._threads import in_threads
from raterwise.labels.classes import (
    MISSING_CODES,
    NO_RATING,
    Coded,
    coded_column,
    coded_columns,
    coded_matrix,
    names_of,
)
from raterwise.labels.duplicates import DUPLICATES, Duplicates, chosen_of_each, refuse_repeated
from raterwise.labels.histograms import LabelTable, Ratings
from raterwise.rules import choose, positive_integer
from raterwise.types import Integers


@dataclass(frozen=True, eq=False, repr=False)
class Labels(LabelTable):
    """The labels of N cases by any number of raters, K classes.

    Made by `from_classes`, `from_ratings`, `from_counts` or `from_long`. Single labels are stored
    as given, and the histogram (N, K) is made only when it is needed. `len`, `shape` and indexing
    work as for an array with one row per case, so scikit-learn can split it.

    Attributes
    ----------
    num_classes : int
        Number of classes, K.
    classes : array of shape (N,) or None
        The label of each case, if every case has exactly one.
    histogram : array of shape (N, K) or None
        How many raters chose each class, if there are several; `counts` is always available.
    ratings : Ratings or None
        Who gave each rating, if known.
    class_names : tuple of str or None
        Names of the classes.
    case_ids : tuple or None
        The ids of the cases.
    inferred : bool
        Whether K is only a guess, the largest class that occurs plus one; probabilities of more
        classes raise it.
    notes : tuple of str
        Notes about how the labels were made; results repeat them.

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

    @staticmethod
    def from_classes(
        y: Any, num_classes: int | None = None, class_names: Sequence[str] | None = None
    ) -> Labels:
        """Make labels from one class per case.

        Parameters
        ----------
        y : array-like or series of shape (N,)
            The class of each case: 0 … K-1, a category, or a name in `class_names`. In a column of
            a data frame, NaN, None and NA mean that nobody rated the case.
        num_classes : int, default None
            Number of classes, at least 2. By default the number of names or categories, or else the
            largest class that occurs plus one; probabilities of more classes raise it.
        class_names : sequence of str, default None
            Names of the classes, in order; by default the categories.

        Returns
        -------
        Labels
            With one label per case.

        Examples
        --------
        >>> Labels.from_classes([0, 2, 1], num_classes=3)
        Labels(3 cases, 3 classes, 1 rater per case)
        >>> Labels.from_classes(["mild", "none"], class_names=["none", "mild", "severe"]).classes
        array([1, 0])
        """
        found = coded_column(y, "labels", num_classes, class_names)
        codes = found.codes
        if found.gaps:
            return _from_matrix(codes[:, None], found, None)
        _check_range(codes, found.num_classes, "labels")
        names, inferred = found.class_names, found.inferred
        return Labels(found.num_classes, classes=codes, class_names=names, inferred=inferred)

    @staticmethod
    def from_ratings(
        r: Any,
        num_classes: int | None = None,
        missing: Any = NO_RATING,
        *,
        class_names: Sequence[str] | None = None,
    ) -> Labels:
        """Make labels from a rating matrix: one row per case, one column per rater.

        Parameters
        ----------
        r : array-like or data frame of shape (N, R)
            The class that each rater gave each case: 0 … K-1, a category, or a name in
            `class_names`. The columns of a data frame name the raters.
        num_classes : int, default None
            Number of classes, at least 2; by default as in `from_classes`.
        missing : float, str or collection of them, default -1
            Codes for a missing rating, besides NaN, None, NA and masked values.
        class_names : sequence of str, default None
            Names of the classes, in order; by default the categories.

        Returns
        -------
        Labels
            With the identity of the raters.

        Examples
        --------
        >>> Labels.from_ratings([[0, 1, 1], [2, 2, -1]], num_classes=3).counts
        array([[1, 2, 0],
               [0, 0, 2]])
        >>> Labels.from_ratings([["no", "yes"], ["no", None]], class_names=["no", "yes"]).counts
        array([[1, 1],
               [1, 0]])
        """
        found, raters = coded_matrix(r, "ratings", num_classes, class_names, missing)
        return _from_matrix(found.codes, found, raters)

    @staticmethod
    def from_frame(
        df: Any,
        raters: Sequence[str] | None = None,
        *,
        case: str | None = None,
        rater: str | None = None,
        label: str | None = None,
        num_classes: int | None = None,
        class_names: Sequence[str] | None = None,
        missing: Any = NO_RATING,
        duplicates: Duplicates | None = None,
    ) -> Labels:
        """Make labels from a data frame: pandas, polars, pyarrow or modin.

        Parameters
        ----------
        df : data frame
            One row per case and one column per rater, or one row per rating.
        raters : sequence of str, default None
            With one row per case: the columns of the raters.
        case : str, default None
            The column with the case id; required with one row per rating, otherwise optional.
        rater, label : str, default None
            With one row per rating: the columns of the rater and of the rating.
        num_classes : int, default None
            Number of classes, at least 2; by default as in `from_classes`.
        class_names : sequence of str, default None
            Names of the classes, in order; by default the categories.
        missing : float, str or collection of them, default -1
            Codes for a missing rating, besides NaN, None and NA.
        duplicates : {"error", "keep", "average", "last"}, default None
            With one row per rating: what to do with repeated ratings of a case by the same rater,
            as in `from_long`.

        Returns
        -------
        Labels
            With the identity of the raters.

        See Also
        --------
        read_cases : predictions and ratings from files.

        Examples
        --------
        >>> import pyarrow as pa
        >>> wide = pa.table({"case": ["a", "b"], "ann": [0, 1], "bob": [1, None]})
        >>> Labels.from_frame(wide, raters=["ann", "bob"]).counts
        array([[1, 1],
               [0, 1]])
        >>> long = pa.table({"case": ["a", "b", "a"], "who": ["x", "x", "y"], "y": [0, 1, 1]})
        >>> Labels.from_frame(long, case="case", rater="who", label="y").counts
        array([[1, 1],
               [0, 1]])
        """
        if raters is not None:
            named = rules.several_names("raters", raters)
            if rater is not None or label is not None or isinstance(raters, str) or not named:
                raise InvalidInputError(
                    "raters: must be a list of columns, one per rater, without rater and label; "
                    f"got {raters!r}"
                )
            columns = require_columns(df, named, "raters")
            found = coded_columns(columns, "ratings", num_classes, class_names, missing)
            ids = None if case is None else as_list(require_columns(df, [case], "case")[0])
            return _from_matrix(found.codes, found, named, ids)
        if case is None or rater is None or label is None:
            raise InvalidInputError(
                "raters: must name the columns of the raters; or case, rater and label those of a "
                "table with one row per rating"
            )
        told = {"case": case, "rater": rater, "label": label}
        items, who, what = (require_columns(df, [name], key)[0] for key, name in told.items())
        return Labels.from_long(
            items, who, what, num_classes,
            class_names=class_names, missing=missing, duplicates=duplicates,
        )  # fmt: skip

    @staticmethod
    def from_counts(c: ArrayLike, *, class_names: Sequence[str] | None = None) -> Labels:
        """Make labels from histograms: how many raters chose each class.

        Parameters
        ----------
        c : array-like of shape (N, K)
            Non-negative whole numbers.
        class_names : sequence of str, default None
            Names of the classes.

        Returns
        -------
        Labels
            Without the identity of the raters.

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
        names = None if class_names is None else names_of(class_names, num_classes)
        return Labels(num_classes, histogram=counts, class_names=names)

    @staticmethod
    def from_long(
        items: Iterable[Hashable],
        raters: Iterable[Hashable],
        classes: Any,
        num_classes: int | None = None,
        *,
        class_names: Sequence[str] | None = None,
        order: Iterable[Hashable] | None = None,
        missing: Any = (),
        duplicates: Duplicates | None = None,
    ) -> Labels:
        """Make labels from a table with one row per rating.

        Parameters
        ----------
        items : sequence
            The case of each rating, by any id.
        raters : sequence
            The rater of each rating, by any id.
        classes : array-like or series
            The class of each rating: 0 … K-1, a category, or a name in `class_names`.
        num_classes : int, default None
            Number of classes, at least 2; by default as in `from_classes`.
        class_names : sequence of str, default None
            Names of the classes, in order; by default the categories.
        order : iterable, default None
            The ids of the cases in the desired order; by default the order in which they first
            appear.
        missing : float, str or collection of them, default ()
            Codes for a missing rating, besides NaN, None and NA.
        duplicates : {"error", "keep", "average", "last"}, default None
            What to do with repeated ratings of a case by the same rater: "error" refuses them,
            "keep" counts each, "last" uses the last one, "average" the most frequent one. With None
            each counts, and the results say so.

        Returns
        -------
        Labels
            With the identity of the raters; `case_ids` gives the ids of the cases.

        Examples
        --------
        >>> labels = Labels.from_long(["a", "b", "a"], ["ann", "ann", "bob"], [0, 1, 1], 2)
        >>> labels.case_ids, labels.counts.tolist()
        (('a', 'b'), [[1, 1], [0, 1]])
        """
        found = coded_columns([classes], "classes", num_classes, class_names, missing)
        label = found.codes[:, 0].astype(np.int64)
        listed, who = _ids(items, "items"), _ids(raters, "raters")
        case_ids = tuple(dict.fromkeys(listed if order is None else as_list(order, "order")))
        case = _codes(listed, case_ids, "items")
        rater_ids = tuple(dict.fromkeys(who))
        rater = _codes(who, rater_ids, "raters")
        if not len(case) == len(rater) == len(label):
            raise InvalidInputError(
                "items, raters and classes: must have the same length; "
                f"got {len(case)}, {len(rater)} and {len(label)}"
            )
        pairs = case * len(rater_ids) + rater
        if duplicates is not None and choose("duplicates", duplicates, DUPLICATES) == "error":
            refuse_repeated(pairs, case_ids, rater_ids, "raters")
        rated, notes = chosen_of_each(pairs, label, duplicates, "raters")
        ratings = Ratings(case[rated], rater[rated], label[rated], rater_ids)
        return replace(_from_triplets(ratings, len(case_ids), found, case_ids), notes=notes)


def _from_matrix(
    codes: Integers,
    found: Coded,
    raters: Sequence[Hashable] | None,
    ids: Sequence[Hashable] | None = None,
) -> Labels:
    """Return the labels of (N, R) codes, NO_RATING for none."""
    case, rater = np.nonzero(codes != NO_RATING)
    names = tuple(range(codes.shape[1])) if raters is None else tuple(raters)
    ratings = Ratings(case, rater, codes[case, rater], names)
    return _from_triplets(ratings, len(codes), found, None if ids is None else tuple(ids))


def _from_triplets(
    ratings: Ratings, cases: int, found: Coded, case_ids: tuple[Hashable, ...] | None
) -> Labels:
    num_classes = found.num_classes
    _check_range(ratings.label, num_classes, "ratings")
    flat = ratings.case.astype(np.int64) * num_classes + ratings.label
    counts = np.bincount(flat, minlength=cases * num_classes).reshape(cases, num_classes)
    return Labels(
        num_classes,
        histogram=counts,
        ratings=ratings,
        class_names=found.class_names,
        case_ids=case_ids,
        inferred=found.inferred,
    )


def _check_range(labels: Integers, num_classes: int, name: str) -> None:
    # As unsigned numbers, negative ones are the largest: one pass finds both kinds.
    unsigned = labels.view(labels.dtype.str.replace("i", "u"))
    parts = np.array_split(unsigned, 8 if labels.size > 1 << 16 else 1)
    if labels.size and max(in_threads(lambda i: parts[i].max(), range(len(parts)))) >= num_classes:
        row = int(np.flatnonzero((labels < 0) | (labels >= num_classes))[0])
        code = int(labels[row])
        none = f" (if that is no rating: missing={code})" if code in MISSING_CODES else ""
        raise rules.not_a_class(name, row, code, num_classes, after=none)


def _ids(values: Any, name: str) -> list[Hashable]:
    """Return what says which case or which rater, one for each row."""
    found = as_list(values, name)
    for row, value in enumerate(found):
        if not isinstance(value, Hashable):
            raise InvalidTypeError(f"{name}: must be one id per row; row {row} is {value!r}")
        if rules.is_missing(value):  # two that are missing need not be the same
            raise InvalidInputError(
                f"{name}: must name the {'case' if name == 'items' else 'rater'} of each rating; "
                f"row {row} is {value!r} (leave such rows out, or name them)"
            )
    return found


def _codes(ids: list[Hashable], known: tuple[Hashable, ...], name: str) -> Integers:
    code = {value: i for i, value in enumerate(known)}
    try:
        return np.fromiter((code[value] for value in ids), np.int64, len(ids))
    except KeyError as error:
        raise InvalidInputError(f"{name}: {error.args[0]!r} is not in order") from None
