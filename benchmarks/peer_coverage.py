"""How often the intervals of the metrics that other libraries have contain the truth.

    python benchmarks/peer_coverage.py --replications 120 --out peers.jsonl

Two designs of 200 cases, of which docs/coverage.md has the table. "over-confident": three classes,
three raters, independent cases, a model whose logits are 1.5 times the true ones. "patients": two
classes, two raters, forty patients of five cases that share half of their variance, a model that is
too sure and too high. The truth is the same metric on 300,000 cases with the same number of raters;
of `kernel_calibration_error` and the debiased ECE, whose value does not hang on the sample size.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw

METRICS = (
    *("majority_accuracy", "ranked_log_score", "top_label_brier", "refinement_loss"),
    *("grouping_loss", "debiased_ece", "average_calibration_error", "canonical_ece"),
    *("kuiper_error", "kernel_calibration_error", "excess_aurc", "fpr_at_95_tpr"),
    "failure_average_precision",
)
OPTIONS: dict[str, dict[str, Any]] = {"canonical_ece": {"bins": 5}}
MANY = 300_000
CASES = {"over-confident": (200, 1), "patients": (40, 5)}
"""Patients, and cases of each."""
RATERS = {"over-confident": 3, "patients": 2}
Array = Any


def draw(design: str, patients: int, images: int, random: Any) -> tuple[Array, rw.Labels, Array]:
    """Return the model's probabilities, what the raters said, and the patient of each case."""
    classes = 3 if design == "over-confident" else 2
    share = 0.5 if images > 1 else 0.0
    own = random.normal(size=(patients, 1, classes)) * np.sqrt(share)
    rest = random.normal(size=(patients, images, classes)) * np.sqrt(1 - share)
    logit = 1.5 * (own + rest).reshape(-1, classes)
    truth = softmax(logit)
    probs = softmax(1.5 * logit + (0.0 if classes == 3 else np.array([0.0, 0.4])))
    reached = truth.cumsum(axis=1)
    drawn = random.random((len(truth), RATERS[design], 1))
    ratings = np.minimum((drawn > reached[:, None]).sum(axis=2), classes - 1)
    labels = rw.Labels.from_ratings(ratings, num_classes=classes)
    return probs, labels, np.repeat(np.arange(patients), images)


def softmax(logit: Array) -> Array:
    """Return class probabilities."""
    odds = np.exp(logit - logit.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def truth_of(design: str) -> dict[str, float]:
    """Return the metrics of a test set that is next to endless."""
    probs, labels, _ = draw(design, MANY, 1, np.random.default_rng(99))
    found = rw.evaluate(probs, labels, METRICS, options=OPTIONS, resamples=0)
    return {name: float(found[name]) for name in METRICS}


def replications(design: str, number: int, seed: int, resamples: int) -> list[dict[str, Any]]:
    """Return, of each test set, whether each interval holds the truth, and its width."""
    truth, rows = truth_of(design), []
    for i in range(number):
        random = np.random.default_rng([seed, i])
        probs, labels, patients = draw(design, *CASES[design], random)
        grouped = patients if CASES[design][1] > 1 else None
        found = rw.evaluate(
            probs, labels, METRICS, grouped, options=OPTIONS, resamples=resamples, seed=i
        )
        for name in METRICS:
            e = found[name]
            if e.low is None or e.high is None:
                continue
            side = "below" if e.high < truth[name] else "above" if e.low > truth[name] else "holds"
            rows.append({"design": design, "metric": name, "side": side, "width": e.high - e.low})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table: percent of intervals that hold the truth, by metric and design."""
    lines = ["| metric | " + " | ".join(CASES) + " |", "| --- " * (len(CASES) + 1) + "|"]
    for name in METRICS:
        cells = []
        for design in CASES:
            sides = [r["side"] for r in rows if (r["design"], r["metric"]) == (design, name)]
            cells.append(f"{100 * sides.count('holds') / max(len(sides), 1):.0f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the designs and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=120)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="a line of JSON for each interval")
    asked = parser.parse_args()
    start, rows = time.perf_counter(), []
    for design in CASES:
        rows += replications(design, asked.replications, asked.seed, asked.resamples)
    if asked.out is not None:
        asked.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(table(rows))
    print(f"\n{asked.replications} test sets each, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
