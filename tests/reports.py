"""Results that reports are made from in the tests: small, and with names that try to break out."""

from __future__ import annotations

from functools import cache

import numpy as np

import quorate as qr
from quorate.results import Results

HOSTILE = ("benign", "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>&amp;")
METRICS = (
    *("accuracy", "brier", "epistemic_loss", "calibration_loss", "dispersion_loss"),
    *("disagreement_calibration_error", "ece", "classwise_ece", "auccc", "fleiss_kappa"),
)


@cache
def cases(seed: int = 0) -> tuple[np.ndarray, qr.Labels]:
    """Return 240 cases of an over-confident model of three classes, three raters each."""
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.ones(3), 240)
    probs = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    counts = np.stack([random.multinomial(3, row) for row in truth])
    return probs, qr.Labels.from_counts(counts)


@cache
def results() -> Results:
    """Return the results of those cases."""
    probs, labels = cases()
    return qr.evaluate(probs, labels, METRICS, class_names=HOSTILE, resamples=100)


@cache
def comparison() -> qr.Comparison:
    """Return the comparison of that model with a blunter one whose name is hostile."""
    probs, labels = cases()
    blunt = np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True)
    models = {"sharp": probs, "<script>alert(3)</script>": blunt}
    return qr.compare(models, labels, METRICS, class_names=HOSTILE, resamples=100)
