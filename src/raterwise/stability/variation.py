"""How much a metric moves along nested parts of a test set: its total variation (MR eq 6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from raterwise.beliefs import Belief
from raterwise.errors import UndefinedMetricError
from raterwise.evaluate import predictions_of
from raterwise.inference.settings import Progress
from raterwise.labels import Labels
from raterwise.stability.parts import (
    AnyMetric,
    Partition,
    measure_of,
    paths_of,
    variation_along,
)
from raterwise.types import FloatArray, OnUnrated, Options, Per, Questions


class TotalVariation(NamedTuple):
    """The total variation of a metric: mean and standard deviation over repeats.

    Parameters
    ----------
    mean, std : float
        Over the repeats.

    See Also
    --------
    stability.total_variation : returns it.

    Examples
    --------
    >>> mean, std = total_variation("ece", [0.5] * 40, [0, 1] * 20, repeats=5)
    >>> 0 < mean < 0.2
    True
    """

    mean: float
    std: float


def total_variation(
    metric: AnyMetric,
    probs: ArrayLike | Belief,
    labels: Labels | ArrayLike,
    start: float = 0.2,
    step: float = 0.05,
    repeats: int = 100,
    seed: int = 0,
    *,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    options: Options | None = None,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
    progress: Progress | None = None,
) -> TotalVariation:
    """Compute the mean absolute change of a metric as the test set shrinks (MR eq 6).

    TV = 1/n Σ_p |CE(X^p) - CE(X^{p-Δp})| over fractions p = start … 1, with nested random subsets.
    Each repeat bootstraps the test set first (MR section 3.2). Without the absolute values, which
    the paper's equation leaves out, the sum would telescope. The bandwidth of KDE-ECE is chosen
    once, on the whole set, so that its choice is no part of the variation. Changes from or to a
    part on which the metric is undefined are left out, and so is a repeat that has no other.

    Parameters
    ----------
    metric : str or callable
        The name of a metric, such as "ece", or any function of (probs, labels).
    probs : array-like of shape (N, K) or (N,), or a belief
        Class probabilities; with shape (N,), the probability of class 1 of two. RECE-M needs an
        `EnsembleBelief`.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    start : float, default 0.2
        The smallest fraction of the cases.
    step : float, default 0.05
        Step between the fractions. If the steps do not end at 1, the last one is adjusted to end
        there, and is half to one and a half of a step.
    repeats : int, default 100
        Number of bootstraps of the test set.
    seed : int, default 0
        Seed for everything random.
    groups : array-like of shape (N,), default None
        The patient of each case; whole patients are then drawn.
    weights : array-like of shape (N,), default None
        Weight of each case wherever it is drawn, as in `evaluate`; all cases are equally likely to
        be drawn. A function is called with the `weights` of the cases drawn.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1, for a metric given by name.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What is asked of each case, for a metric given by name, as in `evaluate`.
    per : {"annotation", "case"}, default None
        Whether each label or each case counts once.
    options : mapping, default None
        Options of the metric, as in `evaluate`: {"robust_ece": {"sigma": 0.05}}, or {"sigma":
        0.05}.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases instead of the largest probability, as in `evaluate`.
    outside : array-like of shape (M,) or (M, K), default None
        Out-of-distribution cases, as in `evaluate`; all of them are added to every subset.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    progress : callable, default None
        Function called with a description and the fraction done.

    Returns
    -------
    TotalVariation
        Mean and standard deviation over the repeats.

    Raises
    ------
    InvalidInputError
        If the data do not match, or there is no such metric, part or number of repeats.
    UndefinedMetricError
        If the metric has no value, or an infinite one.

    See Also
    --------
    subsample_curve : the metric itself on subsets.
    segmentation.total_variation : for the voxels of images.

    References
    ----------
    MR eq 6 and section 3.2.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_classes([0, 1] * 50, num_classes=2)
    >>> tv = total_variation("ece", [[0.5, 0.5]] * 100, labels, repeats=5)
    >>> 0 < tv.mean < 0.1
    True
    """
    partition = Partition(start, step, repeats, seed)
    predictions = predictions_of(
        probs, labels, weights, groups, on_unrated=on_unrated, confidence=confidence,
        outside=outside,
    )  # fmt: skip
    measure = measure_of(
        metric, predictions, bins=bins, question=question, per=per, options=options
    )
    found = variation_of(paths_of(predictions, measure, partition, progress))
    if not np.isfinite(found.mean):
        why = measure[0].undefined if isinstance(measure, tuple) else "it has no value on any part"
        name = metric if isinstance(metric, str) else "metric"
        raise UndefinedMetricError(f"{name}: undefined, {why}")
    return found


def variation_of(paths: FloatArray) -> TotalVariation:
    """Return the total variation along paths (repeats, parts); NaN where it is not finite."""
    moves = variation_along(paths)
    known = moves[~np.isnan(moves)]
    if not len(known) or np.isinf(known).any():
        return TotalVariation(np.nan, np.nan)
    return TotalVariation(float(known.mean()), float(known.std()))
