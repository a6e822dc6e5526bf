"""How a public metric function gets its number: through the catalog, as `evaluate` does."""

from __future__ import annotations

import math
from typing import Any

from quorate.arrays import choose
from quorate.catalog import find
from quorate.engines.local import summarise
from quorate.errors import UndefinedMetricError
from quorate.predictions import Predictions

__all__ = ["check_estimator", "measure"]


def measure(
    name: str,
    probs: Any,
    labels: Any,
    weights: Any,
    on_unrated: str = "error",
    on_single: str = "error",
    **options: Any,
) -> float:
    """Return one metric of the catalog on predictions and labels."""
    row = find(name)
    predictions = Predictions.of(probs, labels, weights=weights, on_unrated=on_unrated)
    own = row.with_defaults(options)
    predictions.labels.require_raters(row.raters_needed(own), on_single)
    plan = row.plan(own)
    summary = summarise(predictions, [plan])[plan]
    value = row.estimate(summary, own)
    if math.isnan(value):
        raise UndefinedMetricError(f"{name}: undefined, {row.undefined}")
    return value


def check_estimator(estimator: str, allowed: tuple[str, ...], singletons: str = "zero") -> None:
    """Raise where an estimator or the treatment of singletons is not known."""
    choose("estimator", estimator, allowed)
    choose("singletons", singletons, ("zero", "plugin"))
