"""The smooth calibration error (SmoothECE).

Reference: Błasiok, Nakkiran. Smooth ECE: principled reliability diagrams via kernel smoothing.
ICLR 2024. arXiv:2309.12236.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from raterwise.densities.cells import parts_of
from raterwise.types import FloatArray

_GRID = 2**14
_SMALLEST = 4.0 / _GRID  # a narrower kernel would not be seen by the grid


def _residuals_on_grid(z: FloatArray, residual_mass: FloatArray) -> FloatArray:
    """Cosine transform of the residuals, each shared by its two neighbours on a regular grid."""
    grid = np.zeros(_GRID + 1)
    for part in parts_of(len(z)):
        position, residual = np.clip(z[part], 0, 1) * _GRID, residual_mass[part]
        left = np.minimum(position.astype(np.int64), _GRID - 1)
        right_share = position - left
        grid += np.bincount(left, residual * (1 - right_share), _GRID + 1)
        grid += np.bincount(left + 1, residual * right_share, _GRID + 1)
    grid[[0, -1]] *= 2  # the end points stand for half an interval
    return np.asarray(dct(grid, type=1))


def _smoothed(spectrum: FloatArray, sigma: float) -> float:
    """Integral over [0, 1] of the absolute residuals after smoothing.

    A Gaussian that is reflected at 0 and 1 multiplies the cosine of frequency n by
    exp(-(pi n sigma)^2 / 2): smoothing costs one transform, however many cases there are.
    """
    frequency = np.arange(_GRID + 1)
    smooth = np.abs(idct(spectrum * np.exp(-0.5 * (np.pi * frequency * sigma) ** 2), type=1))
    return float(smooth.sum() - 0.5 * (smooth[0] + smooth[-1]))


def smooth_ece(z: FloatArray, residual_mass: FloatArray, mass: FloatArray) -> float:
    """SmoothECE: the bandwidth at which SmoothECE and bandwidth are equal, sigma* = smECE_sigma*.

    Args:
        z: scores, in any order; distinct scores or means of fine cells do as well.
        residual_mass: w (mu - z), summed where cases are merged.
        mass: w, likewise.

    smECE falls as sigma grows, so there is one such value (Definition 7); it is found to 1e-12.
    Values below 2.4e-4, the finest kernel, are returned as smECE at that bandwidth.

    >>> z = np.full(4, 0.5)
    >>> round(smooth_ece(z, np.array([0.5, 0.5, 0.5, -0.5]), np.ones(4)), 9)
    0.25
    """
    spectrum, total = _residuals_on_grid(z, residual_mass), float(np.sum(mass))

    def excess(sigma: float) -> float:
        return _smoothed(spectrum, sigma) / total - sigma

    if excess(_SMALLEST) <= 0:
        return _smoothed(spectrum, _SMALLEST) / total
    if excess(1.0) >= 0:  # as wrong as can be: by rounding, the error may seem above 1
        return 1.0
    return float(brentq(excess, _SMALLEST, 1.0, xtol=1e-13, rtol=1e-12))
