"""How strongly the line log α0 = a + b·x is held back, chosen by cross-validation.

The cases of a patient stay together. For each λ, from the strongest (one α0 for all) to the
weakest, the line is fitted to all folds but one, starting from that of the λ before, and judged by
the Dirichlet-multinomial likelihood of the labels that were left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterwise.calibrators.alpha_cases import AlphaCases
from raterwise.calibrators.alpha_solver import GRADIENT_NORM, Basis, Objective, minimised
from raterwise.calibrators.cross_validation import patient_folds
from raterwise.kernels._threads import in_threads
from raterwise.types import FloatArray

PAPER_GRID = (0.05, 0.005, 0.0005, 0.00005)
COEFFICIENT_GRID = (np.inf, *(float(10.0**-e) for e in np.arange(-1, 5.5, 0.5)))
GRIDS = {"coefficients": COEFFICIENT_GRID, "paper": PAPER_GRID}
"""The λ to choose from, strongest first; ∞ is one α0 for all."""

LEVEL_SPREAD = 5.0
"""Standard deviation of a normal prior of log α0 at the average case, with penalised coefficients.

It counts as little as a fraction of one case, and keeps α0 finite where raters always agree, or
never more than by chance.
"""
CLOSE_ENOUGH = 1e-6
"""Gradient norm of a fit that is only judged: its loss is then right to 1e-10 or so."""
STANDARD_ERRORS = 1.0
"""By how many standard errors features must beat one α0 for all."""


@dataclass(frozen=True, eq=False)
class Line:
    """The fit of log α0 = columns @ θ to some cases."""

    cases: AlphaCases
    basis: Basis
    penalty: str
    weighting: str

    def objective(self, l2: float) -> Objective:
        """Return the loss without what is not a sum over cases."""
        per_case = l2 if self.penalty == "paper" else 0.0
        cases = self.cases
        return Objective.of(cases.terms, cases.num_raters, cases.weights, per_case, self.weighting)

    def ridge(self, l2: float) -> FloatArray:
        """Return the factors of θ²; λ = 0 is no penalty at all."""
        if self.penalty == "paper" or l2 == 0:
            return np.zeros(self.basis.columns.shape[1])
        return self.basis.ridge(l2, 1 / (2 * LEVEL_SPREAD**2 * self.cases.total))

    def fit(
        self,
        objective: Objective,
        l2: float,
        start: FloatArray,
        max_iter: int,
        tolerance: float = GRADIENT_NORM,
    ) -> tuple[FloatArray, int]:
        """Return the best θ under a penalty, and how many iterations it took."""
        size = 1 if l2 == np.inf else len(start)
        columns, ridge = self.basis.columns[:, :size], self.ridge(l2)[:size]
        theta, steps = minimised(objective, columns, start[:size], max_iter, ridge, tolerance)
        return np.append(theta, np.zeros(len(start) - size)), steps

    def take(self, rows: NDArray[np.intp]) -> Line:
        """Return the fit to the chosen cases, in the same basis."""
        basis = Basis(
            self.basis.columns[rows],
            self.basis.center,
            self.basis.to_features,
            self.basis.variance,
        )
        return Line(self.cases.take(rows), basis, self.penalty, self.weighting)


@dataclass(frozen=True, eq=False)
class Choice:
    """What came of the cross-validation."""

    grid: tuple[float, ...]
    losses: FloatArray
    """(grid,): the mean negative log-likelihood of a label that was left out, less a constant."""
    errors: FloatArray
    """(grid,): the standard error of the difference to the first."""

    @property
    def l2(self) -> float:
        """The λ with the least loss; one α0 for all unless it is beaten by a standard error."""
        best = int(self.losses.argmin())
        return self.grid[0] if self.beats_constant is False else self.grid[best]

    @property
    def beats_constant(self) -> bool | None:
        """Whether features say more than one α0 for all; None if that was not among the choices."""
        if self.grid[0] != np.inf:
            return None
        best = int(self.losses.argmin())
        return bool(self.losses[0] - self.losses[best] > STANDARD_ERRORS * self.errors[best])


def chosen_penalty(line: Line, folds: int, seed: int, max_iter: int) -> Choice:
    """Return the cross-validated losses of every λ of the grid."""
    cases, grid = line.cases, GRIDS[line.penalty]
    units = np.unique(cases.units, return_inverse=True)[1]
    number = int(units.max()) + 1
    if number < 2:
        return Choice(grid[:1], np.zeros(1), np.zeros(1))
    fold = patient_folds(cases.counts, units, min(folds, number), seed)

    def left_out(k: int) -> FloatArray:
        return _losses(line, grid, fold == k, max_iter)

    by_unit = np.zeros((len(grid), number))
    for k, losses in enumerate(in_threads(left_out, range(min(folds, number)))):
        for i, values in enumerate(losses):
            by_unit[i] += np.bincount(units[fold == k], values, minlength=number)
    differences = by_unit - by_unit[0]
    errors = np.sqrt(number) * differences.std(axis=1, ddof=1)
    return Choice(grid, by_unit.sum(axis=1), errors)


def _losses(
    line: Line, grid: tuple[float, ...], held: NDArray[np.bool_], max_iter: int
) -> FloatArray:
    """Return the share of each case left out in the loss, for every λ, (grid, cases left out)."""
    train, test = line.take(np.flatnonzero(~held)), line.take(np.flatnonzero(held))
    judge = test.objective(0.0)
    share = test.cases.total / line.cases.total
    objective = train.objective(0.0)
    theta = np.zeros(line.basis.columns.shape[1])
    out = []
    for l2 in grid:
        if line.penalty == "paper":
            objective = train.objective(l2)
        theta, _ = train.fit(objective, l2, theta, max_iter, CLOSE_ENOUGH)
        out.append(judge.by_case(test.basis.columns @ theta) * share)
    return np.array(out)
