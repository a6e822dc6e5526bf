"""Everything public of raterwise.torch says what it takes, and shows one call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from raterwise.torch import alpha, distillation, ensembles, losses, metrics, monai


def public() -> Iterator[tuple[str, Any]]:
    """Yield what the modules export, and the public methods that take arguments of their own."""
    for module in (losses, metrics, ensembles, distillation, alpha, monai):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and name not in ("Epoch", "Regularized"):
                yield f"{module.__name__}.{name}", thing
    yield "Regularized", losses.Regularized
    yield "UncertaintyDistillation.fit", distillation.UncertaintyDistillation.fit
    yield "AlphaHead.fit", alpha.AlphaHead.fit
    yield "AlphaHead.predict", alpha.AlphaHead.predict
    yield "TableMetric.update", metrics.TableMetric.update
    yield "AUCCC.update", metrics.AUCCC.update


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_documented(name: str) -> None:
    """The Parameters section has a line for each, in the order of the signature."""
    doc = inspect.getdoc(PUBLIC[name]) or ""
    _, heading, after = doc.partition("Parameters\n----------\n")
    assert heading, f"{name} has no Parameters"
    section = re.split(r"\n\n\w[\w ]*\n-{3,}\n|\n\n>>>", after)[0]
    named = [
        each.strip("* ")
        for line in section.splitlines()
        if line and not line[0].isspace()
        for each in line.partition(" : ")[0].split(",")
    ]
    taken = [p for p in inspect.signature(PUBLIC[name]).parameters if p != "self"]
    assert [each for each in named if each in taken] == taken


# The base of the metrics is left out: there are no instances of it.
SHOWN = [name for name in PUBLIC if name.startswith("raterwise") and "TableMetric" not in name]


@pytest.mark.parametrize("name", SHOWN)
def test_everything_shows_a_call(name: str) -> None:
    """Classes and functions have an example, which the doctests run."""
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or "")
