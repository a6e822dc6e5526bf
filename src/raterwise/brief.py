"""A short one-line `repr` for objects that hold long columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

MOST_TEXT = 40
"""Longer texts are left out."""


def brief(self: Any) -> str:
    """Return the class, the single values of a dataclass, and how long its first column is.

    >>> from raterwise.metrics.ranking import CCCCurve
    >>> print(CCCCurve(*np.ones((5, 300))))
    CCCCurve(300 thresholds)
    """
    told: list[str] = []
    counted = False
    for field in fields(self):
        value = getattr(self, field.name)
        if isinstance(value, str) and len(value) <= MOST_TEXT:
            told.append(f"{field.name}={value!r}")
        elif isinstance(value, int | float | np.number):
            told += [f"{field.name}={value:.4g}"] if value == value else []
        elif isinstance(value, np.ndarray | Sequence) and not isinstance(value, str):
            if not counted:
                told.append(f"{len(value):,} {field.name}")
            counted = True
    return f"{type(self).__name__}({', '.join(told)})"
