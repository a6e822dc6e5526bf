"""The beliefs: point, ensemble, Dirichlet, mixture of Dirichlets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_float_array, positive_integer
from raterwise.beliefs.members import Members
from raterwise.beliefs.statistics import StatisticProbability, statistic_probability
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.metrics.dirichlet import shares
from raterwise.predictions import Predictions, as_labels

__all__ = [
    "Belief",
    "DirichletBelief",
    "DirichletMixtureBelief",
    "EnsembleBelief",
    "PointBelief",
]

FloatArray = NDArray[np.float64]

LEAST, MOST = 1e-250, 1e250
"""The range of a concentration: beyond it a Dirichlet is a point, or one of the corners."""


class Belief:
    """A distribution over the class probabilities ζ of each case; what the four kinds share."""

    _members: Members

    @property
    def mean(self) -> FloatArray:
        """(N, K): the class probabilities, E[ζ]."""
        return self._members.mean

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self._members.probs.shape[2])

    def __len__(self) -> int:
        return int(self._members.probs.shape[1])

    def disagreement(self) -> FloatArray:
        """Return the probability that two raters differ, E[1 - Σ_k ζ_k²] (LH eqs 17, 19, 71-73).

        >>> DirichletBelief([[0.5, 0.5]], [1.0]).disagreement()
        array([0.25])
        """
        return self._members.disagreement()

    def posterior(self, labels: Any) -> Self:
        """Return the belief after expert labels, of the same kind (LH eqs 18, 79, 81).

        `labels` is a Labels, with any number of labels per case and none where nothing is new, or
        (N,) classes. Members of an ensemble or mixture are reweighted by the product of their
        probabilities of the labels. A point is certain already, and learns nothing.

        >>> DirichletBelief([[0.5, 0.5]], [1.0]).posterior([1]).mean
        array([[0.25, 0.75]])
        """
        checked: Labels = as_labels(labels, self.num_classes)
        if len(checked) != len(self):
            raise InvalidInputError(
                f"labels: must match the belief; got {len(checked)} labels for {len(self)} cases"
            )
        return self._of(self._members.updated(checked.counts))

    def expected_gain(self) -> FloatArray:
        """Return how much one more label is expected to lower the epistemic loss of each case.

        E‖m - ζ‖² - E‖m' - ζ‖² with the means m before and m' after the label, under the belief
        itself: Σ_k ‖Cov(ζ_k, ζ)‖² / m_k, a sum over the K possible answers. It is 0 for a point.

        >>> EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]]).expected_gain().round(4)
        array([0.1213])
        """
        return self._members.expected_gain()

    def statistic(
        self,
        statistic: Callable[..., Any] | str,
        order: int,
        *,
        values: int = 1,
        method: str = "auto",
        samples: int = 2000,
        seed: int = 0,
    ) -> StatisticProbability:
        """Return the probability of a symmetric statistic φ of `order` labels, E[P(φ | ζ)].

        Parameters
        ----------
        statistic
            "disagreement" (the labels are not all the same) or "unanimity" (they are), which have
            a closed form; or a function of the labels as `raterwise.statistic_loss` takes it: 0 or
            1, or one of 0 … M-1 where `values` is M.
        method
            "exact" enumerates the histograms of the labels; "sampling" draws `samples` sets of
            labels per case from `seed` and gives a standard error; "auto" is exact up to 20,000
            histograms, or fewer where cases and members are many.

        >>> belief = DirichletBelief([[0.5, 0.5]], [1.0])
        >>> belief.statistic("disagreement", order=2).values
        array([0.25])
        >>> belief.statistic(lambda three: sum(three) >= 2, order=3).values  # most say class 1
        array([0.5])
        """
        return statistic_probability(
            self._members,
            statistic,
            order,
            values=values,
            method=method,
            samples=samples,
            seed=seed,
        )

    def judged_by(self, labels: Labels) -> dict[str, FloatArray]:
        """Return what `evaluate` asks of a belief, case by case, given the raters' labels."""
        from raterwise.beliefs.evaluation import case_values

        return case_values(self, labels)

    def sample(self, n: int, seed: int = 0) -> FloatArray:
        """Return n draws of the class probabilities of every case, (n, N, K).

        >>> PointBelief([[0.2, 0.8]]).sample(1, seed=0)
        array([[[0.2, 0.8]]])
        """
        return self._members.sample(positive_integer("n", n), np.random.default_rng(seed))

    def take(self, indices: Any) -> Self:
        """Return the belief about the chosen cases, in the order chosen."""
        return self._of(self._members.take(np.asarray(indices)))

    @classmethod
    def _of(cls, members: Members) -> Self:
        """Return a belief of this kind with members that are known to be right."""
        belief = cls.__new__(cls)
        belief._members = members
        return belief

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} cases, {self.num_classes} classes)"


class PointBelief(Belief):
    """Certainty about the class probabilities: what a bare prediction says (δ(ζ - f), LH 5.2).

    >>> PointBelief([[0.5, 0.5], [1.0, 0.0]]).disagreement()
    array([0.5, 0. ])
    """

    def __init__(self, probs: Any) -> None:
        checked = _checked_probs(probs, "probs")
        self._members = Members(
            checked[None], np.full((1, len(checked)), np.inf), np.ones((1, len(checked)))
        )


class EnsembleBelief(Belief):
    """Several predictions of each case, S of them, one of which is right (LH eq 80).

    `samples` is (S, N, K), from Monte-Carlo dropout, test-time augmentation or several networks;
    `weights` is (S,) or (S, N), equal if left out.

    >>> belief = EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]])
    >>> belief.posterior([1]).weights.round(3)  # 0.1 : 0.8
    array([[0.111],
           [0.889]])
    """

    def __init__(self, samples: Any, weights: Any = None) -> None:
        checked = _checked_samples(samples)
        points = np.broadcast_to(np.inf, checked.shape[:2])
        self._members = Members(checked, points, _checked_weights(weights, checked))

    @property
    def samples(self) -> FloatArray:
        """(S, N, K)."""
        return self._members.probs

    @property
    def weights(self) -> FloatArray:
        """(S, N): the weight of each member, summing to 1 for each case."""
        return self._members.weights


class DirichletBelief(Belief):
    """A Dirichlet distribution with mean f and concentration α0: Dir(ζ | α0 f) (LH eq 78).

    The larger the concentration (N,), the surer; `AlphaCalibration` finds it from the raters.

    >>> belief = DirichletBelief([[0.5, 0.5]], concentration=[4.0])
    >>> belief.posterior(Labels.from_counts([[3, 0]])).concentration
    array([7.])
    """

    def __init__(self, probs: Any, concentration: Any) -> None:
        checked = _checked_probs(probs, "probs")
        alpha = _checked_concentration(concentration, (len(checked),))
        self._members = Members(checked[None], alpha[None], np.ones((1, len(checked))))

    @property
    def concentration(self) -> FloatArray:
        """(N,): α0."""
        return np.asarray(self._members.concentration[0])

    def expected_gain(self) -> FloatArray:
        """Return (1 - Σ_k f_k²) / (α0 + 1)², what one more label is expected to be worth.

        It is 1/(α0 + 1) of the expected epistemic loss (1 - Σ_k f_k²)/(α0 + 1).

        >>> DirichletBelief([[0.5, 0.5], [0.9, 0.1]], [1.0, 1.0]).expected_gain()
        array([0.125, 0.045])
        """
        kept, spread = shares(self.concentration)
        return np.asarray(self.disagreement() / kept * spread**2)


class DirichletMixtureBelief(Belief):
    """An ensemble whose members are Dirichlet distributions: Σ_s w_s Dir(ζ | α_s f_s).

    `samples` is (S, N, K), `concentration` (S, N), `weights` (S,) or (S, N), equal if left out. The
    mixture is conjugate, so its posterior is exact: each member becomes Dir(α_s f_s + y) and its
    weight is multiplied by DirMult(y | α_s f_s).

    >>> samples = [[[0.9, 0.1]], [[0.2, 0.8]]]
    >>> belief = DirichletMixtureBelief(samples, concentration=[[1.0], [9.0]])
    >>> belief.posterior([1]).concentration
    array([[ 2.],
           [10.]])
    """

    def __init__(self, samples: Any, concentration: Any, weights: Any = None) -> None:
        checked = _checked_samples(samples)
        alpha = _checked_concentration(concentration, checked.shape[:2])
        self._members = Members(checked, alpha, _checked_weights(weights, checked))

    @property
    def samples(self) -> FloatArray:
        """(S, N, K): the means of the members."""
        return self._members.probs

    @property
    def concentration(self) -> FloatArray:
        """(S, N)."""
        return self._members.concentration

    @property
    def weights(self) -> FloatArray:
        """(S, N): the weight of each member, summing to 1 for each case."""
        return self._members.weights


def _checked_probs(values: Any, name: str) -> FloatArray:
    """Return class probabilities (N, K) by the rules of Predictions, said of `name`."""
    try:
        zeros = np.zeros(len(values) if np.ndim(values) else 0, np.int64)
        rows = Predictions.of(values, zeros).read(0, len(zeros))
    except InvalidInputError as error:
        raise InvalidInputError(name + str(error).removeprefix("probs")) from None
    return np.asarray(rows.probs, np.float64)


def _checked_samples(values: Any) -> FloatArray:
    samples = as_float_array(values, "samples", ndim=(2, 3))
    if len(samples) == 0:
        raise InvalidInputError(f"samples: must hold at least one member; got {samples.shape}")
    # Members as they were given: 16-bit tensors, whose rows may sum less exactly, are one by dtype.
    given = values if hasattr(values, "dtype") else samples
    return np.stack([_checked_probs(member, f"samples[{s}]") for s, member in enumerate(given)])


def _checked_weights(values: Any, samples: FloatArray) -> FloatArray:
    """Return member weights (S, N): for each case they are probabilities over the members."""
    members, cases, _ = samples.shape
    if values is None:
        return np.broadcast_to(1 / members, (members, cases))
    weights = as_float_array(values, "weights", ndim=(1, 2))
    if weights.shape not in ((members,), (members, cases)):
        raise InvalidInputError(
            f"weights: must be {(members,)} or {(members, cases)}, members first; "
            f"got shape {weights.shape}"
        )
    weights = np.broadcast_to(weights if weights.ndim == 2 else weights[:, None], (members, cases))
    # A lone member must have weight 1; beside one of weight 0 the same rule says so.
    padded = np.vstack((weights, np.zeros(cases))) if members == 1 else weights
    return _checked_probs(padded.T, "weights").T[:members]


def _checked_concentration(values: Any, shape: tuple[int, ...]) -> FloatArray:
    alpha = as_float_array(values, "concentration", ndim=(0, len(shape))).astype(np.float64)
    if alpha.shape not in ((), shape):
        raise InvalidInputError(
            f"concentration: must be one number, or of shape {shape} like the predictions; "
            f"got shape {alpha.shape}"
        )
    if missing := int(np.isnan(alpha).sum()):
        raise InvalidInputError(f"concentration: must not contain NaN; {missing} values are NaN")
    alpha = np.broadcast_to(alpha, shape)
    outside = ~((alpha >= LEAST) & (alpha <= MOST))
    if outside.any():
        first = tuple(int(i) for i in np.argwhere(outside)[0])
        raise InvalidInputError(
            f"concentration: must lie between {LEAST:g} and {MOST:g}; "
            f"case {first[-1]} has {alpha[first]:g}"
        )
    return np.asarray(alpha)
