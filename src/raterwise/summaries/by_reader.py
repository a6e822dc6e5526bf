"""Each rater beside the others of the same cases, and the model there: digests that add up."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries.contract import Plan
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts
from raterwise.summaries.one_pass import summarise
from raterwise.types import IntArray

MODEL, READER = "model", "reader"


def readers_of(
    predictions: Predictions, plans: Sequence[Plan], units: IntArray, number: int
) -> dict[str, dict[Hashable, Digest]]:
    """Return what the model and each rater say of the cases that others rated too, by rater.

    The labels of the others are the reference; what the rater said is a prediction of certainty.
    `units` (n,) is the resampling unit of each case, one of `number`. Nothing where it is not known
    who said what.

    >>> labels = Labels.from_ratings([[0, 0], [1, 1], [0, -1]], num_classes=2)
    >>> found = readers_of(Predictions.of([0.2, 0.9, 0.4], labels), [], np.arange(3), 3)
    >>> found[MODEL][0].unit_cases.tolist()
    [1, 1, 0]
    """
    found: dict[str, dict[Hashable, Digest]] = {MODEL: {}, READER: {}}
    for rater, case, said, reference in _shared(predictions):
        weights = None if predictions.weights is None else predictions.weights[case]
        own = units[case]
        for who, probs in ((MODEL, predictions.probs[case]), (READER, said)):
            cases = Predictions.of(probs, reference, weights=weights)
            summaries = summarise(cases, plans, units=own, num_units=number)
            counts = np.bincount(own, minlength=number)
            weighed = None if weights is None else np.bincount(own, weights, number).astype(float)
            found[who][rater] = Digest(summaries, Facts.counted(cases), counts, weights=weighed)
    return found


def _shared(predictions: Predictions) -> Iterator[tuple[Hashable, IntArray, Any, Labels]]:
    """Yield the cases that each rater shares with others, what was said, and what others said."""
    ratings = predictions.labels.ratings
    if ratings is None:
        return
    counts, classes = predictions.labels.counts, predictions.num_classes
    for r, rater in enumerate(ratings.rater_ids):
        mine = ratings.rater == r
        case, said = ratings.case[mine], ratings.label[mine]
        order = np.argsort(case, kind="stable")
        case, said = case[order], said[order]
        own = np.zeros((len(case), classes), np.int64)
        own[np.arange(len(case)), said] = 1
        others = counts[case] - own
        shared = others.sum(axis=1) > 0
        if shared.any():
            reference = Labels.from_counts(others[shared])
            yield rater, case[shared], own[shared].astype(np.float64), reference
