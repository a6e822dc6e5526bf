"""Parts done in this process, in order, some of them ahead: one loop for tables and images."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from raterwise.inference.settings import Progress
from raterwise.kernels._threads import with_threads
from raterwise.streaming.saved import Checkpoint

Item = TypeVar("Item")
Result = TypeVar("Result")


def results_here(
    parts: Iterable[Any],
    begin: Callable[[Any], Any],
    finish: Callable[[Any], Any] | None = None,
    *,
    total: int | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    keep: Callable[[Any], bool] = lambda result: True,
    workers: int = 1,
) -> Generator[Any]:
    """Yield finish(begin(part)) of every part, in order; `part.name` is what progress calls it.

    `begin` is done ahead by so many `workers`, each in one thread, while this thread does `finish`
    with all of them; with no workers nothing is done ahead. `total` is how many parts there are,
    where the iterable has no length. Results that are in the checkpoint are read, not made again,
    and those that are made are put there if `keep` says so.
    """
    total = len(parts) if isinstance(parts, Sized) else total

    def started(pair: tuple[int, Any]) -> tuple[str, bool, Any]:
        i, part = pair
        kept = checkpoint is not None and checkpoint.has(i)
        return part.name, kept, None if kept else begin(part)

    # Unpacked here: enumerate holds on to a pair that somebody else holds, and so to its image.
    numbered = ((i, part) for i, part in enumerate(parts))
    with contextlib.closing(done_ahead(started, numbered, workers)) as begun:
        for i, (name, kept, value) in enumerate(begun):
            if kept:
                assert checkpoint is not None
                result = checkpoint.get(i)
            else:
                result = value if finish is None else finish(value)
                if checkpoint is not None and keep(result):
                    checkpoint.put(i, result)
            if progress and total:
                progress(f"{name} ({i + 1} of {total})", (i + 1) / total)
            yield result


def done_ahead(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result]:
    """Yield function(item) of every item, in order, made ahead by threads that do one each.

    No more than two items per worker are held. An error of the source or of the function is raised
    where its result would have come. Whoever stops early, by an error or Ctrl-C, stops the threads.
    """
    if workers < 1:
        for item in items:
            yield function(item)
        return
    waiting: deque[Future[Result]] = deque()
    source = iter(items)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="raterwise-ahead")

    def alone(item: Item) -> Result:
        with with_threads(1):
            return function(item)

    def submit() -> None:
        for item in source:
            waiting.append(pool.submit(copy_context().run, alone, item))
            if len(waiting) > workers:
                return

    try:
        submit()
        while waiting:
            yield waiting.popleft().result()
            submit()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
