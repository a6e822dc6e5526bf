"""Every benchmark that compares times: `make bench`, or `make bench ARGS=speed` for one of them."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

# What each measures, and the peers that benchmarks/requirements.txt does not install.
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "speed": ("Calibration errors, resampling, ranks", ()),
    "kde": ("Kernel-density calibration errors", ()),
    "calibrators": ("Post-hoc calibrators", ("netcal", "probmetrics")),
    "memory": ("Everything at once: time, and memory beyond the predictions", ()),
    "stream": ("A stream with intervals, against a bare read of its row groups", ()),
    "growth": ("Time and memory from 10^3 to 10^8 cases, against ten libraries", ()),
    "accuracy": ("Every estimator of the calibration error against a known truth", ()),
    "traps": ("Who gets the easy answers right", ()),
    "segmentation": ("Volumes that several raters outlined", ()),
}

DRAWN = {"growth", "accuracy"}
"""Those that make a picture of docs/images besides their table."""


def main() -> None:
    """Run the parts asked for, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    print(f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}")
    for part in chosen:
        title, peers = PARTS[part]
        print(f"\n## {title}\n", flush=True)
        if missing := [peer for peer in peers if find_spec(peer) is None]:
            print(f"left out: needs {' and '.join(missing)}")
            continue
        script = Path(__file__).with_name(f"{part}.py")
        drawn = ["--report"] if part in DRAWN else []
        subprocess.run([sys.executable, "-P", str(script), *drawn], check=True)


if __name__ == "__main__":
    main()
