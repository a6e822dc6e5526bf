"""Who said what, as counts of cases on which the raters said the same: sums that add up."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.labels import Labels
from raterwise.labels.histograms import Ratings
from raterwise.predictions import Predictions

MOST_RATINGS = 1_000_000
"""Up to how many ratings raters are compared."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows of ratings, one column per rater, and how many cases have each of them.

    >>> labels = Labels.from_ratings([[0, 1], [1, 1], [0, 1]], num_classes=2)
    >>> panel = Panel.of(Predictions.of([0.2, 0.9, 0.4], labels))
    >>> panel.cases.tolist(), (panel + panel).cases.tolist()
    ([2, 1], [4, 2])
    """

    raters: tuple[Hashable, ...]
    classes: int
    codes: NDArray[np.int64]
    """(M,): a row as one number, Σ_r (label + 1) (K + 1)^r, with 0 where a rater said nothing."""
    cases: NDArray[np.int64]
    """(M,)."""
    patients: NDArray[np.uint64]
    """(M,): 64 bits of the patient's name; empty where patients are not known."""
    why: str = ""
    """Why nothing is kept, where nothing is."""

    @staticmethod
    def of(predictions: Predictions, patients: NDArray[np.uint64] | None = None) -> Panel:
        """Return who said what of some cases; `patients` are the hashes of the patients' codes."""
        ratings, classes = predictions.labels.ratings, predictions.num_classes
        if ratings is None:
            return Panel.none("the labels do not say who gave them")
        raters = ratings.rater_ids
        if (classes + 1) ** len(raters) >= 2**62:
            return Panel.none("there are too many raters")
        place = (classes + 1) ** np.arange(len(raters))
        said = np.zeros((len(predictions), len(raters)), np.int64)
        np.add.at(said, (ratings.case, ratings.rater), ratings.label.astype(np.int64) + 1)
        if len(ratings.case) > np.count_nonzero(said):
            return Panel.none("a rater labelled a case twice")
        groups = predictions.groups
        who = np.empty(0, np.uint64)
        if groups is not None and patients is not None:
            who = patients[groups]
        return Panel(raters, classes, said @ place, np.ones(len(said), np.int64), who)._counted()

    @staticmethod
    def none(why: str) -> Panel:
        """Return a panel of which nothing is known."""
        empty = np.empty(0, np.int64)
        return Panel((), 0, empty, empty, np.empty(0, np.uint64), why)

    def __add__(self, other: Panel) -> Panel:
        for panel in (self, other):
            if panel.why:
                return panel
        if (self.raters, self.classes) != (other.raters, other.classes):
            return Panel.none("the parts have different raters")
        if bool(len(self.patients)) != bool(len(other.patients)):
            return Panel.none("some parts do not say who the patients are")
        return Panel(
            self.raters,
            self.classes,
            np.concatenate((self.codes, other.codes)),
            np.concatenate((self.cases, other.cases)),
            np.concatenate((self.patients, other.patients)),
        )._counted()

    def _counted(self) -> Panel:
        """Return the panel with every row once, in order."""
        if int(self.cases.sum()) * len(self.raters) > MOST_RATINGS:
            return Panel.none(f"there are more than {MOST_RATINGS:,} ratings")
        if not len(self.cases):  # of a part of a stream in which nothing counts
            return self
        keys = (self.codes, self.patients) if len(self.patients) else (self.codes,)
        order = np.lexsort(keys)
        changes = [np.diff(key[order]) != 0 for key in keys]
        begin = np.flatnonzero(np.concatenate(([True], np.logical_or.reduce(changes))))
        cases = np.add.reduceat(self.cases[order], begin)
        patients = self.patients[order][begin] if len(self.patients) else self.patients
        return Panel(self.raters, self.classes, self.codes[order][begin], cases, patients)

    def anonymous(self) -> Panel:
        """Return what may leave the place where the patients are known."""
        unknown = "the summaries do not say who the patients are"
        return Panel.none(unknown) if len(self.patients) else self

    def labels(self) -> tuple[Labels, NDArray[Any] | None]:
        """Return the labels of all cases, and their patients where these are known."""
        place = (self.classes + 1) ** np.arange(len(self.raters))
        said = np.repeat(self.codes[:, None] // place % (self.classes + 1) - 1, self.cases, axis=0)
        case, rater = np.nonzero(said >= 0)
        counts = np.zeros((len(said), self.classes), np.int64)
        np.add.at(counts, (case, said[case, rater]), 1)
        ratings = Ratings(case, rater, said[case, rater], self.raters)
        groups = np.repeat(self.patients, self.cases) if len(self.patients) else None
        return Labels(self.classes, histogram=counts, ratings=ratings), groups
