"""Predictions that are tensors, checked on the device where they are.

The rules and the messages are those of `raterwise.predictions`, which checks arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from raterwise.arrays import choose
from raterwise.binning import unit_in_last_place
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.kernels import _torch as kernels
from raterwise.kernels._torch_questions import TensorRows
from raterwise.labels import Labels
from raterwise.predictions import Predictions, row_sum_tolerance

__all__ = [
    "TensorCases",
    "explain_bad_row",
    "hits_of",
    "numbers",
    "rated_cases",
    "weighted_cases",
    "weights_of",
]

HOST_CHUNK, DEVICE_CHUNK = 1 << 21, 1 << 27
"""How many float64 numbers the work on a chunk may need: 16 MB for caches, 1 GB on a GPU."""


class TensorCases(NamedTuple):
    """Checked shapes: probabilities (N, K) with classes (N,) or label counts (N, K)."""

    probs: Tensor
    classes: Tensor | None
    counts: Tensor | None
    weights: Tensor | None
    tolerance: float
    rounding: float = 0.0
    """One unit in the last place of the type that the probabilities came in."""

    @staticmethod
    def of(probs: Tensor, labels: Any, weights: Any = None, *, check: bool = True) -> TensorCases:
        """Return the cases; `labels` is a Labels, (N,) classes or (N, K) counts.

        Labels and weights are moved to the device of the probabilities. `check=False` trusts the
        values, which spares the device from waiting for the answer.
        """
        array = _probabilities(probs)
        classes, counts = _labels(labels, array)
        tolerance, rounding = row_sum_tolerance(probs), _rounding(probs.dtype)
        cases = TensorCases(array, classes, counts, None, tolerance, rounding)
        if check:
            _check_labels(cases)
        if weights is None:
            return cases
        return cases._replace(weights=weights_of(weights, array[:, 0], check=check))

    def on_host(self) -> Predictions:
        """Return the cases as predictions that share the memory of tensors on the CPU."""
        classes = self.probs.shape[1]
        if self.classes is not None:
            labels = Labels(classes, classes=self.classes.numpy())
        else:
            assert self.counts is not None
            labels = Labels(classes, histogram=self.counts.long().numpy())
        weights = None if self.weights is None else self.weights.numpy()
        return Predictions(
            self.probs.numpy(), labels, weights=weights, tolerance=self.tolerance,
            given_rounding=self.rounding,
        )  # fmt: skip

    def chunks(self, values_per_row: int, *, check: bool = True) -> Iterator[TensorRows]:
        """Yield the cases in chunks, their probabilities checked."""
        budget = HOST_CHUNK if self.probs.device.type == "cpu" else DEVICE_CHUNK
        step = max(1024, budget // values_per_row)
        for start in range(0, len(self.probs), step):
            part = slice(start, start + step)
            probs = self.probs[part]
            reading = kernels.read_rows(probs, self.tolerance, check)
            if reading.bad >= 0:
                raise explain_bad_row(self.probs, start + reading.bad, self.tolerance)
            yield TensorRows(
                probs,
                reading,
                None if self.classes is None else self.classes[part],
                None if self.counts is None else self.counts[part].double(),
                None if self.weights is None else self.weights[part],
            )


def _rounding(dtype: torch.dtype) -> float:
    """As for arrays, which a bfloat16 tensor becomes one of as float32."""
    numpy_types = {torch.float64: "float64", torch.float16: "float16"}
    return unit_in_last_place(numpy_types.get(dtype, "float32"))


def _probabilities(probs: Tensor) -> Tensor:
    if not probs.is_floating_point():
        raise InvalidTypeError(f"probs: must be floating point; got {probs.dtype}")
    array = probs.detach()
    if array.dtype not in (torch.float32, torch.float64):
        array = array.float()
    if array.ndim == 1:
        array = torch.stack((1 - array, array), dim=1)
    if array.ndim != 2 or array.shape[1] < 2 or len(array) == 0:
        raise InvalidInputError(
            "probs: must be (N, K) with at least 1 case and 2 classes, or (N,) for the probability "
            f"of class 1; got shape {tuple(probs.shape)}"
        )
    return array


def _labels(labels: Any, probs: Tensor) -> tuple[Tensor | None, Tensor | None]:
    if isinstance(labels, Labels):
        given = labels.classes if labels.classes is not None else labels.counts
    else:
        given = labels
    tensor = torch.as_tensor(given, device=probs.device)
    if tensor.shape == (len(probs),):
        if tensor.is_floating_point():
            raise InvalidTypeError(f"labels: classes must be integers; got {tensor.dtype}")
        return tensor.long(), None
    if tensor.shape == probs.shape:
        return None, tensor
    raise InvalidInputError(
        f"labels: must be ({len(probs)},) classes or {tuple(probs.shape)} label counts, as probs; "
        f"got shape {tuple(tensor.shape)}"
    )


def weights_of(weights: Any, like: Tensor, *, check: bool = True) -> Tensor:
    """Return case weights as float64 on the device of `like`, which has a value per case."""
    given = torch.as_tensor(weights, device=like.device).double()
    if given.shape != like.shape:
        raise InvalidInputError(
            f"weights: must have one value per case; got shape {tuple(given.shape)} "
            f"for {len(like)} cases"
        )
    if check:
        if len(bad := (~(given.isfinite() & (given >= 0))).nonzero()):
            case = int(bad[0, 0])
            raise InvalidInputError(
                f"weights: must be finite and not negative; case {case} has {given[case].item()}"
            )
        if not bool(given.any()):
            raise InvalidInputError("weights: at least one must be positive; all are 0")
    return given


def _check_labels(cases: TensorCases) -> None:
    classes = cases.probs.shape[1]
    if cases.classes is not None:
        low, high = (int(bound) for bound in torch.aminmax(cases.classes))
        if low < 0 or high >= classes:
            raise InvalidInputError(
                f"labels: must be classes 0 … {classes - 1}; got {low if low < 0 else high}"
            )
        return
    assert cases.counts is not None
    wrong = ~(cases.counts >= 0)  # NaN too
    if cases.counts.is_floating_point():
        wrong |= cases.counts != cases.counts.floor()
    if bool(wrong.any()):
        case, k = (int(i) for i in wrong.nonzero()[0])
        raise InvalidInputError(
            "labels: counts must be whole and not negative; "
            f"case {case}, class {k} has {cases.counts[case, k].item()}"
        )


def rated_cases(cases: TensorCases, on_unrated: str) -> TensorCases:
    """Return the cases that somebody rated; with "error" that must be all."""
    choose("on_unrated", on_unrated, ("error", "drop"))
    if cases.counts is None:
        return cases
    rated = cases.counts.sum(dim=1) > 0
    if bool(rated.all()):
        return cases
    if on_unrated == "error":
        unrated = (~rated).nonzero()[:, 0]
        raise InvalidInputError(
            f"labels: every case needs a rating; {len(unrated)} of {len(rated)} have none "
            f'(the first is case {int(unrated[0])}); on_unrated="drop" leaves them out'
        )
    weights = None if cases.weights is None else cases.weights[rated]
    return cases._replace(probs=cases.probs[rated], counts=cases.counts[rated], weights=weights)


def weighted_cases(cases: TensorCases) -> TensorCases:
    """Return the cases that have weight: 0 times an infinite score would not be nothing."""
    if cases.weights is None or bool((here := cases.weights > 0).all()):
        return cases
    return TensorCases(
        cases.probs[here],
        None if cases.classes is None else cases.classes[here],
        None if cases.counts is None else cases.counts[here],
        cases.weights[here],
        cases.tolerance,
        cases.rounding,
    )


def explain_bad_row(probs: Tensor, row: int, tolerance: float) -> InvalidInputError:
    """Say what is wrong with `row`, the first bad one of `probs`."""
    values = probs[row].double().cpu()
    if missing := int(probs.isnan().sum()) if bool(values.isnan().any()) else 0:
        return InvalidInputError(
            f"probs: must not contain NaN; {missing} values are NaN, the first in row {row}"
        )
    outside = values[~((values >= 0) & (values <= 1))]
    if len(outside):
        hint = "" if bool(outside[0].isinf()) else " (logits need a softmax first)"
        return InvalidInputError(
            f"probs: must lie in [0, 1]; row {row} holds {outside[0].item():.6g}{hint}"
        )
    return InvalidInputError(
        f"probs: rows must sum to 1 within {tolerance:.0e}; "
        f"row {row} sums to {values.sum().item():.6g}"
    )


def numbers(values: Any, name: str, like: Tensor | None = None) -> Tensor:
    """Return (N,) numbers without NaN as a tensor, on the device of `like` where that is given."""
    tensor = torch.as_tensor(values, device=None if like is None else like.device).detach()
    if tensor.ndim != 1 or len(tensor) == 0:
        raise InvalidInputError(
            f"{name}: must be 1-dimensional with at least one case; got shape {tuple(tensor.shape)}"
        )
    if missing := int(tensor.isnan().sum()):
        raise InvalidInputError(f"{name}: must not contain NaN; {missing} values are NaN")
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.double()


def hits_of(correct: Any, score: Tensor) -> Tensor:
    """Return which cases are right, or the fraction of raters who say so."""
    hits = torch.as_tensor(correct, device=score.device).detach()
    if hits.shape != score.shape:
        raise InvalidInputError(f"correct: must match confidence; got {len(hits)} for {len(score)}")
    if hits.dtype != torch.bool and len(outside := (~((hits >= 0) & (hits <= 1))).nonzero()):
        case = int(outside[0, 0])
        raise InvalidInputError(f"correct: must lie in [0, 1]; case {case} has {hits[case].item()}")
    return hits
