"""Predictions with the labels they are judged by: the only place that validates them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise import rules
from raterwise.arrays import as_float_array, settled
from raterwise.binning import unit_in_last_place
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.frames import class_names_of, refuse_other_order
from raterwise.labels import Labels
from raterwise.labels.classes import names_of
from raterwise.labels.misread import code_notes_of
from raterwise.predictions.checks import (
    as_labels,
    check_class_order,
    check_weights,
    patient_codes,
    row_sum_tolerance,
)
from raterwise.predictions.mixtures import Draws
from raterwise.predictions.odd_columns import explain_bad_row
from raterwise.predictions.rows import Rows, confidences, own_confidence
from raterwise.rules import choose
from raterwise.types import Array, FloatArray, OnUnrated

CHUNK_VALUES = 1 << 17
"""How many probabilities a chunk holds: about half of a core's second-level cache."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities, labels, and optionally case weights, patients and class names.

    `Predictions.of` checks shapes and types. Values are checked when they are read, in the
    pass that uses them, so that ten million rows are read once and not twice.

    Parameters
    ----------
    probs : ndarray of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels
        The raters' labels.
    weights : ndarray of shape (N,), default None
        Weight of each case; 1 by default.
    groups : ndarray of shape (N,), default None
        The patient of each case as codes 0 … G-1.
    group_ids : tuple, default ()
        The patient that each code stands for.
    class_names : tuple of str, default None
        Names of the classes.
    belief : Belief, default None
        The belief with the probabilities as its mean, if there is one.
    tolerance : float, default 1e-4
        How far a row may sum from 1.
    dropped : dict of str to int, default {}
        How many cases were left out, by reason.
    kept : ndarray of shape (N,), default None
        Indices of these cases among the original ones; None if all were kept.
    given_rounding : float, default None
        The unit in the last place of the original probabilities, if known.
    left_out : mapping of str to tuple, default {}
        The cases left out, by reason: their names or rows.
    notes : tuple of str, default ()
        Notes about how they were read.
    sources : tuple of str, default ()
        The files that they were read from.
    confidence : ndarray of shape (N,), default None
        The confidence that ranks the cases, if it is not the largest probability.
    outside : ndarray of shape (M,), default None
        The confidences of out-of-distribution cases, whose predictions all count as wrong.
    draws : Draws, default None
        The predictions of an ensemble's members for the predicted class.
    case_raters : ndarray of shape (N,), default None
        If a case has several rows, as at another prevalence: how many raters the whole case has.
        `kept` says which case a row belongs to.
    groups_are_cases : bool, default False
        Whether `groups` only keeps the rows of a case together, because no patients were named.
    class_weights : ndarray of shape (K,), default None
        If cases are weighted by the class of their label: the weight of each class.
    columns : tuple of str, default ()
        The names of the probability columns in a data frame.

    See Also
    --------
    evaluate : makes them from its arguments.

    Examples
    --------
    >>> import raterwise as rw
    >>> predictions = rw.Predictions.of([0.9, 0.8, 0.3], [1, 0, 0], groups=["ann", "bob", "ann"])
    >>> len(predictions), predictions.num_classes, predictions.group_ids
    (3, 2, ('ann', 'bob'))
    """

    probs: Array
    labels: Labels
    weights: FloatArray | None = None
    groups: NDArray[np.int64] | None = None
    group_ids: tuple[Hashable, ...] = ()
    class_names: tuple[str, ...] | None = None
    belief: Any = None
    tolerance: float = 1e-4
    dropped: dict[str, int] = field(default_factory=dict)
    kept: NDArray[np.int64] | None = None
    given_rounding: float | None = None
    left_out: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    confidence: FloatArray | None = None
    outside: FloatArray | None = None
    draws: Draws | None = None
    case_raters: NDArray[np.int64] | None = None
    groups_are_cases: bool = False
    class_weights: FloatArray | None = None
    columns: tuple[str, ...] = ()

    @staticmethod
    def of(
        probs: ArrayLike,
        labels: Labels | ArrayLike,
        *,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        belief: Any = None,
        on_unrated: OnUnrated = "error",
        confidence: ArrayLike | None = None,
        outside: ArrayLike | None = None,
        draws: Draws | None = None,
    ) -> Predictions:
        """Return predictions whose shapes and types are checked.

        Parameters
        ----------
        probs : array-like of shape (N, K) or (N,)
            Class probabilities; with shape (N,), the probability of class 1 of two.
        labels : Labels or array-like of shape (N,)
            The raters' labels, or one class per case.
        weights : array-like of shape (N,), default None
            Weight of each case. Cases of weight 0 are left out and counted in `dropped`.
        groups : array-like of shape (N,), default None
            The patient of each case.
        class_names : sequence of str, default None
            Names of the classes; by default those of the labels.
        belief : Belief, default None
            The belief whose mean the probabilities are.
        on_unrated : {"error", "drop"}, default "error"
            Whether unrated cases are an error or are left out.
        confidence : array-like of shape (N,), default None
            Confidence that ranks the cases, instead of the largest probability.
        outside : array-like of shape (M,) or (M, K), default None
            Confidences of out-of-distribution cases, or their class probabilities.
        draws : Draws, default None
            The predictions of an ensemble's members for the predicted class.

        Returns
        -------
        Predictions
            Ready to be read.

        Raises
        ------
        InvalidInputError
            If shapes do not match, a weight or a patient is missing, or nobody rated a case.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_counts([[2, 1], [0, 0], [0, 3]])
        >>> predictions = rw.Predictions.of([0.4, 0.5, 0.9], labels, on_unrated="drop")
        >>> len(predictions), predictions.dropped
        (2, {'unrated': 1})
        """
        refuse_other_order(probs, labels=labels, groups=groups, weights=weights)
        array = as_float_array(probs, "probs", ndim=(1, 2))
        rules.check_probabilities_shape("probs", array.shape)
        num_classes = 2 if array.ndim == 1 else array.shape[1]
        columns = class_names_of(probs)
        told: Sequence[str] | None = columns if class_names is None else class_names
        if class_names is not None and not isinstance(class_names, str):
            told = names_of(class_names, num_classes)
        checked = as_labels(labels, num_classes, told)
        rules.check_number_of_cases("labels", len(checked), len(array))
        names = told if class_names is not None else checked.class_names or columns
        names = None if names is None else names_of(tuple(names), num_classes)
        check_class_order(columns, names)
        codes, ids = patient_codes(groups, len(array))
        predictions = Predictions(
            array,
            checked,
            weights=check_weights(weights, len(array)),
            groups=codes,
            group_ids=ids,
            class_names=names,
            belief=belief,
            tolerance=row_sum_tolerance(probs, array),
            confidence=own_confidence(confidence, len(array)),
            outside=_outside(outside, num_classes, ranked_otherwise=confidence is not None),
            draws=draws,
            columns=columns or (),
            notes=(*checked.notes, *(code_notes_of(probs, labels) if class_names is None else ())),
        )
        choose("on_unrated", on_unrated, ("error", "drop"))
        left = predictions._without_weightless()._without_unrated(on_unrated)
        if left.confidence is not None:
            confidences(left.confidence, "confidence")
        return left

    def __len__(self) -> int:
        return len(self.probs)

    def __repr__(self) -> str:
        patients = "" if self.groups is None or self.groups_are_cases else (
            f" of {len(np.unique(self.groups))} patients"
        )  # fmt: skip
        return f"Predictions({len(self)} cases{patients}, {self.num_classes} classes)"

    @property
    def given(self) -> int:
        """How many cases were given, including those that were dropped."""
        return len(self) + sum(self.dropped.values())

    @property
    def num_classes(self) -> int:
        """K."""
        return 2 if self.probs.ndim == 1 else int(self.probs.shape[1])

    @property
    def rounding(self) -> float:
        """How close below an edge a score counts as on it: see `raterwise.binning`."""
        known = self.given_rounding
        return unit_in_last_place(self.probs.dtype) if known is None else known

    @cached_property
    def chunk_rows(self) -> int:
        """How many cases a chunk holds."""
        return max(1024, CHUNK_VALUES // self.num_classes)

    def take(self, rows: ArrayLike, *, dropped: dict[str, int] | None = None) -> Predictions:
        """Return the predictions of the chosen cases.

        Parameters
        ----------
        rows : array-like
            Indices of the cases, or True for each case to keep.
        dropped : dict of str to int, default None
            How many cases this leaves out, by reason; they are added to `dropped`.

        Returns
        -------
        Predictions
            The chosen cases, in the given order.

        Examples
        --------
        >>> import raterwise as rw
        >>> rw.Predictions.of([0.9, 0.8, 0.3], [1, 0, 0]).take([2, 0]).probs.tolist()
        [0.3, 0.9]
        """
        rows = np.asarray(rows)
        columns = ("probs", "weights", "groups", "confidence", "draws", "case_raters")
        given = {name: getattr(self, name) for name in columns}
        return replace(
            self,
            **{name: value[rows] for name, value in given.items() if value is not None},
            labels=self.labels.take(rows),
            belief=None if self.belief is None else self.belief.take(rows),
            dropped={**self.dropped, **(dropped or {})},
            kept=(np.arange(len(self)) if self.kept is None else self.kept)[rows],
        )

    def without_absent_patients(self) -> Predictions:
        """Return the same cases with codes for their own patients only, as `of` would give them.

        Returns
        -------
        Predictions
            With `group_ids` only for patients who have a case.

        Examples
        --------
        >>> import raterwise as rw
        >>> predictions = rw.Predictions.of(
        ...     [0.9, 0.8, 0.3], [1, 0, 0], groups=["ann", "bob", "bob"]
        ... )
        >>> predictions.take([1, 2]).without_absent_patients().group_ids
        ('bob',)
        """
        if self.groups is None:
            return self
        known, first, codes = np.unique(self.groups, return_index=True, return_inverse=True)
        order = np.argsort(first)  # patients are numbered as they first appear
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        ids = tuple(self.group_ids[known[i]] for i in order)
        return replace(self, groups=place[codes], group_ids=ids)

    def _without_weightless(self) -> Predictions:
        """Leave out cases of weight 0: they are not there, whatever their values."""
        if self.weights is None or self.weights.all():
            return self
        return self._without("weight 0", self.weights == 0)

    def _without_unrated(self, on_unrated: str) -> Predictions:
        if self.labels.classes is not None:
            return self
        unrated = self.labels.num_raters == 0
        if not unrated.any():
            return self
        if on_unrated == "error":
            first = self.labels.first_named(unrated, self.kept)
            counts = self.labels.histogram if self.labels.ratings is None else None
            as_raters = counts is not None and bool(counts.max() < self.num_classes)
            number = int(unrated.sum())
            raise rules.unrated("labels", number, len(self), first, as_raters=as_raters)
        if unrated.all():
            raise rules.none_rated("labels")
        return self._without("unrated", unrated)

    def _without(self, reason: str, cases: NDArray[np.bool_]) -> Predictions:
        """Leave out cases, counted and named by the reason."""
        rows = np.flatnonzero(cases)
        ids = self.labels.case_ids
        names = rows if self.kept is None else self.kept[rows]
        named = tuple(names.tolist() if ids is None else (ids[row] for row in rows))
        found = self.take(~cases, dropped={reason: len(rows)}).without_absent_patients()
        return replace(found, left_out={**self.left_out, reason: named})

    def read(self, start: int, stop: int) -> Rows:
        """Return cases start … stop - 1 after checking their values.

        Parameters
        ----------
        start, stop : int
            The first case, and the one after the last.

        Returns
        -------
        Rows
            Probabilities (n, K), the predicted class and its confidence, and the labels.

        Raises
        ------
        InvalidInputError
            If a row is not a distribution over the classes; the message names the first.

        Examples
        --------
        >>> import raterwise as rw
        >>> rows = rw.Predictions.of([0.9, 0.8, 0.3], [1, 0, 0]).read(1, 3)
        >>> rows.predicted.tolist(), rows.confidence.tolist()
        ([1, 0], [0.8, 0.7])
        """
        from raterwise.kernels import _numba as kernels

        probs = self._chunk(start, stop)
        confidence = np.empty(len(probs))
        predicted = np.empty(len(probs), np.int64)
        bad = kernels.read_rows(probs, self.tolerance, confidence, predicted)
        if bad >= 0:
            probs = settled(probs)
            bad = kernels.read_rows(probs, self.tolerance, confidence, predicted)
        if bad >= 0:
            row = start + int(bad)
            given = row if self.kept is None else int(self.kept[row])
            raise explain_bad_row(self.probs, row, self.tolerance, given, self.columns)
        labels = self.labels
        single = labels.classes is not None
        return Rows(
            probs,
            confidence,
            predicted,
            classes=labels.classes[start:stop] if labels.classes is not None else None,
            counts=None if single else labels.counts[start:stop],
            num_raters=None if single else labels.num_raters[start:stop],
            weights=None if self.weights is None else self.weights[start:stop],
            start=start,
            case_values=self._case_values(start, stop),
            rounding=self.rounding,
            own_confidence=None if self.confidence is None else self.confidence[start:stop],
            draws=None if self.draws is None else self.draws[start:stop],
            class_weights=self.class_weights,
        )

    def _case_values(self, start: int, stop: int) -> Mapping[str, FloatArray]:
        """Return what the belief says of each case, given what its raters said."""
        if self.belief is None:
            return {}
        rows = np.arange(start, stop)
        values: Mapping[str, FloatArray] = self.belief.take(rows).judged_by(self.labels.take(rows))
        return values

    def _chunk(self, start: int, stop: int) -> Array:
        chunk = self.probs[start:stop]
        if chunk.dtype not in (np.float32, np.float64) or not chunk.dtype.isnative:
            chunk = chunk.astype(np.float32 if chunk.dtype.itemsize < 8 else np.float64)
        if chunk.ndim == 1:
            chunk = np.stack((1 - chunk, chunk), axis=1)
        return np.ascontiguousarray(chunk)


def _outside(values: Any, num_classes: int, *, ranked_otherwise: bool) -> FloatArray | None:
    """Return the confidences of outside cases, which may be given by their class probabilities."""
    if values is None:
        return None
    array = as_float_array(values, "outside", ndim=(1, 2))
    if array.ndim == 1:
        return confidences(array, "outside").astype(np.float64)
    if ranked_otherwise:
        raise InvalidInputError(
            "outside: must be (M,) confidences of the same kind as confidence; "
            f"got shape {array.shape}"
        )
    if array.shape[1] != num_classes:
        raise InvalidInputError(
            f"outside: must be (M,), or (M, {num_classes}) as probs; got shape {array.shape}"
        )
    return rows_of(values, "outside").confidence


def rows_of(probs: Any, name: str = "probs") -> Rows:
    """Return class probabilities without labels, read and checked; an error says it of `name`.

    >>> rows_of([0.2, 0.9]).predicted
    array([0, 1])
    """
    try:
        given = as_float_array(probs, "probs", ndim=(1, 2))
        cases = Predictions.of(probs, np.zeros(len(given), np.int64))
        return cases.read(0, len(cases))
    except RaterwiseError as error:
        raise error.renamed(name) from None
