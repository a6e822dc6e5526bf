"""Kernel densities and mixtures on a line, used by the smooth calibration errors."""
