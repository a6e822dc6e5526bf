"""The calibration-dispersion map: two ways for several models to be wrong, in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.palette import IDEAL, SERIES
from raterwise.plots.style import axes, in_style, plain, tidy
from raterwise.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP"


class CalibrationDispersionDisplay:
    """Calibration loss against dispersion loss, a mark for each model (LH appendix Figs 5a and 6a).

    Their sum, the epistemic loss, is constant along the grey lines.

    Parameters
    ----------
    models : mapping of str to Results, or Results
        The results of each model, by name; or the results of one. They must hold "dispersion_loss"
        and "calibration_loss".

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    calibration_loss, dispersion_loss : the numbers that it shows.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_counts([[2, 0], [1, 1], [0, 2], [1, 1]])
    >>> metrics = "dispersion_loss,calibration_loss"
    >>> results = rw.evaluate([0.2, 0.4, 0.9, 0.6], labels, metrics, resamples=0)
    >>> CalibrationDispersionDisplay({"model 3": results}).plot().ax_.get_xlabel()
    'Dispersion loss'
    """

    def __init__(self, models: Mapping[str, Results] | Results) -> None:
        models = {"model": models} if isinstance(models, Results) else models
        for name, results in models.items():
            for metric in ("dispersion_loss", "calibration_loss"):
                if metric not in results or results[metric].value is None:
                    raise InvalidInputError(f"models: {name!r} has no {metric}")
        self.models = dict(models)

    @classmethod
    def from_results(
        cls, models: Mapping[str, Results] | Results, *, ax: Axes | None = None
    ) -> Self:
        """Draw the map of several models, or of one.

        Parameters
        ----------
        models : mapping of str to Results, or Results
            The results of each model, by name; or the results of one.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        CalibrationDispersionDisplay
            Itself, drawn.

        Raises
        ------
        InvalidInputError
            If a model has no calibration loss or no dispersion loss.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_counts([[2, 0], [1, 1], [0, 2], [1, 1]])
        >>> metrics = "dispersion_loss,calibration_loss"
        >>> results = rw.evaluate([0.2, 0.4, 0.9, 0.6], labels, metrics, resamples=0)
        >>> CalibrationDispersionDisplay.from_results(results).ax_.get_ylabel()
        'Calibration loss'
        """
        return cls(models).plot(ax=ax)

    @in_style
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw a mark for each model, with its intervals where there are any.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        CalibrationDispersionDisplay
            Itself.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_counts([[2, 0], [1, 1], [0, 2], [1, 1]])
        >>> metrics = "dispersion_loss,calibration_loss"
        >>> results = rw.evaluate([0.2, 0.4, 0.9, 0.6], labels, metrics, resamples=0)
        >>> display = CalibrationDispersionDisplay({"model 3": results}).plot()
        >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
        ['model 3', 'equal epistemic loss']
        """
        self.ax_ = ax = axes(ax, 2.8)
        self.figure_: Any = ax.figure
        for i, (name, results) in enumerate(self.models.items()):
            x, y = results["dispersion_loss"], results["calibration_loss"]
            assert x.value is not None and y.value is not None  # as __init__ saw
            colour = SERIES[i % len(SERIES)]
            if x.low is not None and x.high is not None:
                ax.hlines(y.value, x.low, x.high, color=colour, lw=0.8, alpha=0.7)
            if y.low is not None and y.high is not None:
                ax.vlines(x.value, y.low, y.high, color=colour, lw=0.8, alpha=0.7)
            marker = MARKERS[i % len(MARKERS)]
            ax.plot(x.value, y.value, marker, color=colour, mec="white", mew=0.6, label=plain(name))
        tidy(ax, x="Dispersion loss", y="Calibration loss")
        ax.margins(0.1)
        self._contours(ax)
        # Below: within, it would hide a model or an interval sooner or later; side by side, long
        # names would leave the figure.
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2), frameon=False)
        return self

    def _contours(self, ax: Any) -> None:
        """Draw lines of equal epistemic loss, labelled at the right edge of the axes."""
        from matplotlib.ticker import MaxNLocator

        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        label = "equal epistemic loss"
        for total in MaxNLocator(6).tick_values(left + bottom, right + top)[1:-1]:
            x = np.array([left, right])
            ax.plot(x, total - x, color=IDEAL, lw=0.5, alpha=0.5, zorder=0, label=label)
            label = "_nolegend_"
            at = max(left, total - top)
            if left < at < right:
                ax.annotate(
                    f"{total:.3g}", (at, top), (0, 2), textcoords="offset points", fontsize=6,
                    color=IDEAL, ha="center",
                )  # fmt: skip
        ax.set(xlim=(left, right), ylim=(bottom, top))
