"""Binned calibration errors, for one rater or several (RECE, MR)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from raterwise.functions.measure import measure
from raterwise.labels import Labels
from raterwise.types import OnUnrated, Per, Questions


def ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    question: Questions = "top_label",
    per: Per = "annotation",
    norm: float = 1,
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the expected calibration error: Σ_m b_m/N |A_m - C_m| (RECE eq 2, MR eq 5).

    With several raters every label counts (MR-ECE); `per="case"` lets every case count once.

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
    norm : float, default 1
        p of (Σ_m b_m/N |A_m - C_m|^p)^(1/p) (LH Definition 2), 1 or more: 2 is `rms_ce`, infinity
        `mce`.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    float
        0 is perfect calibration; lower is better. Chance alone makes it positive.

    See Also
    --------
    rms_ce, mce : other means of the same gaps.
    classwise_ece : every class, not only the predicted one.
    robust_ece, kde_ece, smooth_ece : less sensitive to the bins, or without them.

    References
    ----------
    Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities using Bayesian binning,
    AAAI 2015.

    Examples
    --------
    >>> round(ece([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]), 4)
    0.3667
    >>> round(ece([0.1, 0.1, 0.7], [0, 1, 1], question="positive"), 4)
    0.3667
    """
    return measure(
        "ece", probs, labels, weights, on_unrated, bins=bins, question=question, per=per, norm=norm
    )


def mce(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the largest gap of any bin: max_m |A_m - C_m|.

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
        A bin with a single case can make it large.

    See Also
    --------
    ece : the mean of the gaps.

    References
    ----------
    Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities using Bayesian binning,
    AAAI 2015.

    Examples
    --------
    >>> round(mce([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]), 4)
    0.4
    """
    return measure("mce", probs, labels, weights, on_unrated, bins=bins, question=question, per=per)


def rms_ce(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the root mean squared gap: sqrt(Σ_m b_m/N (A_m - C_m)²).

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
        At least as large as `ece`.

    See Also
    --------
    ece : the mean of the gaps.
    calibration_error : the same idea over all classes, with chance taken out.

    References
    ----------
    Kumar, Liang & Ma, Verified uncertainty calibration, NeurIPS 2019.

    Examples
    --------
    >>> round(rms_ce([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], [0, 1, 1]), 4)
    0.3697
    """
    return measure(
        "rms_ce", probs, labels, weights, on_unrated, bins=bins, question=question, per=per
    )


def adaptive_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int = 15,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return ECE over bins of equal mass.

    The bins hold every case, and equal scores share a bin.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    bins : int, default 15
        How many bins; never more than there are distinct scores.
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
    ece_sweep : chooses the number of bins.

    References
    ----------
    Nguyen & O'Connor, Posterior calibration and exploratory analysis for natural language
    processing models, EMNLP 2015.

    Examples
    --------
    >>> round(adaptive_ece([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1], bins=2), 4)
    0.2
    """
    return measure(
        "adaptive_ece", probs, labels, weights, on_unrated, bins=bins, question=question, per=per
    )


def ece_sweep(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return ECE over as many equal-mass bins as keep the observed frequencies increasing.

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
        0 is perfect calibration; lower is better.

    See Also
    --------
    adaptive_ece : with a given number of bins.

    References
    ----------
    Roelofs et al., Mitigating bias in calibration error estimation, AISTATS 2022.

    Examples
    --------
    >>> round(ece_sweep([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 0, 1]), 4)
    0.2
    """
    return measure("ece_sweep", probs, labels, weights, on_unrated, question=question, per=per)


def classwise_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the mean over classes of the ECE of each class's probability.

    Every case counts for every class. RECE's released code calls this SCE.

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
    sce : over the cases predicted as each class.

    References
    ----------
    Kull et al., Beyond temperature scaling, NeurIPS 2019.

    Examples
    --------
    >>> round(classwise_ece([[0.9, 0.1], [0.2, 0.8]], [0, 1]), 4)
    0.15
    """
    return measure("classwise_ece", probs, labels, weights, on_unrated, bins=bins, per=per)


def sce(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    bins: int | ArrayLike = 15,
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the static calibration error, over the cases predicted as each class.

    SCE = 1/K Σ_m Σ_k B_mk/N |A_mk - C_mk| (RECE eqs 4-5 as printed).

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
    classwise_ece : every case for every class.

    References
    ----------
    Nixon, Dusenberry, Zhang, Jerfel, Tran, Measuring calibration in deep learning, CVPR workshops
    2019; Gupta, Basu, Arora, How reliable are the metrics used for assessing reliability in medical
    imaging?, MICCAI 2023, eqs 4-5.

    Examples
    --------
    >>> round(sce([[0.9, 0.1], [0.2, 0.8]], [0, 1]), 4)
    0.075
    """
    return measure("sce", probs, labels, weights, on_unrated, bins=bins, per=per)


def ks_error(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: Questions = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return the largest cumulative gap, max_t |Σ_{z <= t} w(μ - z)| / W.

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
        0 is perfect calibration; needs no bins.

    See Also
    --------
    smooth_ece : another error without bins.

    References
    ----------
    Gupta et al., Calibration of neural networks using splines, ICLR 2021.

    Examples
    --------
    >>> round(ks_error([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1]), 4)
    0.1667
    """
    return measure("ks_error", probs, labels, weights, on_unrated, question=question, per=per)
