"""Does confidence separate right from wrong? The CCC and the risk-coverage curve."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from raterwise.curves import ThresholdCurve, threshold_curve
from raterwise.errors import UndefinedMetricError
from raterwise.labels import Labels
from raterwise.palette import IDEAL
from raterwise.plots.style import (
    axes,
    colour_of,
    curve_in,
    curve_with_band,
    identity,
    in_style,
    plain,
    tidy,
)
from raterwise.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _ThresholdDisplay(ABC):
    """A picture of a threshold curve, with its band where there is one."""

    _height = 3.4
    _legend: Any = "lower right"
    _at_the_end = (-6, -18)
    """Where the text of a point near the end of the curve begins, from the point."""

    def __init__(self, curve: ThresholdCurve) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(
        cls,
        probs: ArrayLike,
        labels: Labels | ArrayLike,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        threshold: float | None = None,
        colour: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the curve of predictions.

        Parameters
        ----------
        probs : array-like of shape (N, K) or (N,)
            Class probabilities; (N,) are those of class 1 of two.
        labels : Labels or array-like of shape (N,)
            What the raters said, or one class per case.
        ax : Axes, default None
            Where to draw; by default a new figure.
        name : str, default None
            For the legend.
        threshold : float, default None
            Marks an operating point: accept from this confidence.
        colour : str, default None
            Of the curve; by default the next of the palette.
        **options : Any
            Those of `curves.threshold_curve`, such as `groups` and `resamples`.

        Returns
        -------
        CCCDisplay or RiskCoverageDisplay
            Itself, drawn.

        Examples
        --------
        >>> probs, classes = [0.9, 0.8, 0.3, 0.4], [1, 0, 0, 0]
        >>> display = CCCDisplay.from_predictions(probs, classes, threshold=0.75, resamples=0)
        >>> [text.get_text() for text in display.ax_.texts]
        ['accept from 75%']
        """
        curve = threshold_curve(probs, labels, **options)
        return cls(curve).plot(ax=ax, name=name, threshold=threshold, colour=colour)

    @classmethod
    def from_results(
        cls,
        results: Results,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        threshold: float | None = None,
        colour: str | None = None,
    ) -> Self:
        """Draw the curve that results hold.

        Parameters
        ----------
        results : Results
            Of `evaluate` with "auccc".
        ax : Axes, default None
            Where to draw; by default a new figure.
        name : str, default None
            For the legend.
        threshold : float, default None
            Marks an operating point: accept from this confidence.
        colour : str, default None
            Of the curve; by default the next of the palette.

        Returns
        -------
        CCCDisplay or RiskCoverageDisplay
            Itself, drawn.

        Raises
        ------
        InvalidInputError
            If the results hold no such curve.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 0], "auccc", resamples=0)
        >>> RiskCoverageDisplay.from_results(results).ax_.get_ylabel()
        'Risk: accepted and wrong'
        """
        curve = ThresholdCurve.from_dict(curve_in(results.curves, "thresholds", "auccc"))
        display = cls._of_results(curve, results)
        return display.plot(ax=ax, name=name, threshold=threshold, colour=colour)

    @classmethod
    def _of_results(cls, curve: ThresholdCurve, results: Results) -> Self:
        return cls(curve)

    @in_style
    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        threshold: float | None = None,
        colour: str | None = None,
        **line: Any,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, default None
            Where to draw; by default a new figure.
        name : str, default None
            For the legend.
        threshold : float, default None
            Marks an operating point: accept from this confidence.
        colour : str, default None
            Of the curve; by default the next of the palette.
        **line : Any
            For matplotlib's `plot`.

        Returns
        -------
        CCCDisplay or RiskCoverageDisplay
            Itself.

        Examples
        --------
        >>> from raterwise.curves import threshold_curve
        >>> curve = threshold_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 0], resamples=0)
        >>> RiskCoverageDisplay(curve).plot(linestyle=":").line_.get_linestyle()
        ':'
        """
        self.ax_ = ax = axes(ax, self._height)
        self.figure_: Any = ax.figure
        colour = colour_of(ax, colour)
        x, y = self._points()
        label = self._label(name)
        shown = {"label": label, **line}
        self.line_, self.band_ = curve_with_band(ax, x, y, *self._band(), colour, shown)
        self._frame(ax)
        if threshold is not None:
            # The last threshold that is not below the one asked for accepts the same cases.
            i = int(np.searchsorted(-self.curve.thresholds, -threshold, side="right")) - 1
            self._mark(ax, float(x[i]), float(y[i]), f"accept from {threshold:.0%}", colour)
        if label:
            ax.legend(loc=self._legend, frameon=False)
        return self

    def _mark(self, ax: Any, x: float, y: float, text: str, colour: str) -> None:
        """Draw a point of the curve, and its text within the axes and beside the curve."""
        ax.plot(x, y, "o", color=colour, mec="white", zorder=4, clip_on=False)
        place = (6, 6 if y < 0.1 * ax.get_ylim()[1] else -10)
        if at_the_end := x > 0.6:
            place = self._at_the_end
        ax.annotate(text, (x, y), place, textcoords="offset points", fontsize=7,
                    ha="right" if at_the_end else "left")  # fmt: skip

    def _label(self, name: str | None) -> str | None:
        return None if name is None else plain(name)

    @abstractmethod
    def _points(self) -> tuple[Any, Any]:
        """Return the curve, x and y."""

    @abstractmethod
    def _band(self) -> tuple[Any, Any]:
        """Return the lower and the upper edge of the band over the same x; None where none is."""

    @abstractmethod
    def _frame(self, ax: Any) -> None:
        """Draw what the curve is seen against, and name the axes."""


class CCCDisplay(_ThresholdDisplay):
    """The confidence-classification characteristic curve (CCC Fig 2).

    The part of the right predictions that is accepted against the part of the wrong ones.

    Parameters
    ----------
    curve : ThresholdCurve
        What to draw: see `curves.threshold_curve`.
    area : float, default None
        To write beside it; that under `curve` if left out. Results keep some of a curve's points
        and the area under all of them.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band where there is one.

    See Also
    --------
    auccc : the area under it.
    RiskCoverageDisplay : the same thresholds as risk and coverage.

    Examples
    --------
    >>> from raterwise.curves import threshold_curve
    >>> curve = threshold_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 0], resamples=0)
    >>> CCCDisplay(curve).plot().ax_.get_legend().get_texts()[0].get_text()
    'AUCCC 0.333'
    """

    def __init__(self, curve: ThresholdCurve, area: float | None = None) -> None:
        if not (curve.correct_accepts[-1] > 0 and curve.incorrect_accepts[-1] > 0):
            raise UndefinedMetricError(
                "curve: needs right predictions and wrong ones to tell apart; all are of one kind"
            )
        super().__init__(curve)
        self.area = curve.area if area is None else area

    @classmethod
    def _of_results(cls, curve: ThresholdCurve, results: Results) -> Self:
        found = results.get("auccc")
        return cls(curve, None if found is None else found.value)

    def _points(self) -> tuple[Any, Any]:
        return 1 - self.curve.correct_reject_rate, self.curve.correct_accept_rate

    def _band(self) -> tuple[Any, Any]:
        return self.curve.rate_low, self.curve.rate_high

    def _label(self, name: str | None) -> str | None:
        area = f"AUCCC {self.area:.3f}"
        return area if name is None else plain(f"{name} ({area})")

    def _frame(self, ax: Any) -> None:
        identity(ax, IDEAL, None)
        tidy(ax, x="Wrong predictions accepted", y="Right predictions accepted", unit_square=True)


class RiskCoverageDisplay(_ThresholdDisplay):
    """The risk-coverage curve: how often the accepted predictions are wrong.

    Parameters
    ----------
    curve : ThresholdCurve
        What to draw: see `curves.threshold_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band where there is one.

    See Also
    --------
    aurc, augrc : areas under it.
    CCCDisplay : the same thresholds as rates of right and wrong predictions.

    Examples
    --------
    >>> from raterwise.curves import threshold_curve
    >>> curve = threshold_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 0], resamples=0)
    >>> RiskCoverageDisplay(curve).plot().line_.get_xdata().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    _height = 2.6
    _legend = "upper left"
    _at_the_end = (-6, 6)

    def _points(self) -> tuple[Any, Any]:
        return self.curve.coverage, self.curve.risk

    def _band(self) -> tuple[Any, Any]:
        return self.curve.risk_low, self.curve.risk_high

    def _frame(self, ax: Any) -> None:
        tidy(ax, x="Coverage: predictions accepted", y="Risk: accepted and wrong")
        ax.set_xlim(0, 1)
        ax.set_ylim(bottom=0)
