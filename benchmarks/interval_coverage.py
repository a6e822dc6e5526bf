"""How often the intervals of `rw.evaluate` contain the truth, where the truth is known.

    python benchmarks/interval_coverage.py --replications 80 --jobs 2 --out coverage.jsonl

Every interval is that of `rw.evaluate(probs, labels, groups=patients)`, every truth is worked out
without raterwise (`simulated_test_sets.py`). One line of JSON is written per finished design; a run
that was stopped goes on where it was, and a finished one prints its Markdown again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from simulated_test_sets import DESIGNS, Design, Truth, draw, truth_of

METRICS = (
    "ece", "classwise_ece", "sce", "rms_ce", "mce", "adaptive_ece", "robust_ece", "ks_error",
    "smooth_ece", "kde_ece", "calibration_loss", "calibration_error", "accuracy", "brier", "nll",
    "auccc", "aurc",
)  # fmt: skip
OF_SEVERAL_RATERS = (
    "epistemic_loss", "dispersion_loss", "disagreement_loss", "disagreement_calibration_error",
    "fleiss_kappa",
)  # fmt: skip
SLACK = 1e-9  # a calibrated model's error is 0 up to rounding
LOW = 90  # a coverage below this is flagged
LARGE = 5000  # cases of the designs with --large-replications


@dataclass(frozen=True)
class Settings:
    """What two runs must share for their lines to stand in one table."""

    metrics: tuple[str, ...]
    replications: int
    large_replications: int
    resamples: int
    interval: str
    seed: int

    def data_sets(self, design: Design) -> int:
        """How many test sets of the design are simulated."""
        return self.large_replications if design.cases == LARGE else self.replications

    def asked(self, design: Design) -> list[str]:
        """Which metrics the design has enough raters for."""
        return [m for m in self.metrics if design.raters > 1 or m not in OF_SEVERAL_RATERS]


def simulate(design: Design, truths: Sequence[Truth], settings: Settings) -> dict[str, Any]:
    """Return how often the intervals of the design contained the truth, metric by metric."""
    start = time.perf_counter()
    (truth,) = truths
    asked = settings.asked(design)
    ends: dict[str, list[tuple[float, float, float]]] = {metric: [] for metric in asked}
    for replication in range(settings.data_sets(design)):
        for metric, row in one(design, truth, settings, replication).items():
            ends[metric].append(row)
    return {
        "design": design.name,
        "settings": asdict(settings),
        "seconds": round(time.perf_counter() - start, 1),
        "metrics": {metric: counted(np.array(rows)) for metric, rows in ends.items() if rows},
    }


def one(
    design: Design, truth: Truth, settings: Settings, replication: int
) -> dict[str, tuple[float, float, float]]:
    """Return, of one test set, low, value and high of every metric minus the truth."""
    # Seeded by name: designs do not share test sets, so neither do they share bad luck.
    random = np.random.default_rng([settings.seed, replication, *design.name.encode()])
    data, asked = draw(design, random), settings.asked(design)
    labels = rw.Labels.from_counts(data.counts) if design.raters > 1 else data.counts.argmax(1)
    results = rw.evaluate(
        data.probs, labels, metrics=asked, groups=data.patients,
        resamples=settings.resamples, seed=replication, interval=settings.interval, threads=1,
    )  # fmt: skip
    ends = {}
    for metric in asked:
        found = results[metric]
        if found.value is not None:
            true = truth.of(metric, data.occupied)
            assert found.low is not None and found.high is not None
            ends[metric] = found.low - true, found.value - true, found.high - true
    return ends


def counted(ends: np.ndarray) -> dict[str, float]:
    """Return counts from (test sets, 3): low, value and high minus the truth."""
    return {
        "data_sets": len(ends),
        "truth_below": int((ends[:, 0] > SLACK).sum()),
        "truth_above": int((ends[:, 2] < -SLACK).sum()),
        "width": float(np.median(ends[:, 2] - ends[:, 0])),
        "bias": float(np.mean(ends[:, 1])),
        "oracle": 3.92 * float(np.std(ends[:, 1])),
    }


def finished(path: Path, settings: Any) -> dict[str, dict[str, Any]]:
    """Return the designs that the file has with the same settings."""
    done = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # the line that a killed run was writing
            continue
        if record["settings"] == json.loads(json.dumps(asdict(settings))):
            done[record["design"]] = record
    return done


def append(path: Path, line: str) -> None:
    """Add a line to the file, apart from one that a killed run left unfinished."""
    with path.open("a+b") as file:
        begin = file.seek(0, os.SEEK_END)
        if begin:
            file.seek(begin - 1)
            line = line if file.read() == b"\n" else "\n" + line
        file.write(line.encode() + b"\n")


def run(
    simulate: Callable[[Any, list[Truth], Any], dict[str, Any]],
    designs: Mapping[Any, Sequence[tuple[int, str]]],
    settings: Any,
    path: Path,
    jobs: int,
) -> dict[str, Any]:
    """Simulate the designs that the file lacks; return the records of all.

    `designs` says of each whose truths it needs: the number of classes and the model.
    """
    done = finished(path, settings)
    waiting = {design: kinds for design, kinds in designs.items() if design.name not in done}
    start = time.perf_counter()
    with ProcessPoolExecutor(jobs) as pool:
        needed = sorted({kind for kinds in waiting.values() for kind in kinds})
        truths = {kind: pool.submit(truth_of, *kind) for kind in needed}
        tasks = [
            pool.submit(
                simulate, design, [truths[kind].result() for kind in waiting[design]], settings
            )
            for design in sorted(waiting, key=lambda design: -design.cases)
        ]
        for number, task in enumerate(as_completed(tasks), start=1):
            record = task.result()
            done[record["design"]] = record
            append(path, json.dumps(record))
            minutes = (time.perf_counter() - start) / 60
            print(
                f"{number}/{len(tasks)} {minutes:.1f} min {record['design']} "
                f"({record['seconds']:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
    return {design.name: done[design.name] for design in designs}


def coverage(cell: dict[str, float]) -> float:
    """Return the percentage of the intervals that contained the truth."""
    return 100 * (1 - (cell["truth_below"] + cell["truth_above"]) / cell["data_sets"])


def summary(metrics: Iterable[str], records: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table per metric."""
    yield "| metric | designs | lowest | mean | truth below | truth above | width | under 90 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for metric in metrics:
        cells = [r["metrics"][metric] for r in records.values() if metric in r["metrics"]]
        if not cells:
            continue
        hits = [coverage(cell) for cell in cells]
        below, above = (
            100 * np.mean([cell[side] / cell["data_sets"] for cell in cells])
            for side in ("truth_below", "truth_above")
        )
        width = np.median([cell["width"] for cell in cells])
        under = sum(hit < LOW for hit in hits)
        yield (
            f"| {metric} | {len(cells)} | {min(hits):.0f} | {np.mean(hits):.1f} | {below:.1f} | "
            f"{above:.1f} | {width:.3f} | {under} |"
        )


def full(metrics: Sequence[str], records: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of every design: coverage and width."""
    yield "| cases | classes | model | raters | unit | " + " | ".join(metrics) + " |"
    yield "| ---: | ---: | --- | ---: | --- |" + " --- |" * len(metrics)
    for design in DESIGNS:
        if design.name not in records:
            continue
        unit = "patients" if design.patients else "cases"
        facts = (design.cases, design.classes, design.model, design.raters, unit)
        found = records[design.name]["metrics"]
        cells = [cell_text(found.get(metric)) for metric in metrics]
        yield "| " + " | ".join([*map(str, facts), *cells]) + " |"


def cell_text(cell: dict[str, float] | None) -> str:
    """Return coverage and width, in bold where the coverage is flagged."""
    if cell is None:
        return "–"
    hit = coverage(cell)
    return f"{f'**{hit:.0f}**' if hit < LOW else f'{hit:.0f}'}, {cell['width']:.3f}"


def main() -> None:
    """Run the designs and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=80, help="test sets per design")
    parser.add_argument(
        "--large-replications", type=int, help=f"the same for {LARGE} cases (default: as many)"
    )
    parser.add_argument("--resamples", type=int, default=400, help="of each bootstrap")
    parser.add_argument(
        "--interval", default="auto", choices=("auto", "percentile"), help="as in rw.evaluate"
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed: other test sets")
    parser.add_argument(
        "--designs", nargs="+", default=["*"], help='patterns of names, such as "n200-k2-*-r3-*"'
    )
    parser.add_argument(
        "--metrics", nargs="+", default=[*METRICS, *OF_SEVERAL_RATERS], help="names"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--out", type=Path, default=Path("coverage.jsonl"), help="one line per finished design"
    )
    given = parser.parse_args()
    settings = Settings(
        tuple(given.metrics),
        given.replications,
        given.large_replications or given.replications,
        given.resamples,
        given.interval,
        given.seed,
    )
    designs = [d for d in DESIGNS if any(fnmatch(d.name, pattern) for pattern in given.designs)]
    if not designs:
        parser.error(f"--designs: none matches {given.designs}; a name is {DESIGNS[0].name}")
    kinds = {design: [(design.classes, design.model)] for design in designs}
    records = run(simulate, kinds, settings, given.out, given.jobs)
    print("\n".join([*summary(settings.metrics, records), "", *full(settings.metrics, records)]))


if __name__ == "__main__":
    main()
