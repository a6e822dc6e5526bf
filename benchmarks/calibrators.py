"""Post-hoc calibrators: time and optimum against scikit-learn, netcal and probmetrics.

    pip install "netcal>=1.4" "probmetrics>=1.3"
    python -P benchmarks/calibrators.py

All sides see the same float64 logits (netcal: their softmax) in one process, in turn, best of
three after a warm-up; peers that run on torch get whichever of one thread and all threads is
faster. The loss is the mean negative log-likelihood at the temperature each found, computed here.
The second table is of saturated logits, whose largest probability is 1 in most cases.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from raterwise.calibrators.cross_validation import MatrixScalingCV
from raterwise.calibrators.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from raterwise.labels import Labels

Array = Any
CASES, CLASSES = 100_000, 10
REPEATS = 3


class Logits(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its logits, for scikit-learn to calibrate."""

    def fit(self, logits: Array, y: Array) -> Logits:
        """Know the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, logits: Array) -> Array:
        """Return the logits."""
        return logits

    def predict(self, logits: Array) -> Array:
        """Return the class of the largest."""
        return self.classes_[logits.argmax(axis=1)]


def cases(scale: float, seed: int = 0) -> tuple[Array, Array]:
    """Logits of a standard deviation, and labels drawn from softmax(1.8 u / scale)."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(CASES, CLASSES))
    truth = softmax(1.8 / scale * logits, axis=1)
    return logits, (truth.cumsum(axis=1) > rng.random((CASES, 1))).argmax(axis=1)


def loss(logits: Array, labels: Array, beta: float) -> float:
    """The mean negative log-likelihood at β = 1/T."""
    return float(-log_softmax(beta * logits, axis=1)[np.arange(len(labels)), labels].mean())


def best_time(task: Callable[[], float]) -> tuple[float, float]:
    """Return the shortest of three times after a warm-up, and the result."""
    result = task()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = task()
        times.append(time.perf_counter() - start)
    return min(times), result


def with_torch_threads(task: Callable[[], float]) -> Callable[[], float]:
    """Return the task with the number of torch threads that is faster for it."""
    import torch

    def timed(threads: int) -> float:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        task()
        return time.perf_counter() - start

    torch.set_num_threads(min((1, os.cpu_count() or 1), key=timed))
    return task


def scikit_learn(logits: Array, labels: Array) -> float:
    """CalibratedClassifierCV(method="temperature") on a frozen classifier."""
    frozen = FrozenEstimator(Logits().fit(logits, labels))
    fitted = CalibratedClassifierCV(frozen, method="temperature").fit(logits, labels)
    return float(fitted.calibrated_classifiers_[0].calibrators[0].beta_)


def probmetrics(logits: Array, labels: Array, dtype: str) -> float:
    """Its own ("fast, optimised") bisection on the gradient, in torch."""
    import torch
    from probmetrics.calibrators import TemperatureScalingCalibrator
    from probmetrics.distributions import CategoricalLogits

    calibrator = TemperatureScalingCalibrator()
    u = torch.as_tensor(logits, dtype=getattr(torch, dtype))
    calibrator.fit_torch(CategoricalLogits(u), torch.as_tensor(labels))
    return float(calibrator.invtemp_)


def netcal(logits: Array, labels: Array) -> float:
    """netcal.scaling.TemperatureScaling, which takes probabilities."""
    from netcal.scaling import TemperatureScaling as Peer

    peer = Peer()
    peer.fit(softmax(logits, axis=1), labels)
    return float(np.ravel(peer.temperature)[0])


def temperatures(scale: float) -> None:
    """Print the table of temperature fits."""
    logits, labels = cases(scale)
    saturated = (softmax(logits, axis=1).max(axis=1) == 1).mean()
    print(
        f"\ntemperature, N = {CASES:,}, K = {CLASSES}, logits of standard deviation {scale:g} "
        f"({100 * saturated:.0f} % of the cases have a probability of exactly 1)"
    )
    ours = best_time(lambda: 1 / TemperatureScaling().fit(logits, labels).temperature_)
    peers: dict[str, Callable[[], float]] = {
        "scikit-learn": lambda: scikit_learn(logits, labels),
        "probmetrics float64": lambda: probmetrics(logits, labels, "float64"),
        "probmetrics float32": lambda: probmetrics(logits, labels, "float32"),
        "netcal": lambda: netcal(logits, labels),
    }
    best = loss(logits, labels, ours[1])
    print(f"  {'':22}{'seconds':>9}{'ratio':>8}   1/T          loss - ours")
    print(f"  {'raterwise':22}{ours[0]:9.4f}{1:8.1f}   {ours[1]:.10f}")
    for name, task in peers.items():
        if name != "scikit-learn":
            task = with_torch_threads(task)
        seconds, beta = best_time(task)
        excess = loss(logits, labels, beta) - best
        print(f"  {name:22}{seconds:9.4f}{seconds / ours[0]:8.1f}   {beta:.10f} {excess:10.1e}")


def linear_maps() -> None:
    """Print the table of vector and matrix scaling at the size of LH's MDS data."""
    size, classes, raters = 14_144, 22, 3
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(size, classes))
    truth = softmax(logits @ (0.7 * np.eye(classes) + 0.05 * rng.normal(size=(classes,) * 2)), 1)
    labels = Labels.from_counts(rng.multinomial(raters, truth))
    print(f"\nlinear maps, N = {size:,}, K = {classes}, {raters} raters")
    for calibrator in (VectorScaling(0.1), MatrixScaling(10, 1), MatrixScaling()):
        start = time.perf_counter()
        calibrator.fit(logits, labels)
        print(
            f"  {calibrator!r:50} {time.perf_counter() - start:6.2f} s, "
            f"loss {calibrator.loss_:.12f}, gradient norm {calibrator.gradient_norm_:.0e}"
        )
    rows, chosen = np.nonzero(labels.counts)
    start = time.perf_counter()
    peer = LogisticRegression(C=np.inf, tol=1e-8, max_iter=2000)
    peer.fit(logits[rows], chosen, sample_weight=labels.counts[rows, chosen])
    seconds = time.perf_counter() - start
    log_probs = peer.predict_log_proba(logits)
    value = -(labels.counts * log_probs).sum() / labels.counts.sum()
    print(
        f"  {'scikit-learn LogisticRegression, no penalty':50} {seconds:6.2f} s, loss {value:.12f}"
    )
    start = time.perf_counter()
    chosen_by = MatrixScalingCV().fit(logits, labels, groups=np.arange(size) // 8)
    print(
        f"  {'MatrixScalingCV, 3 x 3 penalties, 5 folds':50} {time.perf_counter() - start:6.2f} s, "
        f"λ_w = {chosen_by.off_diagonal_l2_:g}, λ_b = {chosen_by.bias_l2_:g}"
    )


def alpha_calibration() -> None:
    """Print the time of α-calibration at the size of LH's MDS data (target: 5 s)."""
    from raterwise.calibrators.alpha import AlphaCalibration

    size, features, classes, raters = 14_144, 128, 22, 6
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, features))
    probs = rng.dirichlet(np.full(classes, 0.5), size)
    alpha = np.exp(0.5 + x @ rng.normal(0, 0.5 / features**0.5, features))
    gammas = rng.standard_gamma(alpha[:, None] * probs) + 1e-300
    labels = Labels.from_counts(rng.multinomial(raters, gammas / gammas.sum(axis=1, keepdims=True)))
    seconds, _ = best_time(lambda: AlphaCalibration().fit(x, labels, probs=probs).n_iter_)
    print(f"\nα-calibration, N = {size:,}, D = {features}, K = {classes}: {seconds:.2f} s")


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    for scale in (3.0, 30.0):
        temperatures(scale)
    linear_maps()
    alpha_calibration()


if __name__ == "__main__":
    main()
