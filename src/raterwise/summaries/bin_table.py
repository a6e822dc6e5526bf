"""Named sums over bins: what the formulas of binned metrics are over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterwise.types import FloatArray


@dataclass(frozen=True)
class BinTable:
    """Named sums over bins, with any number of leading axes: (…, channels, bins, fields).

    Leading axes are resamples, so a formula written once serves the estimate and its interval.
    """

    sums: FloatArray

    @property
    def cases(self) -> FloatArray:
        """Number of cases, |I_kb|."""
        return self.sums[..., 0]

    @property
    def weight(self) -> FloatArray:
        """Σ w."""
        return self.sums[..., 1]

    @property
    def held(self) -> FloatArray:
        """Σ w of the cases that are there, also where a smoother has that of others."""
        return self.weight

    @property
    def squared_weight(self) -> FloatArray:
        """Σ w²."""
        return self.sums[..., 2]

    @property
    def score(self) -> FloatArray:
        """Σ w z: predicted."""
        return self.sums[..., 3]

    @property
    def positive(self) -> FloatArray:
        """Σ w μ: observed."""
        return self.sums[..., 4]

    @property
    def squared_gap(self) -> FloatArray:
        """Σ w (μ - z)²."""
        return self.sums[..., 5]

    @property
    def squared_positive(self) -> FloatArray:
        """Σ w μ²."""
        return self.sums[..., 6]

    @property
    def within(self) -> FloatArray:
        """Σ w v, with v = μ(1-μ)/(n-1)."""
        return self.sums[..., 7]

    @property
    def deviation(self) -> FloatArray:
        """Σ w (μ - z): observed minus predicted."""
        return self.positive - self.score

    def with_deviation(self, deviation: FloatArray) -> BinTable:
        """Return the table with the observed sums moved so that the deviation is as given.

        `deviation` may have leading axes that this table has not; the other sums are shared.
        """
        shared = np.broadcast_to(self.sums, (*deviation.shape, self.sums.shape[-1]))
        return _MovedTable(shared, deviation)


@dataclass(frozen=True)
class SmoothTable(BinTable):
    """A table of smoothed deviations, over weights that are those of the sample."""

    own: FloatArray | None = None
    """Σ w of the resample."""

    @property
    def held(self) -> FloatArray:
        """Σ w of the cases that are there."""
        return self.weight if self.own is None else self.own


@dataclass(frozen=True)
class _MovedTable(BinTable):
    """A table whose observed sums were moved; intervals make them by the thousand."""

    moved: FloatArray

    @property
    def positive(self) -> FloatArray:
        """Σ w μ: observed."""
        return self.score + self.moved

    @property
    def deviation(self) -> FloatArray:
        """Σ w (μ - z): observed minus predicted."""
        return self.moved


def through(smoother: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return deviations (…, channels, cells) smoothed.

    `smoother` is (cells out, cells in), or (channels, cells out, cells in).

    >>> one = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> through(one, np.array([[2.0, 4.0]]))
    array([[3., 4.]])
    >>> through(np.stack((one, 2 * one)), np.array([[2.0, 4.0], [2.0, 4.0]]))
    array([[3., 4.],
           [6., 8.]])
    """
    if smoother.ndim == 2:
        return deviation @ smoother.T
    each = [deviation[..., c, :] @ one.T for c, one in enumerate(smoother)]
    return np.stack(each, axis=-2)
