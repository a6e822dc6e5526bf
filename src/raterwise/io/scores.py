"""What a file may hold beside probabilities: logits, and features of the cases.

In a table they are the columns whose names begin with a prefix, in an NPZ file the arrays `logits`
and `features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.io.damaged import read_archive
from raterwise.io.layouts import AS_USUAL, TableColumns
from raterwise.io.npz import NpzArrays, is_npz, labels_of_npz, read_npz
from raterwise.io.numbers import as_numbers
from raterwise.io.probabilities import check_names
from raterwise.io.ratings import Coding
from raterwise.io.sources import TableFile
from raterwise.io.tables import (
    PredictionTable,
    chosen_columns,
    table_of_arrays,
    table_of_columns,
)
from raterwise.io.unused_columns import unused_patients
from raterwise.rules import listed
from raterwise.types import Array


def read_features(
    path: str | PathLike[str], prefix: str = "feat_", told: TableColumns = AS_USUAL
) -> tuple[Array, tuple[str, ...]]:
    """Return the features (N, D) of the cases of a file, in the order of its rows, and their names.

    >>> path = getfixture("tmp_path") / "cases.csv"
    >>> _ = path.write_text("case,feat_size,feat_age\\nn1,3.5,61\\nn2,8,47\\n")
    >>> features, names = read_features(path)
    >>> features.tolist(), names
    ([[3.5, 61.0], [8.0, 47.0]], ('size', 'age'))
    """
    if is_npz(path):
        array = _array(path, "features")
        return array, tuple(map(str, range(array.shape[1])))
    return _columns(path, prefix, "features_prefix", told)


def read_numbers(
    path: str | PathLike[str],
    column: str,
    argument: str = "column",
    told: TableColumns = AS_USUAL,
) -> Array:
    """Return one column of numbers (N,), or the array of that name in an NPZ file.

    `argument` is what an error calls the choice of the column.
    """
    if is_npz(path):
        return _array(path, column, ndim=1)
    file = told.open(path)
    values = file.read([file.require(column, argument)]).column(column)
    return as_numbers(values, file.where(column)).astype(np.float64)


def read_outside(
    path: str | PathLike[str] | None,
    confidence_column: str | None = None,
    told: TableColumns = AS_USUAL,
) -> Array | None:
    """Return the confidences (M,) of cases from elsewhere, or their class probabilities (M, K).

    Without a file there are none. Confidences are in the column (or NPZ array) of that name;
    without one the probabilities are read, from columns as in a file of predictions or from the
    array `probs`.

    >>> path = getfixture("tmp_path") / "outside.csv"
    >>> _ = path.write_text("case,prob_1\\nx1,0.75\\nx2,0.5\\n")
    >>> read_outside(path).tolist()  # one column is the probability of the second of two classes
    [[0.25, 0.75], [0.5, 0.5]]
    """
    if path is None:
        return None
    if confidence_column is not None:
        return read_numbers(path, confidence_column, "confidence_column", told)
    if is_npz(path):
        probs = _array(path, "probs", (1, 2))
    elif told.prob_columns:
        columns = [read_numbers(path, name, "prob_columns", told) for name in told.prob_columns]
        probs = np.stack(columns, axis=1)
    else:
        probs, _ = _columns(path, told.prob_prefix, "prob_prefix", told)
    one = probs if probs.ndim == 1 else probs[:, 0] if probs.shape[1] == 1 else None
    return probs if one is None else np.stack((1 - one, one), axis=1)


def read_logits(
    path: str | PathLike[str], told: TableColumns = AS_USUAL, logit_prefix: str = "logit_"
) -> tuple[PredictionTable, Array]:
    """Return what `read_predictions` would say of the softmax of a file's logits, and the logits.

    >>> path = getfixture("tmp_path") / "cases.csv"
    >>> _ = path.write_text("case,logit_benign,logit_malignant\\nn1,0,0\\nn2,1.5,-1.5\\n")
    >>> table, logits = read_logits(path)
    >>> table.class_names, table.probs.round(3).tolist(), logits.tolist()
    (('benign', 'malignant'), [[0.5, 0.5], [0.953, 0.047]], [[0.0, 0.0], [1.5, -1.5]])
    """
    if is_npz(path):
        if any((told.id_column, told.label_column, told.group_column, told.weight_column)):
            raise InvalidInputError("an NPZ file has no columns: its arrays have fixed names")
        logits = _array(path, "logits", (2, 3))
        return _logits_of_npz(read_npz(path), logits, told)
    file = told.open(path)
    columns = _with_prefix(file, logit_prefix, "logit_prefix")
    found = [name.removeprefix(logit_prefix) for name in columns]
    names = _class_names(told.class_names or found, len(columns))
    chosen = chosen_columns(file, told, by_id=told.label_column is None)
    coding = Coding(names, told.missing, told.ignore_case)
    table = table_of_columns(file, columns, chosen, coding)
    logits = table.probs.astype(np.float64)
    notes = unused_patients(file, chosen.values()) if told.group_column is None else ()
    return replace(table, probs=_softmax(logits), notes=notes), logits


def _logits_of_npz(
    file: NpzArrays, logits: Array, told: TableColumns
) -> tuple[PredictionTable, Array]:
    draws = logits if logits.ndim == 3 else logits[None]
    logits = draws.mean(axis=0)
    own = file.class_names() or tuple(map(str, range(logits.shape[1])))
    names = _class_names(told.class_names or own, logits.shape[1])
    probs = np.mean([_softmax(member) for member in draws], axis=0)
    return table_of_arrays(file, probs, names, labels_of_npz(file, names, told.missing)), logits


def _softmax(logits: Array) -> Array:
    from scipy.special import softmax

    return np.asarray(softmax(logits, axis=1))


def _class_names(names: Sequence[str], classes: int) -> tuple[str, ...]:
    if classes < 2:
        raise InvalidInputError(f"logits: must have a column for each class; got {classes}")
    check_names(tuple(names), classes)
    return tuple(names)


def _with_prefix(file: TableFile, prefix: str, argument: str) -> list[str]:
    found = [name for name in file.columns if name.startswith(prefix)] if prefix else []
    if not found:
        raise InvalidInputError(
            f"{argument}: must be the beginning of a column's name in {file.name}; none begins "
            f"with {prefix!r} (columns: {listed(file.columns)})"
        )
    return found


def _columns(
    path: str | PathLike[str], prefix: str, argument: str, told: TableColumns
) -> tuple[Array, tuple[str, ...]]:
    """Return the columns that begin with the prefix, (N, D), and the rest of their names."""
    file = told.open(path)
    found = _with_prefix(file, prefix, argument)
    table = table_of_columns(file, found, {}, Coding(()))
    return table.probs.astype(np.float64), tuple(name.removeprefix(prefix) for name in found)


def _array(path: str | PathLike[str], key: str, ndim: int | tuple[int, ...] = 2) -> Array:
    """Return an array of finite numbers from an NPZ file."""
    known = read_npz(path)  # which explains what is no NPZ file
    found = read_archive(path, known.name, (key,))
    if key not in found:
        raise InvalidInputError(f"{known.name}: must hold an array {key!r}")
    array = found[key]
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed or array.dtype.kind not in "fiu" or len(array) == 0:
        words = " or ".join(map(str, allowed))
        raise InvalidInputError(
            f"{known.where(key)}: must hold numbers for at least one case in {words} dimensions; "
            f"got dtype {array.dtype}, shape {array.shape}"
        )
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0]) + 1
        raise InvalidInputError(f"{known.where(key)}: must hold finite numbers; row {row} does not")
    return np.asarray(array, np.float64)
