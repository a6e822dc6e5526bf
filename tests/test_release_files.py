"""What a release is made of says the same as pyproject.toml: names, versions, bounds, licences."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import raterwise as rw

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra dask")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import audit  # noqa: E402
import lowest  # noqa: E402


def text_of(name: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


SETTINGS = tomllib.loads(text_of("pyproject.toml"))
PROJECT: dict[str, Any] = SETTINGS["project"]
PYTHONS = [
    line.rsplit(" ", 1)[-1]
    for line in PROJECT["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
]
LOWEST = PROJECT["requires-python"].removeprefix(">=")


def in_conda(requirement: str) -> str:
    """Return a requirement as conda writes it."""
    return re.sub(r"(?=[<>=])", " ", requirement, count=1)


def test_python_is_the_same_everywhere() -> None:
    """The lowest Python, and those that the suite is run with, in all that names them."""
    assert PYTHONS[0] == LOWEST
    jobs = yaml.safe_load(text_of(".github/workflows/checks.yml"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == PYTHONS
    steps = [step.get("with", {}) for job in jobs.values() for step in job["steps"]]
    named = {step["python-version"] for step in steps if "python-version" in step}
    named |= set(re.findall(r"FROM python:(3\.\d+)", text_of("Dockerfile")))
    assert named - {"${{ matrix.python }}"} <= set(PYTHONS)
    lowest_job = [step.get("with", {}) for step in jobs["lowest"]["steps"]]
    assert {"python-version": LOWEST} in lowest_job
    assert SETTINGS["tool"]["mypy"]["python_version"] == LOWEST
    assert SETTINGS["tool"]["ruff"]["target-version"] == f"py{LOWEST.replace('.', '')}"
    assert f"sys.version_info >= ({LOWEST.replace('.', ', ')})" in text_of("Makefile")
    assert f"at present {PYTHONS[0]} to {PYTHONS[-1]}." in text_of("docs/releases.md")
    for page in ("README.md", "docs/start/install.md", "docs/index.md"):
        assert f"Python {LOWEST} or newer" in text_of(page)


def test_every_bound_is_a_lower_one_and_is_tested() -> None:
    """`make test-lowest` pins what pyproject.toml asks for, in the core and in every extra."""
    pinned = dict(line.split("==") for line in lowest.lowest(torch=True))
    asked = {r.name: str(r.specifier) for r in map(Requirement, PROJECT["dependencies"])}
    for name in ("torch", "dask", "imaging", "report", "excel"):
        extra = map(Requirement, PROJECT["optional-dependencies"][name])
        asked |= {r.name: str(r.specifier) for r in extra}
    assert asked == {name: f">={pinned[name]}" for name in asked}
    own = dict(line.split("==") for line in lowest.lowest())
    assert own == {**pinned, "torch": lowest.usual("torch")}
    minimum = SETTINGS["tool"]["pytest"]["ini_options"]["minversion"]
    assert f"pytest>={minimum}" in PROJECT["optional-dependencies"]["dev"]


def test_all_is_all() -> None:
    """The extra "all" names every extra of users, and the two of developers take it."""
    extras = PROJECT["optional-dependencies"]
    users = set(extras) - {"all", "docs", "release", "dev"}
    assert extras["all"] == [f"raterwise[{','.join(e for e in extras if e in users)}]"]
    assert all("raterwise[all]" in extras[name] for name in ("docs", "dev"))


def test_the_conda_recipe_asks_for_what_the_package_needs() -> None:
    """Version, Python, requirements, script and licence are those of pyproject.toml."""
    recipe = yaml.safe_load(text_of("packaging/conda/recipe.yaml"))
    python = f"python {PROJECT['requires-python']}"
    needed = {python, *map(in_conda, PROJECT["dependencies"])}
    assert set(recipe["requirements"]["run"]) == needed
    builds = {python, "pip", *map(in_conda, SETTINGS["build-system"]["requires"])}
    assert set(recipe["requirements"]["host"]) == builds
    assert recipe["context"]["version"] == rw.__version__
    assert recipe["package"]["name"] == PROJECT["name"]
    scripts = [f"{name} = {what}" for name, what in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert [about["license_file"]] == PROJECT["license-files"]


def test_the_citation_is_of_this_version() -> None:
    """CITATION.cff has the version and its day, the licence of the code, and four papers."""
    cited = yaml.safe_load(text_of("CITATION.cff"))
    assert (cited["title"], str(cited["version"])) == (PROJECT["name"], rw.__version__)
    assert f"## [{rw.__version__}] - {cited['date-released']}\n" in text_of("CHANGELOG.md")
    assert cited["license"] == PROJECT["license"].split(" AND ")[0]
    assert cited["authors"] == PROJECT["authors"]
    assert len(cited["references"]) == 4


def test_the_dockerfile_copies_what_is_there() -> None:
    """What it copies is there, .dockerignore lets it through, extra and program are ours."""
    lines = text_of("Dockerfile").splitlines()
    copied = [w for line in lines if line.startswith("COPY") and "--from" not in line
              for w in line.split()[1:-1]]  # fmt: skip
    let_through = text_of(".dockerignore").splitlines()
    assert copied and [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in let_through] == []
    (extra,) = re.findall(r'"\.\[(\w+)\]"', text_of("Dockerfile"))
    assert extra in PROJECT["optional-dependencies"]
    assert f'ENTRYPOINT ["{next(iter(PROJECT["scripts"]))}"]' in lines


def test_the_workflow_calls_make() -> None:
    """Every target that GitHub, continuous integration and SECURITY.md name is in the Makefile."""
    files = (".github/workflows/checks.yml", ".ci/run", "SECURITY.md", "docs/releases.md")
    called = {t for name in files for t in re.findall(r"\bmake ([a-z-]+)", text_of(name))}
    made = re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.M)
    assert {"test", "test-lowest", "docs", "check-site", "check-dist"} <= called <= set(made)


def test_pre_commit_runs_what_make_runs() -> None:
    """The hooks call the tools of `make lint` in its environment, and scripts that are there."""
    (local,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    words = [hook["entry"].split() for hook in local["hooks"]]
    assert {command[0] for command in words} == {".venv/bin/python"}
    linted = re.findall(r"^\t\$\(PY\) (-m ruff \w+)", text_of("Makefile"), flags=re.M)
    called = {" ".join(command[1:4]) for command in words if command[1] == "-m"}
    assert called == set(linted)
    scripts = [command[1] for command in words if command[1] != "-m"]
    assert scripts and all((ROOT / script).is_file() for script in scripts)


def test_the_licences_are_those_of_the_page() -> None:
    """docs/project.md names every licence of what users install, by its SPDX identifier."""
    needs = audit.wanted(ROOT / "pyproject.toml")
    users = set().union(*(audit.pulled_in(of) for extra, of in needs.items() if extra != "docs"))
    pins = dict(re.findall(r"^([\w.-]+)==([\w.]+)$", text_of("constraints.txt"), flags=re.M))
    pinned = {audit.canonicalize_name(name): version for name, version in pins.items()}
    page = text_of("docs/project.md").partition("installs besides is under")[2].partition(". `")[0]
    named = set(re.findall(r"[\w.-]*\w-?[\w.]*\w", page)) | {"AND", "OR", "WITH", "LLVM-exception"}
    found = {
        name: set(re.findall(r"[\w.-]+", audit.licence_of(name)))
        for name in users
        if audit.version_of(name).split("+")[0] == pinned.get(name)  # others may say it otherwise
    }
    assert {name: ids - named for name, ids in found.items() if ids - named} == {}
    assert PROJECT["license"] == "Apache-2.0 AND CC-BY-3.0"
    assert all(name in text_of("docs/project.md") for name in PROJECT["license"].split(" AND "))
