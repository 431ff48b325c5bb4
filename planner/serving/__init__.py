"""The steady state of a deployment under load."""
