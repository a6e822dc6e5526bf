"""A progress bar that appears if the work takes a while."""

from __future__ import annotations

import random
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING

from raterwise.inference.settings import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 2.0
"""Seconds after which somebody who waits is shown how far it is."""


class ProgressBar:
    """A bar on stderr that appears once the work has taken `patience` seconds.

    Called with a description and a fraction, as `raterwise.evaluate(progress=…)` does; a terminal
    that nobody looks at, such as a log file, is left alone.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        shown: bool = True,
        patience: float | None = None,
    ) -> None:
        # Only where there is a bar: the modules that train need PyTorch, NumPy and SciPy alone.
        state = random.getstate()
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        random.setstate(state)  # rich draws a number when it is imported
        own = console is None
        console = console or Console(stderr=True)
        # For rich, FORCE_COLOR, as servers for tests set it, makes a terminal of every file.
        looked_at = console.is_terminal and (not own or console.file.isatty())
        self._shown = shown and looked_at
        self._progress = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=1.0)
        self._lock = threading.Lock()
        self._closed = False
        wait = PATIENCE if patience is None else patience
        self._due = time.monotonic() + wait
        self._timer = threading.Timer(wait, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> ProgressBar:
        if self._shown:
            self._timer.start()
        return self

    def __call__(self, description: str, fraction: float) -> None:
        """Say what is being done, and which fraction of the whole is."""
        self._progress.update(self._task, description=description, completed=fraction)
        if self._shown and time.monotonic() > self._due:
            self._appear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._progress.live.is_started:  # to stop what never began would print a line
                self._progress.stop()

    def _appear(self) -> None:
        with self._lock:
            if not self._closed and not self._progress.live.is_started:
                self._progress.start()


def reporting(shown: bool | Progress) -> AbstractContextManager[Progress]:
    """Return what reports to a function, or to a bar (True), or to nobody (False)."""
    if isinstance(shown, bool):
        return ProgressBar() if shown else nullcontext(silent)
    return nullcontext(shown)
