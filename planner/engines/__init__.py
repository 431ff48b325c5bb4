"""Serving engines: profiles as data, and what they do to memory."""
