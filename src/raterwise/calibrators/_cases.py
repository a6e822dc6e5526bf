"""The cases a calibrator is fitted to: reading and checking logits, labels and weights."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import log_softmax, softmax

from raterwise import rules
from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError, RaterwiseError, RaterwiseWarning
from raterwise.labels import Labels
from raterwise.predictions.checks import (
    as_labels,
    check_weights,
    patient_codes,
    row_sum_tolerance,
)
from raterwise.predictions.predictions import rows_of
from raterwise.rules import choose, have
from raterwise.types import Array, FloatArray

INPUTS = ("logits", "probs")
ZEROS = np.log([float(np.finfo(kind).smallest_subnormal) for kind in ("f2", "f4", "f8")])
"""What a probability of 0 becomes, by its type (`read_logits`)."""
Input = Literal["logits", "probs"]


@dataclass(frozen=True, eq=False)
class CalibrationSet:
    """Cases to calibrate on: their logits, what the raters said, and case weights.

    Cases of weight 0 are left out, as if they were not there.
    """

    logits: Array
    """(N, K), float32 or float64, C order, finite."""
    labels: Labels
    weights: FloatArray | None = None
    patients: Array | None = None
    """(N,): their names; None where each case is its own."""

    @staticmethod
    def of(
        logits: Any,
        labels: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        input: str | None = None,
        every_class: bool = True,
    ) -> CalibrationSet:
        """Return checked cases; with `every_class` each class must occur among the labels."""
        array, input = read_logits(logits, input), name_of(input)
        checked = read_labels(labels, array.shape[1], len(array), input)
        weights = read_sample_weight(sample_weight, len(array))
        patient_codes(groups, len(array))  # which refuses what names nobody
        patients = None if groups is None else np.asarray(groups)
        cases = CalibrationSet(array, checked, weights, patients)
        if weights is not None and not weights.all():
            cases = cases.take(np.flatnonzero(weights))
        if len(cases) < 2:
            raise InvalidInputError(f"{input}: must hold at least 2 cases to calibrate on; got 1")
        cases.check_classes(every_class=every_class)
        return cases

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self.logits.shape[1])

    @cached_property
    def total(self) -> float:
        """Σ_i w_i n_i: how many ratings there are, weighted."""
        return math.fsum((self.labels.num_raters * self._weights).tolist())

    @property
    def masses(self) -> FloatArray:
        """(N,): the share w_i n_i / Σ w n of each case in the loss."""
        return np.asarray(self.labels.num_raters * self._weights / self.total)

    @property
    def targets(self) -> FloatArray:
        """(N, K): the share w_i y_ik / Σ w n of each case and class in the loss (LH eq 82)."""
        return np.asarray(self.labels.counts * (self._weights / self.total)[:, None])

    def take(self, rows: Any) -> CalibrationSet:
        """Return the chosen cases."""
        weights = None if self.weights is None else self.weights[rows]
        patients = None if self.patients is None else self.patients[rows]
        return CalibrationSet(self.logits[rows], self.labels.take(rows), weights, patients)

    def negative_log_likelihood(self, probs: FloatArray) -> float:
        """Return LH eq 82, -1/Σn Σ_ik y_ik log z_ik, of calibrated probabilities (N, K)."""
        targets = self.targets
        chosen = targets > 0
        with np.errstate(divide="ignore"):
            return float(-(targets[chosen] @ np.log(probs[chosen])))

    @property
    def _weights(self) -> FloatArray:
        return np.ones(len(self)) if self.weights is None else self.weights

    def warn_of_zeros(self) -> None:
        """Say so where raters chose a class of probability 0: such cases rule the fit.

        One case of 200 whose class was given 5e-324 makes the best temperature endless.
        """
        lowest = self.logits.min(axis=1)
        rows = np.flatnonzero(np.isin(lowest, ZEROS))
        at_zero = self.logits[rows] == lowest[rows, None]
        chosen = int((self.labels.take(rows).counts * at_zero).any(axis=1).sum())
        if chosen:
            warnings.warn(
                f"{chosen:,} of {len(self):,} cases have probability 0 for a class that a rater "
                "chose. Rounding may have made them so, and a few such cases decide the fit. Give "
                "logits or unrounded probabilities if you have them, or raise the zeros to what "
                "rounding could hide (0.0005 for three decimals)",
                RaterwiseWarning,
                stacklevel=4,  # where fit was called
            )

    def check_classes(self, *, every_class: bool) -> None:
        """Refuse labels of one class only, and with `every_class` those that miss a class."""
        if self.labels.classes is not None:
            totals = np.bincount(self.labels.classes, minlength=self.num_classes)
        else:
            totals = self.labels.counts.sum(axis=0)
        missing = np.flatnonzero(totals == 0)
        if len(missing) == self.num_classes - 1:
            only = _named(int(totals.argmax()), self.labels)
            raise InvalidInputError(
                f"labels: must be of at least 2 classes to calibrate on; all are of {only}"
            )
        if every_class and len(missing):
            names = ", ".join(_named(int(k), self.labels) for k in missing[:5])
            raise InvalidInputError(
                "labels: every class must occur among the labels to calibrate it; missing: "
                f"{names}{' …' if len(missing) > 5 else ''}"
            )


def name_of(input: str | None) -> Input:
    """Return what the input is called: "logits" where the caller did not say."""
    if input is None:
        return "logits"
    return "probs" if choose("input", input, INPUTS) == "probs" else "logits"


def read_logits(values: Any, input: str | None) -> Array:
    """Return logits (N, K) from what a caller has, checked; `input` says what that is.

    With None it is logits, and what could as well be probabilities is refused: rows in [0, 1] that
    add to 1, or (N,) numbers in [0, 1].

    A (N,) logit u of class 1 becomes (-u/2, u/2), so that neither class is the reference.
    Probabilities become logarithms; an exact 0, which only says that the number was too small for
    its type, counts as the smallest positive number of that type (5e-324 for float64).

    >>> read_logits([0.5, 1.0], "probs").round(2).tolist()
    [[-0.69, -0.69], [-744.44, 0.0]]
    """
    told, input = input is not None, name_of(input)
    array = as_float_array(values, input, ndim=(1, 2))
    if len(array) == 0:
        raise InvalidInputError(f"{input}: must hold at least one case; got shape {array.shape}")
    if array.ndim == 2 and array.shape[1] < 2:
        what = "logit" if input == "logits" else "probability"
        raise InvalidInputError(
            f"{input}: must have at least 2 classes, or be (N,) for the {what} of class 1; "
            f"got shape {array.shape}"
        )
    if input == "probs":
        smallest = np.finfo(array.dtype).smallest_subnormal
        return np.asarray(np.log(np.maximum(rows_of(array).probs, smallest), dtype=np.float64))
    _check_finite(array)
    if not told:
        _refuse_either(array)
    if array.dtype == np.float16 or not array.dtype.isnative:
        array = array.astype(np.float64)
    if array.ndim == 1:
        array = np.stack((-array / 2, array / 2), axis=1)
    return np.ascontiguousarray(array)


def log_probabilities(logits: Array, input: str | None) -> FloatArray:
    """Return log-probabilities of logits, or of logarithms of probabilities as they are."""
    array = logits.astype(np.float64, copy=False)
    return array if input == "probs" else np.asarray(log_softmax(array, axis=1))


def probabilities(logits: Array) -> FloatArray:
    """Return softmax(logits) in float64."""
    return np.asarray(softmax(logits.astype(np.float64, copy=False), axis=1))


def _refuse_either(array: Array) -> None:
    """Refuse what could be logits or probabilities: taken for the other, it gives nonsense."""
    inside = float(array.min()) >= 0 and float(array.max()) <= 1
    if array.ndim == 1:
        looks = "every value lies in [0, 1]"
    else:
        looks = "every row lies in [0, 1] and adds to 1"
        sums = array.sum(axis=1, dtype=np.float64) if inside else np.zeros(1)
        inside = bool((np.abs(sums - 1) <= row_sum_tolerance(array)).all())
    if inside:
        raise InvalidInputError(
            f"logits: could be logits or probabilities, as {looks}; say which they are with "
            'input="logits" or input="probs"'
        )


def _check_finite(logits: Array) -> None:
    if np.isfinite(logits).all():
        return
    if missing := int(np.isnan(logits).sum()):
        raise rules.contains_nan("logits", missing, int(np.argwhere(np.isnan(logits))[0, 0]))
    row = int(np.argwhere(np.isinf(logits))[0, 0])
    value = logits[row][np.isinf(logits[row])][0] if logits.ndim == 2 else logits[row]
    raise InvalidInputError(
        f'logits: must be finite; row {row} holds {value} (probabilities of 0 or 1: input="probs")'
    )


def read_labels(values: Any, num_classes: int, cases: int, input: str) -> Labels:
    """Return the labels of `cases` cases and `num_classes` classes, checked."""
    if values is None:
        raise InvalidInputError(
            "labels: a calibrator requires y to be passed, but the target y is None"
        )
    several = isinstance(values, Labels)
    labels = values.widened(num_classes) if several else as_labels(values, num_classes)
    rules.check_number_of_classes("labels", labels.num_classes, num_classes, input)
    rules.check_number_of_cases("labels", len(labels), cases, input)
    if labels.classes is None and (unrated := labels.num_raters == 0).any():
        raise InvalidInputError(
            f"labels: every case needs a rating; {int(unrated.sum())} of {cases} "
            f"{have(int(unrated.sum()))} none ({labels.first_named(unrated)})"
        )
    return labels


def read_sample_weight(values: Any, cases: int) -> FloatArray | None:
    """Return case weights, checked; None stays None."""
    try:
        return check_weights(values, cases)
    except RaterwiseError as error:
        raise error.renamed("sample_weight") from None


def _named(k: int, labels: Labels) -> str:
    return f"class {k}" if labels.class_names is None else f"class {k} ({labels.class_names[k]!r})"
