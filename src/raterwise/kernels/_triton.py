"""Fused passes for NVIDIA and AMD GPUs, in Triton: each probability is read once.

Every program keeps sums of its own in registers and writes them once; these are added in a fixed
order, so there is nothing to wait for when all confidences fall into one bin, and the digits are
the same each time. Only where there are too many cells for that (`cell_sums`) do programs add to
shared tables. `_torch` calls these where it can, and does the same with PyTorch's own
operations where it cannot.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from raterwise.kernels import _triton_programs as kernels
from raterwise.kernels._triton_programs import triton

BLOCK = 128
"""Rows that a program reads at a time."""
PROGRAMS_EACH = 16
"""Programs per multiprocessor."""
MOST_CLASSES, MOST_BINS = 64, 64
UNROLL = 2
"""Tiles whose reading is begun together."""
TILE = 2048
"""Rows × bins that a program keeps sums of: more would not fit into registers."""
MOST_CELLS, MOST_COPIED = 1 << 17, 1 << 22
"""Cells of a table in memory, and sums in all its copies together: they fit into the cache."""
FIELDS = 8


def can_run(tensor: Tensor) -> bool:
    """Say whether a tensor is on a device that Triton has a compiler for."""
    return triton is not None and tensor.device.type == "cuda"


@lru_cache(maxsize=8)
def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _programs(rows: int, device: torch.device, step: int) -> int:
    return max(1, min(-(-rows // step), PROGRAMS_EACH * _multiprocessors(device)))


def _padded(number: int) -> int:
    """The next power of two, which the width of a tile must be."""
    return max(2, 1 << (number - 1).bit_length())


@lru_cache(maxsize=64)
def _open_edges(edges: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, int]:
    """Return lower and upper bounds of the bins, the outermost open, padded with empty bins.

    They have the type of the scores: a float32 score is at or above an edge where it is at or above
    the next float32 that is not below the edge, and is compared without being converted. They are
    remembered: making them anew takes longer than a million rows.
    """
    bins, infinite = len(edges) - 1, float("inf")
    near = edges.to(dtype)
    inner = torch.where(near.double() < edges, near.nextafter(near.new_tensor(infinite)), near)
    width = _padded(bins)
    lower = near.new_full((width,), infinite)
    upper = near.new_full((width,), infinite)
    lower[:bins], upper[: bins - 1] = inner[:-1], inner[1:-1]
    lower[0] = -infinite
    return lower, upper, width


def _rows_kept(width: int) -> int:
    """How many rows a program reads at a time where it keeps sums for each of them."""
    return max(16, min(BLOCK, TILE // width))


def read_rows(probs: Tensor, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return confidence and predicted class of contiguous rows, and the first bad row of them.

    The last is a tensor of one number, the number of rows where none is bad: asking for it waits.
    """
    rows, classes = probs.shape
    confidence = torch.empty(rows, dtype=probs.dtype, device=probs.device)
    predicted = torch.empty(rows, dtype=torch.int64, device=probs.device)
    programs = _programs(rows, probs.device, BLOCK)
    bad = torch.empty(programs, dtype=torch.int64, device=probs.device)
    kernels.read[(programs,)](
        probs, confidence, predicted, bad, rows, tolerance,
        CLASSES=classes, BLOCK=BLOCK,
    )  # fmt: skip
    return confidence, predicted, bad.min()


def top_label_sums(
    probs: Tensor, labels: Tensor, edges: Tensor, tolerance: float
) -> tuple[Tensor, Tensor]:
    """Return the table (1, bins, FIELDS) of single labels of weight 1, and the first bad row."""
    rows, classes = probs.shape
    lower, upper, width = _open_edges(edges, probs.dtype)
    step = 2 * _rows_kept(width)
    programs = _programs(rows, probs.device, step)
    partial = torch.empty(programs, 4, width, dtype=torch.float64, device=probs.device)
    bad = torch.empty(programs, dtype=torch.int64, device=probs.device)
    kernels.top_label[(programs,)](
        probs, labels, lower, upper, partial, bad, rows, tolerance,
        CLASSES=classes, BINS=width, BLOCK=step,
    )  # fmt: skip
    return _table_of_labels(partial.sum(dim=0)[None, :, : len(edges) - 1]), bad.min()


def per_class_sums(probs: Tensor, labels: Tensor, edges: Tensor) -> Tensor:
    """Return the table (classes, bins, FIELDS) of single labels of weight 1."""
    rows, classes = probs.shape
    lower, upper, width = _open_edges(edges, probs.dtype)
    lanes = max(_rows_kept(width), _padded(classes))
    programs = _programs(rows, probs.device, lanes // classes * UNROLL)
    partial = torch.empty(programs, classes, 4, width, dtype=torch.float64, device=probs.device)
    kernels.per_class[(programs,)](
        probs, labels, lower, upper, partial, rows,
        CLASSES=classes, BINS=width, LANES=lanes, UNROLL=UNROLL,
    )  # fmt: skip
    return _table_of_labels(partial.sum(dim=0)[..., : len(edges) - 1])


def cell_sums(
    probs: Tensor, labels: Tensor, edges: Tensor, tolerance: float, *, by_class: bool
) -> tuple[Tensor, Tensor]:
    """Return the table (channels, cells, FIELDS) of the top label, and the first bad row.

    `by_class` has a channel for each predicted class. For so many cells that they are added in
    memory; the order of the additions, and with it the last digit, is not always the same.
    """
    rows, classes = probs.shape
    bins, channels = len(edges) - 1, classes if by_class else 1
    programs = _programs(rows, probs.device, BLOCK)
    copies = max(1, min(programs, MOST_COPIED // (channels * bins * 4)))
    tables = torch.zeros(copies, channels, bins, 4, dtype=torch.float64, device=probs.device)
    bad = torch.empty(programs, dtype=torch.int64, device=probs.device)
    kernels.cells[(programs,)](
        probs, labels, edges, tables, bad, rows, tolerance, bins, bins.bit_length(), copies,
        CLASSES=classes, BY_CLASS=by_class, BLOCK=BLOCK,
    )  # fmt: skip
    return _table_of_labels(tables.sum(dim=0).movedim(-1, 1)), bad.min()


def _table_of_labels(sums: Tensor) -> Tensor:
    """Return (channels, bins, FIELDS) from the cases, scores, hits and gaps of single labels."""
    cases, scores, hits, gaps = sums.unbind(dim=1)
    nothing = torch.zeros_like(hits)
    return torch.stack((cases, cases, cases, scores, hits, gaps, hits, nothing), dim=2)


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
    lower, upper, width = _open_edges(edges, z.dtype)
    step = max(16, _rows_kept(width) // 2)
    programs = max(1, _programs(rows, z.device, step) // channels)
    partial = torch.empty(programs, channels, FIELDS, width, dtype=torch.float64, device=z.device)
    within = mu if v is None else v
    kernels.bins[(channels, programs)](
        z, mu, within, weights, z if channel is None else channel, lower, upper, partial, rows,
        z.stride(0), z.stride(1), mu.stride(0), mu.stride(1), within.stride(0), within.stride(1),
        HAS_V=v is not None, CHOSEN=channel is not None, BINS=width, BLOCK=step,
    )  # fmt: skip
    return partial.sum(dim=0)[..., : len(edges) - 1].transpose(1, 2)


def soft_bin_sums(
    z: Tensor, mu: Tensor, weights: Tensor, sigma: float, edges: Tensor, compared: Tensor
) -> Tensor:
    """Return the table (bins, FIELDS) of scores (n,) spread over the bins by a Gaussian.

    The first field counts the scores in each bin by the edges that they are `compared` with.
    """
    rows, bins = len(z), len(edges) - 1
    width = _padded(bins + 1)
    lower, upper, _ = _open_edges(compared, z.dtype)
    nowhere = lower.new_full((width - len(lower),), float("inf"))
    lower, upper = torch.cat((lower, nowhere)), torch.cat((upper, nowhere))
    step = _rows_kept(width)
    programs = _programs(rows, z.device, step)
    partial = torch.empty(programs, 4, width, dtype=torch.float64, device=z.device)
    # A number would arrive as float32, a tensor keeps its digits.
    scale = torch.tensor([sigma * 2.0**0.5], dtype=torch.float64, device=z.device)
    kernels.soft_bins[(programs,)](
        z, mu, weights, edges, lower, upper, partial, rows, scale, z.stride(0),
        mu.stride(0), COUNT=bins, EDGES=width, BLOCK=step,
    )  # fmt: skip
    table = torch.zeros(bins, FIELDS, dtype=torch.float64, device=z.device)
    table[:, 0] = partial[:, 0, :bins].sum(dim=0)
    # Differences first: the sums of a program are small, those of all are not.
    table[:, [1, 3, 4]] = partial[:, 1:, : bins + 1].diff(dim=2).sum(dim=0).T
    return table
