"""The kernel-density calibration error as a training term (Popordanoska et al. 2022).

    ratio_j = Σ_{i≠j} k(f_j; f_i) μ_i / Σ_{i≠j} k(f_j; f_i),  k(f_j; f_i) = Dir(f_j; f_i/h + 1)
    error = mean_j Σ_k |ratio_jk - f_jk|^p

is differentiable in the predictions f and the same number as `raterwise.kde_ece`: a case weighs as
much as it has labels, and logarithms see no probability below 2.2e-16.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from raterwise.errors import InvalidInputError
from raterwise.rules import at_least_zero, choose, positive, positive_integer
from raterwise.torch.losses._cases import (
    Cases,
    LossModule,
    class_weights,
    full_precision,
    ratio,
    read_cases,
    rows_of,
    subset,
)
from raterwise.torch.losses.batch import top_label
from raterwise.torch.losses.pairs import MAX_CASES

LOG_EPSILON = math.log(torch.finfo(torch.float64).eps)
QUESTIONS = ("canonical", "per_class", "positive", "top_label")
Question = Literal["canonical", "per_class", "positive", "top_label"]


def _smoothed_error(
    log_f: Tensor,
    f: Tensor,
    observed: Tensor,
    weights: Tensor,
    bandwidth: float,
    p: int,
    floor: float = 0.0,
) -> Tensor:
    """Return the mean over cases of Σ_k |ratio_k - f_k|^p over the columns of `observed`.

    `log_f` and `f` (M, C) are the point on the simplex, `observed` (M, C') the frequencies of its
    first C' coordinates, `weights` (M,) the mass of each case. Where the kernels of all others
    together are below `floor`, they are divided by that: nobody is near enough to say.
    """
    alpha = f / bandwidth
    log_norm = torch.lgamma(alpha + 1).sum(dim=1) - torch.lgamma(alpha.sum(dim=1) + f.shape[1])
    log_kernel = log_f.clamp_min(LOG_EPSILON) @ alpha.T - log_norm
    # The own case, and ignored ones, are left out. A finite floor keeps the softmax defined where
    # nobody else is left; such a batch has the value 0.
    alone = torch.eye(len(f), dtype=torch.bool, device=f.device) | (weights == 0)
    nothing = torch.finfo(f.dtype).min
    mass = torch.where(weights > 0, weights, 1).log()
    log_kernel = (log_kernel + mass).masked_fill(alone, nothing)
    share = log_kernel.softmax(dim=1)
    if floor > 0:
        density = log_kernel.logsumexp(dim=1, keepdim=True)
        share = share * (density - math.log(floor)).clamp_max(0).exp()
    columns = observed.shape[1]
    gap = (share @ observed - f[:, :columns]).abs() ** p
    error = ratio((weights * gap.sum(dim=1)).sum(), weights.sum())
    return torch.where((weights > 0).sum() > 1, error, torch.zeros_like(error))


def _error(
    cases: Cases, question: str, p: int, bandwidth: float, weight: Tensor | None, floor: float
) -> Tensor:
    classes = cases.log_probs.shape[1]
    class_weights(weight, classes)
    weights = cases.label_weights(weight)
    if not cases.single:
        weights = weights * cases.counts.sum(dim=1)
    if question == "canonical":
        f, observed = cases.probs, cases.frequencies
        return _smoothed_error(cases.log_probs, f, observed, weights, bandwidth, p, floor)
    if question == "top_label":
        _, hit = top_label(cases)
        top = cases.log_probs.argmax(dim=1, keepdim=True)
        log_f = _against_the_rest(cases.log_probs, top)
        return _smoothed_error(log_f, log_f.exp(), hit[:, None], weights, bandwidth, p)
    if question == "positive" and classes != 2:
        raise InvalidInputError(f'question: "positive" is for 2 classes; got {classes}')
    errors = []
    for k in (1,) if question == "positive" else range(classes):
        column = torch.full_like(cases.keep, k, dtype=torch.long)[:, None]
        log_f = _against_the_rest(cases.log_probs, column)
        observed = cases.frequencies[:, k : k + 1]
        errors.append(_smoothed_error(log_f, log_f.exp(), observed, weights, bandwidth, p))
    return torch.stack(errors).mean()


def _against_the_rest(log_probs: Tensor, column: Tensor) -> Tensor:
    """Return log p and log(1 - p) of one class per case, (M, 2), without cancellation."""
    chosen = log_probs.gather(1, column)
    rest = log_probs.scatter(1, column, torch.finfo(log_probs.dtype).min)
    return torch.cat((chosen, rest.logsumexp(dim=1, keepdim=True)), dim=1)


def _check(question: str, p: int, bandwidth: float, floor: float) -> None:
    choose("question", question, QUESTIONS)
    if p not in (1, 2):
        raise InvalidInputError(f"p: must be 1 or 2; got {p!r}")
    positive("bandwidth", bandwidth)
    at_least_zero("floor", floor)
    if floor and question != "canonical":
        raise InvalidInputError(f'floor: is for question="canonical"; got question="{question}"')


@full_precision
def kde_term(
    logits: Tensor,
    targets: Tensor,
    bandwidth: float = 0.1,
    *,
    question: Question = "canonical",
    p: Literal[1, 2] = 1,
    floor: float = 0.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    max_cases: int = MAX_CASES,
) -> Tensor:
    """Return the kernel-density calibration error of a batch of logits.

    Parameters
    ----------
    logits : Tensor
        Shape (N, K, …): the logit of each class, before the softmax.
    targets : Tensor
        Classes of shape (N, …), or label counts of shape (N, K, …) for several raters per case.
    bandwidth : float, default 0.1
        h of the kernel.
    question : {"canonical", "per_class", "positive", "top_label"}, default "canonical"
        All classes together, the sum over classes; each class, their mean; class 1 of two; or the
        top label.
    p : {1, 2}, default 1
        The power of the gap.
    floor : float, default 0.0
        For "canonical": the smallest sum of kernels to divide by. The released code uses 1e-10.
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

    With two cases, each is predicted from the other alone:

    See Also
    --------
    torch.losses.KDECalibration : the same as a module.

    Examples
    --------
    >>> p = torch.tensor([[0.6, 0.4], [0.1, 0.9]])
    >>> kde_term(p.log(), torch.tensor([0, 1]), question="top_label")  # (|1 - 0.6| + |1 - 0.9|) / 2
    tensor(0.2500)
    """
    _check(question, p, bandwidth, floor)
    cases = subset(read_cases(logits, targets, ignore_index), max_cases)
    return _error(cases, question, p, bandwidth, weight, floor)


@full_precision
def kde_calibration_error(
    probs: Tensor,
    targets: Tensor,
    bandwidth: float = 0.1,
    *,
    question: Question = "canonical",
    p: Literal[1, 2] = 1,
    floor: float = 0.0,
) -> Tensor:
    """Return the same of probabilities (N, K, …), differentiable in each of them.

    Every case is used; there is no `max_cases`.

    Parameters
    ----------
    probs : Tensor
        (N, K, …): of each class.
    targets : Tensor
        (N, …) classes, or (N, K, …) label counts.
    bandwidth : float, default 0.1
        h of the kernel.
    question : {"canonical", "per_class", "positive", "top_label"}, default "canonical"
        All classes together, the sum over classes; each class, their mean; class 1 of two; or the
        top label.
    p : {1, 2}, default 1
        The power of the gap.
    floor : float, default 0.0
        For "canonical": the smallest sum of kernels to divide by. The released code uses 1e-10.

    Returns
    -------
    Tensor
        One number, with a gradient.

    See Also
    --------
    kde_ece : the same for arrays.
    torch.losses.kde_term : the same for logits, for training.

    Examples
    --------
    >>> p = torch.tensor([[0.6, 0.4], [0.1, 0.9]])
    >>> kde_calibration_error(p, torch.tensor([0, 1]))  # (1.2 + 1.8) / 2
    tensor(1.5000)
    """
    _check(question, p, bandwidth, floor)
    cases = read_cases(probs, targets)
    rows = rows_of(probs)
    logs = rows.clamp_min(torch.finfo(rows.dtype).tiny).log()
    return _error(cases._replace(log_probs=logs), question, p, bandwidth, None, floor)


class KDECalibration(LossModule):
    """The kernel-density calibration error as a term to add to a loss; see `kde_term`.

    Parameters
    ----------
    bandwidth : float, default 0.1
        h of the kernel.
    question : {"canonical", "per_class", "positive", "top_label"}, default "canonical"
        All classes together, the sum over classes; each class, their mean; class 1 of two; or the
        top label.
    p : {1, 2}, default 1
        The power of the gap.
    floor : float, default 0.0
        For "canonical": the smallest sum of kernels to divide by. The released code uses 1e-10.
    weight : Tensor, optional
        Shape (K,): weight of a case by its label; by default all equal.
    ignore_index : int, default -100
        A class to ignore, such as the pixels outside a region.
    max_cases : int, default 2048
        Maximum number of cases to compare, spread evenly over those that count.

    See Also
    --------
    kde_ece : the metric.
    torch.losses.MMCE : another kernel.

    Examples
    --------
    >>> p = torch.tensor([[0.6, 0.4], [0.1, 0.9]])
    >>> KDECalibration(question="top_label")(p.log(), torch.tensor([0, 1]))
    tensor(0.2500)
    """

    _function = staticmethod(kde_term)
    _own = ("bandwidth", "question", "p", "floor", "max_cases")

    def __init__(
        self,
        bandwidth: float = 0.1,
        *,
        question: Question = "canonical",
        p: Literal[1, 2] = 1,
        floor: float = 0.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        max_cases: int = MAX_CASES,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index)
        _check(question, p, bandwidth, floor)
        self.bandwidth, self.question, self.p, self.floor = bandwidth, question, p, floor
        self.max_cases = positive_integer("max_cases", max_cases)
