"""The α-calibration loss and its minimum, over all cases together and over each by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from raterwise.arrays import choose
from raterwise.errors import InvalidInputError
from raterwise.metrics.dirichlet import CountTerms, concentration_of

__all__ = [
    "GRADIENT_NORM",
    "Basis",
    "Objective",
    "best_of_each",
    "minimised",
    "nonnegative",
    "unpenalised",
]

FloatArray = NDArray[np.float64]

WEIGHTINGS = ("paper", "per_case")
GRADIENT_NORM = 1e-8
NEWTON_STEPS = 30
FLATTEST = 1e-12

_FAR = np.geomspace(85, 690, 25)
GRID = np.concatenate((-_FAR[::-1], np.arange(-80, 80.25, 0.5), _FAR))
"""Values of log α0 between which an optimum is sought: the slope bends on a scale of 1."""


@dataclass(frozen=True, eq=False)
class Objective:
    """LH eq 50 as a function of log α0 (N,): Σ_i -c_i log DirMult_i + d_i (log α0_i)²."""

    terms: CountTerms
    likelihood: FloatArray
    """c."""
    penalty: FloatArray
    """d."""

    @staticmethod
    def of(
        terms: CountTerms,
        num_raters: NDArray[Any],
        weights: FloatArray | None,
        l2: float,
        weighting: str,
    ) -> Objective:
        """Return the loss of cases with `num_raters` labels each and case weights, if any."""
        choose("weighting", weighting, WEIGHTINGS)
        w = np.ones(len(num_raters)) if weights is None else weights
        likelihood = w * num_raters if weighting == "per_case" else w
        return Objective(
            terms,
            likelihood / np.sum(w * num_raters),
            nonnegative("l2", l2) * w / np.sum(w),
        )

    def varying(self, u: FloatArray) -> float:
        """Return the part of the loss that varies with α0, which is finite."""
        fit = self.likelihood @ self.terms.varying(concentration_of(u))
        return float(self.penalty @ u**2 - fit)

    def loss(self, u: FloatArray) -> float:
        """Return the whole loss."""
        return float(self.varying(u) - self.likelihood @ self.terms.constant)

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return the derivative with respect to each log α0 (LH eq 51), (N,)."""
        return np.asarray(2 * self.penalty * u - self.likelihood * self.terms.slope(u))

    def curvature(self, u: FloatArray) -> FloatArray:
        """Return the second derivative with respect to each log α0, (N,)."""
        return np.asarray(2 * self.penalty - self.likelihood * self.terms.curvature(u))


@dataclass(frozen=True, eq=False)
class Basis:
    """Features as uncorrelated columns of mean 0 and variance 1, after a column of ones."""

    columns: FloatArray
    """(N, 1 + rank)."""
    center: FloatArray
    """(D,)."""
    to_features: FloatArray
    """(D, rank): columns[:, 1:] = (features - center) @ to_features."""

    @staticmethod
    def of(x: FloatArray) -> Basis:
        """Return the basis of features (N, D).

        Directions a million times flatter than the widest, such as the difference of a feature
        and its copy, are left out.
        """
        center = x.mean(axis=0)
        x = x - center
        scale = np.sqrt((x**2).mean(axis=0))
        constant = scale <= 1e-12 * np.abs(center)  # all rounding, which must not be blown up
        scale[constant | (scale == 0)] = np.inf
        x /= scale
        variance, axes = np.linalg.eigh(x.T @ x / len(x))
        kept = variance > FLATTEST * variance.max(initial=0)
        whiten = axes[:, kept] / np.sqrt(variance[kept])
        columns = np.column_stack((np.ones(len(x)), x @ whiten))
        return Basis(columns, center, whiten / scale[:, None])


def minimised(
    objective: Objective, columns: FloatArray, start: FloatArray, max_iter: int
) -> tuple[FloatArray, int]:
    """Return the minimum over log α0 = columns @ theta and how many iterations it took."""

    def value_and_gradient(theta: FloatArray) -> tuple[float, FloatArray]:
        u = columns @ theta
        return objective.varying(u), columns.T @ objective.gradient(u)

    found = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxfun": 2 * max_iter,
            "maxcor": 20,
            "gtol": 1e-9,
            "ftol": 0,
        },
    )
    theta, steps = np.asarray(found.x, np.float64), 0
    # Values cannot tell points apart whose gradients are this small: the gradient alone leads on.
    gradient = columns.T @ objective.gradient(columns @ theta)
    while np.linalg.norm(gradient) > GRADIENT_NORM and steps < NEWTON_STEPS:
        curvature = objective.curvature(columns @ theta)
        try:
            factor = cho_factor(columns.T @ (curvature[:, None] * columns))
        except LinAlgError:
            break
        closer = theta - cho_solve(factor, gradient)
        new = columns.T @ objective.gradient(columns @ closer)
        if not np.linalg.norm(new) < np.linalg.norm(gradient):
            break
        theta, gradient, steps = closer, new, steps + 1
    return theta, int(found.nit) + steps


def unpenalised(probs: FloatArray, counts: NDArray[Any]) -> FloatArray:
    """Return the optima that are 0, 1 or ∞ without a penalty, NaN where there is a finite one.

    The likelihood has one maximum at most (Levin & Reeds 1977, doi:10.1214/aos/1176343741). At
    α0 = 0 it rises unless the raters are unanimous; towards ∞ it rises if
    n(n-1) > Σ_k y_k (y_k - 1)/f_k, that is, if raters agree less often than by chance.
    """
    n = counts.sum(axis=1).astype(np.float64)
    unanimous = (counts > 0).sum(axis=1) <= 1
    certain = (n <= 1) | (unanimous & (np.where(counts > 0, probs, 0).sum(axis=1) >= 1))
    pairs = counts * (counts - 1.0)
    with np.errstate(divide="ignore"):
        expected = np.divide(pairs, probs, where=pairs > 0, out=np.zeros(probs.shape)).sum(axis=1)
    rises = n * (n - 1) >= expected * (1 - 1e-12)
    return np.select((certain, unanimous, rises), (1.0, 0.0, np.inf), np.nan)


def best_of_each(objective: Objective, cases: int) -> FloatArray:
    """Return the log α0 (N,) that minimises the objective of each case by itself."""
    gradients = np.array([objective.gradient(np.full(cases, u)) for u in GRID])
    turns = (gradients[:-1] < 0) & (gradients[1:] >= 0)
    cell = turns.argmax(axis=0)
    several = np.flatnonzero(turns.sum(axis=0) > 1)
    if several.size:  # the penalty may add a second dip: take the deeper
        depth = np.array([_by_case(objective, np.full(cases, u))[several] for u in GRID])
        lower = np.minimum(depth[:-1], depth[1:])
        cell[several] = np.where(turns[:, several], lower, np.inf).argmin(axis=0)
    return _newton(objective, GRID[cell], GRID[cell + 1])


def _by_case(objective: Objective, u: FloatArray) -> FloatArray:
    fit = objective.likelihood * objective.terms.varying(concentration_of(u))
    return np.asarray(objective.penalty * u**2 - fit)


def _newton(objective: Objective, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the zero of each gradient between `low`, where it is negative, and `high`.

    A Newton step that leaves the bracket, or that a wrong curvature sends the wrong way, is
    replaced by the middle of the bracket.
    """
    u = (low + high) / 2
    for _ in range(100):
        gradient, curvature = objective.gradient(u), objective.curvature(u)
        low, high = np.where(gradient < 0, u, low), np.where(gradient < 0, high, u)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = u - gradient / curvature
        inside = (step >= low) & (step <= high) & (curvature > 0)
        new = np.where(inside, step, (low + high) / 2)
        moved, u = np.abs(new - u), new
        if (moved <= 1e-14 * (1 + np.abs(u))).all():
            break
    return u


def nonnegative(name: str, value: float) -> float:
    """Return `value` as a float that is finite and not negative."""
    if not (isinstance(value, int | float | np.number) and 0 <= value < np.inf):
        raise InvalidInputError(f"{name}: must be a number of at least 0; got {value!r}")
    return float(value)
