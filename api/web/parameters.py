"""Parameters, and a type of fields, that several routes share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar.params import HeaderParameter, QueryParameter
from pydantic import AwareDatetime, BeforeValidator

IfMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match",
        required=False,
        description="ETag you read, or *; 428 without it, 412 when it is stale",
    ),
]
OptionalIfMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match", required=False, description="ETag you read; 412 when it is stale"
    ),
]
IfNoneMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-None-Match", required=False, description="ETag you have; 304 where it still holds"
    ),
]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        required=False,
        min_length=1,
        max_length=200,
        pattern="^[!-~]([ -~]*[!-~])?$",
        description="1 to 200 printable ASCII characters; the same request answers the same",
    ),
]
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="items of a page")]
Cursor = Annotated[
    str | None, QueryParameter(max_length=500, description="`next_cursor` of the page before")
]
Instant = Annotated[
    datetime | None, QueryParameter(description="time with its zone, 2026-12-01T00:00:00Z")
]
Text = Annotated[str | None, QueryParameter(max_length=200, description="text to look for")]


def _time(value: object) -> object:
    """Read a time: JSON has none of its own, so a strict model needs this."""
    if not isinstance(value, str):
        return value
    time = datetime.fromisoformat(value)
    if not 2000 <= time.year <= 2200:
        raise ValueError("accepted: years 2000 to 2200")
    return time


Time = Annotated[AwareDatetime, BeforeValidator(_time)]
