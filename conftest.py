"""The figures that examples draw need no screen, and are put away after each of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def _folder_of_the_reader(request: pytest.FixtureRequest) -> None:
    """Run the first pages in an empty folder, as their readers do, and not in the repository."""
    page = request.node.path
    if isinstance(request.node, pytest.DoctestItem) and page.parent.name == "start":
        folder = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)


@pytest.fixture(autouse=True)
def _peer_of_the_page(request: pytest.FixtureRequest) -> None:
    """Pass over the page on MONAI where the one that is installed lacks what the page compares."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.path.name == "monai.md":
        metrics = pytest.importorskip("monai.metrics")
        if not hasattr(metrics, "CalibrationErrorMetric"):
            pytest.skip("MONAI has CalibrationErrorMetric from 1.6 on")


@pytest.fixture(autouse=True)
def _no_open_figures() -> Iterator[None]:
    """Close what was drawn: matplotlib warns of more than twenty open figures."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
