"""Parts of the cases, read ahead and digested one after the other, in memory that does not grow."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterwise.engines.local import Plan, summarise
from raterwise.predictions import Predictions
from raterwise.summaries.digest import Digest, Facts

__all__ = ["STREAM_UNITS", "blocks_of_cases", "blocks_of_groups", "digest", "read_ahead"]

IntArray = NDArray[np.int64]

STREAM_UNITS = 512
"""Into how many blocks the patients, or cases, of a stream are pooled for the bootstrap.

Who is in which block depends on the patient's name, or the number of the case, and the seed alone:
parts can be read in any order and anywhere. Pooling leaves the variance of sums as it is.
"""

Item = TypeVar("Item")


def digest(
    predictions: Predictions,
    plans: Sequence[Plan],
    *,
    blocks: IntArray | None = None,
    num_blocks: int = 1,
    unit: str = "cases",
    threads: int | None = None,
) -> Digest:
    """Return the digest of a part of the cases; `blocks` (n,) is the resampling unit of each."""
    summaries = summarise(predictions, plans, units=blocks, num_units=num_blocks, threads=threads)
    if blocks is None:
        unit_cases = np.array([len(predictions)])
    else:
        unit_cases = np.bincount(blocks, minlength=num_blocks)
    return Digest(summaries, Facts.of(predictions), unit_cases, unit)


def blocks_of_groups(groups: Iterable[Hashable], seed: int) -> IntArray:
    """Return the block of each patient, from the patient's name and the seed.

    >>> first, second, again = blocks_of_groups(["p1", "p2", "p1"], seed=0).tolist()
    >>> first == again, 0 <= second < STREAM_UNITS
    (True, True)
    """
    known: dict[Hashable, int] = {}
    out = []
    for name in groups:
        if name not in known:
            text = f"{seed}\n{name}".encode()
            known[name] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        out.append(known[name] % STREAM_UNITS)
    return np.array(out, np.int64)


def blocks_of_cases(first: int, number: int, seed: int) -> IntArray:
    """Return the block of cases first … first + number - 1 of a stream.

    Every run of STREAM_UNITS cases is spread over all blocks, in an order of its own.
    """
    runs = range(first // STREAM_UNITS, (first + number - 1) // STREAM_UNITS + 1)
    orders = [np.random.default_rng([seed, 4, run]).permutation(STREAM_UNITS) for run in runs]
    start = first % STREAM_UNITS
    return np.concatenate(orders)[start : start + number].astype(np.int64)


def read_ahead(items: Iterable[Item], depth: int = 1) -> Iterator[Item]:
    """Yield the items in order while a thread gets the next ones, no more than `depth` of them.

    An error of the source is raised where its item would have come. Whoever stops early, by an
    error or Ctrl-C, stops the thread too.
    """
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=depth)
    stopped = threading.Event()

    def put(kind: str, value: Any) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put((kind, value), timeout=0.1)
                return

    def read() -> None:
        try:
            for item in items:
                put("item", item)
                if stopped.is_set():
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    reader = threading.Thread(target=read, name="raterwise-read-ahead", daemon=True)
    reader.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "error":
                raise value
            if kind == "end":
                return
            yield value
    finally:
        stopped.set()
        reader.join()
