"""Predictions with their labels and everything that may come with them, checked."""

from raterwise.predictions.predictions import Predictions
from raterwise.predictions.rows import Rows

__all__ = ["Predictions", "Rows"]
