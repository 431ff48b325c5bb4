"""Measurements of the user's own: readers of benchmark tools, rows of runs, local refit."""
