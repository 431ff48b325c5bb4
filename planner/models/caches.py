"""What a part of a layer keeps: per token, per sequence, and the forms of a latent."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cache:
    """What a part keeps per token of a sequence."""

    elements_per_token: float
    """Values kept per token; a compressed cache keeps a fraction of an entry [value/token]."""
    ways: int
    """Ways tensor parallelism splits it: the KV heads; 1 for a latent [-]."""
    window: float = math.inf
    """Tokens kept at most; infinity grows with the sequence [token]."""
    index: bool = False
    """Whether it holds an indexer's keys, which engines keep in a format of their own."""


@dataclass(frozen=True, slots=True)
class State:
    """What a part keeps per sequence, whatever its length."""

    elements: int
    ways: float = math.inf
    needed: int = 0
    """Of a convolution's inputs, those that the next token needs: all but the oldest; 0 where it is
    no convolution [value]."""


@dataclass(frozen=True, slots=True)
class LatentCache:
    """The one vector that multi-head latent attention caches for all heads."""

    rank: int
    """Width of the vector without its rotary part: the values that are transposed once more where
    an engine keeps them [value/token]."""
    expanded: Cache
    """Keys and values of every head, where an engine caches those instead."""
