"""Rules about the source itself, read off its syntax trees.

A rule is a generator of complaints about one module. Each is run on the package, which must
be free of complaints, and on a planted offence, which must not be.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

# The order of the package, from the bottom up: a module may import what stands in a line above
# its own, and its own package; never its neighbours in the line, never what comes later. A dotted
# name ("io.tables") may be given a line of its own, apart from its package.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("brief", "errors", "palette", "types", "readers.yardstick"),
    ("rules",),
    ("frames", "provenance"),
    ("arrays", "kernels", "io.files", "io.damaged"),
    ("binning", "labels"),
    ("predictions",),
    ("questions", "prevalence"),
    ("summaries",),
    ("densities",),
    ("metrics",),
    ("tensors", "beliefs"),
    ("catalog", "confidence"),
    ("exchangeability", "results"),
    ("inference",),
    ("curves", "progress_bar"),
    ("evaluation",),
    ("subgroups", "readers"),
    ("evaluate", "functions"),
    ("multilabel", "compare", "alpha_check", "calibration_tests", "rater_agreement"),
    ("stability", "calibrators", "io", "worklist"),
    ("streaming",),
    ("planning", "segmentation"),
    ("datasets", "plots", "report"),
    ("cli", "torch"),
    ("__main__",),
)

# Narrower than the order: these know nothing of raterwise but what is listed.
KNOWS_ONLY: dict[str, set[str]] = {
    "kernels": {"errors", "types"},
    "densities": {"types", "errors", "rules", "arrays", "binning", "kernels", "summaries"},
    "metrics": {
        *("types", "errors", "rules", "arrays", "binning", "kernels", "summaries", "densities"),
        "brief",
    },
    "functions": {
        *("types", "errors", "rules", "arrays", "frames", "binning", "labels", "predictions"),
        *(
            "questions",
            "kernels",
            "summaries",
            "densities",
            "metrics",
            "catalog",
            "tensors",
            "confidence",
        ),
    },
    "plots": {
        *("types", "errors", "rules", "arrays", "calibrators", "palette", "labels", "results"),
        *("curves", "stability", "planning"),
    },
    "report": {
        *("types", "errors", "io.files", "palette", "results", "curves", "exchangeability"),
        *("catalog", "readers.yardstick"),
    },
}

# The leaves: only those named may import them.
IMPORTED_ONLY_BY: dict[str, set[str]] = {
    "torch": set(),
    "report": {"", "cli", "results", "compare"},  # the package: by its name, later
    "cli": {"__main__"},
}

# Against the order, within a method that somebody calls who wants just this: results.to_html().
ON_DEMAND: dict[str, set[str]] = {"results": {"report"}, "compare": {"report"}}

# Third-party packages that a part may import, where that is narrower than the project's.
THIRD_PARTY_ONLY: dict[str, set[str]] = {"metrics": {"numpy", "scipy"}}

PICKLING = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
MAX_MODULE_LINES = 450
MAX_BODY_LINES = 60
ABSOLUTE_PATH = re.compile(r"(/[A-Za-z][\w.-]*){2,}|~/|[A-Za-z]:\\")

PACKAGE = "raterwise"
ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / PACKAGE

# What stands beside the package in the repository, and is not installed with it.
BESIDE = {"benchmarks", "examples", "experiments", "tests", "tools"}
PAPERS = {"label_histograms", "robust_ece", "multi_rater", "confidence_curves"}


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name below its package ("" for that itself) and its text."""

    name: str
    text: str
    is_package: bool = False
    package: str = PACKAGE

    @classmethod
    def read(cls, path: Path, source: Path = SOURCE) -> Module:
        """Read the module at a path below the folder of its package."""
        parts = path.relative_to(source).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        return cls(name, path.read_text(encoding="utf-8"), is_package, source.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the syntax tree."""
        return list(ast.walk(ast.parse(self.text)))

    def where(self, node: ast.AST) -> str:
        """Name the place of a node, for a complaint."""
        return f"{self.package}.{self.name}".rstrip(".") + f", line {getattr(node, 'lineno', '?')}"


MODULES = [Module.read(path) for path in sorted(SOURCE.rglob("*.py"))]
EXPERIMENTS = [
    Module.read(path, ROOT / "experiments") for path in sorted((ROOT / "experiments").rglob("*.py"))
]


def position(name: str) -> tuple[str, int] | None:
    """Find the longest entry of LAYERS that is this module or holds it, and its line."""
    entries = {entry: line for line, layer in enumerate(LAYERS) for entry in layer}
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        entry = ".".join(parts[:length])
        if entry in entries:
            return entry, entries[entry]
    return None


def imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield each import, wherever it stands, as a full dotted name ("raterwise.labels.Labels")."""
    for node in module.nodes:
        match node:
            case ast.Import(names=names):
                yield from ((node, alias.name) for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                origin = absolute(module, base, level)
                yield from ((node, f"{origin}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(target)), *_],
            ):
                level = len(target) - len(target.lstrip("."))
                yield node, absolute(module, target[level:], level)


def absolute(module: Module, base: str | None, level: int) -> str:
    """Resolve the dots of a relative import against the module that holds it."""
    if level == 0:
        return base or ""
    here = [module.package, *filter(None, module.name.split("."))]
    up = level - 1 if module.is_package else level
    return ".".join([*here[: len(here) - up], *filter(None, [base])])


def internal_imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield imports of raterwise as names below it; names defined in a module come along."""
    for node, name in imports(module):
        package, _, rest = name.partition(".")
        if package == PACKAGE:
            yield node, rest


def wrong_way(module: Module) -> Iterator[str]:
    """Complain of imports that do not point down the layers."""
    if not module.name:
        return  # The package itself gathers the public names; `leaves` watches over it.
    own = position(module.name)
    if own is None:
        yield f"{PACKAGE}.{module.name} has no line in LAYERS: say where it belongs"
        return
    for node, target in internal_imports(module):
        if target == "__version__":
            continue
        found = position(target)
        if found is None:
            yield f"{module.where(node)}: import {target or PACKAGE} from the module defining it"
        elif found[0] in ON_DEMAND.get(own[0], ()) and getattr(node, "col_offset", 0) > 0:
            continue
        elif found[0] != own[0] and found[1] >= own[1]:
            yield f"{module.where(node)}: {own[0]} must not import {found[0]}: not below it"


def beyond_its_knowledge(module: Module) -> Iterator[str]:
    """Complain of imports outside the short list of a module that has one."""
    own = position(module.name)
    if own is None or own[0] not in KNOWS_ONLY:
        return
    allowed = KNOWS_ONLY[own[0]] | {own[0], "__version__"}
    for node, target in internal_imports(module):
        found = position(target)
        if (found[0] if found else target) not in allowed:
            yield f"{module.where(node)}: {own[0]} may import only {sorted(allowed)}, not {target}"


def leaves(module: Module) -> Iterator[str]:
    """Complain of imports of a leaf by anybody but those who may."""
    own = position(module.name)
    own_name = own[0] if own else module.name
    for node, target in internal_imports(module):
        found = position(target)
        if found is None or found[0] == own_name or found[0] not in IMPORTED_ONLY_BY:
            continue
        allowed = IMPORTED_ONLY_BY[found[0]]
        if own_name not in allowed:
            yield f"{module.where(node)}: only {sorted(allowed)} may import {found[0]}"


def passed_on(module: Module) -> Iterator[str]:
    """Complain of names taken from a module that has them from another: nobody finds them there.

    Packages pass the names of their modules on, and so do the public modules of `torch`.
    """
    known = {other.name: other for other in MODULES if not other.is_package}
    for node, target in internal_imports(module):
        source, _, name = target.rpartition(".")
        if source not in known or source.startswith("torch."):
            continue
        found = (at for _, at in internal_imports(known[source]) if at.endswith(f".{name}"))
        for origin in found:
            yield f"{module.where(node)}: import {name} from {origin.rpartition('.')[0]}"


def foreign_packages(module: Module) -> Iterator[str]:
    """Complain of third-party packages where only some are allowed."""
    own = position(module.name)
    if own is None or own[0] not in THIRD_PARTY_ONLY:
        return
    allowed = THIRD_PARTY_ONLY[own[0]] | sys.stdlib_module_names | {PACKAGE}
    for node, name in imports(module):
        if name.partition(".")[0] not in allowed:
            yield f"{module.where(node)}: {own[0]} must not import {name}"


def not_installed(module: Module) -> Iterator[str]:
    """Complain of imports of what only a checkout has."""
    for node, name in imports(module):
        if name.partition(".")[0] in BESIDE:
            yield f"{module.where(node)}: {name} is not installed with {PACKAGE}"


def other_papers(module: Module) -> Iterator[str]:
    """Complain of an experiment that imports another paper's: what both need is shared."""
    own = module.name.partition(".")[0]
    for node, name in imports(module):
        package, _, rest = name.partition(".")
        paper = rest.partition(".")[0]
        if package == module.package and paper in PAPERS and own not in {paper, "commands"}:
            yield f"{module.where(node)}: must not import {paper}; share it"


def unsafe_loading(module: Module) -> Iterator[str]:
    """Complain of pickles: a file from outside must not be able to run code."""
    for node, name in imports(module):
        if name.partition(".")[0] in PICKLING:
            yield f"{module.where(node)}: imports {name}"
    for node in module.nodes:
        match node:
            case ast.keyword(arg="allow_pickle", value=value) if not is_constant(value, False):
                yield f"{module.where(value)}: allow_pickle must be False"
            case ast.keyword(arg="weights_only", value=value) if not is_constant(value, True):
                yield f"{module.where(value)}: weights_only must be True"


def is_constant(node: ast.expr, value: bool) -> bool:
    """Tell whether an expression is literally this truth value."""
    return isinstance(node, ast.Constant) and node.value is value


def absolute_paths(module: Module) -> Iterator[str]:
    """Complain of strings that are a place on somebody's machine."""
    # What follows a placeholder of an f-string begins nothing: f"{n}/cases/second".
    later = {
        id(part)
        for node in module.nodes
        if isinstance(node, ast.JoinedStr)
        for part in node.values[1:]
    }
    for node in module.nodes:
        match node:
            case ast.Constant(value=str(text)) if ABSOLUTE_PATH.match(text):
                if id(node) not in later:
                    yield f"{module.where(node)}: absolute path {text!r}"


def too_long(module: Module) -> Iterator[str]:
    """Complain of modules and function bodies that do not fit a reader's head."""
    lines = len(module.text.splitlines())
    if lines > MAX_MODULE_LINES:
        yield f"{module.package}.{module.name} has {lines} lines, more than {MAX_MODULE_LINES}"
    for node in module.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        if length > MAX_BODY_LINES:
            yield f"{module.where(node)}: {node.name} has {length} lines, over {MAX_BODY_LINES}"


Rule = Callable[[Module], Iterator[str]]
RULES: tuple[Rule, ...] = (
    wrong_way,
    beyond_its_knowledge,
    leaves,
    passed_on,
    foreign_packages,
    not_installed,
    unsafe_loading,
    absolute_paths,
    too_long,
)
EXPERIMENT_RULES: tuple[Rule, ...] = (
    other_papers,
    passed_on,
    unsafe_loading,
    absolute_paths,
    too_long,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_obeys(rule: Rule) -> None:
    """No module of the package gives this rule anything to complain of."""
    assert MODULES, f"no source found in {SOURCE.name}"
    assert [complaint for module in MODULES for complaint in rule(module)] == []


@pytest.mark.parametrize("rule", EXPERIMENT_RULES, ids=lambda rule: rule.__name__)
def test_the_experiments_obey(rule: Rule) -> None:
    """No module of the experiments gives this rule anything to complain of."""
    assert {module.name for module in EXPERIMENTS} >= PAPERS
    assert [complaint for module in EXPERIMENTS for complaint in rule(module)] == []


LONG_BODY = "def f():\n    '''Doc.'''\n" + "    x = 1\n" * (MAX_BODY_LINES + 1)


@pytest.mark.parametrize(
    ("rule", "name", "text", "complaint"),
    [
        (wrong_way, "labels", "from raterwise.questions import ask", "must not import questions"),
        (wrong_way, "labels", "from raterwise import binning", "must not import binning"),
        (wrong_way, "labels", "def f():\n    import raterwise.cli", "line 2: labels must not"),
        (wrong_way, "labels", "from .evaluate import evaluate", "must not import evaluate"),
        (wrong_way, "io.tables", "from ..cli import main", "io must not import cli"),
        (wrong_way, "evaluate", "from raterwise.functions import ece", "must not import functions"),
        (wrong_way, "labels", "import_module('raterwise.evaluate')", "must not import evaluate"),
        (wrong_way, "evaluate", "from raterwise import Labels", "from the module defining it"),
        (wrong_way, "results", "import raterwise.report", "results must not import report"),
        (wrong_way, "surprise", "", "raterwise.surprise has no line in LAYERS"),
        (beyond_its_knowledge, "metrics.proper", "import raterwise.questions", "not questions"),
        (beyond_its_knowledge, "report.page", "from raterwise.evaluate import evaluate", "only"),
        (leaves, "", "from raterwise import torch", "import torch"),
        (leaves, "datasets", "from raterwise.report import page", "import report"),
        (passed_on, "evaluate", "from raterwise.predictions.rows import FloatArray", "from types"),
        (foreign_packages, "metrics.kernel", "import sklearn.metrics", "import sklearn"),
        (not_installed, "cli", "from experiments.kept import kept", "is not installed"),
        (unsafe_loading, "io.tables", "import pickle", "imports pickle"),
        (unsafe_loading, "io.tables", "np.load(f, allow_pickle=True)", "allow_pickle must be"),
        (unsafe_loading, "torch.ensembles", "load(f, weights_only=flag)", "weights_only must be"),
        (absolute_paths, "io.tables", "x = '/' + 'a'; y = '/usr/lib'", "absolute path '/usr/lib'"),
        (too_long, "labels", "x = 1\n" * (MAX_MODULE_LINES + 1), "has 451 lines"),
        (too_long, "labels", LONG_BODY, "f has 61 lines"),
    ],
)
def test_a_planted_offence_is_found(rule: Rule, name: str, text: str, complaint: str) -> None:
    """Each rule finds the one offence in a module made for it, and names it."""
    found = list(rule(Module(name, text)))
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics.proper", "import math\nimport numpy\nfrom raterwise.summaries import BinSums"),
        ("metrics.proper", "from .calibration import binned\nfrom raterwise.metrics import kernel"),
        ("predictions", "def f():\n    from raterwise.kernels import _numba"),
        ("results", "from raterwise import __version__"),
        ("cli", "from raterwise.report import page"),
        ("labels", "def f():\n    '''Doc.'''\n" + "    x = 1\n" * MAX_BODY_LINES),
        ("io.tables", "np.load(file, allow_pickle=False)\nrate = f'{n}/cases/second'"),
    ],
)
def test_honest_code_passes(name: str, text: str) -> None:
    """Imports that point down, and code within the limits, give no complaint."""
    assert [complaint for rule in RULES for complaint in rule(Module(name, text))] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("robust_ece.runs", "from experiments.multi_rater import data"),
        ("multi_rater.data", "from ..robust_ece.runs import Run"),
        ("training", "import experiments.multi_rater.data"),
    ],
)
def test_papers_that_know_each_other_are_found(name: str, text: str) -> None:
    """A paper that imports another, or a shared module that imports a paper, is named."""
    (complaint,) = other_papers(Module(name, text, package="experiments"))
    assert "must not import" in complaint and complaint.startswith(f"experiments.{name}, line 1")


def test_every_entry_stands_once_in_the_layers() -> None:
    """The tables above name each part once, and the narrower tables name known parts only."""
    entries = [entry for layer in LAYERS for entry in layer]
    assert len(entries) == len(set(entries))
    named = {*KNOWS_ONLY, *IMPORTED_ONLY_BY, *THIRD_PARTY_ONLY}.union(*KNOWS_ONLY.values())
    assert named <= set(entries)


def test_the_layout_is_told_as_it_is() -> None:
    """CONTRIBUTING.md names every module and folder of the package, and nothing that is not one."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| where \| what \|\n.*?\n(?=\n)", text, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(\w+(?:/|\.py))`", table)
    there = {path.name for path in SOURCE.glob("[!_]*.py")}
    there |= {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert sorted(named) == sorted(there)
