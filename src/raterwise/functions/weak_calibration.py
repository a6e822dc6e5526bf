"""Weak calibration: is the mean right, and are the probabilities spread as they should be?"""

from __future__ import annotations

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import OnUnrated, Per


def observed_expected_ratio(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    per: Per = "annotation",
    ordered: bool = False,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return observed over expected positives: Σ w μ / Σ w p.

    1 is right on average; above 1 the probabilities are too low. Errors in opposite directions can
    cancel.

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
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Not negative; 1 is right.

    Raises
    ------
    UndefinedMetricError
        If the probability of the class is 0 in every case.

    See Also
    --------
    calibration_intercept : the same on the scale of log odds.

    References
    ----------
    Van Calster et al., A calibration hierarchy for risk models was defined: from utopia to
    empirical data, J Clin Epidemiol 74 (2016) 167-176.

    Examples
    --------
    >>> observed_expected_ratio([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0])
    0.5
    """
    return measure(
        "observed_expected_ratio", probs, labels, weights, on_unrated,
        positive=positive, per=per, ordered=ordered,
    )  # fmt: skip


def calibration_intercept(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    per: Per = "annotation",
    ordered: bool = False,
    clip: float | None = None,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return calibration in the large: a in log odds = a + log(p / (1 - p)), with slope 1.

    What to add to the model's log odds so that its mean probability is right, as R's
    `glm(y ~ offset(qlogis(p)))` and CalibrationCurves; above 0 the probabilities are too low.
    `rms::val.prob` prints the intercept of a fit with a free slope, which is a different number.

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
    clip : float, default None
        Probabilities are limited to [clip, 1 - clip]. By default they are not, and a probability
        of exactly 0 or 1, whose log odds are infinite, is an error that counts them. Try more than
        one limit: where many probabilities are beyond it, the value depends on it.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is right.

    Raises
    ------
    UndefinedMetricError
        If all labels are of one class, or a probability is 0 or 1 and `clip` is not given,
        or no probability lies between the limits.

    See Also
    --------
    calibration_slope : whether they are spread as they should be.
    observed_expected_ratio : the same as a ratio.

    References
    ----------
    Cox, Two further applications of a model for binary regression, Biometrika 45 (1958) 562-565.
    Van Calster et al., A calibration hierarchy for risk models was defined: from utopia to
    empirical data, J Clin Epidemiol 74 (2016) 167-176.

    Examples
    --------
    >>> probs, labels = [0.2, 0.2, 0.2, 0.2, 0.2], [0, 0, 0, 1, 1]
    >>> round(calibration_intercept(probs, labels), 4)  # log(2/3) - log(1/4)
    0.9808
    """
    return measure(
        "calibration_intercept", probs, labels, weights, on_unrated,
        positive=positive, per=per, ordered=ordered, clip=clip,
    )  # fmt: skip


def calibration_slope(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    per: Per = "annotation",
    ordered: bool = False,
    clip: float | None = None,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return b in log odds = a + b log(p / (1 - p)): Cox's recalibration slope.

    Below 1 the probabilities are too extreme, as for an overfitted model; above 1 they are not
    extreme enough. It equals the Slope of `rms::val.prob` and of R's `glm(y ~ qlogis(p))`.

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
    clip : float, default None
        Probabilities are limited to [clip, 1 - clip]. By default they are not, and a probability
        of exactly 0 or 1, whose log odds are infinite, is an error that counts them. Try more than
        one limit: where many probabilities are beyond it, the value depends on it.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        1 is right.

    Raises
    ------
    UndefinedMetricError
        If a threshold separates every yes of the raters from every no, so that no slope is best; if
        all labels are of one class, or all probabilities are the same; if a probability is 0 or 1
        and `clip` is not given; or if no probability lies between the limits.

    See Also
    --------
    calibration_intercept : whether the mean is right.

    References
    ----------
    Cox, Two further applications of a model for binary regression, Biometrika 45 (1958) 562-565.
    Van Calster et al., A calibration hierarchy for risk models was defined: from utopia to
    empirical data, J Clin Epidemiol 74 (2016) 167-176.

    Examples
    --------
    >>> probs = [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9]
    >>> round(calibration_slope(probs, [0, 0, 0, 1, 1, 1, 1, 0]), 4)  # log 3 / log 9
    0.5
    """
    return measure(
        "calibration_slope", probs, labels, weights, on_unrated,
        positive=positive, per=per, ordered=ordered, clip=clip,
    )  # fmt: skip
