"""Work shared among threads that wait for it, with results and errors as if there were one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import TypeVar

MOST_HELPERS = 64
_ALLOWED: ContextVar[int | None] = ContextVar("allowed", default=None)
"""The one setting of the whole library; None is as many as there are processors."""

Result = TypeVar("Result")


def in_threads(
    work: Callable[[int], Result], items: Sequence[int], threads: int | None = None
) -> list[Result]:
    """Return work(item) of every item, in their order, done by this thread and some helpers.

    The helpers wait between calls: starting threads takes longer than reading a million rows.
    Items are begun in order, and none after one has failed, so the error raised is that of the
    first item that fails, whatever the number of threads.
    """
    workers = min(len(items), threads or number_of_threads())
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

    # Each helper knows the setting of the thread it helps.
    helpers = [_pool().submit(copy_context().run, take_turns) for _ in range(workers - 1)]
    take_turns()
    for helper in helpers:
        if not helper.cancel():  # one that has not even begun is not needed any more
            helper.result()
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(items))]


@contextlib.contextmanager
def with_threads(number: int | None) -> Iterator[None]:
    """Let everything inside use so many threads; None changes nothing."""
    if number is None:
        yield
        return
    token = _ALLOWED.set(number)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def number_of_threads() -> int:
    """Return how many threads the work of this thread may use."""
    return _ALLOWED.get() or _processors()


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
