"""The raters' labels: label histograms, single ratings, and classes as people write them."""

from raterwise.labels.histograms import Ratings
from raterwise.labels.labels import Labels

__all__ = ["Labels", "Ratings"]
