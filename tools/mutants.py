"""Break the library on purpose, one place at a time, and see which breaks no test notices.

Every mutant is a change of one node of a module's syntax tree: a comparison or an operator
swapped, a number doubled or set to 0, a keyword argument left out, a condition negated, a call
replaced by its first argument. It is written into a temporary copy of the repository, where the
tests of that module (mutants.toml) run until the first fails. A mutant that survives changes
something that no test looks at: a number that a user sees (write a test), or nothing at all.

    python tools/mutants.py --named                # those that once survived; all of them must die
    python tools/mutants.py --sample 40 --seed 1   # forty at random
    python tools/mutants.py inference/draws.py     # all of one module
    python tools/mutants.py --survivors            # what earlier runs found

Results are kept in build/mutants.json: what is there is not run again, unless it is named.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/raterwise")
KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NEGATED_BY_SWAPPING = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
# Types, decorators and messages change no number; another axis is a crash.
LEFT_ALONE = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)
KEYWORDS_LEFT_ALONE = ("axis", "keepdims", "dtype", "strict", "default_factory", "repr")
FIELDS_LEFT_ALONE = ("annotation", "returns", "decorator_list")

# Loaded once, not for every mutant: what tests need, but for the library itself.
PRELOADED = ["numpy", "scipy.stats", "numba", "pytest", "hypothesis.extra.numpy", "pyarrow.parquet"]
# What no test reads: environments, caches and what is built.
LEFT_BEHIND = shutil.ignore_patterns(".*", "_build", "build", "dist")

Change = tuple[ast.stmt, ast.AST, str, Any]
"""A statement, a node in it, a field of the node, and what that becomes."""


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    module: str
    line: int
    change: str
    text: Callable[[], str]
    """Returns the whole module, broken."""

    @property
    def key(self) -> str:
        """What results are kept by: lines may move."""
        return f"{self.module}: {self.change}"


def changes(node: ast.AST, around: Any = None) -> Iterator[Change]:
    """Yield every change of a node and of what is inside, in the order of the source."""
    if isinstance(node, LEFT_ALONE) or getattr(node, "arg", "") in KEYWORDS_LEFT_ALONE:
        return
    around = node if isinstance(node, ast.stmt) else around
    for field, value in changes_here(node):
        yield around, node, field, value
    for field, value in ast.iter_fields(node):
        if field not in FIELDS_LEFT_ALONE:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from changes(child, around)


def changes_here(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield the changes of one node: a field, and what it becomes."""
    match node:
        case ast.Compare(ops=[first, *rest]) if type(first) in SWAPPED:
            yield "ops", [SWAPPED[type(first)](), *rest]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPPED:
            yield "op", SWAPPED[type(op)]()
        case ast.UnaryOp(op=ast.USub()):
            yield "op", ast.UAdd()
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield from [("value", new) for new in ((2 * value, 0) if value else (1,))]
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], NEGATED_BY_SWAPPING)):
                yield "test", ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.Call(func=function, args=[first, *_])):
            if ast.unparse(function) not in ("np.asarray", "float", "int", "list", "tuple"):
                yield "value", first
        case ast.Call(keywords=keywords):
            for i, keyword in enumerate(keywords):
                if keyword.arg not in KEYWORDS_LEFT_ALONE:
                    yield "keywords", keywords[:i] + keywords[i + 1 :]


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, by its path below the package."""
    tree = ast.parse((ROOT / PACKAGE / module).read_text(encoding="utf-8"))
    for statement, node, field, value in changes(tree):
        before, after = (
            first_line(statement, node, field, v) for v in (getattr(node, field), value)
        )
        text = partial(unparsed, tree, node, field, value)
        yield Mutant(module, getattr(node, "lineno", 0), f"{before}  ->  {after}", text)


def unparsed(tree: ast.AST, node: ast.AST, field: str, value: Any) -> str:
    """Return the source of a tree in which a field of a node is changed."""
    kept = getattr(node, field)
    setattr(node, field, value)
    text = ast.unparse(tree)
    setattr(node, field, kept)
    return text


def first_line(statement: ast.stmt, *change: Any) -> str:
    """Return a changed statement in a line; of one that has a body, its head."""
    body = getattr(statement, "body", None)
    if body is None:
        return unparsed(statement, *change)
    statement.body = [ast.Pass()]  # type: ignore[attr-defined]
    lines = unparsed(statement, *change).splitlines()
    statement.body = body  # type: ignore[attr-defined]
    return next(line for line in lines if line and not line.startswith("@"))


def named_mutants() -> Iterator[Mutant]:
    """Yield the mutants that once survived."""
    for told in KNOWN["named"]:
        module, before = told["module"], told["before"]
        text = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
        if text.count(before) != 1:
            times = text.count(before)
            sys.exit(
                f"mutants.toml: {before!r} must be in {module} once; it is there {times} times"
            )
        line = text[: text.index(before)].count("\n") + 1
        yield Mutant(module, line, told["name"], partial(text.replace, before, told["after"]))


def chosen(args: argparse.Namespace) -> list[Mutant]:
    """Return the mutants asked for: named ones, or all of some modules, or a sample of these."""
    if args.named:
        return list(named_mutants())
    below = ROOT / PACKAGE
    found: dict[str, Mutant] = {}
    for path in (below / name for name in args.modules or KNOWN["searched"]):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found |= {m.key: m for m in mutants_of(file.relative_to(below).as_posix())}
    mutants = list(found.values())
    return random.Random(args.seed).sample(mutants, min(args.sample or len(mutants), len(mutants)))


def tests_of(module: str) -> list[str]:
    """Return the test files that judge a module."""
    own = next((names for start, names in KNOWN["tests"].items() if module.startswith(start)), ())
    return [f"tests/test_{name}.py" for name in dict.fromkeys([*own, *KNOWN["always"]])]


def judged_by(tests: list[str], tree: Path, limit: float | None = None) -> str:
    """Return "killed" if a test fails, "timeout" (as good as killed), or "survived"."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=run_tests, args=(tree, tests))
    process.start()
    try:
        process.join(limit)
        if process.is_alive():
            return "timeout"
        return "killed" if process.exitcode else "survived"
    finally:
        process.kill()
        process.join()


def run_tests(tree: Path, tests: list[str]) -> None:
    """Run tests in this process until the first fails, and exit with pytest's code."""
    import pytest

    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")  # for the processes that tests start
    sys.dont_write_bytecode = True  # a mutant as long and as old as the last would be taken for it
    with open("log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        quick = ["--exitfirst", "--quiet", "--assert=plain", "-p", "no:cacheprovider"]
        sys.exit(int(pytest.main([*quick, *tests])))


def run(mutants: list[Mutant], results: dict[str, str], args: argparse.Namespace) -> None:
    """Judge mutants one by one, keeping each result as soon as it is there."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    without = [f"--deselect={test}" for test in args.deselect]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = shutil.copytree(ROOT, Path(folder) / "tree", ignore=LEFT_BEHIND)
        tests = list(dict.fromkeys(test for m in mutants for test in tests_of(m.module)))
        if judged_by([*tests, *without], tree) != "survived":
            sys.exit(f"a test fails before anything is broken:\n{(tree / 'log').read_text()}")
        for i, mutant in enumerate(mutants, start=1):
            begun, path = time.perf_counter(), tree / PACKAGE / mutant.module
            whole = shutil.copy2(path, Path(folder) / "whole.py")
            path.write_text(mutant.text(), encoding="utf-8")
            found = judged_by([*tests_of(mutant.module), *without], tree, args.limit)
            shutil.copy2(whole, path)
            results[mutant.key] = found
            args.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
            took = time.perf_counter() - begun
            print(f"{i}/{len(mutants)} {found} in {took:.0f} s: {mutant.key}", flush=True)


def main() -> None:
    """Run what is asked for, and print the survivors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help=f"below {PACKAGE}")
    parser.add_argument("--sample", type=int, help="so many, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--named", action="store_true", help="those that once survived")
    parser.add_argument("--limit", type=float, default=300, help="seconds per mutant")
    parser.add_argument("--deselect", action="append", default=[], help="a test not to run")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutants.json")
    parser.add_argument("--survivors", action="store_true", help="run nothing, list survivors")
    args = parser.parse_args()
    args.results.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    mutants = chosen(args)
    if not args.survivors:
        todo = [m for m in mutants if args.named or m.key not in results]
        run(todo, results, args)
    alive = [m for m in mutants if results.get(m.key) == "survived"]
    judged = sum(m.key in results for m in mutants)
    print(f"\n{len(alive)} of {judged} mutants survive" + (":" if alive else ""))
    for m in sorted(alive, key=lambda m: (m.module, m.line)):
        print(f"{PACKAGE / m.module}:{m.line}: {m.change}")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
