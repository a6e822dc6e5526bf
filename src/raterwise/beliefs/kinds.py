"""The beliefs: point, ensemble, Dirichlet, mixture of Dirichlets."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from raterwise.beliefs.base import Belief
from raterwise.beliefs.checks import (
    checked_concentration,
    checked_counts,
    checked_probs,
    checked_samples,
    checked_weights,
)
from raterwise.beliefs.dirichlet import shares
from raterwise.beliefs.members import Members
from raterwise.labels import Labels
from raterwise.rules import choose
from raterwise.types import FloatArray


class PointBelief(Belief):
    """A belief that is certain of the class probabilities, δ(ζ - f) (LH 5.2).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.

    See Also
    --------
    DirichletBelief : probabilities with doubt.
    EnsembleBelief : several models.

    Examples
    --------
    >>> PointBelief([[0.5, 0.5], [1.0, 0.0]]).disagreement()
    array([0.5, 0. ])
    """

    def __init__(self, probs: ArrayLike) -> None:
        checked = checked_probs(probs, "probs")
        self._members = Members(
            checked[None], np.full((1, len(checked)), np.inf), np.ones((1, len(checked)))
        )


class EnsembleBelief(Belief):
    """An ensemble: S predictions of each case, one of which is right (LH eq 80).

    Parameters
    ----------
    samples : array-like of shape (S, N, K)
        Draws from Monte-Carlo dropout, test-time augmentation or several networks. For two classes
        (S, N) is enough: the probability of class 1. Rows that sum to 1 are then refused, because
        they look like the class probabilities (N, K) of one prediction.
    weights : array-like of shape (S,) or (S, N), default None
        Weights of the members, with sum 1; equal by default.

    See Also
    --------
    raterwise.torch.ensembles : makes such samples.

    Examples
    --------
    >>> belief = EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]])
    >>> belief.posterior([1]).weights.round(3)  # 0.1 : 0.8
    array([[0.111],
           [0.889]])
    """

    def __init__(self, samples: ArrayLike, weights: ArrayLike | None = None) -> None:
        checked = checked_samples(samples)
        points = np.broadcast_to(np.inf, checked.shape[:2])
        self._members = Members(checked, points, checked_weights(weights, checked))

    def posterior(
        self, labels: Labels | ArrayLike, *, weights: Literal["product", "sum"] = "product"
    ) -> Self:
        """Return the ensemble after expert labels, its members reweighted (LH eq 81).

        Parameters
        ----------
        labels : Labels or array-like of int, shape (N,)
            As for every belief.
        weights : {"product", "sum"}, default "product"
            What a member's weight is multiplied by: the probability of the labels y, Π_k f_k^y_k,
            or the authors' released Σ_k f_k^y_k, to which every class that nobody chose adds 1, so
            that the weights hardly move. The sum is there to reproduce their tables.

        Returns
        -------
        EnsembleBelief
            The same members with other weights.

        Examples
        --------
        >>> belief = EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]])
        >>> belief.posterior([1], weights="sum").weights.round(3)  # 1 + 0.1 : 1 + 0.8
        array([[0.379],
               [0.621]])
        """
        if choose("weights", weights, ("product", "sum")) == "product":
            return super().posterior(labels)
        members = self._members
        return self._of(members.reweighted_by_sums(checked_counts(labels, members.probs)))

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

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        f; (N,) are the probabilities of class 1 of two.
    concentration : float or array-like of shape (N,)
        α0; the larger, the more certain.

    See Also
    --------
    raterwise.AlphaCalibration : finds the concentration from the raters.

    Examples
    --------
    >>> belief = DirichletBelief([[0.5, 0.5]], concentration=[4.0])
    >>> belief.posterior(Labels.from_counts([[3, 0]])).concentration
    array([7.])
    """

    def __init__(self, probs: ArrayLike, concentration: float | ArrayLike) -> None:
        checked = checked_probs(probs, "probs")
        alpha = checked_concentration(concentration, (len(checked),))
        self._members = Members(checked[None], alpha[None], np.ones((1, len(checked))))

    @property
    def concentration(self) -> FloatArray:
        """(N,): α0."""
        return np.asarray(self._members.concentration[0])

    def expected_gain(self) -> FloatArray:
        """Return (1 - Σ_k f_k²) / (α0 + 1)², what one more label is expected to be worth.

        It is 1/(α0 + 1) of the expected epistemic loss (1 - Σ_k f_k²)/(α0 + 1).

        Returns
        -------
        array of shape (N,)
            Largest where the belief is wide.

        Examples
        --------
        >>> DirichletBelief([[0.5, 0.5], [0.9, 0.1]], [1.0, 1.0]).expected_gain()
        array([0.125, 0.045])
        """
        kept, spread = shares(self.concentration)
        return np.asarray(self.disagreement() / kept * spread**2)


class DirichletMixtureBelief(Belief):
    """An ensemble whose members are Dirichlet distributions: Σ_s w_s Dir(ζ | α_s f_s).

    The mixture is conjugate, so its posterior is exact: each member becomes Dir(α_s f_s + y) and
    its weight is multiplied by DirMult(y | α_s f_s).

    Parameters
    ----------
    samples : array-like of shape (S, N, K)
        The means of the members.
    concentration : float or array-like of shape (S, N)
        α0 of each member; the larger, the more certain.
    weights : array-like of shape (S,) or (S, N), default None
        Weights of the members, with sum 1; equal by default.

    See Also
    --------
    DirichletBelief : for a single model.
    EnsembleBelief : members without an uncertainty of their own.

    Examples
    --------
    >>> samples = [[[0.9, 0.1]], [[0.2, 0.8]]]
    >>> belief = DirichletMixtureBelief(samples, concentration=[[1.0], [9.0]])
    >>> belief.posterior([1]).concentration
    array([[ 2.],
           [10.]])
    """

    def __init__(
        self,
        samples: ArrayLike,
        concentration: float | ArrayLike,
        weights: ArrayLike | None = None,
    ) -> None:
        checked = checked_samples(samples)
        alpha = checked_concentration(concentration, checked.shape[:2])
        self._members = Members(checked, alpha, checked_weights(weights, checked))

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
