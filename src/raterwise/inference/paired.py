"""Differences between models that were resampled together: intervals, p-values, rankings.

Everything here is made from results alone: the values, their intervals and their resampled values,
which are pairs because the same cases were drawn for every model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from raterwise.catalog import CATALOG
from raterwise.errors import InvalidInputError
from raterwise.inference.differences import difference_interval, drawn_together, holm, p_value
from raterwise.inference.jackknife import Linearised, student_interval, two_sided_p
from raterwise.inference.settings import Settings
from raterwise.results import DIGITS, Estimate, Results
from raterwise.summaries.fingerprint import unlike_part
from raterwise.types import FloatArray

Drawn = tuple[FloatArray, FloatArray]

SHARED = ("resamples", "level", "seed", "unit", "interval", "bins", "question", "per", "options")
"""Options that must be the same for the resampled values of two models to be pairs."""
FEW_EVENTS = 1.5
"""By how much an interval is longer than resamples say where few events made a share or an area."""
OF_EVENTS = 3.0
"""Degrees of freedom of a difference of log odds, for each event that these rest on."""
NOTHING = 2 * 10.0 ** (1 - DIGITS)
"""The part of two resampled values below which they differ by the rounding to so many digits."""


@dataclass(frozen=True)
class Difference:
    """One metric of two models on the same cases: first minus second.

    Parameters
    ----------
    metric : str
        Name of the metric.
    first, second : str
        The models.
    difference : float
        The value of the first minus that of the second.
    low, high : float
        The ends of its interval. Both are 0 if the metric is the same for both models in every
        resample: these cases cannot separate the models, but others might.
    p_value : float
        Two-sided p-value for no difference: at most 1 - level exactly if the interval excludes 0.
    adjusted_p_value : float
        Adjusted over the pairs of models of this metric (Holm 1979).
    debiased : float, default None
        For calibration errors: the difference without the contribution of chance to each.

    See Also
    --------
    compare : returns them.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> (found,) = rw.compare(models, [1, 0] * 20, "brier", resamples=50).differences
    >>> found.metric, round(found.difference, 4), found.high < 0
    ('brier', -0.135, True)
    """

    metric: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float
    debiased: float | None = None


def require_pairs(models: Mapping[str, Results]) -> None:
    """Refuse results whose resampled values are not pairs, and say what differs."""
    for name, results in models.items():
        if not results.replicates or "fingerprint" not in results.data:
            raise InvalidInputError(
                f"models: {name!r} holds no resampled values, which a comparison needs: it was "
                "made with resamples=0, or its file was written without them"
            )
    (first, one), *rest = models.items()
    for name, other in rest:
        unlike = unlike_part(one.data["fingerprint"], other.data["fingerprint"])
        if unlike is not None:
            way_out = " (sort them by id before evaluating)" if "another order" in unlike else ""
            raise InvalidInputError(
                f"models: must be of the same cases, in the same order; {first!r} and {name!r} "
                f"have {unlike}{way_out}"
            )
        for option in SHARED:
            a, b = one.options.get(option), other.options.get(option)
            if a != b:
                raise InvalidInputError(
                    f"models: must share {option}; {first!r} has {a!r}, {name!r} has {b!r}"
                )
        elsewhere = one.data.get("outside", 0), other.data.get("outside", 0)
        if elsewhere[0] != elsewhere[1]:
            raise InvalidInputError(
                f"models: must have the same out-of-distribution cases; {first!r} has "
                f"{elsewhere[0]}, {name!r} has {elsewhere[1]}"
            )
        names, others = one.data.get("class_names"), other.data.get("class_names")
        if names and others and names != others:
            raise InvalidInputError(
                f"models: must share the classes; {first!r} has {', '.join(names)}, "
                f"{name!r} has {', '.join(others)}"
            )


def differences(models: Mapping[str, Results]) -> list[Difference]:
    """Return the difference of every pair of models in every metric that both have."""
    one = next(iter(models.values()))
    settings = Settings(one.options["resamples"], one.options["level"])
    few = Few.of(one)
    found: list[Difference] = []
    for metric in _metrics(models):
        made = []
        for (first, a), (second, b) in combinations(_with(metric, models).items(), 2):
            drawn = a.replicates[metric], b.replicates[metric]
            if np.isnan(_gap(*drawn)).all() or a[metric].low is None or b[metric].low is None:
                continue
            if a[metric].debiased is None or b[metric].debiased is None:
                ends = _of_value(a[metric], b[metric], drawn, few, settings)
            else:
                ends = _of_error(a[metric], b[metric], drawn, settings)
            made.append(Difference(metric, first, second, **ends, adjusted_p_value=1.0))
        adjusted = holm([each.p_value for each in made])
        found += [replace(d, adjusted_p_value=q) for d, q in zip(made, adjusted, strict=True)]
    return found


def ranking(models: Mapping[str, Results]) -> dict[str, dict[str, float]]:
    """Return how often each model is the best, for metrics that have a better side."""
    out: dict[str, dict[str, float]] = {}
    for metric in _metrics(models):
        having = _with(metric, models)
        direction = next(r[metric].direction for r in models.values() if metric in r)
        if direction == "none" or len(having) < 2:
            continue
        stack = np.stack([_placed(r.replicates[metric], r[metric], r) for r in having.values()])
        stack = stack[:, ~np.isnan(stack).any(axis=0)]
        if not stack.size:
            continue
        best = stack.min(axis=0) if direction == "lower" else stack.max(axis=0)
        wins = _gap(stack, np.broadcast_to(best, stack.shape)) == 0
        shares = (wins / wins.sum(axis=0)).mean(axis=1)
        out[metric] = dict(zip(having, (float(s) for s in shares), strict=True))
    return out


def _metrics(models: Mapping[str, Results]) -> list[str]:
    return list(dict.fromkeys(metric for results in models.values() for metric in results))


def _with(metric: str, models: Mapping[str, Results]) -> dict[str, Results]:
    """Return the models of which the metric has resampled values."""
    return {name: r for name, r in models.items() if metric in r.replicates}


def _gap(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return first minus second, with what is rounding set to 0."""
    gap = first - second
    size = np.maximum(np.abs(first), np.abs(second))
    return np.where(np.abs(gap) <= np.maximum(NOTHING * size, 1e-12), 0.0, gap)


def _of_value(
    a: Estimate, b: Estimate, drawn: Drawn, few: Few, settings: Settings
) -> dict[str, float]:
    """Return the difference of an ordinary metric, by Student's t with the paired resamples' error.

    One calculation gives the interval and the p-value, so p is at most 1 - level exactly where 0
    is outside. The resamples of few unequal patients are too close together, and their error has
    few degrees of freedom (`jackknife.linearise`). Shares and areas of few events hardly vary over
    resamples, or not at all (three of three positives found, none of three): where the interval of
    one model says so, being `FEW_EVENTS` times as long as its resamples would have it, that of the
    difference is at least what those of both leave of it (`differences.difference_interval`).

    An addend to the log odds with the error s rests on 1 / s² events, however many cases there are,
    and the error of its differences has no more than 3 / s² degrees of freedom.
    """
    value, gap = _scalar_gap(a.value, b.value), _gap(*drawn)
    error = few.inflation * float(np.nanstd(gap))
    freedom = few.freedom_of(a, b)
    if a.name in CATALOG and "log_odds" in CATALOG[a.name].tags:
        alone = few.inflation * max(float(np.nanstd(values)) for values in drawn)
        freedom = min(freedom, max(OF_EVENTS / alone**2, 1.0)) if alone > 0 else freedom
    found = Linearised(value, error, freedom, worth=0.0, units=0)
    low, high = student_interval(found, settings.level)
    p = two_sided_p(found)
    reach = (high - low) / 2 / error if error else 0.0
    if value and (error == 0 or _few_events(a, b, drawn, few.inflation * reach)):
        least, most = difference_interval(_around(a), _around(b), drawn_together(*drawn))
        low, high = min(low, least), max(high, most)
        p = max(p, p_value(value, low, high, level=settings.level, resamples=None))
    return {"difference": value, "low": low, "high": high, "p_value": p}


def _few_events(a: Estimate, b: Estimate, drawn: Drawn, reach: float) -> bool:
    """Tell whether a share or an area has an interval that its resamples know nothing of."""
    row = CATALOG.get(a.name)
    if row is None or row.shape not in ("proportion", "separation"):
        return False
    ends = [_around(estimate) for estimate in (a, b)]
    lengths = [2 * reach * float(np.nanstd(values)) for values in drawn]
    return any(e[2] - e[1] > FEW_EVENTS * y for e, y in zip(ends, lengths, strict=True))


def _around(estimate: Estimate) -> tuple[float, float, float]:
    assert estimate.value is not None and estimate.low is not None and estimate.high is not None
    return estimate.value, estimate.low, estimate.high


@dataclass(frozen=True)
class Few:
    """What few units do to an error that was resampled."""

    inflation: float = 1.0
    freedom: float = math.inf
    raters: float = math.inf
    """Degrees of freedom of the raters, where they were resampled and known."""

    @staticmethod
    def of(results: Results) -> Few:
        """Return that of the units and raters that results were resampled over."""
        known = results.data.get("resampled_raters")
        raters = math.inf if known is None else known - 1
        told = results.data.get("resampling")
        if told:
            return Few(told["inflation"], told["freedom"] or math.inf, raters)
        units = results.data.get("fingerprint", {}).get("units")  # of files of earlier versions
        if units == 1:
            raise InvalidInputError(
                "models: need at least two patients (or cases) to be compared; there is one"
            )
        if units:
            return Few(math.sqrt(units / (units - 1)), units - 1, raters)
        return Few(freedom=raters, raters=raters)

    def freedom_of(self, a: Estimate, b: Estimate) -> float:
        """Return the degrees of freedom of a difference (Satterthwaite).

        How much of its variance is between raters is not known; that of the two values stands for
        it, and where they have none, all of it.
        """
        if not math.isfinite(self.raters):
            return self.freedom
        shares = [share for e in (a, b) if (share := e.rater_share) is not None]
        share = max(shares, default=1.0)
        return 1 / (share**2 / self.raters + (1 - share) ** 2 / self.freedom)


def _of_error(a: Estimate, b: Estimate, drawn: Drawn, settings: Settings) -> dict[str, float]:
    """Return the difference of a calibration error from the intervals that both models have.

    Noise pushes an error up, resampling adds more of it, and how much depends on the model: the
    resampled differences lie in the wrong place. The test-inverting interval (l, t, u) of each
    model, t its corrected value, has that taken out. Recovered from these (Zou 2007), the interval
    of the difference t₁ - t₂ of independent models would reach

        sqrt((t₁ - l₁)² + (u₂ - t₂)²) down and sqrt((u₁ - t₁)² + (t₂ - l₂)²) up,

    and on the same cases it reaches r times as far, r² = Var(θ₁ - θ₂) / (Var θ₁ + Var θ₂) of the
    paired resamples: models that err on the same cases are told apart more easily. Where l is 0,
    perfect calibration is not rejected, and that the truth is l is no rare event: the two parts
    are then added, not their squares, and pairing helps only models that are alike, r < 1/2. As
    the interval of each model, it is extended to contain the difference of the reported values.

    References
    ----------
    Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12,
    399-413.
    """
    value, middle = _scalar_gap(a.value, b.value), _scalar_gap(a.debiased, b.debiased)
    (t1, l1, u1), (t2, l2, u2) = _ends(a), _ends(b)
    narrower = _paired_spread(*drawn)
    low = min(middle - _reach(t1 - l1, u2 - t2, narrower, added=l1 <= 0), value)
    high = max(middle + _reach(t2 - l2, u1 - t1, narrower, added=l2 <= 0), value)
    p = p_value(middle, low, high, level=settings.level, resamples=settings.resamples)
    return {"difference": value, "low": low, "high": high, "p_value": p, "debiased": middle}


def _reach(towards_zero: float, away: float, narrower: float, *, added: bool) -> float:
    if added:
        return min(1.0, 2 * narrower) * (towards_zero + away)
    return narrower * float(np.hypot(towards_zero, away))


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    middle, low, high = estimate.debiased, estimate.low, estimate.high
    assert middle is not None and low is not None and high is not None
    return middle, min(low, middle), max(high, middle)


def _paired_spread(first: FloatArray, second: FloatArray) -> float:
    """Return the spread of the differences, as a part of what it would be without pairing."""
    known = ~(np.isnan(first) | np.isnan(second))
    apart = float(first[known].var() + second[known].var())
    return float(np.sqrt(_gap(first, second)[known].var() / apart)) if apart > 0 else 1.0


def _placed(replicates: FloatArray, found: Estimate, results: Results) -> FloatArray:
    """Return resampled values where they belong: those of an error within its own interval.

    The k-th smallest of B becomes the true error that lies as far within the interval: with
    z = Φ⁻¹((k - 1/2) / B) / Φ⁻¹((1 + level) / 2), that is t + z (u - t) above the corrected value
    t, and t + z (t - l) below. Which resamples are high for two models stays as it was.
    """
    if found.debiased is None:
        return replicates
    from scipy.special import ndtri
    from scipy.stats import rankdata

    middle, low, high = _ends(found)
    known = ~np.isnan(replicates)
    share = (rankdata(replicates[known]) - 0.5) / known.sum()
    z = ndtri(share) / ndtri((1 + results.options["level"]) / 2)
    out = np.full(len(replicates), np.nan)
    out[known] = np.maximum(middle + z * np.where(z > 0, high - middle, middle - low), min(low, 0))
    return out


def _scalar_gap(first: float | None, second: float | None) -> float:
    assert first is not None and second is not None
    return float(_gap(np.array(first), np.array(second)))
