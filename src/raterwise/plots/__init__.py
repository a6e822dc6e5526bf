"""Figures for papers: matplotlib displays in scikit-learn's style.

A display holds the numbers; `from_predictions` and `from_results` make one and draw it, and
`plot(ax=…)` draws it again, into any axes. The drawing is in `ax_` and `figure_`; save it as PDF or
SVG for vector graphics. Needs the extra "report": pip install "raterwise[report]".
"""

from raterwise.plots.concentrations import OptimalConcentrationDisplay
from raterwise.plots.decisions import DecisionDisplay, OutcomeDisplay
from raterwise.plots.designs import PlanDisplay, StabilityDisplay
from raterwise.plots.maps import CalibrationDispersionDisplay
from raterwise.plots.reliability import DisagreementReliabilityDisplay, ReliabilityDisplay
from raterwise.plots.style import journal_style
from raterwise.plots.subgroups import SubgroupDisplay
from raterwise.plots.thresholds import (
    CCCDisplay,
    PrecisionRecallDisplay,
    RiskCoverageDisplay,
    RocDisplay,
)

__all__ = [
    "CCCDisplay",
    "CalibrationDispersionDisplay",
    "DecisionDisplay",
    "DisagreementReliabilityDisplay",
    "OptimalConcentrationDisplay",
    "OutcomeDisplay",
    "PlanDisplay",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "RocDisplay",
    "StabilityDisplay",
    "SubgroupDisplay",
    "journal_style",
]
