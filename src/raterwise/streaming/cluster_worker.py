"""What the processes of a local cluster do before they begin to work (a Dask preload)."""

from __future__ import annotations

import logging
import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Ignore Ctrl-C, which a terminal sends to every process: the one that waits stops the rest.

    That a worker was stopped in the middle of a part is then no news either.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed.worker.state_machine").setLevel(logging.ERROR)
