"""Are the raters interchangeable? A test of the assumption that every estimate here makes.

`procedure` is the test, `permutations` what is permuted and the statistics of it, `outcome` what
comes out and how it is said.
"""

from raterwise.exchangeability.outcome import ExchangeabilityTest, RaterDeviation
from raterwise.exchangeability.procedure import exchangeability_test

__all__ = ["ExchangeabilityTest", "RaterDeviation", "exchangeability_test"]
