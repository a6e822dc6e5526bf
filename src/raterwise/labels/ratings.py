"""Who said what: single ratings that know their rater."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from raterwise.types import Integers


@dataclass(frozen=True, eq=False)
class Ratings:
    """Single ratings with the identity of the rater: one entry per (case, rater, label).

    Attributes
    ----------
    case : array of int
        The row of the case of each rating.
    rater : array of int
        Its rater, as a place in `rater_ids`.
    label : array of int
        The class given.
    rater_ids : tuple
        What the raters are called.

    Examples
    --------
    >>> ratings = Ratings(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), ("ann",))
    >>> ratings.take(np.array([1])).case
    array([0])
    """

    case: Integers
    rater: Integers
    label: Integers
    rater_ids: tuple[Hashable, ...]

    def take(self, indices: Integers) -> Ratings:
        """Return the ratings of the chosen cases; a case chosen twice keeps its ratings twice.

        Parameters
        ----------
        indices : array of int
            Rows of cases.

        Returns
        -------
        Ratings
            With the cases numbered as chosen.

        Examples
        --------
        >>> ratings = Ratings(np.array([0, 1]), np.array([0, 0]), np.array([0, 1]), ("ann",))
        >>> ratings.take(np.array([1, 1])).label
        array([1, 1])
        """
        order = np.argsort(self.case, kind="stable")
        first = np.searchsorted(self.case[order], indices, side="left")
        last = np.searchsorted(self.case[order], indices, side="right")
        lengths = last - first
        new_case = np.repeat(np.arange(len(indices)), lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = order[np.repeat(first, lengths) + within]
        return Ratings(new_case, self.rater[rows], self.label[rows], self.rater_ids)
