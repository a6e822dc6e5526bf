"""α-calibration where the truth is known: is the line found, and do useless features do harm?

    python -m benchmarks.alpha_truth --seed 2

Raters' opinions follow Dir(α0 f) with log α0 = 0.5 + u: u = 0.8 x₁ (*one*: the other features are
noise), 0.8 Σ x_d/√D (*all*: every feature says a little) or 0 (*noise*). Each fit is judged on
4,000 new cases by the mean negative log-likelihood of a label, as a difference in per cent to the
best α0 for all cases. The rule of `AlphaCalibration` was chosen on --seed 1; docs/calibration.md
has the figures of --seed 2.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.labels import Labels

TRUTHS = ("one", "all", "noise")
DESIGNS = (  # truth, cases, features, raters, repeats
    *(("one", 10_000, 1, raters, 4) for raters in (5, 2)),
    *(("one", cases, 1, 2, 20) for cases in (1000, 300, 100)),
    *(("noise", 300, 512, raters, 12) for raters in (5, 2)),
    ("noise", 300, 64, 5, 20),
    ("noise", 100, 20, 3, 20),
    ("noise", 100, 5, 3, 20),
    ("one", 300, 512, 5, 8),
    ("all", 300, 512, 5, 8),
    ("all", 2000, 128, 5, 4),
)
NEW_CASES = 4000

Study = tuple[np.ndarray, np.ndarray, Labels]


def simulated(
    rng: np.random.Generator, truth: str, cases: int, features: int, raters: int
) -> Study:
    """Return features, class probabilities and labels."""
    x = rng.normal(size=(cases, features))
    lines = {"one": x[:, 0], "all": x.sum(axis=1) / features**0.5, "noise": np.zeros(cases)}
    f = rng.dirichlet(np.ones(3), cases)
    gammas = rng.standard_gamma(np.exp(0.5 + 0.8 * lines[truth])[:, None] * f) + 1e-300
    opinions = gammas / gammas.sum(axis=1, keepdims=True)
    return x, f, Labels.from_counts(rng.multinomial(raters, opinions))


def one_study(
    rng: np.random.Generator, truth: str, cases: int, features: int, raters: int
) -> list[float]:
    """Return the slope of the first feature, what each fit loses, and if one α0 was chosen."""
    x, f, labels = simulated(rng, truth, cases, features, raters)
    new_x, new_f, new_labels = simulated(rng, truth, NEW_CASES, features, raters)

    def loss(model: AlphaCalibration) -> float:
        return -model.fit(x, labels, probs=f).score(new_x, new_labels, probs=new_f)

    chosen = AlphaCalibration()
    constant = loss(AlphaCalibration(l2=np.inf))
    paper = loss(AlphaCalibration(l2=0.005, penalty="paper"))
    ours = loss(chosen)
    slope = float(chosen.coef_[0]) if truth == "one" else np.nan
    return [slope, 100 * (ours / constant - 1), 100 * (paper / constant - 1), chosen.l2_ == np.inf]


def main() -> None:
    """Print a Markdown table, a row per design."""
    parser = argparse.ArgumentParser(description="α-calibration where the truth is known")
    parser.add_argument("--seed", type=int, default=2)
    seed = parser.parse_args().seed
    warnings.simplefilter("ignore")
    print("| truth | cases | features | raters | slope (0.8) | loss | worst | one α0 | paper's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for truth, cases, features, raters, repeats in DESIGNS:
        found = np.array(
            [
                one_study(np.random.default_rng([seed, r]), truth, cases, features, raters)
                for r in range(repeats)
            ]
        )
        slope, ours, paper, constant = found.mean(axis=0)
        shown = f"{slope:.2f}" if truth == "one" else ""
        print(
            f"| {truth} | {cases:,} | {features} | {raters} | {shown} | {ours:+.2f} % "
            f"| {found[:, 1].max():+.2f} % | {constant:.0%} | {paper:+.2f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
