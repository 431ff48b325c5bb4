"""The OpenAPI document."""

from __future__ import annotations

from litestar.openapi import OpenAPIConfig


def openapi_config() -> OpenAPIConfig:
    """Return the configuration."""
    return OpenAPIConfig(title="Decode planner", version="1")
