"""How often the intervals of ICI, E50 and E90 and the curve's band hold the truth where it bends.

    python benchmarks/smooth_curve_coverage.py --repeats 100 --seed 41 --out smooth.jsonl
    python benchmarks/smooth_curve_coverage.py --repeats 100 --seed 41 --out smooth.jsonl --report

Loess with R's span of 3/4 rounds off what bends within it, by the same amount however many cases
there are. Log odds of the model are normal, and the true curve is a formula: log odds that are
twice the true ones, or half; waves; a step, at which no smoother is right; a plateau; rare and
common findings whose gaps lie in a tail. The truth is a sum over a fine grid. One line of JSON is
written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import raterwise as rw
from resumed import command

METRICS = ("ici", "e50", "e90")
Array = Any
Curve = Callable[[Array], Array]
CURVES: dict[str, tuple[float, float, Curve]] = {
    "calibrated": (-1.0, 3.0, lambda p: p),
    "twice too sure": (0.0, 6.0, lambda p: expit(logit(p) / 2)),
    "half as sure": (0.25, 1.25, lambda p: expit(2 * logit(p))),
    "waves": (0.0, 1.5, lambda p: p + 0.4 * p * (1 - p) * np.sin(4 * np.pi * p)),
    "a step": (0.0, 1.5, lambda p: p / 4 + np.where(p < 0.4, 0.11, 0.53)),
    "a plateau": (0.0, 1.5, lambda p: np.clip(p, 0.2, 0.75)),
    "2% positive": (-5.2, 2.0, lambda p: expit((logit(p) - 0.8) / 1.3)),
    "97% positive": (4.3, 1.65, lambda p: expit((logit(p) + 0.8) / 1.1)),
}
"""The mean and the standard deviation of the model's log odds, and the true curve."""
SIZES = (300, 1500, 6000)
DESIGNS = {
    f"{name}, {cases} cases{', patients of five, 3 raters' if images > 1 else ''}": (
        *(name, cases, images, 3 if images > 1 else 1),
    )
    for name, (cases, images) in product(CURVES, (*product(SIZES, (1,)), (1500, 5)))
}


def truth_of(name: str) -> dict[str, float]:
    """Return ICI, E50 and E90 of an endless test set."""
    centre, spread, curve = CURVES[name]
    p = expit(centre + spread * norm.ppf((np.arange(200_000) + 0.5) / 200_000))
    gap = np.abs(curve(p) - p)
    values = (gap.mean(), *np.quantile(gap, (0.5, 0.9)))
    return dict(zip(METRICS, map(float, values), strict=True))


def simulate(
    name: str, cases: int, images: int, raters: int, repeats: int, seed: int
) -> dict[str, Any]:
    """Return how often intervals and band held the truth, lay above or below it, and how wide."""
    centre, spread, curve = CURVES[name]
    true, at = truth_of(name), np.linspace(0.1, 0.9, 9)
    ends: dict[str, list[Any]] = {metric: [] for metric in METRICS}
    places = []
    for repeat in range(repeats):
        random = np.random.default_rng([seed, repeat, cases, images, *name.encode()])
        u = random.standard_normal(cases)
        groups = np.repeat(np.arange(cases // images), images) if images > 1 else None
        if groups is not None:
            u = np.sqrt(0.5) * (u + random.standard_normal(cases // images)[groups])
        probs = expit(centre + spread * u)
        votes = random.binomial(raters, curve(probs))
        labels = rw.Labels.from_counts(np.stack((raters - votes, votes), axis=1))
        told: dict[str, Any] = {"groups": groups, "resamples": 200, "seed": repeat}
        found = rw.evaluate(probs, labels, METRICS, threads=1, **told)
        for metric in METRICS:
            ends[metric].append((found[metric].low, found[metric].value, found[metric].high))
        band = rw.calibration_curve(probs, labels, at=at, **told)
        places.append((band.low, band.observed, band.high))
    out = {}
    for metric, each in {**ends, "band": places}.items():
        low, value, high = np.moveaxis(np.array(each), 1, 0)
        t = curve(at) if metric == "band" else true[metric]
        known = np.isfinite(value)
        out[metric] = {
            "truth": None if metric == "band" else round(float(t), 4),
            "mean": None if metric == "band" else round(float(value.mean()), 4),
            "above": float((low > t + 1e-12)[known].mean()),
            "below": float((high < t - 1e-12)[known].mean()),
            # Of an error that is 0 in most cases though the model is off elsewhere: `low` begins
            # at a hundredth of the value, since 0 would say that the model is calibrated.
            "nearly": float((low > np.maximum(t, value / 99))[known].mean()),
            "width": round(float((high - low)[known].mean()), 4),
        }
    return {"metrics": out}


def report(records: list[dict[str, Any]]) -> str:
    """Return a table: percent held (above, below), and the mean width."""
    lines = ["| design | ICI | E50 | E90 | band |", "| --- | --- | --- | --- | --- |"]
    for record in records:
        row = [record["design"]]
        for metric in (*METRICS, "band"):
            one = record["metrics"][metric]
            above = one["nearly"] if one["truth"] == 0 and "calibrated" not in row[0] else None
            above = one["above"] if above is None else above
            held = 100 * (1 - above - one["below"])
            said = f"{held:.0f}" if held >= 91.5 else f"**{held:.0f}**"
            row.append(f"{said} ({100 * above:.0f}, {100 * one['below']:.0f}) {one['width']:.3f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    command(__doc__, DESIGNS, simulate, report, repeats=100, seed=41, out="smooth.jsonl")
