"""Metrics of networks that differ in their seeds, with intervals, and paired differences.

What is estimated is the mean over training runs (seeds) of a metric. Two things leave it unsure,
and each has its part of the interval:

    test cases   the same cases are drawn for every network, as in `raterwise.compare`; an error's
                 interval inverts a test, since noise alone makes every calibration error positive
    training     Student's interval of the mean over seeds

    low = value - sqrt((value - low_cases)² + h²),  h = t_{S-1} sd_seeds / sqrt(S)

and likewise the upper end: two independent sources add in quadrature, each tail by itself (Zou and
Donner 2008, https://doi.org/10.1002/sim.3095). How networks of different seeds differ on the cases
at hand is in both parts, so the interval is rather too wide than too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.robust_ece.tables import (
    METRICS,
    MIXTURE,
)
from raterwise.binning import equal_edges
from raterwise.catalog import find
from raterwise.evaluate import predictions_of
from raterwise.evaluation.request import Request
from raterwise.inference import intervals
from raterwise.inference.draws import digest_in_memory
from raterwise.inference.estimates import blank, mean_estimate
from raterwise.inference.measures import Measure
from raterwise.inference.paired import differences
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.predictions.mixtures import bin_shares, fit_mixtures
from raterwise.results import Estimate, Results

__all__ = [
    "Network",
    "Spread",
    "differences_of",
    "level_of",
    "mixture_rows",
    "spreads_of",
    "with_training",
]

FloatArray = NDArray[Any]

BINS, COMPONENTS = 15, 3
CATALOG = ("accuracy", "ece", "sce", "robust_ece", "brier")


@dataclass(frozen=True, eq=False)
class Network:
    """What one trained network says of the test cases."""

    probs: FloatArray
    """(N, K)."""
    views: FloatArray | None
    """(S, N, K): the same under test-time augmentation, where that was done."""
    labels: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None
    """What is independent, where that is not the case."""


@dataclass(frozen=True, eq=False)
class Spread:
    """A metric of the networks of one loss."""

    each: FloatArray
    """(seeds,)."""
    mean: Estimate
    """The mean over seeds; its interval is over test cases alone."""
    replicates: FloatArray
    """(resamples,): the mean over seeds, on the same resampled cases."""


# One loss: a metric over its seeds --------------------------------------------------------------


def spreads_of(networks: Sequence[Network], settings: Settings) -> dict[str, Spread]:
    """Return every metric of networks that differ in their seeds alone."""
    predictions = [predictions_of(n.probs, n.labels, groups=n.groups) for n in networks]
    request = Request.of(CATALOG, bins=BINS, settings=settings)
    asked, plans = request.asked, request.plans()
    passes = [Pass(digest_in_memory(p, plans, settings), asked, settings) for p in predictions]
    out = {}
    for name, (row, own) in asked.items():
        measures = [Measure(row, own, pass_) for pass_ in passes]
        each = [measure.value()[0] for measure in measures]
        mean = mean_estimate(blank(row), measures, each)
        drawn = [m.replicates(value) for m, value in zip(measures, each, strict=True)]
        out[name] = Spread(np.array(each), mean, np.mean(drawn, axis=0))
    if all(network.views is not None for network in networks):
        out[MIXTURE] = _mixture_spread(networks, passes[0].times, settings)
    return {name: out[name] for name in METRICS if name in out}


def _mixture_spread(networks: Sequence[Network], times: FloatArray, settings: Settings) -> Spread:
    """Return RECE-M, which needs more than the catalog's probabilities: views of each case."""
    rows = np.stack([mixture_rows(network, settings.seed) for network in networks], axis=1)
    cases, weights = len(rows), np.ones(len(rows))
    if networks[0].groups is not None:
        codes = np.unique(networks[0].groups, return_inverse=True)[1].reshape(-1)
        units = codes.max() + 1
        rows = np.stack([rows[codes == unit].sum(axis=0) for unit in range(units)])
        weights = np.bincount(codes).astype(np.float64)
    drawn = (times @ weights)[:, None, None]
    resampled = np.einsum("bn,nsm->bsm", times, rows) / drawn

    def norm(tables: FloatArray) -> FloatArray:
        return np.asarray(np.abs(tables).sum(axis=-1).mean(axis=-1))

    table = rows.sum(axis=0) / cases
    found = intervals.calibration_interval(
        norm, table, resampled - table, settings.level, units=len(rows)
    )
    mean = Estimate(MIXTURE, float(norm(table)), found.low, found.high, found.debiased)
    return Spread(np.abs(table).sum(axis=-1), mean, norm(resampled))


def mixture_rows(network: Network, seed: int) -> FloatArray:
    """Return the terms of RECE eq 7, (N, bins): RECE-M is Σ_i |mean over cases|."""
    predicted = network.probs.argmax(axis=1)
    cases = np.arange(len(predicted))
    assert network.views is not None
    sampled = network.views[:, cases, predicted]
    share = bin_shares(fit_mixtures(sampled, COMPONENTS, seed), equal_edges(BINS))
    gap = (predicted == network.labels) - network.probs[cases, predicted]
    return np.asarray(gap[:, None] * share)


# Both sources of chance --------------------------------------------------------------------------


def with_training(
    each: FloatArray, low: float, high: float, level: float
) -> tuple[float, float, float]:
    """Return the mean over seeds, and an interval of test cases widened by that of training.

    >>> with_training(np.array([0.1, 0.3]), 0.2, 0.2, 0.5)  # t_1 = 1 at the quartiles: 0.2 ± 0.1
    (0.2, 0.1, 0.3)
    """
    from scipy.special import stdtrit

    value, half = float(np.mean(each)), 0.0
    if len(each) > 1:
        t = stdtrit(len(each) - 1, (1 + level) / 2)
        half = float(t * np.std(each, ddof=1) / np.sqrt(len(each)))
    down, up = float(np.hypot(value - low, half)), float(np.hypot(high - value, half))
    return value, value - down, value + up


def level_of(spread: Spread, level: float) -> dict[str, Any]:
    """Return the mean over seeds with its interval, and what that consists of."""
    low, high = spread.mean.low, spread.mean.high
    assert low is not None and high is not None
    value, wide_low, wide_high = with_training(spread.each, low, high, level)
    least, most = find(spread.mean.name).bounds
    return {
        "value": value,
        "low": max(wide_low, least),
        "high": min(wide_high, most),
        "low_cases": low,
        "high_cases": high,
        "sd_seeds": float(np.std(spread.each, ddof=1)) if len(spread.each) > 1 else 0.0,
        "each": [round(float(value), 6) for value in spread.each],
    }


def differences_of(
    first: Mapping[str, Spread], second: Mapping[str, Spread], cases: int, settings: Settings
) -> dict[str, dict[str, float]]:
    """Return first minus second of every metric, paired by seed and by resampled cases.

    Over test cases they are those of `raterwise.compare`, with the means in place of two models;
    `cases` is the number of independent ones. What only one of the two has is left out.
    """
    both = [metric for metric in first if metric in second]
    first, second = ({metric: own[metric] for metric in both} for own in (first, second))
    pair = {
        name: Results(
            {metric: spread.mean for metric, spread in own.items()},
            data={"fingerprint": {"units": cases}},
            options=asdict(settings),
            replicates={metric: spread.replicates for metric, spread in own.items()},
        )
        for name, own in (("first", first), ("second", second))
    }
    out = {}
    for found in differences(pair):
        gap = first[found.metric].each - second[found.metric].each
        ends = with_training(gap, found.low, found.high, settings.level)
        out[found.metric] = dict(zip(("difference", "low", "high"), ends, strict=True))
    return out
