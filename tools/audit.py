"""Ask for known vulnerabilities, and list the licences of everything that the extras pull in.

    python tools/audit.py

The licences are read from what is installed, without a network. pip-audit, where it is installed,
asks PyPI for known vulnerabilities of these packages. Where it cannot be asked, a line says that
nothing was checked: it is not taken for "none known". `--strict` makes that an error.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "raterwise"
CORE = "core"
"""What is needed without any extra."""
WITHOUT = ("all", "dev", "release")
"""Extras that name others, and the tools of those who work on raterwise."""
COPYLEFT = ("GPL", "AGPL", "LGPL", "MPL", "EUPL")
NOT_INSTALLED = "not installed here: unknown"
NOT_DECLARED = "not declared"
# What packages say that give no SPDX expression. "BSD" without a number was looked up.
SPDX = {
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "3-clause BSD": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
}
OF_THEIR_OWN = {"locket": "BSD-2-Clause", "numba": "BSD-2-Clause"}


def wanted(pyproject: Path) -> dict[str, list[Requirement]]:
    """Return what the project needs, by extra."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    needs = {CORE: project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [one for one in map(Requirement, texts) if one.name != ROOT]
        for extra, texts in needs.items()
        if extra not in WITHOUT
    }


def pulled_in(needs: Iterable[Requirement]) -> set[str]:
    """Return the names of all packages that some requirements come down to, on this system."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(n.name), frozenset(n.extras)) for n in needs if _applies(n)]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        name, extras = one
        try:
            texts = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # it is listed as not installed
        for need in map(Requirement, texts):
            if _applies(need, extras):
                waiting.append((canonicalize_name(need.name), frozenset(need.extras)))
    return {name for name, _ in found}


def _applies(need: Requirement, extras: Iterable[str] = ()) -> bool:
    asked = [{"extra": extra} for extra in ("", *extras)]
    return need.marker is None or any(need.marker.evaluate(one) for one in asked)


def version_of(name: str) -> str:
    """Return the version that is installed, or nothing."""
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return ""


def licence_of(name: str) -> str:
    """Return the licence that a package declares, as an SPDX expression where it is known."""
    try:
        about = distribution(name).metadata
    except PackageNotFoundError:
        return NOT_INSTALLED
    expression = about.get("License-Expression") or OF_THEIR_OWN.get(name)
    if expression:
        return str(expression)
    classified = [
        line.rsplit("::", 1)[-1].strip()
        for line in about.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    text = (about.get("License") or "").strip().splitlines()
    found = "; ".join(classified) or (text[0][:60] if text else NOT_DECLARED)
    return SPDX.get(found, found)


def print_licences(by_extra: Mapping[str, set[str]]) -> int:
    """Print a line per package, with the extras that pull it in; return how many are unknown."""
    names = sorted(set().union(*by_extra.values()))
    licences = {name: licence_of(name) for name in names}
    core = by_extra[CORE]
    for name in names:
        by = CORE if name in core else ",".join(e for e, own in by_extra.items() if name in own)
        print(f"{name:<28} {version_of(name):<16} {by:<22} {licences[name]}")
    unknown = [n for n, what in licences.items() if what in (NOT_INSTALLED, NOT_DECLARED)]
    strong = [n for n, what in licences.items() if any(word in what for word in COPYLEFT)]
    print(f"\n{len(names)} packages; of {len(unknown)} the licence is not known", end="")
    print(f" ({', '.join(unknown)})" if unknown else "")
    print(f"Copyleft: {', '.join(f'{n} ({licences[n]})' for n in strong) or 'none'}")
    return len(unknown)


def vulnerabilities(names: Iterable[str]) -> tuple[int, int, str]:
    """Return how many vulnerabilities are known, of how many packages, and why not of more."""
    if find_spec("pip_audit") is None:
        return 0, 0, "pip-audit is not installed (pip install pip-audit)"
    asked = sorted(name for name in names if version_of(name))
    command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "-f", "json"]
    command += ["--progress-spinner", "off", "--timeout", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = {canonicalize_name(d["name"]): d for d in json.loads(done.stdout)["dependencies"]}
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return 0, 0, f"pip-audit could not ask ({last[:200]})"
    checked = [found[n] for n in asked if n in found and "skip_reason" not in found[n]]
    for one in checked:
        for bad in one["vulns"]:
            fixed = ", ".join(bad["fix_versions"]) or "no version yet"
            print(f"VULNERABLE {one['name']} {one['version']}: {bad['id']}, mended in {fixed}")
    bad = sum(len(one["vulns"]) for one in checked)
    left = len(asked) - len(checked)
    if left and not checked:
        return 0, 0, f"PyPI told nothing of {left} packages (no network, or a mirror)"
    return bad, len(checked), f"{left} packages were not found at PyPI" if left else ""


def main() -> int:
    """Print what is known; return 1 where something is vulnerable or a licence is not known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="not to be able to ask is an error")
    strict = parser.parse_args().strict
    needs = wanted(Path(__file__).parents[1] / "pyproject.toml")
    by_extra = {extra: pulled_in(own) for extra, own in needs.items()}
    unknown = print_licences(by_extra)
    bad, checked, why = vulnerabilities(set().union(*by_extra.values()))
    print(f"Known vulnerabilities: {bad} in {checked} packages" if checked else "", end="")
    print("" if checked else f"NOT CHECKED for known vulnerabilities: {why}.")
    if checked and why:
        print(f"NOT CHECKED in part: {why}.")
    return int(bool(bad or unknown or (strict and why)))


if __name__ == "__main__":
    sys.exit(main())
