"""How much each case should count where numbers of raters differ (LH appendix B.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.catalog.recipes.common import squares_of_label
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.metrics.proper import variance_components
from raterwise.predictions import Predictions
from raterwise.types import FloatArray, OnUnrated


def optimal_weights(
    probs: ArrayLike, labels: Labels | ArrayLike, *, on_unrated: OnUnrated = "error"
) -> NDArray[np.float64]:
    """Return the case weights that minimise the variance of the expected squared loss.

    With n_i raters the loss of case i varies by A + B / n_i (LH appendix B.1): A between cases, B
    between the raters of a case, both estimated here. The weights are proportional to
    1 / (A + B / n_i), so that they are equal where raters agree with each other, and n_i where
    cases are alike.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or have the weight 0.

    Returns
    -------
    array of shape (N,)
        With mean 1 over the rated cases. All are 1 if every case has the same number of raters, or
        no case has two. If difficult cases were given more raters, unequal weights answer a
        different question.

    Raises
    ------
    InvalidInputError
        If nobody rated a case.

    See Also
    --------
    expected_squared_loss, brier : take `weights="optimal"`.

    References
    ----------
    Mimori, Sasada, Matsui & Sato, Diagnostic uncertainty calibration, AISTATS 2021, appendix B.1.

    Examples
    --------
    >>> labels = Labels.from_counts([[1, 1], [2, 2], [2, 2]])  # cases alike, raters not
    >>> optimal_weights([0.2, 0.2, 0.2], labels).round(3)
    array([0.6, 1.2, 1.2])
    """
    predictions = Predictions.of(probs, labels, on_unrated=on_unrated)
    weights = _optimal(predictions)
    if predictions.kept is None:
        return weights
    all_weights = np.zeros(predictions.given)
    all_weights[predictions.kept] = weights
    return all_weights


def _optimal(predictions: Predictions) -> FloatArray:
    raters = predictions.labels.num_raters.astype(np.float64)
    if (raters == raters[0]).all():
        return np.ones(len(raters))
    loss = squares_of_label(predictions.read(0, len(predictions)))
    between, within = variance_components(loss, predictions.labels.counts)
    if between + within <= 0:
        return np.ones(len(raters))
    weights = 1 / (between + within / raters)
    return np.asarray(weights / weights.mean())


def weights_or_optimal(weights: Any, probs: Any, labels: Any, on_unrated: OnUnrated) -> Any:
    """Return the weights given, or those that the word "optimal" stands for."""
    if not isinstance(weights, str):
        return weights
    if weights != "optimal":
        raise InvalidInputError(
            f'weights: must be one number per case, or "optimal"; got {weights!r}'
        )
    return optimal_weights(probs, labels, on_unrated=on_unrated)
