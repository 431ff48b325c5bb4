"""The OpenAPI document, completed from pydantic's own schemas, and its offline pages."""

from __future__ import annotations

from api.openapi.complete import document_of
from api.openapi.pages import openapi_config, swagger_files

__all__ = ["document_of", "openapi_config", "swagger_files"]
