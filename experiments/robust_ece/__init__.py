"""RECE: do calibration losses calibrate? (`training_losses`)."""
