"""The rows of the tables of `several_judging`: values with errors, and paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.label_histograms.several_scores import error_of

__all__ = ["Key", "differences_and_values"]

Estimates = Mapping[str, NDArray[np.float64]]

PREDICTION = ("accuracy", "squared_loss", "epistemic_loss", "calibration_error")
DISAGREEMENT = ("disagreement_loss", "disagreement_calibration_error")
DIGITS = 6


class Key(NamedTuple):
    """Which row it is."""

    fitted: str
    """To "valid" as in the paper, or to the labels of the "other" half of the test cases; or to
    "valid" with a penalty that is "chosen" by cross-validation."""
    part: str
    """Judged by "test" or, with the raters of the validation cases, by "same"."""
    method: str
    scaling: str
    alpha: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Key:
        """Return the key of a row."""
        return cls(*(row[name] for name in cls._fields))


def differences_and_values(
    found: Mapping[Key, Estimates], bins: Mapping[Key, Any]
) -> list[dict[str, Any]]:
    """Return a row for each key: values, differences from other rows, and what figures need."""
    rows = []
    for key, own in found.items():
        row: dict[str, Any] = {
            **key._asdict(),
            "values": {name: _pair(values) for name, values in own.items()},
            "differences": {name: _pair(values) for name, values in _differences(key, found)},
        }
        if key in bins:
            row["bins"] = bins[key]
        if key[:2] == ("valid", "test") and key.scaling == "none" and not key.alpha:
            # To compare networks that learnt from other labels, on the same cases.
            row["groups"] = {
                name: np.round(own[name], DIGITS + 2).tolist()
                for name in (*PREDICTION, *DISAGREEMENT)
            }
        rows.append(row)
    return rows


def _pair(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return a value and its standard error."""
    return round(float(values[0]), DIGITS), round(error_of(values), DIGITS)


def _differences(
    key: Key, found: Mapping[Key, Estimates]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield what α, the scaling, the draws and the expert's label change."""
    own = found[key]
    yield "posterior - prior", own["posterior"] - own["prior"]
    if "posterior_sum" in own:
        yield "posterior_sum - prior", own["posterior_sum"] - own["prior"]
    if key.alpha:
        before = found[key._replace(alpha=False)]
        for name in DISAGREEMENT:
            yield f"alpha {name}", own[name] - before[name]
        return
    if key.scaling != "none":
        before = found[key._replace(scaling="none")]
        for name in (*PREDICTION, *DISAGREEMENT):
            yield f"scaling {name}", own[name] - before[name]
    if key.method != "raw":
        before = found[key._replace(method="raw")]
        for name in (*PREDICTION, *DISAGREEMENT):
            yield f"method {name}", own[name] - before[name]
