"""ROC and precision-recall curves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from raterwise.curves.clinical import precision_recall_curve, roc_curve
from raterwise.curves.clinical_tables import PrecisionRecallCurve, RocCurve
from raterwise.labels import Labels
from raterwise.palette import IDEAL
from raterwise.plots.style import axes, colour_of, curve_with_band, identity, in_style, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Ranked(ABC):
    """A curve over all thresholds with its band."""

    _legend: Any = "lower right"
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
        colour : str, default None
            Of the curve; by default the next of the palette.
        **options : Any
            Those of `raterwise.roc_curve` or `raterwise.precision_recall_curve`, such as `groups`
            and `positive`.

        Returns
        -------
        RocDisplay or PrecisionRecallDisplay
            Itself, drawn.

        Examples
        --------
        >>> display = RocDisplay.from_predictions([0.9, 0.2], [1, 0], resamples=0, name="net")
        >>> display.line_.get_label()
        'net (AUROC 1.000)'
        """
        return cls(cls._curve_of(probs, labels, **options)).plot(ax, name=name, colour=colour)

    @in_style
    def plot(
        self, ax: Axes | None = None, *, name: str | None = None, colour: str | None = None,
        **line: Any,
    ) -> Self:  # fmt: skip
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, default None
            Where to draw; by default a new figure.
        name : str, default None
            For the legend.
        colour : str, default None
            Of the curve; by default the next of the palette.
        **line : Any
            For matplotlib's `plot`.

        Returns
        -------
        RocDisplay or PrecisionRecallDisplay
            Itself.

        Examples
        --------
        >>> import raterwise as rw
        >>> curve = rw.roc_curve([0.9, 0.2], [1, 0], resamples=0)
        >>> RocDisplay(curve).plot(linestyle=":").line_.get_linestyle()
        ':'
        """
        self.ax_ = ax = axes(ax)
        self.figure_: Any = ax.figure
        colour = colour_of(ax, colour)
        x, y, low, high, area = self._drawn()
        label = area if name is None else plain(f"{name} ({area})")
        shown = {"label": label, **line}
        self.line_, self.band_ = curve_with_band(ax, x, y, low, high, colour, shown)
        self._frame(ax)
        ax.legend(loc=self._legend, frameon=False)
        return self

    @abstractmethod
    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        """Return x, y, the edges of the band over x, and the area in words."""

    @abstractmethod
    def _frame(self, ax: Any) -> None:
        """Draw what the curve is seen against, and name the axes."""


class RocDisplay(_Ranked):
    """The ROC curve with its band and area.

    Parameters
    ----------
    curve : RocCurve
        What to draw: see `raterwise.roc_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band where there is one.

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

    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        c = self.curve
        return c.false_positive_rate, c.sensitivity, c.low, c.high, f"AUROC {c.area:.3f}"

    def _frame(self, ax: Any) -> None:
        identity(ax, IDEAL, None)
        tidy(ax, x="1 − specificity", y="Sensitivity", unit_square=True)


class PrecisionRecallDisplay(_Ranked):
    """The precision-recall curve with its band; the dashed line is the prevalence.

    Parameters
    ----------
    curve : PrecisionRecallCurve
        What to draw: see `raterwise.precision_recall_curve`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    line_, band_ : Line2D, PolyCollection or None
        The curve, and its band where there is one.

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

    def _drawn(self) -> tuple[Any, Any, Any, Any, str]:
        c = self.curve
        area = f"average precision {c.average_precision:.3f}"
        return c.recall, c.precision, c.low, c.high, area

    def _frame(self, ax: Any) -> None:
        if not any(line.get_gid() == "prevalence" for line in ax.lines):
            line = ax.axhline(self.curve.prevalence, color=IDEAL, lw=0.8, ls=(0, (4, 3)), zorder=1)
            line.set_gid("prevalence")
        tidy(ax, x="Sensitivity", y="Positive predictive value", unit_square=True)
