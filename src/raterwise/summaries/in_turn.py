"""Summaries of cases in memory that are made when they are asked for, the large ones in turn.

A table per resampling unit, class and bin takes many times the memory of the predictions. Cases in
memory can be read again, so such a table is made when its metrics are judged, and let go after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.predictions import Predictions
from raterwise.summaries.one_pass import same_table, summarise

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

    @property
    def has_large(self) -> bool:
        """Whether there is a summary that is made by itself."""
        return any(self._turn(plan)[0] == 0 for plan in self._own)

    def order_of(self, plan: Any) -> tuple[int, bool, int]:
        """Return what plans of the same table have in common, in the order of turns."""
        own, classes = self._own[plan], self._predictions.num_classes
        growing = own.room(classes, 1, len(self._predictions)) > own.room(classes, 1, 0)
        turn, _ = self._turn(plan)
        return min(turn, 1), growing, list(self._own.values()).index(own)

    def tidy(self, plan: Any) -> None:
        """Let go of what was made of a summary and will hardly be asked for again."""
        if hasattr(self._made.get(plan), "tidy"):
            self._made[plan].tidy()

    def let_go(self, plan: Any) -> None:
        """Forget a summary; of a tiny one what was made of it."""
        for shared in [p for p in self._made if self._own[p] == self._own[plan]]:
            self._made[shared].forget()
            if self._turn(shared)[0] < 2:
                self._over.add(self._turn(shared))
                del self._made[shared]


def in_turns(summaries: Mapping[Any, Any], plans: Mapping[str, Any]) -> list[list[str]]:
    """Return names of plans in the order in which they take the least memory, one table at a time.

    Those of small tables come after large ones, and sorted scores last.
    """
    if not isinstance(summaries, InTurn) or not summaries.has_large:
        return [list(plans)]
    found: dict[tuple[int, bool, int], list[str]] = {}
    for name, plan in plans.items():
        found.setdefault(summaries.order_of(plan), []).append(name)
    return [found[turn] for turn in sorted(found)]


def let_go(summaries: Mapping[Any, Any], plans: Iterable[Any], *, part: bool = False) -> None:
    """Free what these plans take, where it can be made again; with `part`, the least useful."""
    if isinstance(summaries, InTurn):
        for plan in plans:
            (summaries.tidy if part else summaries.let_go)(plan)
