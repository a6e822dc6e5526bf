"""How a public metric function gets its number: through the catalog, as `evaluate` does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from raterwise.arrays import on_gpu
from raterwise.catalog import Metric, find
from raterwise.errors import UndefinedMetricError
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.predictions.checks import as_labels, check_weights
from raterwise.rules import choose
from raterwise.summaries import Plan, summarise
from raterwise.types import OnUnrated


def measure(
    name: str,
    probs: Any,
    labels: Any,
    weights: Any,
    on_unrated: OnUnrated = "error",
    on_single: str = "error",
    **options: Any,
) -> float:
    """Return one metric of the catalog on predictions and labels.

    Predictions on a GPU stay there: only the summary comes to the host.
    """
    row = find(name)
    own = row.checked(options)
    summary = summary_for(row, own, probs, labels, weights, on_unrated, on_single)
    return value_of(row, own, summary)


def summary_for(
    row: Metric,
    own: Mapping[str, Any],
    probs: Any,
    labels: Any,
    weights: Any,
    on_unrated: OnUnrated = "error",
    on_single: str = "error",
) -> Any:
    """Return the summary that a metric with these options is a formula over."""
    choose("on_single", on_single, ("error", "drop"))
    plan, needed = row.plan_of(own, on_single), row.raters_needed(own, on_single)
    summary = None
    if on_gpu(probs) and (needed <= 1 or isinstance(labels, Labels)):
        if needed > 1:
            counted = labels.num_raters > 0
            given = check_weights(weights, len(counted))
            counted = counted if given is None else counted & (given > 0)
            rows = np.flatnonzero(counted)
            labels.take(rows).require_raters(needed, on_single, rows=rows)
        summary = _on_device(row, plan, probs, labels, weights, on_unrated)
    if summary is None:
        predictions = Predictions.of(probs, labels, weights=weights, on_unrated=on_unrated)
        predictions.labels.require_raters(needed, on_single, rows=predictions.kept)
        summary = summarise(predictions, [plan])[plan]
    return summary


def value_of(row: Metric, own: Mapping[str, Any], summary: Any) -> float:
    """Return the metric of its summary."""
    value = row.estimate(summary, own)
    if not math.isfinite(value):
        raise UndefinedMetricError(f"{row.name}: undefined, {row.undefined}")
    return value


def _on_device(
    row: Metric, plan: Plan, probs: Any, labels: Any, weights: Any, on_unrated: OnUnrated
) -> Any:
    """Return the summary of predictions on a GPU, or None where only the host can make it."""
    from raterwise.tensors import device

    if not device.can_summarise(plan) or probs.ndim not in (1, 2):
        return None
    classes = 2 if probs.ndim == 1 else probs.shape[1]
    labels = labels_for_device(labels, classes)
    # The kernel-density error leaves out one case at a time, also where scores are equal.
    merge_ties = "of_cases" not in row.tags
    return device.summarise(
        probs, labels, [plan], weights=weights, on_unrated=on_unrated, merge_ties=merge_ties
    )[plan]


def labels_for_device(labels: Any, classes: int) -> Any:
    """Return a tensor of whole classes as it is, and what else labels may be as on the host."""
    if hasattr(labels, "detach") and labels.ndim == 1 and not labels.is_floating_point():
        return labels
    return as_labels(labels, classes)
