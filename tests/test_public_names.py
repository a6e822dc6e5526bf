"""Every public name explains itself: what it takes, what it returns, and one call that runs.

The walk starts at `raterwise.__all__` and goes into public modules, classes and their methods.
Doctests, which the suite runs, see to it that the examples are true.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import raterwise
from raterwise.catalog import CATALOG

# What other libraries call, and people do not: the example is that of the class.
HOOKS = {"forward", "extra_repr"}


def sections(docstring: str) -> dict[str, str]:
    """Split a numpydoc docstring into its sections, by title; "" is what comes before them."""
    found, title = {"": ""}, ""
    lines = docstring.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and re.fullmatch(r"-{3,}", below.strip()) and len(below.strip()) == len(line):
            title = line
            found[title] = ""
        elif not (title and re.fullmatch(r"-{3,}", line.strip())):
            found[title] += line + "\n"
    return found


def entries(section: str) -> dict[str, str]:
    """Return the parameters of a section with their types: "low, high : float" names two."""
    found = {}
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found |= {name.strip().lstrip("*"): kind.strip() for name in names.split(",")}
    return found


def parameters(value: Any) -> list[str]:
    """Return what a call may be given, less what a method is bound to."""
    try:
        names = list(inspect.signature(value).parameters)
    except ValueError:  # of a class that takes what Python's own exceptions take
        return []
    return [name for name in names if name not in ("self", "cls")]


def complaints(value: Any) -> list[str]:
    """Say what the documentation of a function, a class, a method or a property lacks."""
    documented = inspect.getdoc(value)
    if not documented:
        return ["no docstring"]
    if isinstance(value, property) or not callable(value):
        return []
    parts = sections(documented)
    found = [] if ">>> " in documented else ["no example"]
    told = entries(parts.get("Parameters", "")) | entries(parts.get("Attributes", ""))
    needed = parameters(value) if own_signature(value) else []
    found += [f"parameter {name} is not documented" for name in needed if not told.get(name)]
    if not inspect.isclass(value) and returns_something(value) and "Returns" not in parts:
        found.append("no Returns")
    return found


def own_signature(value: Any) -> bool:
    """Say whether to look for the parameters here; a class may inherit them from a public one."""
    if not inspect.isclass(value):
        return True
    makers = (base for base in value.__mro__ if {"__init__", "__new__"} & vars(base).keys())
    maker = next(makers)
    ours = maker.__module__.startswith("raterwise")
    return ours and (maker is value or not hasattr(raterwise, maker.__name__))


def returns_something(value: Any) -> bool:
    """Say whether the annotation promises more than None."""
    annotation = inspect.signature(value).return_annotation
    return annotation not in (None, "None", "NoReturn", "Never")


def plain(value: Any) -> Any:
    """Return the function inside a static or class method."""
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class itself defines."""
    for name, member in vars(value).items():
        inner = plain(member)
        is_property = isinstance(inner, property) or type(inner).__name__ == "cached_property"
        is_public = not name.startswith("_") and name not in HOOKS
        if is_public and (is_property or inspect.isfunction(inner)):
            yield name, inner


def bases(value: type) -> Iterator[type]:
    """Yield a class and those of raterwise that it inherits from, private ones too."""
    yield from (base for base in value.__mro__ if base.__module__.startswith("raterwise"))


def public(module: ModuleType, path: str, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the object of everything public below a module, each once."""
    for name in module.__all__:
        dotted = f"{path}.{name}".lstrip(".")
        if not hasattr(module, name):  # a module of a package whose __all__ names it
            importlib.import_module(f"{module.__name__}.{name}")
        value = getattr(module, name)
        found = [(dotted, value)] if inspect.ismodule(value) or callable(value) else []
        if inspect.isclass(value):
            inherited = (member for base in bases(value) for member in members(base))
            found += [(f"{dotted}.{member}", inner) for member, inner in inherited]
        for place, thing in found:
            if thing not in seen:
                seen.add(thing)
                yield place, thing
                if inspect.ismodule(thing):
                    yield from public(thing, place, seen)


NAMES = dict(public(raterwise, "", set()))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_public_name_explains_itself(name: str) -> None:
    """It has a docstring, every parameter with its type, what it returns, and an example."""
    assert complaints(NAMES[name]) == []


def is_method(name: str) -> bool:
    """Say whether a name is that of a method or property of a public class."""
    return inspect.isclass(NAMES.get(name.rpartition(".")[0]))


SPOKEN_FOR = [
    n
    for n in sorted(NAMES)
    if (inspect.isfunction(NAMES[n]) or inspect.isclass(NAMES[n])) and not is_method(n)
]


@pytest.mark.parametrize("name", SPOKEN_FOR)
def test_a_name_says_what_else_there_is(name: str) -> None:
    """Who reads the help of a function or a class learns which others to consider."""
    assert (sections(inspect.getdoc(NAMES[name]) or "").get("See Also") or "").strip()


METRICS = [
    n
    for n in SPOKEN_FOR
    if n.rpartition(".")[2] in CATALOG
    or (
        NAMES[n].__module__.startswith(("raterwise.functions", "raterwise.confidence"))
        and inspect.isfunction(NAMES[n])
    )
]


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_says_where_it_comes_from(name: str) -> None:
    """The paper, with the equation where there are several."""
    assert (sections(inspect.getdoc(NAMES[name]) or "").get("References") or "").strip()


def test_the_walk_reaches_methods_and_modules() -> None:
    """Names of every kind are among those walked: the rest of the tests stand on this."""
    expected = {
        *("ece", "Labels", "Labels.from_ratings", "DirichletBelief.posterior"),
        *("confidence.auccc", "curves.ThresholdCurve.thinned", "segmentation.Case"),
        *("worklist.worklist", "plots.CCCDisplay.plot", "torch.metrics.AUCCC.update"),
    }
    assert expected - NAMES.keys() == set()


def good(probs: list[float], bins: int = 15) -> float:
    """Return a number.

    Parameters
    ----------
    probs : list of float
        Numbers.
    bins : int, default 15
        How many.

    Returns
    -------
    float
        A number.

    Examples
    --------
    >>> good([1.0])
    1.0
    """
    return probs[0]


def changed(old: str, new: str) -> Callable[..., float]:
    """Return `good` with another docstring."""

    def bad(probs: list[float], bins: int = 15) -> float:
        return probs[0]

    text = inspect.cleandoc(good.__doc__ or "")  # which Python 3.13 does by itself
    assert old in text
    bad.__doc__ = text.replace(old, new)
    return bad


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("bins : int, default 15\n    How many.\n", "", "parameter bins is not documented"),
        ("bins : int, default 15", "bins", "parameter bins is not documented"),
        (">>> good([1.0])", "good([1.0])", "no example"),
        ("Returns\n-------\n", "", "no Returns"),
    ],
)
def test_a_planted_gap_is_found(old: str, new: str, complaint: str) -> None:
    """The honest docstring passes; without one part it does not."""
    assert complaints(good) == []
    assert complaints(changed(old, new)) == [complaint]


def test_a_missing_docstring_is_found() -> None:
    """Nothing at all is the worst."""
    assert complaints(lambda: None) == ["no docstring"]
