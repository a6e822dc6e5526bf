"""Results that reports are made from in the tests: small, and with names that try to break out."""

from __future__ import annotations

from functools import cache

import numpy as np

import raterwise as rw
from raterwise.curves.clinical_tables import DecisionCurve
from raterwise.results import Results
from raterwise.worklist import worklist

HOSTILE = ("benign", "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>&amp;")
METRICS = (
    *("accuracy", "brier", "epistemic_loss", "calibration_loss", "dispersion_loss"),
    *("disagreement_calibration_error", "ece", "classwise_ece", "auccc", "fleiss_kappa"),
)


@cache
def cases(seed: int = 0) -> tuple[np.ndarray, rw.Labels]:
    """Return 240 cases of an over-confident model of three classes, three raters each."""
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.ones(3), 240)
    probs = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    counts = np.stack([random.multinomial(3, row) for row in truth])
    return probs, rw.Labels.from_counts(counts)


@cache
def results() -> Results:
    """Return the results of those cases."""
    probs, labels = cases()
    return rw.evaluate(probs, labels, METRICS, class_names=HOSTILE, resamples=100)


def _yes_or_no() -> tuple[np.ndarray, rw.Labels]:
    random = np.random.default_rng(4)
    p = random.beta(1, 3, 150)
    votes = random.binomial(3, p)
    return p, rw.Labels.from_counts(np.stack((3 - votes, votes), axis=1))


@cache
def two_classes() -> Results:
    """Return results of two classes, the positive one with a hostile name."""
    p, labels = _yes_or_no()
    return rw.evaluate(p, labels, "auroc", class_names=HOSTILE[:2], resamples=50)


def two_classes_curve() -> DecisionCurve:
    """Return what acting on them does at every threshold."""
    p, labels = _yes_or_no()
    curve: DecisionCurve = rw.decision_curve(p, labels)
    return curve


@cache
def with_subgroups() -> Results:
    """Return results by a scanner with a hostile name, which makes the model far too sure."""
    probs, labels = cases()
    sharp = probs**6 / (probs**6).sum(axis=1, keepdims=True)
    bad = np.arange(240) % 3 == 0
    return rw.evaluate(
        np.where(bad[:, None], sharp, probs), labels, "accuracy,ece,brier", resamples=100,
        subgroups={"scanner": np.where(bad, HOSTILE[1], "A"), "sex": ["f", "m"] * 120},
    )  # fmt: skip


def further_parts() -> dict[str, object]:
    """Return everything else that a report can show, with names that try to break out."""
    probs, labels = cases()
    blunt = np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True)
    after = rw.evaluate(blunt, labels, METRICS, class_names=HOSTILE, resamples=100)
    ratings = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 2], [2, 2, 1]] * 20)
    raters = np.array(["A", HOSTILE[1], "C"] * 80)
    panel = rw.Labels.from_long(np.repeat(np.arange(80), 3), raters, ratings.ravel(), num_classes=3)
    draws = {"repeats": 2, "seed": 0}
    belief = rw.DirichletBelief(probs, np.full(len(probs), 5.0))
    return {
        "single": results(),
        "after": after,
        "differences": rw.compare({"after": after, "before": results()}).differences,
        "stability": {
            name: rw.stability.subsample_curve(metric, probs, labels, **draws)
            for name, metric in (("Expected calibration error, every rater", "ece"), ("B", "brier"))
        },
        "variation": {"B": rw.stability.total_variation("brier", probs, labels, **draws)},
        "raters": rw.exchangeability_test(panel, permutations=99),
        "worklist": worklist(
            belief, [f"<u>{i}</u>" for i in range(240)], top=20, class_names=HOSTILE
        ),
        "notes": {"raters": "A note."},
    }


@cache
def comparison() -> rw.Comparison:
    """Return the comparison of that model with a blunter one whose name is hostile."""
    probs, labels = cases()
    blunt = np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True)
    models = {"sharp": probs, "<script>alert(3)</script>": blunt}
    return rw.compare(models, labels, METRICS, class_names=HOSTILE, resamples=100)
