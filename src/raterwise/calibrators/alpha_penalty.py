"""The penalty of α-calibration, chosen by cross-validation that keeps patients together.

LH eq 50 draws α0 towards 1 with λ = 0.005. Where cases have two labels each that can be stronger
than what the labels say, and the predicted disagreement comes out too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raterwise.arrays import positive_integer
from raterwise.calibrators.alpha import AlphaCalibration, alpha_calibration_loss
from raterwise.calibrators.cross_validation import patient_folds
from raterwise.errors import InvalidInputError
from raterwise.predictions import Predictions

__all__ = ["PENALTIES", "best_alpha_penalty"]

PENALTIES = (0.05, 0.005, 0.0005, 0.00005)


def best_alpha_penalty(
    features: Any,
    probs: Any,
    labels: Any,
    groups: Any = None,
    *,
    penalties: Sequence[float] = PENALTIES,
    folds: int = 5,
    seed: int = 0,
) -> float:
    """Return the λ of LH eq 50 under which labels that were left out are most likely.

    α-calibration is fitted to all folds but one and judged by the Dirichlet-multinomial likelihood
    of the one left out, pooled over the folds. The cases of a patient (`groups`) stay together. Of
    equal penalties the first is taken.

    >>> import raterwise as rw
    >>> random = np.random.default_rng(0)
    >>> f = random.dirichlet([1, 1], 500)
    >>> q = np.array([random.dirichlet(50 * row) for row in f])  # raters differ as f says: α0 is 50
    >>> labels = rw.Labels.from_counts(random.multinomial(4, q))
    >>> best_alpha_penalty(np.zeros((500, 0)), f, labels) < 0.005
    True
    """
    data = Predictions.of(probs, labels, groups=groups)
    rows = np.asarray(data.read(0, len(data)).probs, np.float64)
    folds = positive_integer("folds", folds, least=2)
    unit = np.arange(len(data)) if data.groups is None else data.groups
    if len(np.unique(unit)) < folds:
        raise InvalidInputError(
            f"folds: must be at most the number of cases or patients; got {folds} for "
            f"{len(np.unique(unit))}"
        )
    fold = patient_folds(data.labels.counts, unit, folds, seed)
    x = None if features is None else np.asarray(features)
    losses = np.zeros(len(penalties))
    for i, penalty in enumerate(penalties):
        for k in range(folds):
            known, left = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            model = AlphaCalibration(l2=penalty)
            model.fit(None if x is None else x[known], rows[known], data.labels.take(known))
            belief = model.predict(None if x is None else x[left], rows[left])
            out = data.labels.take(left)
            # A label of probability 0 is as unlikely under every penalty: it decides nothing.
            loss = alpha_calibration_loss(belief, out, l2=0) * out.num_raters.sum()
            losses[i] += loss if np.isfinite(loss) else 0.0
    return float(penalties[int(losses.argmin())])
