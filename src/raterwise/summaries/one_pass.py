"""One pass over predictions in this process, in threads, with the same digits for any number.

A table per resampling unit, class and bin takes many times the memory of the predictions. Cases in
memory can be read again, so such a table can be made when its metrics are judged, and let go after
(`InTurn`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.kernels._threads import in_threads, number_of_threads
from raterwise.predictions import Predictions, Rows
from raterwise.summaries.contract import Summary

STRIPES = 8
"""Into how many parts the cases are split: fixed, so that sums do not depend on the threads."""
TILE = 16
CHUNKS_AT_ONCE = 16
"""How many chunks are held in memory where the summaries, not the cases, are shared out."""
TOGETHER = 8
"""How many of them are read as one where cases have one label: nothing is made of these but sums,
in tables of their own that are added to those of all cases once per read."""


def summarise(
    predictions: Predictions,
    plans: Sequence[Any],
    *,
    units: NDArray[np.int64] | None = None,
    num_units: int = 1,
    threads: int | None = None,
) -> dict[Any, Any]:
    """Read every case once and return the summary of each plan.

    `units` (N,) is the resampling unit of each case; without it all cases are one unit.
    """
    made_of = {plan: same_table(plan, predictions) for plan in plans}
    distinct = list(dict.fromkeys(made_of.values()))
    if units is None:
        summaries = _by_stripes(predictions, distinct, threads)
    else:
        summaries = [plan.empty(predictions.num_classes, num_units) for plan in distinct]
        _by_summary(predictions, summaries, units, threads)
    made = dict(zip(distinct, summaries, strict=True))
    return {plan: _with_plan(made[own], plan) for plan, own in made_of.items()}


def same_table(plan: Any, predictions: Predictions) -> Any:
    """Return the plan that gives the same sums of these predictions, one for all that do.

    Where every case has one label it makes no difference whether cases or annotations are counted;
    where every case has two, whether a plan leaves out those with one.
    """
    labels, question = predictions.labels, getattr(plan, "question", None)
    if labels.classes is not None:
        return plan if question is None else replace(plan, question=replace(question, per="case"))
    if len(labels) and 1 < getattr(plan, "least_raters", 1) <= labels.num_raters.min():
        return replace(plan, least_raters=1)
    return plan


def _with_plan(summary: Any, plan: Any) -> Any:
    return summary if summary.plan == plan else replace(summary, plan=plan)


def _by_stripes(
    predictions: Predictions, plans: Sequence[Any], threads: int | None
) -> list[Summary]:
    """Split the cases: each stripe has small summaries of its own, merged at the end."""
    cases, step = len(predictions), predictions.chunk_rows
    if not cases:  # of a part of a stream in which nothing counts
        return [plan.empty(predictions.num_classes) for plan in plans]
    chunks = -(-cases // step)
    # Whole tiles, so that the direct loops leave nothing but the last few cases to the others.
    bounds = [s * chunks // STRIPES * step // TILE * TILE for s in range(STRIPES)] + [cases]
    alone = plans[0] if len(plans) == 1 else None
    direct = None if alone is None else alone.direct_loop(predictions)

    def stripe(s: int) -> list[Any]:
        first, last = bounds[s], bounds[s + 1]
        summaries: list[Any] = [plan.empty(predictions.num_classes) for plan in plans]
        if direct is not None:
            first = summaries[0].absorb_directly(direct, first, last)
        for start in range(first, last, step):
            rows = predictions.read(start, min(start + step, last))
            for summary in summaries:
                summary.absorb(rows)
        return summaries

    busy = [s for s in range(STRIPES) if bounds[s] < bounds[s + 1]]
    parts = in_threads(stripe, busy, threads)
    merged = parts[0]
    for part in parts[1:]:
        merged = [a + b for a, b in zip(merged, part, strict=True)]
    return merged


def _by_summary(
    predictions: Predictions,
    summaries: Sequence[Summary],
    units: NDArray[np.int64],
    threads: int | None,
) -> None:
    """Split the summaries: with a table per unit they are large, and there should be one of each.

    Chunks are read by all threads, then each summary takes them in, in their order, in a thread.
    Where there is only one, each thread takes in the cases of its own units, whose sums no other
    thread touches.
    """
    single = predictions.labels.classes is not None and predictions.weights is None
    at_once = CHUNKS_AT_ONCE // TOGETHER if single else CHUNKS_AT_ONCE
    cases, step = len(predictions), predictions.chunk_rows * (CHUNKS_AT_ONCE // at_once)
    parts = threads or number_of_threads()
    shares: list[tuple[Summary, int | None]] = [(summary, None) for summary in summaries]
    if len(summaries) == 1 < parts and summaries[0].plan.by_units:
        shares = [(summaries[0], part) for part in range(parts)]

    def read(start: int) -> Rows:
        stop = min(start + step, cases)
        return replace(predictions.read(start, stop), units=units[start:stop])

    for first in range(0, cases, step * at_once):
        starts = range(first, min(first + step * at_once, cases), step)
        chunks = in_threads(read, starts, threads)

        def take_in(i: int, chunks: list[Rows] = chunks) -> None:
            summary, part = shares[i]
            for rows in chunks:
                own = rows if part is None else rows.take(np.asarray(rows.units) % parts == part)
                summary.absorb(own)

        in_threads(take_in, range(len(shares)), threads)


LARGE = 8 << 20
"""From how many bytes on a summary is made by itself, and let go when its metrics are judged;
or from half of what the predictions take."""
TINY = 1 << 20
"""Up to how many bytes a summary stays."""


class InTurn(Mapping[Any, Any]):
    """The summaries of predictions by plan: small ones are made at once, each large one in turn."""

    def __init__(
        self,
        predictions: Predictions,
        plans: Sequence[Any],
        units: NDArray[np.int64] | None,
        number: int,
    ) -> None:
        self._predictions, self._units, self._number = predictions, units, number
        self._own = {plan: same_table(plan, predictions) for plan in plans}
        self._limit = max(LARGE, predictions.probs.nbytes // 2)
        self._made: dict[Any, Any] = {}
        self._over: set[tuple[int, int]] = set()
        """The turns of which some summaries are made and gone: others are made one by one."""

    def _room(self, plan: Any) -> int:
        """Return how many bytes a summary takes; whole rows are not made twice."""
        own, predictions = self._own[plan], self._predictions
        room: int = own.room(predictions.num_classes, self._number, len(predictions))
        return 0 if own.grows else room

    def _turn(self, plan: Any) -> tuple[int, int]:
        """Return what summaries that are made together have in common, in the order of turns."""
        room = self._room(plan)
        if room >= self._limit:
            return 0, list(self._own.values()).index(self._own[plan])
        return (1, 0) if room >= TINY else (2, 0)

    def __getitem__(self, plan: Any) -> Any:
        if plan not in self._made:
            turn = self._turn(plan)
            wanted = [p for p in self._own if self._turn(p) == turn and p not in self._made]
            if turn in self._over:
                wanted = [p for p in wanted if self._own[p] == self._own[plan]]
            self._made |= summarise(
                self._predictions, wanted, units=self._units, num_units=self._number
            )
        return self._made[plan]

    def __contains__(self, plan: object) -> bool:
        return plan in self._own

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def in_turns(self, plans: Mapping[str, Any]) -> list[list[str]]:
        """Return names of plans in the order in which they take the least memory.

        One table at a time: those of small tables after large ones, and sorted scores last.
        """
        if all(self._turn(plan)[0] > 0 for plan in self._own):
            return [list(plans)]
        found: dict[tuple[int, bool, int], list[str]] = {}
        for name, plan in plans.items():
            found.setdefault(self._order_of(plan), []).append(name)
        return [found[turn] for turn in sorted(found)]

    def _order_of(self, plan: Any) -> tuple[int, bool, int]:
        """Return what plans of the same table have in common, in the order of turns."""
        own, classes = self._own[plan], self._predictions.num_classes
        growing = own.room(classes, 1, len(self._predictions)) > own.room(classes, 1, 0)
        turn, _ = self._turn(plan)
        return min(turn, 1), growing, list(self._own.values()).index(own)

    def tidy(self, plan: Any) -> None:
        """Let go of what was made of a summary and will hardly be asked for again."""
        if plan in self._made:
            self._made[plan].tidy()

    def let_go(self, plan: Any) -> None:
        """Forget a summary; of a tiny one what was made of it."""
        for shared in [p for p in self._made if self._own[p] == self._own[plan]]:
            self._made[shared].forget()
            if self._turn(shared)[0] < 2:
                self._over.add(self._turn(shared))
                del self._made[shared]
