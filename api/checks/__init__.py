"""Checks of command lines and manifests, before they are applied."""
