"""Reliability diagrams: what was predicted against what the raters said."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from raterwise.curves import ReliabilityCurve, reliability_curve
from raterwise.errors import InvalidInputError
from raterwise.palette import IDEAL
from raterwise.plots.style import (
    axes,
    colour_of,
    curve_in,
    identity,
    in_style,
    plain,
    tidy,
)
from raterwise.results import Results

__all__ = ["DisagreementReliabilityDisplay", "ReliabilityDisplay"]


class ReliabilityDisplay:
    """A reliability diagram with an interval for each bin and the number of cases below it.

    Parameters
    ----------
    curve
        What to draw.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.
    histogram_ax_
        The axes of the counts; None without them.
    line_
        The curve.
    """

    x_label = "Confidence"
    y_label = "Raters who agree"
    question = "top_label"

    def __init__(self, curve: ReliabilityCurve) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(
        cls,
        probs: Any,
        labels: Any,
        *,
        question: str | None = None,
        of_class: int | None = None,
        bins: int = 15,
        ax: Any = None,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of predictions; `options` are those of `curves.reliability_curve`.

        With `of_class` it is that of one class's probability.
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
        ax: Any = None,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
    ) -> Self:
        """Draw the diagram that results hold: of the predicted class, or of the class named."""
        if of_class is None:
            content = curve_in(results.curves, "top_label", "ece")
        else:
            curves = curve_in(results.curves, "per_class", "classwise_ece")
            names = [curve["name"] for curve in curves]
            if of_class not in names:
                raise InvalidInputError(f"of_class: must be one of {names}; got {of_class!r}")
            content = curves[names.index(of_class)]
        display = cls(ReliabilityCurve.from_dict(content))
        return display.plot(ax=ax, name=name, histogram=histogram, colour=colour)

    @in_style
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
        **line: Any,
    ) -> Self:
        """Draw into `ax`, or into a new figure; `line` goes to matplotlib's `plot`."""
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        colour = colour_of(ax, colour)
        curve = self.curve
        seen = curve.cases > 0
        x, y = curve.predicted[seen], curve.observed[seen]
        identity(ax, IDEAL, None)
        style: dict[str, Any] = {
            "color": colour,
            "marker": "o",
            "mfc": colour,
            "mec": "white",
            "mew": 0.5,
            "clip_on": False,
        }
        style = {**style, "label": plain(name) if name else "_nolegend_", "zorder": 3, **line}
        self.line_ = ax.plot(x, y, **style)[0]
        self.line_.set_gid("series")
        if np.isfinite(curve.low[seen]).all():
            ax.vlines(x, curve.low[seen], curve.high[seen], color=colour, lw=0.9, zorder=2)
        classwise = self.question == "top_label" and curve.name not in ("top label", "positive")
        x_label = f"Predicted probability of {plain(curve.name)}" if classwise else self.x_label
        y_label = f"Raters who say {plain(curve.name)}" if classwise else self.y_label
        tidy(ax, x=x_label, y=y_label, unit_square=True)
        self.histogram_ax_ = self._counts(colour) if histogram else None
        if name is not None:
            ax.legend(loc="upper left", frameon=False)
        return self

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
    """A reliability diagram of disagreement: how often two raters of a case differ (LH Fig 1)."""

    x_label = "Predicted disagreement of two raters"
    y_label = "Pairs of raters who differ"
    question = "disagreement"

    @classmethod
    def from_results(
        cls,
        results: Results,
        *,
        of_class: str | None = None,
        ax: Any = None,
        name: str | None = None,
        histogram: bool = True,
        colour: str | None = None,
    ) -> Self:
        """Draw the diagram that results hold."""
        if of_class is not None:
            raise InvalidInputError(f"of_class: disagreement has no classes; got {of_class!r}")
        metric = "disagreement_calibration_error"
        content = curve_in(results.curves, "disagreement", metric)
        display = cls(ReliabilityCurve.from_dict(content))
        return display.plot(ax=ax, name=name, histogram=histogram, colour=colour)
