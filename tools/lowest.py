"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

python tools/lowest.py > lowest.txt
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
# Tools that check or build, which no user of the package has; and torch with what goes with it,
# whose early wheels bring gigabytes: those are the newest.
FREE = {
    *("raterwise", "hatchling", "mypy", "ruff", "selenium", "pytest", "pytest-xdist"),
    *("torch", "torchmetrics", "monai"),
}


def lowest() -> list[str]:
    """Return NAME==VERSION for every requirement with a lower bound, the extras' included."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name, each in extras.items()
              if name not in ("docs", "release") for one in each)]  # fmt: skip
    found = {}
    for text in wanted:
        need = Requirement(text)
        bounds = [one.version for one in need.specifier if one.operator == ">="]
        if need.name not in FREE and bounds:
            found[need.name] = bounds[0]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest()) + "\n")
