"""How weak calibration and the smooth calibration curve get from predictions to a table.

The value is exact from sorted scores. For an interval the scores are gathered into cells: of the
log odds of a cell's mean, or of its deviation from the raters, smoothed by the same loess.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from raterwise.binning import equal_mass_edges
from raterwise.catalog.recipes.common import by_edges, cell_centres, from_cells, smoothed
from raterwise.catalog.recipes.events import event, in_cells_of_events
from raterwise.densities.loess import Loess, weighted_quantile
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.metrics import calibration, weak_calibration
from raterwise.metrics.cell_bounds import ends_of_cells
from raterwise.rules import a_number, between_zero_and_one, choose
from raterwise.summaries import BinSums, BinTable, CellSums, ScoreMasses, SortedPlan, SortedScores
from raterwise.types import Array, Options

SMOOTHING: dict[str, Any] = {"span": 0.75, "degree": 2, "surface": "interpolate"}
CURVE_CELLS = 64
FEW = 50.0
"""Up to so many cases the interval is that of the curve itself."""
LEAST_SPAN = 0.1
"""Six of the cells, from which a parabola can still be told."""
CERTAIN = (
    "{certain} of {number} have a probability of exactly 0 or 1, whose log odds are infinite; "
    "clip=1e-7 moves them to 1e-7 and 1 - 1e-7 (try a larger clip, too: the value may depend on it)"
)
DECIDED = (
    "are all {ends}: these are decisions, not probabilities, and clip alone would decide the value "
    "(sensitivity and specificity describe decisions)"
)


def channels_of(summary: SortedScores) -> list[ScoreMasses]:
    """Return the sorted scores of every class asked about."""
    pooled = [summary.pooled(c) for c in range(summary.channels)]
    return [ScoreMasses(s.score[u], s.mass[u], s.hits[u]) for s in pooled for u in [s.mass > 0]]


def sorted_events(options: Options) -> SortedPlan:
    """Return the plan of the scores of a positive class."""
    if (clip := options.get("clip")) is not None:
        a_number("clip", clip)
        if not 0 < clip < 0.5:
            raise InvalidInputError(f"clip: must lie between 0 and 0.5, both excluded; got {clip}")
    if "span" in options:
        if options["span"] != 1:
            between_zero_and_one("span", options["span"])
        if options["degree"] not in (1, 2):
            raise InvalidInputError(f"degree: must be 1 or 2; got {options['degree']!r}")
        choose("surface", options["surface"], ("interpolate", "direct"))
    return SortedPlan(event(options))


# totals and logistic recalibration ----------------------------------------------------------------


def of_totals() -> dict[str, Any]:
    """Return the parts of the ratio of what was observed to what was expected."""

    def value(summary: SortedScores, options: Options) -> tuple[float, None]:
        each = [_ratio(float(s.hits.sum()), float(s.mass @ s.score)) for s in channels_of(summary)]
        return _mean(each), None

    return {
        "plan": sorted_events,
        "prepare": by_edges(in_cells_of_events),
        "formula": weak_calibration.observed_expected_ratio,
        "exact": value,
        "of_cells": lambda cells, options: value(cells.scores(), options),
    }


def _ratio(observed: float, expected: float) -> float:
    return observed / expected if expected > 0 else float("nan")


def of_recalibration(which: str) -> dict[str, Any]:
    """Return the parts of the intercept or the slope of the model's log odds."""
    formula = {
        "intercept": weak_calibration.intercept_of_table,
        "slope": weak_calibration.slope_of_table,
    }[which]

    def of(odds: Array, mass: Array, hits: Array) -> float:
        if which == "intercept":
            return float(weak_calibration.calibration_in_the_large(odds, mass, hits))
        return float(weak_calibration.recalibration(odds, mass, hits)[1])

    def value(summary: SortedScores, options: Options) -> tuple[float, None]:
        return _mean([of(*_odds(s, options)) for s in channels_of(summary)]), None

    return {
        "plan": sorted_events,
        "prepare": by_edges(in_cells_of_events),
        "formula": formula,
        "exact": value,
        "of_cells": from_cells(value, lambda cells, _, options: _bound(cells, which, options)),
    }


def _odds(scores: ScoreMasses, options: Options) -> tuple[Array, Array, Array]:
    """Return log odds, mass and hits; a probability of 0 or 1 has none unless it is clipped."""
    score, clip = scores.score, options.get("clip")
    least = 0.0 if clip is None else clip
    certain = (score <= least) | (score >= 1 - least)
    if certain.size and certain.all():
        ends = "0 or 1" if clip is None else f"at most {clip:g} or at least 1 - {clip:g}"
        raise UndefinedMetricError("probs: " + DECIDED.format(ends=ends))
    if clip is not None:
        score = np.clip(score, clip, 1 - clip)
    elif certain.any():
        number, total = float(scores.mass[certain].sum()), float(scores.mass.sum())
        raise UndefinedMetricError(
            "probs: " + CERTAIN.format(certain=f"{number:g}", number=f"{total:g} labels")
        )
    return weak_calibration.log_odds(score), scores.mass, scores.hits


def _bound(cells: CellSums, which: str, options: Options) -> float:
    """Return how far the fit of cells can be from that of the scores, to first order.

    A score may lie anywhere in its cell. A higher one lowers the intercept, so its ends are those
    of all scores at the ends of their cells. For the slope it is what the worst places within the
    cells do to the two equations of the fit, through the inverse of their derivatives.
    """
    each = [_bound_of(c, which, options) for c in ends_of_cells(cells)]
    return float(np.mean(each)) if each else 0.0


def _bound_of(cell: tuple[Array, ...], which: str, options: Options) -> float:
    mass, hits, *places = cell
    clip = options.get("clip") or 1e-300
    low, odds, high = (
        weak_calibration.log_odds(np.clip(z, clip, 1 - max(clip, 1e-16))) for z in places
    )
    if which == "intercept":
        fits = [weak_calibration.calibration_in_the_large(o, mass, hits) for o in (low, odds, high)]
        return float(np.nanmax(np.abs(np.array(fits) - fits[1])))
    a, b = weak_calibration.recalibration(odds, mass, hits)
    if not np.isfinite(b):
        return 0.0
    width = np.maximum(high - odds, odds - low)
    p = 1 / (1 + np.exp(-(a + b * odds)))
    weight = mass * p * (1 - p)
    moved = np.abs(b) * weight * width
    residual = hits * (1 - p) + (mass - hits) * p  # Σ w |μ - p| at most
    equations = np.array([moved.sum(), moved @ np.abs(odds) + residual @ width])
    slopes = np.array([[weight.sum(), weight @ odds], [weight @ odds, weight @ odds**2]])
    return float(np.abs(np.linalg.inv(slopes)[1]) @ equations)


def _mean(each: list[float]) -> float:
    return float(np.mean(each)) if each else float("nan")


# the smooth calibration curve ---------------------------------------------------------------------


def smoother_of(score: Array, mass: Array, options: Options) -> Loess:
    """Return the loess of scores with these masses."""
    return Loess(score, mass, options["span"], options["degree"], options["surface"])


def of_smooth_curve(q: float | None) -> dict[str, Any]:
    """Return the parts of a mean (`q` is None) or a quantile of |smoothed observed - predicted|."""

    def value(summary: SortedScores, options: Options) -> tuple[float, None]:
        return _mean([_error(gap, mass, q) for gap, mass in _gaps(summary, options)]), None

    def bound(cells: CellSums, found: float, options: Options) -> float:
        return _moved_bound(cells, found, q, options)

    formula = calibration.ece if q is None else partial(weak_calibration.quantile_of_errors, q=q)
    return {
        "plan": sorted_events,
        "prepare": smoothed_by_loess if q is None else centred_by_loess,
        "formula": formula,
        "exact": value,
        "of_cells": from_cells(value, bound),
        "table_options": tuple(SMOOTHING),
        "closer": closer_curve,
    }


def closer_curve(options: Options, cases: float) -> Options:
    """Return the options of a curve that follows so many cases more closely.

    With a span of 3/4 a local parabola is off by the same however many cases there are, and of
    a thousand that is as much as their noise. The span falls with the cube root of the cases, so
    that its error falls faster than theirs does.

    >>> round(closer_curve({"span": 0.75}, 3200)["span"], 4)  # (50 / 3200)^(1/3) = 1/4
    0.1875
    """
    closer = options["span"] * min(1.0, (FEW / cases) ** (1 / 3))
    return {**options, "span": max(closer, min(LEAST_SPAN, options["span"]))}


def _error(gap: Array, mass: Array, q: float | None) -> float:
    size = np.abs(gap)
    return float(mass @ size / mass.sum() if q is None else weighted_quantile(size, mass, q))


def _gaps(summary: SortedScores, options: Options) -> list[tuple[Array, Array]]:
    """Return the smoothed deviation at every score, with its mass, made once for all metrics."""
    key = ("loess", *(options[name] for name in SMOOTHING))
    if key not in summary.tables:
        found = []
        for s in channels_of(summary):
            smoother = smoother_of(s.score, s.mass, options)
            found.append((smoother.curve(s.hits / s.mass - s.score, s.score), s.mass))
        summary.tables[key] = found
    known: list[tuple[Array, Array]] = summary.tables[key]
    return known


def _cells_of_curve(scores: ScoreMasses, options: Options) -> Array:
    """Return the edges of cells of equal mass, as many as so smooth a curve can tell apart."""
    return equal_mass_edges(scores.score, scores.mass, CURVE_CELLS)


def _loess_of_cells(summary: SortedScores, cells: BinTable, options: Options) -> Array:
    """Return S with S d = mass × the smoothed d / mass over the cells, one per channel."""
    found = []
    for c in range(summary.channels):
        score, mass = cell_centres(cells, c)
        used = mass > 0
        out = np.zeros((len(mass), len(mass)))
        smoother = smoother_of(score[used], mass[used], options).matrix(score[used])
        out[np.ix_(used, used)] = mass[used, None] * smoother / mass[used]
        found.append(out)
    return np.stack(found)


smoothed_by_loess = smoothed(_loess_of_cells, _cells_of_curve)
"""The table of cells whose deviations a loess smooths, that of the sample."""


def centred_by_loess(
    summary: SortedScores, options: Options, like: BinSums | None = None
) -> BinSums:
    """Return the same for quantiles of the curve, which the noise of single places widens.

    The mean of a curve is that of its deviations, whatever cells they are in.
    """
    found: BinSums = smoothed_by_loess(summary, options, like)
    return found if like is not None else found.centred()


def _moved_bound(cells: CellSums, value: float, q: float | None, options: Options) -> float:
    """Return how far the curve of cells may be from that of the scores: measured, not proven.

    Eight times what moving all scores to one end of their cells does, four mean widths of a cell
    and no less than the widest, and the largest share of the labels in a cell of several scores:
    within it the places where R's tree is cut, and so the vertices of the curve, cannot be seen. A
    quantile may also fall on its neighbour. Of 4,386 sets of 60 to 1,500 spread, rounded, saturated
    or piled-up scores none passed it, nor a third of it; E50 and E90 came up to 0.1 and 0.96 of it
    in 1,037. With the square of that share one set in seventy passed it.
    """
    moved, width, hidden = [], 0.0, 0.0
    for end in (2, 4):
        each = []
        for cell in ends_of_cells(cells):
            mass, hits, low, _, high = cell
            widest = float(np.max((high - low)[mass > 0], initial=0.0))
            width = max(width, 4 * float((mass @ (high - low)) / mass.sum()), widest)
            hidden = max(hidden, float(np.where(high > low, mass, 0).max() / mass.sum()))
            score = np.maximum.accumulate(cell[end])
            places = ScoreMasses.of(score, mass, hits)
            smoother = smoother_of(places.score, places.mass, options)
            gap = smoother.curve(places.hits / places.mass - places.score, places.score)
            each.append(_error(gap, places.mass, q))
        moved.append(_mean(each))
    if q is not None:
        found = _gaps(cells.scores(), options)
        width += _mean([_next_to(gap, mass, q, hidden) for gap, mass in found])
    return 8 * max(abs(m - value) for m in moved) + width + hidden


def _next_to(gap: Array, mass: Array, q: float, step: float) -> float:
    """Return how far a quantile is from its neighbours, this share of the labels away."""
    here = _error(gap, mass, q)
    ends = (max(q - step, 0.0), min(q + step, 1.0))
    return max(abs(_error(gap, mass, end) - here) for end in ends)
