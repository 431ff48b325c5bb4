"""Stored scenarios: the question, its revisions and its answers."""
