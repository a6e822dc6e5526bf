"""How often nothing is called something: differences, sub-groups, and the test at zero.

    python benchmarks/null_rates.py --replications 200 --seed 0 --out nulls.jsonl

Designs called *power* or *off* have an effect; of the others at most five of a hundred test sets
may show one. Of
`rw.compare` the p-values are also held against their intervals, which they must not contradict. One
line of JSON is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

import raterwise as rw
from small_test_sets import equal_patients, heavy, labels_of, two

RESAMPLES = 200
LEVEL = 0.05
COMPARED = ("accuracy", "brier", "auccc", "aurc", "ece")
OF_LEVELS = ("accuracy", "brier", "ece")
OF_CLASSES = ("classwise_ece", "sce", "calibration_error")
AT_ZERO = ("ece", "smooth_ece", "kde_ece", "adaptive_ece")
SIZES = (0.46, 0.27, 0.14, 0.08, 0.05)
"""The shares of five unequal levels."""


def compared(random: Any, seed: int, patients: int, unequal: bool) -> Counter[str]:
    """Compare two models that are equally good: each has noise of its own on the same logits."""
    data = (heavy if unequal else equal_patients)(random, patients)
    logit = np.log(data.probs[:, 1] / data.probs[:, 0])
    models = {
        name: two(expit(logit + random.normal(0, 1, len(logit)))) for name in ("first", "second")
    }
    labels = rw.Labels.from_classes(data.ratings[:, 0], num_classes=2)
    found = rw.compare(
        models, labels, metrics=COMPARED, groups=data.patients, resamples=RESAMPLES, seed=seed,
        threads=1,
    )  # fmt: skip
    counts: Counter[str] = Counter()
    for d in found.differences:
        counts[f"{d.metric}: of"] += 1
        counts[f"{d.metric}: p <= 0.05"] += d.p_value <= LEVEL
        outside = not d.low <= 0 <= d.high
        counts["p-values that contradict their interval"] += (d.p_value <= LEVEL) != outside
    return counts


def levels(random: Any, seed: int, patients: str, off: float = 0.0) -> Counter[str]:
    """Look at five unequal levels that have nothing to do with how good the model is.

    In the second of them the part `off` of the labels is turned round, so that the model is worse.
    """
    if patients:
        data = (heavy if patients == "heavy" else equal_patients)(random, 80)
        who, probs, labels = data.patients, data.probs, data.ratings[:, 0]
        level = random.choice(5, size=who.max() + 1, p=SIZES)[who]
        turned = (level == 1) & (random.random(len(level)) < off)
        labels = np.where(turned, 1 - labels, labels)
    else:
        probs = two(expit(random.normal(0, 2, 400)))
        who, labels = None, labels_of(random, probs, 1)[:, 0]
        level = random.choice(5, size=400, p=SIZES)
    found = rw.evaluate(
        probs, rw.Labels.from_classes(labels, num_classes=2), metrics=OF_LEVELS, groups=who,
        subgroups={"scanner": level.astype(str)}, resamples=RESAMPLES, seed=seed, threads=1,
    )  # fmt: skip
    told = [d for group in found.subgroups for d in group.differences.values()]
    raw = [d.p_value for d in told if d.p_value is not None]
    second = [g.differences["brier"] for g in found.subgroups if g.level == "1"]
    adjusted = [d.adjusted_p_value for d in told if d.adjusted_p_value is not None]
    return Counter(
        {
            "any adjusted p <= 0.05: of": 1,
            "any adjusted p <= 0.05": min(adjusted, default=1.0) <= LEVEL,
            "brier of the second level, adjusted p <= 0.05": sum(
                d.adjusted_p_value is not None and d.adjusted_p_value <= LEVEL for d in second
            ),
            "any raw p <= 0.05": min(raw, default=1.0) <= LEVEL,
            "adjusted below raw p": sum(
                d.adjusted_p_value < d.p_value - 1e-12
                for d in told
                if d.adjusted_p_value is not None and d.p_value is not None
            ),
        }
    )


def at_zero(
    random: Any,
    seed: int,
    cases: int,
    classes: int,
    raters: int,
    by: float,
    scale: float = 1.0,
    asked: tuple[str, ...] = AT_ZERO,
) -> Counter[str]:
    """Ask of a calibrated model (`scale` 1) or of too sure a one whether its error is above 0."""
    logits = random.normal(0, by, (cases, classes))
    true = softmax(logits, axis=1)
    counts = (labels_of(random, true, raters)[:, :, None] == np.arange(classes)).sum(axis=1)
    found = rw.evaluate(
        softmax(scale * logits, axis=1), rw.Labels.from_counts(counts), metrics=asked,
        resamples=RESAMPLES, seed=seed, threads=1,
    )  # fmt: skip
    out: Counter[str] = Counter()
    for name in asked:
        low = found[name].low
        out[f"{name}.low > 0: of"] += low is not None
        out[f"{name}.low > 0"] += low is not None and low > 0
    return out


def at_zero_of_patients(
    random: Any, seed: int, patients: int, asked: tuple[str, ...] = AT_ZERO
) -> Counter[str]:
    """Ask it of a model that is calibrated over patients who share their labels' noise."""
    who = np.repeat(np.arange(patients), 5)
    logits = np.sqrt(0.5) * (
        random.normal(0, 1.5, (len(who), 2)) + random.normal(0, 1.5, (patients, 2))[who]
    )
    common = random.random(len(who)) < 0.3
    noise = np.where(
        common[:, None], random.gumbel(size=(patients, 2))[who], random.gumbel(size=(len(who), 2))
    )
    found = rw.evaluate(
        softmax(logits, axis=1), (logits + noise).argmax(axis=1), metrics=asked, groups=who,
        resamples=RESAMPLES, seed=seed, threads=1,
    )  # fmt: skip
    out: Counter[str] = Counter()
    for name in asked:
        low = found[name].low
        out[f"{name}.low > 0: of"] += 1
        out[f"{name}.low > 0"] += low is not None and low > 0
    return out


DESIGNS: dict[str, Callable[[Any, int], Counter[str]]] = {
    "compare-8-patients": partial(compared, patients=8, unequal=False),
    "compare-20-unequal": partial(compared, patients=20, unequal=True),
    "levels-cases": partial(levels, patients=""),
    "levels-patients": partial(levels, patients="heavy"),
    "levels-equal-patients": partial(levels, patients="equal"),
    "levels-patients-off": partial(levels, patients="heavy", off=0.5),
    "levels-equal-patients-off": partial(levels, patients="equal", off=0.3),
    "zero-50-k2-r1": partial(at_zero, cases=50, classes=2, raters=1, by=1.5),
    "zero-100-k2-r1": partial(at_zero, cases=100, classes=2, raters=1, by=1.5),
    "zero-100-k2-r3": partial(at_zero, cases=100, classes=2, raters=3, by=1.5),
    "zero-500-k5-r1": partial(at_zero, cases=500, classes=5, raters=1, by=2.0),
    "zero-100-saturated": partial(at_zero, cases=100, classes=2, raters=1, by=12.0),
    "zero-20-patients": partial(at_zero_of_patients, patients=20),
    "k2-100": partial(at_zero, cases=100, classes=2, raters=1, by=1.5, asked=OF_CLASSES),
    "k3-100": partial(at_zero, cases=100, classes=3, raters=1, by=1.5, asked=OF_CLASSES),
    "k5-500": partial(at_zero, cases=500, classes=5, raters=1, by=2.0, asked=OF_CLASSES),
    "k5-100-r3": partial(at_zero, cases=100, classes=5, raters=3, by=2.0, asked=OF_CLASSES),
    "sat-k2": partial(at_zero, cases=100, classes=2, raters=1, by=12.0, asked=OF_CLASSES),
    "sat-k5": partial(at_zero, cases=200, classes=5, raters=1, by=9.0, asked=OF_CLASSES),
    "pat20": partial(at_zero_of_patients, patients=20, asked=OF_CLASSES),
    "power-k2": partial(
        at_zero, cases=100, classes=2, raters=1, by=1.5, scale=1.8, asked=OF_CLASSES
    ),
    "power-k5": partial(
        at_zero, cases=100, classes=5, raters=1, by=2.0, scale=1.4, asked=OF_CLASSES
    ),
    "power-100-k2-r1": partial(at_zero, cases=100, classes=2, raters=1, by=1.5, scale=1.8),
    "power-100-k2-r3": partial(at_zero, cases=100, classes=2, raters=3, by=1.5, scale=1.8),
}


def simulate(name: str, replications: int, seed: int) -> dict[str, Any]:
    """Return the counts of one design."""
    counts: Counter[str] = Counter()
    for replication in range(replications):
        random = np.random.default_rng([seed, replication, *name.encode()])
        counts.update(DESIGNS[name](random, replication))
    return {
        "design": name, "seed": seed, "replications": replications,
        "counts": {key: int(count) for key, count in counts.items()},
    }  # fmt: skip


def main() -> None:
    """Simulate the designs that the file lacks and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=200, help="test sets per design")
    parser.add_argument("--seed", type=int, default=0, help="another seed: other test sets")
    parser.add_argument("--designs", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--out", type=Path, default=Path("nulls.jsonl"))
    given = parser.parse_args()
    done: dict[str, Any] = {}
    for line in given.out.read_text().splitlines() if given.out.exists() else []:
        record = json.loads(line)
        if (record["seed"], record["replications"]) == (given.seed, given.replications):
            done[record["design"]] = record
    print("| design | what | times | of | % |\n| --- | --- | ---: | ---: | ---: |")
    for name in [n for n in DESIGNS if any(fnmatch(n, p) for p in given.designs)]:
        if name not in done:
            done[name] = simulate(name, given.replications, given.seed)
            with given.out.open("a") as file:
                file.write(json.dumps(done[name]) + "\n")
        counts = done[name]["counts"]
        for what, count in counts.items():
            if what.endswith(": of"):
                continue
            of = counts.get(f"{what.split(':')[0]}: of", given.replications)
            print(f"| {name} | {what} | {count} | {of} | {100 * count / of:.1f} |", flush=True)


if __name__ == "__main__":
    main()
