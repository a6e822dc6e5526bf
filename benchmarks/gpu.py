"""How fast a GPU makes the tables: as a fraction of its copy bandwidth, and beside torchmetrics.

    python benchmarks/gpu.py [--cases 10000000] [--classes 10] [--device cuda] [--repeats 10]

first compares every table with that of the CPU, with and without the fused passes of Triton, and
then prints two Markdown tables. A pass that reads each probability once and writes nothing could
reach the read bandwidth, which is taken as half of what a device-to-device copy moves in reads and
writes together; "of copy" is the bytes of predictions and labels over that time and bandwidth.
Saturated confidences are those of an overconfident network: nearly all in the last bin.

Needs PyTorch, NumPy and, for the comparison, torchmetrics; numba is not imported.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from raterwise.kernels import _torch as kernels
from raterwise.kernels import _triton
from raterwise.questions import Question
from raterwise.summaries import BinPlan, SortedPlan
from raterwise.tensors.device import summarise


def predictions(
    cases: int, classes: int, kind: str, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32 probabilities and classes; "uniform" or "saturated" confidences."""
    generator = torch.Generator(device).manual_seed(0)
    scale = 30.0 if kind == "saturated" else 2.0
    logits = torch.randn(cases, classes, generator=generator, device=device).mul_(scale)
    probs = torch.softmax(logits, dim=1)
    labels = torch.where(
        torch.rand(cases, generator=generator, device=device) < 0.8,
        probs.argmax(dim=1),
        torch.randint(classes, (cases,), generator=generator, device=device),
    )
    return probs, labels


def seconds(work: Callable[[], Any], device: torch.device, repeats: int) -> float:
    """Return the median time of a call, the device's queue empty before and after."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    for _ in range(2):
        work()
    times = []
    for _ in range(repeats):
        wait()
        begun = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def copy_bandwidth(device: torch.device, repeats: int) -> float:
    """Return the bytes per second that a large copy reads and writes together."""
    source = torch.zeros(1 << (28 if device.type == "cuda" else 24), device=device)
    target = torch.empty_like(source)
    took = seconds(lambda: target.copy_(source), device, repeats)
    return 2 * source.numel() * source.element_size() / took


PLANS: dict[str, Any] = {
    "top label, 15 bins": BinPlan(Question("top_label")),
    "per class, 15 bins": BinPlan(Question("per_class")),
    "predicted class, 15 bins": BinPlan(Question("predicted_class")),
    "top label, 5040 cells": BinPlan(Question("top_label"), 5040),
    "top label, 15 soft bins": BinPlan(Question("top_label"), spread=0.1),
    "sorted scores": SortedPlan(Question("top_label")),
}


def check(classes: int, device: torch.device) -> None:
    """Raise where a table differs from that of the CPU: single labels, raters, weights."""
    for kind in ("uniform", "saturated"):
        probs, labels = predictions(50_001, classes, kind, torch.device("cpu"))
        counts = torch.nn.functional.one_hot(labels, classes) * 2
        counts[:, 0] += torch.arange(len(labels)) % 3
        weights = torch.rand(len(labels), generator=torch.Generator().manual_seed(1))
        for given, w in ((labels, None), (counts, None), (counts, weights)):
            for name, plan in PLANS.items():
                there, here = (
                    summarise(probs.to(at), given.to(at), [plan], weights=w)[plan]
                    for at in (device, torch.device("cpu"))
                )
                if isinstance(plan, SortedPlan):
                    pairs = [(there.pooled().mass, here.pooled().mass)]
                else:
                    pairs = [(there.sums, here.sums)]
                for a, b in pairs:
                    if a.shape != b.shape or abs(a - b).max() > 1e-9 * abs(b).max():
                        raise AssertionError(f"{name}, {kind}: the device gives another table")


def choose_passes(classes: int, device: torch.device) -> None:
    """Check with and without Triton; go on without it where it does not work."""
    fused, _triton.triton = _triton.triton, None
    check(classes, device)
    print("PyTorch's own operations: every table is that of the CPU.")
    _triton.triton = fused
    if not _triton.can_run(torch.empty(0, device=device)):
        print("Triton: not for this device.")
        return
    try:
        check(classes, device)
        print("Triton: every table is that of the CPU.")
    except Exception:
        traceback.print_exc()
        _triton.triton = None
        print("Triton: failed, and is not used below.")


def summaries(
    probs: torch.Tensor, labels: torch.Tensor
) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Return each summary: the bytes it has to read, and how it is made."""
    both = probs.numel() * probs.element_size() + labels.numel() * labels.element_size()
    confidence, predicted = probs.max(dim=1)
    right = predicted == labels
    upper, lower = confidence[right], confidence[~right]
    found: dict[str, tuple[int, Callable[[], Any]]] = {
        name: (both, lambda plan=plan: summarise(probs, labels, [plan]))
        for name, plan in PLANS.items()
    }
    scores = confidence.numel() * confidence.element_size()
    found["AUCCC of scores (concordance)"] = scores, lambda: kernels.concordance(upper, lower)
    return found


def table_of_summaries(cases: int, classes: int, device: torch.device, repeats: int) -> None:
    """Print each summary on uniform and saturated confidences."""
    bandwidth = copy_bandwidth(device, repeats)
    print(f"Copy: {bandwidth / 1e9:.0f} GB/s, reads and writes together.\n")
    print("| summary | confidences | ms | GB/s read | of copy |")
    print("| --- | --- | ---: | ---: | ---: |")
    for kind in ("uniform", "saturated"):
        probs, labels = predictions(cases, classes, kind, device)
        for name, (size, work) in summaries(probs, labels).items():
            took = seconds(work, device, repeats)
            rate = size / took
            print(
                f"| {name} | {kind} | {took * 1e3:.2f} | {rate / 1e9:.0f} | "
                f"{rate / (bandwidth / 2):.0%} |"
            )


def against_torchmetrics(cases: int, classes: int, device: torch.device, repeats: int) -> None:
    """Print ECE of one batch, update and compute, beside torchmetrics."""
    try:
        from torchmetrics.classification import MulticlassCalibrationError
    except ImportError:
        print("torchmetrics is not installed: no comparison.")
        return
    from raterwise.torch.metrics import ECE

    print("\n| ECE, 15 bins | confidences | ms | value | times as fast |")
    print("| --- | --- | ---: | ---: | ---: |")
    for kind in ("uniform", "saturated"):
        probs, labels = predictions(cases, classes, kind, device)
        candidates: dict[str, Callable[[], Any]] = {
            "torchmetrics": lambda: MulticlassCalibrationError(classes, n_bins=15),
            "torchmetrics, unchecked": lambda: MulticlassCalibrationError(
                classes, n_bins=15, validate_args=False
            ),
            "raterwise": lambda: ECE(classes),
            "raterwise, unchecked": lambda: ECE(classes, validate_args=False),
            "raterwise, without Triton": lambda: ECE(classes),
        }
        first = None
        fused = _triton.triton
        for name, make in candidates.items():
            metric = make().to(device)
            _triton.triton = None if name.endswith("without Triton") else fused

            def work(metric: Any = metric, probs: Any = probs, labels: Any = labels) -> float:
                metric.reset()
                metric.update(probs, labels)
                return float(metric.compute())

            took = seconds(work, device, repeats)
            first = first or took
            print(f"| {name} | {kind} | {took * 1e3:.2f} | {work():.8f} | {first / took:.1f} |")
        _triton.triton = fused


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    print(f"{options.cases:,} cases, {options.classes} classes, float32, on {name}.")
    choose_passes(options.classes, device)
    table_of_summaries(options.cases, options.classes, device, options.repeats)
    against_torchmetrics(options.cases, options.classes, device, options.repeats)


if __name__ == "__main__":
    main()
