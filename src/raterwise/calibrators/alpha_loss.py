"""The α-calibration loss of any belief, and the α0 that suits one case by itself (LH eqs 50-51)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raterwise.beliefs import DirichletBelief
from raterwise.beliefs.dirichlet import CountTerms
from raterwise.calibrators._cases import read_sample_weight
from raterwise.calibrators.alpha_solver import Objective
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.rules import at_least_zero
from raterwise.types import FloatArray

_FAR = np.geomspace(85, 690, 25)
GRID = np.concatenate((-_FAR[::-1], np.arange(-80, 80.25, 0.5), _FAR))
"""Values of log α0 between which an optimum is sought: the slope bends on a scale of 1."""


def alpha_calibration_loss(
    belief: DirichletBelief,
    labels: Any,
    l2: float = 0.005,
    weighting: Literal["paper", "per_case"] = "paper",
    sample_weight: Any = None,
) -> float:
    """Return the α-calibration loss of a belief on any labels (LH eq 50).

    -1/Σ n_i Σ_i log DirMult(y_i | α0_i f_i) + λ/N Σ_i (log α0_i)², without the multinomial
    coefficients, as in the released code.

    Parameters
    ----------
    belief : DirichletBelief
        The belief about N cases.
    labels : Labels, or array of shape (N,)
        The raters' labels.
    l2 : float, default 0.005
        λ; 0 leaves the likelihood alone.
    weighting : {"paper", "per_case"}, default "paper"
        As in AlphaCalibration.
    sample_weight : array of shape (N,), optional
        Case weights.

    Returns
    -------
    float
        Infinite if a rater chose a class of probability 0.

    Raises
    ------
    InvalidInputError
        If the labels do not match the belief, or λ is negative.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, eq 50.

    Examples
    --------
    >>> labels = Labels.from_counts([[2, 0]])
    >>> alpha_calibration_loss(DirichletBelief([[0.5, 0.5]], [1.0]), labels)  # -log(1/2 · 3/4) / 2
    0.49041463
    """
    weights = read_sample_weight(sample_weight, len(belief))
    checked = Predictions.of(belief.mean, labels).labels
    terms = CountTerms.of(belief.mean, checked.counts)
    objective = Objective.of(terms, checked.num_raters, weights, l2, weighting)
    return objective.loss(np.log(belief.concentration))


def optimal_concentration(probs: Any, counts: Any, l2: float = 0.005) -> FloatArray:
    """Return the α0 that suits each case best by itself (LH eq 51, Fig 3).

    It minimises -1/n log DirMult(y | α0 f) + λ (log α0)² for the labels of one case.

    Parameters
    ----------
    probs : array of shape (N, K) or (N,)
        Class probabilities f; (N,) is that of class 1 of two.
    counts : Labels, or array of shape (N, K)
        Label histograms y.
    l2 : float, default 0.005
        λ. With 0 it is the limit of a vanishing λ: 0 where the raters are unanimous, ∞ where they
        differ no less than independent labels would, 1 where the labels say nothing (one label, or
        a class of probability 1).

    Returns
    -------
    ndarray of shape (N,)
        α0.

    Raises
    ------
    InvalidInputError
        If the counts do not match the probabilities, or λ is negative.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, appendix D.2.

    Examples
    --------
    >>> optimal_concentration([[0.5, 0.5], [0.5, 0.5]], [[3, 0], [2, 1]]).round(3)
    array([ 0.103, 12.288])
    >>> optimal_concentration([[0.5, 0.5], [0.5, 0.5]], [[3, 0], [2, 1]], l2=0)
    array([ 0., inf])
    """
    labels = counts if isinstance(counts, Labels) else Labels.from_counts(counts)
    data = Predictions.of(probs, labels)
    checked = np.asarray(data.read(0, len(data)).probs, np.float64)
    at_least_zero("l2", l2)
    out = np.full(len(checked), np.nan) if l2 else unpenalised(checked, labels.counts)
    open_cases = np.flatnonzero(np.isnan(out))
    for rows in np.array_split(open_cases, max(1, len(open_cases) // 20_000)):
        terms = CountTerms.of(checked[rows], labels.counts[rows])
        ones = np.ones(len(rows))
        objective = Objective(terms, ones / labels.num_raters[rows], l2 * ones)
        out[rows] = np.exp(best_of_each(objective, len(rows)))
    return out


def unpenalised(probs: FloatArray, counts: NDArray[Any]) -> FloatArray:
    """Return the optima that are 0, 1 or ∞ without a penalty, NaN where there is a finite one.

    The likelihood has one maximum at most (Levin & Reeds 1977, doi:10.1214/aos/1176343741). At
    α0 = 0 it rises unless the raters are unanimous; towards ∞ it rises if
    n(n-1) > Σ_k y_k (y_k - 1)/f_k, that is, if raters agree less often than by chance.
    """
    n = counts.sum(axis=1).astype(np.float64)
    unanimous = (counts > 0).sum(axis=1) <= 1
    certain = (n <= 1) | (unanimous & (np.where(counts > 0, probs, 0).sum(axis=1) >= 1))
    pairs = counts * (counts - 1.0)
    with np.errstate(divide="ignore"):
        expected = np.divide(pairs, probs, where=pairs > 0, out=np.zeros(probs.shape)).sum(axis=1)
    rises = n * (n - 1) >= expected * (1 - 1e-12)
    return np.select((certain, unanimous, rises), (1.0, 0.0, np.inf), np.nan)


def best_of_each(objective: Objective, cases: int) -> FloatArray:
    """Return the log α0 (N,) that minimises the objective of each case by itself."""
    gradients = np.array([objective.gradient(np.full(cases, u)) for u in GRID])
    turns = (gradients[:-1] < 0) & (gradients[1:] >= 0)
    cell = turns.argmax(axis=0)
    several = np.flatnonzero(turns.sum(axis=0) > 1)
    if several.size:  # the penalty may add a second dip: take the deeper
        depth = np.array([objective.by_case(np.full(cases, u))[several] for u in GRID])
        lower = np.minimum(depth[:-1], depth[1:])
        cell[several] = np.where(turns[:, several], lower, np.inf).argmin(axis=0)
    return _newton(objective, GRID[cell], GRID[cell + 1])


def _newton(objective: Objective, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the zero of each gradient between `low`, where it is negative, and `high`.

    A Newton step that leaves the bracket, or that a wrong curvature sends the wrong way, is
    replaced by the middle of the bracket.
    """
    u = (low + high) / 2
    for _ in range(100):
        gradient, curvature = objective.gradient(u), objective.curvature(u)
        low, high = np.where(gradient < 0, u, low), np.where(gradient < 0, high, u)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = u - gradient / curvature
        inside = (step >= low) & (step <= high) & (curvature > 0)
        new = np.where(inside, step, (low + high) / 2)
        moved, u = np.abs(new - u), new
        if (moved <= 1e-14 * (1 + np.abs(u))).all():
            break
    return u
