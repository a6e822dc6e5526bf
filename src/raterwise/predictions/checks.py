"""What comes with probabilities, checked: labels of the same classes, weights, names, patients."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.arrays import as_float_array, refuse_masked
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.frames import as_list, columns_of, is_frame, refuse_ragged
from raterwise.labels import Labels
from raterwise.labels.misread import one_hot_notes
from raterwise.types import FloatArray

ROUNDING = 1e-9
"""So that 1.0001, which no sum of doubles hits exactly, is within 1e-4 of 1."""


def require_several(labels: Any) -> None:
    """Refuse what is no `Labels`: bare classes do not say what several raters thought."""
    if not isinstance(labels, Labels):
        raise InvalidTypeError(
            "labels: must be Labels with several labels per case, as made by Labels.from_ratings, "
            f"from_counts or from_long; got {type(labels).__name__}"
        )


def row_sum_tolerance(*given: Any) -> float:
    """How far a row may sum from 1: 1e-4, or 1e-2 for the 16-bit types, which have three digits.

    A bfloat16 tensor and the columns of a data frame show their types before they become an array.
    """
    types = ([x.dtype] if hasattr(x, "dtype") else getattr(x, "dtypes", ()) for x in given)
    half = any(str(kind).lower().endswith("float16") for own in types for kind in own)
    return (1e-2 if half else 1e-4) + ROUNDING


def as_labels(labels: Any, num_classes: int, class_names: Sequence[str] | None = None) -> Labels:
    """Return `labels`, or plain (N,) classes as such, of the right number of classes.

    Words are classes by the `class_names`; numbers need none.
    """
    if not isinstance(labels, Labels):
        names = class_names if class_names is not None and len(class_names) == num_classes else None
        shape = getattr(labels, "shape", None)
        if isinstance(shape, tuple) and len(shape) != 1 and not is_frame(labels):
            raise _not_one_class_per_case(shape, str(getattr(labels, "dtype", "")))
        if isinstance(labels, list | tuple) and labels and isinstance(labels[0], list | tuple):
            refuse_ragged(labels, "labels")
            raise _not_one_class_per_case(np.shape(labels), str(np.asarray(labels[0]).dtype))
        return Labels.from_classes(labels, num_classes, names)
    widened: Labels = labels.widened(num_classes)
    rules.check_number_of_classes("labels", widened.num_classes, num_classes)
    told = one_hot_notes(widened)
    return (
        replace(widened, notes=tuple(dict.fromkeys((*widened.notes, *told)))) if told else widened
    )


def _not_one_class_per_case(shape: Sequence[int], kind: str) -> InvalidInputError:
    swapped = "; probabilities come first, (probs, labels)" if "float" in kind else ""
    return InvalidInputError(
        f"labels: a plain array must be (N,), one class per case; got shape {tuple(shape)}. Use "
        "Labels.from_ratings for a rating matrix, Labels.from_counts for histograms and one-hot "
        f"rows{swapped}"
    )


def check_class_order(columns: Sequence[str] | None, names: Sequence[str] | None) -> None:
    """Refuse columns of probabilities that stand in another order than the classes."""
    if columns is None or names is None or tuple(columns) == tuple(names):
        return
    if set(columns) == set(names):
        raise InvalidInputError(
            "class_names: must be in the order of the columns of probs; these are "
            f"{', '.join(columns)} and the classes are {', '.join(names)}"
        )


def check_weights(weights: Any, cases: int) -> FloatArray | None:
    """Return case weights as float64, one finite and non-negative value per case."""
    if weights is None:
        return None
    array = as_float_array(weights, "weights", ndim=1).astype(np.float64)
    rules.check_one_per_case("weights", array.shape, cases)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        case = int(np.flatnonzero(bad)[0])
        raise rules.bad_weight("weights", case, float(array[case]))
    if not array.any():
        raise rules.no_weight("weights")
    rules.check_sum_of_weights("weights", float((array / cases).sum()) * cases)
    return array


def counted_weights(labels: Labels, weights: Any, least: int, on_single: str) -> FloatArray:
    """Return the weight of each case, having asked those that count for `least` labels.

    A case of weight 0 is not there, however few its labels are.
    """
    given = check_weights(weights, len(labels))
    if given is None or given.all():
        labels.require_raters(least, on_single)
    else:
        rows = np.flatnonzero(given)
        labels.take(rows).require_raters(least, on_single, rows=rows)
    return np.ones(len(labels)) if given is None else given


def patient_codes(groups: Any, cases: int) -> tuple[NDArray[np.int64] | None, tuple[Hashable, ...]]:
    """Return the patient of each case as 0 … G-1, in the order they appear, and their names.

    >>> codes, names = patient_codes(["ann", "bob", "ann"], 3)
    >>> codes.tolist(), names
    ([0, 1, 0], ('ann', 'bob'))
    """
    if groups is None:
        return None, ()
    if hasattr(groups, "detach"):
        groups = groups.detach().cpu().numpy()
    elif columns_of(groups, "groups") is not None:
        groups = as_list(groups, "groups")
    refuse_masked(groups, "groups")
    # Of a list, NumPy would make text of everything as soon as one of its names is text: "nan".
    values = groups if isinstance(groups, np.ndarray) else np.asarray(groups, dtype=object)
    if values.shape != (cases,):
        raise InvalidInputError(
            f"groups: must name the patient of each case; got shape {values.shape} "
            f"for {cases} cases"
        )
    names = values.tolist()
    code = {value: i for i, value in enumerate(dict.fromkeys(names))}
    looked_at = values.dtype.kind == "O" and not any(map(rules.is_missing, code))
    if not looked_at and (unknown := _missing(values)).any():
        first = rules.first_cases(np.flatnonzero(unknown))
        raise rules.missing_patients("groups", int(unknown.sum()), cases, first)
    return np.fromiter(map(code.__getitem__, names), np.int64, cases), tuple(code)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which names are None, NaN, NaT or NA."""
    if values.dtype.kind == "O":
        return np.fromiter((rules.is_missing(value) for value in values), bool, len(values))
    if values.dtype.kind in "fcmM":
        return np.asarray(values != values)
    return np.zeros(len(values), bool)
