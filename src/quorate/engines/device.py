"""One pass over predictions that are tensors, on the device where they are.

The tables come out as those of `engines.local`, up to the order of additions; only they, and not
the predictions, are copied to the host. Nothing here is imported unless a tensor is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from quorate.arrays import choose
from quorate.engines import local
from quorate.errors import InvalidInputError, InvalidTypeError
from quorate.kernels import _torch as kernels
from quorate.kernels import _triton
from quorate.kernels._torch_questions import Scored, TensorRows, score
from quorate.labels import Labels
from quorate.predictions import Predictions, row_sum_tolerance
from quorate.questions import Question, ScoredCases
from quorate.summaries import BinPlan, BinSums, SoftBinPlan, SortedPlan, SortedScores

__all__ = ["TensorCases", "add_cases", "can_summarise", "rated_cases", "summarise"]

Plan = BinPlan | SoftBinPlan | SortedPlan

HOST_CHUNK, DEVICE_CHUNK = 1 << 21, 1 << 26
"""How many float64 numbers the work on a chunk may need: 16 MB for caches, 512 MB on a GPU."""


class TensorCases(NamedTuple):
    """Checked shapes: probabilities (N, K) with classes (N,) or label counts (N, K)."""

    probs: Tensor
    classes: Tensor | None
    counts: Tensor | None
    weights: Tensor | None
    tolerance: float

    @staticmethod
    def of(probs: Tensor, labels: Any, weights: Any = None, *, check: bool = True) -> TensorCases:
        """Return the cases; `labels` is a Labels, (N,) classes or (N, K) counts.

        Labels and weights are moved to the device of the probabilities. `check=False` trusts the
        values, which spares the device from waiting for the answer.
        """
        array = _probabilities(probs)
        classes, counts = _labels(labels, array)
        cases = TensorCases(array, classes, counts, None, row_sum_tolerance(probs))
        if check:
            _check_labels(cases)
        return cases if weights is None else cases._weighted(weights, check)

    def _weighted(self, weights: Any, check: bool) -> TensorCases:
        given = torch.as_tensor(weights, device=self.probs.device).double()
        if given.shape != (len(self.probs),):
            raise InvalidInputError(
                f"weights: must have one value per case; got shape {tuple(given.shape)} "
                f"for {len(self.probs)} cases"
            )
        if check and not bool((given.isfinite() & (given >= 0)).all()):
            raise InvalidInputError("weights: must be finite and not negative; some are not")
        return self._replace(weights=given)

    def on_host(self) -> Predictions:
        """Return the cases as predictions that share the memory of tensors on the CPU."""
        classes = self.probs.shape[1]
        if self.classes is not None:
            labels = Labels(classes, classes=self.classes.numpy())
        else:
            assert self.counts is not None
            labels = Labels(classes, histogram=self.counts.long().numpy())
        weights = None if self.weights is None else self.weights.numpy()
        return Predictions(self.probs.numpy(), labels, weights=weights, tolerance=self.tolerance)

    def chunks(self, values_per_row: int, *, check: bool = True) -> Iterator[TensorRows]:
        """Yield the cases in chunks, their probabilities checked."""
        budget = HOST_CHUNK if self.probs.device.type == "cpu" else DEVICE_CHUNK
        step = max(1024, budget // values_per_row)
        for start in range(0, len(self.probs), step):
            part = slice(start, start + step)
            probs = self.probs[part]
            reading = kernels.read_rows(probs, self.tolerance, check)
            if reading.bad >= 0:
                raise _explain_bad_row(self.probs, start + reading.bad, self.tolerance)
            yield TensorRows(
                probs,
                reading,
                None if self.classes is None else self.classes[part],
                None if self.counts is None else self.counts[part].double(),
                None if self.weights is None else self.weights[part],
            )


def can_summarise(plan: object) -> bool:
    """Say whether a plan's summary can be made here: kept samples and ratings cannot."""
    return isinstance(plan, BinPlan | SoftBinPlan | SortedPlan) and isinstance(
        plan.question, Question
    )


def summarise(
    probs: Tensor,
    labels: Any,
    plans: Sequence[Plan],
    *,
    weights: Any = None,
    on_unrated: str = "error",
) -> dict[Plan, Any]:
    """Read every case once and return the summary of each plan, as `engines.local.summarise` does.

    `labels` is a Labels, (N,) classes or (N, K) label counts. Sorted scores come with equal ones
    merged; what depends on single cases (the kernel-density error) needs them apart.

    >>> plan = BinPlan(Question("top_label"), bins=2)
    >>> probs = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    >>> summarise(probs, torch.tensor([0, 0]), [plan])[plan].table.positive
    array([[0., 1.]])
    """
    cases = rated_cases(TensorCases.of(probs, labels, weights), on_unrated)
    classes = cases.probs.shape[1]
    binned = {plan: _zeros(plan, cases) for plan in plans if not isinstance(plan, SortedPlan)}
    ranked: dict[SortedPlan, list[Scored]] = {p: [] for p in plans if isinstance(p, SortedPlan)}
    add_cases(cases, binned)
    for rows in cases.chunks(16 + 2 * classes) if ranked else ():
        for asked, pieces in ranked.items():
            pieces.append(score(asked.question.name, asked.question.per, rows))
    return {
        **{plan: BinSums(plan, table.cpu().numpy()[None]) for plan, table in binned.items()},
        **{plan: _sorted_scores(plan, pieces, classes) for plan, pieces in ranked.items()},
    }


def add_cases(
    cases: TensorCases, tables: Mapping[BinPlan | SoftBinPlan, Tensor], *, check: bool = True
) -> None:
    """Add the cases to the table (channels, bins, fields) of each plan, in place."""
    if cases.probs.device.type == "cpu" and has_cpu_loops():
        summaries = local.summarise(cases.on_host(), list(tables))
        for plan, table in tables.items():
            table += torch.from_numpy(summaries[plan].sums[0])
        return
    if len(tables) == 1:
        ((plan, table),) = tables.items()
        if _added_directly(cases, plan, table, check):
            return
    bins = max((table.shape[1] for table in tables.values()), default=0)
    width = 16 + 2 * cases.probs.shape[1] + min(bins, kernels.FEW_BINS)
    for rows in cases.chunks(width, check=check) if tables else ():
        for plan, table in tables.items():
            add_rows(plan, rows, table)


def has_cpu_loops() -> bool:
    """Say whether the compiled loops for the CPU, much faster there, are installed."""
    return find_spec("numba") is not None


def _added_directly(
    cases: TensorCases, plan: BinPlan | SoftBinPlan, table: Tensor, check: bool
) -> bool:
    """Add single labels of weight 1 in one pass on a GPU: what large data is asked most."""
    probs, labels = cases.probs, cases.classes
    if not (
        _triton.can_run(probs)
        and isinstance(plan, BinPlan)
        and plan.question.name == "top_label"
        and plan.least_raters <= 1
        and labels is not None
        and cases.weights is None
        and probs.is_contiguous()
        and labels.is_contiguous()
        and probs.shape[1] <= _triton.MOST_CLASSES
        and table.shape[1] <= _triton.MOST_BINS
    ):
        return False
    edges = edges_of(plan, probs.device)
    sums, first_bad = _triton.top_label_sums(probs, labels, edges, cases.tolerance)
    if check and (bad := int(first_bad)) < len(probs):
        raise _explain_bad_row(probs, bad, cases.tolerance)
    table[0] += sums
    return True


def _zeros(plan: BinPlan | SoftBinPlan, cases: TensorCases) -> Tensor:
    channels = plan.question.channels(cases.probs.shape[1])
    shape = channels, len(plan.edges) - 1, kernels.FIELDS
    return torch.zeros(shape, dtype=torch.float64, device=cases.probs.device)


def edges_of(plan: BinPlan | SoftBinPlan, device: torch.device) -> Tensor:
    """Return the bins' edges on a device."""
    return torch.tensor(plan.edges, dtype=torch.float64, device=device)


def add_rows(plan: BinPlan | SoftBinPlan, rows: TensorRows, table: Tensor) -> None:
    """Add a chunk to `table` (channels, bins, fields) in place."""
    rows = rows.with_raters(plan.least_raters)
    if len(rows.probs) == 0:
        return
    scored = score(plan.question.name, plan.question.per, rows)
    edges = edges_of(plan, table.device)
    if isinstance(plan, BinPlan):
        kernels.add_bin_sums(
            scored.z, scored.mu, scored.v, scored.weights, scored.channel, edges, table
        )
        return
    for c in range(scored.z.shape[1]):
        kernels.add_soft_bin_sums(
            scored.z[:, c], scored.mu[:, c], scored.weights, plan.sigma, edges, table[c]
        )


def _sorted_scores(plan: SortedPlan, pieces: list[Scored], classes: int) -> SortedScores:
    z, mu, weights = (
        torch.cat([getattr(piece, name) for piece in pieces]) for name in ("z", "mu", "weights")
    )
    channels = plan.question.channels(classes)
    chosen = [piece.channel for piece in pieces if piece.channel is not None]
    own = torch.cat(chosen) if chosen else None
    parts = []
    for c in range(channels):
        rows: Any = slice(None) if own is None else own == c
        column = 0 if own is not None else c
        w = weights[rows]
        parts.append(kernels.score_masses(z[rows, column], w, w * mu[rows, column]))
    score_, mass, hits = (np.concatenate([p[i].cpu().numpy() for p in parts]) for i in range(3))
    channel = np.repeat(np.arange(channels), [len(p[0]) for p in parts])
    # A case of weight 0 is none; ours are merged, so its score may be there with no mass.
    here = mass > 0
    piece = ScoredCases(
        score_[here, None], (hits[here] / mass[here])[:, None], mass[here], channel=channel[here]
    )
    return SortedScores(plan, channels, 1, (piece,))


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
            f"(the first is case {int(unrated[0])})"
        )
    weights = None if cases.weights is None else cases.weights[rated]
    return cases._replace(probs=cases.probs[rated], counts=cases.counts[rated], weights=weights)


def _explain_bad_row(probs: Tensor, row: int, tolerance: float) -> InvalidInputError:
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
