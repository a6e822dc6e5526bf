"""Does confidence separate right from wrong? The CCC and the risk-coverage curve."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from quorate.curves import ThresholdCurve, threshold_curve
from quorate.palette import IDEAL
from quorate.plots.style import (
    axes,
    colour_of,
    curve_in,
    identity,
    in_style,
    plain,
    tidy,
)
from quorate.results import Results

__all__ = ["CCCDisplay", "RiskCoverageDisplay"]


class _ThresholdDisplay:
    """A picture of a threshold curve."""

    def __init__(self, curve: ThresholdCurve) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(
        cls,
        probs: Any,
        labels: Any,
        *,
        weights: Any = None,
        ax: Any = None,
        name: str | None = None,
        threshold: float | None = None,
        colour: str | None = None,
    ) -> Self:
        """Draw the curve of predictions; `threshold` marks an operating point."""
        curve = threshold_curve(probs, labels, weights=weights)
        return cls(curve).plot(ax=ax, name=name, threshold=threshold, colour=colour)

    @classmethod
    def from_results(
        cls,
        results: Results,
        *,
        ax: Any = None,
        name: str | None = None,
        threshold: float | None = None,
        colour: str | None = None,
    ) -> Self:
        """Draw the curve that results hold."""
        curve = ThresholdCurve.from_dict(curve_in(results.curves, "thresholds", "auccc"))
        return cls(curve).plot(ax=ax, name=name, threshold=threshold, colour=colour)

    @in_style
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        threshold: float | None = None,
        colour: str | None = None,
        **line: Any,
    ) -> Self:
        """Draw into `ax`, or into a new figure; `line` goes to matplotlib's `plot`."""
        self.ax_ = ax = axes(ax, self._height)
        self.figure_ = ax.figure
        colour = colour_of(ax, colour)
        x, y = self._points()
        label = self._label(name)
        self.line_ = ax.plot(x, y, **{"color": colour, "label": label, "zorder": 3, **line})[0]
        self.line_.set_gid("series")
        if threshold is not None:
            # The last threshold that is not below the one asked for accepts the same cases.
            i = int(np.searchsorted(-self.curve.thresholds, -threshold, side="right")) - 1
            ax.plot(x[i], y[i], "o", color=colour, mec="white", zorder=4, clip_on=False)
            text = f"accept from {threshold:.0%}"
            ax.annotate(text, (x[i], y[i]), (6, -10), textcoords="offset points", fontsize=7)
        self._frame(ax)
        if label:
            ax.legend(loc=self._legend, frameon=False)
        return self

    _height = 3.4
    _legend = "lower right"

    def _points(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def _label(self, name: str | None) -> str | None:
        return None if name is None else plain(name)

    def _frame(self, ax: Any) -> None:
        raise NotImplementedError


class CCCDisplay(_ThresholdDisplay):
    """The confidence-classification characteristic curve (CCC Fig 2).

    The part of the right predictions that is accepted against the part of the wrong ones.
    """

    def _points(self) -> tuple[Any, Any]:
        return 1 - self.curve.correct_reject_rate, self.curve.correct_accept_rate

    def _label(self, name: str | None) -> str | None:
        area = f"AUCCC {self.curve.area:.3f}"
        return area if name is None else f"{plain(name)} ({area})"

    def _frame(self, ax: Any) -> None:
        identity(ax, IDEAL, None)
        tidy(ax, x="Wrong predictions accepted", y="Right predictions accepted", unit_square=True)


class RiskCoverageDisplay(_ThresholdDisplay):
    """The risk-coverage curve: how often the accepted predictions are wrong."""

    _height = 2.6
    _legend = "upper left"

    def _points(self) -> tuple[Any, Any]:
        return self.curve.coverage, self.curve.risk

    def _frame(self, ax: Any) -> None:
        tidy(ax, x="Coverage: predictions accepted", y="Risk: accepted and wrong")
        ax.set_xlim(0, 1)
        ax.set_ylim(bottom=0)
