"""How often the intervals of every clinical metric and the bands of its curves hold the truth.

    python benchmarks/clinical_designs.py --sets 200 --out designs.jsonl
    python benchmarks/clinical_designs.py --sets 200 --out designs.jsonl --report

Twenty-four designs: 50, 200 and 1,000 cases; a prevalence of 0.1 and of 0.5; independent cases, or
patients of five; one rater, or three. The log odds l of the true probability are normal, and the
model says m = a + b l + an error that is the patient's, so it is too high, too sure and wrong about
whole patients. Both are normal together: E[q | m] follows by Gauss-Hermite quadrature, and every
truth by a sum over a fine grid of m, without raterwise. Bands are looked at point by point. One
line of JSON is written per finished design; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

import raterwise as rw
from resumed import finished, tell

SPREAD, POWER, SHIFT, ERROR, SHARED = 1.4, 1.25, 0.3, 0.6, 0.5
"""Of l; of m = SHIFT + POWER × l + ERROR × (the patient's); of l that the images share."""
THRESHOLDS = {0.1: 0.2, 0.5: 0.5}
"""From which probability on a case tests positive, by prevalence."""
PLACES = (0.05, 0.1, 0.2, 0.4, 0.6)
"""Thresholds of the decision curve, 1 - specificities of ROC, sensitivities of precision-recall."""
AT_THRESHOLD = ("sensitivity", "specificity", "ppv", "npv", "f1", "net_benefit")
METRICS = (
    *("auroc", "average_precision", *AT_THRESHOLD),
    *("observed_expected_ratio", "calibration_intercept", "calibration_slope"),
    *("ici", "e50", "e90"),
)
CURVES = ("decision curve", "raters' decision curve", "ROC band", "precision-recall band")
Array = Any


@lru_cache
def centre_of(prevalence: float) -> float:
    """Return the mean of l that has this prevalence."""
    odds = SPREAD * norm.ppf((np.arange(4000) + 0.5) / 4000)
    return float(brentq(lambda c: expit(c + odds).mean() - prevalence, -9, 9))


def grid(prevalence: float) -> tuple[Array, Array, Array]:
    """Return the log odds m that the model says, each as likely, E[q | m], and E[q² | m]."""
    c = centre_of(prevalence)
    variance = POWER**2 * SPREAD**2 + ERROR**2
    m = SHIFT + POWER * c + np.sqrt(variance) * norm.ppf((np.arange(40_000) + 0.5) / 40_000)
    back = POWER * SPREAD**2 / variance
    mean = c + back * (m - SHIFT - POWER * c)
    rest = np.sqrt(SPREAD**2 - back * POWER * SPREAD**2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    q = expit(mean[:, None] + rest * nodes)
    weights = weights / weights.sum()
    return m, q @ weights, q**2 @ weights


def truth_of(prevalence: float) -> dict[str, Any]:
    """Return every metric, and every curve at its places, of an endless test set."""
    m, q, square = grid(prevalence)
    p, t, n = expit(m), THRESHOLDS[prevalence], len(m)
    yes, no = q.sum(), (1 - q).sum()
    found, wrong = np.cumsum(q[::-1]), np.cumsum((1 - q)[::-1])

    def benefit(t: float) -> float:
        above = p >= t
        return float((q[above].sum() - (1 - q[above]).sum() * t / (1 - t)) / n)

    above, gap = p >= t, np.abs(q - p)
    tp, fp = q[above].sum(), (1 - q[above]).sum()
    both, one = square.mean(), (q - square).mean()  # two raters say yes, the test's alone does
    a = b = 0.0
    for _ in range(50):
        r = expit(a + b * m)
        w = r * (1 - r)
        step = np.linalg.solve([[w.sum(), w @ m], [w @ m, w @ m**2]], [(q - r).sum(), (q - r) @ m])
        a, b = a + step[0], b + step[1]
    return {
        "auroc": float((q * (np.cumsum(1 - q) - (1 - q) / 2)).sum() / (yes * no)),
        "average_precision": float((q[::-1] * found / np.arange(1, n + 1)).sum() / yes),
        "sensitivity": float(tp / yes),
        "specificity": float(1 - fp / no),
        "ppv": float(tp / (tp + fp)),
        "npv": float((no - fp) / (~above).sum()),
        "f1": float(2 * tp / (tp + fp + yes)),
        "net_benefit": benefit(t),
        "observed_expected_ratio": float(yes / p.sum()),
        "calibration_intercept": float(brentq(lambda a: (q - expit(a + m)).sum(), -9, 9)),
        "calibration_slope": float(b),
        "ici": float(gap.mean()),
        "e50": float(np.quantile(gap, 0.5)),
        "e90": float(np.quantile(gap, 0.9)),
        "decision curve": [benefit(t) for t in PLACES],
        "raters' decision curve": [both - one * t / (1 - t) for t in PLACES],
        "ROC band": np.interp(PLACES, wrong / no, found / yes).tolist(),
        "precision-recall band": np.interp(PLACES, found / yes, found / (found + wrong)).tolist(),
    }


def draw(cases: int, prevalence: float, images: int, raters: int, random: Any) -> tuple[Any, ...]:
    """Return the model's probabilities, what the raters said, and the patients."""
    patients = cases // images
    own, error = (np.repeat(random.normal(size=patients), images) for _ in range(2))
    x = np.sqrt(SHARED) * own + np.sqrt(1 - SHARED) * random.normal(size=cases)
    odds = centre_of(prevalence) + SPREAD * x
    said = random.random((cases, raters)) < expit(odds)[:, None]
    labels = rw.Labels.from_ratings(said.astype(int), num_classes=2)
    patient = np.repeat(np.arange(patients), images)
    return expit(SHIFT + POWER * odds + ERROR * error), labels, patient if images > 1 else None


def bands(probs: Array, labels: Any, patient: Array, seed: int) -> dict[str, list[Any]]:
    """Return (low, high) of every curve at its places."""
    told = {"groups": patient, "resamples": 200, "seed": seed}
    found: dict[str, list[Any]] = {}
    decision = rw.decision_curve(probs, labels, **told)
    at = [round(100 * t) - 1 for t in PLACES]
    for name, points in zip(CURVES, (decision.model, decision.raters), strict=False):
        if points is not None:
            found[name] = [(points.net_benefit.low[i], points.net_benefit.high[i]) for i in at]
    roc = rw.roc_curve(probs, labels, **told)
    x = roc.false_positive_rate
    found["ROC band"] = [tuple(np.interp(f, x, end) for end in (roc.low, roc.high)) for f in PLACES]
    pr = rw.precision_recall_curve(probs, labels, **told)
    ends = [np.interp(PLACES, pr.recall, end) for end in (pr.low, pr.high)]
    found["precision-recall band"] = list(zip(*ends, strict=True))
    return found


def simulate(
    cases: int,
    prevalence: float,
    images: int,
    raters: int,
    sets: int,
    seed: int,
    metrics: Sequence[str] = METRICS,
) -> dict[str, Any]:
    """Return how often each interval held the truth, lay above or below it, and its mean width."""
    truth, start = truth_of(prevalence), time.perf_counter()
    ends: dict[str, list[Any]] = {name: [] for name in truth}
    told: dict[str, Any] = {"resamples": 200, "threads": 1}
    if set(metrics) & set(AT_THRESHOLD):
        told["threshold"] = THRESHOLDS[prevalence]
    for s in range(sets):
        random = np.random.default_rng([seed, s, cases, int(100 * prevalence), images, raters])
        probs, labels, patient = draw(cases, prevalence, images, raters, random)
        found = rw.evaluate(probs, labels, list(metrics), groups=patient, seed=s, **told)
        for name in metrics:
            if found[name].low is not None:
                ends[name].append((found[name].low, found[name].high))
        if labels.counts.sum(axis=0).all():
            for name, each in bands(probs, labels, patient, s).items():
                ends[name].append(each)
    out = {}
    for name, each in ends.items():
        if each:
            low, high = np.moveaxis(np.array(each, dtype=np.float64), -1, 0)
            known, true = np.isfinite(low) & np.isfinite(high), np.array(truth[name])
            above, below = (low > true + 1e-12)[known], (high < true - 1e-12)[known]
            out[name] = {
                "defined": len(each),
                "covered": round(100 * float(1 - above.mean() - below.mean()), 1),
                "above": round(100 * float(above.mean()), 1),
                "below": round(100 * float(below.mean()), 1),
                "width": round(float((high - low)[known].mean()), 4),
            }
    return {"seconds": round(time.perf_counter() - start, 1), "found": out}


DESIGNS = {
    f"{cases} cases, {prevalence}, {'patients' if images > 1 else 'cases'}, {raters} r": (
        *(cases, prevalence, images, raters),
    )
    for cases, prevalence, images, raters in product((50, 200, 1000), (0.1, 0.5), (1, 5), (1, 3))
}


def report(records: list[dict[str, Any]]) -> str:
    """Return a table: a row per metric, a column per size and prevalence, four entries in each."""
    kinds = [("cases", 1), ("cases", 3), ("patients", 1), ("patients", 3)]
    known = {DESIGNS[record["design"]]: record["found"] for record in records}
    columns = list(product((50, 200, 1000), (0.1, 0.5)))
    lines = [
        "| metric | " + " | ".join(f"{n} cases, {p:.0%}" for n, p in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for name in (*METRICS, *CURVES):
        row = []
        for cases, prevalence in columns:
            each = []
            for kind, raters in kinds:
                images = 5 if kind == "patients" else 1
                one = known.get((cases, prevalence, images, raters), {}).get(name)
                covered = "–" if one is None else f"{one['covered']:.0f}"
                each.append(f"**{covered}**" if one and one["covered"] < 92 else covered)
            row.append(" ".join(each))
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run every design and write a line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--metrics", default="", help="some, such as net_benefit; curves always")
    parser.add_argument("--out", type=Path, default=Path("designs.jsonl"))
    parser.add_argument("--report", action="store_true")
    told = parser.parse_args()
    settings: dict[str, Any] = {"sets": told.sets, "seed": told.seed}
    if told.metrics:
        settings["metrics"] = told.metrics.split(",")
    records = finished(
        told.out, settings, DESIGNS, lambda name: simulate(*DESIGNS[name], **settings)
    )
    tell(records, report if told.report else None)


if __name__ == "__main__":
    main()
