"""How often intervals hold the truth where test sets are small, saturated, unequal or badly off.

    python benchmarks/small_sample_coverage.py --replications 300 --seed 0 --out small.jsonl

Each design draws test sets from a population whose truth is worked out here, without raterwise, on
many cases whose raters report their true probabilities. Two ways to an interval stand beside each
other: `evaluate` is what `rw.evaluate` returns, `small` what the functions of
`raterwise.inference.small_samples` make of the values without each patient, which are computed here
too. The width is given over that of an oracle: 3.92 standard deviations of the estimate over the
test sets. One line of JSON is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import digamma

import raterwise as rw
from raterwise.inference import jackknife, small_samples
from simulated_test_sets import _mean_gap, _robust, _root_of_squares, _smooth, _table
from small_test_sets import (
    TestSet,
    chest,
    equal_patients,
    few_raters,
    heavy,
    rare,
    rare_patients,
    saturated,
    saturated_patients,
    sure,
    sure_patients,
    usual,
    waves,
    waves_of_four,
)

METRICS = ("accuracy", "brier", "nll", "auccc", "aurc", "augrc")
ERRORS = (
    "ece", "robust_ece", "smooth_ece", "kde_ece", "classwise_ece", "calibration_error",
)  # fmt: skip
"""Calibration errors, whose intervals `rw.evaluate` makes (`small` has none of them)."""
OF_RATERS = ("ece", "calibration_error", "epistemic_loss")
"""Those that are asked of few raters."""
SLACK = 1e-9
POPULATION = 400_000
Array = Any


# --- values, and values without each unit ---------------------------------------------------------


def ranked(mass: Array, hits: Array) -> dict[str, Array]:
    """Return AUCCC, AURC and AUGRC of cases in order of falling confidence, all distinct.

    `mass` and `hits` may have a leading axis. AURC of masses is the limit of many cases per mass.
    """
    wrong = mass - hits
    accepted, errors = np.cumsum(mass, axis=-1), np.cumsum(wrong, axis=-1)
    total, all_wrong = accepted[..., -1:], errors[..., -1:]
    all_right = total - all_wrong
    with np.errstate(invalid="ignore", divide="ignore"):
        area = (hits * (all_wrong - errors + 0.5 * wrong)).sum(-1) / (all_right * all_wrong)[..., 0]
        area = np.where((all_wrong > 1e-9)[..., 0], area, np.nan)
    before = accepted - mass
    rate = wrong / np.where(mass > 0, mass, 1)
    steps = digamma(accepted + 1) - digamma(before + 1)
    aurc = (wrong + (errors - wrong - rate * before) * steps).sum(-1) / total[..., 0]
    e = (all_wrong / total)[..., 0]
    augrc = np.nan_to_num(1 - area) * e * (1 - e) + e**2 / 2
    return {"auccc": area, "aurc": aurc, "augrc": augrc}


def values(probs: Array, frequencies: Array, raters: float, times: Array) -> dict[str, Array]:
    """Return the metrics with each case `times` often: shape (…, cases)."""
    top = probs.argmax(axis=1)
    rows = np.arange(len(top))
    order = np.argsort(-probs[rows, top], kind="stable")
    hits = frequencies[rows, top]
    half = 2 if probs.shape[1] == 2 else 1
    brier = ((probs**2).sum(1) - 2 * (probs * frequencies).sum(1) + 1) / half
    nll = -(frequencies * np.log(np.clip(probs, 1e-300, 1))).sum(axis=1)
    each = {"accuracy": hits, "brier": brier, "nll": nll}
    total = times.sum(axis=-1)
    out = {name: (times * score).sum(axis=-1) / total for name, score in each.items()}
    mass = raters * times[..., order]
    return out | ranked(mass, mass * hits[order])


def truth_of(make: Callable[..., TestSet], size: int) -> dict[str, float]:
    """Return the metrics of many cases whose raters report the truth."""
    data = make(np.random.default_rng(99), size, 1)
    return truth_in(data)


def truth_in(data: TestSet) -> dict[str, float]:
    """Return the metrics of these cases if their raters reported the truth."""
    found = values(data.probs, data.true, 1.0, np.ones(len(data.probs)))
    gap = data.true - data.probs
    found["epistemic_loss"] = (gap**2).sum(axis=1).mean()
    if np.allclose(gap, 0):  # calibrated: every error is 0, not what rounding leaves
        return {name: float(value) for name, value in found.items()} | dict.fromkeys(ERRORS, 0.0)
    top, rows = data.probs.argmax(axis=1), np.arange(len(data.probs))
    order = np.argsort(data.probs[rows, top])
    score, top_gap = data.probs[rows, top][order], gap[rows, top][order]
    channel = np.broadcast_to(np.arange(gap.shape[1]), gap.shape)
    by_class, share = _table(data.probs, gap, channel, gap.shape[1], len(gap))
    found |= {
        "ece": np.abs(_table(score, top_gap, 0 * order, 1, len(gap))[0]).sum(),
        "robust_ece": _robust(score, top_gap),
        "smooth_ece": _smooth(score, top_gap),
        "kde_ece": _mean_gap(top_gap, 200),
        "classwise_ece": np.abs(by_class).sum() / len(by_class),
        "calibration_error": _root_of_squares(by_class, share),
    }
    return {name: float(value) for name, value in found.items()}


# --- intervals ------------------------------------------------------------------------------------


def small_intervals(data: TestSet, unit: str) -> dict[str, tuple[float, float, float]]:
    """Return value and ends by `raterwise.inference.small_samples`."""
    cases, raters = data.ratings.shape
    frequencies = data.counts() / raters
    point = values(data.probs, frequencies, raters, np.ones(cases))
    parts = [
        values(data.probs, data.counts(r) / (raters - 1), raters - 1, np.ones(cases))
        for r in range(raters if unit != "cases" else 0)
    ]
    without_rater = {name: np.array([part[name] for part in parts]) for name in METRICS}
    who = np.arange(cases) if data.patients is None else data.patients
    member = who == np.arange(who.max() + 1)[:, None]
    without = values(data.probs, frequencies, raters, 1.0 - member)
    hits = frequencies[np.arange(cases), data.probs.argmax(axis=1)]
    masses = member @ hits, member @ (1 - hits)
    found = {}
    for name in METRICS:
        value = float(point[name])
        if not np.isfinite(value):
            continue
        by_case = by_rater = None
        if unit != "raters" and np.isfinite(without[name]).all():
            by_case = jackknife.linearise(value, without[name], member.sum(axis=1))
        if unit != "cases":
            by_rater = jackknife.linearise(value, without_rater[name])
        if unit == "raters":
            assert by_rater is not None
            found[name] = value, *jackknife.student_interval(by_rater)
        elif unit == "both":
            assert by_case is not None and by_rater is not None
            both, _ = jackknife.crossed([by_case, by_rater])
            found[name] = value, *jackknife.student_interval(both)
        else:
            found[name] = value, *of_cases(name, value, by_case, masses, data.probs)
    return found


def of_cases(
    name: str, value: float, found: Any, masses: tuple[Array, Array], probs: Array
) -> tuple[float, float]:
    """Return the ends of one metric's interval over cases or patients."""
    if name == "auccc":
        return small_samples.separation_interval(found, value, masses)
    if name == "accuracy":
        return small_samples.proportion_interval(found)
    own, squared, spread = STEPS[name](probs)
    dear = {}
    if name == "aurc":  # the dearer of two errors anywhere, in one case
        part = found.units / len(probs)
        dear = {"dear": 1.5 * part, "squared_dear": 3.5 * part**2}
    return small_samples.loss_interval(found, step=own, squared_step=squared, spread=spread, **dear)


def brier_step(probs: Array) -> tuple[float, float, float]:
    """Return what an error that the model expects adds, its square, and the variance per case.

    With v = Σ_k z(1-z)(1-2z)², the variance of the loss of a calibrated case: Σ v / Σ_k z(1-z).
    """
    half = 2 if probs.shape[1] == 2 else 1
    spread = probs * (1 - probs)
    variance = (spread * (1 - 2 * probs) ** 2).sum(axis=1) / half
    own = float(variance.sum() / spread.sum() * half)
    return own, own**2, float(variance.mean())


def nll_step(probs: Array) -> tuple[float, float, float]:
    """Return the same of the log loss, for an error in any case: the mean of -log(1 - z).

    The errors that a model expects are cheap, those of its sure cases are not; the variance is that
    of -log p of a label drawn from p.
    """
    log = np.log(np.clip(probs, 1e-300, 1))
    variance = (probs * log**2).sum(axis=1) - (probs * log).sum(axis=1) ** 2
    wrong = -np.log1p(-np.clip(probs.max(axis=1), 0, 1 - 1e-12))
    return float(wrong.mean()), float((wrong**2).mean()), float(variance.mean())


STEPS: dict[str, Callable[[Array], tuple[float, float, float]]] = {
    "brier": brier_step,
    "nll": nll_step,
    "aurc": lambda probs: (1.0, 2.0, 0.0),  # the mean of log(N / rank) and of its square
    "augrc": lambda probs: (0.5, 1 / 3, 0.0),
}


def evaluated(
    data: TestSet, unit: str, seed: int, resamples: int
) -> dict[str, tuple[float, float, float]]:
    """Return value and ends by `rw.evaluate`."""
    cases, raters = data.ratings.shape
    labels: Any
    if raters == 1:
        labels = rw.Labels.from_classes(data.ratings[:, 0], num_classes=data.probs.shape[1])
    else:
        items, who = np.divmod(np.arange(cases * raters), raters)
        labels = rw.Labels.from_long(
            items, who, data.ratings.ravel(), num_classes=data.probs.shape[1]
        )
    asked = METRICS + (ERRORS if unit == "cases" else OF_RATERS)
    found = rw.evaluate(
        data.probs, labels, metrics=asked, groups=data.patients, resamples=resamples, seed=seed,
        threads=1, unit=unit,
    )  # fmt: skip
    return {
        name: (e.value, e.low, e.high)
        for name in asked
        if (e := found[name]).value is not None and e.low is not None
    }


@dataclass(frozen=True)
class Design:
    """One kind of test set."""

    name: str
    make: Callable[..., TestSet]
    size: int
    raters: int = 1
    unit: str = "cases"
    ways: tuple[str, ...] = ("evaluate", "small")
    """Leaving out each of thousands of cases by itself would be slow here."""


DESIGNS = (
    Design("saturated-50", saturated, 50),
    Design("saturated-200", saturated, 200),
    Design("saturated-200-r3", saturated, 200, 3),
    Design("sure-50", sure, 50),
    Design("sure-200", sure, 200),
    Design("sure-heavy-50", sure_patients, 50),
    Design("sure-heavy-200", sure_patients, 200),
    Design("rare-50", rare, 50),
    Design("rare-200", rare, 200),
    Design("usual-50", usual, 50),
    Design("usual-200", usual, 200),
    Design("usual-200-r3", usual, 200, 3),
    Design("saturated-patients-20", saturated_patients, 20),
    Design("rare-patients-20", rare_patients, 20),
    Design("rare-patients-50", rare_patients, 50),
    Design("patients-8", equal_patients, 8),
    Design("patients-20", equal_patients, 20),
    Design("heavy-20", heavy, 20),
    Design("heavy-50", heavy, 50),
    Design("heavy-200", heavy, 200),
    Design("waves-500", waves, 500),
    Design("waves-3000", waves, 3000, ways=("evaluate",)),
    Design("waves-of-four-3000", waves_of_four, 3000, 3, ways=("evaluate",)),
    Design("chest-50", chest, 50),
    Design("chest-200", chest, 200),
    Design("raters-3", few_raters, 200, 3, "raters"),
    Design("raters-5", few_raters, 200, 5, "raters"),
    Design("both-100-3", few_raters, 100, 3, "both"),
    Design("both-40-8", few_raters, 40, 8, "both"),
)


def known_truth(design: Design) -> dict[str, float]:
    """Return the metrics of the design's population."""
    return truth_of(design.make, POPULATION if design.make is not heavy else POPULATION // 5)


def one(
    design: Design,
    truth: dict[str, float],
    replication: int,
    seed: int,
    ways: Sequence[str],
    resamples: int,
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return, of one test set, low, value and high minus the truth, by way and metric."""
    random = np.random.default_rng([seed, replication, *design.name.encode()])
    data = design.make(random, design.size, design.raters)
    known = truth_in(data) if design.unit == "raters" else truth  # of these cases, over all raters
    ends = {}
    for way in [way for way in ways if way in design.ways]:
        made = (
            evaluated(data, design.unit, replication, resamples)
            if way == "evaluate"
            else small_intervals(data, design.unit)
        )
        for name, (value, low, high) in made.items():
            true = float(known[name])
            ends[way, name] = low - true, value - true, high - true
    return ends


def simulate(
    design: Design, replications: int, seed: int, ways: list[str], resamples: int = 300
) -> dict[str, Any]:
    """Return coverage, side of misses and width of every metric and way."""
    start = time.perf_counter()
    truth = known_truth(design)
    ends: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for replication in range(replications):
        for key, row in one(design, truth, replication, seed, ways, resamples).items():
            ends.setdefault(key, []).append(row)
    return {
        "design": design.name, "seed": seed, "replications": replications, "ways": ways,
        "resamples": resamples,
        "seconds": round(time.perf_counter() - start, 1),
        "cells": {
            f"{way}/{name}": counted(np.array(rows), truth[name])
            for (way, name), rows in ends.items()
        },
    }  # fmt: skip


def counted(ends: Array, truth: float) -> dict[str, float]:
    """Return counts from (test sets, 3): low, value, high minus the truth."""
    width, oracle = ends[:, 2] - ends[:, 0], 3.92 * float(np.std(ends[:, 1]))
    return {
        "data_sets": len(ends),
        "truth": truth,
        "truth_below": int((ends[:, 0] > SLACK).sum()),
        "truth_above": int((ends[:, 2] < -SLACK).sum()),
        "points": int((width <= SLACK).sum()),
        "width": float(np.median(width) / oracle) if oracle > 0 else 0.0,
    }


def table(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield Markdown: per design and metric, each way's coverage (below, above) and width."""
    ways = records[0]["ways"]
    heads = " | ".join(f"{way} | below | above | width" for way in ways)
    yield f"| design | metric | truth | {heads} |"
    yield "| --- | --- | ---: |" + " ---: | ---: | ---: | ---: |" * len(ways)
    for record in records:
        for name in dict.fromkeys(METRICS + ERRORS + OF_RATERS):
            if not any(key.endswith("/" + name) for key in record["cells"]):
                continue
            parts = []
            for way in ways:
                cell = record["cells"].get(f"{way}/{name}")
                if cell is None:
                    parts.append("– | – | – | –")
                    continue
                sets = cell["data_sets"]
                below, above = (100 * cell[k] / sets for k in ("truth_below", "truth_above"))
                parts.append(
                    f"{100 - below - above:.0f} | {below:.1f} | {above:.1f} | {cell['width']:.2f}"
                )
            truth = next(c["truth"] for k, c in record["cells"].items() if k.endswith("/" + name))
            yield f"| {record['design']} | {name} | {truth:.4f} | " + " | ".join(parts) + " |"


def main() -> None:
    """Simulate the designs that the file lacks and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=300, help="test sets per design")
    parser.add_argument("--seed", type=int, default=0, help="another seed: other test sets")
    parser.add_argument("--resamples", type=int, default=300, help="of rw.evaluate")
    parser.add_argument("--designs", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--ways", nargs="+", default=["evaluate", "small"])
    parser.add_argument("--out", type=Path, default=Path("small.jsonl"))
    given = parser.parse_args()
    done: dict[str, Any] = {}
    for line in given.out.read_text().splitlines() if given.out.exists() else []:
        record = json.loads(line)
        same = ("seed", "replications", "ways", "resamples")
        if all(record.get(name) == getattr(given, name) for name in same):
            done[record["design"]] = record
    asked = [d for d in DESIGNS if any(fnmatch(d.name, p) for p in given.designs)]
    for design in asked:
        if design.name not in done:
            done[design.name] = simulate(
                design, given.replications, given.seed, given.ways, given.resamples
            )
            with given.out.open("a") as file:
                file.write(json.dumps(done[design.name]) + "\n")
    print("\n".join(table([done[design.name] for design in asked])))


if __name__ == "__main__":
    main()
