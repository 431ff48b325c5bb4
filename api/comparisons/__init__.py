"""Comparisons of scenarios, answered and saved."""
