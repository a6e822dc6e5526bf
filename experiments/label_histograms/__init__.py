"""LH: does α-calibration help on real people? (`expert_labels`)."""
