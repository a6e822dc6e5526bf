"""One pass over predictions in this process, in threads, with the same digits for any number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quorate.kernels._threads import in_threads
from quorate.predictions import Predictions, Rows
from quorate.summaries import BinPlan

__all__ = ["Plan", "Summary", "summarise"]

STRIPES = 8
"""Into how many parts the cases are split: fixed, so that sums do not depend on the threads."""
STRIPES_WITH_UNITS = 2
"""The same where each part has a table per resampling unit, which is large."""

class Summary(Protocol):
    """A mergeable table."""

    def __add__(self, other: Self) -> Self: ...

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place."""


class Plan(Protocol):
    """What to keep of the cases; equal plans share one summary."""

    def empty(self, num_classes: int, units: int = 1) -> Any:
        """Return the summary of no cases."""


def summarise(
    predictions: Predictions,
    plans: Sequence[Plan],
    *,
    units: NDArray[np.int64] | None = None,
    num_units: int = 1,
    threads: int | None = None,
) -> dict[Plan, Any]:
    """Read every case once and return the summary of each plan.

    `units` (N,) is the resampling unit of each case; without it all cases are one unit.
    """
    distinct = list(dict.fromkeys(plans))
    cases, step = len(predictions), predictions.chunk_rows
    chunks = -(-cases // step)
    stripes = STRIPES if num_units == 1 else STRIPES_WITH_UNITS
    bounds = [s * chunks // stripes * step for s in range(stripes)] + [cases]

    alone = distinct[0] if len(distinct) == 1 and units is None else None
    direct = alone.direct_loop(predictions) if isinstance(alone, BinPlan) else None

    def stripe(s: int) -> list[Any]:
        first, last = bounds[s], bounds[s + 1]
        summaries: list[Any] = [p.empty(predictions.num_classes, num_units) for p in distinct]
        if direct is not None and summaries[0].absorb_directly(direct, first, last):
            return summaries
        for start in range(first, last, step):
            stop = min(start + step, last)
            rows = predictions.read(start, stop)
            if units is not None:
                rows = replace(rows, units=units[start:stop])
            for summary in summaries:
                summary.absorb(rows)
        return summaries

    busy = [s for s in range(stripes) if bounds[s] < bounds[s + 1]]
    parts = in_threads(stripe, busy, threads)
    merged = parts[0]
    for part in parts[1:]:
        merged = [a + b for a, b in zip(merged, part, strict=True)]
    return dict(zip(distinct, merged, strict=True))
