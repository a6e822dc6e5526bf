"""When the one penalty of LH's α-calibration suits: the best α0, and how many validation cases.

    python -m experiments.label_histograms.penalty

Made-up cases whose truth is known. The class probabilities f are what one of our networks says of
the nodules of LIDC-IDRI; the true ones are drawn from Dir(α f), so that α is the best α0 of every
case, for predicted disagreement and for the posterior (LH Theorem 1), and four raters answer by
them. The 128 features say nothing about α0. α-calibration is fitted to the validation cases with
the penalty of eq 50, and the expected changes of L_φD and of EL after one expert's label follow
from the α0 that it gives to new cases.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from experiments.label_histograms.calibrators import ALPHA_L2
from experiments.markdown import table_head, table_row
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.errors import RaterwiseWarning
from raterwise.labels import Labels

__all__ = ["changes", "fitted_changes", "told"]

Floats = NDArray[np.float64]

KEPT = Path(__file__).parents[1] / "outputs" / "label_histograms" / "plain-lidc_1-0.npz"
BEST = (2.6, 4.8, 26.0)
"""(1 - u_Q) / EL of the paper's Mix-MNIST and blood cells (its Tables 4 and 6), and of nodules."""
CASES = (520, 14_144)
"""Validation cases of ours on LIDC-IDRI, and of the paper's blood cells."""
PENALTIES = (ALPHA_L2, ALPHA_L2 / 10, ALPHA_L2 / 100, None)
"""None is the default of `AlphaCalibration`: on the coefficients, chosen by cross-validation."""
RATERS, FEATURES, HIDDEN, NEW, REPEATS = 4, 128, 32, 20_000, 10


def told() -> Floats:
    """Return the class probabilities that the kept network gives to 2,602 nodules."""
    with np.load(KEPT, allow_pickle=False) as stored:
        return np.asarray(softmax(stored["logits"].astype(np.float64), axis=1))


def changes(probs: Floats, best: float, strength: Floats) -> tuple[float, float]:
    """Return by how much α0 (N,) changes L_φD, and posterior EL from prior EL, where α is best.

    With γ = α0 / (α0 + 1) and s = 1 - Σ f²: two raters differ with probability s α / (α + 1), and
    γ s is predicted; the posterior is LH eq 66 with EL = s / (α + 1).

    >>> loss, epistemic = changes(np.array([[0.5, 0.5]]), 1.0, np.array([1.0]))
    >>> loss, epistemic  # 0 - (0.5 - 0.25)², and -0.25² / (0.25 + 0.25)
    (-0.0625, -0.125)
    """
    unlike = 1 - (probs**2).sum(axis=1)
    epistemic = unlike / (best + 1)
    differ, gamma = unlike - epistemic, strength / (strength + 1)
    loss = (gamma * unlike - differ) ** 2 - (unlike - differ) ** 2
    after = -2 * (1 - gamma) * epistemic + (1 - gamma) ** 2 * (epistemic + differ)
    return float(loss.mean()), float(after.mean())


def fitted_changes(
    probs: Floats, best: float, cases: int, penalty: float | None, seed: int
) -> tuple[float, float, float]:
    """Return the changes of L_φD and EL on new cases, and the median α0, of one fit."""
    random = np.random.default_rng([seed, cases, round(10 * best)])
    own = probs[random.integers(len(probs), size=cases)]
    gammas = random.standard_gamma(best * own)
    counts = random.multinomial(RATERS, gammas / gammas.sum(axis=1, keepdims=True))
    layer = random.standard_normal((HIDDEN, FEATURES))

    def features(rows: int) -> Floats:
        return np.asarray(np.maximum(random.standard_normal((rows, HIDDEN)) @ layer, 0))

    alpha = AlphaCalibration() if penalty is None else AlphaCalibration(penalty, "paper")
    with warnings.catch_warnings():
        # That no feature helps is true here.
        warnings.simplefilter("ignore", RaterwiseWarning)
        alpha.fit(features(cases), Labels.from_counts(counts), probs=own)
    new = probs[random.integers(len(probs), size=NEW)]
    strength = alpha.predict(features(NEW), probs=new).concentration
    return *changes(new, best, strength), float(np.median(strength))


def row(probs: Floats, best: float, cases: int, penalty: float | None) -> str:
    """Return a row of the table, over ten sets of validation cases."""
    drawn = [fitted_changes(probs, best, cases, penalty, seed) for seed in range(REPEATS)]
    means, deviations = np.mean(drawn, axis=0), np.std(drawn, axis=0, ddof=1)
    shown = (f"{means[k]:+.4f} ± {deviations[k]:.4f}" for k in (0, 1))
    name = "chosen" if penalty is None else f"{penalty:g}"
    return table_row((f"{best:g}", f"{cases:,}", name, f"{means[2]:.1f}", *shown))


def main() -> None:
    """Print the table."""
    probs = told()
    head = ("best α0", "validation cases", "λ", "median α0", "L_φD, α less Raw",
            "EL, posterior less prior")  # fmt: skip
    print("\n".join(table_head(head)))
    for best in BEST:
        for cases in CASES:
            for penalty in PENALTIES:
                print(row(probs, best, cases, penalty), flush=True)


if __name__ == "__main__":
    main()
