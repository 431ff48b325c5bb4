"""The OpenAPI document, completed from pydantic's own schemas, and its offline pages."""

from __future__ import annotations

from api.openapi.complete import complete
from api.openapi.pages import openapi_config, swagger_files

__all__ = ["complete", "openapi_config", "swagger_files"]
