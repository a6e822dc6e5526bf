"""Does the correction for chance bring calibration errors nearer to the truth?

    python benchmarks/correction_rmse.py --replications 30 --seed 7 --out rmse.jsonl

The root mean squared error of the value and of `debiased` (shown as *corrected*), on the test sets
of `simulated_test_sets.py` without patients: 200 cases, and 1000 with one rater. One line of JSON
is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from resumed import finished
from simulated_test_sets import DESIGNS, Design, Truth, draw, truth_of

METRICS = (
    "ece", "classwise_ece", "sce", "rms_ce", "mce", "adaptive_ece", "robust_ece", "ks_error",
    "smooth_ece", "kde_ece",
)  # fmt: skip
RESAMPLES = 150
ASKED = [
    d for d in DESIGNS if not d.patients and (d.cases == 200 or (d.cases == 1000 and d.raters == 1))
]


def errors(design: Design, truth: Truth, replications: int, seed: int) -> dict[str, list[float]]:
    """Return the root mean squared error of value and corrected value, metric by metric."""
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in METRICS}
    for replication in range(replications):
        data = draw(design, np.random.default_rng([seed, replication, *design.name.encode()]))
        labels = rw.Labels.from_counts(data.counts) if design.raters > 1 else data.counts.argmax(1)
        found = rw.evaluate(
            data.probs, labels, metrics=METRICS, resamples=RESAMPLES, seed=replication, threads=1
        )
        for name in METRICS:
            calibrated = design.model == "calibrated"
            true = 0.0 if calibrated else truth.of(name, data.occupied)
            value, corrected = found[name].value, found[name].debiased
            assert value is not None and corrected is not None
            rows[name].append((value - true, corrected - true))
    return {
        name: [float(error) for error in np.sqrt(np.mean(np.square(each), axis=0))]
        for name, each in rows.items()
    }


def table(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield Markdown: the mean over designs of each kind of model, plain → corrected."""
    kinds = ("calibrated", "one-class-off", "overconfident")
    yield "| metric | " + " | ".join(kinds) + " | nearer with the correction |"
    yield "| --- |" + " ---: |" * (len(kinds) + 1)
    for name in METRICS:
        cells = []
        for kind in kinds:
            of = [r["errors"][name] for r in records if kind in r["design"]]
            plain, corrected = np.mean(of, axis=0) if of else (np.nan, np.nan)
            cells.append(f"{plain:.4f} → {corrected:.4f}")
        better = sum(r["errors"][name][1] < r["errors"][name][0] for r in records)
        yield f"| {name} | " + " | ".join(cells) + f" | {better} of {len(records)} |"


def main() -> None:
    """Simulate the designs that the file lacks and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=30, help="test sets per design")
    parser.add_argument("--seed", type=int, default=7, help="another seed: other test sets")
    parser.add_argument("--out", type=Path, default=Path("rmse.jsonl"))
    given = parser.parse_args()
    settings = {"replications": given.replications, "seed": given.seed}
    designs, known = {design.name: design for design in ASKED}, cache(truth_of)

    def simulate(name: str) -> dict[str, Any]:
        design = designs[name]
        return {"errors": errors(design, known(design.classes, design.model), **settings)}

    print("\n".join(table(list(finished(given.out, settings, designs, simulate)))))


if __name__ == "__main__":
    main()
