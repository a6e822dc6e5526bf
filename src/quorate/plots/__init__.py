"""Figures that a journal will take: matplotlib displays in scikit-learn's style.

A display holds the numbers; `from_predictions` and `from_results` make one and draw it, and
`plot(ax=…)` draws it again, beside or over others. What it drew is in `ax_` and `figure_`; save it
as PDF or SVG for vectors. Needs the extra "report": pip install "quorate[report]".
"""

from quorate.plots.designs import PlanDisplay, StabilityDisplay
from quorate.plots.maps import CalibrationDispersionDisplay
from quorate.plots.reliability import DisagreementReliabilityDisplay, ReliabilityDisplay
from quorate.plots.style import journal_style
from quorate.plots.subgroups import SubgroupDisplay
from quorate.plots.thresholds import CCCDisplay, RiskCoverageDisplay

__all__ = [
    "CCCDisplay",
    "CalibrationDispersionDisplay",
    "DisagreementReliabilityDisplay",
    "PlanDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "StabilityDisplay",
    "SubgroupDisplay",
    "journal_style",
]
