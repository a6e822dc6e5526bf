"""Designs of a study, what to expect of each, and which is worth its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raterwise.brief import brief
from raterwise.errors import InvalidInputError

ERRORS = 1.96
"""How many standard errors apart two widths must be to be told apart."""
HARDLY = 0.02
"""Of a width: a difference that hardly matters."""


@dataclass(frozen=True)
class Design:
    """A study design: numbers of cases and raters, with its expected interval width and bias.

    Parameters
    ----------
    cases, raters : int
        How many, and how many for each case.
    width : float
        Expected width of the interval.
    bias : float
        Expected value minus the value of an infinite study with infinitely many raters.
    method : {"formula", "simulation"}
        How the numbers were computed.
    width_error, bias_error : float, default 0.0
        Standard errors of the width and the bias, due to the pilot and, if they were simulated, the
        simulation.

    See Also
    --------
    plan : returns them.

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
        """Number of labels that it needs."""
        return self.cases * self.raters


@dataclass(frozen=True)
class StudyPlan:
    """The study designs with their expected interval widths.

    Parameters
    ----------
    metric : str
        The metric to plan for.
    level : float
        Confidence level of the intervals.
    designs : tuple of Design
        A design for every combination of cases and raters.
    pilot_cases : int, default None
        Number of cases in the pilot.
    without : tuple of tuple of float, default ()
        If widths come from a formula: the width of each design without each part of the pilot in
        turn, from which the uncertainty of the difference between designs follows.

    See Also
    --------
    plan : returns it.
    plots.PlanDisplay : draws it.

    Examples
    --------
    >>> few, many = (Design(n, 2, 2 / n**0.5, 0.0, "formula") for n in (100, 400))
    >>> StudyPlan("brier", 0.95, (few, many))
    StudyPlan(metric='brier', level=0.95, 2 designs)
    """

    __repr__ = brief

    metric: str
    level: float
    designs: tuple[Design, ...]
    pilot_cases: int | None = None
    without: tuple[tuple[float, ...], ...] = ()

    def best(self, budget: float, *, case_cost: float = 0.0, reading_cost: float = 1.0) -> Design:
        """Return the design with the shortest interval that costs at most `budget`.

        Parameters
        ----------
        budget : float
            What can be spent; by default, a number of readings.
        case_cost : float, default 0.0
            Cost of a new case, without its readings.
        reading_cost : float, default 1.0
            Cost of one label.

        Returns
        -------
        Design
            If several are equally good, the one with the fewest readings.

        Raises
        ------
        InvalidInputError
            If the budget is too small for all designs.

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

        If the pilot cannot tell, this comes first, with the 95% interval of the difference between
        the two widths and the size of pilot that could tell.

        Parameters
        ----------
        budget : float
            What can be spent; by default, a number of readings.
        case_cost : float, default 0.0
            Cost of a new case, without its readings.
        reading_cost : float, default 1.0
            Cost of one label.

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
        # One with as many cases and fewer raters says nothing of what more cases would give.
        affordable = [d for d in affordable if not _within(d, best)]
        if not affordable:
            more = "cases" if best.raters > 1 else "raters"
            return f"{words} No design with more {more} is within the budget, to compare it with."
        next_best = min(affordable, key=lambda d: (d.width, d.readings))
        gap, error = next_best.width - best.width, self._error_of_gap(best, next_best)
        new, other = "a new case", "another rater of the same case"
        words = (
            f"{words} The best with another number of raters is {_in_words(next_best)}: "
            f"{next_best.width:.3g}."
        )
        if gap > ERRORS * error:
            better, worse = (new, other) if best.raters < next_best.raters else (other, new)
            return f"{words} The next reading is better spent on {better} than on {worse}."
        low, high = gap - ERRORS * error, gap + ERRORS * error
        return (
            f"This pilot cannot tell whether the next reading is better spent on {new} or on "
            f"{other}. {words} It is wider by {gap:.2g} [{low:.2g}, {high:.2g}], an interval that "
            f"holds 0. {self._larger_pilot(gap, ERRORS * error, best.width)}"
        )

    def _error_of_gap(self, best: Design, other: Design) -> float:
        """Return the standard error of the difference of two widths.

        Those by a formula are of one pilot, and go together: the difference without each of its
        parts says how far. What is simulated has chances of its own.
        """
        if self.without:
            one, two = (self.without[self.designs.index(d)] for d in (best, other))
            if len(one) == len(two):
                moves = np.subtract(two, one)
                return float(np.sqrt((len(moves) - 1) * np.mean((moves - moves.mean()) ** 2)))
        return float(np.hypot(best.width_error, other.width_error))

    def _larger_pilot(self, gap: float, reach: float, width: float) -> str:
        """Return how large a pilot could tell, were the difference what it seems to be."""
        if gap < HARDLY * width:
            return (
                f"They differ by less than {100 * HARDLY:g}% of the width: take what is easier to "
                "have."
            )
        times = (reach / gap) ** 2
        simulated = any(d.method == "simulation" for d in self.designs)
        more = " and as many more --repeats" if simulated else ""
        size = f"{times:.1f} times as many cases"
        if self.pilot_cases is not None:
            size = f"about {_rounded(times * self.pilot_cases):,} cases (this one has "
            size += f"{self.pilot_cases:,})"
        return f"If that is the difference, a pilot of {size}{more} could tell."


def _rounded(number: float) -> int:
    """Return a number up to its next two digits.

    >>> _rounded(1234.0), _rounded(87.2)
    (1300, 88)
    """
    digits: int = 10 ** max(int(np.log10(max(number, 1))) - 1, 0)
    return int(np.ceil(number / digits)) * digits


def _within(one: Design, other: Design) -> bool:
    """Tell whether a design has no more cases and no more raters than another one."""
    return one.cases <= other.cases and one.raters <= other.raters


def _price(design: Design, *, case_cost: float, reading_cost: float) -> float:
    return design.cases * case_cost + design.readings * reading_cost


def _in_words(design: Design) -> str:
    raters = "1 rater" if design.raters == 1 else f"{design.raters} raters"
    return f"{design.cases} cases with {raters} each"
