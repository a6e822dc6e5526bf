"""A progress bar for work that takes a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

Reporter = Callable[[str, float], None]
"""reporter(description, fraction of the whole that is done)."""

PATIENCE = 2.0
"""Seconds after which the bar appears."""


class Progress:
    """Reports to a function, or to a bar on stderr that appears after two seconds.

    `shown` is True for the bar, which only a terminal gets, False for nothing, or the function.
    """

    def __init__(self, shown: bool | Reporter = True) -> None:
        self._reporter = shown if callable(shown) else None
        self._wanted = shown is True
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __call__(self, description: str, fraction: float) -> None:
        """Say what is being done, and which fraction of the whole is."""
        if self._reporter is not None:
            self._reporter(description, fraction)
        elif self._wanted and time.monotonic() - self._begun > PATIENCE:
            if self._bar is None:
                self._appear(description)
            if self._bar is not None:
                self._bar.update(self._task, description=description, completed=fraction)

    def _appear(self, description: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        if not console.is_terminal:  # a log file is left alone
            self._wanted = False
            return
        percent = TextColumn("{task.percentage:3.0f}%")
        columns = (TextColumn("{task.description}"), BarColumn(), percent, TimeElapsedColumn())
        self._bar = Bar(*columns, console=console, transient=True)
        self._task = self._bar.add_task(description, total=1.0)
        self._bar.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
