"""ECE of the positive class in 10 bins where the answer is known by hand: who gets it right?

python -P benchmarks/traps.py

Prints a row for every library that is installed: torchmetrics, MONAI, netcal, calzone,
uncertainty-calibration. The table in docs/traps.md is of two environments, since not all of them
can be installed together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Ece = Callable[[Any, Any], float]
MANY = 20_000_000


def traps() -> dict[str, tuple[Any, Any]]:
    """Return probabilities and labels, by what is difficult about them."""
    random = np.random.default_rng(0)
    nan = random.random(100)
    said = (random.random(100) < nan).astype(int)
    nan[3] = np.nan
    many = np.full(MANY, np.float32(0.999))
    many[::4] = np.float32(0.01)
    seen = np.ones(MANY, np.int64)
    seen[::4] = seen[1::1000] = 0
    return {
        "p = 0": (np.array([0.0, 0.0, 0.3, 0.9]), np.array([1, 1, 0, 1])),
        "p = 1": (np.array([1.0, 1.0, 0.95, 0.95]), np.array([0, 1, 1, 1])),
        "NaN": (nan, said),
        "20 million voxels, float32": (many, seen),
    }


def libraries() -> Iterator[tuple[str, Ece]]:
    """Yield the libraries that are installed, each with its own call."""
    import importlib

    for make in (ours, torchmetrics, monai, netcal, calzone, uncertainty_calibration):
        try:
            yield make.__name__, make(importlib.import_module)
        except ImportError:
            continue


def ours(load: Callable[[str], Any]) -> Ece:
    """Return the call of raterwise."""
    rw = load("raterwise")
    return lambda p, y: rw.ece(p, y, bins=10, question="positive")


def torchmetrics(load: Callable[[str], Any]) -> Ece:
    """Return the call of torchmetrics."""
    torch, functional = load("torch"), load("torchmetrics.functional.classification")
    measure = functional.binary_calibration_error
    return lambda p, y: measure(torch.tensor(p), torch.tensor(y), n_bins=10)


def monai(load: Callable[[str], Any]) -> Ece:
    """Return the call of MONAI: one image, the class 1."""
    torch, metrics = load("torch"), load("monai.metrics")

    def measure(p: Any, y: Any) -> float:
        metric = metrics.CalibrationErrorMetric(num_bins=10, include_background=False)
        given = [torch.tensor(np.stack([1 - a, a]))[None, :, :, None] for a in (p, y)]
        metric(*given)
        return float(metric.aggregate().item())

    return measure


def netcal(load: Callable[[str], Any]) -> Ece:
    """Return the call of netcal."""
    metrics = load("netcal.metrics")
    return lambda p, y: metrics.ECE(10).measure(p, y)


def calzone(load: Callable[[str], Any]) -> Ece:
    """Return the call of calzone."""
    made = load("calzone.metrics").CalibrationMetrics(class_to_calculate=1, num_bins=10)

    def measure(p: Any, y: Any) -> float:
        both = np.stack([1 - p, p], axis=1)
        return float(made.calculate_metrics(y, both, metrics=["ECE-H"])["ECE-H"])

    return measure


def uncertainty_calibration(load: Callable[[str], Any]) -> Ece:
    """Return the call of uncertainty-calibration, which takes minutes for many cases."""
    calibration = load("calibration")
    return lambda p, y: calibration.get_ece(p, y, num_bins=10) if len(p) < MANY else np.nan


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found = traps()
    print("| | " + " | ".join(found) + " |")
    for name, measure in libraries():
        cells = []
        for p, y in found.values():
            try:
                cells.append(f"{float(measure(p, y)):.4g}")
            except (AssertionError, ValueError) as error:
                cells.append(str(error).splitlines()[0][:40])
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
