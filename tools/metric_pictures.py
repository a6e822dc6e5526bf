"""One picture per family of metrics: what moves them. The library computes it as the site is built.

Each function draws into two axes and returns what the picture shows, for those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import raterwise as rw

STYLES = {"ece": "-", "robust_ece": "--", "classwise_ece": "-", "smooth_ece": ":"}
SIZE, DPI = (8.0, 3.1), 110
SHARPENED = "under-confident  <  1  <  over-confident"
COLOURS = ("#1f5fa8", "#c8501e", "#2f7f4f", "#7a4a9c")


def sharpened(probs: Any, power: float) -> Any:
    """Return probabilities taken to a power: above 1, a calibrated model becomes too sure."""
    sharp = probs**power
    return sharp / sharp.sum(axis=1, keepdims=True)


def simulated(cases: int = 3000, raters: int = 3, seed: int = 0) -> tuple[Any, rw.Labels]:
    """Return true class probabilities, and what raters who follow them say."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.7, 0.7, 0.7], cases)
    return truth, rw.Labels.from_counts(rng.multinomial(raters, truth))


def proper_scores(left: Any, right: Any) -> str:
    """Draw the loss of a case by what was said of it."""
    p = np.linspace(0.005, 0.995, 199)
    for ax, votes, title in (
        (left, 4, "4 of 4 raters say yes"),
        (right, 3, "3 of 4 raters say yes"),
    ):
        labels = rw.Labels.from_counts([[4 - votes, votes]])
        for (name, metric), colour in zip(
            {"nll": rw.nll, "brier": rw.brier}.items(), COLOURS, strict=False
        ):
            ax.plot(p, [metric([q], labels) for q in p], color=colour, label=name)
        ax.axvline(votes / 4, color="0.5", linestyle=":")
        ax.set(title=title, xlabel="predicted probability of yes", ylim=(0, 3))
    left.set(ylabel="loss of this case")
    right.legend()
    return (
        "The loss of one case against the predicted probability. If all four raters say yes, it is "
        "smallest at 1. If three of four do, it is smallest at 0.75, where it is not 0."
    )


def label_histograms(left: Any, right: Any) -> str:
    """Draw how the squared loss splits up, by over-confidence and by what the model knows."""
    truth, labels = simulated()
    powers = np.linspace(0.4, 3, 14)
    shares = np.linspace(0, 1, 11)
    luck = np.random.default_rng(1).random((len(truth), 1))
    partly = [np.where(luck < share, truth, 1 / 3) for share in shares]
    for ax, x, models, words in (
        (left, powers, [sharpened(truth, a) for a in powers], SHARPENED),
        (right, shares, partly, "share of the cases that the model knows"),
    ):
        parts = [
            [rw.irreducible_loss(labels)] * len(x),
            [rw.dispersion_loss(q, labels) for q in models],
            [rw.calibration_loss(q, labels) for q in models],
        ]
        ax.stackplot(x, np.maximum(parts, 0), labels=("irreducible", "dispersion", "calibration"),
                     colors=("0.8", COLOURS[0], COLOURS[1]))  # fmt: skip
        ax.set(xlabel=words, ylim=(0, None))
    left.set(ylabel="expected squared loss")
    right.legend(loc="lower left")
    return (
        "The expected squared loss as a stack of irreducible, dispersion and calibration loss. "
        "Left: sharpening a model changes the calibration loss. Right: a model that is ignorant of "
        "more of the cases has more dispersion loss. The irreducible part stays the same."
    )


def disagreement(left: Any, right: Any) -> str:
    """Draw predicted disagreement by the probability, and its loss by how sure the model is."""
    p = np.linspace(0, 1, 101)
    for alpha, colour in zip((np.inf, 4.0, 1.0), COLOURS, strict=False):
        shown = 2 * p * (1 - p) * (1 if np.isinf(alpha) else alpha / (alpha + 1))
        left.plot(p, shown, color=colour, label=f"α0 = {alpha:g}".replace("inf", "∞"))
    left.set(xlabel="predicted probability", ylabel="two raters differ")
    left.legend()
    truth, labels = simulated()
    mean = np.full_like(truth, 1 / 3) * 0.5 + truth * 0.5
    alphas = np.geomspace(0.3, 100, 25)
    found = [rw.DirichletBelief(mean, np.full(len(mean), a)).disagreement() for a in alphas]
    right.plot(
        alphas, [rw.disagreement_calibration_error(d, labels) for d in found], color=COLOURS[0]
    )
    right.set(xscale="log", xlabel="α0 of every case", ylabel="disagreement calibration error")
    return (
        "Left: the predicted probability that two raters differ is largest at one half, and is "
        "smaller for small α0. Right: the disagreement calibration error of a model that knows "
        "half the truth, against α0; it has a minimum between too small and too large."
    )


def calibration(left: Any, right: Any) -> str:
    """Draw calibration errors by over-confidence, and of a calibrated model by the cases."""
    truth, labels = simulated()
    powers = np.linspace(0.4, 3, 14)
    metrics = {"ece": rw.ece, "robust_ece": rw.robust_ece, "classwise_ece": rw.classwise_ece,
               "smooth_ece": rw.smooth_ece}  # fmt: skip
    sizes = (30, 100, 300, 1000, 3000)
    for (name, metric), colour in zip(metrics.items(), COLOURS, strict=True):
        found = [metric(sharpened(truth, a), labels) for a in powers]
        left.plot(powers, found, color=colour, label=name, linestyle=STYLES[name])
        drawn = [[metric(*simulated(n, 1, seed)) for seed in range(8)] for n in sizes]
        right.plot(sizes, np.mean(drawn, axis=1), "o-", color=colour, label=name)
    left.axvline(1, color="0.5", linestyle=":")
    left.set(xlabel=SHARPENED, ylabel="value", ylim=(0, None))
    right.set(xscale="log", xlabel="cases of a calibrated model, one rater", ylim=(0, None))
    right.legend()
    return (
        "Left: ECE and related errors grow as a model moves away from calibration, in either "
        "direction. Right: with few cases, they are far from 0 even for a calibrated model."
    )


def ranking(left: Any, right: Any) -> str:
    """Draw AUCCC and AURC by how much of the confidence is noise, and by the accuracy."""
    truth, labels = simulated()
    rng = np.random.default_rng(2)
    noise = rng.random(len(truth))
    shares = np.linspace(0, 1, 11)
    confidence = [(1 - s) * truth.max(axis=1) + s * noise for s in shares]
    powers = np.linspace(0.4, 3, 8)
    for (name, metric), colour in zip(
        {"auccc": rw.auccc, "aurc": rw.aurc}.items(), COLOURS, strict=False
    ):
        left.plot(
            shares,
            [metric(truth, labels, confidence=c) for c in confidence],
            color=colour,
            label=name,
        )
        right.plot(powers, [metric(sharpened(truth, a), labels) for a in powers], color=colour)
    left.set(xlabel="share of noise in the confidence", ylabel="value", ylim=(0, 1))
    right.set(xlabel=SHARPENED, ylim=(0, 1))
    left.legend()
    return (
        "Left: the noisier the confidence, the lower the AUCCC (down to 0.5) and the higher the "
        "AURC. Right: making the model over-confident changes neither of them much, because the "
        "order of the cases stays nearly the same."
    )


def clinical(left: Any, right: Any) -> str:
    """Draw what intercept and slope mean, and net benefit by the threshold."""
    p = np.linspace(0.01, 0.99, 99)
    logit = np.log(p / (1 - p))
    curves = {
        "slope 0.5": (0, 0.5),
        "slope 2": (0, 2),
        "intercept 1": (1, 1),
        "intercept −1": (-1, 1),
    }
    left.plot([0, 1], [0, 1], color="0.5", linestyle=":")
    for (name, (a, b)), colour in zip(curves.items(), COLOURS, strict=True):
        left.plot(p, 1 / (1 + np.exp(-(a + b * logit))), color=colour, label=name)
    left.set(xlabel="predicted probability", ylabel="observed")
    left.legend(fontsize=7)
    rng = np.random.default_rng(3)
    risk = rng.beta(1, 4, 3000)
    sick = (rng.random(3000) < risk).astype(int)
    thresholds = np.linspace(0.02, 0.6, 30)
    for name, scores, colour in (
        ("calibrated", risk, COLOURS[0]),
        ("risks too high", risk**0.5, COLOURS[1]),
    ):
        right.plot(
            thresholds,
            [rw.net_benefit(scores, sick, threshold=t) for t in thresholds],
            color=colour,
            label=name,
        )
    everybody = [rw.net_benefit(np.ones(3000), sick, threshold=t) for t in thresholds]
    right.plot(thresholds, everybody, color="0.5", linestyle=":", label="treat all")
    right.set(xlabel="threshold", ylabel="net benefit", ylim=(-0.06, 0.22))
    right.legend(fontsize=7)
    return (
        "Left: a slope below 1 means that predictions are too extreme, above 1 not extreme enough; "
        "the intercept shifts them all. Right: net benefit against the threshold; a model "
        "with risks that are too high falls below a calibrated one that ranks the cases alike."
    )


def rater_agreement(left: Any, right: Any) -> str:
    """Draw agreement coefficients by how often raters err, and by how common the class is."""
    rng = np.random.default_rng(4)

    def panel(prevalence: float, error: float) -> rw.Labels:
        sick = rng.random((3000, 1)) < prevalence
        said = np.where(rng.random((3000, 3)) < error, ~sick, sick)
        return rw.Labels.from_ratings(said.astype(int), num_classes=2)

    errors, shares = np.linspace(0, 0.5, 11), np.linspace(0.02, 0.5, 11)
    for ax, x, panels in (
        (left, errors, [panel(0.5, e) for e in errors]),
        (right, shares, [panel(s, 0.05) for s in shares]),
    ):
        ax.plot(x, [rw.fleiss_kappa(one) for one in panels], color=COLOURS[0], label="fleiss_kappa")
        agreed = [1 - rw.irreducible_loss(one) for one in panels]
        ax.plot(x, agreed, color=COLOURS[1], linestyle="--", label="two raters agree")
        ax.set(ylim=(0, 1.02))
    left.set(xlabel="how often a rater errs; the class is 1 in 2", ylabel="value")
    right.set(xlabel="how common the class is; 5% errors")
    right.legend()
    return (
        "Left: kappa falls from 1 to 0 as raters make more errors. Right: with the same raters, "
        "kappa falls as the class becomes rare, although two raters agree as often as before."
    )


PICTURES: dict[str, Callable[[Any, Any], str]] = {
    "proper_scores": proper_scores, "label_histograms": label_histograms,
    "disagreement": disagreement, "calibration": calibration, "ranking": ranking,
    "clinical": clinical, "rater_agreement": rater_agreement,
}  # fmt: skip


def draw(family: str, folder: Path) -> str:
    """Write the picture of a family as SLUG.png; return what it shows."""
    with mpl.rc_context({"font.size": 8.5, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=SIZE, layout="constrained")
        words = PICTURES[family](*figure.subplots(1, 2))
        figure.savefig(folder / f"{family}.png", dpi=DPI)
    return words
