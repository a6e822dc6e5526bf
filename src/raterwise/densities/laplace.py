"""Sums over pairs of cases with a Laplace kernel of their scores, in one pass over sorted scores.

Σ_{i<j} a_i a_j exp(-|z_i - z_j| / h) needs no pairs: in rising order of z the kernel factorises, so
that what all earlier cases add to the next one decays from score to score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, UndefinedMetricError

FloatArray = NDArray[np.float64]


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
    total = float(mass.sum())
    if estimator == "plugin":
        return (2 * pairs + float((residual**2).sum())) / total**2
    if not np.allclose(mass, mass[0], rtol=1e-9, atol=0):
        raise InvalidInputError(
            "weights: the debiased kernel error is defined for equal case weights only; "
            'use estimator="plugin" with unequal ones'
        )
    cases = len(score)
    if cases < 2:
        raise UndefinedMetricError(
            "kernel_calibration_error: undefined, it needs two cases, to compare one with the other"
        )
    return 2 * pairs / (total**2 * (1 - 1 / cases))


def laplace_pairs(score: FloatArray, values: FloatArray, bandwidth: float) -> FloatArray:
    """Return Σ_{i<j} a_i a_j exp(-|z_i - z_j| / h) of each row of `values` (draws, N).

    >>> laplace_pairs(np.array([0.0, 1.0]), np.array([[2.0, 3.0]]), 1.0).round(6)  # 6 / e
    array([2.207277])
    """
    from raterwise.kernels._pairs import decayed_pairs

    order = np.argsort(score, kind="stable")
    decay = np.exp(-np.diff(score[order]) / bandwidth)
    return np.asarray(decayed_pairs(np.ascontiguousarray(values[:, order]), decay))
