"""Segmentation at scale: one volume against the repeated data, kernels in bounded memory, workers.

    python benchmarks/segmentation.py [--side 256] [--raters 5] [--skip-peers] [--workers]
        [--volumes 16] [--rows 2000000]

Peers see what their interfaces ask for: every voxel once per rater. Each measurement runs in a
process of its own, so that its peak memory is its own; ratios are within one run. The volume has
saturated confidences, as segmentation networks have: nine of ten voxels are background that the
network is sure of.
"""

from __future__ import annotations

import argparse
import json
import operator
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BINS = 15


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


class Peak:
    """The most memory beyond what was held at the start, in megabytes (Linux).

    Started after imports, compilation and the volume itself, so that it is what the work adds.
    """

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
        self._start = self._read("VmRSS")

    def megabytes(self) -> float:
        """Return the most so far."""
        return max(self._read("VmHWM") - self._start, 0) / 1024

    @staticmethod
    def _read(name: str) -> int:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


Measurement = dict[str, float]


def with_raterwise(side: int, raters: int, metric: str) -> Measurement:
    """Measure a metric of one volume."""
    image, masks = volume(side, raters)
    return evaluated(image, masks, metric, times=3)


def evaluated(image: Array, masks: Array, metric: str, times: int) -> Measurement:
    """Measure a metric of one volume that is in memory."""
    from raterwise.segmentation import Case, evaluate

    def work(case: Case) -> Any:
        return evaluate([case], metric, question="positive", resamples=0)[metric]

    work(Case(image[:8], masks[:, :8]))  # compile
    peak = Peak()
    seconds, found = best_of(lambda: work(Case(image, masks)), times)
    bound = {} if found.bound is None else {"bound": found.bound}
    return {"seconds": seconds, "value": found.value, "peak": peak.megabytes(), **bound}


def with_torchmetrics(side: int, raters: int) -> Measurement:
    """Measure torchmetrics' functional binary calibration error of the repeated voxels."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    image, masks = volume(side, raters)

    def work(probs: Any, labels: Any) -> float:
        return float(binary_calibration_error(probs, labels, n_bins=BINS, validate_args=False))

    work(torch.rand(1000), torch.randint(0, 2, (1000,)))
    peak = Peak()
    probs = torch.from_numpy(image).reshape(-1).repeat(raters)
    labels = torch.from_numpy(masks).reshape(-1)
    seconds, found = best_of(lambda: work(probs, labels), 1)
    return {"seconds": seconds, "value": found, "peak": peak.megabytes()}


def with_monai(side: int, raters: int) -> Measurement:
    """Measure MONAI's calibration error of the repeated voxels, one channel: the foreground."""
    import torch
    from monai.metrics import CalibrationErrorMetric

    image, masks = volume(side, raters)

    def work(probs: Any, labels: Any) -> float:
        metric = CalibrationErrorMetric(num_bins=BINS)
        metric(probs, labels)
        return float(metric.aggregate())

    work(torch.rand(1, 1, 1000), torch.randint(0, 2, (1, 1, 1000)).float())
    peak = Peak()
    probs = torch.from_numpy(image).reshape(1, 1, -1).repeat(1, 1, raters)
    labels = torch.from_numpy(masks).reshape(1, 1, -1).float()
    seconds, found = best_of(lambda: work(probs, labels), 1)
    return {"seconds": seconds, "value": found, "peak": peak.megabytes()}


def kernel_volume(raters: int) -> Measurement:
    """Measure KDE-ECE on a 512 x 512 x 100 volume."""
    image, masks = volume((100, 512, 512), raters)
    return evaluated(image, masks, "kde_ece", times=1)


def kernel_sample(cases: int = 20_000) -> None:
    """Compare KDE-ECE from cells with the exact value on a sub-sample."""
    import raterwise as rw
    from raterwise.segmentation import Case, evaluate

    image, masks = volume(32, 5)
    kept = np.random.default_rng(0).permutation(image.size)[:cases]
    flat, votes = image.ravel()[kept], masks.reshape(5, -1)[:, kept]
    found = evaluate([Case(flat, votes)], "kde_ece", resamples=0)["kde_ece"]
    labels = rw.Labels.from_ratings(votes.T.astype(int), num_classes=2)
    exact = rw.kde_ece(flat, labels, method="exact")
    print(
        f"KDE-ECE of {cases} voxels: cells {found.value:.8f}, exact {exact:.8f}, "
        f"difference {abs(found.value - exact):.1e}, bound {found.bound:.1e}"
    )


def scaling_of_tables(rows: int) -> None:
    """Time a Parquet file here and on one and two worker processes, and the bare reading."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from raterwise.evaluation.request import Request
    from raterwise.streaming import digests
    from raterwise.streaming import parts as streams
    from raterwise.streaming.cluster import connected

    random = np.random.default_rng(0)
    probs = random.dirichlet(np.full(5, 0.3), rows)
    labels = probs.argmax(axis=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        columns = {f"prob_{k}": probs[:, k] for k in range(5)} | {"label": labels}
        pq.write_table(pa.table(columns), path, row_group_size=max(rows // 20, 1000))
        parts, names = streams.parts_of([path])
        chosen = streams.StreamColumns.of(names, label_column="label")
        plans = Request.of("ece,brier,nll,auccc,kde_ece").plans(bounded=True)
        job = digests.PartJob(chosen, tuple(plans), 0, True)
        digests.digest_of_parts(job, parts[:1])
        size = 6 * 8 * rows / 1e9
        bare, _ = best_of(lambda: [streams._columns_of(p, chosen.needed) for p in parts])
        print(f"Parquet, {rows:,} rows of five classes, five metrics with intervals")
        print(f"  bare reading    {bare:7.2f} s  {size / bare:5.2f} GB/s of decoded columns")
        here, _ = best_of(lambda: digests.digest_of_parts(job, parts))
        print(f"  this process    {here:7.2f} s  {bare / here:5.0%} of the reading")
        for workers in (1, 2):
            with connected("local", workers) as client:
                digests.digest_of_parts(job, parts[: 2 * workers], cluster=client)
                there, _ = best_of(lambda: digests.digest_of_parts(job, parts, cluster=client))
            print(f"  {workers} worker(s)     {there:7.2f} s  {bare / there:5.0%} of the reading")


def scaling_of_images(side: int, raters: int, number: int) -> None:
    """Time the ECE of volumes in files: bare reading, this process, one and two workers."""
    from raterwise.io.manifests import CaseFiles
    from raterwise.segmentation import evaluate
    from raterwise.streaming.cluster import connected, results_on_cluster

    with tempfile.TemporaryDirectory() as name:
        folder, cases = Path(name), []
        for i in range(number):
            image, masks = volume(side, raters, seed=i)
            np.save(folder / f"p{i}.npy", image)
            for r, mask in enumerate(masks):
                np.save(folder / f"m{i}_{r}.npy", mask)
            files = tuple(folder / f"m{i}_{r}.npy" for r in range(raters))
            cases.append(CaseFiles(f"c{i}", folder / f"p{i}.npy", files, patient=f"c{i}"))
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e9

        def read() -> None:
            for file in folder.iterdir():
                file.read_bytes()

        def ece(some: list[CaseFiles], **where: Any) -> Any:
            return evaluate(some, "ece", question="positive", resamples=0, **where)["ece"]

        bare, _ = best_of(read)
        ece(cases[:1])  # compile
        alone, known = best_of(lambda: ece(cases, threads=1))
        print(f"{number} volumes of {side}^3 voxels, {raters} raters, NPY, {size:.2f} GB")
        print(f"  bare reading    {bare:7.2f} s  {size / bare:5.2f} GB/s from the system's cache")
        print(f"  this process    {alone:7.2f} s  {bare / alone:5.0%} of the reading")
        seconds, parts = alone / number, [SimpleNamespace(name=str(i)) for i in range(1000)]
        for workers in (1, 2):
            with connected("local", workers) as client:
                ece(cases[: 2 * workers], client=client)
                there, found = best_of(lambda: ece(cases, client=client))
                exchange, _ = best_of(
                    lambda: list(
                        results_on_cluster(operator.attrgetter("name"), parts, client, ahead=100)
                    ),
                    1,
                )
            assert found == known
            print(f"  {workers} worker(s)     {there:7.2f} s  {bare / there:5.0%} of the reading")
            seconds = there * workers / number
    estimate(seconds, size / number, exchange / len(parts))


def estimate(
    seconds: float, size: float, exchange: float, volumes: int = 10_000, workers: int = 100
) -> None:
    """Print what many volumes on many workers would take: on paper, from what was measured.

    Assumes that every worker has a processor of this kind and that the file system keeps up with
    all of them; the figure beside says what it must deliver. Handing out parts and getting their
    results back goes on beside the measuring; were it slower, it would decide.
    """
    from raterwise.evaluation.request import Request
    from raterwise.inference.settings import Settings
    from raterwise.segmentation.cases import Case, Selection
    from raterwise.segmentation.reduction import Reduction
    from raterwise.segmentation.request import CaseValues, ImageRequest

    asked = Request.of("ece", bins=BINS, question="positive", settings=Settings())
    request = ImageRequest(asked, Selection(), "per_case")
    kept = CaseValues.of(request.digest(Case(*volume(16, 5))), request)
    start = time.perf_counter()
    reduction = Reduction(request)
    for i in range(volumes):
        reduction.add(str(i), f"p{i}", kept)
    reduction.results()
    gathered = time.perf_counter() - start
    computing = volumes / workers * seconds
    print(f"on paper, {volumes:,} such volumes on {workers} workers, {seconds:.2f} s each:")
    print(f"  measuring       {computing:7.0f} s, reading {workers * size / seconds:.0f} GB/s")
    for rate in (1, 10):
        reading = volumes * size / rate
        longer = max(reading, computing)
        print(f"  at {rate:2} GB/s      {longer:7.0f} s, {reading / longer:.0%} of it reading")
    print(f"  handing out     {volumes * exchange:7.0f} s beside it, {1e3 * exchange:.1f} ms each")
    print(f"  gathering       {gathered:7.1f} s with 1,000 resamples, measured here")


WORK: dict[str, Callable[[int, int], Measurement]] = {
    "raterwise ece": lambda side, raters: with_raterwise(side, raters, "ece"),
    "torchmetrics ece": with_torchmetrics,
    "MONAI ece": with_monai,
    "raterwise kde_ece": lambda side, raters: with_raterwise(side, raters, "kde_ece"),
    "raterwise kde_ece 512x512x100": lambda side, raters: kernel_volume(raters),
}


def measured(name: str, side: int, raters: int) -> Measurement | None:
    """Run one measurement in a process of its own; None where the peer is not installed."""
    command = [sys.executable, __file__, "--only", name, "--side", str(side)]
    done = subprocess.run(
        [*command, "--raters", str(raters)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        return None
    found: Measurement = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--raters", type=int, default=5)
    parser.add_argument("--only", choices=WORK)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--workers", action="store_true", help="time one and two workers too")
    parser.add_argument("--volumes", type=int, default=16, help="of --workers")
    parser.add_argument("--rows", type=int, default=2_000_000, help="of --workers")
    given = parser.parse_args()
    if given.only:
        print(json.dumps(WORK[given.only](given.side, given.raters)))
        return
    names = [n for n in WORK if not (given.skip_peers and n.startswith(("torch", "MONAI")))]
    rows = {name: measured(name, given.side, given.raters) for name in names}
    own = rows["raterwise ece"]
    assert own is not None
    held = given.side**3 * (4 + given.raters) / 2**20
    print(
        f"{given.side}^3 voxels, {given.raters} raters: {held:.0f} MB; seconds, memory beyond the "
        "volume, and the ratio of the two together"
    )
    for name, row in rows.items():
        if row is None:
            print(f"{name:28} not installed, or failed")
            continue
        bound = f", bound {row['bound']:.1e}" if "bound" in row else ""
        both = f"{(held + row['peak']) / (held + own['peak']):6.1f} x  "
        both = " " * len(both) if "512" in name else both  # which is another volume
        print(
            f"{name:28} {row['seconds']:8.3f} s {row['seconds'] / own['seconds']:7.1f} x "
            f"{row['peak']:8.0f} MB {both} "
            f"value {row['value']:.8f}{bound}"
        )
    kernel_sample()
    if given.workers:
        scaling_of_images(given.side, given.raters, given.volumes)
        scaling_of_tables(given.rows)


if __name__ == "__main__":
    main()
