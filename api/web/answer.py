"""Responses whose bytes are ready: large answers go out twice as fast so."""

from __future__ import annotations

from typing import Any

from litestar import Response
from pydantic import BaseModel

from api.web.accept import JSON


def as_json(answer: BaseModel | bytes, status: int = 200) -> Response[Any]:
    """Return a JSON response from pydantic's own serialiser."""
    body = answer if isinstance(answer, bytes) else answer.model_dump_json().encode()
    return Response(body, status_code=status, media_type=JSON)
