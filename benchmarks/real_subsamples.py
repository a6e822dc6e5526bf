"""How often intervals hold the value of the full set, on samples of real test sets.

    python benchmarks/real_subsamples.py --replications 120 --out real.jsonl

(RATERWISE_DATA=../shared/data says where the sets are.)

The full set is the population: cases (or patients, with all that they have) are drawn from it with
replacement, so that its value is the truth of every sample, whatever the cases are like.

    cifar   CIFAR-10H, 10,000 images with 51 raters each on average, two published networks
    lidc    LIDC, nodules of half of the 875 patients, 1 to 8 radiologists each: suspicion
            (malignancy above 3) from the diameter, fitted to the other half; whole patients
    chest   ChestX-ray14, a published CheXNet, effusion, one label per image; whole patients

*r1* and *r3*: so many of a case's raters are drawn, too; otherwise a case comes with all of them.
One line of JSON is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw
from small_sample_coverage import ERRORS, METRICS, counted, table
from small_test_sets import DATA, chest_films, two

OF_SEVERAL = ("epistemic_loss",)
Array = Any


@dataclass(frozen=True, eq=False)
class Full:
    """A real test set: probabilities, label histograms, and the patients."""

    probs: Array
    counts: Array
    patients: Array | None = None


@cache
def cifar(model: str) -> Full:
    """Return the outputs of a network with the human labels of CIFAR-10H."""
    with np.load(DATA / "cifar10_test_outputs.npz", allow_pickle=False) as file:
        probs = file[f"probs_{model}"].astype(float)
    counts = np.load(DATA / "cifar10h_counts.npy", allow_pickle=False)
    return Full(probs / probs.sum(axis=1, keepdims=True), counts)


@cache
def lidc(_: str) -> Full:
    """Return suspicion from the diameter alone, of every second patient."""
    with (DATA / "lidc_ratings.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = [(row["scan_id"], row["nodule"]) for row in rows]
    places = {name: i for i, name in enumerate(dict.fromkeys(names))}
    nodule = np.array([places[name] for name in names])
    suspicious = np.array([int(row["malignancy"]) > 3 for row in rows])
    size = np.log([float(row["diameter_mm"]) for row in rows])
    raters = np.bincount(nodule)
    x, yes = np.bincount(nodule, size) / raters, np.bincount(nodule, suspicious)
    patient_of = dict(zip(nodule.tolist(), (row["patient_id"] for row in rows), strict=True))
    who = np.unique([patient_of[i] for i in range(len(raters))], return_inverse=True)[1]
    kept = who % 2 == 0
    probs = two(_logistic(x[~kept], yes[~kept], raters[~kept], x[kept]))
    counts = np.stack([raters - yes, yes], axis=1)[kept].astype(int)
    return Full(probs, counts, np.unique(who[kept], return_inverse=True)[1])


def _logistic(x: Array, yes: Array, of: Array, new: Array) -> Array:
    """Fit a logistic regression on x and its square by Newton's method; return it at `new`."""

    def features(values: Array) -> Array:
        centred = values - x.mean()
        return np.stack([np.ones(len(values)), centred, centred**2], axis=1)

    known, beta = features(x), np.zeros(3)
    for _ in range(30):
        p = 1 / (1 + np.exp(-known @ beta))
        slope = known.T @ (yes - of * p)
        beta += np.linalg.solve((known * (of * p * (1 - p))[:, None]).T @ known, slope)
    return 1 / (1 + np.exp(-features(new) @ beta))


@cache
def chest(_: str) -> Full:
    """Return effusion on chest films."""
    probs, labels, who = chest_films()
    return Full(probs, np.eye(2, dtype=int)[labels], who)


@dataclass(frozen=True)
class Design:
    """How many units are drawn from which set, and how many of the raters (0: all)."""

    name: str
    full: Any
    which: str
    units: int
    raters: int = 0


DESIGNS = (
    Design("cifar-vgg16-50-r1", cifar, "vgg16_keras", 50, 1),
    Design("cifar-vgg16-200-r1", cifar, "vgg16_keras", 200, 1),
    Design("cifar-vgg16-200", cifar, "vgg16_keras", 200),
    Design("cifar-lenet5-50-r3", cifar, "lenet5_netcal", 50, 3),
    Design("cifar-lenet5-200-r3", cifar, "lenet5_netcal", 200, 3),
    Design("lidc-20", lidc, "", 20),
    Design("lidc-50", lidc, "", 50),
    Design("lidc-200", lidc, "", 200),
    Design("chest-20", chest, "", 20),
    Design("chest-100", chest, "", 100),
)


def sample(design: Design, full: Full, random: Any) -> tuple[Array, rw.Labels, Array | None]:
    """Draw units of the full set, and raters of each case."""
    who = np.arange(len(full.probs)) if full.patients is None else full.patients
    order = np.argsort(who, kind="stable")
    starts = np.searchsorted(who[order], np.arange(who.max() + 2))
    drawn = random.integers(0, who.max() + 1, design.units)
    rows = np.concatenate([order[starts[g] : starts[g + 1]] for g in drawn])
    patients = np.repeat(np.arange(design.units), np.diff(starts)[drawn])
    counts = full.counts[rows]
    if design.raters:
        counts = some_raters(random, counts, design.raters)
    return full.probs[rows], rw.Labels.from_counts(counts), patients


def some_raters(random: Any, counts: Array, raters: int) -> Array:
    """Draw so many of the raters of each case, without replacement."""
    return np.stack([random.multivariate_hypergeometric(row, raters) for row in counts])


def asked(design: Design, full: Full) -> tuple[str, ...]:
    """Return the metrics: those of several raters where every case has them."""
    fewest = design.raters or int(full.counts.sum(axis=1).min())
    return METRICS + ERRORS + (OF_SEVERAL if fewest > 1 else ())


def known_truth(design: Design) -> dict[str, float]:
    """Return the metrics of the full set."""
    full = design.full(design.which)
    metrics, labels = asked(design, full), rw.Labels.from_counts(full.counts)
    everyone = rw.evaluate(full.probs, labels, metrics=metrics, resamples=0)
    return {name: float(everyone[name]) for name in metrics}


def one(
    design: Design, truth: dict[str, float], replication: int, seed: int, resamples: int
) -> dict[str, tuple[float, float, float]]:
    """Return, of one sample, low, value and high of every metric minus the truth."""
    full = design.full(design.which)
    random = np.random.default_rng([seed, replication, *design.name.encode()])
    probs, labels, patients = sample(design, full, random)
    found = rw.evaluate(
        probs, labels, metrics=list(truth), resamples=resamples, seed=replication, threads=1,
        groups=None if full.patients is None else patients,
    )  # fmt: skip
    ends = {}
    for name, true in truth.items():
        e = found[name]
        if e.value is not None and e.low is not None and e.high is not None:
            ends[name] = e.low - true, e.value - true, e.high - true
    return ends


def simulate(design: Design, replications: int, seed: int, resamples: int) -> dict[str, Any]:
    """Return coverage, side of misses and width of every metric."""
    start, truth = time.perf_counter(), known_truth(design)
    ends: dict[str, list[tuple[float, float, float]]] = {}
    for replication in range(replications):
        for name, row in one(design, truth, replication, seed, resamples).items():
            ends.setdefault(name, []).append(row)
    return {
        "design": design.name, "seed": seed, "replications": replications, "resamples": resamples,
        "ways": ["evaluate"], "seconds": round(time.perf_counter() - start, 1),
        "cells": {f"evaluate/{n}": counted(np.array(rows), truth[n]) for n, rows in ends.items()},
    }  # fmt: skip


def main() -> None:
    """Simulate the designs that the file lacks and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=150, help="samples per design")
    parser.add_argument("--seed", type=int, default=0, help="another seed: other samples")
    parser.add_argument("--resamples", type=int, default=200, help="of rw.evaluate")
    parser.add_argument("--designs", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--out", type=Path, default=Path("real.jsonl"))
    given = parser.parse_args()
    done: dict[str, Any] = {}
    for line in given.out.read_text().splitlines() if given.out.exists() else []:
        record = json.loads(line)
        same = ("seed", "replications", "resamples")
        if all(record[name] == getattr(given, name) for name in same):
            done[record["design"]] = record
    chosen = [d for d in DESIGNS if any(fnmatch(d.name, p) for p in given.designs)]
    for design in chosen:
        if design.name not in done:
            done[design.name] = simulate(design, given.replications, given.seed, given.resamples)
            with given.out.open("a") as file:
                file.write(json.dumps(done[design.name]) + "\n")
    print("\n".join(table([done[design.name] for design in chosen])))


if __name__ == "__main__":
    main()
