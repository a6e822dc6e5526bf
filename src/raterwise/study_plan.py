"""Designs of a study, what to expect of each, and which is worth its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raterwise.errors import InvalidInputError


@dataclass(frozen=True)
class Design:
    """A study of so many cases with so many raters each, and what to expect of it.

    Parameters
    ----------
    cases, raters : int
        How many, and how many for each case.
    width : float
        Expected width of the interval.
    bias : float
        Expected value minus the value of an endless study with endless raters.
    method : {"formula", "simulation"}
        Where the numbers come from.
    width_error, bias_error : float, default 0.0
        Standard errors of the width and the bias: the pilot's own uncertainty (another pilot would
        have said something else) and, where they were simulated, that of the simulation.

    See Also
    --------
    plan : makes them.

    Examples
    --------
    >>> Design(cases=200, raters=3, width=0.08, bias=0.0, method="formula").readings
    600
    """

    cases: int
    raters: int
    width: float
    bias: float
    method: Literal["formula", "simulation"]
    width_error: float = 0.0
    bias_error: float = 0.0

    @property
    def readings(self) -> int:
        """How many labels it takes."""
        return self.cases * self.raters


@dataclass(frozen=True)
class StudyPlan:
    """The designs that were asked about.

    Parameters
    ----------
    metric : str
        What the study measures.
    level : float
        Of the intervals.
    designs : tuple of Design
        Every number of cases with every number of raters.

    See Also
    --------
    plan : makes it.
    plots.PlanDisplay : draws it.

    Examples
    --------
    >>> few, many = (Design(n, 2, 2 / n**0.5, 0.0, "formula") for n in (100, 400))
    >>> len(StudyPlan("brier", 0.95, (few, many)).designs)
    2
    """

    metric: str
    level: float
    designs: tuple[Design, ...]

    def best(self, budget: float, *, case_cost: float = 0.0, reading_cost: float = 1.0) -> Design:
        """Return the design with the shortest interval that costs at most `budget`.

        Parameters
        ----------
        budget : float
            By default a number of readings.
        case_cost : float, default 0.0
            Of a new case, besides its readings.
        reading_cost : float, default 1.0
            Of one label.

        Returns
        -------
        Design
            Of equal ones, that with the fewest readings.

        Raises
        ------
        InvalidInputError
            If the budget pays for none of them.

        Examples
        --------
        >>> few, many = (Design(n, 2, 2 / n**0.5, 0.0, "formula") for n in (100, 400))
        >>> StudyPlan("brier", 0.95, (few, many)).best(budget=500).cases
        100
        """
        price = [_price(d, case_cost=case_cost, reading_cost=reading_cost) for d in self.designs]
        within = [d for d, cost in zip(self.designs, price, strict=True) if cost <= budget]
        if not within:
            raise InvalidInputError(
                f"budget: must pay for one of the designs; got {budget:g}, the cheapest costs "
                f"{min(price):g}"
            )
        return min(within, key=lambda d: (d.width, d.readings))

    def advice(self, budget: float, *, case_cost: float = 0.0, reading_cost: float = 1.0) -> str:
        """Say whether the next reading is better spent on a new case or on another rater.

        Parameters
        ----------
        budget : float
            By default a number of readings.
        case_cost : float, default 0.0
            Of a new case, besides its readings.
        reading_cost : float, default 1.0
            Of one label.

        Returns
        -------
        str
            Two or three sentences.

        Raises
        ------
        InvalidInputError
            If the budget pays for no design.

        Examples
        --------
        >>> few, many = Design(100, 4, 0.12, 0.0, "formula"), Design(200, 2, 0.1, 0.0, "formula")
        >>> print(StudyPlan("brier", 0.95, (few, many)).advice(budget=400))
        200 cases with 2 raters each: expected interval width 0.1. ... The next reading is better
        spent on a new case than on another rater of the same case.
        """
        costs = {"case_cost": case_cost, "reading_cost": reading_cost}
        best = self.best(budget, **costs)
        words = f"{_in_words(best)}: expected interval width {best.width:.3g}."
        others = [d for d in self.designs if d.raters != best.raters]
        affordable = [d for d in others if _price(d, **costs) <= budget]
        if not affordable:
            return words
        next_best = min(affordable, key=lambda d: (d.width, d.readings))
        new, other = "a new case", "another rater of the same case"
        better, worse = (new, other) if best.raters < next_best.raters else (other, new)
        noise = np.hypot(best.width_error, next_best.width_error)
        if best.method == "formula":  # of one pilot, without chance of their own: they go together
            noise = abs(best.width_error - next_best.width_error)
        clear = next_best.width - best.width >= 2 * noise
        return (
            f"{words} The best with another number of raters is {_in_words(next_best)}: "
            f"{next_best.width:.3g}. The next reading is better spent on {better} than on {worse}."
            + ("" if clear else " The two are too close for this pilot to tell them apart.")
        )


def _price(design: Design, *, case_cost: float, reading_cost: float) -> float:
    return design.cases * case_cost + design.readings * reading_cost


def _in_words(design: Design) -> str:
    raters = "1 rater" if design.raters == 1 else f"{design.raters} raters"
    return f"{design.cases} cases with {raters} each"
