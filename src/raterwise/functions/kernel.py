"""Calibration errors from kernels instead of bins: KDE-ECE and SmoothECE."""

from __future__ import annotations

import warnings
from typing import Any, Literal

from numpy.typing import ArrayLike

from raterwise.arrays import on_gpu
from raterwise.catalog import find
from raterwise.functions.measure import labels_for_device, measure, summary_for, value_of
from raterwise.labels import Labels
from raterwise.types import OneScore, OnUnrated, Per


def kde_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: Literal["top_label", "positive", "per_class", "canonical"] = "top_label",
    p: int = 1,
    bandwidth: float | None = None,
    *,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    floor: float = 0.0,
    leave_out: Literal["case", "copy"] = "case",
    method: Literal["auto", "exact", "cells"] = "auto",
    seed: int = 0,
    on_unrated: Literal["error", "drop"] = "error",
) -> float:
    """Return the kernel-density calibration error: mean |ratio - predicted|^p, without the root.

    ratio_j is the observed frequency around case j, weighted by a Beta (one score) or Dirichlet (K
    classes) kernel over the *other* cases (Popordanoska et al. 2022). Several raters count without
    repeating rows (MR-kdeECE), and a case is left out with all its labels.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the probability of class 1
        Predicted probabilities. Exactly 0 and 1 are moved inside by 2.2e-16 where a logarithm
        sees them, so that the value is finite.
    labels : Labels, or array of N classes
        The raters' labels.
    question : {"top_label", "positive", "per_class", "canonical"}, default "top_label"
        "top_label": confidence against being right. "positive": the probability of class 1, for
        two classes. "per_class": each class's probability, the mean over classes. "canonical": all
        classes together, the sum over classes.
    p : {1, 2}, default 1
        Power of the gap.
    bandwidth : float, optional
        Bandwidth of the kernel. By default it maximises the leave-one-out likelihood on a grid from
        1e-5 to 1, over the predictions strictly between 0 and 1 (those of exactly 0 and 1 are mass
        points). A choice at either end of the grid gives a warning.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array of shape (N,), optional
        Case weights.
    floor : float, default 0
        For "canonical": the smallest sum of kernels to divide by. The released code uses 1e-10; the
        value then depends on the scale of the weights.
    leave_out : {"case", "copy"}, default "case"
        "copy" leaves out one label instead of the case, as software that repeats rows does; for
        per="annotation".
    method : {"auto", "exact", "cells"}, default "auto"
        For one score per case or class: "exact" uses pairs of cases; "cells" uses fine cells of the
        score, in time that does not grow with the square of the number of cases; "auto" is exact up
        to 20,000 cases. `evaluate` reports the bound on the error of cells.
    seed : int, default 0
        Seed of the subset of cases on which the bandwidth of "canonical" is chosen, if there are
        very many.
    on_unrated : {"error", "drop"}, default "error"
        What to do with cases that nobody rated.

    Returns
    -------
    float
        0 is perfect.

    Raises
    ------
    UndefinedMetricError
        If there are fewer than two cases.

    See Also
    --------
    ece, smooth_ece

    References
    ----------
    Popordanoska, Sayer, Blaschko. A consistent and differentiable Lp canonical calibration error
    estimator. NeurIPS 2022.

    Examples
    --------
    With two cases, each is predicted from the other alone, and both are right:

    >>> round(kde_ece([[0.6, 0.4], [0.1, 0.9]], [0, 1], bandwidth=0.1), 4)
    0.25
    """
    options: dict[str, Any] = {"question": question, "p": p, "bandwidth": bandwidth}
    options |= {"floor": floor, "seed": seed}
    row = find("kde_ece")
    own = row.checked({**options, "per": per, "leave_out": leave_out, "method": method})
    row.plan(own)  # says what does not go together
    tensor: Any = probs
    on_device = on_gpu(probs) and tensor.ndim == 2 and leave_out == "case" and per == "annotation"
    if question not in ("top_label", "positive") and on_device and method != "cells":
        from raterwise.tensors.pairs import kde_of_rows

        known = labels_for_device(labels, tensor.shape[1])
        return kde_of_rows(tensor, known, weights, on_unrated=on_unrated, told=_told, **options)
    summary = summary_for(row, own, probs, labels, weights, on_unrated)
    assert row.settle is not None
    settled = row.settle(summary, own)
    chosen = settled["bandwidth"]
    for one in chosen if isinstance(chosen, tuple) else (chosen,):
        _told(one)
    return value_of(row, settled, summary)


def _told(bandwidth: float) -> float:
    """Return the bandwidth after warning of one at the end of the grid."""
    if warning := getattr(bandwidth, "warning", None):  # one that was given has none
        warnings.warn(warning, UserWarning, stacklevel=3)
    return bandwidth


def smooth_ece(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: OneScore = "top_label",
    per: Per = "annotation",
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
) -> float:
    """Return SmoothECE: the gap after smoothing by a reflected Gaussian.

    Its bandwidth is the one that equals the error, so there is nothing to choose.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    question : {"top_label", "positive"}, default "top_label"
        Whether the predicted class is right, or whether it is class 1 of two.
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
    ece : with bins.
    kde_ece : with another kernel.

    References
    ----------
    Błasiok & Nakkiran, Smooth ECE: principled reliability diagrams via kernel smoothing, ICLR 2024.

    Examples
    --------
    >>> round(smooth_ece([[0.5, 0.5]] * 4, [0, 0, 0, 1]), 4)
    0.25
    """
    return measure("smooth_ece", probs, labels, weights, on_unrated, question=question, per=per)
