"""Reliability diagrams: what was predicted against what the raters said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from raterwise.curves import ReliabilityCurve, reliability_curve
from raterwise.curves.smooth import CalibrationCurve
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.plots.style import axes, colour_of, curve_in, identity, in_style, plain, tidy
from raterwise.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityDisplay:
    """A reliability diagram with an interval for each bin and the number of cases below it.

    Parameters
    ----------
    curve : ReliabilityCurve
        The curve to draw: see `curves.reliability_curve`.
    smooth : CalibrationCurve, default None
        A smooth curve with its band to draw over the bins: see `calibration_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.
    histogram_ax_ : Axes or None
        The axes of the counts; None without them.
    line_ : Line2D
        The curve.

    See Also
    --------
    DisagreementReliabilityDisplay : how often two raters differ.

    Examples
    --------
    >>> from raterwise.curves import reliability_curve
    >>> curve = reliability_curve([0.9, 0.9, 0.6, 0.2], [1, 1, 0, 0], bins=5, resamples=0)
    >>> ReliabilityDisplay(curve).plot().line_.get_xdata().round(2).tolist()
    [0.6, 0.87]
    """

    x_label = "Confidence"
    y_label = "Raters who agree"
    question = "top_label"

    def __init__(self, curve: ReliabilityCurve, smooth: CalibrationCurve | None = None) -> None:
        self.curve = curve
        self.smooth = smooth

    @classmethod
    def from_predictions(
        cls,
        probs: ArrayLike,
        labels: Labels | ArrayLike,
        *,
        question: Literal["top_label", "positive", "per_class", "disagreement"] | None = None,
        of_class: int | None = None,
        bins: int | ArrayLike = 15,
        ax: Axes | None = None,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of predictions.

        Parameters
        ----------
        probs : array-like of shape (N, K) or (N,)
            Class probabilities; with shape (N,), the probability of class 1 of two.
        labels : Labels or array-like of shape (N,)
            The raters' labels, or one class per case.
        question : {"top_label", "positive", "per_class", "disagreement"}, default None
            What is asked of a case; by default what the display is about, or "per_class" with
            `of_class`.
        of_class : int, default None
            Draw that of one class's probability.
        bins : int or array-like, default 15
            Number of equal-width bins, or their edges from 0 to 1.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        name : str, default None
            Name in the legend.
        histogram : bool, default True
            Whether to draw the number of cases in each bin.
        colour : str, default None
            Colour of the curve; by default the next in the palette.
        **options : Any
            Options of `curves.reliability_curve`, such as `groups` and `resamples`.

        Returns
        -------
        ReliabilityDisplay
            Itself, drawn.

        Examples
        --------
        >>> display = ReliabilityDisplay.from_predictions(
        ...     [0.9, 0.9, 0.6, 0.2], [1, 1, 0, 0], resamples=0
        ... )
        >>> display.ax_.get_ylabel()
        'Raters who agree'
        """
        asked: Any = question or ("per_class" if of_class is not None else cls.question)
        curve = reliability_curve(probs, labels, asked, bins, of_class=of_class, **options)
        return cls(curve).plot(ax=ax, name=name, histogram=histogram, colour=colour)

    @classmethod
    def from_results(
        cls,
        results: Results,
        *,
        of_class: str | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
    ) -> Self:
        """Draw the diagram that results hold.

        Parameters
        ----------
        results : Results
            Results of `evaluate` with "ece", or with "classwise_ece" for one class; for the diagram
            of disagreement, with "disagreement_calibration_error".
        of_class : str, default None
            The name of a class; by default the diagram is that of the predicted class.
            Disagreement has no classes.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        name : str, default None
            Name in the legend.
        histogram : bool, default True
            Whether to draw the number of cases in each bin.
        colour : str, default None
            Colour of the curve; by default the next in the palette.

        Returns
        -------
        ReliabilityDisplay
            Itself, drawn.

        Raises
        ------
        InvalidInputError
            If the results hold no such curve; the message names the metric that brings it.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.9, 0.6, 0.2], [1, 1, 0, 0], "ece", resamples=0)
        >>> ReliabilityDisplay.from_results(results, histogram=False).ax_.get_xlabel()
        'Confidence'
        """
        content = cls._held(results, of_class)
        drawn = results.curves.get("smooth")
        smooth = None
        if drawn is not None and drawn["name"] == of_class:
            smooth = CalibrationCurve.from_dict(drawn)
        display = cls(ReliabilityCurve.from_dict(content), smooth)
        return display.plot(ax=ax, name=name, histogram=histogram, colour=colour)

    @staticmethod
    def _held(results: Results, of_class: str | None) -> Any:
        if of_class is None:
            return curve_in(results.curves, "top_label", "ece")
        curves = curve_in(results.curves, "per_class", "classwise_ece")
        names = [curve["name"] for curve in curves]
        if of_class not in names:
            raise InvalidInputError(f"of_class: must be one of {names}; got {of_class!r}")
        return curves[names.index(of_class)]

    @in_style
    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
        **line: Any,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        name : str, default None
            Name in the legend.
        histogram : bool, default True
            Whether to draw the number of cases in each bin.
        colour : str, default None
            Colour of the curve; by default the next in the palette.
        **line : Any
            For matplotlib's `plot`.

        Returns
        -------
        ReliabilityDisplay
            Itself.

        Examples
        --------
        >>> from raterwise.curves import reliability_curve
        >>> curve = reliability_curve([0.9, 0.9, 0.6, 0.2], [1, 1, 0, 0], resamples=0)
        >>> ReliabilityDisplay(curve).plot(name="model 3", linestyle="--").line_.get_linestyle()
        '--'
        """
        self.ax_ = ax = axes(ax)
        self.figure_: Any = ax.figure
        colour = colour_of(ax, colour)
        curve = self.curve
        seen = curve.cases > 0
        x, y = curve.predicted[seen], curve.observed[seen]
        identity(ax)
        dots: Any = {"marker": "o", "mfc": colour, "mec": "white", "mew": 0.5, "clip_on": False}
        label = plain(name) if name else "_nolegend_"
        style = {"color": colour, **dots, "label": label, "zorder": 3, **line}
        self.line_ = ax.plot(x, y, **style)[0]
        self.line_.set_gid("series")
        if np.isfinite(curve.low[seen]).all():
            ax.vlines(x, curve.low[seen], curve.high[seen], color=colour, lw=0.9, zorder=2)
        if self.smooth is not None:
            self._smooth_curve(colour)
        classwise = self.question == "top_label" and curve.name not in ("top label", "positive")
        x_label = f"Predicted probability of {plain(curve.name)}" if classwise else self.x_label
        y_label = f"Raters who say {plain(curve.name)}" if classwise else self.y_label
        tidy(ax, x=x_label, y=y_label, unit_square=True)
        self.histogram_ax_ = self._counts(colour) if histogram else None
        if name is not None:
            ax.legend(loc="upper left", frameon=False)
        return self

    def _smooth_curve(self, colour: str) -> None:
        """Draw the smooth curve and its band over the bins."""
        assert self.smooth is not None
        x, seen = self.smooth.predicted, np.isfinite(self.smooth.observed)
        style: dict[str, Any] = {"color": colour, "lw": 1.6, "zorder": 4, "gid": "smooth"}
        self.ax_.plot(x[seen], self.smooth.observed[seen], **style)
        if np.isfinite(self.smooth.low[seen]).all():
            low, high = self.smooth.low[seen], self.smooth.high[seen]
            self.ax_.fill_between(x[seen], low, high, color=colour, alpha=0.15, lw=0, zorder=1)
        self.line_.set_linestyle("none")  # of the bins the dots are enough

    def _counts(self, colour: str) -> Any:
        """Draw how many cases each bin holds, under the diagram and to the same scale."""
        below = self.ax_.inset_axes([0, -0.30, 1, 0.2], sharex=self.ax_)
        edges, cases = self.curve.edges, self.curve.cases
        below.bar(edges[:-1], cases, np.diff(edges), align="edge", color=colour, alpha=0.35, lw=0)
        below.set_ylim(0, max(cases.max() * 1.08, 1))
        below.set_yticks([cases.max()], [f"{cases.max():g}"])
        below.set_ylabel("Cases")
        below.spines[["top", "right"]].set_visible(False)
        below.set_xlabel(self.ax_.get_xlabel())
        self.ax_.set_xlabel("")
        self.ax_.tick_params(labelbottom=False)
        return below


class DisagreementReliabilityDisplay(ReliabilityDisplay):
    """A reliability diagram of disagreement: how often two raters of a case differ (LH Fig 1).

    Parameters
    ----------
    curve : ReliabilityCurve
        The curve to draw: `curves.reliability_curve` with question="disagreement".
    smooth : None
        Disagreement has no smooth curve.

    Attributes
    ----------
    ax_, figure_, histogram_ax_, line_ : Axes, Figure, Axes, Line2D
        As in ReliabilityDisplay.

    See Also
    --------
    ReliabilityDisplay : what the raters say.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_counts([[2, 0], [1, 1], [0, 2], [1, 1]])
    >>> probs = [0.2, 0.4, 0.9, 0.6]
    >>> display = DisagreementReliabilityDisplay.from_predictions(probs, labels, resamples=0)
    >>> display.ax_.get_ylabel()
    'Pairs of raters who differ'
    """

    x_label = "Predicted disagreement of two raters"
    y_label = "Pairs of raters who differ"
    question = "disagreement"

    @staticmethod
    def _held(results: Results, of_class: str | None) -> Any:
        if of_class is not None:
            raise InvalidInputError(f"of_class: disagreement has no classes; got {of_class!r}")
        return curve_in(results.curves, "disagreement", "disagreement_calibration_error")
