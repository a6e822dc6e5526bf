"""Write the pages of the site that are made from the code: the API and the metric families.

They are built into docs/reference/api and docs/metrics whenever the site is, and are not kept: a
name or a metric that is added to the package has its place without anybody writing a page.
"""

from __future__ import annotations

import inspect
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import metric_pages
import raterwise

# Where a name of the package itself stands, by the module that makes it; what is in none is listed
# under "Other names", so that nothing public is left out.
GROUPS = {
    "Evaluate": ("evaluate", "multilabel", "streaming", "results", "io", "predictions"),
    "Labels": ("labels", "exchangeability", "agreement"),
    "Metrics": ("functions",),
    "Curves": ("curves",),
    "Compare": ("compare", "inference"),
    "Beliefs": ("beliefs",),
    "Calibrators": ("calibrators",),
    "Errors": ("errors",),
}
HOOKS = {"forward", "extra_repr"}  # which other libraries call, and people do not


def write(docs: Path) -> None:
    """Write every page below the folder of the site's sources."""
    api = docs / "reference" / "api"
    for folder in (api, docs / "metrics"):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = {api / f"{slug}.rst": text for slug, text in api_pages().items()}
    wanted |= {
        docs / "metrics" / f"{k}.md": v for k, v in metric_pages.pages(docs / "metrics").items()
    }
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for old in {*api.glob("*.rst"), *(docs / "metrics").glob("*.md")} - wanted.keys():
        old.unlink()


def api_pages() -> dict[str, str]:
    """Return the pages of the reference by their names: one per group and per public module."""
    groups: dict[str, list[str]] = {title: [] for title in [*GROUPS, "Other names"]}
    modules = []
    for name in raterwise.__all__:
        value = getattr(raterwise, name)
        if inspect.ismodule(value):
            modules += [value, *inner_modules(value)]
        else:
            groups[group_of(value)].append(name)
    found = {
        title.lower().replace(" ", "_"): api_page(title, "raterwise", names, "")
        for title, names in groups.items()
        if names
    }
    for module in modules:
        names = [name for name in module.__all__ if not is_module(module, name)]
        slug = module.__name__.replace(".", "_")
        found[slug] = api_page(module.__name__, module.__name__, names, inspect.getdoc(module))
    return found


def is_module(module: ModuleType, name: str) -> bool:
    """Say whether a public name of a module is a module, which may not be imported yet."""
    if hasattr(module, name):
        return inspect.ismodule(getattr(module, name))
    import_module(f"{module.__name__}.{name}")
    return True


def inner_modules(module: ModuleType) -> list[ModuleType]:
    """Return the public modules of a public module."""
    return [getattr(module, name) for name in module.__all__ if is_module(module, name)]


def group_of(value: Any) -> str:
    """Return the group of a name of the package, by the module that makes it."""
    part = value.__module__.split(".")[1]
    return next((title for title, parts in GROUPS.items() if part in parts), "Other names")


def api_page(title: str, module: str, names: list[str], words: str | None) -> str:
    """Return the page of some names of a module: a table of them, then each in full."""
    directive = "module" if title == module else "currentmodule"
    lines = [title, "=" * len(title), "", f".. py:{directive}:: {module}", ""]
    if words:
        lines += [words.splitlines()[0], ""]
    names = sorted(names, key=lambda name: inspect.isclass(getattr(import_module(module), name)))
    lines += [".. autosummary::", "   :nosignatures:", ""]
    owner = import_module(module)
    # Of a constant the table would give the docstring of its type.
    lines += [f"   {name}" for name in names if callable(getattr(owner, name))]
    for name in names:
        lines += ["", *entry(module, name, getattr(owner, name))]
    return "\n".join(lines) + "\n"


def members(value: type) -> list[str]:
    """Return the public methods and properties that a class has from raterwise, not from others."""
    ours = [base for base in value.__mro__ if base.__module__.startswith("raterwise")]
    found = {
        name: None
        for base in ours
        for name, member in vars(base).items()
        if not name.startswith("_") and name not in HOOKS and is_shown(member)
    }
    return list(found)


def is_shown(member: Any) -> bool:
    """Say whether a member of a class is a method or a property, and not a field."""
    kinds = (staticmethod, classmethod, property, cached_property)
    return isinstance(member, kinds) or inspect.isfunction(member)


def entry(module: str, name: str, value: Any) -> list[str]:
    """Return the directive that shows a function, a class with its methods, or a constant."""
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        shown = [] if kind == "exception" else members(value)
        listed = [f"   :members: {', '.join(shown)}"] if shown else []
        return [f".. auto{kind}:: {module}.{name}", *listed]
    if callable(value):
        return [f".. autofunction:: {module}.{name}"]
    return [f".. py:data:: {module}.{name}", f"   :value: {value!r}"]
