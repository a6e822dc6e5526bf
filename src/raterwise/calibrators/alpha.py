"""α-calibration: how sure a model may be of its class probabilities (LH 5.3, appendix D.2).

The labels of a case follow a Dirichlet-multinomial distribution whose mean f is the model's and
whose concentration α0 is found from the raters: log α0 is a linear function of features of the
case. The mean, and so every class probability, stays as it is.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from raterwise.arrays import as_float_array, positive_integer
from raterwise.beliefs import DirichletBelief, PointBelief
from raterwise.calibrators.alpha_solver import (
    GRADIENT_NORM,
    Basis,
    Objective,
    best_of_each,
    minimised,
    nonnegative,
    unpenalised,
)
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.metrics.dirichlet import CountTerms
from raterwise.predictions import Predictions, check_weights

__all__ = [
    "AlphaCalibration",
    "alpha_calibration_loss",
    "default_features",
    "optimal_concentration",
]

FloatArray = NDArray[np.float64]

FORMAT, VERSION = "raterwise.AlphaCalibration", 1
LARGEST_LOG_CONCENTRATION = 500.0
SMALLEST_PROBABILITY = 1e-12


class AlphaCalibration(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Find the concentration α0 of each case's class probabilities from several raters (LH eq 50).

    log α0 = a + b·x minimises, over cases i with n_i labels y_i,

        -1/Σ n_i Σ_i log DirMult(y_i | α0_i f_i) + λ/N Σ_i (log α0_i)²

    by L-BFGS with the exact gradient, from α0 = 1, and Newton steps to a gradient norm of 1e-8: the
    same digits every time. Features are standardised and made uncorrelated inside, so their units
    do not matter and repeated or constant ones do no harm. (A head that is not linear in the
    features needs torch and is not here.)

    Parameters
    ----------
    l2
        λ, which draws log α0 towards 0. With 0, α0 may run off to 0 or ∞ where raters all agree.
    weighting
        "paper" is eq 50; "per_case" is the authors' released loss, mean_i (n_i/n̄) NLL_i in the
        first term, in which a case counts in proportion to n_i twice.
    warm_start
        Start from the last fit.
    max_iter
        Most L-BFGS iterations.

    Attributes
    ----------
    coef_, intercept_
        b (D,) and a, in the units of the features.
    loss_
        The loss at the optimum; infinite if a rater chose a class of probability 0, which does not
        disturb the fit, as that factor of the likelihood does not depend on α0.
    gradient_norm_, n_iter_
        In the standardised features; iterations of both kinds.

    >>> rng = np.random.default_rng(0)
    >>> f = rng.dirichlet([1, 1, 1], 500)
    >>> q = np.array([rng.dirichlet(3 * row) for row in f])  # what raters think: α0 is 3
    >>> labels = Labels.from_counts(rng.multinomial(5, q))
    >>> belief = (
    ...     AlphaCalibration().fit(np.zeros((500, 0)), f, labels).predict(np.zeros((1, 0)), f[:1])
    ... )
    >>> bool(2 < belief.concentration[0] < 4)
    True
    """

    def __init__(
        self,
        l2: float = 0.005,
        weighting: str = "paper",
        warm_start: bool = False,
        max_iter: int = 1000,
    ) -> None:
        self.l2 = l2
        self.weighting = weighting
        self.warm_start = warm_start
        self.max_iter = max_iter

    def fit(self, features: Any, probs: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit to cases with class probabilities `probs` (N, K) and `labels`, a Labels.

        `features` is (N, D), such as a network's last hidden layer and its logits; None takes
        `default_features(probs)`. Cases with one label say nothing about α0 but are allowed, as
        long as some case has two. `sample_weight` (N,) are case weights.
        """
        data = Predictions.of(probs, labels)
        x = _features(features, np.asarray(data.read(0, len(data)).probs, np.float64))
        weights = _sample_weight(sample_weight, len(data))
        if weights is not None:
            counted = weights > 0
            data, x, weights = data.take(counted), x[counted], weights[counted]
        data.labels.require_raters(2, on_single="drop")
        checked = np.asarray(data.read(0, len(data)).probs, np.float64)
        terms = CountTerms.of(checked, data.labels.counts)
        objective = Objective.of(terms, data.labels.num_raters, weights, self.l2, self.weighting)
        # One thread: several would wait for each other, and add up in another order each time.
        with threadpool_limits(limits=1, user_api="blas"):
            self._solve(objective, x)
        self.default_features_ = features is None
        self.num_classes_ = data.num_classes
        if self.gradient_norm_ > GRADIENT_NORM:
            warnings.warn(
                f"AlphaCalibration: stopped at a gradient norm of {self.gradient_norm_:.1e} after "
                f"{self.n_iter_} iterations; a larger l2 or max_iter may help",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _solve(self, objective: Objective, x: FloatArray) -> None:
        basis = Basis.of(x)
        start = np.zeros(basis.columns.shape[1])
        if self.warm_start and getattr(self, "n_features_in_", None) == x.shape[1]:
            start = basis.columns.T @ self._log_concentration(x) / len(x)
        most = positive_integer("max_iter", self.max_iter)
        theta, self.n_iter_ = minimised(objective, basis.columns, start, most)
        self._set_line(basis.to_features @ theta[1:], basis.center, float(theta[0]))
        log_concentration = basis.columns @ theta
        self.loss_ = objective.loss(log_concentration)
        gradient = basis.columns.T @ objective.gradient(log_concentration)
        self.gradient_norm_ = float(np.linalg.norm(gradient))

    def predict(self, features: Any, probs: Any) -> DirichletBelief:
        """Return the belief Dir(α0 f) about each case, with `features` as they were for the fit."""
        check_is_fitted(self)
        checked = PointBelief(probs).mean
        if (features is None) != self.default_features_:
            raise InvalidInputError(
                "features: must be None exactly if they were for the fit, which "
                + ("had the default features" if self.default_features_ else "was given features")
            )
        if checked.shape[1] != self.num_classes_:
            raise InvalidInputError(
                f"probs: must have the {self.num_classes_} classes of the fit; "
                f"got {checked.shape[1]}"
            )
        x = _features(features, checked)
        if x.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"features: must have the {self.n_features_in_} columns of the fit; "
                f"got {x.shape[1]}"
            )
        log_concentration = self._log_concentration(x)
        far = ~(np.abs(log_concentration) <= LARGEST_LOG_CONCENTRATION)
        if far.any():
            case = int(np.flatnonzero(far)[0])
            raise InvalidInputError(
                "features: must be like those of the fit; case "
                f"{case} would have log α0 = {log_concentration[case]:.4g}"
            )
        return DirichletBelief(probs, np.exp(log_concentration))

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain numbers and lists, ready for JSON."""
        check_is_fitted(self)
        return {
            "format": FORMAT,
            "version": VERSION,
            "params": {
                "l2": float(self.l2),
                "weighting": self.weighting,
                "warm_start": bool(self.warm_start),
                "max_iter": int(self.max_iter),
            },
            "num_classes": self.num_classes_,
            "default_features": self.default_features_,
            "coef": self.coef_.tolist(),
            "center": self.center_.tolist(),
            "log_concentration_at_center": self.log_concentration_at_center_,
            "loss": self.loss_ if np.isfinite(self.loss_) else None,  # JSON knows no infinity
            "gradient_norm": self.gradient_norm_,
            "n_iter": self.n_iter_,
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the calibrator that `to_dict` wrote."""
        found = (stored.get("format"), stored.get("version"))
        if found != (FORMAT, VERSION):
            raise InvalidInputError(
                f"stored: must be {FORMAT}, version {VERSION}; got {found[0]!r}, {found[1]!r}"
            )
        calibrator = cls(**stored["params"])
        calibrator._set_line(
            np.asarray(stored["coef"], np.float64),
            np.asarray(stored["center"], np.float64),
            float(stored["log_concentration_at_center"]),
        )
        calibrator.num_classes_ = int(stored["num_classes"])
        calibrator.default_features_ = bool(stored["default_features"])
        calibrator.loss_ = np.inf if stored["loss"] is None else float(stored["loss"])
        calibrator.gradient_norm_ = float(stored["gradient_norm"])
        calibrator.n_iter_ = int(stored["n_iter"])
        return calibrator

    def _set_line(self, coef: FloatArray, center: FloatArray, level: float) -> None:
        self.coef_ = coef
        self.center_ = center
        self.log_concentration_at_center_ = level
        self.intercept_ = float(level - center @ coef)
        self.n_features_in_ = len(coef)

    def _log_concentration(self, x: FloatArray) -> FloatArray:
        # From the centre and not from 0, which may be far away and cost digits.
        return np.asarray((x - self.center_) @ self.coef_ + self.log_concentration_at_center_)


def alpha_calibration_loss(
    belief: DirichletBelief,
    labels: Any,
    l2: float = 0.005,
    weighting: str = "paper",
    sample_weight: Any = None,
) -> float:
    """Return the α-calibration loss of a belief on any labels (LH eq 50).

    -1/Σ n_i Σ_i log DirMult(y_i | α0_i f_i) + λ/N Σ_i (log α0_i)², without the multinomial
    coefficients, as in the released code; `weighting` is that of AlphaCalibration.

    >>> labels = Labels.from_counts([[2, 0]])
    >>> alpha_calibration_loss(DirichletBelief([[0.5, 0.5]], [1.0]), labels)  # -log(1/2 · 3/4) / 2
    0.49041463
    """
    weights = _sample_weight(sample_weight, len(belief))
    checked = Predictions.of(belief.mean, labels).labels
    terms = CountTerms.of(belief.mean, checked.counts)
    objective = Objective.of(terms, checked.num_raters, weights, l2, weighting)
    return objective.loss(np.log(belief.concentration))


def default_features(probs: Any) -> FloatArray:
    """Return what α0 may depend on where nothing else is known of a case: (N, K + 2).

    The logits, as logarithms of the probabilities less their mean (a probability below 1e-12
    counts as 1e-12), the entropy, and the largest probability.

    >>> default_features([[0.5, 0.5]]).round(3)
    array([[0.   , 0.   , 0.693, 0.5  ]])
    """
    return _default_features(PointBelief(probs).mean)


def _default_features(probs: FloatArray) -> FloatArray:
    logs = np.log(np.maximum(probs, SMALLEST_PROBABILITY))
    centred = logs - logs.mean(axis=1, keepdims=True)
    return np.column_stack((centred, -(probs * logs).sum(axis=1), probs.max(axis=1)))


def optimal_concentration(probs: Any, counts: Any, l2: float = 0.005) -> FloatArray:
    """Return the α0 that suits each case best by itself, (N,) (LH eq 51, Fig 3).

    It minimises -1/n log DirMult(y | α0 f) + λ (log α0)² for the labels of one case. `counts` is
    (N, K) label histograms, or a Labels. With λ = 0 it is the limit of a vanishing λ: 0 where the
    raters are unanimous, ∞ where they differ no less than independent labels would, 1 where the
    labels say nothing (one label, or a class of probability 1).

    >>> optimal_concentration([[0.5, 0.5], [0.5, 0.5]], [[3, 0], [2, 1]]).round(3)
    array([ 0.103, 12.288])
    >>> optimal_concentration([[0.5, 0.5], [0.5, 0.5]], [[3, 0], [2, 1]], l2=0)
    array([ 0., inf])
    """
    labels = counts if isinstance(counts, Labels) else Labels.from_counts(counts)
    data = Predictions.of(probs, labels)
    checked = np.asarray(data.read(0, len(data)).probs, np.float64)
    l2 = nonnegative("l2", l2)
    out = np.full(len(checked), np.nan) if l2 else unpenalised(checked, labels.counts)
    open_cases = np.flatnonzero(np.isnan(out))
    for rows in np.array_split(open_cases, max(1, len(open_cases) // 20_000)):
        terms = CountTerms.of(checked[rows], labels.counts[rows])
        ones = np.ones(len(rows))
        objective = Objective(terms, ones / labels.num_raters[rows], l2 * ones)
        out[rows] = np.exp(best_of_each(objective, len(rows)))
    return out


def _features(features: Any, probs: FloatArray) -> FloatArray:
    if features is None:
        return _default_features(probs)
    x = as_float_array(features, "features", ndim=2).astype(np.float64)
    if len(x) != len(probs):
        raise InvalidInputError(
            f"features: must have one row per case; got {len(x)} rows for {len(probs)} cases"
        )
    if missing := int(np.isnan(x).sum()):
        row = int(np.flatnonzero(np.isnan(x).any(axis=1))[0])
        raise InvalidInputError(
            f"features: must not contain NaN; {missing} values are NaN, the first in row {row}"
        )
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise InvalidInputError(f"features: must be finite; row {row} holds an infinity")
    return x


def _sample_weight(values: Any, cases: int) -> FloatArray | None:
    try:
        return check_weights(values, cases)
    except InvalidInputError as error:
        raise InvalidInputError("sample_weight" + str(error).removeprefix("weights")) from None
