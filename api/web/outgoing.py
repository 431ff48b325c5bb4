"""An answer on its way out: packed where that pays, sent when the request has been read."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from litestar.types import Message, Send

from api.web.bodies import Body
from api.web.compress import coding_for, is_worth_it, packed

INLINE_BYTES = 65_536
"""Answers up to this are packed by the event loop itself, larger ones by a thread [byte]."""
PACKERS = ThreadPoolExecutor(1, thread_name_prefix="pack")
"""Packs large answers, one after another; its thread starts with the first."""
Headers = list[tuple[bytes, bytes]]


class Outgoing:
    """Sends one answer."""

    def __init__(self, send: Send, scope: Any, body: Body, accept_encoding: str) -> None:
        self._send = send
        self._scope = scope
        self._body = body
        self._accept_encoding = accept_encoding
        self._start: Any = None
        self.status = 0
        """Status of the answer, 0 before there is one."""
        self.headers: Headers = []
        """What is added to the headers of the answer."""

    async def send(self, message: Message) -> None:
        """Send a piece of the answer; its head is held back until what follows is known."""
        piece: Any = message
        if piece["type"] == "http.response.start":
            self.status = piece["status"]
            piece["headers"] = [*piece["headers"], *self.headers]
            if not await self._body.read_rest():
                piece["headers"].append((b"connection", b"close"))
            self._start = piece
            return
        if self._start is not None:
            start, self._start = self._start, None
            if piece["type"] == "http.response.body" and not piece.get("more_body"):
                await self._pack(start, piece)
            await self._send(start)
        await self._send(piece)

    async def _pack(self, start: Any, piece: Any) -> None:
        body, headers = piece.get("body", b""), dict(start["headers"])
        handler = self._scope.get("route_handler")
        if not is_worth_it(headers, len(body)) or (handler and handler.opt.get("as_is")):
            return
        start["headers"] = vary(start["headers"])
        coding = coding_for(self._accept_encoding) if self._accept_encoding else None
        if coding is None or self._scope["method"] == "HEAD":
            return
        if len(body) <= INLINE_BYTES:
            piece["body"] = packed(body, coding)
        else:
            loop = asyncio.get_running_loop()
            piece["body"] = await loop.run_in_executor(PACKERS, packed, body, coding)
        length, name = b"%d" % len(piece["body"]), coding.encode()
        start["headers"] = [
            *(_weak(item) for item in start["headers"] if item[0].lower() != b"content-length"),
            (b"content-length", length),
            (b"content-encoding", name),
        ]


def vary(headers: Headers) -> Headers:
    """Return headers that say that the answer depends on Accept-Encoding."""
    before = [value for name, value in headers if name.lower() == b"vary"]
    others = [item for item in headers if item[0].lower() != b"vary"]
    return [*others, (b"vary", b", ".join([*before, b"Accept-Encoding"]))]


def _weak(item: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a header; a tag of a packed answer is one of what it means, not of its bytes."""
    name, value = item
    return (name, b"W/" + value) if name.lower() == b"etag" and value[:1] == b'"' else item
