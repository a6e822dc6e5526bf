"""Sums over pairs of cases with a Laplace kernel of their scores, in one pass over sorted scores.

Σ_{i<j} a_i a_j exp(-|z_i - z_j| / h) needs no pairs: in rising order of z the kernel factorises, so
that what all earlier cases add to the next one decays from score to score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.types import FloatArray

ROWS = 256
"""How many cases are compared with all others at once."""


def squared_kernel_error(
    score: FloatArray, residual: FloatArray, mass: FloatArray, bandwidth: float, estimator: str
) -> float:
    """Return the squared kernel calibration error of one score (Widmann et al. 2019).

    "plugin" is Σ_ij d_i d_j k(z_i, z_j) / W² with d = w (μ - z); its root is the MMCE of Kumar et
    al. 2018. "debiased" leaves out what a case adds with itself and divides by N (N - 1), which is
    right on average, and defined for equal weights.

    >>> z, d = np.array([0.2, 0.6]), np.array([0.3, -0.1])
    >>> round(squared_kernel_error(z, d, np.ones(2), 0.4, "debiased"), 6)  # -0.03 exp(-1)
    -0.011036
    """
    pairs = float(laplace_pairs(score, residual[None], bandwidth)[0])
    return _of_pairs(2 * pairs, float((residual**2).sum()), mass, estimator)


def squared_canonical_error(
    probs: FloatArray, masses: FloatArray, bandwidth: float, estimator: str
) -> float:
    """Return the squared kernel calibration error of whole vectors (Widmann et al. 2019).

    As `squared_kernel_error` with the vectors d_i = w (μ - p), (N, K), and their products d_i · d_j
    exp(-|p_i - p_j| / h), |·| the total variation: the matrix-valued kernel exp(-|p - q| / h) I.
    """
    mass = masses.sum(axis=1)
    residual = masses - mass[:, None] * probs
    every = np.zeros(len(probs), np.int64)
    total = float(canonical_products(probs, residual, bandwidth, every, 1)[0, 0])
    alone = float((residual**2).sum())
    return _of_pairs(total - alone, alone, mass, estimator)


def canonical_products(
    probs: FloatArray, residual: FloatArray, bandwidth: float, unit: NDArray[np.int64], units: int
) -> FloatArray:
    """Return (units, units): Σ d_i · d_j exp(-|p_i - p_j| / h) over the cases i, j of two units.

    >>> probs, d = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[-1.0, 1.0], [0.5, -0.5]])
    >>> canonical_products(probs, d, 1.0, np.arange(2), 2).round(6)  # -1 / e; |p - q| is 1
    array([[ 2.      , -0.367879],
           [-0.367879,  0.5     ]])
    """
    from scipy.sparse import csr_array
    from scipy.spatial.distance import cdist

    cases = np.arange(len(probs))
    member = csr_array((np.ones(len(probs)), (cases, unit)), shape=(len(probs), units))
    found = np.zeros((units, units))
    for first in range(0, len(probs), ROWS):
        some = slice(first, first + ROWS)
        distance = cdist(probs[some], probs, "cityblock") / 2
        products = np.exp(-distance / bandwidth) * (residual[some] @ residual.T)
        found += member[some].T @ (products @ member)
    return found


def _of_pairs(others: float, alone: float, mass: FloatArray, estimator: str) -> float:
    """Return the error from the sums over pairs of different cases and of each with itself."""
    total = float(mass.sum())
    if estimator == "plugin":
        return (others + alone) / total**2
    if not np.allclose(mass, mass[0], rtol=1e-9, atol=0):
        raise InvalidInputError(
            "weights: the debiased kernel error is defined for equal case weights only; "
            'use estimator="plugin" with unequal ones'
        )
    cases = len(mass)
    if cases < 2:
        raise UndefinedMetricError(
            "kernel_calibration_error: undefined, it needs two cases, to compare one with the other"
        )
    return others / (total**2 * (1 - 1 / cases))


def laplace_pairs(score: FloatArray, values: FloatArray, bandwidth: float) -> FloatArray:
    """Return Σ_{i<j} a_i a_j exp(-|z_i - z_j| / h) of each row of `values` (draws, N).

    >>> laplace_pairs(np.array([0.0, 1.0]), np.array([[2.0, 3.0]]), 1.0).round(6)  # 6 / e
    array([2.207277])
    """
    from raterwise.kernels._kde import decayed_pairs

    order = np.argsort(score, kind="stable")
    decay = np.exp(-np.diff(score[order]) / bandwidth)
    return np.asarray(decayed_pairs(np.ascontiguousarray(values[:, order]), decay))
