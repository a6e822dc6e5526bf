"""α-calibration: how sure a model may be of its class probabilities (LH 5.3, appendix D.2).

The labels of a case follow a Dirichlet-multinomial distribution whose mean f is the model's and
whose concentration α0 is found from the raters: log α0 is a linear function of features of the
case. The mean, and so every class probability, stays as it is.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from raterwise.beliefs import Belief, DirichletBelief, DirichletMixtureBelief
from raterwise.calibrators.alpha_cases import AlphaCases, Means, read_features
from raterwise.calibrators.alpha_cv import GRIDS, Line, chosen_penalty
from raterwise.calibrators.alpha_loss import alpha_calibration_loss
from raterwise.calibrators.alpha_saved import LARGEST_LOG_CONCENTRATION, current_state, state_of
from raterwise.calibrators.alpha_solver import GRADIENT_NORM, Basis
from raterwise.errors import InvalidInputError, RaterwiseWarning
from raterwise.labels import Labels
from raterwise.rules import at_least_zero, choose, one_value, positive_integer
from raterwise.types import FloatArray


@dataclass(eq=False, repr=False)
class AlphaCalibration(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Estimate the concentration α0 of each case's probabilities from several raters (LH eq 50).

    log α0 = a + b·x minimises, over cases i with n_i labels y_i,

        -1/Σ n_i Σ_i log DirMult(y_i | α0_i f_i) + λ Σ_d (s_d b_d)²

    where s_d is the standard deviation of feature d. By default λ is chosen by cross-validation,
    from almost none to one α0 for all cases (λ = ∞), so that many useless features do no harm and a
    few useful ones are not suppressed. The solver is L-BFGS with the exact gradient and Newton
    steps, to a gradient norm of 1e-8, and gives the same digits with any number of threads.
    Repeated and constant features do no harm. (`raterwise.torch.alpha` has a head that is not
    linear in the features.)

    Parameters
    ----------
    l2 : float or "cv", default "cv"
        λ. "cv" chooses the λ that makes the held-out labels most likely; features that do not beat
        a single α0 by one standard error are not used, and a warning says so. With 0 there is no
        penalty, and α0 may diverge to 0 or ∞ if raters all agree. `numpy.inf` gives a single α0 for
        all cases.
    penalty : {"coefficients", "paper"}, default "coefficients"
        What λ penalises. "coefficients" is as above; log α0 of the average case has only a normal
        prior of standard deviation 5, which counts less than one case. "paper" is LH eq 50, λ/N Σ_i
        (log α0_i)², which draws every α0 towards 1 however many cases there are; the paper uses λ =
        0.005.
    weighting : {"paper", "per_case"}, default "paper"
        "paper" is eq 50; "per_case" is the authors' released loss, mean_i (n_i/n̄) NLL_i in the
        first term, in which a case counts in proportion to n_i twice.
    folds : int, default 5
        With l2="cv": into how many parts the cases are split, or the patients if `groups` names
        them. With fewer cases (patients), that many.
    seed : int, default 0
        Seed of the split.
    warm_start : bool, default False
        Start from the last fit.
    max_iter : int, default 1000
        Maximum number of L-BFGS iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (D,)
        b, in the units of the features.
    intercept_ : float
        a, log α0 where all features are 0.
    l2_ : float
        λ, as given or as chosen; ∞ if a single α0 for all cases was chosen.
    beats_constant_ : bool or None
        Whether the features beat one α0 for all in the cross-validation; None without one.
    cv_l2_, cv_loss_ : ndarray or None
        The candidate values of λ, strongest first, and the mean negative log-likelihood of a
        held-out label, up to terms that do not depend on α0.
    loss_ : float
        The loss at the optimum; infinite if a rater chose a class of probability 0, which does not
        disturb the fit, as that factor of the likelihood does not depend on α0.
    gradient_norm_, n_iter_ : float, int
        Norm of the gradient for the standardised features; iterations of both solvers.
    n_features_in_, num_classes_ : int
        D and K.

    See Also
    --------
    TemperatureScaling : calibrates the probabilities first, which α0 cannot do.
    DirichletBelief : returned by `predict`.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration: towards reliable
    machine predictions in medical domain, AISTATS, section 5.3 and appendices D.2, E.4.

    Examples
    --------
    >>> from raterwise import Labels
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> f = rng.dirichlet([1, 1, 1], 500)
    >>> alpha0 = 3 * np.exp(x)  # how far raters follow f depends on x
    >>> q = np.array([rng.dirichlet(a * row) for a, row in zip(alpha0, f)])
    >>> labels = Labels.from_counts(rng.multinomial(5, q))
    >>> calibrator = AlphaCalibration().fit(x, labels, probs=f)
    >>> bool(0.7 < calibrator.coef_[0] < 1.3)
    True
    >>> calibrator.predict(x[:2], probs=f[:2])
    DirichletBelief(2 cases, 3 classes)
    """

    l2: float | Literal["cv"] = "cv"
    penalty: Literal["coefficients", "paper"] = "coefficients"
    weighting: Literal["paper", "per_case"] = "paper"
    folds: int = 5
    seed: int = 0
    warm_start: bool = False
    max_iter: int = 1000

    # Not metadata: the data themselves, under the names of the field.
    __metadata_request__fit: ClassVar = {"features": UNUSED, "labels": UNUSED, "probs": UNUSED}
    __metadata_request__predict: ClassVar = {"features": UNUSED, "probs": UNUSED}
    __metadata_request__score: ClassVar = {"features": UNUSED, "labels": UNUSED, "probs": UNUSED}

    def fit(
        self,
        features: ArrayLike | None,
        labels: Labels,
        *,
        probs: ArrayLike | Belief,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit α0 to the labels of several raters.

        Parameters
        ----------
        features : array of shape (N, D) or (S, N, D), or None
            What α0 may depend on, such as a network's last hidden layer and its logits; None takes
            the logits, the entropy and the largest probability of `probs`. (S, N, D) are the
            features of every draw of an ensemble.
        labels : Labels
            What the raters said. Cases with one label say nothing about α0 but are allowed, as
            long as some case has two.
        probs : array of shape (N, K), (N,) or (S, N, K), or a belief
            Class probabilities f; with shape (N,), the probability of class 1 of two. For an
            ensemble, (S, N, K) or an EnsembleBelief, each draw counts as 1/S of its case (LH E.4).
        sample_weight : array of shape (N,), optional
            Case weights; a case of weight 2 counts as two.
        groups : array of shape (N,), optional
            The patient of each case: the cases of a patient are in the same fold.

        Returns
        -------
        AlphaCalibration
            The calibrator itself.

        Raises
        ------
        InvalidInputError
            If the data do not match, or no case has two labels.

        Warns
        -----
        RaterwiseWarning
            If the features given do not beat one α0 for all (see `beats_constant_`), or a third
            rater seems to have been asked only where two differ.
        ConvergenceWarning
            If the optimum was not reached.

        Examples
        --------
        >>> from raterwise import Labels
        >>> labels = Labels.from_counts([[3, 0], [2, 1], [0, 3], [1, 2]] * 10)
        >>> probs = [0.1, 0.3, 0.9, 0.7] * 10
        >>> AlphaCalibration(l2=0.1).fit(None, labels, probs=probs).num_classes_
        2
        """
        cases = AlphaCases.of(features, labels, probs, sample_weight, groups)
        penalty = choose("penalty", self.penalty, tuple(GRIDS))
        # One thread: several would wait for each other, and add up in another order each time.
        with threadpool_limits(limits=1, user_api="blas"):
            line = Line(cases, Basis.of(cases.features, cases.weights), penalty, self.weighting)
            self._choose(line)
            self._solve(line)
        self.default_features_ = features is None
        self.num_classes_ = int(cases.probs.shape[1])
        self._warn()
        return self

    def predict(
        self, features: ArrayLike | None, *, probs: ArrayLike | Belief
    ) -> DirichletBelief | DirichletMixtureBelief:
        """Return the belief for each case.

        Parameters
        ----------
        features : array of shape (N, D) or (S, N, D), or None
            The features, as in the fit.
        probs : array of shape (N, K), (N,) or (S, N, K), or a belief
            Class probabilities, which stay as they are.

        Returns
        -------
        DirichletBelief or DirichletMixtureBelief
            Dir(α0 f) of each case; for an ensemble, the mixture of the Dir(α0 f) of its draws.

        Raises
        ------
        InvalidInputError
            If features or classes are not those of the fit, or so far from them that α0 has no
            meaning (|log α0| > 500, which no case of the fit had).

        Examples
        --------
        >>> from raterwise import Labels
        >>> labels = Labels.from_counts([[3, 0], [2, 1], [0, 3], [1, 2]] * 10)
        >>> probs = [0.1, 0.3, 0.9, 0.7] * 10
        >>> AlphaCalibration(l2=0.1).fit(None, labels, probs=probs).predict(None, probs=probs)
        DirichletBelief(40 cases, 2 classes)
        """
        check_is_fitted(self)
        if (features is None) != self.default_features_:
            raise InvalidInputError(
                "features: must be None exactly if they were for the fit, which "
                + ("had the default features" if self.default_features_ else "was given features")
            )
        means = Means.of(probs)
        if means.num_classes != self.num_classes_:
            raise InvalidInputError(
                f"probs: must have the {self.num_classes_} classes of the fit; "
                f"got {means.num_classes}"
            )
        x = read_features(features, means)
        if x.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"features: must have the {self.n_features_in_} columns of the fit; "
                f"got {x.shape[1]}"
            )
        concentration = np.exp(self._within_reach(self._log_concentration(x), means.cases))
        members = means.members(concentration)
        kind = DirichletBelief if means.draws is None else DirichletMixtureBelief
        return kind._of(members)

    def score(
        self,
        features: ArrayLike | None,
        labels: Labels,
        *,
        probs: ArrayLike | Belief,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean log-likelihood of a label under the predicted Dirichlet-multinomials.

        Parameters
        ----------
        features : array of shape (N, D), or None
            As for the fit.
        labels : Labels
            The raters' labels.
        probs : array of shape (N, K) or (N,), or a belief
            Class probabilities of a single model, not of an ensemble.
        sample_weight : array of shape (N,), optional
            Case weights.

        Returns
        -------
        float
            Minus `alpha_calibration_loss` without its penalty; larger is better.

        Raises
        ------
        InvalidInputError
            If the data do not match.

        Examples
        --------
        >>> from raterwise import Labels
        >>> labels = Labels.from_counts([[3, 0], [2, 1], [0, 3], [1, 2]] * 10)
        >>> probs = [0.1, 0.3, 0.9, 0.7] * 10
        >>> calibrator = AlphaCalibration(l2=0.1).fit(None, labels, probs=probs)
        >>> calibrator.score(None, labels, probs=probs) < 0
        True
        """
        belief = self.predict(features, probs=probs)
        if not isinstance(belief, DirichletBelief):
            raise InvalidInputError("probs: must be of one model, (N, K); got those of an ensemble")
        return -alpha_calibration_loss(belief, labels, 0.0, sample_weight=sample_weight)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain numbers and lists, ready for JSON.

        Returns
        -------
        dict
            The input of `from_dict`.

        Examples
        --------
        >>> from raterwise import Labels
        >>> labels = Labels.from_counts([[3, 0], [2, 1], [0, 3], [1, 2]] * 10)
        >>> probs = [0.1, 0.3, 0.9, 0.7] * 10
        >>> AlphaCalibration(l2=0.1).fit(None, labels, probs=probs).to_dict()["params"]["l2"]
        0.1
        """
        check_is_fitted(self)
        return state_of(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Rebuild the calibrator from the output of `to_dict`.

        Parameters
        ----------
        stored : dict
            The output of `to_dict`, of this version or the one before, which had only the paper's
            penalty.

        Returns
        -------
        AlphaCalibration
            Fitted.

        Raises
        ------
        InvalidInputError
            If it has another format or version.

        Examples
        --------
        >>> from raterwise import Labels
        >>> labels = Labels.from_counts([[3, 0], [2, 1], [0, 3], [1, 2]] * 10)
        >>> probs = [0.1, 0.3, 0.9, 0.7] * 10
        >>> calibrator = AlphaCalibration(l2=0.1).fit(None, labels, probs=probs)
        >>> again = AlphaCalibration.from_dict(calibrator.to_dict())
        >>> again.intercept_ == calibrator.intercept_
        True
        """
        state = current_state(stored)
        calibrator = cls(**state.pop("params"))
        calibrator._set_line(*(state.pop(name) for name in ("coef_", "center_", "level")))
        for name, value in state.items():
            setattr(calibrator, name, value)
        return calibrator

    def _choose(self, line: Line) -> None:
        """Set λ, as given or as chosen."""
        most = positive_integer("max_iter", self.max_iter)
        self.cv_l2_, self.cv_loss_, self.beats_constant_ = None, None, None
        one_value("l2", self.l2)
        if isinstance(self.l2, str):
            if self.l2 != "cv":
                raise InvalidInputError(f'l2: must be a number or "cv"; got {self.l2!r}')
            folds = positive_integer("folds", self.folds, least=2)
            choice = chosen_penalty(line, folds, self.seed, most)
            self.cv_l2_, self.cv_loss_ = np.array(choice.grid), choice.losses
            self.l2_, self.beats_constant_ = choice.l2, choice.beats_constant
        elif self.l2 == np.inf and line.penalty == "coefficients":
            self.l2_ = math.inf
        else:
            self.l2_ = float(at_least_zero("l2", self.l2))

    def _solve(self, line: Line) -> None:
        basis, x = line.basis, line.cases.features
        start = np.zeros(basis.columns.shape[1])
        if self.warm_start and getattr(self, "n_features_in_", None) == x.shape[1]:
            start = basis.columns.T @ self._log_concentration(x) / len(x)
        objective = line.objective(self.l2_)
        theta, self.n_iter_ = line.fit(objective, self.l2_, start, self.max_iter)
        self._set_line(basis.to_features @ theta[1:], basis.center, float(theta[0]))
        u = basis.columns @ theta
        free = slice(1 if self.l2_ == np.inf else None)  # λ = ∞ leaves the level alone
        ridge, theta = line.ridge(self.l2_)[free], theta[free]
        self.loss_ = objective.loss(u) + float(ridge @ theta**2)
        gradient = basis.columns[:, free].T @ objective.gradient(u) + 2 * ridge * theta
        self.gradient_norm_ = float(np.linalg.norm(gradient))
        self.log_concentration_range_ = (float(u.min()), float(u.max()))

    def _warn(self) -> None:
        """Say what the caller of `fit` must know."""
        if self.gradient_norm_ > GRADIENT_NORM:
            warnings.warn(
                f"AlphaCalibration: stopped at a gradient norm of {self.gradient_norm_:.1e} after "
                f"{self.n_iter_} iterations; a larger l2 or max_iter may help",
                ConvergenceWarning,
                stacklevel=3,
            )
        # The default features are nobody's claim: that they do not help is no news.
        if self.beats_constant_ is False and not self.default_features_ and self.n_features_in_:
            alpha = math.exp(self.log_concentration_at_center_)
            warnings.warn(
                "AlphaCalibration: the features do not help to predict α0 of new cases; every case "
                f"gets the same α0 = {alpha:.3g}",
                RaterwiseWarning,
                stacklevel=3,
            )

    def _set_line(self, coef: FloatArray, center: FloatArray, level: float) -> None:
        self.coef_ = coef
        self.center_ = center
        self.log_concentration_at_center_ = level
        self.intercept_ = float(level - center @ coef)
        self.n_features_in_ = len(coef)

    def _log_concentration(self, x: FloatArray) -> FloatArray:
        # From the centre and not from 0, which may be far away and cost digits.
        return np.asarray((x - self.center_) @ self.coef_ + self.log_concentration_at_center_)

    def _within_reach(self, u: FloatArray, cases: int) -> FloatArray:
        """Return log α0 within the range of a belief; refuse what lies far beyond the fit's."""
        low, high = self.log_concentration_range_
        most = LARGEST_LOG_CONCENTRATION
        reach = 1e-6 * (high - low)
        far = ~((u >= min(-most, low - reach)) & (u <= max(most, high + reach)))
        if far.any():
            row = int(np.flatnonzero(far)[0])
            raise InvalidInputError(
                "features: must be like those of the fit; case "
                f"{row % cases} would have log α0 = {u[row]:.4g}"
            )
        return np.asarray(np.clip(u, -most, most))
