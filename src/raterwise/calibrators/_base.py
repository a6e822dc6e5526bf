"""What every calibrator shares: scikit-learn's interface, and saving."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from raterwise.arrays import as_float_array
from raterwise.calibrators._cases import CalibrationSet, read_logits
from raterwise.errors import InvalidInputError

__all__ = ["CURVES", "Calibrator", "nonnegative"]

Array = NDArray[Any]
FloatArray = NDArray[np.float64]

CURVES = "curves"
"""The shape of a fitted attribute that is a list of one-dimensional arrays of any length."""


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
    """Fitted attributes that are saved and their shapes.

    "K" stands for the number of classes, "M" for the number of maps: 1 for two classes, else K.
    """

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
        doubt = self._fit(cases)
        self._finish(cases, doubt)
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
        """Write the fitted calibrator as JSON; `raterwise.calibrators.saved.load` reads it."""
        from raterwise.calibrators.saved import save

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
        if names is not None and len(names) != classes:
            raise InvalidInputError(
                f"class_names: must name each of the {classes} classes; got {names!r}"
            )
        calibrator._set_classes(classes, None if names is None else tuple(names))
        return calibrator

    def _set_classes(self, num_classes: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = num_classes
        self.classes_ = np.arange(num_classes)
        self.class_names_ = names

    def _finish(self, cases: CalibrationSet, doubt: str | None) -> None:
        self._set_classes(cases.num_classes, cases.labels.class_names)
        if doubt is not None:
            message = f"{type(self).__name__}: {doubt}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)  # where fit was called

    def _fit(self, cases: CalibrationSet) -> str | None:
        """Fit, and return what the caller of `fit` must be warned of, if anything."""
        raise NotImplementedError

    def _calibrated(self, logits: Array) -> FloatArray:
        """Return the probabilities (N, K) of checked logits."""
        raise NotImplementedError


def nonnegative(name: str, value: Any) -> float:
    """Return `value` as a float that is finite and not negative."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0 <= value < math.inf):
        raise InvalidInputError(f"{name}: must be a number of at least 0; got {value!r}")
    return float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _restored(name: str, value: Any, shape: Any, num_classes: int) -> Any:
    """Return a fitted attribute from plain numbers and lists, of the shape it must have."""
    maps = 1 if num_classes == 2 else num_classes
    if shape == CURVES:
        if len(value) != maps:
            raise InvalidInputError(f"{name}: must hold {maps} curves; got {len(value)}")
        return [_restored(name, curve, (len(curve),), num_classes) for curve in value]
    sizes = {"K": num_classes, "M": maps}
    expected = tuple(sizes.get(size, size) for size in shape)
    array = as_float_array(value, name, ndim=len(expected)).astype(np.float64)
    if any(want not in (None, got) for want, got in zip(expected, array.shape, strict=True)):
        raise InvalidInputError(f"{name}: must have shape {expected}; got {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name}: must be finite")
    return value if shape == () else array
