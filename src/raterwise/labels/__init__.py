"""What the raters said: label histograms, single ratings, and classes as people write them."""

from raterwise.labels.labels import Labels
from raterwise.labels.ratings import Ratings

__all__ = ["Labels", "Ratings"]
