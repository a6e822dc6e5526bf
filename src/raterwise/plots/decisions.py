"""Decision curves, and the probabilities of each outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from raterwise.curves.clinical import decision_curve
from raterwise.curves.clinical_tables import DecisionCurve
from raterwise.labels import Labels
from raterwise.palette import IDEAL, SERIES
from raterwise.plots.style import BAND, axes, curve_in, in_style, plain, tidy
from raterwise.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Decisions:
    """A picture of a decision curve."""

    def __init__(self, curve: Any) -> None:
        self.curve = curve

    @classmethod
    def from_results(cls, results: Results, *, ax: Axes | None = None) -> Self:
        """Draw the curve, or the distribution, that results hold.

        Parameters
        ----------
        results : Results
            Results of `evaluate` with "auroc", for two classes.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        DecisionDisplay or OutcomeDisplay
            Itself, drawn.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.2, 0.4], [1, 0, 1], "auroc", resamples=0)
        >>> len(DecisionDisplay.from_results(results).lines_)
        3
        """
        display: Any = cls(DecisionCurve.from_dict(curve_in(results.curves, "operating", "auroc")))
        drawn: Self = display.plot(ax)
        return drawn


class DecisionDisplay(_Decisions):
    """The decision curve: net benefit of the model, of one more rater, and of treating all or none.

    Parameters
    ----------
    curve : DecisionCurve, or mapping of str to DecisionCurve
        The curve to draw: see `raterwise.decision_curve`; of several models the curve of each.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.
    lines_ : dict of str to Line2D
        The lines, by what is acted on.

    See Also
    --------
    raterwise.net_benefit : at one threshold.

    References
    ----------
    Vickers & Elkin, Decision curve analysis, Medical Decision Making 26 (2006), 565-574.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> curve = rw.decision_curve([0.9, 0.8, 0.3, 0.4], labels, resamples=0)
    >>> list(DecisionDisplay(curve).plot().lines_)
    ['model', 'one more rater', 'everybody', 'nobody']
    """

    def __init__(self, curve: DecisionCurve | Mapping[str, DecisionCurve]) -> None:
        self.curves = {"model": curve} if isinstance(curve, DecisionCurve) else dict(curve)

    @classmethod
    def from_predictions(
        cls, probs: Any, labels: Labels | ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> DecisionDisplay:
        """Draw the curve of predictions.

        Parameters
        ----------
        probs : array-like of shape (N, K) or (N,), or mapping of str to these
            Class probabilities; with shape (N,), the probability of class 1 of two.
        labels : Labels or array-like of shape (N,)
            The raters' labels, or one class per case.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        **options : Any
            Options of `raterwise.decision_curve`, such as `groups` and `positive`.

        Returns
        -------
        DecisionDisplay
            Itself, drawn.

        Examples
        --------
        >>> display = DecisionDisplay.from_predictions([0.9, 0.2], [1, 0], resamples=0)
        >>> display.ax_.get_ylabel()
        'Net benefit'
        """
        return cls(decision_curve(probs, labels, **options)).plot(ax)

    @in_style
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        DecisionDisplay
            Itself.

        Examples
        --------
        >>> import raterwise as rw
        >>> curve = rw.decision_curve([0.9, 0.2], [1, 0], resamples=0)
        >>> DecisionDisplay({"a": curve, "b": curve}).plot().lines_["b"].get_label()
        'b'
        """
        self.ax_ = ax = axes(ax, 2.6)
        self.figure_: Any = ax.figure
        self.lines_: dict[str, Any] = {}
        bands = {name: curve.model.net_benefit for name, curve in self.curves.items()}
        one = next(iter(self.curves.values()))
        if one.raters is not None:
            bands["one more rater"] = one.raters.net_benefit
        for i, (name, band) in enumerate(bands.items()):
            colour = SERIES[i % len(SERIES)]
            style = "--" if name == "one more rater" else "-"
            line = ax.plot(one.thresholds, band.value, style, color=colour, label=plain(name))[0]
            if not np.isnan(band.low).all():
                ax.fill_between(one.thresholds, band.low, band.high, color=colour, **BAND)
            self.lines_[name] = line
        for name, values in (("everybody", one.treat_all), ("nobody", one.treat_none)):
            style = ":" if name == "everybody" else "-"
            line = ax.plot(one.thresholds, values, style, color=IDEAL, lw=0.9, label=name)[0]
            self.lines_[name] = line
        highest = max(np.nanmax(band.value) for band in bands.values())
        top = max(1.2 * highest, 1.1 * one.prevalence, 0.01)
        ax.set(xlim=(0, 1), ylim=(-top / 4, top))
        tidy(ax, x="Threshold probability", y="Net benefit")
        ax.legend(loc="upper right", frameon=False)
        return self


class OutcomeDisplay(_Decisions):
    """The distribution of the probabilities for labels of yes and of no.

    Parameters
    ----------
    curve : DecisionCurve
        The decision curve with the distribution; see `raterwise.decision_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    DecisionDisplay : what acting on these probabilities is worth.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.decision_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> OutcomeDisplay(curve).plot(bins=10).ax_.get_xlabel()
    'Predicted probability'
    """

    @classmethod
    def from_predictions(
        cls, probs: ArrayLike, labels: Labels | ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> OutcomeDisplay:
        """Draw the distribution of predictions.

        Parameters
        ----------
        probs : array-like of shape (N, K) or (N,)
            Class probabilities; with shape (N,), the probability of class 1 of two.
        labels : Labels or array-like of shape (N,)
            The raters' labels, or one class per case.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        **options : Any
            Options of `raterwise.decision_curve`, such as `positive` and `weights`.

        Returns
        -------
        OutcomeDisplay
            Itself, drawn.

        Examples
        --------
        >>> display = OutcomeDisplay.from_predictions([0.9, 0.2, 0.4], [1, 0, 1])
        >>> display.curve.prevalence  # two of three
        0.6666666666666666
        """
        return cls(decision_curve(probs, labels, **{"resamples": 0, **options})).plot(ax)

    @in_style
    def plot(self, ax: Axes | None = None, *, bins: int = 20) -> Self:
        """Draw the distributions, yes upwards and no downwards.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        bins : int, default 20
            How many bars; a divisor of 100.

        Returns
        -------
        OutcomeDisplay
            Itself.

        Examples
        --------
        >>> import raterwise as rw
        >>> curve = rw.decision_curve([0.9, 0.2], [1, 0], resamples=0)
        >>> len(OutcomeDisplay(curve).plot(bins=10).ax_.patches)
        20
        """
        self.ax_ = ax = axes(ax, 2.2)
        self.figure_: Any = ax.figure
        sides = (("yes", self.curve.positives, 1, SERIES[1]),
                 ("no", self.curve.negatives, -1, SERIES[0]))  # fmt: skip
        left = np.arange(bins) / bins
        for name, parts, sign, colour in sides:
            share = parts.reshape(bins, -1).sum(axis=1) / max(float(parts.sum()), 1e-300)
            style: dict[str, Any] = {"align": "edge", "color": colour, "alpha": 0.6}
            ax.bar(left, sign * share, 1 / bins, label=f"raters say {name}", **style)
        ax.axhline(0, color=IDEAL, lw=0.6)
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0%}")
        ax.set_xlim(0, 1)
        tidy(ax, x="Predicted probability", y="Part of these labels")
        ax.legend(loc="lower right", frameon=False)
        return self
