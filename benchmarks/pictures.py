"""Pictures of what was measured: SVG without a background, for light and for dark pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

GREY = "#7d7d7d"
COLOURS = ("#2f7fd6", "#d1602a", "#2f9a5b", "#9a62c4", "#b98a00", "#c04f7d")
MORE = ("#d1602a", "#2f9a5b", "#9a62c4", "#b98a00", "#c04f7d", "#5f8f8f", "#8a6d4f", "#7d7d7d",
        "#6f8fd0", "#a8552e", "#5aa05a", "#b07bb0")  # fmt: skip


def plain(number: int) -> str:
    """Return the colour of the peer with this number."""
    return MORE[number % len(MORE)]


def drawn(
    draw: Callable[..., None], path: Path, size: tuple[float, float], panels: int = 2
) -> None:
    """Let `draw` fill the panels, and save them as SVG with its text as text."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    given: dict[str, Any] = dict.fromkeys((*inked, "grid.color"), GREY)
    given |= {"svg.fonttype": "none", "svg.hashsalt": "raterwise", "font.size": 9}
    given |= {"axes.grid": True, "grid.alpha": 0.25, "axes.spines.top": False}
    given |= {"axes.spines.right": False, "font.family": "sans-serif"}
    with mpl.rc_context(given):
        figure = Figure(figsize=size, layout="constrained")
        draw(*figure.subplots(1, panels, squeeze=False)[0])
        figure.savefig(path, transparent=True, metadata={"Date": None})
