"""Cases for the tests: small ones drawn by Hypothesis, ordinary ones made from a seed.

And what many tests do with them: ask for a metric by its name, compare two values.

A drawn problem has probabilities that are ratios of small whole numbers, so that p = 0, p = 1,
p on the edge of a bin, ties, bins of one and classes that nobody chose all come up by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.functions.measure import measure
from raterwise.questions import Question, ScoredCases
from raterwise.summaries.cells import CellPlan, CellSums

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

OF_PROBABILITIES = [name for name, row in CATALOG.items() if not row.needs_belief]
"""The metrics of bare probabilities."""
OF_BELIEFS = [name for name, row in CATALOG.items() if row.needs_belief]
"""The metrics of a belief over class probabilities, of its draws, or of cases from elsewhere."""
OUTSIDE = np.array([0.2, 0.5, 0.5, 0.6, 0.75, 1.0])
"""The confidences of the cases from elsewhere that the tests have."""
BLUNTED = (0.0, 0.1, 0.3)
"""How far the draws of the tests are from the probabilities, towards equal ones."""
CONCENTRATION = 4.0
"""Of the Dirichlet beliefs that the tests make of probabilities."""


def dirichlet(probs: Any) -> rw.DirichletBelief:
    """Return the belief whose mean is `probs`."""
    return rw.DirichletBelief(probs, np.full(len(probs), CONCENTRATION))


def draws(probs: Any) -> Array:
    """Return draws (S, N, K) that predict the same classes as `probs`."""
    array = np.asarray(rw.PointBelief(probs).mean)
    array = array / array.sum(axis=1, keepdims=True)
    return np.stack([(1 - a) * array + a / array.shape[1] for a in BLUNTED])


def mixture(probs: Any) -> rw.DirichletMixtureBelief:
    """Return a belief that has all that a metric may need but cases from elsewhere."""
    return rw.DirichletMixtureBelief(draws(probs), CONCENTRATION)


def belief_for(name: str, probs: Any) -> Any:
    """Return the belief that a metric is tested on: draws where it needs them."""
    return mixture(probs) if CATALOG[name].needs == "samples" else dirichlet(probs)


def outside_for(name: str) -> Array | None:
    """Return the cases from elsewhere, where the metric is of them."""
    return OUTSIDE if CATALOG[name].needs == "outside" else None


@dataclass(frozen=True)
class Problem:
    """Predicted probabilities and label histograms, both (N, K)."""

    probs: Array
    counts: Counts

    @property
    def labels(self) -> rw.Labels:
        """What the raters said."""
        return rw.Labels.from_counts(self.counts)

    @property
    def first_rater(self) -> Counts:
        """(N,): one label per case, the lowest that was given."""
        return np.asarray((self.counts > 0).argmax(axis=1))

    def __len__(self) -> int:
        return len(self.probs)

    def take(self, rows: Any) -> Problem:
        """Return the chosen cases, in the order chosen."""
        return Problem(self.probs[rows], self.counts[rows])


@st.composite
def problems(
    draw: st.DrawFn,
    num_classes: int | None = None,
    min_cases: int = 1,
    max_cases: int = 12,
    min_raters: int = 2,
) -> Problem:
    """Draw cases, at least `min_raters` raters each and not the same number for all."""
    classes = draw(st.integers(2, 4)) if num_classes is None else num_classes
    shape = (draw(st.integers(min_cases, max_cases)), classes)
    parts = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 6), fill=st.just(0)))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 3), fill=st.just(0)))
    one_class = st.integers(0, classes - 1)
    for i in range(shape[0]):
        if parts[i].sum() == 0:
            parts[i, draw(one_class)] = 1
        while counts[i].sum() < min_raters:
            counts[i, draw(one_class)] += 1
    return Problem(parts / parts.sum(axis=1, keepdims=True), counts)


def problems_for(name: str, **options: Any) -> st.SearchStrategy[Problem]:
    """Draw cases with as many raters as the metric needs, and at least two."""
    return problems(min_raters=max(2, CATALOG[name].least_raters), **options)


def permutations(problem: Problem) -> st.SearchStrategy[Array]:
    """Draw an order of the cases."""
    return st.permutations(range(len(problem))).map(np.array)


def whole_weights(problem: Problem) -> st.SearchStrategy[Counts]:
    """Draw how often each case stands, 0 … 3 times, not all 0."""
    return hnp.arrays(np.int64, len(problem), elements=st.integers(0, 3)).filter(np.any)


def ordinary(
    cases: int = 400, num_classes: int = 5, raters: int | None = None, seed: int = 0
) -> Problem:
    """Make cases without ties, none on the edge of a bin, from an overconfident model.

    `raters` is the number of raters of every case; without it 3 … 6, not the same for all.
    """
    random = np.random.default_rng([seed, cases, num_classes])
    truth = random.dirichlet(np.full(num_classes, 1.5), cases)
    sharpened = truth**1.5 + 0.02
    probs = sharpened / sharpened.sum(axis=1, keepdims=True)
    number = random.integers(3, 7, cases) if raters is None else np.full(cases, raters)
    return Problem(probs, random.multinomial(number, truth))


def value(name: str, problem: Problem, weights: Any = None, **options: Any) -> float | None:
    """Return the metric; None where it is undefined."""
    return value_of(name, problem.probs, problem.labels, weights, **options)


def value_of(
    name: str, probs: Any, labels: Any, weights: Any = None, **options: Any
) -> float | None:
    """Return the metric of probabilities and labels of any kind; None where it is undefined."""
    if CATALOG[name].needs_belief:
        return value_of_belief(name, probs, labels, weights, **options)
    try:
        return measure(name, probs, labels, weights, **options)
    except rw.UndefinedMetricError:
        return None


def value_of_belief(
    name: str, probs: Any, labels: Any, weights: Any = None, **options: Any
) -> float | None:
    """Return the metric of a belief around the probabilities."""
    found = rw.evaluate(
        belief_for(name, probs), labels, name, resamples=0, weights=weights,
        outside=outside_for(name), options={name: options},
    )[name]  # fmt: skip
    if found.undefined and found.undefined.startswith("labels: "):
        raise rw.InvalidInputError(found.undefined)
    return found.value


def same(expected: float | None, rel: float = 1e-12, absolute: float = 1e-13) -> Any:
    """Equal to the last bits; undefined where the other is."""
    return None if expected is None else pytest.approx(expected, rel=rel, abs=absolute)


def cells_of_scored(scored: ScoredCases) -> CellSums:
    """The fine cells of top-label scores that are there already, one unit."""
    cells = CellPlan(Question()).empty(2)
    cells.take_in(scored)
    return cells
