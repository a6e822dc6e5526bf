"""Local polynomial regression as R's `loess`, for masses of scores: the smooth calibration curve.

The value at a score x is that of a polynomial fitted to the nearest `span` of all mass, with
tricube weights. R fits at a few vertices only and joins them by cubics through the fitted values
and slopes (`surface = "interpolate"`), which is what everybody's integrated calibration index is
made with and takes time in proportion to the cases; `surface="direct"` fits at every score.

The curve is linear in what was observed, and a straight line goes through unchanged. The smoothed
observed frequency minus x is therefore the smoothed deviation, which is how intervals get at it.

References
----------
Cleveland & Devlin, Locally weighted regression, JASA 83 (1988) 596-610. Cleveland & Grosse,
Computational methods for local regression, Statistics and Computing 1 (1991) 47-62.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterwise.types import FloatArray

CELL = 0.2
"""R's `loess.control(cell=)`: a cell of the tree holds up to span × cell of all rows."""
MARGIN = 0.005
"""By how much of the range of the scores the outer vertices lie outside it, as in R."""
SINGULAR = 1e-12
"""The part of the mass below which a term of the local polynomial is left out."""
WIDEST = 4.0
"""Cells wider than so many times the reach of the fit at an end are halved.

A slope that a few crowded scores decide says nothing a thousand times as far away: R's cubics leave
[0, 1] by hundreds where most of the mass lies at one score, as the background of an image does.
"""


@dataclass(frozen=True, eq=False)
class Loess:
    """The smoother of distinct increasing scores with these masses.

    Masses that are whole numbers count rows as R does: the nearest ⌊n span⌋ of n.

    >>> x = np.linspace(0, 1, 21)
    >>> smoother = Loess(x, np.ones(21))
    >>> bool(np.allclose(smoother.curve(0.2 + 0.6 * x, x), 0.2 + 0.6 * x))  # a line stays a line
    True
    """

    score: FloatArray
    mass: FloatArray
    span: float = 0.75
    degree: int = 2
    surface: str = "interpolate"

    def curve(self, observed: FloatArray, where: FloatArray) -> FloatArray:
        """Return the curve of observed frequencies (…, n) at `where` (m,)."""
        vertices = self._vertices()
        fits = [(observed @ value, observed @ slope) for value, slope in self._fits(vertices)]
        value, slope = (np.stack(part, axis=-1) for part in zip(*fits, strict=True))
        left, right, (a, b, c, d) = _cubics(vertices, where)
        joined = a * value[..., left] + b * value[..., right]
        return np.asarray(joined + c * slope[..., left] + d * slope[..., right])

    def matrix(self, where: FloatArray) -> FloatArray:
        """Return L (m, n): the curve at `where` is L @ observed."""
        return self.curve(np.eye(len(self.score)), where).T

    def _fits(self, vertices: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the weights of each observed frequency in the value and the slope at a vertex."""
        used = self.mass > 0
        score, mass = self.score[used], self.mass[used]
        wanted = self._wanted(mass)
        for at in vertices:
            value, slope = np.zeros((2, len(used)))
            reach = _reach(score, mass, at, wanted, self.degree)
            value[used], slope[used] = _local_fit(score, mass, at, reach, self.degree)
            yield value, slope

    def _wanted(self, mass: FloatArray) -> float:
        """Return the mass of a neighbourhood."""
        wanted = float(mass.sum()) * self.span
        return float(np.floor(wanted + 1e-5)) if _whole(mass) else wanted * (1 - 1e-12)

    def _vertices(self) -> FloatArray:
        """Return where to fit: the ends of the cells of R's k-d tree.

        Cells are halved by mass until they hold no more than a part of it, and then by width where
        the fit at an end does not reach far into them (`WIDEST`).
        """
        used = self.mass > 0
        score, mass = self.score[used], self.mass[used]
        if self.surface == "direct" or len(score) < 2:
            return score
        margin = MARGIN * (score[-1] - score[0])
        outer = (float(score[0] - margin), float(score[-1] + margin))
        cuts = _cuts(score, mass, self.span * CELL, outer)
        return self._halved(np.unique(np.array([*cuts, *outer])), score, mass)

    def _halved(self, vertices: FloatArray, score: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the vertices with more of them in cells that are too wide for their ends."""
        wanted = self._wanted(mass)

        def reach(at: float) -> float:
            return _reach(score, mass, at, wanted, self.degree)

        known = [(float(at), reach(float(at))) for at in vertices]
        found, todo = [known[0]], known[:0:-1]
        while todo:
            (left, near), (right, far) = found[-1], todo[-1]
            middle = (left + right) / 2
            if right - left > WIDEST * min(near, far) and left < middle < right:
                todo.append((middle, reach(middle)))
            else:
                found.append(todo.pop())
        return np.array([at for at, _ in found])


def _cuts(
    score: FloatArray, mass: FloatArray, part: float, outer: tuple[float, float]
) -> list[float]:
    """Return where cells are cut that hold more than a part of all mass: at a score, by halves."""
    ends, whole = np.cumsum(mass), _whole(mass)
    most = np.floor(ends[-1] * part) if whole else ends[-1] * part
    cuts: list[float] = []
    todo = [(0.0, float(ends[-1]), *outer)]
    while todo:
        start, stop, low, high = todo.pop()
        if stop - start <= most:
            continue
        place = _half(ends, start, stop, whole=whole)
        at = float(score[np.searchsorted(ends, place)])
        if place < stop and low < at < high:
            cuts.append(at)
            todo += [(start, place, low, at), (place, stop, at, high)]
    return cuts


def _half(ends: FloatArray, start: float, stop: float, *, whole: bool) -> float:
    """Return up to which mass the lower half of a cell goes: the end of a score near its middle.

    The nearest; of two, the upper. As R looks for it among rows, a step up and a step down in turn,
    it gives up where the next step would leave the cell, and cuts through equal scores.
    """
    middle = (start + stop) / 2
    middle = float(np.ceil(middle)) if whole else middle
    inner = ends[(ends > start) & (ends < stop)]
    up, down = inner[inner >= middle], inner[inner < middle]
    above = float(up[0]) if len(up) else np.inf
    below = float(down[-1]) if len(down) else -np.inf
    if above - middle <= middle - below and len(up):
        return above
    if len(down) and not (whole and 2 * middle - below >= stop):
        return below
    return middle if whole else stop


def _whole(mass: FloatArray) -> bool:
    return bool((mass == np.round(mass)).all())


def _cubics(
    vertices: FloatArray, where: FloatArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Return the vertices on either side of each place, and the four cubics of Hermite there."""
    if len(vertices) == 1:  # all scores are equal
        one = np.zeros(len(where), np.int64)
        return one, one, np.repeat([[1.0], [0.0], [0.0], [0.0]], len(where), axis=1)
    left = np.clip(np.searchsorted(vertices, where, side="right") - 1, 0, len(vertices) - 2)
    width = vertices[left + 1] - vertices[left]
    h = (where - vertices[left]) / width
    cubics = (
        (1 - h) ** 2 * (1 + 2 * h), h**2 * (3 - 2 * h),
        h * (1 - h) ** 2 * width, -(h**2) * (1 - h) * width,
    )  # fmt: skip
    return left, left + 1, np.stack(cubics)


def _reach(score: FloatArray, mass: FloatArray, at: float, wanted: float, degree: int) -> float:
    """Return how far the mass that is wanted reaches from a place.

    Where scores are tied, at least far enough for as many distinct ones as a polynomial needs.
    """
    split = int(np.searchsorted(score, at))
    below, above = at - score[:split][::-1], score[split:] - at
    masses = [np.cumsum(m) for m in (mass[:split][::-1], mass[split:])]

    def within(distance: float) -> float:
        found = 0.0
        for away, total in zip((below, above), masses, strict=True):
            number = int(np.searchsorted(away, distance, side="right"))
            found += float(total[number - 1]) if number else 0.0
        return found

    far = min(_first(away, lambda d: within(d) >= wanted) for away in (below, above))
    nearest = np.sort(np.concatenate((below[: degree + 1], above[: degree + 1])))
    least = float(nearest[min(degree + 1, len(nearest)) - 1])
    far = far if np.isfinite(far) else float(max(below[-1:].max(initial=0), above[-1:].max()))
    if far * 0.999 > least:
        return far
    return least * 1.01 if least > 0 else 1.0  # there is but one score


def _first(away: FloatArray, enough: Callable[[float], bool]) -> float:
    """Return the first of increasing distances that is enough; infinity where none is."""
    place = bisect_left(away, True, key=enough)
    return float(away[place]) if place < len(away) else float("inf")


def _local_fit(
    score: FloatArray, mass: FloatArray, at: float, reach: float, degree: int
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of each observed frequency in the fitted value and slope at one place.

    By orthogonal polynomials of the weighted scores, so that nothing is lost to rounding where
    scores crowd; a term that the scores cannot tell is left out.
    """
    value, slope = np.zeros((2, len(score)))
    within = np.flatnonzero(np.abs(score - at) < reach)
    near = slice(int(within[0]), int(within[-1]) + 1)
    u = np.clip((score[near] - at) / reach, -1, 1)
    w = mass[near] * (1 - np.abs(u) ** 3) ** 3
    total, norm_before = float(w.sum()), 1.0
    before, now = np.zeros_like(u), np.ones_like(u)
    # Each term p_k with its value and its slope at the place itself, u = 0.
    p_before, p_now, d_before, d_now = 0.0, 1.0, 0.0, 0.0
    for k in range(degree + 1):
        norm = float((w * now * now).sum())
        if not norm > SINGULAR * total:
            break
        share = w * now / norm
        value[near] += p_now * share
        slope[near] += d_now * share / reach
        centre = float((w * u * now * now).sum()) / norm
        back = norm / norm_before if k else 0.0
        now, before = (u - centre) * now - back * before, now
        p_now, p_before, d_now, d_before = (
            -centre * p_now - back * p_before, p_now,
            p_now - centre * d_now - back * d_before, d_now,
        )  # fmt: skip
        norm_before = norm
    return value, slope


def weighted_quantile(values: FloatArray, mass: FloatArray, q: float) -> FloatArray:
    """Return the q-quantile of values (…, n) that have these masses (…, n).

    Of whole masses it is R's type 7 of as many copies; of others the smallest value below which,
    itself included, lies at least q of all mass.

    >>> weighted_quantile(np.array([1.0, 2.0, 5.0]), np.array([1.0, 2.0, 1.0]), 0.5)
    array(2.)
    """
    mass = np.broadcast_to(mass, values.shape)
    order = np.argsort(values, axis=-1, kind="stable")
    values, mass = (np.take_along_axis(x, order, axis=-1) for x in (values, mass))
    ends = np.cumsum(mass, axis=-1)
    if not _whole(mass):
        at = (ends >= q * ends[..., -1:] * (1 - 1e-12)).argmax(axis=-1)
        return np.asarray(np.take_along_axis(values, at[..., None], axis=-1)[..., 0])
    rank = (ends[..., -1:] - 1) * q
    lower = np.floor(rank + 1e-9)
    part = np.clip(rank - lower, 0, 1)
    pick = [(ends > np.minimum(r, ends[..., -1:] - 1)).argmax(axis=-1) for r in (lower, lower + 1)]
    low, high = (np.take_along_axis(values, at[..., None], axis=-1) for at in pick)
    return np.asarray((low + part * (high - low))[..., 0])
