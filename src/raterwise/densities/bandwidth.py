"""The bandwidth of a kernel-density calibration error: leave-one-out likelihood on a grid.

The density of the predictions at case j, estimated from the other cases, is

    density_j = sum_{i != j} m_i k(f_j; f_i) / sum_{i != j} m_i,

each kernel being a density in f_j that integrates to one; the bandwidth with the largest
sum_j m_j log density_j is taken. (The released estimator divides by the bandwidth once more,
which favours the smallest bandwidths: its choice is the argument of the maximum of the sum minus
sum_j m_j log bandwidth.)

Cases with *equal* predictions are left out together. A tie is a spike in the density that the
smallest bandwidth would always fit best, and a case that appears once per rater is a tie with
itself; without its ties, a prediction is judged by how well its distinct neighbours foresee it.

Probabilities of exactly 0 and 1 (rows: certainty of one class) are mass points, not a density: no
kernel foresees them but a very wide one, and a map of which 82 % is 0 would take the widest there
is. So they are left out, and the bandwidth is chosen on the continuous part; where fewer than two
distinct predictions lie between 0 and 1, on all of them. The error itself counts every case.

A choice at either end of the grid says so (`Bandwidth.at_end`): the best one may lie beyond.

Reference: Popordanoska et al. (2022), section 4; Habbema, Hermans, van den Broek. A stepwise
discriminant analysis program using density estimation. COMPSTAT 1974.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raterwise.densities.cells import add_by_cell, parts_of
from raterwise.densities.pairs import beta_terms, sum_beta_kernels, sum_dirichlet_kernels
from raterwise.summaries.cells import cells_of, fine_cells
from raterwise.types import FloatArray

BANDWIDTHS = np.concatenate((np.logspace(-5, -1, 15), np.linspace(0.2, 1.0, 5)))
"""The bandwidths that are tried, the grid of the released estimator."""

MAX_POINTS = 2_000
"""At how many cases the Dirichlet likelihood is evaluated, at most."""
MAX_CENTRES = 20_000
"""From how many cases the Dirichlet density is estimated, at most."""


class Bandwidth(float):
    """A bandwidth that was chosen, and whether the likelihood was still rising at its place.

    >>> Bandwidth(0.01).warning is None, Bandwidth(1.0, at_end=True).at_end
    (True, True)
    """

    at_end: bool

    def __new__(cls, value: float, at_end: bool = False) -> Bandwidth:
        """Return the number with its mark."""
        chosen = super().__new__(cls, value)
        chosen.at_end = at_end
        return chosen

    @property
    def warning(self) -> str | None:
        """What a person should know about it."""
        if not self.at_end:
            return None
        which = "smallest" if self == BANDWIDTHS[0] else "largest"
        return (
            f"kde_ece: the bandwidth chosen by likelihood, {self:.3g}, is the {which} that was "
            "tried, so the value depends on where the search ended; bandwidth=0.01 sets another"
        )


def _best(log_likelihood: Callable[[float], float]) -> Bandwidth:
    values = [log_likelihood(float(h)) for h in BANDWIDTHS]
    best = int(np.argmax(values))
    return Bandwidth(BANDWIDTHS[best], at_end=best in (0, len(BANDWIDTHS) - 1))


def score_log_likelihood(scores: FloatArray, masses: FloatArray, bandwidth: float) -> float:
    """Mean leave-one-out log-density of sorted distinct scores under the Beta kernel.

    With two scores each is foreseen by the other alone: Beta(0.25; 3.5, 1.5) at bandwidth 0.3
    is the density of the first.

    >>> from scipy.stats import beta
    >>> value = score_log_likelihood(np.array([0.25, 0.75]), np.ones(2), 0.3)
    >>> bool(np.isclose(value, beta(0.75 / 0.3 + 1, 0.25 / 0.3 + 1).logpdf(0.25)))
    True
    """
    terms = beta_terms(scores, bandwidth)
    sums = sum_beta_kernels(terms, masses, masses, np.ones(len(scores), np.bool_))
    log_density = np.log(sums.mass) + sums.shift + terms.t - np.log(masses.sum() - masses)
    return float(np.dot(masses, log_density) / masses.sum())


def select_bandwidth(scores: FloatArray, masses: FloatArray | None = None) -> Bandwidth:
    """Choose the bandwidth of one score; scores in the same fine cell count as equal.

    The cells (`fine_cells`) make the choice the same in memory and from a stream, and quick for
    any number of cases.
    """
    edges = fine_cells()
    masses = np.ones(len(scores)) if masses is None else masses
    sums = np.zeros((2, len(edges) - 1))
    for part in parts_of(len(scores)):
        cell, some = cells_of(scores[part]), masses[part]
        add_by_cell(sums, cell, (some, some * (scores[part] - edges[cell])))
    return select_bandwidth_from_cells(*sums)


def select_bandwidth_from_cells(mass: FloatArray, offset: FloatArray) -> Bandwidth:
    """Choose the bandwidth from the sums of w and of w (z - lower edge) over the fine cells.

    The first and the last cell, which end 2.2e-16 from 0 and 1, are those of the mass points.
    """
    used = np.flatnonzero(mass > 0)
    inside = used[(used > 0) & (used < len(mass) - 1)]
    used = inside if len(inside) >= 2 else used
    # A single cell: every bandwidth foresees nothing and changes nothing; take the smoothest.
    if len(used) < 2:
        return Bandwidth(BANDWIDTHS[-1])
    masses = mass[used]
    scores = fine_cells()[used] + offset[used] / masses
    return _best(lambda h: score_log_likelihood(scores, masses, h))


def dirichlet_log_likelihood(
    probs: FloatArray,
    masses: FloatArray,
    bandwidth: float,
    points: NDArray[np.int64] | None = None,
) -> float:
    """Mean leave-one-out log-density of the cases `points` (default: all), Dirichlet kernel."""
    rows = np.ascontiguousarray(probs, np.float64)
    same = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    points = np.arange(len(rows)) if points is None else points
    group_mass = np.bincount(same, masses)[same[points]]
    sums, shift = sum_dirichlet_kernels(
        rows, masses[:, None], rows[points], bandwidth, same, same[points]
    )
    weights, others = masses[points], masses.sum() - group_mass
    log_density = np.log(sums[0]) + shift - np.log(others)
    return float(np.dot(weights, log_density) / weights.sum())


def dirichlet_sample(certain: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """Return which cases, in random order, the bandwidth is chosen on.

    `certain` (N,) are the mass points, which take no part unless there is little else.
    """
    cases = np.flatnonzero(~certain)
    cases = cases if len(cases) >= 2 else np.arange(len(certain))
    return cases[np.random.default_rng(seed).permutation(len(cases))[:MAX_CENTRES]]


def select_dirichlet_bandwidth(
    probs: FloatArray, masses: FloatArray | None = None, *, seed: int = 0
) -> Bandwidth:
    """Choose the bandwidth for K classes together, at no more than MAX_POINTS sampled cases.

    Beyond MAX_CENTRES cases the density is estimated from a sample as well; both samples depend
    on `seed` alone.
    """
    masses = np.ones(len(probs)) if masses is None else masses
    counted = np.flatnonzero(masses > 0)
    order = counted[dirichlet_sample(probs[counted].max(axis=1) == 1, seed)]
    return best_dirichlet_bandwidth(probs[order], masses[order])


def best_dirichlet_bandwidth(rows: FloatArray, masses: FloatArray) -> Bandwidth:
    """Choose the bandwidth by the likelihood of the first MAX_POINTS of sampled cases."""
    if (rows == rows[0]).all():
        return Bandwidth(BANDWIDTHS[-1])
    points = np.arange(min(len(rows), MAX_POINTS))
    return _best(lambda h: dirichlet_log_likelihood(rows, masses, h, points))
