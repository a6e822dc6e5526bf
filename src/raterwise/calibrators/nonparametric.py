"""Calibrators of one class at a time: isotonic regression, histogram binning, beta calibration.

Each maps the probability of a class to the frequency with which raters choose that class. With
two classes there is one map, of class 1. With more there is one for each class against the rest,
and the mapped probabilities of a case are divided by their sum; where all of them are 0, every
class gets 1/K, as in scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, log_expit, logit, logsumexp
from sklearn.isotonic import IsotonicRegression

from raterwise.binning import bin_edges, equal_mass_edges, locate
from raterwise.calibrators._base import CURVES, Calibrator
from raterwise.calibrators._cases import CalibrationSet, Input, log_probabilities
from raterwise.calibrators._newton import Minimum, minimise
from raterwise.rules import choose, positive_integer
from raterwise.types import Array, FloatArray

STRATEGIES = ("uniform", "quantile")


@dataclass(eq=False, repr=False)
class IsotonicCalibration(Calibrator):
    """Map the probability of each class by isotonic regression (Zadrozny & Elkan 2002).

    The non-decreasing map with the least squared error to the raters' frequencies y_ik/n_i, each
    case weighted by its number of raters; linear between the probabilities it was fitted to and
    constant beyond them. It may give 0 and 1, and may change the predicted class.

    Parameters
    ----------
    input : {"logits", "probs"}, optional
        Whether the inputs are logits, of which the softmax is taken, or probabilities. By default
        inputs are logits, and inputs that could be either (rows in [0, 1] that sum to 1) are
        refused.

    Attributes
    ----------
    thresholds_, values_ : list of ndarray
        For each map, the probabilities at which it bends, and its values there.

    See Also
    --------
    HistogramBinning : steps in any direction.
    BetaCalibration : a smooth curve.

    References
    ----------
    Zadrozny, Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates, KDD.

    Examples
    --------
    >>> p = [0.1, 0.2, 0.6, 0.8]  # of class 1
    >>> calibrator = IsotonicCalibration(input="probs").fit(p, [0, 1, 0, 1])
    >>> calibrator.predict_proba(p)[:, 1]
    array([0. , 0.5, 0.5, 1. ])
    """

    input: Input | None = None

    _by_size: ClassVar[bool] = False
    _fitted: ClassVar[dict[str, Any]] = {"thresholds_": CURVES, "values_": CURVES}

    def _fit(self, cases: CalibrationSet) -> str | None:
        self.thresholds_, self.values_ = [], []
        for log_p, _, chosen, masses in _one_against_rest(cases, self.input):
            regression = IsotonicRegression(y_min=0, y_max=1)
            regression.fit(np.exp(log_p), chosen, sample_weight=masses)
            self.thresholds_.append(np.asarray(regression.X_thresholds_, np.float64))
            self.values_.append(np.asarray(regression.y_thresholds_, np.float64))
        return None

    def _calibrated(self, logits: Array) -> FloatArray:
        probs = np.exp(log_probabilities(logits, self.input))
        curves = list(zip(self.thresholds_, self.values_, strict=True))
        return _normalised(
            [np.interp(p, x, y) for p, (x, y) in zip(_columns(probs), curves, strict=True)]
        )


@dataclass(eq=False, repr=False)
class HistogramBinning(Calibrator):
    """Replace the probability of each class by the raters' frequency in its bin.

    The frequency Σ_i y_ik / Σ_i n_i over the cases of a bin (Zadrozny & Elkan 2001; Guo et al.
    2017). A bin without cases keeps its middle. It may give 0 and 1, and may change the predicted
    class.

    Parameters
    ----------
    bins : int or array, default 15
        How many, or the edges from 0 to 1. Bins are [a, b), the last one closed.
    strategy : {"uniform", "quantile"}, default "uniform"
        "uniform": of equal width; "quantile": with about as many ratings each, equal probabilities
        together.
    input : {"logits", "probs"}, optional
        Whether the inputs are logits, of which the softmax is taken, or probabilities. By default
        inputs are logits, and inputs that could be either (rows in [0, 1] that sum to 1) are
        refused.

    Attributes
    ----------
    edges_, values_ : list of ndarray
        For each map, the edges of its bins and its value in each.

    See Also
    --------
    IsotonicCalibration : steps that only rise.
    BetaCalibration : a smooth curve.

    References
    ----------
    Zadrozny, Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers, ICML.

    Examples
    --------
    >>> p = [0.1, 0.2, 0.6, 0.8]  # of class 1
    >>> calibrator = HistogramBinning(bins=2, input="probs").fit(p, [0, 1, 1, 1])
    >>> calibrator.predict_proba([0.3, 0.9])[:, 1]
    array([0.5, 1. ])
    """

    bins: Any = 15
    strategy: Literal["uniform", "quantile"] = "uniform"
    input: Input | None = None

    _by_size: ClassVar[bool] = False
    _fitted: ClassVar[dict[str, Any]] = {"edges_": CURVES, "values_": CURVES}

    def _fit(self, cases: CalibrationSet) -> str | None:
        quantile = choose("strategy", self.strategy, STRATEGIES) == "quantile"
        if quantile:
            positive_integer("bins", self.bins)
        self.edges_, self.values_ = [], []
        for log_p, _, chosen, masses in _one_against_rest(cases, self.input):
            probs = np.minimum(np.exp(log_p), 1.0)
            edges = bin_edges(self.bins)
            if quantile:
                scores, which = np.unique(probs, return_inverse=True)
                ties = np.asarray(np.bincount(which, masses), np.float64)
                edges = equal_mass_edges(scores, ties, self.bins)
            bins, size = locate(probs, edges), len(edges) - 1
            within = np.bincount(bins, masses, minlength=size)
            values = (edges[:-1] + edges[1:]) / 2
            hits = np.bincount(bins, chosen * masses, minlength=size)
            np.divide(hits, within, out=values, where=within > 0)
            self.edges_.append(np.array(edges))
            self.values_.append(values)
        return None

    def _calibrated(self, logits: Array) -> FloatArray:
        probs = np.exp(log_probabilities(logits, self.input))
        return _normalised(
            [
                values[locate(p, edges)]
                for p, edges, values in zip(_columns(probs), self.edges_, self.values_, strict=True)
            ]
        )


@dataclass(eq=False, repr=False)
class BetaCalibration(Calibrator):
    """Map the probability p of each class by the beta family (Kull, Silva Filho & Flach 2017).

    log-odds = a ln p - b ln(1 - p) + c with a, b ≥ 0 and the largest binomial likelihood. This is
    the posterior if p is Beta distributed among the cases of the class and among the others. It
    never decreases, and is the identity at a = b = 1, c = 0. With more than two classes it may
    change the predicted class.

    Parameters
    ----------
    input : {"logits", "probs"}, optional
        What is calibrated: logits, from which ln p and ln(1 - p) are found without rounding p to 0
        or 1, or probabilities. If it is left out they are logits, and what could be either (rows in
        [0, 1] that add to 1) is refused.
    max_iter : int, default 100
        Maximum number of Newton steps.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (M, 2), ndarray of shape (M,)
        (a, b) and c of each map: M is 1 for two classes, else K.

    See Also
    --------
    IsotonicCalibration, HistogramBinning : nonparametric maps.
    DirichletCalibration : all classes together.

    References
    ----------
    Kull, Silva Filho, Flach (2017), Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers, AISTATS.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2 / (p**2 + (1 - p) ** 2)  # a = b = 2, c = 0
    >>> calibrator = BetaCalibration(input="probs").fit(p, y)
    >>> calibrator.coef_.round(1)
    array([[2., 2.]])
    """

    input: Input | None = None
    max_iter: int = 100

    _fitted: ClassVar[dict[str, Any]] = {"coef_": ("M", 2), "intercept_": ("M",)}

    def _fit(self, cases: CalibrationSet) -> str | None:
        most = positive_integer("max_iter", self.max_iter)
        maps, doubts = [], []
        for log_p, log_rest, chosen, masses in _one_against_rest(cases, self.input):
            features = np.column_stack((log_p, -log_rest, np.ones(len(log_p))))
            likelihood = _BinomialLikelihood(features, chosen * masses, masses)
            found = _best_with_nonnegative_slopes(likelihood, most)
            maps.append(found.theta)
            doubts.append(found.doubt)
        self.coef_, self.intercept_ = np.array(maps)[:, :2], np.array(maps)[:, 2]
        return next(filter(None, doubts), None)

    def _calibrated(self, logits: Array) -> FloatArray:
        logs = log_probabilities(logits, self.input)
        pairs = zip(_columns(logs), _log_of_rest(logs), strict=True)
        return _normalised(
            [
                expit(a * log_p - b * log_rest + c)
                for (log_p, log_rest), (a, b), c in zip(
                    pairs, self.coef_, self.intercept_, strict=True
                )
            ]
        )


@dataclass(frozen=True, eq=False)
class _BinomialLikelihood:
    """-Σ_i [h_i log σ(x_i·θ) + (m_i - h_i) log σ(-x_i·θ)] as a function of θ."""

    features: FloatArray
    hits: FloatArray
    masses: FloatArray

    def value(self, theta: FloatArray) -> tuple[float, float]:
        odds = self.features @ theta
        misses = self.masses - self.hits
        loss = -float(self.hits @ log_expit(odds) + misses @ log_expit(-odds))
        return loss, loss

    def gradient(self, theta: FloatArray) -> FloatArray:
        excess = self.masses * expit(self.features @ theta) - self.hits
        return np.asarray(self.features.T @ excess)

    def hessian(self, theta: FloatArray) -> FloatArray:
        p = expit(self.features @ theta)
        spread = self.masses * p * expit(-self.features @ theta)
        return np.asarray(self.features.T @ (spread[:, None] * self.features))

    def without(self, dropped: list[int]) -> _BinomialLikelihood:
        """Return the same with some features set to 0."""
        features = self.features.copy()
        features[:, dropped] = 0
        return _BinomialLikelihood(features, self.hits, self.masses)


def _best_with_nonnegative_slopes(likelihood: _BinomialLikelihood, max_iter: int) -> Minimum:
    """Return the best (a, b, c) with a, b ≥ 0.

    The loss is convex, so the constrained optimum is the best of those on each face of the
    quadrant (a and b free, a = 0, b = 0, both) that lie in the quadrant.
    """
    # At a = b = 0 no case is saturated, however close to 0 or 1 its probability.
    frequency = likelihood.hits.sum() / likelihood.masses.sum()
    start = np.array([0.0, 0.0, logit(frequency)])
    best: Minimum | None = None
    for a_free, b_free in product((True, False), repeat=2):
        face = likelihood.without([i for i, free in enumerate((a_free, b_free)) if not free])
        found = minimise(face, start, max_iter)
        inside = (found.theta[:2] >= 0).all()
        if inside and (best is None or found.loss < best.loss):
            best = found
        if inside and a_free and b_free:
            break
    assert best is not None  # a = b = 0 is in the quadrant
    return best


def _one_against_rest(
    cases: CalibrationSet, input: Input | None
) -> list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Return log p, log(1 - p), the frequency among raters and the mass of cases, of each map."""
    logs = log_probabilities(cases.logits, input)
    frequencies = _columns(cases.labels.frequencies)
    masses = cases.masses
    return [
        (log_p, log_rest, chosen, masses)
        for log_p, log_rest, chosen in zip(
            _columns(logs), _log_of_rest(logs), frequencies, strict=True
        )
    ]


def _columns(values: FloatArray) -> list[FloatArray]:
    """Return the columns that are mapped: class 1 of two, otherwise every class."""
    first = 1 if values.shape[1] == 2 else 0
    return [values[:, k] for k in range(first, values.shape[1])]


def _log_of_rest(log_probs: FloatArray) -> list[FloatArray]:
    """Return log(1 - p) of each mapped column, as the logarithm of the other classes' sum."""
    if log_probs.shape[1] == 2:
        return [log_probs[:, 0]]
    return [
        np.asarray(logsumexp(np.delete(log_probs, k, axis=1), axis=1))
        for k in range(log_probs.shape[1])
    ]


def _normalised(mapped: list[FloatArray]) -> FloatArray:
    """Return (N, K) probabilities from the mapped columns."""
    if len(mapped) == 1:
        return np.column_stack((1 - mapped[0], mapped[0]))
    probs = np.column_stack(mapped)
    total = probs.sum(axis=1, keepdims=True)
    uniform = np.full_like(probs, 1 / probs.shape[1])
    return np.asarray(np.divide(probs, total, out=uniform, where=total > 0))
