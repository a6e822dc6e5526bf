"""Resampling: which cases stand or fall together, and how often each is drawn.

The unit of the bootstrap is the patient where groups are given, otherwise the case. A summary
keeps a table per unit, so a resample is a product: multiplicities (B, units) × tables. Above
`MAX_UNITS` units are pooled at random into that many blocks, which leaves the variance of sums of
independent units as it is and bounds memory and time, whatever the number of cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quorate.labels import Labels
from quorate.predictions import Predictions

__all__ = ["MAX_UNITS", "multiplicities", "resampled_raters", "resampling_units"]

IntArray = NDArray[np.int64]

MAX_UNITS = 4096


def resampling_units(predictions: Predictions, seed: int) -> tuple[IntArray, int]:
    """Return the unit of each case and the number of units."""
    cases = len(predictions)
    codes = np.arange(cases) if predictions.groups is None else predictions.groups
    number = cases if predictions.groups is None else len(predictions.group_ids)
    if number <= MAX_UNITS:
        return codes, number
    block = np.random.default_rng([seed, 1]).permutation(number) % MAX_UNITS
    return block[codes], MAX_UNITS


def multiplicities(units: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return (resamples, units): how often each unit is drawn, `units` draws with replacement."""
    random = np.random.default_rng([seed, 2])
    out = np.empty((resamples, units))
    for b in range(resamples):
        out[b] = np.bincount(random.integers(0, units, units), minlength=units)
    return out


def resampled_raters(predictions: Predictions, resamples: int, seed: int) -> Iterator[Predictions]:
    """Yield the predictions with resampled raters.

    Where it is known who said what, raters are drawn as persons: all of a rater's labels come or
    go together, and a case that none of the drawn raters saw is left out of that resample.
    Otherwise each case draws its labels again from its own histogram, as if each came from
    another rater (the papers' assumption of interchangeable raters).
    """
    labels = predictions.labels
    for b in range(resamples):
        random = np.random.default_rng([seed, 3, b])
        if labels.ratings is not None:
            counts = _draw_persons(labels, random)
        else:
            counts = random.multinomial(labels.num_raters, labels.frequencies)
        seen = counts.sum(axis=1) > 0
        drawn = replace(labels, classes=None, histogram=counts, ratings=None)
        whole = replace(predictions, labels=drawn)
        yield whole if seen.all() else whole.take(seen)


def _draw_persons(labels: Labels, random: np.random.Generator) -> IntArray:
    ratings = labels.ratings
    assert ratings is not None
    number = len(ratings.rater_ids)
    drawn = np.bincount(random.integers(0, number, number), minlength=number)
    flat = ratings.case.astype(np.int64) * labels.num_classes + ratings.label
    size = len(labels) * labels.num_classes
    counts = np.bincount(flat, weights=drawn[ratings.rater], minlength=size)
    return counts.astype(np.int64).reshape(len(labels), labels.num_classes)
