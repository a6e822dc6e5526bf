"""How often the intervals of weak calibration and of the smooth curve contain the truth.

    python benchmarks/weak_calibration_coverage.py --repeats 200 --out weak.jsonl

A case has a log odds l of its true probability q, N(centre, spread²); the model says a + b l
instead, so the truth is known: intercept and slope from the two numbers, the ratio and the distance
of the true calibration curve from the diagonal by a sum over a fine grid of l. Raters draw their
labels from q. With patients, cases of a patient share part of l and all of an error of the model.
One line of JSON is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

import raterwise as rw
from resumed import finished

METRICS = (
    "observed_expected_ratio",
    "calibration_intercept",
    "calibration_slope",
    "ici",
    "e50",
    "e90",
)


@dataclass(frozen=True)
class Design:
    """One kind of test set."""

    name: str
    cases: int
    patients: int | None
    raters: int
    centre: float
    spread: float
    shift: float
    power: float
    """The model's log odds are shift + power × those of the truth."""


DESIGNS = (
    Design("50 cases, 3 raters, too sure", 50, None, 3, 0.0, 1.5, 0.0, 1.6),
    Design("200 cases, 3 raters, too sure", 200, None, 3, 0.0, 1.5, 0.0, 1.6),
    Design("200 cases, calibrated", 200, None, 1, 0.0, 1.5, 0.0, 1.0),
    Design("400 cases of 80 patients, rare, too high", 400, 80, 1, -2.5, 1.2, 0.5, 1.0),
    Design("100 cases, 95% positive, calibrated", 100, None, 1, 3.5, 1.2, 0.0, 1.0),
    Design("300 cases of 60 patients, 95% positive, too low", 300, 60, 1, 3.5, 1.2, -0.5, 1.0),
)


def truth(design: Design) -> dict[str, float]:
    """Return what the metrics estimate, from the definitions."""
    u = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    odds = design.centre + design.spread * u
    q, said = expit(odds), design.shift + design.power * odds
    p = expit(said)
    gap = np.abs(q - p)
    large = brentq(lambda a: float((q - expit(a + said)).mean()), -10, 10)
    values = (
        q.mean() / p.mean(),
        large,
        1 / design.power,
        gap.mean(),
        *np.quantile(gap, (0.5, 0.9)),
    )
    return dict(zip(METRICS, map(float, values), strict=True))


def draw(design: Design, random: np.random.Generator) -> tuple[Any, rw.Labels, Any]:
    """Return probabilities, labels and patients of one test set."""
    u = random.standard_normal(design.cases)
    groups = None
    if design.patients is not None:
        groups = np.arange(design.cases) % design.patients
        shared = random.standard_normal(design.patients)[groups]
        u = np.sqrt(0.5) * shared + np.sqrt(0.5) * u
    odds = design.centre + design.spread * u
    votes = random.binomial(design.raters, expit(odds))
    labels = rw.Labels.from_counts(np.stack((design.raters - votes, votes), axis=1))
    return expit(design.shift + design.power * odds), labels, groups


def simulate(i: int, repeats: int, resamples: int) -> dict[str, Any]:
    """Return how often the intervals of each metric held the truth."""
    design = DESIGNS[i]
    true = truth(design)
    found: dict[str, list[Any]] = {name: [] for name in METRICS}
    for repeat in range(repeats):
        probs, labels, groups = draw(design, np.random.default_rng([i, repeat]))
        results = rw.evaluate(probs, labels, METRICS, groups, resamples=resamples)
        for name in METRICS:
            e = results[name]
            if e.low is not None:
                found[name].append((e.low, e.value, e.high))
    out = {}
    for name, ends in found.items():
        low, value, high = np.array(ends).T
        t = true[name]
        out[name] = {
            "truth": round(t, 4),
            "sets": len(ends),
            "mean": round(float(value.mean()), 4),
            "covered": float(((low <= t) & (t <= high)).mean()),
            "below": float((high < t).mean()),
            "above": float((low > t).mean()),
            "width": round(float((high - low).mean()), 4),
        }
    return {"metrics": out}


def main() -> None:
    """Print a line per design and metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--design", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("weak.jsonl"))
    asked = parser.parse_args()
    settings = {"repeats": asked.repeats, "resamples": asked.resamples}
    number = {design.name: i for i, design in enumerate(DESIGNS) if asked.design in (None, i)}
    for record in finished(
        asked.out, settings, number, lambda name: simulate(number[name], **settings)
    ):
        for metric, line in record["metrics"].items():
            print(json.dumps({"design": record["design"], "metric": metric, **line}), flush=True)


if __name__ == "__main__":
    main()
