"""The fit of the calibration to measured rows."""
