"""Calibration errors that do not hang on the edges of bins: RECE-G and RECE-M (RECE)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise.arrays import as_float_array
from raterwise.catalog import find
from raterwise.errors import InvalidInputError
from raterwise.functions.measure import measure, value_of
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.predictions.mixtures import Draws
from raterwise.rules import positive_integer
from raterwise.summaries import summarise
from raterwise.types import OnUnrated, Per, Questions


def robust_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int = 15,
    sigma: float = 0.1,
    observed_bins_only: bool = False,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return RECE-G: ECE with each confidence spread over the bins by a Gaussian (RECE eq 6).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int, default 15
        Number of equal-width bins.
    sigma : float, default 0.1
        The standard deviation of the Gaussian.
    observed_bins_only : bool, default False
        Leave out bins without an observed confidence, as the released code does.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default "top_label"
        What is asked of each case: whether the predicted class is right; whether it is class 1 of
        two; whether it is class k, averaged over all classes; or whether the predicted class is
        right, separately for the cases predicted as each class.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    See Also
    --------
    robust_ece_mixture : spreads each case by its draws from test-time augmentation.
    ece : the limit as sigma tends to 0.

    References
    ----------
    Gupta, Basu, Arora, How reliable are the metrics used for assessing reliability in medical
    imaging?, MICCAI 2023, eq 6.

    Examples
    --------
    >>> round(robust_ece([[0.9, 0.1], [0.9, 0.1]], [0, 1], sigma=1e-6), 4)
    0.4
    """
    return measure(
        "robust_ece", probs, labels, weights, on_unrated, bins=bins, sigma=sigma,
        observed_bins_only=observed_bins_only, question=question, per=per,
    )  # fmt: skip


def robust_ece_mixture(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    samples: ArrayLike | None,
    components: int = 3,
    seed: int = 0,
    bins: int = 15,
    *,
    mixtures: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    observed_bins_only: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return RECE-M: like RECE-G, each case spread by its own Gaussian mixture (RECE eq 7).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    samples : array-like of shape (S, N, K) or (S, N), or None
        Class probabilities under test-time augmentation; the mixture of a case is fitted to the S
        probabilities of its predicted class. None where `mixtures` is given.
    components : int, default 3
        How many Gaussians a mixture has.
    seed : int, default 0
        Seed of the fit of the mixtures.
    bins : int, default 15
        Number of equal-width bins.
    mixtures : tuple of three array-like of shape (N, components), default None
        Instead of samples, fitted mixtures: weights, means, standard deviations.
    observed_bins_only : bool, default False
        Leave out bins without an observed confidence, as the released code does.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    See Also
    --------
    robust_ece : one standard deviation for all cases.

    References
    ----------
    Gupta, Basu, Arora, How reliable are the metrics used for assessing reliability in medical
    imaging?, MICCAI 2023, eq 7.

    Examples
    --------
    >>> import numpy as np
    >>> samples = np.tile([[[0.9, 0.1], [0.2, 0.8]]], (4, 1, 1))
    >>> value = robust_ece_mixture([[0.9, 0.1], [0.2, 0.8]], [0, 1], samples, components=1)
    >>> round(value, 4)
    0.15
    """
    row = find("robust_ece_mixture")
    own = row.checked(
        {"bins": bins, "per": per, "components": components, "seed": seed,
         "observed_bins_only": observed_bins_only}
    )  # fmt: skip
    draws = _draws(probs, samples, mixtures, components, seed)
    predictions = Predictions.of(probs, labels, weights=weights, draws=draws, on_unrated=on_unrated)
    plan = row.plan(own)
    return value_of(row, own, summarise(predictions, [plan])[plan])


def _draws(probs: Any, samples: Any, mixtures: Any, components: int, seed: int) -> Draws:
    """Return the draws of each case's predicted class, or what stands for mixtures of them."""
    given = as_float_array(probs, "probs", ndim=(1, 2))
    cases, classes = len(given), 2 if given.ndim == 1 else given.shape[1]
    if mixtures is not None:
        try:
            weights, means, sds = mixtures
        except (TypeError, ValueError):
            raise InvalidInputError(
                "mixtures: must be weights, means and standard deviations, (N, components) each; "
                f"got {mixtures!r:.80}"
            ) from None
        weights, means, sds = (_mixture(values, cases) for values in (weights, means, sds))
        return Draws(np.empty((0, cases)), fitted={(components, seed): (weights, means, sds)})
    array = as_float_array(samples, "samples", ndim=(2, 3)).astype(np.float64)
    if array.ndim == 2:
        array = np.stack((1 - array, array), axis=2)
    if array.shape[1:] != (cases, classes):
        raise InvalidInputError(
            f"samples: must be (S, {cases}, {classes}), as probs; got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InvalidInputError("samples: must be finite; some are NaN or infinite")
    least = max(positive_integer("components", components), 2)
    if len(array) < least:
        raise InvalidInputError(
            f"samples: needs at least {least} samples for {components} components; got {len(array)}"
        )
    return Draws.of(array, given)


def _mixture(values: Any, cases: int) -> Any:
    array = as_float_array(values, "mixtures", ndim=2).astype(np.float64)
    if len(array) != cases:
        raise InvalidInputError(
            f"mixtures: must have a row per case; got {len(array)} for {cases} cases"
        )
    return array
