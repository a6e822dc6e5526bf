"""What a perfectly trained confidence network could gain: CCC eq 3 in a world that is known.

    python -m experiments.confidence_curves.ideal

The loss of eq 3 is least where the confidence is what is expected of P_t: Σ_k r_k P̃_k, where r are
the class probabilities that follow from all that the confidence network sees, and P̃ is the softened
ensemble. (On images that the members know by heart the right class is the one with the largest
entry of P̃, so that there the network learns to say max P̃ again.)

Ten classes, 20,000 made-up cases. The ensemble sees the right class through noise, and is right in
93 % as in the paper's Table 1; its mean is the true probability given what it sees, or that raised
to a power, as of members that over-fit. The confidence network sees the ensemble, and the class
through more or less noise of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from experiments.markdown import table_head, table_row
from raterwise.confidence import auccc, io_auroc

__all__ = ["Floats", "judged", "seen"]

Floats = NDArray[np.float64]

CLASSES, CASES, REPEATS = 10, 20_000, 10
ENSEMBLE = 0.31
"""Standard deviation of the noise through which the ensemble sees the class: 93 % are right."""
POWERS = (1, 2, 4)
OWN = (np.inf, 3.0, 2.0, 1.5, 1.0)
"""The same of what the confidence network sees besides; infinite: nothing that it does not."""
TEMPERATURES = (3, 10)
"""Of CCC Table 1, and of Table 3."""


def seen(right: Floats, noise: float, random: np.random.Generator) -> Floats:
    """Return the log-probabilities of the classes, but for a constant, of a noisy view of one.

    >>> seen(np.eye(2), np.inf, np.random.default_rng(0))
    array([[0., 0.],
           [0., 0.]])
    """
    if np.isinf(noise):
        return np.zeros_like(right)
    return np.asarray((right + noise * random.standard_normal(right.shape)) / noise**2)


def judged(power: float, own: float, seed: int, cases: int = CASES) -> tuple[float, ...]:
    """Return accuracy, mean confidence, AUCCC of the ensemble, what T and UDist add, in per cent.

    The last two numbers are by how much more often the most probable class of all that the
    confidence network sees is right than that of the ensemble, and what UDist adds to I/O AUROC at
    T = 10 with as many images that have nothing of any class.
    """
    random = np.random.default_rng([seed, 31])
    labels = random.integers(CLASSES, size=cases)
    right = np.eye(CLASSES)[labels]

    def views(signal: Floats) -> tuple[Floats, Floats]:
        view = seen(signal, ENSEMBLE, random)
        return view, softmax(view + seen(signal, own, random), axis=1)

    inside, knows = views(right)
    outside, guesses = views(np.zeros_like(right))
    hits = (inside.argmax(axis=1) == labels).astype(np.float64)
    sure = softmax(power * inside, axis=1).max(axis=1)
    softened, distilled = _confidences(power * inside, knows, TEMPERATURES[0])
    plain, before, after = (auccc(said, hits) for said in (sure, softened, distilled))
    first = _confidences(power * inside, knows, TEMPERATURES[1])
    second = _confidences(power * outside, guesses, TEMPERATURES[1])
    apart = [io_auroc(*pair) for pair in zip(first, second, strict=True)]
    more = (knows.argmax(axis=1) == labels).mean() - hits.mean()
    parts = (hits.mean(), sure.mean(), plain, before - plain, after - before, more)
    return tuple(100 * float(part) for part in (*parts, apart[1] - apart[0]))


def _confidences(logits: Floats, knows: Floats, temperature: float) -> tuple[Floats, Floats]:
    """Return what the softened ensemble and UDist say (CCC eq 2, and where eq 3 is least)."""
    soft = softmax(log_softmax(logits, axis=1) / temperature, axis=1)
    return soft.max(axis=1), (knows * soft).sum(axis=1)


def row(power: float, own: float) -> str:
    """Return a row of the table, over ten draws of the cases."""
    drawn = np.array([judged(power, own, seed) for seed in range(REPEATS)])
    means, deviations = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
    cells = [f"{value:.1f}" for value in means[:2]]
    cells += [f"{means[k]:{form}} ± {deviations[k]:.2f}"
              for k, form in ((2, ".2f"), (3, "+.2f"), (5, "+.2f"), (4, "+.2f"), (6, "+.2f"))
             ]  # fmt: skip
    return table_row((f"{power:g}", *cells))


def main() -> None:
    """Print the table."""
    head = (
        *("power", "right", "mean confidence", "AUCCC, T = 1", "T = 3 less T = 1"),
        *("the confidence network is right more often by", "UDist less ensemble, T = 3"),
        "the same in I/O AUROC, T = 10",
    )
    print("\n".join(table_head(head)))
    for power in POWERS:
        for own in OWN:
            print(row(power, own))


if __name__ == "__main__":
    main()
