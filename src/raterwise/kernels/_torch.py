"""The sums of `_numba` for tensors, on the device where they are: float64, whatever goes in.

A GPU adds to the few bins of a table badly: with saturated confidences most threads wait for the
same number. So a table of few bins is made by the fused passes of `_triton`, or else as a product
of matrices, one-hot bins × fields, in blocks whose results are added in a fixed order; a table of
many cells is added in many copies. On the CPU, `bincount` does both.

Sums over all pairs of cases: the Dirichlet kernel of a centre f_i at a point f_j is log-linear,

    log k(f_j; f_i) = Σ_k (f_ik / h) log f_jk + g_i,   g_i = -log B(f_i / h + 1),

so that a tile of pairs is a product of matrices, its exponential, and another product. The Beta
kernel of one score is that of two classes. See `raterwise.densities.pairs` for what is made of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from raterwise.kernels import _triton

FIELDS = 8
"""Sums kept per bin: cases, w, w², w z, w μ, w (μ-z)², w μ², w v."""
BLOCK = 2048
"""Rows whose products are added before the blocks are."""
FEW_BINS = 64
MOST_COPIED = 1 << 22
"""Sums in all the copies of a table together."""


class Reading(NamedTuple):
    """What the rows of probabilities say."""

    confidence: Tensor
    """(n,): the largest probability."""
    predicted: Tensor
    """(n,): its class; ties go to the lowest."""
    bad: int
    """The first row that is not a probability distribution, or -1."""


def read_rows(probs: Tensor, tolerance: float, check: bool = True) -> Reading:
    """Return the largest probability of each row (n, K), its class, and the first bad row."""
    if _triton.can_run(probs) and probs.is_contiguous() and probs.shape[1] <= _triton.MOST_CLASSES:
        confidence, predicted, first = _triton.read_rows(probs, tolerance)
        bad = int(first) if check else len(probs)
        return Reading(confidence, predicted, -1 if bad == len(probs) else bad)
    confidence, predicted = probs.max(dim=1)
    if not check or len(probs) == 0:
        return Reading(confidence, predicted, -1)
    total = probs.sum(dim=1, dtype=torch.float64)
    # Written so that NaN, which compares false with everything, is bad too.
    good = ((total - 1).abs() <= tolerance) & (probs.amin(dim=1) >= 0) & (confidence <= 1)
    bad = -1 if bool(good.all()) else int((~good).nonzero()[0, 0])
    return Reading(confidence, predicted, bad)


def locate(scores: Tensor, edges: Tensor) -> Tensor:
    """Return the bin of each score: `[a, b)`, the last one closed."""
    index = torch.bucketize(scores.to(edges.dtype).contiguous(), edges, right=True) - 1
    return index.clamp_(0, len(edges) - 2)


def add_bin_sums(
    z: Tensor,
    mu: Tensor,
    v: Tensor | None,
    weights: Tensor,
    channel: Tensor | None,
    edges: Tensor,
    table: Tensor,
) -> None:
    """Add scored cases (n, C) to `table` (channels, bins, FIELDS).

    `channel` (n,) is the channel of each case, for C = 1; without it the column is.
    """
    channels, bins, _ = table.shape
    if _triton.can_run(z) and bins <= _triton.MOST_BINS:
        table += _triton.bin_sums(z, mu, v, weights, channel, edges, channels)
        return
    if channel is not None:
        cell = channel * bins + locate(z[:, 0], edges)
        fields = _fields(z[:, 0], mu[:, 0], None if v is None else v[:, 0], weights)
        table += sums_by_cell(cell, fields, channels * bins).view(channels, bins, FIELDS)
        return
    for c in range(channels):
        fields = _fields(z[:, c], mu[:, c], None if v is None else v[:, c], weights)
        table[c] += sums_by_cell(locate(z[:, c], edges), fields, bins)


def _fields(z: Tensor, mu: Tensor, v: Tensor | None, weights: Tensor) -> Tensor:
    """(n, FIELDS): what each case adds to its bin."""
    score, w = z.double(), weights.double()
    gap = mu - score
    within = torch.zeros_like(w) if v is None else w * v
    counted = (w > 0).double()
    return torch.stack(
        (counted, w, w * w, w * score, w * mu, w * gap * gap, w * mu * mu, within), dim=1
    )


def sums_by_cell(cell: Tensor, fields: Tensor, cells: int) -> Tensor:
    """(cells, F): the sum of the fields of each cell."""
    if fields.device.type == "cpu":
        columns = [torch.bincount(cell, column, cells) for column in fields.unbind(dim=1)]
        return torch.stack(columns, dim=1)
    return (
        product_sums(cell, fields, cells) if cells <= FEW_BINS else copied_sums(cell, fields, cells)
    )


def product_sums(cell: Tensor, fields: Tensor, cells: int) -> Tensor:
    """(cells, F): the sums as one-hot cells × fields, in blocks."""
    onehot = (cell[:, None] == torch.arange(cells, device=cell.device)).double()
    return block_products(onehot, fields)


def block_products(left: Tensor, right: Tensor) -> Tensor:
    """Return left' × right of (n, a) and (n, b), added in blocks of rows in a fixed order."""
    whole = len(left) // BLOCK * BLOCK
    total = left[whole:].T @ right[whole:]
    if whole:
        blocks = torch.bmm(
            left[:whole].view(-1, BLOCK, left.shape[1]).transpose(1, 2),
            right[:whole].view(-1, BLOCK, right.shape[1]),
        )
        total = total + blocks.sum(dim=0)
    return total


def copied_sums(cell: Tensor, fields: Tensor, cells: int) -> Tensor:
    """(cells, F): the sums by atomic additions to many copies of the table."""
    width = fields.shape[1]
    copies = max(1, min(len(cell), MOST_COPIED // (cells * width)))
    own = torch.arange(len(cell), device=cell.device) % copies
    table = fields.new_zeros(copies * cells, width)
    table.index_add_(0, own * cells + cell, fields)
    return table.view(copies, cells, width).sum(dim=0)


def gaussian_shares(means: Tensor, sigma: float, edges: Tensor) -> Tensor:
    """(n, bins): how much of the Gaussian at each mean lies in each bin, normalised (RECE eq 6)."""
    reach = torch.erf((edges - means.double()[:, None]) / (sigma * math.sqrt(2)))
    share = reach.diff(dim=1)
    return share / share.sum(dim=1, keepdim=True)


def add_soft_bin_sums(
    z: Tensor,
    mu: Tensor,
    weights: Tensor,
    sigma: float,
    edges: Tensor,
    compared: Tensor,
    table: Tensor,
) -> None:
    """Add scored cases (n,) to `table` (bins, FIELDS), spread over the bins by a Gaussian.

    The first field counts the cases whose score itself lies in the bin, by the edges that scores
    of this type are compared with.
    """
    w, bins = weights.double(), len(edges) - 1
    if _triton.can_run(z) and bins <= _triton.MOST_BINS:
        table += _triton.soft_bin_sums(z, mu, w, sigma, edges, compared)
        return
    table[:, :1] += sums_by_cell(locate(z, compared), (w > 0).double()[:, None], bins)
    fields = torch.stack((w, w * z.double(), w * mu), dim=1)
    table[:, [1, 3, 4]] += block_products(gaussian_shares(z, sigma, edges), fields)


def score_masses(score: Tensor, mass: Tensor, hits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct scores in increasing order, with the mass and the hits at each."""
    ordered, order = torch.sort(score, stable=True)
    distinct, lengths = torch.unique_consecutive(ordered, return_counts=True)
    last = lengths.cumsum(0) - 1
    # Masses are mostly whole numbers, of which differences of cumulative sums are exact.
    each = [
        part[order].cumsum(0, dtype=torch.float64)[last].diff(prepend=last.new_zeros(1).double())
        for part in (mass, hits)
    ]
    return distinct.double(), each[0], each[1]


def concordance(upper: Tensor, lower: Tensor) -> float:
    """Return how many pairs have upper > lower, ties half, of two samples in any order."""
    ordered = torch.sort(lower).values
    below = torch.searchsorted(ordered, upper)
    upto = torch.searchsorted(ordered, upper, right=True)
    return 0.5 * float((below + upto).sum(dtype=torch.float64))


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
