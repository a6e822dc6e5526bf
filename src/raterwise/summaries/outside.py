"""Cases from elsewhere beside those of a test set: a second sample, drawn by itself.

They have a confidence, and whatever was predicted for them is wrong. Only questions that are asked
of them too (`Question.takes_outside`) have them in their summaries, in resampling units that
follow those of the cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.questions import Question, score_outside
from raterwise.summaries.digest import Digest
from raterwise.types import FloatArray

OUTSIDE_UNITS = 4096
"""Into how many blocks outside cases are pooled at most."""


def takes_outside(plan: Any) -> bool:
    """Tell whether a plan is of cases from elsewhere as well."""
    question = getattr(plan, "question", None)
    return isinstance(question, Question) and question.takes_outside


def with_outside(digest: Digest, confidence: FloatArray, seed: int, *, drawn: bool) -> Digest:
    """Return the digest with cases from elsewhere, in units of their own where units are drawn."""
    facts = replace(digest.facts, outside=len(confidence))
    first, number, units = len(digest.unit_cases), 0, None
    if drawn and first > 1:
        number = min(len(confidence), OUTSIDE_UNITS)
        order = np.random.default_rng([seed, 6]).permutation(len(confidence))
        units = order % number if len(confidence) > number else np.arange(number)
    summaries = with_outside_cases(digest.summaries, confidence, units, first, number)
    outside = np.empty(0, np.int64) if units is None else np.bincount(units, minlength=number)
    panels = {panel: with_outside_cases(held, confidence) for panel, held in digest.panels.items()}
    return replace(digest, summaries=summaries, facts=facts, outside_cases=outside, panels=panels)


def with_outside_cases(
    summaries: Mapping[Any, Any],
    confidence: FloatArray | None,
    units: NDArray[np.int64] | None = None,
    first: int = 0,
    number: int = 0,
) -> dict[Any, Any]:
    """Return summaries by plan, those that take outside cases with them added.

    `units` (M,) is the unit of each of them, one of `number` that follow the first `first`.
    """
    found = dict(summaries)
    if confidence is None:
        return found
    scored = score_outside(confidence, None if units is None else first + units)
    for plan in filter(takes_outside, summaries):
        found[plan] = summaries[plan].widened(number)
        found[plan].take_in(scored)
    return found
