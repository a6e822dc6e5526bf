"""Leaving out one unit at a time: the error of an estimate and its degrees of freedom.

The bootstrap of few unequal patients is too narrow. The values of a metric without each patient (or
case, or rater) in turn give its standard error and the degrees of freedom of Student's t, and with
them intervals, p-values of differences and the expansion of resampled noise.

Everything takes numbers and returns numbers; nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.rules import between_zero_and_one
from raterwise.types import FloatArray

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Linearised:
    """An estimate with the error that leaving out one unit at a time shows."""

    value: float
    error: float
    """The standard error."""
    freedom: float
    """The degrees of freedom of Student's t that `error` has."""
    worth: float
    """How many units of equal size would tell as much: (Σ W)² / Σ W²."""
    units: int
    """How many units there are."""
    bias: float = 0.0
    """By how much the value is too high on average (Quenouille's estimate); 0 for a mean."""


def linearise(value: float, without: ArrayLike, sizes: ArrayLike | None = None) -> Linearised:
    """Return the error and the degrees of freedom of an estimate from its leave-one-out values.

    Unit g has the share h_g = W_g / Σ W of the weight. For a mean θ = Σ T_g / Σ W_g the values
    without each unit give back exactly what the unit adds, (T_g − θ W_g) / Σ W:

        u_g = (1 − h_g) (θ − θ₍₋g₎),      less h_g Σ u, which is 0 for a mean, else minus the bias

    and for a smooth metric they do so to first order (the jackknife). With S = Σ h²,

        V = Σ u_g² / (1 − 2 h_g + S),     freedom = 2 E[V]² / Var[V] = (Σ h²)² / Σ_gk B_gk²,
        B_gk = h_g h_k (δ_gk − h_g − h_k + S) / sqrt((1 − 2 h_g + S) (1 − 2 h_k + S))

    which is CR2 with Satterthwaite's degrees of freedom when the cases of a unit are alike: V is
    then without bias, and few large units have few degrees of freedom. Of equal units they are
    the usual s² / G and G − 1.

    Parameters
    ----------
    value: the estimate θ.
    without: θ₍₋g₎, the same estimate without unit g (patient, case or rater).
    sizes: W_g, the weight of each unit in the estimate; all equal by default.

    References
    ----------
    Quenouille (1956), Notes on bias in estimation, Biometrika 43, 353-360 (the bias).
    Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression with
    multi-stage samples, Survey Methodology 28, 169-181. Pustejovsky and Tipton (2018), JBES 36,
    672-683. Imbens and Kolesár (2016), Review of Economics and Statistics 98, 701-712.

    Examples
    --------
    >>> found = linearise(2.0, [2.5, 2.0, 1.5])  # the mean of 1, 2 and 3
    >>> round(found.error**2, 12), round(found.freedom, 12)  # 1 / 3, and 3 - 1
    (0.333333333333, 2.0)
    """
    left_out = np.asarray(without, dtype=np.float64)
    if left_out.ndim != 1 or len(left_out) < 2:
        raise InvalidInputError(
            f"without: must be one value per unit, at least 2 units; got shape {left_out.shape}"
        )
    weight = np.ones(len(left_out)) if sizes is None else np.asarray(sizes, dtype=np.float64)
    if weight.shape != left_out.shape or not (np.isfinite(weight) & (weight >= 0)).all():
        raise InvalidInputError(
            f"sizes: must be {len(left_out)} finite numbers, not negative; got {weight.shape}"
        )
    seen = weight > 0
    share, left_out = weight[seen] / weight.sum(), left_out[seen]
    if len(share) < 2:
        raise UndefinedMetricError("sizes: one unit has all the weight, so nothing can be said")
    if not np.isfinite(left_out).all():
        raise UndefinedMetricError("without: the metric has no value without one of the units")
    squares, kept = float(np.sum(share**2)), _kept(share)
    adds = (1 - share) * (value - left_out)
    bias = -float(adds.sum())
    adds += share * bias
    return Linearised(
        value=float(value),
        error=math.sqrt(float(np.sum(adds**2 / kept))),
        freedom=_freedom(share, kept),
        worth=1 / squares,
        units=len(share),
        bias=bias,
    )


def _kept(share: FloatArray) -> FloatArray:
    """Return 1 − 2 h_g + Σ h² of each unit g, which is (1 − h_g)² and the squares of the others.

    Of the largest one it is made of these: where that has nearly all, they are all that is left.
    """
    kept = 1 - 2 * share + np.sum(share**2)
    others = np.delete(share, top := share.argmax())
    kept[top] = others.sum() ** 2 + np.sum(others**2)
    return np.asarray(kept)


def _freedom(share: FloatArray, kept: FloatArray) -> float:
    """Return (Σ h²)² / Σ_gk B_gk² of `linearise`, the double sum written as moments.

    B_gg is h_g². The pairs of the largest unit are added one by one, to lose no digits.
    """
    squares, part = float(np.sum(share**2)), share**2 / kept
    h, p = (np.delete(values, top := share.argmax()) for values in (share, part))
    c0, c1, c2 = (float(np.sum(p * h**j)) for j in range(3))
    pairs = squares**2 * c0**2 + 2 * c0 * c2 - 4 * squares * c0 * c1 + 2 * c1**2
    pairs += float(np.sum(share**4) - np.sum(p**2 * (squares - 2 * h) ** 2))
    below = float(np.sum(h**2) - share[top] * h.sum())  # Σ h² less the largest share
    pairs += 2 * float(part[top] * np.sum(p * (below - h) ** 2))
    return squares**2 / pairs


def noise_expansion(sizes: ArrayLike, level: float = 0.95) -> float:
    """Return by how much resampled noise of units of these sizes is too small.

        t / z · sqrt(Σ h² / Σ h² (1 − 2 h + Σ h²))

    with Student's t of the degrees of freedom of `linearise`. Of G equal units it is Hesterberg's
    sqrt(G / (G − 1)) t / z of the bootstrap.

    >>> round(noise_expansion([1, 1, 1, 1, 1]), 3)  # sqrt(5 / 4) 2.776 / 1.96
    1.584
    """
    inflation, freedom, worth = resampling_of(sizes)
    few = Linearised(0.0, 1.0, freedom, worth, len(np.asarray(sizes)))
    return inflation * student_quantile(few, level) / normal_quantile(level)


def resampling_of(sizes: ArrayLike) -> tuple[float, float, float]:
    """Return what the sizes of the units say of a resampled error: inflation, freedom, worth.

    The inflation is that of `noise_expansion` without Student's t.

    >>> inflation, freedom, worth = resampling_of([1, 1, 1, 1, 1])
    >>> round(inflation**2, 6), round(freedom, 6), round(worth, 6)  # 5 / 4, and 5 - 1
    (1.25, 4.0, 5.0)
    """
    weight = np.asarray(sizes, dtype=np.float64)
    found = linearise(0.0, np.zeros(len(weight)), weight)
    share = weight / weight.sum()
    kept = float(np.sum(share**2 * _kept(share)))
    return 1 / math.sqrt(kept * found.worth), found.freedom, found.worth


def several(sizes: ArrayLike) -> bool:
    """Tell whether more than one unit counts: one with all but a millionth of the weight is alone.

    >>> several([1, 1]), several([1, 0]), several([1, 1e-9])
    (True, False, False)
    """
    weight = np.asarray(sizes, dtype=np.float64)
    return bool(np.sum(weight) ** 2 > (1 + 1e-6) * np.sum(weight**2))


def student_interval(found: Linearised, level: float = 0.95) -> Ends:
    """Return θ ± t s, with Student's t of `found.freedom` degrees of freedom.

    >>> low, high = student_interval(linearise(2.0, [2.5, 2.0, 1.5]))
    >>> round(low, 3), round(high, 3)  # 2 ± 4.303 / sqrt(3)
    (-0.484, 4.484)
    """
    reach = student_quantile(found, level) * found.error
    return found.value - reach, found.value + reach


def two_sided_p(found: Linearised) -> float:
    """Return Student's p of "the truth is 0".

    It is at most 1 - level exactly where `student_interval` excludes 0: one calculation gives both.

    >>> round(two_sided_p(linearise(2.0, [2.5, 2.0, 1.5])), 4)  # t = 2 sqrt(3), 2 degrees
    0.0742
    """
    from scipy.special import stdtr

    if found.error == 0:
        return 1.0 if found.value == 0 else 0.0
    return float(2 * stdtr(found.freedom, -abs(found.value) / found.error))


def crossed(sources: Sequence[Linearised]) -> tuple[Linearised, list[float]]:
    """Return the error when both cases and raters are samples, and the share of each in it.

        V = V_cases + V_raters,      freedom = V² / Σ V_j² / ν_j   (Satterthwaite)

    Each V_j is that of leaving out one unit of one population. Both contain the noise of the
    single rating, which is not taken off: the sum errs on the wide side by at most that.

    References
    ----------
    Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1, 386-411. Cameron,
    Gelbach and Miller (2011), Robust inference with multiway clustering, JBES 29, 238-249.

    >>> cases = Linearised(0.8, 0.03, 99, 100, 100)
    >>> raters = Linearised(0.8, 0.04, 2, 3, 3)
    >>> both, shares = crossed([cases, raters])
    >>> round(both.error, 3), round(both.freedom, 2), [round(share, 2) for share in shares]
    (0.05, 4.85, [0.36, 0.64])
    """
    variances = np.array([source.error**2 for source in sources])
    variance = float(variances.sum())
    spread = sum(v**2 / s.freedom for v, s in zip(variances, sources, strict=True))
    freedom = variance**2 / spread if spread > 0 else min(s.freedom for s in sources)
    both = Linearised(
        sources[0].value,
        math.sqrt(variance),
        max(float(freedom), min(s.freedom for s in sources)),
        min(s.worth for s in sources),
        min(s.units for s in sources),
        sum(s.bias for s in sources),
    )
    return both, [float(v / variance) if variance > 0 else 1 / len(sources) for v in variances]


def student_quantile(found: Linearised, level: float) -> float:
    """Return t of the two-sided interval of this level."""
    from scipy.special import stdtrit

    return float(stdtrit(found.freedom, (1 + checked_level(level)) / 2))


def normal_quantile(level: float) -> float:
    """Return z of the two-sided interval of this level: 1.96 for 0.95."""
    from scipy.special import ndtri

    return float(ndtri((1 + checked_level(level)) / 2))


def checked_level(level: float) -> float:
    """Return the level of an interval; refuse what is none."""
    return between_zero_and_one("level", level)
