"""What the four kinds of belief share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from raterwise.beliefs.checks import checked_counts
from raterwise.beliefs.members import Members
from raterwise.beliefs.statistics import StatisticProbability, statistic_probability
from raterwise.labels import Labels
from raterwise.metrics.proper import epistemic_losses_of
from raterwise.rules import positive_integer
from raterwise.types import FloatArray


class Belief:
    """A distribution over the class probabilities ζ of each case; what the four kinds share.

    Examples
    --------
    >>> from raterwise import DirichletBelief
    >>> belief = DirichletBelief([[0.5, 0.5], [0.9, 0.1]], concentration=[1.0, 9.0])
    >>> len(belief), belief.num_classes, belief.mean[1].tolist()
    (2, 2, [0.9, 0.1])
    """

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

        Returns
        -------
        array of shape (N,)
            Less than 1 - Σ_k mean_k² where the belief is wide.

        See Also
        --------
        raterwise.disagreement_loss : judges it.

        Examples
        --------
        >>> from raterwise import DirichletBelief
        >>> DirichletBelief([[0.5, 0.5]], [1.0]).disagreement()
        array([0.25])
        """
        return self._members.disagreement()

    def posterior(self, labels: Labels | ArrayLike) -> Self:
        """Return the belief after expert labels (LH eqs 18, 79, 81).

        Members of an ensemble or mixture are reweighted by the product of their probabilities of
        the labels. A point is certain already, and learns nothing.

        Parameters
        ----------
        labels : Labels or array-like of shape (N,)
            Any number of labels per case, and none where nothing is new; or one class per case.

        Returns
        -------
        Belief
            Of the same kind.

        Raises
        ------
        InvalidInputError
            Where no member of an ensemble thinks the labels of a case possible.

        Examples
        --------
        >>> from raterwise import DirichletBelief
        >>> DirichletBelief([[0.5, 0.5]], [1.0]).posterior([1]).mean
        array([[0.25, 0.75]])
        """
        return self._of(self._members.updated(checked_counts(labels, self._members.probs)))

    def expected_gain(self) -> FloatArray:
        """Return how much one more label is expected to lower the epistemic loss of each case.

        E‖m - ζ‖² - E‖m' - ζ‖² with the means m before and m' after the label, under the belief
        itself: Σ_k ‖Cov(ζ_k, ζ)‖² / m_k, a sum over the K possible answers.

        Returns
        -------
        array of shape (N,)
            0 for a point.

        See Also
        --------
        raterwise.worklist.worklist : sorts the cases by it.

        Examples
        --------
        >>> from raterwise import EnsembleBelief
        >>> EnsembleBelief([[[0.9, 0.1]], [[0.2, 0.8]]]).expected_gain().round(4)
        array([0.1213])
        """
        return self._members.expected_gain()

    def statistic(
        self,
        statistic: Callable[..., Any] | Literal["disagreement", "unanimity"],
        order: int,
        *,
        values: int = 1,
        method: Literal["auto", "exact", "sampling"] = "auto",
        samples: int = 2000,
        seed: int = 0,
    ) -> StatisticProbability:
        """Return the probability of a symmetric statistic φ of `order` labels, E[P(φ | ζ)].

        Parameters
        ----------
        statistic : callable, "disagreement" or "unanimity"
            "disagreement" (the labels are not all the same) or "unanimity" (they are), which have
            a closed form; or a function of the labels as `raterwise.statistic_loss` takes it: 0 or
            1, or one of 0 … M-1 where `values` is M.
        order : int
            Number of labels that φ depends on.
        values : int, default 1
            How many values φ has; 1 stands for yes or no.
        method : {"auto", "exact", "sampling"}, default "auto"
            "exact" enumerates the histograms of the labels; "sampling" draws sets of labels and
            gives a standard error; "auto" is exact up to 20,000 histograms, or fewer where cases
            and members are many.
        samples : int, default 2000
            How many sets of labels to draw for each case.
        seed : int, default 0
            Seed of the draws.

        Returns
        -------
        StatisticProbability
            The probability for each case, its standard error, and how it was found.

        See Also
        --------
        raterwise.statistic_loss : judges it.

        Examples
        --------
        >>> from raterwise import DirichletBelief
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
        """Return what `evaluate` asks of a belief, case by case, given the raters' labels.

        Parameters
        ----------
        labels : Labels
            The raters' labels.

        Returns
        -------
        dict of str to array of shape (N,)
            Predicted disagreement, and the epistemic loss before and after an expert's label.

        Examples
        --------
        >>> from raterwise import DirichletBelief
        >>> belief = DirichletBelief([[0.5, 0.5]], [1.0])
        >>> sorted(belief.judged_by(Labels.from_counts([[2, 1]])))[0]
        'disagreement'
        """
        before, after = epistemic_losses(self, labels)
        return {
            "disagreement": self.disagreement(),
            "prior_epistemic_loss": before,
            "posterior_epistemic_loss": after,
            "posterior_gain": before - after,
        }

    def sample(self, n: int, seed: int = 0) -> FloatArray:
        """Return draws of the class probabilities of every case.

        Parameters
        ----------
        n : int
            How many draws.
        seed : int, default 0
            Seed of the draws.

        Returns
        -------
        array of shape (n, N, K)
            Class probabilities.

        Examples
        --------
        >>> from raterwise import PointBelief
        >>> PointBelief([[0.2, 0.8]]).sample(1, seed=0)
        array([[[0.2, 0.8]]])
        """
        return self._members.sample(
            positive_integer("n", n), np.random.default_rng(positive_integer("seed", seed, least=0))
        )

    def take(self, indices: ArrayLike) -> Self:
        """Return the belief about the chosen cases, in the order chosen.

        Parameters
        ----------
        indices : array-like of int or bool
            Rows, or a mask of shape (N,).

        Returns
        -------
        Belief
            Of the same kind.

        Examples
        --------
        >>> from raterwise import PointBelief
        >>> PointBelief([[0.2, 0.8], [0.5, 0.5]]).take([1]).mean
        array([[0.5, 0.5]])
        """
        return self._of(self._members.take(np.asarray(indices)))

    @classmethod
    def _of(cls, members: Members) -> Self:
        """Return a belief of this kind with members that are known to be right."""
        belief = cls.__new__(cls)
        belief._members = members
        return belief

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} cases, {self.num_classes} classes)"


def epistemic_losses(belief: Belief, labels: Labels) -> tuple[FloatArray, FloatArray]:
    """Return each case's epistemic loss before and after an expert's label (LH Table 2).

    One rater is set aside as the expert and the others judge. LH draws the expert at random; here
    the mean over every choice is taken, which is what repeated draws tend to:
    Σ_k y_k/n EL(z | y - e_k), before with z the mean and after with z the posterior mean given k.
    Cases with fewer than three labels, which leave no two judges, have NaN; so has, after a label
    to which no member of an ensemble gives any probability, what it teaches them.
    """
    counts = labels.counts.astype(np.float64)
    n = counts.sum(axis=1)
    before, after = np.zeros(len(counts)), np.zeros(len(counts))
    prior, several = belief.mean, len(belief._members.weights) > 1
    for k in range(labels.num_classes):
        said = np.flatnonzero((counts[:, k] > 0) & (n >= 3))
        if not len(said):
            continue
        judges = counts[said].copy()
        judges[:, k] -= 1
        share = counts[said, k] / n[said]
        possible = (prior[said, k] > 0) | (not several)
        expert = Labels.from_classes(np.full(possible.sum(), k), num_classes=labels.num_classes)
        posterior = np.full((len(said), labels.num_classes), np.nan)
        posterior[possible] = belief.take(said[possible]).posterior(expert).mean
        before[said] += share * epistemic_losses_of(prior[said], judges)
        after[said] += share * epistemic_losses_of(posterior, judges)
    before[n < 3], after[n < 3] = np.nan, np.nan
    return before, after
