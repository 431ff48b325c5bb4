"""Predicting rows of measured runs, and how far off the predictions are."""
