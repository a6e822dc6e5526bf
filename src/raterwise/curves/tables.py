"""The tables behind the pictures: what `raterwise.curves` returns, and results keep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from raterwise.brief import brief
from raterwise.metrics.ranking import CCCCurve
from raterwise.types import FloatArray

MOST_THRESHOLDS = 200
"""How many points of a threshold curve a result keeps."""


class Table:
    """A table of numbers that passes through JSON: what every curve is."""

    parts: ClassVar[Mapping[str, type[Table]]] = {}
    """The fields that are tables themselves."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, None for what is not finite.

        Returns
        -------
        dict
            What JSON can hold; without the bands and the like that there need not be, where there
            are none.

        Examples
        --------
        >>> import raterwise as rw
        >>> curve = rw.curves.reliability_curve([0.9, 0.2], [1, 0], bins=2, resamples=0)
        >>> curve.to_dict()["cases"]
        [0.0, 2.0]
        """
        columns = [(f, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        return {f.name: as_plain(v) for f, v in columns if v is not None or f.default is MISSING}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the curve that `to_dict` wrote down.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned.

        Returns
        -------
        Self
            The same curve.

        Examples
        --------
        >>> import raterwise as rw
        >>> curve = rw.curves.reliability_curve([0.9, 0.2], [1, 0], bins=2, resamples=0)
        >>> rw.curves.ReliabilityCurve.from_dict(curve.to_dict()).name
        'top label'
        """
        columns = {name: as_numbers(v) for name, v in content.items() if name not in cls.parts}
        for name in cls.parts.keys() & content.keys():
            inner = content[name]
            columns[name] = None if inner is None else cls.parts[name].from_dict(inner)
        return cls(**cls._restored(columns))

    @staticmethod
    def _restored(columns: dict[str, Any]) -> dict[str, Any]:
        """Return the columns with what JSON could not hold."""
        return columns


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Table):
    """Observed against predicted frequency, bin by bin; NaN if a bin is empty.

    Attributes
    ----------
    name : str
        The event: "top label", a class, or "disagreement".
    edges : array of shape (bins + 1,)
        Edges of the bins.
    cases : array of shape (bins,)
        Number of cases in each bin.
    share : array of shape (bins,)
        Share of all weight in each bin.
    predicted : array of shape (bins,)
        The mean predicted probability.
    observed : array of shape (bins,)
        The frequency among the raters.
    low, high : arrays of shape (bins,)
        The interval of the observed frequency; NaN without resampling.
    level : float
        Confidence level of the intervals.
    gap : float
        Predicted minus observed, over all cases: positive is over-confident.
    gap_low, gap_high : float
        Its interval.

    See Also
    --------
    curves.reliability_curve : returns it.
    plots.ReliabilityDisplay : draws it.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.curves.reliability_curve([0.9, 0.9, 0.2], [1, 0, 0], bins=2, resamples=0)
    >>> round(curve.gap, 4)
    0.2
    """

    __repr__ = brief

    name: str
    edges: FloatArray
    cases: FloatArray
    share: FloatArray
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    gap: float
    gap_low: float
    gap_high: float


@dataclass(frozen=True, eq=False)
class ThresholdCurve(Table, CCCCurve):
    """Accepted and rejected predictions at each threshold: confidence >= threshold is accepted.

    Counts are of annotations, as in AUCCC: a prediction that two of three raters share is right
    twice and wrong once.

    Attributes
    ----------
    thresholds : array of shape (T,)
        Falling; the first is infinite, where nothing is accepted.
    correct_accepts, incorrect_accepts, correct_rejects, incorrect_rejects : arrays of shape (T,)
        Counts at each threshold.
    accepted_cases : array of shape (T,)
        How many cases are accepted.
    rate_low, rate_high : arrays of shape (T,) or None
        The interval of the share of right predictions accepted (the CCC's y) for the same share of
        wrong ones; None without resampling.
    risk_low, risk_high : arrays of shape (T,) or None
        The interval of the risk at this threshold; None without resampling.

    See Also
    --------
    curves.threshold_curve : returns it.
    plots.RiskCoverageDisplay : draws it.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.curves.threshold_curve([[0.9, 0.1], [0.4, 0.6]], [0, 0], resamples=0)
    >>> curve.coverage.tolist(), curve.risk[1:].tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.5])
    """

    __repr__ = brief

    accepted_cases: FloatArray
    rate_low: FloatArray | None = None
    rate_high: FloatArray | None = None
    risk_low: FloatArray | None = None
    risk_high: FloatArray | None = None

    @property
    def of_shares(self) -> bool:
        """Whether the confidences may be read as percentages: all of them are within [0, 1]."""
        finite = self.thresholds[np.isfinite(self.thresholds)]
        return bool(((finite >= 0) & (finite <= 1)).all())

    @property
    def coverage(self) -> FloatArray:
        """The share of annotations whose prediction is accepted."""
        accepted = self.correct_accepts + self.incorrect_accepts
        return np.asarray(accepted / (self.correct_accepts[-1] + self.incorrect_accepts[-1]))

    @property
    def risk(self) -> FloatArray:
        """The share of accepted predictions that are wrong; NaN if nothing is accepted."""
        accepted = self.correct_accepts + self.incorrect_accepts
        with np.errstate(invalid="ignore"):
            return np.asarray(self.incorrect_accepts / np.where(accepted > 0, accepted, np.nan))

    @staticmethod
    def _restored(columns: dict[str, Any]) -> dict[str, Any]:
        known = columns["thresholds"]
        return {**columns, "thresholds": np.where(np.isnan(known), np.inf, known)}

    def thinned(self, most: int = MOST_THRESHOLDS) -> ThresholdCurve:
        """Return fewer of the points, evenly spread over the coverage, ends included.

        Parameters
        ----------
        most : int, default 200
            Maximum number of points.

        Returns
        -------
        ThresholdCurve
            The remaining points, unchanged.

        Examples
        --------
        >>> import raterwise as rw
        >>> curve = rw.curves.threshold_curve([[0.9, 0.1], [0.4, 0.6]], [0, 0], resamples=0)
        >>> len(curve.thinned(2).thresholds)
        2
        """
        if len(self.thresholds) <= most:
            return self
        kept = spread_evenly(self.coverage, most)
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        return ThresholdCurve(
            **{name: column[kept] for name, column in columns.items() if column is not None}
        )


def spread_evenly(coverage: FloatArray, most: int = MOST_THRESHOLDS) -> Any:
    """Return which of the points to keep, so that few are evenly spread over the coverage."""
    if len(coverage) <= most:
        return slice(None)
    wanted = np.linspace(0, 1, most)
    return np.unique(np.searchsorted(coverage, wanted).clip(max=len(coverage) - 1))


def as_plain(value: Any) -> Any:
    """Return text, a number, an array or a table as JSON holds it: None where it is not finite."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return [x if math.isfinite(x) else None for x in value.astype(np.float64).tolist()]
    number = float(value)
    return number if math.isfinite(number) else None


def as_numbers(value: Any) -> Any:
    """Return what `as_plain` wrote down: NaN for None, arrays for lists."""
    if isinstance(value, list):
        return np.array([np.nan if item is None else item for item in value], np.float64)
    return np.nan if value is None else value
