"""How often the interval of a level's difference from the other cases holds the true difference.

    python benchmarks/subgroup_coverage.py --repeats 200 --out levels.jsonl

Three designs of two levels, three raters a case. The probabilities are powers of the raters' true
frequencies: 1 is calibrated, 2.5 far too sure. The truth is that of a million cases. One line of
JSON is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from resumed import finished

METRICS = ("accuracy", "brier", "auccc", "ece", "calibration_error")
DESIGNS = ((60, 300, 1.0, 1.0), (60, 300, 2.5, 1.0), (200, 200, 2.0, 2.0))
MANY = 1_000_000


def cases(random: Any, number: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of three classes and what three raters say."""
    truth = random.dirichlet(np.ones(3), number)
    probs = truth**power / (truth**power).sum(axis=1, keepdims=True)
    return probs, random.multinomial(3, truth)


def true_values(power: float) -> np.ndarray:
    """Return the metrics of very many cases."""
    probs, counts = cases(np.random.default_rng(9), MANY, power)
    found = rw.evaluate(probs, rw.Labels.from_counts(counts), METRICS, resamples=0)
    return np.array([found[name].value for name in METRICS])


def coverage(design: tuple[int, int, float, float], repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each interval holds the truth, and how often no difference is rejected."""
    first, second, power, other = design
    truth = true_values(power) - true_values(other)
    held = np.zeros((repeats, len(METRICS)))
    rejected = np.zeros_like(held)
    for b in range(repeats):
        random = np.random.default_rng([1000, b])
        parts = [cases(random, first, power), cases(random, second, other)]
        probs, counts = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        level = ["a"] * first + ["b"] * second
        labels = rw.Labels.from_counts(counts)
        found = rw.evaluate(probs, labels, METRICS, resamples=200, subgroups=level)
        made = [found.subgroups[0].differences[name] for name in METRICS]
        held[b] = [d.low <= t <= d.high for d, t in zip(made, truth, strict=True)]
        rejected[b] = [d.p_value < 0.05 for d in made]
    return held.mean(axis=0), rejected.mean(axis=0)


def main() -> None:
    """Print a line for each design and metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("levels.jsonl"))
    given = parser.parse_args()
    names = {f"{a} / {b} cases, powers {p:g} / {q:g}": (a, b, p, q) for a, b, p, q in DESIGNS}

    def simulate(name: str) -> dict[str, Any]:
        held, rejected = coverage(names[name], given.repeats)
        return {"held": held.tolist(), "rejected": rejected.tolist()}

    print(f"{'cases, powers':32} metric              covered  rejected")
    for record in finished(given.out, {"repeats": given.repeats}, names, simulate):
        for name, held, rejected in zip(METRICS, record["held"], record["rejected"], strict=True):
            print(f"{record['design']:32} {name:18} {held:8.1%} {rejected:9.1%}", flush=True)


if __name__ == "__main__":
    main()
