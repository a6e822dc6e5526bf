"""Predictions that are tensors, checked on the device where they are.

The rules and the messages are those of `raterwise.rules`, as for arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from raterwise import rules
from raterwise.arrays import as_array
from raterwise.binning import unit_in_last_place
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.kernels import _torch as kernels
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.predictions.checks import row_sum_tolerance
from raterwise.rules import choose
from raterwise.tensors.questions import TensorRows

HOST_CHUNK, DEVICE_CHUNK = 1 << 21, 1 << 27
"""How many float64 numbers the work on a chunk may need: 16 MB for caches, 1 GB on a GPU."""


def _rounding(dtype: torch.dtype) -> float:
    """As for arrays, which a bfloat16 tensor becomes one of as float32."""
    numpy_types = {torch.float64: "float64", torch.float16: "float16"}
    return unit_in_last_place(numpy_types.get(dtype, "float32"))


def as_tensor(values: Any, name: str, device: torch.device | None = None) -> Tensor:
    """Return numbers as a tensor without gradient; what is none already, as `arrays` reads it."""
    if not isinstance(values, Tensor):
        return torch.as_tensor(as_array(values, name), device=device)
    if values.layout != torch.strided:
        raise InvalidTypeError(f"{name}: must be a dense tensor of numbers; got {values.layout}")
    if values.is_complex():
        first = values.flatten()[0].item() if values.numel() else None
        raise rules.not_numbers(name, values.dtype, first)
    return values.detach() if device is None else values.detach().to(device)


class TensorCases(NamedTuple):
    """Checked shapes: probabilities (N, K) with classes (N,) or label counts (N, K)."""

    probs: Tensor
    classes: Tensor | None
    counts: Tensor | None
    weights: Tensor | None
    tolerance: float
    one_column: bool = False
    """Whether (N,) probabilities of class 1 were given: messages speak of these."""
    kept: Tensor | None = None
    """(N,): which of the cases given these are; None where they are all of them."""
    rounding: float = 0.0
    """One unit in the last place of the type that the probabilities came in."""

    @staticmethod
    def of(
        probs: Any,
        labels: Any,
        weights: Any = None,
        *,
        check: bool = True,
        kept: Tensor | None = None,
    ) -> TensorCases:
        """Return the cases; `labels` is a Labels, (N,) classes or (N, K) counts.

        Labels and weights are moved to the device of the probabilities. `check=False` trusts the
        values, which spares the device from waiting for the answer.
        """
        given = as_tensor(probs, "probs")
        rules.check_probabilities_shape("probs", given.shape)
        array = _two_dimensional(given)
        classes, counts = _labels(labels, array, check, kept)
        tolerance = row_sum_tolerance(given)
        cases = TensorCases(
            array, classes, counts, None, tolerance, one_column=given.ndim == 1, kept=kept,
            rounding=_rounding(given.dtype),
        )  # fmt: skip
        if weights is None:
            return cases
        return cases._replace(weights=weights_of(weights, array[:, 0], check=check, kept=kept))

    def on_host(self) -> Predictions:
        """Return the cases as predictions that share the memory of tensors on the CPU."""
        classes = self.probs.shape[1]
        if self.classes is not None:
            labels = Labels(classes, classes=self.classes.numpy())
        else:
            assert self.counts is not None
            labels = Labels(classes, histogram=self.counts.long().numpy())
        return Predictions(
            (self.probs[:, 1] if self.one_column else self.probs).numpy(),
            labels,
            weights=None if self.weights is None else self.weights.numpy(),
            tolerance=self.tolerance,
            kept=None if self.kept is None else self.kept.numpy(),
            given_rounding=self.rounding,
        )

    def chunks(self, values_per_row: int, *, check: bool = True) -> Iterator[TensorRows]:
        """Yield the cases in chunks, their probabilities checked."""
        budget = HOST_CHUNK if self.probs.device.type == "cpu" else DEVICE_CHUNK
        step = max(1024, budget // values_per_row)
        for start in range(0, len(self.probs), step):
            part = slice(start, start + step)
            probs = self.probs[part]
            reading = kernels.read_rows(probs, self.tolerance, check)
            if reading.bad >= 0:
                probs = _settled(probs)
                reading = kernels.read_rows(probs, self.tolerance, check)
            if reading.bad >= 0:
                raise self.bad_row(start + reading.bad)
            yield TensorRows(
                probs,
                reading,
                None if self.classes is None else self.classes[part],
                None if self.counts is None else self.counts[part].double(),
                None if self.weights is None else self.weights[part],
            )

    def take(self, here: Tensor) -> TensorCases:
        """Return the cases where the mask `here` is true."""
        rows = here.nonzero()[:, 0]
        return self._replace(
            probs=self.probs[rows],
            classes=None if self.classes is None else self.classes[rows],
            counts=None if self.counts is None else self.counts[rows],
            weights=None if self.weights is None else self.weights[rows],
            kept=rows if self.kept is None else self.kept[rows],
        )

    def first(self, chosen: Tensor) -> str:
        """How to name the first few cases that the mask `chosen` picks."""
        rows = chosen.nonzero()[: rules.FIRST_NAMED + 1, 0]
        return rules.first_cases(_given(int(row), self.kept) for row in rows)

    def bad_row(self, row: int) -> InvalidInputError:
        """Say what is wrong with `row`, the first with bad probabilities."""
        given = self.probs[:, 1:] if self.one_column else self.probs
        values = given[row].double().tolist()
        return rules.bad_row(
            "probs",
            _given(row, self.kept),
            values,
            self.tolerance,
            lambda: int(given.isnan().sum()),
        )


def _settled(probs: Tensor) -> Tensor:
    """Return probabilities without the rounding that `arrays.settled` takes away."""
    near = (probs - 0.5).abs() <= 0.5 + rules.OVERSHOOT
    return torch.where(near, probs.clamp(0, 1), probs)


def _given(row: int, kept: Tensor | None) -> int:
    """Return the number that a case had when it was given."""
    return row if kept is None else int(kept[row])


def _two_dimensional(probs: Tensor) -> Tensor:
    if not probs.is_floating_point():
        probs = probs.double()
    if probs.dtype not in (torch.float32, torch.float64):
        probs = probs.float()
    return torch.stack((1 - probs, probs), dim=1) if probs.ndim == 1 else probs


def _labels(
    labels: Any, probs: Tensor, check: bool, kept: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    if isinstance(labels, Labels):
        rules.check_number_of_classes("labels", labels.num_classes, probs.shape[1])
        labels = labels.classes if labels.classes is not None else labels.counts
    tensor = as_tensor(labels, "labels", probs.device)
    cases, classes = probs.shape
    if tensor.ndim == 1:
        whole = _whole(tensor, check)
        if check:
            check_classes(whole, classes, kept=kept)
        rules.check_number_of_cases("labels", len(tensor), cases)
        return whole, None
    if tensor.ndim != 2:
        raise rules.unfit_labels("labels", tensor.shape, (cases,), probs.shape, "probs")
    if check:
        if tensor.is_floating_point():
            _whole(tensor, check=True)
        check_not_negative(tensor, kept=kept)
    rules.check_number_of_classes("labels", tensor.shape[1], classes)
    rules.check_number_of_cases("labels", len(tensor), cases)
    return None, tensor


def _whole(values: Tensor, check: bool) -> Tensor:
    """Return whole numbers as such; of floating-point numbers, fractions are an error."""
    whole = values.long()
    if check and values.is_floating_point():
        if not bool(values.isfinite().all()):
            raise rules.not_whole("labels", math.inf, int(values.isnan().sum()))
        if bool((fractions := whole != values).any()):
            raise rules.not_whole("labels", values[fractions][0].item(), 0)
    return whole


def check_classes(
    classes: Tensor,
    number: int,
    name: str = "labels",
    besides: str = "",
    *,
    kept: Tensor | None = None,
) -> None:
    """Refuse a label that is no class; `besides` says what else it may be."""
    if classes.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(classes))
    if low < 0 or high >= number:
        entry = int(((classes < 0) | (classes >= number)).nonzero()[0, 0])
        raise rules.not_a_class(name, _given(entry, kept), int(classes[entry]), number, besides)


def check_not_negative(counts: Tensor, name: str = "labels", *, kept: Tensor | None = None) -> None:
    """Refuse counts (N, K) that are negative, or NaN."""
    if bool((counts >= 0).all()):
        return
    case, k = (int(i) for i in (~(counts >= 0)).nonzero()[0])
    if missing := int(counts.isnan().sum()):
        raise rules.contains_nan(name, missing, case)
    raise rules.negative_count(name, _given(case, kept), k, counts[case, k].item())


def weights_of(
    weights: Any, like: Tensor, *, check: bool = True, kept: Tensor | None = None
) -> Tensor:
    """Return case weights as float64 on the device of `like`, which has a value per case."""
    given = as_tensor(weights, "weights", like.device).double()
    rules.check_one_per_case("weights", given.shape, len(like))
    if check:
        if len(bad := (~(given.isfinite() & (given >= 0))).nonzero()):
            case = int(bad[0, 0])
            raise rules.bad_weight("weights", _given(case, kept), given[case].item())
        if not bool(given.any()):
            raise rules.no_weight("weights")
        rules.check_sum_of_weights("weights", float((given / len(like)).sum()) * len(like))
    return given


def rated_cases(cases: TensorCases, on_unrated: str) -> TensorCases:
    """Return the cases that somebody rated; with "error" that must be all."""
    choose("on_unrated", on_unrated, ("error", "drop"))
    if cases.counts is None:
        return cases
    rated = cases.counts.sum(dim=1) > 0
    if bool(rated.all()):
        return cases
    if on_unrated == "error":
        missing = len(rated) - int(rated.sum())
        as_raters = bool(cases.counts.max() < cases.counts.shape[1])
        first = cases.first(~rated)
        raise rules.unrated("labels", missing, len(rated), first, as_raters=as_raters)
    if not bool(rated.any()):
        raise rules.none_rated("labels")
    return cases.take(rated)


def require_raters(cases: TensorCases, least: int) -> None:
    """Raise where some case has fewer than `least` labels."""
    if cases.counts is None:
        few = torch.full((len(cases.probs),), least > 1)
    else:
        few = cases.counts.sum(dim=1) < least
    if number := int(few.sum()):
        first = cases.first(few)
        raise rules.too_few_raters("labels", least, number, len(few), first, dropping=False)


def weighted_cases(cases: TensorCases) -> TensorCases:
    """Return the cases that have weight: 0 times an infinite score would not be nothing."""
    if cases.weights is None or bool((here := cases.weights > 0).all()):
        return cases
    return cases.take(here)


def numbers(values: Any, name: str, like: Tensor | None = None) -> Tensor:
    """Return (N,) numbers without NaN as a tensor, on the device of `like` where that is given."""
    tensor = as_tensor(values, name, None if like is None else like.device)
    rules.check_dimensions(name, tensor.shape, (1,))
    if len(tensor) == 0:
        raise InvalidInputError(f"{name}: must hold at least one case; got none")
    if missing := int(tensor.isnan().sum()):
        raise rules.contains_nan(name, missing)
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.double()


def hits_of(correct: Any, score: Tensor) -> Tensor:
    """Return which cases are right, or the fraction of raters who say so."""
    hits = as_tensor(correct, "correct", score.device)
    rules.check_dimensions("correct", hits.shape, (1,))
    if len(hits) != len(score):
        raise InvalidInputError(f"correct: must match confidence; got {len(hits)} for {len(score)}")
    if hits.dtype != torch.bool and len(outside := (~((hits >= 0) & (hits <= 1))).nonzero()):
        case = int(outside[0, 0])
        raise InvalidInputError(f"correct: must lie in [0, 1]; case {case} has {hits[case].item()}")
    return hits
