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
from raterwise.confidence import auccc

__all__ = ["Floats", "judged", "seen"]

Floats = NDArray[np.float64]

CLASSES, CASES, REPEATS = 10, 20_000, 10
ENSEMBLE = 0.31
"""Standard deviation of the noise through which the ensemble sees the class: 93 % are right."""
POWERS = (1, 2, 4)
OWN = (np.inf, 3.0, 2.0, 1.5, 1.0)
"""The same of what the confidence network sees besides; infinite: nothing that it does not."""
TEMPERATURE = 3


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

    The last number is by how much more often the most probable class of all that the confidence
    network sees is right than that of the ensemble.
    """
    random = np.random.default_rng([seed, 31])
    labels = random.integers(CLASSES, size=cases)
    right = np.eye(CLASSES)[labels]
    view = seen(right, ENSEMBLE, random)
    logs = log_softmax(power * view, axis=1)
    soft = softmax(logs / TEMPERATURE, axis=1)
    knows = softmax(view + seen(right, own, random), axis=1)
    hits = (view.argmax(axis=1) == labels).astype(np.float64)
    plain = auccc(logs.max(axis=1), hits)
    softened = auccc(soft.max(axis=1), hits)
    distilled = auccc((knows * soft).sum(axis=1), hits)
    surer = np.exp(logs).max(axis=1).mean()
    more = (knows.argmax(axis=1) == labels).mean() - hits.mean()
    parts = (hits.mean(), surer, plain, softened - plain, distilled - softened, more)
    return tuple(100 * float(part) for part in parts)


def row(power: float, own: float) -> str:
    """Return a row of the table, over ten draws of the cases."""
    drawn = np.array([judged(power, own, seed) for seed in range(REPEATS)])
    means, deviations = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
    cells = [f"{value:.1f}" for value in means[:2]]
    cells += [f"{means[k]:{form}} ± {deviations[k]:.2f}"
              for k, form in ((2, ".2f"), (3, "+.2f"), (5, "+.2f"), (4, "+.2f"))]  # fmt: skip
    return table_row((f"{power:g}", *cells))


def main() -> None:
    """Print the table."""
    head = (
        *("power", "right", "mean confidence", "AUCCC, T = 1", "T = 3 less T = 1"),
        *("the confidence network is right more often by", "UDist less ensemble, T = 3"),
    )
    print("\n".join(table_head(head)))
    for power in POWERS:
        for own in OWN:
            print(row(power, own))


if __name__ == "__main__":
    main()
