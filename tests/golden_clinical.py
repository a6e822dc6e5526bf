"""Reference values of clinical metrics: what R and Python packages print on fixed inputs.

The folder is ``clinical`` within that of `golden`; without it the tests that read it are skipped.
Its ``README.md`` says how each package was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from golden import FOLDER, Array

CLINICAL = FOLDER / "clinical"


@cache
def inputs(name: str) -> dict[str, Array]:
    """Return the arrays of a set, of which some are in the folder above."""
    path = CLINICAL / f"inputs_{name}.npz"
    path = path if path.exists() else FOLDER / path.name
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored}


@dataclass(frozen=True)
class ClinicalValue:
    """One value: the set, what it is, its parameters, and who made it."""

    set_name: str
    what: str
    params: dict[str, Any]
    repository: str
    function: str
    stored: float | None
    key: str

    @property
    def value(self) -> Any:
        """The number, or the array."""
        return _outputs()[self.key] if self.stored is None else self.stored

    @property
    def probs(self) -> Array:
        """(N, K) predicted probabilities."""
        return inputs(self.set_name)["probs"]

    @property
    def labels(self) -> rw.Labels:
        """The labels that the parameters name: of the first rater, or of all."""
        arrays = inputs(self.set_name)
        if self.params.get("rows") == "first":
            return rw.Labels.from_classes(arrays["labels"], self.probs.shape[1])
        return rw.Labels.from_counts(arrays["counts" if "counts" in arrays else "hist"])

    @property
    def told(self) -> dict[str, Any]:
        """The options that ask the same of us."""
        once = self.params.get("weights") == "1/n_i" or "one row per case" in self.params["rows"]
        named = ("positive", "threshold", "prevalence")
        told = {name: self.params[name] for name in named if name in self.params}
        return {"per": "case" if once else "annotation", **told}


@cache
def _outputs() -> dict[str, Array]:
    with np.load(CLINICAL / "outputs_clinical.npz", allow_pickle=False) as stored:
        return {key: stored[key] for key in stored}


@cache
def _index() -> tuple[ClinicalValue, ...]:
    path = CLINICAL / "index_clinical.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    return tuple(
        ClinicalValue(
            row["set"], row["what"], row["params"], row["repo"], row["function"], row["value"],
            row["key"],
        )
        for row in rows
        if "NOT TO BE MATCHED" not in row.get("note", "")
    )  # fmt: skip


def find(what: str, repository: str, **params: Any) -> Iterator[ClinicalValue]:
    """Yield the values of this name from this package."""
    for value in _index():
        named = (value.what, value.repository) == (what, repository)
        if named and params.items() <= value.params.items():
            yield value


def values(what: str, repository: str, **params: Any) -> list[ClinicalValue]:
    """Return the values of this name; a test without any is skipped, the folder being absent."""
    found = list(find(what, repository, **params))
    if not found:
        if _index():
            raise LookupError(f"the folder has no {what} of {repository}")
        pytest.skip("there are no reference values of clinical metrics")
    return found
