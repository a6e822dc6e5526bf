"""What one more error would add to a loss, for the upper end of its interval."""

from __future__ import annotations

import numpy as np

from raterwise.metrics import proper
from raterwise.questions import Event, PerCaseScore, Question
from raterwise.summaries import BinPlan, BinTable
from raterwise.types import Array


def step_of_squares(table: BinTable) -> dict[str, float]:
    """Return what one more error adds to the squared loss of a calibrated model, and its variance.

    For an event with probability z a label changes (p - y)² by 1 - 2z, with variance
    z (1 - z) (1 - 2z)²; the step is Σ w z (1 - z) (1 - 2z)² / Σ w z (1 - z).
    """
    z = table.score / np.where(table.weight > 0, table.weight, 1)
    binomial = table.weight * z * (1 - z)
    variance = float((binomial * (1 - 2 * z) ** 2).sum())
    total = float(binomial.sum())
    cases = float(table.weight[0].sum())
    return {"step": variance / total if total > 0 else 1.0, "spread": variance / cases}


def step_of_classes(table: BinTable) -> dict[str, float]:
    """Return the same of the squares of all classes: a wrong label is off about two of them.

    What is not the one class is another. Of two classes 2 (1 - 2z) and 4 z (1 - z) (1 - 2z)² are
    exact, of more they are where the model is sure, which is where errors are not seen.
    """
    return {name: 2 * value for name, value in step_of_squares(table).items()}


def step_of_epistemic(table: BinTable, *, estimator: str) -> dict[str, float]:
    """Return the same of the epistemic loss, for raters who all say what the model does not."""
    del estimator  # it is the same for all
    return step_of_classes(table) | {"seen": float(proper.expected_squared_loss(table))}


CONFIDENCE = BinPlan(
    Question("top_label", "case"), (0.0, 0.5, *(1 - 4.0 ** -np.arange(1, 21)).tolist(), 1.0)
)
"""How sure the model is, finely where it is nearly certain."""


CUTS = Event(None, "case", ordered=True)
"""The cuts between ordered classes: is it class k or higher?"""
RANKED = BinPlan(PerCaseScore("ranked_by_chance"), 1)
"""The ranked probability score that each case would have, were the model calibrated."""
SURE_OF_CUTS = BinPlan(
    CUTS,
    (0.0, *(4.0 ** -np.arange(20, 0, -1)).tolist(), 0.5,
     *(1 - 4.0 ** -np.arange(1, 21)).tolist(), 1.0),
)  # fmt: skip
"""How likely the model says each cut is reached, finely where it is nearly certain."""


def step_of_ranked(table: BinTable) -> dict[str, float]:
    """Return the same of the ranked probability score, whose errors may be off by several classes.

    The variance V of a calibrated model's score, over its mean E: of rare errors that is what each
    adds (weighted by what it adds), and of two classes it is the step of the squares. Where few
    errors make up most of the variance, being off by many classes, each of these adds M / V, with M
    the third moment, and V³ / M² of them are in a case. One that is off by one class adds up to 1.
    """
    variance, skew = (float(column.sum()) for column in table.score)
    mean, cases = float(table.positive[0].sum()), float(table.weight[0].sum())
    found = {"step": variance / mean if mean > 0 else 1.0, "spread": variance / cases}
    if skew <= variance:
        return found
    dear = skew / variance
    events = variance / cases / dear**2
    return found | {"dear": dear, "squared_dear": dear**2, "dear_events": events}


def step_of_log(table: BinTable) -> dict[str, float]:
    """Return what an error in any case adds to the log loss, its square, and the loss's variance.

    The errors that a model expects are cheap, those of its sure cases are not: the mean of
    -log(1 - z) over all cases; the variance is that of -log p of a label drawn from (z, 1 - z).
    """
    return _step_of_log(table.weight[0], table.score[0])


def step_of_ranked_log(table: BinTable) -> dict[str, float]:
    """Return the same of the log loss of ordered classes: of an error at any one of the cuts.

    A cut is as sure below 1/2 as above it; the variances of the cuts add up.
    """
    weight = table.weight + table.weight[:, ::-1]
    score = table.score + (table.weight - table.score)[:, ::-1]
    half = weight.shape[1] // 2  # the bins that were added to their mirror images
    sums = weight[:, half:].sum(axis=0), score[:, half:].sum(axis=0)
    found = _step_of_log(*sums)
    return {**found, "spread": found["spread"] * len(weight)}


def _step_of_log(weight: Array, score: Array) -> dict[str, float]:
    share = weight / weight.sum()
    z = np.clip(score / np.where(weight > 0, weight, 1), 1e-12, 1 - 1e-12)
    right, wrong = -np.log(z), -np.log1p(-z)
    variance = z * (1 - z) * (wrong - right) ** 2
    return {
        "step": float(share @ wrong),
        "squared_step": float(share @ wrong**2),
        "spread": float(share @ variance),
    }


def halved_step_of_classes(table: BinTable, *, scale_by_half: bool | str) -> dict[str, float]:
    """Return that of all classes by scikit-learn's convention: halved for two, or as told."""
    found = step_of_classes(table)
    times = 0.5 if proper.is_halved(scale_by_half, len(table.weight)) else 1.0
    return {"step": found["step"] * times, "spread": found["spread"] * times**2}
