"""Kernel densities and mixtures on a line: what the smooth calibration errors are made of."""
