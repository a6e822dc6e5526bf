"""Slow and obvious versions of weak calibration and of R's loess, a row for every label."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, root
from scipy.special import expit

import oracle

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Naive = Callable[[Array, Counts], float | None]


def mean(values: Any) -> float:
    """Return the mean, summed exactly."""
    return math.fsum(values) / len(values)


def each_class(naive: Callable[[Array, Array], float | None]) -> Naive:
    """Return class 1 of two, or the mean over classes, each against the rest, a row per label."""

    def of(probs: Array, counts: Counts) -> float | None:
        rows, onehot = oracle.repeat_per_annotation(probs, counts)
        asked = [1] if probs.shape[1] == 2 else range(probs.shape[1])
        each = [naive(rows[:, k], onehot[:, k].astype(float)) for k in asked]
        known = [value for value in each if value is not None]
        return mean(known) if len(known) == len(each) else None

    return of


def naive_ratio(p: Array, y: Array) -> float | None:
    """Return the labels of the class over the sum of its probabilities."""
    return math.fsum(y) / math.fsum(p) if math.fsum(p) > 0 else None


def naive_recalibration(p: Array, y: Array, slope: bool) -> float | None:
    """Return the root of the equations of a logistic regression on the log odds, by scipy."""
    if (p <= 0).any() or (p >= 1).any() or len(set(y)) < 2:
        return None
    odds = [math.log(x / (1 - x)) for x in p]
    if not slope:
        return float(
            brentq(
                lambda a: math.fsum(t - expit(a + o) for t, o in zip(y, odds, strict=True)),
                -99, 99, xtol=1e-14,
            )
        )  # fmt: skip
    yes = [o for t, o in zip(y, odds, strict=True) if t]
    no = [o for t, o in zip(y, odds, strict=True) if not t]
    if max(no) <= min(yes) or max(yes) <= min(no):
        return None  # a threshold separates them: the slope has no limit

    def equations(fit: Array) -> list[float]:
        left = [t - expit(fit[0] + fit[1] * o) for t, o in zip(y, odds, strict=True)]
        return [math.fsum(left), math.fsum(e * o for e, o in zip(left, odds, strict=True))]

    found = root(equations, [0.0, 0.0], method="lm", options={"xtol": 1e-15, "ftol": 1e-15})
    return float(found.x[1])


def naive_loess_errors(p: Array, y: Array) -> list[float]:
    """Return |curve - p| of every row, the curve R's loess(y ~ p), span 3/4, degree 2."""
    n, order = len(p), np.argsort(p, kind="stable")
    x, said = p[order], y[order]
    near = int(n * 0.75 + 1e-5)
    vertices = naive_vertices(x.tolist(), int(n * (0.75 * 0.2)))
    vertices = vertices[:1] + [
        v for a, b in itertools.pairwise(vertices) for v in naive_halves(x, a, b, near)
    ]
    fits = [naive_local_fit(x, said, v, near) for v in vertices]
    if len(vertices) == 1:
        return [abs(fits[0][0] - score) for score in x]
    errors = []
    for score in x:
        i = max(j for j in range(len(vertices) - 1) if vertices[j] <= score or j == 0)
        (a, da), (b, db) = fits[i], fits[i + 1]
        w = vertices[i + 1] - vertices[i]
        t = (score - vertices[i]) / w
        cubic = (2 * t**3 - 3 * t**2 + 1) * a + (t**3 - 2 * t**2 + t) * w * da
        cubic += (3 * t**2 - 2 * t**3) * b + (t**3 - t**2) * w * db
        errors.append(abs(cubic - score))
    return errors


def naive_vertices(x: list[float], most: int) -> list[float]:
    """Return the ends of cells of sorted rows, halved until they hold `most`, as R halves them.

    From the middle row it looks one row up and one down in turn for a row that differs from the
    next; where that would leave the cell, equal rows are parted. No cell is cut at its own end.
    """
    if x[0] == x[-1]:
        return [x[0]]
    margin = 0.005 * (x[-1] - x[0])
    ends = x[0] - margin, x[-1] + margin
    cuts, todo = [], [(x, *ends)]
    while todo:
        cell, low, high = todo.pop()
        if len(cell) <= most:
            continue
        middle = cut = (len(cell) + 1) // 2
        step = 0
        while 1 <= middle + step < len(cell):
            if cell[middle + step - 1] != cell[middle + step]:
                cut = middle + step
                break
            step = -step if step > 0 else 1 - step
        at = cell[cut - 1]
        if at not in (low, high):
            cuts.append(at)
            todo += [(cell[:cut], low, at), (cell[cut:], at, high)]
    return sorted({*cuts, *ends})


def naive_halves(x: Array, a: float, b: float, nearest: int) -> list[float]:
    """Return b, after the middle of a cell wider than four times the reach of the fit at an end.

    R has no such rule: its cubics leave [0, 1] by far where scores crowd at one end of a wide cell.
    """
    if b - a <= 4 * min(naive_reach(x, a, nearest), naive_reach(x, b, nearest)):
        return [b]
    middle = (a + b) / 2
    return naive_halves(x, a, middle, nearest) + naive_halves(x, middle, b, nearest)


def naive_reach(x: Array, at: float, nearest: int) -> float:
    """Return how far the nearest rows are, or what three distinct scores need."""
    away = sorted(abs(x - at))
    reach = away[min(max(nearest, 1), len(away)) - 1]
    apart = sorted(abs(v - at) for v in {float(score) for score in x})
    least = apart[min(3, len(apart)) - 1]
    return float(reach) if reach * 0.999 > least else float(least * 1.01 or 1.0)


def naive_local_fit(x: Array, y: Array, at: float, nearest: int) -> tuple[float, float]:
    """Return value and slope at a place of the weighted parabola through the nearest rows."""
    reach = naive_reach(x, at, nearest)
    u = (x - at) / reach
    w = np.clip(1 - abs(u) ** 3, 0, None) ** 3
    terms = min(3, len({float(v) for v, weight in zip(x, w, strict=True) if weight > 0}))
    design = np.stack([u**k for k in range(terms)], axis=1) * np.sqrt(w)[:, None]
    fit = np.linalg.lstsq(design, y * np.sqrt(w), rcond=None)[0]
    return float(fit[0]), float(fit[1] / reach) if terms > 1 else 0.0


NAIVE: dict[str, Naive] = {
    "observed_expected_ratio": each_class(naive_ratio),
    "calibration_intercept": each_class(lambda p, y: naive_recalibration(p, y, slope=False)),
    "calibration_slope": each_class(lambda p, y: naive_recalibration(p, y, slope=True)),
    "ici": each_class(lambda p, y: mean(naive_loess_errors(p, y))),
    "e50": each_class(lambda p, y: float(np.quantile(naive_loess_errors(p, y), 0.5))),
    "e90": each_class(lambda p, y: float(np.quantile(naive_loess_errors(p, y), 0.9))),
}
