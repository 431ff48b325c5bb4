"""A workspace's own measurements, and the calibration they give it."""
