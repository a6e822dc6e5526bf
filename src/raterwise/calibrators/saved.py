"""Fitted calibrators in JSON files: readable, versioned, and nothing in them can run.

schema_version   1
kind             which calibrator, such as "TemperatureScaling"
raterwise_version  what wrote it
state            parameters, class names and fitted numbers; every digit is kept
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from raterwise import __version__
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.cross_validation import MatrixScalingCV, VectorScalingCV
from raterwise.calibrators.nonparametric import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
)
from raterwise.calibrators.scaling import (
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from raterwise.errors import InvalidInputError
from raterwise.io.damaged import one_line, read_json
from raterwise.io.files import write_text_atomically

SCHEMA_VERSION = 1

KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        AlphaCalibration,
        BetaCalibration,
        DirichletCalibration,
        HistogramBinning,
        IsotonicCalibration,
        MatrixScaling,
        MatrixScalingCV,
        TemperatureScaling,
        VectorScaling,
        VectorScalingCV,
    )
}


def save(calibrator: Any, path: str | PathLike[str]) -> Path:
    """Write a fitted calibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    calibrator : a fitted calibrator
        Any of raterwise, AlphaCalibration included.
    path : str or path
        The file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If it is not a calibrator of raterwise.

    Examples
    --------
    >>> calibrator = TemperatureScaling().fit([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 1, 1])
    >>> path = save(calibrator, getfixture("tmp_path") / "temperature.json")
    >>> load(path).temperature_ == calibrator.temperature_
    True
    """
    kind = type(calibrator).__name__
    if KINDS.get(kind) is not type(calibrator):
        raise InvalidInputError(f"calibrator: must be one of {', '.join(KINDS)}; got {kind}")
    content = {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "raterwise_version": __version__,
        "state": calibrator.to_dict(),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return write_text_atomically(path, text + "\n")


def load(path: str | PathLike[str]) -> Any:
    """Return the calibrator that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    a fitted calibrator
        Of the kind that was saved; every digit is kept, and nothing in the file can run.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or is not a calibrator of this or an earlier version.
    """
    file = Path(path)
    try:
        content = read_json(file, "a saved calibrator")
    except OSError as error:
        raise InvalidInputError(f"{file.name}: cannot be read; {error.strerror}") from error
    if not isinstance(content, dict) or "schema_version" not in content:
        raise InvalidInputError(f"{file.name}: is not a saved calibrator; no schema_version in it")
    if (version := content["schema_version"]) != SCHEMA_VERSION:
        raise InvalidInputError(
            f"{file.name}: schema_version must be {SCHEMA_VERSION}; got {version!r}, written by "
            f"raterwise {content.get('raterwise_version', 'unknown')}; this is {__version__}"
        )
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInputError(
            f"{file.name}: kind must be one of {', '.join(KINDS)}; got {kind!r}"
        )
    try:
        return KINDS[kind].from_dict(content["state"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{file.name}: is damaged; {one_line(error)}") from error
