"""Results: every metric with its interval, facts about the data, and the files written."""

from raterwise.results.estimate import Estimate, LevelDifference, Subgroup
from raterwise.results.results import DIGITS, SCHEMA_VERSION, Results, left_out, plain, to_digits

__all__ = [
    "DIGITS",
    "SCHEMA_VERSION",
    "Estimate",
    "LevelDifference",
    "Results",
    "Subgroup",
    "left_out",
    "plain",
    "to_digits",
]
