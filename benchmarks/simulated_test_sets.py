"""Simulated test sets of which everything is known, for the coverage of intervals.

A case has logits and true class probabilities q = softmax(logits); raters draw their labels from q.
A *calibrated* model predicts q, an *overconfident* one softmax(1.75 · logits), and a model with
*one class off* adds 0.7 to the first logit. Patients of five cases share half of the variance of
their logits, and in 30% of the cases a rater's label noise is the one that this rater has
throughout the patient: errors are correlated within patients while every case keeps its q.

Three more models stand beside these in `difference_coverage.py`. *Other class off* adds 0.7 to the
last logit: by symmetry every metric of it has the same truth as with one class off. *Slightly
overconfident* is softmax(1.35 · logits). *Half blind* predicts q where the mean of the logits is
positive and 1/K elsewhere: the mean of Gaussian logits says nothing about q, so this model is
perfectly calibrated too, and knows less.

The true value of a metric is its value on a million cases whose raters report q itself, worked out
here from the definition and not by raterwise.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, softmax

__all__ = ["DESIGNS", "MODELS", "Design", "TestSet", "Truth", "draw", "predicted", "truth_of"]

Array = NDArray[np.float64]

BINS = 15
SIGMA = 0.1  # of RECE-G
PATIENT = 5  # cases per patient
SHARED_NOISE = 0.3  # part of the cases with a label noise common to the patient
MODELS = ("calibrated", "overconfident", "one-class-off")

BLOCKS, BLOCK = 5, 200_000  # the million cases of the truth
CONDITIONED = 200  # cells of equal mass over which E[μ - z | z] is taken
GRID = 4096  # cells of SmoothECE


@dataclass(frozen=True)
class Design:
    """One kind of test set."""

    cases: int
    classes: int
    model: str
    raters: int
    patients: bool

    @property
    def name(self) -> str:
        """What the design is called in files and filters."""
        unit = "patients" if self.patients else "cases"
        return f"n{self.cases}-k{self.classes}-{self.model}-r{self.raters}-{unit}"


DESIGNS = tuple(
    Design(*parts)
    for parts in itertools.product((200, 1000, 5000), (2, 10), MODELS, (1, 3), (False, True))
)


@dataclass(frozen=True, eq=False)
class TestSet:
    """What an evaluation is given."""

    probs: Array
    counts: NDArray[np.int64]
    """(cases, classes): what the raters said."""
    patients: NDArray[np.int64] | None
    logits: Array
    """(cases, classes): what every model knows of the cases."""

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """Which of the bins of confidence hold cases."""
        return np.bincount(_bin_of(self.probs.max(axis=1)), minlength=BINS) > 0


def draw(design: Design, random: np.random.Generator) -> TestSet:
    """Return a test set of the design."""
    size = PATIENT if design.patients else 1
    unit = np.arange(design.cases) // size
    logits = _draw_logits(design, random, unit)
    follows = random.random(design.cases) < (SHARED_NOISE if design.patients else 0)
    counts = np.zeros(logits.shape, dtype=np.int64)
    for _ in range(design.raters):
        # The largest of logit plus Gumbel noise is class k with the probability softmax_k.
        common = random.gumbel(size=(unit[-1] + 1, design.classes))[unit]
        label_noise = np.where(follows[:, None], common, random.gumbel(size=logits.shape))
        counts[np.arange(design.cases), (logits + label_noise).argmax(axis=1)] += 1
    patients = unit if design.patients else None
    return TestSet(predicted(logits, design.model), counts, patients, logits)


def _draw_logits(design: Design, random: np.random.Generator, unit: NDArray[np.int64]) -> Array:
    own = random.normal(size=(design.cases, design.classes))
    if design.patients:
        own = np.sqrt(0.5) * (own + random.normal(size=(unit[-1] + 1, design.classes))[unit])
    return own * (1.5 if design.classes == 2 else 2.0)


def predicted(logits: Array, model: str) -> Array:
    """Return what a model makes of the cases."""
    column = np.arange(logits.shape[1])
    if model == "overconfident":
        logits = 1.75 * logits
    elif model == "slightly-overconfident":
        logits = 1.35 * logits
    elif model == "one-class-off":
        logits = logits + 0.7 * (column == 0)
    elif model == "other-class-off":
        logits = logits + 0.7 * (column == column[-1])
    elif model == "half-blind":
        logits = np.where(logits.mean(axis=1, keepdims=True) > 0, logits, 0)
    elif model != "calibrated":
        raise ValueError(f"model: no such model: {model!r}")
    return np.asarray(softmax(logits, axis=1))


# --- the truth --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """The true value of every metric for one number of classes and one model."""

    value: dict[str, float]
    gaps: Array
    """|observed - predicted| of each bin of confidence."""

    def of(self, metric: str, occupied: NDArray[np.bool_]) -> float:
        """Return the truth; for the largest gap, that among the bins which hold cases."""
        return float(self.gaps[occupied].max()) if metric == "mce" else self.value[metric]


@dataclass
class _Population:
    """A million cases: columns of those questions that need them, means of the rest."""

    confidence: list[Array] = field(default_factory=list)
    agreed: list[Array] = field(default_factory=list)
    predicted: list[NDArray[np.int64]] = field(default_factory=list)
    differ: list[Array] = field(default_factory=list)
    differed: list[Array] = field(default_factory=list)
    class_tables: list[tuple[Array, Array]] = field(default_factory=list)
    means: list[dict[str, float]] = field(default_factory=list)
    class_share: list[Array] = field(default_factory=list)

    def add(self, true: Array, probs: Array) -> None:
        """Add a block of cases with true and with predicted class probabilities."""
        classes = probs.shape[1]
        top = probs.argmax(axis=1)
        rows = np.arange(len(top))
        self.predicted.append(top)
        self.confidence.append(probs[rows, top])
        self.agreed.append(true[rows, top])
        self.differ.append(1 - (probs**2).sum(axis=1))
        self.differed.append(1 - (true**2).sum(axis=1))
        channel = np.broadcast_to(np.arange(classes), probs.shape)
        self.class_tables.append(_table(probs, true - probs, channel, classes, len(top)))
        self.class_share.append(true.mean(axis=0))
        squared = ((probs**2).sum(axis=1) - 2 * (probs * true).sum(axis=1) + 1).mean()
        self.means.append(
            {
                "brier": float(squared) / (2 if classes == 2 else 1),
                "nll": -float((true * np.log(probs)).sum(axis=1).mean()),
                "epistemic_loss": float(((true - probs) ** 2).sum(axis=1).mean()),
            }
        )


def truth_of(classes: int, model: str) -> Truth:
    """Return the truth of every metric."""
    random = np.random.default_rng([20, classes])
    population = _Population()
    block = Design(BLOCK, classes, model, 0, False)
    for _ in range(BLOCKS):
        logits = _draw_logits(block, random, np.arange(BLOCK))
        population.add(np.asarray(softmax(logits, axis=1)), predicted(logits, model))
    value = {
        name: float(np.mean([means[name] for means in population.means]))
        for name in population.means[0]
    }
    confidence, agreed = np.concatenate(population.confidence), np.concatenate(population.agreed)
    gaps = _of_confidence(value, confidence, agreed, np.concatenate(population.predicted), classes)
    _of_classes(value, population)
    _of_raters(value, population)
    return Truth(value, gaps)


def _of_confidence(
    value: dict[str, float],
    confidence: Array,
    agreed: Array,
    predicted: NDArray[np.int64],
    classes: int,
) -> Array:
    """Fill in the metrics of the top label; return the gap of each bin."""
    gap, cases = agreed - confidence, len(confidence)
    deviation, share = _table(confidence, gap, np.zeros_like(predicted), 1, cases)
    by_class, _ = _table(confidence, gap, predicted, classes, cases)
    order = np.argsort(confidence)
    score, sorted_gap, wrong = confidence[order], gap[order], 1 - agreed[order]
    right, below = agreed[order], np.cumsum(wrong) - 0.5 * wrong
    value |= {
        "accuracy": float(agreed.mean()),
        "ece": float(np.abs(deviation).sum()),
        "rms_ce": _root_of_squares(deviation, share),
        "sce": float(np.abs(by_class).sum() / classes),
        "adaptive_ece": _mean_gap(sorted_gap, BINS),
        "kde_ece": _mean_gap(sorted_gap, CONDITIONED),
        "ks_error": float(np.abs(np.cumsum(sorted_gap)).max() / cases),
        "smooth_ece": _smooth(score, sorted_gap),
        "robust_ece": _robust(score, sorted_gap),
        "auccc": float((right * below).sum() / (right.sum() * wrong.sum())),
        "aurc": float((np.cumsum(wrong[::-1]) / np.arange(1, cases + 1)).mean()),
    }
    occupied = np.where(share > 0, share, 1)
    return np.asarray(np.abs(deviation[0]) / occupied[0])


def _of_classes(value: dict[str, float], population: _Population) -> None:
    deviation, share = (
        np.mean(parts, axis=0) for parts in zip(*population.class_tables, strict=True)
    )
    value["classwise_ece"] = float(np.abs(deviation).sum() / len(deviation))
    value["calibration_error"] = _root_of_squares(deviation, share)
    value["calibration_loss"] = value["calibration_error"] ** 2
    value["dispersion_loss"] = value["epistemic_loss"] - value["calibration_loss"]


def _of_raters(value: dict[str, float], population: _Population) -> None:
    differ, differed = np.concatenate(population.differ), np.concatenate(population.differed)
    channel = np.zeros(len(differ), dtype=np.int64)
    deviation, share = _table(differ, differed - differ, channel, 1, len(differ))
    value["disagreement_loss"] = float((differed * (1 - 2 * differ) + differ**2).mean())
    value["disagreement_calibration_error"] = _root_of_squares(deviation, share)
    by_chance = 1 - (np.mean(population.class_share, axis=0) ** 2).sum()
    value["fleiss_kappa"] = float(1 - differed.mean() / by_chance)


def _bin_of(score: Array) -> NDArray[np.int64]:
    return np.minimum((score * BINS).astype(np.int64), BINS - 1)


def _table(
    score: Array, gap: Array, channel: NDArray[np.int64], channels: int, cases: int
) -> tuple[Array, Array]:
    """Return the summed gaps and the number of cases per channel and bin, over all cases."""
    cell = (_bin_of(score) + BINS * channel).ravel()
    deviation = np.bincount(cell, gap.ravel(), minlength=channels * BINS) / cases
    share = np.bincount(cell, minlength=channels * BINS) / cases
    return deviation.reshape(channels, BINS), share.reshape(channels, BINS)


def _root_of_squares(deviation: Array, share: Array) -> float:
    return float(np.sqrt((deviation**2 / np.where(share > 0, share, 1)).sum()))


def _mean_gap(sorted_gap: Array, cells: int) -> float:
    """Return the mean of |E[μ - z | cell of z]| over cells that hold equally many cases."""
    return sum(abs(float(part.sum())) for part in np.array_split(sorted_gap, cells)) / len(
        sorted_gap
    )


def _smooth(score: Array, gap: Array) -> float:
    """Return SmoothECE: the σ at which ∫ |Σ gap · Gaussian_σ(t, z)| dt, reflected, is σ.

    Reflection at 0 and 1 is a circular convolution of the mirrored gaps.
    """
    cell = np.minimum((score * GRID).astype(np.int64), GRID - 1)
    on_grid = np.bincount(cell, gap, minlength=GRID) / len(gap)
    spectrum = np.fft.rfft(np.concatenate((on_grid, on_grid[::-1])))
    frequency = np.pi * np.arange(GRID + 1)

    def excess(sigma: float) -> float:
        smooth = np.fft.irfft(spectrum * np.exp(-0.5 * (frequency * sigma) ** 2))
        return float(np.abs(smooth[:GRID]).sum()) - sigma

    smallest = 1 / GRID
    return float(brentq(excess, smallest, 1.0)) if excess(smallest) > 0 else 0.0


def _robust(score: Array, gap: Array) -> float:
    """Return RECE-G: each score is spread over the bins by a Gaussian (RECE eq 6)."""
    edges = np.arange(BINS + 1) / BINS
    deviation: Array = np.zeros(BINS)
    for part, gaps in zip(np.array_split(score, 20), np.array_split(gap, 20), strict=True):
        share = np.diff(ndtr((edges - part[:, None]) / SIGMA), axis=1)
        deviation += gaps @ (share / share.sum(axis=1, keepdims=True))
    return float(np.abs(deviation).sum() / len(score))
