"""The figures that examples draw need no screen, and are put away after each of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def _no_open_figures() -> Iterator[None]:
    """Close what was drawn: matplotlib warns of more than twenty open figures."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
