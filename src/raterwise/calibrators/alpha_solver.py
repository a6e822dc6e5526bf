"""The α-calibration loss over many cases, and the line log α0 = a + b·x at its minimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from raterwise.beliefs.dirichlet import CountTerms, concentration_of
from raterwise.rules import at_least_zero, choose
from raterwise.types import FloatArray

WEIGHTINGS = ("paper", "per_case")
GRADIENT_NORM = 1e-8
NEWTON_STEPS = 30
FLATTEST = 1e-12


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
            at_least_zero("l2", l2) * w / np.sum(w),
        )

    def varying(self, u: FloatArray) -> float:
        """Return the part of the loss that varies with α0, which is finite."""
        return float(self.by_case(u).sum())

    def by_case(self, u: FloatArray) -> FloatArray:
        """Return the share of each case in what varies with α0, (N,)."""
        fit = self.likelihood * self.terms.varying(concentration_of(u))
        return np.asarray(self.penalty * u**2 - fit)

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
    variance: FloatArray
    """(rank,): how far the standardised features reach in the direction of each column."""

    @staticmethod
    def of(x: FloatArray, weights: FloatArray | None = None) -> Basis:
        """Return the basis of features (N, D) of cases with these weights, if any.

        Directions a million times flatter than the widest, such as the difference of a feature
        and its copy, are left out.
        """
        shares = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        center = shares @ x
        x = x - center
        scale = np.sqrt(shares @ x**2)
        constant = scale <= 1e-12 * np.abs(center)  # all rounding, which must not be blown up
        scale[constant | (scale == 0)] = np.inf
        x /= scale
        variance, axes = np.linalg.eigh((x.T * shares) @ x)
        kept = variance > FLATTEST * variance.max(initial=0)
        variance = variance[kept]
        whiten = axes[:, kept] / np.sqrt(variance)
        columns = np.column_stack((np.ones(len(x)), x @ whiten))
        return Basis(columns, center, whiten / scale[:, None], variance)

    def ridge(self, l2: float, intercept: float) -> FloatArray:
        """Return the factors (1 + rank,) of θ² that make up l2 Σ_d (s_d b_d)² + intercept θ_0².

        s_d is the standard deviation of feature d and b_d its coefficient, so that every feature is
        held back alike, whatever its unit.
        """
        return np.concatenate(([intercept], l2 / self.variance))


def minimised(
    objective: Objective,
    columns: FloatArray,
    start: FloatArray,
    max_iter: int,
    ridge: FloatArray | None = None,
    tolerance: float = GRADIENT_NORM,
) -> tuple[FloatArray, int]:
    """Return the θ that minimises the loss, and how many iterations it took.

    The loss is that of log α0 = columns @ θ, plus Σ_j ridge_j θ_j².
    """
    factors = np.zeros(len(start)) if ridge is None else ridge
    # In these units every direction bends about alike, however unequal the factors are.
    bend = max(float(np.abs(objective.curvature(columns @ start)).sum()), 1e-12)
    unit = np.sqrt(bend / (bend + 2 * factors))

    def gradient_at(theta: FloatArray, u: FloatArray) -> FloatArray:
        return np.asarray(columns.T @ objective.gradient(u) + 2 * factors * theta)

    def value_and_gradient(scaled: FloatArray) -> tuple[float, FloatArray]:
        theta = unit * scaled
        u = columns @ theta
        value = objective.varying(u) + float(factors @ theta**2)
        return value, unit * gradient_at(theta, u)

    found = minimize(
        value_and_gradient,
        start / unit,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxfun": 2 * max_iter,
            "maxcor": 20,
            "gtol": tolerance / 10,
            "ftol": 0,
        },
    )
    theta, steps = np.asarray(unit * found.x, np.float64), 0
    # Values cannot tell points apart whose gradients are this small: the gradient alone leads on.
    u = columns @ theta
    gradient = gradient_at(theta, u)
    while np.linalg.norm(gradient) > tolerance and steps < NEWTON_STEPS:
        curvature = objective.curvature(u)
        hessian = columns.T @ (curvature[:, None] * columns) + np.diag(2 * factors)
        try:
            factor = cho_factor(hessian)
        except LinAlgError:
            break
        closer = theta - cho_solve(factor, gradient)
        u = columns @ closer
        new = gradient_at(closer, u)
        if not np.linalg.norm(new) < np.linalg.norm(gradient):
            break
        theta, gradient, steps = closer, new, steps + 1
    return theta, int(found.nit) + steps
