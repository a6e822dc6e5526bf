"""Penalties chosen by cross-validation that keeps the cases of a patient together (LH F.3)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metadata_routing import UNUSED

from raterwise.arrays import as_array
from raterwise.calibrators._cases import CalibrationSet, Input, probabilities
from raterwise.calibrators._linear import apply_linear
from raterwise.calibrators._newton import Minimum
from raterwise.calibrators.scaling import (
    LinearCalibrator,
    VectorScaling,
    diagonal_penalty,
    fit_linear,
    full_penalty,
)
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.rules import at_least_zero, positive_integer
from raterwise.types import FloatArray, IntArray

LH_GRID = (0.1, 1.0, 10.0)


class _CrossValidated(LinearCalibrator):
    """A linear calibrator whose penalties are chosen."""

    folds: int
    seed: int
    __metadata_request__fit: ClassVar = {"logits": UNUSED, "labels": UNUSED}

    def fit(
        self,
        logits: ArrayLike,
        labels: Labels | ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit as VectorScaling or MatrixScaling does, with the penalty chosen by cross-validation.

        Parameters
        ----------
        logits : array of shape (N, K) or (N,)
            Logits, or probabilities with input="probs"; (N,) are those of class 1 of two.
        labels : Labels, or array of shape (N,)
            The raters' labels, or one class per case.
        sample_weight : array of shape (N,), optional
            Case weights.
        groups : array of shape (N,), optional
            The patient of each case: the cases of a patient are in the same fold.

        Returns
        -------
        VectorScalingCV or MatrixScalingCV
            Itself.

        Raises
        ------
        InvalidInputError
            If the data do not match, there are fewer patients than folds, or a class is missing
            from all folds but one.

        Examples
        --------
        >>> logits, classes = [[2.0, 0.0], [0.0, 2.0]] * 20, [0, 1, 0, 1, 0, 1, 1, 0] * 5
        >>> VectorScalingCV(bias_l2=(0.1, 10)).fit(logits, classes).cv_loss_.shape
        (2,)
        >>> scaling = MatrixScalingCV(off_diagonal_l2=(1, 10), bias_l2=(1,)).fit(logits, classes)
        >>> scaling.cv_loss_.shape
        (2, 1)
        """
        cases = CalibrationSet.of(logits, labels, sample_weight, groups, input=self.input)
        return self._fitted_to(cases)

    def _fit(self, cases: CalibrationSet) -> str | None:
        folds = positive_integer("folds", self.folds, least=2)
        codes, what = np.arange(len(cases)), "cases"
        if cases.patients is not None:
            codes, what = np.unique(cases.patients, return_inverse=True)[1], "patients (groups)"
        if (patients := int(codes.max()) + 1) < folds:
            raise InvalidInputError(f"folds: must be at most the {patients} {what}; got {folds}")
        fold = patient_folds(cases.labels.counts, codes, folds, self.seed)
        found = self._choose(cases, [fold == f for f in range(folds)])
        self._describe(found)
        return found.doubt

    @abstractmethod
    def _choose(self, cases: CalibrationSet, held_out: list[NDArray[np.bool_]]) -> Minimum:
        """Set the penalties, and return their fit to all cases."""


@dataclass(eq=False, repr=False)
class VectorScalingCV(_CrossValidated):
    """Vector scaling with the penalty of the best cross-validated likelihood (LH F.3).

    Each penalty is fitted on all folds but one and judged by LH eq 82 on the one left out, pooled
    over the folds; the best is fitted again on all cases. Of equal ones the first is taken.

    Parameters
    ----------
    bias_l2 : sequence of float, default (0.1, 1, 10)
        The values of λ_b (LH eq 48) to choose from.
    folds : int, default 5
        How many parts the cases are split into.
    seed : int, default 0
        Seed of the split.
    input : {"logits", "probs"}, optional
        Whether the inputs are logits or probabilities; the logarithms of probabilities serve as
        logits. By default inputs are logits, and inputs that could be either (rows in [0, 1] that
        sum to 1) are refused.
    max_iter : int, default 100
        Maximum number of Newton steps.

    Attributes
    ----------
    bias_l2_ : float
        The chosen λ_b.
    cv_loss_ : ndarray
        The cross-validated loss of each, in the order given.
    coef_, intercept_, loss_, gradient_norm_, n_iter_
        Of the fit to all cases, as in VectorScaling.

    See Also
    --------
    VectorScaling : with a fixed penalty.
    MatrixScalingCV : more parameters.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS, appendix F.3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(300, 3))
    >>> y = (u + rng.gumbel(size=(300, 3))).argmax(axis=1)  # b = 0 is the truth
    >>> VectorScalingCV(bias_l2=(0.01, 1)).fit(u, y, groups=np.arange(300) // 3).bias_l2_
    1.0
    """

    bias_l2: Sequence[float] = LH_GRID
    folds: int = 5
    seed: int = 0
    input: Input | None = None
    max_iter: int = 100

    _fitted: ClassVar[dict[str, Any]] = {
        **VectorScaling._fitted,
        "bias_l2_": (),
        "cv_loss_": (None,),
    }

    def _choose(self, cases: CalibrationSet, held_out: list[NDArray[np.bool_]]) -> Minimum:
        grid = _grid("bias_l2", self.bias_l2)
        penalties = [diagonal_penalty(cases.num_classes, bias) for bias in grid]
        self.cv_loss_, found = _select(cases, held_out, penalties, self.max_iter)
        self.bias_l2_ = grid[int(self.cv_loss_.argmin())]
        return found


@dataclass(eq=False, repr=False)
class MatrixScalingCV(_CrossValidated):
    """Matrix scaling with the penalties of the best cross-validated likelihood (LH F.3).

    Every pair of (λ_w, λ_b) is judged as in VectorScalingCV.

    Parameters
    ----------
    off_diagonal_l2, bias_l2 : sequence of float, default (0.1, 1, 10)
        The values of λ_w and λ_b (LH eq 49) to choose from.
    folds : int, default 5
        How many parts the cases are split into.
    seed : int, default 0
        Seed of the split.
    input : {"logits", "probs"}, optional
        Whether the inputs are logits or probabilities; the logarithms of probabilities serve as
        logits. By default inputs are logits, and inputs that could be either (rows in [0, 1] that
        sum to 1) are refused.
    max_iter : int, default 100
        Maximum number of Newton steps.

    Attributes
    ----------
    off_diagonal_l2_, bias_l2_ : float
        The chosen penalties.
    cv_loss_ : ndarray of shape (values of λ_w, values of λ_b)
        The cross-validated losses.
    coef_, intercept_, loss_, gradient_norm_, n_iter_
        Of the fit to all cases, as in MatrixScaling.

    See Also
    --------
    MatrixScaling : with fixed penalties.
    VectorScalingCV : fewer parameters.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS, appendix F.3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(300, 3))
    >>> y = (u + rng.gumbel(size=(300, 3))).argmax(axis=1)
    >>> MatrixScalingCV().fit(u, y).cv_loss_.shape
    (3, 3)
    """

    off_diagonal_l2: Sequence[float] = LH_GRID
    bias_l2: Sequence[float] = LH_GRID
    folds: int = 5
    seed: int = 0
    input: Input | None = None
    max_iter: int = 100

    _fitted: ClassVar[dict[str, Any]] = {
        **LinearCalibrator._fitted,
        "off_diagonal_l2_": (),
        "bias_l2_": (),
        "cv_loss_": (None, None),
    }

    def _choose(self, cases: CalibrationSet, held_out: list[NDArray[np.bool_]]) -> Minimum:
        off_diagonal = _grid("off_diagonal_l2", self.off_diagonal_l2)
        bias = _grid("bias_l2", self.bias_l2)
        pairs = list(product(off_diagonal, bias))
        penalties = [full_penalty(cases.num_classes, *pair) for pair in pairs]
        losses, found = _select(cases, held_out, penalties, self.max_iter)
        self.cv_loss_ = losses.reshape(len(off_diagonal), len(bias))
        self.off_diagonal_l2_, self.bias_l2_ = pairs[int(losses.argmin())]
        return found


def patient_folds(counts: NDArray[Any], groups: IntArray, folds: int, seed: int) -> IntArray:
    """Return the fold (N,) of each case: whole patients, in random order, class by class.

    Patients are dealt out like cards after being sorted by the rarest class that anybody saw in
    them, so that a rare class is spread over the folds as evenly as can be.

    >>> counts = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0], [1, 0]])
    >>> fold = patient_folds(counts, np.array([0, 0, 1, 2, 3, 4]), 2, seed=0)
    >>> bool(fold[0] == fold[1]), bool(fold[2] != fold[3])
    (True, True)
    """
    patients = int(groups.max()) + 1
    seen = np.zeros((patients, counts.shape[1]), np.int64)
    np.add.at(seen, groups, counts)
    rank = np.argsort(np.argsort(seen.sum(axis=0), kind="stable"), kind="stable")
    rarest = np.where(seen > 0, rank, counts.shape[1]).min(axis=1)
    shuffled = np.random.default_rng(positive_integer("seed", seed, least=0)).permutation(patients)
    order = shuffled[np.argsort(rarest[shuffled], kind="stable")]
    fold = np.empty(patients, np.int64)
    fold[order] = np.arange(patients) % folds
    return fold[groups]


def _select(
    cases: CalibrationSet,
    held_out: list[NDArray[np.bool_]],
    penalties: list[FloatArray],
    max_iter: int,
) -> tuple[FloatArray, Minimum]:
    """Return the held-out loss (LH eq 82) of each penalty, and the best one's fit to all cases."""
    losses = np.zeros(len(penalties))
    for held in held_out:
        train, test = cases.take(np.flatnonzero(~held)), cases.take(np.flatnonzero(held))
        _check_all_classes(train)
        start = None
        for i, penalty in enumerate(penalties):
            # The optimum of one penalty is a good place to start from for the next.
            found = fit_linear(train, _float64(train), penalty, max_iter, start)
            start = found.theta
            probs = probabilities(apply_linear(_float64(test), found.theta))
            losses[i] += test.total / cases.total * test.negative_log_likelihood(probs)
    best = penalties[int(losses.argmin())]
    return losses, fit_linear(cases, _float64(cases), best, max_iter)


def _check_all_classes(train: CalibrationSet) -> None:
    try:
        train.check_classes(every_class=True)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} (in all folds but one; fewer folds may help)") from None


def _float64(cases: CalibrationSet) -> FloatArray:
    return cases.logits.astype(np.float64, copy=False)


def _grid(name: str, values: Sequence[float]) -> list[float]:
    if as_array(values, name).ndim != 1 or not len(values):
        raise InvalidInputError(f"{name}: must be the values to choose from; got {values!r}")
    return [float(at_least_zero(name, value)) for value in values]
