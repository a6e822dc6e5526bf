"""The members of an ensemble in files: one NPZ with every draw, or a table per draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raterwise.cli.spelling import quoted
from raterwise.errors import InvalidInputError
from raterwise.io.files import write_npz_atomically
from raterwise.io.npz import is_npz, read_npz
from raterwise.io.tables import PredictionTable, matched
from raterwise.rules import listed
from raterwise.types import Array

Read = Callable[[Path], tuple[PredictionTable, Array]]
"""From the file of one draw to its table, and what is wanted of its cases, (N, …)."""


@dataclass(frozen=True)
class Members:
    """Where the draws are: a file `samples` of all of them, or a file for each."""

    samples: Path | None = None
    files: tuple[Path, ...] = ()
    option: str = ""
    """How the options begin: "" for --samples and --member, "fit-" for --fit-samples, …"""

    @staticmethod
    def of(samples: Path | None, files: Sequence[Path] | None, option: str = "") -> Members:
        """Return the members that the options name, if any."""
        found = Members(samples, tuple(files or ()), option)
        if samples is not None and found.files:
            raise InvalidInputError(
                f"--{option}samples, --{option}member: must be one of them; got both"
            )
        if len(found.files) == 1:
            raise InvalidInputError(
                f"--{option}member: must be given for each of several draws; got one"
            )
        if samples is not None and not is_npz(samples):
            raise InvalidInputError(f"--{option}samples: must be an NPZ file; got {samples.name}")
        return found

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return self.samples is not None or bool(self.files)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file of them."""
        return self.files if self.samples is None else (self.samples,)

    def base(self, predictions: Path | None, argument: str = "PREDICTIONS") -> Path:
        """Return the file that says which cases there are: the one given, or the first of these."""
        if predictions is not None:
            return predictions
        if not self.given:
            raise InvalidInputError(
                f"{argument}: must be a file, unless --{self.option}samples or "
                f"--{self.option}member names the draws of an ensemble"
            )
        return self.paths[0]

    def notes(self, predictions: Path) -> tuple[str, ...]:
        """Return that the probabilities of a file are not looked at, where that is so."""
        if not self.given or predictions in self.paths:
            return ()
        return (f"the probabilities are the mean of the draws, not those of {predictions.name}",)

    def draws(self, table: PredictionTable, key: str, read: Read) -> Array | None:
        """Return what each draw says of the cases of `table`, (S, N, …); None without members.

        `key` is the name of the array in an NPZ file of all draws, `read` how one table is read.
        """
        if self.samples is not None:
            return _of_npz(self.samples, key, table)
        if not self.files:
            return None
        found = []
        for file in self.files:
            own, values = read(file)
            if own.class_names != table.class_names:
                raise InvalidInputError(
                    f"--{self.option}member: must have the same classes in the same order; "
                    f"{own.source} has {listed(own.class_names)}, {table.source} "
                    f"{listed(table.class_names)}{in_one_order(own, table)}"
                )
            found.append(_in_order(values, own.ids, own.source, table))
        shapes = {values.shape for values in found}
        if len(shapes) > 1:
            raise InvalidInputError(
                f"--{self.option}member: must hold the same columns; got shapes {sorted(shapes)}"
            )
        return np.stack(found)


def in_one_order(own: PredictionTable, other: PredictionTable) -> str:
    """Return how to read two tables in one order that have the same classes in different ones."""
    classes = len(other.class_names)
    columns = other.columns[:classes]
    if set(own.class_names) != set(other.class_names) or not set(columns) <= set(own.columns):
        return ""
    return f"; --prob-columns {quoted(','.join(columns))} reads both in one order"


def _of_npz(path: Path, key: str, table: PredictionTable) -> Array:
    file = read_npz(path)
    array = file.get(key, ndim=(2, 3))
    if array.dtype.kind not in "fiu" or not array.size:
        raise InvalidInputError(
            f"{file.where(key)}: must hold numbers, (S, N, K); got dtype {array.dtype}, "
            f"shape {array.shape}"
        )
    if key == "features" and array.ndim == 2:  # which all draws share
        array = array[None]
    rows = array.shape[1]
    ids = file.ids_of(rows) if "ids" in file.arrays else None
    ordered = _in_order(np.moveaxis(array, 0, 1), ids, f"{file.name}, array {key!r}", table)
    return np.moveaxis(ordered, 1, 0)


def _in_order(values: Array, ids: Array | None, source: str, table: PredictionTable) -> Array:
    """Return (N, …) values in the order of the table's cases: by their ids, or as they stand."""
    cases = len(table.probs)
    if ids is not None and table.ids is not None:
        index, _ = matched(table, ids, source)
        return values[index]
    if len(values) != cases:
        raise InvalidInputError(
            f"{source}: must be of the {cases} cases of {table.source}, in their order (or with "
            f"ids); got {len(values)}"
        )
    return values


def each_draw(
    scores: Any, labels: Any, weights: Any, by_patient: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Return scores, labels and weights as `fit` takes them: of draws, every draw as a case."""
    if scores.ndim < 3:
        return scores, labels, weights
    draws, cases = scores.shape[:2]
    rows = np.tile(np.arange(cases), draws)
    if by_patient.get("groups") is not None:
        by_patient["groups"] = np.asarray(by_patient["groups"])[rows]
    each = np.ones(cases) if weights is None else np.asarray(weights)
    return scores.reshape(draws * cases, -1), labels.take(rows), each[rows] / draws


def write_draws(path: Path, arrays: Mapping[str, Any], belief: Any) -> Path:
    """Write every draw of a belief, and how sure each is where that is known."""
    held = {"samples": belief.samples}
    if hasattr(belief, "concentration"):
        held["concentration"] = belief.concentration
    held |= {key: arrays[key] for key in ("ids", "groups", "class_names") if key in arrays}
    return write_npz_atomically(path, held)
