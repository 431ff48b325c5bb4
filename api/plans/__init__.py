"""Answers that are not stored: plans, sweeps, recommendations, rooflines."""
