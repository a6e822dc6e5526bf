"""Can α-calibration help here? The condition of LH's Theorem 1, from the labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise.beliefs import Belief
from raterwise.errors import InvalidInputError
from raterwise.evaluate import evaluate, predictions_of
from raterwise.evaluation.warnings import warn_of_arbitration
from raterwise.inference.differences import correlation_of, difference_interval
from raterwise.inference.jackknife import linearise, student_interval
from raterwise.inference.settings import Settings
from raterwise.inference.small_samples import proportion_interval
from raterwise.labels import Labels
from raterwise.metrics.proper import epistemic_losses_of
from raterwise.predictions import Predictions
from raterwise.questions import disagreement_frequency
from raterwise.results.estimate import Estimate
from raterwise.types import FloatArray, OnSingle, OnUnrated


@dataclass(frozen=True)
class AlphaCheck:
    """Whether α-calibration can help, and how certain that is (LH Theorem 1).

    Parameters
    ----------
    agreement : Estimate
        u_Q, how often two raters of a case agree: the mean of Σ_k Q_k².
    predicted_agreement : Estimate
        s_Z, how often the probabilities say that they agree: the mean of Σ_k p_k².
    excess : Estimate
        u_Q - s_Z. If it is above 0, a finite α0 improves predicted disagreement.
    epistemic_loss : Estimate
        EL. If it is above 0, a finite α0 improves probabilities after an expert's label.
    helps : bool or None
        Whether the interval of `excess` is above 0 or below; None if it contains 0.
    least_concentration : float
        The smallest α0 with which predicted disagreement is no worse than without α0; infinite
        if there is none.
    concentration : Estimate
        The α0 that is best for predicted disagreement, (1 - u_Q) / (u_Q - s_Z).
    least_posterior_concentration : float
        The smallest α0 with which probabilities after a label are no worse than before it.
    posterior_concentration : Estimate
        The α0 that is best for them, (1 - u_Q) / EL.
    sentence : str
        The conclusion in words.

    See Also
    --------
    alpha_can_help : returns it.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_counts([[4, 0], [0, 4], [4, 0], [0, 4], [1, 3], [4, 0]] * 3)
    >>> found = rw.alpha_can_help([[0.5, 0.5]] * 18, labels)
    >>> found.helps, round(found.u_q.value, 4), found.s_z.value
    (True, 0.9167, 0.5)
    """

    agreement: Estimate
    predicted_agreement: Estimate
    excess: Estimate
    epistemic_loss: Estimate
    helps: bool | None
    least_concentration: float
    concentration: Estimate
    least_posterior_concentration: float
    posterior_concentration: Estimate
    sentence: str

    @property
    def u_q(self) -> Estimate:
        """`agreement`, by the paper's symbol."""
        return self.agreement

    @property
    def s_z(self) -> Estimate:
        """`predicted_agreement`, by the paper's symbol."""
        return self.predicted_agreement

    def __str__(self) -> str:
        return self.sentence


def alpha_can_help(
    probs: ArrayLike | Belief,
    labels: Labels | ArrayLike,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    *,
    weights: ArrayLike | None = None,
    on_unrated: OnUnrated = "error",
    on_single: OnSingle = "error",
) -> AlphaCheck:
    """Test whether α-calibration can improve predicted disagreement and posteriors on these data.

    By LH Theorem 1, for the cases on average, it can if raters agree with each other more often
    (u_Q) than the probabilities imply (s_Z). This is true of a calibrated model that knows less
    about a case than its raters do.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,), or a belief
        Class probabilities; with shape (N,), the probability of class 1 of two. For a belief, the
        question is whether α-calibration can improve its predicted disagreement further.
    labels : Labels or array-like of shape (N,)
        The raters' labels, with at least two per case.
    groups : array-like of shape (N,), default None
        The patient of each case; intervals are then by patient.
    level : float, default 0.95
        Confidence level of the intervals.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.

    Returns
    -------
    AlphaCheck
        u_Q and s_Z with intervals, the best α0 for the cases on average, and a sentence.

    Raises
    ------
    InvalidInputError
        If a case has a single label, or there are fewer than two cases (patients).

    Warns
    -----
    RaterwiseWarning
        If a third rater seems to have been asked only where two differ.

    See Also
    --------
    AlphaCalibration : finds an α0 for each case.
    disagreement_loss : measures the predicted disagreement.

    References
    ----------
    Mimori, Sasada, Matsui & Sato, Diagnostic uncertainty calibration, AISTATS 2021, Theorem 1.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_counts([[4, 0], [0, 4], [4, 0], [0, 4], [1, 3], [4, 0]] * 3)
    >>> print(rw.alpha_can_help([[0.5, 0.5]] * 18, labels).sentence.split(":")[0])
    α-calibration can help
    """
    Settings(level=level)
    predictions = predictions_of(probs, labels, weights, groups, None, on_unrated)
    predictions.labels.require_raters(2, on_single, rows=predictions.kept)
    warn_of_arbitration(predictions, stacklevel=2)
    predictions = predictions.take(predictions.labels.num_raters >= 2)
    means = _Means.of(predictions, level)
    agreement, predicted, excess = means.agreements()
    loss_of_cases = evaluate(predictions, metrics="epistemic_loss", resamples=2, level=level)
    epistemic = loss_of_cases["epistemic_loss"]
    u, s, loss = means.values
    # By the shrinkage γ = α0 / (α0 + 1), which stays finite where α0 does not (LH eqs 60, 68).
    best = means.concentration("concentration", lambda m: (1 - m[0]) / (1 - m[1]))
    posterior = means.concentration(
        "posterior_concentration", lambda m: (1 - m[0]) / (1 - m[0] + np.maximum(m[2], 0))
    )
    assert excess.low is not None and excess.high is not None
    helps = True if excess.low > 0 else False if excess.high < 0 else None
    return AlphaCheck(
        agreement, predicted, excess, epistemic, helps,
        least_concentration=_least((1 - 2 * u + s) / 2, u - s),
        concentration=best,
        least_posterior_concentration=_least((1 - u - loss) / 2, loss),
        posterior_concentration=posterior,
        sentence=_sentence(agreement, predicted, helps, best, posterior, loss),
    )  # fmt: skip


def _least(over: float, under: float) -> float:
    return max(over / under, 0.0) if under > 0 else math.inf


@dataclass(frozen=True, eq=False)
class _Means:
    """u_Q, s_Z and EL on average, and without each case or patient."""

    values: FloatArray
    """(3,)."""
    without: FloatArray
    """(units, 3)."""
    sizes: FloatArray
    level: float

    @staticmethod
    def of(predictions: Predictions, level: float) -> _Means:
        rows = predictions.read(0, len(predictions))
        assert rows.counts is not None
        probs = rows.probs.astype(np.float64)
        differ = rows.case_values.get("disagreement")
        each = np.stack(
            (
                1 - disagreement_frequency(rows.counts),
                (probs**2).sum(axis=1) if differ is None else 1 - differ,
                epistemic_losses_of(probs, rows.counts),
            ),
            axis=1,
        )
        w = np.ones(len(each)) if predictions.weights is None else predictions.weights
        unit = np.arange(len(each)) if predictions.groups is None else predictions.groups
        sizes = np.bincount(unit, w).astype(np.float64)
        sums = np.stack([np.bincount(unit, w * column) for column in each.T], axis=1)
        sums, sizes = sums[sizes > 0], sizes[sizes > 0]
        if len(sizes) < 2:
            raise InvalidInputError(
                "labels: needs two patients (or cases) with two labels, to tell chance; got one"
            )
        rest = np.maximum(sizes.sum() - sizes, 1e-300)
        without = (sums.sum(axis=0) - sums) / rest[:, None]
        return _Means(sums.sum(axis=0) / sizes.sum(), without, sizes, level)

    def ends(self, of: Callable[[Any], Any]) -> tuple[float, float, float]:
        """Return a function of the means with the ends of its interval."""
        value = float(of(self.values))
        found = linearise(value, np.asarray(of(self.without.T)), self.sizes)
        return value, *student_interval(found, self.level)

    def agreements(self) -> tuple[Estimate, Estimate, Estimate]:
        """Return u_Q, s_Z and how far the first is above the second.

        u_Q is a proportion: where all raters agree, resampling would take that for certain. The
        difference has the ends of both, and their correlation by the error of the difference.
        """
        rows = ((1, 0), (0, 1), (1, -1))
        seen, said, gap = (
            linearise(float(self.values[:2] @ row), self.without[:, :2] @ row, self.sizes)
            for row in np.array(rows, np.float64)
        )
        first = (seen.value, *proportion_interval(seen, self.level))
        low, high = student_interval(said, self.level)
        second = said.value, max(low, 0.0), min(high, 1.0)
        shared = correlation_of((seen.error, said.error, gap.error))
        ends = difference_interval(first, second, shared)
        return (
            _estimate("agreement", "Agreement of two raters", *first),
            _estimate("predicted_agreement", "Predicted agreement", *second),
            _estimate("excess", "Agreement beyond prediction", gap.value, *ends),
        )

    def concentration(self, name: str, shrinkage: Callable[[Any], Any]) -> Estimate:
        """Return the α0 of a shrinkage α0 / (α0 + 1); infinite where that is 1 or more."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if not np.isfinite(shrinkage(self.values)):
                return _estimate(name, "Best α0", math.inf)
            return _estimate(name, "Best α0", *map(_alpha, self.ends(shrinkage)))


def _estimate(
    name: str, title: str, value: float, low: float | None = None, high: float | None = None
) -> Estimate:
    return Estimate(name, value, low, high, title=title, reference="LH Theorem 1")


def _alpha(shrinkage: float) -> float:
    return math.inf if shrinkage >= 1 else max(shrinkage, 0.0) / (1 - max(shrinkage, 0.0))


def _sentence(
    agreement: Estimate,
    predicted: Estimate,
    helps: bool | None,
    best: Estimate,
    posterior: Estimate,
    loss: float,
) -> str:
    """Return what follows from Theorem 1."""

    def said(estimate: Estimate) -> str:
        assert None not in (estimate.value, estimate.low, estimate.high)
        percent = [
            f"{100 * float(v or 0):.1f}" for v in (estimate.value, estimate.low, estimate.high)
        ]
        return f"{percent[0]}% [{percent[1]}, {percent[2]}]"

    seen = f"two raters agree in {said(agreement)}, where the predictions say {said(predicted)}"
    if helps:
        words = (
            f"α-calibration can help: {seen}. Of one α0 for all cases, about {best.value:.3g} "
            "suits the predicted disagreement best"
        )
    elif helps is None:
        words = f"These cases do not tell whether α-calibration can help: {seen}"
    else:
        words = (
            f"α-calibration cannot help the predicted disagreement: {seen}. The probabilities are "
            "too sure; recalibrate them first"
        )
    if loss > 0:
        return f"{words}. After an expert's label, about {posterior.value:.3g} suits best."
    return f"{words}. The probabilities leave an expert's label nothing to improve."
