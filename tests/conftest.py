"""Settings that every test shares."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Derandomised: a red suite means a changed project, never an unlucky draw. No deadline: the
# first example of a test may have to compile a kernel, which takes a second.
settings.register_profile(
    "raterwise",
    derandomize=True,
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("raterwise")


@pytest.fixture(autouse=True)
def _one_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results say when they were made: the same second in all tests, so that texts can be equal."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")


@pytest.fixture(autouse=True)
def _no_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide as it is anywhere: xdist gives its workers a width of their own."""
    monkeypatch.delenv("COLUMNS", raising=False)
