"""Time and extra memory of everything at once, as a multiple of what the predictions take.

    python benchmarks/memory.py                  # 10^6 cases, 10 classes, 3 raters, float32
    python benchmarks/memory.py 200000 --classes 5

The extra memory is the largest resident size of the process while `evaluate` runs, less that
before; the code is compiled and the data are made by then. Wanted: at most 4 times the predictions.
"""

from __future__ import annotations

import argparse
import gc
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw

PAGE = 4096
EVERY = 0.002
"""Seconds between two looks at the size."""


def resident() -> int:
    """Return how many bytes the process holds in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def data(cases: int, classes: int, raters: int) -> tuple[Any, rw.Labels]:
    """Return float32 probabilities, and labels drawn from them."""
    random = np.random.default_rng(0)
    probs = random.standard_gamma(0.5, (cases, classes)).astype(np.float32) + np.float32(1e-12)
    probs /= probs.sum(axis=1, keepdims=True)
    reached = probs.cumsum(axis=1, dtype=np.float64)
    said = [(reached < random.random((cases, 1))).sum(axis=1) for _ in range(raters)]
    ratings = np.minimum(np.stack(said, axis=1), classes - 1)
    return probs, rw.Labels.from_ratings(ratings, num_classes=classes)


def measured(probs: Any, labels: rw.Labels) -> tuple[float, float]:
    """Return how many seconds `evaluate` takes, and how many bytes more than before."""
    gc.collect()
    before, sizes, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(EVERY):
            sizes.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    rw.evaluate(probs, labels, metrics="all")
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    return seconds, max(sizes) - before


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="?", type=int, default=10**6)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--raters", type=int, default=3)
    asked = parser.parse_args()
    rw.evaluate(*data(2000, asked.classes, asked.raters), metrics="all")  # compiles the loops
    probs, labels = data(asked.cases, asked.classes, asked.raters)
    seconds, extra = measured(probs, labels)
    print(
        f"evaluate(metrics='all'), {asked.cases:,} x {asked.classes} {probs.dtype}, "
        f"{asked.raters} raters: {seconds:.2f} s, {extra / 1e6:.0f} MB more = "
        f"{extra / probs.nbytes:.1f} x the predictions"
    )


if __name__ == "__main__":
    main()
