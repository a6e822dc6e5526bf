"""Speed of the calibration errors, as ratios against named peers measured in the same run.

    python benchmarks/speed.py            # everything, about five minutes
    python benchmarks/speed.py --quick    # without the ten million cases

Each pair runs alternately and the best time of each counts, so that a busy moment of the machine
hurts neither more than the other. Inputs are ready in the form each library likes best (MONAI's
one-hot masks are made beforehand), everybody checks its input as it does by default, and peers
use as many threads as they like. `diff` is how far the two answers are apart.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

import raterwise as rw

Array = Any
Task = Callable[[], float]
BINS, CLASSES = 15, 10


@dataclass(frozen=True)
class Row:
    """One line of the table: a task, and what it takes here and there."""

    task: str
    peer: str
    ours: float
    theirs: float
    difference: float | None = None
    wanted: str = ""

    def __str__(self) -> str:
        ratio = self.theirs / self.ours
        shown = f"{ratio:.1f} × as fast" if ratio >= 1 else f"{1 / ratio:.2f} × its time"
        diff = "" if self.difference is None else f"{self.difference:.0e}"
        times = f"{milliseconds(self.ours)} | {milliseconds(self.theirs)}"
        return f"| {self.task} | {self.peer} | {times} | **{shown}** | {self.wanted} | {diff} |"


HEADER = """\
| task | peer | raterwise | peer | ratio | wanted | diff |
| --- | --- | ---: | ---: | ---: | --- | ---: |"""


def milliseconds(seconds: float) -> str:
    """Write a time with three digits."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def race(ours: Task, theirs: Task, turns: int, their_turns: int | None = None) -> tuple[float, ...]:
    """Return the best time of each, run alternately, and how far their answers are apart."""
    difference = abs(ours() - theirs())
    best = [np.inf, np.inf]
    for turn in range(turns):
        for side, task in enumerate((ours, theirs)):
            if side == 1 and turn >= (their_turns or turns):
                continue
            start = time.perf_counter()
            task()
            best[side] = min(best[side], time.perf_counter() - start)
    return best[0], best[1], difference


def predictions(cases: int, spread: float, classes: int = CLASSES) -> tuple[Array, Array]:
    """Return softmax outputs in float32, saturated where `spread` is large, and labels."""
    random = torch.Generator().manual_seed(0)
    probs = torch.softmax(torch.randn(cases, classes, generator=random) * spread, dim=1)
    # Drawn from the probabilities: the model is calibrated, and its error is all rounding.
    threshold = torch.rand(cases, 1, generator=random)
    labels = (probs.cumsum(dim=1) < threshold).sum(dim=1).clamp(max=classes - 1)
    return probs.numpy(), labels.numpy()


def confidence_errors(cases: int, turns: int) -> Iterator[Row]:
    """ECE of the predicted class against torchmetrics, and against one bare read."""
    from torchmetrics.functional.classification import multiclass_calibration_error

    name, size = f"torchmetrics {version('torchmetrics')}", f"N = 10^{int(np.log10(cases))}"
    for kind, spread in (("soft", 1.5), ("saturated", 12.0)):
        probs, labels = predictions(cases, spread)
        tensor, said = torch.from_numpy(probs), torch.from_numpy(labels)

        def ours(p: Array = probs, y: Array = labels) -> float:
            return rw.ece(p, y, bins=BINS)

        def theirs(p: Array = tensor, y: Array = said) -> float:
            return float(multiclass_calibration_error(p, y, CLASSES, n_bins=BINS))

        def read(p: Array = tensor) -> float:
            return float(p.sum())

        task = f"`ece`, {size}, K = {CLASSES}, {kind}"
        yield Row(task, name, *race(ours, theirs, turns, 5), ">= 6 ×")
        mine, once, _ = race(ours, read, 20 * turns)
        yield Row(task, f"`torch.sum` {version('torch')}", mine, once, None, "<= 2.5 ×")


def class_errors(cases: int, turns: int) -> Iterator[Row]:
    """Class-wise ECE against MONAI's metric, its one-hot masks ready."""
    from monai.metrics import CalibrationErrorMetric

    for kind, spread in (("soft", 1.5), ("saturated", 12.0)):
        probs, labels = predictions(cases, spread)
        volume = torch.from_numpy(probs).T.contiguous()[None]
        said = torch.nn.functional.one_hot(torch.from_numpy(labels), CLASSES)
        masks = said.float().T.contiguous()[None]

        def ours(p: Array = probs, y: Array = labels) -> float:
            return rw.classwise_ece(p, y, bins=BINS)

        def theirs(p: Array = volume, y: Array = masks) -> float:
            metric = CalibrationErrorMetric(num_bins=BINS)
            metric(y_pred=p, y=y)
            return float(metric.aggregate())

        task = f"`classwise_ece`, N = 10^6, K = {CLASSES}, {kind}"
        yield Row(task, f"MONAI {version('monai')}", *race(ours, theirs, turns, 5), ">= 8 ×")


def bootstraps(cases: int, turns: int) -> Iterator[Row]:
    """A thousand resamples of ECE with an interval, against calzone's and a loop in NumPy."""
    from calzone.metrics import CalibrationMetrics

    probs, labels = predictions(cases, 1.5, classes=2)
    probs = probs.astype(np.float64)
    resamples, few = 1000, 5

    def ours() -> float:
        return float(rw.evaluate(probs, labels, metrics=["ece"], resamples=resamples)["ece"].value)

    def calzone() -> float:
        metrics = CalibrationMetrics(num_bins=BINS)
        return float(metrics.bootstrap(labels, probs, ["ECE-H"], n_samples=few)["ECE-H"].mean())

    def numpy() -> float:
        random = np.random.default_rng(0)
        confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
        place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        gap, values = right - confidence, []
        for _ in range(20 * few):
            drawn = random.integers(0, cases, cases)
            values.append(np.abs(np.bincount(place[drawn], gap[drawn], BINS)).sum() / cases)
        return float(np.mean(values))

    task = "1,000 resamples of `ece`, N = 10^5, K = 2"
    mine, theirs, _ = race(ours, calzone, turns, 2)
    name = f"calzone-tool {version('calzone-tool')}, {few} resamples × {resamples // few}"
    yield Row(task, name, mine, theirs * resamples / few, None, ">= 50 ×")
    mine, theirs, _ = race(ours, numpy, turns, 2)
    name = f"NumPy {version('numpy')}, `bincount` in a loop, {20 * few} resamples × 10"
    yield Row(task, name, mine, theirs * resamples / (20 * few), None, ">= 4 ×")


def ranks(cases: int, turns: int) -> Iterator[Row]:
    """AUCCC against the areas under the curve of scikit-learn and torchmetrics."""
    from sklearn.metrics import roc_auc_score
    from torchmetrics.functional.classification import binary_auroc

    random = np.random.default_rng(0)
    confidence = random.beta(5, 1.5, cases).astype(np.float32)
    right = random.random(cases) < confidence
    tensor, said = torch.from_numpy(confidence), torch.from_numpy(right.astype(np.int64))
    task = f"`confidence.auccc`, N = 10^{int(np.log10(cases))}"

    def ours() -> float:
        return rw.confidence.auccc(confidence, right)

    peers: dict[str, Task] = {
        "scikit-learn": lambda: float(roc_auc_score(right, confidence)),
        "torchmetrics": lambda: float(binary_auroc(tensor, said, thresholds=None)),
    }
    for name, theirs in peers.items():
        yield Row(task, f"{name} {version(name)}", *race(ours, theirs, turns, 2), ">= 4 ×")


def seconds(code: str, turns: int = 5) -> float:
    """Return the best time of a Python that starts, runs some code and ends."""
    best = np.inf
    for _ in range(turns):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        best = min(best, time.perf_counter() - start)
    return best


def latencies() -> Iterator[str]:
    """What has no peer: the import, the first call, everything at once."""
    alone, numpy, whole = (seconds(code) for code in ("", "import numpy", "import raterwise"))
    yield f"| `import raterwise` | {milliseconds(whole - alone)} |"
    yield f"| … of which NumPy | {milliseconds(numpy - alone)} |"
    first = "import raterwise as q; q.ece([[.9, .1], [.2, .8]], [0, 1])"
    yield f"| import and first `ece`, compiled before | {milliseconds(seconds(first) - alone)} |"
    for cases, classes in ((1000, 5), (100_000, 10)):
        random = np.random.default_rng(0)
        probs = random.dirichlet(np.full(classes, 0.5), cases)
        below = probs.cumsum(axis=1)[:, None, :] < random.random((cases, 3, 1))
        labels = rw.Labels.from_ratings(below.sum(axis=2), num_classes=classes)
        best = np.inf
        for _ in range(4):
            start = time.perf_counter()
            results = rw.evaluate(probs, labels)
            best = min(best, time.perf_counter() - start)
        what = f"`evaluate`, {len(list(results))} metrics with intervals"
        yield f"| {what}, N = {cases:,}, K = {classes}, 3 raters | {milliseconds(best)} |"


def main(arguments: list[str] | None = None) -> None:
    """Print the tables as Markdown, line by line as they are measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the ten million cases")
    quick = parser.parse_args(arguments).quick
    print(HEADER, flush=True)
    for row in confidence_errors(10**6, 15):
        print(row, flush=True)
    if not quick:
        for row in confidence_errors(10**7, 6):
            print(row, flush=True)
    for row in (*class_errors(10**6, 15), *bootstraps(10**5, 5)):
        print(row, flush=True)
    for row in ranks(10**6 if quick else 10**7, 5):
        print(row, flush=True)
    print("\n| without a peer | time |\n| --- | ---: |", flush=True)
    for line in latencies():
        print(line, flush=True)


if __name__ == "__main__":
    main()
