"""What one more error would add to a loss, for the upper end of its interval."""

from __future__ import annotations

import numpy as np

from raterwise.metrics import proper
from raterwise.questions import PerCaseScore, Question
from raterwise.summaries import BinPlan, BinTable


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


CONFIDENCE = BinPlan(
    Question("top_label", "case"), (0.0, 0.5, *(1 - 4.0 ** -np.arange(1, 21)).tolist(), 1.0)
)
"""How sure the model is, finely where it is nearly certain."""


RANKED = BinPlan(PerCaseScore("ranked_by_chance"), 1)
"""The ranked probability score that each case would have, were the model calibrated."""
RANKED_LOG = BinPlan(PerCaseScore("ranked_log_by_chance"), 1)
"""The same of the ranked log score."""


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


def step_of_ranked_log(table: BinTable) -> dict[str, float]:
    """Return the same of the log loss of ordered classes, which has no limit.

    V / E and M / V as of the ranked probability score, and the mean square M / E of what all errors
    add, weighted by what they add; V E / M of them are in a case.
    """
    variance, skew = (float(column.sum()) for column in table.score)
    mean, cases = float(table.positive[0].sum()), float(table.weight[0].sum())
    if not (mean > 0 and variance > 0):
        return {"step": 1.0}
    step = variance / mean
    square = max(skew / mean, step**2)
    return {
        "step": step, "dear": square / step, "squared_dear": square,
        "dear_events": variance / cases / square, "spread": variance / cases,
    }  # fmt: skip


def step_of_log(table: BinTable) -> dict[str, float]:
    """Return what an error in any case adds to the log loss, its square, and the loss's variance.

    The errors that a model expects are cheap, those of its sure cases are not: the mean of
    -log(1 - z) over all cases; the variance is that of -log p of a label drawn from (z, 1 - z).
    """
    weight, score = table.weight[0], table.score[0]
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
