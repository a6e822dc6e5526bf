"""Logits and targets as a flat list of cases, in full precision: what every loss begins with."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Literal, NamedTuple, ParamSpec

import torch
from torch import Tensor, nn

from raterwise import rules
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.rules import choose, positive_integer
from raterwise.tensors.cases import check_classes, check_not_negative

Params = ParamSpec("Params")

GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
REDUCTIONS = ("mean", "sum", "none")
Reduction = Literal["mean", "sum", "none"]


class Cases(NamedTuple):
    """M cases of K classes; ignored ones stay in place with `keep` 0, so shapes are static."""

    log_probs: Tensor
    """(M, K), float32 or float64."""
    counts: Tensor
    """(M, K): labels per class; or (M, 1) classes where every case has one label."""
    keep: Tensor
    """(M,): 1, or 0 where the case is ignored."""
    shape: tuple[int, ...]
    """What one value per case is shaped like: (N, …)."""

    @property
    def probs(self) -> Tensor:
        """(M, K)."""
        return self.log_probs.exp()

    @property
    def single(self) -> bool:
        """Whether every case has one label."""
        return not self.counts.is_floating_point()

    @property
    def frequencies(self) -> Tensor:
        """(M, K): μ, the fraction of the raters who chose each class; 0 where ignored."""
        if self.single:
            zeros = torch.zeros_like(self.log_probs)
            return zeros.scatter(1, self.counts, self.keep[:, None])
        return self.counts / self.counts.sum(dim=1, keepdim=True).clamp_min(1e-30)

    def chosen(self) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities that the labels ask for and how many labels ask: (M, C)."""
        if self.single:
            return self.log_probs.gather(1, self.counts), self.keep[:, None]
        return self.log_probs, self.counts

    def asked(self) -> tuple[Tensor, Tensor]:
        """Return the same with the fraction of the raters in place of their number."""
        if self.single:
            return self.chosen()
        return self.log_probs, self.frequencies

    def label_weights(self, weight: Tensor | None) -> Tensor:
        """(M,): the weight of a case by the classes its raters chose; 0 where ignored."""
        if weight is None:
            return self.keep
        return self.frequencies @ weight.to(self.log_probs)


def full_precision(loss: Callable[Params, Tensor]) -> Callable[Params, Tensor]:
    """Run a loss outside autocast, whose 16-bit products would lose the small differences."""

    @wraps(loss)
    def wrapped(*args: Params.args, **kwargs: Params.kwargs) -> Tensor:
        first = args[0] if args else next(iter(kwargs.values()))
        device = first.device.type if isinstance(first, Tensor) else "cpu"
        with torch.autocast(device, enabled=False):
            return loss(*args, **kwargs)

    return wrapped


def read_cases(logits: Tensor, targets: Tensor, ignore_index: int = -100) -> Cases:
    """Return the cases of logits (N, K, …) and targets: (N, …) classes or (N, K, …) counts.

    Labels of the class `ignore_index`, and cases without any other, are ignored.
    """
    _check(logits, targets)
    classes = logits.shape[1]
    log_probs = rows_of(logits).log_softmax(dim=1)
    shape = (logits.shape[0], *logits.shape[2:])
    if targets.ndim == logits.ndim:
        counts = rows_of(targets).to(log_probs.dtype)
        if _can_look_at(counts):
            check_not_negative(counts, "targets")
        if 0 <= ignore_index < classes:
            others = torch.arange(classes, device=counts.device) != ignore_index
            counts = counts * others
        keep = (counts.sum(dim=1) > 0).to(log_probs.dtype)
        return Cases(log_probs, counts, keep, shape)
    labels = targets.reshape(-1).long()
    ignored = labels == ignore_index
    labels = labels.masked_fill(ignored, 0)
    if _can_look_at(labels):  # a GPU checks by itself
        check_classes(labels, classes, "targets", " or ignore_index")
    return Cases(log_probs, labels[:, None], (~ignored).to(log_probs.dtype), shape)


def rows_of(values: Tensor) -> Tensor:
    """Return (N, K, …) as (M, K), 16-bit floats as float32."""
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    return values.movedim(1, -1).reshape(-1, values.shape[1])


def _check(logits: Tensor, targets: Tensor) -> None:
    for name, given in (("logits", logits), ("targets", targets)):
        if not isinstance(given, Tensor):
            raise InvalidTypeError(f"{name}: must be a tensor; got {type(given).__name__}")
        if given.layout != torch.strided:
            raise InvalidTypeError(f"{name}: must be a dense tensor; got {given.layout}")
    if not logits.is_floating_point():
        raise InvalidTypeError(f"logits: must be floating point; got {logits.dtype}")
    if logits.ndim < 2 or logits.shape[1] < 2:
        raise InvalidInputError(
            "logits: must be (N, K) or (N, K, H, W[, D]) with at least 2 classes; "
            f"got shape {tuple(logits.shape)}"
        )
    per_case = (logits.shape[0], *logits.shape[2:])
    if targets.ndim == logits.ndim - 1 and targets.is_floating_point():
        # Not taken where they are whole: a GPU, or compiled code, cannot look.
        raise InvalidTypeError(f"targets: classes must be integers; got {targets.dtype}")
    if tuple(targets.shape) in (per_case, tuple(logits.shape)):
        return
    if logits.ndim == 2 and targets.ndim in (1, 2):
        if targets.ndim == 2:
            rules.check_number_of_classes("targets", targets.shape[1], logits.shape[1], "logits")
        rules.check_number_of_cases("targets", len(targets), len(logits), "logits")
    raise rules.unfit_labels("targets", targets.shape, per_case, logits.shape, "logits")


def _can_look_at(values: Tensor) -> bool:
    # Asking a GPU for its values would make it wait, and stop torch.compile.
    return not torch.compiler.is_compiling() and values.device.type == "cpu" and values.numel() > 0


def class_weights(weight: Tensor | None, classes: int) -> None:
    """Raise where class weights are not one per class, or some are negative."""
    if weight is not None and tuple(weight.shape) != (classes,):
        raise InvalidInputError(
            f"weight: must have one value per class, ({classes},); got shape {tuple(weight.shape)}"
        )
    if weight is not None and _can_look_at(weight) and not bool((weight >= 0).all()):
        bad = weight[~(weight >= 0)][0].item()
        raise InvalidInputError(f"weight: must not be negative or NaN; got {bad:g}")


def reduce(
    terms: Tensor, share: Tensor, cases: Cases, weight: Tensor | None, reduction: str
) -> Tensor:
    """Return Σ_k share_k w_k terms_k of each case, or their sum, or their weighted mean.

    `terms` (M, C) is the loss if the label were that class, `share` (M, C) how often it is. The
    mean is over Σ share w, as in `torch.nn.CrossEntropyLoss`; it is 0 where every case is ignored.
    """
    choose("reduction", reduction, REDUCTIONS)
    class_weights(weight, cases.log_probs.shape[1])
    if weight is not None:
        w = weight.to(terms)
        share = share * (w[cases.counts[:, 0]][:, None] if cases.single else w)
    each = torch.where(share > 0, share * terms, 0).sum(dim=1)
    if reduction == "none":
        return each.reshape(cases.shape)
    if reduction == "sum":
        return each.sum()
    return ratio(each.sum(), share.sum())


def ratio(total: Tensor, mass: Tensor) -> Tensor:
    """Return total / mass, and 0 where there is no mass."""
    return total / torch.where(mass > 0, mass, torch.ones_like(mass))


def subset(cases: Cases, most: int) -> Cases:
    """Return at most `most` of the cases, spread evenly over those that are not ignored.

    Terms over pairs of cases cannot take every voxel of a volume. The i-th kept case is at the
    fraction i φ (mod 1) of the list, with the golden ratio φ: an even spread that no image width
    can fall in step with, without random numbers.
    """
    positive_integer("max_cases", most)
    total = len(cases.keep)
    if total <= most:
        return cases
    kept_first = torch.argsort(cases.keep, descending=True, stable=True)
    kept = cases.keep.sum()
    i = torch.arange(most, device=cases.keep.device)
    spread = (torch.frac(i.double() * GOLDEN_RATIO) * kept).long()
    rows = kept_first[torch.where(kept > most, spread, i)]
    return Cases(cases.log_probs[rows], cases.counts[rows], (i < kept).to(cases.keep), (most,))


class LossModule(nn.Module):
    """A loss as a module: class weights, an ignored class, and what else its function takes."""

    weight: Tensor | None
    _function: Callable[..., Tensor]
    _own: tuple[str, ...] = ()
    """Attributes that the function takes by name, besides those two."""

    def __init__(self, *, weight: Tensor | None = None, ignore_index: int = -100) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.register_buffer("weight", weight)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of logits (N, K, …) and classes (N, …) or label counts (N, K, …)."""
        options = {name: getattr(self, name) for name in ("weight", "ignore_index", *self._own)}
        return self._function(logits, targets, **options)

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._own)


class PerCaseLoss(LossModule):
    """One of single cases, with a reduction."""

    def __init__(
        self,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index)
        choose("reduction", reduction, REDUCTIONS)
        self.reduction = reduction
        self._own = (*self._own, "reduction")
