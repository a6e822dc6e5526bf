"""States of metrics that may be added, and those that may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchmetrics import Metric

from raterwise.errors import MergeError


def refuse_unlike(metric: Any, incoming: object, states: Mapping[str, str]) -> None:
    """Raise where tables are of another metric, or of the same with other options.

    `states` are the names of the tables of `metric` in its state, which say what decides the sums.
    """
    if isinstance(incoming, Metric):
        if type(incoming) is not type(metric):
            raise MergeError(
                f"incoming_state: must be that of {type(metric).__name__}; got "
                f"{type(incoming).__name__}"
            )
        classes: Any = getattr(incoming, "num_classes", None)
        if classes != metric.num_classes:
            raise MergeError(
                f"incoming_state: must be of {metric.num_classes} classes; got {classes}"
            )
        incoming = incoming.metric_state
    if not isinstance(incoming, Mapping):
        raise MergeError(
            f"incoming_state: must be a metric or its state; got {type(incoming).__name__}"
        )
    if set(incoming) != set(states.values()):
        raise MergeError(
            "incoming_state: must be of a metric with the same options, such as bins, question and "
            f"per, which decide its sums; got {', '.join(map(str, incoming)) or 'nothing'}, "
            f"and not {', '.join(states.values())}"
        )
