"""Segmentation at scale: one volume against the repeated data, kernels in bounded memory, workers.

    python benchmarks/segmentation.py [--side 256] [--raters 5] [--skip-peers] [--workers]

Peers see what their interfaces ask for: every voxel once per rater. Each measurement runs in a
process of its own, so that its peak memory is its own; ratios are within one run. The volume has
saturated confidences, as segmentation networks have: nine of ten voxels are background that the
network is sure of.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def volume(side: int | tuple[int, ...], raters: int, seed: int = 0) -> tuple[Array, Array]:
    """Return foreground probabilities, float32, and the raters' masks, uint8."""
    shape = (side, side, side) if isinstance(side, int) else side
    random = np.random.default_rng(seed)
    image = random.beta(0.3, 0.5, shape).astype(np.float32)
    sure = random.random(shape, dtype=np.float32) < 0.9
    image[sure] *= np.float32(1e-4)
    masks = np.empty((raters, *shape), np.uint8)
    for r in range(raters):
        masks[r] = random.random(shape, dtype=np.float32) < image
    return image, masks


def best_of(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """Return the least time of several, and the result."""
    result, least = None, float("inf")
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        least = min(least, time.perf_counter() - start)
    return least, result


def with_quorate(side: int, raters: int, metric: str) -> tuple[float, float]:
    """Return seconds and value of a metric of one volume."""
    from quorate.segmentation import Case, evaluate

    image, masks = volume(side, raters)
    small = Case(image[:8], masks[:, :8])
    evaluate([small], metric, question="positive", resamples=0)  # compile
    case = Case(image, masks)
    seconds, found = best_of(
        lambda: evaluate([case], metric, question="positive", resamples=0)[metric]
    )
    return seconds, found.value


def with_torchmetrics(side: int, raters: int) -> tuple[float, float]:
    """Return the same of torchmetrics' functional binary calibration error."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    image, masks = volume(side, raters)
    probs = torch.from_numpy(image).reshape(-1).repeat(raters)
    labels = torch.from_numpy(masks).reshape(-1)
    seconds, found = best_of(
        lambda: float(binary_calibration_error(probs, labels, n_bins=15, validate_args=False)), 1
    )
    return seconds, found


def with_monai(side: int, raters: int) -> tuple[float, float]:
    """Return the same of MONAI's calibration error, which counts one class per channel."""
    import torch
    from monai.metrics.calibration import CalibrationErrorMetric

    image, masks = volume(side, raters)
    probs = torch.from_numpy(image).reshape(1, 1, -1).repeat(1, 1, raters)
    labels = torch.from_numpy(masks).reshape(1, 1, -1).float()

    def work() -> float:
        metric = CalibrationErrorMetric(num_bins=15)
        metric(probs, labels)
        return float(metric.aggregate())

    return best_of(work, 1)


def kernel_volume(raters: int) -> tuple[float, float]:
    """Return seconds and value of KDE-ECE on a 512 x 512 x 100 volume."""
    from quorate.segmentation import Case, evaluate

    image, masks = volume((100, 512, 512), raters)
    evaluate([Case(image[:1], masks[:, :1])], "kde_ece", resamples=0)  # compile
    seconds, found = best_of(
        lambda: evaluate([Case(image, masks)], "kde_ece", resamples=0)["kde_ece"], 1
    )
    print(f"  bound {found.bound:.1e}", file=sys.stderr)
    return seconds, found.value


def kernel_sample(cases: int = 20_000) -> None:
    """Compare KDE-ECE from cells with the exact value on a sub-sample."""
    import quorate as qr
    from quorate.segmentation import Case, evaluate

    image, masks = volume(32, 5)
    kept = np.random.default_rng(0).permutation(image.size)[:cases]
    flat, votes = image.ravel()[kept], masks.reshape(5, -1)[:, kept]
    found = evaluate([Case(flat, votes)], "kde_ece", resamples=0)["kde_ece"]
    labels = qr.Labels.from_ratings(votes.T.astype(int), num_classes=2)
    exact = qr.kde_ece(flat, labels, method="exact")
    print(
        f"KDE-ECE of {cases} voxels: cells {found.value:.8f}, exact {exact:.8f}, "
        f"difference {abs(found.value - exact):.1e}, bound {found.bound:.1e}"
    )


def scaling(rows: int = 2_000_000) -> None:
    """Time a Parquet file here and on one and two worker processes, and the bare reading."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from quorate.engines.dask import connected
    from quorate.evaluate import rows_of
    from quorate.io import streams
    from quorate.merged import asked_of, plans_of

    random = np.random.default_rng(0)
    probs = random.dirichlet(np.full(5, 0.3), rows)
    labels = probs.argmax(axis=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        columns = {f"prob_{k}": probs[:, k] for k in range(5)} | {"label": labels}
        pq.write_table(pa.table(columns), path, row_group_size=100_000)
        parts, names = streams.parts_of([path])
        chosen = streams.StreamColumns.of(names, label_column="label")
        asked = asked_of(rows_of("ece,brier,nll,auccc,kde_ece"), {})
        job = streams.PartJob(chosen, tuple(plans_of(asked)), 0, True, threads=1)
        streams.digest_of_parts(job, parts[:1])
        size = 6 * 8 * rows / 1e9
        bare, _ = best_of(lambda: [streams._columns_of(p, chosen.needed) for p in parts])
        print(f"bare reading          {bare:6.2f} s  {size / bare:5.2f} GB/s of decoded columns")
        here, _ = best_of(lambda: streams.digest_of_parts(job, parts))
        print(f"this process          {here:6.2f} s  {bare / here:6.0%} of the reading")
        for workers in (1, 2):
            with connected("local", workers) as client:
                streams.digest_of_parts(job, parts[: 2 * workers], cluster=client)
                there, _ = best_of(lambda: streams.digest_of_parts(job, parts, cluster=client))
            print(f"{workers} worker process{'es' if workers > 1 else '  '}    {there:6.2f} s")


WORK: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "quorate ece": lambda side, raters: with_quorate(side, raters, "ece"),
    "torchmetrics ece": with_torchmetrics,
    "MONAI ece": with_monai,
    "quorate kde_ece": lambda side, raters: with_quorate(side, raters, "kde_ece"),
    "quorate kde_ece 512x512x100": lambda side, raters: kernel_volume(raters),
    "making the volume": lambda side, raters: (0.0, float(volume(side, raters)[0][0, 0, 0])),
}


def measured(name: str, side: int, raters: int) -> dict[str, float] | None:
    """Run one measurement in a process of its own; None where the peer is not installed."""
    command = [sys.executable, __file__, "--only", name, "--side", str(side)]
    done = subprocess.run(
        [*command, "--raters", str(raters)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--raters", type=int, default=5)
    parser.add_argument("--only", choices=WORK)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--workers", action="store_true", help="time one and two workers too")
    given = parser.parse_args()
    if given.only:
        seconds, value = WORK[given.only](given.side, given.raters)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": seconds, "value": value, "peak": peak}))
        return
    names = [n for n in WORK if not (given.skip_peers and n.startswith(("torch", "MONAI")))]
    rows = {name: measured(name, given.side, given.raters) for name in names}
    own = rows["quorate ece"]
    data = rows["making the volume"]
    assert own is not None and data is not None
    print(f"{given.side}^3 voxels, {given.raters} raters; memory beyond the volume itself")
    for name, row in rows.items():
        if row is None:
            print(f"{name:28} not installed, or failed")
        elif name != "making the volume":
            extra = max(row["peak"] - data["peak"], 0)
            print(
                f"{name:28} {row['seconds']:8.3f} s {row['seconds'] / own['seconds']:7.1f} x "
                f"{extra:8.0f} MB   value {row['value']:.8f}"
            )
    kernel_sample()
    if given.workers:
        scaling()


if __name__ == "__main__":
    main()
