"""ECE of the positive class in 10 bins where the answer is known by hand: who gets it right?

python -P benchmarks/traps.py

Prints a row for every library of peers.py that is installed and has such a number. docs/traps.md
has the table.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

try:
    from benchmarks.peers import PEERS, Prepare
except ImportError:  # run as a script with -P
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from peers import PEERS, Prepare

BINS, MANY = 10, 20_000_000
OTHERS = {
    *("raterwise, interval", "raterwise, file", "raterwise, smooth", "relplot", "PyCalEva"),
    "TensorFlow Probability",
}
"""Of another number: the top label, equal-mass groups, a smooth error."""


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


def order(prepare: Prepare) -> str:
    """Return by how much the value of a million float32 cases moves when they are sorted."""
    random = np.random.default_rng(0)
    p = random.beta(0.3, 0.3, 10**6).astype(np.float32)
    y = (random.random(10**6) < p).astype(np.int64)
    rows = np.argsort(p)
    return f"{abs(prepare(p, y)() - prepare(p[rows], y[rows])()):.0e}"


def told(call: Callable[[], float | str]) -> str:
    """Return the value, or the beginning of the complaint."""
    try:
        found = call()
    except (AssertionError, ValueError) as error:
        return str(error).splitlines()[0][:40]
    return found if isinstance(found, str) else f"{found:.4g}"


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found = traps()
    print("| | " + " | ".join([*found, "order of 10^6 cases"]) + " |")
    for name, peer in PEERS.items():
        try:
            prepare = peer.make(BINS) if name not in OTHERS else None
        except ImportError:
            continue
        if prepare is not None:
            cells = [told(lambda: prepare(p, y)()) for p, y in found.values()]  # noqa: B023
            cells.append(told(lambda: order(prepare)))  # noqa: B023
            print(f"| {name} {peer.version} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
