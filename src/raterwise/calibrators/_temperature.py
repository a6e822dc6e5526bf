"""The inverse temperature with the largest likelihood, by a safeguarded third-order iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raterwise.calibrators._cases import CalibrationSet
from raterwise.errors import InvalidInputError
from raterwise.kernels import _scaling as kernels
from raterwise.kernels._threads import in_threads
from raterwise.predictions.predictions import CHUNK_VALUES
from raterwise.types import FloatArray

SLOPE = 1e-12
"""The search ends where the loss changes by less than this per unit of log T."""
SLOPE_WITHOUT_OPTIMUM = 1e-8
"""The same where the loss falls for ever towards T = 0 or T = ∞."""
MOST_PASSES = 100
THINNED = 16
"""One case in so many is enough to get close, so that few passes over all cases are left."""


@dataclass(frozen=True)
class TemperatureFit:
    """Where the search for β = 1/T ended."""

    beta: float
    loss: float
    slope: float
    """dL / d log T."""
    passes: int
    limit: str | None
    """"zero" or "infinity" where no T is best: the loss falls towards T = 0 or T = ∞."""

    @property
    def doubt(self) -> str | None:
        """What to warn of: there is no best T."""
        reasons = {
            "zero": "every rater chose the class of the largest logit",
            "infinity": "the logits say nothing about the labels",
        }
        if self.limit is None:
            return None
        where = f"stopped at T = {1 / self.beta:.3g}"
        return f"{reasons[self.limit]}, so that no temperature is best; {where}"


@dataclass(frozen=True)
class _Point:
    """The loss L(β) and its derivatives with respect to β."""

    beta: float
    loss: float
    first: float
    second: float
    third: float

    @property
    def slope(self) -> float:
        return self.beta * self.first

    def step(self) -> float:
        """Return the step to the zero of the first derivative: Halley's near it, else Newton's.

        Far from it, where every case is saturated, Halley's step would be far too short.
        """
        if abs(self.first * self.third) < self.second**2:
            return -2 * self.first * self.second / (2 * self.second**2 - self.first * self.third)
        return -self.first / self.second if self.second > 0 else -np.inf * np.sign(self.first)


def best_inverse_temperature(cases: CalibrationSet) -> TemperatureFit:
    """Return the β > 0 that minimises L(β) = Σ_i c_i log Σ_k exp(β u_ik) - Σ_ik t_ik β u_ik.

    L is convex, so a zero of its derivative is the optimum; there is one unless every rater chose
    the class of the largest logit (L falls for ever as T -> 0) or the logits say less about the
    labels than nothing (as T -> ∞).
    """
    sums = _Sums(cases)
    if sums.mean_gap == 0:
        raise InvalidInputError(
            "logits: must differ between the classes; in every case they are all equal"
        )
    beta = sums.usual_beta
    if len(cases) > 100 * THINNED:
        few = _Sums(cases.take(np.arange(0, len(cases), THINNED)))
        if few.mean_gap < 0 and (close := _search(few, beta)).limit is None:
            beta = close.beta
    return _search(sums, beta)


def _search(sums: _Sums, beta: float) -> TemperatureFit:
    if sums.observed_gap == 0:
        return _follow(sums, beta, 2.0, "zero")
    if sums.mean_gap >= sums.observed_gap:  # the derivative at β = 0 is not negative
        return _follow(sums, beta, 0.1, "infinity")
    low, high = 0.0, np.inf
    for _ in range(MOST_PASSES):
        point = sums.at(beta)
        if point.first < 0:
            low = beta
        else:
            high = beta
        closer = float(np.clip(beta + point.step(), beta / 4, beta * 4))
        if not low < closer < high:
            closer = (low + high) / 2 if high < np.inf else 2 * beta
        if abs(point.slope) <= SLOPE or abs(closer - beta) <= 1e-15 * beta:
            break
        beta = closer
    return TemperatureFit(point.beta, point.loss, -point.slope, sums.passes, None)


def _follow(sums: _Sums, beta: float, factor: float, limit: str) -> TemperatureFit:
    """Go towards a limit until there is nothing left to gain."""
    for _ in range(MOST_PASSES):
        point = sums.at(beta)
        if abs(point.slope) <= SLOPE_WITHOUT_OPTIMUM:
            break
        beta *= factor
    return TemperatureFit(point.beta, point.loss, -point.slope, sums.passes, limit)


class _Sums:
    """Sums over all cases, chunk by chunk in threads, added up in a fixed order."""

    def __init__(self, cases: CalibrationSet) -> None:
        self.passes = 0
        self._logits = cases.logits
        self._rows = max(1024, CHUNK_VALUES // cases.num_classes)
        labels, none = cases.labels, np.empty(0)
        weights = none if cases.weights is None else cases.weights
        if labels.classes is not None:
            classes, counts = labels.classes.astype(np.int64), np.empty((0, 0), np.int64)
            self._masses = weights
        else:
            classes, counts = np.empty(0, np.int64), labels.counts.astype(np.int64)
            raters = labels.num_raters.astype(np.float64)
            self._masses = raters if cases.weights is None else raters * weights

        def observed(rows: slice, out: FloatArray) -> None:
            kernels.add_observed_gaps(
                self._logits[rows], classes[rows], counts[rows], weights[rows], out
            )

        sums = self._added(observed, 3)
        self._total = sums[0]
        self.mean_gap, self.observed_gap = sums[1] / sums[0], sums[2] / sums[0]

    @property
    def usual_beta(self) -> float:
        """1, unless the logits are of a size at which everything saturates, or nothing does."""
        return float(np.clip(1.0, 0.1 / -self.mean_gap, 30 / -self.mean_gap))

    def at(self, beta: float) -> _Point:
        """Return the loss and its derivatives at β."""
        self.passes += 1

        def tempered(rows: slice, out: FloatArray) -> None:
            kernels.add_tempered_sums(self._logits[rows], self._masses[rows], beta, out)

        log_sum, mean, variance, third = (self._added(tempered, 4) / self._total).tolist()
        observed = self.observed_gap
        return _Point(beta, log_sum - beta * observed, mean - observed, variance, third)

    def _added(self, kernel: Callable[[slice, FloatArray], None], size: int) -> FloatArray:
        def chunk(first: int) -> FloatArray:
            out = np.zeros(size)
            kernel(slice(first, first + self._rows), out)
            return out

        parts = in_threads(chunk, range(0, len(self._logits), self._rows))
        return np.asarray(np.sum(parts, axis=0))
