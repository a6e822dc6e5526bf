"""What every calibrator shares: scikit-learn's interface, and saving."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from raterwise.arrays import as_array, as_float_array
from raterwise.beliefs import Belief, EnsembleBelief, PointBelief
from raterwise.calibrators._cases import (
    CalibrationSet,
    Input,
    name_of,
    read_labels,
    read_logits,
    read_sample_weight,
)
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.types import Array, FloatArray

CURVES = "curves"
"""The shape of a fitted attribute that is a list of one-dimensional arrays of any length."""


class Calibrator(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # no types there
    """A map of a model's logits to better class probabilities, fitted to what raters said.

    A scikit-learn classifier whose features are the logits: column k is for class k, and the
    classes are 0 … K-1. Subclasses fit in `_fit` and map in `_calibrated`.
    """

    input: Input | None
    classes_: NDArray[np.int64]
    class_names_: tuple[str, ...] | None
    n_features_in_: int

    _every_class: ClassVar[bool] = True
    """Whether each class must occur among the labels."""
    _by_size: ClassVar[bool] = True
    """Whether it matters how small a probability is, and not only that it is smaller."""
    _any_origin: ClassVar[bool] = True
    """Whether a constant added to all logits of a case changes nothing."""
    _fitted: ClassVar[Mapping[str, Any]] = {}
    """Fitted attributes that are saved and their shapes.

    "K" stands for the number of classes, "M" for the number of maps: 1 for two classes, else K.
    """

    # Not metadata: the data themselves, under the names of the field.
    __metadata_request__fit: ClassVar = {"logits": UNUSED, "labels": UNUSED}
    __metadata_request__predict: ClassVar = {"logits": UNUSED}
    __metadata_request__predict_proba: ClassVar = {"logits": UNUSED}
    __metadata_request__score: ClassVar = {"logits": UNUSED, "labels": UNUSED}

    def fit(
        self, logits: ArrayLike, labels: Labels | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to what raters said of cases.

        Parameters
        ----------
        logits : array of shape (N, K) or (N,)
            Logits, or probabilities with input="probs"; (N,) are those of class 1 of two.
        labels : Labels, or array of shape (N,)
            What the raters said, whose histograms enter by the multinomial likelihood (LH eq 82),
            or one class per case.
        sample_weight : array of shape (N,), optional
            Case weights; a case of weight 2 counts as two.

        Returns
        -------
        Calibrator
            Itself.

        Raises
        ------
        InvalidInputError
            If the data do not match, a class is missing, or logits could as well be probabilities
            and `input` does not say what they are.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> round(rw.TemperatureScaling().fit(logits, classes).temperature_, 4)  # 3 of 4 are right
        1.8205
        """
        cases = CalibrationSet.of(
            logits, labels, sample_weight, input=self.input, every_class=self._every_class
        )
        return self._fitted_to(cases)

    @overload
    def predict_proba(self, logits: EnsembleBelief) -> EnsembleBelief: ...
    @overload
    def predict_proba(self, logits: PointBelief) -> PointBelief: ...
    @overload
    def predict_proba(self, logits: Any) -> Any: ...
    def predict_proba(self, logits: Any) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        logits : array of shape (N, K) or (N,), or (S, N, K), or a belief
            What the calibrator was fitted to, of any cases. The draws (S, N, K) of an ensemble are
            calibrated one by one, and so are the members of an EnsembleBelief.

        Returns
        -------
        ndarray of shape (N, K), or EnsembleBelief, or PointBelief
            A belief where draws or a belief were given; the weights of its members stay.

        Raises
        ------
        InvalidInputError
            If they have other classes than the fit, or could as well be probabilities and `input`
            does not say what they are.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> rw.TemperatureScaling().fit(logits, classes).predict_proba([[2.0, 0.0]])
        array([[0.75, 0.25]])
        """
        check_is_fitted(self)
        if isinstance(logits, Belief):
            return self._calibrated_belief(logits)
        if as_array(logits, name_of(self.input)).ndim == 3:
            return EnsembleBelief(np.stack(self._calibrated_draws(logits)))
        return self._calibrated_rows(logits, self.input)

    def predict(self, logits: ArrayLike | Belief) -> NDArray[np.int64]:
        """Return the most probable class after calibration.

        Parameters
        ----------
        logits : array of shape (N, K) or (N,), or (S, N, K), or a belief
            As for `predict_proba`; of draws, the mean decides.

        Returns
        -------
        ndarray of shape (N,)
            Classes 0 … K-1.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> rw.TemperatureScaling().fit(logits, classes).predict([[2.0, 0.0], [0.0, 1.0]])
        array([0, 1])
        """
        found = self.predict_proba(logits)
        probs = found.mean if isinstance(found, Belief) else found
        return np.asarray(probs.argmax(axis=1))

    def score(
        self,
        logits: ArrayLike | Belief,
        labels: Labels | ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return how often a rater chooses the predicted class, as scikit-learn's classifiers do.

        Calibration is not measured by it, and a temperature does not change it: for that take
        `raterwise.evaluate`, or scoring="neg_log_loss" in scikit-learn.

        Parameters
        ----------
        logits : array of shape (N, K) or (N,), or (S, N, K), or a belief
            As for `predict_proba`.
        labels : Labels, or array of shape (N,)
            What the raters said; every rating counts.
        sample_weight : array of shape (N,), optional
            Case weights.

        Returns
        -------
        float
            Between 0 and 1.

        Raises
        ------
        InvalidInputError
            If the data do not match.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> rw.TemperatureScaling().fit(logits, classes).score(logits, classes)
        0.75
        """
        predicted = self.predict(logits)
        checked = read_labels(labels, self.n_features_in_, len(predicted), name_of(self.input))
        weights = read_sample_weight(sample_weight, len(predicted))
        hits = checked.counts[np.arange(len(predicted)), predicted]
        shares = np.ones(len(predicted)) if weights is None else weights
        return float(shares @ hits / (shares @ checked.num_raters))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the fitted calibrator as JSON.

        Parameters
        ----------
        path : str or path
            The file to write. It is written completely or not at all.

        Returns
        -------
        Path
            The file. `raterwise.calibrators.saved.load` reads it.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> path = (
        ...     rw.TemperatureScaling()
        ...     .fit(logits, classes)
        ...     .save(getfixture("tmp_path") / "scaling.json")
        ... )
        >>> path.name
        'scaling.json'
        """
        from raterwise.calibrators.saved import save

        return save(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain numbers and lists, ready for JSON.

        Returns
        -------
        dict
            The input of `from_dict`.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> stored = rw.TemperatureScaling().fit(logits, classes).to_dict()
        >>> stored["num_classes"], round(stored["fitted"]["temperature_"], 4)
        (2, 1.8205)
        """
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
        """Rebuild the calibrator from the output of `to_dict`.

        Parameters
        ----------
        stored : dict
            The output of `to_dict`.

        Returns
        -------
        Calibrator
            Fitted.

        Raises
        ------
        InvalidInputError
            If something is missing or has another shape.

        Examples
        --------
        >>> import raterwise as rw
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 4, [0, 1, 0, 1, 0, 1, 1, 0]
        >>> stored = rw.TemperatureScaling().fit(logits, classes).to_dict()
        >>> rw.TemperatureScaling.from_dict(stored).predict_proba([[2.0, 0.0]])
        array([[0.75, 0.25]])
        """
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

    def _calibrated_rows(self, logits: Any, input: Input | None) -> FloatArray:
        array = read_logits(logits, input)
        if array.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"{name_of(input)}: must have the {self.n_features_in_} classes of the fit; "
                f"got {array.shape[1]}"
            )
        return self._calibrated(array)

    def _calibrated_draws(self, logits: Any) -> list[FloatArray]:
        draws = as_float_array(logits, name_of(self.input), ndim=3)
        if self.input is None:  # all draws together say whether they could be probabilities
            read_logits(draws.reshape(-1, draws.shape[2]), None)
        return [self._calibrated_rows(draw, name_of(self.input)) for draw in draws]

    def _calibrated_belief(self, belief: Belief) -> EnsembleBelief | PointBelief:
        """Return the belief with each member calibrated; its probabilities are no guess."""
        if not isinstance(belief, EnsembleBelief | PointBelief):
            raise InvalidInputError(
                "logits: a belief must be a PointBelief or an EnsembleBelief; got "
                f"{type(belief).__name__} (calibrate first, then find α0)"
            )
        if self.input != "probs" and not self._any_origin:
            raise InvalidInputError(
                f"logits: {type(self).__name__} was fitted to logits, which the probabilities of a "
                'belief do not determine; give logits (S, N, K), or fit with input="probs"'
            )
        if isinstance(belief, PointBelief):
            return PointBelief(self._calibrated_rows(belief.mean, "probs"))
        members = [self._calibrated_rows(member, "probs") for member in belief.samples]
        return EnsembleBelief(np.stack(members), belief.weights)

    def _set_classes(self, num_classes: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = num_classes
        self.classes_ = np.arange(num_classes)
        self.class_names_ = names

    def _fitted_to(self, cases: CalibrationSet) -> Self:
        if self.input == "probs" and self._by_size:
            cases.warn_of_zeros()
        doubt = self._fit(cases)
        self._set_classes(cases.num_classes, cases.labels.class_names)
        if doubt is not None:
            message = f"{type(self).__name__}: {doubt}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)  # where fit was called
        return self

    @abstractmethod
    def _fit(self, cases: CalibrationSet) -> str | None:
        """Fit, and return what the caller of `fit` must be warned of, if anything."""

    @abstractmethod
    def _calibrated(self, logits: Array) -> FloatArray:
        """Return the probabilities (N, K) of checked logits."""


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
