"""How often the intervals contain the truth: a simulation in which the truth is known.

    python benchmarks/interval_coverage.py --replications 200 > coverage.md

Cases have logits and true class probabilities q = softmax(logits); raters draw their labels from
q. A *calibrated* model predicts q, an *overconfident* one softmax(1.75 · logits), a *one class
off* model adds 0.7 to the first logit. Patients of five cases share half of the variance of their
logits, and in 30% of the cases a rater's label noise is the one that this rater has throughout
the patient, so that errors are correlated within patients while every case keeps its q. The truth
of a metric is its value on a million cases whose raters report q itself.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate.intervals import (
    bias_corrected_interval,
    calibrated_noise,
    calibration_interval,
    percentile_interval,
)

Array = NDArray[np.float64]

BINS = 15
CELLS = 60  # of the Kolmogorov-Smirnov error
SIGMA = 0.1  # of RECE-G
PATIENT = 5  # cases per patient
SHARED_NOISE = 0.3  # part of the cases with a label noise common to the patient
MODELS = ("calibrated", "overconfident", "one class off")
CALIBRATION = ("ece", "classwise_ece", "rms_ce", "mce", "calibration_loss", "robust_ece", "ks")
ORDINARY = ("accuracy", "brier", "epistemic_loss")


@dataclass(frozen=True)
class Design:
    """One cell of the simulation."""

    cases: int
    classes: int
    model: str
    raters: int
    patients: bool

    def __str__(self) -> str:
        unit = "patients" if self.patients else "cases"
        return f"{self.cases} | {self.classes} | {self.model} | {self.raters} | {unit}"


@dataclass(frozen=True)
class Table:
    """Deviations per unit (units, channels, bins), and the share and mean score of each cell."""

    deviation: Array
    share: Array
    score: Array


@dataclass(frozen=True)
class Outcome:
    """One interval of one replication."""

    metric: str
    truth: float
    value: float
    low: float
    high: float
    percentile_low: float
    percentile_high: float


def softmax(logits: Array) -> Array:
    """Return the class probabilities of each row."""
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def predictions(logits: Array, model: str) -> Array:
    """Return what the model says about cases with these true logits."""
    if model == "overconfident":
        return softmax(1.75 * logits)
    if model == "one class off":
        return softmax(logits + 0.7 * (np.arange(logits.shape[1]) == 0))
    return softmax(logits)


def draw(design: Design, random: np.random.Generator) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return the true logits, the raters' frequencies, and the resampling unit of each case."""
    cases, classes = design.cases, design.classes
    size = PATIENT if design.patients else 1
    unit = np.arange(cases) // size
    own = random.normal(size=(cases, classes))
    if design.patients:
        own = np.sqrt(0.5) * (own + random.normal(size=(cases // size, classes))[unit])
    logits = own * (1.5 if classes == 2 else 2.0)
    follows = random.random(cases) < (SHARED_NOISE if design.patients else 0)
    frequencies = np.zeros((cases, classes))
    for _ in range(design.raters):
        common = random.gumbel(size=(cases // size, classes))[unit]
        label_noise = np.where(follows[:, None], common, random.gumbel(size=(cases, classes)))
        frequencies[np.arange(cases), (logits + label_noise).argmax(axis=1)] += 1 / design.raters
    return logits, frequencies, unit


def hard_table(score: Array, gap: Array, unit: NDArray[np.int64], bins: int) -> Table:
    """Return the sums per unit, channel and equal-width bin of (cases, channels) scores."""
    cases, channels = score.shape
    cell = np.minimum((score * bins).astype(int), bins - 1) + np.arange(channels) * bins
    size, units = channels * bins, int(unit[-1]) + 1
    deviation = np.bincount(
        (unit[:, None] * size + cell).ravel(), gap.ravel() / cases, minlength=units * size
    )
    count = np.bincount(cell.ravel(), minlength=size)
    total = np.bincount(cell.ravel(), score.ravel(), minlength=size)
    mean = np.divide(total, count, out=np.zeros(size), where=count > 0)
    shape = (channels, bins)
    return Table(
        deviation.reshape(units, *shape), count.reshape(shape) / cases, mean.reshape(shape)
    )


def soft_table(score: Array, gap: Array, unit: NDArray[np.int64]) -> Table:
    """Return the Gaussian-weighted sums of RECE-G."""
    centre = (np.arange(BINS) + 0.5) / BINS
    weight = np.exp(-0.5 * ((score - centre) / SIGMA) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    parts = np.add.reduceat(weight * gap / len(score), np.flatnonzero(np.diff(unit, prepend=-1)))
    share = weight.mean(axis=0)
    return Table(parts[:, None, :], share[None], np.zeros((1, BINS)))


def tables(score: Array, frequencies: Array, unit: NDArray[np.int64]) -> dict[str, Table]:
    """Return the deviation tables that the calibration metrics are norms of."""
    top = score.argmax(axis=1)[:, None]
    top_score = np.take_along_axis(score, top, axis=1)
    top_gap = np.take_along_axis(frequencies, top, axis=1) - top_score
    return {
        "top": hard_table(top_score, top_gap, unit, BINS),
        "soft": soft_table(top_score, top_gap, unit),
        "fine": hard_table(top_score, top_gap, unit, CELLS),
        "classes": hard_table(score, frequencies - score, unit, BINS),
    }


def norm_of(metric: str, share: Array) -> tuple[str, Callable[[Array], Array]]:
    """Return the table that a calibration metric is a norm of, and the norm."""
    part = np.where(share > 0, share, np.inf)
    both = (-2, -1)
    return {
        "ece": ("top", lambda d: np.abs(d).sum(axis=both)),
        "classwise_ece": ("classes", lambda d: np.abs(d).sum(axis=both) / d.shape[-2]),
        "rms_ce": ("top", lambda d: np.sqrt((d**2 / part).sum(axis=both))),
        "mce": ("top", lambda d: (np.abs(d) / part).max(axis=both)),
        "calibration_loss": ("classes", lambda d: (d**2 / part).sum(axis=both)),
        "robust_ece": ("soft", lambda d: np.abs(d).sum(axis=both)),
        "ks": ("fine", lambda d: np.abs(np.cumsum(d, axis=-1)).max(axis=both)),
    }[metric]


SOURCE = {metric: norm_of(metric, np.ones(1))[0] for metric in CALIBRATION}


def per_case(metric: str, score: Array, frequencies: Array, raters: int) -> Array:
    """Return an ordinary metric case by case; with infinite raters the frequencies are exact."""
    if metric == "accuracy":
        return np.take_along_axis(frequencies, score.argmax(axis=1)[:, None], axis=1)[:, 0]
    if metric == "brier":
        return (score**2).sum(axis=1) - 2 * (score * frequencies).sum(axis=1) + 1
    within = frequencies * (1 - frequencies) / (raters - 1) if np.isfinite(raters) else 0
    return ((frequencies - score) ** 2 - within).sum(axis=1)


@lru_cache(maxsize=1)
def population(classes: int, model: str) -> tuple[dict[str, Table], dict[str, float]]:
    """Return tables and ordinary metrics of a million cases whose raters report q itself."""
    blocks, size = 5, 200_000
    sums: dict[str, Array] = {}
    shares: dict[str, Array] = {}
    means = dict.fromkeys(ORDINARY, 0.0)
    random = np.random.default_rng(20)
    for _ in range(blocks):
        logits, _, _ = draw(Design(size, classes, model, 0, False), random)
        truth, score = softmax(logits), predictions(logits, model)
        for name, table in tables(score, truth, np.zeros(size, dtype=np.int64)).items():
            sums[name] = sums.get(name, 0) + table.deviation[0] / blocks
            shares[name] = shares.get(name, 0) + table.share / blocks
        for metric in ORDINARY:
            means[metric] += per_case(metric, score, truth, np.inf).mean() / blocks
    return {n: Table(sums[n], shares[n], np.zeros_like(shares[n])) for n in sums}, means


def agreement_of(score: Array, frequencies: Array, raters: int) -> float:
    """Return the correlation of two raters of a case given its score."""
    if raters == 1:
        return 1.0
    within = (frequencies * (1 - frequencies)).sum() * raters / (raters - 1)
    return float(np.clip(1 - within / (score * (1 - score)).sum(), 0, 1))


def correction(table: Table, frequencies: Array, score: Array) -> float:
    """Return what LH eq 14 subtracts from the plug-in calibration loss."""
    cases, classes = score.shape
    cell = np.minimum((score * BINS).astype(int), BINS - 1) + np.arange(classes) * BINS
    size = classes * BINS
    count = table.share.ravel() * cases
    first = np.bincount(cell.ravel(), frequencies.ravel(), minlength=size)
    second = np.bincount(cell.ravel(), frequencies.ravel() ** 2, minlength=size)
    many = count > 1.5
    variance = second[many] / count[many] - (first[many] / count[many]) ** 2
    return float((count[many] / cases * variance / (count[many] - 1)).sum())


def replicate(design: Design, seed: int, drawn: Array) -> Iterator[Outcome]:
    """Yield the intervals of one simulated test set, given the resampling multiplicities."""
    logits, frequencies, unit = draw(design, np.random.default_rng([21, seed]))
    score = predictions(logits, design.model)
    truth_tables, truth_means = population(design.classes, design.model)
    units = drawn.shape[1]
    agreement = agreement_of(score, frequencies, design.raters)
    seen = tables(score, frequencies, unit)
    noise = {
        name: ((drawn - 1) @ table.deviation.reshape(units, -1)).reshape(-1, *table.share.shape)
        for name, table in seen.items()
    }
    for metric in CALIBRATION:
        table = seen[SOURCE[metric]]
        _, norm = norm_of(metric, table.share)
        deviation = table.deviation.sum(axis=0)
        exact = truth_tables[SOURCE[metric]]
        # The largest error is that of bins in which there is something to see.
        share = np.where(table.share > 0, exact.share, 0) if metric == "mce" else exact.share
        truth = float(norm_of(metric, share)[1](exact.deviation))
        value = plugin = float(norm(deviation))
        if metric == "calibration_loss":
            value = plugin - correction(table, frequencies, score)
        least = None
        if metric != "robust_ece":
            least = calibrated_noise(
                table.score, table.share, design.cases, design.raters, agreement
            )
        draws = noise[SOURCE[metric]]
        found = calibration_interval(
            norm, deviation, draws, value=value, least_noise=least, units=units
        )
        usual = percentile_interval(norm(deviation + draws) - plugin + value)
        yield Outcome(metric, truth, value, found.low, found.high, usual.low, usual.high)
    size = drawn @ np.bincount(unit)
    for metric in ORDINARY if design.raters > 1 else ORDINARY[:2]:
        each = per_case(metric, score, frequencies, design.raters)
        replicates = drawn @ np.bincount(unit, each) / size
        value = float(each.mean())
        best = bias_corrected_interval(value, replicates, units=units)
        usual = percentile_interval(replicates)
        yield Outcome(
            metric, truth_means[metric], value, best.low, best.high, usual.low, usual.high
        )


def simulate(design: Design, replications: int, resamples: int) -> list[Outcome]:
    """Return the outcomes of a design; the resampling draws are shared by its replications."""
    units = design.cases // (PATIENT if design.patients else 1)
    random = np.random.default_rng([22, units])
    drawn = random.multinomial(units, np.full(units, 1 / units), size=resamples).astype(float)
    return [o for seed in range(replications) for o in replicate(design, seed, drawn)]


def coverage(outcomes: list[Outcome], percentile: bool = False) -> float:
    """Return the percentage of the intervals that contain the truth."""
    slack = 1e-9  # a calibrated model's error is 0 up to rounding
    hits = [
        (o.percentile_low if percentile else o.low) - slack
        <= o.truth
        <= (o.percentile_high if percentile else o.high) + slack
        for o in outcomes
    ]
    return 100 * float(np.mean(hits))


def cell_text(outcomes: list[Outcome]) -> str:
    """Return 'coverage (percentile coverage), median width (percentile width)'."""
    if not outcomes:
        return "–"
    width = np.median([o.high - o.low for o in outcomes])
    usual = np.median([o.percentile_high - o.percentile_low for o in outcomes])
    return f"{coverage(outcomes):.0f} ({coverage(outcomes, True):.0f}), {width:.3f} ({usual:.3f})"


def print_tables(results: dict[Design, list[Outcome]]) -> None:
    """Print the summary per metric, and every design."""
    metrics = CALIBRATION + ORDINARY
    picked = {
        metric: [[o for o in rows if o.metric == metric] for rows in results.values()]
        for metric in metrics
    }
    print("| metric | lowest coverage | mean coverage | lowest, percentile | width ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for metric in metrics:
        cells = [rows for rows in picked[metric] if rows]
        if not cells:
            continue
        ours, usual = [[coverage(rows, p) for rows in cells] for p in (False, True)]
        ratio = np.median(
            [
                np.median([o.high - o.low for o in rows])
                / np.median([o.percentile_high - o.percentile_low for o in rows])
                for rows in cells
            ]
        )
        print(
            f"| {metric} | {min(ours):.1f} | {np.mean(ours):.1f} | {min(usual):.1f} | {ratio:.2f} |"
        )
    print("\n| cases | classes | model | raters | unit | " + " | ".join(metrics) + " |")
    print("| ---: | ---: | --- | ---: | --- |" + " --- |" * len(metrics))
    for position, design in enumerate(results):
        row = " | ".join(cell_text(picked[metric][position]) for metric in metrics)
        print(f"| {design} | {row} |")


def main() -> None:
    """Run every design and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--cases", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 10])
    parser.add_argument("--raters", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    designs = [
        Design(*d)
        for d in itertools.product(
            options.cases, options.classes, options.models, options.raters, (False, True)
        )
    ]
    results: dict[Design, list[Outcome]] = {}
    start = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        counts = [[n] * len(designs) for n in (options.replications, options.resamples)]
        for design, outcomes in zip(designs, pool.map(simulate, designs, *counts), strict=True):
            results[design] = outcomes
            elapsed = time.perf_counter() - start
            print(f"{len(results)}/{len(designs)} {elapsed:.0f} s  {design}", file=sys.stderr)
    print_tables(results)


if __name__ == "__main__":
    main()
