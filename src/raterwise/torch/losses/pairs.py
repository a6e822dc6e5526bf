"""Calibration terms over the pairs of a batch: RCR and MMCE.

Their cost grows with the square of the cases, so of a dense output at most `max_cases` pixels are
used, evenly spread.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from raterwise.rules import choose, positive, positive_integer
from raterwise.torch.losses._cases import (
    LossModule,
    class_weights,
    full_precision,
    ratio,
    read_cases,
    subset,
)
from raterwise.torch.losses.batch import mean_over_classes, top_label

MAX_CASES = 2048
PAIRS_AT_ONCE = 1 << 24
"""Pairs of cases, times classes, that are held in memory together."""


@full_precision
def rcr_term(
    logits: Tensor,
    targets: Tensor,
    sigma: float = 0.1,
    *,
    normalization: Literal["smooth", "paper"] = "smooth",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    max_cases: int = MAX_CASES,
) -> Tensor:
    """Return the robust calibration regulariser 1/K Σ_k |mean_j z_jk - mean_j 1[label_j = k]|.

    RECE eq 8. z_jk smooths the probabilities of class k over the batch by a Gaussian of standard
    deviation `sigma`, with C_ik the probability of class k in case i:

        "smooth"   z_jk = Σ_i C_ik g_ij / Σ_i g_ij, g_ij = N(C_jk; C_ik, σ): a weighted mean
                   (Nadaraya-Watson), which is what the text of the paper describes.
        "paper"    z_jk = 1/N Σ_i C_ik g_ij / Σ_l g_il (eq 9 as printed, and the released code).
                   Then mean_j z_jk is mean_i C_ik / N whatever σ is; while every class has a
                   label in the batch the term is the constant (1 - 1/N)/K, without gradient.

    As σ → 0 or ∞ the smooth term is MDCA.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    sigma : float, default 0.1
        The standard deviation of the Gaussian, in units of probability.
    normalization : {"smooth", "paper"}, default "smooth"
        A weighted mean, or eq 9 as printed.
    weight : Tensor, optional
        Shape (K,): weight of each class in the mean over classes; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    max_cases : int, default 2048
        Maximum number of cases to compare, spread evenly over those that count.

    Returns
    -------
    Tensor
        One number, with a gradient.

    See Also
    --------
    torch.losses.RCR : the same as a module.

    Examples
    --------
    >>> p = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> rcr_term(p.log(), torch.tensor([0, 1]), sigma=1e-3)
    tensor(0.2500)
    """
    choose("normalization", normalization, ("smooth", "paper"))
    positive("sigma", sigma)
    cases = subset(read_cases(logits, targets, ignore_index), max_cases)
    probs = cases.probs.T  # (K, M)
    classes_at_once = max(1, PAIRS_AT_ONCE // max(1, probs.shape[1] ** 2))
    parts = []
    for some in torch.split(probs, classes_at_once):
        given = some, cases.keep, sigma, normalization
        if len(some) == len(probs):
            parts.append(_smoothed_sums(*given))
        else:  # forget the pairs, and make them again for the gradient
            parts.append(
                checkpoint(_smoothed_sums, *given, use_reentrant=False, preserve_rng_state=False)
            )
    gap = torch.cat(parts) - cases.frequencies.sum(dim=0)
    kept = cases.keep.sum()
    return mean_over_classes(ratio(gap, kept), weight)


def _smoothed_sums(probs: Tensor, keep: Tensor, sigma: float, normalization: str) -> Tensor:
    """Return Σ_j z_jk of some classes (K, M), over the cases that are kept."""
    log_gaussian = -0.5 * ((probs[:, None, :] - probs[:, :, None]) / sigma) ** 2
    # The normaliser runs over the last axis: over i for each j, or over j for each i, of which
    # the symmetric Gaussian is the same matrix.
    share = log_gaussian.masked_fill(keep == 0, torch.finfo(probs.dtype).min).softmax(dim=2)
    if normalization == "smooth":
        z = (share * probs[:, None, :]).sum(dim=2)
    else:
        z = ratio((share * (probs * keep)[:, :, None]).sum(dim=1), keep.sum())
    return (z * keep).sum(dim=1)


@full_precision
def mmce_term(
    logits: Tensor,
    targets: Tensor,
    bandwidth: float = 0.4,
    *,
    weighted: bool = False,
    root: bool = False,
    normalization: Literal["mean", "released"] = "mean",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    max_cases: int = MAX_CASES,
) -> Tensor:
    """Return the maximum mean calibration error of the batch (Kumar et al. 2018).

        MMCE² = 1/N² Σ_ij (c_i - r_i)(c_j - r_j) k(r_i, r_j),  k = exp(-|r_i - r_j| / bandwidth)

    with the confidence r and c whether the prediction is right, or the fraction of raters who say
    so. `root=True` gives MMCE itself, with a gradient that grows without bound as MMCE tends to 0.

    `weighted=True` divides the sums over right and over wrong cases by their own numbers m and n,
    so that a few wrong cases count (Kumar et al. 2018, section 3.2). Much released code divides by
    them a second time: `normalization="released"` does this, always with the root.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    bandwidth : float, default 0.4
        Bandwidth of the Laplacian kernel, in units of confidence.
    weighted : bool, default False
        Divide the sums over right and over wrong cases by their own numbers.
    root : bool, default False
        MMCE itself instead of its square.
    normalization : {"mean", "released"}, default "mean"
        For `weighted=True`: the paper's normalisation, or the one in much released code.
    weight : Tensor, optional
        Shape (K,): weight of a case by its label; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    max_cases : int, default 2048
        Maximum number of cases to compare, spread evenly over those that count.

    Returns
    -------
    Tensor
        One number, with a gradient.

    See Also
    --------
    torch.losses.MMCE : the same as a module.

    Examples
    --------
    >>> p = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    >>> mmce_term(p.log(), torch.tensor([0, 1]))  # ((0.1 - 0.9) / 2)²
    tensor(0.1600)
    """
    choose("normalization", normalization, ("mean", "released"))
    positive("bandwidth", bandwidth)
    cases = subset(read_cases(logits, targets, ignore_index), max_cases)
    class_weights(weight, cases.log_probs.shape[1])
    w = cases.label_weights(weight)
    confidence, hit = top_label(cases)
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / bandwidth)
    if not weighted:
        gap = w * (hit - confidence)
        square = ratio(gap @ kernel @ gap, w.sum() ** 2)
        return _root(square) if root else square
    right, wrong = w * hit * (1 - confidence), (w * (1 - hit)) * confidence
    m, n = (w * hit).sum(), (w * (1 - hit)).sum()
    if normalization == "released":
        return _released(right, wrong, m, n, kernel)
    gap = ratio(right, m) - ratio(wrong, n)
    square = gap @ kernel @ gap
    return _root(square) if root else square


def _root(square: Tensor) -> Tensor:
    """Return the root of a square that rounding may have made negative; 0 has gradient 0."""
    nothing = square <= 0  # which NaN is not: it stays to be seen
    return torch.where(nothing, 0, torch.where(nothing, 1, square).sqrt())


def _released(right: Tensor, wrong: Tensor, m: Tensor, n: Tensor, kernel: Tensor) -> Tensor:
    """Return what focal_calibration and Robust-Calibration call MMCE_weighted."""

    def part(a: Tensor, b: Tensor, pairs: Tensor) -> Tensor:
        return ratio(a @ kernel @ b, pairs) / (pairs + 1e-5)

    square = part(right, right, m * m) + part(wrong, wrong, n * n) - 2 * part(right, wrong, m * n)
    one_sided = (m == 0) | (n == 0)
    return torch.where(one_sided, 0, torch.where(one_sided, 1, square + 1e-10).clamp_min(0).sqrt())


class RCR(LossModule):
    """The robust calibration regulariser of RECE eqs 8-9; see `rcr_term`.

    Parameters
    ----------
    sigma : float, default 0.1
        The standard deviation of the Gaussian, in units of probability.
    normalization : {"smooth", "paper"}, default "smooth"
        A weighted mean, or eq 9 as printed.
    weight : Tensor, optional
        Shape (K,): weight of each class in the mean over classes; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    max_cases : int, default 2048
        Maximum number of cases to compare, spread evenly over those that count.

    See Also
    --------
    robust_ece : the metric.
    torch.losses.Regularized : adds it to another loss.

    Examples
    --------
    >>> p = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> RCR(sigma=1e-3)(p.log(), torch.tensor([0, 1]))
    tensor(0.2500)
    """

    _function = staticmethod(rcr_term)
    _own = ("sigma", "normalization", "max_cases")

    def __init__(
        self,
        sigma: float = 0.1,
        *,
        normalization: Literal["smooth", "paper"] = "smooth",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        max_cases: int = MAX_CASES,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index)
        choose("normalization", normalization, ("smooth", "paper"))
        self.sigma = positive("sigma", sigma)
        self.normalization = normalization
        self.max_cases = positive_integer("max_cases", max_cases)


class MMCE(LossModule):
    """The maximum mean calibration error, squared, plain or weighted; see `mmce_term`.

    Parameters
    ----------
    bandwidth : float, default 0.4
        Bandwidth of the Laplacian kernel, in units of confidence.
    weighted : bool, default False
        Divide the sums over right and over wrong cases by their own numbers.
    root : bool, default False
        MMCE itself instead of its square.
    normalization : {"mean", "released"}, default "mean"
        For `weighted=True`: the paper's normalisation, or the one in much released code.
    weight : Tensor, optional
        Shape (K,): weight of a case by its label; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    max_cases : int, default 2048
        Maximum number of cases to compare, spread evenly over those that count.

    See Also
    --------
    torch.losses.KDECalibration : another kernel.

    Examples
    --------
    >>> p = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    >>> MMCE()(p.log(), torch.tensor([0, 1]))
    tensor(0.1600)
    """

    _function = staticmethod(mmce_term)
    _own = ("bandwidth", "weighted", "root", "normalization", "max_cases")

    def __init__(
        self,
        bandwidth: float = 0.4,
        *,
        weighted: bool = False,
        root: bool = False,
        normalization: Literal["mean", "released"] = "mean",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        max_cases: int = MAX_CASES,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index)
        choose("normalization", normalization, ("mean", "released"))
        self.weighted, self.root = weighted, root
        self.bandwidth = positive("bandwidth", bandwidth)
        self.normalization = normalization
        self.max_cases = positive_integer("max_cases", max_cases)
