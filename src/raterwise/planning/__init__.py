"""How many cases and raters does a study need? Expected interval widths from a pilot set."""

from raterwise.planning.designs import Design, StudyPlan
from raterwise.planning.pilot import plan

__all__ = ["Design", "StudyPlan", "plan"]
