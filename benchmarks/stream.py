"""Time of a stream with intervals, as a multiple of a bare read of its row groups.

    python benchmarks/stream.py                  # 10^7 rows, 5 classes, 20 row groups
    python benchmarks/stream.py 1000000

ECE, Brier, class-wise ECE and AUCCC of a Parquet file, with the verdict and 1,000 resamples. Both
are measured in turn, after a first run that compiles the code. Wanted: at most 5 times the read.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import raterwise as rw

CLASSES, PARTS = 5, 20
METRICS = "ece,brier,classwise_ece,auccc"


def write(path: Path, cases: int) -> None:
    """Write float32 probabilities, and labels drawn from them."""
    random = np.random.default_rng(0)
    probs = random.dirichlet(np.full(CLASSES, 0.3), cases).astype(np.float32)
    labels = (probs.cumsum(axis=1) < random.random((cases, 1))).sum(axis=1).clip(0, CLASSES - 1)
    columns: dict[str, Any] = {f"prob_{k}": probs[:, k] for k in range(CLASSES)}
    columns["label"] = labels.astype(np.int8)
    pq.write_table(pa.table(columns), path, row_group_size=-(-cases // PARTS))


def read(path: Path) -> None:
    """Read every row group, and do nothing with it."""
    with pq.ParquetFile(path) as file:
        for group in range(file.metadata.num_row_groups):
            file.read_row_group(group, use_threads=False)


def seconds(work: Callable[[], Any]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print the times of each round, and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(",")[0])
    parser.add_argument("cases", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.parquet"
        write(path, given.cases)
        print("| bare read | stream | ratio |\n| ---: | ---: | ---: |")
        for i in range(given.rounds + 1):
            bare = seconds(lambda: read(path))
            stream = seconds(lambda: rw.evaluate_stream(path, METRICS, label_column="label"))
            if i:
                print(f"| {bare:.3f} s | {stream:.3f} s | {stream / bare:.1f} |", flush=True)


if __name__ == "__main__":
    main()
