"""Whether the ± of a plan covers what a new study of that size really has.

    python benchmarks/plan_errors.py --pilots 100 --out plans.jsonl

Labels are drawn from a Dirichlet truth that an over-confident model of three classes is off from.
The truth of a width is that of many studies: 3.92 standard deviations of the estimate where a
formula says it, the mean width of the intervals where it is simulated. One line of JSON is written
per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from raterwise.catalog import find
from raterwise.planning import plan
from resumed import finished

CASES, RATERS = 150, (1, 4)
DESIGNS = {
    f"{metric}-{cases}-r{raters}": (metric, cases, raters)
    for metric in ("brier", "nll", "ece")
    for cases, raters in ((60, 2), (300, 3))
}


def study(cases: int, raters: int, random: Any) -> tuple[Any, rw.Labels]:
    """Return an over-confident model of a Dirichlet truth, and its raters."""
    mean = random.dirichlet(np.ones(3), cases)
    gammas = random.standard_gamma(2 * mean)
    truth = gammas / gammas.sum(axis=1, keepdims=True)
    sharp = mean**1.5
    labels = rw.Labels.from_counts(random.multinomial(raters, truth))
    return sharp / sharp.sum(axis=1, keepdims=True), labels


def true_width(metric: str, raters: int, random: Any) -> float:
    """Return what studies of that size have."""
    if find(metric).label_loss is not None:
        function = getattr(rw, metric)
        return 3.92 * float(np.std([function(*study(CASES, raters, random)) for _ in range(4000)]))
    found = [
        rw.evaluate(*study(CASES, raters, random), metrics=metric, resamples=100, threads=1)[metric]
        for _ in range(60)
    ]
    return float(np.mean([e.high - e.low for e in found]))  # type: ignore[operator]


def simulate(name: str, pilots: int, seed: int) -> dict[str, Any]:
    """Return widths, their spread over pilots, what was said of it, and how often it was enough."""
    metric, cases, raters = DESIGNS[name]
    random = np.random.default_rng([seed, *name.encode()])
    truth = [true_width(metric, r, random) for r in RATERS]
    found = [
        plan(
            metric, *study(cases, raters, random), cases=(CASES,), raters=RATERS, repeats=12,
            resamples=100, seed=i,
        ).designs
        for i in range(pilots)
    ]  # fmt: skip
    width, error = (
        np.array([[getattr(d, key) for d in designs] for designs in found])
        for key in ("width", "width_error")
    )
    return {
        "truth": truth,
        "width": width.mean(axis=0).tolist(), "spread": width.std(axis=0).tolist(),
        "said": error.mean(axis=0).tolist(),
        "covered": (np.abs(width - truth) < 2 * error).mean(axis=0).tolist(),
    }  # fmt: skip


def main() -> None:
    """Simulate the designs that the file lacks and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pilots", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--designs", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--out", type=Path, default=Path("plans.jsonl"))
    given = parser.parse_args()
    settings = {"pilots": given.pilots, "seed": given.seed}
    print("| pilot | raters planned | true width | planned | spread | said | within 2 said, % |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    names = [n for n in DESIGNS if any(fnmatch(n, p) for p in given.designs)]
    for r in finished(given.out, settings, names, lambda name: simulate(name, **settings)):
        for j, raters in enumerate(RATERS):
            cells = [f"{r[key][j]:.4f}" for key in ("truth", "width", "spread", "said")]
            print(
                f"| {r['design']} | {raters} | "
                + " | ".join(cells)
                + f" | {100 * r['covered'][j]:.0f} |"
            )


if __name__ == "__main__":
    main()
