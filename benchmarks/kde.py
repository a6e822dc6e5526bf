"""Kernel-density calibration error: time and memory against ece-kde's way of computing it.

    python -P benchmarks/kde.py

ece-kde (Popordanoska et al., 2022) is not a package; the peer below restates its estimator in
torch, with the same full N x N matrices, in float32 as networks deliver probabilities. Ratios are
taken in one run, best of three for ours, one run of the peer after a small warm-up. Most kernels
underflow at the narrow bandwidths that data ask for, where torch's exponential is some twenty times
slower than usual; the wide bandwidths show the peer at its best.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raterwise.densities.bandwidth import select_bandwidth
from raterwise.densities.cells import ScoreCells, beta_kde_from_cells, score_cells
from raterwise.densities.pairs import canonical_kde, top_label_kde

Array = Any
CASES, CLASSES, RATERS = 20_000, 10, 5


def predictions(cases: int, scale: float, seed: int = 0) -> tuple[Array, Array]:
    """Softmax outputs, many of them saturated for a large scale, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(cases, CLASSES))
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) > rng.random((cases, 1))).argmax(axis=1)
    return probs, labels


def peer_top_label(z: Array, right: Array, bandwidth: float) -> float:
    """The Beta-kernel estimator on full matrices (its eq 12), torch."""
    import torch

    f, y = torch.as_tensor(z, dtype=torch.float32), torch.as_tensor(right)
    a, b = f / bandwidth, (1 - f) / bandwidth
    norm = torch.lgamma(a + 1) + torch.lgamma(b + 1) - torch.lgamma(a + b + 2)
    inside = f.clamp(1e-7, 1 - 1e-7)[:, None]
    log_kernel = a * torch.log(inside) + b * torch.log(1 - inside) - norm
    log_kernel = log_kernel + torch.diag(torch.full((len(f),), torch.finfo(torch.float32).min))
    of_hits = torch.index_select(log_kernel, 1, torch.where(y == 1)[0])
    ratio = torch.exp(torch.logsumexp(of_hits, 1) - torch.logsumexp(log_kernel, 1))
    return float((ratio - f).abs().mean())


def peer_canonical(probs: Array, labels: Array, bandwidth: float) -> float:
    """The Dirichlet-kernel estimator on full matrices (its eq 8), torch."""
    import torch

    f = torch.as_tensor(probs, dtype=torch.float32)
    a = f / bandwidth
    norm = torch.lgamma(a + 1).sum(1) - torch.lgamma((a + 1).sum(1))
    log_kernel = torch.log(f.clamp(min=1e-30)) @ a.T - norm
    log_kernel = log_kernel + torch.diag(torch.full((len(f),), torch.finfo(torch.float32).min))
    weights = torch.exp(log_kernel)
    onehot = torch.nn.functional.one_hot(torch.as_tensor(labels), f.shape[1]).float()
    ratio = weights @ onehot / weights.sum(1).clamp(min=1e-10)[:, None]
    return float((ratio - f).abs().sum(1).mean())


def timed(task: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the shortest time and the result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = task()
        best = min(best, time.perf_counter() - start)
    return best, result


def inputs(task: str) -> tuple[Any, ...]:
    """Arguments shared by ours and the peer."""
    scale = 3.0 if "canonical" in task else 4.0
    probs, labels = predictions(4_000 if task == "raters" else CASES, scale)
    z, top = probs.max(axis=1), probs.argmax(axis=1)
    if task == "raters":
        votes = np.random.default_rng(1).binomial(RATERS, z).astype(np.float64)
        return z, votes, np.full(len(z), float(RATERS))
    if "canonical" in task:
        return probs, labels
    return z, (top == labels).astype(np.float64), np.ones(len(z))


def run(task: str, side: str) -> tuple[float, Any, float]:
    """Time one side of one comparison; the last number is the memory it added, in MB."""
    arguments = inputs(task)
    tasks: dict[tuple[str, str], Callable[..., Any]] = {
        ("exact", "ours"): lambda z, h, m: top_label_kde(z, h, m, bandwidth=0.001),
        ("cells", "ours"): lambda z, h, m: beta_kde_from_cells(
            score_cells(z, h, m), bandwidth=0.001
        ),
        ("wide", "ours"): lambda z, h, m: top_label_kde(z, h, m, bandwidth=0.1),
        ("wide", "peer"): lambda z, h, m: peer_top_label(z, h, 0.1),
        ("wide canonical", "ours"): lambda p, y: canonical_kde(
            p, np.eye(CLASSES)[y], bandwidth=0.2
        ),
        ("wide canonical", "peer"): lambda p, y: peer_canonical(p, y, 0.2),
        ("canonical", "ours"): lambda p, y: canonical_kde(p, np.eye(CLASSES)[y], bandwidth=0.01),
        ("raters", "ours"): lambda z, h, m: top_label_kde(z, h, m, bandwidth=0.001),
        ("exact", "peer"): lambda z, h, m: peer_top_label(z, h, 0.001),
        ("cells", "peer"): lambda z, h, m: peer_top_label(z, h, 0.001),
        ("canonical", "peer"): lambda p, y: peer_canonical(p, y, 0.01),
        ("raters", "peer"): lambda z, h, m: peer_top_label(
            np.repeat(z, RATERS),
            (np.tile(np.arange(RATERS), len(z)) < np.repeat(h, RATERS)).astype(np.float64),
            0.001,
        ),
    }
    job = tasks[task, side]
    job(*(x[:200] for x in arguments))  # compile, load, start threads
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, value = timed(lambda: job(*arguments), 3 if side == "ours" else 1)
    return seconds, value, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def side_of(task: str, side: str) -> list[str]:
    """Run one side in a process of its own, so that its memory can be told."""
    command = [sys.executable, "-P", __file__, task, side]
    return (
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        .stdout.strip()
        .split("|")
    )


def ten_million() -> None:
    """Choose a bandwidth and compute the error of ten million cases from their cells."""
    z, h, m = inputs("exact")
    noise = np.random.default_rng(2)
    cells = ScoreCells(*(np.zeros_like(x) for x in score_cells(z, h, m)))
    for _ in range(100):
        chunk = np.clip(noise.beta(8, 1, size=100_000), 0, 1)
        right = (noise.random(100_000) < chunk**1.1).astype(np.float64)
        part = score_cells(chunk, right, np.ones(100_000))
        cells = ScoreCells(*(a + b for a, b in zip(cells, part, strict=True)))
    from raterwise.densities.bandwidth import select_bandwidth_from_cells

    choosing, bandwidth = timed(lambda: select_bandwidth_from_cells(cells.w, cells.d))
    seconds, (value, bound) = timed(lambda: beta_kde_from_cells(cells, bandwidth=bandwidth))
    print(f"\n10^7 cases from cells: bandwidth {bandwidth:.2e} in {choosing:.2f} s, value "
          f"{value:.6f} ± {bound:.1e} in {seconds:.2f} s")  # fmt: skip


def main() -> None:
    """Print the table."""
    if len(sys.argv) == 3:
        print(*run(sys.argv[1], sys.argv[2]), sep="|")
        return
    print(f"{'':34}{'ours s':>9}{'peer s':>9}{'ratio':>8}{'ours MB':>9}{'peer MB':>9}  values")
    labels = {
        "exact": f"top label, exact, N = {CASES:,}",
        "cells": f"top label, cells, N = {CASES:,}",
        "wide": "top label, exact, h = 0.1",
        "wide canonical": "canonical, h = 0.2",
        "canonical": f"canonical, K = {CLASSES}, N = {CASES:,}",
        "raters": f"{RATERS} raters, N = 4,000 x {RATERS}",
    }
    for task, label in labels.items():
        rows = [side_of(task, side) for side in ("ours", "peer")]
        (ours, value, mb), (peer, reference, peer_mb) = rows
        print(f"{label:34}{float(ours):9.3f}{float(peer):9.3f}{float(peer) / float(ours):7.1f}x"
              f"{float(mb):9.0f}{float(peer_mb):9.0f}  {value} / {reference}")  # fmt: skip
    z, _, _ = inputs("exact")
    print(f"\nbandwidth for N = {CASES:,}: {timed(lambda: select_bandwidth(z), 2)}")
    ten_million()


if __name__ == "__main__":
    main()
