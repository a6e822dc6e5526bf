"""Work shared among threads that wait for it, with results and errors as if there were one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar

__all__ = ["in_threads", "one_thread"]

MOST_HELPERS = 64
_ALONE: ContextVar[bool] = ContextVar("alone", default=False)

Result = TypeVar("Result")


def in_threads(
    work: Callable[[int], Result], items: Sequence[int], threads: int | None = None
) -> list[Result]:
    """Return work(item) of every item, in their order, done by this thread and some helpers.

    The helpers wait between calls: starting threads takes longer than reading a million rows.
    Items are begun in order, and none after one has failed, so the error raised is that of the
    first item that fails, whatever the number of threads.
    """
    workers = min(len(items), threads or (1 if _ALONE.get() else _processors()))
    if workers <= 1:
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    errors: dict[int, Exception] = {}
    waiting = iter(range(len(items)))

    def take_turns() -> None:
        for i in waiting:
            if errors:
                return
            try:
                results[i] = work(items[i])
            except Exception as error:
                errors[i] = error

    helpers = [_pool().submit(take_turns) for _ in range(workers - 1)]
    take_turns()
    for helper in helpers:
        if not helper.cancel():  # one that has not even begun is not needed any more
            helper.result()
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(items))]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Leave the work of this thread to it alone, unless a number of threads is asked for."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_HELPERS, thread_name_prefix="raterwise")


if hasattr(os, "register_at_fork"):  # a forked child has the pool's memory but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _processors() -> int:
    """How many processors this process may use, which on a cluster is fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
