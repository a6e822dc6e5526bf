"""A chunk of cases, read and checked; and confidences of one's own, which rank them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError
from raterwise.predictions.mixtures import Draws
from raterwise.rules import contains_nan
from raterwise.types import Array, FloatArray, Integers


@dataclass(frozen=True, eq=False)
class Rows:
    """A chunk of cases, read and checked: what every question is answered from."""

    probs: Array
    """(n, K), float32 or float64, C order."""
    confidence: FloatArray
    """(n,): the largest probability."""
    predicted: NDArray[np.int64]
    """(n,): its class; ties go to the lowest."""
    classes: Integers | None
    """(n,): the label where every case has exactly one."""
    counts: Integers | None
    """(n, K): otherwise the label histograms."""
    num_raters: Integers | None
    weights: FloatArray | None
    """(n,): case weights; None where all are 1."""
    start: int = 0
    """The row of the first case in the whole."""
    units: NDArray[np.int64] | None = None
    """(n,): the resampling unit of each case; None where there is one for all."""
    case_values: Mapping[str, FloatArray] = field(default_factory=dict)
    """Further numbers that each case has, such as the disagreement that a belief predicts."""
    rounding: float = 0.0
    """One unit in the last place of the type that the probabilities came in."""
    own_confidence: FloatArray | None = None
    """(n,): what ranks the cases, where it is not the largest probability."""
    draws: Draws | None = None
    """What several draws say of the predicted class."""
    class_weights: FloatArray | None = None
    """(K,): of `weights`, the part that is the label's class's; None where classes weigh alike."""

    def with_raters(self, least: int) -> Rows:
        """Return the cases that at least `least` raters labelled."""
        if least <= 1:
            return self
        if self.num_raters is None:
            return self.take(slice(0))
        keep = self.num_raters >= least
        return self if keep.all() else self.take(keep)

    def take(self, rows: Any, units: NDArray[np.int64] | None = None) -> Rows:
        """Return the chosen cases, in their own resampling units or in those given."""
        chosen: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[rows]
            for name in self.__dataclass_fields__
            if name not in ("start", "case_values", "rounding", "class_weights")
        }
        values = {name: value[rows] for name, value in self.case_values.items()}
        whole = {name: getattr(self, name) for name in ("start", "rounding", "class_weights")}
        taken = Rows(**chosen, **whole, case_values=values)
        return taken if units is None else replace(taken, units=units)


def confidences(values: Any, name: str) -> Array:
    """Return (N,) confidences, any numbers, at least one and none of them NaN."""
    array = as_float_array(values, name, ndim=1)
    if len(array) == 0:
        raise InvalidInputError(f"{name}: must hold at least one case; got none")
    if missing := int(np.isnan(array).sum()):
        raise contains_nan(name, missing)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def own_confidence(values: Any, cases: int) -> FloatArray | None:
    """Return one confidence per case; that of a case which is left out later may be NaN."""
    if values is None:
        return None
    array = as_float_array(values, "confidence", ndim=1).astype(np.float64)
    if len(array) != cases:
        raise InvalidInputError(f"confidence: must match probs; got {len(array)} for {cases} cases")
    return array
