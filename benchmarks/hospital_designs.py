"""How the intervals and the verdict do in test sets as hospitals make them.

    python benchmarks/hospital_designs.py --sets 300 --out hospital.jsonl
    python benchmarks/hospital_designs.py --sets 300 --out hospital.jsonl --design grades --seed 5

Every model is calibrated (but for what rounding does), so red verdicts and errors whose interval
leaves out 0 are false alarms. The truth of the other metrics follows from the definitions, without
raterwise, over 200,000 cases that lie evenly in the population. A line of JSON is written per
finished design, a run that was stopped goes on, and a Markdown table of all is printed at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

import raterwise as rw
from resumed import finished
from small_test_sets import labels_of, two

EVEN = ndtri((np.arange(200_000) + 0.5) / 200_000)
"""The standard normal distribution, in equal parts."""
CALIBRATED = {"observed_expected_ratio": 1.0, "calibration_slope": 1.0}
ERRORS = ("ece", "rms_ce", "mce", "sce", "smooth_ece", "kde_ece")
USUAL = ("accuracy", "brier", "auroc", "observed_expected_ratio", "calibration_slope")
OF_CASES = tuple(name for name in USUAL if name != "auroc")  # which counts readings
DECIDED = ("disagreement_loss", "epistemic_loss", "irreducible_loss", "krippendorff_alpha")
SHIFTED = ("accuracy", "sensitivity", "ppv", "npv", "f1", "average_precision", "net_benefit")
KEPT = 0.05
"""Of the negative cases, where all positive ones are in the test set."""
Array = Any


@dataclass(frozen=True)
class Cases:
    """What a hospital has."""

    probs: Array
    ratings: Array
    """(cases, raters); -1 where a rater did not say anything."""
    patients: Array | None = None
    weights: Array | None = None
    prevalences: tuple[float, float | None] | None = None
    """In use, and where the probabilities are right, if that is not the test set."""


@dataclass(frozen=True)
class Design:
    """A way to make a test set."""

    about: str
    draw: Callable[[Any], Cases]
    population: Callable[[], tuple[Array, Array]]
    """The probabilities that the model gives, and how likely the labels are."""
    metrics: tuple[str, ...] = USUAL
    errors: tuple[str, ...] = ("ece", "smooth_ece")


def ranked(said: Array, q: Array) -> tuple[float, float]:
    """Return the AUROC and the average precision, by the sums of the labels at each probability."""
    at = np.unique(-said, return_inverse=True)[1]
    hits, others = np.bincount(at, q), np.bincount(at, 1 - q)
    found, alarms = np.cumsum(hits), np.cumsum(others)
    higher = (hits * (alarms - others / 2)).sum() / (found[-1] * alarms[-1])
    return 1 - float(higher), float((hits * found / (found + alarms)).sum() / found[-1])


def truth(probs: Array, q: Array) -> dict[str, float]:
    """Return what the metrics estimate, of cases whose labels are independent given q."""
    right = q[np.arange(len(q)), probs.argmax(axis=1)].mean()
    differ = 1 - (q**2).sum(axis=1)
    found = {
        "accuracy": right,
        "brier": (probs**2 - 2 * probs * q + q).sum(axis=1).mean() / (2 if q.shape[1] == 2 else 1),
        "nll": -(q * np.log(np.maximum(probs, 1e-300))).sum(axis=1).mean(),
        "epistemic_loss": ((probs - q) ** 2).sum(axis=1).mean(),
        "irreducible_loss": differ.mean(),
        "disagreement_loss": (differ * (1 - differ)).mean(),
        "krippendorff_alpha": 1 - differ.mean() / (1 - (q.mean(axis=0) ** 2).sum()),
        **CALIBRATED,
    }
    if q.shape[1] == 2:
        q, acted = q[:, 1], probs[:, 1] >= 0.5
        hits, alarms, missed = (q * acted).mean(), ((1 - q) * acted).mean(), (q * ~acted).mean()
        found["sensitivity"] = hits / (hits + missed)
        found["ppv"], found["npv"] = hits / (hits + alarms), 1 - missed / (~acted).mean()
        found["f1"], found["net_benefit"] = 2 * hits / (2 * hits + alarms + missed), hits - alarms
        found["auroc"], found["average_precision"] = ranked(probs[:, 1], q)
    return {name: float(value) for name, value in found.items()}


def normal(mean: float, spread: float) -> Callable[[], tuple[Array, Array]]:
    """Return the population of calibrated cases of two classes with such log odds."""
    return lambda: 2 * (two(expit(mean + spread * EVEN)),)


def decided(random: Any) -> Cases:
    """Return two readers of every case, and a third of those where they differ."""
    q = two(expit(random.normal(-1, 1.5, 200)))
    ratings = labels_of(random, q, 3)
    ratings[ratings[:, 0] == ratings[:, 1], 2] = -1
    return Cases(q, ratings)


def enriched(
    mean: float, spread: float, take: int | None = None, right: str = "in use"
) -> Callable[[Any], Cases]:
    """Return the design with all positives and 5% of the negatives, or so many of each."""
    in_use = float(expit(mean + spread * EVEN).mean())

    def draw(random: Any) -> Cases:
        q = expit(random.normal(mean, spread, 1000 if take is None else 100 * take))
        y = random.random(len(q)) < q
        kept = np.flatnonzero(y | (random.random(len(q)) < KEPT))
        if take is not None:
            kept = np.concatenate([np.flatnonzero(y)[:take], np.flatnonzero(~y)[:take]])
        q, label = q[kept], y[kept].astype(int)[:, None]
        if right == "in the sample":
            shown = expit(logit(q) - np.log(KEPT))
            return Cases(two(shown), label, prevalences=(in_use, None))
        if right == "own weights":
            return Cases(two(q), label, weights=np.where(label[:, 0] == 1, 1.0, 1 / KEPT))
        return Cases(two(q), label, prevalences=(in_use, in_use))

    return draw


CUTS, STRICT = np.array([0, 0.6, 1.2, 1.8]), np.array([-0.5, 0, 0.5])


def graded(said: Array) -> tuple[Array, Array]:
    """Return how likely each grade is, of the three readers on average, twice."""
    below = ndtr((CUTS - said[:, None, None] - STRICT[:, None]) / np.sqrt(2 * 0.7**2))
    return 2 * (np.diff(below, axis=2, prepend=0, append=1).mean(axis=1),)


def grades(random: Any) -> Cases:
    """Return grades: half of what the model does not know is the case's, half the reader's."""
    said = random.normal(-0.8, 1.2, 100)
    seen = said[:, None] + 0.7 * random.normal(size=(100, 1)) + STRICT
    seen = seen + 0.7 * random.normal(size=seen.shape)
    return Cases(graded(said)[0], (seen[:, :, None] > CUTS).sum(axis=2))


def second_where_unsure(random: Any) -> Cases:
    """Return a second reader where the probabilities are near 1/2."""
    q = expit(random.normal(-1, 1.5, 200))
    ratings = labels_of(random, two(q), 2)
    ratings[random.random(200) > 4 * q * (1 - q), 1] = -1
    return Cases(two(q), ratings)


def weighted_patients(random: Any) -> Cases:
    """Return patients whose images share difficulty and labels, with weights of their own."""
    who = np.repeat(np.arange(50), random.integers(1, 9, 50))
    own, place = random.normal(size=(2, 50))[:, who]
    q = expit(-1 + 1.2 * own + 1.2 * random.normal(size=len(who)))
    drawn = ndtr(0.8 * place + 0.6 * random.normal(size=len(who))) < q
    weights = np.exp(random.normal(size=50))[who]
    return Cases(two(q), drawn.astype(int)[:, None], who, weights)


def rounded(mean: float, spread: float, steps: int, cases: int) -> tuple[Any, ...]:
    """Return a design with probabilities in so many steps, its population and its metrics."""

    def both(odds: Array) -> tuple[Array, Array]:
        q = expit(mean + spread * odds)
        return two(np.round(q * steps) / steps), two(q)

    def draw(random: Any) -> Cases:
        said, q = both(random.normal(size=cases))
        return Cases(said, labels_of(random, q, 1))

    return draw, lambda: both(EVEN), ("accuracy", "brier", "auroc")


SHARP, COMMON = normal(-4, 3), normal(-3.5, 1.6)
DESIGNS = {
    "third reader": Design(
        "two readers, and a third where they differ",
        *(decided, normal(-1, 1.5), ("accuracy", "brier", "nll", *DECIDED)),
    ),
    "half": Design(
        "50 positive and 50 negative cases; 5% in use",
        *(enriched(-5.2, 2.6, take=50), normal(-5.2, 2.6), SHIFTED),
    ),
    "usual": Design("all positives, 5% of the negatives", enriched(-3.5, 1.6), COMMON, SHIFTED),
    "sharp": Design("the same, surer model", enriched(-4, 3), SHARP, SHIFTED),
    "sharp, shifted": Design(
        "the same, probabilities right in the test set",
        *(enriched(-4, 3, right="in the sample"), SHARP, SHIFTED),
    ),
    "sharp, own weights": Design(
        "*sharp*, with `weights=` of 1 and 20",
        *(enriched(-4, 3, right="own weights"), SHARP, SHIFTED),
    ),
    "grades": Design(
        "five ordered grades, three readers of unlike strictness",
        *(grades, lambda: graded(-0.8 + 1.2 * EVEN), ("accuracy", "brier", "nll"), ERRORS),
    ),
    "second reader": Design(
        "a second reader where the first was unsure",
        *(second_where_unsure, normal(-1, 1.5), OF_CASES),
    ),
    "two decimals": Design("rounded to two decimals, 500 cases", *rounded(0, 3, 100, 500)),
    "8 bits": Design("rounded to k / 255, 1,000 cases", *rounded(-4, 3, 255, 1000)),
    "weighted patients": Design(
        "50 patients of 1 to 8 images, with weights",
        *(weighted_patients, normal(-1, 1.2 * np.sqrt(2))),
    ),
}


def judged(cases: Cases, metrics: tuple[str, ...], seed: int) -> rw.Results:
    """Return the results as a user gets them."""
    labels = rw.Labels.from_ratings(cases.ratings, num_classes=cases.probs.shape[1])
    use, right = cases.prevalences or (None, None)
    return rw.evaluate(
        *(cases.probs, labels, metrics, cases.patients),
        weights=cases.weights,
        target_prevalence=use,
        source_prevalence=right,
        on_single="drop",
        resamples=200,
        seed=seed,
        threads=1,
    )


def simulate(name: str, sets: int, seed: int) -> dict[str, Any]:
    """Return how often the verdict was red and 0 left out, and how often the truth was covered."""
    design = DESIGNS[name]
    true = truth(*design.population())
    alarms = dict.fromkeys(("red", "raters differ", *design.errors), 0)
    ends: dict[str, list[Any]] = {metric: [] for metric in design.metrics}
    for repeat in range(sets):
        random = np.random.default_rng([seed, list(DESIGNS).index(name), repeat])
        results = judged(design.draw(random), (*design.metrics, *design.errors), repeat)
        alarms["red"] += bool(results.data["verdict"]["miscalibrated"])
        test = results.data.get("exchangeability")
        alarms["raters differ"] += bool(test and test["p_value"] <= test["significance"])
        for metric in design.errors:
            alarms[metric] += bool(results[metric].low > 0)
        for metric, found in ends.items():
            e = results[metric]
            if e.low is not None:
                found.append((e.low, e.value, e.high))
    covered = {}
    for metric, found in ends.items():
        low, value, high = np.array(found).T
        inside = (low <= true[metric]) & (true[metric] <= high)
        covered[metric] = {
            "truth": round(true[metric], 4),
            "mean": round(float(value.mean()), 4),
            "sets": len(found),
            "percent": round(100 * float(inside.mean()), 1),
            "width": round(float(np.median(high - low) / (3.92 * value.std())), 2),
        }
    return {"alarms": {k: round(100 * n / sets, 1) for k, n in alarms.items()}, "covered": covered}


def report(records: list[dict[str, Any]]) -> str:
    """Return a table: a row per design, in percent; in brackets the width over the oracle's."""
    lines = ["| design | what | false alarms | coverage (width) |", "| --- | --- | --- | --- |"]
    for record in records:
        alarms = ", ".join(f"{k} {v:.1f}" for k, v in record["alarms"].items())
        covered = ", ".join(
            f"{metric} {v['percent']:.0f} ({v['width']:.1f})"
            for metric, v in record["covered"].items()
        )
        name = record["design"]
        lines.append(f"| {name} | {DESIGNS[name].about} | {alarms} | {covered} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261)
    parser.add_argument("--design", choices=DESIGNS, action="append", help="all if not given")
    parser.add_argument("--out", type=Path, default=Path("hospital.jsonl"))
    asked = parser.parse_args()
    settings = {"sets": asked.sets, "seed": asked.seed}
    records = finished(
        asked.out, settings, asked.design or DESIGNS, lambda name: simulate(name, **settings)
    )
    print(report(list(records)))


if __name__ == "__main__":
    main()
