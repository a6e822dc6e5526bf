"""How often the intervals of `rw.compare` contain the true difference of two models.

    python benchmarks/difference_coverage.py --replications 200 --jobs 2 --out differences.jsonl

Both models predict the same simulated cases (`simulated_test_sets.py`), the truth is the difference
of their truths, and every interval is that of `rw.compare({"first": …, "second": …}, labels)`. The
last column is what the percentiles of the resampled differences would have covered. Runs are
resumed as those of `interval_coverage.py`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from interval_coverage import LOW, SLACK, counted, coverage, run
from simulated_test_sets import Design, Truth, draw, predicted

METRICS = (
    "ece", "robust_ece", "kde_ece", "calibration_loss", "calibration_error",
    "disagreement_calibration_error", "dispersion_loss", "brier",
)  # fmt: skip
PAIRS = {
    "both calibrated": ("calibrated", "half-blind"),
    "equally off": ("one-class-off", "other-class-off"),
    "one is off": ("calibrated", "overconfident"),
    "more and less off": ("overconfident", "slightly-overconfident"),
    "off in two ways": ("overconfident", "one-class-off"),
}
RATERS = 3
CALIBRATED = {"calibrated", "half-blind"}
OF_CALIBRATION = {
    "ece", "classwise_ece", "robust_ece", "kde_ece", "calibration_loss", "calibration_error",
}  # fmt: skip
"""Exactly 0 for a calibrated model; the average over a million cases is only nearly so."""


@dataclass(frozen=True)
class Settings:
    """What two runs must share for their lines to stand in one table."""

    metrics: tuple[str, ...]
    replications: int
    resamples: int
    seed: int


@dataclass(frozen=True)
class Pair:
    """Two models on one kind of test set."""

    kind: str
    cases: int
    classes: int

    @property
    def name(self) -> str:
        """What the pair is called in files and filters."""
        return f"n{self.cases}-k{self.classes}-{self.kind.replace(' ', '-')}"

    @property
    def models(self) -> tuple[str, str]:
        """The first and the second model."""
        return PAIRS[self.kind]


def simulate(pair: Pair, truths: Sequence[Truth], settings: Settings) -> dict[str, Any]:
    """Return how often the intervals of the differences contained the true ones."""
    start = time.perf_counter()
    ends: dict[str, list[tuple[float, float, float]]] = {metric: [] for metric in settings.metrics}
    clear, plain = dict.fromkeys(settings.metrics, 0), dict.fromkeys(settings.metrics, 0)
    true_of = {metric: true_difference(metric, pair, truths) for metric in settings.metrics}
    for replication in range(settings.replications):
        random = np.random.default_rng([settings.seed, replication, *pair.name.encode()])
        data = draw(Design(pair.cases, pair.classes, pair.models[0], RATERS, False), random)
        probs = {"first": data.probs, "second": predicted(data.logits, pair.models[1])}
        found = rw.compare(
            probs, rw.Labels.from_counts(data.counts), settings.metrics,
            resamples=settings.resamples, seed=replication, threads=1,
        )  # fmt: skip
        for metric in settings.metrics:
            d = found.difference(metric, "first", "second")
            true = true_of[metric]
            ends[metric].append((d.low - true, d.difference - true, d.high - true))
            clear[metric] += d.p_value <= 0.05
            drawn = [found.models[name].replicates[metric] for name in probs]
            low, high = np.quantile(drawn[0] - drawn[1], [0.025, 0.975])
            plain[metric] += bool(low <= true + SLACK and high >= true - SLACK)
    return {
        "design": pair.name,
        "settings": asdict(settings),
        "seconds": round(time.perf_counter() - start, 1),
        "metrics": {
            metric: {
                **counted(np.array(rows)),
                "truth": true_of[metric],
                "clear": clear[metric],
                "plain": plain[metric],
            }
            for metric, rows in ends.items()
        },
    }


def true_difference(metric: str, pair: Pair, truths: Sequence[Truth]) -> float:
    """Return first minus second."""
    first, second = (
        0.0 if metric in OF_CALIBRATION and model in CALIBRATED else truth.value[metric]
        for model, truth in zip(pair.models, truths, strict=True)
    )
    return first - second


def table(pairs: list[Pair], records: dict[str, Any], metrics: tuple[str, ...]) -> list[str]:
    """Return the lines of a table: coverage, and true difference and width, of every pair."""
    lines = [
        "| cases | classes | models | metric | true difference | coverage | truth below | "
        "truth above | width | p ≤ 0.05 | percentiles |",
        "| ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for pair, metric in itertools.product(pairs, metrics):
        cell = records[pair.name]["metrics"][metric]
        hit, sets = coverage(cell), cell["data_sets"]
        lines.append(
            f"| {pair.cases} | {pair.classes} | {pair.kind} | {metric} | {cell['truth']:+.4f} | "
            f"{f'**{hit:.0f}**' if hit < LOW else f'{hit:.0f}'} | "
            f"{100 * cell['truth_below'] / sets:.0f} | {100 * cell['truth_above'] / sets:.0f} | "
            f"{cell['width']:.4f} | {100 * cell['clear'] / sets:.0f} | "
            f"{100 * cell['plain'] / sets:.0f} |"
        )
    return lines


def main() -> None:
    """Simulate the pairs and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=200, help="test sets per pair")
    parser.add_argument("--resamples", type=int, default=400, help="of each bootstrap")
    parser.add_argument("--cases", type=int, nargs="+", default=[500], help="in a test set")
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 10], help="of the labels")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--metrics", nargs="+", default=list(METRICS), help="names")
    parser.add_argument("--seed", type=int, default=0, help="another seed: other test sets")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--out", type=Path, default=Path("differences.jsonl"), help="one line per finished pair"
    )
    given = parser.parse_args()
    settings = Settings(tuple(given.metrics), given.replications, given.resamples, given.seed)
    pairs = [
        Pair(kind, cases, classes)
        for cases, classes, kind in itertools.product(given.cases, given.classes, given.pairs)
    ]
    kinds = {pair: [(pair.classes, model) for model in pair.models] for pair in pairs}
    records = run(simulate, kinds, settings, given.out, given.jobs)
    print("\n".join(table(pairs, records, settings.metrics)))


if __name__ == "__main__":
    main()
