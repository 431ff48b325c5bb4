"""Rows of measured runs, and what is assumed of them."""
