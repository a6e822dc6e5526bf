"""Several models on the same cases: `models` compares them, `comparison` holds the outcome."""

from raterwise.compare.comparison import Comparison
from raterwise.compare.models import compare
from raterwise.inference.paired import Difference

__all__ = ["Comparison", "Difference", "compare"]
