"""The look that all figures share, and the one place that imports matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from textwrap import wrap
from typing import Any, TypeVar

import numpy as np

from raterwise.errors import InvalidInputError, missing_extra
from raterwise.palette import IDEAL, SERIES

Draws = TypeVar("Draws", bound=Callable[..., Any])

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
"""Text stays text in PDF and SVG, so that a journal can set it in its own fonts."""

BAND: dict[str, Any] = {"alpha": 0.18, "lw": 0, "zorder": 2}
LINE = 39
"""How many letters of a name stand side by side."""
COLUMN = 3.4
"""Inches: the width of one column of most journals."""


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise missing_extra("figures need matplotlib", "report") from error
    return plt


def journal_style() -> Any:
    """Return a context manager that gives every figure the style of raterwise's own figures.

    Returns
    -------
    context manager
        Inside it, matplotlib uses the journal style; afterwards, its settings are restored.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    See Also
    --------
    plots.ReliabilityDisplay : a figure that suits this style.

    Examples
    --------
    >>> with journal_style():
    ...     import matplotlib
    ...
    ...     matplotlib.rcParams["pdf.fonttype"]
    42
    """
    return pyplot().rc_context(STYLE)


def in_style(draw: Draws) -> Draws:
    """Run a method in the journal style: what it adds to anybody's axes looks alike."""

    @wraps(draw)
    def styled(*args: Any, **options: Any) -> Any:
        with journal_style():
            return draw(*args, **options)

    return styled  # type: ignore[return-value]


def axes(ax: Any, height: float = COLUMN) -> Any:
    """Return the axes to draw in: the ones given, or those of a new figure one column wide."""
    if ax is not None:
        return ax
    _, ax = pyplot().subplots(figsize=(COLUMN, height), layout="constrained")
    return ax


def tidy(ax: Any, *, x: str, y: str, unit_square: bool = False) -> None:
    """Name the axes; leave out the frame's upper and right sides."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    if unit_square:
        ax.set(xlim=(0, 1), ylim=(0, 1))
        ax.set_aspect("equal", adjustable="box")


def identity(ax: Any) -> None:
    """Draw the diagonal, once."""
    if not any(line.get_gid() == "identity" for line in ax.lines):
        ax.plot([0, 1], [0, 1], color=IDEAL, lw=0.8, ls=(0, (4, 3)), zorder=1, gid="identity")


def plain(name: str, letters: int = LINE) -> str:
    """Return a name from outside as text: its dollar signs begin no formula, and it has lines.

    In a column of a journal a long one would leave no room for the curve.

    >>> print(plain("ResNet-50, ImageNet weights, temperature scaled", 30))
    ResNet-50, ImageNet weights,
    temperature scaled
    """
    lines = wrap(name, letters, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("$", r"\$")


def colour_of(ax: Any, colour: str | None) -> str:
    """Return the colour asked for, or the next of the palette in these axes."""
    if colour is not None:
        return colour
    used = sum(line.get_gid() == "series" for line in ax.lines)
    return SERIES[used % len(SERIES)]


def curve_with_band(
    ax: Any, x: Any, y: Any, low: Any, high: Any, colour: str, line: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Draw a curve, and its band where there is one; both."""
    drawn = ax.plot(x, y, **{"color": colour, "zorder": 3, **line})[0]
    drawn.set_gid("series")
    if low is None or high is None or np.isnan(low).all():
        return drawn, None
    return drawn, ax.fill_between(x, low, high, color=colour, **BAND)


def curve_in(curves: Any, name: str, metric: str) -> Any:
    """Return a curve of results, or say which metric brings it."""
    if name not in curves:
        raise InvalidInputError(
            f"results: hold no curve {name!r}; evaluate with metrics that include {metric!r}"
        )
    return curves[name]
