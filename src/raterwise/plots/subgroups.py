"""Is it the same for everybody? One metric in every level of what tells cases apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from raterwise.errors import InvalidInputError
from raterwise.palette import IDEAL, SERIES
from raterwise.plots.style import axes, in_style, plain, tidy
from raterwise.results import Estimate, Results, Subgroup

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BESIDE = 28
"""How many letters of a level stand side by side, left of the axes."""
ROW, FRAME = 0.21, 0.75
"""Inches: the height of a level, and of what is around them."""


class SubgroupDisplay:
    """A forest plot: one metric with its interval in each level, and a line for all cases.

    Calibration errors are corrected for chance, which adds more to small levels. A level that
    differs from the other cases (adjusted p at most 1 - level of the intervals) is a diamond.

    Parameters
    ----------
    overall : Estimate
        The metric on all cases.
    subgroups : sequence of Subgroup
        The levels, in the order in which they are drawn.
    level : float, default 0.95
        Confidence level of the intervals.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    evaluate : returns them, with `subgroups`.

    Examples
    --------
    >>> import raterwise as rw
    >>> scanner = {"scanner": ["A", "B"] * 10}
    >>> results = rw.evaluate(
    ...     [0.9, 0.8] * 10, [1, 0] * 10, "brier", resamples=20, subgroups=scanner
    ... )
    >>> display = SubgroupDisplay(results["brier"], results.subgroups).plot()
    >>> [tick.get_text() for tick in display.ax_.get_yticklabels()]
    ['A (10)', 'B (10)']
    """

    def __init__(
        self, overall: Estimate, subgroups: Sequence[Subgroup], *, level: float = 0.95
    ) -> None:
        metric = overall.name
        without = [s for s in subgroups if metric not in s.estimates]
        if without or not subgroups:
            where = f"{without[0].variable} = {without[0].level}" if without else "any level"
            raise InvalidInputError(
                f"metric: {metric!r} was not evaluated in {where}; name it in subgroup_metrics"
            )
        self.overall, self.subgroups, self.level = overall, tuple(subgroups), level

    @classmethod
    def from_results(
        cls,
        results: Results,
        metric: str = "ece",
        *,
        variables: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw one metric of `rw.evaluate(…, subgroups=…)`.

        Parameters
        ----------
        results : Results
            With sub-groups.
        metric : str, default "ece"
            The metric to draw.
        variables : sequence of str, default None
            Those to draw; by default all.
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        SubgroupDisplay
            Itself, drawn.

        Raises
        ------
        InvalidInputError
            If the results hold no sub-groups, no such variable or not this metric in every level.

        Examples
        --------
        >>> import raterwise as rw
        >>> scanner = {"scanner": ["A", "B"] * 10}
        >>> results = rw.evaluate(
        ...     [0.9, 0.8] * 10, [1, 0] * 10, "brier", resamples=20, subgroups=scanner
        ... )
        >>> display = SubgroupDisplay.from_results(results, "brier", variables=["scanner"])
        >>> len(display.subgroups)
        2
        """
        if not results.subgroups:
            raise InvalidInputError(
                "results: hold no sub-groups; evaluate with subgroups={name: values}"
            )
        known = dict.fromkeys(s.variable for s in results.subgroups)
        for name in variables or ():
            if name not in known:
                raise InvalidInputError(
                    f"variables: must be among {', '.join(known)}; got {name!r}"
                )
        if metric not in results:
            raise InvalidInputError(f"metric: results hold no {metric!r}")
        chosen = [s for s in results.subgroups if variables is None or s.variable in variables]
        display = cls(results[metric], chosen, level=results.options.get("level", 0.95))
        return display.plot(ax=ax)

    @in_style
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the levels, variable by variable.

        Parameters
        ----------
        ax : Axes, default None
            Where to draw; by default a new figure as high as there are levels.

        Returns
        -------
        SubgroupDisplay
            Itself.

        Examples
        --------
        >>> import raterwise as rw
        >>> scanner = {"scanner": ["A", "B"] * 10}
        >>> results = rw.evaluate(
        ...     [0.9, 0.8] * 10, [1, 0] * 10, "brier", resamples=20, subgroups=scanner
        ... )
        >>> print(SubgroupDisplay(results["brier"], results.subgroups).plot().ax_.get_xlabel())
        Brier score
        with 95% interval
        """
        rows = self._rows()
        lines = max(plain(name, BESIDE).count("\n") + 1 for name, _ in rows)
        self.ax_ = ax = axes(ax, FRAME + ROW * len(rows) * lines)
        self.figure_: Any = ax.figure
        ticks, names = [], []
        for y, (name, found) in enumerate(rows):
            if found is None:  # the name of a variable, above its levels
                ax.text(-0.02, y, plain(name, BESIDE), transform=ax.get_yaxis_transform(),
                        ha="right", va="center", fontsize=7, fontweight="bold")  # fmt: skip
                continue
            ticks.append(y)
            names.append(f"{plain(name, BESIDE)} ({found.cases})")
            self._draw_level(ax, y, found)
        if self.overall.less_chance is not None:
            ax.axvline(self.overall.less_chance, color=IDEAL, lw=0.8, ls=(0, (4, 3)), zorder=1)
            ax.annotate(
                "all cases", (self.overall.less_chance, 1), (0, 2), ha="center", fontsize=6,
                xycoords=ax.get_xaxis_transform(), textcoords="offset points", color=IDEAL,
            )  # fmt: skip
        ax.set_yticks(ticks, names)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        title = self.overall.title or self.overall.name
        less = ", corrected for chance" if self.overall.debiased is not None else ""
        tidy(ax, x=f"{plain(title + less, BESIDE)}\nwith {self.level:.0%} interval", y="")
        ax.locator_params(axis="x", nbins=5)
        ax.spines["left"].set_visible(False)
        return self

    def _rows(self) -> list[tuple[str, Subgroup | None]]:
        """Return what stands in each line: the name of a variable, or one of its levels."""
        rows: list[tuple[str, Subgroup | None]] = []
        for variable in dict.fromkeys(s.variable for s in self.subgroups):
            rows.append((variable, None))
            rows += [(s.level, s) for s in self.subgroups if s.variable == variable]
        return rows

    def _draw_level(self, ax: Any, y: int, found: Subgroup) -> None:
        metric = self.overall.name
        e, d = found.estimates[metric], found.differences.get(metric)
        if e.less_chance is None:
            return
        p = None if d is None else d.adjusted_p_value
        differs = p is not None and p <= 1 - self.level
        colour = SERIES[1] if differs else SERIES[0]
        if e.low is not None and e.high is not None:
            ax.hlines(y, e.low, e.high, color=colour, lw=1.1, zorder=2)
        ax.plot(e.less_chance, y, "D" if differs else "o", color=colour, zorder=3,
                ms=5 if differs else 4.5, mfc=colour if differs else "white", mew=1.1)  # fmt: skip
