"""Calibration errors that other libraries have, for one rater or several."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import Debiasing, KernelQuestion, OnUnrated, Per, Questions


def average_calibration_error(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the unweighted mean gap over the bins that contain a case.

    It cannot tell how many cases are affected: a bin of one counts as much as a bin of a thousand.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
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
    ece : bins weighted by the cases that they hold.
    mce : the largest gap.

    References
    ----------
    Neumann, Zisserman & Vedaldi, Relaxed softmax, NeurIPS workshop on machine learning for
    intelligent transportation systems 2018.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]]
    >>> round(average_calibration_error(probs, [0, 1, 1]), 4)  # (0.4 + 0.3) / 2
    0.35
    """
    return measure(
        "average_calibration_error", probs, labels, weights, on_unrated,
        bins=bins, question=question, per=per,
    )  # fmt: skip


def canonical_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    per: Per = "annotation",
    norm: float = 1,
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the gap between all class probabilities and frequencies at once, over bins.

    A cell has a bin for every class: Σ_c b_c/N Σ_k |A_ck - C_ck| over the cells that hold a case.
    With more than three or four classes most cells hold one case, which looks miscalibrated by
    chance: there it cannot tell much.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    norm : float, default 1
        p of (Σ_c b_c/N Σ_k |A_ck - C_ck|^p)^(1/p), 1 or more.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 … 2, the sum over the classes; lower is better.

    See Also
    --------
    classwise_ece : every class by itself.
    kde_ece : `question="canonical"` has a kernel in place of the cells.

    References
    ----------
    Vaicenavicius et al., Evaluating model calibration in classification, AISTATS 2019.
    Kull et al., Beyond temperature scaling, NeurIPS 2019.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> round(canonical_ece(probs, [0, 1, 2], bins=5), 4)  # (2 · 0.6 + 0.4) / 3
    0.5333
    """
    return measure(
        "canonical_ece", probs, labels, weights, on_unrated, bins=bins, per=per, norm=norm
    )


def debiased_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    question: Literal["top_label", "positive", "per_class"] = "top_label",
    norm: Literal[1, 2] = 1,
    estimator: Debiasing = "debiased",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the ECE, or its quadratic version, without the contribution of chance to its bins.

    norm 1: twice the ECE minus its mean if the observed frequency of each bin were drawn again
    from a normal distribution. norm 2: the root of Σ_m b_m/N [gap² - σ²/(b_m - 1)],
    which is LH eq 14 for one score. Every case counts once, because several raters are not
    independent cases. Errors can cancel within a bin, and with norm 1 the contribution of chance is
    not removed completely.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    question : {"top_label", "positive", "per_class"}, default "top_label"
        Is the predicted class right; of two classes, is it class 1; is it class k, the mean over
        all classes.
    norm : {1, 2}, default 1
        1 for absolute gaps, 2 for the root of squared ones.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" needs equal case weights; "plugin" takes nothing off.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Lower is better; with norm 1 it may be negative by chance.

    Raises
    ------
    InvalidInputError
        If cases have unequal weights: LH and Kumar do not define it.

    See Also
    --------
    ece, rms_ce : without the correction.
    calibration_error : LH's, summed over the classes.

    References
    ----------
    Kumar, Liang & Ma, Verified uncertainty calibration, NeurIPS 2019.

    Examples
    --------
    >>> probs = [[0.9, 0.1]] * 10
    >>> round(debiased_ece(probs, [0] * 7 + [1] * 3, norm=2), 4)  # sqrt(0.2² - 0.21/9)
    0.1291
    >>> round(debiased_ece(probs, [0] * 7 + [1] * 3), 4)
    0.1889
    """
    return measure(
        "debiased_ece", probs, labels, weights, on_unrated,
        bins=bins, question=question, norm=norm, estimator=estimator,
    )  # fmt: skip


def kernel_calibration_error(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: KernelQuestion = "top_label",
    bandwidth: float = 0.4,
    estimator: Debiasing = "debiased",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the squared kernel calibration error (SKCE) of a score, each class or whole vectors.

    Σ_{i≠j} d_i d_j exp(-|z_i - z_j| / bandwidth) / N(N - 1), where d = μ - z is the raters'
    frequency minus the probability. It is positive if cases of similar confidence are off in the
    same direction. Its scale depends on the kernel, so it is not a gap in units of probability.

    With `question="per_class"` it is the mean over the classes: the paper's error with a kernel
    that compares class by class. With `question="canonical"` it uses whole vectors,
    Σ_{i≠j} d_i · d_j exp(-|p_i - p_j| / bandwidth) / N(N - 1), with the total variation
    |p - q| = Σ_k |p_k - q_k| / 2: the paper's matrix-valued kernel with exp(-|p - q| / bandwidth)
    for every class. For two classes this is twice the error of class 1. The value uses all pairs;
    the interval in `evaluate` and `compare` uses at most 256 cells of similar vectors. A stream
    has neither.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    question : {"top_label", "positive", "per_class", "canonical"}, default "top_label"
        Is the predicted class right; of two classes, is it class 1; is it class k, the mean over
        all classes; or is the whole vector right, which compares all pairs of cases.
    bandwidth : float, default 0.4
        Bandwidth of the Laplace kernel.
    estimator : {"debiased", "plugin"}, default "debiased"
        "debiased" leaves out what a case adds with itself, and is right on average; it needs equal
        case weights. The root of "plugin" is the MMCE.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        Lower is better; below 0 by chance.

    See Also
    --------
    kernel_calibration_test : whether it is more than chance.
    smooth_ece, kde_ece : smooth, and in units of probability.

    References
    ----------
    Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification, NeurIPS 2019.
    Kumar, Sarawagi & Jain, Trainable calibration measures for neural networks, ICML 2018.

    Examples
    --------
    >>> probs = [0.8, 0.8, 0.6]
    >>> round(kernel_calibration_error(probs, [1, 1, 0], question="positive"), 4)
    -0.0352
    """
    return measure(
        "kernel_calibration_error", probs, labels, weights, on_unrated,
        question=question, bandwidth=bandwidth, estimator=estimator,
    )  # fmt: skip


def kuiper_error(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the largest gap between confidence and agreement over any range of confidence.

    max_t G(t) - min_t G(t), where G(t) is the sum of what the raters say minus the probability,
    over all cases up to t, divided by their number. Errors that cancel within a range do not show.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
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
        0 … 1; lower is better. It needs no bins.

    See Also
    --------
    ks_error : ranges that begin at 0 only.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu, Metrics of calibration for probabilistic
    predictions, JMLR 2022.

    Examples
    --------
    >>> round(kuiper_error([0.2, 0.4, 0.9], [1, 0, 1], question="positive"), 4)  # 0.8 / 3
    0.2667
    """
    return measure("kuiper_error", probs, labels, weights, on_unrated, question=question, per=per)


def spiegelhalter_z(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    per: Per = "case",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return how many standard errors the squared loss is above its expectation.

    z = Σ (B - E B) / sqrt(Σ Var B), where B is the squared loss of a case, and its expectation and
    variance are for labels drawn from the probabilities. With two classes it is Spiegelhalter's;
    with more, it uses the squared loss summed over the classes. It grows with the number of cases,
    so it cannot tell how large an error is, and it misses errors that cancel.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    per : {"case", "annotation"}, default "case"
        Whether each case or each label counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        For a calibrated model, roughly normal with variance 1, or less if cases have several
        raters, whose mean varies less than one label. `per="annotation"` treats raters as
        independent.

    Raises
    ------
    UndefinedMetricError
        If every probability is 0, 1 or 1/K.

    See Also
    --------
    spiegelhalter_test : with a p-value.
    brier : the loss itself.

    References
    ----------
    Spiegelhalter, Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 1986.

    Examples
    --------
    >>> round(spiegelhalter_z([0.9, 0.8, 0.3], [1, 0, 0]), 4)  # 0.28 / sqrt(0.1488)
    0.7259
    """
    return measure("spiegelhalter_z", probs, labels, weights, on_unrated, per=per)
