"""Warnings that matter: what a reader should know before believing the numbers.

Each says what was counted. Where nothing is wrong, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import bin_edges
from raterwise.catalog import Metric
from raterwise.predictions import Predictions
from raterwise.recipes import Options

__all__ = ["number_of_patients", "warnings_about"]

Asked = Mapping[str, tuple[Metric, Options]]

FEW_CASES, FEW_PER_BIN, FEW_PER_CLASS, FEW_FOR_KERNELS, FEW_PATIENTS = 100, 10, 10, 50, 20
LARGE_SHARE = 0.2
"""Of all cases: a patient who has more decides the figures."""
TIED = 1e-3
"""Confidences that lie closer together than this tell no cases apart."""
LOOKED_AT = 100_000
"""How many confidences are looked at, spread over all cases."""
MOST_NAMED = 3


def warnings_about(predictions: Predictions, asked: Asked | None = None) -> tuple[str, ...]:
    """Return what to know of the predictions, and of the metrics asked for with their options."""
    metrics = asked or {}
    return (
        *_about_cases(predictions, metrics),
        *_about_patients(predictions),
        *_about_raters(predictions),
        *_about_classes(predictions, metrics),
        *_about_confidences(predictions),
    )


def number_of_patients(predictions: Predictions) -> int | None:
    """Return how many patients the cases are from, where that is known."""
    return None if predictions.groups is None else len(np.unique(predictions.groups))


def _about_cases(predictions: Predictions, asked: Asked) -> Iterator[str]:
    cases = len(predictions)
    counted = "1 case" if cases == 1 else f"{cases} cases"
    binned = [own["bins"] for row, own in asked.values() if row.error and "bins" in own]
    bins = max((len(bin_edges(edges)) - 1 for edges in binned), default=0)
    if cases < max(FEW_CASES, FEW_PER_BIN * bins):
        each = f" for {bins} bins, {cases / bins:.1f} a bin" if bins else ""
        yield f"only {counted}{each}: calibration errors are dominated by chance"
    if "kde_ece" in asked and cases < FEW_FOR_KERNELS:
        yield (
            f"only {counted} for KDE-ECE: below about {FEW_FOR_KERNELS} its kernel has too few "
            "neighbours to average over"
        )


def _about_patients(predictions: Predictions) -> Iterator[str]:
    patients = number_of_patients(predictions)
    if patients is None or predictions.groups is None:
        return
    if patients < FEW_PATIENTS:
        yield (
            f"only {patients} patients: intervals by patient are too short below about "
            f"{FEW_PATIENTS}"
        )
    cases, most = len(predictions), int(np.bincount(predictions.groups).max())
    # Where patients are few, each has a large share, and that has been said.
    if most > LARGE_SHARE * cases and most > 2 * cases / patients:
        yield f"one patient has {most} of {cases} cases ({most / cases:.0%}) and much of the say"


def _about_raters(predictions: Predictions) -> Iterator[str]:
    cases, single = len(predictions), int((predictions.labels.num_raters < 2).sum())
    if single == cases:
        yield "one rater per case: disagreement and epistemic loss cannot be estimated"
    elif single:
        yield f"{single} of {cases} cases have a single rater"


def _about_classes(predictions: Predictions, asked: Asked) -> Iterator[str]:
    cases = _cases_by_class(predictions)
    names = predictions.class_names or tuple(f"class {k}" for k in range(len(cases)))
    absent = [names[k] for k in np.flatnonzero(cases == 0)]
    if absent:
        yield (
            f"no rater chose {_some(absent)} ({len(absent)} of {len(cases)} classes): of these the "
            "figures say nothing"
        )
    by_class = [row.title for row, own in asked.values() if row.error and _by_class(row, own)]
    few = [
        f"{names[k]} ({cases[k]})" for k in np.flatnonzero((cases > 0) & (cases < FEW_PER_CLASS))
    ]
    if by_class and few:
        yield (
            f"fewer than {FEW_PER_CLASS} cases of {_some(few)}: errors by class "
            f"({_some(by_class)}) are mostly chance there"
        )


def _by_class(row: Metric, own: Options) -> bool:
    question = getattr(row.plan(own), "question", None)
    return getattr(question, "name", "") in ("per_class", "predicted_class")


def _cases_by_class(predictions: Predictions) -> NDArray[Any]:
    """Return in how many cases some rater chose each class."""
    labels = predictions.labels
    if labels.classes is not None:
        return np.bincount(labels.classes, minlength=labels.num_classes)
    return np.asarray((labels.counts > 0).sum(axis=0))


def _about_confidences(predictions: Predictions) -> Iterator[str]:
    step = -(-len(predictions) // LOOKED_AT)
    probs = predictions.probs[::step]
    if len(probs) < 2:
        return
    confidence = np.maximum(probs, 1 - probs) if probs.ndim == 1 else probs.max(axis=1)
    low, high = float(confidence.min()), float(confidence.max())
    if high - low < TIED:
        yield f"every confidence lies between {low:.4f} and {high:.4f}: none tells cases apart"
        return
    values, counts = np.unique(confidence, return_counts=True)
    most = int(counts.argmax())
    if counts[most] > len(confidence) / 2:
        yield (
            f"{counts[most] / len(confidence):.0%} of the confidences are exactly "
            f"{values[most]:.4g}: ranks and bins cannot tell these cases apart"
        )


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(names[:MOST_NAMED]) + more
