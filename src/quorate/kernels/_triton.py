"""Fused passes for NVIDIA and AMD GPUs, in Triton: each probability is read once.

Every program keeps a table of its own in registers and writes it once; the tables are added in a
fixed order, so there is nothing to wait for when all confidences fall into one bin, and the digits
are the same each time. `_torch` calls these where it can, and does the same with PyTorch's own
operations where it cannot.
"""

# Triton reads the arguments of its kernels itself and takes no annotation but constexpr.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

    jit: Any = triton.jit
except ImportError:  # a PyTorch without GPUs comes without Triton; nothing here is then called
    triton = tl = None

    def jit(function: Any) -> Any:
        """Leave the function as it is."""
        return function


__all__ = ["bin_sums", "can_run", "read_rows", "soft_bin_sums", "top_label_sums"]


BLOCK = 128
"""Rows that a program reads at a time."""
PROGRAMS_EACH = 16
"""Programs per multiprocessor."""
MOST_CLASSES, MOST_BINS = 64, 64
FIELDS = 8


def can_run(tensor: Tensor) -> bool:
    """Say whether a tensor is on a device that Triton has a compiler for."""
    return triton is not None and tensor.device.type == "cuda"


@lru_cache(maxsize=8)
def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _programs(rows: int, device: torch.device) -> int:
    return max(1, min(-(-rows // BLOCK), PROGRAMS_EACH * _multiprocessors(device)))


def _padded(number: int) -> int:
    """The next power of two, which the width of a tile must be."""
    return max(2, 1 << (number - 1).bit_length())


def _open_edges(edges: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return lower and upper bounds of the bins, the outermost open, padded with empty bins."""
    bins = len(edges) - 1
    width = _padded(bins)
    infinite = float("inf")
    lower = edges.new_full((width,), infinite)
    upper = edges.new_full((width,), infinite)
    lower[:bins], upper[: bins - 1] = edges[:-1], edges[1:-1]
    lower[0] = -infinite
    return lower, upper, width


@jit
def _read(
    probs, confidence, predicted, bad, rows, tolerance,
    CLASSES: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    k = tl.arange(0, WIDTH)
    first_bad = tl.zeros((BLOCK,), tl.int64) + rows
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        p = tl.load(
            probs + i[:, None] * CLASSES + k[None, :],
            mask=inside[:, None] & (k < CLASSES)[None, :], other=0.0,
        )  # fmt: skip
        best = tl.max(p, axis=1)
        tl.store(confidence + i, best, mask=inside)
        tl.store(predicted + i, tl.argmax(p, axis=1).to(tl.int64), mask=inside)
        total = tl.sum(p.to(tl.float64), axis=1)
        # Written so that NaN, which compares false with everything, is bad too.
        good = (tl.abs(total - 1.0) <= tolerance) & (tl.min(p, axis=1) >= 0.0) & (best <= 1.0)
        wrong = tl.where(inside & (good == 0), i, rows)
        first_bad = tl.minimum(first_bad, wrong)
    tl.store(bad + tl.program_id(0), tl.min(first_bad, axis=0))


@jit
def _top_label(
    probs, labels, lower, upper, partial, bad,
    rows, tolerance,
    CLASSES: tl.constexpr, WIDTH: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    k, b = tl.arange(0, WIDTH), tl.arange(0, BINS)
    low, high = tl.load(lower + b)[None, :], tl.load(upper + b)[None, :]
    cases = tl.zeros((BINS,), tl.float64)
    scores = tl.zeros((BINS,), tl.float64)
    hits = tl.zeros((BINS,), tl.float64)
    gaps = tl.zeros((BINS,), tl.float64)
    first_bad = tl.zeros((BLOCK,), tl.int64) + rows
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        p = tl.load(
            probs + i[:, None] * CLASSES + k[None, :],
            mask=inside[:, None] & (k < CLASSES)[None, :], other=0.0,
        )  # fmt: skip
        best = tl.max(p, axis=1)
        total = tl.sum(p.to(tl.float64), axis=1)
        good = (tl.abs(total - 1.0) <= tolerance) & (tl.min(p, axis=1) >= 0.0) & (best <= 1.0)
        wrong = tl.where(inside & (good == 0), i, rows)
        first_bad = tl.minimum(first_bad, wrong)
        z = best.to(tl.float64)
        label = tl.load(labels + i, mask=inside, other=-1)
        hit = (tl.argmax(p, axis=1).to(tl.int64) == label).to(tl.float64)
        gap = (hit - z) * (hit - z)
        here = (z[:, None] >= low) & (z[:, None] < high) & inside[:, None]
        cases += tl.sum(here.to(tl.int32), axis=0).to(tl.float64)
        scores += tl.sum(tl.where(here, z[:, None], 0.0), axis=0)
        hits += tl.sum(tl.where(here, hit[:, None], 0.0), axis=0)
        gaps += tl.sum(tl.where(here, gap[:, None], 0.0), axis=0)
    at = partial + tl.program_id(0) * 4 * BINS + b
    tl.store(at, cases)
    tl.store(at + BINS, scores)
    tl.store(at + 2 * BINS, hits)
    tl.store(at + 3 * BINS, gaps)
    tl.store(bad + tl.program_id(0), tl.min(first_bad, axis=0))


@jit
def _bins(
    z, mu, v, weights, chosen, lower, upper,
    partial, rows, z_row, z_column, mu_row, mu_column,
    v_row, v_column,
    HAS_V: tl.constexpr, CHOSEN: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    # Channels lie next to each other in the grid: they read the same lines of the cache.
    channel, b = tl.program_id(0), tl.arange(0, BINS)
    column = channel if not CHOSEN else 0
    low, high = tl.load(lower + b)[None, :], tl.load(upper + b)[None, :]
    s0 = tl.zeros((BINS,), tl.float64)
    s1 = tl.zeros((BINS,), tl.float64)
    s2 = tl.zeros((BINS,), tl.float64)
    s3 = tl.zeros((BINS,), tl.float64)
    s4 = tl.zeros((BINS,), tl.float64)
    s5 = tl.zeros((BINS,), tl.float64)
    s6 = tl.zeros((BINS,), tl.float64)
    s7 = tl.zeros((BINS,), tl.float64)
    for block in range(tl.program_id(1), tl.cdiv(rows, BLOCK), tl.num_programs(1)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        w = tl.load(weights + i, mask=inside, other=0.0).to(tl.float64)
        counts = inside & (w > 0.0)
        if CHOSEN:
            counts = counts & (tl.load(chosen + i, mask=inside, other=-1) == channel)
        score = tl.load(z + i * z_row + column * z_column, mask=counts, other=0.0).to(tl.float64)
        m = tl.load(mu + i * mu_row + column * mu_column, mask=counts, other=0.0).to(tl.float64)
        gap = m - score
        here = (score[:, None] >= low) & (score[:, None] < high) & counts[:, None]
        s0 += tl.sum(here.to(tl.int32), axis=0).to(tl.float64)
        s1 += tl.sum(tl.where(here, w[:, None], 0.0), axis=0)
        s2 += tl.sum(tl.where(here, (w * w)[:, None], 0.0), axis=0)
        s3 += tl.sum(tl.where(here, (w * score)[:, None], 0.0), axis=0)
        s4 += tl.sum(tl.where(here, (w * m)[:, None], 0.0), axis=0)
        s5 += tl.sum(tl.where(here, (w * gap * gap)[:, None], 0.0), axis=0)
        s6 += tl.sum(tl.where(here, (w * m * m)[:, None], 0.0), axis=0)
        if HAS_V:
            within = tl.load(v + i * v_row + column * v_column, mask=counts, other=0.0)
            s7 += tl.sum(tl.where(here, (w * within)[:, None], 0.0), axis=0)
    at = partial + (tl.program_id(1) * tl.num_programs(0) + channel) * 8 * BINS + b
    tl.store(at, s0)
    tl.store(at + BINS, s1)
    tl.store(at + 2 * BINS, s2)
    tl.store(at + 3 * BINS, s3)
    tl.store(at + 4 * BINS, s4)
    tl.store(at + 5 * BINS, s5)
    tl.store(at + 6 * BINS, s6)
    tl.store(at + 7 * BINS, s7)


@jit
def _soft_bins(
    z, mu, weights, edges, lower, upper,
    partial, rows, scale, z_row, mu_row,
    COUNT: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    b = tl.arange(0, BINS)
    real = (b < COUNT)[None, :]
    width = tl.load(scale)
    low, high = tl.load(lower + b)[None, :], tl.load(upper + b)[None, :]
    left = tl.load(edges + b, mask=b < COUNT, other=0.0)[None, :]
    right = tl.load(edges + b + 1, mask=b < COUNT, other=0.0)[None, :]
    cases = tl.zeros((BINS,), tl.float64)
    mass = tl.zeros((BINS,), tl.float64)
    scores = tl.zeros((BINS,), tl.float64)
    hits = tl.zeros((BINS,), tl.float64)
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        w = tl.load(weights + i, mask=inside, other=0.0).to(tl.float64)
        score = tl.load(z + i * z_row, mask=inside, other=0.0).to(tl.float64)
        m = tl.load(mu + i * mu_row, mask=inside, other=0.0).to(tl.float64)
        mean = score[:, None]
        share = tl.erf((right - mean) / width) - tl.erf((left - mean) / width)
        share = tl.where(real, share, 0.0)
        share = share * (w / tl.sum(share, axis=1))[:, None]
        here = (mean >= low) & (mean < high) & (w > 0.0)[:, None]
        cases += tl.sum(here.to(tl.int32), axis=0).to(tl.float64)
        mass += tl.sum(share, axis=0)
        scores += tl.sum(share * mean, axis=0)
        hits += tl.sum(share * m[:, None], axis=0)
    at = partial + tl.program_id(0) * 4 * BINS + b
    tl.store(at, cases)
    tl.store(at + BINS, mass)
    tl.store(at + 2 * BINS, scores)
    tl.store(at + 3 * BINS, hits)


def read_rows(probs: Tensor, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return confidence and predicted class of contiguous rows, and the first bad row of them.

    The last is a tensor of one number, the number of rows where none is bad: asking for it waits.
    """
    rows, classes = probs.shape
    confidence = torch.empty(rows, dtype=probs.dtype, device=probs.device)
    predicted = torch.empty(rows, dtype=torch.int64, device=probs.device)
    programs = _programs(rows, probs.device)
    bad = torch.empty(programs, dtype=torch.int64, device=probs.device)
    _read[(programs,)](
        probs, confidence, predicted, bad, rows, tolerance,
        CLASSES=classes, WIDTH=_padded(classes), BLOCK=BLOCK,
    )  # fmt: skip
    return confidence, predicted, bad.min()


def top_label_sums(
    probs: Tensor, labels: Tensor, edges: Tensor, tolerance: float
) -> tuple[Tensor, Tensor]:
    """Return the table (bins, FIELDS) of single labels of weight 1, and the first bad row."""
    rows, classes = probs.shape
    lower, upper, width = _open_edges(edges)
    programs = _programs(rows, probs.device)
    partial = torch.empty(programs, 4, width, dtype=torch.float64, device=probs.device)
    bad = torch.empty(programs, dtype=torch.int64, device=probs.device)
    _top_label[(programs,)](
        probs, labels, lower, upper, partial, bad, rows, tolerance,
        CLASSES=classes, WIDTH=_padded(classes), BINS=width, BLOCK=BLOCK,
    )  # fmt: skip
    cases, scores, hits, gaps = partial.sum(dim=0)[:, : len(edges) - 1]
    table = torch.stack((cases, cases, cases, scores, hits, gaps, hits, torch.zeros_like(hits)), 1)
    return table, bad.min()


def bin_sums(
    z: Tensor,
    mu: Tensor,
    v: Tensor | None,
    weights: Tensor,
    channel: Tensor | None,
    edges: Tensor,
    channels: int,
) -> Tensor:
    """Return the table (channels, bins, FIELDS) of scored cases, as `_torch.add_bin_sums`."""
    rows = len(z)
    lower, upper, width = _open_edges(edges)
    programs = max(1, _programs(rows, z.device) // channels)
    partial = torch.empty(programs, channels, FIELDS, width, dtype=torch.float64, device=z.device)
    within = mu if v is None else v
    _bins[(channels, programs)](
        z, mu, within, weights, z if channel is None else channel, lower, upper, partial, rows,
        z.stride(0), z.stride(1), mu.stride(0), mu.stride(1), within.stride(0), within.stride(1),
        HAS_V=v is not None, CHOSEN=channel is not None, BINS=width, BLOCK=BLOCK,
    )  # fmt: skip
    return partial.sum(dim=0)[..., : len(edges) - 1].transpose(1, 2)


def soft_bin_sums(z: Tensor, mu: Tensor, weights: Tensor, sigma: float, edges: Tensor) -> Tensor:
    """Return the table (bins, FIELDS) of scores (n,) spread over the bins by a Gaussian."""
    rows, bins = len(z), len(edges) - 1
    lower, upper, width = _open_edges(edges)
    programs = _programs(rows, z.device)
    partial = torch.empty(programs, 4, width, dtype=torch.float64, device=z.device)
    # A number would arrive as float32, a tensor keeps its digits.
    scale = torch.tensor([sigma * 2.0**0.5], dtype=torch.float64, device=z.device)
    _soft_bins[(programs,)](
        z, mu, weights, edges, lower, upper, partial, rows, scale, z.stride(0),
        mu.stride(0), COUNT=bins, BINS=width, BLOCK=BLOCK,
    )  # fmt: skip
    table = torch.zeros(bins, FIELDS, dtype=torch.float64, device=z.device)
    table[:, [0, 1, 3, 4]] = partial.sum(dim=0)[:, :bins].T
    return table
