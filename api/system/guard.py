"""Who may do what: a route reads or writes, and a key says which workspace it opens."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler

from api.services import services
from api.store.changes import AUTHOR, Author
from api.system.keys import Keys
from api.web.context import DEFAULT_WORKSPACE, AccessScope, Caller, client_of, request_id
from api.web.problem import Problem

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="decode-planner"'}


async def authorise(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """Raise 401 without a valid key where one is required, 403 where its scope is too small."""
    if handler.opt.get("public") or connection.scope.get("method") == HttpMethod.OPTIONS:
        return
    caller = await _identify(connection)
    needed: AccessScope = handler.opt.get("scope") or _default_scope(connection)
    if not caller.may(needed):
        raise Problem(403, "this key may read only; a key with scope write is needed")
    AUTHOR.set(Author(caller.key_id, client_of(connection.scope), request_id(connection.scope)))
    connection.scope["planner_caller"] = caller  # type: ignore[typeddict-unknown-key]


def _default_scope(connection: ASGIConnection[Any, Any, Any, Any]) -> AccessScope:
    return "read" if connection.scope.get("method") in {"GET", "HEAD"} else "write"


async def _identify(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller:
    """Return whom the request's key belongs to; without one, whoever is on this machine."""
    authorization = connection.headers.get("authorization")
    application = services(connection)
    if authorization is None:
        if application.settings.keys_required:
            raise Problem(
                401, "an API key is required: Authorization: Bearer KEY", headers=CHALLENGE
            )
        return Caller(DEFAULT_WORKSPACE, "write")
    scheme, _, key = authorization.partition(" ")
    caller = None
    if scheme.lower() == "bearer" and key:
        keys: Keys = connection.app.state.api_keys
        caller = keys.cached(key.strip())
        if caller is None:
            loop = asyncio.get_running_loop()
            caller = await loop.run_in_executor(application.lanes["keys"], keys.find, key.strip())
    if caller is None:
        raise Problem(401, "the API key is not valid", headers=CHALLENGE)
    return caller
