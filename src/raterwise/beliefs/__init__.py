"""Distributions over the class probabilities of each case (LH section 5).

A belief is a distribution over the probability vector ζ of each case. Its mean is an ordinary
prediction; its width says how often raters will disagree, what one more expert's label would
change, and how much it would help.
"""

from raterwise.beliefs.base import Belief
from raterwise.beliefs.kinds import (
    DirichletBelief,
    DirichletMixtureBelief,
    EnsembleBelief,
    PointBelief,
)
from raterwise.beliefs.statistics import StatisticProbability

__all__ = [
    "Belief",
    "DirichletBelief",
    "DirichletMixtureBelief",
    "EnsembleBelief",
    "PointBelief",
    "StatisticProbability",
]
