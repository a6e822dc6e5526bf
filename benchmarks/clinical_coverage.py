"""How often the intervals of the clinical metrics contain the truth.

    python benchmarks/clinical_coverage.py --replications 300 --out clinical.jsonl

Designs of two classes with a true probability q of each case, and raters who say yes with that
probability: "rare" (one in twenty, calibrated, several raters) and "saturated" (sure of nearly all
cases), each of independent cases and of patients with correlated images. The truth of a metric is
that of four million cases, by sums over q and not by raterwise. One line of JSON is written per
finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from resumed import finished

THRESHOLDS = {"rare": 0.1, "saturated": 0.5}
MOST = 4_000_000
Array = Any


def draw(design: str, patients: int, images: int, random: Any) -> tuple[Array, Array, Array]:
    """Return the model's probability, the true one, and the patient of each image."""
    own = random.normal(size=(patients, 1)) * (0.7 if images > 1 else 0.0)
    rest = random.normal(size=(patients, images)) * np.sqrt(1 - (0.49 if images > 1 else 0.0))
    x = (own + rest).ravel()
    logit = -4.2 + 1.8 * x if design == "rare" else -2.0 + 8.0 * x
    q = 1 / (1 + np.exp(-logit))
    # The saturated model is surer than it should be.
    p = q if design == "rare" else 1 / (1 + np.exp(-1.3 * logit))
    return p, q, np.repeat(np.arange(patients), images)


def truth_of(design: str) -> dict[str, float]:
    """Return the metrics of an endless test set, whose labels are their probabilities."""
    p, q, _ = draw(design, MOST, 1, np.random.default_rng(99))
    order = np.argsort(p)
    p, q = p[order], q[order]
    t = THRESHOLDS[design]
    above = p >= t
    tp, fp, yes, no = q[above].sum(), (1 - q[above]).sum(), q.sum(), (1 - q).sum()
    found, accepted = np.cumsum(q[::-1]), np.arange(1, len(q) + 1)
    return {
        "auroc": float((q * (np.cumsum(1 - q) - (1 - q) / 2)).sum() / (yes * no)),
        "average_precision": float((q[::-1] * found / accepted).sum() / yes),
        "sensitivity": float(tp / yes),
        "specificity": float(1 - fp / no),
        "ppv": float(tp / (tp + fp)),
        "npv": float((no - fp) / (~above).sum()),
        "f1": float(2 * tp / (tp + fp + yes)),
        "net_benefit": float((tp - fp * t / (1 - t)) / len(q)),
    }


def simulate(
    design: str, patients: int, images: int, raters: int, replications: int, seed: int
) -> dict[str, Any]:
    """Return how often each interval held the truth, missed it below or above, and its width."""
    truth, start = truth_of(design), time.perf_counter()
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in truth}
    told = {"threshold": THRESHOLDS[design], "resamples": 2, "threads": 1}
    for r in range(replications):
        random = np.random.default_rng([seed, r, patients, images, *design.encode()])
        p, q, patient = draw(design, patients, images, random)
        votes = random.binomial(raters, q)
        labels = rw.Labels.from_counts(np.stack((raters - votes, votes), axis=1))
        found = rw.evaluate(p, labels, list(truth), groups=patient, seed=r, **told)
        for name in truth:
            if found[name].low is not None:
                rows[name].append((found[name].low, found[name].high))
    out: dict[str, Any] = {}
    for name, ends in rows.items():
        low, high = np.array(ends).reshape(-1, 2).T
        out[name] = {
            "truth": round(truth[name], 4),
            "defined": len(low),
            "covered": round(float(((low <= truth[name]) & (truth[name] <= high)).mean()), 3),
            "too_high": round(float((low > truth[name]).mean()), 3),
            "too_low": round(float((high < truth[name]).mean()), 3),
            "width": round(float(np.mean(high - low)), 3),
        }
    return {"seconds": round(time.perf_counter() - start, 1), "metrics": out}


DESIGNS = {
    f"{kind}, {patients} × {images}, {raters} raters": (kind, patients, images, raters)
    for kind, patients, images, raters in (
        ("rare", 200, 1, 1),
        ("rare", 200, 1, 3),
        ("rare", 60, 5, 3),
        ("saturated", 100, 1, 3),
        ("saturated", 40, 5, 3),
    )
}


def main() -> None:
    """Run every design and write a line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("clinical.jsonl"))
    told = parser.parse_args()
    settings = {"replications": told.replications, "seed": told.seed}
    for record in finished(
        told.out, settings, DESIGNS, lambda name: simulate(*DESIGNS[name], **settings)
    ):
        print(json.dumps(record, indent=1), flush=True)


if __name__ == "__main__":
    main()
