"""Sums over all pairs of cases for tensors, on the device where they are: kernels as products.

The Dirichlet kernel of a centre f_i at a point f_j is log-linear in log f_j,

    log k(f_j; f_i) = Σ_k (f_ik / h) log f_jk + g_i,   g_i = -log B(f_i / h + 1),

so that a tile of pairs is a product of matrices, its exponential, and another product. The Beta
kernel of one score is that of two classes. See `raterwise.densities.pairs` for what is made of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

POINTS, CENTRES = 2048, 8192
"""Pairs of a tile: 128 MB in float64."""
EPSILON = torch.finfo(torch.float64).eps


def canonical_kde(
    probs: Tensor, hits: Tensor, p: int, bandwidth: float, floor: float = 0.0
) -> float:
    """Return the mean of Σ_k |ratio_jk - f_jk|^p over cases (n, K), each left out of its own.

    As `raterwise.densities.pairs.canonical_kde`, for cases that somebody rated.
    """
    masses = hits.sum(dim=1)
    columns = torch.cat((masses[:, None], hits), dim=1)
    sums, shift = _pair_sums(probs, probs.clamp_min(EPSILON).log(), columns, bandwidth)
    # The sums are relative to exp(shift); a floor of 0 has the logarithm -inf and changes nothing.
    least = (torch.tensor(floor, dtype=shift.dtype).log() - shift).clamp_max(700).exp()
    ratio = sums[:, 1:] / torch.maximum(sums[:, 0], least)[:, None]
    distance = ((ratio - probs).abs() ** p).sum(dim=1)
    return float((masses @ distance / masses.sum()).item())


def score_kde(score: Tensor, hits: Tensor, masses: Tensor, p: int, bandwidth: float) -> float:
    """Return the mean of |ratio_j - z_j|^p over cases (n,) with one score.

    As `raterwise.densities.pairs.top_label_kde`, for cases that somebody rated.
    """
    inside = score.clamp(EPSILON, 1 - EPSILON)
    logs = torch.stack((inside.log(), torch.log1p(-inside)), dim=1)
    columns = torch.stack((masses, hits), dim=1)
    sums, _ = _pair_sums(torch.stack((score, 1 - score), dim=1), logs, columns, bandwidth)
    distance = (sums[:, 1] / sums[:, 0] - score).abs() ** p
    return float((masses @ distance / masses.sum()).item())


def _pair_sums(
    centres: Tensor, log_points: Tensor, columns: Tensor, bandwidth: float
) -> tuple[Tensor, Tensor]:
    """Return Σ_{i≠j} k(f_j; f_i) columns_i / exp(shift_j) (n, C), and shift (n,), in tiles."""
    a = centres / bandwidth
    g = torch.lgamma(a.sum(dim=1) + a.shape[1]) - torch.lgamma(a + 1).sum(dim=1)
    sums = torch.empty_like(columns)
    shift = torch.empty_like(g)
    for start in range(0, len(centres), POINTS):
        part = slice(start, start + POINTS)
        sums[part], shift[part] = _tile_sums(a, g, columns, log_points[part], start)
    return sums, shift


def _tile_sums(
    a: Tensor, g: Tensor, columns: Tensor, log_points: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Return the sums at some points, of which the first is case `first`."""
    points = len(log_points)
    own = torch.arange(first, first + points, device=a.device)
    shift = torch.full_like(own, -torch.inf, dtype=a.dtype)
    sums = columns.new_zeros(points, columns.shape[1])
    for start in range(0, len(a), CENTRES):
        part = slice(start, start + CENTRES)
        log_kernel = log_points @ a[part].T + g[part]
        centre = torch.arange(start, start + log_kernel.shape[1], device=a.device)
        log_kernel.masked_fill_(own[:, None] == centre, -torch.inf)
        larger = torch.maximum(shift, log_kernel.amax(dim=1))
        # Where nobody else has been met yet, all is 0 and stays so.
        scale = torch.where(larger.isinf(), 0.0, larger)
        sums = sums * (shift - scale).exp()[:, None]
        sums += (log_kernel - scale[:, None]).exp_() @ columns[part]
        shift = larger
    return sums, shift
