"""How steady a figure is, and how many cases and raters a study needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from raterwise.palette import IDEAL
from raterwise.planning import StudyPlan
from raterwise.plots.style import axes, colour_of, in_style, plain, tidy
from raterwise.stability import SubsampleCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 8


class StabilityDisplay:
    """Metrics on random subsets of growing size, mean ± standard deviation (RECE Fig 2, MR Fig 3).

    Parameters
    ----------
    curves : mapping of str to SubsampleCurve
        What `stability.subsample_curve` returned, by the name to show.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    stability.subsample_curve : makes the curves.

    Examples
    --------
    >>> from raterwise.stability import subsample_curve
    >>> curve = subsample_curve("ece", [0.5] * 40, [0, 1] * 20, fractions=(0.5, 1), repeats=4)
    >>> StabilityDisplay({"ECE": curve}).plot().ax_.get_xlabel()
    'Cases in the subset'
    """

    def __init__(self, curves: Mapping[str, SubsampleCurve]) -> None:
        self.curves = dict(curves)

    @classmethod
    def from_curves(cls, curves: Mapping[str, SubsampleCurve], *, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        curves : mapping of str to SubsampleCurve
            What `stability.subsample_curve` returned, by the name to show.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        StabilityDisplay
            Itself, drawn.

        Examples
        --------
        >>> from raterwise.stability import subsample_curve
        >>> curve = subsample_curve("ece", [0.5] * 40, [0, 1] * 20, fractions=(0.5, 1), repeats=4)
        >>> len(StabilityDisplay.from_curves({"ECE": curve}).ax_.get_legend().get_texts())
        1
        """
        return cls(curves).plot(ax=ax)

    @in_style
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves, each with a dashed line for the value on all cases.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        StabilityDisplay
            Itself.

        Examples
        --------
        >>> from raterwise.stability import subsample_curve
        >>> curve = subsample_curve("ece", [0.5] * 40, [0, 1] * 20, fractions=(0.5, 1), repeats=4)
        >>> StabilityDisplay({"ECE": curve}).plot().ax_.get_xscale()
        'log'
        """
        self.ax_ = ax = axes(ax, 2.6)
        self.figure_: Any = ax.figure
        for name, curve in self.curves.items():
            colour = colour_of(ax, None)
            mean, std = curve.mean, curve.std
            ax.fill_between(curve.sizes, mean - std, mean + std, color=colour, alpha=0.18, lw=0)
            style: dict[str, Any] = {"color": colour, "mec": "white", "mew": 0.5, "gid": "series"}
            ax.plot(curve.sizes, mean, "-o", label=plain(name), **style)
            ax.axhline(curve.full, color=colour, lw=0.7, ls=(0, (4, 3)), zorder=1)
        ax.set_xscale("log")
        sizes = {size for curve in self.curves.values() for size in curve.sizes}
        _plain_numbers(ax.xaxis, sorted(sizes))
        unit = next((curve.unit for curve in self.curves.values()), "cases")
        tidy(ax, x=f"{unit.capitalize()} in the subset", y="Metric, mean ± standard deviation")
        ax.legend(loc="best", frameon=False)
        return self


class PlanDisplay:
    """The expected width of the interval for each number of cases and raters.

    Parameters
    ----------
    plan : StudyPlan
        What `planning.plan` returned.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    planning.plan : makes the plan.

    Examples
    --------
    >>> from raterwise.planning import Design, StudyPlan
    >>> few, many = (Design(n, 2, 2 / n**0.5, 0.0, "formula") for n in (100, 400))
    >>> PlanDisplay(StudyPlan("brier", 0.95, (few, many))).plot().ax_.get_ylabel()
    'Expected width of the 95% interval'
    """

    def __init__(self, plan: StudyPlan) -> None:
        self.plan = plan

    @classmethod
    def from_plan(
        cls, plan: StudyPlan, *, budget: float | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the plan.

        Parameters
        ----------
        plan : StudyPlan
            What `planning.plan` returned.
        budget : float, default None
            In readings: marks the best affordable design.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        PlanDisplay
            Itself, drawn.

        Raises
        ------
        InvalidInputError
            If the budget pays for no design.

        Examples
        --------
        >>> from raterwise.planning import Design, StudyPlan
        >>> few, many = (Design(n, 2, 2 / n**0.5, 0.0, "formula") for n in (100, 400))
        >>> display = PlanDisplay.from_plan(StudyPlan("brier", 0.95, (few, many)), budget=300)
        >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
        ['2 raters', 'best for 300 readings']
        """
        return cls(plan).plot(ax=ax, budget=budget)

    @in_style
    def plot(self, ax: Axes | None = None, *, budget: float | None = None) -> Self:
        """Draw a line for each number of raters.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.
        budget : float, default None
            In readings: marks the best affordable design.

        Returns
        -------
        PlanDisplay
            Itself.

        Raises
        ------
        InvalidInputError
            If the budget pays for no design.

        Examples
        --------
        >>> from raterwise.planning import Design, StudyPlan
        >>> designs = tuple(
        ...     Design(n, r, 2 / n**0.5, 0.0, "formula") for n in (100, 400) for r in (1, 2)
        ... )
        >>> len(PlanDisplay(StudyPlan("brier", 0.95, designs)).plot().ax_.lines)
        2
        """
        self.ax_ = ax = axes(ax, 3.2)
        self.figure_: Any = ax.figure
        for raters in sorted({d.raters for d in self.plan.designs}):
            same = (d for d in self.plan.designs if d.raters == raters)
            designs = sorted(same, key=lambda design: design.cases)
            colour = colour_of(ax, None)
            x, y = [d.cases for d in designs], [d.width for d in designs]
            style: dict[str, Any] = {"color": colour, "mec": "white", "mew": 0.5, "gid": "series"}
            ax.plot(x, y, "-o", label=f"{raters} rater{'s' * (raters > 1)}", **style)
        if budget is not None:
            best = self.plan.best(budget)
            ring: dict[str, Any] = {"ms": 8, "mfc": "none", "mec": IDEAL, "mew": 1.2, "zorder": 4}
            text = f"best for {budget:g} readings"
            ax.plot(best.cases, best.width, "o", label=text, **ring)
        ax.set_xscale("log")
        _plain_numbers(ax.xaxis, sorted({d.cases for d in self.plan.designs}))
        ax.set_ylim(0, 1.3 * max(design.width for design in self.plan.designs))
        tidy(ax, x="Cases", y=f"Expected width of the {self.plan.level:.0%} interval")
        # Below: lines that begin high up leave no corner to it.
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.25), ncols=2, frameon=False,
                  title=self.plan.metric)  # fmt: skip
        return self


def _plain_numbers(axis: Any, ticks: Sequence[int]) -> None:
    """Write 200, not 2 × 10², on a logarithmic axis."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    every = -(-len(ticks) // MOST_TICKS)
    axis.set_major_locator(FixedLocator([float(tick) for tick in ticks[::every]]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
