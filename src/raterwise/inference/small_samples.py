"""Intervals that are no points where nothing is wrong, and no wider than they need be elsewhere.

The shape of an interval is that of what is measured: a proportion, a loss that few cases make up, a
separation of two groups, or anything else. The error and its degrees of freedom are those of
`jackknife`.

Everything takes numbers and returns numbers; nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.inference.jackknife import (
    Ends,
    Linearised,
    normal_quantile,
    student_interval,
    student_quantile,
)
from raterwise.types import FloatArray

FEW_EVENTS = 2.0
"""With more events than that, one that was not seen is taken to be like those that were."""
SOME_EVENTS = 5.0
"""The same of an error that costs more than most: so few say little about those."""
ALIKE = 1e-9
"""The part of a loss below which its standard error is rounding."""
FEW_ERRORS = 15.0
"""From so many wrong units on, what the data say of the error of a separation is believed."""
MOST_LOG = 300.0
"""The largest logarithm of a factor: e^300 is 10^130, and still a float when it is multiplied."""


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
    >>> from raterwise.inference.jackknife import linearise
    >>> low, high = proportion_interval(linearise(1.0, [1.0] * 30))  # 30 cases, all right
    >>> round(low, 3), high  # 0.025^(1/30)
    (0.884, 1.0)
    """
    from scipy.special import betaincinv

    share = min(max(found.value, 0.0), 1.0)
    spread = share * (1 - share)
    if found.error > ALIKE * share and spread > 0:
        number = (
            spread / found.error**2 * (normal_quantile(level) / student_quantile(found, level)) ** 2
        )
    else:
        number = found.worth
    hits, misses = number * share, number * (1 - share)
    tail = (1 - level) / 2
    low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    return low, high


def predictive_interval(found: Linearised, times: float, level: float = 0.95) -> Ends:
    """Return the interval of a share in which a hit weighs `times` as much as a miss.

    Where cases are sampled by their class, as of a predictive value at the prevalence of use, a
    heavy miss that was not seen is not in the standard error. The odds of the share are `times`
    those of the sample, whose share has the interval of a proportion.

    >>> from raterwise.inference.jackknife import linearise
    >>> low, high = predictive_interval(linearise(1.0, [1.0] * 30), 0.1)  # odds 7.64 of the sample
    >>> round(low, 3), high
    (0.433, 1.0)
    """
    share = min(max(found.value, 0.0), 1.0)
    sample = _at_odds(share, 1 / times)
    slope = sample * (1 - sample) / (share * (1 - share)) if 0 < share < 1 else 1.0
    seen = replace(found, value=sample, error=found.error * slope)
    low, high = proportion_interval(seen, level)
    return _at_odds(low, times), _at_odds(high, times)


def _at_odds(share: float, times: float) -> float:
    return share * times / (1 - share + share * times)


def weighted_share_interval(found: Linearised, heaviest: float, level: float = 0.95) -> Ends:
    """Return the interval of a share of cases that weigh what their class does.

    That of a proportion, but the lower end allows for one more miss, of the heaviest class: its
    part of all the weight is `heaviest`. It is the gamma interval that Fay and Feuer (1997) give
    of rates with known weights.

    >>> from raterwise.inference.jackknife import linearise
    >>> low, high = weighted_share_interval(linearise(1.0, [1.0] * 30), 0.1)
    >>> round(low, 3), high  # 1 - 3.689 / 10
    (0.631, 1.0)
    """
    low, high = proportion_interval(found, level)
    t = student_quantile(found, level) / normal_quantile(level)
    missed, variance = max(1 - found.value, 0.0) + heaviest, (found.error * t) ** 2 + heaviest**2
    return min(low, max(1 - _gamma(missed, variance, (1 + level) / 2), 0.0)), high


def gap_interval(found: Linearised, predicted: float, level: float = 0.95) -> Ends:
    """Return the interval of |predicted − θ|, the overall gap of a model's mean probability.

    θ is what was observed (the accuracy, the share of a finding) with its `proportion_interval`.
    Every calibration error of the same question that averages absolute deviations is at least this
    gap. A model that is sure of everything, and of whose errors few were seen, has bins that
    resample to no noise; their error can be as large as the gap that these few errors allow.

    >>> from raterwise.inference.jackknife import linearise
    >>> low, high = gap_interval(linearise(1.0, [1.0] * 30), predicted=0.999)
    >>> low, round(high, 3)
    (0.0, 0.115)
    """
    least, most = proportion_interval(found, level)
    return max(predicted - most, least - predicted, 0.0), max(predicted - least, most - predicted)


def ratio_interval(found: Linearised, expected: float, level: float = 0.95) -> Ends:
    """Return the interval of observed / expected, `expected` the mean probability of a case.

    Times `expected` the ratio is a share of all labels, with the interval of a proportion: it has
    room above 0 where no positive was seen, and is not symmetric where few were. Where most labels
    are positive the share has no room above, and the ratio still has: what is expected is of the
    same sample. Its logarithm then has Student's interval, and the lower end is the farther one.

    >>> from raterwise.inference.jackknife import linearise
    >>> low, high = ratio_interval(linearise(0.0, [0.0] * 30), expected=0.1)
    >>> low, round(high, 2)  # (1 - 0.025^(1/30)) / 0.1
    (0.0, 1.16)
    """
    if not expected > 0:
        return student_interval(found, level)
    share = replace(found, value=found.value * expected, error=found.error * expected)
    low, high = (end / expected for end in proportion_interval(share, level))
    if share.value <= 1 / 2:
        return low, high
    # Of two or three cases the end may be beyond what a float can hold.
    half = math.exp(min(student_quantile(found, level) * found.error / found.value, MOST_LOG))
    return min(low, found.value / half), found.value * half


def loss_interval(
    found: Linearised,
    level: float = 0.95,
    *,
    step: float | None = None,
    squared_step: float | None = None,
    dear: float = 0.0,
    squared_dear: float = 0.0,
    dear_events: float | None = None,
    spread: float = 0.0,
    most: float = math.inf,
) -> Ends:
    """Return the interval of a mean loss of which few cases may make up most.

    The gamma interval of Fay and Feuer for a weighted sum of rare events. With V = s² (t / z)²,

        low  = V / 2θ · χ²(2 θ² / V),      high = V' / 2θ' · χ²(2 θ'² / V'),
        θ' = θ + w,  V' = V + w₂

    quantiles at (1 ∓ level) / 2: the upper end allows for one more event, of weight w, that was
    not seen. So it stays above 0 when no case is wrong. Where all units are alike (V = 0: all cases
    are wrong) the lower end allows for one that was not, θ − (w₂ / 2w · χ²(2 w² / w₂)). The
    interval contains θ.

    Parameters
    ----------
    step: what one more error would add to the loss of a case, on average: 1 for an error rate. In
        one of G units it adds w = step / G to the mean. By default that of the events seen, V / θ.
    squared_step: the mean of its square, step² by default: w₂ = squared_step Σ h² / G.
    dear, squared_dear: the same of an error in one case that costs more than most. Where some cost
        far more than others, those that were not seen are the dear ones.
    dear_events: how many of these a calibrated model makes in a unit, where that is known;
        otherwise all errors are counted as if they were such ones.
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
    >>> from raterwise.inference.jackknife import linearise
    >>> low, high = loss_interval(linearise(0.0, [0.0] * 30), step=1)
    >>> low, round(high, 3)  # Poisson: no event in 30, 3.689 / 30
    (0.0, 0.123)
    """
    if found.value < 0:
        raise InvalidInputError(f"value: a loss cannot be negative; got {found.value}")
    variance = (found.error * student_quantile(found, level) / normal_quantile(level)) ** 2
    seen = variance / found.value if found.value > 0 else 0.0
    more, squared = seen, seen**2
    tail = (1 - level) / 2
    low = _gamma(found.value, variance, tail)
    if step is not None:
        # The loss is as if of θ² / V equal events; with many of them, one more is as those seen.
        events = found.value**2 / max(variance, spread / found.worth, 1e-300)
        dearer = events if dear_events is None else dear_events * found.worth
        fewer, some = (
            min(1.0, number / count) if count > 0 else 1.0
            for number, count in ((FEW_EVENTS, events), (SOME_EVENTS, dearer))
        )
        mean_square = step**2 if squared_step is None else squared_step
        more = max(seen, fewer * step / found.units, some * dear / found.units)
        unseen = max(fewer**2 * mean_square, some**2 * squared_dear)
        squared = max(seen**2, unseen / (found.units * found.worth))
        if variance <= (ALIKE * found.value) ** 2:
            one, of_one = step / found.units, mean_square / (found.units * found.worth)
            low = max(found.value - _gamma(one, of_one, 1 - tail), 0.0)
    high = _gamma(found.value + more, variance + squared, 1 - tail)
    return min(low, found.value), max(min(high, most), found.value)


def signed_loss_interval(
    found: Linearised,
    level: float = 0.95,
    *,
    step: float | None = None,
    spread: float = 0.0,
    seen: float = 0.0,
) -> Ends:
    """Return the interval of a loss of which few cases may make up most, and noise the rest.

    An unbiased estimate of a loss may be below 0, so that it has Student's interval. Where it is
    above, few dear cases may be what it is made of: the upper end is at least that of
    `loss_interval`, and the event that was not seen adds V / θ, but no more than one standard error
    where noise is most of it. With `step`, what one error adds to the loss of a unit, the upper end
    is no lower than after as many units without any error, 3.69 step / G, or a part of that where
    the squared loss that was `seen` is of many errors (`spread` is its variance in a case).

    >>> from raterwise.inference.jackknife import linearise
    >>> few = linearise(0.1, [4 / 39] * 36 + [3 / 39] * 4)  # the mean of 36 cases of 0 and 4 of 1
    >>> [round(end, 3) for end in student_interval(few)], round(signed_loss_interval(few)[1], 3)
    ([0.003, 0.197], 0.254)
    """
    low, high = student_interval(found, level)
    if step is not None:
        events = seen**2 * found.worth / max(spread, 1e-300)
        one = min(1.0, FEW_EVENTS / events if events > 0 else 1.0) * step / found.units
        high = max(high, _gamma(one, one**2 * found.units / found.worth, (1 + level) / 2))
    if found.value <= 0:
        return low, high
    variance = (found.error * student_quantile(found, level) / normal_quantile(level)) ** 2
    more = min(variance / found.value, math.sqrt(variance))
    return low, max(high, _gamma(found.value + more, variance + more**2, (1 + level) / 2))


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

    effect, t = 1.0, normal_quantile(level)
    if found is not None:
        t = student_quantile(found, level)
        expected = variance(value)
        least = min(1.0, FEW_ERRORS / min(m, n))
        effect = max(found.error**2 / expected, least) if expected > 0 else 1.0

    def beyond(theta: float) -> float:
        return (theta - value) ** 2 - t**2 * effect * variance(theta)

    return _end(beyond, value, 0.0), _end(beyond, value, 1.0)


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
