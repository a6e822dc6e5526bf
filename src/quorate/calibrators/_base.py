"""What every calibrator shares: reading logits and labels, predicting, saving."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from quorate.arrays import as_array, as_float_array, choose
from quorate.errors import InvalidInputError
from quorate.labels import Labels
from quorate.predictions import Predictions, check_weights

__all__ = ["CalibrationSet", "Calibrator", "log_probabilities", "nonnegative", "read_logits"]

Array = NDArray[Any]
FloatArray = NDArray[np.float64]

INPUTS = ("logits", "probs")
CURVES = "curves"
"""The shape of a fitted attribute that is a list of one-dimensional arrays of any length."""


@dataclass(frozen=True, eq=False)
class CalibrationSet:
    """Cases to calibrate on: their logits, what the raters said, and case weights.

    Cases of weight 0 are left out, as if they were not there.
    """

    logits: Array
    """(N, K), float32 or float64, C order, finite."""
    labels: Labels
    weights: FloatArray | None = None

    @staticmethod
    def of(
        logits: Any,
        labels: Any,
        sample_weight: Any = None,
        *,
        input: str = "logits",
        every_class: bool = True,
    ) -> CalibrationSet:
        """Return checked cases; with `every_class` each class must occur among the labels."""
        array = read_logits(logits, input)
        checked = _read_labels(labels, array.shape[1], len(array), input)
        weights = _sample_weight(sample_weight, len(array))
        cases = CalibrationSet(array, checked, weights)
        if weights is not None and not weights.all():
            cases = cases.take(np.flatnonzero(weights))
        if len(cases) < 2:
            raise InvalidInputError(f"{input}: must hold at least 2 cases to calibrate on; got 1")
        cases._check_classes(every_class)
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
        return CalibrationSet(self.logits[rows], self.labels.take(rows), weights)

    def negative_log_likelihood(self, probs: FloatArray) -> float:
        """Return LH eq 82, -1/Σn Σ_ik y_ik log z_ik, of calibrated probabilities (N, K)."""
        targets = self.targets
        chosen = targets > 0
        with np.errstate(divide="ignore"):
            return float(-(targets[chosen] @ np.log(probs[chosen])))

    @property
    def _weights(self) -> FloatArray:
        return np.ones(len(self)) if self.weights is None else self.weights

    def _check_classes(self, every_class: bool) -> None:
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


class Calibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn: no types
    """A map of a model's logits to better class probabilities, fitted to what raters said.

    A scikit-learn classifier whose features are the logits: column k is for class k, and the
    classes are 0 … K-1. Subclasses fit in `_fit` and map in `_calibrated`.
    """

    input: str
    classes_: NDArray[np.int64]
    class_names_: tuple[str, ...] | None
    n_features_in_: int

    _every_class: ClassVar[bool] = True
    """Whether each class must occur among the labels."""
    _fitted: ClassVar[Mapping[str, Any]] = {}
    """Fitted attributes that are saved and their shapes; K stands for the number of classes."""

    # Not metadata: the data themselves, under the names of the field.
    __metadata_request__fit: ClassVar = {"logits": UNUSED, "labels": UNUSED}
    __metadata_request__predict: ClassVar = {"logits": UNUSED}
    __metadata_request__predict_proba: ClassVar = {"logits": UNUSED}

    def fit(self, logits: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit to cases with `logits` (N, K), or (N,) for those of class 1 of two, and `labels`.

        `labels` is a Labels, whose histograms enter by the multinomial likelihood (LH eq 82), or
        (N,) classes. `sample_weight` (N,) are case weights.
        """
        cases = CalibrationSet.of(
            logits, labels, sample_weight, input=self.input, every_class=self._every_class
        )
        self._fit(cases)
        self._set_classes(cases.num_classes, cases.labels.class_names)
        return self

    def predict_proba(self, logits: Any) -> FloatArray:
        """Return calibrated probabilities, (N, K)."""
        check_is_fitted(self)
        array = read_logits(logits, self.input)
        if array.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"{self.input}: must have the {self.n_features_in_} classes of the fit; "
                f"got {array.shape[1]}"
            )
        return self._calibrated(array)

    def predict(self, logits: Any) -> NDArray[np.int64]:
        """Return the most probable class after calibration, (N,)."""
        return np.asarray(self.predict_proba(logits).argmax(axis=1))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the fitted calibrator as JSON; `quorate.calibrators.saved.load` reads it."""
        from quorate.calibrators.saved import save

        return save(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain numbers and lists, ready for JSON."""
        check_is_fitted(self)
        names = self.class_names_
        return {
            "params": {name: _plain(value) for name, value in self.get_params().items()},
            "num_classes": self.n_features_in_,
            "class_names": None if names is None else list(names),
            "fitted": {name: _plain(getattr(self, name)) for name in self._fitted},
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the calibrator that `to_dict` wrote."""
        try:
            params, fitted = stored["params"], stored["fitted"]
            classes, names = int(stored["num_classes"]), stored["class_names"]
            calibrator = cls(
                **{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
            )
            for name, shape in cls._fitted.items():
                setattr(calibrator, name, _restored(name, fitted[name], shape, classes))
        except KeyError as error:
            raise InvalidInputError(f"stored {cls.__name__}: lacks {error.args[0]!r}") from None
        except TypeError as error:
            raise InvalidInputError(f"stored {cls.__name__}: {error}") from None
        calibrator._set_classes(classes, None if names is None else tuple(names))
        return calibrator

    def _set_classes(self, num_classes: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = num_classes
        self.classes_ = np.arange(num_classes)
        self.class_names_ = names

    def _fit(self, cases: CalibrationSet) -> None:
        raise NotImplementedError

    def _calibrated(self, logits: Array) -> FloatArray:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        return tags


def read_logits(values: Any, input: str) -> Array:
    """Return logits (N, K) from what a caller has, checked; `input` says what that is.

    A (N,) logit u of class 1 becomes (-u/2, u/2), so that neither class is the reference.
    Probabilities become logarithms; an exact 0, which only says that the number was too small for
    its type, counts as the smallest positive number of that type (5e-324 for float64).

    >>> read_logits([0.25, 1.0], "probs")
    array([[ -0.28768207,  -1.38629436],
           [-744.44007192,   0.        ]])
    """
    choose("input", input, INPUTS)
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
        return _logarithms(array)
    _check_finite(array)
    if array.dtype == np.float16 or not array.dtype.isnative:
        array = array.astype(np.float64)
    if array.ndim == 1:
        array = np.stack((-array / 2, array / 2), axis=1)
    return np.ascontiguousarray(array)


def log_probabilities(logits: Array, input: str) -> FloatArray:
    """Return log-probabilities of logits, or of logarithms of probabilities as they are."""
    array = logits.astype(np.float64, copy=False)
    return array if input == "probs" else np.asarray(log_softmax(array, axis=1))


def probabilities(logits: Array) -> FloatArray:
    """Return softmax(logits) in float64."""
    return np.asarray(softmax(logits.astype(np.float64, copy=False), axis=1))


def nonnegative(name: str, value: Any) -> float:
    """Return `value` as a float that is finite and not negative."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0 <= value < math.inf):
        raise InvalidInputError(f"{name}: must be a number of at least 0; got {value!r}")
    return float(value)


def _logarithms(probs: Array) -> Array:
    nobody = np.zeros(len(probs), np.int64)
    checked = Predictions.of(probs, nobody).read(0, len(probs)).probs
    smallest = np.finfo(probs.dtype).smallest_subnormal
    return np.log(np.maximum(checked, smallest), dtype=np.float64)


def _check_finite(logits: Array) -> None:
    if np.isfinite(logits).all():
        return
    if missing := int(np.isnan(logits).sum()):
        row = int(np.argwhere(np.isnan(logits))[0, 0])
        raise InvalidInputError(
            f"logits: must not contain NaN; {missing} values are NaN, the first in row {row}"
        )
    row = int(np.argwhere(np.isinf(logits))[0, 0])
    value = logits[row][np.isinf(logits[row])][0] if logits.ndim == 2 else logits[row]
    raise InvalidInputError(
        f'logits: must be finite; row {row} holds {value} (probabilities of 0 or 1: input="probs")'
    )


def _read_labels(labels: Any, num_classes: int, cases: int, input: str) -> Labels:
    if not isinstance(labels, Labels):
        array = as_array(labels, "labels")
        if array.ndim != 1:
            raise InvalidInputError(
                f"labels: a plain array must be (N,), one class per case; got shape {array.shape}. "
                "Use Labels.from_ratings for a rating matrix, Labels.from_counts for histograms"
            )
        labels = Labels.from_classes(array, num_classes=num_classes)
    if labels.num_classes != num_classes:
        raise InvalidInputError(
            f"labels: must have the classes of {input}; got {labels.num_classes} classes in labels "
            f"and {num_classes} in {input}"
        )
    if len(labels) != cases:
        raise InvalidInputError(
            f"labels: must match {input}; got {len(labels)} labels for {cases} cases"
        )
    if labels.classes is None and (unrated := labels.num_raters == 0).any():
        raise InvalidInputError(
            f"labels: every case needs a rating; {int(unrated.sum())} of {cases} have none "
            f"({labels.first_named(unrated)})"
        )
    return labels


def _sample_weight(values: Any, cases: int) -> FloatArray | None:
    try:
        return check_weights(values, cases)
    except InvalidInputError as error:
        raise InvalidInputError("sample_weight" + str(error).removeprefix("weights")) from None


def _named(k: int, labels: Labels) -> str:
    return f"class {k}" if labels.class_names is None else f"class {k} ({labels.class_names[k]!r})"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _restored(name: str, value: Any, shape: Any, num_classes: int) -> Any:
    """Return a fitted attribute from plain lists, of the shape it must have."""
    if shape == CURVES:
        return [_restored(name, curve, (len(curve),), num_classes) for curve in value]
    if shape == () and isinstance(value, int | float):
        return value
    expected = tuple(num_classes if size == "K" else size for size in shape)
    array = as_float_array(value, name, ndim=len(expected)).astype(np.float64)
    if any(want not in (None, got) for want, got in zip(expected, array.shape, strict=True)):
        raise InvalidInputError(f"{name}: must have shape {expected}; got {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name}: must be finite numbers")
    return array
