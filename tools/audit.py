"""List the licences of everything that raterwise and its extras pull in.

    python tools/audit.py

Reads what is installed, without a network; `make audit` runs pip-audit before it, which asks for
known vulnerabilities and therefore needs one.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution, metadata

from packaging.requirements import Requirement

ROOT = "raterwise"
EXTRAS = ("torch", "dask", "imaging", "report", "excel")


def pulled_in() -> set[str]:
    """Return the names of all packages that the extras need, as far as they are installed."""
    found: set[str] = set()
    waiting = [(ROOT, frozenset(EXTRAS))]
    while waiting:
        name, extras = waiting.pop()
        if name in found and not extras:
            continue
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # of another system or Python
        found.add(name)
        for text in needs:
            need = Requirement(text)
            asked = [{"extra": extra} for extra in extras] or [{"extra": ""}]
            wanted = need.marker is None or any(need.marker.evaluate(one) for one in asked)
            child = need.name.lower().replace("_", "-")
            if wanted and child not in found:
                waiting.append((child, frozenset(need.extras)))
    return found - {ROOT}


def licence_of(name: str) -> str:
    """Return the licence that a package declares, in a few words."""
    about = metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return expression
    classified = [
        line.rsplit("::", 1)[-1].strip()
        for line in about.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    text = (about.get("License") or "").strip().splitlines()
    return "; ".join(classified) or (text[0][:60] if text else "not declared")


def main() -> int:
    """Print a line per package; return 1 where a licence is not declared."""
    names = sorted(pulled_in())
    licences = {name: licence_of(name) for name in names}
    for name in names:
        print(f"{name:<28} {distribution(name).version:<16} {licences[name]}")
    return int("not declared" in licences.values())


if __name__ == "__main__":
    sys.exit(main())
