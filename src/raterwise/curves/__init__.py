"""Curves: the small tables that pictures are drawn from.

A reliability curve has, for each bin, the mean prediction and the raters' frequency, with an
interval and a count. A threshold curve has, for each threshold, what is accepted and rejected; the
CCC and the risk-coverage curve are two ways to draw it. Both consist of plain numbers and can be
stored as JSON.
"""

from raterwise.curves.reliability import reliability_curve, threshold_curve
from raterwise.curves.tables import ReliabilityCurve, ThresholdCurve

__all__ = [
    "ReliabilityCurve",
    "ThresholdCurve",
    "reliability_curve",
    "threshold_curve",
]
