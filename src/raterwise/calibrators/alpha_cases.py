"""The cases of α-calibration: features, class probabilities, labels, weights and patients.

An ensemble gives every case S draws, each with its own probabilities and features. Each draw is a
row here, with 1/S of the weight of its case, and all draws of a case belong to one patient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.arrays import as_array, as_float_array
from raterwise.beliefs import Belief, DirichletMixtureBelief, EnsembleBelief, PointBelief
from raterwise.beliefs.dirichlet import CountTerms
from raterwise.beliefs.members import Members
from raterwise.calibrators._cases import read_sample_weight
from raterwise.errors import InvalidInputError
from raterwise.evaluation.warnings import warn_of_arbitration
from raterwise.predictions import Predictions
from raterwise.types import FloatArray, IntArray

SMALLEST_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class Means:
    """Class probabilities: of each case, or of each draw of each case."""

    rows: FloatArray
    """(S·N, K), draw after draw; (N, K) where there are no draws."""
    draws: int | None
    """S; None where there are no draws."""
    weights: FloatArray | None = None
    """(S, N): the share of each draw in its case; None where there are no draws."""

    @staticmethod
    def of(probs: Any) -> Means:
        """Return checked probabilities: (N, K), (N,), (S, N, K), or a belief."""
        if isinstance(probs, EnsembleBelief | DirichletMixtureBelief):
            return Means._of_members(probs)
        if isinstance(probs, Belief):
            return Means(probs.mean, None)
        if as_array(probs, "probs").ndim == 3:
            return Means._of_members(EnsembleBelief(probs))
        return Means(PointBelief(probs).mean, None)

    @staticmethod
    def _of_members(belief: EnsembleBelief | DirichletMixtureBelief) -> Means:
        samples = belief.samples
        return Means(samples.reshape(-1, samples.shape[2]), len(samples), belief.weights)

    @property
    def cases(self) -> int:
        """N."""
        return len(self.rows) // (self.draws or 1)

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self.rows.shape[1])

    def of_draws(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the cases, repeated for each of their draws."""
        return np.concatenate([values] * (self.draws or 1))

    def members(self, concentration: FloatArray) -> Members:
        """Return the members of a belief with these concentrations (S·N,)."""
        shape = (self.draws or 1, self.cases)
        weights = np.ones(shape) if self.weights is None else self.weights
        return Members(self.rows.reshape(*shape, -1), concentration.reshape(shape), weights)

    def share_of_draws(self) -> FloatArray:
        """Return the share (S·N,) of each draw in its case."""
        if self.weights is not None:
            return np.asarray(self.weights.ravel())
        return np.ones(len(self.rows))


@dataclass(frozen=True, eq=False)
class AlphaCases:
    """What α-calibration is fitted to, one row per case or draw."""

    features: FloatArray
    """(M, D)."""
    probs: FloatArray
    """(M, K)."""
    counts: IntArray
    """(M, K): label histograms."""
    num_raters: IntArray
    """(M,)."""
    weights: FloatArray | None
    """(M,); None where all are 1."""
    units: IntArray
    """(M,): the patient, or case, of each row."""

    @staticmethod
    def of(features: Any, labels: Any, probs: Any, sample_weight: Any, groups: Any) -> AlphaCases:
        """Return checked cases; those of weight 0 are left out, as if they were not there."""
        means = Means.of(probs)
        some_draw = means.rows[: means.cases]
        data = Predictions.of(some_draw, labels, groups=groups)
        x = read_features(features, means)
        weights = read_sample_weight(sample_weight, len(data))
        known = np.arange(len(data)) if weights is None else np.flatnonzero(weights)
        data.labels.take(known).require_raters(2, on_single="drop")
        warn_of_arbitration(data.take(known), stacklevel=3)
        units = np.arange(len(data)) if data.groups is None else np.asarray(data.groups)
        shares = None
        if weights is not None or means.draws is not None:
            whole = np.ones(len(data)) if weights is None else weights
            shares = means.of_draws(whole) * means.share_of_draws()
        counts = np.asarray(data.labels.counts, np.int64)
        raters = np.asarray(data.labels.num_raters, np.int64)
        cases = AlphaCases(
            features=x,
            probs=means.rows,
            counts=means.of_draws(counts),
            num_raters=means.of_draws(raters),
            weights=shares,
            units=means.of_draws(units),
        )
        return cases if shares is None else cases.take(np.flatnonzero(shares))

    def __len__(self) -> int:
        return len(self.probs)

    def take(self, rows: Any) -> AlphaCases:
        """Return the chosen rows."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: value[rows] for name, value in given.items()})

    @property
    def terms(self) -> CountTerms:
        """The terms of the likelihood."""
        return CountTerms.of(self.probs, self.counts)

    @property
    def total(self) -> float:
        """Σ_i w_i n_i: how many labels there are, weighted."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        return float(weights @ self.num_raters)


def default_features(probs: FloatArray) -> FloatArray:
    """Return what α0 may depend on where nothing else is known of a case, (N, K + 2).

    The logits, as logarithms of the probabilities (N, K) less their mean (a probability below
    1e-12 counts as 1e-12), the entropy, and the largest probability.

    >>> default_features(np.array([[0.5, 0.5]])).round(3)
    array([[0.   , 0.   , 0.693, 0.5  ]])
    """
    logs = np.log(np.maximum(probs, SMALLEST_PROBABILITY))
    centred = logs - logs.mean(axis=1, keepdims=True)
    return np.column_stack((centred, -(probs * logs).sum(axis=1), probs.max(axis=1)))


def read_features(features: Any, means: Means) -> FloatArray:
    """Return one row of features per row of `means`, checked; None are the default ones.

    (N, D) features of an ensemble are those of every draw.
    """
    if features is None:
        return default_features(means.rows)
    x = as_float_array(features, "features", ndim=(2, 3)).astype(np.float64)
    if x.ndim == 3 and len(x) != (means.draws or 0):
        raise InvalidInputError(
            "features: (S, N, D) must have the draws of probs (S, N, K); got shape "
            f"{x.shape} for {means.draws or 'no'} draws"
        )
    if x.shape[-2] != means.cases:
        raise InvalidInputError(
            f"features: must have one row per case; got {x.shape[-2]} rows for {means.cases} cases"
        )
    if missing := int(np.isnan(x).sum()):
        raise rules.contains_nan("features", missing, int(np.argwhere(np.isnan(x))[0, -2]))
    if not np.isfinite(x).all():
        row = int(np.argwhere(~np.isfinite(x))[0, -2])
        raise InvalidInputError(f"features: must be finite; row {row} holds an infinity")
    return x.reshape(-1, x.shape[2]) if x.ndim == 3 else np.asarray(means.of_draws(x))
