"""Voxels of two classes that every rater labelled: all there is to them, without histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.binning import unit_in_last_place
from raterwise.predictions import Rows
from raterwise.questions import Event, PerCaseScore, Question, ScoredCases


def asked_of_two(question: Question | Event | PerCaseScore) -> str:
    """Return the name of the question that asks the same where there are two classes.

    >>> asked_of_two(Event()), asked_of_two(Event(positive=0)), asked_of_two(Question())
    ('positive', 'event', 'top_label')
    """
    if isinstance(question, Event) and question.positive in (None, 1):
        return "positive"
    return question.name


@dataclass(frozen=True, eq=False)
class Votes:
    """Some voxels: the probability of class 1, and how many of the raters chose it."""

    positive: NDArray[Any]
    """(n,): float32 or float64."""
    chosen: NDArray[np.uint8]
    """(n,): how many raters chose class 1."""
    raters: int

    def scored(self, question: Question | Event | PerCaseScore) -> ScoredCases:
        """Return the voxels as scored cases of a question with one score each."""
        from raterwise.kernels import _voxels as kernels

        z, mu = np.empty((len(self.positive), 1)), np.empty((len(self.positive), 1))
        code = kernels.QUESTION_CODES[asked_of_two(question)]
        kernels.score_binary_voxels(self.positive, self.chosen, self.raters, code, z, mu)
        weight = float(self.raters) if question.per == "annotation" else 1.0
        rounding = unit_in_last_place(self.positive.dtype)
        return ScoredCases(z, mu, np.full(len(self.positive), weight), rounding=rounding)

    def rows(self) -> Rows:
        """Return one row per number of votes, weighted by how many voxels have it."""
        often = np.bincount(self.chosen, minlength=self.raters + 1).astype(np.float64)
        number = np.arange(self.raters + 1)
        return Rows(
            np.zeros((self.raters + 1, 2)),
            np.zeros(self.raters + 1),
            np.zeros(self.raters + 1, np.int64),
            classes=None,
            counts=np.stack((self.raters - number, number), axis=1),
            num_raters=np.full(self.raters + 1, self.raters),
            weights=often,
        )
