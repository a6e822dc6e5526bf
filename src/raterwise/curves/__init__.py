"""Curves: the small tables that pictures are drawn from.

A reliability curve says, for each bin, what was predicted and what the raters said, with an
interval and a count. A threshold curve says what accepting the confident predictions would cost at
every threshold; the CCC and the risk-coverage curve are two ways to draw it. Both are plain
numbers, come for free with the tables that the metrics share, and pass through JSON.
"""

from raterwise.curves.reliability import reliability_curve, threshold_curve
from raterwise.curves.tables import ReliabilityCurve, ThresholdCurve

__all__ = [
    "ReliabilityCurve",
    "ThresholdCurve",
    "reliability_curve",
    "threshold_curve",
]
