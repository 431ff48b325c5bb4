"""Answers in fewer bytes, where the client takes them so."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from importlib.util import find_spec

LEAST_BYTES = 4096
"""Answers below this go out as they are: packing them takes longer than sending them [byte]."""
KINDS = ("application/json", "application/problem+json", "text/")
"""Beginnings of media types that shrink."""


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 3, mtime=0)


def _codecs() -> dict[str, Callable[[bytes], bytes]]:
    """Return what this installation can pack with, the best first."""
    codecs: dict[str, Callable[[bytes], bytes]] = {}
    if find_spec("zstandard") is not None:
        import zstandard

        codecs["zstd"] = lambda body: zstandard.ZstdCompressor(3).compress(body)
    return codecs | {"gzip": _gzip}


CODECS = _codecs()


def coding_for(accept_encoding: str) -> str | None:
    """Return the coding to send, None for none: the best of those a client gives equal weight."""
    weights = dict(map(_weight, accept_encoding.split(",")))
    offered = {name: weights.get(name, weights.get("*", 0.0)) for name in CODECS}
    best = max(offered, key=lambda name: offered[name])
    return best if offered[best] > weights.get("identity", 0.0) * 0.999 and offered[best] else None


def _weight(part: str) -> tuple[str, float]:
    name, _, parameter = part.strip().lower().partition(";")
    key, _, value = parameter.strip().partition("=")
    if key.strip() != "q":
        return name.strip(), 1.0
    try:
        return name.strip(), float(value)
    except ValueError:
        return name.strip(), 0.0


def is_worth_it(headers: Mapping[bytes, bytes], size: int) -> bool:
    """Return whether an answer gets smaller by packing it."""
    kind = headers.get(b"content-type", b"").decode("latin-1")
    return size >= LEAST_BYTES and kind.startswith(KINDS) and b"content-encoding" not in headers


def packed(body: bytes, coding: str) -> bytes:
    """Return a body in a coding."""
    return CODECS[coding](body)


__all__ = ["CODECS", "coding_for", "is_worth_it", "packed"]
