"""A fitted α-calibration as plain numbers and lists, and back.

Version 1 knew the penalty of LH eq 50 alone; it is still read.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from raterwise.errors import InvalidInputError

FORMAT, VERSION = "raterwise.AlphaCalibration", 2
LARGEST_LOG_CONCENTRATION = 500.0
"""Beyond this a Dirichlet is a point, or one of the corners, to the last digit."""


def state_of(calibrator: Any) -> dict[str, Any]:
    """Return what makes up a fitted AlphaCalibration, ready for JSON."""
    cv = None
    if calibrator.cv_l2_ is not None:
        losses = calibrator.cv_loss_.tolist()
        cv = {"l2": [_plain(value) for value in calibrator.cv_l2_], "loss": losses}
    return {
        "format": FORMAT,
        "version": VERSION,
        "params": {name: _plain(value) for name, value in calibrator.get_params().items()},
        "num_classes": calibrator.num_classes_,
        "default_features": calibrator.default_features_,
        "coef": calibrator.coef_.tolist(),
        "center": calibrator.center_.tolist(),
        "log_concentration_at_center": calibrator.log_concentration_at_center_,
        "log_concentration_range": list(calibrator.log_concentration_range_),
        "l2": _plain(calibrator.l2_),
        "beats_constant": calibrator.beats_constant_,
        "cv": cv,
        "loss": calibrator.loss_ if np.isfinite(calibrator.loss_) else None,
        "gradient_norm": calibrator.gradient_norm_,
        "n_iter": calibrator.n_iter_,
    }


def current_state(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that `state_of` stored, and the parameters under "params"."""
    found = (stored.get("format"), stored.get("version"))
    if found[0] != FORMAT or found[1] not in (1, VERSION):
        raise InvalidInputError(
            f"stored: must be {FORMAT}, version {VERSION}; got {found[0]!r}, {found[1]!r}"
        )
    if found[1] == 1:
        stored = _of_version_1(stored)
    params = {k: _restored(v) if k == "l2" else v for k, v in stored["params"].items()}
    low, high = stored["log_concentration_range"]
    cv = stored["cv"]
    return {
        "params": params,
        "coef_": np.asarray(stored["coef"], np.float64),
        "center_": np.asarray(stored["center"], np.float64),
        "level": float(stored["log_concentration_at_center"]),
        "num_classes_": int(stored["num_classes"]),
        "default_features_": bool(stored["default_features"]),
        "log_concentration_range_": (float(low), float(high)),
        "l2_": _restored(stored["l2"]),
        "beats_constant_": stored["beats_constant"],
        "cv_l2_": None if cv is None else np.array([_restored(value) for value in cv["l2"]]),
        "cv_loss_": None if cv is None else np.asarray(cv["loss"], np.float64),
        "loss_": math.inf if stored["loss"] is None else float(stored["loss"]),
        "gradient_norm_": float(stored["gradient_norm"]),
        "n_iter_": int(stored["n_iter"]),
    }


def _plain(value: Any) -> Any:
    """Return a parameter as JSON knows it, which has no infinity."""
    if isinstance(value, np.generic):
        value = value.item()
    return "inf" if value == math.inf else value


def _restored(value: Any) -> Any:
    return value if value == "cv" else float(value)


def _of_version_1(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a file of version 1 as one of this version."""
    params = stored["params"] | {"penalty": "paper"}
    most = LARGEST_LOG_CONCENTRATION
    return stored | {
        "params": params,
        "l2": params["l2"],
        "beats_constant": None,
        "cv": None,
        "log_concentration_range": [-most, most],
    }
