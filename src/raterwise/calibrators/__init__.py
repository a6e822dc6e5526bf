"""Post-hoc calibrators, with scikit-learn's estimator API; labels may be histograms."""

from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.alpha_loss import alpha_calibration_loss, optimal_concentration

__all__ = ["AlphaCalibration", "alpha_calibration_loss", "optimal_concentration"]
