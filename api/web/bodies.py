"""Bodies of requests on their way in: a deadline, and reading what an early refusal left unread."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar.types import Receive

from api.web.problem import Problem

UNREAD_BYTES = 64_000_000
"""Most that is read of a body after its request was refused [byte]."""
UNREAD_S = 5.0
"""Time given to a client to finish sending it [s]."""


class Body:
    """The body of one request, as the application receives it."""

    def __init__(self, receive: Receive, deadline_s: float, *, expected: bool) -> None:
        """Expect a body at all or not: what no header announces is not waited for."""
        self.receive = receive
        self.deadline_s = deadline_s
        self.ended = not expected
        """Whether all of it was received."""
        self.by_piece = False
        """Whether each piece has the deadline, not the whole: a body that is used as it comes."""
        self._until: float | None = None

    async def __call__(self) -> Any:
        """Return the next piece.

        Raises a 408 problem where the body takes too long, a 400 one where the client leaves: the
        framework would call that a defect of the service.
        """
        if self.ended:
            return await self.receive()
        loop = asyncio.get_running_loop()
        if self._until is None or self.by_piece:
            self._until = loop.time() + self.deadline_s
        try:
            async with asyncio.timeout_at(self._until):
                message: Any = await self.receive()
        except TimeoutError:
            raise too_slow(self.deadline_s) from None
        self.ended = message["type"] != "http.request" or not message.get("more_body")
        if message["type"] == "http.disconnect":
            raise Problem(400, "the connection was closed before the body had ended")
        return message

    async def read_rest(self) -> bool:
        """Read and drop what is left, so that the client is not cut off; return whether all was."""
        if self.ended:
            return True
        left = UNREAD_BYTES
        try:
            async with asyncio.timeout(UNREAD_S):
                while left > 0:
                    message: Any = await self.receive()
                    if message["type"] != "http.request":
                        return False
                    if not message.get("more_body"):
                        self.ended = True
                        return True
                    left -= len(message.get("body", b""))
        except TimeoutError:
            pass
        return False


def is_expected(headers: dict[bytes, bytes]) -> bool:
    """Return whether the headers of a request announce a body."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def too_slow(deadline_s: float) -> Problem:
    """Return the problem of a body that took longer than its deadline."""
    return Problem(408, f"the body was not sent within {deadline_s:g} s")
