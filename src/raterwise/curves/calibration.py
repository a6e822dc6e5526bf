"""The calibration curve that clinical guidance asks for, smooth over bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from raterwise.arrays import as_float_array
from raterwise.catalog import find
from raterwise.curves.reliability import measure_in_memory, reliability_curve
from raterwise.curves.smooth import CalibrationCurve, smooth_calibration
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Settings
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.rules import one_class
from raterwise.types import OnUnrated, Per


def calibration_curve(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    smooth: bool = True,
    *,
    bins: int | ArrayLike = 15,
    positive: int | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    at: ArrayLike | None = None,
    span: float = 0.75,
    degree: Literal[1, 2] = 2,
    surface: Literal["interpolate", "direct"] = "interpolate",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on_unrated: OnUnrated = "error",
) -> CalibrationCurve:
    """Return the smoothed frequency with which raters choose a class, by predicted probability.

    The curve is R's `loess(y ~ p)` with every rater's label a row: local quadratic regression on
    the nearest three quarters of the labels. The integrated calibration index (`ici`) is its mean
    distance from the diagonal. For the band, whole patients (or cases) are resampled. The band is
    about the true curve: it also contains the band of a second curve, which is smoothed less as the
    number of cases grows.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    smooth : bool, default True
        Whether to smooth; otherwise the curve consists of the bins.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges, for the binned curve that comes with it.
    positive : int, default None
        The class of the curve; by default class 1 of two.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    groups : array-like of shape (N,), default None
        The patient of each case.
    class_names : sequence of str, default None
        Names of the classes.
    at : array-like of shape (m,), default None
        Where to evaluate the smooth curve; by default 101 places between the smallest and the
        largest probability. Outside these it is NaN.
    span : float, default 0.75
        Share of all labels used in each local fit, at most 1.
    degree : {1, 2}, default 2
        Degree of the local polynomial.
    surface : {"interpolate", "direct"}, default "interpolate"
        Local fits at a few places joined by cubics, as R does by default; or a local fit
        everywhere.
    resamples : int, default 1000
        How many, for the bands; 0 for none.
    level : float, default 0.95
        Pointwise confidence level of the band.
    seed : int, default 0
        Seed of the resamples.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    CalibrationCurve
        `predicted`, `observed`, `low` and `high`, and the bins as `binned`.

    Raises
    ------
    InvalidInputError
        If there are more than two classes and none is named.

    See Also
    --------
    ici : the mean distance of the curve from the diagonal.
    raterwise.curves.reliability_curve : the bins alone, of any question.

    References
    ----------
    Austin & Steyerberg, Graphical assessment of internal and external calibration of logistic
    regression models by using loess smoothers, Stat Med 33 (2014) 517-535.

    Examples
    --------
    >>> probs = [0.2] * 10 + [0.5] * 10 + [0.8] * 10  # of ten each, 3, 6 and 9 are positive
    >>> labels = [1] * 3 + [0] * 7 + [1] * 6 + [0] * 4 + [1] * 9 + [0]
    >>> curve = calibration_curve(probs, labels, at=[0.2, 0.5, 0.8], resamples=0)
    >>> curve.observed.round(3).tolist()
    [0.3, 0.6, 0.9]
    """
    predictions = Predictions.of(
        probs, labels, weights=weights, groups=groups, class_names=class_names,
        on_unrated=on_unrated,
    )  # fmt: skip
    classes = predictions.num_classes
    if positive is None and classes > 2:
        raise InvalidInputError(
            f"positive: must name one of the {classes} classes, 0 … {classes - 1}; got None"
        )
    chosen = 1 if positive is None else one_class("positive", positive, classes)
    settings, row = Settings(resamples, level, seed), find("ici")
    own: dict[str, Any] = row.checked(
        {"positive": positive, "per": per, "span": span, "degree": degree, "surface": surface}
    )
    name = predictions.class_names[chosen] if predictions.class_names else f"class {chosen}"
    binned = reliability_curve(
        probs, labels, "per_class", bins, of_class=chosen, per=per, weights=weights, groups=groups,
        class_names=class_names, resamples=resamples, level=level, seed=seed,
        on_unrated=on_unrated,
    )  # fmt: skip
    if not smooth:
        return CalibrationCurve(
            name, binned.predicted, binned.observed, binned.low, binned.high, level, binned
        )
    measure = measure_in_memory(predictions, row, own, settings)
    where = None if at is None else np.asarray(as_float_array(at, "at", ndim=1), np.float64)
    return replace(smooth_calibration(measure, name, where), binned=binned)
