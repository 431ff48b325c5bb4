"""Questions that are answered at once, before their route is entered.

One that was answered before, byte for byte, has the same answer under the same calibration, unless
it names objects of the workspace, which the store has. One whose plan is quick is answered here
too: taking it through the route and its dependencies would take half as long as the plan itself.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from litestar import Request, Response

from api.plans.service import Plans
from api.services import services
from api.web.accept import before_request
from api.web.answer import as_json
from api.web.context import caller

AnyRequest = Request[Any, Any, Any]


async def answer_at_once(request: AnyRequest) -> Response[Any] | None:
    """Return the answer that the same question had, or one that is quick; None if neither is.

    The request is checked first.
    """
    await before_request(request)
    application, key = services(request), await _key(request)
    answer = application.answers.get(key)
    if answer is None:
        if request.scope["query_string"]:
            return None
        plans = Plans(application, caller(request).workspace)
        answer = plans.at_once(await request.body())
        if answer is None:
            return None
        application.answers.put(key, answer)
    return as_json(answer)


async def remember(request: AnyRequest, answer: bytes) -> None:
    """Keep an answer for the same question."""
    services(request).answers.put(await _key(request), answer)


async def _key(request: AnyRequest) -> Hashable:
    document = services(request).calibrations.at_hand(caller(request).workspace)
    scope = request.scope
    return document, scope["path"], scope["query_string"], await request.body()
