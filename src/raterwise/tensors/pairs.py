"""Kernel-density errors of all classes for tensors, on the device where they are.

The rows stay there. To choose a bandwidth, the host gets the sums over the fine cells of each
class, or a sample of rows of limited size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from raterwise.densities import bandwidth as choice
from raterwise.errors import UndefinedMetricError
from raterwise.kernels import _torch as kernels
from raterwise.kernels._torch import canonical_kde, score_kde
from raterwise.summaries.cells import fine_cells
from raterwise.tensors.cases import TensorCases, rated_cases, weighted_cases


def kde_of_rows(
    probs: Tensor,
    labels: Any,
    weights: Any,
    *,
    question: str,
    p: int,
    bandwidth: float | None,
    floor: float = 0.0,
    seed: int,
    on_unrated: str,
    told: Callable[[float], float] = lambda bandwidth: bandwidth,
) -> float:
    """Return the "per_class" or "canonical" KDE-ECE; `labels` is a Labels or (N,) classes.

    `told` is called with each bandwidth before it is used.

    >>> probs = torch.tensor([[0.25, 0.75], [0.75, 0.25]])
    >>> options = {"p": 1, "bandwidth": 0.1, "seed": 0, "on_unrated": "error"}
    >>> kde_of_rows(probs, torch.tensor([1, 0]), None, question="canonical", **options)
    1.5
    """
    cases = weighted_cases(TensorCases.of(probs, labels, weights))
    rows, masses = _rows(rated_cases(cases, on_unrated))
    total = masses.sum(dim=1)
    if len(rows) < 2:
        raise UndefinedMetricError(
            f"kde_ece: needs at least two cases, to compare one with the others; got {len(rows)}"
        )
    if question == "canonical":
        chosen = _bandwidth_of_rows(rows, total, seed) if bandwidth is None else bandwidth
        return canonical_kde(rows, masses, p, told(chosen), floor)
    errors = []
    for score, hits in zip(rows.T, masses.T, strict=True):
        chosen = _bandwidth_of_score(score, total) if bandwidth is None else bandwidth
        errors.append(score_kde(score, hits, total, p, told(chosen)))
    return sum(errors) / len(errors)


def _rows(cases: TensorCases) -> tuple[Tensor, Tensor]:
    """Return (n, K) probabilities and label masses of the cases that count, checked."""
    parts = []
    for rows in cases.chunks(4 * cases.probs.shape[1]):
        masses = rows.counts
        if masses is None:
            assert rows.classes is not None
            masses = torch.zeros_like(rows.probs, dtype=torch.float64)
            masses.scatter_(1, rows.classes[:, None], 1.0)
        masses = masses if rows.weights is None else masses * rows.weights[:, None]
        here = masses.sum(dim=1) > 0
        parts.append((rows.probs.double()[here], masses[here]))
    return torch.cat([rows for rows, _ in parts]), torch.cat([masses for _, masses in parts])


def _bandwidth_of_rows(rows: Tensor, total: Tensor, seed: int) -> float:
    certain = (rows.amax(dim=1) == 1).cpu().numpy()
    order = torch.as_tensor(choice.dirichlet_sample(certain, seed), device=rows.device)
    return choice.best_dirichlet_bandwidth(rows[order].cpu().numpy(), total[order].cpu().numpy())


def _bandwidth_of_score(score: Tensor, total: Tensor) -> float:
    edges = torch.tensor(fine_cells(), device=score.device)
    cell = kernels.locate(score, edges)
    terms = torch.stack((total, total * (score - edges[cell])), dim=1)
    sums = kernels.sums_by_cell(cell, terms, len(edges) - 1).cpu().numpy()
    return choice.select_bandwidth_from_cells(sums[:, 0], sums[:, 1])
