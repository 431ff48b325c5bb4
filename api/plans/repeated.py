"""Questions that were answered before, by their bytes: the answer goes out again as it is.

The same question under the same calibration has the same answer, unless it names objects of the
workspace, which the store has.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from litestar import Request, Response

from api.services import services
from api.web.accept import before_request
from api.web.answer import as_json
from api.web.context import caller

AnyRequest = Request[Any, Any, Any]


async def answer_again(request: AnyRequest) -> Response[Any] | None:
    """Return the answer that the same question had, if it is at hand; check the request first."""
    await before_request(request)
    answer = services(request).answers.get(await _key(request))
    return None if answer is None else as_json(answer)


async def remember(request: AnyRequest, answer: bytes) -> None:
    """Keep an answer for the same question."""
    services(request).answers.put(await _key(request), answer)


async def _key(request: AnyRequest) -> Hashable:
    document = services(request).calibrations.at_hand(caller(request).workspace)
    scope = request.scope
    return document, scope["path"], scope["query_string"], await request.body()
