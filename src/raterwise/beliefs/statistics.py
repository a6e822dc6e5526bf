"""The probability of a symmetric statistic of several labels under a belief (LH section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from raterwise.beliefs.dirichlet import histogram_log_probabilities, shares
from raterwise.beliefs.members import Members
from raterwise.errors import InvalidTypeError
from raterwise.metrics.disagreement import histograms, statistic_of_histograms
from raterwise.rules import choose, positive_integer
from raterwise.types import FloatArray

CLOSED_FORMS = ("disagreement", "unanimity")
METHODS = ("auto", "exact", "sampling")
MAX_HISTOGRAMS = 20_000
"""More histograms than this are sampled: the statistic itself is asked about each."""
MAX_TERMS = 2_000_000_000
"""As are more terms in all (members × cases × histograms × classes): about ten seconds of work."""
CHUNK_VALUES = 1 << 20


@dataclass(frozen=True, eq=False)
class StatisticProbability:
    """The probability of a statistic of n labels for each case, and how exact it is.

    Attributes
    ----------
    values : array of shape (N,) or (N, M)
        The probability of φ = 1, or of each of its M values.
    standard_error : array of the same shape
        0 where the probability is exact.
    method : str
        "closed form", "enumeration" or "sampling".

    Examples
    --------
    >>> import raterwise as rw
    >>> found = rw.DirichletBelief([[0.5, 0.5]], [1.0]).statistic("unanimity", order=2)
    >>> found.values, found.method
    (array([0.75]), 'closed form')
    """

    values: FloatArray
    """(N,) the probability of φ = 1, or (N, M) of each of its M values."""
    standard_error: FloatArray
    """Of the same shape: 0 where the probability is exact."""
    method: str
    """How it was found: "closed form", "enumeration" or "sampling"."""


def statistic_probability(
    members: Members,
    statistic: Callable[..., Any] | str,
    order: int,
    *,
    values: int,
    method: str,
    samples: int,
    seed: int,
) -> StatisticProbability:
    """Return E[P(φ of `order` labels | ζ)] of each case; see `Belief.statistic`."""
    order = positive_integer("order", order)
    values = positive_integer("values", values)
    samples = positive_integer("samples", samples, least=2)
    choose("method", method, METHODS)
    if isinstance(statistic, str):
        choose("statistic", statistic, CLOSED_FORMS)
        same = _all_the_same(members, order)
        found = same if statistic == "unanimity" else np.clip(1 - same, 0, 1)
        return StatisticProbability(found, np.zeros(len(found)), "closed form")
    if not callable(statistic):
        raise InvalidTypeError(
            f"statistic: must be a function of labels, or one of {', '.join(CLOSED_FORMS)}; "
            f"got {statistic!r}"
        )
    if method == "auto":
        classes = members.probs.shape[2]
        number = comb(order + classes - 1, classes - 1)
        few = number <= MAX_HISTOGRAMS and number * members.probs.size <= MAX_TERMS
        method = "exact" if few else "sampling"
    if method == "exact":
        found = _enumerated(members, statistic, order, values)
        error, how = np.zeros(found.shape), "enumeration"
    else:
        found = _sampled(members, statistic, order, values, samples, seed)
        # One draw of each kind is added, as an error of 0 would be too proud of 0 in 2,000.
        share = (found * samples + 1) / (samples + 2)
        error, how = np.sqrt(share * (1 - share) / samples), "sampling"
    if values == 1:
        found, error = found[:, 0], error[:, 0]
    return StatisticProbability(found, error, how)


def _all_the_same(members: Members, order: int) -> FloatArray:
    """Return P(n labels are all the same) = Σ_s w_s Σ_k Π_{l<n} (α f_k + l)/(α + l)."""
    kept, spread = (share[:, :, None] for share in shares(members.concentration))
    product = np.ones(members.probs.shape)
    for rank in range(order):
        product *= (kept * members.probs + rank * spread) / (kept + rank * spread)
    return np.asarray(np.einsum("sn,snk->n", members.weights, product))


def _enumerated(
    members: Members, statistic: Callable[..., Any], order: int, values: int
) -> FloatArray:
    """Return Σ_h φ(h) P(h) over every histogram h of the labels."""
    rows = histograms(order, members.probs.shape[2])
    phi = statistic_of_histograms(statistic, rows, values)
    cases = members.probs.shape[1]
    out = np.zeros((cases, values))
    size = max(1, CHUNK_VALUES // (len(rows) + members.probs.shape[2] * (order + 1)))
    for start in range(0, cases, size):
        chunk = slice(start, start + size)
        for s, weights in enumerate(members.weights):
            probability = np.exp(
                histogram_log_probabilities(
                    members.probs[s, chunk], members.concentration[s, chunk], rows
                )
            )
            out[chunk] += weights[chunk, None] * (probability @ phi)
    return out


def _sampled(
    members: Members,
    statistic: Callable[..., Any],
    order: int,
    values: int,
    samples: int,
    seed: int,
) -> FloatArray:
    """Return the mean of φ over draws of ζ and of labels, asking φ once per distinct histogram."""
    rng = np.random.default_rng(seed)
    _, cases, classes = members.probs.shape
    out = np.zeros((cases, values))
    size = max(1, CHUNK_VALUES // (samples * classes))
    for start in range(0, cases, size):
        chunk = np.arange(start, min(start + size, cases))
        drawn = members.take(chunk).sample(samples, rng)
        # Rows of a prediction may sum to 1 within 1e-4; the draw of labels wants it to the bit.
        labels = rng.multinomial(order, drawn / drawn.sum(axis=-1, keepdims=True))
        distinct, inverse = np.unique(labels.reshape(-1, classes), axis=0, return_inverse=True)
        phi = statistic_of_histograms(statistic, distinct, values)
        out[chunk] = phi[inverse.ravel()].reshape(samples, len(chunk), values).mean(axis=0)
    return out
