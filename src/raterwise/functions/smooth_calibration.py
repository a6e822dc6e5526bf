"""The distance of the smooth calibration curve from the diagonal."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import OnUnrated, Per


def ici(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    per: Per = "annotation",
    ordered: bool = False,
    span: float = 0.75,
    degree: Literal[1, 2] = 2,
    surface: Literal["interpolate", "direct"] = "interpolate",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the integrated calibration index: the mean of |smoothed observed - predicted|.

    The curve is R's `loess(y ~ p)`, with a row for every rater's label. `rms::val.prob` computes
    Eavg from a local line instead; span=2/3, degree=1, surface="direct" gives the same, except for
    its interpolation.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    positive : int, default None
        The positive class, against the rest. By default class 1 of two; with more classes, each
        class in turn, averaged.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once. With "case", if a fraction μ of a case's raters
        say yes, the case is a positive of weight μ and a negative of weight 1 - μ.
    ordered : bool, default False
        Whether the classes are ordered; the probability is then that of class k or higher.
    span : float, default 0.75
        Share of all labels used in each local fit, at most 1.
    degree : {1, 2}, default 2
        Degree of the local polynomial.
    surface : {"interpolate", "direct"}, default "interpolate"
        Local fits at a few places joined by cubics, as R does by default; or a local fit at every
        score.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    Raises
    ------
    UndefinedMetricError
        Where there are no labels.

    See Also
    --------
    e50, e90 : quantiles of the same distances.
    calibration_curve : the curve.
    ece : the same over bins.

    References
    ----------
    Austin & Steyerberg, The Integrated Calibration Index (ICI) and related metrics for quantifying
    the calibration of logistic regression models, Stat Med 38 (2019) 4051-4065.

    Examples
    --------
    >>> probs = [0.2] * 10 + [0.5] * 10 + [0.8] * 10  # of ten each, 3, 6 and 9 are positive
    >>> labels = [1] * 3 + [0] * 7 + [1] * 6 + [0] * 4 + [1] * 9 + [0]
    >>> round(ici(probs, labels), 4)
    0.1
    """
    return measure(
        "ici", probs, labels, weights, on_unrated,
        positive=positive, per=per, ordered=ordered, span=span, degree=degree, surface=surface,
    )  # fmt: skip


def e50(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    per: Per = "annotation",
    ordered: bool = False,
    span: float = 0.75,
    degree: Literal[1, 2] = 2,
    surface: Literal["interpolate", "direct"] = "interpolate",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the median of |smoothed observed - predicted| over the cases.

    As `ici`, with the median in place of the mean (R's type 7, every label a row).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    positive : int, default None
        The positive class, against the rest. By default class 1 of two; with more classes, each
        class in turn, averaged.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once. With "case", if a fraction μ of a case's raters
        say yes, the case is a positive of weight μ and a negative of weight 1 - μ.
    ordered : bool, default False
        Whether the classes are ordered; the probability is then that of class k or higher.
    span : float, default 0.75
        Share of all labels used in each local fit, at most 1.
    degree : {1, 2}, default 2
        Degree of the local polynomial.
    surface : {"interpolate", "direct"}, default "interpolate"
        Local fits at a few places joined by cubics, as R does by default; or a local fit at every
        score.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    Raises
    ------
    UndefinedMetricError
        Where there are no labels.

    See Also
    --------
    ici : the mean.
    e90 : the 90th percentile.

    References
    ----------
    Austin & Steyerberg, The Integrated Calibration Index (ICI) and related metrics for quantifying
    the calibration of logistic regression models, Stat Med 38 (2019) 4051-4065.

    Examples
    --------
    >>> probs = [0.2] * 10 + [0.5] * 10 + [0.8] * 10  # of ten each, 3, 6 and 9 are positive
    >>> labels = [1] * 3 + [0] * 7 + [1] * 6 + [0] * 4 + [1] * 9 + [0]
    >>> round(e50(probs, labels), 4)
    0.1
    """
    return measure(
        "e50", probs, labels, weights, on_unrated,
        positive=positive, per=per, ordered=ordered, span=span, degree=degree, surface=surface,
    )  # fmt: skip


def e90(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    per: Per = "annotation",
    ordered: bool = False,
    span: float = 0.75,
    degree: Literal[1, 2] = 2,
    surface: Literal["interpolate", "direct"] = "interpolate",
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the 90th percentile of |smoothed observed - predicted|.

    As `ici`, with that percentile in place of the mean (R's type 7, every label a row).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    positive : int, default None
        The positive class, against the rest. By default class 1 of two; with more classes, each
        class in turn, averaged.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once. With "case", if a fraction μ of a case's raters
        say yes, the case is a positive of weight μ and a negative of weight 1 - μ.
    ordered : bool, default False
        Whether the classes are ordered; the probability is then that of class k or higher.
    span : float, default 0.75
        Share of all labels used in each local fit, at most 1.
    degree : {1, 2}, default 2
        Degree of the local polynomial.
    surface : {"interpolate", "direct"}, default "interpolate"
        Local fits at a few places joined by cubics, as R does by default; or a local fit at every
        score.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better.

    Raises
    ------
    UndefinedMetricError
        Where there are no labels.

    See Also
    --------
    ici : the mean.
    e50 : the median.

    References
    ----------
    Austin & Steyerberg, The Integrated Calibration Index (ICI) and related metrics for quantifying
    the calibration of logistic regression models, Stat Med 38 (2019) 4051-4065.

    Examples
    --------
    >>> probs = [0.2] * 10 + [0.5] * 10 + [0.8] * 10  # of ten each, 3, 6 and 9 are positive
    >>> labels = [1] * 3 + [0] * 7 + [1] * 6 + [0] * 4 + [1] * 9 + [0]
    >>> round(e90(probs, labels), 4)
    0.1
    """
    return measure(
        "e90", probs, labels, weights, on_unrated,
        positive=positive, per=per, ordered=ordered, span=span, degree=degree, surface=surface,
    )  # fmt: skip
