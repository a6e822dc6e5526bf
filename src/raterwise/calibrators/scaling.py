"""Parametric calibrators: softmax of a scaled or linearly mapped logit vector (LH appendix D.1).

All minimise the multinomial negative log-likelihood of label histograms (LH eq 82),

    -1/Σ n_i Σ_i Σ_k y_ik log softmax_k(W u_i + b),

plus penalties. It is convex and solved by Newton's method to a gradient norm of 1e-8: the same
digits every time, no learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from raterwise.calibrators._base import Calibrator
from raterwise.calibrators._cases import (
    CalibrationSet,
    Input,
    log_probabilities,
    probabilities,
)
from raterwise.calibrators._linear import LinearLikelihood, apply_linear, is_diagonal
from raterwise.calibrators._newton import Minimum, minimise
from raterwise.calibrators._temperature import best_inverse_temperature
from raterwise.errors import InvalidInputError
from raterwise.rules import at_least_zero, choose, positive_integer
from raterwise.types import Array, FloatArray

FORMS = ("full", "diagonal", "fixed_diagonal")


@dataclass(eq=False, repr=False)
class TemperatureScaling(Calibrator):
    """Divide the logits by a temperature, softmax(u / T) (Guo et al. 2017; LH appendix D.1).

    T > 0 maximises the multinomial likelihood of the labels (LH eq 82). It never changes the
    predicted class. Classes may be missing from the labels.

    If every rater chose the class of the largest logit, the likelihood keeps growing as T -> 0; if
    the logits are worse than uninformative, as T -> ∞. There is then no best T. A warning says so,
    and T is taken where the loss changes by less than 1e-8 per unit of log T.

    Parameters
    ----------
    input : {"logits", "probs"}, optional
        Whether the inputs are logits or probabilities; the logarithms of probabilities serve as
        logits. By default inputs are logits, and inputs that could be either (rows in [0, 1] that
        sum to 1) are refused.

    Attributes
    ----------
    temperature_ : float
        T.
    loss_ : float
        The mean negative log-likelihood of the labels at T.
    gradient_norm_, n_iter_ : float, int
        The slope of the loss in log T, and the passes over the cases.

    See Also
    --------
    VectorScaling, MatrixScaling : more parameters.
    AlphaCalibration : α0 of each case, to be fitted after this.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML.
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS, appendix D.1.

    Examples
    --------
    >>> u = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    >>> calibrator = TemperatureScaling().fit(u, [0, 1, 1, 1])  # three of four are right
    >>> calibrator.temperature_  # 2 / log 3
    1.82047845
    >>> calibrator.predict_proba(u[:1])
    array([[0.75, 0.25]])
    """

    input: Input | None = None

    _every_class: ClassVar[bool] = False
    _fitted: ClassVar[dict[str, Any]] = {
        "temperature_": (),
        "loss_": (),
        "gradient_norm_": (),
        "n_iter_": (),
    }

    def _fit(self, cases: CalibrationSet) -> str | None:
        found = best_inverse_temperature(cases)
        self.temperature_ = 1 / found.beta
        self.loss_ = found.loss
        self.gradient_norm_ = abs(found.slope)
        self.n_iter_ = found.passes
        return found.doubt

    def _calibrated(self, logits: Array) -> FloatArray:
        """Return softmax(u / T), in which the largest logit keeps the largest probability."""
        gaps = logits.astype(np.float64, copy=False)
        top = gaps.argmax(axis=1)
        gaps = gaps - gaps.max(axis=1, keepdims=True)
        probs = np.exp(1 / self.temperature_ * gaps)
        probs /= probs.sum(axis=1, keepdims=True)
        # Logits that differ in their last digit may round to one probability: add its last digit.
        tied = np.flatnonzero(probs.argmax(axis=1) != top)
        probs[tied, top[tied]] = np.nextafter(probs[tied].max(axis=1), 2)
        return np.asarray(probs)


class LinearCalibrator(Calibrator):
    """What vector, matrix and Dirichlet calibration share: softmax(W u + b)."""

    coef_: FloatArray
    intercept_: FloatArray
    max_iter: int

    _any_origin: ClassVar[bool] = False

    _fitted: ClassVar[dict[str, Any]] = {
        "coef_": ("K", "K"),
        "intercept_": ("K",),
        "loss_": (),
        "gradient_norm_": (),
        "n_iter_": (),
    }

    def _inputs(self, logits: Array) -> FloatArray:
        """Return what is mapped linearly, (N, K)."""
        return logits.astype(np.float64, copy=False)

    def _calibrated(self, logits: Array) -> FloatArray:
        theta = np.column_stack((self.coef_, self.intercept_))
        return probabilities(apply_linear(self._inputs(logits), theta))

    def _solve(self, cases: CalibrationSet, penalty: FloatArray) -> str | None:
        found = fit_linear(cases, self._inputs(cases.logits), penalty, self.max_iter)
        self._describe(found)
        return found.doubt

    def _describe(self, found: Minimum) -> None:
        slopes = found.theta[:, 0] if is_diagonal(found.theta) else found.theta[:, :-1]
        self.coef_, self.intercept_ = slopes.copy(), found.theta[:, -1].copy()
        self.loss_ = found.loss
        self.gradient_norm_ = found.gradient_norm
        self.n_iter_ = found.iterations


@dataclass(eq=False, repr=False)
class VectorScaling(LinearCalibrator):
    """Scale and shift each logit, softmax(v u + b) (Guo et al. 2017; LH appendix D.1).

    Minimises LH eq 82 + λ_b 1/K Σ_k b_k² (eq 48).

    Parameters
    ----------
    bias_l2 : float, default 0
        λ_b.
    input : {"logits", "probs"}, optional
        Whether the inputs are logits or probabilities; the logarithms of probabilities serve as
        logits. By default inputs are logits, and inputs that could be either (rows in [0, 1] that
        sum to 1) are refused.
    max_iter : int, default 100
        Maximum number of Newton steps.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (K,)
        v and b. What the data do not determine (a constant added to b where λ_b = 0)
        stays as it is at the best temperature with b = 0.
    loss_ : float
        The loss at the optimum, penalties included.
    gradient_norm_, n_iter_ : float, int
        Norm of the gradient of the loss with respect to (v, b), and the number of Newton steps.

    See Also
    --------
    VectorScalingCV : The same with λ_b chosen by cross-validation.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML.
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS, appendix D.1.

    Examples
    --------
    >>> u = np.log([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]] * 2)
    >>> calibrator = VectorScaling(bias_l2=0.1).fit(u, [0, 1, 2, 1, 2, 0])
    >>> calibrator.coef_.shape, calibrator.gradient_norm_ < 1e-8
    ((3,), True)
    """

    bias_l2: float = 0.0
    input: Input | None = None
    max_iter: int = 100

    _fitted: ClassVar[dict[str, Any]] = {**LinearCalibrator._fitted, "coef_": ("K",)}

    def _fit(self, cases: CalibrationSet) -> str | None:
        bias = at_least_zero("bias_l2", self.bias_l2)
        return self._solve(cases, diagonal_penalty(cases.num_classes, bias))


@dataclass(eq=False, repr=False)
class MatrixScaling(LinearCalibrator):
    """Map the logits linearly, softmax(W u + b) (Guo et al. 2017; LH appendix D.1).

    Minimises LH eq 82 + λ_w 1/(K(K-1)) Σ_{k≠k'} W_kk'² + λ_b 1/K Σ_k b_k² (ODIR, eq 49).

    Parameters
    ----------
    off_diagonal_l2, bias_l2 : float, default 0
        λ_w and λ_b.
    input : {"logits", "probs"}, optional
        Whether the inputs are logits or probabilities; the logarithms of probabilities serve as
        logits. By default inputs are logits, and inputs that could be either (rows in [0, 1] that
        sum to 1) are refused.
    max_iter : int, default 100
        Maximum number of Newton steps.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (K, K), ndarray of shape (K,)
        W and b. What the data do not determine (the same row added to every row of W
        where λ_w = 0) stays as it is at the best temperature with W diagonal and b = 0.
    loss_, gradient_norm_, n_iter_ : float, float, int
        As in VectorScaling.

    See Also
    --------
    MatrixScalingCV : The same with the penalties chosen by cross-validation.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML.
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS, appendix D.1.

    Examples
    --------
    >>> u = np.log([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]] * 2)
    >>> calibrator = MatrixScaling(off_diagonal_l2=1, bias_l2=1).fit(u, [0, 1, 2, 1, 2, 0])
    >>> calibrator.coef_.shape, calibrator.gradient_norm_ < 1e-8
    ((3, 3), True)
    """

    off_diagonal_l2: float = 0.0
    bias_l2: float = 0.0
    input: Input | None = None
    max_iter: int = 100

    def _fit(self, cases: CalibrationSet) -> str | None:
        off_diagonal = at_least_zero("off_diagonal_l2", self.off_diagonal_l2)
        bias = at_least_zero("bias_l2", self.bias_l2)
        return self._solve(cases, full_penalty(cases.num_classes, off_diagonal, bias))


@dataclass(eq=False, repr=False)
class DirichletCalibration(LinearCalibrator):
    """Map log-probabilities linearly, softmax(W ln q + b) (Kull et al. 2019).

    What the posterior of the class is if the predicted probabilities q are Dirichlet distributed
    within each class. Unlike matrix scaling it does not depend on a constant added to the logits.
    Minimises LH eq 82 + λ_w 1/(K(K-1)) Σ_{k≠k'} W_kk'² + λ_b 1/K Σ_k b_k² (ODIR, LH eq 49)
    + λ 1/(K(K+1)) (Σ W_kk'² + Σ b_k²).

    Parameters
    ----------
    form : {"full", "diagonal", "fixed_diagonal"}, default "full"
        "diagonal" has W diagonal; "fixed_diagonal" has one number on the diagonal and
        b = 0, which is temperature scaling, and takes no penalties.
    off_diagonal_l2, bias_l2, l2 : float, default 0
        λ_w, λ_b and λ.
    input : {"logits", "probs"}, optional
        Whether the inputs are logits, of which the softmax is taken, or probabilities. By default
        inputs are logits, and inputs that could be either (rows in [0, 1] that sum to 1) are
        refused.
    max_iter : int, default 100
        Maximum number of Newton steps.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (K, K), ndarray of shape (K,)
        W and b, whatever the form.
    loss_, gradient_norm_, n_iter_ : float, float, int
        As in VectorScaling.

    See Also
    --------
    MatrixScaling : the same for logits.
    BetaCalibration : each class separately.

    References
    ----------
    Kull, Perello Nieto, Kängsepp, Silva Filho, Song, Flach (2019), Beyond temperature scaling:
    obtaining well-calibrated multi-class probabilities with Dirichlet calibration, NeurIPS.

    Examples
    --------
    >>> q = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]] * 2
    >>> calibrator = DirichletCalibration("diagonal", input="probs").fit(q, [0, 1, 2, 1, 2, 0])
    >>> int(np.count_nonzero(calibrator.coef_))
    3
    """

    form: Literal["full", "diagonal", "fixed_diagonal"] = "full"
    off_diagonal_l2: float = 0.0
    bias_l2: float = 0.0
    l2: float = 0.0
    input: Input | None = None
    max_iter: int = 100

    _any_origin: ClassVar[bool] = True

    def _fit(self, cases: CalibrationSet) -> str | None:
        form = choose("form", self.form, FORMS)
        off_diagonal, bias, everything = (
            at_least_zero(name, getattr(self, name))
            for name in ("off_diagonal_l2", "bias_l2", "l2")
        )
        if form != "full" and off_diagonal:
            raise InvalidInputError(
                f"off_diagonal_l2: must be 0 for form={form!r}; got {off_diagonal}"
            )
        if form == "fixed_diagonal":
            if bias or everything:
                name, value = ("bias_l2", bias) if bias else ("l2", everything)
                raise InvalidInputError(f"{name}: must be 0 for form={form!r}; got {value}")
            return self._fit_one_number(cases)
        classes = cases.num_classes
        if form == "full":
            penalty = full_penalty(classes, off_diagonal, bias)
        else:
            penalty = diagonal_penalty(classes, bias)
        return self._solve(cases, penalty + everything / (classes * (classes + 1)))

    def _fit_one_number(self, cases: CalibrationSet) -> str | None:
        found = best_inverse_temperature(cases)
        self.coef_ = found.beta * np.eye(cases.num_classes)
        self.intercept_ = np.zeros(cases.num_classes)
        self.loss_, self.gradient_norm_ = found.loss, abs(found.slope)
        self.n_iter_ = found.passes
        return found.doubt

    def _inputs(self, logits: Array) -> FloatArray:
        return log_probabilities(logits, self.input)

    def _describe(self, found: Minimum) -> None:
        super()._describe(found)
        if self.coef_.ndim == 1:
            self.coef_ = np.diag(self.coef_)


def diagonal_penalty(classes: int, bias_l2: float) -> FloatArray:
    """Return the factors of v² and b² (K, 2) of LH eq 48."""
    return np.column_stack((np.zeros(classes), np.full(classes, bias_l2 / classes)))


def full_penalty(classes: int, off_diagonal_l2: float, bias_l2: float) -> FloatArray:
    """Return the factors of W² and b² (K, K + 1) of LH eq 49."""
    off_diagonal = (1 - np.eye(classes)) * off_diagonal_l2 / (classes * (classes - 1))
    return np.column_stack((off_diagonal, np.full(classes, bias_l2 / classes)))


def fit_linear(
    cases: CalibrationSet,
    logits: FloatArray,
    penalty: FloatArray,
    max_iter: int,
    start: FloatArray | None = None,
) -> Minimum:
    """Return the best linear map of `logits`, from `start` or from the best temperature."""
    most = positive_integer("max_iter", max_iter)
    classes, size = penalty.shape
    if size > 2 and not penalty.any() and len(cases) <= size:
        raise InvalidInputError(
            f"logits: a full matrix without a penalty needs more than {size} cases for {classes} "
            f"classes; got {len(cases)}"
        )
    if start is None:
        beta = best_inverse_temperature(cases).beta
        start = np.zeros((classes, size))
        start[:, :-1] = beta if size == 2 else beta * np.eye(classes)
    return minimise(LinearLikelihood(logits, cases.targets, penalty), start, most)
