"""Test sets that are small, saturated, unequal or badly off, with the truth beside each case.

A function takes a generator, a number of cases (or of patients) and of raters, and returns a test
set of its population.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtri, softmax

DATA = Path(os.environ.get("RATERWISE_DATA", "../shared/data"))
"""Where the real test sets are, of which samples are taken."""
LEANING = ndtri((np.arange(200) + 0.5) / 200)
"""The population of raters: normal, in 200 equal parts."""
Array = Any


@dataclass(frozen=True)
class TestSet:
    """Probabilities, true probabilities, what each rater said, and who is whose case."""

    probs: Array
    true: Array
    ratings: Array
    """(cases, raters)."""
    patients: Array | None

    def counts(self, without: int | None = None) -> Array:
        """Return the label histograms, of all raters or of all but one."""
        kept = np.delete(self.ratings, [] if without is None else [without], axis=1)
        return (kept[:, :, None] == np.arange(self.probs.shape[1])).sum(axis=1)


def labels_of(random: Any, true: Array, raters: int) -> Array:
    """Return (cases, raters) labels drawn from true probabilities (cases[, raters], classes)."""
    q = (
        np.broadcast_to(true[:, None], (len(true), raters, true.shape[1]))
        if true.ndim == 2
        else true
    )
    return (
        (random.random(q.shape[:2])[..., None] > np.cumsum(q, axis=-1))
        .sum(axis=-1)
        .clip(max=q.shape[-1] - 1)
    )


def two(positive: Array) -> Array:
    """Return the probabilities of two classes."""
    return np.stack([1 - positive, positive], axis=1)


def saturated(random: Any, cases: int, raters: int = 1, classes: int = 2) -> TestSet:
    """Return a calibrated model that is sure of nearly all cases: two percent of errors."""
    scale = 12.0 if classes == 2 else 9.0
    q = softmax(scale * random.normal(size=(cases, classes)), axis=1)
    return TestSet(q, q, labels_of(random, q, raters), None)


def sure(random: Any, cases: int, raters: int = 1) -> TestSet:
    """Return a model that is sure of everything and wrong in five of a hundred, anywhere."""
    z = expit(random.normal(7, 2, cases))
    side = random.random(cases) < 0.5
    q = two(np.where(side, 0.95, 0.05))
    return TestSet(two(np.where(side, z, 1 - z)), q, labels_of(random, q, raters), None)


def sure_patients(random: Any, patients: int, raters: int = 1) -> TestSet:
    """Return the same with patients of 1 to 100 images, some of whom are wrong throughout."""
    size = np.clip(np.round(np.exp(random.normal(0.6, 1.3, patients))), 1, 100).astype(int)
    who = np.repeat(np.arange(patients), size)
    z = expit(random.normal(7, 2, len(who)))
    side = random.random(len(who)) < 0.5
    wrong = random.beta(0.15, 2.0, patients)[who]
    q = two(np.where(side, 1 - wrong, wrong))
    return TestSet(two(np.where(side, z, 1 - z)), q, labels_of(random, q, raters), who)


def rare(random: Any, cases: int, raters: int = 1) -> TestSet:
    """Return a calibrated model of a finding that five in a hundred have."""
    q = two(expit(random.normal(-4.5, 2.0, cases)))
    return TestSet(q, q, labels_of(random, q, raters), None)


def usual(random: Any, cases: int, raters: int = 1) -> TestSet:
    """Return an overconfident model of two classes."""
    x = random.normal(0, 2, cases)
    q = two(expit(x))
    return TestSet(two(expit(1.75 * x)), q, labels_of(random, q, raters), None)


def heavy(random: Any, patients: int, raters: int = 1) -> TestSet:
    """Return patients of 1 to 100 images whose difficulty is their own and grows with their size.

    A patient's shift of the logits is not known to the model; images of a patient share the noise
    of their labels in part.
    """
    size = np.clip(np.round(np.exp(random.normal(0.6, 1.3, patients))), 1, 100).astype(int)
    who = np.repeat(np.arange(patients), size)
    shift = random.normal(0, 1.0, patients) - 0.4 * np.log(size)
    x = random.normal(0, 1.5, patients)[who] + random.normal(0, 1.0, len(who))
    side = np.where(x < 0, -1.0, 1.0)
    right = expit(1.5 + np.abs(x) + shift[who])
    q = two(np.where(side > 0, right, 1 - right))
    return TestSet(two(expit(side * (1 + np.abs(x)))), q, labels_of(random, q, raters), who)


def calibrated_patients(random: Any, logits: Array, who: Array, raters: int) -> TestSet:
    """Return a calibrated model of patients, half of whose labels follow one draw."""
    q = two(expit(logits))
    shape = (len(who), raters)
    together = random.random((who.max() + 1, raters))[who]
    place = np.where(random.random(shape) < 0.5, together, random.random(shape))
    return TestSet(q, q, (place < q[:, 1:]).astype(int), who)


def _shared(random: Any, patients: int, each: int = 5) -> tuple[Array, Array]:
    """Return normal numbers of cases, half of whose variance is the patient's, and the patients."""
    who = np.repeat(np.arange(patients), each)
    own, common = random.normal(size=len(who)), random.normal(size=patients)
    return (own + common[who]) * np.sqrt(0.5), who


def saturated_patients(random: Any, patients: int, raters: int = 1) -> TestSet:
    """Return patients of five cases of which a calibrated model is sure."""
    x, who = _shared(random, patients)
    return calibrated_patients(random, 12 * np.sqrt(2) * x, who, raters)


def rare_patients(random: Any, patients: int, raters: int = 1) -> TestSet:
    """Return patients of five cases with a finding that five in a hundred have."""
    x, who = _shared(random, patients)
    return calibrated_patients(random, 2 * x - 4.5, who, raters)


def equal_patients(random: Any, patients: int, raters: int = 1) -> TestSet:
    """Return patients of six images with a shift of their own."""
    who = np.repeat(np.arange(patients), 6)
    x = random.normal(0, 2, len(who)) + random.normal(0, 1, patients)[who]
    q = two(expit(x + random.normal(0, 1, patients)[who]))
    return TestSet(two(expit(x)), q, labels_of(random, q, raters), who)


def few_raters(random: Any, cases: int, raters: int = 3) -> TestSet:
    """Return raters who lean to one class or the other, each by his own amount."""
    x = random.normal(0, 2, cases)
    lean = random.normal(0, 0.8, raters)
    q = np.stack([1 - expit(x[:, None] + lean), expit(x[:, None] + lean)], axis=-1)
    everyone = expit(x[:, None] + 0.8 * LEANING).mean(axis=1)
    return TestSet(two(expit(x)), two(everyone), labels_of(random, q, raters), None)


def waves(random: Any, cases: int, raters: int = 1) -> TestSet:
    """Return a model of two classes that is too sure here and not sure enough there."""
    x = random.normal(0, 1.5, cases)
    sure = expit(np.abs(x))
    right = np.clip(sure + 0.12 * np.sin(8 * np.pi * (sure - 0.5)), 0.01, 0.99)
    q = two(np.where(x > 0, right, 1 - right))
    return TestSet(two(expit(x)), q, labels_of(random, q, raters), None)


def waves_of_four(random: Any, cases: int, raters: int = 3) -> TestSet:
    """Return the same with four classes."""
    probs = softmax(1.5 * random.normal(size=(cases, 4)), axis=1)
    rows, top, sure = np.arange(cases), probs.argmax(axis=1), probs.max(axis=1)
    right = np.clip(sure + 0.15 * np.sin(6 * np.pi * (sure - 0.25)), 0.02, 0.98)
    q = probs * ((1 - right) / (1 - sure))[:, None]
    q[rows, top] = right
    return TestSet(probs, q, labels_of(random, q, raters), None)


@cache
def chest_films() -> tuple[Array, Array, Array]:
    """Return probabilities and labels of effusion, and the patients, of ChestX-ray14."""
    with np.load(DATA / "cxr14_chexnet_test.npz", allow_pickle=False) as file:
        finding = list(file["classes"]).index("Effusion")
        probs, labels = file["probs"][:, finding].astype(float), file["labels"][:, finding]
        who = np.unique([name.split("_")[0] for name in file["image"]], return_inverse=True)[1]
    return two(probs), labels.astype(int), who


def chest(random: Any, patients: int, raters: int = 1) -> TestSet:
    """Return the films of so many patients of 2,797; more than there are: all."""
    probs, labels, who = chest_films()
    everyone = np.arange(who.max() + 1)
    chosen = random.permutation(everyone)[:patients]
    rows = np.flatnonzero(np.isin(who, chosen))
    units = np.unique(who[rows], return_inverse=True)[1]
    return TestSet(probs[rows], np.eye(2)[labels[rows]], labels[rows, None], units)
