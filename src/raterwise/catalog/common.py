"""What rows of the catalog share: options, questions, bounds, tags."""

from __future__ import annotations

import math
from typing import Any

TOP: dict[str, Any] = {"bins": 15, "question": "top_label", "per": "annotation"}
ANY: tuple[str, ...] = ("top_label", "positive", "per_class", "predicted_class")
ONE: tuple[str, ...] = ("top_label", "positive")
BY_CLASS = frozenset({"by_class"})
UNIT = (0.0, 1.0)
POSITIVE = (0.0, math.inf)
LH: dict[str, Any] = {"bins": 15, "estimator": "debiased", "singletons": "zero"}
