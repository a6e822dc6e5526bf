"""What beliefs are made of, checked by the rules of Predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.labels import Labels
from raterwise.predictions.checks import as_labels, row_sum_tolerance
from raterwise.predictions.predictions import rows_of
from raterwise.types import FloatArray

LEAST, MOST = 1e-250, 1e250
"""The range of a concentration: beyond it a Dirichlet is a point, or one of the corners."""


def checked_probs(values: Any, name: str) -> FloatArray:
    """Return class probabilities (N, K) by the rules of Predictions, said of `name`."""
    return np.asarray(rows_of(values, name).probs, np.float64)


def checked_samples(values: Any) -> FloatArray:
    """Return members (S, N, K), each of them class probabilities."""
    samples = as_float_array(values, "samples", ndim=(2, 3))
    if len(samples) == 0:
        raise InvalidInputError(f"samples: must hold at least one member; got {samples.shape}")
    if samples.ndim == 2 and min(samples.shape) > 1:
        off = np.abs(samples.sum(axis=1, dtype=np.float64) - 1)
        if (off <= row_sum_tolerance(values)).all():
            raise InvalidInputError(
                "samples: must be (members, cases, classes); got shape "
                f"{samples.shape} whose rows all sum to 1, as class probabilities do "
                "(PointBelief(probs) takes one prediction per case; draws of two classes are "
                "np.stack((1 - draws, draws), axis=2))"
            )
    # Members as they were given: 16-bit tensors, whose rows may sum less exactly, are one by dtype.
    given = values if hasattr(values, "dtype") else samples
    return np.stack([_checked_member(s, member) for s, member in enumerate(given)])


def _checked_member(s: int, member: Any) -> FloatArray:
    try:
        return checked_probs(member, f"samples[{s}]")
    except RaterwiseError as error:
        error.argument = "samples"
        raise


def checked_weights(values: Any, samples: FloatArray) -> FloatArray:
    """Return member weights (S, N): for each case they are probabilities over the members."""
    members, cases, _ = samples.shape
    if values is None:
        return np.broadcast_to(1 / members, (members, cases))
    weights = as_float_array(values, "weights", ndim=(1, 2))
    if weights.shape not in ((members,), (members, cases)):
        raise InvalidInputError(
            f"weights: must be {(members,)} or {(members, cases)}, members first; "
            f"got shape {weights.shape}"
        )
    weights = np.broadcast_to(weights if weights.ndim == 2 else weights[:, None], (members, cases))
    # A lone member must have weight 1; beside one of weight 0 the same rule says so.
    padded = np.vstack((weights, np.zeros(cases))) if members == 1 else weights
    return checked_probs(padded.T, "weights").T[:members]


def checked_concentration(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return positive concentrations of the shape given; one number serves for all."""
    alpha = as_float_array(values, "concentration", ndim=(0, len(shape))).astype(np.float64)
    if alpha.shape not in ((), shape):
        raise InvalidInputError(
            f"concentration: must be one number, or of shape {shape} like the predictions; "
            f"got shape {alpha.shape}"
        )
    if missing := int(np.isnan(alpha).sum()):
        raise rules.contains_nan("concentration", missing)
    alpha = np.broadcast_to(alpha, shape)
    outside = ~((alpha >= LEAST) & (alpha <= MOST))
    if outside.any():
        first = tuple(int(i) for i in np.argwhere(outside)[0])
        raise InvalidInputError(
            f"concentration: must lie between {LEAST:g} and {MOST:g}; "
            f"case {first[-1]} has {alpha[first]:g}"
        )
    return np.asarray(alpha)


def checked_counts(labels: Any, members: FloatArray) -> NDArray[Any]:
    """Return the histograms (N, K) of new labels, which must be of the cases of the members."""
    _, cases, classes = members.shape
    checked: Labels = as_labels(labels, classes)
    rules.check_number_of_cases("labels", len(checked), cases, "the belief")
    return checked.counts
