"""Errors of the same bins that are nested: no largest gap is smaller than the mean gap.

Each interval is made for its own metric, and one bin says little where all together say much: that
of the largest gap may begin at 0 beside a mean gap that is clearly above. Whoever reads both on one
page should not have to wonder.

Everything takes numbers and returns numbers; nothing is random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from raterwise.catalog import Metric
from raterwise.results import Estimate
from raterwise.types import Options

STRICTER = 5.0
"""How many times smaller than 1 - level the p-value of one error is to be, to speak for another."""


def in_order(
    estimates: Mapping[str, Estimate],
    asked: Mapping[str, tuple[Metric, Options]],
    level: float,
) -> dict[str, Estimate]:
    """Return estimates in which the interval of a larger norm is not below that of a smaller one.

    Of norms p < q of the same gaps ‖d‖_p <= ‖d‖_q, as of the truth. The upper end of the larger one
    is raised to that of the smaller. So is the lower end, where the smaller one is above 0 at a
    fifth of the significance (`STRICTER`): its test then speaks for both, and a calibrated model is
    called off by at most a fifth more often, which the test of a largest gap leaves room for: alone
    it calls off fewer than it may. p-values follow.

    >>> from raterwise.catalog import CATALOG
    >>> rows = {name: (CATALOG[name], CATALOG[name].options) for name in ("ece", "mce")}
    >>> sure = Estimate("ece", 0.1, low=0.06, high=0.14, debiased=0.1, p_value=0.002)
    >>> one = Estimate("mce", 0.3, low=0.0, high=0.5, debiased=0.2, p_value=0.2)
    >>> found = in_order({"ece": sure, "mce": one}, rows, 0.95)["mce"]
    >>> found.low, found.high, found.p_value
    (0.06, 0.5, 0.01)
    """
    out = dict(estimates)
    families: dict[object, list[tuple[float, str]]] = {}
    for name, (row, own) in asked.items():
        if row.norm is not None and out[name].low is not None:
            families.setdefault(row.plan(own), []).append((row.norm(own), name))
    for family in families.values():
        ordered = sorted(family)
        for i, (_, larger) in enumerate(ordered):
            for _, smaller in ordered[:i]:
                out[larger] = _at_least(out[larger], out[smaller], level)
    return out


def _at_least(larger: Estimate, smaller: Estimate, level: float) -> Estimate:
    """Return the estimate of an error that is at least another one."""
    if larger.low is None or larger.high is None or larger.value is None:
        return larger
    if smaller.low is None or smaller.high is None or smaller.value is None:
        return larger
    found = replace(larger, high=max(larger.high, smaller.high))
    p = None if smaller.p_value is None else STRICTER * smaller.p_value
    if p is None or p > round(1 - level, 12) or smaller.low <= larger.low:
        return found
    low = min(smaller.low, larger.value)
    own = 1.0 if larger.p_value is None else larger.p_value
    middle = None if larger.debiased is None else max(larger.debiased, low)
    return replace(found, low=low, debiased=middle, p_value=min(own, p))
