"""One pass over predictions that are tensors, on the device where they are.

The tables come out as those of `summaries.summarise`, up to the order of additions; only they, and
not the predictions, are copied to the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from raterwise.binning import edges_for
from raterwise.kernels import _torch as kernels
from raterwise.kernels import _triton
from raterwise.questions import QUESTIONS, Event, ScoredCases
from raterwise.summaries import BinPlan, BinSums, ScoreMasses, SortedPlan, SortedScores, one_pass
from raterwise.tensors.cases import (
    TensorCases,
    hits_of,
    numbers,
    rated_cases,
    weighted_cases,
    weights_of,
)
from raterwise.tensors.questions import PER_CASE_SCORES, Scored, TensorRows, score

Plan = Any
"""A `BinPlan` or a `SortedPlan`."""


def can_summarise(plan: object) -> bool:
    """Say whether a plan's summary can be made here: kept samples and ratings cannot."""
    if getattr(plan, "kind", "") not in ("bins", "scores"):
        return False
    return getattr(plan, "question").name in (*QUESTIONS, Event.name, *PER_CASE_SCORES)  # noqa: B009


def summarise(
    probs: Tensor,
    labels: Any,
    plans: Sequence[Plan],
    *,
    weights: Any = None,
    on_unrated: str = "error",
    merge_ties: bool = True,
) -> dict[Plan, Any]:
    """Read every case once and return the summary of each plan, as `summaries.summarise` does.

    Parameters
    ----------
    probs : Tensor
        (N, K), or (N,) for the probability of class 1 of two.
    labels : Labels or Tensor
        (N,) classes or (N, K) label counts.
    plans : sequence of plans
        What to sum, such as `BinPlan`.
    weights : array or Tensor, optional
        (N,): of the cases.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    merge_ties : bool, default True
        Merge equal scores in sorted scores; methods that leave out one case at a time (the
        kernel-density error) need them separate.

    Returns
    -------
    dict
        The summary of each plan, on the host.

    See Also
    --------
    torch.metrics : metrics that keep such summaries over batches.

    Examples
    --------
    >>> from raterwise.questions import Question
    >>> plan = BinPlan(Question("top_label"), bins=2)
    >>> probs = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    >>> summarise(probs, torch.tensor([0, 0]), [plan])[plan].table.positive
    array([[0., 1.]])
    """
    cases = rated_cases(weighted_cases(TensorCases.of(probs, labels, weights)), on_unrated)
    classes = cases.probs.shape[1]
    binned: dict[Any, Tensor] = {plan: _zeros(plan, cases) for plan in plans if plan.kind == "bins"}
    ranked: dict[Any, list[Scored]] = {p: [] for p in plans if p.kind == "scores"}
    add_cases(cases, binned)
    for rows in cases.chunks(16 + 2 * classes) if ranked else ():
        for asked, pieces in ranked.items():
            pieces.append(score(asked.question, rows, cases.rounding))
    return {
        **{plan: BinSums(plan, table.cpu().numpy()[None]) for plan, table in binned.items()},
        **{
            plan: _sorted_scores(plan, pieces, classes, merge_ties)
            for plan, pieces in ranked.items()
        },
    }


def add_cases(cases: TensorCases, tables: Mapping[BinPlan, Tensor], *, check: bool = True) -> None:
    """Add the cases to the table (channels, bins, fields) of each plan, in place."""
    if not tables:
        return
    # The loops for the CPU trust labels and refuse bad rows: unchecked cases are not theirs.
    if check and cases.probs.device.type == "cpu" and has_cpu_loops():
        summaries = one_pass.summarise(cases.on_host(), list(tables))
        for plan, table in tables.items():
            table += torch.from_numpy(summaries[plan].sums[0])
        return
    if len(tables) == 1:
        ((plan, table),) = tables.items()
        if _added_directly(cases, plan, table, check):
            return
    width = 24  # the numbers of a case that PyTorch's operations make on their way
    if any(plan.question.name not in ("top_label", "predicted_class") for plan in tables):
        width += 2 * cases.probs.shape[1]
    if not _triton.can_run(cases.probs):
        width += min(max(table.shape[1] for table in tables.values()), kernels.FEW_BINS)
    for rows in cases.chunks(width, check=check):
        for plan, table in tables.items():
            add_rows(plan, rows, table, cases.rounding)


def has_cpu_loops() -> bool:
    """Say whether the compiled loops for the CPU, much faster there, are installed."""
    return find_spec("numba") is not None


def _added_directly(cases: TensorCases, plan: BinPlan, table: Tensor, check: bool) -> bool:
    """Add single labels of weight 1 in one pass on a GPU: what large data is asked most."""
    probs, labels = cases.probs, cases.classes
    if not (
        _triton.can_run(probs)
        and plan.spread is None
        and plan.least_raters <= 1
        and labels is not None
        and cases.weights is None
        and probs.is_contiguous()
        and labels.is_contiguous()
        and probs.shape[1] <= _triton.MOST_CLASSES
        and table[..., 0].numel() <= _triton.MOST_CELLS
    ):
        return False
    question, edges = plan.question.name, edges_of(plan, probs.device, cases.rounding)
    few = len(edges) - 1 <= _triton.MOST_BINS
    if question == "top_label" and few:
        sums, first_bad = _triton.top_label_sums(probs, labels, edges, cases.tolerance)
    elif question in ("top_label", "predicted_class"):
        by_class = question == "predicted_class"
        sums, first_bad = _triton.cell_sums(
            probs, labels, edges, cases.tolerance, by_class=by_class
        )
    elif question == "per_class" and few:
        first_bad = _triton.read_rows(probs, cases.tolerance)[2] if check else torch.tensor(0)
        sums = _triton.per_class_sums(probs, labels, edges)
    else:
        return False
    if check and int(first_bad) < len(probs):
        return False  # bad or only rounded: whoever reads chunk by chunk will say
    table += sums
    return True


def _zeros(plan: BinPlan, cases: TensorCases) -> Tensor:
    channels = plan.question.channels(cases.probs.shape[1])
    shape = channels, len(plan.edges) - 1, kernels.FIELDS
    return torch.zeros(shape, dtype=torch.float64, device=cases.probs.device)


@lru_cache(maxsize=64)
def edges_of(plan: BinPlan, device: torch.device, rounding: float = 0.0) -> Tensor:
    """Return the edges that scores with that rounding are compared with, on a device.

    It is the same tensor each time, which spares a copy.
    """
    return torch.tensor(edges_for(plan.edges, rounding), dtype=torch.float64, device=device)


def add_rows(plan: BinPlan, rows: TensorRows, table: Tensor, rounding: float) -> None:
    """Add a chunk, whose probabilities have that rounding, to `table` (channels, bins, fields)."""
    rows = rows.with_raters(plan.least_raters)
    if len(rows.probs) == 0:
        return
    scored = score(plan.question, rows, rounding)
    compared = edges_of(plan, table.device, rounding)
    if plan.spread is None:
        kernels.add_bin_sums(
            scored.z, scored.mu, scored.v, scored.weights, scored.channel, compared, table
        )
        return
    edges = edges_of(plan, table.device)
    for c in range(scored.z.shape[1]):
        kernels.add_soft_bin_sums(
            scored.z[:, c], scored.mu[:, c], scored.weights, plan.spread, edges, compared, table[c]
        )


def _sorted_scores(
    plan: SortedPlan, pieces: list[Scored], classes: int, merge_ties: bool
) -> SortedScores:
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
        scores = z[rows, column], weights[rows], weights[rows] * mu[rows, column]
        parts.append(_on_host(*(kernels.score_masses(*scores) if merge_ties else scores), c))
    return SortedScores(plan, channels, 1, tuple(parts))


def _on_host(score: Tensor, mass: Tensor, hits: Tensor, channel: int) -> ScoredCases:
    """Return the scores of one channel that have any mass, divided and copied in one go."""
    here = mass > 0  # a case of weight 0 is none
    if not bool(here.all()):
        score, mass, hits = score[here], mass[here], hits[here]
    columns = _copied(torch.stack((score.double(), hits / mass, mass)))
    own = np.full(columns.shape[1], channel)
    return ScoredCases(columns[0, :, None], columns[1, :, None], columns[2], channel=own)


def _copied(values: Tensor) -> NDArray[np.float64]:
    """Return values on the host, through memory that a GPU can write to by itself."""
    if values.device.type != "cuda":
        return values.numpy()
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=True).copy_(values).numpy()


def right_and_wrong(confidence: Any, correct: Any) -> tuple[Tensor, Tensor] | None:
    """Return the scores of the cases that are right and that are wrong; None where some are partly.

    All on the device of `confidence`.
    """
    score = numbers(confidence, "confidence")
    hits = hits_of(correct, score)
    right = hits == 1
    if hits.dtype != torch.bool and not bool((right | (hits == 0)).all()):
        return None
    return score[right], score[~right]


def masses_of_scores(
    confidence: Any, correct: Any, weights: Any = None, outside: Any = None
) -> ScoreMasses:
    """Return the sorted distinct scores with their masses, made on the device of `confidence`."""
    score = numbers(confidence, "confidence").double()
    hits = hits_of(correct, score).double()
    mass = torch.ones_like(score) if weights is None else weights_of(weights, score)
    hits = hits * mass
    if outside is not None:
        outside = numbers(outside, "outside", score).double()
        score = torch.cat((score, outside))
        hits = torch.cat((hits, torch.zeros_like(outside)))
        mass = torch.cat((mass, torch.ones_like(outside)))
    found = _copied(torch.stack(kernels.score_masses(score, mass, hits)))
    return ScoreMasses(found[0], found[1], found[2])
