"""Intervals and p-values that hold with few patients, few errors and few raters.

The bootstrap of few unequal patients is too narrow, and that of no errors is a point. Here the
values without each patient (or case, or rater) in turn give the standard error and the degrees of
freedom of Student's t; the shape of the interval is that of what is measured: a proportion, a loss
that few cases make up, a separation of two groups, or anything else.

Everything takes numbers and returns numbers; nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.errors import InvalidInputError, UndefinedMetricError

__all__ = [
    "Crossed",
    "Linearised",
    "crossed",
    "linearise",
    "linearised_interval",
    "loss_interval",
    "noise_expansion",
    "proportion_interval",
    "separation_interval",
    "student_interval",
    "two_sided_p",
]

FloatArray = NDArray[np.float64]
Ends = tuple[float, float]

FEW_EVENTS = 4.0
"""With more events than that, one that was not seen is taken to be like those that were."""
FEW_ERRORS = 5.0
"""From so many wrong units on, what the data say of their correlation is believed."""


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


def linearise(value: float, without: ArrayLike, sizes: ArrayLike | None = None) -> Linearised:
    """Return the error and the degrees of freedom of an estimate from its leave-one-out values.

    Unit g has the share h_g = W_g / Σ W of the weight. For a mean θ = Σ T_g / Σ W_g the values
    without each unit give back exactly what the unit adds, (T_g − θ W_g) / Σ W:

        u_g = (1 − h_g) (θ − θ₍₋g₎),      less h_g Σ u, which is 0 for a mean

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
    squares = float(np.sum(share**2))
    adds = (1 - share) * (value - left_out)
    adds -= share * adds.sum()
    kept = 1 - 2 * share + squares
    return Linearised(
        value=float(value),
        error=math.sqrt(float(np.sum(adds**2 / kept))),
        freedom=_freedom(share, squares, kept),
        worth=1 / squares,
        units=len(share),
    )


def _freedom(share: FloatArray, squares: float, kept: FloatArray) -> float:
    """Return (Σ h²)² / Σ_gk B_gk² of `linearise`, the double sum written as moments."""
    part = share**2 / kept
    c0, c1, c2 = (float(np.sum(part * share**j)) for j in range(3))
    pairs = squares**2 * c0**2 + 2 * c0 * c2 - 4 * squares * c0 * c1 + 2 * c1**2
    pairs += float(np.sum(share**4) - np.sum(part**2 * (squares - 2 * share) ** 2))
    return max(squares**2 / pairs, 1.0)


def noise_expansion(sizes: ArrayLike, level: float = 0.95) -> float:
    """Return by how much resampled noise of units of these sizes is too small.

        t / z · sqrt(Σ h² / Σ h² (1 − 2 h + Σ h²))

    with Student's t of the degrees of freedom of `linearise`. Of G equal units it is Hesterberg's
    sqrt(G / (G − 1)) t / z of the bootstrap.

    >>> round(noise_expansion([1, 1, 1, 1, 1]), 3)  # sqrt(5 / 4) 2.776 / 1.96
    1.584
    """
    weight = np.asarray(sizes, dtype=np.float64)
    found = linearise(0.0, np.zeros(len(weight)), weight)
    share = weight / weight.sum()
    kept = float(np.sum(share**2 * (1 - 2 * share + 1 / found.worth)))
    return _quantile(found, level) / _normal(level) / math.sqrt(kept * found.worth)


def student_interval(found: Linearised, level: float = 0.95) -> Ends:
    """Return θ ± t s, with Student's t of `found.freedom` degrees of freedom.

    >>> low, high = student_interval(linearise(2.0, [2.5, 2.0, 1.5]))
    >>> round(low, 3), round(high, 3)  # 2 ± 4.303 / sqrt(3)
    (-0.484, 4.484)
    """
    reach = _quantile(found, level) * found.error
    return found.value - reach, found.value + reach


def two_sided_p(found: Linearised, null: float = 0.0) -> float:
    """Return Student's p of "the truth is `null`", at most 1 - level exactly where an interval
    of `student_interval` excludes it: one calculation gives both.

    >>> round(two_sided_p(linearise(2.0, [2.5, 2.0, 1.5])), 4)  # t = 2 sqrt(3), 2 degrees
    0.0742
    """
    from scipy.special import stdtr

    gap = abs(found.value - null)
    if found.error == 0:
        return 1.0 if gap == 0 else 0.0
    return float(2 * stdtr(found.freedom, -gap / found.error))


def proportion_interval(found: Linearised, level: float = 0.95) -> Ends:
    """Return Korn and Graubard's interval of a proportion, which is never a point.

    That of Clopper and Pearson for x = n θ of n cases, with the n that the standard error s says,

        n = θ (1 − θ) / s² · (z / t)²,      low = Beta(x, n − x + 1), high = Beta(x + 1, n − x)

    quantiles at (1 ∓ level) / 2. Where all cases are alike (θ is 0 or 1, s is 0) each unit counts
    as one case: n = worth.

    References
    ----------
    Korn and Graubard (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data, Survey Methodology 24, 193-201.

    Examples
    --------
    >>> low, high = proportion_interval(linearise(1.0, [1.0] * 30))  # 30 cases, all right
    >>> round(low, 3), high  # 0.025^(1/30)
    (0.884, 1.0)
    """
    from scipy.special import betaincinv

    share = min(max(found.value, 0.0), 1.0)
    spread = share * (1 - share)
    if found.error > 0 and spread > 0:
        number = spread / found.error**2 * (_normal(level) / _quantile(found, level)) ** 2
    else:
        number = found.worth
    hits, misses = number * share, number * (1 - share)
    tail = (1 - level) / 2
    low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    return low, high


def loss_interval(
    found: Linearised,
    level: float = 0.95,
    *,
    step: float | None = None,
    squared_step: float | None = None,
    spread: float = 0.0,
    most: float = math.inf,
) -> Ends:
    """Return the interval of a mean loss of which few cases may make up most.

    The gamma interval of Fay and Feuer for a weighted sum of rare events. With V = s² (t / z)²,

        low  = V / 2θ · χ²(2 θ² / V),      high = V' / 2θ' · χ²(2 θ'² / V'),
        θ' = θ + w,  V' = V + w₂

    quantiles at (1 ∓ level) / 2: the upper end allows for one more event, of weight w, that was
    not seen. So it stays above 0 when no case is wrong. The interval contains θ.

    Parameters
    ----------
    step: what one more error would add to the loss of a case, on average: 1 for an error rate. In
        one of G units it adds w = step / G to the mean. By default that of the events seen, V / θ.
    squared_step: the mean of its square, step² by default: w₂ = squared_step Σ h² / G.
    spread: the variance of a case's loss if the model were calibrated, where the losses of right
        cases would hide that no error was seen.
    most: the largest value that the loss can have.

    References
    ----------
    Fay and Feuer (1997), Confidence intervals for directly standardized rates: a method based on
    the gamma distribution, Statistics in Medicine 16, 791-801. Tiwari, Clegg and Zou (2006),
    Efficient interval estimation for age-adjusted cancer rates, Stat. Methods Med. Res. 15,
    547-569 (for the mean weight instead of the largest).

    Examples
    --------
    >>> low, high = loss_interval(linearise(0.0, [0.0] * 30), step=1)
    >>> low, round(high, 3)  # Poisson: no event in 30, 3.689 / 30
    (0.0, 0.123)
    """
    if found.value < 0:
        raise InvalidInputError(f"value: a loss cannot be negative; got {found.value}")
    variance = (found.error * _quantile(found, level) / _normal(level)) ** 2
    seen = variance / found.value if found.value > 0 else 0.0
    more, squared = seen, seen**2
    if step is not None:
        # The loss is as if of θ² / V equal events; with many of them, one more is as those seen.
        events = found.value**2 / max(variance, spread / found.worth, 1e-300)
        fewer = min(1.0, FEW_EVENTS / events) if events > 0 else 1.0
        mean_square = step**2 if squared_step is None else squared_step
        more = max(seen, fewer * step / found.units)
        squared = max(seen**2, fewer**2 * mean_square / (found.units * found.worth))
    tail = (1 - level) / 2
    low = _gamma(found.value, variance, tail)
    high = _gamma(found.value + more, variance + squared, 1 - tail)
    return min(low, found.value), max(min(high, most), found.value)


def separation_interval(
    found: Linearised | None,
    value: float,
    groups: tuple[ArrayLike, ArrayLike],
    level: float = 0.95,
) -> Ends:
    """Return Newcombe's interval (method 5) of an area such as AUCCC or AUROC.

    It holds the θ with (θ − value)² ≤ t² D V(θ), where for m and n members of the two groups

        V(θ) = θ (1 − θ) (1 + N* ((1 − θ) / (2 − θ) + θ / (1 + θ))) / (m n),   N* = (m + n) / 2 − 1

    A score interval, so that a perfect separation of few errors is no point. The design effect
    D = s² / V(value) is that of the patients, and of several raters per case; with few errors it
    says nothing and is at least 1, or `FEW_ERRORS` / min(m, n) where there are more. Without a
    standard error, m and n are (Σ M_g)² / Σ M_g² of the masses M_g that unit g has in the group,
    which takes the errors of a patient for one.

    Parameters
    ----------
    found: the linearised estimate; None where it has no value without one of the units.
    value: the area.
    groups: of each unit, the number of right and of wrong cases (of several raters: their shares).

    References
    ----------
    Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney
    statistic. Part 2, Statistics in Medicine 25, 559-573.

    Examples
    --------
    >>> right, wrong = [1] * 8 + [0] * 2, [0] * 8 + [1] * 2
    >>> low, high = separation_interval(None, 1.0, (right, wrong))
    >>> round(low, 3), high
    (0.532, 1.0)
    """
    masses = [np.asarray(group, dtype=np.float64) for group in groups]
    m, n = (_number(mass, alike=found is None) for mass in masses)
    middle = (m + n) / 2 - 1

    def variance(theta: float) -> float:
        curved = 1 + middle * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return theta * (1 - theta) * max(curved, 0.0) / (m * n)

    effect, t = 1.0, _normal(level)
    if found is not None:
        t = _quantile(found, level)
        expected = variance(value)
        least = min(1.0, FEW_ERRORS / min(m, n))
        effect = max(found.error**2 / expected, least) if expected > 0 else 1.0

    def beyond(theta: float) -> float:
        return (theta - value) ** 2 - t**2 * effect * variance(theta)

    return _end(beyond, value, 0.0), _end(beyond, value, 1.0)


def linearised_interval(
    value: float,
    without: ArrayLike,
    sizes: ArrayLike | None = None,
    level: float = 0.95,
    *,
    scale: str = "identity",
    bounds: Ends = (-math.inf, math.inf),
    step: float | None = None,
    squared_step: float | None = None,
    spread: float = 0.0,
) -> Ends:
    """Return the interval of an estimate from its values without each unit in turn.

    Parameters
    ----------
    value, without, sizes: as in `linearise`.
    scale: "identity" (Student), "proportion" (Korn and Graubard, within `bounds`) or "loss"
        (gamma, from 0 to the upper bound).
    bounds: the smallest and the largest possible value.
    step, squared_step, spread: as in `loss_interval`.

    >>> low, high = linearised_interval(0.9, [1.0, 0.8, 0.9], scale="proportion", bounds=(0, 1))
    >>> round(low, 2), round(high, 2)
    (0.05, 1.0)
    """
    found = linearise(value, without, sizes)
    least, most = bounds
    if scale == "identity":
        low, high = student_interval(found, level)
        return min(max(low, least), value), max(min(high, most), value)
    if scale == "loss":
        return loss_interval(
            found, level, step=step, squared_step=squared_step, spread=spread, most=most
        )
    if scale != "proportion":
        raise InvalidInputError(f'scale: must be "identity", "proportion" or "loss"; got {scale!r}')
    width = most - least
    within = replace(found, value=(value - least) / width, error=found.error / width)
    low, high = proportion_interval(within, level)
    return least + width * low, least + width * high


@dataclass(frozen=True, slots=True)
class Crossed:
    """The error of an estimate over two crossed populations, and where it comes from."""

    total: Linearised
    shares: tuple[float, ...]
    """The part of each source in the variance; they add up to 1."""


def crossed(sources: Sequence[Linearised], overlap: float = 0.0) -> Crossed:
    """Return the error when both cases and raters are samples of populations.

        V = V_cases + V_raters − V_overlap,      freedom = V² / Σ V_j² / ν_j   (Satterthwaite)

    Each V_j is that of leaving out one unit of one population. Both contain the noise of the
    single rating; `overlap` is its variance (leaving out the ratings of one rater in one case at a
    time), 0 where it is not known, which errs on the wide side by at most that. V is never below
    the largest of its sources.

    References
    ----------
    Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1, 386-411. Cameron,
    Gelbach and Miller (2011), Robust inference with multiway clustering, JBES 29, 238-249.

    >>> cases = Linearised(0.8, 0.03, 99, 100, 100)
    >>> raters = Linearised(0.8, 0.04, 2, 3, 3)
    >>> both = crossed([cases, raters])
    >>> round(both.total.error, 3), round(both.total.freedom, 2), [round(s, 2) for s in both.shares]
    (0.05, 4.85, [0.36, 0.64])
    """
    variances = np.array([source.error**2 for source in sources])
    largest = int(variances.argmax())
    variance = max(float(variances.sum()) - overlap, float(variances[largest]))
    spread = sum(v**2 / s.freedom for v, s in zip(variances, sources, strict=True))
    freedom = variance**2 / spread if spread > 0 else min(s.freedom for s in sources)
    total = variances.sum()
    return Crossed(
        Linearised(
            sources[0].value,
            math.sqrt(variance),
            max(float(freedom), min(s.freedom for s in sources)),
            min(s.worth for s in sources),
            min(s.units for s in sources),
        ),
        tuple(float(v / total) if total > 0 else 1 / len(sources) for v in variances),
    )


def _quantile(found: Linearised, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(found.freedom, (1 + _checked(level)) / 2))


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + _checked(level)) / 2))


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise InvalidInputError(f"level: must lie between 0 and 1, both excluded; got {level}")
    return level


def _gamma(mean: float, variance: float, place: float) -> float:
    """Return the quantile of the gamma distribution with that mean and variance."""
    from scipy.special import gammaincinv

    if mean <= 0 or variance <= 0:
        return mean
    return float(variance / mean * gammaincinv(mean**2 / variance, place))


def _number(mass: FloatArray, *, alike: bool) -> float:
    """Return how many cases a group has, or units where the cases of a unit are alike.

    Raters who disagree make a share of a case of each group: such a case counts as one.
    """
    total = float(mass.sum())
    if total <= 0:
        raise UndefinedMetricError("groups: one of the two groups is empty")
    units = total**2 / float(np.sum(mass**2))
    return units if alike else max(total, units)


def _end(beyond: Callable[[float], float], value: float, limit: float) -> float:
    """Return where the score interval ends between the value and the limit of the scale."""
    from scipy.optimize import brentq

    if value == limit:
        return limit
    inside = value if 0 < value < 1 else abs(value - 1e-12)
    return float(brentq(beyond, inside, limit)) if beyond(inside) < 0 else value
