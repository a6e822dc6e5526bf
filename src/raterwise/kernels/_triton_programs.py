"""The programs of `_triton`: what each of them does with its rows."""

# Triton reads the arguments of its kernels itself and takes no annotation but constexpr.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

    jit: Any = triton.jit
except ImportError:  # a PyTorch without GPUs comes without Triton; nothing here is then called
    triton = tl = None

    def jit(function: Any) -> Any:
        """Leave the function as it is."""
        return function


__all__ = ["bins", "cells", "per_class", "read", "soft_bins", "top_label", "triton"]


@jit
def facts(probs, i, inside, tolerance, CLASSES: tl.constexpr):
    """Return confidence and class of rows, one to a thread, and whether they are probabilities."""
    best = tl.load(probs + i * CLASSES, mask=inside, other=0.0)
    least, total = best, best.to(tl.float64)
    predicted = tl.zeros_like(i)
    for k in tl.static_range(1, CLASSES):
        p = tl.load(probs + i * CLASSES + k, mask=inside, other=0.0)
        predicted = tl.where(p > best, k, predicted)
        best = tl.where(p > best, p, best)
        least = tl.minimum(least, p)
        total += p.to(tl.float64)
    # Written so that NaN, which compares false with everything, is bad too.
    good = (tl.abs(total - 1.0) <= tolerance) & (least >= 0.0) & (best <= 1.0)
    return best, predicted, good


@jit
def read(
    probs, confidence, predicted, bad, rows, tolerance,
    CLASSES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    first_bad = tl.zeros((BLOCK,), tl.int64) + rows
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        best, label, good = facts(probs, i, inside, tolerance, CLASSES)
        tl.store(confidence + i, best, mask=inside)
        tl.store(predicted + i, label, mask=inside)
        first_bad = tl.minimum(first_bad, tl.where(inside & (good == 0), i, rows))
    tl.store(bad + tl.program_id(0), tl.min(first_bad, axis=0))


@jit
def top_label(
    probs, labels, lower, upper, partial, bad, rows, tolerance,
    CLASSES: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    # Every place of the tile has sums of its own, which are added once, at the end: adding up a
    # column means that threads wait for each other.
    b = tl.arange(0, BINS)[None, :]
    low, high = tl.load(lower + b), tl.load(upper + b)
    cases = tl.zeros((BLOCK, BINS), tl.int32)
    hits = tl.zeros((BLOCK, BINS), tl.int32)
    scores = tl.zeros((BLOCK, BINS), tl.float64)
    gaps = tl.zeros((BLOCK, BINS), tl.float64)
    first_bad = tl.zeros((BLOCK,), tl.int64) + rows
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        best, predicted, good = facts(probs, i, inside, tolerance, CLASSES)
        first_bad = tl.minimum(first_bad, tl.where(inside & (good == 0), i, rows))
        right = predicted == tl.load(labels + i, mask=inside, other=-1)
        z = best.to(tl.float64)
        gap = right.to(tl.float64) - z
        # A row that is not there lies in no bin.
        score = tl.where(inside, best, float("nan"))[:, None]
        here = (score >= low) & (score < high)
        cases += here.to(tl.int32)
        hits += (here & right[:, None]).to(tl.int32)
        scores += tl.where(here, z[:, None], 0.0)
        gaps += tl.where(here, (gap * gap)[:, None], 0.0)
    at = partial + tl.program_id(0) * 4 * BINS + tl.arange(0, BINS)
    tl.store(at, tl.sum(cases, axis=0).to(tl.float64))
    tl.store(at + BINS, tl.sum(scores, axis=0))
    tl.store(at + 2 * BINS, tl.sum(hits, axis=0).to(tl.float64))
    tl.store(at + 3 * BINS, tl.sum(gaps, axis=0))
    tl.store(bad + tl.program_id(0), tl.min(first_bad, axis=0))


@jit
def per_class(
    probs, labels, lower, upper, partial, rows,
    CLASSES: tl.constexpr, BINS: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr,
) -> None:  # fmt: skip
    # The probabilities are read as they lie in memory, so many at a time that each place of the
    # tile always has the same class.
    b, lane = tl.arange(0, BINS)[None, :], tl.arange(0, LANES)
    low, high = tl.load(lower + b), tl.load(upper + b)
    each = LANES // CLASSES
    channel, used = lane % CLASSES, lane < each * CLASSES
    cases = tl.zeros((LANES, BINS), tl.int32)
    hits = tl.zeros((LANES, BINS), tl.int32)
    scores = tl.zeros((LANES, BINS), tl.float64)
    gaps = tl.zeros((LANES, BINS), tl.float64)
    for block in range(tl.program_id(0), tl.cdiv(rows, each * UNROLL), tl.num_programs(0)):
        for u in tl.static_range(UNROLL):
            i = (block * UNROLL + u) * each + (lane // CLASSES).to(tl.int64)
            inside = used & (i < rows)
            p = tl.load(probs + i * CLASSES + channel, mask=inside, other=float("nan"))
            right = tl.load(labels + i, mask=inside, other=-1) == channel
            z = p.to(tl.float64)
            gap = right.to(tl.float64) - z
            here = (p[:, None] >= low) & (p[:, None] < high)
            cases += here.to(tl.int32)
            hits += (here & right[:, None]).to(tl.int32)
            scores += tl.where(here, z[:, None], 0.0)
            gaps += tl.where(here, (gap * gap)[:, None], 0.0)
    for c in range(CLASSES):
        own = (channel == c)[:, None]
        at = partial + (tl.program_id(0) * CLASSES + c) * 4 * BINS + tl.arange(0, BINS)
        tl.store(at, tl.sum(tl.where(own, cases, 0), axis=0).to(tl.float64))
        tl.store(at + BINS, tl.sum(tl.where(own, scores, 0.0), axis=0))
        tl.store(at + 2 * BINS, tl.sum(tl.where(own, hits, 0), axis=0).to(tl.float64))
        tl.store(at + 3 * BINS, tl.sum(tl.where(own, gaps, 0.0), axis=0))


@jit
def cells(
    probs, labels, edges, tables, bad, rows, tolerance, bins, steps, copies,
    CLASSES: tl.constexpr, BY_CLASS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    # Too many cells for registers: additions to tables in memory, of which there are so many that
    # few programs meet in one.
    cells = bins * CLASSES if BY_CLASS else bins
    own = tables + (tl.program_id(0) % copies).to(tl.int64) * cells * 4
    first_bad = tl.zeros((BLOCK,), tl.int64) + rows
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < rows
        best, predicted, good = facts(probs, i, inside, tolerance, CLASSES)
        first_bad = tl.minimum(first_bad, tl.where(inside & (good == 0), i, rows))
        z = best.to(tl.float64)
        # The last edge that is not above the score, by halves.
        cell = tl.zeros((BLOCK,), tl.int32)
        beyond = tl.zeros((BLOCK,), tl.int32) + bins
        for _ in range(steps):
            middle = (cell + beyond) // 2
            above = z >= tl.load(edges + middle)
            cell = tl.where(above, middle, cell)
            beyond = tl.where(above, beyond, middle)
        if BY_CLASS:
            cell += predicted.to(tl.int32) * bins
        hit = (predicted == tl.load(labels + i, mask=inside, other=-1)).to(tl.float64)
        at = own + cell * 4
        tl.atomic_add(at, 1.0 + 0.0 * z, mask=inside, sem="relaxed")
        tl.atomic_add(at + 1, z, mask=inside, sem="relaxed")
        tl.atomic_add(at + 2, hit, mask=inside & (hit > 0.0), sem="relaxed")
        tl.atomic_add(at + 3, (hit - z) * (hit - z), mask=inside, sem="relaxed")
    tl.store(bad + tl.program_id(0), tl.min(first_bad, axis=0))


@jit
def bins(
    z, mu, v, weights, chosen, lower, upper,
    partial, rows, z_row, z_column, mu_row, mu_column,
    v_row, v_column,
    HAS_V: tl.constexpr, CHOSEN: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    channel, b = tl.program_id(0), tl.arange(0, BINS)[None, :]
    column = channel if not CHOSEN else 0
    low, high = tl.load(lower + b), tl.load(upper + b)
    s0 = tl.zeros((BLOCK, BINS), tl.int32)
    s1 = tl.zeros((BLOCK, BINS), tl.float64)
    s2 = tl.zeros((BLOCK, BINS), tl.float64)
    s3 = tl.zeros((BLOCK, BINS), tl.float64)
    s4 = tl.zeros((BLOCK, BINS), tl.float64)
    s5 = tl.zeros((BLOCK, BINS), tl.float64)
    s6 = tl.zeros((BLOCK, BINS), tl.float64)
    s7 = tl.zeros((BLOCK, BINS), tl.float64)
    for block in range(tl.program_id(1), tl.cdiv(rows, BLOCK), tl.num_programs(1)):
        i = (block * BLOCK + tl.arange(0, BLOCK).to(tl.int64))[:, None]
        inside = i < rows
        w = tl.load(weights + i, mask=inside, other=0.0).to(tl.float64)
        counts = inside & (w > 0.0)
        if CHOSEN:
            counts = counts & (tl.load(chosen + i, mask=inside, other=-1) == channel)
        given = tl.load(z + i * z_row + column * z_column, mask=counts, other=0.0)
        m = tl.load(mu + i * mu_row + column * mu_column, mask=counts, other=0.0).to(tl.float64)
        score = given.to(tl.float64)
        gap = m - score
        here = (given >= low) & (given < high) & counts
        s0 += here.to(tl.int32)
        s1 += tl.where(here, w, 0.0)
        s2 += tl.where(here, w * w, 0.0)
        s3 += tl.where(here, w * score, 0.0)
        s4 += tl.where(here, w * m, 0.0)
        s5 += tl.where(here, w * gap * gap, 0.0)
        s6 += tl.where(here, w * m * m, 0.0)
        if HAS_V:
            within = tl.load(v + i * v_row + column * v_column, mask=counts, other=0.0)
            s7 += tl.where(here, w * within, 0.0)
    at = (tl.program_id(1) * tl.num_programs(0) + channel) * 8 * BINS
    at = partial + at + tl.arange(0, BINS)
    tl.store(at, tl.sum(s0, axis=0).to(tl.float64))
    tl.store(at + BINS, tl.sum(s1, axis=0))
    tl.store(at + 2 * BINS, tl.sum(s2, axis=0))
    tl.store(at + 3 * BINS, tl.sum(s3, axis=0))
    tl.store(at + 4 * BINS, tl.sum(s4, axis=0))
    tl.store(at + 5 * BINS, tl.sum(s5, axis=0))
    tl.store(at + 6 * BINS, tl.sum(s6, axis=0))
    tl.store(at + 7 * BINS, tl.sum(s7, axis=0))


@jit
def soft_bins(
    z, mu, weights, edges, lower, upper,
    partial, rows, scale, z_row, mu_row,
    COUNT: tl.constexpr, EDGES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    # Sums of the distribution function at each edge: those of a bin are their differences.
    e = tl.arange(0, EDGES)[None, :]
    width = tl.load(scale)
    low, high = tl.load(lower + e), tl.load(upper + e)
    edge = tl.load(edges + e, mask=e <= COUNT, other=0.0)
    cases = tl.zeros((BLOCK, EDGES), tl.int32)
    mass = tl.zeros((BLOCK, EDGES), tl.float64)
    scores = tl.zeros((BLOCK, EDGES), tl.float64)
    hits = tl.zeros((BLOCK, EDGES), tl.float64)
    for block in range(tl.program_id(0), tl.cdiv(rows, BLOCK), tl.num_programs(0)):
        i = (block * BLOCK + tl.arange(0, BLOCK).to(tl.int64))[:, None]
        inside = i < rows
        w = tl.load(weights + i, mask=inside, other=0.0).to(tl.float64)
        given = tl.load(z + i * z_row, mask=inside, other=0.0)
        m = tl.load(mu + i * mu_row, mask=inside, other=0.0).to(tl.float64)
        mean = given.to(tl.float64)
        reach = tl.erf((edge - mean) / width)
        ends = tl.where(e == COUNT, reach, 0.0) - tl.where(e == 0, reach, 0.0)
        reach = reach * (w / tl.sum(ends, axis=1, keep_dims=True))
        cases += ((given >= low) & (given < high) & (w > 0.0)).to(tl.int32)
        mass += reach
        scores += reach * mean
        hits += reach * m
    at = partial + tl.program_id(0) * 4 * EDGES + tl.arange(0, EDGES)
    tl.store(at, tl.sum(cases, axis=0).to(tl.float64))
    tl.store(at + EDGES, tl.sum(mass, axis=0))
    tl.store(at + 2 * EDGES, tl.sum(scores, axis=0))
    tl.store(at + 3 * EDGES, tl.sum(hits, axis=0))
