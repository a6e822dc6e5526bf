"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

python tools/lowest.py > lowest.txt
python tools/lowest.py --torch > lowest.txt    # torch's as well, which brings gigabytes of CUDA
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
# Tools that check or build, which no user of the package has.
FREE = {"raterwise", "hatchling", "mypy", "ruff", "selenium", "pytest", "pytest-xdist"}


def lowest(torch: bool = False) -> list[str]:
    """Return NAME==VERSION for every requirement with a lower bound, the extras' included.

    Old builds of torch for the CPU are not on the package index, so torch is the one of
    constraints.txt unless its lowest is asked for.
    """
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = list(project["dependencies"])
    for name, extra in project["optional-dependencies"].items():
        wanted += extra if name not in ("docs", "release") else []
    found = {}
    for need in map(Requirement, wanted):
        bounds = [one.version for one in need.specifier if one.operator == ">="]
        if need.name not in FREE and bounds:
            found[need.name] = bounds[0]
    if not torch:
        found["torch"] = usual("torch")
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def usual(name: str) -> str:
    """Return the version that constraints.txt has."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line.split("==")[1] for line in lines if line.startswith(f"{name}=="))


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest("--torch" in sys.argv)) + "\n")
