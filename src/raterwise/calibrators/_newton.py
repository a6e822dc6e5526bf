"""Newton's method for convex losses: damped, deterministic, without a learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from threadpoolctl import threadpool_limits

from raterwise.types import FloatArray

GRADIENT_NORM = 1e-8
"""What is promised. Newton squares the error in each step, so that it is usually far less."""
ROUNDING = 1e-13
SEPARATED = 1e-6
"""A mean negative log-likelihood below this: the labels leave no doubt about any case."""
WELL_CONDITIONED = 1e-8
HALVINGS = 40


class Objective(Protocol):
    """A convex loss of parameters θ of any shape."""

    def value(self, theta: FloatArray) -> tuple[float, float]:
        """Return the loss with its penalties, and the negative log-likelihood alone."""

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Return the derivative with respect to θ, in its shape."""

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the second derivatives with respect to the entries of θ, (P, P)."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the minimisation ended."""

    theta: FloatArray
    loss: float
    likelihood_loss: float
    gradient_norm: float
    iterations: int

    @property
    def doubt(self) -> str | None:
        """What to warn of: the optimum was not reached, or there is none."""
        if self.gradient_norm > GRADIENT_NORM:
            return (
                f"stopped at a gradient norm of {self.gradient_norm:.1e} after {self.iterations} "
                "Newton steps; a penalty or a larger max_iter may help"
            )
        if self.likelihood_loss < SEPARATED:
            return (
                "the calibration set is told apart without a mistake, so that no finite "
                "parameters are best, and calibrated probabilities will be all but 0 and 1; "
                "a penalty or more cases are needed"
            )
        return None


def minimise(objective: Objective, start: FloatArray, max_iter: int = 100) -> Minimum:
    """Return the minimum of a convex objective.

    Directions in which the loss does not change at all (the same number added to every class's
    intercept) keep their value at `start`. Linear algebra runs in one thread of its library, so
    that the digits do not depend on the number of cores; objectives may use threads of their own.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        return _minimise(objective, start, max_iter)


def _minimise(objective: Objective, start: FloatArray, max_iter: int) -> Minimum:
    theta, gradient = start, objective.gradient(start)
    loss, likelihood_loss = objective.value(start)
    norm = float(np.linalg.norm(gradient))
    iterations = 0
    while norm > ROUNDING and iterations < max_iter:
        step = _newton_step(objective.hessian(theta), gradient.ravel()).reshape(theta.shape)
        slope = float(np.vdot(gradient, step))
        # Close to the optimum the loss cannot tell two points apart, hence the last term.
        for fraction in 0.5 ** np.arange(HALVINGS):
            closer = theta + fraction * step
            new_loss, new_likelihood_loss = objective.value(closer)
            if new_loss <= loss + 1e-4 * fraction * slope + 4e-16 * abs(loss):
                break
        else:
            break
        gradient = objective.gradient(closer)
        new_norm = float(np.linalg.norm(gradient))
        iterations += 1
        if new_norm >= norm and norm <= GRADIENT_NORM:
            break  # nothing but rounding is left
        theta, loss, likelihood_loss, norm = closer, new_loss, new_likelihood_loss, new_norm
    return Minimum(theta, loss, likelihood_loss, norm, iterations)


def _newton_step(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return -H⁻¹ g, without the directions whose curvature is nothing but rounding."""
    diagonal = np.diag(hessian)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 1.0)
    scaled = hessian * np.outer(scale, scale)
    try:
        factor = cho_factor(scaled, lower=True, check_finite=False)
    except LinAlgError:
        factor = None
    # The smallest squared pivot is not far above the smallest curvature.
    if factor is not None and np.diag(factor[0]).min() ** 2 > WELL_CONDITIONED:
        return np.asarray(-scale * cho_solve(factor, scale * gradient, check_finite=False))
    curvature, directions = eigh(scaled, check_finite=False)
    slope = directions.T @ (scale * gradient)
    curved = curvature > 4 * len(curvature) * np.finfo(float).eps * curvature[-1]
    lengths = np.divide(slope, curvature, out=np.zeros_like(slope), where=curved)
    return np.asarray(-scale * (directions @ lengths))
