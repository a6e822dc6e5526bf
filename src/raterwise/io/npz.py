"""Predictions and ratings in NumPy's NPZ files, one array per thing, pickles refused.

probs        (N, K), or (N,) for the probability of the second of two classes;    or
samples      (S, N, K) or (S, N) of the draws of an ensemble, whose mean the probabilities then are
labels       (N,) one label per case;    or
ratings      (N, R) one column per rater, -1, NaN or "" where there is none;    or
counts       (N, K) how many raters chose each class
ids          (N,) names or numbers of the cases
groups       (N,) the patient of each case
weights      (N,)
class_names  (K,)

Of findings that may occur together:

probs        (N, L)
positives    (N, L) how many raters saw each finding
raters       (N, L) of how many who looked for it
names        (L,)
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.damaged import names_in_archive, read_archive
from raterwise.io.numbers import as_numbers, as_whole_numbers
from raterwise.io.sources import existing_file, file_format
from raterwise.io.values import (
    as_class_codes,
    as_ids,
    labels_of_codes,
    refuse_repeats,
)
from raterwise.labels import Labels
from raterwise.rules import did_you_mean, listed
from raterwise.types import Array

KNOWN = (
    *("probs", "labels", "ratings", "counts", "ids", "groups", "weights", "class_names"),
    *("positives", "raters", "names", "samples", "logits", "features", "concentration"),
)
MEANT = {
    "groups": ("group", "patient", "patients", "patient_id", "patient_ids", "subject", "subjects"),
    "ids": ("id", "case", "cases", "case_id", "case_ids"),
    "labels": ("y", "y_true", "target", "targets", "truth"),
    "probs": ("p", "y_pred", "y_prob", "probabilities", "predictions", "scores"),
    "class_names": ("classes", "class"),
    "weights": ("w", "sample_weight", "sample_weights", "case_weights"),
}
"""What people call the arrays otherwise."""
BY_OPTION = re.compile(r"conf(idence)?s?$|certainty|alpha0?$|disagreement$", re.IGNORECASE)
"""Arrays that an option may name, or that `calibrate` writes."""
LABEL_ARRAYS = ("labels", "ratings", "counts")
MISSING_CODE = "-1"
"""Integer arrays cannot hold an empty cell; -1 is what `Labels.from_ratings` takes for one."""


@dataclass(frozen=True, eq=False)
class NpzArrays:
    """The arrays of one file that raterwise knows by name."""

    name: str
    """The file's name, for messages."""
    arrays: dict[str, Array]
    unknown: tuple[str, ...] = ()
    """What other arrays of the file are called."""

    def notes(self, used: Collection[str] = ()) -> tuple[str, ...]:
        """Return which arrays were not read because nobody knows their names.

        `used` are those that somebody else reads.
        """
        names = [n for n in self.unknown if n not in used and not BY_OPTION.match(n)]
        odd = [f"{name!r}{_meant(name)}" for name in names]
        were = "array was" if len(odd) == 1 else "arrays were"
        return (f"{self.name}: the {were} not used: {', '.join(odd[:20])}",) if odd else ()

    def where(self, key: str) -> str:
        """How a message names an array."""
        return f"{self.name}: array {key!r}"

    def get(self, key: str, *, ndim: tuple[int, ...] = (1,), rows: int | None = None) -> Array:
        """Return an array that must be there, of this many dimensions and rows."""
        if key not in self.arrays:
            if "unit_cases" in self.unknown:
                raise InvalidInputError(
                    f"{self.name}: is a summary, which holds no case; raterwise merge makes "
                    "results of it"
                )
            others = ", ".join(f"{name!r}{_meant(name)}" for name in self.unknown[:20])
            raise InvalidInputError(
                f"{self.name}: must hold an array {key!r}; it holds "
                f"{listed(list(self.arrays)) or 'none that raterwise knows'}"
                f"{f', and unknown ones: {others}' if others else ''} (names that it knows: "
                f"{listed(KNOWN[:8])})"
            )
        array = self.arrays[key]
        if array.ndim not in ndim:
            words = " or ".join(f"{n}-dimensional" for n in ndim)
            raise InvalidInputError(f"{self.where(key)}: must be {words}; got shape {array.shape}")
        if rows is not None and len(array) != rows:
            raise InvalidInputError(
                f"{self.where(key)}: must have one entry per case; got {len(array)} for {rows}"
            )
        return array

    def ids_of(self, rows: int, key: str = "ids") -> Array:
        """Return the ids (or `groups`) of the cases."""
        found = as_ids(_column(self.get(key, rows=rows), self.where(key)), self.where(key))
        if key == "ids":
            refuse_repeats(found, self.where(key))
        return found

    def class_names(self, key: str = "class_names") -> tuple[str, ...] | None:
        """Return the names of the classes (or findings), where the file has them."""
        if key not in self.arrays:
            return None
        return tuple(str(name) for name in _decoded(self.get(key)))

    def whole_numbers(self, key: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return a matrix of whole numbers of this shape."""
        array, where = self.get(key, ndim=(2,)), self.where(key)
        if array.shape != shape:
            raise InvalidInputError(f"{where}: must have the shape {shape}; got {array.shape}")
        columns = [as_whole_numbers(_column(column, where), where) for column in array.T]
        return np.stack(columns, axis=1)

    def weights(self, rows: int) -> Array | None:
        """Return the weights of the cases, where the file has them."""
        if "weights" not in self.arrays:
            return None
        where = self.where("weights")
        return as_numbers(_column(self.get("weights", rows=rows), where), where)


def is_npz(path: str | PathLike[str]) -> bool:
    """Tell whether `path` is, by its name, an NPZ file."""
    return file_format(Path(path)) == "npz"


def read_npz(path: str | PathLike[str]) -> NpzArrays:
    """Return the arrays of an NPZ file that raterwise knows by name."""
    file = existing_file(path)
    if not zipfile.is_zipfile(file):
        raise InvalidInputError(f"{file.name}: cannot be read as NPZ; it is not one, or damaged")
    arrays = {
        key: array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        for key, array in read_archive(file, file.name, KNOWN).items()
    }
    unknown = tuple(key for key in names_in_archive(file) if key not in KNOWN)
    return NpzArrays(file.name, arrays, unknown)


def labels_of_npz(
    file: NpzArrays,
    class_names: Sequence[str],
    missing: Collection[str] = (),
    *,
    required: bool = False,
) -> Labels | None:
    """Return what the raters said, from `labels`, `ratings` or `counts`."""
    found = [key for key in LABEL_ARRAYS if key in file.arrays]
    if len(found) > 1 or (required and not found):
        raise InvalidInputError(
            f"{file.name}: must hold one of labels, ratings and counts; it holds "
            f"{listed(list(file.arrays))}"
        )
    if not found:
        return None
    key = found[0]
    where, array = file.where(key), file.get(key, ndim=(1,) if key == "labels" else (2,))
    matrix = array if array.ndim == 2 else array[:, None]
    columns = [_column(matrix[:, j], where) for j in range(matrix.shape[1])]
    if key == "counts":
        if len(columns) != len(class_names):
            raise InvalidInputError(
                f"{where}: must have a column for each of the {len(class_names)} classes; "
                f"got shape {array.shape}"
            )
        counts = np.stack([as_whole_numbers(column, where) for column in columns], axis=1)
        labels = Labels.from_counts(counts, class_names=class_names)
    else:
        absent = {MISSING_CODE, *missing}
        codes = [as_class_codes(column, class_names, where, absent) for column in columns]
        labels = labels_of_codes(np.stack(codes, axis=1), class_names)
    if "ids" in file.arrays:
        labels = replace(labels, case_ids=tuple(file.ids_of(len(labels)).tolist()))
    return labels


def _meant(name: str) -> str:
    """Return what an array of this name may be."""
    known = next((key for key, others in MEANT.items() if name.casefold() in others), None)
    return f" (did you mean {known!r}?)" if known else did_you_mean(name, KNOWN)


def _decoded(array: Array) -> Array:
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _column(array: Array, where: str) -> Any:
    """Return a one-dimensional array as a column, for the checks that tables go through."""
    import pyarrow as pa

    array = _decoded(array)
    if array.dtype.kind not in "biufU":
        raise InvalidInputError(f"{where}: must hold numbers or text; got dtype {array.dtype}")
    if array.dtype.kind == "U":
        array = array.astype(object)
    return pa.chunked_array([pa.array(np.ascontiguousarray(array))])
