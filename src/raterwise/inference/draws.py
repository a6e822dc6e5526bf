"""Resampling: which cases stand or fall together, and how often each is drawn.

The unit of the bootstrap is the patient where groups are given, otherwise the case. A summary
keeps a table per unit, so a resample is a product: multiplicities (B, units) × tables. Above
`MAX_UNITS` units are pooled at random into that many blocks, which leaves the variance of sums of
independent units as it is and bounds memory and time, whatever the number of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.inference.settings import Settings
from raterwise.predictions import Predictions
from raterwise.summaries import Plan
from raterwise.summaries.digest import Digest, digest_of
from raterwise.summaries.outside import with_outside
from raterwise.types import IntArray

Units = tuple[IntArray, int]
"""The resampling unit of each case, and the number of units."""

MAX_UNITS = 4096
DRAWN_TOGETHER = 1 << 16
"""How many draws are counted at once."""


def resampling_units(predictions: Predictions, seed: int) -> Units:
    """Return the unit of each case and the number of units."""
    groups = predictions.groups
    number = len(predictions) if groups is None else len(predictions.group_ids)
    if number <= MAX_UNITS:
        return np.arange(number) if groups is None else groups, number
    block = np.resize(np.arange(MAX_UNITS, dtype=np.uint16), number)
    np.random.default_rng([seed, 1]).shuffle(block)  # in 16 bits: a quarter of the memory to visit
    return (block if groups is None else block[groups]).astype(np.int64), MAX_UNITS


def multiplicities(units: int, resamples: int, seed: int, stream: int = 2) -> NDArray[Any]:
    """Return (resamples, units): how often each unit is drawn, `units` draws with replacement."""
    random = np.random.default_rng([seed, stream])
    out = np.empty((resamples, units), np.uint16 if units < 1 << 16 else np.int64)
    step = max(1, DRAWN_TOGETHER // units)
    for first in range(0, resamples, step):
        some = out[first : first + step]
        drawn = random.integers(0, units, some.shape) + units * np.arange(len(some))[:, None]
        some[:] = np.bincount(drawn.ravel(), minlength=some.size).reshape(some.shape)
    return out


def digest_in_memory(
    predictions: Predictions, plans: Sequence[Plan], settings: Settings, units: Units | None = None
) -> Digest:
    """Return the digest of predictions, with a unit per patient or case where these are drawn."""
    codes, number = None, 1
    if settings.resamples and settings.unit != "raters":
        codes, number = units or resampling_units(predictions, settings.seed)
    unit = "cases" if predictions.groups is None else "patients"
    # Cases from elsewhere are added to summaries that are there.
    in_turn = codes is not None and predictions.outside is None
    digest = digest_of(predictions, plans, units=codes, number=number, unit=unit, in_turn=in_turn)
    if predictions.outside is None:
        return digest
    return with_outside(digest, predictions.outside, settings.seed, drawn=codes is not None)
