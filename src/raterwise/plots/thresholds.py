"""Curves over all thresholds: the CCC, risk and coverage, ROC, precision and recall."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from raterwise.curves import ThresholdCurve, threshold_curve
from raterwise.curves.clinical import precision_recall_curve, roc_curve
from raterwise.curves.clinical_tables import PrecisionRecallCurve, RocCurve
from raterwise.errors import InvalidInputError, UndefinedMetricError
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


class _CurveDisplay(ABC):
    """A curve over the thresholds of a model, with its band where there is one."""

    _height = 3.4
    _legend: Any = "lower right"
    _at_the_end = (-6, -18)
    """Where the text of a point near the end of the curve begins, from the point."""
    _marks = "accept"
    """What a case is from a threshold on."""
    _curve_of: Any
    """Makes the curve of predictions."""

    def __init__(self, curve: Any) -> None:
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
            Class probabilities; with shape (N,), the probability of class 1 of two.
        labels : Labels or array-like of shape (N,)
            The raters' labels, or one class per case.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        name : str, default None
            Name in the legend.
        threshold : float, default None
            Marks an operating point: accept from this confidence, or test positive from this
            probability.
        colour : str, default None
            Colour of the curve; by default the next in the palette.
        **options : Any
            Options of `curves.threshold_curve`, `raterwise.roc_curve` or
            `raterwise.precision_recall_curve`, depending on the curve, such as `groups`.

        Returns
        -------
        Self
            The display, drawn.

        Examples
        --------
        >>> probs, classes = [0.9, 0.8, 0.3, 0.4], [1, 0, 0, 0]
        >>> display = CCCDisplay.from_predictions(probs, classes, threshold=0.75, resamples=0)
        >>> [text.get_text() for text in display.ax_.texts]
        ['accept from 75%']
        """
        curve = cls._curve_of(probs, labels, **options)
        return cls(curve).plot(ax=ax, name=name, threshold=threshold, colour=colour)

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
            Axes to draw in; by default those of a new figure.
        name : str, default None
            Name in the legend.
        threshold : float, default None
            Marks an operating point: accept from this confidence, or test positive from this
            probability.
        colour : str, default None
            Colour of the curve; by default the next in the palette.
        **line : Any
            For matplotlib's `plot`.

        Returns
        -------
        Self
            The display.

        Raises
        ------
        InvalidInputError
            If the curve has no point at the threshold: no probability is as high.

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
        x, y, low, high, area = self._drawn()
        both = f"{name} ({area})" if name and area else name or area
        label = plain(both) if both else None
        shown = {"label": label, **line}
        self.line_, self.band_ = curve_with_band(ax, x, y, low, high, colour, shown)
        self._frame(ax)
        if threshold is not None:
            # The last threshold that is not below the one asked for accepts the same cases.
            i = int(np.searchsorted(-self.curve.thresholds, -threshold, side="right")) - 1
            if i < 0:
                most = self.curve.thresholds[0]
                raise InvalidInputError(f"threshold: must be at most {most:g}; got {threshold}")
            text = f"{self._marks} from {threshold:.0%}"
            self._mark(ax, float(x[i]), float(y[i]), text, colour)
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

    @abstractmethod
    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        """Return x, y, the edges of the band over x (or None), and the area in words, or ""."""

    @abstractmethod
    def _frame(self, ax: Any) -> None:
        """Draw what the curve is seen against, and name the axes."""


class _ConfidenceDisplay(_CurveDisplay):
    """A picture of what accepting the confident predictions does."""

    curve: ThresholdCurve
    _curve_of = staticmethod(threshold_curve)

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
            Results of `evaluate` with "auccc".
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        name : str, default None
            Name in the legend.
        threshold : float, default None
            Marks an operating point: accept from this confidence.
        colour : str, default None
            Colour of the curve; by default the next in the palette.

        Returns
        -------
        Self
            The display, drawn.

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


class CCCDisplay(_ConfidenceDisplay):
    """The confidence-classification characteristic curve (CCC Fig 2).

    The part of the right predictions that is accepted against the part of the wrong ones.

    Parameters
    ----------
    curve : ThresholdCurve
        The curve to draw: see `curves.threshold_curve`.
    area : float, default None
        The area to print; by default the area under `curve`. Results store some points of a curve
        and the area under all of them.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band if there is one.

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

    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        c, x = self.curve, 1 - self.curve.correct_reject_rate
        return x, c.correct_accept_rate, c.rate_low, c.rate_high, f"AUCCC {self.area:.3f}"

    def _frame(self, ax: Any) -> None:
        identity(ax)
        tidy(ax, x="Wrong predictions accepted", y="Right predictions accepted", unit_square=True)


class RiskCoverageDisplay(_ConfidenceDisplay):
    """The risk-coverage curve: the error rate among the accepted predictions.

    Parameters
    ----------
    curve : ThresholdCurve
        The curve to draw: see `curves.threshold_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band if there is one.

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

    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        c = self.curve
        return c.coverage, c.risk, c.risk_low, c.risk_high, ""

    def _frame(self, ax: Any) -> None:
        tidy(ax, x="Coverage: predictions accepted", y="Risk: accepted and wrong")
        ax.set_xlim(0, 1)
        ax.set_ylim(bottom=0)


class RocDisplay(_CurveDisplay):
    """The ROC curve with its band and area.

    Parameters
    ----------
    curve : RocCurve
        The curve to draw: see `raterwise.roc_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band if there is one.

    See Also
    --------
    raterwise.auroc : the area under it.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.roc_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> RocDisplay(curve).plot().ax_.get_legend().get_texts()[0].get_text()
    'AUROC 0.750'
    """

    curve: RocCurve
    _curve_of = staticmethod(roc_curve)
    _marks = "positive"

    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        c = self.curve
        return c.false_positive_rate, c.sensitivity, c.low, c.high, f"AUROC {c.area:.3f}"

    def _frame(self, ax: Any) -> None:
        identity(ax)
        tidy(ax, x="1 − specificity", y="Sensitivity", unit_square=True)


class PrecisionRecallDisplay(_CurveDisplay):
    """The precision-recall curve with its band; the dashed line is the prevalence.

    Parameters
    ----------
    curve : PrecisionRecallCurve
        The curve to draw: see `raterwise.precision_recall_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band if there is one.

    See Also
    --------
    raterwise.average_precision : the area under its steps.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.precision_recall_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> PrecisionRecallDisplay(curve).plot().line_.get_label()
    'average precision 0.833'
    """

    curve: PrecisionRecallCurve
    _curve_of = staticmethod(precision_recall_curve)
    _legend = "best"
    _marks = "positive"

    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        c = self.curve
        area = f"average precision {c.average_precision:.3f}"
        return c.recall, c.precision, c.low, c.high, area

    def _frame(self, ax: Any) -> None:
        if not any(line.get_gid() == "prevalence" for line in ax.lines):
            line = ax.axhline(self.curve.prevalence, color=IDEAL, lw=0.8, ls=(0, (4, 3)), zorder=1)
            line.set_gid("prevalence")
        tidy(ax, x="Sensitivity", y="Positive predictive value", unit_square=True)
