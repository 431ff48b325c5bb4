"""Answers in pieces: each is read in a lane when the one before has been sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from api.lanes.lane import Lane


async def streamed(lane: Lane, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces, each read in a thread of a lane; the request was let in before."""
    while (piece := await asyncio.wrap_future(lane.go_on(next, pieces, None))) is not None:
        yield piece
