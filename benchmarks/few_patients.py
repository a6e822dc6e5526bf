"""How often few patients, each off in its own way, make a calibrated model look miscalibrated.

    python benchmarks/few_patients.py --repeats 200 --seed 7 --out few_patients.jsonl
    python benchmarks/few_patients.py --repeats 200 --seed 7 --out few_patients.jsonl --report

Labels of patient g are drawn with log odds l + τ b_g, b_g standard normal, and the model says the
mean of that over patients, by Gauss-Hermite quadrature: it is calibrated, and wrong about each
patient. "Twice as sure" multiplies its log odds. One line of JSON per finished design; a run that
was stopped goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit

import raterwise as rw
from resumed import command

SIZES = {
    "8 unequal": (1, 2, 5, 9, 20, 40, 80, 137),
    "8 equal": (37,) * 8,
    "20 unequal": (1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 40, 60, 80),
    "60 equal": (5,) * 60,
}
METRICS = ("ece", "classwise_ece", "ks_error", "smooth_ece", "kde_ece", "ici", "calibration_error")
DESIGNS = {
    f"{patients} patients, τ = {spread}{', twice as sure' if power > 1 else ''}": (
        *(patients, spread, power),
    )
    for spread, power in ((0.0, 1.0), (0.5, 1.0), (1.0, 1.0), (0.3, 2.0))
    for patients in SIZES
}


def draw(patients: str, spread: float, power: float, random: Any) -> tuple[Any, Any, Any]:
    """Return probabilities, labels and patients."""
    group = np.repeat(np.arange(len(SIZES[patients])), SIZES[patients])
    own, shared = random.standard_normal((2, len(SIZES[patients])))
    odds = 1.5 * np.sqrt(0.5) * (own[group] + random.standard_normal(len(group)))
    labels = (random.random(len(group)) < expit(odds + spread * shared[group])).astype(int)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    mean = expit(odds[:, None] + spread * nodes) @ weights / weights.sum()
    return expit(power * logit(mean)), labels, group


def simulate(patients: str, spread: float, power: float, repeats: int, seed: int) -> dict[str, Any]:
    """Return how often zero was rejected, and what the headline was."""
    found = dict.fromkeys((*METRICS, "red", "amber"), 0)
    for repeat in range(repeats):
        random = np.random.default_rng([seed, repeat])
        probs, labels, group = draw(patients, spread, power, random)
        results = rw.evaluate(probs, labels, METRICS, group, resamples=200, seed=repeat, threads=1)
        for metric in METRICS:
            found[metric] += bool(results[metric].p_value <= 0.05)
        verdict = results.data["verdict"]
        found["red"] += bool(verdict["miscalibrated"])
        found["amber"] += bool(verdict["possibly"] and not verdict["miscalibrated"])
    return {"percent": {name: round(100 * n / repeats, 1) for name, n in found.items()}}


def report(records: list[dict[str, Any]]) -> str:
    """Return a table: a row per design."""
    names = (*METRICS, "red", "amber")
    lines = ["| design | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    for record in records:
        row = [f"{record['percent'][name]:.1f}" for name in names]
        lines.append(f"| {record['design']} | " + " | ".join(row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    command(__doc__, DESIGNS, simulate, report, repeats=200, seed=7, out="few_patients.jsonl")
