"""Kernel errors as norms of smoothed deviations, for their intervals.

A kernel error smooths the deviations Σ w(μ - z) of cells of scores by fixed weights and takes the
sum of absolute values (or of squares). Smoothing is linear, so it can be applied to the table of
each resampling unit, once.
"""

from __future__ import annotations

import numpy as np

from raterwise.types import FloatArray

GRID = 256


def beta_smoother(z: FloatArray, mass: FloatArray, bandwidth: float) -> FloatArray:
    """Return S with S_ji ∝ m_j k(z_j; z_i) / Σ_i k(z_j; z_i) m_i, the Beta kernel of KDE-ECE.

    Then Σ_j |Σ_i S_ji d_i| / W is the mean over cases of |smoothed observed - predicted|.

    Σ_j S_ji = 1: smoothing moves deviations about and loses none of them. The kernel's weights add
    to one where the error is estimated, not where a case lies. At scores that pile up they would
    lose part of a deviation that is the same everywhere, and the interval would lie below the
    truth of an overconfident model.

    >>> z, mass = np.array([0.6, 0.98, 0.99]), np.array([1.0, 5.0, 20.0])
    >>> beta_smoother(z, mass, 0.05).sum(axis=0)
    array([1., 1., 1.])
    """
    from scipy.special import betaln, logsumexp

    inside = np.clip(z, np.finfo(float).eps, 1 - np.finfo(float).eps)
    a, b = z / bandwidth, (1 - z) / bandwidth
    log_k = np.outer(np.log(inside), a) + np.outer(np.log1p(-inside), b) - betaln(a + 1, b + 1)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    total = logsumexp(log_k + log_mass, axis=1, keepdims=True)
    weights = np.exp(log_k - total) * mass[:, None]
    kept = weights.sum(axis=0)
    return np.asarray(weights / np.where(kept > 0, kept, 1))


def gaussian_smoother(z: FloatArray, sigma: float) -> FloatArray:
    """Return S with S_ti = ∫ over grid cell t of the Gaussian at z_i, reflected at 0 and 1.

    Then Σ_t |Σ_i S_ti d_i| / W is SmoothECE at the bandwidth sigma, but for the grid.
    """
    from scipy.special import ndtr

    edges = np.arange(GRID + 1)[:, None] / GRID
    reach = int(np.ceil(3 * sigma)) + 1  # how many reflections a wide kernel needs
    images = [2 * k + s * z for k in range(-reach, reach + 1) for s in (1, -1)]
    below = sum(ndtr((edges - image) / sigma) for image in images)
    return np.asarray(np.diff(below, axis=0))
